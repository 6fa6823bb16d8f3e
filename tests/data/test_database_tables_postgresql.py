"""A table in PostgreSQL: the same records as from a file of its rows, in one picture, whatever is written meanwhile."""

import datetime
import math
import os
import sys
from decimal import Decimal

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import onedraw as od
from onedraw.data import Schema, database_tables, read
from onedraw.data.database_tables import PostgreSQLTable
from onedraw.errors import FileMismatch, MissingExtra
from tests.source_cases import COLUMNS, encoded, schema_of

pytestmark = pytest.mark.postgresql

SECRET = "s3cr3t"


def whole(records):
    batches = list(records.batches())
    cells = {name: np.concatenate([batch[name] for batch in batches]).tolist() for name in records.columns}
    return {name: [None if cell != cell else cell for cell in column] for name, column in cells.items()}  # NaN: missing


class Database:
    """A schema of its own in the tests' server, and a user's way in."""

    def __init__(self, server):
        self.server, self.url = server, server.new_place()

    def do(self, *statements, url=None):
        with psycopg.connect(url or self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)

    def table(self, name, **columns):
        """Columns as ``name=(type, cells)``; the table to read."""
        self.do(f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, (kind, _) in columns.items())})")
        places = ", ".join(["%s"] * len(columns))
        rows = list(zip(*(cells for _, cells in columns.values()), strict=True))
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.cursor().executemany(f"INSERT INTO {name} VALUES ({places})", rows)
        return od.DatabaseTable(self.url, name)


@pytest.fixture
def database(postgresql):
    return Database(postgresql)


TYPES = {
    "smallint": [1, None, -3],
    "integer": [1, 2, None, 100],
    "bigint": [1, None, 2**62],
    "real": [0.5, None, math.inf],
    "double precision": [0.5, 2.0, math.nan, -math.inf, None],
    "numeric": [Decimal("0.5"), Decimal("NaN"), None, Decimal("1.00"), Decimal(10) ** 400, Decimal("1e-400")],
    "numeric(5,2)": [Decimal("0.50"), Decimal("-99.25"), None],
    "boolean": [True, False, None],
    "text": ["1", " word ", "0.50", "", "nan", "1e400", "x", None, "true", "naïve"],
    "varchar(9)": ["1", "word", None],
    "character(6)": ["1", "word", None],
    "bytea": [b"1", b"\xff\x00", b" word", None],
    "uuid": ["3d6f1ab0-61b2-4d4c-8a3b-0a8b8e1b4e11", None],
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_type_is_read_as_its_cells(database, kind):
    rows = max(map(len, TYPES.values()))
    cells = {f"c{place}": cells + [None] * (rows - len(cells)) for place, cells in enumerate(TYPES.values())}
    table = database.table("t", **{name: (declared, cells[name]) for name, declared in zip(cells, TYPES, strict=True)})
    schema = Schema.from_dict({"columns": dict.fromkeys(cells, COLUMNS[kind])})
    expected = whole(read(cells, schema))
    assert whole(read(table, schema)) == whole(read(table, schema, batch_rows=1)) == expected


def test_enumerations_and_domains_are_read_as_what_they_are_made_of(database):
    database.do(
        "CREATE TYPE level AS ENUM ('1', 'word')",
        "CREATE DOMAIN share AS numeric(4, 2)",
        "CREATE DOMAIN half AS share",
    )
    assert encoded(database.table("a", v=("level", ["word", "1", None])), schema_of("category")) == [3, 1, 3]
    assert encoded(database.table("b", v=("half", ["0.30", "-9", None])), schema_of("number")) == [0.3, -5, 0.25]


UNSUITABLE = (
    "date",
    "timestamptz",
    "interval",
    "integer[]",
    "text[]",
    "jsonb",
    "inet",
    "money",
    "int4range",
    "point",
    "oid",
)


def test_a_type_that_holds_no_kind_is_refused_before_a_record_is_read(database):
    declared = ", ".join(f"c{place} {kind}" for place, kind in enumerate(UNSUITABLE))
    database.do(f"CREATE TABLE t ({declared})", "CREATE TYPE pair AS (a integer)", "ALTER TABLE t ADD v pair")
    for name in [f"c{place}" for place in range(len(UNSUITABLE))] + ["v"]:
        with pytest.raises(FileMismatch, match=rf"'{name}' of the table t has type .*Convert the column"):
            read(od.DatabaseTable(database.url, "t"), schema_of("number", name))


def test_a_table_lacking_a_column_is_refused_and_its_own_columns_are_not_named(database):
    database.do(f'CREATE TABLE t ("V" integer, {SECRET} integer)')
    with pytest.raises(FileMismatch, match=r"lacks 'v'.*but for case") as refused:
        read(database.url, schema_of("number"), table="t")
    assert SECRET not in str(refused.value)


def test_an_empty_table_has_no_records_however_the_url_is_spelled(database):
    database.do("CREATE TABLE t (v integer)")
    for scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        url = database.url.replace("postgresql:", f"{scheme}:") + "&application_name=nightly.csv"
        assert read(url, schema_of("number"), table="t").n == 0
    assert encoded(od.DatabaseTable(database.url, "t"), schema_of("number")) == []


# A name is an identifier


@pytest.mark.parametrize(
    "name", ['a"b', "a b; DROP TABLE victim", "a.b", "A", "back\\slash", "o'clock", "ü%s$1", "select"]
)
def test_a_name_is_an_identifier_and_never_sql(database, name):
    written = '"' + name.replace('"', '""') + '"'
    database.do(
        "CREATE TABLE victim (v integer)",
        f"CREATE TABLE {written} ({written} integer)",
        f"INSERT INTO {written} VALUES (3)",
    )
    for spelling in (written, *([] if set(name) & set('."') else [name])):
        assert encoded(od.DatabaseTable(database.url, spelling), schema_of("number", name), name) == [3]
    assert read(database.url, schema_of("number"), table="victim").n == 0


def test_a_name_may_have_a_schema_and_nothing_more(database, postgresql):
    schema = database.url.rpartition("%3D")[2]
    database.do("CREATE TABLE t (v integer)")
    for written in (f"{schema}.t", f'"{schema}"."t"'):
        assert read(postgresql.url(""), schema_of("number"), table=written).n == 0
    for written in ("", ".", "t.", "a.b.c", '"t', 't"', "(SELECT 1)."):
        with pytest.raises(FileMismatch, match="is not the name of a table"):
            read(database.url, schema_of("number"), table=written)
    for written in ("T", "elsewhere.t", "(SELECT 1 AS v)", "t;", "t -- "):
        with pytest.raises(FileMismatch, match="The database has no table"):
            read(database.url, schema_of("number"), table=written)


# Only rows that are stored, all of them, for everybody alike


def test_what_may_choose_or_add_up_records_is_refused(database):
    database.do(
        "CREATE TABLE t (v integer)",
        "CREATE VIEW seen AS SELECT v FROM t WHERE v > 1",
        "CREATE MATERIALIZED VIEW stored AS SELECT v FROM t",
        "CREATE SEQUENCE numbers",
        "CREATE TABLE parted (v integer) PARTITION BY RANGE (v)",
        "CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (5)",
        "CREATE FOREIGN DATA WRAPPER nothing",
        "CREATE SERVER far FOREIGN DATA WRAPPER nothing",
        "CREATE FOREIGN TABLE away (v integer) SERVER far",
        "CREATE TABLE mixed (v integer) PARTITION BY RANGE (v)",
        "CREATE FOREIGN TABLE part PARTITION OF mixed FOR VALUES FROM (0) TO (5) SERVER far",
        "INSERT INTO parted VALUES (1), (2)",
    )
    try:
        for name, why in {
            "seen": "is a view",
            "away": "is a foreign",
            "mixed": "is a foreign",
            "numbers": "is no table of records",
        }.items():
            with pytest.raises(FileMismatch, match=why):
                read(database.url, schema_of("number"), table=name)
        assert read(database.url, schema_of("number"), table="stored").n == 0
        assert encoded(od.DatabaseTable(database.url, "parted"), schema_of("number")) == [1, 2]
    finally:
        database.do("DROP FOREIGN DATA WRAPPER nothing CASCADE")


def as_user(database, name):
    database.do(f"DROP ROLE IF EXISTS {name}", f"CREATE ROLE {name} LOGIN")
    schema = database.url.rpartition("%3D")[2]
    database.do(f"GRANT USAGE ON SCHEMA {schema} TO {name}")
    return database.url.replace("postgres@", f"{name}@")


def test_rows_hidden_by_a_policy_would_make_their_number_depend_on_them(database):
    url = as_user(database, "analyst")
    database.do(
        "CREATE TABLE t (v integer, consent boolean)",
        "INSERT INTO t VALUES (1, true), (2, false)",
        "CREATE POLICY consenting ON t USING (consent)",
        "GRANT SELECT ON t TO analyst",
    )
    assert read(url, schema_of("number"), table="t").n == 2
    database.do("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    with pytest.raises(FileMismatch, match="Row-level security hides some rows"):
        read(url, schema_of("number"), table="t")


def test_a_table_that_may_not_be_read_or_is_locked_is_refused(database, monkeypatch):
    url = as_user(database, "outsider")
    database.do("CREATE TABLE t (v integer)")
    with pytest.raises(FileMismatch, match=r"This database user may not read the table t. Ask its owner"):
        read(url, schema_of("number"), table="t")
    monkeypatch.setattr(database_tables, "WAIT_SECONDS", 0.2)
    with psycopg.connect(database.url) as other:
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(FileMismatch, match="Another session has locked the table t"):
            read(database.url, schema_of("number"), table="t")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://u:{}@localhost:1/d", r"u:\*\*\*@localhost:1/d cannot be opened.*Connection refused"),
        ("postgresql://u:{}@host.invalid/d", "cannot be opened: could not translate host name"),
        ("postgresql://u:{}/x@localhost/d", r"postgresql://\*\*\* cannot be opened: the reason is not printed"),
        ("postgresql://u@localhost:1/d?password={}", r"password=\*\*\* cannot be opened"),
        ("mysql://u:{}@localhost/d", "not from mysql://. Export it as Parquet"),
    ],
)
def test_a_database_that_cannot_be_opened_is_explained_without_the_password(url, words):
    url = url.format(SECRET)
    with pytest.raises(FileMismatch, match=words) as refused:
        read(url, schema_of("number"), table="t")
    assert refused.value.__cause__ is None
    assert SECRET not in str(refused.value) + repr(od.DatabaseTable(url, "t"))


def test_without_the_driver_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(MissingExtra, match=r"pip install 'onedraw\[postgresql\]'"):
        read("postgresql://localhost/d", schema_of("number"), table="t")


def test_a_table_without_a_database_and_a_database_without_a_table_are_refused(database, tmp_path):
    with pytest.raises(FileMismatch, match=r"may hold many tables. Name one"):
        read(database.url, schema_of("number"))
    for source in (tmp_path / "d.csv", {"v": [1]}, pa.table({"v": [1]})):
        with pytest.raises(FileMismatch, match="table='t' names a table in a database"):
            read(source, schema_of("number"), table="t")


# No record can make it fail


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_stored_text_that_is_not_utf8_is_missing_and_other_encodings_are_refused(database, encoding):
    """Were the server asked to convert, one record of unconvertible bytes would stop it."""
    name = f"raw_{encoding.lower()}_{os.getpid()}"
    database.do(f"CREATE DATABASE {name} ENCODING {encoding} LOCALE 'C' TEMPLATE template0")
    url = database.url.partition("&options")[0].replace("/postgres?", f"/{name}?")
    database.do("CREATE TABLE t (v text)", r"INSERT INTO t VALUES ('1'), (E'\xff'), ('word')", url=url)
    if encoding == "SQL_ASCII":
        assert encoded(od.DatabaseTable(url, "t"), schema_of("category")) == [1, 3, 3]
        return
    with pytest.raises(FileMismatch, match="keeps text in LATIN1; expected UTF8"):
        read(url, schema_of("category"), table="t")


def test_a_cell_too_long_for_the_protocol_is_missing_and_hurts_no_other(database):
    long = "1" + " " * database_tables.LONGEST_CELL
    for kind, cells in {"text": ["2", long, long[:-1]], "bytea": [b"2", long.encode(), long[:-1].encode()]}.items():
        table = database.table(f"t_{kind}", v=(kind, cells))
        assert encoded(table, schema_of("category")) == [0, 3, 1]
        read(table, schema_of("category")).check_whole()


REPLACED = {
    "text": ["", "word", "\t1\n", "1e400", "NaN", "\x01\x7f", "\u202e\U0001f600", "9" * 5000, "';--", None],
    "numeric": [Decimal("NaN"), Decimal("Infinity"), Decimal(10) ** 10000, Decimal("1e-9999"), None],
    "double precision": [math.nan, math.inf, -0.0, 5e-324, 1.7e308, None],
}


@pytest.mark.parametrize("kind", REPLACED)
def test_replacing_a_record_changes_that_record_alone(database, kind):
    table = database.table("t", v=(kind, ["1", "2", "0.5"]))
    schema = Schema.from_dict({"columns": {"v": COLUMNS["category"]}})
    others = encoded(table, schema)
    for cell in REPLACED[kind]:
        database.do(("UPDATE t SET v = %s WHERE ctid = (SELECT max(ctid) FROM t)", (cell,)))
        assert encoded(table, schema) == [*others[:2], encoded({"v": [cell]}, schema)[0]], cell


# One picture


def test_whatever_is_written_meanwhile_all_passes_see_the_same_rows(database):
    table = database.table("t", v=("integer", [1, 2, 3, 4]))
    records = read(table, schema_of("number"))
    before = np.concatenate(list(records.values("v"))).tolist()
    database.do("UPDATE t SET v = 5 WHERE v = 1", "DELETE FROM t WHERE v = 2", "INSERT INTO t VALUES (0), (0), (0)")
    assert np.concatenate(list(records.values("v"))).tolist() == before == [1, 2, 3, 4]
    records.check_whole()
    assert sorted(encoded(table, schema_of("number"))) == [0, 0, 0, 3, 4, 5]


def test_without_that_picture_a_writer_is_caught_at_the_next_pass(database, monkeypatch):
    """The planted fault: a transaction that sees what is committed meanwhile."""
    sound = PostgreSQLTable._run
    monkeypatch.setattr(
        PostgreSQLTable, "_run", lambda self, sql: sound(self, sql.replace("REPEATABLE READ", "READ COMMITTED"))
    )
    records = read(database.table("t", v=("integer", [1, 2])), schema_of("number"))
    database.do("INSERT INTO t VALUES (0)")
    with pytest.raises(FileMismatch, match="the table t changed while it was read"):
        list(records.values("v"))


def test_a_table_cannot_be_dropped_or_emptied_until_its_records_are_let_go(database):
    records = read(database.table("t", v=("integer", [1, 2])), schema_of("number"))
    for statement in ("DROP TABLE t", "TRUNCATE t", "ALTER TABLE t ALTER v TYPE text"):
        with pytest.raises(psycopg.errors.LockNotAvailable):
            database.do("SET lock_timeout TO '100ms'", statement)
    assert np.concatenate(list(records.values("v"))).tolist() == [1, 2]
    del records
    database.do("SET lock_timeout TO '10s'", "DROP TABLE t")


def test_a_pass_that_is_given_up_does_not_spoil_the_next_and_two_at_once_are_refused(database):
    database.do("CREATE TABLE t AS SELECT i AS v FROM generate_series(1, 300000) AS i")
    records = read(database.url, schema_of("number"), table="t", batch_rows=1000)
    given_up = records.batches()
    next(given_up)
    with pytest.raises(FileMismatch, match="is being read already"):
        next(records.batches())
    del given_up
    assert sum(map(len, records.values("v"))) == 300_000


def test_a_server_that_hangs_up_is_reported_without_its_words(database):
    records = read(database.table("t", v=("text", [SECRET])), schema_of("number"))
    database.do(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND xact_start IS NOT NULL"
    )
    for reading in (lambda: list(records.values("v")), records.check_whole):
        with pytest.raises(
            FileMismatch, match=r"the table t could not be read to its end.*Try again when it answers"
        ) as lost:
            reading()
        assert SECRET not in str(lost.value)


# Persons


def person_schema(k):
    return Schema.from_dict({"person": "who", "max_records": k, "columns": {"v": COLUMNS["number"]}})


@pytest.mark.parametrize("kind", ["text", "bigint", "uuid"])
def test_of_each_person_the_same_first_records_count_as_in_a_file_of_the_rows(database, tmp_path, kind):
    names = {"text": ["p", "q", None, "p", "p", "q"], "bigint": [2**60, 2**60 + 1, None, 2**60, 2**60, 5]}
    first, second = (f"3d6f1ab0-61b2-4d4c-8a3b-0a8b8e1b4e1{digit}" for digit in "12")
    who = names.get(kind, [first, second, None, first, first, second])
    v = list(range(-3, 3))
    table = database.table("t", who=(kind, who), v=("integer", v))
    pq.write_table(pa.table({"who": who, "v": v}), tmp_path / "t.parquet")
    for k in (1, 2):
        assert encoded(table, person_schema(k)) == encoded(tmp_path / "t.parquet", person_schema(k))


def test_rows_moved_by_an_update_leave_every_person_the_same_records_at_each_pass(database):
    table = database.table("t", who=("integer", [1, 1, 2, 2, 1]), v=("integer", [1, 2, 3, 4, 5]))
    database.do("UPDATE t SET v = 0 WHERE v = 1")  # the row is now the last one
    records = read(table, person_schema(2))
    kept = [np.concatenate(list(records.values("v"))).tolist() for _ in range(2)]
    assert kept[0] == kept[1] == [2, 3, 4, 5, 0.25]


def test_dates_in_columns_that_are_not_declared_do_not_matter(database):
    table = database.table("t", v=("integer", [1]), d=("date", [datetime.date(2026, 1, 1)]))
    assert encoded(table, schema_of("number")) == [1]
