"""β-divergence posteriors, written down again: π(θ)·exp(−w Σ ℓ_β(x_i, θ)) (Jewson et al., NeurIPS 2023).

    ℓ_β = −f(y)^{β−1}/(β−1) + (1/β) ∫ f^β

The features have no bound, so a row may be so long that nearly every θ is sure of the label: the log-ratio then runs
through its whole range. The promise is a bounded range, which a symmetric pair attains; the pure ε that follows from it
is approached where the other records agree with one side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, DensityCase, LogDensity, Pair, no_formula, pure
from onedraw.audit.cases.conjugate import in_far_coordinate
from onedraw.audit.cases.losses import Loss, bernoulli_loss, flips, gaussian_loss, longest_row
from onedraw.audit.cases.predictor import PredictorCase
from onedraw.methods.beta_divergence import BetaDivergence
from onedraw.methods.catalog import cases_of
from onedraw.models import BinaryRegression, Gaussian, GaussianRegression, Logistic, NormalInverseGamma
from onedraw.plans import Plan
from onedraw.privacy import Promise


class BinaryDivergenceCase(PredictorCase):
    """Labels from a linear predictor: a law of u = θᵀx, in v with u = sinh(v), for rows may be very long."""

    @property
    def loss(self) -> Loss:
        beta = self.plan.parameters["beta"]
        return lambda u, y: bernoulli_loss(y * u, beta)

    def integrand(self, records: Any, factor: float) -> LogDensity:
        return in_far_coordinate(super().integrand(records, factor), 0.0, 1.0)

    def domain(self, pair: Pair, factor: float) -> Any:
        ((low, high),) = super().domain(pair, factor)
        return ((math.asinh(low), math.asinh(high)),)


class KnownVarianceCase(PredictorCase):
    """Real responses of known variance: a law of u = θᵀx."""

    @property
    def loss(self) -> Loss:
        beta, variance = self.plan.parameters["beta"], self.plan.model.variance
        return lambda u, y: gaussian_loss(y - u, np.full_like(u, variance), beta)


class FlooredVarianceCase(DensityCase):
    """y ~ N(θ, σ²), σ² ≥ floor a parameter too, as log(σ²/floor) ≥ 0. One coefficient, rows of 1."""

    def integrand(self, records: Any, factor: float) -> LogDensity:
        numbers, model = self.numbers(factor), self.plan.model
        beta, weight, prior = numbers["beta"], numbers["weight"], model.prior
        values, counts = np.unique(np.asarray(records[1], dtype=np.float64), return_counts=True)

        def density(points: Array) -> Array:
            theta, variance = points[:, 0], model.variance_floor * np.exp(points[:, 1])
            # θ | σ² ~ N(0, s²σ²), σ² ~ InvGamma(a, b); the last term is the Jacobian of σ² = floor·e^t
            total = -0.5 * theta**2 / (prior.scale**2 * variance) - 0.5 * np.log(variance)
            total = total - (prior.shape + 1.0) * np.log(variance) - prior.rate / variance + points[:, 1]
            for value, count in zip(values, counts, strict=True):
                total = total - weight * count * gaussian_loss(value - theta, variance, beta)
            return np.asarray(total)

        return density

    def domain(self, pair: Pair, factor: float) -> Any:
        return ((-math.inf, math.inf), (0.0, math.inf))


LONG = "a row so long that the two losses run through their whole range"
SHORT = "the declared bounds keep the predictor from where the losses differ most; the promise does not need them"
ACROSS = "at its own response a record's density is at its bound, and far from it at 0"


def divergence_case(plan: Plan, *, label: str = "") -> Case:
    """The case of any plan for a model of two classes, or of real responses along one row."""
    model, n = plan.model, plan.n
    if isinstance(model, BinaryRegression | Logistic):
        bounded = model.features.bounded
        return BinaryDivergenceCase(plan, flips(model, n), SHORT if bounded else LONG, not bounded, label)
    if isinstance(model, GaussianRegression):
        X = np.tile(longest_row(model, unbounded=1.0), (n, 1))
        pair = Pair("one response moved across, others agreeing", (X, [3.0] * n), (X, [3.0] * (n - 1) + [-3.0]))
        if model.variance is not None:
            return KnownVarianceCase(plan, (pair,), ACROSS, True, label)
        one_coefficient = model.features.width == 1 and not model.features.bounded
        if one_coefficient and isinstance(model.prior, NormalInverseGamma) and model.prior.conjugate:
            return FlooredVarianceCase(plan, (pair,), ACROSS, True, label)
    known = "two classes, and real responses of known variance or of one unbounded coefficient"
    raise no_formula(f"β-divergence posteriors of {known}, not for this", model)


def binary_cases(budget: Promise) -> list[Case]:
    """The best β, and the paper's own rule, w = 1 and β = 1 + 2/ε."""
    model = BinaryRegression(1, intercept=False, prior=Gaussian(scale=3.0))
    asked = [("", BetaDivergence(rule=rule), model) for rule in ("optimal", "jewson")]
    return cases_of(divergence_case, asked, pure(budget), n=10)


def gaussian_cases(budget: Promise) -> list[Case]:
    known = GaussianRegression(1, intercept=False, prior=Gaussian(scale=3.0), variance=0.25)
    floored = GaussianRegression(1, intercept=False, variance_floor=0.25)
    models = ("known variance", known), ("floor of the variance", floored)
    return cases_of(divergence_case, [(label, BetaDivergence(), one) for label, one in models], pure(budget), n=10)


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {"gaussian": gaussian_cases, "logistic": binary_cases}
