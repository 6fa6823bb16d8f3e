"""How does a scikit-learn user get it? Estimators that publish their fit, with a certificate.

`BaseEstimator` and mixins only; nothing here subclasses a fitted algorithm. Every `fit` is one release through the door:
public numbers first, then the ledger, then the records. See `fitting`.
"""

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
    "Chosen",
    "DPCount",
    "DPCovariance",
    "DPHistogram",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPMLPClassifier",
    "DPMLPRegressor",
    "DPMean",
    "DPPoissonRegressor",
    "DPProportion",
    "DPQuantile",
    "DPQuantileRegressor",
    "DPRate",
    "DPSum",
    "DPVariance",
    "Estimate",
    "Estimates",
    "Evaluation",
    "Expected",
    "FewRecords",
    "NoInterval",
    "NotCovered",
    "choose",
    "evaluate",
]
