"""Predictors that are not linear: a network with one hidden layer, and any pure JAX function of the user's.

The β-divergence's sensitivity does not depend on the predictor, so neither needs bounded weights, clipped gradients or
bounded features. Priors of Jewson et al. (arXiv:2307.05194): N(0, 1) weights and biases, ten hidden units, and for
regression σ² ~ InvGamma(1, 1) above the floor.

A certificate stores the name of a user's function, and a digest of its source. To derive a plan again elsewhere the same function has to be
registered there under that name, with `register_predictor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from onedraw.errors import InvalidModel
from onedraw.models.features import Features
from onedraw.models.model import MOST_PARTS, OwnFunctions, count, described, register_model
from onedraw.models.priors import Gaussian
from onedraw.models.responses import Codes, Label, Signs, class_labels

from .densities import Bernoulli, Categorical, GaussianNoise, Likelihood, floor_and_variance, likelihood_from_dict
from .likelihood_model import LikelihoodModel, Prior, free_features, set_likelihood_model
from .normal_inverse_gamma import NormalInverseGamma
from .predictors import OneLayer, OwnFunction

Function = Callable[[Any, Any], Any]

PREDICTORS = OwnFunctions("predictor", "fn(theta, x)")
register_predictor = PREDICTORS.register


@register_model
@dataclass(frozen=True, init=False, repr=False)
class Network(LikelihoodModel):
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

    features: Features
    hidden: int
    task: str
    activation: str
    classes: tuple[Label, ...] | None
    variance_floor: float | None
    variance: float | None
    prior: Prior

    def __init__(
        self, features: int, *, hidden: int = 10, task: str = "classification", activation: str = "tanh",
        classes: Any = None, variance_floor: float | None = None, variance: float | None = None,
        data_norm: float | None = None, bounds: Any = None, scaled: bool = False, feature_names: Any = None,
        prior: Any = None,
    ) -> None:  # fmt: skip
        if task not in self.TASKS:
            raise InvalidModel(f"task must be 'classification' or 'regression', but {task!r} came.")
        if activation not in ("tanh", "relu"):
            raise InvalidModel(f"activation must be 'tanh' or 'relu', but {activation!r} came.")
        floor, known, labels = self._task_options(task, classes, variance_floor, variance)
        declared = free_features("Network", features, data_norm=data_norm, bounds=bounds, scaled=scaled, intercept=True, feature_names=feature_names)  # fmt: skip
        if prior is None:
            sampled = task == "regression" and known is None
            prior = NormalInverseGamma(scale=1.0, conjugate=False) if sampled else Gaussian(scale=1.0)
        units = count("hidden", hidden, least=1, most=MOST_PARTS // declared.width)
        set_likelihood_model(
            self, features=declared, hidden=units, task=task, activation=activation,
            classes=labels, variance_floor=floor, variance=known, prior=prior,
        )  # fmt: skip

    @staticmethod
    def _task_options(task: str, classes: Any, floor: Any, variance: Any) -> tuple[Any, Any, Any]:
        if task == "regression":
            if classes is not None:
                raise InvalidModel("classes belong to task='classification'; leave them out for regression.")
            return (*floor_and_variance("Network", floor, variance), None)
        if floor is not None or variance is not None:
            raise InvalidModel("variance and variance_floor belong to task='regression'; leave them out.")
        return None, None, None if classes is None else class_labels("classes", classes)

    @property
    def kind(self) -> str:
        return "network-classifier" if self.task == "classification" else "network-regressor"

    @property
    def predicts(self) -> str:
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
    def row_blocks(self) -> int:
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

    def _values(self) -> dict[str, Any]:
        return {name: value for name, value in super()._values().items() if name != "intercept"}  # it always has one


@register_model
@dataclass(frozen=True, init=False, repr=False)
class Predictor(LikelihoodModel):
    """``fn(theta, x)``: a pure JAX function of the coefficients (``dimension`` of them) and one row, that returns the
    likelihood's predictor: log-odds, K scores, a mean, the logarithm of a mean.

    The likelihood is one of `likelihoods` (or an `OwnDensity`) and brings the sensitivity; fn bears on usefulness
    only, since it is shown to see one row at a time (`one_row`). Where it returns NaN for a record, u = 0 is used; gradient samplers also need its derivatives to be finite for
    every row there can be. ``intercept=True`` appends a 1 to the rows it is given.
    """

    quantity: ClassVar[str] = "parameters"
    title = "Regression with a predictor of one's own"

    fn: Function
    parameters: int
    law: Likelihood
    features: Features
    name: str
    prior: Prior

    def __init__(
        self, fn: Any, dimension: int, *, likelihood: Any, features: int, data_norm: float | None = None,
        bounds: Any = None, scaled: bool = False, intercept: bool = False, feature_names: Any = None,
        name: str | None = None, prior: Any = None,
    ) -> None:  # fmt: skip
        from onedraw.models.one_row import checked_row  # it loads JAX

        function, called = PREDICTORS.find(fn, name)
        law = likelihood_from_dict(likelihood) if isinstance(likelihood, Mapping) else likelihood
        if not isinstance(law, Likelihood):
            raise InvalidModel(
                f"likelihood must be a value of onedraw.models.likelihood.densities, but a {type(law).__name__} came. Without a "
                "known bound on the density no sensitivity exists: use OwnDensity to declare one."
            )
        declared = free_features("Predictor", features, data_norm=data_norm, bounds=bounds, scaled=scaled, intercept=intercept, feature_names=feature_names)  # fmt: skip
        if prior is None:
            prior = NormalInverseGamma(scale=1.0, conjugate=False) if law.samples_variance else Gaussian(scale=1.0)
        how_many = count("dimension", dimension, least=1, most=MOST_PARTS)
        outputs = () if law.outputs == 1 else (law.outputs,)
        checked_row(function, called, "fn(theta, x)", (how_many,), (declared.width,), returns=outputs)
        set_likelihood_model(self, features=declared, prior=prior, fn=function, parameters=how_many, law=law, name=called)  # fmt: skip

    @property
    def likelihood(self) -> Likelihood:
        return self.law

    @property
    def row_blocks(self) -> int:
        """None: what the user's function makes of a scaled row is not known."""
        return 0

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
            "fn": {"own function": self.name}, "dimension": self.parameters, "likelihood": self.likelihood.to_dict(),
            **self.features.to_dict(), "name": self.name, "prior": self.prior,
        }  # fmt: skip
