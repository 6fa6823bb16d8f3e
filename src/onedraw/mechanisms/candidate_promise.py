"""What rounds of candidates promise together, and how much of a record they may show under a budget.

Given its candidates round j is BoundedRange(ε_j) (mathematics.md §6). Candidates are public, so what is bounded for
every layout is bounded on average: the log-ratio by ε_j, the Rényi divergence by the curve of BoundedRange(ε_j), which
is below ZCDP(ε_j²/8). The *range* is not: where the interval of log-ratios lies depends on the candidates, and over all
of them it may be twice as long. So a draw is not BoundedRange(ε), but its divergences are those of one.

Later rounds see earlier picks. Pure ε and Rényi curves add up under adaptive choice, with all ε_j fixed beforehand:

| budget | what is promised |
| --- | --- |
| PureDP, ApproxDP with δ = 0 | PureDP(Σ ε_j) |
| BoundedRange(ε) | PureDP(Σ ε_j), Σ ε_j ≤ ε/2: a log-ratio between −ε/2 and ε/2 has the range ε |
| ZCDP, RenyiDP, ApproxDP | RenyiDP of each curve, composed; for one round that implies ZCDP(ε²/8) |

A person with k records moves every cost k times as far (ε_j·k); independent repetitions add up like rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from onedraw.errors import UnsupportedBudget
from onedraw.privacy import ZCDP, ApproxDP, BoundedRange, BoundedRangeCurve, Promise, PureDP, RenyiDP, compose
from onedraw.privacy.curves import add_curves
from onedraw.privacy.rounding import fraction_down, fraction_up

from . import calibration
from .candidate_plan import shares


def promise_of_rounds(
    ranges: Sequence[Fraction], budget: Promise, *, records_per_person: int = 1, repetitions: int = 1
) -> Promise:
    """What rounds of these conditional ranges, for one record, promise; in the currency of the budget."""
    if counts_epsilons(budget):
        return PureDP(fraction_up(sum(ranges, Fraction(0)) * records_per_person * repetitions))
    parts = [RenyiDP(curve) for curve in _curves(ranges, records_per_person)]
    return parts[0] if len(parts) * repetitions == 1 else compose(*parts * repetitions)


def _curves(ranges: Sequence[Fraction], records_per_person: int) -> list[BoundedRangeCurve]:
    return [BoundedRangeCurve(fraction_up(part * records_per_person)) for part in ranges]


def counts_epsilons(budget: Promise) -> bool:
    """Whether the budget has no use for anything but the sum of the ε_j."""
    without_delta = isinstance(budget, ApproxDP) and budget.stated_delta == 0.0
    return isinstance(budget, PureDP | BoundedRange) or without_delta


def check_budget(budget: Promise) -> None:
    """Refuse what rounds of candidates cannot be calibrated to."""
    if not isinstance(budget, PureDP | BoundedRange | ZCDP | RenyiDP | ApproxDP):
        raise UnsupportedBudget(
            f"Candidates are calibrated to PureDP, BoundedRange, ZCDP, RenyiDP or ApproxDP, but {budget} came. Use "
            "PureDP(epsilon) or ApproxDP(epsilon, delta)."
        )


@lru_cache(maxsize=256)
def largest_range(budget: Promise, rounds: int, *, records_per_person: int = 1, repetitions: int = 1) -> Fraction:
    """Σ ε_j of all rounds, for one record and one repetition: the largest with which the budget is kept."""
    check_budget(budget)
    if isinstance(budget, PureDP | BoundedRange) or (isinstance(budget, ApproxDP) and counts_epsilons(budget)):
        usable = Fraction(budget.stated_epsilon) / (2 if isinstance(budget, BoundedRange) else 1)
        return usable / (records_per_person * repetitions)
    parts = shares(rounds)

    def keeps(total: float) -> bool:
        """By the sum of the curves alone, which is quick: a privacy-loss distribution of the parts finds no more."""
        curves = _curves([Fraction(total) * part for part in parts], records_per_person)
        return RenyiDP(add_curves((curve, repetitions) for curve in curves)).implies(budget)

    found = calibration.largest_range(keeps, budget, f"{rounds} round(s) of candidates")
    return Fraction(fraction_down(Fraction(found) * (1 - Fraction(calibration.RANGE_MARGIN))))
