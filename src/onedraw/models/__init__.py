"""Loss or density, prior, and what is known about them.

Four kinds. Tables (`tables`) add whole numbers, on which plain noise is enough. Conjugate models clamp a record to its public range, add records exactly, and turn a sum into a
closed-form posterior law. Convex models bring a row into public bounds and state how far one record's loss and
gradient reach, from which every rule for Gibbs posteriors follows. Models with a likelihood of bounded density
(`likelihoods`) serve β-divergence posteriors, whatever a row holds. Each bound says where it comes from: proved here,
enforced by clamping, or declared by the caller. Importing this room does not load JAX.
"""

from . import distributions, likelihoods
from .beta_bernoulli import BetaBernoulli
from .beta_regression import (
    BinaryRegression,
    GammaRegression,
    GaussianRegression,
    NegativeBinomialRegression,
    PoissonRegression,
    StudentTRegression,
)
from .beta_target import BetaTarget
from .category_table import CategoryTable
from .column_quantiles import ColumnQuantiles
from .columns import Columns
from .convex_classification import Hinge, HuberisedHinge, Logistic, LogitNormalBernoulli, Softmax
from .convex_loss import ConvexLoss, register_loss
from .convex_model import ConvexModel, LinearModel
from .convex_regression import (
    BoundedResidualGLM,
    CountRegression,
    HuberRegression,
    LeastSquares,
    LogCoshRegression,
    Quantile,
)
from .custom_likelihood import OwnDensity, register_density
from .dirichlet_categorical import DirichletCategorical
from .distributions import Law
from .features import schema_features
from .from_numpyro import NumpyroModel, from_numpyro, register_numpyro
from .gamma_exponential import GammaExponential
from .gamma_poisson import GammaPoisson
from .gaussian_mean import GaussianMean
from .likelihood_model import LikelihoodModel
from .model import Bound, ConjugateModel, Model, Summary, model_from_dict
from .model_choice import ModelChoice
from .network import Network, Predictor, register_predictor
from .normal_inverse_gamma import NormalInverseGamma
from .number_table import NumberTable
from .priors import Gaussian
from .row_model import Encoded
from .scores import ClassifierScores, RegressorScores
from .tables import Grouped, Table
from .target import GibbsTarget

__all__ = [
    "BetaBernoulli",
    "BetaTarget",
    "BinaryRegression",
    "Bound",
    "BoundedResidualGLM",
    "CategoryTable",
    "ClassifierScores",
    "ColumnQuantiles",
    "Columns",
    "ConjugateModel",
    "ConvexLoss",
    "ConvexModel",
    "CountRegression",
    "DirichletCategorical",
    "Encoded",
    "GammaExponential",
    "GammaPoisson",
    "GammaRegression",
    "Gaussian",
    "GaussianMean",
    "GaussianRegression",
    "GibbsTarget",
    "Grouped",
    "Hinge",
    "HuberRegression",
    "HuberisedHinge",
    "Law",
    "LeastSquares",
    "LikelihoodModel",
    "LinearModel",
    "LogCoshRegression",
    "Logistic",
    "LogitNormalBernoulli",
    "Model",
    "ModelChoice",
    "NegativeBinomialRegression",
    "Network",
    "NormalInverseGamma",
    "NumberTable",
    "NumpyroModel",
    "OwnDensity",
    "PoissonRegression",
    "Predictor",
    "Quantile",
    "RegressorScores",
    "Softmax",
    "StudentTRegression",
    "Summary",
    "Table",
    "distributions",
    "from_numpyro",
    "likelihoods",
    "model_from_dict",
    "register_density",
    "register_loss",
    "register_numpyro",
    "register_predictor",
    "schema_features",
]
