"""Regressions for the β-divergence: classes, real responses, counts and durations from a linear predictor, a network with
one hidden layer, or any pure JAX function of the user's.

Priors are those of Jewson et al. (arXiv:2307.05194): N(0, 9I) for coefficients, with an unknown variance N(0, 9σ²I) and
σ² ~ InvGamma(1, 1) above the floor; for a network of ten hidden units N(0, 1) weights and biases and the same σ². The
sensitivity does not depend on the predictor (`density`), so no weights, gradients or features need bounds; see
`likelihood_model` for how odd records are read.

A certificate stores the name of a user's function, and a digest of its source. To derive a plan again elsewhere the same
function has to be registered there under that name, with `register_predictor`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from onedraw.errors import InvalidModel
from onedraw.models.compute import jnp
from onedraw.models.model import MOST_PARTS, ODDS, RATES, OwnFunctions, count, described
from onedraw.models.priors import Prior
from onedraw.models.responses import TWO_CLASSES, Codes, Signs, class_labels
from onedraw.models.row_model import DeclaredModel, TwoClasses
from onedraw.privacy.stored import frozen_value

from .continuous import Gamma, GaussianNoise, StudentT
from .density import DENSITIES, Likelihood, OwnDensity, register_density
from .discrete import Bernoulli, Categorical, NegativeBinomial, Poisson
from .likelihood_model import LikelihoodModel, LinearPredictorModel, OneLayer, OwnFunction


@dataclass(frozen=True, repr=False, kw_only=True)
class BinaryRegression(TwoClasses, LinearPredictorModel):
    """Logistic regression without a bound on the features: P(positive) = 1/(1 + e^{−θᵀx}). Δ = 1/(β−1).

    ``classes`` are (negative, positive). Without them the label 1 is positive and every other negative.
    """

    kind, title, predicts = "logistic", "Logistic regression", "probabilities"
    factor = ODDS
    likelihood = Bernoulli()

    classes: Any = field(default=None, metadata=TWO_CLASSES)


@dataclass(frozen=True, repr=False, kw_only=True)
class _WithNoise(LinearPredictorModel):
    """A squared scale above ``variance_floor`` that is a parameter, or a known ``variance``."""

    predicts = "number"

    variance_floor: float | None = None
    variance: float | None = None

    @classmethod
    def example(cls, **options: Any) -> Self:
        return super().example(**{"variance_floor": 0.04} | options)


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

    @classmethod
    def example(cls, **options: Any) -> Self:
        return super().example(**{"dispersion": 1.5} | options)

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

    @classmethod
    def example(cls, **options: Any) -> Self:
        return super().example(**{"rate_cap": 4.0, "shape": 2.5} | options)

    @property
    def likelihood(self) -> Gamma:
        return Gamma(self.rate_cap, self.shape)


def _wave(theta: Any, x: Any) -> Any:
    """Compute the predictor of `Predictor.example`."""
    return theta[0] * jnp.sin(theta[1] * x[0]) + x[1]


def _log_laplace(predictor: Any, response: Any) -> Any:
    return -abs(response - predictor) - math.log(2.0)


def _log_laplace_power(beta: Any, predictor: Any) -> Any:
    """Compute log ∫ f^β = log(2^{1−β}/β)."""
    return (1.0 - beta) * math.log(2.0) - jnp.log(beta) + 0.0 * predictor


Function = Callable[[Any, Any], Any]

PREDICTORS = OwnFunctions("predictor", "fn(theta, x)")
register_predictor = PREDICTORS.register


@dataclass(frozen=True, repr=False, kw_only=True)
class Network(LikelihoodModel, DeclaredModel):
    """One hidden layer: u = W₂ a(W₁x + b₁) + b₂, a = tanh or relu.

    ``task="classification"``: two classes (``classes`` as in `Logistic`, or None), or more with ``classes=[…]``.
    ``task="regression"``: N(u, σ²) with ``variance_floor``, or a known ``variance``.

    Units can be exchanged and their signs flipped without changing u, so single weights mean nothing: use the draw to
    predict.
    """

    quantity: ClassVar[str] = "network weights"
    title, form = "Neural network", "folded"
    meaning = "Single weights of a network mean nothing by themselves: use the release to predict (onedraw predict)."
    TASKS: ClassVar[tuple[str, ...]] = ("classification", "regression")

    usual_prior: ClassVar[tuple[float, bool]] = (1.0, False)
    later = LikelihoodModel.later | {"intercept"}  # it always has one

    hidden: int = 10
    task: str = "classification"
    activation: str = "tanh"
    classes: Any = None
    variance_floor: float | None = None
    variance: float | None = None

    @classmethod
    def example(cls) -> Self:
        return cls(2, hidden=3)

    def _check(self) -> None:
        if self.task not in self.TASKS:
            raise InvalidModel(f"task must be 'classification' or 'regression', got {self.task!r}.")
        if self.activation not in ("tanh", "relu"):
            raise InvalidModel(f"activation must be 'tanh' or 'relu', got {self.activation!r}.")
        if not self.features.intercept:
            raise InvalidModel("The hidden units of a Network have biases: leave intercept out.")
        self._set(hidden=count("hidden", self.hidden, least=1, most=MOST_PARTS // self.features.width))
        if self.task == "regression":
            if self.classes is not None:
                raise InvalidModel("classes belong to task='classification'; leave them out for regression.")
            self._set(**vars(self.likelihood))
        elif self.variance_floor is not None or self.variance is not None:
            raise InvalidModel("variance and variance_floor belong to task='regression'; leave them out.")
        elif self.classes is not None:
            self._set(classes=class_labels("classes", self.classes))
        super()._check()

    @property
    def kind(self) -> str:  # type: ignore[override]  # an attribute of all others
        return "network-classifier" if self.task == "classification" else "network-regressor"

    @property
    def predicts(self) -> str:  # type: ignore[override]  # an attribute of all others
        return "probabilities" if self.task == "classification" else "number"

    @property
    def likelihood(self) -> Likelihood:
        if self.task == "regression":
            return GaussianNoise(self.variance_floor, self.variance)
        return Bernoulli() if self.classes is None or len(self.classes) == 2 else Categorical(len(self.classes))

    @property
    def response(self) -> Any:
        if self.task == "regression":
            return self.likelihood.response
        if self.classes is None or len(self.classes) == 2:
            return Signs(self.classes)
        return Codes(self.classes)

    @property
    def row_blocks(self) -> int:  # type: ignore[override]  # an attribute of all others
        return self.hidden

    @property
    def predictor_function(self) -> OneLayer:
        return OneLayer(self.features.width, self.hidden, self.likelihood.outputs, self.activation)

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        first = [f"unit {unit}: {name}" for unit in range(self.hidden) for name in self.features.column_names]
        ends = [*(f"unit {unit}" for unit in range(self.hidden)), "intercept"]
        outputs = ["output"] if self.likelihood.outputs == 1 else [str(label) for label in self.classes or ()]
        return (*first, *(f"{output}: {end}" for output in outputs for end in ends))


@frozen_value
class Predictor(LikelihoodModel, DeclaredModel):
    """``fn(theta, x)``: a pure JAX function of the coefficients (``dimension`` of them) and one row, that returns the
    likelihood's predictor: log-odds, K scores, a mean, the logarithm of a mean.

    The likelihood is one of `likelihoods` (or an `OwnDensity`) and brings the sensitivity; fn bears on usefulness
    only, since it is shown to see one row at a time (`one_row`). Where it returns NaN for a record, u = 0 is used; gradient samplers also need its derivatives to be finite for
    every row there can be. ``intercept=True`` appends a 1 to the rows it is given.
    """

    row_blocks = 0  # what the user's function makes of a scaled row is not known

    quantity: ClassVar[str] = "parameters"
    title = "Regression with a predictor of one's own"

    usual_prior: ClassVar[tuple[float, bool]] = (1.0, False)

    fn: Function
    parameters: int
    law: Likelihood
    name: str

    def __init__(
        self, fn: Any, dimension: int, *, likelihood: Likelihood, features: int, data_norm: float | None = None,
        bounds: Any = None, scaled: bool = False, missing: Any = None, intercept: bool = False, feature_names: Any = None,
        name: str | None = None, prior: Prior | None = None,
    ) -> None:  # fmt: skip
        function, called = PREDICTORS.find(fn, name)
        if not isinstance(likelihood, Likelihood):
            raise InvalidModel(
                f"likelihood must be one of onedraw.models.likelihoods, got a {type(likelihood).__name__}. Without a known bound on the "
                "density no sensitivity exists: use OwnDensity to declare one."
            )
        how_many = count("dimension", dimension, least=1, most=MOST_PARTS)
        self._set(fn=function, parameters=how_many, law=likelihood, features=features, name=called, prior=prior)
        self.__post_init__(data_norm, bounds, scaled, missing, intercept, feature_names)

    @classmethod
    def example(cls) -> Self:
        name = "Laplace density of an example"
        if name not in DENSITIES.known:
            register_density(name, _log_laplace, _log_laplace_power)
        register_predictor("wave of an example", _wave)
        return cls("wave of an example", 2, likelihood=OwnDensity(name, bound=0.5), features=2)

    def _check(self) -> None:
        from onedraw.models.one_row import checked_row  # it loads JAX

        outputs = () if self.law.outputs == 1 else (self.law.outputs,)
        shapes = (self.parameters,), (self.features.width,)
        checked_row(self.fn, self.name, "fn(theta, x)", *shapes, returns=outputs)
        super()._check()

    @property
    def likelihood(self) -> Likelihood:
        return self.law

    @property
    def predictor_function(self) -> OwnFunction:
        from onedraw.models.one_row import one_row

        return OwnFunction(one_row(self.fn, self.name, (self.parameters,), (self.features.width,)))

    @property
    def own_functions(self) -> tuple[str, ...]:
        return (described(self.fn, self.name), *super().own_functions)

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        return tuple(f"parameter {index}" for index in range(self.parameters))

    def _values(self) -> dict[str, Any]:
        """The function itself is not stored: it is the user's own, known by name."""
        return {
            "fn": {"own function": self.name}, "dimension": self.parameters, "likelihood": self.likelihood,
            **self.features.to_dict(), "name": self.name, "prior": self.prior,
        }  # fmt: skip
