"""The coordinates of the steps, from published means and mean deviations. Everything here is post-processing.

    z_j = (v_j - m_j)/s_j

v are the columns of `Layout`: numbers in [-1, 1], a category's 0/1 columns, or rows of a unit ball. A category's scale needs no
measurement of its own: a 0/1 column of mean p has the variance p(1 - p).

A record's row is a vector of integers: z_j times a power of two, cut towards zero. For a category it has one of two values
in each column, for the record's level and for all others. So a category of many levels costs a record one look-up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onedraw.arrays import Array, Integers
from onedraw.methods.noisy_moments import known_records
from onedraw.models.moments.measured import Layout, MomentColumns
from onedraw.models.sums.exact_sums import share_bits

from .responses import Response
from .sizes import (
    LEAST_SPREAD,
    MEAN_NOISE_FACTOR,
    MIDDLE_SPREAD,
    PRIOR_MEAN,
    PRIOR_SPREAD,
    SPREAD_FACTOR,
    UNMEASURED_SCALE,
    ClippedNumbers,
    Setting,
    category_square,
)


class Lattice(NamedTuple):
    """Steps to a unit: of rows and of shortened residuals."""

    row: float
    residual: float


@dataclass(frozen=True)
class Problem:
    """All that is public before the records are read."""

    layout: Layout
    response: Response
    n: int
    sizes: ClippedNumbers
    records: int = 1
    """Of one person."""
    rows: int | None = None
    """The public number of records, where ``n`` is the noisy number of those with all cells: the others contribute nothing."""

    pure = False

    setting: Setting = field(init=False, repr=False, compare=False)
    places: NDArray[np.intp] = field(init=False, repr=False, compare=False)
    """Indices of the columns that are numbers."""

    def __post_init__(self) -> None:
        response, layout = self.response, self.layout
        setting = Setting(layout, response.kind, response.outputs, response.sensitivity, self.n, self.records)
        places = np.arange(layout.columns) if layout.ball is not None else layout.number_places
        object.__setattr__(self, "setting", setting)
        object.__setattr__(self, "places", places)

    @property
    def all_rows(self) -> int:
        """Return the public number of records, by which the lattice of sums is chosen."""
        return self.n if self.rows is None else self.rows

    def with_known(self, count: Array | None) -> Problem:
        """Return the problem about so many records as the published number of complete ones says; itself if all contribute."""
        if count is None or self.rows is not None:
            return self
        return replace(self, n=known_records(count, self.n, self.sizes.known_noise), rows=self.n)

    @property
    def lattice(self) -> Lattice:
        """Return the lattice on which a record's gradient takes at most 2^m steps, m = `share_bits`."""
        bits = share_bits(self.all_rows) - math.ceil(math.log2(self.sizes.slope_bound))
        return Lattice(2.0 ** (bits // 2), 2.0 ** (bits - bits // 2))

    @property
    def offsets(self) -> tuple[int, ...]:
        """Return where each category's codes begin: one for no level, then one for each level."""
        sizes = [stop - start + 1 for start, stop in self.layout.categories]
        return tuple(int(place) for place in np.cumsum([0, *sizes])[: len(sizes)])

    @property
    def codes(self) -> int:
        """Return how many codes there are."""
        return sum(stop - start + 1 for start, stop in self.layout.categories)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Centers and scales of columns, and the integers of categories."""

    center: Array
    scale: Array
    low: Integers
    """A column's integer for records that do not have its level; 0 for columns that are numbers."""
    high: Integers
    """That for records that have it."""
    squares: Array
    """For each code, the squared length of a row's part, rounded up."""
    variance: Array
    """Variance of each measured column, as far as it is known; 1 for numbers."""


def coordinates_of(problem: Problem, mean: Array | None, spread: Array | None) -> Coordinates:
    """Return the coordinates that published means and mean deviations give, or public ones if none were published."""
    layout = problem.layout
    center, scale, variance = np.zeros(layout.columns), np.zeros(layout.columns), np.ones(layout.columns)
    places, n = problem.places, problem.n
    noise = problem.sizes.mean_noise / n
    span = problem.setting.span
    scale[places] = UNMEASURED_SCALE * span
    if mean is not None:
        middle = MomentColumns(layout).centre(mean)
        weight = (PRIOR_MEAN * span) ** 2
        center[places] = middle[places] * weight / (weight + noise**2)
        if spread is not None:
            scale[places] = _scales(problem, spread, noise, span)
    for start, stop in layout.categories:
        shares, least = np.full(stop - start, 1.0 / (stop - start + 1)), UNMEASURED_SCALE**2
        if mean is not None:
            shares = _shrink_shares(mean[start:stop], shares[0], noise)
            least = 0.0
            center[start:stop] = shares
        spreads = shares * (1.0 - shares)
        squares = [least if least else category_square(one, noise) for one in spreads.tolist()]
        scale[start:stop], variance[start:stop] = np.sqrt(squares), spreads / np.array(squares)
    return Coordinates(center, scale, *_integers(problem, center, scale), variance)


def _scales(problem: Problem, spread: Array, noise: float, span: float) -> Array:
    """Return the scales of numbers: shrunk by their noise, and held up by it."""
    own = problem.sizes.spread_noise / problem.n
    prior = (PRIOR_SPREAD * span) ** 2
    shrunk = (prior * spread + own**2 * MIDDLE_SPREAD * span) / (prior + own**2)
    least = max(MEAN_NOISE_FACTOR * min(noise, PRIOR_MEAN * span), SPREAD_FACTOR * (own / 2.0 + LEAST_SPREAD * span))
    return np.maximum(SPREAD_FACTOR * shrunk, least)


def _shrink_shares(shares: Array, equal: float, noise: float) -> Array:
    """Return published shares of levels drawn towards equal ones, as far as they differ by no more than noise does."""
    signal = max(0.0, float(np.mean((shares - equal) ** 2)) - noise**2)
    return np.clip(equal + (shares - equal) * signal / max(signal + noise**2, 1e-300), 0.0, 1.0)


def _integers(problem: Problem, center: Array, scale: Array) -> tuple[Integers, Integers, Array]:
    """Return the integers of the columns of categories, and the squared length that each code gives."""
    steps = problem.lattice.row
    low, high = np.zeros((2, problem.layout.columns), dtype=np.int64)
    squares: list[float] = []
    for start, stop in problem.layout.categories:
        low[start:stop] = np.trunc(-center[start:stop] / scale[start:stop] * steps)
        high[start:stop] = np.trunc((1.0 - center[start:stop]) / scale[start:stop] * steps)
        without = [int(one) ** 2 for one in low[start:stop]]
        whole = sum(without)
        lengths = [
            whole,
            *(whole - less + int(more) ** 2 for less, more in zip(without, high[start:stop], strict=True)),
        ]
        squares += [math.nextafter(float(length), math.inf) for length in lengths]
    return low, high, np.array(squares)


def code_table(problem: Problem, where: Coordinates, slopes: Array) -> Array:
    """Return the score that each code of a category adds, (codes, outputs), for these slopes (columns, outputs)."""
    steps, table = problem.lattice.row, np.zeros((problem.codes, slopes.shape[1]))
    for (start, stop), offset in zip(problem.layout.categories, problem.offsets, strict=True):
        part = slopes[start:stop]
        without = where.low[start:stop] @ part / steps
        more = (where.high - where.low)[start:stop, None] * part / steps
        table[offset : offset + 1 + stop - start] = without + np.concatenate([np.zeros((1, part.shape[1])), more])
    return table


def columns_of(problem: Problem, sums: Integers) -> Integers:
    """Return the sums of all columns, from those of numbers and the number of records of each code."""
    found, numbers = np.zeros(problem.layout.columns, dtype=np.int64), len(problem.places)
    found[problem.places] = sums[:numbers]
    for (start, stop), offset in zip(problem.layout.categories, problem.offsets, strict=True):
        found[start:stop] = sums[numbers + offset + 1 : numbers + offset + 1 + stop - start]
    return found


def gradient_of(problem: Problem, where: Coordinates, numbers: Integers, codes: Integers, total: Integers) -> Integers:
    """Return the sum of all records' gradients, (columns, outputs), from sums by column and by code.

    A category's column has one integer for records with its level and one for all others. The result is below 2⁶², so
    64-bit integers hold it even if a product before the last addition leaves them.
    """
    found = np.zeros((problem.layout.columns, problem.response.outputs), dtype=np.int64)
    found[problem.places] = numbers
    for (start, stop), offset in zip(problem.layout.categories, problem.offsets, strict=True):
        own = codes[offset + 1 : offset + 1 + stop - start]
        low, high = where.low[start:stop, None], where.high[start:stop, None]
        found[start:stop] = low * total + (high - low) * own
    return found


def coefficients_of_encoded_rows(problem: Problem, where: Coordinates, slopes: Array, intercepts: Array) -> Array:
    """Return coefficients of encoded rows (x, 1) in the response's unit, output by output."""
    scale, shift = problem.layout.units
    of_columns = slopes / where.scale[:, None]
    last = intercepts + (shift - where.center) @ of_columns
    found = np.concatenate([scale[:, None] * of_columns, last[None]]).T
    if problem.response.kind == "classes":  # scores that differ by a constant mean the same
        found = found - found.mean(axis=0)
    return np.asarray(found * (problem.response.scale if problem.response.kind == "number" else 1.0)).ravel()
