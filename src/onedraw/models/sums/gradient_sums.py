"""Whole numbers that a sum of gradients, or of products, is made of: chosen by public numbers before any record is read.

A row x is cut towards zero onto multiples of ``units``, powers of two by each column's own bound: it stays as short as it was,
and an intercept's 1 stays 1. Its slope φ'(xᵀθ, y) is rounded to a multiple of ``slope_unit``, inside the interval that slopes never
leave. A record's share of the gradient is then a product of two whole numbers, of at most ``row_bits`` and ``slope_bits``; n of
them, or 2²² where there are more, stay below 2⁵³, where double precision adds without rounding, in any order.

**What it costs.** Rows on the lattice are rows like any other, so every bound of the model holds for them. A slope moves by
at most half a step, so at one θ the gradients of two records differ by at most G + ρ, ρ = `rounding`.

`GradientSums` is Σ ∇ℓ(θ, z_i) on it, `SquareSums` Σ xxᵀ: statistics of `onedraw.data.sums`, and what a compiled chain adds up.


    rows = encoded.records.read_as(LatticeRows(lattice))      # k = x/units, cut towards zero, one record a column
    total = rows.sum(GradientSums(kernel, lattice), theta)     # Σ s·k, s the slopes in whole steps
    gradient = total * steps_of(lattice)

A coefficient too is rounded before it meets a row, so that the predictor kᵀθ is a whole number of steps: it is the same in any
layout of the records, and what is left to floating point is φ' of that number, record by record. So the integers do not depend on
who adds them up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.models.compute import jax, jnp
from onedraw.models.convex.classification import SoftmaxLoss
from onedraw.models.moments.measured_model import WeightedLoss
from onedraw.privacy.numbers import root_up

from .exact_sums import Compiled, share_bits, symmetric

# ── the lattice ──────────────────────────────────────────────────────────────────────────────────────────────────────


SEGMENT = 1 << 22
"""Records whose products add up below 2⁵³."""

MOST_ROW_BITS = 19
"""Of an entry of a row: all further ones are the slope's, whose rounding is counted."""

SLIGHTLY_MORE = 1 + Fraction(1, 2**20)
"""Half a step and this much is the most that a rounded slope is off: its own arithmetic is far finer."""


@dataclass(frozen=True)
class RowLattice:
    """Steps of a row's columns, and of the ``outputs`` slopes of a record in [lower, upper]."""

    units: tuple[float, ...]
    row_bits: int
    slope_bits: int
    slopes: tuple[float, float]
    outputs: int = 1

    @property
    def slope_unit(self) -> float:
        return math.ldexp(_power(max(-self.slopes[0], self.slopes[1])), -self.slope_bits)

    @property
    def predictor_bits(self) -> int:
        """Of a coefficient: products with a row then add up exactly too."""
        return min(30, 52 - self.row_bits - (len(self.units) - 1).bit_length())

    @property
    def bound(self) -> float:
        """The largest product, in steps."""
        return 2.0 ** (self.row_bits + self.slope_bits)


def row_lattice(model: Any, n: int) -> RowLattice | None:
    """For a convex model and n records; None for a loss of the caller's own, whose slopes nobody bounds."""
    slopes = model.slope_interval
    if slopes is None or not 0.0 < max(-slopes[0], slopes[1]) < math.inf:
        return None
    bits = 52 - (min(n, SEGMENT) - 1).bit_length()
    row_bits = min(MOST_ROW_BITS, bits // 2 + 1)
    return RowLattice(_units(model.column_bounds, row_bits), row_bits, bits - row_bits, slopes, model.row_blocks)


def square_units(model: Any, n: int) -> tuple[float, ...]:
    """Steps of a row's columns, and of the response after them, whose products with one another are added up."""
    return _units((*model.column_bounds, max(map(abs, model.responses))), share_bits(n) // 2)


def rounding(model: Any, n: int) -> float:
    """ρ: what rounding adds to the distance of two records' gradients; 0 where they are not rounded."""
    lattice = row_lattice(model, n)
    if lattice is None:
        return 0.0
    return root_up(lattice.outputs * (SLIGHTLY_MORE * Fraction(lattice.slope_unit) * Fraction(model.row_reach)) ** 2)


def _units(bounds: tuple[float, ...], bits: int) -> tuple[float, ...]:
    return tuple(math.ldexp(_power(bound), -bits) for bound in bounds)


def _power(bound: float) -> float:
    """The least power of two that is not below; 1 for 0."""
    share, exponent = math.frexp(bound)
    return 1.0 if bound == 0.0 else math.ldexp(1.0, exponent - (share == 0.5))


# ── sums over the records ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class LatticeRows(Compiled):
    """(X, y) → (k, y): k (width, n) whole numbers. Of weighted rows a·x is cut, and y is (responses, weights a)."""

    lattice: RowLattice
    weighted: bool = False

    def block(self, X: Any, y: Any, weight: Any) -> Any:
        rows, responses = (X * y[:, 1:], y.T) if self.weighted else (X, y)
        largest = 2.0**self.lattice.row_bits
        return jnp.clip(jnp.trunc(rows.T / np.array(self.lattice.units)[:, None]), -largest, largest), responses


@dataclass(frozen=True)
class GradientSums(Compiled):
    """Σ s·k for one θ; s rounded, and held to the interval that slopes never leave."""

    kernel: Any
    lattice: RowLattice

    def bound(self, theta: Any) -> float:
        return self.lattice.bound

    def block(self, rows: Any, y: Any, weight: Any, theta: Any) -> Any:
        return self.of_rows(rows, y, theta, weight)

    def of_rows(self, rows: Any, y: Any, theta: Any, weight: Any = 1.0) -> Any:
        slopes = self.slopes(rows, y, theta) * weight
        return (rows @ slopes if slopes.ndim == 1 else slopes @ rows.T).reshape(-1)

    def slopes(self, rows: Any, y: Any, theta: Any) -> Any:
        """One whole number a record, or one a class and record, inside the interval; what is no number counts as 0."""
        if isinstance(self.kernel, SoftmaxLoss):
            scores = self._predictors(rows, theta.reshape(self.kernel.classes, -1))
            slopes = jax.nn.softmax(scores, axis=0) - (jnp.arange(self.kernel.classes)[:, None] == y)
        elif isinstance(self.kernel, WeightedLoss):
            slopes = self.kernel.of.slope(self._predictors(rows, theta) / y[1], y[0])
        else:
            slopes = self.kernel.slope(self._predictors(rows, theta), y)
        found = jnp.rint(slopes / self.lattice.slope_unit)
        lower, upper = (Fraction(end) / Fraction(self.lattice.slope_unit) for end in self.lattice.slopes)
        return jnp.clip(jnp.where(jnp.isnan(found), 0.0, found), float(math.ceil(lower)), float(math.floor(upper)))

    def _predictors(self, rows: Any, theta: Any) -> Any:
        """θᵀx, exact for the rounded θ: a power of two times a sum of whole numbers below 2⁵³."""
        steps = theta * np.array(self.lattice.units)
        _, exponent = jnp.frexp(jnp.maximum(jnp.abs(steps).max(), 2.0**-900))
        finest = exponent - self.lattice.predictor_bits
        return (jnp.rint(jnp.ldexp(steps, -finest)) @ rows) * jnp.ldexp(1.0, finest)


def steps_of(lattice: RowLattice) -> Array:
    """What one step of each entry of `GradientSums` is worth: a power of two."""
    return np.tile(np.array(lattice.units) * lattice.slope_unit, lattice.outputs)


@dataclass(frozen=True)
class SquareRows(Compiled):
    """(X, y) → (x, y)/units, cut towards zero, one record a column."""

    units: tuple[float, ...]

    def block(self, X: Any, y: Any, weight: Any) -> Any:
        return (jnp.trunc(jnp.concatenate([X, y[:, None]], axis=1).T / np.array(self.units)[:, None]),)


@dataclass(frozen=True)
class SquareSums(Compiled):
    """The lower triangle of Σ kkᵀ."""

    bits: int

    def bound(self) -> float:
        return 2.0**self.bits

    def block(self, rows: Any, weight: Any) -> Any:
        down, across = np.tril_indices(rows.shape[0])
        return (rows @ (rows * weight).T)[down, across]


def squares(encoded: Any, units: tuple[float, ...]) -> Array:
    """Σ (x, y)(x, y)ᵀ of the records cut onto the lattice: exact, then rounded once."""
    total = encoded.records.read_as(SquareRows(units)).sum(SquareSums(share_bits(encoded.n)))
    return symmetric(total, len(units)) * np.outer(units, units)


def segments(rows: Any) -> tuple[tuple[Any, ...], ...]:
    """Records on the lattice that are held in memory, as few arrays as sums stay exact for: what a compiled chain reads."""
    blocks = [[array[..., : block.rows] for array in block.arrays] for block in rows]
    together = max(1, SEGMENT // max((len(y[-1]) if y.ndim > 1 else len(y)) for _, y in blocks))
    parts = [blocks[start : start + together] for start in range(0, len(blocks), together)]
    return tuple(tuple(jnp.concatenate(arrays, axis=-1) for arrays in zip(*part, strict=True)) for part in parts)
