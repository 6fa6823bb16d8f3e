"""Sums over records in whole numbers: the one interface through which anything above this package reads records.

    records = read(source, schema, target="ill")
    total = records.sum(statistic, *public)        # int64
    rows = records.read_as(reading, *public)       # each record rewritten once, for many sums

A `Statistic` says what one record adds, as integers of which every entry is at most ``bound`` in size. Records come in
blocks of one public size, at most 2¹⁶ records, filled up by records of weight 0; within a block all partial sums stay below 2⁵³,
where float64 is exact in any order, and blocks are added as int64. So a sum is the same integers in any order of the records,
any partition, any container, on any engine. What is in ``public`` is known before the pass or was published, or is as private as
the records and stays inside the program; the records enter through the blocks alone.

An **engine** (`Engine`) is where passes are made. `Local`, that of one process, is below: its blocks are held in memory, kept in a
private file, or read anew at each pass. One of many workers needs `block_rows` (by the public n alone: the same on every engine),
`records.blocks`, and what is in `shards`.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import cycle, islice
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from onedraw.arrays import Array, Integers
from onedraw.data.tables import ITEMS_AHEAD, in_order
from onedraw.errors import FileMismatch, InvalidModel
from onedraw.private import Private

BLOCK = 1 << 16
"""Most records in a block: for so many, sums within one are exact."""

USUAL = 1 << 15
"""Records in a block of a long table: so few that what is computed from them stays in the processor's cache."""

AHEAD = 4
"""Blocks that are being computed while the next one is read."""


class Block(NamedTuple):
    """``rows`` records as arrays; the weight is 1, or 0 where the block was filled up or a record contributes nothing."""

    arrays: tuple[Any, ...]
    weight: Any
    rows: int

    def read_as(self, readings: Iterable[tuple[Reading, tuple[Any, ...]]]) -> Block:
        arrays, weight = self.arrays, self.weight
        for reading, public in readings:
            kept = reading.kept(*arrays, weight)
            arrays, weight = tuple(reading.of_block(*arrays, weight, *public)), reading.placed(kept)
        return Block(arrays, weight, self.rows)


class Statistic:
    """What a record adds to: a frozen, hashable, picklable value."""

    columns: tuple[str, ...] = ()
    """The declared columns it is a sum over, in the order `of_block` takes them; of records rewritten, none."""

    def bound(self, *args: Any, **kwargs: Any) -> float:
        """``bound(*public)``: the largest size of one entry of one record's share, in lattice steps; enforced in `of_block`."""
        raise NotImplementedError

    def of_block(self, *args: Any, **kwargs: Any) -> Any:
        """``of_block(*arrays, weight, *public)``: Σ over a block's records, whole numbers in one flat array."""
        raise NotImplementedError

    def of_blocks(self, *args: Any, **kwargs: Any) -> Any:
        """``of_blocks(blocks, *public)``: the same over several, where `blocks_a_call` says so."""
        raise NotImplementedError

    def blocks_a_call(self, values: int) -> int:
        """How many blocks of so many numbers are added up by one call."""
        return 1

    def at_hand(self, *public: Any) -> tuple[Any, ...]:
        """The public numbers where they are needed, once for all blocks."""
        return public


class Reading:
    """How a record is rewritten, by itself and public numbers: a frozen, hashable, picklable value."""

    columns: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Numbers that a record becomes: with n it says, before any is read, whether all of them are held in memory."""
        raise NotImplementedError

    def of_block(self, *args: Any, **kwargs: Any) -> Any:
        """``of_block(*arrays, weight, *public)``: the arrays of a block's records rewritten, without their weight."""
        raise NotImplementedError

    def kept(self, *arrays_and_weight: Any) -> Any:
        """The weight of a block's records once they are rewritten: 0 for those that contribute nothing."""
        return arrays_and_weight[-1]

    def placed(self, weight: Any) -> Any:
        """The weight where the arrays are."""
        return weight


class Summed(Protocol):
    """Records, or records rewritten, on some engine."""

    @property
    def n(self) -> int: ...

    def sum(self, statistic: Any, *public: Any) -> Integers:
        """Σ over all records: exact, the same on every engine."""

    def read_as(self, reading: Any, *public: Any) -> Summed:
        """The same records, rewritten."""


class Engine(Protocol):
    """Where passes over the records are made."""

    @property
    def name(self) -> str:
        """As a certificate has it."""

    @property
    def most_passes(self) -> int | None:
        """More than these are not made; None where there is no such number."""

    def described(self, records: Any) -> dict[str, Any] | None:
        """What a certificate says of it, all public: name, version, parts. None for one process."""

    def sum(self, records: Any, statistic: Any, *public: Any) -> Integers: ...

    def read_as(self, records: Any, reading: Any, *public: Any) -> Summed: ...


def block_rows(n: int) -> int:
    """Rows of every block of n records: nearly equal, few of them padding, one compilation for all."""
    rows = math.ceil(n / max(1, math.ceil(n / USUAL)))
    return max(64, 64 * math.ceil(rows / 64))  # whole vectors of a processor: every place in a block is computed alike


def check_room(n: int, statistic: Any, *public: Any) -> None:
    """Refused where a sum could leave int64."""
    if not n * statistic.bound(*public) < 2.0**62:
        raise InvalidModel(
            f"The sums of {n:,} records could exceed 64-bit whole numbers on this lattice. Use fewer records or columns."
        )


def blocked(batches: Iterable[Sequence[NDArray[Any]]], size: int) -> Iterator[Block]:
    """The columns of batches of any length in blocks of ``size`` records, the last filled up with zeros of weight 0."""
    full = weights(size, size)
    held: list[NDArray[Any]] = []
    filled = 0
    for batch in batches:
        start, rows = 0, len(batch[0])
        while start < rows:
            taken = min(size - filled, rows - start)
            pieces = [column[start : start + taken] for column in batch]
            start += taken
            if taken == size:
                yield Block(tuple(pieces), full, size)
                continue
            if not held:
                held = [aligned((size, *piece.shape[1:]), piece.dtype) for piece in pieces]
            for place, piece in enumerate(pieces):
                if not np.can_cast(piece.dtype, held[place].dtype):  # plain columns may change their type on the way
                    held[place] = held[place].astype(np.result_type(piece, held[place]))
                held[place][filled : filled + taken] = piece
            filled += taken
            if filled == size:
                yield Block(tuple(held), full, size)
                held, filled = [], 0
    if held:
        yield Block(tuple(held), weights(filled, size), filled)


def weights(rows: int, size: int) -> Array:
    """1 for each record, 0 where the block was filled up."""
    weight = aligned((size,), np.dtype(np.float64))
    weight[:rows] = 1.0
    return weight


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros at an address that is a multiple of 64: compiled code takes such an array as it is and copies any other."""
    size = math.prod(shape) * dtype.itemsize
    room = np.zeros(size + 64, dtype=np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size].view(dtype).reshape(shape)


# ── what a worker does ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Summation:
    """One pass: how a record is rewritten, step by step, and what is then added up."""

    readings: tuple[tuple[Any, tuple[Any, ...]], ...]
    statistic: Any
    public: tuple[Any, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The declared columns it reads."""
        first = self.readings[0][0] if self.readings else self.statistic
        return tuple(first.columns)

    def begun(self, *blocks: Block) -> Any:
        """What `of_block` gives, perhaps still being computed: compiled code does not wait for its result."""
        read = [(*arrays, weight) for arrays, weight, _ in (block.read_as(self.readings) for block in blocks)]
        if len(read) == 1:
            return self.statistic.of_block(*read[0], *self.public)
        return self.statistic.of_blocks(read, *self.public)

    def of_block(self, block: Block) -> Integers:
        return np.asarray(self.begun(block)).astype(np.int64)

    def digest(self, test: Block) -> bytes:
        """Of the sum over a public block: equal wherever the arithmetic is."""
        return hashlib.sha256(self.of_block(test).tobytes()).digest()

    def of_all(self, blocks: Iterable[Block], together: int = 1) -> tuple[int, Integers]:
        """(records, Σ over them), ``together`` blocks to a call."""
        rows, total = 0, np.zeros((), dtype=np.int64)
        ahead: deque[Any] = deque()
        summation = replace(self, public=self.statistic.at_hand(*self.public))
        remaining = iter(blocks)
        while group := list(islice(remaining, together)):
            rows += sum(block.rows for block in group)
            ahead.append(summation.begun(*group))
            if len(ahead) > AHEAD:
                total = _added(total, ahead.popleft())
        return rows, reduce(_added, ahead, total)


def _added(total: Integers, part: Any) -> Integers:
    """In place once the sum has its shape."""
    part = np.asarray(part).astype(np.int64, copy=False)
    return np.asarray(np.add(total, part, out=total if total.shape == part.shape else None))


def check_rows(rows: int, n: int, what: str = "The table") -> None:
    """All records, each once, at every pass."""
    if rows != n:
        raise changed(what, f"it had {n} records when they were counted and has another number now")


def changed(what: str, how: str = "it was written to after its records were counted") -> FileMismatch:
    return FileMismatch(f"{what} changed while it was read: {how}. Read it again when nothing writes to it.")


# ── the engine of one process ────────────────────────────────────────────────────────────────────────────────────

SCRATCH = "ONEDRAW_SCRATCH"
"""Names the folder where encoded records are kept while the program runs; the system's own for such files unless it is set."""


@dataclass(frozen=True, eq=False, repr=False)
class Blocks(Private):
    """Records rewritten, in this process: blocks that are held in memory, or read anew at each pass and rewritten on the way."""

    n: int
    source: Callable[[], Iterable[Block]]
    held: bool = True
    readings: tuple[tuple[Any, tuple[Any, ...]], ...] = ()

    @classmethod
    def holding(cls, n: int, blocks: Iterable[Block]) -> Blocks:
        kept = tuple(blocks)
        return cls(n, lambda: kept)

    @classmethod
    def streaming(cls, records: Any, columns: Sequence[str]) -> Blocks:
        return cls(records.n, lambda: records.blocks(columns, block_rows(records.n)), held=False)

    def __iter__(self) -> Iterator[Block]:
        """To be kept by whoever asks, unlike the blocks of a pass, which are read into places that are used again."""
        for block in self.source():
            if isinstance(self.source, Scratch):
                block = block._replace(arrays=tuple(array.copy() for array in block.arrays))
            yield block.read_as(self.readings)

    def sum(self, statistic: Statistic, *public: Any) -> Integers:
        check_room(self.n, statistic, *public)
        # Blocks that are not held are read into the same places again, so compiled code gets them one by one.
        first = next(iter(self.source()), None) if self.held else None
        together = 1 if first is None else statistic.blocks_a_call(sum(array.size for array in first.arrays))
        rows, total = Summation(self.readings, statistic, public).of_all(self.source(), together)
        check_rows(rows, self.n)
        return total

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
                data = array.data.cast("B")
                start += len(data)
                while data:
                    data = data[self._file.write(data) :]

    def __call__(self) -> Iterator[Block]:
        """Into the same few places over and over, from pass to pass: a block is done with before as many others are read."""
        if self._spare:
            places = self._spare.pop()
        else:
            count = min(len(self._blocks), AHEAD + ITEMS_AHEAD + 4)
            places = [tuple(aligned(*kind) for kind in self._kinds) for _ in range(count)]
        try:
            yield from in_order([partial(self._read, places)], ahead=True)
        finally:
            self._spare.append(places)

    def _read(self, places: Sequence[tuple[NDArray[Any], ...]]) -> Iterator[Block]:
        for (start, weight, rows), arrays in zip(self._blocks, cycle(places), strict=False):
            for array in arrays:
                read = os.preadv(self._file.fileno(), [array.data.cast("B")], start)
                if read != array.nbytes:  # what stands in its place is another block's
                    raise FileMismatch(
                        "The private file of encoded records could not be read back whole. Try again, with "
                        f"{SCRATCH} naming a folder on a sound disk."
                    )
                start += read
            yield Block(arrays, weight, rows)


@dataclass(frozen=True)
class Local:
    """One-pass statistics stream the source; records rewritten are held where they have room, or else kept in a private file; where
    that has no room either, the source is read anew at each pass."""

    name: str = "one process"
    most_passes: int | None = None

    def described(self, records: Any) -> None:
        return None

    def sum(self, records: Any, statistic: Statistic, *public: Any) -> Integers:
        return Blocks.streaming(records, statistic.columns).sum(statistic, *public)

    def read_as(self, records: Any, reading: Reading, *public: Any) -> Blocks:
        streamed = Blocks.streaming(records, reading.columns).read_as(reading, *public)
        if 8 * records.n * reading.width <= records.memory:
            return Blocks.holding(records.n, streamed)
        try:
            return Blocks(records.n, Scratch(streamed), held=False)
        except OSError:  # no room, or no such folder
            return streamed
