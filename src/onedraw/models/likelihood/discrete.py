"""Mass functions: two classes, K classes, counts; their β-divergence loss has Δ = 1/(β−1), whatever the predictor."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from onedraw.arrays import Array
from onedraw.models.compute import jax
from onedraw.models.convex.losses import Interval, array_module
from onedraw.models.model import MOST_PARTS, Bound, count, within
from onedraw.models.responses import Codes, Counts, Signs
from onedraw.privacy import Provenance
from onedraw.privacy.numbers import fraction_up

from .density import Likelihood, check_beta, log_gamma, log_sum, softplus

LIKE_POISSON = "Above, the law is that of Poisson but for 0.1 % of its variance: use PoissonRegression."


class DiscreteLikelihood(Likelihood):
    """A mass function: Δ = 1/(β−1), attained in the limit where the model is sure of one record and sure to have
    missed the other.

    Where Σf^β is a truncated or interpolated sum it is brought between f(y)^β and 1 before use. These two
    inequalities are all the proof needs, so Δ does not rest on the accuracy of the sum.
    """

    density_bound = Bound(1.0, Provenance.PROVED, "a probability")

    def loss_range(self, beta: float) -> Interval:
        value = Fraction(check_beta(beta))
        return (-fraction_up(1 / (value - 1) - 1 / value), fraction_up(1 / value))

    def sensitivity(self, beta: float) -> Bound:
        value = Fraction(check_beta(beta))
        why = "1/(β−1): f(y)^β ≤ Σf^β ≤ 1 for any mass function"
        return Bound(fraction_up(1 / (value - 1)), Provenance.PROVED, why)

    def beta_loss(self, beta: Any, predictor: Any, response: Any, variance: Any = None) -> Any:
        log_density = self.log_density(predictor, response, variance)
        xp = array_module(log_density)
        power = xp.exp((beta - 1.0) * log_density)
        integral = xp.clip(self.power_integral(beta, predictor, variance), xp.exp(beta * log_density), 1.0)
        return integral / beta - power / (beta - 1.0)


@dataclass(frozen=True)
class Bernoulli(DiscreteLikelihood):
    """Two classes, u the log-odds of the positive one; a response above 0 is positive (so ±1 and 0/1 both serve)."""

    response = Signs(None)

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        xp = array_module(predictor)
        return -softplus(xp.where(response > 0.0, -1.0, 1.0) * predictor)

    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        """log(p^β + q^β) = βa + log1p(e^{−β|u|}), a the larger log-probability."""
        xp, size = array_module(predictor), abs(predictor)
        return xp.log1p(xp.exp(-beta * size)) - beta * xp.log1p(xp.exp(-size))

    def beta_loss(self, beta: Any, predictor: Any, response: Any, variance: Any = None) -> Any:
        """(f·a + (1−f)·b)/β − a/(β−1), a = f^{β−1} and b = (1−f)^{β−1}: half the exponentials of the general form."""
        xp = array_module(predictor)
        margin = xp.where(response > 0.0, 1.0, -1.0) * predictor
        log_density = -softplus(-margin)
        density = xp.exp(log_density)
        hit = xp.exp((beta - 1.0) * log_density)
        miss = xp.exp((beta - 1.0) * (log_density - margin))
        return (density * hit + (1.0 - density) * miss) / beta - hit / (beta - 1.0)

    def draw(self, predictor: Array, noise: float, generator: np.random.Generator) -> Array:
        return np.where(generator.random(predictor.shape) < special.expit(predictor), 1.0, -1.0)


@dataclass(frozen=True)
class Categorical(DiscreteLikelihood):
    """K classes with codes 0 … K−1; u are K scores, the last axis, and f = softmax(u)."""

    classes: Annotated[int, partial(count, "classes", least=2, most=MOST_PARTS)]

    @property
    def outputs(self) -> int:  # type: ignore[override]  # 1 for all others
        return self.classes

    @property
    def response(self) -> Codes:
        return Codes(tuple(range(self.classes)))

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        xp = array_module(predictor)
        scores = self._below_best(predictor)
        shape = scores.shape[:-1]
        codes = xp.broadcast_to(xp.clip(xp.asarray(response).astype(int), 0, self.classes - 1), shape)
        chosen = xp.take_along_axis(scores, codes[..., None], axis=-1)[..., 0]
        return chosen - log_sum(scores)

    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        scores = self._below_best(predictor)
        return log_sum(beta * scores) - beta * log_sum(scores)

    def draw(self, predictor: Array, noise: float, generator: np.random.Generator) -> Array:
        return np.asarray(np.argmax(predictor + generator.gumbel(size=predictor.shape), axis=-1), dtype=np.float64)

    @staticmethod
    def _below_best(predictor: Any) -> Any:
        """Scores less the largest. Of scores near 1e60 the two sums above would cancel to nothing but rounding, and a
        loss that is bounded on paper would not be bounded in the program."""
        return predictor - predictor.max(axis=-1, keepdims=True)


class CountLikelihood(DiscreteLikelihood):
    """Counts whose Σf^β is a sum over points rather than a closed form."""

    @abc.abstractmethod
    def _log_powers(self, beta: Any, predictor: Any) -> Any:
        """The logarithms of what is summed, along a new last axis; none is above that of its weight."""

    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        return log_sum(self._log_powers(beta, predictor))

    def power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        """In one pass: a sum that underflows is 0, as it should be."""
        terms = self._log_powers(beta, predictor)
        return array_module(terms).exp(terms).sum(axis=-1)


@dataclass(frozen=True)
class Poisson(CountLikelihood):
    """Counts with mean e^u, u cut to [−50, 20] (a mean of 4.9e8).

    Σ_k f(k)^β has no closed form. f^β is a bell of standard deviation s ≈ √(mean/β). While 96 whole numbers cover
    6.5 s to the left and 8.5 s to the right they are summed as they are; beyond, f is continued to real k and summed
    at 96 points a distance 15s/96 apart. By Poisson's summation formula either sum of a normal bell equals its integral
    up to 2exp(−2π²·6.4²), far below the rounding; what is left is the tails. The tests find 1e-9 of the sum or less,
    against direct sums, for means up to 8100 and β up to 21.
    """

    POINTS: ClassVar[int] = 96
    response = Counts()

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        xp = array_module(predictor)
        logarithm = xp.clip(predictor, -50.0, 20.0)
        return response * logarithm - xp.exp(logarithm) - log_gamma(response + 1.0)

    def _log_powers(self, beta: Any, predictor: Any) -> Any:
        xp = array_module(predictor)
        logarithm = xp.clip(predictor, -50.0, 20.0)
        left, step = (part[..., None] for part in self._window(beta, logarithm))
        return self._log_power(beta, logarithm[..., None], left + step * xp.arange(self.POINTS)) + xp.log(step)

    def power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        """Point after point in JAX, so that memory for one of them suffices."""
        xp = array_module(predictor)
        if xp is np:
            return super().power_integral(beta, predictor, variance)
        logarithm = xp.clip(predictor, -50.0, 20.0)
        left, step = self._window(beta, logarithm)

        def add(total: Any, index: Any) -> tuple[Any, None]:
            return total + xp.exp(self._log_power(beta, logarithm, left + step * index)), None

        return step * jax.lax.scan(add, xp.zeros_like(logarithm), xp.arange(float(self.POINTS)))[0]

    def draw(self, predictor: Array, noise: float, generator: np.random.Generator) -> Array:
        return generator.poisson(np.exp(np.clip(predictor, -50.0, 20.0))).astype(np.float64)

    def _log_power(self, beta: Any, logarithm: Any, point: Any) -> Any:
        """β log f at a point, and −∞ below 0."""
        xp = array_module(logarithm)
        log_mass = point * logarithm - xp.exp(logarithm) - _log_factorial(point)
        return xp.where(point >= 0.0, beta * log_mass, -xp.inf)

    def _window(self, beta: Any, logarithm: Any) -> tuple[Any, Any]:
        """The first point and the distance between points. They follow the mean, but the sum does not depend on them,
        so no derivative is taken through them."""
        xp = array_module(logarithm)
        mean = xp.exp(logarithm if xp is np else jax.lax.stop_gradient(logarithm))
        step = xp.maximum(1.0, 15.0 / self.POINTS * xp.sqrt(mean / beta))
        left = mean - 6.5 / 15.0 * self.POINTS * step
        return xp.where(step > 1.0, left, xp.maximum(xp.floor(left), 0.0)), step


@dataclass(frozen=True)
class NegativeBinomial(CountLikelihood):
    """Counts with mean m = e^u and variance m + m²/r, r the ``dispersion``; u cut to [−50, 14] (a mean of 1.2e6).

    Σ_k f(k)^β is summed at the first whole numbers as they are and then at points that grow apart smoothly, with the
    distance as weight: an infinitely smooth change of variable leaves such a sum nearly what it was. The tests find 1e-8
    of the sum or less, against direct sums, for β up to 21.
    """

    response = Counts()

    dispersion: Annotated[float, partial(within, "dispersion", low=0.05, high=1000.0, remedy=LIKE_POISSON)]

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        r = self.dispersion
        coefficient = log_gamma(response + r) - log_gamma(response + 1.0) - float(special.gammaln(r))
        return coefficient + self._log_terms(predictor, response)

    def _log_terms(self, predictor: Any, response: Any) -> Any:
        """r log(r/(r+m)) + y log(m/(r+m))."""
        odds = array_module(predictor).clip(predictor, -50.0, 14.0) - math.log(self.dispersion)
        return -self.dispersion * softplus(odds) - response * softplus(-odds)

    def draw(self, predictor: Array, noise: float, generator: np.random.Generator) -> Array:
        """A Poisson law whose mean is gamma."""
        mean = np.exp(np.clip(predictor, -50.0, 14.0))
        factor = generator.standard_gamma(self.dispersion, predictor.shape) / self.dispersion
        return generator.poisson(np.minimum(mean * factor, 1e9)).astype(np.float64)

    def _log_powers(self, beta: Any, predictor: Any) -> Any:
        points, log_weights, coefficients = _negative_binomial_points(self.dispersion)
        log_mass = coefficients + self._log_terms(predictor[..., None], points)
        return beta * log_mass + log_weights


def _log_factorial(value: Any) -> Any:
    """log Γ(t + 1), t > −1, to 1e-13 of itself by Stirling's series at z = t + 9: several times faster than the general
    function, and each of many records needs it at many points. Points below −1 are nobody's: any number will do."""
    t = array_module(value).maximum(value, -0.5)
    xp, z = array_module(t), t + 9.0
    rising = (t + 1.0) * (t + 2.0) * (t + 3.0) * (t + 4.0) * (t + 5.0) * (t + 6.0) * (t + 7.0) * (t + 8.0)
    inverse = 1.0 / (z * z)
    series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))) / z
    return (z - 0.5) * xp.log(z) - z + 0.5 * math.log(2.0 * math.pi) + series - xp.log(rising)


@lru_cache(maxsize=64)
def _negative_binomial_points(dispersion: float) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Points t_j, log weights log t'(j) and log Γ(t+r)/(Γ(r)Γ(t+1)).

    t' = exp(δ·z·e^{−a/z}), z = j − 48: 1 up to j = 48, then growing until neighbours are a fraction δ of t apart. A
    peak at t has a standard deviation of at least t/√(rβ), so δ = 0.16/√r resolves it for β ≤ 20.
    """
    growth, start, softness = 0.16 / math.sqrt(max(dispersion, 0.5)), 48, 30.0
    last = math.exp(14.0) * (10.0 + 60.0 / dispersion + 60.0 / math.sqrt(dispersion))
    fine = 64  # the integral of t' by Simpson's rule on this many steps between neighbours: far below 1e-12
    steps = start + int(4.0 * softness + 2.0 * math.log(last) / growth)
    z = np.arange(0, (steps - start) * fine + 1) / fine
    with np.errstate(divide="ignore"):
        speed = np.exp(growth * z * np.exp(-softness / z))
    panels = (speed[0:-1:2] + 4.0 * speed[1::2] + speed[2::2]) / (3.0 * fine)
    grown = start + np.concatenate([[0.0], np.cumsum(panels)[fine // 2 - 1 :: fine // 2]])
    points = np.concatenate([np.arange(start), grown])
    log_weights = np.log(np.concatenate([np.ones(start), speed[::fine]]))
    inside = points <= last
    points, log_weights = points[inside], log_weights[inside]
    r = dispersion
    return points, log_weights, special.gammaln(points + r) - special.gammaln(r) - special.gammaln(points + 1.0)
