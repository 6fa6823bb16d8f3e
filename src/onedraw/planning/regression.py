"""From a person's question about a regression to models and mechanisms, with everything in it public.

An analyst says what kind of regression, how many columns, and what is known of their ranges. That fixes the prior and
the ball, and with them every model and mechanism that could answer: the `variants`. Which one is best is the business
of `choose`; here nothing is ranked and no record is read.

Features with bounds are scaled to [−1, 1]. Sizes are in units of the response: 1 for log-odds; for numbers the declared
``noise``, or a quarter of ``response_bound``, or 1. With r̃ the largest norm of a row (its 1 for the intercept included):

| left out | public default |
| --- | --- |
| prior_scale | 2/r̃ units: under the prior a linear predictor at the farthest row has standard deviation 2 |
| radius | prior_scale·(√d + 2), d the number of parameters: nearly all of the prior's mass |
| effect, noise | 1 unit each: the standard deviations of the linear predictor, and of a response about it |
| threshold | 1.345 units: 95 % efficiency for normal residuals |
| variance_floor | none: the mechanisms that need one are not offered |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
from scipy import optimize

from onedraw.errors import InvalidModel
from onedraw.mechanisms import BetaDivergence, Candidates, Gibbs, Measured, NoisyGradient, PerturbedMode
from onedraw.mechanisms.beta_design import mean_information
from onedraw.models import (
    CountRegression,
    Gaussian,
    GaussianRegression,
    HuberisedHinge,
    HuberRegression,
    LeastSquares,
    LogCoshRegression,
    Logistic,
    NegativeBinomialRegression,
    Network,
    NormalInverseGamma,
    PoissonRegression,
    Quantile,
    Softmax,
)
from onedraw.models.features import LARGEST, Features, declared_features
from onedraw.models.likelihood.densities import Categorical
from onedraw.release.intervals.design import PREDICTOR_DEVIATION, UNITS_IN_BOUND

KINDS = (
    "logistic", "softmax", "svc", "linear", "huber", "quantile", "poisson", "negative-binomial", "network-classifier",
    "network-regressor",
)  # fmt: skip
RESIDUALS = ("linear", "huber", "quantile", "network-regressor")

BEYOND = 2.0
"""The ball reaches this many prior deviations beyond the typical norm √d."""

HUBER = 1.345
HINGE_WIDTH, QUANTILE_WIDTH = 0.5, 0.25
"""How much of a kink is rounded off, in units: gradient samplers need a smooth loss."""


@dataclass(frozen=True)
class Variant:
    """One way to answer: the name people type, the model it rests on and the mechanism that draws."""

    name: str
    model: Any
    mechanism: Any


@dataclass(frozen=True)
class Regression:
    """A question with everything public about it; see the head of this file for the defaults.

    ``bounds`` = (lo, hi), numbers or one each per column, or ``data_norm``: exactly one of the two. ``classes`` are the
    labels of a classification, the negative one first. ``response_bound`` Y clamps responses to [−Y, Y]. ``largest`` is the
    largest count that is to matter; ``dispersion`` r makes the variance of a count of mean m equal to m + m²/r. ``robust``
    standard errors of a fit hold where the model does not.
    """

    kind: str
    features: int
    _: KW_ONLY
    bounds: Any = None
    data_norm: float | None = None
    intercept: bool = True
    classes: Any = None
    prior_scale: float | None = None
    radius: float | None = None
    response_bound: float | None = None
    variance_floor: float | None = None
    threshold: float | None = None
    quantile: float | None = None
    largest: int | None = None
    dispersion: float | None = None
    robust: bool = False
    hidden: int = 10
    effect: float | None = None
    noise: float | None = None
    feature_names: Any = None
    categories: tuple[tuple[int, int], ...] = ()
    """(start, stop) of 0/1 columns that code one category; a fit uses that at most one of them is 1."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidModel(f"kind must be one of {', '.join(KINDS)}, but {self.kind!r} came.")
        for field in fields(self):  # lists become tuples: a question is a value
            object.__setattr__(self, field.name, _frozen(getattr(self, field.name)))
        if self.kind == "softmax" and self.classes is not None and len(self.classes) == 2:
            object.__setattr__(self, "kind", "logistic")  # the same model, fitted by a loss that pulls half as much
        for name in (
            "prior_scale",
            "radius",
            "response_bound",
            "variance_floor",
            "threshold",
            "dispersion",
            "effect",
            "noise",
        ):
            value = getattr(self, name)
            if value is not None and not (_real(value) and 1.0 / LARGEST < value < LARGEST):
                raise InvalidModel(
                    f"{name} must be a positive finite number, between {1.0 / LARGEST:g} and {LARGEST:g}, or None, but {value!r} came."
                )
        self._check_classes()
        if not isinstance(self.robust, bool):
            raise InvalidModel(f"robust must be True or False, but {self.robust!r} came.")
        if self.kind == "linear" and self.response_bound is None and self.threshold is None:
            raise InvalidModel(
                "A linear regression needs response_bound=Y, the public size beyond which responses are clamped, or "
                "threshold=… for Huber's loss, which bounds what one response can do. Without either one record could "
                "move the fit by any amount; neither is computed from the records."
            )
        if self.kind == "poisson" and self.largest is None:
            raise InvalidModel(
                "A Poisson regression needs largest=Y, the public count beyond which counts are read as Y. Without it one "
                "record could move the fit by any amount; it is never computed from the records. Pass largest=20, say."
            )
        if self.kind == "negative-binomial" and self.dispersion is None:
            raise InvalidModel(
                "A negative binomial regression needs dispersion=r, a public number: counts of mean m then have the variance "
                "m + m²/r. Pass dispersion=1 for strongly scattered counts, or ask for a Poisson regression."
            )
        assert self.rows.bounded  # reading it refuses missing or double bounds

    def _check_classes(self) -> None:
        classification = self.kind in ("logistic", "softmax", "svc", "network-classifier")
        if not classification and self.classes is not None:
            raise InvalidModel(f"classes belong to a classification, and kind={self.kind!r} is about numbers.")
        if self.kind == "softmax" and self.classes is None:
            raise InvalidModel(
                "A classification of several classes needs classes=[…], all labels there can be. They are public and "
                "never read from the records: a label that only one person has would give that person away."
            )

    # ── public numbers ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def rows(self) -> Features:
        """The features as every model of this question encodes them."""
        return declared_features("A regression", self.features, **self._row_options)

    @property
    def unit(self) -> float:
        """The size of the response's noise, which all other sizes are in units of."""
        if self.kind not in RESIDUALS:
            return 1.0
        if self.noise is not None:
            return self.noise
        return 1.0 if self.response_bound is None else self.response_bound / UNITS_IN_BOUND

    @property
    def outputs(self) -> int:
        return len(self.classes) if self.kind == "softmax" else 1

    @property
    def dimension(self) -> int:
        """How many coefficients there are."""
        return self.outputs * self.rows.width

    @property
    def scale(self) -> float:
        """The prior's standard deviation, declared or by default."""
        if self.prior_scale is not None:
            return self.prior_scale
        return PREDICTOR_DEVIATION * self.unit / self.rows.reach

    @property
    def ball(self) -> float:
        """The radius of the ball, for the models that need one."""
        return self.scale * (math.sqrt(self.dimension) + BEYOND) if self.radius is None else self.radius

    @property
    def expected_effect(self) -> float:
        return self.unit if self.effect is None else self.effect

    # ── the ways to answer ─────────────────────────────────────────────────────────────────────────────────

    @property
    def fit(self) -> Variant | None:
        """A perturbed mode, which measures what the other mechanisms have to guess; None where the question has none."""
        common, numeric = self._common(ball=False), self.kind in RESIDUALS
        if numeric and self.response_bound is None:
            return None
        models: dict[str, Callable[[], Any]] = {
            "logistic": lambda: Logistic(**common, loss="exp-linear", classes=self.classes),
            "softmax": lambda: Softmax(**common, classes=self.classes),
            "svc": lambda: HuberisedHinge(**common, width=HINGE_WIDTH, classes=self.classes),
            "linear": lambda: LogCoshRegression(**common, response_bound=cast(float, self.response_bound)),
            "quantile": lambda: Quantile(**common, **self._quantile_options),
            "poisson": lambda: CountRegression(**common, largest=cast(int, self.largest)),
        }
        if self.kind not in models:
            return None
        mechanism = PerturbedMode(categories=self.categories, prior=self.prior_scale is not None, robust=self.robust)
        return Variant("fit", models[self.kind](), mechanism)

    def variants(self) -> tuple[Variant, ...]:
        """Every model and mechanism that could answer, ranked by nothing; some will refuse the budget."""
        builders: dict[str, Callable[[], list[Variant]]] = {
            "logistic": self._logistic,
            "softmax": self._softmax,
            "svc": self._svc,
            "linear": self._linear,
            "huber": lambda: self._huber("", self._threshold),
            "quantile": self._quantile,
            "poisson": lambda: self._counts(PoissonRegression(**self._common(ball=False))),
            "negative-binomial": lambda: self._counts(
                NegativeBinomialRegression(**self._common(ball=False), dispersion=cast(float, self.dispersion))
            ),
            "network-classifier": self._network,
            "network-regressor": self._network,
        }
        fit = [] if self.fit is None else [self.fit]
        return (*fit, *self._measured(), *builders[self.kind]())

    def _measured(self) -> list[Variant]:
        """The columns' moments first, unless a prior was declared, which is about columns as they are: noisy gradients and
        Gibbs posteriors of the fit's loss, and what selects or draws by a β-divergence."""
        huber = self.kind in ("huber", "linear") and self.fit is None
        model = self._huber("", self._threshold)[0].model if huber else None if self.fit is None else self.fit.model
        if model is None or self.outputs > 1 or self.prior_scale is not None:
            return []
        sizes = {} if self.kind in RESIDUALS else self._sizes  # numbers are measured in units of their residuals
        inner = [Variant("noisy-gradient", model, NoisyGradient(**sizes)), Variant("gdp", model, Gibbs("gdp"))]
        others = self._logistic() if self.kind == "logistic" else self._gaussian() if self.kind == "linear" else []
        inner += [one for one in others if one.name in ("candidates", "beta-divergence")]
        return [
            Variant(f"{one.name} measured", one.model, Measured(one.mechanism, categories=self.categories))
            for one in inner
        ]

    def variant(self, name: str) -> Variant:
        """The variant of this name."""
        found = {variant.name: variant for variant in self.variants()}
        if self.robust and name in found and name != "fit":
            raise InvalidModel(
                f"robust=True is about the standard errors of a fit, and {name!r} is none: it would do nothing. Leave one of them out."
            )
        if name not in found:
            raise InvalidModel(
                f"No mechanism for a {self.kind} regression is called {name!r}. Choose 'auto' or one of: {', '.join(found)}."
            )
        return found[name]

    def _logistic(self) -> list[Variant]:
        def model(loss: str = "logistic", *, ball: bool = False) -> Logistic:
            return Logistic(**self._common(ball), loss=loss, classes=self.classes)

        return [
            Variant("noisy-gradient", model(), self._noisy_gradient()),
            Variant("noisy-gradient exp-linear", model("exp-linear"), self._noisy_gradient()),
            Variant("gdp", model(), Gibbs("gdp")),
            Variant("gdp exp-linear", model("exp-linear"), Gibbs("gdp")),
            Variant("bounded", model(ball=True), Gibbs("bounded")),
            Variant("candidates", model(), Candidates(of=self._beta())),
            Variant("beta-divergence", model(), self._beta()),
        ]

    def _softmax(self) -> list[Variant]:
        free, on_ball = (Softmax(**self._common(ball), classes=self.classes) for ball in (False, True))
        several = replace(self._beta(), beta=best_beta(len(self.classes), self.expected_effect))
        return [
            Variant("noisy-gradient", free, self._noisy_gradient()),
            Variant("gdp", free, Gibbs("gdp")),
            Variant("bounded", on_ball, Gibbs("bounded")),
            Variant("candidates", free, Candidates(of=several)),
            Variant("beta-divergence", free, several),
        ]

    def _svc(self) -> list[Variant]:
        free, on_ball = (
            HuberisedHinge(**self._common(ball), width=HINGE_WIDTH, classes=self.classes) for ball in (False, True)
        )
        return [
            Variant("noisy-gradient", free, self._noisy_gradient()),
            Variant("gdp", free, Gibbs("gdp")),
            Variant("bounded", on_ball, Gibbs("bounded")),
            Variant("candidates", on_ball, Candidates(of=Gibbs("bounded"))),
        ]

    def _linear(self) -> list[Variant]:
        found = []
        if self.response_bound is not None:
            model = LeastSquares(**self._common(ball=True), response_bound=self.response_bound)
            found = [
                Variant("least-squares", model, Gibbs("bounded")),
                Variant("least-squares gdp", model, Gibbs("gdp")),
                Variant("noisy-gradient", model, self._noisy_gradient()),
            ]
        return found + self._huber("huber", self._threshold) + self._gaussian()

    def _huber(self, name: str, threshold: float) -> list[Variant]:
        free, on_ball = (
            HuberRegression(**self._common(ball), threshold=threshold, response_bound=self.response_bound)
            for ball in (False, True)
        )
        return [
            Variant(f"noisy-gradient {name}".strip(), free, self._noisy_gradient()),
            Variant(f"gdp {name}".strip(), free, Gibbs("gdp")),
            Variant(f"bounded {name}".strip(), on_ball, Gibbs("bounded")),
        ]

    def _gaussian(self) -> list[Variant]:
        """The β-divergence, whose sensitivity rests on a floor of the residual variance."""
        if self.variance_floor is None:
            return []
        prior = NormalInverseGamma(scale=self.scale, conjugate=False)
        model = GaussianRegression(**self._columns, variance_floor=self.variance_floor, prior=prior)
        return [
            Variant("candidates", model, Candidates(of=self._beta())),
            Variant("beta-divergence", model, self._beta()),
        ]

    def _quantile(self) -> list[Variant]:
        free, on_ball = (Quantile(**self._common(ball), **self._quantile_options) for ball in (False, True))
        return [
            Variant("noisy-gradient", free, self._noisy_gradient()),
            Variant("gdp", free, Gibbs("gdp")),
            Variant("bounded", on_ball, Gibbs("bounded")),
        ]

    def _counts(self, model: Any) -> list[Variant]:
        """The β-divergence, whose sensitivity needs no largest count."""
        return [
            Variant("candidates", model, Candidates(of=self._beta())),
            Variant("beta-divergence", model, self._beta()),
        ]

    def _network(self) -> list[Variant]:
        classification = self.kind == "network-classifier"
        columns = {name: value for name, value in self._columns.items() if name != "intercept"}
        scale = 1.0 if self.prior_scale is None else self.prior_scale
        options: dict[str, Any] = {"task": "classification", "classes": self.classes, "prior": Gaussian(scale=scale)}
        if not classification:
            floor = (self.unit / 10) ** 2 if self.variance_floor is None else self.variance_floor
            prior = NormalInverseGamma(scale=scale, conjugate=False)
            options = {"task": "regression", "variance_floor": floor, "prior": prior}
        model = Network(**columns, hidden=self.hidden, **options)
        return [
            Variant("candidates", model, Candidates(of=self._beta())),
            Variant("beta-divergence", model, self._beta()),
        ]

    # ── parts ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _row_options(self) -> dict[str, Any]:
        return {
            "bounds": self.bounds, "data_norm": self.data_norm, "scaled": self.bounds is not None,
            "intercept": self.intercept, "feature_names": self.feature_names,
        }  # fmt: skip

    @property
    def _columns(self) -> dict[str, Any]:
        return {"features": self.features, **self._row_options}

    def _common(self, ball: bool) -> dict[str, Any]:
        return {**self._columns, "prior": Gaussian(scale=self.scale, radius=self.ball if ball else None)}

    @property
    def _quantile_options(self) -> dict[str, Any]:
        return {
            "level": 0.5 if self.quantile is None else self.quantile,
            "smoothing": QUANTILE_WIDTH * self.unit,
            "response_bound": self.response_bound,
        }

    @property
    def _threshold(self) -> float:
        return HUBER * self.unit if self.threshold is None else self.threshold

    def _noisy_gradient(self) -> NoisyGradient:
        return NoisyGradient(**self._sizes)

    def _beta(self) -> BetaDivergence:
        return BetaDivergence(**self._sizes)

    @property
    def _sizes(self) -> dict[str, Any]:
        """What mechanisms are tuned by: how informative a residual is does not depend on the predictor's size."""
        return {"noise": self.unit} if self.kind in RESIDUALS else {"effect": self.expected_effect}


@lru_cache(maxsize=64)
def best_beta(classes: int, effect: float) -> float:
    """β with the smallest private variance Δ(β)/H(β) for several classes whose scores have this standard deviation.

    The same for every ε; searched here, over scores alone, because the design with all its rows takes minutes."""
    variances = np.array([effect**2])

    def variance(beta: float) -> float:
        found = mean_information(Categorical(classes), variances, beta, None)
        assert found is not None
        return float(1.0 / ((beta - 1.0) * found[0][0]))

    return round(float(optimize.minimize_scalar(variance, bounds=(1.2, 4.0), method="bounded").x), 3)


def _frozen(value: Any) -> Any:
    """Lists and arrays, also within a pair of bounds, as tuples."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _real(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
