"""Encoded records in files, one a part: what an engine with many workers keeps between passes, and what a worker does.

A part is written once (`write_part`), after the encoders and the person limit, as an Arrow file of mode 0600 in the program's
private folder. From then on every pass reads the same records, whatever becomes of the table they came from. A worker that
is asked for the sum over a part (`Pass.part`) rewrites its records once and keeps the blocks; those least recently asked for give
way. A worker that has them not, new or restarted, reads the file again: what it keeps is never needed for the sum to be right.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from onedraw.data.encoding import Encoder
from onedraw.data.records import Batch, Records
from onedraw.data.sums import Block, Part, Work, block_rows, test_block
from onedraw.errors import FileMismatch


class File(NamedTuple):
    """A part of the records: where, how many, and the digest of what was written."""

    path: str
    rows: int
    digest: str


def write_part(folder: str, batches: Iterable[Batch]) -> File:
    """The encoded batches as one file under a new name: of a task that ran twice, one of two equal files is used."""
    path = os.path.join(folder, f"{uuid.uuid4().hex}.arrow")
    rows, writer = 0, None
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        for batch in batches:
            written = pa.record_batch(batch)
            writer = writer or pa.ipc.new_file(file, written.schema)
            writer.write_batch(written)
            rows += written.num_rows
        if writer is not None:
            writer.close()
    return File(path, rows, _digest(path))


def read_part(file: File, columns: Sequence[str]) -> Iterator[Batch]:
    """The named columns as they were written; a file that has become another one is refused."""
    _check_unchanged(file)
    if not file.rows:
        return
    with pa.memory_map(file.path) as source:
        names = pa.ipc.open_file(source).schema.names
        options = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns])
        reader = pa.ipc.open_file(source, options=options)
        for place in range(reader.num_record_batches):
            batch = reader.get_batch(place)
            yield {name: batch.column(name).to_numpy() for name in columns}


_unchanged: dict[str, tuple[str, int, int]] = {}


def _check_unchanged(file: File) -> None:
    """By its digest when this process first opens it, afterwards by its size and time."""
    try:
        found = os.stat(file.path)
        seen = (file.digest, found.st_size, found.st_mtime_ns)
        if _unchanged.get(file.path) != seen and _digest(file.path) == file.digest:
            _unchanged[file.path] = seen
    except OSError:
        raise FileMismatch(
            "A file of encoded records is not where it was written: it was removed, or this machine does not see the folder it "
            "is in. Set ONEDRAW_SCRATCH to a folder that all machines share, and let nothing clean it up meanwhile."
        ) from None
    if _unchanged.get(file.path) != seen:
        raise FileMismatch(
            "A file of encoded records has changed since it was written, so another pass would see other records. Nothing is "
            "released; read the table again, and let nothing else write to the folder named by ONEDRAW_SCRATCH."
        )


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Files(NamedTuple):
    """Stands for the table where its parts are written already: at a worker."""

    written: tuple[File, ...]

    def files(self, columns: Sequence[str]) -> tuple[File, ...]:
        return self.written


@dataclass(frozen=True, eq=False)
class EncodedRecords(Records):
    """Records whose table has files of encoded parts: read here one after the other, in bounded memory."""

    def in_files(self, files: tuple[File, ...]) -> EncodedRecords:
        """The records of these parts: without the table and its engine, so that they can travel."""
        return replace(self, _table=Files(files), engine=None)  # type: ignore[arg-type]

    def _batches(self, encoders: dict[str, Encoder]) -> Iterator[Batch]:
        table: Any = self._table
        for file in table.files(list(encoders)):
            yield from read_part(file, list(encoders))


# ── what a worker does ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Pass:
    """One pass as it travels to the workers: public declarations, where the files are, and the work.

    ``token`` names the records as rewritten, which a worker holds up to ``memory`` bytes; without one they are streamed.
    """

    records: EncodedRecords
    files: tuple[File, ...]
    work: Work
    token: str | None
    memory: int

    def part(self, number: int) -> Part:
        """What a worker returns."""
        blocks = self._blocks(number) if self.token is None else self._held(number)
        test = test_block(self.records.schema, self.work.columns, block_rows(self.records.n))
        rows, total = Work((), self.work.statistic, self.work.public).of_all(blocks)
        if not rows:  # as many zeros as the sum has entries
            total = np.zeros_like(self.work.of_block(test))
        return Part(number, rows, self.work.digest(test), total)

    @property
    def digest(self) -> bytes:
        """Of the public test block, as computed here."""
        return self.work.digest(test_block(self.records.schema, self.work.columns, block_rows(self.records.n)))

    def _blocks(self, number: int) -> Iterator[Block]:
        share = self.records.in_files((self.files[number],))
        blocks = share.blocks(self.work.columns, block_rows(self.records.n))  # of all n, here as everywhere
        return (block.read_as(self.work.readings) for block in blocks)

    def _held(self, number: int) -> Iterable[Block]:
        key = (str(self.token), number)
        if key not in _HELD:
            _HELD[key] = tuple(self._blocks(number))
            while len(_HELD) > 1 and sum(map(_bytes, _HELD.values())) > self.memory:
                _HELD.popitem(last=False)
        _HELD.move_to_end(key)
        return _HELD[key]


_HELD: OrderedDict[tuple[str, int], tuple[Block, ...]] = OrderedDict()


def _bytes(blocks: tuple[Block, ...]) -> int:
    return sum(array.nbytes for block in blocks for array in (*block.arrays, block.weight))
