"""Private regression of counts: how often something happens, as a multiple for each unit of a column.

The rate of a record's count is e^{x·coef + intercept}. Counts enter cut at a declared largest one; cutting is built
into the expected count, so the rates are those of the uncut counts (`models.CountRegression`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils import Tags

from .regression import LinearRegressor


@dataclass(eq=False, repr=False, kw_only=True)
class DPPoissonRegressor(LinearRegressor):
    """Poisson regression of counts, released under differential privacy.

    ``DPPoissonRegressor(epsilon=1.0, bounds=(0, 1), largest=20).fit(X, y)``

    Parameters
    ----------
    epsilon, delta, schema, target, bounds, data_norm, prior_scale, effect, fit_intercept, robust, n_draws, accept,
    check, ledger, dataset, random_state
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
    bse_, pvalues_, draws_, n_features_in_, feature_names_in_, certificate_, guarantee_, release_, choice_,
    interval_reason_, notes_
        As in `DPLogisticRegression`.
    """

    kind = "poisson"

    largest: Any = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
