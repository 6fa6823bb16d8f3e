"""Measured coordinates: rows of a regression moved to a published mean and scaled by published second moments.

    v   a record's columns: numbers in [−1, 1] by their public bounds, a category as 0/1 columns of norm at most 1
    z = g·(W(v − m), 1)      m, W, g public or published
    a = min(1, r²/‖z‖²)      Mallows' weight: it depends on the row alone, so that a weighted fit stays consistent

Then ‖a·z‖ ≤ r and a‖z‖² ≤ r² for every record, whatever m, W and g are. `Layout` says which columns form a category and
whether there is an intercept; it is public and part of the plan. NumPy or JAX values alike.

`MomentColumns` says which columns the moments are of, how far two rows can be apart, and where second moments are centred: stage
one of a fit and a release of its own (methods/fit/proof.md, methods/moments/proof.md), the mean over the box first, then second moments about it, of rows
shortened to a radius. What moments ask of the records are sums of whole numbers (`exact_sums`), the only way they are read:


| statistic | a record's share | its norm, in steps |
| --- | --- | --- |
| ColumnSums | v, and the response | the box |
| SecondMoments | x̄x̄ᵀ, x̄ the row about m, shortened to R | R² (Frobenius) |
| PowerSums | v, and v² of columns in [−1, 1] | the parabola (methods/moments/proof.md) |
| StandardMoments | z̄z̄ᵀ, z̄ the row about m in units of its deviations, to a power, shortened to R | R² (Frobenius) |

Vectors are cut towards zero onto their lattice, which never lengthens them, *before* the product: a share is exactly
kkᵀ for a whole-number vector k of bounded norm, so the bound on its Frobenius norm is exact, and two such shares differ
by at most √2 times it. How fine the lattice is: `exact_sums`. Matrices come as their lower triangles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.arrays import Array
from onedraw.errors import WrongCall
from onedraw.models.compute import jnp
from onedraw.models.convex.losses import array_module
from onedraw.models.sums.exact_sums import Compiled

INSIDE = 1.0 - 2.0**-40
"""Rows are cut to this share of their bound, so that rounding cannot carry them beyond it."""


@dataclass(frozen=True)
class Layout:
    """The columns of a row: how many, which of them form a category (start, stop), and whether a 1 follows them."""

    columns: int
    categories: tuple[tuple[int, int], ...] = ()
    intercept: bool = True
    ball: float | None = None
    """Where rows were declared by a norm instead of ranges: they are divided by it, and all columns lie in one unit ball."""

    width: int = field(init=False, repr=False, compare=False)
    """Entries of z."""
    numbers: int = field(init=False, repr=False, compare=False)
    """Columns that are numbers in [−1, 1]."""
    units: tuple[Array, Array] = field(init=False, repr=False, compare=False)
    """(scale, shift): v = scale·x + shift for encoded columns x in [−1, 1], ½ and ½ where a column is 0 or 1."""

    def __post_init__(self) -> None:
        scale, numbers, last = np.ones(self.columns) / (self.ball or 1.0), self.columns, 0
        for start, stop in self.categories:
            if not last <= start < stop <= self.columns:
                raise WrongCall("categories are (start, stop) of columns, in order and without overlap.")
            scale[start:stop], last = 0.5, stop
            numbers -= stop - start
        units = scale, np.zeros(self.columns) if self.ball is not None else 1.0 - scale
        for name, value in (("width", self.columns + self.intercept), ("numbers", numbers), ("units", units)):
            object.__setattr__(self, name, value)

    @property
    def number_places(self) -> NDArray[np.intp]:
        """Where those columns stand."""
        coded = np.zeros(self.columns, dtype=bool)
        for start, stop in self.categories:
            coded[start:stop] = True
        return np.flatnonzero(~coded)

    def rows(self, X: Any, y: Any = None) -> Any:
        """v of encoded rows: inside the box, each category's columns at least 0 and of norm at most 1; and last the response in
        [−1, 1] where one is given."""
        xp, (scale, shift), parts, last = array_module(X), self.units, [], 0
        if self.ball is not None:
            parts.append(cut(X[:, : self.columns] * scale, 1.0))
        else:
            values = xp.clip(X[:, : self.columns], -1.0, 1.0) * scale + shift
            for start, stop in self.categories:
                parts += [values[:, last:start], cut(values[:, start:stop], 1.0)]
                last = stop
            parts.append(values[:, last:])
        if y is not None:
            parts.append(xp.clip(y, -1.0, 1.0)[:, None])
        return xp.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]

    def measured(self, X: Any, mean: Any, root: Any, stretch: Any) -> Any:
        """z of encoded rows."""
        xp = array_module(X)
        z = (self.rows(X) - mean) @ root
        return stretch * (xp.concatenate([z, xp.ones((z.shape[0], 1))], axis=1) if self.intercept else z)

    def encoded_coefficients(self, mean: Array, root: Array, stretch: float) -> Array:
        """The matrix that turns coefficients of z into those of encoded rows (x, 1): linear, and public."""
        change, (scale, shift) = np.zeros((self.width, self.width)), self.units
        change[: self.columns, : self.columns] = scale[:, None] * root  # θᵀW(scale·x + shift − m)
        if self.intercept:
            change[self.columns, : self.columns] = (shift - mean) @ root
            change[self.columns, self.columns] = 1.0
        return stretch * change


def cut(rows: Any, radius: Any, axis: int = 1) -> Any:
    """Rows, or with ``axis`` 0 columns, shortened to a norm of at most ``radius``; those inside stay as they are."""
    xp = array_module(rows)
    size = xp.sqrt((rows * rows).sum(axis=axis, keepdims=True))
    return rows * xp.where(size > radius, INSIDE * radius / xp.maximum(size, 1e-300), 1.0)


def mallows(z: Any, row_bound: Any) -> Any:
    """a(z) = min(1, r²/‖z‖²)."""
    xp = array_module(z)
    return xp.minimum(1.0, row_bound**2 / xp.maximum((z * z).sum(axis=1), 1e-300))


# ── which moments ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class MomentColumns:
    """The columns of a layout, and last a response in [−1, 1] where it is measured with them."""

    layout: Layout
    response: bool = False

    count: int = field(init=False, repr=False, compare=False)
    numbers: int = field(init=False, repr=False, compare=False)
    """Columns in [−1, 1]; in a ball none is one by itself."""
    entries: int = field(init=False, repr=False, compare=False)
    """Numbers in the lower triangle of their second moments."""
    spread: float = field(init=False, repr=False, compare=False)
    """S: the largest distance of two rows, the response included; the mean's sensitivity. Squared, 2² for a number and for a
    ball, 2 for a category."""

    def __post_init__(self) -> None:
        layout, count = self.layout, self.layout.columns + self.response
        ball, numbers = layout.ball is not None, layout.numbers + self.response
        rows = 4.0 if ball else 4.0 * layout.numbers + 2.0 * len(layout.categories)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "numbers", 0 if ball else numbers)
        object.__setattr__(self, "entries", count * (count + 1) // 2)
        object.__setattr__(self, "spread", math.sqrt(rows + 4.0 * self.response))

    @property
    def powers(self) -> int:
        """Numbers in the sums of all columns and the squares of those in [−1, 1]."""
        return self.count + self.numbers

    def centre(self, published_mean: Array | None) -> Array:
        """The point that second moments are about: the published mean cut to where means can be, or where none is measured the
        public middle, that of a range and equal shares of a category's levels (0 without an intercept)."""
        middle, lower = np.zeros(self.count), -np.ones(self.count)
        for start, stop in self.layout.categories:
            middle[start:stop], lower[start:stop] = self.layout.intercept / (stop - start + 1), 0.0
        return middle if published_mean is None else np.clip(published_mean, lower, 1.0)


# ── sums over the records ────────────────────────────────────────────────────────────────────────────────────────────


def gram(columns: Any, steps: Any) -> Any:
    """The lower triangle of Σ kkᵀ, k the columns cut towards zero onto multiples of 1/steps."""
    whole = jnp.trunc(columns * steps)
    down, across = np.tril_indices(len(columns))
    return (whole @ whole.T)[down, across]


@dataclass(frozen=True)
class ColumnSums(Compiled):
    """Σ v, and with ``response`` Σ y of responses in [−1, 1]; in steps of 1/steps."""

    layout: Layout
    response: bool

    def bound(self, steps: Any) -> float:
        return float(steps)

    def block(self, X: Any, y: Any, weight: Any, steps: Any) -> Any:
        rows = self.layout.rows(X, y if self.response else None)
        return (jnp.trunc(rows * steps) * weight[:, None]).sum(axis=0)


@dataclass(frozen=True)
class SecondMoments(Compiled):
    """Σ x̄x̄ᵀ about a mean, rows shortened to ``radius``."""

    layout: Layout
    response: bool

    def bound(self, steps: Any, mean: Any, radius: Any) -> float:
        return float((radius * steps) ** 2)

    def block(self, X: Any, y: Any, weight: Any, steps: Any, mean: Any, radius: Any) -> Any:
        rows = self.layout.rows(X, y if self.response else None) - mean
        return gram(cut(rows, radius).T * weight, steps)


@dataclass(frozen=True)
class PowerSums(Compiled):
    """Σ v of all columns, then Σ v² of those that are numbers, both in steps of 1/steps².

    A number is rounded onto multiples of 1/steps before it is squared, so that (v, v²) lies on the parabola exactly; its ends
    ±1 are such multiples. A category's columns are cut towards zero, which keeps their norm at most 1."""

    layout: Layout

    def bound(self, steps: Any) -> float:
        return float(steps**2)

    def block(self, X: Any, y: Any, weight: Any, steps: Any) -> Any:
        fine, places = self.layout.rows(X) * steps, self.layout.number_places
        number = np.isin(np.arange(self.layout.columns), places)
        whole = jnp.where(number, jnp.rint(fine), jnp.trunc(fine)) * weight[:, None]
        squares = (whole[:, places] ** 2).sum(axis=0)
        return jnp.concatenate([whole.sum(axis=0).astype(jnp.int64) * jnp.int64(steps), squares.astype(jnp.int64)])


@dataclass(frozen=True)
class StandardMoments(Compiled):
    """Σ z̄z̄ᵀ, z = ((v − mean)·scale)^power shortened to ``radius``."""

    layout: Layout
    power: int = 1

    def bound(self, steps: Any, mean: Any, scale: Any, radius: Any) -> float:
        return float((radius * steps) ** 2)

    def block(self, X: Any, y: Any, weight: Any, steps: Any, mean: Any, scale: Any, radius: Any) -> Any:
        rows = ((self.layout.rows(X) - mean) * scale) ** self.power
        return gram(cut(rows, radius).T * weight, steps)
