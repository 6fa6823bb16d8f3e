"""Records in parts, one a worker and pass: where they are between passes, and what a worker does with them.

A part is one of two things. Where the table is Parquet files that every worker sees, it is some of their **row groups**, read and
encoded on the way; a file is held to the size and time it had when its records were counted. Any other table is **written** once
(`write_part`), after the encoders and the person limit, as an Arrow file a part, of mode 0600, in the program's private folder;
from then on every pass reads the same records, whatever becomes of the table they came from.

That folder (`scratch`) has mode 0700 and is removed when the program ends, and where the program was killed, at the next start of
one: a folder belongs to whoever holds the lock on its file ``owner``, and a lock does not survive its process. `ONEDRAW_SCRATCH`
names where such folders are made; where several machines work together, a place that all of them see.

A worker that is asked for the sum over a part (`Pass.part`) rewrites its records once and keeps the blocks: up to a number of bytes,
those least recently asked for giving way, and for a minute, so that nothing is left of a release but the release. A worker that has them
not, new or restarted, reads the part again: what it keeps is never needed for the sum to be right.

`Summation` (readings, statistic, public numbers) is what travels to a worker. It returns the digest of the public `test_block` under the
same sum too: a worker whose arithmetic differs by a bit would add other integers, and `combine` refuses it. Noise and draws are made
where `combine` runs, never by a worker, who may be asked twice.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import shutil
import tempfile
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from onedraw.arrays import Integers
from onedraw.data.arrow_tables import ParquetTable
from onedraw.data.columns import Encoder
from onedraw.data.person_sums import ByPerson
from onedraw.data.persons import NOBODY_KEY, OWNER, owners_by_key
from onedraw.data.records import Batch, Records
from onedraw.data.schema import Schema
from onedraw.data.sums import SCRATCH, Block, Summation, block_rows, blocked, changed, check_rows
from onedraw.data.tables import file_version
from onedraw.errors import CannotWrite, FileMismatch

HELD_SECONDS = 60.0
"""How long after a pass a worker keeps the records it rewrote: as long as Spark keeps a worker that has nothing to do."""


# ── parts that are row groups of the table's own files ───────────────────────────────────────────────────────────


class Groups(NamedTuple):
    """Some row groups of one Parquet file, as it was when its records were counted."""

    path: str
    version: tuple[int, ...]
    places: tuple[int, ...]
    rows: int

    def table(self) -> ParquetTable:
        path = Path(self.path)
        if not path.exists() or file_version(path) != self.version:
            raise changed(path.name)
        return ParquetTable(path, self.places)


class RowGroups(NamedTuple):
    """A part: row groups of one or more files, encoded at every reading, each record by itself."""

    pieces: tuple[Groups, ...]

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    def batches(self, schema: Schema, encoders: Mapping[str, Encoder]) -> Iterator[Batch]:
        for piece in self.pieces:
            records = Records(schema, None, piece.rows, piece.table(), _version=piece.version)
            yield from records.batches(list(encoders))

    def whole(self, columns: Sequence[str]) -> bool:
        """Whether this machine sees the files as they were and can decode these columns, if any; no cell is looked at."""
        try:
            for piece in self.pieces:
                table = piece.table()
                if columns:
                    table.check_whole(columns)
        except (FileMismatch, OSError):
            return False
        return True


class CountedFile(NamedTuple):
    """A Parquet file when its records are counted: by its footer."""

    path: str
    version: tuple[int, ...]
    group_rows: dict[int, int]
    types: dict[str, Any]

    @classmethod
    def at(cls, path: str) -> CountedFile:
        version, table = file_version(Path(path)), ParquetTable(Path(path))
        return cls(path, version, table.group_rows, table.types)


def row_groups(files: Sequence[CountedFile], count: int) -> tuple[RowGroups, ...]:
    """All row groups in ``count`` parts of nearly equal numbers of records, in the files' order."""
    n = sum(sum(file.group_rows.values()) for file in files)
    parts: list[list[Groups]] = [[] for _ in range(count)]
    before = 0
    for file in files:
        chosen: dict[int, list[int]] = {}
        for place, rows in file.group_rows.items():  # by where the middle of the group is
            chosen.setdefault(min(count - 1, (2 * before + rows) * count // max(1, 2 * n)), []).append(place)
            before += rows
        for number, places in chosen.items():
            rows = sum(file.group_rows[place] for place in places)
            parts[number].append(Groups(file.path, file.version, tuple(places), rows))
    return tuple(RowGroups(tuple(part)) for part in parts)


# ── parts that were written ──────────────────────────────────────────────────────────────────────────────────────

_PREFIX = "onedraw-scratch-"
_BEING_MADE = "onedraw-making-"


@cache
def scratch() -> Path:
    """This program's folder: made when first asked for."""
    place = Path(os.environ.get(SCRATCH) or tempfile.gettempdir())
    try:
        remove_orphans(place)
        made = Path(tempfile.mkdtemp(prefix=_BEING_MADE, dir=place))  # mode 0700
        owner = os.open(made / "owner", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)  # before it has the name by which others look for it
        folder = made.rename(made.with_name(made.name.replace(_BEING_MADE, _PREFIX, 1)))
    except OSError as error:
        raise CannotWrite(
            f"No private folder could be made in {place}: {error.strerror}. Encoded records are kept there while the program "
            f"runs; set {SCRATCH} to a folder that can be written, and on a cluster to one that all its machines see."
        ) from None
    atexit.register(_remove, folder, owner, os.getpid())
    return folder


def remove_orphans(place: Path) -> None:
    """Folders in ``place`` whose program is no longer there."""
    for folder in place.glob(f"{_PREFIX}*"):
        try:
            owner = os.open(folder / "owner", os.O_RDWR)
        except OSError:  # another user's, or just removed by its own program
            continue
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its program is alive, or this file system knows no locks
            pass
        finally:
            os.close(owner)


def _remove(folder: Path, owner: int, process: int) -> None:
    if os.getpid() == process:  # not in a child that inherited this
        shutil.rmtree(folder, ignore_errors=True)
        os.close(owner)


class File(NamedTuple):
    """A part: where it was written, how many records, and the digest of what was written."""

    path: str
    rows: int
    digest: str

    def owners(self) -> Integers:
        """Of each record its owner among these, where parts hold whole persons."""
        found = [batch[OWNER].view(np.uint64) for batch in self.batches(None, dict.fromkeys([OWNER]))]
        keys = np.concatenate([np.empty(0, np.uint64), *found])
        return owners_by_key(keys, keys == NOBODY_KEY)

    def batches(self, schema: Schema | None, encoders: Mapping[str, Encoder | None]) -> Iterator[Batch]:
        """The columns as they were written; a file that has become another one is refused."""
        _check_unchanged(self)
        if not self.rows:
            return
        with pa.memory_map(self.path) as source:
            names = pa.ipc.open_file(source).schema.names
            options = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in encoders])
            reader = pa.ipc.open_file(source, options=options)
            for place in range(reader.num_record_batches):
                batch = reader.get_batch(place)
                yield {name: batch.column(name).to_numpy() for name in encoders}


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
            "A file of encoded records is not where it was written: it was removed, or this machine does not see its folder. "
            "Set ONEDRAW_SCRATCH to a folder that all machines share, and let nothing clean it up meanwhile."
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
    """Stands for the table where its parts are known already: at a worker."""

    known: tuple[File | RowGroups, ...]

    def files(self, columns: Sequence[str]) -> tuple[File | RowGroups, ...]:
        return self.known


@dataclass(frozen=True, eq=False)
class ShardedRecords(Records):
    """Records whose table is in parts: read here one after the other, in bounded memory."""

    def in_files(self, files: tuple[File | RowGroups, ...]) -> ShardedRecords:
        """The records of these parts: without the table and its engine, so that they can travel."""
        return replace(self, _table=Files(files), engine=None)  # type: ignore[arg-type]

    def _batches(self, encoders: dict[str, Encoder]) -> Iterator[Batch]:
        table: Any = self._table
        for file in table.files(list(encoders)):
            yield from file.batches(self.schema, encoders)

    def owners(self, columns: Sequence[str]) -> None:
        """None: a part holds whole persons, and the keys of their owners (`Pass.by`)."""


# ── what a worker returns, and how it is put together ───────────────────────────────────────────────────────────


class Part(NamedTuple):
    """What a worker says about its part."""

    number: int
    rows: int
    digest: bytes
    sum: Integers


def combine(parts: Iterable[Part], count: int, n: int, digest: bytes) -> Integers:
    """The sum over all records, if each of the ``count`` parts arrived once, with n records and this digest; else refused."""
    got = sorted(parts, key=lambda part: part.number)
    if [part.number for part in got] != list(range(count)):
        raise FileMismatch(
            f"Of {count} parts of the records {len(got)} arrived, {len({part.number for part in got})} of them different: one was "
            "lost or counted twice, and the sum would be another one. Nothing is released; read the records again."
        )
    if any(part.digest != digest for part in got):
        raise FileMismatch(
            "A worker computes a public test block to other numbers than this machine: its processor or its libraries differ, "
            "and its records could enter differently. Use workers of one kind, with the same versions installed."
        )
    check_rows(sum(part.rows for part in got), n)
    return sum((part.sum for part in got), start=np.zeros((), dtype=np.int64))


def test_block(schema: Any, columns: Sequence[str], size: int) -> Block:
    """A public full block of encoded columns: points spread over what the schema declares, the same on every machine."""
    rows = np.arange(size)
    arrays = []
    for place, name in enumerate(columns):
        share = (rows * (2654435761 + 2 * place) % 2**32) / 2.0**32  # Knuth's multiplicative hash
        arrays.append(schema.column(name).spread(share))
    return next(blocked([arrays], size))


test_block.__test__ = False  # type: ignore[attr-defined]  # its name is no test's


# ── what a worker does ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Pass:
    """One pass as it travels to the workers: public declarations, where the parts are, and what is summed.

    ``token`` names the records as rewritten, which a worker holds up to ``memory`` bytes; without one they are streamed.
    """

    records: ShardedRecords
    files: tuple[File | RowGroups, ...]
    summation: Summation
    token: str | None
    memory: int
    by: ByPerson | None = None

    def part(self, number: int) -> Part:
        """What a worker returns."""
        test = self.test
        with HELD.in_use():
            blocks: Iterable[Block] = self._blocks(number)
            if self.token is not None:
                blocks = HELD.get((self.token, number), blocks, self.memory)
            if self.by is not None:
                file: Any = self.files[number]
                blocks = self.by.blocks(tuple(blocks), file.owners(), block_rows(self.records.n)).source()
            rows, total = Summation((), self.summation.statistic, self.summation.public).of_all(blocks)
        if not rows:  # as many zeros as the sum has entries
            total = np.zeros_like(self.stated.of_block(test))
        return Part(number, rows, self.stated.digest(test), total)

    @property
    def stated(self) -> Summation:
        """All that is done to a record, as if each were a person's only one."""
        by = () if self.by is None else ((self.by.reading, self.by.public),)
        return replace(self.summation, readings=(*self.summation.readings, *by))

    @property
    def test(self) -> Block:
        return test_block(self.records.schema, self.summation.columns, block_rows(self.records.n))

    def _blocks(self, number: int) -> Iterator[Block]:
        """Read when the first one is asked for."""
        share = self.records.in_files((self.files[number],))
        for block in share.blocks(self.summation.columns, block_rows(self.records.n)):  # of all n, here as everywhere
            yield block.read_as(self.summation.readings)


class _Held:
    """Blocks that this process keeps, the latest asked for last; let go a while after the last pass."""

    def __init__(self) -> None:
        self.blocks: OrderedDict[tuple[str, int], tuple[Block, ...]] = OrderedDict()
        self._timer = threading.Timer(0, self.blocks.clear)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """However long the pass takes, and however it ends."""
        self._timer.cancel()
        if self._timer.is_alive():  # just letting go: a moment later it has
            self._timer.join()
        try:
            yield
        finally:
            self._timer = threading.Timer(HELD_SECONDS, self.blocks.clear)
            self._timer.daemon = True
            self._timer.start()

    def get(self, key: tuple[str, int], blocks: Iterable[Block], memory: int) -> tuple[Block, ...]:
        """Those kept under the key; otherwise these, kept from now on."""

        def held() -> int:
            kept = (block for blocks in self.blocks.values() for block in blocks)
            return sum(array.nbytes for block in kept for array in (*block.arrays, block.weight))

        if key not in self.blocks:
            self.blocks[key] = tuple(blocks)
            while len(self.blocks) > 1 and held() > memory:
                self.blocks.popitem(last=False)
        self.blocks.move_to_end(key)
        return self.blocks[key]


HELD = _Held()
