"""How good will a fit be? From public numbers, for several designs, because its error depends on the columns.

A fit stretches each direction of its columns, of variance λ, by w (`coordinates`): there a record adds H·λw² to the information
and K·λw² to the variability, and noise σ, ω and ridge Λ are the plan's (mathematics-3 §3). `DESIGNS` are those a plan speaks
of: the wider columns spread, the less they go together and the weaker their effects, the better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from onedraw.mechanisms import PerturbedMode, Plan
from onedraw.models.fit.losses import ClassLoss, FitLoss
from onedraw.models.fit.problem import FitProblem
from onedraw.models.sums.noise_law import deviation, matrix_deviation

from .coordinates import Directions
from .expected_errors import Expectation

DESIGNS = tuple((filled, correlation) for filled in (1.0, 1.0 / 3.0) for correlation in (0.0, 0.5, 0.9))
"""(share of their declared range that columns fill, correlation of any two of them)."""

HARD = (1.0 / 3.0, 0.98)
"""… and columns that nearly repeat each other, as sizes and weights of one thing do, …"""

STRONGER = 3.0
"""… whose effects are as much stronger than the usual ones, unless the caller declared them: log-odds of standard deviation 3
leave a record half the information, and a ridge that is not taken back pulls three times as far."""

BEYOND = (
    "Columns that add up to another one, and classes that the columns can nearly tell apart, are beyond this range: their "
    "coefficients hardly exist, with or without privacy. Predictions can be good all the same."
)
"""What no range would help with: measured, up to fifteen times its upper end (benchmarks/results/plan_accuracy.md)."""


@dataclass(frozen=True)
class DesignError:
    """The expected error per coefficient in one design."""

    filled: float
    correlation: float
    expected: Expectation
    stronger: bool = False

    @property
    def words(self) -> str:
        share = "all" if self.filled == 1.0 else "a third"
        strong = ", strong effects" if self.stronger else ""
        return f"columns that fill {share} of their range, correlation {self.correlation:g}{strong}"


def expected_fit_errors(plan: Plan, *, effect: float, noise: float, declared: bool = True) -> tuple[DesignError, ...]:
    """For every design, a hard one last, with strong effects unless they were ``declared``; sizes in units of the response
    for numbers, of log-odds for classes."""
    found = [DesignError(*design, _expected(plan, *design, effect, noise)) for design in DESIGNS]
    hard = _expected(plan, *HARD, effect if declared else STRONGER * effect, noise)
    return (*found, DesignError(*HARD, hard, stronger=not declared))


def expected_fit_error(plan: Plan, *, effect: float, noise: float) -> Expectation:
    """In the reference design: columns that fill their ranges and do not go together."""
    return _expected(plan, *DESIGNS[0], effect, noise)


def _expected(plan: Plan, filled: float, correlation: float, effect: float, noise: float) -> Expectation:
    assert isinstance(plan.mechanism, PerturbedMode)
    problem = plan.mechanism.problem(plan)
    along = Directions.expected(problem, effect=effect, noise=noise, filled=filled, correlation=correlation)
    masses, parts = zip(
        *((mass, _squares(problem, along, effect, noise, unit)) for mass, unit in along.units), strict=True
    )
    ball = problem.layout.ball or 1.0
    return Expectation(*(np.sqrt(np.array(masses) @ np.array(parts)) / ball).tolist())


def _squares(problem: FitProblem, along: Directions, effect: float, noise: float, unit: float) -> tuple[float, float, float]:  # fmt: skip
    """(of the fit, of the likelihood's estimate, of the bias alone): mean squares per coefficient, responses read in ``unit``."""
    numbers, size = problem.numbers, problem.size
    record, pulls, best = per_record(problem.loss, effect / unit, noise / unit)
    rows = along.kept * problem.n * along.variance * along.stretched
    information, ridge = rows * record, numbers["ridge"]
    drowned = matrix_deviation(numbers["information_noise"], size, pure=problem.pure)
    back = ridge * information / (information**2 + drowned**2) if drowned else 0.0
    gain = (1.0 + back) / (information + ridge)
    mode, closing = (deviation(numbers[name], size, pure=problem.pure) for name in ("mode_noise", "closing_noise"))
    variance = (rows * pulls + mode**2) * gain**2 + (closing * (1.0 + back)) ** 2
    slopes = along.count[:-1] @ along.variance[:-1]
    missing = (1.0 - information * gain) ** 2 * (effect / unit) ** 2 / slopes
    missing[-1] = 0.0  # the design's intercept is 0
    share = unit**2 * along.count / along.count.sum()
    plain = 1.0 / (problem.n * best * along.variance)
    return float(share @ (variance * along.stretched + missing)), float(share @ plain), float(share @ missing)


def per_record(loss: FitLoss | ClassLoss, effect: float, residual: float = 1.0) -> tuple[float, float, float]:
    """(H, K, likelihood's information) of a record whose predictor has standard deviation ``effect``, and its residual too."""
    if isinstance(loss, ClassLoss):
        return _per_record_of_classes(loss, effect)
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    weights = weights / weights.sum()
    if loss.unit == "labels":
        predictor = effect * nodes
        positive = special.expit(predictor)
        return (
            float(weights @ loss.information(predictor, 1.0)),
            float(weights @ _over_labels(loss, predictor, positive)),
            float(weights @ (positive * (1.0 - positive))),
        )
    if loss.unit == "counts":
        rate = np.exp(np.minimum(effect * nodes, 6.0))
        curved = float(weights @ loss.curvature(effect * nodes, 0.0))
        return curved, curved, float(weights @ rate)
    zero, found = np.zeros_like(nodes), residual * nodes
    return float(weights @ loss.curvature(zero, found)), float(weights @ loss.slope(zero, found) ** 2), residual**-2


def _per_record_of_classes(loss: ClassLoss, effect: float) -> tuple[float, float, float]:
    """The average over directions, for scores of standard deviation ``effect``: 2,000 of them, from a fixed seed."""
    contrasts = effect * np.random.default_rng(1).standard_normal((2000, loss.blocks))
    chances = special.softmax(contrasts @ loss.contrasts.T, axis=1)
    expected = loss.factors(contrasts, np.zeros(len(contrasts)), "information")
    pulls = [(loss.slopes(contrasts, np.full(len(contrasts), float(label))) ** 2).sum(axis=1) for label in range(loss.classes)]  # fmt: skip
    return (
        float((expected**2).sum(axis=(1, 2)).mean()) / loss.blocks,
        float((chances * np.transpose(pulls)).sum(axis=1).mean()) / loss.blocks,
        float((1.0 - (chances**2).sum(axis=1)).mean()) / loss.blocks,
    )


def _over_labels(loss: Any, predictor: Any, positive: Any) -> Any:
    """E φ'² over the two labels."""
    return positive * loss.slope(predictor, 1.0) ** 2 + (1.0 - positive) * loss.slope(predictor, -1.0) ** 2
