"""Loss or density, prior, and what is known about them.

Four kinds. Tables (`tables`) add whole numbers, on which plain noise is enough. Conjugate models clamp a record to its public
range, add records exactly, and turn a sum into a closed-form posterior law. Convex models bring a row into public bounds and state how far one record's loss and
gradient reach, from which every rule for Gibbs posteriors follows. Models with a likelihood of bounded density
(`likelihoods`) serve β-divergence posteriors, whatever a row holds. Each bound says where it comes from: proved here,
enforced by clamping, or declared by the caller. Importing this room does not load JAX.
"""

from . import likelihood
from .conjugate import distributions as distributions
from .conjugate.distributions import Law as Law
from .conjugate.family import ConjugateModel as ConjugateModel
from .conjugate.family import Summary as Summary
from .conjugate.gaussian_mean import GaussianMean as GaussianMean
from .conjugate.proportions import BetaBernoulli as BetaBernoulli
from .conjugate.proportions import DirichletCategorical as DirichletCategorical
from .conjugate.rates import GammaExponential as GammaExponential
from .conjugate.rates import GammaPoisson as GammaPoisson
from .convex.classification import Hinge as Hinge
from .convex.classification import HuberisedHinge as HuberisedHinge
from .convex.classification import Logistic as Logistic
from .convex.classification import LogitNormalBernoulli as LogitNormalBernoulli
from .convex.classification import Softmax as Softmax
from .convex.gibbs_target import GibbsTarget as GibbsTarget
from .convex.linear_model import ConvexModel as ConvexModel
from .convex.linear_model import LinearModel as LinearModel
from .convex.own_loss import ConvexLoss as ConvexLoss
from .convex.own_loss import register_loss as register_loss
from .convex.regression import BoundedResidualGLM as BoundedResidualGLM
from .convex.regression import CountRegression as CountRegression
from .convex.regression import HuberRegression as HuberRegression
from .convex.regression import LeastSquares as LeastSquares
from .convex.regression import LogCoshRegression as LogCoshRegression
from .convex.regression import Quantile as Quantile
from .features import schema_features as schema_features
from .likelihood.beta_target import BetaTarget as BetaTarget
from .likelihood.density import OwnDensity as OwnDensity
from .likelihood.density import register_density as register_density
from .likelihood.likelihood_model import LikelihoodModel as LikelihoodModel
from .likelihood.regression import BinaryRegression as BinaryRegression
from .likelihood.regression import GammaRegression as GammaRegression
from .likelihood.regression import GaussianRegression as GaussianRegression
from .likelihood.regression import NegativeBinomialRegression as NegativeBinomialRegression
from .likelihood.regression import Network as Network
from .likelihood.regression import PoissonRegression as PoissonRegression
from .likelihood.regression import Predictor as Predictor
from .likelihood.regression import StudentTRegression as StudentTRegression
from .likelihood.regression import register_predictor as register_predictor
from .model import Bound as Bound
from .model import Model as Model
from .model import model_from_dict as model_from_dict
from .moments.columns import Columns as Columns
from .numpyro.program_model import NumpyroModel as NumpyroModel
from .numpyro.program_model import from_numpyro as from_numpyro
from .numpyro.program_model import register_numpyro as register_numpyro
from .priors import Gaussian as Gaussian
from .priors import NormalInverseGamma as NormalInverseGamma
from .row_model import Encoded as Encoded
from .tables.category_table import CategoryTable as CategoryTable
from .tables.column_quantiles import ColumnQuantiles as ColumnQuantiles
from .tables.number_table import NumberTable as NumberTable
from .tables.scores import ClassifierScores as ClassifierScores
from .tables.scores import ModelChoice as ModelChoice
from .tables.scores import RegressorScores as RegressorScores
from .tables.table import Grouped as Grouped
from .tables.table import Table as Table

likelihoods = likelihood

FAMILIES: tuple[type[ConjugateModel], ...] = tuple(ConjugateModel.members().values())
"""The conjugate families, each asked for by its ``kind``."""
