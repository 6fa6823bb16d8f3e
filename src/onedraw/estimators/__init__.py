"""How does a scikit-learn user get it? Estimators that publish their fit, with a certificate.

`BaseEstimator` and mixins only; nothing here subclasses a fitted algorithm. Every `fit` is one release: public numbers
first, then the ledger, then the records (`base`). A new estimator is a class in a file of this package, and its name
below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from onedraw.release import Estimate, Estimates

    from .base import FewRecords, NoInterval, NotCovered
    from .classification import DPLinearSVC, DPLogisticRegression
    from .covariance import DPCovariance
    from .evaluating import Chosen, Evaluation, choose, evaluate
    from .linear import Expected
    from .networks import DPMLPClassifier, DPMLPRegressor
    from .regression import DPLinearRegression, DPPoissonRegressor, DPQuantileRegressor
    from .statistics import DPCount, DPHistogram, DPMean, DPProportion, DPQuantile, DPRate, DPSum, DPVariance

__all__ = [
    "Chosen", "DPCount", "DPCovariance", "DPHistogram", "DPLinearRegression", "DPLinearSVC", "DPLogisticRegression",
    "DPMLPClassifier", "DPMLPRegressor", "DPMean", "DPPoissonRegressor", "DPProportion", "DPQuantile",
    "DPQuantileRegressor", "DPRate", "DPSum", "DPVariance", "Estimate", "Estimates", "Evaluation", "Expected",
    "FewRecords", "NoInterval", "NotCovered", "choose", "evaluate",
]  # fmt: skip

# file → the names that are public at the top of the package; and those that are so here
PUBLIC = {
    "classification": ("DPLogisticRegression", "DPLinearSVC"),
    "regression": ("DPLinearRegression", "DPQuantileRegressor", "DPPoissonRegressor"),
    "networks": ("DPMLPClassifier", "DPMLPRegressor"),
    "statistics": ("DPProportion", "DPHistogram", "DPCount", "DPMean", "DPSum", "DPVariance", "DPRate", "DPQuantile"),
    "covariance": ("DPCovariance",),
    "evaluating": ("evaluate", "choose"),
}
_BESIDES = {
    "base": ("FewRecords", "NoInterval", "NotCovered", "Estimate", "Estimates"),
    "evaluating": ("Chosen", "Evaluation"),
    "linear": ("Expected",),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(__name__, PUBLIC, _BESIDES)
