"""`onedraw release` on CSV and Parquet files in which one cell is odd: what is seen from outside stays, and only that record moves."""

import contextlib
import datetime
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from experiments.program_audit.replays import differing

import onedraw as od
from tests.source_cases import CSV_CELLS, PARQUET_COLUMNS

SCHEMA = """\
dataset: patients
columns:
  outcome: {kind: binary, levels: [0, 1], missing: 0}
  age: {kind: number, lower: 0, upper: 120, missing: 50}
"""
N = 40
AGES = [20 + row for row in range(N)]
OUTCOMES = [row % 2 for row in range(N)]


def csv_file(path, *, last, column):
    rows = [[str(outcome).encode(), str(age).encode()] for outcome, age in zip(OUTCOMES, AGES, strict=True)]
    rows[-1][("outcome", "age").index(column)] = last
    path.write_bytes(b"\n".join([b"outcome,age", *map(b",".join, rows)]) + b"\n")
    return path


def parquet_file(path, *, last, column, kind):
    declared, convert, _ = PARQUET_COLUMNS[kind]
    plain = {"outcome": OUTCOMES, "age": AGES}
    columns = {name: pa.array(cells) for name, cells in plain.items()}
    columns[column] = pa.array([*map(convert, plain[column][:-1]), last], declared)
    pq.write_table(pa.table(columns), path)
    return path


def encoded(path):
    records = od.read(path, od.Schema.load("schema.yaml"), target="outcome")
    return np.concatenate([np.column_stack(list(batch.values())) for batch in records.batches()])


def released(run, path, question, column):
    """Everything the command shows but the draw: exit code, words, files, ledger, certificate."""
    for left in (*Path().glob("*.db*"), *Path().glob("release.json")):
        left.unlink()
    od.Ledger.open("ledger.db", create=True).init("patients", od.ApproxDP(5.0, 1e-4))
    code, printed, said = run(
        "release", str(path), "--schema=schema.yaml", f"--target={column}", f"--model={question}", "--epsilon=1",
        "--mechanism=diffused", "--ledger=ledger.db", "--out=release.json", "--seed=4", "--json",
    )  # fmt: skip
    certificate = json.loads(Path("release.json").read_text()) if Path("release.json").exists() else {}
    for changing in ("draw", "prepared_at", "ledger"):
        certificate.pop(changing, None)
    return {
        "code": code,
        "fields": sorted(json.loads(printed or "{}")),
        "said": said.replace(path.stem, "file"),
        "certificate": certificate,
        "events": [event.kind for event in od.Ledger.open("ledger.db").events()],
    }


@pytest.fixture
def folder(tmp_path):
    with contextlib.chdir(tmp_path):
        Path("schema.yaml").write_text(SCHEMA)
        yield tmp_path


def neighbours(column):
    """(file as people have it, neighbour with an odd last cell), for CSV and every Parquet type that holds the column."""
    plain = {"outcome": "1", "age": "59"}[column]
    whole = csv_file(Path("plain.csv"), last=plain.encode(), column=column)
    for place, cell in enumerate(CSV_CELLS):
        yield f"csv {place}", whole, csv_file(Path("odd.csv"), last=cell, column=column)
    for kind, (_, convert, odd) in PARQUET_COLUMNS.items():
        whole = parquet_file(Path("plain.parquet"), last=convert(plain), column=column, kind=kind)
        for place, cell in enumerate(odd):
            yield (
                f"parquet {kind} {place}",
                whole,
                parquet_file(Path("odd.parquet"), last=cell, column=column, kind=kind),
            )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("column", ["outcome", "age"])
def test_one_odd_cell_of_a_file_moves_only_its_own_record(column):
    expected, count = encoded(csv_file(Path("all.csv"), last=b"1", column="outcome")), 0
    for name, whole, odd in neighbours(column):
        one, other = encoded(whole), encoded(odd)
        assert np.array_equal(one[:-1], expected[:-1]), name
        assert np.array_equal(other[:-1], expected[:-1]), name
        count += 1
    assert count > 60


SOME = ("csv 18", "parquet texts 1")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("question", "column", "chosen"),
    [
        ("mean", "age", SOME),
        pytest.param("mean", "age", (), marks=pytest.mark.slow),
        pytest.param("proportion", "outcome", (), marks=pytest.mark.slow),
    ],
    ids=["some", "mean", "proportion"],
)
def test_one_odd_cell_of_a_file_shows_nowhere_outside(run, question, column, chosen):
    known = {}
    for name, whole, odd in neighbours(column):
        if chosen and name not in chosen:
            continue
        if whole not in known or whole.suffix == ".parquet":
            known[whole] = released(run, whole, question, column)
        assert known[whole]["code"] == 0
        assert list(differing(known[whole], released(run, odd, question, column))) == [], name


@pytest.mark.usefixtures("folder")
def test_a_type_that_holds_no_declared_kind_is_refused_by_the_files_own_schema_whatever_its_records(run):
    """A column of dates is declared by whoever wrote the file; with no record, or others, it is refused alike."""
    for cells in ([None] * N, [datetime.date(2026, 1, 1)] * N, [None] * (N - 1) + [datetime.date(1970, 1, 1)]):
        pq.write_table(pa.table({"outcome": OUTCOMES, "age": pa.array(cells, pa.date32())}), "dates.parquet")
        assert released(run, Path("dates.parquet"), "mean", "age")["code"] == 2
