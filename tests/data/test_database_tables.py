"""The odd cells, names and accidents that every other source is tested with, in tables of PostgreSQL and SQLite."""

import logging
import os
import sqlite3
import traceback
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import onedraw as od
from onedraw.data import Schema, database_tables, read
from onedraw.data.database_tables import PostgreSQLTable, SQLiteTable
from onedraw.errors import FileMismatch, InvalidSchema
from tests.source_cases import (
    ARROW,
    COLUMNS,
    CSV_CELLS,
    PARQUET_COLUMNS,
    RECORD,
    SECRET,
    SKIPPED,
    TYPED,
    encoded,
    schema_of,
)


def odd_cells():
    """By type: the cells of all tests of files, those of CSV files as bytes, and as text where they are text."""
    found = {}
    for array in ARROW:
        found.setdefault(str(_decoded(array).type), []).extend(array.to_pylist())
    for kind, convert, odd in PARQUET_COLUMNS.values():
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        found.setdefault(str(kind), []).extend([convert("1"), *odd, convert("0")])
    found["csv"] = list(CSV_CELLS)
    for cell in CSV_CELLS:
        with suppress(UnicodeDecodeError):
            found["string"].append(cell.decode())
    return found


def _decoded(array):
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


ODD = odd_cells()


class PostgreSQL:
    """A schema of its own in the tests' server."""

    table_type = PostgreSQLTable

    def __init__(self, url):
        self.url = url

    def fill(self, name, columns):
        kinds = {"int": "bigint", "uint64": "numeric", "float": "double precision", "halffloat": "real", "bool": "boolean", "decimal": "numeric", "binary": "bytea", "large_binary": "bytea", "fixed": "bytea", "csv": "bytea"}  # fmt: skip
        declared = {
            column: next((kinds[start] for start in sorted(kinds, key=len, reverse=True) if column.startswith(start)), "bigint" if column.startswith("uint") else "text")
            for column in columns
        }  # fmt: skip
        with psycopg.connect(self.url, autocommit=True) as connection:
            written = ", ".join(f'"{column}" {kind}' for column, kind in declared.items())
            connection.execute(f"CREATE TABLE {name} ({written})")
            rows = list(zip(*columns.values(), strict=True))
            connection.cursor().executemany(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(columns))})", rows)
        return od.DatabaseTable(self.url, name)

    def kept(self, cell, column):
        """As the database has it; None where it cannot hold such a cell, which then stays out of the table."""
        if isinstance(cell, str) and "\0" in cell:
            return None
        return float(cell) if isinstance(cell, np.floating) else cell


class SQLite:
    table_type = SQLiteTable

    def __init__(self, path):
        self.url = str(path)

    def fill(self, name, columns):
        connection = sqlite3.connect(self.url)
        written = ", ".join('"' + column + '"' for column in columns)
        connection.execute(f"CREATE TABLE {name} ({written})")
        rows = list(zip(*columns.values(), strict=True))
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
        connection.commit()
        connection.close()
        return od.DatabaseTable(self.url, name)

    def kept(self, cell, column):
        """Without booleans, decimals and whole numbers beyond 64 bits, which its drivers write as numbers and text."""
        if isinstance(cell, bool | np.floating):
            return float(cell)
        return str(cell) if isinstance(cell, Decimal) or (isinstance(cell, int) and cell >= 2**63) else cell


@pytest.fixture(params=[pytest.param("PostgreSQL", marks=pytest.mark.postgresql), "SQLite"])
def database(request, tmp_path):
    if request.param == "SQLite":
        return SQLite(tmp_path / "records.sqlite")
    return PostgreSQL(request.getfixturevalue("postgresql").new_place())


def whole(records):
    batches = list(records.batches())
    columns = {name: np.concatenate([batch[name] for batch in batches]).tolist() for name in records.columns}
    return {name: [SKIPPED.get(repr(value), value) for value in values] for name, values in columns.items()}


def test_every_odd_cell_of_every_type_is_read_as_by_itself(database):
    kept = {column: [database.kept(cell, column) for cell in cells] for column, cells in ODD.items()}
    rows = max(map(len, kept.values()))
    columns = {column: cells + [None] * (rows - len(cells)) for column, cells in kept.items()}
    table = database.fill("odd", columns)
    for kind in COLUMNS:
        alone = {repr(cell): encoded({"v": [cell]}, schema_of(kind))[0] for cells in columns.values() for cell in cells}
        found = whole(read(table, Schema.from_dict({"columns": dict.fromkeys(columns, COLUMNS[kind])})))
        for column, cells in columns.items():
            assert found[column] == [alone[repr(cell)] for cell in cells], (column, kind)


def test_a_type_that_holds_no_cell_is_refused_in_postgresql_and_unknown_to_sqlite(database):
    if isinstance(database, SQLite):
        for array in TYPED:  # a driver that writes such a cell writes its text
            table = database.fill(f"t{abs(hash(str(array.type)))}", {"v": list(map(str, array.to_pylist()))})
            assert encoded(table, schema_of("number")) == [0.25] * len(array)
        return
    kinds = ["integer[]", "jsonb", "date", "timestamp", "interval", "json", "xml", "tsvector", "bit(3)", "time"]
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(f'c{place} {kind}' for place, kind in enumerate(kinds))})")
    for place in range(len(kinds)):
        with pytest.raises(FileMismatch, match=rf"'c{place}' of the table t has type .* cannot hold kind number"):
            read(od.DatabaseTable(database.url, "t"), schema_of("number", f"c{place}"))


def test_dates_are_read_as_by_themselves_and_an_infinite_one_is_missing(database):
    dates = ["2026-03-01", None, "0044-03-15 BC", "infinity", "-infinity", "9999-12-31", "2026-12-31", "24000-01-01"]
    times = [
        "2026-03-29 01:30:00",
        None,
        "2026-03-29 00:59:59.999999",
        "infinity",
        "1970-01-01",
        "0001-01-01",
        "24000-01-01",
        None,
    ]
    known = {name: [None if cell is None or "inf" in cell or "BC" in cell or "24000" in cell else cell for cell in cells] for name, cells in (("a", dates), ("b", times))}  # fmt: skip
    known["c"] = [None if cell is None else f"{cell}Z" if ":" in cell else f"{cell} 00:00Z" for cell in known["b"]]
    if isinstance(database, SQLite):
        table = database.fill("t", {"a": dates, "b": times, "c": known["c"]})
    else:
        with psycopg.connect(database.url, autocommit=True) as connection:
            connection.execute("SET TimeZone TO 'UTC'")
            connection.execute("CREATE TABLE t (a date, b timestamp, c timestamptz)")
            connection.cursor().executemany(
                "INSERT INTO t VALUES (%s, %s, %s)", list(zip(dates, times, times, strict=True))
            )
        table = od.DatabaseTable(database.url, "t")
    for kind in ("date", "weekday"):
        schema = Schema.from_dict({"columns": dict.fromkeys("abc", COLUMNS[kind])})
        records = read(table, schema)
        records.check_whole()
        assert whole(records) == whole(read(known, schema))


def test_odd_names_of_columns_are_names(database):
    names = ["a.b", "v", "a`b", "ü; --", "a'b", "select", "%s", "$1"]
    table = database.fill("t", {name: [str(place)] for place, name in enumerate(names)} | {"other": ["9"]})
    schema = Schema.from_dict({"columns": dict.fromkeys(names, COLUMNS["number"])})
    assert whole(read(table, schema)) == {name: [min(place, 5.0)] for place, name in enumerate(names)}


def test_columns_targets_and_calls_are_checked_before_a_record_is_read(database):
    table = database.fill("t", {"v": ["1"], "who": ["p"]})
    with pytest.raises(FileMismatch, match="lacks 'w'"):
        read(table, schema_of("number", "w"))
    with pytest.raises(FileMismatch, match=r"lacks 'whom' \(the person column\)"):
        read(table, Schema.from_dict({"person": "whom", "max_records": 1, "columns": {"v": COLUMNS["number"]}}))
    with pytest.raises(InvalidSchema, match="'w' is not declared"):
        read(table, schema_of("number"), target="w")
    with pytest.raises(InvalidSchema, match="'w' is not declared"):
        read(table, schema_of("number")).batches(["w"])
    with pytest.raises(FileMismatch, match="batch_rows"):
        read(table, schema_of("number"), batch_rows=0)
    records = read(table, schema_of("number"))
    assert "'1'" not in repr(records) + repr(records._table)


def test_a_person_is_the_same_however_written_and_a_record_that_names_nobody_is_missing(database, tmp_path):
    who = ["1", " 01", "1.0", "ann", " ann ", None, "", "nan", str(2**53 + 1), str(2**53), "true", "ü", "ann", None]
    schema = Schema.from_dict({"person": "who", "max_records": 1, "columns": {"v": COLUMNS["number"]}})
    table = database.fill("t", {"who": who, "v": ["1"] * len(who)})
    pq.write_table(pa.table({"who": who, "v": ["1"] * len(who)}), tmp_path / "t.parquet")
    assert encoded(table, schema) == encoded(tmp_path / "t.parquet", schema)


# Nothing is shown


def test_no_exception_or_log_shows_a_cell_or_a_password(database, caplog):
    caplog.set_level(logging.DEBUG)
    url = database.url.replace("postgres@", f"postgres:{SECRET}@")
    tables = {
        "cells": {"ill": [f"{SECRET}-1"], "age": [f"{SECRET}-2"], "ward": [f"{SECRET}-3"]},
        "names": {name: ["1"] for name in RECORD.split(",")},
    }
    schema, said = Schema.from_dict({"columns": {"age": COLUMNS["number"]}}), []
    for name, columns in tables.items():
        database.fill(name, columns)
    for name in (*tables, "nothing", "a.b.c", "age"):
        try:
            said.append(
                repr(od.DatabaseTable(url, name)) + repr(read(od.DatabaseTable(url, name), schema, target="age"))
            )
        except FileMismatch as error:
            said += [line for line in traceback.format_exception(error) if "test_database_cells" not in line]
    assert SECRET not in "".join(said) + caplog.text


@pytest.mark.postgresql
def test_a_wrong_password_is_said_without_the_password(postgresql):
    """A user whom the server asks for one; nobody else is asked."""
    rules = postgresql.home / "data" / "pg_hba.conf"
    sound = rules.read_text()
    postgresql.execute(f"CREATE ROLE guarded LOGIN PASSWORD 'right-{SECRET}'")
    rules.write_text(f"local all guarded scram-sha-256\n{sound}")
    try:
        postgresql.execute("SELECT pg_reload_conf()")
        url = postgresql.url("")
        for name, place in {
            "wrong": url.replace("postgres@", f"guarded:wrong-{SECRET}@"),
            "none": url.replace("postgres@", "guarded@"),
        }.items():
            with pytest.raises(
                FileMismatch, match=r"cannot be opened: .*(password authentication failed|no password)"
            ) as refused:
                read(place, schema_of("number"), table="t")
            assert SECRET not in str(refused.value) + repr(refused.value.__context__ is None), name
    finally:
        rules.write_text(sound)
        postgresql.execute("SELECT pg_reload_conf()")


# Accidents


SCHEMA = Schema.from_dict(
    {
        "dataset": "people",
        "columns": {
            "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 40},
            "ill": {"kind": "binary", "levels": ["no", "yes"], "missing": "no"},
        },
    }
)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(4)
    age = rng.uniform(0, 100, 3000)
    return {"age": age.tolist(), "ill": np.where(rng.random(3000) < 0.2 + age / 200, "yes", "no").tolist()}


@pytest.fixture
def ledger(tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("people", od.ApproxDP(50.0, 1e-3))
    return ledger


@pytest.fixture(scope="module")
def plan():
    return od.plan(SCHEMA, "ill", model="logistic", epsilon=5, delta=1e-6, n=3000).plan


@pytest.fixture
def scans(database, monkeypatch):
    """How often the database is asked for records."""
    name = "_columns" if isinstance(database, PostgreSQL) else "_rows"
    sound, asked = getattr(database.table_type, name), []

    def counted(self, wanted, *rest):
        if wanted:
            asked.append(list(wanted))
        return sound(self, wanted, *rest)

    if isinstance(database, PostgreSQL):
        monkeypatch.setattr(PostgreSQLTable, name, counted)
    else:
        monkeypatch.setattr(SQLiteTable, name, counted)
    return asked


def test_a_fit_larger_than_memory_reads_the_database_once_and_gives_the_file_s_release(
    database, people, plan, scans, tmp_path, monkeypatch
):
    """Encoded records are kept in a private file without a name between the passes, as those of files are."""
    monkeypatch.setenv("ONEDRAW_SCRATCH", str(tmp_path))
    monkeypatch.setattr(database_tables, "FIRST_CHECKED", 0)  # as of a long table
    table = database.fill("people", people)
    released = [
        od.release(plan, replace(od.read(source, SCHEMA, target="ill"), memory=0), random_state=7)
        for source in (people, table)
    ]
    here, there = (release.certificate.model_dump() for release in released)
    assert {name for name in here if here[name] != there[name]} <= {"prepared_at"}
    assert released[1].diagnostics["passes"] > 5
    assert len(scans) == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"records.sqlite", "ledger.db", "ledger.db.mark"}


@pytest.mark.postgresql
def test_a_server_that_goes_in_the_middle_of_a_reading_keeps_the_spend_and_the_release_is_resumed(
    postgresql, ledger, monkeypatch
):
    """The table is longer than the 16 MB that the driver asks for at a time."""
    url = postgresql.new_place()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT lpad((i % 90)::text, 80) AS age, '{SECRET}' AS ill FROM generate_series(1, 300000) AS i")  # fmt: skip
    plan = od.plan(SCHEMA, "age", model="mean", epsilon=1, delta=1e-7, n=300_000).plan
    sound, passes = PostgreSQLTable._batches, []

    def cut(self, batches, wanted, rows):
        for place, batch in enumerate(sound(self, batches, wanted, rows)):
            if not place and passes.append(wanted) is None:
                postgresql.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()")  # fmt: skip
            yield batch

    monkeypatch.setattr(PostgreSQLTable, "_batches", cut)
    records = od.read(od.DatabaseTable(url, "people"), SCHEMA, target="age", batch_rows=1000)
    with pytest.raises(FileMismatch, match=r"the table people could not be read to its end.*Try again") as lost:
        od.release(plan, records, ledger=ledger)
    assert len(passes) == 1
    assert SECRET not in "".join(traceback.format_exception(lost.value)).replace(f'SECRET = "{SECRET}"', "")
    (entry,) = [event for event in ledger.events() if str(event.kind) == "reserved"]
    monkeypatch.setattr(PostgreSQLTable, "_batches", sound)
    records = od.read(od.DatabaseTable(url, "people"), SCHEMA, target="age")
    od.release(plan, records, ledger=ledger, resume=entry.entry)
    assert [str(event.kind) for event in ledger.events()].count("reserved") == 1


def test_a_sqlite_file_replaced_between_two_passes_is_read_on_as_it_was(tmp_path):
    table = SQLite(tmp_path / "records.sqlite").fill("t", {"v": [1, 2, 3]})
    other = SQLite(tmp_path / "other.sqlite").fill("t", {"v": [4, 5]})
    records = read(table, schema_of("number"))
    assert whole(records) == {"v": [1, 2, 3]}
    os.replace(other.place, table.place)
    assert whole(records) == {"v": [1, 2, 3]}
    assert encoded(table, schema_of("number")) == [4, 5]
