"""Four mechanisms whose ε is known in closed form, on one pair of data sets: the audits are measured against them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special

from onedraw.privacy.conversions import gaussian_delta

INFINITE = (-math.inf, math.inf)


@dataclass(frozen=True)
class Known:
    """Draws and log densities of both data sets, the δ at which ε is asked, and that ε."""

    name: str
    draw: Callable[[int, np.random.Generator, int], Any]
    logdensities: tuple[Callable[[Any], Any], Callable[[Any], Any]]
    delta: float
    epsilon: float
    domain: tuple[float, float]


def randomised_response(epsilon: float) -> Known:
    truth = special.expit(epsilon)

    def draw(which, generator, size):
        honest = generator.random(size) < truth
        return np.where(honest, which, 1 - which).astype(float)

    def logdensity(which):
        return lambda points: np.log(np.where(points[:, 0] == which, truth, 1.0 - truth))

    return Known("randomised response", draw, (logdensity(0), logdensity(1)), 0.0, epsilon, (0.0, 1.0))


def laplace(epsilon: float) -> Known:
    """A sum of records in [0, 1] with Laplace noise of scale 1/ε, one record moved from 0 to 1."""

    def draw(which, generator, size):
        return which + generator.laplace(scale=1.0 / epsilon, size=size)

    def logdensity(which):
        return lambda points: -epsilon * np.abs(points[:, 0] - which)

    return Known("Laplace", draw, (logdensity(0), logdensity(1)), 0.0, epsilon, INFINITE)


def gaussian(mu: float, delta: float) -> Known:
    """N(0, 1) against N(μ, 1), at its exact ε for this δ."""

    def draw(which, generator, size):
        return mu * which + generator.normal(size=size)

    def logdensity(which):
        return lambda points: -((points[:, 0] - mu * which) ** 2) / 2.0

    epsilon = optimize.brentq(lambda e: gaussian_delta(mu, e) - delta, 0.0, 50.0)
    return Known("Gaussian", draw, (logdensity(0), logdensity(1)), delta, epsilon, INFINITE)


def beta_delta(first: tuple[float, float], second: tuple[float, float], epsilon: float) -> float:
    """δ(ε) of Beta(a, b) against Beta(a+1, b−1), from distribution functions: their ratio is monotone."""

    def one_way(p, q):
        # p/q = C·((1−x)/x)^±1 crosses e^ε once
        log_constant = special.betaln(*q) - special.betaln(*p)
        sign = p[0] - q[0]
        cut = special.expit(sign * (epsilon - log_constant))
        if sign > 0:
            return special.betaincc(*p, cut) - math.exp(epsilon) * special.betaincc(*q, cut)
        return special.betainc(*p, cut) - math.exp(epsilon) * special.betainc(*q, cut)

    return max(one_way(first, second), one_way(second, first), 0.0)


def beta_posterior(delta: float) -> Known:
    """The posterior of a proportion under Beta(1, 1) with n = 6 records, the third success replaced by a failure."""
    laws = ((3.0, 5.0), (4.0, 4.0))

    def draw(which, generator, size):
        return generator.beta(*laws[which], size=size)

    def logdensity(which):
        a, b = laws[which]
        return lambda points: special.xlogy(a - 1.0, points[:, 0]) + special.xlog1py(b - 1.0, -points[:, 0])

    epsilon = optimize.brentq(lambda e: beta_delta(*laws, e) - delta, 0.0, 20.0)
    return Known("Beta posterior", draw, (logdensity(0), logdensity(1)), delta, epsilon, (0.0, 1.0))


KNOWN = [randomised_response(1.0), laplace(1.0), gaussian(1.0, 0.05), beta_posterior(0.02)]
