"""Private regression of counts: how often something happens, as a multiple for each unit of a column.

The rate of a record's count is e^{x·coef + intercept}. Counts enter cut at a declared largest one; cutting is built into the
expected count, so the rates are those of the uncut counts (`models.CountRegression`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from onedraw.defaults import DELTA
from onedraw.planning import Regression

from .base import all_or_nothing
from .base_regression import regression
from .linear import Expected, LinearEstimator
from .regression import regressor_tags
from .validation import Incoming

Array = NDArray[np.float64]


class DPPoissonRegressor(RegressorMixin, LinearEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Poisson regression of counts, released under differential privacy.

    ``DPPoissonRegressor(epsilon=1.0, bounds=(0, 1), largest=20).fit(X, y)``

    Parameters
    ----------
    epsilon, delta, schema, target, bounds, data_norm, prior_scale, effect, fit_intercept, robust, n_draws, accept, check, ledger, dataset, random_state
        As in `DPLogisticRegression`; ``effect`` is the standard deviation of the logarithm of the rates.
    largest : int
        The largest count that is to matter; larger ones are read as it. One record moves the fit by as much, so the noise
        grows with it: of visits a year rather 20 than 365. Never read from the data.
    mechanism : str, default="auto"
        "auto" (a fit), or one of "fit", "candidates", "beta-divergence" (the last only with ``accept``).

    Attributes
    ----------
    coef_ : array of shape (d,); intercept_ : float
        Of the logarithm of the rate, in the columns' own units: e^coef multiplies the rate for one unit more.
    bse_, pvalues_, draws_, n_features_in_, feature_names_in_, certificate_, guarantee_, release_, choice_, interval_reason_, notes_
        As in `DPLogisticRegression`.
    """

    kind = "poisson"

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = DELTA,
        schema: Any = None,
        target: Any = None,
        bounds: Any = None,
        data_norm: Any = None,
        largest: Any = None,
        mechanism: Any = "auto",
        prior_scale: Any = None,
        effect: Any = None,
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
        self.largest = largest
        self.mechanism = mechanism
        self.prior_scale = prior_scale
        self.effect = effect
        self.fit_intercept = fit_intercept
        self.robust = robust
        self.n_draws = n_draws
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> DPPoissonRegressor:
        """Charge the ledger, read the records once, and keep what was released."""
        self._fit_linear(X, y)
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        return self

    def _question(self, came: Incoming) -> Regression:
        return regression(
            "poisson",
            came.features,
            **self._common(came),
            intercept=self.fit_intercept,
            robust=self.robust,
            largest=self.largest,
        )

    def _asked_options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("prior_scale", "effect", "robust")}

    def predict(self, X: Any, interval: float | None = None) -> Array | Expected:
        """The expected count of each row; with ``interval=0.95`` also the ends of an interval of it, which is free."""
        return self._expected_at(X)[:, 0] if interval is None else self._expected_number(X, interval)

    def __sklearn_tags__(self) -> Tags:
        tags = regressor_tags(super().__sklearn_tags__())
        tags.target_tags.positive_only = True
        return tags
