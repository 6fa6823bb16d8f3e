"""Records: what a model may see of the data, and the only way to get it.

`read` checks the *file* against the schema (columns present once, types that can hold what is declared)
before any record is looked at, and counts the records: n is public. `Records.batches` then hands over encoded
columns, clamped to the schema, as often as asked and in bounded memory.

**Guarantee.** Replacing one record changes the encoded values of that record only: not those of any other
record, not n, not whether an error is raised. With `person:` and `max_records: k`, replacing all records of
one person changes at most k encoded records.

| the file or frame …                                  | is                                            |
| ---------------------------------------------------- | --------------------------------------------- |
| lacks a declared column, or has it twice             | `FileMismatch`, before any record is read     |
| has further columns                                  | fine, they are not read                       |
| declares a type that cannot hold the declared kind   | `FileMismatch`: a list type stands in         |
|                                                      | the file's schema, not in its records         |
| has a header and no records                          | fine, n = 0 (a plan refuses it)               |
| changes between the count and the reading            | `FileMismatch`                                |
| has a damaged page (Parquet, Arrow)                  | `FileMismatch` from the pass that meets it;   |
|                                                      | of a short file from `check_whole`, which the |
|                                                      | release calls before the charge               |
| is a view, or is hidden by row-level security         | `FileMismatch`: n would depend on the records |
| has ragged, undecodable, undeclared, NaN, … records  | fine, they are read as declared in `missing`: |
|                                                      | a value, or nothing (`skip`)                  |
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onedraw.arrays import Integers
from onedraw.data.columns import Encoder, ReadWithSchema, Wanted
from onedraw.data.formula import Design
from onedraw.data.persons import PersonLimit, owners_of, person_keys
from onedraw.data.schema import Schema, listed
from onedraw.data.sums import Block, Engine, Local, Summed, blocked, changed, check_rows
from onedraw.data.tables import Columns, DatabaseTable, Frame, Part, Table, in_order
from onedraw.errors import FileMismatch, InvalidSchema, WrongCall
from onedraw.plain_text import shown_place

BATCH_ROWS = 131072
_VALUES_IN_BATCH = 2**18  # of a wide table fewer rows are taken at a time
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".arrows", ".feather", ".ipc")
MEMORY = 2**28
"""Bytes of encoded records that are held between passes; with n and the schema it decides, not the records. Beyond it they
are kept in a private file."""
_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_ONE_TABLE = (".csv", ".gz", *_PARQUET, *_ARROW)
_DATABASES = (".sqlite", ".sqlite3", ".db", ".duckdb", ".ddb")
_FORMATS = ".csv, .csv.gz, .parquet, .arrow or .feather"

Batch = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Measure:
    """Responses are handed over as (response − centre)/unit: public numbers, each record on its own."""

    centre: float
    unit: float = 1.0


@dataclass(frozen=True, eq=False)
class Records(ReadWithSchema):
    """The records of one source under one schema; `n` is public, everything else stays behind `sum` and `batches`."""

    schema: Schema
    target: str | None
    n: int
    _table: Table = field(repr=False)
    _batch_rows: int = field(repr=False, default=BATCH_ROWS)
    measure: Measure | None = None
    engine: Engine = field(repr=False, default=Local())  # a frozen value
    memory: int = field(repr=False, default=MEMORY)
    _version: Any = field(repr=False, default=None)

    def sum(self, statistic: Any, *public: Any) -> Integers:
        """Σ over the records, in whole numbers (`sums`): what a release is made of."""
        return self.engine.sum(self, statistic, *public)

    def read_as(self, reading: Any, *public: Any) -> Summed:
        """The records rewritten, each by itself and public numbers, for many sums."""
        return self.engine.read_as(self, reading, *public)

    def blocks(self, columns: Sequence[str], size: int) -> Iterator[Block]:
        """The encoded records in file order, the named columns in blocks of one size: what an engine reads."""
        return blocked((tuple(batch[name] for name in columns) for batch in self.batches(columns)), size)

    def __len__(self) -> int:
        return self.n

    @property
    def count_note(self) -> str:
        """What to know about how the source counts its records; empty where there is nothing."""
        return self._table.count_note

    @property
    def columns(self) -> tuple[str, ...]:
        """The declared columns, in the schema's order."""
        return tuple(self.schema.columns)

    def values(self, column: str | None = None) -> Iterator[npt.NDArray[Any]]:
        """The encoded values of the target (or another declared column), batch by batch; only it is read."""
        name = column or self.target
        if name is None:
            raise InvalidSchema(
                "No target was named, so it is not clear which column is asked for. "
                "Pass target= to read, or the column's name here."
            )
        return (batch[name] for batch in self.batches([name]))

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """The encoded records in file order, as arrays by column; all declared columns, or those named.

        number: float64 in [lower, upper]; count: int64 in 0 … cap; category and binary: int64 codes; date: float64 days from its
        first day on, or int64 codes of a part. Of a column whose missing cells are skipped all of them are float64, NaN in a missing
        cell and −∞ in a record that counts for nobody.
        """
        names = self.columns if columns is None else tuple(columns)
        if not names:
            raise InvalidSchema("No column was asked for. Name at least one of the declared columns.")
        design, derived = self.schema.design, self.schema.derived
        sources = design.response.columns if design is not None and derived in names else ()  # type: ignore[union-attr]
        wanted = dict.fromkeys([*(name for name in names if name != derived), *sources])
        encoded = self._batches({name: self.schema.column(name).encoder() for name in wanted})
        if design is not None and derived in names:
            encoded = map(partial(_with_response, names, derived, design), encoded)
        if self.measure is None or self.target not in names:
            return encoded
        return map(partial(_on_scale, self.target, self.measure), encoded)

    def check_whole(self, columns: Sequence[str] | None = None) -> None:
        """Refuse a damaged file before anything is paid, where that costs next to nothing: its pages are decoded, and no cell is
        looked at. Of a long file the pass finds the damage; what was paid stands, and `resume` finishes the release."""
        person = [] if self.schema.person is None else [self.schema.person]
        known = [name for name in columns or () if name != self.schema.derived] or self.schema.columns
        self._table.check_whole(list(dict.fromkeys([*known, *person])))

    def _batches(self, encoders: dict[str, Encoder]) -> Iterator[Batch]:
        """As encoded, from where they are: records that lie encoded in files read those instead."""
        rows = min(self._batch_rows, max(1024, _VALUES_IN_BATCH // len(encoders)))
        wanted = {name: encoder.wanted for name, encoder in encoders.items()}
        if self.schema.person is not None:
            wanted[self.schema.person] = Wanted.IDENTIFIERS
        parts = [partial(self._encoded, part, encoders) for part in self._table.parts(wanted, rows)]
        limited = self._limited(in_order(parts, ahead=self._table.ahead), encoders)
        return limited if self._table.even else evenly(limited, encoders, rows)

    def _encoded(self, part: Part, encoders: Mapping[str, Encoder]) -> Iterator[tuple[Batch, Any]]:
        """Encodes inside the part, so that it happens where the part is read."""
        person = self.schema.person
        for chunks in part():
            batch = {name: encoder.encode(chunks[name]) for name, encoder in encoders.items()}
            keys = None if person is None else person_keys(chunks[person], exact=self._table.exact)
            yield batch, keys

    def owners(self, columns: Sequence[str]) -> Integers | None:
        """Return the owner of each record as it is read with these columns (`persons.owners_of`); None where the engine knows it.

        The person column alone is read."""
        person = str(self.schema.person)
        parts = [
            partial(self._encoded, part, {})
            for part in self._table.parts({person: Wanted.IDENTIFIERS}, self._batch_rows)
        ]
        batches = (keys for _, keys in in_order(parts, ahead=self._table.ahead))
        owners = owners_of(batches, self.schema.records_per_person)
        check_rows(len(owners), self.n, self._table.what)
        if self._table.version() != self._version:
            raise changed(self._table.what)
        return owners

    def _limited(self, encoded: Iterator[tuple[Batch, Any]], encoders: Mapping[str, Encoder]) -> Iterator[Batch]:
        """Turns surplus records into the one that counts for nobody, and holds the number of records to n."""
        limit = None if self.schema.person is None else PersonLimit(self.schema.records_per_person)
        read = 0
        for batch, keys in encoded:
            if limit is not None:
                surplus = limit.surplus(*keys)
                for name, encoder in encoders.items():
                    batch[name][surplus] = encoder.nobody
            read += len(next(iter(batch.values())))
            if read > self.n:
                break
            yield batch
        check_rows(read, self.n, self._table.what)
        if self._table.version() != self._version:
            raise changed(self._table.what)


def read(
    source: Any, schema: Schema, *, target: str | None = None, table: str | None = None, batch_rows: int = BATCH_ROWS,
    memory: int | str | None = None, measure: Measure | None = None,
) -> Records:  # fmt: skip
    """Open a source under a schema: check its columns, count its records, look at none of them.

    `source` is a path (.csv, .csv.gz, .parquet, .arrow, .feather), a pyarrow Table, RecordBatch or
    RecordBatchReader, a pandas or Polars frame, or a mapping from column names to lists or arrays; with `table`,
    the name of a table, a postgresql:// URL or a SQLite file. A Spark frame, or spark: before a table's name or a place of
    Parquet files that Spark can read, is read where it is: see docs/when-data-do-not-fit.md.

    `memory` is how much of the encoded records may be held between the passes of a fit, in bytes or as text ("2 GB"): 8 bytes a value, and 256 MB unless it is given. More
    than that is kept in a private file, which is nearly as fast while the system has memory to spare for it. The result is the same.

    `measure` is a public centre and unit that the target is measured in.
    """
    source = in_database(source, table)
    if target is not None:
        schema.column(target)
    if schema.formula is not None and target != schema.formula.response:
        raise InvalidSchema(
            f"The schema has the formula {str(schema.formula)!r}, and the target is {target!r}. Name the formula's response as the "
            "target, or read with a schema that has no formula."
        )
    if batch_rows < 1:
        raise FileMismatch(f"Expected batch_rows of 1 or more, got {batch_rows}.")
    needed = [*schema.columns, *([schema.person] if schema.person else [])]
    opened = open_table(source, keep=needed)
    _check_columns(opened, needed, schema)
    room = MEMORY if memory is None else bytes_in(memory)
    version = opened.version()
    records = Records(schema, target, opened.n, opened, batch_rows, measure, memory=room, _version=version)
    engaged: Records = opened.engaged(records)
    return engaged


def bytes_in(memory: Any) -> int:
    """A number of bytes, or one with a unit: "500 MB", "2GB"."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?b|)\s*", str(memory), flags=re.IGNORECASE | re.ASCII)
    if isinstance(memory, bool) or found is None:
        raise WrongCall(
            f"memory says how much of the records may be held, and {memory!r} was given. Give bytes, or a text such as '500 MB' or "
            "'2 GB'; 0 holds nothing between passes."
        )
    return int(float(found[1]) * (_UNITS.get(found[2].lower(), 1)))


def in_database(source: Any, table: str | None) -> Any:
    """The source itself, or the table of this name in it."""
    if table is None:
        return source
    if isinstance(source, (str, os.PathLike)):
        place = os.fspath(source)
        if "://" in place or Path(place).suffix.lower() not in _ONE_TABLE:
            return DatabaseTable(place, table)
    raise FileMismatch(
        f"table={table!r} names a table in a database, but the source is a table by itself. Leave it out, or give a "
        "postgresql:// URL or a SQLite file."
    )


def open_table(source: Any, *, keep: Sequence[str] = ()) -> Table:
    """The source as a table, by what it is; of what can be read only once, the columns in `keep`."""
    if isinstance(source, DatabaseTable):
        from onedraw.data.database_tables import opened

        return opened(source)
    if isinstance(source, str) and source.startswith("spark:"):
        from onedraw.data.spark_tables import at_address

        return at_address(source.removeprefix("spark:"))
    if isinstance(source, (str, os.PathLike)):
        return _open_file(source)
    if isinstance(source, Mapping):
        return Columns(source)
    from onedraw.data.arrow_tables import MemoryTable, is_arrow

    if is_arrow(source):
        return MemoryTable(source, keep)
    from onedraw.data.spark_session import is_spark

    if is_spark(source):
        from onedraw.data.spark_tables import SparkTable

        return SparkTable(source)
    return Frame(source)


def _open_file(place: str | os.PathLike[str]) -> Table:
    path, remote = Path(place), isinstance(place, str) and "://" in place
    suffix = path.suffix.lower()
    if remote or (path.is_file() and suffix in _DATABASES):
        raise FileMismatch(
            f"{shown_place(str(place)) if remote else path.name} is a database and may hold many tables. Name one: --table NAME on "
            "the command line, table='NAME' in Python."
        )
    if not path.is_file():
        raise FileMismatch(f"{path.name}: expected a file, found none there. Check the path.")
    if suffix == ".csv" or path.name.lower().endswith(".csv.gz"):
        from onedraw.data.delimited_text import DelimitedText

        return DelimitedText(path)
    if suffix in _PARQUET or suffix in _ARROW:
        from onedraw.data.arrow_tables import IpcTable, ParquetTable

        return ParquetTable(path) if suffix in _PARQUET else IpcTable(path)
    raise FileMismatch(
        f"{path.name}: expected a name ending in {_FORMATS}, got {suffix or 'no ending'!r}; the format is "
        "not guessed from the contents. Rename or convert the file."
    )


def _check_columns(table: Table, needed: Sequence[str], schema: Schema) -> None:
    times = Counter(table.names)
    if absent := [name for name in needed if not times[name]]:
        raise FileMismatch(_lacking(table, absent, len(needed), schema))
    if repeated := [name for name in needed if times[name] > 1]:
        raise FileMismatch(
            f"{table.what} has {listed(repeated)} more than once, so it is not clear which is meant. Rename the others."
        )
    wanted = {name: column.encoder().wanted for name, column in schema.columns.items()}
    if schema.person:
        wanted[schema.person] = Wanted.IDENTIFIERS
    for name, kind in table.unsuitable(wanted).items():
        declared = "an identifier" if name == schema.person else f"kind {schema.columns[name].kind}"
        raise FileMismatch(
            f"The column {name!r} of {table.what} has type {kind}, which cannot hold {declared}; expected "
            "integers, floats, decimals, truth values or text, or dates for kind date. Convert the column, or correct the schema."
        )


def _lacking(table: Table, absent: Sequence[str], needed: int, schema: Schema) -> str:
    """Which declared names are absent. The source's own are not quoted: without a header they are a record's cells."""
    role = " (the person column)" if schema.person in absent else ""

    def folded(name: Any) -> str:
        return "".join(str(name).split()).casefold()

    there = set(map(folded, table.names))
    spelt = [name for name in absent if folded(name) in there]
    nearly = f"; {listed(spelt)} would be there but for case or blanks" if spelt else ""
    remedy = (
        "Correct the names in the schema or in the file (separated by commas, case matters)"
        if len(absent) < needed or spelt
        else "If the file has no first line with the names of the columns, separated by commas, add it; otherwise correct the schema"
    )
    return (
        f"{table.what} lacks {listed(absent)}{role}, declared in the schema: of its {len(table.names)} columns "
        f"{needed - len(absent)} have a declared name{nearly}. {remedy}."
    )


def _with_response(names: Sequence[str], derived: str, design: Design, batch: Batch) -> Batch:
    found = {**batch, derived: design.responses(batch)}
    return {name: found[name] for name in names}


def _on_scale(target: str, measure: Measure, batch: Batch) -> Batch:
    response = np.asarray(batch[target], dtype=np.float64)
    return {**batch, target: (response - measure.centre) / measure.unit}


def evenly(batches: Iterable[Batch], names: Iterable[str], rows: int) -> Iterator[Batch]:
    """Batches of exactly `rows` records (the last may be shorter), so that their sizes tell nothing."""
    names = list(names)
    for block in blocked(([batch[name] for name in names] for batch in batches), rows):
        yield {name: values[: block.rows] for name, values in zip(names, block.arrays, strict=True)}
