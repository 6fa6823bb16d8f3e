"""Measured coordinates: rows of a regression moved to a published mean and scaled by published second moments.

    v   a record's columns: numbers in [−1, 1] by their public bounds, a category as 0/1 columns of norm at most 1
    z = g·(W(v − m), 1)      m, W, g public or published (mathematics-3 §1)
    a = min(1, r²/‖z‖²)      Mallows' weight: it depends on the row alone, so that a weighted fit stays consistent

Then ‖a·z‖ ≤ r and a‖z‖² ≤ r² for every record, whatever m, W and g are. `Layout` says which columns form a category and
whether there is an intercept; it is public and part of the plan. NumPy or JAX values alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.models.convex.losses import array_module

Array = NDArray[np.float64]

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

    @property
    def squared_spread(self) -> float:
        """The largest squared distance of two rows v: 2² for a number and for a ball, 2 for a category."""
        return 4.0 if self.ball is not None else 4.0 * self.numbers + 2.0 * len(self.categories)

    @property
    def width(self) -> int:
        """Entries of z."""
        return self.columns + self.intercept

    @property
    def numbers(self) -> int:
        """Columns that are numbers in [−1, 1]."""
        return self.columns - sum(stop - start for start, stop in self.categories)

    @property
    def number_places(self) -> NDArray[np.intp]:
        """Where those columns stand."""
        coded = np.zeros(self.columns, dtype=bool)
        for start, stop in self.categories:
            coded[start:stop] = True
        return np.flatnonzero(~coded)

    @property
    def scale(self) -> Array:
        """v = scale·x + shift for encoded columns x in [−1, 1]: ½ and ½ where a column is 0 or 1."""
        scale = np.ones(self.columns) / (self.ball or 1.0)
        for start, stop in self.categories:
            scale[start:stop] = 0.5
        return scale

    @property
    def shift(self) -> Array:
        return np.zeros(self.columns) if self.ball is not None else 1.0 - self.scale

    @property
    def middle(self) -> Array:
        """The public centre where none is measured: the middle of a range, equal shares of a category's levels."""
        middle = np.zeros(self.columns)
        for start, stop in self.categories:
            middle[start:stop] = 1.0 / (stop - start + 1)
        return middle if self.intercept else np.zeros(self.columns)

    def rows(self, X: Any) -> Any:
        """v of encoded rows: inside the box, each category's columns at least 0 and of norm at most 1."""
        xp = array_module(X)
        if self.ball is not None:
            return cut(X[:, : self.columns] * self.scale, 1.0)
        values = xp.clip(X[:, : self.columns], -1.0, 1.0) * self.scale + self.shift
        parts, last = [], 0
        for start, stop in self.categories:
            parts += [values[:, last:start], cut(values[:, start:stop], 1.0)]
            last = stop
        return xp.concatenate([*parts, values[:, last:]], axis=1) if parts else values

    def measured(self, X: Any, mean: Any, root: Any, stretch: Any) -> Any:
        """z of encoded rows."""
        xp = array_module(X)
        z = (self.rows(X) - mean) @ root
        return stretch * (xp.concatenate([z, xp.ones((z.shape[0], 1))], axis=1) if self.intercept else z)

    def encoded_coefficients(self, mean: Array, root: Array, stretch: float) -> Array:
        """The matrix that turns coefficients of z into those of encoded rows (x, 1): linear, and public."""
        change = np.zeros((self.width, self.width))
        slopes = self.scale[:, None] * root  # θᵀW(scale·x + shift − m)
        change[: self.columns, : self.columns] = slopes
        if self.intercept:
            change[self.columns, : self.columns] = (self.shift - mean) @ root
            change[self.columns, self.columns] = 1.0
        return stretch * change


def cut(rows: Any, radius: Any) -> Any:
    """Rows shortened to a norm of at most ``radius``; those inside stay as they are."""
    xp = array_module(rows)
    size = xp.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return rows * xp.where(size > radius, INSIDE * radius / xp.maximum(size, 1e-300), 1.0)


def mallows(z: Any, row_bound: Any) -> Any:
    """a(z) = min(1, r²/‖z‖²)."""
    xp = array_module(z)
    return xp.minimum(1.0, row_bound**2 / xp.maximum((z * z).sum(axis=1), 1e-300))


def whitening(moments: Array, floor: float) -> tuple[Array, float]:
    """(W, size): W = C^{−1/2}, the eigenvalues of C raised to at least ``floor``, since what noise alone could have made is
    not trusted; and the squared norm a row then has on average, the number of columns less those the floor flattened."""
    values, axes = np.linalg.eigh(0.5 * (moments + moments.T))
    raised = np.maximum(values, floor)
    return np.asarray((axes / np.sqrt(raised)) @ axes.T), float(np.sum(np.maximum(values, 0.0) / raised))
