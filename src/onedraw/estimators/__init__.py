"""How does a scikit-learn user get it? Estimators that publish their fit, with a certificate.

`BaseEstimator` and mixins only; nothing here subclasses a fitted algorithm. Every `fit` is one release: public numbers
first, then the ledger, then the records (`base`). A new estimator is a class in a file of this room, and its name
below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from onedraw.release import Estimate, Estimates

    from .base import FewRecords, NoInterval, NotCovered
    from .choosing import Chosen, choose
    from .classification import DPLinearSVC, DPLogisticRegression
    from .counts import DPPoissonRegressor
    from .covariance import DPCovariance
    from .evaluating import Evaluation, evaluate
    from .levels import DPCount, DPHistogram, DPProportion
    from .linear import Expected
    from .means import DPMean, DPRate, DPSum, DPVariance
    from .networks import DPMLPClassifier, DPMLPRegressor
    from .quantiles import DPQuantile
    from .regression import DPLinearRegression, DPQuantileRegressor

__all__ = [
    "Chosen", "DPCount", "DPCovariance", "DPHistogram", "DPLinearRegression", "DPLinearSVC", "DPLogisticRegression",
    "DPMLPClassifier", "DPMLPRegressor", "DPMean", "DPPoissonRegressor", "DPProportion", "DPQuantile",
    "DPQuantileRegressor", "DPRate", "DPSum", "DPVariance", "Estimate", "Estimates", "Evaluation", "Expected",
    "FewRecords", "NoInterval", "NotCovered", "choose", "evaluate",
]  # fmt: skip

# file → the names that are public at the top of the package; and those that are so here
PUBLIC = {
    "classification": ("DPLogisticRegression", "DPLinearSVC"),
    "regression": ("DPLinearRegression", "DPQuantileRegressor"),
    "counts": ("DPPoissonRegressor",),
    "networks": ("DPMLPClassifier", "DPMLPRegressor"),
    "levels": ("DPProportion", "DPHistogram", "DPCount"),
    "means": ("DPMean", "DPSum", "DPVariance", "DPRate"),
    "quantiles": ("DPQuantile",),
    "covariance": ("DPCovariance",),
    "evaluating": ("evaluate",),
    "choosing": ("choose",),
}
_BESIDES = {
    "base": ("FewRecords", "NoInterval", "NotCovered", "Estimate", "Estimates"),
    "choosing": ("Chosen",),
    "evaluating": ("Evaluation",),
    "linear": ("Expected",),
}
_HOME = {name: file for part in (PUBLIC, _BESIDES) for file, names in part.items() for name in names}

__getattr__ = names_on_demand(__name__, _HOME)


def __dir__() -> list[str]:
    return __all__
