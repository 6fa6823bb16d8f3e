"""Closed-form laws as values that draw from themselves: Beta, Dirichlet, Gamma, Normal; and Gaussians with any covariance.

A law made from records is as private as they are: it is handed to a sampler and never written out. Its parameters depend
on the records, so no draw may fail, or be NaN, for any of them: an error would itself be a release. The usual recipe, gamma
variates divided by their sum, does fail: with parameters near 0.001 every variate underflows and 0/0 follows. Here all is
on logarithms, by the boost of Marsaglia and Tsang (ACM TOMS 26, 2000, §6): for every a > 0, with G ~ Gamma(a + 1) and E ~ Exp(1),

    Gamma(a)  =  G · U^(1/a)          so that          log Gamma(a)  =  log G − E/a,

used for all a alike, small and large, and normalised by log-sum-exp.

**Guarantee.** For all finite parameters in their range the draw is never NaN nor infinite, and it is the law's own draw
as far as float64 can tell:

| parameters | what is drawn |
| --- | --- |
| a Beta or Dirichlet with parameters down to 5e-324 | in [0, 1], summing to 1; 0.0 below the smallest float |
| a Beta nearer to 1 than float64 can tell | 1.0 (a Dirichlet's other coordinate keeps the distance) |
| a Gamma below the smallest or above the largest float | 0.0, or the largest float |
| parameters of 1e9 and beyond | a relative error near 1e-14, beside the law's own spread of 1/√a |

**What stays assumed.** Real numbers are modelled by float64 and the basic variates are NumPy's (ziggurat normals and
exponentials, whose tails end where less than 2^-60 of the mass is left; Marsaglia–Tsang gammas). A draw's low bits can
betray its parameters (Mironov, CCS 2012): the release rounds to a lattice.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.random import Generator

from onedraw.arrays import Array
from onedraw.errors import InvalidModel
from onedraw.privacy.numbers import fraction_down
from onedraw.private import Private

_LARGEST = np.finfo(np.float64).max
# A gamma or exponential variate of NumPy's is exactly 0 once in about 2^60; its logarithm must stay finite.
_SMALLEST = np.finfo(np.float64).tiny

GAMMA_BITS = 24
"""Significant bits of a Gamma draw that are published: its floating-point error, 2⁻⁴⁴ of the draw, is 2²⁰ times finer."""

Exact: TypeAlias = float | Fraction
"""A parameter of a law: exact in a posterior."""


class Law(abc.ABC):
    """A law of the released numbers with known moments, and exact draws of it."""

    if TYPE_CHECKING:  # a dataclass takes an inherited property for a field's default

        @property
        def mean(self) -> tuple[float, ...]: ...

    @property
    @abc.abstractmethod
    def deviation(self) -> tuple[float, ...]:
        """The standard deviation of each coordinate."""

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the parameters as a conjugate prior is written, each rounded once."""
        return tuple(float(getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]  # a dataclass

    @abc.abstractmethod
    def draws(self, generator: Generator, size: int) -> Array:
        """Independent draws along a first axis: (size,) for Beta and Gamma, (size, d) for Dirichlet and Normal."""


@dataclass(frozen=True)
class Beta(Law):
    """Density ∝ p^(a−1) (1−p)^(b−1) on (0, 1)."""

    a: Exact
    b: Exact

    @property
    def mean(self) -> tuple[float, ...]:
        return Dirichlet((self.a, self.b)).mean[:1]

    @property
    def deviation(self) -> tuple[float, ...]:
        return Dirichlet((self.a, self.b)).deviation[:1]

    def draws(self, generator: Generator, size: int) -> Array:
        return np.asarray(Dirichlet((self.a, self.b)).draws(generator, size)[:, 0])


@dataclass(frozen=True)
class Dirichlet(Law):
    """Density ∝ Π p_k^(α_k−1) on the simplex."""

    alpha: tuple[Exact, ...]

    @property
    def parameters(self) -> tuple[float, ...]:
        return tuple(map(float, self.alpha))

    @property
    def mean(self) -> tuple[float, ...]:
        total = math.fsum(self.parameters)
        return tuple(value / total for value in self.parameters)

    @property
    def deviation(self) -> tuple[float, ...]:
        total = math.fsum(self.parameters)
        shares = zip(self.mean, self.parameters, strict=True)
        return tuple(math.sqrt(p * ((total - value) / total) / (total + 1)) for p, value in shares)

    def draws(self, generator: Generator, size: int) -> Array:
        """Normalize gamma variates, on logarithms throughout."""
        # The logarithms are taken times `scale`: E/α overflows for α below 1e-306, but the coordinate with the
        # largest α stays finite, so the maximum is finite and each difference from it a number or −∞, never NaN.
        scale = float(np.minimum(1.0, _positive(*self.alpha).max()))
        with np.errstate(over="ignore", under="ignore"):
            scaled = _logarithms(self.alpha, generator, size, scale=scale)
            weights = np.exp((scaled - scaled.max(axis=1, keepdims=True)) / scale)
            drawn: Array = weights / weights.sum(axis=1, keepdims=True)
        return drawn


@dataclass(frozen=True)
class Gamma(Law):
    """Density ∝ x^(shape−1) e^(−rate·x) on (0, ∞)."""

    shape: Exact
    rate: Exact

    @property
    def mean(self) -> tuple[float, ...]:
        return (float(self.shape) / float(self.rate),)

    @property
    def deviation(self) -> tuple[float, ...]:
        return (math.sqrt(self.shape) / float(self.rate),)

    def draws(self, generator: Generator, size: int) -> Array:
        rate = _positive(self.rate)
        with np.errstate(over="ignore", under="ignore"):
            # The rate comes off before exp: a variate that underflows may be ordinary once divided by the rate.
            drawn: Array = np.exp(_logarithms((self.shape,), generator, size) - np.log(rate))
        return np.minimum(drawn, _LARGEST)[:, 0]


@dataclass(frozen=True)
class Normal(Law):
    """Independent normal coordinates with one common variance."""

    location: tuple[Exact, ...]
    variance: float

    @property
    def mean(self) -> tuple[float, ...]:
        return tuple(map(float, self.location))

    @property
    def deviation(self) -> tuple[float, ...]:
        return (math.sqrt(self.variance),) * len(self.location)

    def draws(self, generator: Generator, size: int) -> Array:
        return np.asarray(_finite(*self.location) + self.noise(generator, size))

    def noise(self, generator: Generator, size: int) -> Array:
        """Return what is added to the location: (size, d) normal variates of this variance."""
        return np.sqrt(_positive(self.variance)) * generator.standard_normal((size, len(self.location)))


def _logarithms(shapes: tuple[Exact, ...], generator: Generator, size: int, *, scale: float = 1.0) -> Array:
    """Return scale·log of (size, d) gamma variates of these exact shapes, each the sum of one for the float below the shape
    and one for what that leaves."""
    exact, below = [Fraction(shape) for shape in shapes], []
    for shape, value in zip(exact, _positive(*shapes).tolist(), strict=True):
        below.append(fraction_down(shape) or value)
    rest = _finite(*(float(shape - Fraction(value)) for shape, value in zip(exact, below, strict=True)))
    whole = _scaled(np.array(below), generator, size, scale)
    if not rest.any():
        return whole
    part = _scaled(np.maximum(rest, 0.0), generator, size, scale)
    high, low = np.maximum(whole, part), np.minimum(whole, part)
    with np.errstate(invalid="ignore"):  # −∞ less −∞
        return np.where(np.isfinite(high), high + scale * np.log1p(np.exp((low - high) / scale)), high)


def _scaled(shape: Array, generator: Generator, size: int, scale: float) -> Array:
    """Return scale·log Gamma(shape); −∞ for a shape of 0."""
    logarithms, exponentials = _boosted(shape, generator, size)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = scale * logarithms - exponentials / (shape / scale)
    return np.where(shape > 0.0, scaled, -np.inf)


def _boosted(shape: Array, generator: Generator, size: int) -> tuple[Array, Array]:
    """log G and E, each of shape (size, len(shape)), with log Gamma(shape) = log G − E/shape."""
    full = (size, shape.size)
    variates = generator.standard_gamma(shape + 1.0, full)
    return np.log(np.maximum(variates, _SMALLEST)), generator.standard_exponential(full)


def _positive(*parameters: Exact) -> Array:
    values = _finite(*parameters)
    if not (values > 0.0).all():
        raise InvalidModel(_BROKEN)
    return values


def _finite(*parameters: Exact) -> Array:
    values = np.array(parameters, dtype=np.float64)
    if values.size == 0 or not np.isfinite(values).all():
        raise InvalidModel(_BROKEN)
    return values


# Fails closed, and says no number: the parameters of a posterior are as private as its records.
_BROKEN = (
    "A Beta, Dirichlet or Gamma law has positive finite parameters and a Normal law a finite mean and a positive variance; "
    "this law does not. No model with a normalizable prior gives such a posterior: check the model's prior and bounds."
)


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Private):
    """Any normal law: ``mean`` (d,) and the full ``precision`` matrix (d, d)."""

    mean: Array
    precision: Array

    @property
    def deviation(self) -> tuple[float, ...]:
        """The standard deviation of each coordinate."""
        return tuple(np.sqrt(np.diag(np.linalg.inv(self.precision))).tolist())


@dataclass(frozen=True, eq=False, repr=False)
class BallGaussian(Private):
    """Density ∝ exp(−½ θᵀAθ + bᵀθ) on ‖θ‖ ≤ radius: A is the ``precision`` (d, d), b the ``linear`` term (d,)."""

    precision: Array
    linear: Array
    radius: float


GaussianLaw: TypeAlias = Gaussian | BallGaussian
