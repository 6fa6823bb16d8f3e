"""What a fit publishes, and the coordinates that follow from it: all post-processing, the same for whoever holds it.

Five parts, each absent where its stage did not run: the columns' mean, their second moments about it, the mode with its
noise, the information and the variability at it. From the first two follow the coordinates in which the others are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.models.moments.measured import Layout, whitening
from onedraw.models.moments.stage import MomentColumns

Array = NDArray[np.float64]

PARTS = ("mean", "moments", "mode", "information", "variability")


@dataclass(frozen=True, eq=False)
class Published:
    """The numbers as they leave; matrices as lower triangles, row by row."""

    mode: Array
    mean: Array | None = None
    moments: Array | None = None
    information: Array | None = None
    variability: Array | None = None

    def to_dict(self) -> dict[str, list[float]]:
        found = {name: getattr(self, name) for name in PARTS}
        return {name: value.tolist() for name, value in found.items() if value is not None}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Published:
        return cls(**{name: np.asarray(value, dtype=np.float64) for name, value in stored.items()})


@dataclass(frozen=True, eq=False)
class Coordinates:
    """z = stretch·(W(v − m), 1) for rows, (y − centre)/unit for responses in [−1, 1]."""

    mean: Array
    root: Array
    stretch: float = 1.0
    centre: float = 0.0
    unit: float = 1.0

    @property
    def frame(self) -> Array:
        """How a response is read: its centre and unit (`fit_statistics.Measured`)."""
        return np.array([self.centre, self.unit])


@dataclass(frozen=True)
class Measuring:
    """How moments are read: the floor of their eigenvalues and how a residual deviation becomes a threshold."""

    floor: float
    row_bound: float
    response: bool
    unmeasured_unit: float
    threshold: float
    least_residual: float
    spare_threshold: float = 0.0
    """Of a fit that has accuracy to spare for being nearer to least squares: added to the threshold where no direction was flattened."""

    def stretch(self, layout: Layout, size: float) -> float:
        """The plan's r is for rows of squared norm d + 1. Where the floor flattened directions, rows are shorter, and are
        stretched until a typical one is as far inside r as the plan meant: the same noise then matters less. What
        r has to spare shrinks with them, since it was given for noise that matters little."""
        one, left = float(layout.intercept), directions(layout, size)
        growth = (self.row_bound**2 - one) / layout.columns
        if self.spare_threshold and growth > 1.0:
            growth = 1.0 + (growth - 1.0) * (left / layout.columns) ** 2
        return self.row_bound / math.sqrt(growth * left + one)

    def unit(self, layout: Layout, size: float, residual: float) -> float:
        """The threshold of a loss for responses with this residual variance."""
        spare = self.spare_threshold * (directions(layout, size) / layout.columns) ** 2
        return (self.threshold + spare) * math.sqrt(residual)


def directions(layout: Layout, size: float) -> float:
    """How many directions of the columns the floor left: at least one, at most all."""
    return min(max(size, 1.0), float(layout.columns))


def coordinates(
    layout: Layout, how: Measuring, n: int, published_mean: Array | None, moments: Array | None
) -> Coordinates:
    """Centre, scaling and unit from what was published; the declared columns where nothing was."""
    columns = layout.columns
    mean = MomentColumns(layout, how.response).centre(published_mean)
    if moments is None:
        return Coordinates(mean[:columns], np.eye(columns), unit=how.unmeasured_unit if how.response else 1.0)
    second = symmetric(moments, columns + how.response) / n
    root, size = whitening(second[:columns, :columns], how.floor)
    stretch = how.stretch(layout, size)
    if not how.response:
        return Coordinates(mean, root, stretch)
    across = root @ second[:columns, columns]
    total = max(float(second[columns, columns]), how.floor)
    residual = max(total - float(across @ across), how.least_residual * total, how.floor**2)
    return Coordinates(mean[:columns], root, stretch, float(mean[columns]), how.unit(layout, size, residual))


def symmetric(entries: Array, size: int) -> Array:
    """The matrix of a lower triangle, or the matrices of many."""
    matrix = np.zeros((*entries.shape[:-1], size, size))
    rows, columns = np.tril_indices(size)
    matrix[..., rows, columns] = entries
    matrix[..., columns, rows] = entries
    return matrix


def positive(matrix: Array) -> Array:
    """The nearest positive semidefinite matrix, or matrices."""
    values, axes = np.linalg.eigh(matrix)
    return np.asarray((axes * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(axes, -1, -2))
