"""The sums that a linear regression knows its records by, in whole numbers: Σ of the products of a row's entries and
its response.

A record is w = (x_1/c_1, …, x_d/c_d, 1, y/Y), c and Y public, every entry clamped to [−1, 1] and rounded to a lattice;
its share are the products w_j·w_k, j ≥ k, but for that of the intercept with itself, whose sum is n. With an intercept
p = q + 1, without one p = q:

| | one replaced record moves them by at most | attained |
| --- | --- | --- |
| L1 | q(q + 2)²/(2(q + 1)) with an intercept, q(q + 1)/2 without | always |
| L2 | p | where p is even |

Proofs in noise_aware.md. The bound that adds up the largest change of each product is larger: 8 in place of 5⅓ for one
column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.data.sums import Statistic
from onedraw.models.sums.exact_sums import share_bits


@dataclass(frozen=True)
class Products(Statistic):
    """Σ k_j·k_l over the records, k the entries in steps; the lower triangle without the intercept's corner."""

    divisors: tuple[float, ...]
    """c of each column of encoded rows, the intercept's 1 included, and Y last."""
    corner: int | None
    """Which of them is the intercept."""
    steps: int

    def bound(self) -> float:
        return float(self.steps**2)

    def of_block(self, X: Any, y: Any, weight: Any) -> Array:
        rows = np.column_stack([np.asarray(X), np.asarray(y)])
        with np.errstate(over="ignore"):
            k = np.rint(np.clip(rows / np.array(self.divisors), -1.0, 1.0) * self.steps)
        k *= np.asarray(weight)[:, None]
        return np.asarray((k.T @ k)[self.places])

    @property
    def places(self) -> tuple[Any, Any]:
        """Rows and columns of the entries that are published."""
        rows, columns = np.tril_indices(len(self.divisors))
        kept = (
            np.ones(len(rows), dtype=bool)
            if self.corner is None
            else ~((rows == self.corner) & (columns == self.corner))
        )
        return rows[kept], columns[kept]


@dataclass(frozen=True)
class ProductSums:
    """The products' sums of n records, and how far one replaced record moves them."""

    statistic: Products

    @classmethod
    def of(cls, model: Any, response_bound: float, n: int) -> ProductSums:
        features = model.features
        columns = tuple(float(bound) or 1.0 for bound in features.column_bounds)
        corner = features.count if features.intercept else None
        return cls(Products((*columns, response_bound), corner, 2 ** (share_bits(n) // 2)))

    @property
    def _free(self) -> int:
        """q: entries that are not constant."""
        return len(self.statistic.divisors) - (self.statistic.corner is not None)

    @cached_property
    def entries(self) -> int:
        return len(self.statistic.places[0])

    @property
    def most_moved(self) -> int:
        return self.entries

    @property
    def largest(self) -> int:
        return self.statistic.steps**2

    @property
    def unit(self) -> Fraction:
        return Fraction(1, self.statistic.steps**2)

    def reach(self, law: str) -> int:
        q, square = self._free, self.statistic.steps**2
        if law == "gaussian":
            return len(self.statistic.divisors) ** 2 * square**2
        most = Fraction(q * (q + 1), 2) if self.statistic.corner is None else Fraction(q * (q + 2) ** 2, 2 * (q + 1))
        return math.ceil(most * square)

    def whole(self, summary: Any) -> tuple[int, ...]:
        """The exact sums, in steps."""
        return tuple(int(value) for value in summary.records.sum(self.statistic))

    def matrices(self, sums: Array, n: int) -> Array:
        """(p, p, …): symmetric matrices of sums in units of 1, the corner put back, the intercept first; one for each
        row of sums. Data sets run along memory, so that elimination is a few long operations."""
        size, (rows, columns), moved = len(self.statistic.divisors), self._ordered_places, np.moveaxis(sums, -1, 0)
        found = np.empty((size, size, *sums.shape[:-1]))
        found[rows, columns] = found[columns, rows] = moved
        if self.statistic.corner is not None:
            found[0, 0] = n
        return found

    def entries_of(self, matrices: Array) -> Array:
        """The inverse of `matrices`."""
        return np.moveaxis(matrices[self._ordered_places], 0, -1)

    @cached_property
    def _ordered_places(self) -> tuple[Any, Any]:
        """Where the published entries stand in `matrices`."""
        back = np.argsort(self.order)
        rows, columns = self.statistic.places
        return back[rows], back[columns]

    @property
    def order(self) -> list[int]:
        """The intercept first, the columns, the response last."""
        corner, size = self.statistic.corner, len(self.statistic.divisors)
        return list(range(size)) if corner is None else [corner, *(j for j in range(size) if j != corner)]
