"""∫(p − e^ε q)₊ over cells: what an event chosen against ε gains, in three readings.

By cells, from the two masses of each: a lower bound, because merging outcomes hides information. By nodes: the best
estimate. And what cells may hide: only those count through which the level log p/q = ε passes, and halving them makes
them small. The other half of the file is the same thing seen as a test: Neyman and Pearson's curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onedraw.audit.quadrature import Cells, Normalised, splittable

Array = NDArray[np.float64]

_REFINEMENT = {1: 60_000, 2: 200_000}
"""Evaluations of the densities spent on one ε and one direction, by dimension."""


class Sum(NamedTuple):
    """Parts of a hockey-stick integral: by cells (low), by nodes, what cells may hide, and errors of masses."""

    by_cells: float = 0.0
    by_nodes: float = 0.0
    hidden: float = 0.0
    error: float = 0.0

    def plus(self, other: Sum) -> Sum:
        return Sum(*(one + another for one, another in zip(self, other, strict=True)))

    def bracket(self, normaliser_error: float) -> tuple[float, float, float]:
        error = self.error + normaliser_error + 2.0**-48
        low, high = max(0.0, self.by_cells - error), min(1.0, self.by_cells + self.hidden + error)
        return low, min(max(self.by_nodes, low), high), high


@dataclass(frozen=True, eq=False)
class Masses:
    """The two masses of each cell: all that matters of a cell that the level ε does not pass through."""

    first: Array
    second: Array
    low: Array
    high: Array
    first_error: Array
    second_error: Array

    @classmethod
    def of(cls, cells: Cells) -> Masses:
        first, second = cells.first.sum(axis=1), cells.second.sum(axis=1)
        return cls(first, second, cells.low, cells.high, cells.first_error, cells.second_error)

    def reversed(self) -> Masses:
        return Masses(self.second, self.first, -self.high, -self.low, self.second_error, self.first_error)

    def settled(self, epsilon: float, crossing: NDArray[np.bool_]) -> Sum:
        """∫(p − e^ε q)₊ over the cells that lie wholly above the level."""
        scale = math.exp(min(epsilon, 700.0))
        above = (self.low >= epsilon) & ~crossing
        excess = float(np.sum(np.maximum(self.first[above] - scale * self.second[above], 0.0)))
        scaled = np.minimum(scale * self.second_error[above], self.first[above] + self.first_error[above])
        return Sum(excess, excess, 0.0, float(np.sum(self.first_error[above] + scaled)))


def directed(cells: Cells, sign: float) -> Cells:
    """The cells as seen from D (+1) or from D' (−1)."""
    if sign > 0.0:
        return cells
    return replace(
        cells, first=cells.second, second=cells.first, ratio=-cells.ratio, low=-cells.high, high=-cells.low,
        first_error=cells.second_error, second_error=cells.first_error,
    )  # fmt: skip


def hockey_stick(cells: Cells, epsilon: float) -> Sum:
    """∫(p − e^ε q)₊ over these cells. p − e^ε q is written −p·expm1(ε − log p/q), which keeps its digits."""
    if len(cells) == 0:
        return Sum()
    with np.errstate(over="ignore", invalid="ignore"):
        excess = np.where(cells.first > 0.0, -cells.first * np.expm1(epsilon - cells.ratio), -math.inf)
        lost = math.exp(min(epsilon, 700.0)) * cells.second
        excess = np.where(np.isnan(excess) | ~np.isfinite(excess), np.where(cells.second > 0.0, -lost, 0.0), excess)
    whole = excess.sum(axis=1)
    positive_cells = whole > 0.0
    mass = cells.first.sum(axis=1)
    scaled = np.minimum(math.exp(min(epsilon, 700.0)) * cells.second_error, mass + cells.first_error)
    # a cell that is thrown away may still hide what its error allows
    uncertain = positive_cells | (cells.high > epsilon)
    error = float(np.sum((cells.first_error + scaled)[uncertain]))
    above, below = np.maximum(excess, 0.0).sum(axis=1), np.maximum(-excess, 0.0).sum(axis=1)
    # what merging a cell hides is the lesser of its parts; the nodes show it, up to what lies between them
    hidden = np.minimum(_gap(cells, epsilon), 2.0 * np.minimum(above, below) + 0.02 * _gap(cells, epsilon))
    return Sum(float(whole[positive_cells].sum()), float(above.sum()), float(hidden.sum()), error)


def _gap(cells: Cells, epsilon: float) -> Array:
    """How much a cell's own positive part can exceed that of its masses: nothing unless the level passes through it."""
    with np.errstate(over="ignore", invalid="ignore"):
        above = cells.first.sum(axis=1) * -np.expm1(np.minimum(epsilon - cells.high, 0.0))
        scaled = math.exp(min(epsilon, 700.0)) * cells.second.sum(axis=1)
        below = scaled * -np.expm1(np.minimum(cells.low - epsilon, 0.0))
    crossing = (cells.low < epsilon) & (cells.high > epsilon)
    return np.where(crossing, np.minimum(np.nan_to_num(above), np.nan_to_num(below)), 0.0)


def refined(normalised: Normalised, cells: Cells, epsilon: float, *, sign: float, tolerance: float) -> Sum:
    """Halve the cells the level ε passes through until they matter no more."""
    budget = _REFINEMENT[normalised.dimension]
    total = Sum()
    for _ in range(60):
        seen = directed(cells, sign)
        crossing = (seen.low < epsilon) & (seen.high > epsilon) & (_gap(seen, epsilon) > 0.0)
        total = total.plus(hockey_stick(seen.take(~crossing), epsilon))
        cells = cells.take(crossing)
        gaps = _gap(directed(cells, sign), epsilon)
        budget -= 2 * cells.first.size
        if len(cells) == 0 or budget < 0 or gaps.sum() < tolerance / 4.0 or not np.any(splittable(cells)):
            break
        small = (gaps < tolerance / (8.0 * len(cells))) | ~splittable(cells)
        total = total.plus(hockey_stick(directed(cells.take(small), sign), epsilon))
        cells = normalised.split(cells.take(~small))
    return total.plus(hockey_stick(directed(cells, sign), epsilon))


def neyman_pearson(cells: Cells) -> tuple[Array, Array]:
    """Type I errors under the first law and the least type II errors under the second, at the corners of the curve."""
    first, second, ratio = cells.first.ravel(), cells.second.ravel(), cells.ratio.ravel()
    known = ~np.isnan(ratio) & ((first > 0.0) | (second > 0.0))
    order = np.argsort(ratio[known], kind="stable")
    alpha = np.concatenate([[0.0], np.cumsum(first[known][order])])
    beta = np.concatenate([[1.0], 1.0 - np.cumsum(second[known][order])])
    alpha, beta = np.clip(alpha / alpha[-1], 0.0, 1.0), np.clip(beta, 0.0, 1.0)
    beta[-1] = 0.0
    last = np.append(np.diff(alpha) > 0.0, True)  # of several points at one α the last is the lowest
    return alpha[last], beta[last]
