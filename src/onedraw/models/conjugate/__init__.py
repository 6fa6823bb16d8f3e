"""Conjugate models: a record is clamped, added exactly, and the sum has a closed-form posterior law."""

from .family import ConjugateModel
from .gaussian_mean import GaussianMean
from .proportions import BetaBernoulli, DirichletCategorical
from .rates import GammaExponential, GammaPoisson

FAMILIES: tuple[type[ConjugateModel], ...] = (
    BetaBernoulli,
    DirichletCategorical,
    GaussianMean,
    GammaPoisson,
    GammaExponential,
)
"""Every family; each is asked for by its ``kind``."""
