"""Odd cells, odd columns and odd calls on Spark: read as from a file, refused before the charge, and never quoted."""

from __future__ import annotations

import json
import re
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import onedraw as od
from onedraw import cli
from onedraw.cli import application
from onedraw.data import Schema, read
from onedraw.data.columns import Wanted
from onedraw.data.records import Measure
from onedraw.data.shards import File, RowGroups
from onedraw.data.spark_tables import SparkTable
from onedraw.errors import FileMismatch, InvalidSchema
from tests.source_cases import (
    ARROW,
    COLUMNS,
    CSV_CELLS,
    DATED,
    DATES,
    MALFORMED_SCHEMA,
    PARQUET_COLUMNS,
    RECORD,
    SECRET,
    SKIPPED,
    TYPED,
    encoded,
    malformed_parquet,
    schema_of,
)


def table_of(arrays, kinds=tuple(COLUMNS)):
    """Every column as every kind, all of one length; Spark tells no names apart by case, so neither does this table."""
    rows = max(map(len, arrays.values()))
    padded = {name: padded_to(rows, array) for name, array in arrays.items()}
    return pa.table({f"{name} as {kind}": array for name, array in padded.items() for kind in kinds})


def padded_to(rows, array):
    if pa.types.is_dictionary(array.type):
        return padded_to(rows, array.dictionary_decode()).dictionary_encode()
    return pa.concat_arrays([array, pa.nulls(rows - len(array), array.type)])


def schema_for(table):
    return Schema.from_dict({"columns": {name: COLUMNS[name.rpartition(" as ")[2]] for name in table.column_names}})


def whole(records):
    batches = list(records.batches())
    cells = {name: np.concatenate([batch[name] for batch in batches]).tolist() for name in records.columns}
    return {name: [comparable(cell) for cell in column] for name, column in cells.items()}


def comparable(cell):
    """A skipped cell is NaN, which equals nothing, or its name in tests: a number below all others in its place."""
    return -1e300 if cell in SKIPPED.values() or cell != cell else cell


def odd_cells():
    """By type, in one column each: the odd cells of all tests of files, and between them plain ones, which must stay what they are."""
    found = {}
    for array in (array for array in ARROW if _for_spark(array.type)):
        found.setdefault(str(array.type), []).append(array)
    for kind, convert, odd in PARQUET_COLUMNS.values():
        if _for_spark(kind):
            found.setdefault(str(kind), []).append(pa.array([convert("1"), *odd, convert("0")], kind))
    found["string"].append(pa.array(CSV_CELLS, pa.binary()).view(pa.string()))
    found["string"].append(pa.array(["word", *RECORD.split(","), "TRUE", "1e400"]))
    return {name: pa.concat_arrays([_plain(array) for array in arrays]) for name, arrays in found.items()}


def _plain(array):
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _for_spark(kind):
    """Half floats, decimals of 256 bits and texts as views are not for Spark: it opens no such file, or Parquet has none."""
    return not any(word in str(kind) for word in ("halffloat", "decimal256", "view", "null"))


def by_itself(cell, kind, known={}):  # noqa: B006  # kept from call to call
    key = (repr(cell), kind)
    if key not in known:
        (known[key],) = encoded({"v": [cell]}, schema_of(kind))
    return comparable(known[key])


def test_responses_are_measured_from_a_public_centre_as_elsewhere(cluster):
    frame = pd.DataFrame({"x": [0.1, 0.2, 0.3], "y": [1.0, 2.0, 4.0]})
    bounds = {"kind": "number", "lower": 0, "upper": 4, "missing": 0}
    schema = Schema.from_dict({"columns": {"x": bounds, "y": bounds}})
    asked = {"target": "y", "measure": Measure(1.0, 2.0)}
    there = read(cluster.session.createDataFrame(frame), schema, **asked)
    assert whole(there) == whole(read(frame, schema, **asked))
    assert sorted(whole(there)["y"]) == [0.0, 0.5, 1.5]


def test_every_odd_cell_of_every_type_is_read_as_by_itself(cluster, tmp_path):
    """Encoded by Spark's workers from Spark's rows, and from the file where it is."""
    table = table_of(odd_cells())
    pq.write_table(table, tmp_path / "d.parquet")
    frame, schema = cluster.session.read.parquet(str(tmp_path / "d.parquet")), schema_for(table)
    expected = {
        name: [by_itself(cell, name.rpartition(" as ")[2]) for cell in column.to_pylist()]
        for name, column in zip(table.column_names, table.columns, strict=True)
        if not name.startswith("string")  # not all of it is text
    }
    local = whole(read(tmp_path / "d.parquet", schema))
    assert {name: local[name] for name in expected} == expected
    there = read(frame, schema)
    assert whole(there) == local
    assert all(isinstance(part, File) for part in there._table.files([]))
    same = table.select([name for name in table.column_names if not re.match("u?int(8|16|32)|uint|fixed", name)])
    in_place = read(frame, schema_for(same))
    assert whole(in_place) == {name: local[name] for name in same.column_names}
    assert all(isinstance(part, RowGroups) for part in in_place._table.files([]))


def test_dates_are_read_as_from_the_file_where_they_are_and_when_encoded_by_workers(cluster, tmp_path):
    columns = {str(array.type): array for array in DATED if re.fullmatch(r"date32.*|timestamp\[us.*", str(array.type))}
    table = table_of(columns, DATES)
    pq.write_table(table, tmp_path / "d.parquet")
    frame, schema = cluster.session.read.parquet(str(tmp_path / "d.parquet")), schema_for(table)
    expected = {
        name: [by_itself(cell, name.rpartition(" as ")[2]) for cell in column.to_pylist()]
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    in_place, moved = read(frame, schema), read(frame.where("true"), schema)
    assert whole(in_place) == whole(read(tmp_path / "d.parquet", schema)) == expected
    assert all(isinstance(part, RowGroups) for part in in_place._table.files([]))
    assert {name: sorted(values) for name, values in whole(moved).items()} == {
        name: sorted(values) for name, values in expected.items()
    }


def test_a_type_that_holds_no_cell_is_missing_in_a_frame_and_refused_in_a_table(cluster, tmp_path):
    types = {str(array.type).partition("<")[0]: array for array in TYPED if "duration" not in str(array.type)}
    table = table_of({**types, "struct": pa.array([{SECRET: 1}])}, ("number", "category"))
    schema = schema_for(table)
    pq.write_table(table, tmp_path / "d.parquet")
    frame = cluster.session.read.parquet(str(tmp_path / "d.parquet"))
    assert whole(read(frame, schema)) == whole(read(table, schema))
    with pytest.raises(FileMismatch, match=r"cannot hold kind number; expected .* Convert the column") as error:
        read(f"spark:{tmp_path}/d.parquet", schema)
    assert SECRET not in str(error.value)
    wanted = dict.fromkeys(table.column_names, Wanted.LABELS)
    assert set(SparkTable(frame, declared=True).unsuitable(wanted)) == set(table.column_names)


def test_a_record_cannot_reach_others_through_a_type_that_was_inferred(cluster):
    others = {
        (1, 0, 2): [None, 2.5, 2**40],
        (1.0, 0.5, -9.0): [None, np.inf],
        (True, False, True): [None],
        ("1", "word", "0.50"): [None, "x"],
    }
    columns = {
        f"{place}{row} as {kind}": pd.Series([*base, other])
        for place, (base, odd) in enumerate(others.items())
        for row, other in enumerate([base[0], *odd])
        for kind in ("number", "category")
    }
    found = whole(read(cluster.session.createDataFrame(pd.DataFrame(columns)), schema_for(pa.table(columns))))
    for place, base in enumerate(others):
        for name in (name for name in columns if name.startswith(str(place))):
            assert found[name][:3] == encoded({"v": list(base)}, schema_of(name.rpartition(" as ")[2])), name


def test_odd_names_of_columns_are_names(cluster, tmp_path):
    schema = Schema.from_dict({"columns": dict.fromkeys(["a.b", "v", "a`b", "ü; --"], COLUMNS["number"])})
    pq.write_table(
        pa.table({"v": [1.0], "v.w": [2.0], "a.b": [3.0], "a": [{"b": 4.0}], "a`b": [0.5], "ü; --": [-1.0]}),
        tmp_path / "d.parquet",
    )
    frame = cluster.session.read.parquet(str(tmp_path / "d.parquet"))
    for each in (frame, frame.where("true")):
        assert whole(read(each, schema)) == {"a.b": [3.0], "v": [1.0], "a`b": [0.5], "ü; --": [-1.0]}


def test_columns_are_checked_before_a_record_is_read(cluster):
    session, schema = cluster.session, schema_of("number")
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
        read(f"spark:{address}", schema_of("number"))


def test_a_person_is_the_same_however_written_and_a_record_that_names_nobody_is_missing(cluster, tmp_path):
    who = ["1", " 01", "1.0", "ann", " ann ", None, "", "nan", str(2**53 + 1), str(2**53), "true", "\xff", "ann", None]
    declared = {"person": "who", "max_records": 1, "columns": {"v": COLUMNS["number"]}}
    pq.write_table(pa.table({"who": who, "v": [1.0] * len(who), "l": [[1]] * len(who)}), tmp_path / "d.parquet")
    frame = cluster.session.read.parquet(str(tmp_path / "d.parquet"))
    found = whole(read(frame, Schema.from_dict(declared)))["v"]
    assert sorted(found) == sorted(whole(read(tmp_path / "d.parquet", Schema.from_dict(declared)))["v"])
    with pytest.raises(FileMismatch, match=r"lacks 'whom' \(the person column\)"):
        read(frame, Schema.from_dict(declared | {"person": "whom"}))
    with pytest.raises(FileMismatch, match="cannot hold an identifier"):
        read(f"spark:{tmp_path}/d.parquet", Schema.from_dict(declared | {"person": "l"}))


def test_a_target_or_column_that_is_not_declared_is_refused(cluster):
    frame = cluster.session.range(3).toDF("v")
    with pytest.raises(InvalidSchema, match="'w' is not declared"):
        read(frame, schema_of("number"), target="w")
    with pytest.raises(InvalidSchema, match="'w' is not declared"):
        read(frame, schema_of("number")).batches(["w"])
    assert "RDD" not in repr(read(frame, schema_of("number")))


@pytest.fixture
def clinic(tmp_path):
    """A table in two files, the same in one, a schema and a ledger."""
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
    od.Ledger.open(tmp_path / "ledger.db", create=True).init("clinic", od.ApproxDP(50.0, 1e-3))
    return tmp_path


def released(folder, data, name, *words):
    arguments = [
        "release", data, "--schema", folder / "schema.json", "--ledger", folder / "ledger.db", "--out", folder / name,
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
    blocks = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (block,) = (block for block in blocks if "SparkSession" in block)
    found = {"__name__": "__main__"}
    exec(block.replace('"people"', repr(str(tmp_path / "people"))), found)
    assert found["release"].certificate.data.engine.name == "Spark"


# ── nothing is shown ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """The console script in this process: its exit code, and all that is said."""
    monkeypatch.chdir(tmp_path)
    Path("schema.yaml").write_text(MALFORMED_SCHEMA)
    od.Ledger.open("ledger.db", create=True).init("p", od.ApproxDP(50.0, 1e-3))

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["onedraw", *map(str, arguments)])
        try:
            code = cli.main()
        except SystemExit as done:
            code = done.code
        return code or 0, "".join(capfd.readouterr())

    return command


def release_of(place, **changes):
    options = {
        "schema": "schema.yaml",
        "target": "age",
        "model": "mean",
        "epsilon": 1,
        "ledger": "ledger.db",
        "out": "r.json",
    }
    return ["release", f"spark:{place}", *(f"--{name}={value}" for name, value in (options | changes).items())]


def test_no_command_shows_a_cell_of_a_malformed_file_and_none_is_charged(cluster, run, tmp_path):
    codes = {}
    for name, content in malformed_parquet().items():
        (tmp_path / name).write_bytes(content)
        codes[name], said = run(*release_of(tmp_path / name, out=f"{name}.json"))
        assert SECRET not in said, name
    assert codes == {**dict.fromkeys(codes, 2), "damaged.parquet": codes["damaged.parquet"]}
    pq.write_table(
        pa.table({"ill": ["a"] * 50_000, "age": np.arange(50_000.0), "ward": ["a"] * 50_000}),
        "page.parquet",
        compression="zstd",
        use_dictionary=False,
    )
    raw = bytearray(Path("page.parquet").read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 4000] = b"\x55" * 4000
    Path("page.parquet").write_bytes(raw)
    code, said = run(*release_of(tmp_path / "page.parquet"))
    assert (code, "Spark failed while encoding" in said) == (2, True)
    charged = [event for event in od.Ledger.open("ledger.db").events() if str(event.kind) == "reserved"]
    assert len(charged) == (codes["damaged.parquet"] == 0)


def odd_frames(session):
    cells = {"ill": [f"{SECRET}-1"], "age": [f"{SECRET}-2"], "ward": [f"{SECRET}-3"]}
    yield session.createDataFrame(pa.table(cells))
    yield session.createDataFrame(pa.table({**cells, "age": [[SECRET]]}))
    yield session.createDataFrame(pa.table({**cells, "age": [{SECRET: 1}]}))
    yield session.createDataFrame(pa.table({**cells, "age": [SECRET.encode() + b"\xff"]}))
    yield session.createDataFrame(pa.table({name: [1] for name in RECORD.split(",")}))
    yield session.createDataFrame([RECORD.split(",")], "ill string, ill string, ward string")


def test_no_exception_shows_a_cell_of_a_frame(cluster):
    import yaml

    schema, read_whole = Schema.from_dict(yaml.safe_load(MALFORMED_SCHEMA)), 0
    for frame in odd_frames(cluster.session):
        try:
            read_whole += len(whole(read(frame, schema, target="age"))["age"])
        except FileMismatch as error:
            shown = "".join(line for line in traceback.format_exception(error) if "test_spark_cells" not in line)
            assert SECRET not in shown
    assert read_whole == 4


NEIGHBOURS = {
    "a text": (pa.string(), "59", "unknown"),
    "bytes": (pa.binary(), b"59", b"\xff\xfe"),
    "a float": (pa.float64(), 59.0, -np.inf),
}


@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_one_odd_cell_shows_nowhere_outside(cluster, run, tmp_path, kind):
    """Exit code, words, files and certificate of a release, but for the draw."""
    seen = []
    declared, plain, odd = NEIGHBOURS[kind]
    for cell in (plain, odd):
        ages = pa.array([plain] * 39 + [cell], declared)
        pq.write_table(pa.table({"ill": ["no"] * 40, "age": ages, "ward": ["a"] * 40}), tmp_path / "d.parquet")
        code, said = run(*release_of(tmp_path / "d.parquet", seed=4))
        certificate = json.loads(Path("r.json").read_text())
        Path("r.json").unlink()
        seen.append(
            (
                code,
                len(said.splitlines()),
                {name: value for name, value in certificate.items() if name not in ("draw", "prepared_at", "ledger")},
            )
        )
    assert seen[0] == seen[1]
    assert seen[0][0] == 0


def test_no_cell_of_any_of_these_is_in_sparks_logs(cluster):
    """The last here: what all tests before it have made Spark write, the event log included, where a planted cell is found."""
    cluster.session.range(1).where("concat('Planted', id) <> 'x'").count()
    deadline = time.monotonic() + 60
    while "Planted" not in (written := cluster.logs()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "Planted" in written
    assert SECRET not in written
    assert "Zzyzx" not in written
