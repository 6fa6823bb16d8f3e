"""Sums over the records of each person, in whole numbers: what a statistic of persons is made of.

    by = ByPerson(reading, public, width)
    total = sum_by_person(rows, owners, by, statistic, *numbers)

Records that are not next to one another may be one person's, so a person's sum is complete only after a pass. Sums stand
where the person's first record stands (`persons.owners_of`), zeros everywhere else: replacing one person changes them in
that person's places alone. They are made for as many places at a time as `ROOM` holds, with a pass over the records for
each; how many passes that takes follows from n and the width. Workers of a cluster hold whole persons, and do the same
with their part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.arrays import Integers
from onedraw.data.persons import NOBODY
from onedraw.data.sums import Block, Blocks, Reading, block_rows, blocked, check_rows

ROOM = 2**28
"""Bytes of sums that are held at a time."""


@dataclass(frozen=True)
class ByPerson:
    """What is added up: whole numbers that a reading makes of each record, as an array of shape (width, records).

    They are at most 2⁶¹/n in size, so that the sum over all records of a person is exact.
    """

    reading: Reading
    public: tuple[Any, ...]
    width: int

    def blocks(self, rows: Iterable[Block], owners: Integers, size: int, *, room: int = ROOM) -> Blocks:
        """Return the sums as blocks of ``size`` places, to be summed over; ``rows`` are the records, for every pass anew."""
        return Blocks(len(owners), lambda: self._blocks(rows, owners, size, room), held=False)

    def _blocks(self, rows: Iterable[Block], owners: Integers, size: int, room: int) -> Iterator[Block]:
        for block in blocked(((sums.T,) for sums in self._sums(rows, owners, room)), size):
            yield block._replace(arrays=(np.ascontiguousarray(block.arrays[0].T),))

    def _sums(self, rows: Iterable[Block], owners: Integers, room: int) -> Iterator[Any]:
        together = places_together(self.width, room)
        for start in range(0, len(owners), together):
            total = np.zeros((self.width, min(together, len(owners) - start)), dtype=np.int64)
            self._add(total, rows, owners, start)
            yield total.astype(np.float64)

    def _add(self, total: Integers, rows: Iterable[Block], owners: Integers, start: int) -> None:
        """Add the records of persons whose first record is in these places."""
        read = 0
        for block in rows:
            (values,) = block.read_as([(self.reading, self.public)]).arrays
            whose = owners[read : read + block.rows]
            read += block.rows
            here = np.flatnonzero((whose != NOBODY) & (whose >= start) & (whose < start + total.shape[1]))
            for sums, one in zip(total, np.asarray(values).astype(np.int64), strict=True):
                np.add.at(sums, whose[here] - start, one[here])
        check_rows(read, len(owners))


def sum_by_person(rows: Any, owners: Integers | None, by: ByPerson, statistic: Any, *public: Any) -> Integers:
    """Return Σ of a statistic over persons; without owners the engine of the rows knows whose they are."""
    if owners is None:
        total: Integers = rows.sum_by_person(by, statistic, *public)
        return total
    return by.blocks(rows, owners, block_rows(len(owners))).sum(statistic, *public)


def places_together(width: int, room: int = ROOM) -> int:
    """Return for how many places sums of this width are held at a time."""
    return max(1, room // (8 * width))


def passes_by_person(n: int, width: int) -> int:
    """Return the passes that sums over persons take, the reading of their column included: by public numbers alone."""
    return 1 + math.ceil(n / places_together(width))
