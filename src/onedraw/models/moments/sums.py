"""What moments ask of the records, each a sum of whole numbers (`exact_sums`): the only way they are read.

| statistic | a record's share | its norm, in steps |
| --- | --- | --- |
| ColumnSums | v, and the response | the box |
| SecondMoments | x̄x̄ᵀ, x̄ the row about m, shortened to R | R² (Frobenius) |
| PowerSums | v, and v² of columns in [−1, 1] | the parabola (mechanisms/moments.md) |
| StandardMoments | z̄z̄ᵀ, z̄ the row about m in units of its deviations, to a power, shortened to R | R² (Frobenius) |

Vectors are cut towards zero onto their lattice, which never lengthens them, *before* the product: a share is exactly
kkᵀ for a whole-number vector k of bounded norm, so the bound on its Frobenius norm is exact, and two such shares differ
by at most √2 times it. How fine the lattice is: `sum_lattice`. Matrices come as their lower triangles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.models.compute import jnp
from onedraw.models.sums.exact_sums import Compiled

from .measured import Layout, cut


def gram(rows: Any, weight: Any, steps: Any) -> Any:
    """The lower triangle of Σ kkᵀ, k the rows cut towards zero onto multiples of 1/steps."""
    whole = jnp.trunc(rows * steps) * weight[:, None]
    down, across = np.tril_indices(rows.shape[1])
    return (whole.T @ whole)[down, across]


@dataclass(frozen=True)
class ColumnSums(Compiled):
    """Σ v, and with ``response`` Σ y of responses in [−1, 1]; in steps of 1/steps."""

    layout: Layout
    response: bool

    def bound(self, steps: Any) -> float:
        return float(steps)

    def block(self, X: Any, y: Any, weight: Any, steps: Any) -> Any:
        rows = with_response(self.layout.rows(X), y, self.response)
        return (jnp.trunc(rows * steps) * weight[:, None]).sum(axis=0)


@dataclass(frozen=True)
class SecondMoments(Compiled):
    """Σ x̄x̄ᵀ about a mean, rows shortened to ``radius``."""

    layout: Layout
    response: bool

    def bound(self, steps: Any, mean: Any, radius: Any) -> float:
        return float((radius * steps) ** 2)

    def block(self, X: Any, y: Any, weight: Any, steps: Any, mean: Any, radius: Any) -> Any:
        rows = with_response(self.layout.rows(X), y, self.response) - mean
        return gram(cut(rows, radius), weight, steps)


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
        return gram(cut(rows, radius), weight, steps)


def with_response(rows: Any, y: Any, response: bool) -> Any:
    return jnp.concatenate([rows, jnp.clip(y, -1.0, 1.0)[:, None]], axis=1) if response else rows
