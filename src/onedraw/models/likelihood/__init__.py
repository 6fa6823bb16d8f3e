"""Models with a likelihood, for the β-divergence; here the likelihoods themselves."""

from .continuous import Exponential, Gamma, GaussianNoise, LocationNoise, ScaledLikelihood, StudentT
from .density import LARGEST, LARGEST_BETA, LEAST_BETA, Likelihood, check_beta
from .discrete import Bernoulli, Categorical, CountLikelihood, DiscreteLikelihood, NegativeBinomial, Poisson

likelihood_from_dict = Likelihood.from_dict

__all__ = [
    "LARGEST",
    "LARGEST_BETA",
    "LEAST_BETA",
    "Bernoulli",
    "Categorical",
    "CountLikelihood",
    "DiscreteLikelihood",
    "Exponential",
    "Gamma",
    "GaussianNoise",
    "Likelihood",
    "LocationNoise",
    "NegativeBinomial",
    "Poisson",
    "ScaledLikelihood",
    "StudentT",
    "check_beta",
    "likelihood_from_dict",
]
