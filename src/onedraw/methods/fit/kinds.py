"""The constants of each kind of response: everything about a kind that is a number and no formula.

Most are rounded from real tables of the half that `benchmarks/populations` sets aside for this; those of margins and of several
classes are taken from the kind that is nearest, quantiles for the window in which curvature is, and labels.

**Fixed lengths.** A robust line and a margin shorten rows by a rule that is the same at every n and ε, so that they estimate the
same coefficients: a row z of p entries counts min(1, c√p/(‖z‖·longest ψ)), and residuals beyond t deviations count as t at most
(`LIMITS`). For normal rows c = 1 costs 5 % of the sampling variance with two coefficients, 3 % with five and 1 % with ten; noise
for privacy then has half the variance that it has at c = 1.5 and a quarter of that at c = 2. Log-cosh at t = 1 costs 7 % for normal
residuals, and t = 2 would cost 2 % with twice the variance of noise. Counts have t = 3: of Poisson counts
with mean 0.3 a line with t = 1 finds 0.61 times the mean, with t = 3 it finds 0.91 times, of those with mean 1 it finds 0.97 times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["number", "label", "count", "quantile", "margin", "classes"]

FIXED_LENGTH = 1.0
"""c above: the longest score over √p, in units of the longest ψ."""

LIMITS = {"number": 1.0, "count": 3.0}
"""t above: deviations at which ψ of a robust line ends, where it has no end of its own."""


@dataclass(frozen=True)
class Constants:
    """What sizes, steps and intervals need to know of a kind. Shares are of μ²."""

    damping: float
    """a at least (steps.py). More where curvature is all in a narrow window: there it may be several times what is expected, and steps
    that are too long jump from one side to the other."""
    moment_floor: float
    """Eigenvalues of the first second moments are raised to this share of their noise's edge."""
    caution: float
    """Deviations of its noise by which measured information is lowered: where it changes with the coefficients, steps go
    little along a direction whose information is much less than expected, so that a lucky draw would promise more than they found. A
    whole deviation covers more than it says."""
    bias: float
    """b₀: deviations of one record by which scores shortened to √p move a coefficient."""
    least_beta: float
    """β at least."""
    least_searched: float
    """β from which a shorter bound is looked for. Below, the longest is short enough for all tables, and the counts would be noise."""
    row_squares: tuple[float, float]
    """Squared norm of a row of measured moments, over its number of entries: at least and at most."""
    largest_design_edge: float
    """Edge of the second moments beyond which they are left out and their share goes to the first."""
    design_share: float
    """For moments in measured coordinates."""
    information_share: float
    """For the information, which for least squares follows from the moments."""
    count_share: float = 0.0
    """For the count of scores longer than twice the bound. Of a line the count's noise, 1/(μ√share), is to be less than the 2√p/μ scores
    that tails falling with the square of the length leave beyond twice the bound (sizes.py): a share of 1/(4p), a tenth for two columns and
    an intercept. At 0.04 lines that few records decide were named in three quarters of the samples of such tables for deriving, and the
    samples that were not named had intervals that did not hold. Quantiles have no count, since their scores are bounded. Two classes have
    none because it was tried: a share of 0.04 named 2 of 13 slopes of tables for deriving whose intervals do not hold, and with them a
    ninth to a seventh of all samples, nearly all of which hold (benchmarks/results/regression_naming.md)."""
    longest_covariance: float = 9.0
    """Length over √p at most to which scores are shortened before they are squared. Beyond 9 the noise grows faster than what is
    still cut; scores that are bounded themselves are rarely longer than √1.5."""
    usual_tail: float = 1.0
    """Unit of β in the share e^{−1/2 − 1.1β} of scores that are longer than β√p, the usual one of real tables."""
    long_score: float = 1.0
    """|ψ| up to which records with rare values keep their whole score (effects.py)."""


_LABEL = Constants(
    damping=2.5, moment_floor=0.8, caution=0.5, bias=0.0235, least_beta=1.0, least_searched=2.0, row_squares=(1.3, 1.3),
    largest_design_edge=0.3, design_share=0.08, information_share=0.10, longest_covariance=1.5**0.5, usual_tail=0.4,
)  # fmt: skip
_NUMBER = Constants(
    damping=2.0, moment_floor=0.4, caution=0.0, bias=0.138, least_beta=1.0, least_searched=3.0, row_squares=(2.0, 12.0),
    largest_design_edge=9.0, design_share=0.13, information_share=0.0, count_share=0.10, long_score=2.0,
)  # fmt: skip
_USUAL: dict[Kind, Constants] = {
    "number": _NUMBER,
    "label": _LABEL,
    "count": replace(
        _LABEL, bias=0.05, least_searched=3.0, information_share=0.12, count_share=0.04, longest_covariance=3.0 * 1.5**0.5,
        usual_tail=1.0, long_score=2.0,
    ),
    "quantile": replace(
        _NUMBER, damping=5.0, bias=0.02, least_beta=0.5, least_searched=0.8, information_share=0.10, count_share=0.0,
        usual_tail=0.25, long_score=1.0,
    ),
    "margin": replace(_LABEL, damping=5.0),
    "classes": _LABEL,
}  # fmt: skip


def constants_of(kind: Kind, *, fixed: bool) -> Constants:
    """Return the constants of a kind, or of its robust line, whose information is measured and whose scores need no counts."""
    usual = _USUAL[kind]
    if not fixed:
        return usual
    measured = max(usual.information_share, _LABEL.information_share)
    return replace(usual, damping=max(usual.damping, _LABEL.damping), information_share=measured, count_share=0.0)
