"""Regressions for the β-divergence: two classes, real responses, counts and durations from a linear predictor.

Defaults are the priors of Jewson et al. (arXiv:2307.05194): N(0, 9I) for coefficients; with an unknown variance
N(0, 9σ²I) and σ² ~ InvGamma(1, 1) above the floor. Features may be unbounded; see `likelihood_model` for how odd
records are read and `likelihoods` for the sensitivities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onedraw.models.features import Features
from onedraw.models.model import ODDS, RATES, register_model
from onedraw.models.priors import Gaussian
from onedraw.models.responses import Label, Signs, log_odds, two_classes

from .densities import Bernoulli, Gamma, GaussianNoise, NegativeBinomial, Poisson, StudentT
from .densities import floor_and_variance as checked_floor
from .likelihood_model import LinearPredictorModel, Prior, free_features, set_likelihood_model
from .normal_inverse_gamma import NormalInverseGamma


@register_model
@dataclass(frozen=True, init=False, repr=False)
class BinaryRegression(LinearPredictorModel):
    """Logistic regression without a bound on the features: P(positive) = 1/(1 + e^{−θᵀx}). Δ = 1/(β−1).

    ``classes`` are (negative, positive). Without them the label 1 is positive and every other negative.
    """

    kind, title, predicts = "logistic", "Logistic regression", "probabilities"
    factor = ODDS

    features: Features
    classes: tuple[Label, Label] | None
    prior: Prior

    def __init__(
        self, features: int, *, data_norm: float | None = None, bounds: Any = None, scaled: bool = False,
        intercept: bool = True, classes: Any = None, feature_names: Any = None, prior: Any = None,
    ) -> None:  # fmt: skip
        declared = free_features("BinaryRegression", features, data_norm=data_norm, bounds=bounds, scaled=scaled, intercept=intercept, feature_names=feature_names)  # fmt: skip
        set_likelihood_model(self, features=declared, classes=two_classes(classes), prior=_coefficients(prior))

    @property
    def changes(self) -> str:
        return log_odds(self.classes)

    @property
    def likelihood(self) -> Bernoulli:
        return Bernoulli()

    @property
    def response(self) -> Signs:
        return Signs(self.classes)


@register_model
@dataclass(frozen=True, init=False, repr=False)
class GaussianRegression(LinearPredictorModel):
    """y ~ N(θᵀx, σ²), σ² ≥ ``variance_floor`` a parameter, or known as ``variance``. Δ = (2π·floor)^{−(β−1)/2}/(β−1)."""

    kind, title, predicts = "linear", "Linear regression", "number"
    changes = "the expected response"

    features: Features
    variance_floor: float | None
    variance: float | None
    prior: Prior

    def __init__(
        self, features: int, *, variance_floor: float | None = None, variance: float | None = None,
        data_norm: float | None = None, bounds: Any = None, scaled: bool = False, intercept: bool = True,
        feature_names: Any = None, prior: Any = None,
    ) -> None:  # fmt: skip
        floor, known = checked_floor("GaussianRegression", variance_floor, variance)
        declared = free_features("GaussianRegression", features, data_norm=data_norm, bounds=bounds, scaled=scaled, intercept=intercept, feature_names=feature_names)  # fmt: skip
        chosen = _with_variance(prior) if known is None else _coefficients(prior)
        set_likelihood_model(self, features=declared, variance_floor=floor, variance=known, prior=chosen)

    @property
    def likelihood(self) -> GaussianNoise:
        return GaussianNoise(self.variance_floor, self.variance)


@register_model
@dataclass(frozen=True, init=False, repr=False)
class StudentTRegression(LinearPredictorModel):
    """(y − θᵀx)/σ ~ t with ``df`` degrees of freedom; ``variance`` and its floor are those of σ², the squared scale."""

    kind, title, predicts = "linear", "Linear regression (Student t)", "number"

    features: Features
    df: float
    variance_floor: float | None
    variance: float | None
    prior: Prior

    def __init__(
        self, features: int, *, df: float = 4.0, variance_floor: float | None = None, variance: float | None = None,
        data_norm: float | None = None, bounds: Any = None, scaled: bool = False, intercept: bool = True,
        feature_names: Any = None, prior: Any = None,
    ) -> None:  # fmt: skip
        floor, known = checked_floor("StudentTRegression", variance_floor, variance)
        declared = free_features("StudentTRegression", features, data_norm=data_norm, bounds=bounds, scaled=scaled, intercept=intercept, feature_names=feature_names)  # fmt: skip
        chosen = _with_variance(prior) if known is None else _coefficients(prior)
        degrees = StudentT(df, floor, known).df
        set_likelihood_model(self, features=declared, df=degrees, variance_floor=floor, variance=known, prior=chosen)

    @property
    def likelihood(self) -> StudentT:
        return StudentT(self.df, self.variance_floor, self.variance)


@register_model
@dataclass(frozen=True, init=False, repr=False)
class PoissonRegression(LinearPredictorModel):
    """Counts with mean e^{θᵀx}. Δ = 1/(β−1), without a cap on the counts."""

    kind, title, predicts = "poisson", "Poisson regression", "count"
    factor = RATES
    changes = "the logarithm of the expected count"

    features: Features
    prior: Prior

    def __init__(
        self, features: int, *, data_norm: float | None = None, bounds: Any = None, scaled: bool = False,
        intercept: bool = True, feature_names: Any = None, prior: Any = None,
    ) -> None:  # fmt: skip
        declared = free_features("PoissonRegression", features, data_norm=data_norm, bounds=bounds, scaled=scaled, intercept=intercept, feature_names=feature_names)  # fmt: skip
        set_likelihood_model(self, features=declared, prior=_coefficients(prior))

    @property
    def likelihood(self) -> Poisson:
        return Poisson()


@register_model
@dataclass(frozen=True, init=False, repr=False)
class NegativeBinomialRegression(LinearPredictorModel):
    """Counts with mean m = e^{θᵀx} and variance m + m²/``dispersion``, which is known. Δ = 1/(β−1)."""

    kind, title, predicts = "negative-binomial", "Negative binomial regression", "count"
    factor = RATES
    changes = "the logarithm of the expected count"

    features: Features
    dispersion: float
    prior: Prior

    def __init__(
        self, features: int, *, dispersion: float, data_norm: float | None = None, bounds: Any = None,
        scaled: bool = False, intercept: bool = True, feature_names: Any = None, prior: Any = None,
    ) -> None:  # fmt: skip
        declared = free_features("NegativeBinomialRegression", features, data_norm=data_norm, bounds=bounds, scaled=scaled, intercept=intercept, feature_names=feature_names)  # fmt: skip
        known = NegativeBinomial(dispersion).dispersion
        set_likelihood_model(self, features=declared, dispersion=known, prior=_coefficients(prior))

    @property
    def likelihood(self) -> NegativeBinomial:
        return NegativeBinomial(self.dispersion)


@register_model
@dataclass(frozen=True, init=False, repr=False)
class GammaRegression(LinearPredictorModel):
    """Durations of known ``shape`` k ≥ 1 (1: exponential) with mean k/``rate_cap`` + e^{θᵀx}: the rate never exceeds
    the cap, which bounds the density. Δ = (rate_cap·(k−1)^{k−1}e^{1−k}/Γ(k))^{β−1}/(β−1)."""

    title = "Gamma regression"

    features: Features
    rate_cap: float
    shape: float
    prior: Prior

    def __init__(
        self, features: int, *, rate_cap: float, shape: float = 1.0, data_norm: float | None = None, bounds: Any = None,
        scaled: bool = False, intercept: bool = True, feature_names: Any = None, prior: Any = None,
    ) -> None:  # fmt: skip
        declared = free_features("GammaRegression", features, data_norm=data_norm, bounds=bounds, scaled=scaled, intercept=intercept, feature_names=feature_names)  # fmt: skip
        law = Gamma(rate_cap, shape)
        set_likelihood_model(
            self, features=declared, rate_cap=law.rate_cap, shape=law.shape, prior=_coefficients(prior)
        )

    @property
    def likelihood(self) -> Gamma:
        return Gamma(self.rate_cap, self.shape)


def _coefficients(prior: Any) -> Any:
    return Gaussian(scale=3.0) if prior is None else prior


def _with_variance(prior: Any) -> Any:
    return NormalInverseGamma() if prior is None else prior
