"""Exact sums of clamped records.

A floating-point sum depends on the order of its terms, and its rounding can move by more than one record may
(Casacuberta et al., "Widespread underestimation of sensitivity", CCS 2022). Here every record is first
clamped and rounded to a public lattice, so that it is an integer, and integers are added: the sum of
neighbours differs by exactly what one record may move, and permuting the records changes nothing.

| statistic | a record's share |
| --- | --- |
| LatticeSum | its place 0, …, STEPS in [lower, upper] |
| CountSum | itself, rounded to a whole number in [0, cap] |
| Tally | 1 to its code 0, …, categories − 1 |
| BallSum | (x − centre)·RADIUS_STEPS/radius, a whole vector of norm at most RADIUS_STEPS |

They are statistics of `onedraw.data.sums`. Speed comes from staying in float64: a block of integers of at most 2^32 adds up
exactly there, in any order, because every partial sum is an integer below 2^53.

    n, total = summed(data, LatticeSum(0.0, 1.0, missing=0.5))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.arrays import Array, Integers, Mask
from onedraw.data.sums import Blocks, Statistic, block_rows, blocked
from onedraw.models.batches import batches, is_records, row_batches
from onedraw.private import Private

STEPS = 1 << 32
"""Lattice steps across a continuous range."""

RADIUS_STEPS = 1 << 31
"""Lattice steps from the centre of a ball to its surface."""


@dataclass(frozen=True, repr=False)
class Summary(Private):
    """n and the exact sums of the records' statistics. As private as they are: never printed or written."""

    n: int
    total: tuple[Any, ...]
    """Whole numbers, or fractions of a family's own unit."""


def summed(data: Any, statistic: Any, *, dim: int | None = None) -> tuple[int, Integers]:
    """n and Σ over the records: of `Records` on their engine, the target or else all columns; of plain data here, which are ``dim``
    numbers a record where that is given."""
    if is_records(data):
        columns = data.columns if dim is not None else (data.target or data.columns[0],)
        return data.n, data.sum(replace(statistic, columns=columns))
    n = len(data)
    read = batches if dim is None else lambda plain: row_batches(plain, dim=dim)
    return n, Blocks(n, lambda: blocked(((batch,) for batch in read(data)), block_rows(n)), held=False).sum(statistic)


def real(values: NDArray[Any], weight: Array) -> NDArray[Any]:
    """Without what fills up the block."""
    return values if weight[-1] else values[: int(weight.sum())]


def known_codes(values: NDArray[Any], size: int, *, missing: int) -> Integers:
    """Codes 0, …, size − 1; whatever else a record holds is ``missing``."""
    if values.dtype.kind in "iu" and len(values) and values.min() >= 0 and values.max() < size:
        return values.astype(np.int64, copy=False)
    with np.errstate(invalid="ignore"):
        known = (values >= 0) & (values < size)
        if values.dtype.kind == "f":
            known &= values == np.floor(values)
    return np.where(known, values, missing).astype(np.int64)


SKIP = "skip"
"""What ``missing`` says of a model in which a missing cell contributes nothing."""


def is_skip(missing: Any) -> bool:
    """Return whether a model's ``missing`` says that such cells contribute nothing."""
    return isinstance(missing, str) and missing == SKIP


def marks(columns: Sequence[NDArray[Any]]) -> tuple[Mask, Mask]:
    """Return which records have all of these cells, and which count for somebody and lack one: NaN is a missing cell, −∞ a
    record that counts for nobody."""
    nobody, lacking = np.zeros(len(columns[0]), dtype=bool), np.zeros(len(columns[0]), dtype=bool)
    for values in columns:
        nobody |= values == -np.inf
        lacking |= ~np.isfinite(values)
    return ~lacking, lacking & ~nobody


def unknown_codes(values: NDArray[Any], size: int) -> Array:
    """Codes 0, …, size − 1 as float64; NaN for whatever else a record holds, −∞ where it counts for nobody."""
    codes = values.astype(np.float64)
    known = (codes >= 0.0) & (codes < size) & (codes == np.floor(codes))
    return np.where(known | (codes == -np.inf), codes, np.nan)


def places_of(values: NDArray[Any], lower: float, scale: float) -> Array:
    """(x − lower)·scale to the nearest whole number, not yet clamped, NaN where x is: an array of its own, to be changed in place."""
    with np.errstate(all="ignore"):  # infinities are clamped
        places: Array = np.subtract(values, lower, dtype=np.float64)
        places *= scale
    np.rint(places, out=places)
    return places


@dataclass(frozen=True)
class LatticeSum(Statistic):
    """Σ k, k ∈ {0, …, STEPS} the record's place in [lower, upper]; NaN counts as ``missing``."""

    lower: float
    upper: float
    missing: float
    columns: tuple[str, ...] = ()

    def bound(self) -> float:
        return float(STEPS)

    def of_block(self, values: NDArray[Any], weight: Array) -> Array:
        values = real(values, weight)
        if values.dtype.kind in "bui" and (self.lower, self.upper) == (0.0, 1.0):
            return np.array([np.count_nonzero(values > 0) * float(STEPS)])
        scale = STEPS / (self.upper - self.lower)
        places = places_of(values, self.lower, scale)
        np.clip(places, 0.0, STEPS, out=places)
        return _exact_sum(places, float(np.clip(np.rint((self.missing - self.lower) * scale), 0, STEPS)))


@dataclass(frozen=True)
class CountSum(Statistic):
    """Σ of the records rounded to whole numbers in [0, cap]; NaN counts as ``missing``."""

    cap: int
    missing: int
    columns: tuple[str, ...] = ()

    def bound(self) -> float:
        return float(self.cap)

    def of_block(self, values: NDArray[Any], weight: Array) -> NDArray[Any]:
        values = real(values, weight)
        if values.dtype.kind in "ui":
            return np.array([np.clip(values, 0, min(self.cap, np.iinfo(values.dtype).max)).sum(dtype=np.int64)])
        return _exact_sum(np.clip(np.rint(values.astype(np.float64)), 0.0, self.cap), float(self.missing))


@dataclass(frozen=True)
class Tally(Statistic):
    """How many records have each code 0, …, categories − 1; all else counts as code ``missing``."""

    categories: int
    missing: int
    columns: tuple[str, ...] = ()

    def bound(self) -> float:
        return 1.0

    def of_block(self, values: NDArray[Any], weight: Array) -> Integers:
        codes = known_codes(real(values, weight), self.categories, missing=self.missing)
        return np.bincount(codes, minlength=self.categories)


@dataclass(frozen=True)
class BallSum(Statistic):
    """Σ k, where k is an integer vector of norm at most RADIUS_STEPS: (x − centre)·RADIUS_STEPS/radius.

    A record outside the ball is scaled onto it; coordinates are cut off towards zero, so no vector leaves it again. The margin
    is larger than the rounding of the norm, and 2^-40 of the radius in any dimension met in practice. NaN counts as the centre's.
    """

    centre: tuple[float, ...]
    radius: float
    columns: tuple[str, ...] = ()

    def bound(self) -> float:
        return float(RADIUS_STEPS)

    def of_block(self, *columns_and_weight: NDArray[Any]) -> Array:
        *columns, weight = columns_and_weight
        rows = real(np.column_stack(columns) if self.columns else columns[0], weight)
        centre, margin = np.array(self.centre), 1.0 - max(2.0**-40, (len(self.centre) + 8) * 2.0**-52)
        points = np.where(np.isnan(rows), centre, rows)
        with np.errstate(all="ignore"):  # infinities are brought to a finite size next
            points = np.clip((points - centre) / self.radius, -(2.0**400), 2.0**400)
        norms = np.sqrt(np.einsum("ij,ij->i", points, points))
        points *= (margin / np.maximum(norms, margin))[:, np.newaxis]
        return np.asarray(np.trunc(points * RADIUS_STEPS).sum(axis=0))


def _exact_sum(integers: Array, substitute: float) -> Array:
    """The sum of a block of integers held as floats; NaN counts as ``substitute``."""
    total = integers.sum()
    if np.isnan(total):
        total = np.where(np.isnan(integers), substitute, integers).sum()
    return np.array([total])
