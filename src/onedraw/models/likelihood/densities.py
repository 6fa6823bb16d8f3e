"""Likelihoods with a bounded density, and their β-divergence loss: what one record can do, whatever it is.

    ℓ_β(y, θ) = −f(y; θ)^{β−1}/(β−1) + (1/β) ∫ f(·; θ)^β,   β > 1

Jewson, Ghalebikesabi, Holmes, "Differentially Private Statistical Inference through β-Divergence One Posterior
Sampling" (arXiv:2307.05194). Every likelihood here says how far two records' losses can be apart, Δ(β):

| likelihood | Δ(β) | why |
| --- | --- | --- |
| discrete, any predictor of any features | 1/(β−1) | f ≤ 1 and f(y)^β ≤ Σf^β ≤ 1, so ℓ lies in [1/β − 1/(β−1), 1/β] |
| location–scale g((y−μ)/σ)/σ, σ ≥ s; Gamma with rate ≤ 1/s | M^{β−1}/(β−1), M = sup g/s | ℓ = σ^{1−β}·ℓ_g, whose ends have opposite signs: both extremes are at σ = s |
| any other density ≤ M (declared) | M^{β−1}(1/(β−1) + 1/β) | ∫f^β ≤ M^{β−1} |

The integral term may depend on the record through its features, so the paper's Lemma 1 (it cancels) is not a proof;
the middle column holds without it. None of the three needs a bound on features, responses or parameters; the second
needs its floor, which the formulas here enforce on whatever variance or rate they are given.

A likelihood is a frozen value. ``predictor`` is the number u that the model computes for a record (K of them for
K classes); formulas accept NumPy and JAX values alike.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from onedraw.errors import InvalidModel
from onedraw.models.convex.losses import Interval, array_module
from onedraw.models.model import MOST_PARTS, Bound, count, number, positive_number
from onedraw.models.responses import Clamped, Codes, Counts, Response, Signs
from onedraw.privacy import Provenance
from onedraw.privacy.rounding import down, fraction_up, up

Array = NDArray[np.float64]
LikelihoodClass = TypeVar("LikelihoodClass", bound="type[Likelihood]")

LARGEST = 1e60
"""Responses and predictors are cut here: squares and ratios stay far from the limits of floating-point numbers."""

LEAST_BETA, LARGEST_BETA = 1.0 + 1e-6, 1e6
"""Nearer to 1 the loss is a difference of nearly equal numbers; beyond, it no longer sees the data."""

_LIKELIHOODS: dict[str, type[Likelihood]] = {}


def check_beta(beta: Any) -> float:
    """β as a float, or an error: the loss is the negative log-likelihood in the limit β = 1, which is unbounded."""
    value = number("beta", beta)
    if not LEAST_BETA <= value <= LARGEST_BETA:
        raise InvalidModel(
            f"beta must be above 1 (at least 1 + 1e-6, at most {LARGEST_BETA:g}), but {value!r} came. At beta = 1 the "
            "loss is the negative log-likelihood, which one record can move without bound. Around 2.4 is best for "
            "two classes; leave beta out to have it chosen from public numbers."
        )
    return value


def register_likelihood(likelihood_class: LikelihoodClass) -> LikelihoodClass:
    """Class decorator: makes a likelihood known to `likelihood_from_dict`."""
    _LIKELIHOODS[likelihood_class.__name__] = likelihood_class
    return likelihood_class


def likelihood_from_dict(stored: Mapping[str, Any]) -> Likelihood:
    """The inverse of ``likelihood.to_dict()``; strict."""
    name = stored.get("likelihood") if isinstance(stored, Mapping) else None
    if not isinstance(name, str) or name not in _LIKELIHOODS:
        raise InvalidModel(f"No likelihood is called {name!r}; the known ones are {', '.join(sorted(_LIKELIHOODS))}.")
    values = {field: value for field, value in stored.items() if field != "likelihood"}
    expected = {field.name for field in fields(_LIKELIHOODS[name])}  # type: ignore[arg-type]  # all are dataclasses
    if set(values) != expected:
        raise InvalidModel(f"{name} is described by exactly {', '.join(sorted(expected)) or 'its name'}.")
    return _LIKELIHOODS[name](**values)


class Likelihood(abc.ABC):
    """A density (or mass function) f(y; u) with a bound, its power integral, and its β-loss.

    **Guarantee.** For every β > 1 and any two records, whatever their features and responses, and every parameter,
    the two values of `beta_loss` differ by at most ``sensitivity(beta).value``, up to the rounding of one evaluation.
    """

    outputs: int = 1
    """How many numbers the predictor computes for a record."""

    samples_variance: ClassVar[bool] = False
    """Whether a variance is a parameter of its own, besides the predictor's."""

    @property
    @abc.abstractmethod
    def response(self) -> Response:
        """How a record's response is read, where the model says nothing else."""

    @property
    def own_functions(self) -> tuple[str, ...]:
        """The caller's functions it is made of, in words."""
        return ()

    @abc.abstractmethod
    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        """log f(y; u)."""

    @abc.abstractmethod
    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        """log ∫ f(·; u)^β."""

    @abc.abstractmethod
    def loss_range(self, beta: float) -> Interval:
        """The ends between which every record's loss lies, for every parameter; rounded outward."""

    @abc.abstractmethod
    def sensitivity(self, beta: float) -> Bound:
        """Δ(β), rounded up, with who says so."""

    @property
    @abc.abstractmethod
    def density_bound(self) -> Bound:
        """M: f ≤ M."""

    def power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        """∫ f(·; u)^β."""
        integral = self.log_power_integral(beta, predictor, variance)
        return array_module(integral).exp(integral)

    def beta_loss(self, beta: Any, predictor: Any, response: Any, variance: Any = None) -> Any:
        """ℓ_β, elementwise."""
        log_density = self.log_density(predictor, response, variance)
        power = array_module(log_density).exp((beta - 1.0) * log_density)
        return self.power_integral(beta, predictor, variance) / beta - power / (beta - 1.0)

    def draw(self, predictor: Array, noise: float, generator: np.random.Generator) -> Array | None:
        """One encoded response for each predictor, residuals with the standard deviation ``noise`` where it is not known;
        None for a likelihood that cannot be drawn from here."""
        return None

    def to_dict(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"likelihood": type(self).__name__, **values}


# ── discrete ─────────────────────────────────────────────────────────────────────────────────────────────────


class DiscreteLikelihood(Likelihood):
    """A mass function: Δ = 1/(β−1), attained in the limit where the model is sure of one record and sure to have
    missed the other.

    Where Σf^β is a truncated or interpolated sum it is brought between f(y)^β and 1 before use. These two
    inequalities are all the proof needs, so Δ does not rest on the accuracy of the sum.
    """

    @property
    def density_bound(self) -> Bound:
        return Bound(1.0, Provenance.PROVED, "a probability")

    def loss_range(self, beta: float) -> Interval:
        value = Fraction(check_beta(beta))
        return (-fraction_up(1 / (value - 1) - 1 / value), fraction_up(1 / value))

    def sensitivity(self, beta: float) -> Bound:
        value = Fraction(check_beta(beta))
        return Bound(
            fraction_up(1 / (value - 1)), Provenance.PROVED, "1/(β−1): f(y)^β ≤ Σf^β ≤ 1 for any mass function"
        )

    def beta_loss(self, beta: Any, predictor: Any, response: Any, variance: Any = None) -> Any:
        log_density = self.log_density(predictor, response, variance)
        xp = array_module(log_density)
        power = xp.exp((beta - 1.0) * log_density)
        integral = xp.clip(self.power_integral(beta, predictor, variance), xp.exp(beta * log_density), 1.0)
        return integral / beta - power / (beta - 1.0)


@register_likelihood
@dataclass(frozen=True)
class Bernoulli(DiscreteLikelihood):
    """Two classes, u the log-odds of the positive one; a response above 0 is positive (so ±1 and 0/1 both serve)."""

    @property
    def response(self) -> Signs:
        return Signs(None)

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

    def gradient_bound(self, beta: float) -> Bound:
        """sup|∂ℓ_β/∂u|, so that ‖∇ℓ_β‖ ≤ ‖x‖ times it for a linear predictor (errata 18: the paper's max{G, GM}
        is false). ∂ℓ/∂u = −pq(qp^{β−2} + q^{β−1}) for a positive response, and its mirror image."""
        steepest = up(_largest_slope(check_beta(beta)))
        return Bound(steepest, Provenance.PROVED, "max_p p^{β−1}q² + pq^β, by branch and bound")


@register_likelihood
@dataclass(frozen=True)
class Categorical(DiscreteLikelihood):
    """K classes with codes 0 … K−1; u are K scores, the last axis, and f = softmax(u)."""

    classes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", count("classes", self.classes, least=2, most=MOST_PARTS))

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


@register_likelihood
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

    @property
    def response(self) -> Counts:
        return Counts()

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        logarithm = array_module(predictor).clip(predictor, -50.0, 20.0)
        return _log_poisson(logarithm, response)

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
        from onedraw.models.compute import jax

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
        mean = xp.exp(_constant(logarithm))
        step = xp.maximum(1.0, 15.0 / self.POINTS * xp.sqrt(mean / beta))
        left = mean - 6.5 / 15.0 * self.POINTS * step
        return xp.where(step > 1.0, left, xp.maximum(xp.floor(left), 0.0)), step


@register_likelihood
@dataclass(frozen=True)
class NegativeBinomial(CountLikelihood):
    """Counts with mean m = e^u and variance m + m²/r, r the ``dispersion``; u cut to [−50, 14] (a mean of 1.2e6).

    Σ_k f(k)^β is summed at the first whole numbers as they are and then at points that grow apart smoothly, with the
    distance as weight: an infinitely smooth change of variable leaves such a sum nearly what it was. The tests find 1e-8
    of the sum or less, against direct sums, for β up to 21.
    """

    dispersion: float

    def __post_init__(self) -> None:
        value = positive_number("dispersion", self.dispersion)
        if not 0.05 <= value <= 1000.0:
            raise InvalidModel(
                f"dispersion must lie in [0.05, 1000], but {value!r} came. Above, the law is that of Poisson but for "
                "0.1 % of its variance: use PoissonRegression."
            )
        object.__setattr__(self, "dispersion", value)

    @property
    def response(self) -> Counts:
        return Counts()

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


# ── continuous ───────────────────────────────────────────────────────────────────────────────────────────────


class ScaledLikelihood(Likelihood):
    """A density σ^{−1} g(·/σ), σ ≥ s: ℓ_β = σ^{1−β}·ℓ_g with inf ℓ_g < 0 < sup ℓ_g, so that both extremes are at
    σ = s and Δ = M^{β−1}/(β−1) with M = sup g/s. (inf ℓ_g ≤ (sup g)^{β−1}(1/β − 1/(β−1)) because ∫g^β ≤ (sup g)^{β−1}.)
    """

    @abc.abstractmethod
    def _log_standard_integral(self, beta: float) -> float:
        """log ∫ g^β."""

    @property
    @abc.abstractmethod
    def _peak(self) -> float:
        """sup g, rounded up."""

    @property
    @abc.abstractmethod
    def _least_scale(self) -> float:
        """s, rounded down."""

    @property
    def density_bound(self) -> Bound:
        return Bound(
            up(self._peak / self._least_scale), Provenance.PROVED, "sup g/s: the density's peak at the smallest scale"
        )

    def sensitivity(self, beta: float) -> Bound:
        return Bound(
            self._deepest(check_beta(beta)),
            Provenance.PROVED,
            "M^{β−1}/(β−1), M = sup g/s: both extremes are at the smallest scale",
        )

    def _deepest(self, beta: float) -> float:
        try:
            power = up(float(self.density_bound.value) ** (beta - 1.0))  # type: ignore[arg-type]  # one number here
        except OverflowError:
            power = math.inf
        if not power < 1e300:
            raise InvalidModel(
                f"With this floor the density reaches {self.density_bound.value:g}, and its power β − 1 = {beta - 1.0:g} "
                "overflows. Choose a smaller beta or a larger floor."
            )
        return fraction_up(Fraction(power) / (Fraction(beta) - 1))

    def loss_range(self, beta: float) -> Interval:
        deepest = self._deepest(check_beta(beta))
        integral = math.exp(self._log_standard_integral(beta) - (beta - 1.0) * math.log(self._least_scale)) / beta
        return (down(integral - deepest, absolute=2.0**-44 * (integral + deepest)), up(integral))


class LocationNoise(ScaledLikelihood):
    """Noise around a predicted mean on the whole line; its squared scale is known, or sampled above a floor."""

    variance_floor: float | None
    variance: float | None

    @property
    def samples_variance(self) -> bool:  # type: ignore[override]
        return self.variance is None

    @property
    def response(self) -> Clamped:
        return Clamped(-LARGEST, LARGEST)

    @property
    def floor(self) -> float:
        """The smallest squared scale there is."""
        return least_variance(self.variance_floor, self.variance)

    def scale(self, noise: float | None = None) -> float:
        """σ of the reference design: the known one, or ``noise``, by default 1, at least the floor."""
        return math.sqrt(self.variance) if self.variance is not None else max(noise or 1.0, math.sqrt(self.floor))

    def draw(self, predictor: Array, noise: float, generator: np.random.Generator) -> Array:
        return np.asarray(predictor + self.scale(noise) * self._standard(generator, predictor.shape))

    @abc.abstractmethod
    def _standard(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Draws of g."""


@register_likelihood
@dataclass(frozen=True)
class GaussianNoise(LocationNoise):
    """y ~ N(u, σ²). Either σ² is known (``variance``), or it is a parameter with σ² ≥ ``variance_floor``.

    ∫f^β = (2πσ²)^{−(β−1)/2} β^{−1/2};  M = (2π·floor)^{−1/2}.
    """

    variance_floor: float | None = None
    variance: float | None = None

    def __post_init__(self) -> None:
        floor, known = floor_and_variance("GaussianNoise", self.variance_floor, self.variance)
        object.__setattr__(self, "variance_floor", floor)
        object.__setattr__(self, "variance", known)

    @property
    def _peak(self) -> float:
        return up(1.0 / math.sqrt(2.0 * math.pi))

    @property
    def _least_scale(self) -> float:
        return down(math.sqrt(self.floor))

    def _standard(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return generator.standard_normal(shape)

    def _log_standard_integral(self, beta: float) -> float:
        return -0.5 * (beta - 1.0) * math.log(2.0 * math.pi) - 0.5 * math.log(beta)

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        square = enforced_variance(self, variance)
        away = array_module(predictor).clip(predictor, -LARGEST, LARGEST) - response
        return -0.5 * (away * away / square + array_module(square).log(2.0 * math.pi * square))

    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        square = enforced_variance(self, variance)
        xp = array_module(square if array_module(predictor) is np else predictor)
        return -0.5 * ((beta - 1.0) * xp.log(2.0 * math.pi * square) + xp.log(beta)) + array_module(
            predictor
        ).zeros_like(predictor)


@register_likelihood
@dataclass(frozen=True)
class StudentT(LocationNoise):
    """(y − u)/σ ~ t with ``df`` degrees of freedom ν. ``variance`` and ``variance_floor`` are those of σ², the squared
    scale (the variance proper is σ²ν/(ν−2), where it exists).

    ∫g^β = c^β √ν B(½, (β(ν+1)−1)/2), c = sup g = Γ((ν+1)/2)/(Γ(ν/2)√(νπ)) ≤ (2π)^{−1/2}.
    """

    df: float
    variance_floor: float | None = None
    variance: float | None = None

    def __post_init__(self) -> None:
        df = positive_number("df", self.df)
        if not 0.5 <= df <= 1e6:
            raise InvalidModel(f"df must lie in [0.5, 1e6], but {df!r} came. Use GaussianRegression for more.")
        floor, known = floor_and_variance("StudentT", self.variance_floor, self.variance)
        for name, value in (("df", df), ("variance_floor", floor), ("variance", known)):
            object.__setattr__(self, name, value)

    def _standard(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return generator.standard_t(self.df, shape)

    @property
    def _log_peak(self) -> float:
        half = 0.5 * self.df
        return float(special.gammaln(half + 0.5) - special.gammaln(half)) - 0.5 * math.log(self.df * math.pi)

    @property
    def _peak(self) -> float:
        # lnΓ at up to 5e5 is off by some units in the last place of 6e6: 1e-9 covers it
        return min(up(math.exp(self._log_peak), relative=1e-8), up(1.0 / math.sqrt(2.0 * math.pi)))

    @property
    def _least_scale(self) -> float:
        return down(math.sqrt(self.floor))

    def _log_standard_integral(self, beta: float) -> float:
        return float(self._log_integral(np.float64(beta)))

    def _log_integral(self, beta: Any) -> Any:
        b = 0.5 * (beta * (self.df + 1.0) - 1.0)
        beta_function = 0.5 * math.log(math.pi) + log_gamma(b) - log_gamma(b + 0.5)
        return beta * self._log_peak + 0.5 * math.log(self.df) + beta_function

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        square = enforced_variance(self, variance)
        away = array_module(predictor).clip(predictor, -LARGEST, LARGEST) - response
        ratio = away * away / (self.df * square)
        logs = 0.5 * ((self.df + 1.0) * array_module(ratio).log1p(ratio) + array_module(square).log(square))
        return self._log_peak - logs

    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        square = enforced_variance(self, variance)
        return (
            self._log_integral(beta)
            - 0.5 * (beta - 1.0) * array_module(square).log(square)
            + array_module(predictor).zeros_like(predictor)
        )


@register_likelihood
@dataclass(frozen=True)
class Gamma(ScaledLikelihood):
    """Durations y > 0 with known ``shape`` k ≥ 1 and a rate that never exceeds ``rate_cap``: mean k/rate_cap + e^u.

    Below shape 1 the density is unbounded at 0, and without a cap so is that of a short mean. With the rate λ,
    1/λ is the scale: M = rate_cap·(k−1)^{k−1}e^{1−k}/Γ(k), and ∫f^β = λ^{β−1} Γ(a)/(Γ(k)^β β^a), a = β(k−1) + 1.
    """

    rate_cap: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        cap, shape = positive_number("rate_cap", self.rate_cap), positive_number("shape", self.shape)
        if not 1.0 <= shape <= 1e4:
            raise InvalidModel(
                f"shape must lie in [1, 1e4], but {shape!r} came: below 1 the density is unbounded at 0, so one record's "
                "loss has no bound. Model log y with GaussianRegression instead."
            )
        if not 1e-30 <= cap <= 1e30:
            raise InvalidModel(f"rate_cap must lie between 1e-30 and 1e30, but {cap!r} came. Rescale the durations.")
        object.__setattr__(self, "rate_cap", cap)
        object.__setattr__(self, "shape", shape)

    @property
    def response(self) -> Clamped:
        return Clamped(1.0 / LARGEST, LARGEST)

    @property
    def _peak(self) -> float:
        extra = self.shape - 1.0
        mode = extra * math.log(extra) - extra if extra > 0.0 else 0.0
        return up(math.exp(mode - float(special.gammaln(self.shape))), relative=1e-10)

    @property
    def _least_scale(self) -> float:
        return down(1.0 / self.rate_cap)

    def _log_standard_integral(self, beta: float) -> float:
        return float(self._log_integral(np.float64(beta)))

    def _log_integral(self, beta: Any) -> Any:
        a = beta * (self.shape - 1.0) + 1.0
        return log_gamma(a) - beta * float(special.gammaln(self.shape)) - a * array_module(a).log(beta)

    def draw(self, predictor: Array, noise: float, generator: np.random.Generator) -> Array:
        scale = 1.0 / self.rate_cap + np.exp(np.clip(predictor, -50.0, 50.0)) / self.shape
        return np.maximum(scale * generator.standard_gamma(self.shape, predictor.shape), 1.0 / LARGEST)

    def _log_rate(self, predictor: Any) -> Any:
        """λ = 1/(1/cap + e^u/k): smooth in u, and never above the cap."""
        cap = math.log(self.rate_cap)
        return cap - softplus(array_module(predictor).clip(predictor, -500.0, 500.0) - math.log(self.shape) + cap)

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        log_rate = self._log_rate(predictor)
        xp = array_module(log_rate)
        scaled = log_rate + xp.log(response)
        return (
            log_rate
            + (self.shape - 1.0) * scaled
            - xp.exp(xp.minimum(scaled, 600.0))
            - float(special.gammaln(self.shape))
        )

    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        return self._log_integral(beta) + (beta - 1.0) * self._log_rate(predictor)


def Exponential(rate_cap: float) -> Gamma:
    """Durations with a memory of nothing: `Gamma` of shape 1, M = rate_cap."""
    return Gamma(rate_cap, 1.0)


# ── floors ───────────────────────────────────────────────────────────────────────────────────────────────────


def floor_and_variance(name: str, floor: Any, variance: Any) -> tuple[float | None, float | None]:
    """The checked floor and known variance of a location–scale likelihood; one of them must be there."""
    if floor is None and variance is None:
        raise InvalidModel(
            f"{name} has no floor on its variance, so no density bound exists and β-divergence sampling cannot be "
            "private: a record could be fitted with any density. Pass variance_floor=… (0.01 for a response of unit "
            "variance, say), or variance=… if it is known. They are public choices, never computed from the records."
        )
    least = None if floor is None else positive_number("variance_floor", floor)
    known = None if variance is None else positive_number("variance", variance)
    for value in (least, known):
        if value is not None and not 1e-30 <= value <= 1e30:
            raise InvalidModel(
                f"A variance or its floor must lie between 1e-30 and 1e30, but {value!r} came. Rescale y."
            )
    if least is not None and known is not None and known < least:
        raise InvalidModel(
            f"The known variance {known!r} is below its floor {least!r}. Leave the floor out, or lower it."
        )
    return least, known


def least_variance(floor: float | None, known: float | None) -> float:
    """The floor in force: that of a known variance is the variance itself."""
    result = known if known is not None else floor
    assert result is not None
    return result


def enforced_variance(likelihood: Any, given: Any) -> Any:
    """The known variance, or the given one brought to the floor: the bound M must not rest on who calls."""
    if likelihood.variance is not None:
        return likelihood.variance
    if given is None:
        raise InvalidModel(f"{type(likelihood).__name__} with a floor needs the variance as an argument.")
    return array_module(given).maximum(given, likelihood.floor)


# ── functions for NumPy and JAX alike ────────────────────────────────────────────────────────────────────────


def softplus(value: Any) -> Any:
    """log(1 + e^v), without overflow, with a derivative everywhere."""
    if array_module(value) is np:
        return np.logaddexp(0.0, value)
    from onedraw.models.compute import jax

    return jax.nn.softplus(value)


def log_sum(values: Any) -> Any:
    """log Σ e^v over the last axis."""
    if array_module(values) is np:
        return special.logsumexp(values, axis=-1)
    from onedraw.models.compute import jax

    return jax.nn.logsumexp(values, axis=-1)


def log_gamma(value: Any) -> Any:
    if array_module(value) is np:
        return special.gammaln(value)
    from onedraw.models.compute import jax

    return jax.scipy.special.gammaln(value)


def _constant(value: Any) -> Any:
    """The value without its derivative."""
    if array_module(value) is np:
        return value
    from onedraw.models.compute import jax

    return jax.lax.stop_gradient(value)


def _log_poisson(logarithm: Any, response: Any) -> Any:
    return response * logarithm - array_module(logarithm).exp(logarithm) - log_gamma(response + 1.0)


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


def _largest_slope(beta: float) -> float:
    """max over p of p^{β−1}q² + pq^β, from above to 1e-9: cells in which each factor is replaced by its largest value
    are halved as long as they could hold the maximum."""
    left, width = np.arange(64) / 64.0, 1.0 / 64.0
    while True:
        right = left + width
        above = right ** (beta - 1.0) * (1.0 - left) ** 2 + right * (1.0 - left) ** beta
        middle = left + 0.5 * width
        found = np.max(middle ** (beta - 1.0) * (1.0 - middle) ** 2 + middle * (1.0 - middle) ** beta)
        if above.max() <= found * (1.0 + 1e-9) or width < 2.0**-45:
            return float(above.max())
        kept = left[above >= found]
        left, width = np.concatenate([kept, kept + 0.5 * width]), 0.5 * width
