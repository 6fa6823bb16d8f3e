"""Whole numbers that a sum of gradients, or of products, is made of: chosen by public numbers before any record is read.

A row x is cut towards zero onto multiples of ``units``, powers of two by each column's own bound: it stays as short as it was,
and an intercept's 1 stays 1. Its slope φ'(xᵀθ, y) is rounded to a multiple of ``slope_unit``, inside the interval that slopes never
leave. A record's share of the gradient is then a product of two whole numbers, of at most ``row_bits`` and ``slope_bits``; n of
them, or 2²² where there are more, stay below 2⁵³, where double precision adds without rounding, in any order.

**What it costs.** Rows on the lattice are rows like any other, so every bound of the model holds for them. A slope moves by
at most half a step, so at one θ the gradients of two records differ by at most G + ρ, ρ = `rounding`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from onedraw.privacy.rounding import root_up

from .sum_lattice import share_bits

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
    def whole_slopes(self) -> tuple[float, float]:
        """The first and last multiple inside the interval."""
        lower, upper = (Fraction(end) / Fraction(self.slope_unit) for end in self.slopes)
        return float(math.ceil(lower)), float(math.floor(upper))

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
