"""Sums over records in whole numbers: the one joint through which anything above this room reads records.

    records = read(source, schema, target="ill")
    total = records.sum(statistic, *public)        # int64
    rows = records.read_as(reading, *public)       # each record rewritten once, for many sums

A `Statistic` says what one record adds, as integers of which every entry is at most ``bound`` in size. Records come in
blocks of one public size, at most 2¹⁶ records, filled up by records of weight 0; within a block all partial sums stay below 2⁵³,
where float64 is exact in any order, and blocks are added as int64. So a sum is the same integers in any order of the records,
any partition, any container, on any engine. What is in ``public`` is known before the pass or was published, or is as private as
the records and stays inside the program; the records enter through the blocks alone.

An **engine** is where passes are made. It has a name, and two methods (`Engine`); what it needs is here:

    block_rows(n)                         rows of a block, by the public n alone: the same on every engine
    records.blocks(columns, size)         encoded columns of a worker's share of the table, in such blocks
    sum_part(number, blocks, test, work)  what a worker returns for its part: rows, digest of the test block, sum
    combine(parts, count, n, digest)      each part once, no record lost or doubled, one arithmetic; then the integers

`Work` (readings, statistic, public numbers) is all that travels to a worker: frozen and picklable. The digest is that of the
public `test_block` under the same work: a worker whose arithmetic differs by a bit would add other integers, and is refused.
Noise and draws are made where `combine` runs, never by a worker, who may be asked twice.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from onedraw.errors import FileMismatch, InvalidModel

BLOCK = 1 << 16
"""Most records in a block: for so many, sums within one are exact."""

USUAL = 1 << 15
"""Records in a block of a long table: so few that what is computed from them stays in the processor's cache."""

AHEAD = 4
"""Blocks that are being computed while the next one is read."""

Integers = NDArray[np.int64]


class Block(NamedTuple):
    """``rows`` records as arrays; the weight is 1, or 0 where the block was filled up."""

    arrays: tuple[Any, ...]
    weight: Any
    rows: int

    def copied(self) -> Block:
        return self._replace(arrays=tuple(array.copy() for array in self.arrays))

    def read_as(self, readings: Iterable[tuple[Reading, tuple[Any, ...]]]) -> Block:
        block = self
        for reading, public in readings:
            arrays = tuple(reading.of_block(*block.arrays, block.weight, *public))
            block = block._replace(arrays=arrays, weight=reading.placed(block.weight))
        return block


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


def weights(rows: int, size: int) -> NDArray[np.float64]:
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
class Work:
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
        (arrays, weight, _), *more = (block.read_as(self.readings) for block in blocks)
        if not more:
            return self.statistic.of_block(*arrays, weight, *self.public)
        return self.statistic.of_blocks(
            [(*arrays, weight), *((*block.arrays, block.weight) for block in more)], *self.public
        )

    def of_block(self, block: Block) -> Integers:
        return np.asarray(self.begun(block)).astype(np.int64)

    def digest(self, test: Block) -> bytes:
        """Of the sum over a public block: equal wherever the arithmetic is."""
        return hashlib.sha256(self.of_block(test).tobytes()).digest()

    def of_all(self, blocks: Iterable[Block], together: int = 1) -> tuple[int, Integers]:
        """(records, Σ over them), ``together`` blocks to a call."""
        rows, total = 0, np.zeros((), dtype=np.int64)
        ahead: deque[Any] = deque()
        work = replace(self, public=self.statistic.at_hand(*self.public))
        remaining = iter(blocks)
        while group := list(islice(remaining, together)):
            rows += sum(block.rows for block in group)
            ahead.append(work.begun(*group))
            if len(ahead) > AHEAD:
                total = _added(total, ahead.popleft())
        return rows, reduce(_added, ahead, total)


def _added(total: Integers, part: Any) -> Integers:
    """In place once the sum has its shape."""
    part = np.asarray(part).astype(np.int64, copy=False)
    added: Integers = np.add(total, part, out=total if total.shape == part.shape else None)
    return added


class Part(NamedTuple):
    """What a worker says about its part."""

    number: int
    rows: int
    digest: bytes
    sum: Integers


def sum_part(number: int, blocks: Iterable[Block], test: Block, work: Work) -> Part:
    rows, total = work.of_all(blocks)
    return Part(number, rows, work.digest(test), total)


def combine(parts: Iterable[Part], count: int, n: int, digest: bytes) -> Integers:
    """The sum over all records, if each of the ``count`` parts came once, with n records and this digest; else refused."""
    came = sorted(parts, key=lambda part: part.number)
    if [part.number for part in came] != list(range(count)):
        raise FileMismatch(
            f"Of {count} parts of the records {len(came)} came, {len({part.number for part in came})} of them different: one was "
            "lost or counted twice, and the sum would be another one. Nothing is released; read the records again."
        )
    if any(part.digest != digest for part in came):
        raise FileMismatch(
            "A worker computes a public test block to other numbers than this machine: its processor or its libraries differ, "
            "and its records could enter differently. Use workers of one kind, with the same versions installed."
        )
    check_rows(sum(part.rows for part in came), n)
    return sum(
        (part.sum for part in came), start=np.zeros((), dtype=np.int64)
    )  # of a part without records the sum is a plain 0


def check_rows(rows: int, n: int, what: str = "The table") -> None:
    """All records, each once, at every pass."""
    if rows != n:
        raise changed(what, f"it had {n} records when they were counted and has another number now")


def changed(what: str, how: str) -> FileMismatch:
    return FileMismatch(f"{what} changed while it was read: {how}. Read it again when nothing writes to it.")


def test_block(schema: Any, columns: Sequence[str], size: int) -> Block:
    """A public full block of encoded columns: points spread over what the schema declares, the same on every machine."""
    rows = np.arange(size)
    arrays = []
    for place, name in enumerate(columns):
        share = (rows * (2654435761 + 2 * place) % 2**32) / 2.0**32  # Knuth's multiplicative hash
        arrays.append(schema.column(name).spread(share))
    return next(blocked([arrays], size))


test_block.__test__ = False  # type: ignore[attr-defined]  # its name is no test's
