"""The engine of one process: passes over blocks that are held in memory, kept in a private file, or read anew each time."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.data.sums import (
    AHEAD,
    Block,
    Integers,
    Reading,
    Statistic,
    Work,
    aligned,
    block_rows,
    check_room,
    check_rows,
)
from onedraw.data.tables import ITEMS_AHEAD, in_order
from onedraw.errors import FileMismatch

SCRATCH = "ONEDRAW_SCRATCH"
"""Names the folder where encoded records are kept while the program runs; the system's own for such files unless it is set."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Records rewritten, in this process: blocks that are held in memory, or read anew at each pass and rewritten on the way."""

    n: int
    source: Callable[[], Iterable[Block]]
    held: bool = True
    readings: tuple[tuple[Any, tuple[Any, ...]], ...] = ()

    def __repr__(self) -> str:
        return f"Blocks(n={self.n}, records=<private>)"

    @classmethod
    def holding(cls, n: int, blocks: Iterable[Block]) -> Blocks:
        kept = tuple(blocks)
        return cls(n, lambda: kept)

    def __iter__(self) -> Iterator[Block]:
        """To be kept by whoever asks, unlike the blocks of a pass, which are read into places that are used again."""
        kept = (block.copied() for block in self.source()) if isinstance(self.source, Scratch) else self.source()
        return (block.read_as(self.readings) for block in kept)

    def sum(self, statistic: Statistic, *public: Any) -> Integers:
        check_room(self.n, statistic, *public)
        rows, total = Work(self.readings, statistic, public).of_all(self.source(), self._together(statistic))
        check_rows(rows, self.n)
        return total

    def _together(self, statistic: Statistic) -> int:
        """Blocks to a call of compiled code; those that are not held are read into the same places again, one after the other."""
        first = next(iter(self.source()), None) if self.held else None
        return 1 if first is None else statistic.blocks_a_call(sum(array.size for array in first.arrays))

    def read_as(self, reading: Reading, *public: Any) -> Blocks:
        if self.held:
            return Blocks.holding(self.n, (block.read_as([(reading, public)]) for block in self))
        return replace(self, readings=(*self.readings, (reading, public)))


class Scratch:
    """Blocks in a file without a name, of mode 0600: what a pass reads instead of decoding the source again. The system removes
    it with the process, however that ends."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._file: Any = tempfile.TemporaryFile(dir=os.environ.get(SCRATCH), buffering=0)  # noqa: SIM115  # closed with this object
        weakref.finalize(self, self._file.close)
        self._blocks: list[tuple[int, Any, int]] = []
        self._kinds: list[tuple[tuple[int, ...], np.dtype[Any]]] = []
        self._spare: list[list[tuple[NDArray[Any], ...]]] = []
        start = 0
        for arrays, weight, rows in blocks:
            kept = [np.ascontiguousarray(array) for array in arrays]
            self._kinds = [(array.shape, array.dtype) for array in kept]
            self._blocks.append((start, weight, rows))
            for array in kept:
                start += self._written(array.data.cast("B"))

    def _written(self, data: memoryview) -> int:
        done = 0
        while done < len(data):
            done += self._file.write(data[done:])
        return done

    def __call__(self) -> Iterator[Block]:
        """Into the same few places over and over, from pass to pass: a block is done with before as many others are read."""
        places = self._spare.pop() if self._spare else self._room()
        try:
            yield from in_order([partial(self._read, places)], ahead=True)
        finally:
            self._spare.append(places)

    def _room(self) -> list[tuple[NDArray[Any], ...]]:
        count = min(len(self._blocks), AHEAD + ITEMS_AHEAD + 4)
        return [tuple(aligned(*kind) for kind in self._kinds) for _ in range(count)]

    def _read(self, places: Sequence[tuple[NDArray[Any], ...]]) -> Iterator[Block]:
        for (start, weight, rows), arrays in zip(self._blocks, cycle(places), strict=False):
            for array in arrays:
                read = os.preadv(self._file.fileno(), [array.data.cast("B")], start)
                if read != array.nbytes:  # what stands in its place is another block's
                    raise FileMismatch(
                        "The private file of encoded records could not be read back whole. Try again, with ONEDRAW_SCRATCH naming a "
                        "folder on a sound disk."
                    )
                start += read
            yield Block(arrays, weight, rows)


@dataclass(frozen=True)
class Local:
    """The engine of one process: one-pass statistics stream the source; records rewritten are held where they have room, or else
    kept in a private file; where that has no room either, the source is read anew at each pass."""

    name: str = "one process"
    most_passes: int | None = None

    def described(self, records: Any) -> None:
        return None

    def sum(self, records: Any, statistic: Statistic, *public: Any) -> Integers:
        return self._streamed(records, statistic.columns).sum(statistic, *public)

    def read_as(self, records: Any, reading: Reading, *public: Any) -> Blocks:
        streamed = self._streamed(records, reading.columns).read_as(reading, *public)
        if 8 * records.n * reading.width <= records.memory:
            return Blocks.holding(records.n, streamed)
        try:
            return Blocks(records.n, Scratch(streamed), held=False)
        except OSError:  # no room, or no such folder
            return streamed

    @staticmethod
    def _streamed(records: Any, columns: tuple[str, ...]) -> Blocks:
        return Blocks(records.n, lambda: records.blocks(columns, block_rows(records.n)), held=False)
