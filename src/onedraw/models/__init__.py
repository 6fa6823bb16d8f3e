"""Loss or density, prior, and what is known about them.

Two kinds. Conjugate models clamp a record to its public range, add records exactly, and turn a sum into a
closed-form posterior law. Convex models bring a row into public bounds and state how far one record's loss and
gradient reach, from which every rule for Gibbs posteriors follows. Each bound says where it comes from: proved
here, enforced by clamping, or declared by the caller. Importing this room does not load JAX.
"""

from . import laws
from .beta_bernoulli import BetaBernoulli
from .convex_classification import Hinge, HuberisedHinge, Logistic, LogitNormalBernoulli, Softmax
from .convex_loss import ConvexLoss, register_loss
from .convex_model import ConvexModel, Encoded, LinearModel
from .convex_regression import BoundedResidualGLM, HuberRegression, LeastSquares, Quantile
from .dirichlet_categorical import DirichletCategorical
from .features import schema_features
from .gamma_exponential import GammaExponential
from .gamma_poisson import GammaPoisson
from .gaussian_mean import GaussianMean
from .laws import Law
from .model import Bound, ConjugateModel, Model, Summary, model_from_dict
from .priors import Gaussian
from .target import GibbsTarget

__all__ = [
    "BetaBernoulli",
    "Bound",
    "BoundedResidualGLM",
    "ConjugateModel",
    "ConvexLoss",
    "ConvexModel",
    "DirichletCategorical",
    "Encoded",
    "GammaExponential",
    "GammaPoisson",
    "Gaussian",
    "GaussianMean",
    "GibbsTarget",
    "Hinge",
    "HuberRegression",
    "HuberisedHinge",
    "Law",
    "LeastSquares",
    "LinearModel",
    "Logistic",
    "LogitNormalBernoulli",
    "Model",
    "Quantile",
    "Softmax",
    "Summary",
    "laws",
    "model_from_dict",
    "register_loss",
    "schema_features",
]
