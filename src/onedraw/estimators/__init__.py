"""How does a scikit-learn user get it? Estimators that publish their fit, with a certificate.

`BaseEstimator` and mixins only; nothing here subclasses a fitted algorithm. Every `fit` is one release: public numbers
first, then the ledger, then the records (`base`). A new estimator is a class in a file of this room, and its name
below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from onedraw.release import Estimate as Estimate
    from onedraw.release import Estimates as Estimates

    from .base import FewRecords as FewRecords
    from .base import NoInterval as NoInterval
    from .base import NotCovered as NotCovered
    from .choosing import Chosen as Chosen
    from .choosing import choose as choose
    from .classification import DPLinearSVC as DPLinearSVC
    from .classification import DPLogisticRegression as DPLogisticRegression
    from .counts import DPPoissonRegressor as DPPoissonRegressor
    from .covariance import DPCovariance as DPCovariance
    from .evaluating import Evaluation as Evaluation
    from .evaluating import evaluate as evaluate
    from .levels import DPCount as DPCount
    from .levels import DPHistogram as DPHistogram
    from .levels import DPProportion as DPProportion
    from .linear import Expected as Expected
    from .means import DPMean as DPMean
    from .means import DPRate as DPRate
    from .means import DPSum as DPSum
    from .means import DPVariance as DPVariance
    from .networks import DPMLPClassifier as DPMLPClassifier
    from .networks import DPMLPRegressor as DPMLPRegressor
    from .quantiles import DPQuantile as DPQuantile
    from .regression import DPLinearRegression as DPLinearRegression
    from .regression import DPQuantileRegressor as DPQuantileRegressor

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
    return sorted(_HOME)
