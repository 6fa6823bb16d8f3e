"""The temperature: how far the scores are drawn back to the level, from one noisy sum of derivatives.

    u(t) = level + t·(slopes' part + shift),      t >= 0

t = 0 is the published level alone, t = 1 what the steps found. The shift is what the steps added to the level's scores. If scales are left
out, columns are not centered either: the mean row, many times longer than what tells records apart, makes the scores' mean large, and
intercepts follow too slowly through their noise. The means of all columns would drown, but of two classes the mean score is one
number. It is measured after the steps, with their intercept, and the shift brings it to 0. In plans without a stated caution, the first ones, the intercepts are those of the
steps at every t.

A record's loss is convex in t, so its derivative increases with t, and still does after it was cut to [-B, B]: the zero of the sum is
the minimum of a convex loss. Five temperatures are asked at once. What is published is the derivative at t = 0 and the increases from each temperature to the next (proof.md). So the first
derivative, which decides between the level and the slopes, has the noise of two sums and not of five.

**Which temperatures.** The loss is nearly a parabola while scores scatter by less than 1. The smallest t above 0 brings the
published standard deviation of scores to a half, or is a half; the others go up to 1.5, or to 1 for counts and numbers, in equal ratios.

**Which t.** The published derivatives are made increasing. The zero of the line through them, raised by one standard deviation of the
noise, is t: 0 if the raised derivative at 0 is positive, because the noise then exceeds the signal.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from onedraw.arrays import Array

from .coordinates import Coordinates, Problem
from .sizes import FIRST_SPREAD, MAX_TEMPERATURE, TEMPERATURES, Kind

MIN_DEVIATION = 1e-9
"""Scores that scatter by less are taken to scatter by this."""

FIRST_CAUTION = 0.25
"""Deviations of the noise that derivatives are raised by in plans that state none."""


class Line(NamedTuple):
    """Intercepts at a temperature of 0, and what each unit of temperature adds to them."""

    level: Array
    shift: Array


def line_of(problem: Problem, level: Array, intercepts: Array, center: Array | None, deviation: float) -> Line:
    """Return the line that published numbers give.

    A published mean score is shrunk by its noise. Its own standard deviation is 1 in units of the scores' where columns are as
    far from the middle of their bounds as they scatter, or as large as what was published beyond the noise.
    """
    if not problem.sizes.caution:
        return Line(intercepts, np.zeros_like(intercepts))
    if center is None:
        return Line(level, intercepts - level)
    noise = problem.sizes.center_noise / problem.n
    signal = max(1.0, float(center[0]) ** 2 - noise**2)
    return Line(level, intercepts - level - center * deviation * signal / (signal + noise**2))


def score_deviation(where: Coordinates, slopes: Array) -> float:
    """Return the standard deviation of scores that published slopes and variances imply.

    For classes it is that of half the squared distance of scores from their mean, all classes alike. Weights by class shares would make it
    small, and cut the derivatives of rare classes, which biases the temperature upwards (fitted where constants marked P are, `sizes`).
    """
    if slopes.shape[1] == 1:
        squares = slopes[:, 0] ** 2
    else:
        squares = ((slopes - slopes.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / 2.0
    return max(math.sqrt(float(where.variance @ squares)), MIN_DEVIATION)


def temperatures_for(deviation: float, kind: Kind) -> Array:
    """Return 0 and the temperatures above it, for scores of this standard deviation."""
    first = min(FIRST_SPREAD, FIRST_SPREAD / deviation)
    return np.concatenate([[0.0], np.geomspace(first, MAX_TEMPERATURE[kind], TEMPERATURES - 1)])


def choose_temperature(temperatures: Array, published: Array, caution: float) -> float:
    """Return t, from the published derivative at the first temperature and its increases, raised by `caution`."""
    raised = _pool_neighbors(np.cumsum(published)) + caution
    if not raised[0] < 0.0:
        return 0.0
    if raised[-1] <= 0.0:
        return float(temperatures[-1])
    after = int(np.argmax(raised > 0.0))
    before = after - 1
    share = -raised[before] / (raised[after] - raised[before])
    return float(temperatures[before] + share * (temperatures[after] - temperatures[before]))


def _pool_neighbors(values: Array) -> Array:
    """Return the nearest increasing sequence, by pooling neighbors that decrease; the first value stays as it is.

    The first has less noise than the others, and decides whether there is any temperature but 0.
    """
    pools: list[tuple[float, int]] = []
    for value in np.maximum(values[1:], values[0]).tolist():
        pools.append((value, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (first, size), (second, more) = pools[-2:]
            pools[-2:] = [((first * size + second * more) / (size + more), size + more)]
    return np.array([values[0], *(value for value, size in pools for _ in range(size))])
