"""Private regressions of a number on features: least squares, Huber or β-divergence; and quantiles.

Responses enter through public bounds. ``response_bound`` is a number Y, for responses in [−Y, Y], or a pair (low, high):
the middle is then taken off before the fit and given back to the intercept, which costs nothing and keeps the prior, whose
mean is 0, where the responses are.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from onedraw.data import Measure
from onedraw.defaults import DELTA
from onedraw.errors import InvalidModel
from onedraw.planning import Regression

from .base import all_or_nothing
from .base_regression import regression
from .linear import Expected, LinearEstimator
from .validation import Incoming, Measured

Array = NDArray[np.float64]


class NumberEstimator(LinearEstimator):
    """Coefficients of a number: responses are measured from the public middle of their range, and coef_ is a vector."""

    response_bound: Any

    def _fit_number(self, X: Any, y: Any) -> None:
        self._fit_linear(X, y)
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])

    def _responses(self, y: Any) -> Any:
        middle, _ = response_range(self)
        if middle and not self.fit_intercept:
            raise InvalidModel(
                "A response_bound (low, high) whose middle is not 0 needs an intercept to take the middle up. Leave "
                "fit_intercept=True, or give response_bound as one number."
            )
        return Measured(y, Measure(middle, 1.0)) if middle else y

    def _asked_options(self) -> dict[str, Any]:
        middle, half = response_range(self)
        own = ("prior_scale", "radius", "effect", "noise", "robust", "threshold", "variance_floor", "quantile")
        found = {name: getattr(self, name) for name in own if hasattr(self, name)}
        return {**found, "response_bound": None if half is None else (middle - half, middle + half)}


class DPLinearRegression(RegressorMixin, NumberEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Linear regression, released under differential privacy.

    ``DPLinearRegression(epsilon=1.0, bounds=(0, 1), response_bound=(0, 100)).fit(X, y)``

    Parameters
    ----------
    epsilon, delta, schema, target, bounds, data_norm, prior_scale, radius, fit_intercept, robust, n_draws, accept, check, ledger, dataset, random_state
        As in `DPLogisticRegression`.
    response_bound : Y or (low, high)
        Responses are clamped to [−Y, Y] or [low, high]. Needed for least squares.
    threshold : float
        Huber's: residuals beyond it count linearly, so that one response can do little. None: 1.345 noises.
    variance_floor : float
        The least variance of the residuals; offers the β-divergence posterior, which estimates the variance too.
    mechanism : str, default="auto"
        "auto" (a fit where there is a response_bound), or one of "fit", "least-squares", "least-squares gdp", "noisy-gradient" (with response_bound); "noisy-gradient huber",
        "gdp huber", "bounded huber"; "candidates", "beta-divergence" (with variance_floor). "noisy-gradient measured", "gdp measured" and, with
        variance_floor, "candidates measured" and "beta-divergence measured" spend a part of the budget on the columns' moments first.
    effect, noise : float
        Expected standard deviations of the predictor and of a response about it; bear on accuracy only. None: a quarter
        of the response bound each, or 1.

    Attributes
    ----------
    coef_ : array of shape (d,); intercept_ : float
        In the columns' own units: the fit's estimate, or the mean of the draws.
    variance_ : float
        Of the residuals, where the mechanism estimates it.
    bse_, pvalues_, draws_, n_features_in_, feature_names_in_, certificate_, guarantee_, release_, choice_, interval_reason_, notes_
        As in `DPLogisticRegression`.
    """

    kind = "linear"

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = DELTA,
        schema: Any = None,
        target: Any = None,
        bounds: Any = None,
        data_norm: Any = None,
        response_bound: Any = None,
        threshold: Any = None,
        variance_floor: Any = None,
        mechanism: Any = "auto",
        prior_scale: Any = None,
        radius: Any = None,
        effect: Any = None,
        noise: Any = None,
        fit_intercept: Any = True,
        robust: Any = False,
        n_draws: Any = "auto",
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.target = target
        self.bounds = bounds
        self.data_norm = data_norm
        self.response_bound = response_bound
        self.threshold = threshold
        self.variance_floor = variance_floor
        self.mechanism = mechanism
        self.prior_scale = prior_scale
        self.radius = radius
        self.effect = effect
        self.noise = noise
        self.fit_intercept = fit_intercept
        self.robust = robust
        self.n_draws = n_draws
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> DPLinearRegression:
        """Charge the ledger, read the records once, and keep what was released."""
        self._fit_number(X, y)
        if "variance" in self.certificate_.draw.names:
            self.variance_ = float(self.draws_[:, -1].mean())
        elif hasattr(self, "variance_"):  # of an earlier fit
            del self.variance_
        return self

    def _question(self, came: Incoming) -> Regression:
        _, half = response_range(self)
        return regression(
            "linear", came.features, **self._common(came), intercept=self.fit_intercept, robust=self.robust, radius=self.radius,
            response_bound=half, threshold=self.threshold, variance_floor=self.variance_floor, noise=self.noise,
        )  # fmt: skip

    def predict(self, X: Any, interval: float | None = None) -> Array | Expected:
        """The expected response of each row; with ``interval=0.95`` also the ends of an interval of it, which is free.

        The interval is of the mean at the row, not of a single response.
        """
        return self._expected_at(X)[:, 0] if interval is None else self._expected_number(X, interval)

    def __sklearn_tags__(self) -> Tags:
        return regressor_tags(super().__sklearn_tags__())


class DPQuantileRegressor(RegressorMixin, NumberEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A quantile of the response as a linear function of the features, under differential privacy.

    The pinball loss, its kink rounded over a quarter of the noise. ``quantile`` is 0.5, the median, by default; the other
    parameters and the attributes are those of `DPLinearRegression`, ``response_bound`` being optional, and mechanism one
    of "auto", "noisy-gradient measured", "noisy-gradient", "gdp", "bounded".

    Attributes: ``coef_`` (d,), ``intercept_``, ``draws_``, ``n_features_in_``, ``feature_names_in_``, ``certificate_``,
    ``guarantee_``, ``release_``, ``choice_``, ``interval_reason_``, ``notes_``.
    """

    kind = "quantile"

    def __init__(
        self,
        epsilon: Any = None,
        *,
        quantile: Any = 0.5,
        delta: Any = DELTA,
        schema: Any = None,
        target: Any = None,
        bounds: Any = None,
        data_norm: Any = None,
        response_bound: Any = None,
        mechanism: Any = "auto",
        prior_scale: Any = None,
        radius: Any = None,
        effect: Any = None,
        noise: Any = None,
        fit_intercept: Any = True,
        robust: Any = False,
        n_draws: Any = "auto",
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.quantile = quantile
        self.delta = delta
        self.schema = schema
        self.target = target
        self.bounds = bounds
        self.data_norm = data_norm
        self.response_bound = response_bound
        self.mechanism = mechanism
        self.prior_scale = prior_scale
        self.radius = radius
        self.effect = effect
        self.noise = noise
        self.fit_intercept = fit_intercept
        self.robust = robust
        self.n_draws = n_draws
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> DPQuantileRegressor:
        """Charge the ledger, read the records once, and keep what was released."""
        self._fit_number(X, y)
        return self

    def _question(self, came: Incoming) -> Regression:
        _, half = response_range(self)
        return regression(
            "quantile", came.features, **self._common(came), intercept=self.fit_intercept, robust=self.robust, radius=self.radius,
            response_bound=half, noise=self.noise, quantile=self.quantile,
        )  # fmt: skip

    def predict(self, X: Any, interval: float | None = None) -> Array | Expected:
        """The quantile of each row's response; with ``interval=0.95`` also the ends of an interval of it, which is free."""
        return self._expected_at(X)[:, 0] if interval is None else self._expected_number(X, interval)

    def __sklearn_tags__(self) -> Tags:
        return regressor_tags(super().__sklearn_tags__())


def response_range(estimator: Any) -> tuple[float, float | None]:
    """Middle and half-width of the declared range of responses; (0, None) if none is declared."""
    bound = estimator.response_bound
    if bound is None or isinstance(bound, numbers.Real):
        return 0.0, bound if bound is None else float(bound)
    if isinstance(bound, np.ndarray):
        bound = bound.tolist()
    if (
        not isinstance(bound, list | tuple)
        or len(bound) != 2
        or not all(isinstance(end, numbers.Real) for end in bound)
    ):
        raise InvalidModel(f"response_bound must be a number Y or a pair (low, high), but {bound!r} came.")
    low, high = float(bound[0]), float(bound[1])
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidModel(f"response_bound (low, high) must be finite, low below high, but {bound!r} came.")
    return low + (high - low) / 2.0, (high - low) / 2.0


def regressor_tags(tags: Tags) -> Tags:
    """A draw scores as well as its budget allows, and rows that are not numbers are read by the declared rule."""
    tags.regressor_tags.poor_score = True
    tags.input_tags.allow_nan = True
    return tags
