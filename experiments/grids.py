"""All of a posterior of two parameters, on a grid: expectations over *exact* draws, for studies. Never private.

    thetas, masses = exact_posterior(target, box)     # points (k, 2) and their probabilities

A target is what a plan makes of records, `plan.target(model.summarise((X, y)))`: the very posterior of a release.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import interpolate, special

from experiments.potentials import Array, log_density

COARSE, FINE, DENSE = 32, 48, 384
"""Points along each side of a grid: while it is moved to the posterior's mass, at the end, and between those by a spline of the
log density, because the logarithm of an error has a pole that 48 points would not resolve."""

NEGLIGIBLE = 20.0
"""Log density below the largest that is left out."""


def exact_posterior(target: Any, box: Any, *, coordinates: Any = ((1.0, 0.0), (0.0, 1.0))) -> tuple[Array, Array]:
    """Points (k, 2) that cover a posterior of two parameters, and their probabilities.

    θ = coordinates·u with u in the ``box`` ((low, high), (low, high)), which must hold the posterior; in coordinates that are nearly
    independent the grid is small. It is narrowed to where the density matters, until that is all of it.
    """
    matrix, box = np.asarray(coordinates), np.asarray(box, dtype=np.float64)
    for _ in range(8):
        narrowed = _narrowed(box, log_density(target, grid_points(box, COARSE) @ matrix.T).reshape(COARSE, COARSE))
        done = np.prod(np.diff(narrowed, axis=1)) > 0.7 * np.prod(np.diff(box, axis=1))
        box = narrowed
        if done:
            break
    knots, between = ([np.linspace(low, high, points) for low, high in box] for points in (FINE, DENSE))
    logs = log_density(target, grid_points(box, FINE) @ matrix.T).reshape(FINE, FINE)
    smooth = interpolate.RectBivariateSpline(*knots, logs, s=0)(*between)
    return grid_points(box, DENSE) @ matrix.T, special.softmax(smooth.ravel())


def _narrowed(box: Array, logs: Array) -> Array:
    """The box of the points that matter, a step wider on each side."""
    kept = [np.flatnonzero((logs > logs.max() - NEGLIGIBLE).any(axis=1 - axis)) for axis in (0, 1)]
    steps = np.diff(box, axis=1)[:, 0] / (COARSE - 1)
    ends = [(max(indices[0] - 1, 0), min(indices[-1] + 1, COARSE - 1)) for indices in kept]
    return box[:, :1] + steps[:, None] * np.array(ends)


def grid_points(box: Array, points: int) -> Array:
    """(points², 2), the second coordinate running fastest."""
    axes = [np.linspace(low, high, points) for low, high in box]
    return np.column_stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")])
