"""Spark, met in this one file: a frame is encoded once, and a pass over its records is a job of one row a part.

    records = read(spark.read.parquet("s3://…"), schema, target="ill")     # columns checked, n counted, no cell looked at

The records stay on the cluster, and only sums leave it (`onedraw.data.sums`). Everything goes through `DataFrame.mapInArrow`, which
hosted clusters have; RDDs, which they have not, and accumulators, which count a task twice that ran twice, are not used.

1. Before the charge the records are put into parts (`onedraw.data.shards`), as many as there are cores, or blocks of records. A frame
   that is nothing but Parquet files in a folder is not read by Spark at all, for Java takes five times as long to hand its
   rows to Python as Python to decode them: workers decode the row groups, having seen here that they have the same files. Any other
   frame is encoded by the schema into files. So all passes see the same records, also those of a frame whose rows come out
   differently every time.
2. A pass is a job over a small frame of one row a part, kept in the executors' memory, so that a part comes back to the worker
   that holds it. A worker returns (part, records, digest of a public test block, sum); `combine` wants every part once, n records,
   and the digest of this machine. What a lost executor returned, or a task that ran twice, is not among the rows.

**Persons.** Of each person the first k records count, by file and place in the file: an order that is the same at every reading. A
frame that has none (it is not made of Parquet files) is refused where the schema declares `person`.

Spark's own messages may quote a cell, so none is passed on. Its logs, which show how many passes there were, belong to the curator.
"""

from __future__ import annotations

import gc
import math
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from onedraw.arrays import Integers
from onedraw.data.arrow_tables import FIRST_CHECKED, chunk_of
from onedraw.data.columns import Encoder, Wanted
from onedraw.data.person_sums import ByPerson
from onedraw.data.persons import NOBODY_KEY, OWNER, Secrets, person_keys
from onedraw.data.records import Batch, Records, evenly
from onedraw.data.shards import File, Part, Pass, RowGroups, ShardedRecords, combine, row_groups, scratch, write_part
from onedraw.data.spark_session import cores, explained, parquet_files, spark_type, suitable
from onedraw.data.sums import BLOCK, Block, Summation, block_rows, check_room, check_rows
from onedraw.data.tables import Table
from onedraw.errors import FileMismatch, InvalidSchema, check_extra
from onedraw.private import Private

MEMORY = 2**31
"""Bytes of rewritten records that a worker holds between passes."""

_PERSON, _FILE, _PLACE, _SURPLUS = "person", "file", "place", "surplus"  # beside columns named by their numbers


class SparkTable(Table):
    """A Spark frame; ``declared`` where its types stand in a table's own schema, and no record can have changed them."""

    what = "the Spark frame"

    def __init__(self, frame: Any, *, declared: bool = False, parts: int | None = None) -> None:
        with explained("describing the frame"):
            self.session, self.names = frame.sparkSession, tuple(frame.columns)
            self._types = [field.dataType.simpleString() for field in frame.schema.fields]
            self._frame = frame.toDF(*map(str, range(len(self.names))))  # by place: names may differ in case alone
        self._parquet = parquet_files(frame)
        self._declared = declared
        self.exact = declared or self._parquet is not None  # the types of files are their own
        self._parts, self._encoded = parts, dict[tuple[str, ...], Encoding]()

    @cached_property
    def part_count(self) -> int:
        """One a core, or fewer for few records: by public numbers, for it is published."""
        return self._parts or max(1, min(cores(self.session), math.ceil(self.n / BLOCK)))

    @cached_property
    def n(self) -> int:  # type: ignore[override]
        if self._parquet is not None:
            return sum(sum(file.group_rows.values()) for file in self._parquet)
        with explained("counting the records"):
            return int(self._frame.count())

    def unsuitable(self, wanted: Mapping[str, Wanted]) -> dict[str, str]:
        if not self._declared:
            return {}  # the type may have been inferred from the records: what it cannot hold is missing
        kinds = {name: self._types[self.names.index(name)] for name in wanted}
        # The head alone: the fields of a struct may be a record's.
        return {name: kind.partition("<")[0] for name, kind in kinds.items() if not suitable(kind, wanted[name])}

    def engaged(self, records: Records) -> Records:
        self.schema = records.schema
        return ShardedRecords(records.schema, records.target, records.n, self, measure=records.measure, engine=Spark())

    def check_whole(self, names: Sequence[str]) -> None:
        """Reads it all: whatever is wrong with the table is found before the charge."""
        self.encoding([name for name in names if name in self.schema.columns])

    def files(self, columns: Sequence[str]) -> tuple[File | RowGroups, ...]:
        return self.encoding(columns).files

    def encoding(self, columns: Sequence[str]) -> Encoding:
        """The parts of the records that have these columns: as they were found, or made now."""
        for encoded, found in self._encoded.items():
            if set(columns) <= set(encoded):
                return found
        wanted = tuple(name for name in self.schema.columns if name in columns)
        made = self._encoded[wanted] = self._in_place(wanted) or self._encode(wanted)
        return made

    # ── Parquet files, where they are ──────────────────────────────────────────────────────────────────────────

    def _in_place(self, names: tuple[str, ...]) -> Encoding | None:
        """Row groups, if every worker sees the files as this machine does and reads the columns as Spark would."""
        if self._parquet is None or self.schema.person is not None:
            return None
        types = {name: self._types[self.names.index(name)] for name in names}
        if any(spark_type(file.types.get(name)) != kind for file in self._parquet for name, kind in types.items()):
            return None
        parts = row_groups(self._parquet, self.part_count)
        found = Encoding(self.session, parts)
        decoded = names if self.n * len(names) <= FIRST_CHECKED else ()  # as of one file
        with explained("reading the records"):
            checked = found.frame.mapInArrow(partial(_whole, parts, decoded), "whole boolean").collect()
        return found if all(row.whole for row in checked) else None

    # ── encoding, once ─────────────────────────────────────────────────────────────────────────────────────

    def _encode(self, names: tuple[str, ...]) -> Encoding:
        task = _Task(
            str(scratch()), {name: self.schema.column(name).encoder() for name in names}, block_rows(self.n),
            exact=self.exact, secret=Secrets(), persons=self.schema.person is not None,
        )  # fmt: skip
        with explained("encoding the records"):
            columns = [
                self._column(name, task.encoders[name].wanted).alias(str(place)) for place, name in enumerate(names)
            ]
            frame = self._frame.select(*columns) if self.schema.person is None else self._limited(columns, task)
            pieces = frame.coalesce(self.part_count)
            encoded = pieces.mapInArrow(partial(_write, task), "path string, rows long, digest string").collect()
            files = [File(row.path, row.rows, row.digest) for row in encoded]
        for file in files:
            if not os.path.exists(file.path):
                raise FileMismatch(
                    "A worker has written its encoded records where this machine does not see them. Set ONEDRAW_SCRATCH to a "
                    "private folder that the driver and all workers share, and read again."
                )
        check_rows(sum(file.rows for file in files), self.n, self.what)
        empty = [write_part(task.folder, ()) for _ in range(self.part_count - len(files))]  # of a frame in fewer pieces
        return Encoding(self.session, (*files, *empty))

    def _column(self, name: str, wanted: Wanted) -> Any:
        from pyspark.sql import functions

        place = self.names.index(name)
        if suitable(self._types[place], wanted):
            return functions.col(str(place))
        return functions.lit(None).cast("string")  # missing, and not even converted

    def _limited(self, columns: list[Any], task: _Task) -> Any:
        """The encoded columns beside a mark on records in surplus, which becomes the missing record when it is written."""
        from pyspark.errors import AnalysisException
        from pyspark.sql import Window, functions

        try:
            placed = self._frame.select(
                *columns,
                self._column(str(self.schema.person), Wanted.IDENTIFIERS).alias(_PERSON),
                functions.col("_metadata.file_path").alias(_FILE),
                functions.col("_metadata.row_index").alias(_PLACE),
            )
            placed.schema  # noqa: B018  # a remote session resolves the columns when first asked
        except AnalysisException:
            raise InvalidSchema(
                "The schema counts each person's first records, but this Spark frame has no order that is the same at every "
                "reading. Read the table from Parquet files (spark.read.parquet, without joins or unions after it)."
            ) from None
        types = ("double" if encoder.skips or encoder.real else "long" for encoder in task.encoders.values())
        kinds = ", ".join(f"`{place}` {kind}" for place, kind in enumerate(types))
        keyed = placed.mapInArrow(partial(_key, task), f"{kinds}, person long, named boolean, file string, place long")
        first = functions.row_number().over(Window.partitionBy(_PERSON).orderBy(_FILE, _PLACE))
        surplus = (~functions.col("named")) | (first > self.schema.records_per_person)
        # all records of a person are in one partition now, and partitions are put together whole: so they are in one part
        return keyed.select(*(str(place) for place in range(len(columns))), surplus.alias(_SURPLUS), _PERSON)


@dataclass(frozen=True, eq=False)
class Encoding:
    """All parts, and the small frame whose rows are their numbers."""

    session: Any
    files: tuple[File | RowGroups, ...]

    @property
    def frame(self) -> Any:
        return _numbers(self.session, len(self.files))

    def run(self, task: Pass) -> list[Part]:
        with explained("adding up the records"):
            answers = "part int, rows long, digest binary, sum binary, refused string"
            rows = self.frame.mapInArrow(partial(_sums, task), answers).collect()
        for row in rows:
            if row.refused is not None:
                raise FileMismatch(row.refused)
        return [Part(row.part, row.rows, bytes(row.digest), np.frombuffer(row.sum, dtype=np.int64)) for row in rows]


@cache
def _numbers(session: Any, count: int) -> Any:
    """0 … count − 1, a part each, for all tables of a session."""
    frame = session.range(0, count, 1, count)
    try:
        return frame.persist()  # a part goes back to the executor that has its row, and so its records
    except Exception:  # serverless Spark keeps nothing: its workers read their files again
        return frame


# ── at a worker: no cell in what is returned or raised ───────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Task:
    """How a part is encoded."""

    folder: str
    encoders: dict[str, Encoder]
    rows: int
    exact: bool
    secret: Secrets
    persons: bool

    def encoded(self, table: pa.RecordBatch) -> Batch:
        """Of the columns, which come by their numbers; of columns that are encoded already, as they are."""
        encoders = enumerate(self.encoders.items())
        if _SURPLUS not in table.schema.names:
            return {
                name: encoder.encode(chunk_of(table.column(place), encoder.wanted))
                for place, (name, encoder) in encoders
            }
        surplus = table.column(_SURPLUS).to_numpy(zero_copy_only=False)
        batch = {
            name: np.where(surplus, np.asarray(encoder.nobody, kind), table.column(place).to_numpy())
            for place, (name, encoder) in encoders
            for kind in [table.column(place).to_numpy().dtype]
        }
        keys = table.column(_PERSON).to_numpy().view(np.uint64)
        return batch | {OWNER: np.where(surplus, NOBODY_KEY, keys).view(np.int64)}


def _write(task: _Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    names = (*task.encoders, OWNER) if task.persons else tuple(task.encoders)
    file = write_part(task.folder, evenly(map(task.encoded, batches), names, task.rows))
    yield pa.record_batch({"path": [file.path], "rows": [file.rows], "digest": [file.digest]})


def _key(task: _Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for table in batches:
        named = chunk_of(table.column(_PERSON), Wanted.IDENTIFIERS)
        keys, absent = person_keys(named, exact=task.exact, secret=task.secret)
        # records of nobody are spread over the workers by where they are
        keys = np.where(absent, table.column(_PLACE).to_numpy().astype(np.uint64), keys)
        encoded = {str(place): values for place, values in enumerate(task.encoded(table).values())}
        marks = {"person": keys.view(np.int64), "named": ~absent}
        places = {name: table.column(name) for name in (_FILE, _PLACE)}
        yield pa.record_batch(encoded | marks | places)


def _whole(
    parts: Sequence[RowGroups], names: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for number in (number for batch in batches for number in batch.column(0).to_pylist()):
        yield pa.record_batch({"whole": [parts[number].whole(names)]})


def _sums(task: Pass, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number in (number for batch in batches for number in batch.column(0).to_pylist()):
        yield pa.record_batch(
            [pa.array([cell], kind) for cell, kind in zip(_answer(task, number), _ANSWER.types, strict=True)],
            schema=_ANSWER,
        )
    _settled()


@cache
def _settled() -> None:
    """After every task PySpark looks for garbage among all objects, and JAX has very many: from now on these are left out."""
    gc.freeze()


_ANSWER = pa.schema(
    {"part": pa.int32(), "rows": pa.int64(), "digest": pa.binary(), "sum": pa.binary(), "refused": pa.string()}
)


def _answer(task: Pass, number: int) -> tuple[Any, ...]:
    """A part that has changed is not asked for again, as Spark would do with one that failed."""
    try:
        part = task.part(number)
    except FileMismatch as error:
        return number, 0, b"", b"", str(error)
    return number, part.rows, part.digest, np.ascontiguousarray(part.sum, dtype=np.int64).tobytes(), None


# ── passes ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Spark:
    """The engine: one job a pass."""

    name: str = "Spark"
    most_passes: int | None = 1000
    memory: int = MEMORY

    def described(self, records: Any) -> dict[str, Any]:
        return {"name": self.name, "version": str(records._table.session.version), "parts": records._table.part_count}

    def sum(self, records: Any, statistic: Any, *public: Any) -> Integers:
        return _Rows(records, self.memory).sum(statistic, *public)

    def read_as(self, records: Any, reading: Any, *public: Any) -> _Rows:
        return _Rows(records, self.memory).read_as(reading, *public)


@dataclass(frozen=True, eq=False, repr=False)
class _Rows(Private):
    """Records rewritten at the workers, who hold them under the token."""

    records: ShardedRecords
    memory: int
    readings: tuple[tuple[Any, tuple[Any, ...]], ...] = ()
    token: str | None = None
    by: ByPerson | None = None

    @property
    def n(self) -> int:
        return self.records.n

    def read_as(self, reading: Any, *public: Any) -> _Rows:
        return replace(self, readings=(*self.readings, (reading, public)), token=uuid.uuid4().hex)

    def sum(self, statistic: Any, *public: Any) -> Integers:
        check_room(self.n, statistic, *public)
        summation = Summation(self.readings, statistic, public)
        table: Any = self.records._table
        encoding: Encoding = table.encoding(summation.columns)
        task = Pass(self.records.in_files(()), encoding.files, summation, self.token, self.memory, self.by)
        with ThreadPoolExecutor(1) as meanwhile:
            digest = meanwhile.submit(lambda: task.stated.digest(task.test))
            return combine(encoding.run(task), len(encoding.files), self.n, digest.result())

    def sum_by_person(self, by: ByPerson, statistic: Any, *public: Any) -> Integers:
        """Σ of a statistic over persons, each of whom is in one part."""
        return replace(self, by=by).sum(statistic, *public)

    def __iter__(self) -> Iterator[Block]:
        """The records themselves, at the driver."""
        summation = Summation(self.readings, None)
        blocks = self.records.blocks(summation.columns, block_rows(self.n))
        return (block.read_as(self.readings) for block in blocks)


def at_address(address: str) -> SparkTable:
    """A table's name, a place of Parquet files, or delta: and a place, as a session reads it that is there or started here."""
    check_extra("spark", "pyspark", f"Reading spark:{address}")
    from pyspark.sql import SparkSession

    started = SparkSession.getActiveSession() is None
    with explained("starting"):
        session = SparkSession.builder.appName("onedraw").getOrCreate()
        if started:
            session.sparkContext.setLogLevel("OFF")  # what Spark would print may quote a cell
    with explained(f"opening {address}"):
        if address.startswith("delta:"):
            return SparkTable(session.read.format("delta").load(address.removeprefix("delta:")), declared=True)
        found = session.read.parquet(address) if "/" in address else session.table(address)
        return SparkTable(found, declared=True)
