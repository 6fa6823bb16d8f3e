"""A table in a SQLite file: cells without types, each read by itself, in one picture of the file."""

import math
import sqlite3

import numpy as np
import pytest

import onedraw as od
from onedraw.data import Schema, database_tables, read
from onedraw.errors import FileMismatch
from tests.source_cases import COLUMNS, encoded, schema_of

SECRET = "s3cr3t"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "records.sqlite"
    sqlite3.connect(path).close()
    return path


def do(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
    connection.commit()
    connection.close()


def table(path, cells, name="t", declared=""):
    do(path, f"CREATE TABLE {name} (v {declared})", *((f"INSERT INTO {name} VALUES (?)", (cell,)) for cell in cells))
    return od.DatabaseTable(str(path), name)


BASES = [[1, 0, 2], [1.0, 0.5, -9.0], ["1", "word", "0.50"], ["true", "False", "no"], [b"1", b"2", b"word"]]
OTHERS = [None, math.inf, "word", "", "x", 2.5, 7, "1", b"\xff", b"1", 2**62, "1e400", "nan"]


@pytest.mark.parametrize("kind", COLUMNS)
def test_no_record_reaches_others_through_the_type_of_its_cell(file, kind):
    """ADBC's SQLite driver would take the type from the first records and stop at a cell of another."""
    for place, base in enumerate(BASES):
        cells = [*base, *OTHERS]
        source = table(file, cells, f"t{place}")
        assert encoded(source, schema_of(kind)) == encoded({"v": cells}, schema_of(kind))
        assert encoded(source, schema_of(kind), batch_rows=2) == encoded({"v": cells}, schema_of(kind))


def test_text_that_is_not_utf8_and_cells_beyond_the_longest_are_missing(file):
    long = "1" + " " * database_tables.LONGEST_CELL
    source = table(file, ["2", long, long[:-1]])
    do(file, "INSERT INTO t VALUES (CAST(x'ff' AS TEXT))")
    assert encoded(source, schema_of("category")) == [0, 3, 1, 3]


def test_columns_and_names_are_checked_before_a_record_is_read(file):
    do(
        file,
        f"CREATE TABLE t (v, {SECRET}, twice GENERATED ALWAYS AS (v / 0) VIRTUAL)",
        "CREATE VIEW seen AS SELECT v FROM t",
        'CREATE TABLE "a.b; DROP TABLE t" (v)',
    )
    refusals = {
        ("t", "w"): "lacks 'w'",
        ("t", "twice"): "computed at each reading",
        ("seen", "v"): "is computed when it is read",
        ("nothing", "v"): "has no table nothing",
        ("other.t", "v"): "has no table",
        ("sqlite_sequence", "v"): "has no table",
        ("a.b.c", "v"): "is not the name of a table",
    }
    for (name, column), words in refusals.items():
        with pytest.raises(FileMismatch, match=words) as refused:
            read(file, schema_of("number", column), table=name)
        assert SECRET not in str(refused.value)
    for name in ("t", "main.t", "T", '"a.b; DROP TABLE t"'):
        assert read(str(file), schema_of("number"), table=name).n == 0


def test_files_that_are_something_else_are_refused(tmp_path, file):
    (tmp_path / "d.duckdb").write_bytes(b"\1" * 8 + b"DUCK" + b"\0" * 99)
    (tmp_path / "text.db").write_text(f"{SECRET}\n" * 9)
    do(file, "CREATE TABLE t (v)")
    (tmp_path / "cut.sqlite").write_bytes(file.read_bytes()[:200])
    words = {"d.duckdb": "DuckDB", "text.db": "no SQLite file", "cut.sqlite": "cannot be read", "none.db": "found none"}
    for name, why in words.items():
        with pytest.raises(FileMismatch, match=why) as refused:
            read(tmp_path / name, schema_of("number"), table="t")
        assert SECRET not in str(refused.value)
    with pytest.raises(FileMismatch, match="may hold many tables"):
        read(file, schema_of("number"))


def test_a_writer_waits_or_is_not_seen(file, monkeypatch):
    source = table(file, [1, 2, 3])
    records = read(source, schema_of("number"))
    writer = sqlite3.connect(file, timeout=0.05)
    with pytest.raises(sqlite3.OperationalError, match="locked"), writer:
        writer.execute("INSERT INTO t VALUES (0)")
    assert np.concatenate(list(records.values("v"))).tolist() == [1, 2, 3]
    del records
    with writer:
        writer.execute("INSERT INTO t VALUES (0)")
    writer.execute("PRAGMA journal_mode = WAL")
    records = read(source, schema_of("number"))
    with writer:
        writer.execute("DELETE FROM t")
    assert np.concatenate(list(records.values("v"))).tolist() == [1, 2, 3, 0]
    del records
    writer.execute("PRAGMA journal_mode = DELETE")
    monkeypatch.setattr(database_tables, "WAIT_SECONDS", 0.05)
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(FileMismatch, match="written to by another program"):
        read(source, schema_of("number"))
    writer.close()


def person_schema():
    return Schema.from_dict({"person": "who", "max_records": 1, "columns": {"v": COLUMNS["number"]}})


@pytest.mark.parametrize(
    "shape", ["(who, v)", "(who, v, rowid, id INTEGER PRIMARY KEY)", "(who, v PRIMARY KEY) WITHOUT ROWID"]
)
def test_of_each_person_the_first_stored_records_count(file, shape):
    do(file, f"CREATE TABLE t {shape}", "CREATE INDEX way ON t (who, v DESC)")
    do(
        file,
        *(
            ("INSERT INTO t (who, v) VALUES (?, ?)", row)
            for row in [(2**60, 1), ("2", 2), (2**60, 3), (2, 4), (None, 5)]
        ),
    )
    assert encoded(od.DatabaseTable(str(file), "t"), person_schema()) == [1, 2, 0.25, 0.25, 0.25]
