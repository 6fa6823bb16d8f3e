"""Records in a database on the command line: the same release as from a file of the rows, and no word too much."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import onedraw as od
from onedraw.data import database_tables

SECRET = "s3cr3t"
TYPES = "ill text, grade text, cost numeric, age double precision, ward text, smoker text, visits smallint"


@pytest.fixture
def patients(hospital, postgresql):
    """The hospital's patients as a table; the database's URL."""
    url = postgresql.new_place()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE patients ({TYPES})")
        with connection.cursor().copy("COPY patients FROM STDIN (FORMAT csv, HEADER)") as copy:
            copy.write((hospital / "patients.csv").read_text())
    return url


def certificate_of(path):
    """What must be the same from every source: all but when it was, and where it stands in the ledger."""
    document = json.loads(path.read_text())
    return {name: value for name, value in document.items() if name not in ("prepared_at", "ledger")}


@pytest.mark.postgresql
@pytest.mark.parametrize(("target", "model"), [("cost", "mean"), ("ill", "logistic"), ("visits", "quantile")])
def test_a_table_gives_the_same_draw_and_certificate_as_a_file_of_its_rows(release, patients, hospital, target, model):
    assert release(target, model, seed=7, out="file.json")[0] == 0
    code, _, err = release(target, model, seed=7, out="table.json", source=patients, table="patients")
    assert code == 0, err
    one, other = certificate_of(hospital / "file.json"), certificate_of(hospital / "table.json")
    assert one["draw"] == other["draw"]
    assert one == other
    assert od.verify(hospital / "table.json", ledger=od.Ledger.open(hospital / "ledger.db")).answer == "authentic"


def test_a_sqlite_table_gives_them_too(release, hospital):
    connection = sqlite3.connect(hospital / "records.sqlite")
    connection.execute(f"CREATE TABLE patients ({TYPES})")
    rows = [line.split(",") for line in (hospital / "patients.csv").read_text().splitlines()[1:]]
    connection.executemany(f"INSERT INTO patients VALUES ({', '.join('?' * 7)})", rows)
    connection.commit()
    connection.close()
    assert release("ill", "logistic", seed=7, out="file.json")[0] == 0
    assert release("ill", "logistic", seed=7, out="table.json", source="records.sqlite", table="patients")[0] == 0
    assert certificate_of(hospital / "file.json") == certificate_of(hospital / "table.json")


@pytest.mark.postgresql
def test_a_fit_that_reads_the_table_at_every_pass_never_sees_what_is_written_meanwhile(patients, hospital, monkeypatch):
    schema = od.Schema.load(hospital / "ill.yaml")
    sound, passes = database_tables.PostgreSQLTable.parts, []

    def while_somebody_writes(self, wanted, rows):
        passes.append(list(wanted))
        with psycopg.connect(patients, autocommit=True) as other:
            other.execute("UPDATE patients SET age = 100 - age, ill = 'yes'")
            other.execute("DELETE FROM patients WHERE ctid IN (SELECT ctid FROM patients LIMIT 5)")
        return sound(self, wanted, rows)

    monkeypatch.setattr(database_tables.PostgreSQLTable, "parts", while_somebody_writes)
    monkeypatch.setenv(
        "ONEDRAW_SCRATCH", str(hospital / "no such folder")
    )  # nowhere to keep encoded records between passes
    plan = od.plan(schema, "ill", model="logistic", epsilon=5, delta=1e-6, n=300).plan
    released = [
        od.release(plan, replace(od.read(source, schema, target="ill"), memory=0), random_state=7)
        for source in (hospital / "patients.csv", od.DatabaseTable(patients, "patients"))
    ]
    assert released[0].certificate.draw == released[1].certificate.draw
    assert len(passes) > 5


@pytest.mark.postgresql
def test_every_command_that_reads_records_takes_a_table(run, release, patients):
    assert release("ill", "logistic", source=patients, table="patients")[0] == 0
    code, out, _ = run("schema", "check", "ill.yaml", patients, "--table=patients")
    assert (code, "patients has these columns and 300 records" in out) == (0, True)
    assert len(run("predict", "release.json", patients, "--table=patients")[1].splitlines()) == 301
    code, _, err = run("evaluate", "release.json", patients, "--table=patients", "--epsilon=1", "--ledger=ledger.db", "--dataset=p", "--out=e.json")  # fmt: skip
    assert code == 0, err


@pytest.mark.postgresql
def test_estimators_take_a_table(patients):
    table = od.DatabaseTable(patients, "patients")
    schema = od.Schema.from_dict({"columns": {"age": {"kind": "number", "lower": 0, "upper": 100, "missing": 50}, "ill": {"kind": "binary", "levels": ["no", "yes"], "missing": "no"}}})  # fmt: skip
    fitted = od.DPLogisticRegression(epsilon=5, delta=1e-6, schema=schema, target="ill").fit(table)
    assert fitted.coef_.shape == (1, 1)
    assert len(fitted.predict(table)) == 300


@pytest.mark.postgresql
def test_nothing_is_charged_where_the_table_cannot_be_opened_or_read(
    run, release, patients, releases_charged, monkeypatch
):
    for source, table in [
        (patients, "nothing"), (patients, "patients; DROP TABLE patients"), (patients, None), ("patients.csv", "patients"),
        (patients.replace("postgres@", "nobody@"), "patients"), ("postgresql://localhost:1/d", "patients"),
        ("mysql://localhost/d", "patients"),
    ]:  # fmt: skip
        code, out, err = release("cost", "mean", source=source, table=table)
        assert code == 2, (source, table)
        assert "Traceback" not in out + err
    sound = database_tables.PostgreSQLTable.check_whole

    def gone(self, names):
        self._connection.close()
        sound(self, names)

    monkeypatch.setattr(database_tables.PostgreSQLTable, "check_whole", gone)
    assert release("cost", "mean", source=patients, table="patients")[0] == 2
    assert releases_charged() == 0


@pytest.mark.postgresql
def test_a_server_that_goes_after_the_charge_keeps_the_spend_and_the_release_is_resumed(
    run, release, patients, hospital, monkeypatch
):
    """With a password in the URL: it is in no message and in no file, the command for resuming included."""
    url = patients.replace("postgres@", f"postgres:{SECRET}@")
    sound = database_tables.PostgreSQLTable.parts

    def gone(self, wanted, rows):
        with psycopg.connect(patients, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()")  # fmt: skip
        return sound(self, wanted, rows)

    monkeypatch.setattr(database_tables.PostgreSQLTable, "parts", gone)
    code, out, err = release("cost", "mean", source=url, table="patients")
    assert (code, "could not be read to its end" in err) == (5, True), err
    unfinished = (hospital / "release.json.unfinished").read_text()
    assert SECRET not in out + err + unfinished
    assert "postgres:***@" in unfinished
    monkeypatch.setattr(database_tables.PostgreSQLTable, "parts", sound)
    entry = json.loads(run("ledger", "show", "ledger.db", "--json")[1])["datasets"]["p"]
    assert entry["releases"] == 1
    resume = unfinished.partition("--resume ")[2].split()[0].strip("\"'`.,")
    code, out, err = release("cost", "mean", source=url, table="patients", resume=resume)
    assert code == 0, err
    assert json.loads(run("ledger", "show", "ledger.db", "--json")[1])["datasets"]["p"]["releases"] == 1
    assert SECRET not in out + err + (hospital / "release.json").read_text() + (
        hospital / "ledger.db"
    ).read_bytes().decode("latin-1")


@pytest.mark.postgresql
def test_no_command_shows_a_cell_of_an_odd_table(run, hospital, postgresql):
    url = postgresql.new_place()
    columns = ("ill", "age", "ward", "smoker")
    kinds = {
        "text": f"'{SECRET}'",
        "jsonb": f"""'{{"{SECRET}": 1}}'""",
        "text[]": f"ARRAY['{SECRET}']",
        "bytea": f"'{SECRET}'::bytea",
    }
    with psycopg.connect(url, autocommit=True) as connection:
        for place, (kind, cell) in enumerate(kinds.items()):
            connection.execute(f"CREATE TABLE t{place} AS SELECT {', '.join(f'{cell}::{kind} AS {name}' for name in columns)} FROM generate_series(1, 50)")  # fmt: skip
        connection.execute(f"CREATE TABLE t4 AS SELECT 1 AS {SECRET}")
        connection.execute("CREATE VIEW t5 AS SELECT *, (ill::numeric > 0)::text AS bad FROM t0")
    codes = []
    for place in range(6):
        code, out, err = run("release", url, f"--table=t{place}", "--schema=ill.yaml", "--target=ill", "--model=proportion", "--epsilon=1", "--ledger=ledger.db", f"--out=r{place}.json")  # fmt: skip
        codes.append(code)
        assert SECRET not in out + err
    assert codes == [0, 2, 2, 0, 2, 2]


SCHEMA = "dataset: p\ncolumns:\n  age: {kind: number, lower: 0, upper: 120, missing: 50}\n"
NEIGHBOURS = {  # a column's type, a plain cell and an odd one in its place
    "texts": ("text", "59", "9" * 5000),
    "numbers": ("numeric", "59", "NaN"),
    "floats": ("double precision", "59", "-Infinity"),
    "bytes": ("bytea", "59", "\\xfffe"),
}


def postgresql_table(url, name, kind, last):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} AS SELECT i::text::{kind} AS age FROM generate_series(20, 58) AS i")
        connection.execute(f"INSERT INTO {name} VALUES ('{last}')")


def seen_outside(run, source, table, place):
    """All that a release shows but the draw: exit code, words, ledger, certificate."""
    run("ledger", "init", f"{place}.db", "--dataset=p", "--epsilon=9", "--delta=1e-3")
    code, out, err = run(
        "release", source, f"--table={table}", "--schema=schema.yaml", "--target=age", "--model=mean", "--epsilon=1", "--seed=4",
        f"--ledger={place}.db", f"--out={place}.json", "--json",
    )  # fmt: skip
    certificate = certificate_of(Path(f"{place}.json"))
    certificate.pop("draw")
    events = [str(event.kind) for event in od.Ledger.open(f"{place}.db").events()]
    return code, sorted(json.loads(out)), err.replace(table, "table").replace(place, "place"), events, certificate


@pytest.mark.postgresql
@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_one_odd_cell_of_a_table_shows_nowhere_outside(run, postgresql, tmp_path, kind):
    url, (declared, plain, odd) = postgresql.new_place(), NEIGHBOURS[kind]
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    for table, last in {"whole": plain, "other": odd}.items():
        postgresql_table(url, table, declared, last)
    one, other = (seen_outside(run, url, table, table) for table in ("whole", "other"))
    assert one[0] == 0
    assert one == other


def test_one_odd_cell_of_a_sqlite_table_shows_nowhere_outside(run, tmp_path):
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    connection = sqlite3.connect("records.sqlite")
    for place, last in enumerate([59, "unknown", b"\xff", None, float("-inf"), "9" * 5000]):
        connection.execute(f"CREATE TABLE t{place} (age REAL)")
        connection.executemany(f"INSERT INTO t{place} VALUES (?)", [*((age,) for age in range(20, 59)), (last,)])
    connection.commit()
    connection.close()
    plain, *others = (seen_outside(run, "records.sqlite", f"t{place}", f"t{place}") for place in range(6))
    assert plain[0] == 0
    assert all(other == plain for other in others)
