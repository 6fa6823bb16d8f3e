"""The recursion: full-batch steps on noisy sums of clipped gradients, and the average of the last iterates.

    W ← W - (τ/T)·(gradient + noise)/(n·C)                     slopes, from 0
    b ← b - (τ₀/T)·(shortened residuals + noise)/(n·unit)       intercepts, from the level

Clipping a record's row would move the intercepts if they were part of it, so they have a gradient of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onedraw.arrays import Array

from .coordinates import Problem
from .sizes import AVERAGED, INTERCEPT_TIME, MAX_INTERCEPT_TIME

FARTHEST = 2.0**40
"""Coefficients are kept within this, far beyond any that mean something, so that scores are numbers."""

Gradient = Callable[[Array, Array], tuple[Array, Array]]
"""(slopes, intercepts) → the noisy sums of clipped gradients and of shortened residuals."""


@dataclass(frozen=True, eq=False)
class Path:
    """The averages of the last iterates: slopes (columns, outputs) and intercepts."""

    slopes: Array
    intercepts: Array


def descend(problem: Problem, level: Array, unit: float, gradient: Gradient) -> Path:
    """Return where the steps lead from the level, on average over the last of them."""
    sizes, n, count = problem.sizes, problem.n, problem.sizes.count
    pace, intercept_pace = sizes.time / count, intercept_time(problem, unit) / count
    slopes, intercepts = np.zeros((problem.layout.columns, problem.response.outputs)), level
    averages, averaged = (np.zeros_like(slopes), np.zeros_like(level)), 0
    for number in range(count):
        of_slopes, of_intercepts = gradient(slopes, intercepts)
        slopes = _within(slopes - pace * of_slopes / (n * sizes.slope_bound))
        intercepts = _within(intercepts - intercept_pace * of_intercepts / (n * unit))
        if number >= count - max(1, round(AVERAGED * count)):
            averages, averaged = (averages[0] + slopes, averages[1] + intercepts), averaged + 1
    return Path(averages[0] / averaged, averages[1] / averaged)


def intercept_time(problem: Problem, unit: float) -> float:
    """Return τ₀, by the noise of the intercepts' gradient over the unit of residuals."""
    noise = problem.sizes.intercept_noise / (unit * math.sqrt(problem.sizes.count))
    return min(MAX_INTERCEPT_TIME[problem.response.kind], INTERCEPT_TIME * problem.n / noise)


def _within(values: Array) -> Array:
    return np.asarray(values * min(1.0, FARTHEST / max(float(np.linalg.norm(values)), 1e-300)))
