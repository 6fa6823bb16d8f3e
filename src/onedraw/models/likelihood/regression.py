"""Regressions for the β-divergence: two classes, real responses, counts and durations from a linear predictor.

Defaults are the priors of Jewson et al. (arXiv:2307.05194): N(0, 9I) for coefficients; with an unknown variance
N(0, 9σ²I) and σ² ~ InvGamma(1, 1) above the floor. Features may be unbounded; see `likelihood_model` for how odd
records are read and `density` for the sensitivities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onedraw.models.model import ODDS, RATES
from onedraw.models.responses import Signs, log_odds, two_classes

from .continuous import Gamma, GaussianNoise, StudentT
from .discrete import Bernoulli, NegativeBinomial, Poisson
from .likelihood_model import LinearPredictorModel


@dataclass(frozen=True, repr=False, kw_only=True)
class BinaryRegression(LinearPredictorModel):
    """Logistic regression without a bound on the features: P(positive) = 1/(1 + e^{−θᵀx}). Δ = 1/(β−1).

    ``classes`` are (negative, positive). Without them the label 1 is positive and every other negative.
    """

    kind, title, predicts = "logistic", "Logistic regression", "probabilities"
    factor = ODDS
    likelihood = Bernoulli()

    classes: Any = None

    def _check(self) -> None:
        self._set(classes=two_classes(self.classes))
        super()._check()

    @property
    def changes(self) -> str:  # type: ignore[override]  # an attribute of all others
        return log_odds(self.classes)

    @property
    def response(self) -> Signs:
        return Signs(self.classes)


@dataclass(frozen=True, repr=False, kw_only=True)
class _WithNoise(LinearPredictorModel):
    """A squared scale above ``variance_floor`` that is a parameter, or a known ``variance``."""

    predicts = "number"

    variance_floor: float | None = None
    variance: float | None = None


@dataclass(frozen=True, repr=False, kw_only=True)
class GaussianRegression(_WithNoise):
    """y ~ N(θᵀx, σ²), σ² ≥ ``variance_floor`` a parameter, or known as ``variance``. Δ = (2π·floor)^{−(β−1)/2}/(β−1)."""

    kind, title = "linear", "Linear regression"
    changes = "the expected response"

    @property
    def likelihood(self) -> GaussianNoise:
        return GaussianNoise(self.variance_floor, self.variance)


@dataclass(frozen=True, repr=False, kw_only=True)
class StudentTRegression(_WithNoise):
    """(y − θᵀx)/σ ~ t with ``df`` degrees of freedom; ``variance`` and its floor are those of σ², the squared scale."""

    kind, title = "linear", "Linear regression (Student t)"

    df: float = 4.0

    @property
    def likelihood(self) -> StudentT:
        return StudentT(self.df, self.variance_floor, self.variance)


@dataclass(frozen=True, repr=False, kw_only=True)
class PoissonRegression(LinearPredictorModel):
    """Counts with mean e^{θᵀx}. Δ = 1/(β−1), without a cap on the counts."""

    kind, title, predicts = "poisson", "Poisson regression", "count"
    factor = RATES
    likelihood = Poisson()
    changes = "the logarithm of the expected count"


@dataclass(frozen=True, repr=False, kw_only=True)
class NegativeBinomialRegression(LinearPredictorModel):
    """Counts with mean m = e^{θᵀx} and variance m + m²/``dispersion``, which is known. Δ = 1/(β−1)."""

    kind, title, predicts = "negative-binomial", "Negative binomial regression", "count"
    factor, changes = RATES, PoissonRegression.changes

    dispersion: float

    @property
    def likelihood(self) -> NegativeBinomial:
        return NegativeBinomial(self.dispersion)


@dataclass(frozen=True, repr=False, kw_only=True)
class GammaRegression(LinearPredictorModel):
    """Durations of known ``shape`` k ≥ 1 (1: exponential) with mean k/``rate_cap`` + e^{θᵀx}: the rate never exceeds
    the cap, which bounds the density. Δ = (rate_cap·(k−1)^{k−1}e^{1−k}/Γ(k))^{β−1}/(β−1)."""

    title = "Gamma regression"

    rate_cap: float
    shape: float = 1.0

    @property
    def likelihood(self) -> Gamma:
        return Gamma(self.rate_cap, self.shape)
