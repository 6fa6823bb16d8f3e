"""Loss or density, prior, and what is known about them.

Four kinds. Tables (`tables`) add whole numbers, on which plain noise is enough. Conjugate models clamp a record to its public
range, add records exactly, and turn a sum into a closed-form posterior law. Convex models bring a row into public bounds and state how far one record's loss and
gradient reach, from which every rule for Gibbs posteriors follows. Models with a likelihood of bounded density
(`likelihoods`) serve β-divergence posteriors, whatever a row holds. Each bound says where it comes from: proved here,
enforced by clamping, or declared by the caller. Importing this package does not load JAX.
"""

from . import likelihood
from .conjugate import distributions
from .conjugate.distributions import Law
from .conjugate.family import ConjugateModel
from .conjugate.gaussian_mean import GaussianMean
from .conjugate.proportions import BetaBernoulli, DirichletCategorical
from .conjugate.rates import GammaExponential, GammaPoisson
from .convex.classification import Hinge, HuberisedHinge, Logistic, LogitNormalBernoulli, Softmax
from .convex.gibbs_target import GibbsTarget
from .convex.linear_model import ConvexModel, LinearModel
from .convex.own_loss import ConvexLoss, register_loss
from .convex.regression import (
    BoundedResidualGLM,
    CountRegression,
    HuberRegression,
    LeastSquares,
    LogCoshRegression,
    OrdinaryLeastSquares,
    Quantile,
)
from .features import schema_features
from .likelihood.beta_target import BetaTarget
from .likelihood.density import OwnDensity, register_density
from .likelihood.likelihood_model import LikelihoodModel
from .likelihood.regression import (
    BinaryRegression,
    GammaRegression,
    GaussianRegression,
    NegativeBinomialRegression,
    Network,
    PoissonRegression,
    Predictor,
    StudentTRegression,
    register_predictor,
)
from .model import POSITIVE, Bound, Model
from .moments.columns import Columns
from .numpyro.program_model import NumpyroModel, from_numpyro, register_numpyro
from .priors import Gaussian, NormalInverseGamma
from .responses import Clamped, Response
from .row_model import Encoded
from .sums.clamped_sums import Summary
from .tables.category_table import CategoryTable
from .tables.column_quantiles import ColumnQuantiles
from .tables.magnitude_table import MagnitudeTable
from .tables.number_table import NumberTable
from .tables.scores import ClassifierScores, ModelChoice, RegressorScores
from .tables.table import Grouped, Table

__all__ = [
    "FAMILIES", "POSITIVE", "BetaBernoulli", "BetaTarget", "BinaryRegression", "Bound", "BoundedResidualGLM", "CategoryTable",
    "Clamped", "ClassifierScores", "ColumnQuantiles", "Columns", "ConjugateModel", "ConvexLoss", "ConvexModel", "CountRegression",
    "DirichletCategorical", "Encoded", "GammaExponential", "GammaPoisson", "GammaRegression", "Gaussian",
    "GaussianMean", "GaussianRegression", "GibbsTarget", "Grouped", "Hinge", "HuberRegression", "HuberisedHinge", "Law",
    "LeastSquares", "LikelihoodModel", "LinearModel", "LogCoshRegression", "Logistic", "LogitNormalBernoulli", "MagnitudeTable", "Model",
    "ModelChoice", "NegativeBinomialRegression", "Network", "NormalInverseGamma", "NumberTable", "NumpyroModel",
    "OrdinaryLeastSquares", "OwnDensity", "PoissonRegression", "Predictor", "Quantile", "RegressorScores", "Response", "Softmax", "StudentTRegression",
    "Summary", "Table", "distributions", "from_numpyro", "likelihoods", "register_density",
    "register_loss", "register_numpyro", "register_predictor", "schema_features",
]  # fmt: skip

likelihoods = likelihood

FAMILIES: tuple[type[ConjugateModel], ...] = tuple(ConjugateModel.members().values())
"""The conjugate families, each asked for by its ``kind``."""
