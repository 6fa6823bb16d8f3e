"""Databases, met in this one file: a PostgreSQL table through ADBC's record batches, a SQLite table through Python's own driver.

**One picture.** Count and passes run in one read-only transaction that is held until the records are let go, so all of them see
the rows that stood in the table when it was opened, whatever is written meanwhile. The rows come in the order they are stored
(``ctid``, ``rowid``), which is the same at every pass: of a person's records the same first k count each time.

**A name is an identifier**, quoted wherever it is sent, and never a query: of a query's result a single record could change
how many records there are, or all the others. For the same reason a view is refused (what stands behind it may choose or add up
records; it may also fail on one), and so is a table whose rows a policy hides from this user by what they hold.

**No record can make it fail.** Types are the catalogue's, looked at before a record is. Text comes as the bytes that are stored:
the server would stop at a character it cannot convert. A row of the protocol may have no more than a gigabyte, so a text or binary
cell longer than `LONGEST_CELL` comes as a missing one. SQLite has no types to rely on: each of its cells is read by itself
(cells.py). ADBC's SQLite driver is not used: it infers a column's type from the first records and stops at one that does not fit.

Words of the server or driver are passed on only while no record has been touched: later ones may quote a cell.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from onedraw.data.arrow_tables import FIRST_CHECKED, ArrowTable, chunk_of
from onedraw.data.columns import Chunk, Numbers, Wanted, cells
from onedraw.data.tables import Batch, DatabaseTable, Table
from onedraw.errors import FileMismatch, check_extra
from onedraw.plain_text import shown_place, without_passwords

LONGEST_CELL = 2**18
"""Bytes of a text or binary cell; 1600 columns, PostgreSQL's most, stay below its gigabyte for a row."""

WAIT_SECONDS = 60
_POSTGRESQL = re.compile(r"postgres(?:ql)?(?:\+\w+)?://")  # with a driver, as SQLAlchemy and the ledger have it
_PART_OF_NAME = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')
_INSTEAD = "Export it as Parquet, which any of them writes, and read that file"


def opened(source: DatabaseTable) -> Table:
    """The table named in a database: by the URL's scheme, or by the first bytes of the file."""
    names, rest = list[str](), source.name + "."  # ``patients``, ``clinic.patients``, ``clinic."table.with.dots"``
    while rest and (part := _PART_OF_NAME.match(rest)) and rest[part.end() : part.end() + 1] == ".":
        names.append(part[2] or part[1].replace('""', '"'))
        rest = rest[part.end() + 1 :]
    if rest or len(names) > 2 or "\0" in source.name:
        raise FileMismatch(
            f"{source.name!r} is not the name of a table: expected table or schema.table. A query is not taken, since one record "
            'could change how many it finds; put a part that has dots or quotes in "double quotes".'
        )
    if found := _POSTGRESQL.match(source.place):
        return PostgreSQLTable(f"postgresql://{source.place[found.end() :]}", names, source.name)
    if "://" in source.place:
        scheme = source.place.partition("://")[0]
        raise FileMismatch(
            f"Tables are read from PostgreSQL (postgresql://…) and SQLite files, not from {scheme}://. {_INSTEAD}."
        )
    return SQLiteTable(Path(source.place), names, source.name)


def _quoted(*parts: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def _close(connection: Any, process: int) -> None:
    """At the end of the records' life, and not by a forked child: the connection is its parent's."""
    if os.getpid() == process:
        with suppress(Exception):
            connection.close()


# PostgreSQL

_PLAIN = ("int2", "int4", "int8", "float4", "float8", "bool")
_AS_TEXT = ("numeric", "uuid")
_TEXT = ("text", "varchar", "bpchar", "name", "citext")
_DATES = ("date", "timestamp", "timestamptz")
_TABLES = "rpm"  # tables, partitioned tables, materialised views: rows that are stored
_OTHERS = {"v": "a view", "f": "a foreign table"}

_SETTINGS = {
    # A charge may come between two passes: the server must not hang up meanwhile.
    "idle_in_transaction_session_timeout": "0",
    "statement_timeout": "0",
    "transaction_timeout": "0",
    # One scan from the first page to the last.
    "synchronize_seqscans": "off",
    "max_parallel_workers_per_gather": "0",
    "enable_indexscan": "off",
    "enable_indexonlyscan": "off",
    "enable_bitmapscan": "off",
    # Dates come as ISO text, instants in UTC: the driver's own conversion stops at "infinity".
    "DateStyle": "ISO, YMD",
    "TimeZone": "UTC",
}
_SETTLE = (
    "SELECT count(set_config(name, value, true)) FROM pg_settings JOIN (VALUES {}) AS wanted(name, value) USING (name)"
)
_CATALOGUE = """
WITH RECURSIVE tree(id) AS (
    SELECT {table}::regclass::oid UNION SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = id
)
SELECT own.relkind::text AS kind, row_security_active(own.oid) AS hidden,
    (SELECT count(*) FROM tree JOIN pg_class ON oid = id WHERE relkind = 'f') AS elsewhere,
    getdatabaseencoding()::text AS encoding
FROM pg_class AS own WHERE own.oid = {table}::regclass"""
_COLUMNS = """
WITH RECURSIVE declared(place, name, generated, type) AS (
    SELECT attnum, attname, attgenerated, atttypid FROM pg_attribute
    WHERE attrelid = {table}::regclass AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT place, name, generated, typbasetype FROM declared JOIN pg_type ON oid = type WHERE typtype = 'd'
)
SELECT convert_to(name, 'SQL_ASCII') AS name, convert_to(format_type(oid, NULL), 'SQL_ASCII') AS type,
    generated = 'v' AS computed, typtype = 'e' AS enumerated,
    CASE WHEN typnamespace = 'pg_catalog'::regnamespace OR typname = 'citext' THEN typname::text ELSE '' END AS base
FROM declared JOIN pg_type ON oid = type WHERE typtype <> 'd' ORDER BY place"""


class PostgreSQLTable(ArrowTable):
    """A stored table of a PostgreSQL database, in one REPEATABLE READ transaction."""

    even = False  # the driver's batches are measured in bytes

    def __init__(self, url: str, names: Sequence[str], written: str) -> None:
        self._table, self.what = _quoted(*names), f"the table {written}"
        self._process, self._turn, self._declared = os.getpid(), threading.Lock(), dict[str, dict[str, Any]]()
        self._connection = _connected(url)
        weakref.finalize(self, _close, self._connection, self._process)
        with self._explained():
            self._run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._run("SET LOCAL client_encoding TO 'SQL_ASCII'")  # bytes as they are stored, unchecked
            self._run(f"SET LOCAL lock_timeout TO '{WAIT_SECONDS}s'")
            self._rows(_SETTLE.format(", ".join(f"('{name}', '{value}')" for name, value in _SETTINGS.items())))
            literal = "E'" + self._table.replace("\\", "\\\\").replace("'", "''") + "'"
            self._check_kind(self._rows(_CATALOGUE.format(table=literal))[0])
            self._rows(f"SELECT true FROM {self._table} LIMIT 0")  # locks its shape: to change or drop it, others wait
            for row in self._rows(_COLUMNS.format(table=literal)):
                name, kind = (row[key].decode("utf-8", errors="replace") for key in ("name", "type"))
                self._declared[name] = {**row, "type": kind}
            (counted,) = self._rows(f"SELECT count(*) AS n FROM {self._table}")
        super().__init__(pa.schema([(name, pa.null()) for name in self._declared]), counted["n"], self.what)

    def _check_kind(self, found: Mapping[str, Any]) -> None:
        if found["kind"] not in _TABLES or found["elsewhere"]:
            kind = _OTHERS["f"] if found["elsewhere"] else _OTHERS.get(found["kind"], "no table of records")
            raise FileMismatch(
                f"{self.what} is {kind}: what stands behind it may choose, add up or change records between two passes. "
                "Store its rows, with CREATE MATERIALIZED VIEW … AS SELECT …, and name that."
            )
        if found["hidden"]:
            raise FileMismatch(
                f"Row-level security hides some rows of {self.what} from this user by what they hold, so their number is not "
                "public. Read it as a user without such a policy, or store the rows that may be used in a table of their own."
            )
        if found["encoding"] not in ("UTF8", "SQL_ASCII"):
            raise FileMismatch(
                f"The database keeps text in {found['encoding']}; expected UTF8, since no record may fail to be converted. {_INSTEAD}."
            )

    def unsuitable(self, wanted: Mapping[str, Wanted]) -> dict[str, str]:
        kinds = {name: self._declared[name] for name in wanted}
        computed = {name: f"{row['type']}, computed at each reading" for name, row in kinds.items() if row["computed"]}
        return computed | {name: row["type"] for name, row in kinds.items() if _cell(row, name, wanted[name]) is None}

    def kinds(self) -> dict[str, str]:
        known = dict.fromkeys(_DATES, "date") | {"bool": "binary"} | dict.fromkeys((*_PLAIN[:-1], "numeric"), "number")
        return {name: known[row["base"]] for name, row in self._declared.items() if row["base"] in known}

    def check_whole(self, names: Sequence[str]) -> None:
        if self.n * len(names) <= FIRST_CHECKED:
            with self._columns({name: self._readable_as(name) for name in names}) as batches:
                deque(batches, 0)  # server and driver could hand it over: that is all that was asked

    def _readable_as(self, name: str) -> Wanted:
        return Wanted.DATES if self._declared[name]["base"] in _DATES else Wanted.LABELS

    def batches(self, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Batch]:
        with self._columns(wanted) as batches:
            yield from self._batches(batches, wanted, rows)

    @contextmanager
    def _columns(self, wanted: Mapping[str, Wanted]) -> Iterator[Iterator[Any]]:
        """One scan. Where persons are told apart the order is demanded too, and paid for by a sort."""
        chosen = ", ".join(
            f"{_cell(self._declared[name], name, reading)} AS {_quoted(name)}" for name, reading in wanted.items()
        )
        order = " ORDER BY tableoid, ctid" if Wanted.IDENTIFIERS in wanted.values() else ""
        if os.getpid() != self._process or not self._turn.acquire(blocking=False):
            raise FileMismatch(
                f"{self.what} is being read already over its only connection. Finish that pass first; another process or "
                "thread opens the table for itself."
            )
        try:
            with self._explained(reading=True), self._connection.cursor() as cursor:
                cursor.execute(f"SELECT {chosen} FROM {self._table}{order}")
                with cursor.fetch_record_batch() as batches:
                    yield batches
        finally:
            self._turn.release()

    def _run(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)

    def _rows(self, query: str) -> list[dict[str, Any]]:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            found: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
        return found

    @contextmanager
    def _explained(self, *, reading: bool = False) -> Iterator[None]:
        from adbc_driver_manager import Error

        try:
            yield
        except (Error, pa.ArrowException, OSError) as error:
            state = str(getattr(error, "sqlstate", None) or "")
            raise FileMismatch(_refused(self.what, state, reading=reading)) from None


def _connected(url: str) -> Any:
    check_extra("postgresql", "adbc_driver_postgresql", "A table in PostgreSQL")
    from adbc_driver_manager import Error
    from adbc_driver_postgresql import dbapi

    try:
        return dbapi.connect(url, autocommit=True)  # the transaction is ours to begin
    except Error as error:
        why = str(error).strip().partition("\n")[0].rpartition("Failed to connect: ")[2].rstrip(".")
        raise FileMismatch(
            f"The database {shown_place(url)} cannot be opened: {without_passwords(why, url)}. Check the URL, "
            "postgresql://user@host:5432/database, and that the server answers; passwords belong in ~/.pgpass."
        ) from None


def _cell(declared: Mapping[str, Any], name: str, wanted: Wanted) -> str | None:
    """What is asked of the server for a cell; None where the type cannot hold what is wanted."""
    base, column = declared["base"], _quoted(name)
    if declared["computed"]:
        return None
    if base in _PLAIN:
        return column
    if base in _DATES:
        return f"CASE WHEN isfinite({column}) THEN {column}::text END" if wanted is Wanted.DATES else None
    if base in _AS_TEXT or declared["enumerated"]:
        return f"{column}::text"
    if base in _TEXT:
        return f"CASE WHEN octet_length({column}::text) <= {LONGEST_CELL} THEN {column}::text END"
    return f"CASE WHEN octet_length({column}) <= {LONGEST_CELL} THEN {column} END" if base == "bytea" else None


def _refused(what: str, state: str, *, reading: bool) -> str:
    """Why a table could not be opened or read to its end, by the server's code; its words stay where they are."""
    if reading:
        code = f" (its code is {state})" if state else ""
        return f"{what} could not be read to its end: the server stopped or cancelled the reading{code}. Try again when it answers."
    match state:
        case "42P01" | "3F000":
            return (
                f"The database has no {what.removeprefix('the ')} in sight of this user. Check the name, which is taken as "
                "written, capitals included; a table outside the search path is written schema.table."
            )
        case "42501":
            return f"This database user may not read {what}. Ask its owner for: GRANT SELECT ON … TO …."
        case "55P03":
            return f"Another session has locked {what} for {WAIT_SECONDS} seconds. Try again when it is done."
    return f"{what} cannot be opened: the server refused with code {state or 'unknown'}. Try again, or ask who runs it."


# SQLite


class SQLiteTable(Table):
    """A stored table of a SQLite file, opened for reading only, in one transaction; cells are taken one by one."""

    def __init__(self, path: Path, names: Sequence[str], written: str) -> None:
        _check_format(path)
        self._path, self.what = path, f"the table {written} of {path.name}"
        with self._explained():
            self._connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=WAIT_SECONDS,
                check_same_thread=False,
            )  # fmt: skip
        weakref.finalize(self, _close, self._connection, os.getpid())
        self._connection.text_factory = bytes  # stored text is not always UTF-8
        with self._explained():
            self._connection.execute("BEGIN")
            self._table = _quoted(self._stored(names))
            columns = self._connection.execute(f"PRAGMA table_xinfo({self._table})").fetchall()
            self._declared = {row[1].decode("utf-8", errors="replace"): row for row in columns if row[6] != 1}
            self._order = self._stored_order([name for name, row in self._declared.items() if row[5]])
            (self.n,) = self._connection.execute(f"SELECT count(*) FROM {self._table}").fetchone()
        self.names = tuple(self._declared)

    def _stored(self, names: Sequence[str]) -> str:
        """The table's name, if it is a table whose rows are stored in the file."""
        *schema, table = names
        found = self._connection.execute(
            "SELECT type, sql FROM sqlite_master WHERE lower(name) = lower(?) AND type IN ('table', 'view')", [table]
        ).fetchone()
        if found is None or schema not in ([], ["main"]):
            raise FileMismatch(
                f"{self._path.name} has no {self.what.removeprefix('the ')}. Check the name of the table."
            )
        if found[0] != b"table" or found[1].upper().startswith(b"CREATE VIRTUAL"):
            raise FileMismatch(
                f"{self.what} is computed when it is read (a view or a virtual table), so one record could change others. "
                "Store its rows, with CREATE TABLE … AS SELECT …, and name that."
            )
        return table

    def _stored_order(self, key: Sequence[str]) -> str:
        taken = {name.lower() for name in self._declared}
        for rowid in ("rowid", "_rowid_", "oid"):
            if rowid not in taken:
                with suppress(sqlite3.OperationalError):  # a table WITHOUT ROWID is kept by its primary key
                    self._connection.execute(f"SELECT {rowid} FROM {self._table} LIMIT 0")
                    return f"ORDER BY {rowid}"
        return f"ORDER BY {', '.join(map(_quoted, key))}" if key else ""

    def unsuitable(self, wanted: Mapping[str, Wanted]) -> dict[str, str]:
        return {name: "computed at each reading" for name in wanted if self._declared[name][6] == 2}

    def check_whole(self, names: Sequence[str]) -> None:
        if self.n * len(names) <= FIRST_CHECKED:
            deque(self._rows(names, 2**12), 0)

    def batches(self, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Batch]:
        for batch in self._rows(list(wanted), rows):
            columns = zip(*batch, strict=True)
            yield {name: _chunk(column, wanted[name]) for name, column in zip(wanted, columns, strict=True)}

    def _rows(self, names: Sequence[str], rows: int) -> Iterator[list[tuple[Any, ...]]]:
        chosen = ", ".join(
            f"CASE WHEN length(CAST({name} AS BLOB)) <= {LONGEST_CELL} THEN {name} END" for name in map(_quoted, names)
        )
        with self._explained():
            cursor = self._connection.execute(f"SELECT {chosen} FROM {self._table} {self._order}")
            while batch := cursor.fetchmany(rows):
                yield batch

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            locked = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            raise FileMismatch(
                f"{self._path.name} is being written to by another program. Try again when it is done."
                if locked
                else f"{self.what} cannot be read: the file is damaged, was left behind by a crash, or may not be read by "
                "this user. Check that it opens elsewhere."
            ) from None


def _chunk(column: Sequence[Any], wanted: Wanted) -> Chunk:
    """Many cells at once where they are all numbers or all text, and one by one otherwise: by one rule (cells.py)."""
    kinds = set(map(type, column)) - {type(None)}
    if kinds <= {bytes}:
        return chunk_of(pa.array(column, pa.large_binary()), wanted)
    if kinds <= {int, float} and wanted is Wanted.NUMBERS:
        return Numbers(np.array([np.nan if cell is None else cell for cell in column], dtype=np.float64))
    return cells(column)


def _check_format(path: Path) -> None:
    if not path.is_file():
        raise FileMismatch(f"{path.name}: expected a file, found none there. Check the path.")
    with suppress(OSError), path.open("rb") as file:
        start = file.read(16)
        if start[8:12] == b"DUCK":
            raise FileMismatch(
                f"{path.name} is a DuckDB file, which is not read. {_INSTEAD}: COPY … TO 'table.parquet'."
            )
        if start and start != b"SQLite format 3\0":
            raise FileMismatch(
                f"{path.name} is no SQLite file. Leave out the table's name, or name the file that has it."
            )
