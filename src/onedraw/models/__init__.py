"""Density, prior, and what is known about them: models whose posterior has a closed form.

Each model clamps a record to its public range, adds records exactly, and turns a sum into a posterior law.
Every bound it relies on says where it comes from: proved here, enforced by clamping, or declared by the
caller.
"""

from . import laws
from .beta_bernoulli import BetaBernoulli
from .dirichlet_categorical import DirichletCategorical
from .gamma_exponential import GammaExponential
from .gamma_poisson import GammaPoisson
from .gaussian_mean import GaussianMean
from .laws import Law
from .model import Bound, Model, Summary, model_from_dict

__all__ = [
    "BetaBernoulli",
    "Bound",
    "DirichletCategorical",
    "GammaExponential",
    "GammaPoisson",
    "GaussianMean",
    "Law",
    "Model",
    "Summary",
    "laws",
    "model_from_dict",
]
