"""Closed-form laws as values: what a conjugate posterior is, before anyone draws from it.

A law made from records is as private as they are: it is handed to a sampler and never written out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Beta:
    """Density ∝ p^(a−1) (1−p)^(b−1) on (0, 1)."""

    a: float
    b: float

    @property
    def mean(self) -> tuple[float, ...]:
        return (self.a / (self.a + self.b),)

    @property
    def deviation(self) -> tuple[float, ...]:
        """The standard deviation of each coordinate."""
        return Dirichlet((self.a, self.b)).deviation[:1]


@dataclass(frozen=True)
class Dirichlet:
    """Density ∝ Π p_k^(α_k−1) on the simplex."""

    alpha: tuple[float, ...]

    @property
    def mean(self) -> tuple[float, ...]:
        total = math.fsum(self.alpha)
        return tuple(value / total for value in self.alpha)

    @property
    def deviation(self) -> tuple[float, ...]:
        """The standard deviation of each coordinate."""
        total = math.fsum(self.alpha)
        return tuple(
            math.sqrt(p * ((total - value) / total) / (total + 1))
            for p, value in zip(self.mean, self.alpha, strict=True)
        )


@dataclass(frozen=True)
class Gamma:
    """Density ∝ x^(shape−1) e^(−rate·x) on (0, ∞)."""

    shape: float
    rate: float

    @property
    def mean(self) -> tuple[float, ...]:
        return (self.shape / self.rate,)

    @property
    def deviation(self) -> tuple[float, ...]:
        """The standard deviation."""
        return (math.sqrt(self.shape) / self.rate,)


@dataclass(frozen=True)
class Normal:
    """Independent normal coordinates with one common variance."""

    mean: tuple[float, ...]
    variance: float

    @property
    def deviation(self) -> tuple[float, ...]:
        """The standard deviation of each coordinate."""
        return (math.sqrt(self.variance),) * len(self.mean)


Law: TypeAlias = Beta | Dirichlet | Gamma | Normal


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Any normal law: ``mean`` (d,) and the full ``precision`` matrix (d, d)."""

    mean: NDArray[np.float64]
    precision: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"Gaussian(dimension={len(self.mean)}, mean=<private>, precision=<private>)"

    @property
    def deviation(self) -> tuple[float, ...]:
        """The standard deviation of each coordinate."""
        return tuple(np.sqrt(np.diag(np.linalg.inv(self.precision))).tolist())


@dataclass(frozen=True, eq=False)
class BallGaussian:
    """Density ∝ exp(−½ θᵀAθ + bᵀθ) on ‖θ‖ ≤ radius: A is the ``precision`` (d, d), b the ``linear`` term (d,)."""

    precision: NDArray[np.float64]
    linear: NDArray[np.float64]
    radius: float

    def __repr__(self) -> str:
        return (
            f"BallGaussian(dimension={len(self.linear)}, radius={self.radius!r}, precision=<private>, linear=<private>)"
        )


GaussianLaw: TypeAlias = Gaussian | BallGaussian
