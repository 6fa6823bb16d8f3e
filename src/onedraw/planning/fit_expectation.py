"""How good will a fit be? From public numbers, for several designs, because its error depends on the columns.

In measured coordinates every direction has unit variance, information H and variability K a record; the noise σ and the
ridge Λ of the plan add to them (mathematics-3 §3). A coefficient of a column scaled to [−1, 1] then has the variance of a
direction times (C⁻¹)_jj, C the columns' covariance: the wider a column spreads and the less it goes with others, the
better. `DESIGNS` are those a plan speaks of; the first is the reference design of all mechanisms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from onedraw.mechanisms import PerturbedMode, Plan
from onedraw.models.fit_classes import ClassLoss
from onedraw.models.fit_losses import FitLoss
from onedraw.models.noise_law import deviation

from .expectation import Expectation

DESIGNS = tuple((filled, correlation) for filled in (1.0, 1.0 / 3.0) for correlation in (0.0, 0.5, 0.9))
"""(share of their declared range that columns fill, correlation of any two of them)."""

KEPT = 0.9
"""The average Mallows weight of rows in a usual design."""


@dataclass(frozen=True)
class DesignError:
    """The expected error per coefficient in one design."""

    filled: float
    correlation: float
    expected: Expectation

    @property
    def words(self) -> str:
        share = "all" if self.filled == 1.0 else "a third"
        return f"columns that fill {share} of their range, correlation {self.correlation:g}"


def expected_fit_errors(plan: Plan, *, effect: float, noise: float) -> tuple[DesignError, ...]:
    """For every design; sizes in units of the response for numbers, of log-odds for classes."""
    return tuple(DesignError(*design, _expected(plan, *design, effect, noise)) for design in DESIGNS)


def expected_fit_error(plan: Plan, *, effect: float, noise: float) -> Expectation:
    """In the reference design: columns that fill their ranges and do not go together."""
    return _expected(plan, *DESIGNS[0], effect, noise)


def _expected(plan: Plan, filled: float, correlation: float, effect: float, noise: float) -> Expectation:
    assert isinstance(plan.mechanism, PerturbedMode)
    problem = plan.mechanism.problem(plan)
    columns, numbers = problem.layout.columns, problem.numbers
    unit = noise if problem.loss.unit == "measured" else 1.0
    information, variability, best = per_record(problem.loss, effect / unit)
    spread = filled**2 / 3.0
    inverse = _inverse_diagonal(columns, spread, correlation)
    scale = (
        1.0 if numbers["moments_noise"] else spread * (1.0 - correlation)
    )  # unmeasured: the weakest direction's variance
    curved = KEPT * plan.n * information * scale
    spread_of_mode = deviation(numbers["mode_noise"], problem.size, pure=problem.pure)
    noisy = spread_of_mode**2 + numbers["closing_noise"] ** 2 * (curved + numbers["ridge"]) ** 2
    pull = 0.0 if numbers["information_noise"] else numbers["ridge"]
    variance = (KEPT * plan.n * variability * scale + noisy) / (curved + pull) ** 2
    bias = pull / (curved + pull) * effect / unit / math.sqrt(columns)
    per_coefficient = inverse if numbers["moments_noise"] else 1.0
    private = math.sqrt((columns * (variance + bias**2) * per_coefficient + variance) / (columns + 1.0))
    sampling = math.sqrt((columns * inverse + 1.0) / (columns + 1.0) / (plan.n * best))
    return Expectation(unit * private, unit * sampling, unit * bias * math.sqrt(per_coefficient))


def _inverse_diagonal(columns: int, spread: float, correlation: float) -> float:
    """(C⁻¹)_jj of equally correlated columns of variance ``spread``."""
    if columns == 1:
        return 1.0 / spread
    return (1.0 + (columns - 2) * correlation) / ((1.0 - correlation) * (1.0 + (columns - 1) * correlation)) / spread


def per_record(loss: FitLoss | ClassLoss, effect: float) -> tuple[float, float, float]:
    """(H, K, likelihood's information) of a record whose predictor has standard deviation ``effect``, residuals 1."""
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
    zero = np.zeros_like(nodes)
    return float(weights @ loss.curvature(zero, nodes)), float(weights @ loss.slope(zero, nodes) ** 2), 1.0


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
