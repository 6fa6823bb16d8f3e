"""Odd cells, odd columns and odd calls on Spark: read as from a file, refused before the charge, and never quoted."""

from __future__ import annotations

import datetime
import json
import math
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import onedraw as od
from onedraw.cli.application import application
from onedraw.data import Schema, read
from onedraw.errors import FileMismatch

KINDS = {
    "number": {"kind": "number", "lower": -5, "upper": 5, "missing": 0.25},
    "count": {"kind": "count", "cap": 3, "missing": 2},
    "category": {"kind": "category", "levels": ["2", "1", "0.5", "word"], "missing": "word"},
    "binary": {"kind": "binary", "missing": "no"},
}
CELLS = {
    "bytes": pa.array([1, None, 2, 100], pa.int8()),
    "longs": pa.array([1, None, 2**62, -(2**62)], pa.int64()),
    "unsigned": pa.array([1, None, 2**63, 0], pa.uint64()),
    "floats": pa.array([1.0, None, math.nan, -math.inf], pa.float64()),
    "singles": pa.array([0.5, None, math.inf, 3.0], pa.float32()),
    "truths": pa.array([True, False, None, True]),
    "decimals": pa.array([Decimal("0.5"), None, Decimal("-99"), Decimal("0.7")], pa.decimal128(9, 1)),
    "texts": pa.array(["1", None, " 0.50 ", "x"]),
    "words": pa.array(["word", "", "TRUE", "1e400"]),
    "broken": pa.array([b"word", b"\xff", b"1", None], pa.binary()).view(pa.string()),
    "raw": pa.array([b"1", None, b"\xff", b"2"], pa.binary()),
    "codes": pa.array(["word", None, "1", "word"]).dictionary_encode(),
}
NO_CELLS = {
    "lists": pa.array([[1], [2], None, []]),
    "dates": pa.array([datetime.date(2026, 1, 1)] * 4),
    "times": pa.array([datetime.datetime(2026, 1, 1)] * 4),
    "structs": pa.array([{"Zzyzx": 1}] * 4),
}


def schema_of(names):
    """Every column as every kind; Spark tells no names apart by case, so neither does this table."""
    return Schema.from_dict({"columns": {f"{name} as {kind}": KINDS[kind] for name in names for kind in KINDS}})


def table_of(arrays):
    return pa.table({f"{name} as {kind}": array for name, array in arrays.items() for kind in KINDS})


def whole(records):
    batches = list(records.batches())
    return {name: np.concatenate([batch[name] for batch in batches]).tolist() for name in records.columns}


def test_every_type_of_cell_is_read_as_from_the_file(cluster, tmp_path):
    pq.write_table(table_of(CELLS), tmp_path / "d.parquet")
    schema = schema_of(CELLS)
    frame = cluster.session.read.parquet(str(tmp_path / "d.parquet"))
    assert whole(read(frame, schema)) == whole(read(tmp_path / "d.parquet", schema))


def test_a_type_that_holds_no_cell_is_missing_in_a_frame_and_refused_in_a_table(cluster, tmp_path):
    pq.write_table(table_of(NO_CELLS), tmp_path / "d.parquet")
    schema = schema_of(NO_CELLS)
    found = whole(read(cluster.session.read.parquet(str(tmp_path / "d.parquet")), schema))
    assert found == whole(read(table_of(NO_CELLS), schema))
    with pytest.raises(FileMismatch, match="cannot hold kind number") as error:
        read(f"spark:{tmp_path}/d.parquet", schema)
    assert "Zzyzx" not in str(error.value)


def test_columns_are_checked_before_a_record_is_read(cluster):
    session, schema = cluster.session, Schema.from_dict({"columns": {"v": KINDS["number"]}})
    with pytest.raises(FileMismatch, match="lacks 'v'"):
        read(session.range(3), schema)
    with pytest.raises(FileMismatch, match="would be there but for case"):
        read(session.range(3).toDF("V"), schema)
    with pytest.raises(FileMismatch, match="'v' more than once"):
        read(session.range(3).selectExpr("id AS v", "id AS v"), schema)
    assert whole(read(session.range(3).selectExpr("id AS v", "id + 7 AS V"), schema)) == {"v": [0.0, 1.0, 2.0]}
    assert read(session.range(0).toDF("v"), schema).n == 0


@pytest.mark.parametrize("address", ["no_such_table", "/no/such/place", "delta:/no/such/place"])
def test_an_address_where_nothing_is_is_refused(cluster, address):
    with pytest.raises(FileMismatch, match="Spark failed while opening"):
        read(f"spark:{address}", Schema.from_dict({"columns": {"v": KINDS["number"]}}))


@pytest.fixture
def clinic(tmp_path):
    """A table in two files, the same in one, a schema and books."""
    rng = np.random.default_rng(3)
    table = pa.table({"age": rng.normal(50, 30, 4000), "ward": rng.choice(["a", "b", "Zzyzx"], 4000)})
    (tmp_path / "clinic").mkdir()
    for place in range(2):
        pq.write_table(table.slice(2000 * place, 2000), tmp_path / "clinic" / f"{place}.parquet")
    pq.write_table(table, tmp_path / "clinic.parquet")
    declared = {
        "dataset": "clinic",
        "columns": {
            "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 50},
            "ward": {"kind": "category", "levels": ["a", "b"], "missing": "a"},
        },
    }
    (tmp_path / "schema.json").write_text(json.dumps(declared))
    od.Ledger.open(tmp_path / "books.db", create=True).init("clinic", od.ApproxDP(50.0, 1e-3))
    return tmp_path


def released(folder, data, name, *words):
    arguments = [
        "release", data, "--schema", folder / "schema.json", "--ledger", folder / "books.db", "--out", folder / name,
        "--epsilon", 1, "--seed", 4, *words,
    ]  # fmt: skip
    result = CliRunner().invoke(application, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return json.loads((folder / name).read_text())


@pytest.mark.parametrize(
    "words", [("--target", "age", "--model", "mean"), ("--target", "ward", "--model", "histogram")], ids=lambda words: words[-1]
)  # fmt: skip
def test_the_command_releases_a_folder_of_parquet_files_as_it_does_the_file(cluster, clinic, words):
    there = released(clinic, f"spark:{clinic}/clinic", "there.json", *words)
    here = released(clinic, clinic / "clinic.parquet", "here.json", *words)
    assert there["data"].pop("engine")["name"] == "Spark"
    assert {name for name in here if here[name] != there[name]} <= {"ledger", "prepared_at"}
    assert od.verify(clinic / "there.json").answer == "consistent"


def test_the_page_on_data_that_do_not_fit_does_what_it_says(cluster, tmp_path, monkeypatch):
    page = (Path(__file__).resolve().parents[2] / "docs" / "when-data-do-not-fit.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"income": np.linspace(0, 9e4, 2000)}), "people")
    Path("schema.yaml").write_text("columns:\n  income: {kind: number, lower: 0, upper: 100000, missing: 0}\n")
    (block,) = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    found = {"__name__": "__main__"}
    exec(block.replace('"people"', repr(str(tmp_path / "people"))), found)
    assert found["release"].certificate.data.engine.name == "Spark"
