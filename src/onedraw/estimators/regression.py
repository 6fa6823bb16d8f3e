"""Private regressions of a number on features: least squares, Huber or β-divergence; quantiles; and counts.

Responses enter through public bounds. ``response_bound`` is a number Y, for responses in [−Y, Y], or a pair (low,
high): the middle is then taken off before the fit and given back to the intercept, which costs nothing and keeps the
prior, whose mean is 0, where the responses are.

**Counts**: how often something happens, as a multiple for each unit of a column. The rate of a record's count is e^{x·coef + intercept}. Counts enter cut at a declared largest one; cutting is built
into the expected count, so the rates are those of the uncut counts (`models.CountRegression`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.utils import Tags

from onedraw.arrays import Array
from onedraw.data import Measure
from onedraw.errors import InvalidModel
from onedraw.planning import regression

from .base import Numbers
from .linear import Expected, LinearEstimator
from .sklearn_bases import RegressorMixin
from .validation import MeasuredResponse


class LinearRegressor(RegressorMixin, LinearEstimator):
    """Coefficients of one response: coef_ is a vector, and predictions are what the model expects."""

    def _fit(self, X: Any, y: Any) -> None:
        super()._fit(X, y)
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])

    def predict(self, X: Any, interval: float | None = None) -> Array | Expected:
        """What the model expects of each row's response: its mean, quantile or rate; with ``interval=0.95`` also the
        ends of an interval of that, not of a single response, which is free."""
        found = self._expected(X, interval)
        return Expected(*(part[:, 0] for part in found)) if isinstance(found, Expected) else found[:, 0]

    def __sklearn_tags__(self) -> Tags:
        return regressor_tags(super().__sklearn_tags__())


@dataclass(eq=False, repr=False, kw_only=True)
class NumberEstimator(LinearRegressor):
    """Coefficients of a number: responses are measured from the public middle of their range."""

    response_bound: Numbers | None = None
    noise: float | None = None
    radius: float | None = None
    estimand: str | None = None
    effects: Sequence[str | int] | None = None

    def _responses(self, y: Any) -> Any:
        middle, _ = response_range(self)
        if middle and not self.fit_intercept:
            raise InvalidModel(
                "A response_bound (low, high) whose middle is not 0 needs an intercept to take the middle up. Leave "
                "fit_intercept=True, or give response_bound as one number."
            )
        return MeasuredResponse(y, Measure(middle, 1.0)) if middle else y

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"response_bound": response_range(self)[1]}

    def _besides_schema(self) -> dict[str, Any]:
        middle, half = response_range(self)
        return super()._besides_schema() | {"response_bound": None if half is None else (middle - half, middle + half)}


@dataclass(eq=False, repr=False, kw_only=True)
class DPLinearRegression(NumberEstimator):
    """Linear regression, released under differential privacy.

    ``DPLinearRegression(epsilon=1.0, bounds=(0, 1), response_bound=(0, 100)).fit(X, y)``

    Parameters
    ----------
    epsilon, delta, schema, target, formula, features, bounds, data_norm, prior_scale, radius, fit_intercept, robust, n_draws, missing,
    accept, check, ledger, dataset, random_state
        As in `DPLogisticRegression`.
    response_bound : Y or (low, high)
        Responses are clamped to [−Y, Y] or [low, high]. Needed for least squares.
    threshold : float
        Huber's: residuals beyond it count linearly, so that one response can do little. None: 1.345 noises.
    variance_floor : float
        The least variance of the residuals; offers the β-divergence posterior, which estimates the variance too.
    mechanism : str, default="auto"
        "auto" (a fit where there is a response_bound), or one of "fit", "least-squares", "least-squares gdp", "noisy-gradient" (with response_bound); "noisy-gradient huber",
        "gdp huber", "bounded huber"; "candidates", "beta-divergence" (with variance_floor). "noisy-gradient measured"
        spends a part of the budget on the columns' moments first. "clipped-gradients"
        (with response_bound) is for prediction and gives no intervals.
    effect, noise : float
        Expected standard deviations of the predictor and of a response about it; bear on accuracy only. None: a quarter
        of the response bound each, or 1.
    estimand : "least-squares" or "robust"
        What the fit must estimate. If budget and n do not allow it, `fit` refuses before anything is spent. "robust" is a line for
        which rows and residuals far out count less. None: least squares, under a pure ε "robust". `summary` names
        what was estimated.
    effects : list of str or int
        As in `DPLogisticRegression`.

    Attributes
    ----------
    coef_ : array of shape (d,); intercept_ : float
        In the columns' own units: the fit's estimate, or the mean of the draws.
    variance_ : float
        Of the residuals, where the mechanism estimates it.
    bse_, pvalues_, draws_, n_features_in_, feature_names_in_, certificate_, guarantee_, release_, choice_,
    interval_reason_, notes_
        As in `DPLogisticRegression`.
    """

    kind = "linear"

    threshold: float | None = None
    variance_floor: float | None = None

    def _fit(self, X: Any, y: Any) -> None:
        super()._fit(X, y)
        if "variance" in self.certificate_.draw.names:
            self.variance_ = float(self.draws_[:, -1].mean())
        elif hasattr(self, "variance_"):  # of an earlier fit
            del self.variance_


@dataclass(eq=False, repr=False, kw_only=True)
class DPQuantileRegressor(NumberEstimator):
    """A quantile of the response as a linear function of the features, under differential privacy.

    ``quantile`` is 0.5, the median, by default. ``estimand`` is "quantile", the quantile itself, or "robust", for which rows far out
    count less; None takes the first, under a pure ε the second. The other parameters and the attributes are those of `DPLinearRegression`, ``response_bound`` being optional, and
    mechanism one of "auto", "noisy-gradient measured", "noisy-gradient", "gdp", "bounded".
    """

    kind = "quantile"

    quantile: float = 0.5


def response_range(estimator: Any) -> tuple[float, float | None]:
    """Middle and half-width of the declared range of responses; (0, None) if none is declared."""
    if estimator.response_bound is None:
        return 0.0, None
    low, high = regression.response_range(estimator.response_bound)
    return low + (high - low) / 2.0, (high - low) / 2.0


def regressor_tags(tags: Tags) -> Tags:
    """A draw scores as well as its budget allows, and rows that are not numbers are read by the declared rule."""
    tags.regressor_tags.poor_score = True
    tags.input_tags.allow_nan = True
    return tags


@dataclass(eq=False, repr=False, kw_only=True)
class DPPoissonRegressor(LinearRegressor):
    """Poisson regression of counts, released under differential privacy.

    ``DPPoissonRegressor(epsilon=1.0, bounds=(0, 1), largest=20).fit(X, y)``

    Parameters
    ----------
    epsilon, delta, schema, target, formula, features, bounds, data_norm, prior_scale, effect, fit_intercept, robust, n_draws, missing,
    accept, check, ledger, dataset, random_state
        As in `DPLogisticRegression`; ``effect`` is the standard deviation of the logarithm of the rates.
    largest : int
        The largest count that is to matter; larger ones are read as it. One record moves the fit by as much, so the noise
        grows with it: of visits a year rather 20 than 365. Never read from the data.
    mechanism : str, default="auto"
        "auto" (a fit), or one of "fit", "candidates", "beta-divergence" (the last only with ``accept``). "clipped-gradients" is for
        prediction and gives no intervals.
    estimand : "maximum-likelihood" or "robust"
        As in `DPLogisticRegression`.
    effects : list of str or int
        As in `DPLogisticRegression`.

    Attributes
    ----------
    coef_ : array of shape (d,); intercept_ : float
        Of the logarithm of the rate, in the columns' own units: e^coef multiplies the rate for one unit more.
    bse_, pvalues_, draws_, n_features_in_, feature_names_in_, certificate_, guarantee_, release_, choice_,
    interval_reason_, notes_
        As in `DPLogisticRegression`.
    """

    kind = "poisson"

    largest: int | None = None
    estimand: str | None = None
    effects: Sequence[str | int] | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
