"""Squares of a number's distance from a public center, in a near and a far part: what a variance is released from.

d is the distance of a record from the center c in lattice steps, R the largest there can be, z = (d/R)² in [0, 1].

| a record adds | which is | at most |
| --- | --- | --- |
| near | min(8z, 1) | 1 |
| far | (8z − 1)/7 if that is positive | 1 |
| fourth | near² | 1 |

So z = near/8 + 7/8·far, and d² = R²·z. Each part is a whole number of steps of 2^−30, and each of them grows with d: of
two records the farther one has no part that is smaller. Let one record be replaced, and a, b, q be the changes of the
three parts. They have one sign, and |a|, |b| ≤ 1. Published are near + 4·far, near − far and fourth/3:

    |a + 4b| + |a − b| + |q|/3 ≤ 5·max(|a|, |b|) + 1/3 ≤ 5 + 1/3      (L1)

(If |a| ≥ |b| the first two are 2|a| + 3|b|, otherwise 5|b|.) The sum of the two coordinates would be 2 if each had its
own noise; this basis gives the far part's noise two variates of 1/5 each, the near one's 1/5 and 4/5, and the whole square's
1/5 and 3/40 (`SQUARE`). A release of squares alone would have a single variate of 1/5 at the same noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.data.sums import Statistic
from onedraw.models.sums.clamped_sums import Summary, marks, real, unknown_codes

from .table import STEPS

NEAR = 1.0 / 8.0
"""Squares up to this part of the largest one are near."""

FAR_WEIGHT, FOURTH_PARTS = 4, 3
"""What the far part is multiplied by in the first sum, and what fourth powers are divided by."""

BLOCK = 3
REACH = (1 + FAR_WEIGHT) * STEPS + STEPS // FOURTH_PARTS + 1
"""How far one replaced record moves the three sums in L1, in steps."""

LARGEST = (1 + FAR_WEIGHT) * STEPS

CLEAR_MEAN = 0.1
"""The largest scale of the noise in a mean, the range being 1, for which squares are corrected by its average: a noisier
mean is cut off at the ends of the range, and its squares are larger by less."""

UNIT = 1.0 / (1 + FAR_WEIGHT)
NEAR_NOISE = (UNIT, FAR_WEIGHT * UNIT)
"""What the noises of the first two sums contribute to the near part, …"""
FAR_NOISE = (UNIT, -UNIT)
"""… and to the far one."""


def square_noise(weight: float) -> tuple[float, float]:
    """Return what the noises of the first two sums contribute to near/8 + weight·7/8·far."""
    first, second = (NEAR * near + weight * (1.0 - NEAR) * far for near, far in zip(NEAR_NOISE, FAR_NOISE, strict=True))
    return first, second


@dataclass(frozen=True)
class CenteredSquares(Statistic):
    """The three sums of each group, about centers that were published: a statistic of `onedraw.data.sums`."""

    table: Any
    columns: tuple[str, ...] = ()

    def bound(self, centers: Sequence[int]) -> float:
        return float(LARGEST)

    def of_block(self, *arguments: Any) -> Integers:
        *columns, weight, centers = arguments
        values, *codes = (real(column, weight) for column in columns)
        known = np.ones(len(values), dtype=bool)
        if self.table.skips:  # a record at its group's center adds nothing, and neither does one without a cell
            codes = [unknown_codes(one, len(levels)) for one, levels in zip(codes, self.table.groups, strict=True)]
            known = marks([np.asarray(values, dtype=np.float64), *codes])[0]
            values, codes = np.where(known, values, self.table.lower), [np.where(known, one, 0.0) for one in codes]
        group = self.table.cell(codes) if codes else np.zeros(len(values), dtype=np.int64)
        parts = square_parts(self.table.places(values), np.asarray(centers, dtype=np.float64)[group])
        sums = np.zeros((self.table.cells, BLOCK), dtype=np.int64)
        for column, part in enumerate(parts):
            np.add.at(sums[:, column], group, (part * known).astype(np.int64))
        return sums.reshape(-1)


def square_parts(places: Array, centers: Array) -> tuple[Array, Array, Array]:
    """Return near + 4·far, near − far and fourth/3 of each record, whole numbers of steps.

    Every operation is monotone in the distance, also as floating point rounds it.
    """
    ratio = np.abs(places - centers) / np.maximum(centers, STEPS - centers)
    scaled = ratio * ratio / NEAR
    near = np.rint(np.minimum(scaled, 1.0) * STEPS)
    far = np.rint(np.clip((scaled - 1.0) / (1.0 / NEAR - 1.0), 0.0, 1.0) * STEPS)
    fourth = np.rint(near * near / (STEPS * FOURTH_PARTS))
    return near + FAR_WEIGHT * far, near - far, fourth


@dataclass(frozen=True, repr=False)
class SummaryOfSquares(Summary):
    """n and the exact sums of a table of numbers, and how to read the records once more about published centers."""

    squares: Callable[[Sequence[int]], Integers]


class Squares(NamedTuple):
    """What was published of one group, per record, and the noise of its mean."""

    records: float
    farthest: float
    """The square of the farthest distance from the center, the range being 1."""
    near: float
    far: float
    fourth: float
    mean_scale: float
    """The scale of the noise in the mean, the range being 1."""
    count_error: float = 0.0
    """The deviation of the noise in the number of records, as a share of it."""

    @property
    def square(self) -> float:
        """The mean square about the center, as a part of the largest one."""
        return NEAR * self.near + (1.0 - NEAR) * self.far

    @property
    def excess(self) -> float:
        """By how much squares about a noisy mean are larger on average than about the mean, as a part of the largest."""
        return 2.0 * self.mean_scale**2 / self.farthest

    @property
    def correction(self) -> float:
        """The factor n/(n − 1)."""
        return self.records / max(self.records - 1.0, 1.0)

    def variance(self, square: float, *, least: bool = False) -> float:
        """Return the variance that belongs to a mean square, the range being 1; never more than a range allows.

        ``least`` takes off the excess of a very noisy mean too.
        """
        excess = self.excess if least or self.mean_scale <= CLEAR_MEAN else 0.0
        return min(max(self.farthest * (square - excess), 0.0), 0.25) * self.correction


def centers_of(first: Array, records: Array) -> list[int]:
    """Return each group's center, a whole step of its range, from the noisy sum of places in [−STEPS, STEPS]."""
    places = (first / np.maximum(records, 1.0) + STEPS) / 2.0
    return [int(place) for place in np.clip(np.rint(places), 0, STEPS)]


def squares_of(first: Array, sums: Array, records: Array, mean_scale: float, *, counted: bool = False) -> list[Squares]:
    """Return what was published of each group; ``mean_scale`` is the scale of the noise on a sum of places, and where they are
    ``counted`` on as many times a step's number of records."""
    found = []
    for center, row, size in zip(centers_of(first, records), sums, records, strict=True):
        n = max(float(size), 1.0)
        one, two, fourth = (float(value) / (n * STEPS) for value in row)
        near = sum(part * value for part, value in zip(NEAR_NOISE, (one, two), strict=True))
        far = sum(part * value for part, value in zip(FAR_NOISE, (one, two), strict=True))
        farthest = (max(center, STEPS - center) / STEPS) ** 2
        noise = mean_scale / (2.0 * n * STEPS)
        more = (
            math.hypot(1.0, 2.0 * center / STEPS - 1.0) if counted else 1.0
        )  # the mean is a quotient of two noisy sums
        error = math.sqrt(2.0) * 2.0 * noise if counted else 0.0
        found.append(Squares(n, farthest, near, far, FOURTH_PARTS * fourth, noise * more, error))
    return found


def square_error(mean_scale: float, square_scale: float, records: float) -> float:
    """Return the noise's standard error of a variance, the range being 1, for a mean half way from its middle to an end."""
    farthest, each = 0.75**2, 1.0 / (records * STEPS)
    noise = math.sqrt(2.0) * square_scale * each * math.hypot(*square_noise(1.0))
    return math.hypot(farthest * noise, math.sqrt(20.0) * (mean_scale * each / 2.0) ** 2)
