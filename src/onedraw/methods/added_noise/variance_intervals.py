"""Intervals of a variance from squares about a released mean: a near part, a far part and fourth powers, with noise.

z is a record's square about the center, as a part of the largest one. Published are E near and E far, up to noise and
sampling; near = min(8z, 1), far the rest. Of all distributions with the same two means the most variable one has three
values of z, 0, 1/8 and 1, because both parts are linear between them and every convex function of z is largest there. So
each variance comes with a distribution that the published numbers are tested against:

| end | statistic | distribution of a candidate v |
| --- | --- | --- |
| upper | the whole square | near as published; the rest of v is far: a binomial number of records at the very end |
| lower | near/8 + w·7/8·far, w in [0, 1] | nothing far; with w > ½ also near as published |

A lower end does not need what lies far: w weighs its noise against what is lost without it, by a public rule (`weight_for`).
The released fourth powers bound what the near part contributes to the sampling error. The noise has its own law, and the
noise in the mean, which adds its square, is taken off on average and counted as a normal error beside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.methods.added_noise.intervals import edgeworth
from onedraw.methods.noise_law import NoiseLaw
from onedraw.models.conjugate.family import binomial
from onedraw.models.tables.centered_squares import NEAR, Squares, square_noise
from onedraw.models.tables.table import STEPS
from onedraw.plans import Plan
from onedraw.privacy.numbers import crossing

WEIGHTS = np.linspace(0.0, 1.0, 9)
"""Weights of the far part that a lower end may use."""

TAIL = 0.25
"""The part of a variance that the rule for the weight supposes to be far."""

ERRORS = 2.0
"""Standard errors that the rule weighs against it."""

MEAN_ERROR = math.sqrt(20.0)
"""The standard deviation of a squared Laplace variate of scale 1."""

SMALLEST = 1e-12
"""Relative precision of an end, as a part of the largest square."""


def variance_interval(plan: Plan, stages: Mapping[str, Any], level: float) -> tuple[Array, Array, Array, Array]:
    """Return low, high, and standard errors from sampling and from noise, one of each for every group."""
    law = NoiseLaw("laplace", plan.parameters["squares_scale"], True)
    rows = [_SquareTest(group, law).interval(level) for group in plan.mechanism.squares(plan, stages)]
    low, high, sampling, privacy = (plan.model.width**2 * np.array(column) for column in zip(*rows, strict=True))
    shown = plan.mechanism.estimate(plan, stages)
    return np.minimum(low, shown), np.maximum(high, shown), sampling, privacy


@dataclass(frozen=True)
class _SquareTest:
    """Tests of mean squares against what was published of one group."""

    group: Squares
    law: NoiseLaw

    def interval(self, level: float) -> tuple[float, float, float, float]:
        tail = (1.0 - level) / 2.0
        low = self._end(lambda v: self.lower_chance(v, level) - tail)
        high = self._end(lambda v: tail - self.upper_chance(v))
        group, z = self.group, min(max(self.group.square, 0.0), 1.0)
        fourth = NEAR**2 * min(max(group.fourth, 0.0), 1.0) + (1.0 - NEAR**2) * min(max(group.far, 0.0), 1.0)
        sampling = group.farthest * math.sqrt(max(fourth - z * z, 0.0) / group.records)
        noise = self.law.deviation(self._factors(square_noise(1.0)))
        of_count = z * group.count_error
        privacy = group.farthest * math.hypot(noise, MEAN_ERROR * group.mean_scale**2 / group.farthest, of_count)
        return group.variance(low, least=True), group.variance(high), sampling, privacy

    def upper_chance(self, square: float) -> float:
        """Return the probability of a whole square as small as the published one, or smaller."""
        published = max(self.group.square, 0.0)
        return self._chance(square, self._published_near(square), 1.0, published, below=True)

    def lower_chance(self, square: float, level: float) -> float:
        """Return the probability of a statistic as large as the published one, or larger."""
        weight, group = self.weight_for(square), self.group
        published = min(NEAR * group.near + weight * (1.0 - NEAR) * group.far, 1.0)
        published -= NEAR * edgeworth(level, group.records) * (1.0 - min(square / NEAR, 1.0))
        nothing_far = self._chance(square, min(square / NEAR, 1.0), weight, published)
        if weight <= 0.5:
            return nothing_far
        return max(nothing_far, self._chance(square, self._published_near(square), weight, published))

    def weight_for(self, square: float) -> float:
        """Return the far part's weight in a lower end that may be this: the one with the smallest expected loss."""
        n = self.group.records
        near = max(NEAR * square - square**2, 0.0) / n
        noise = [self.law.deviation(self._factors(square_noise(weight))) ** 2 for weight in WEIGHTS]
        errors = np.sqrt(near + WEIGHTS**2 * TAIL * square / n + np.array(noise))
        return float(WEIGHTS[np.argmin(ERRORS * errors + (1.0 - WEIGHTS) * TAIL * square)])

    def _published_near(self, square: float) -> float:
        """The near part as published, within what a mean square allows."""
        return min(max(self.group.near, square), 1.0, square / NEAR)

    def _chance(self, square: float, near: float, weight: float, published: float, *, below: bool = False) -> float:
        """The probability that near/8 + weight·7/8·far is at least (or at most) ``published``, under three values of z."""
        group, n = self.group, self.group.records
        far = min(max((square - NEAR * near) / (1.0 - NEAR), 0.0), near)
        rest = (near - far) / (1.0 - far) if far < 1.0 else 0.0
        fourth = (max(group.fourth, 0.0) + 1.0 / n - far) / (1.0 - far) if far < 1.0 else 0.0
        spread = min(rest, max(fourth, rest**2)) - rest**2
        counts, masses = binomial(int(n), far) if far > 0.0 else (np.zeros(1), np.ones(1))
        means = (counts * (NEAR + weight * (1.0 - NEAR)) + (n - counts) * NEAR * rest) / n
        of_mean = MEAN_ERROR * group.mean_scale**2 / group.farthest
        of_count = published * group.count_error
        error = math.hypot(NEAR * math.sqrt(max(spread, 0.0) * (1.0 - far) / n), of_mean, of_count)
        apart = means - published if below else published - means
        return float(masses @ self.law.beyond(apart, self._factors(square_noise(weight)), error))

    def _factors(self, parts: tuple[float, float]) -> list[float]:
        """What one step of each noise contributes to a mean."""
        return [part / (self.group.records * STEPS) for part in parts]

    def _end(self, rising: Any) -> float:
        """Where in [0, 1] a function begins to be positive."""
        if rising(0.0) >= 0.0:
            return 0.0
        if rising(1.0) <= 0.0:
            return 1.0
        return crossing(rising, 0.0, 1.0, precision=SMALLEST)
