"""The law a Gibbs posterior is drawn from, as a value: what a mechanism hands to a sampler.

Density ∝ exp(−U(θ)) on R^d or on the ball ‖θ‖ ≤ R, with U(θ) = w Σ ℓ(θ, z_i) + ½(θ − a)ᵀΛ(θ − a). It holds the
encoded records and is as private as they are; the four numbers a sampler's exactness may rest on (weight, radius,
strong convexity, smoothness) are public and come from the plan.

`potential`, `gradient` and `hessian` are compiled for the loss alone (its kernel): data, weight and prior are
arguments, so one compilation serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.models.compute import jit, jnp
from onedraw.models.moments.measured_model import WeightedLoss
from onedraw.models.row_model import Encoded
from onedraw.models.sums.gradient_sums import GradientSums, LatticeRows, RowLattice, row_lattice, segments, steps_of
from onedraw.private import Private

from .linear_model import ConvexModel


@jit(0)
def potential(kernel: Any, theta: Any, X: Any, y: Any, weight: Any, precision: Any, location: Any) -> Any:
    """U(θ)."""
    away = theta - location
    return weight * kernel.total(theta, X, y) + 0.5 * (precision * away) @ away


@jit(0)
def gradient(kernel: Any, theta: Any, X: Any, y: Any, weight: Any, precision: Any, location: Any) -> Any:
    """∇U(θ): two matrix–vector products for a linear predictor."""
    return weight * kernel.gradient_total(theta, X, y) + precision * (theta - location)


@jit(0)
def hessian(kernel: Any, theta: Any, X: Any, y: Any, weight: Any, precision: Any, location: Any) -> Any:
    """∇²U(θ)."""
    return weight * kernel.hessian_total(theta, X, y) + jnp.diag(precision)


@dataclass(frozen=True, eq=False, repr=False)
class GibbsTarget(Private):
    """U for one data set, and the public constants of it.

    ``strong_convexity`` and ``smoothness`` are those of U: m = n·w·m_ℓ + m_π and M = n·w·M_ℓ + M_π, M infinite
    where the loss is not smooth.
    """

    model: ConvexModel
    encoded: Encoded
    weight: float
    precision: Array
    location: Array
    radius: float | None
    strong_convexity: float
    smoothness: float

    @property
    def dimension(self) -> int:
        return self.model.dimension

    @property
    def kernel(self) -> Any:
        """The loss alone: the static argument of compiled functions."""
        return self.model.kernel

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """(X, y, weight, precision, location) as JAX arrays: what follows theta in the compiled functions."""
        return tuple(map(jnp.asarray, (self.encoded.X, self.encoded.y, self.weight, self.precision, self.location)))

    def potential(self, theta: Any) -> Any:
        """U(θ)."""
        return potential(self.kernel, theta, *self.arguments)

    def gradient(self, theta: Any) -> Any:
        """∇U(θ)."""
        return gradient(self.kernel, theta, *self.arguments)

    def hessian(self, theta: Any) -> Any:
        """∇²U(θ)."""
        return hessian(self.kernel, theta, *self.arguments)


@dataclass(frozen=True, eq=False, repr=False)
class PathTarget(GibbsTarget):
    """The same potential for steps that follow its gradient: sums over records are made on a lattice of whole numbers where there
    is one (`sums.gradient_sums`), through the joint of `onedraw.data.sums`."""

    @cached_property
    def lattice(self) -> RowLattice | None:
        return row_lattice(self.model, self.encoded.n)

    @cached_property
    def rows(self) -> Any:
        """The records on the lattice."""
        assert self.lattice is not None
        return self.encoded.records.read_as(LatticeRows(self.lattice, isinstance(self.kernel, WeightedLoss)))

    @cached_property
    def segments(self) -> Any:
        """The same where they are in memory, as few arrays; None where they are not."""
        return segments(self.rows) if getattr(self.rows, "held", False) else None

    @property
    def gradient_sums(self) -> Any:
        assert self.lattice is not None
        return GradientSums(self.kernel, self.lattice)

    def gradient(self, theta: Any) -> Any:
        """∇U(θ) as a step has it."""
        if self.lattice is None:
            return super().gradient(theta)
        total = self.rows.sum(self.gradient_sums, theta) * steps_of(self.lattice)
        return self.weight * total + self.precision * (np.asarray(theta) - self.location)
