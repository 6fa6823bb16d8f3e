"""The coordinates that published moments will give, as expected before a record is read.

A stage one shortens rows to R, so that it sees columns of variance λ as if theirs were λ·min(1, R²/E‖row‖²), and stretches a
direction by w = g/√(what it saw), at most g/√floor (`models.fit_published`). Rows are then about √Σλw² long, and where that is
beyond r they count less. Responses that are numbers are read in units of the residual it sees, which its noise may make much
smaller or larger. Designs are those of equally correlated columns: one common direction and the rest, all alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.models.sums.noise_law import matrix_deviation

Array = NDArray[np.float64]

KEPT = 0.9
"""The average Mallows weight of rows that are typically as long as r."""

NODES, MASSES = (-math.sqrt(3.0), 0.0, math.sqrt(3.0)), (1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0)
"""A normal law by its first five moments."""

PRECISE = 0.05
"""Relative deviation of a residual variance below which it is taken for known."""


@dataclass(frozen=True, eq=False)
class Directions:
    """The common one, those across it, and the intercept's: variance, how many there are, and the w² they are stretched by."""

    variance: Array
    count: Array
    stretched: Array
    kept: float
    """The average weight of a row."""
    units: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    """(probability, unit of the response): one, or several where its measurement is noisy."""

    @classmethod
    def expected(
        cls, problem: Any, *, effect: float, noise: float, filled: float = 1.0, correlation: float = 0.0
    ) -> Directions:
        """For columns that fill this share of their ranges; ``effect`` and ``noise`` are in the response's own unit.

        ``problem`` is that of a fit or of a draw in measured coordinates."""
        layout, how, numbers, d = problem.layout, problem.measuring, problem.numbers, problem.layout.columns
        spread = filled**2 / (3.0 if layout.ball is None else d)
        variance = spread * np.array([1.0 + (d - 1) * correlation, 1.0 - correlation])
        count, raised, stretch, seen, size = np.array([1.0, d - 1.0]), np.ones(2), 1.0, 1.0, float(d)
        if numbers["moments_noise"]:
            response = (effect**2 + noise**2) / problem.response_scale**2 if how.response else 0.0
            seen = min(1.0, numbers["moment_radius"] ** 2 / (d * spread + response))
            raised = np.maximum(seen * variance, how.floor)
            size = float(count @ (seen * variance / raised))
            stretch = how.stretch(layout, size) if numbers["row_bound"] else 1.0
        units = (
            _units(problem, seen, size, float(count @ (1.0 / raised)), effect, noise)
            if how.response
            else ((1.0, problem.response_scale),)
        )
        variance, count = np.append(variance, 1.0), np.append(count, float(layout.intercept))
        stretched = stretch**2 / np.append(raised, 1.0)
        row = numbers["row_bound"]
        kept = KEPT * min(1.0, row**2 / float(count @ (variance * stretched))) if row else 1.0
        return cls(variance, count, stretched, kept, units)


def _units(
    problem: Any, seen: float, size: float, inverse: float, effect: float, noise: float
) -> tuple[tuple[float, float], ...]:
    """What the residual deviation will be taken for: Var y less what the columns explain of it, each with its noise and cut as
    `fit_published.coordinates` cuts it. ``inverse`` is the trace of W²."""
    how, scale = problem.measuring, problem.response_scale
    if not problem.numbers["moments_noise"]:
        return ((1.0, how.unmeasured_unit * scale),)
    explained, left = seen * (effect / scale) ** 2, seen * (noise / scale) ** 2
    entry = (
        matrix_deviation(problem.numbers["moments_noise"], problem.moment_columns.count, pure=problem.pure) / problem.n
    )
    spread = entry * math.sqrt(1.0 + 2.0 * explained * inverse / problem.layout.columns)
    middle = left - 0.5 * inverse * entry**2
    least = max(how.least_residual * max(explained + left, how.floor), how.floor**2)
    nodes = zip(MASSES, NODES, strict=True) if spread > PRECISE * left else ((1.0, 0.0),)
    return tuple(
        (mass, scale * how.unit(problem.layout, size, max(middle + node * spread, least))) for mass, node in nodes
    )
