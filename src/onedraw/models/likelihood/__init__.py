"""Models with a likelihood, for the β-divergence; here the likelihoods themselves."""

from .continuous import Exponential, Gamma, GaussianNoise, LocationNoise, StudentT
from .density import LARGEST, LARGEST_BETA, LEAST_BETA, Likelihood, check_beta
from .discrete import Bernoulli, Categorical, CountLikelihood, NegativeBinomial, Poisson

__all__ = [
    "LARGEST", "LARGEST_BETA", "LEAST_BETA", "Bernoulli", "Categorical", "CountLikelihood", "Exponential", "Gamma",
    "GaussianNoise", "Likelihood", "LocationNoise", "NegativeBinomial", "Poisson", "StudentT", "check_beta",
]  # fmt: skip
