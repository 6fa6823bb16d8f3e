"""A schema from names alone: no value is read, and what is left to declare is said."""

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from onedraw.data import Schema
from onedraw.data.new_schema import NamesAlone, Sketch, declaration
from onedraw.data.records import open_table
from onedraw.errors import FileMismatch, WrongCall

NAMES = NamesAlone(("patient", "age", "ward=x", "cost", "no", "a: b"))


@pytest.mark.parametrize(
    ("kind", "written", "expected"),
    [
        ("number", "age", ("age", {})),
        ("number", "age=0:120", ("age", {"lower": 0, "upper": 120})),
        ("number", "cost=-0.5:1e6", ("cost", {"lower": -0.5, "upper": 1000000})),
        ("count", "age=20", ("age", {"cap": 20})),
        ("binary", "no", ("no", {})),
        ("category", "ward=x", ("ward=x", {})),
        ("category", "ward=x=a| b |c=d", ("ward=x=a| b |c", {"levels": ["d"]})),
        ("category", "age=a| b |c", ("age", {"levels": ["a", "b", "c"]})),
        ("date", "age=2025-01-01:2025-12-31", ("age", {"first": "2025-01-01", "last": "2025-12-31"})),
        ("date", "age=2025-01-01:2025-12-31:%d.%m.%Y %H:%M", ("age", {"first": "2025-01-01", "last": "2025-12-31", "format": "%d.%m.%Y %H:%M"})),
    ],
)  # fmt: skip
def test_what_is_typed_is_a_declaration(kind, written, expected):
    name, declared = declaration(kind, written, NAMES.names)
    assert (name, declared) == (expected[0], {"kind": kind} | expected[1])


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("number", "age=0"),
        ("number", "age=a:b"),
        ("number", "age="),
        ("count", "age=many"),
        ("category", "age="),
        ("date", "age=2025"),
    ],
)
def test_what_cannot_be_read_is_refused_with_an_example(kind, written):
    with pytest.raises(WrongCall, match=rf"--{kind} .*cannot be read.*Write --{kind} "):
        declaration(kind, written, NAMES.names)


def test_what_is_left_to_declare_stands_there_as_a_comment_and_names_survive():
    sketch = Sketch.of(
        NAMES, {"age": {"kind": "number", "lower": 0, "upper": 120}, "cost": {"kind": "number"}}, {"person": "patient"}
    )
    written = sketch.to_yaml()
    assert not sketch.complete
    assert "cost: {kind: number}  # to add: lower and upper, the public bounds" in written
    assert "# 'no': {kind: ...}" in written
    assert "patient:" not in written.partition("columns:")[2]
    loaded = yaml.safe_load(written)
    assert loaded["columns"] == {"age": {"kind": "number", "lower": 0, "upper": 120}, "cost": {"kind": "number"}}


def test_a_complete_sketch_is_a_schema_that_loads(tmp_path):
    declared = {
        "age": {"kind": "number", "lower": 0, "upper": 120, "missing": 50}, "no": {"kind": "binary", "missing": "no"},
        "a: b": {"kind": "date", "first": "2025-01-01", "last": "2025-12-31", "format": "%d.%m.%Y", "missing": "2025-06-01"},
    }  # fmt: skip
    sketch = Sketch.of(NAMES, declared, {"dataset": "d"})
    assert sketch.complete
    (tmp_path / "s.yaml").write_text(sketch.to_yaml(), encoding="utf-8")
    assert (
        Schema.load(tmp_path / "s.yaml")
        == sketch.to_schema()
        == Schema.from_dict({"dataset": "d", "columns": declared})
    )


def test_types_that_a_file_stores_say_the_kind_whatever_its_records_are(tmp_path):
    table = pa.table({
        "day": pa.array([datetime.date(2025, 1, 1)]), "clock": pa.array([datetime.datetime(2025, 1, 1)]), "cost": [1.5], "yes": [True],
        "word": ["x"], "list": [[1]],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "d.parquet")
    sketch = Sketch.of(open_table(tmp_path / "d.parquet"), {"cost": {"kind": "count"}})
    kinds = {name: one["kind"] for name, one in sketch.declared.items()}
    assert kinds == {"day": "date", "clock": "date", "cost": "count", "yes": "binary"}
    pq.write_table(table.slice(0, 0), tmp_path / "e.parquet")
    assert Sketch.of(open_table(tmp_path / "e.parquet"), {"cost": {"kind": "count"}}).to_yaml() == sketch.to_yaml()


def test_names_that_are_not_there_or_twice_are_refused():
    with pytest.raises(FileMismatch, match=r"has no column 'agee' \(perhaps 'age' is meant\)"):
        Sketch.of(NAMES, {"agee": {"kind": "number"}})
    with pytest.raises(FileMismatch, match="'a' more than once"):
        Sketch.of(NamesAlone(("a", "a")), {"a": {"kind": "number"}})
