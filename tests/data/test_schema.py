"""Schemas: what is refused, in which words; what files mean; round trips."""

import copy
import json
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.data import Binary, Category, Count, Number, Schema
from onedraw.errors import CannotWrite, InvalidSchema
from onedraw.plain_text import acting

patient = settings(deadline=None, print_blob=True)  # timing is not what is tested here

NUMBER = {"kind": "number", "lower": 0, "upper": 10, "missing": 5}
CATEGORY = {"kind": "category", "levels": ["a", "b"], "missing": "a"}
BINARY = {"kind": "binary", "missing": "no"}
COUNT = {"kind": "count", "cap": 5, "missing": 0}
FULL = {
    "dataset": "patients-2026",
    "person": "id",
    "max_records": 3,
    "columns": {"age": NUMBER, "sex": CATEGORY, "smoker": BINARY, "visits": COUNT},
}


def declared(**changes):
    column = {**NUMBER, **changes}
    return {"columns": {"age": {key: value for key, value in column.items() if value is not ...}}}


def refusal(schema):
    with pytest.raises(InvalidSchema) as caught:
        Schema.from_dict(schema)
    message = str(caught.value)
    assert "pydantic" not in message
    assert "Input should" not in message
    assert message.endswith(".")
    return message


# What is refused


@pytest.mark.parametrize("absent", [{"lower": ...}, {"upper": ...}, {"lower": ..., "upper": ...}])
def test_a_schema_without_bounds_has_its_own_message(absent):
    message = refusal(declared(**absent))
    assert "Column 'age'" in message
    assert "bounds are not declared" in message
    assert "no promise exists" in message
    assert "Add `lower:` and `upper:`" in message


@pytest.mark.parametrize("column", [NUMBER, CATEGORY, BINARY, COUNT], ids=lambda column: column["kind"])
def test_missing_cells_are_skipped_unless_it_is_declared_what_they_become(column):
    declared = Schema.from_dict({"columns": {"x": {key: value for key, value in column.items() if key != "missing"}}})
    assert declared.columns["x"].skips
    assert declared.to_dict()["columns"]["x"]["missing"] == "skip"
    assert Schema.from_dict(declared.to_dict()) == declared
    assert not Schema.from_dict({"columns": {"x": column}}).columns["x"].skips


def test_a_category_may_have_a_level_of_its_own_for_missing_cells():
    own = Schema.from_dict({"columns": {"x": {"kind": "category", "levels": ["a", "b"], "missing": "level"}}}).columns[
        "x"
    ]
    assert own.labels == ("a", "b", "missing")
    assert not own.skips
    assert own.encoder().missing == 2
    word = {"kind": "category", "levels": ["a", "level"], "missing": "level"}
    assert Schema.from_dict({"columns": {"x": word}}).columns["x"].labels == (
        "a",
        "level",
    )  # a declared level is that level
    skip = {"kind": "category", "levels": ["a", "skip"], "missing": "skip"}
    assert not Schema.from_dict({"columns": {"x": skip}}).columns["x"].skips
    assert "declared already" in refusal(
        {"columns": {"x": {"kind": "category", "levels": ["a", "missing"], "missing": "level"}}}
    )
    assert "third level" in refusal({"columns": {"x": {"kind": "binary", "missing": "level"}}})
    assert "a finite number inside the bounds, or skip" in refusal({"columns": {"x": {**NUMBER, "missing": "level"}}})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"upper": float("inf")}, "finite number"),
        ({"lower": float("nan")}, "finite number"),
        ({"lower": 10}, "lower < upper"),
        ({"lower": 11}, "lower < upper"),
        ({"lower": -1.7e308, "upper": 1.7e308}, "width"),
        ({"missing": 11}, "outside [0, 10]"),
        ({"upper": "10"}, "expected a number"),
        ({"upper": True}, "expected a number"),
        ({"upper": None}, "expected a number, got nothing"),
        ({"kind": "numbre"}, "number, category, binary, count or date, got 'numbre'"),
        ({"kind": ...}, "number, category, binary, count or date, got nothing"),
        ({"maximum": 3}, "'maximum' is unknown"),
        ({"uper": 3}, "perhaps 'upper' is meant"),
    ],
)
def test_a_number_column_that_cannot_be_is_refused(changes, words):
    assert words in refusal(declared(**changes))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({**COUNT, "cap": 0}, "cap from 1"),
        ({**COUNT, "cap": 2.5}, "whole number"),
        ({**COUNT, "cap": 10**10}, "cap from 1"),
        ({**COUNT, "cap": True}, "whole number"),
        ({**COUNT, "missing": 6}, "outside 0 … 5"),
        ({**COUNT, "missing": -1}, "outside 0 … 5"),
        ({"kind": "count", "missing": 0}, "without a declared cap"),
        ({**CATEGORY, "levels": ["a"]}, "at least two levels"),
        ({**CATEGORY, "levels": ["a", "a"]}, "same value"),
        ({**CATEGORY, "levels": ["a", " a "]}, "same value"),
        ({**CATEGORY, "levels": ["a", "1", 1.0]}, "same value"),
        ({**CATEGORY, "levels": ["a", "1", True]}, "same value"),
        ({**CATEGORY, "levels": ["a", ""]}, "cannot be a level"),
        ({**CATEGORY, "levels": ["a", "nan"]}, "cannot be a level"),
        ({**CATEGORY, "levels": ["a", None]}, "expected a text"),
        ({**CATEGORY, "levels": "ab"}, "list of levels"),
        ({**CATEGORY, "missing": "c"}, "not among the declared levels"),
        ({"kind": "category", "missing": "a"}, "`levels:` is not declared"),
        ({**BINARY, "levels": ["a", "b", "c"], "missing": "a"}, "two levels"),
        ({**BINARY, "levels": ["a", "b"]}, "not among the declared levels"),
        ({**BINARY, "missing": "maybe"}, "neither no nor yes"),
        (3, "expected a declaration"),
        (None, "expected a declaration"),
    ],
)
def test_a_column_that_cannot_be_is_refused(column, words):
    message = refusal({"columns": {"x": column}})
    assert words in message
    assert "Column 'x'" in message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"columns": {}}, "no column is declared"),
        ({"columns": None}, "expected a mapping"),
        ({"columns": ["age"]}, "expected a mapping"),
        ({"columns": {"": NUMBER}}, "empty name"),
        ({"person": None}, "needs `person:`"),
        ({"max_records": 0}, "1 or more"),
        ({"max_records": 1.5}, "whole number"),
        ({"person": 3}, "expected a text"),
        ({"person": "age"}, "both the person column and a data column"),
        ({"dataset": ""}, "not empty"),
        ({"epsilon": 1}, "'epsilon' is unknown"),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(changes, words):
    assert words.lower() in refusal({**FULL, **changes}).lower()


@pytest.mark.parametrize("schema", [[], None, 3, "columns"])
def test_what_is_no_mapping_is_no_schema(schema):
    assert "Expected a schema" in refusal(schema)


def test_every_problem_is_told_at_once():
    message = refusal({"columns": {"a": {"kind": "number", "missing": 1}, "b": {"kind": "count", "missing": 1}}})
    assert "Column 'a'" in message
    assert "Column 'b'" in message


def test_a_column_made_in_python_is_refused_in_the_same_words():
    with pytest.raises(InvalidSchema, match="bounds are not declared"):
        Number(lower=0, missing=0)
    with pytest.raises(InvalidSchema, match="No column is declared"):
        Schema(columns={})


def test_an_unknown_column_is_named_with_the_nearest_one():
    with pytest.raises(InvalidSchema, match=r"'agee' is not declared.*perhaps 'age' is meant"):
        Schema.from_dict(FULL).column("agee")


# What files mean


def loaded(tmp_path, text, name="schema.yaml"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return Schema.load(tmp_path / name)


def test_yaml_levels_are_what_is_written(tmp_path):
    schema = loaded(
        tmp_path,
        """
        columns:
          no: {kind: category, levels: [no, yes, on, Off, 012, 12:30, 2026-01-01, 0x1F, 1_0, ~x], missing: no}
          1: {kind: number, lower: -1e5, upper: +1.5E3, missing: .5}
          answer: {kind: binary, levels: [no, yes], missing: no}
          truth: {kind: binary, levels: [false, true], missing: false}
        """,
    )
    assert list(schema.columns) == ["no", "1", "answer", "truth"]
    levels = ("no", "yes", "on", "Off", "012", "12:30", "2026-01-01", "0x1F", "1_0", "~x")
    assert schema.columns["no"] == Category(levels=levels, missing="no")
    assert schema.columns["1"] == Number(lower=-100000, upper=1500, missing=0.5)
    assert schema.columns["answer"].labels == ("no", "yes")
    assert schema.columns["truth"].labels == ("false", "true")


@pytest.mark.parametrize("spelling", ["no", "No", "false", "0", "'no'", "'0'", "0.0"])
def test_missing_of_a_plain_binary_column_may_be_any_spelling(tmp_path, spelling):
    assert loaded(tmp_path, f"columns: {{x: {{kind: binary, missing: {spelling}}}}}").columns["x"].labels == (
        "no",
        "yes",
    )


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "s.yaml",
            "columns:\n  a: {kind: binary, missing: no}\n  a: {kind: binary, missing: yes}",
            "'a' is given twice",
        ),
        ("s.yaml", "columns: {a: {kind: binary, missing: no, missing: yes}}", "'missing' is given twice"),
        (
            "s.json",
            '{"columns": {"a": {"kind": "binary", "missing": "no", "missing": "yes"}}}',
            "given twice",
        ),
        ("s.yaml", "columns: [", "not valid YAML at line 1"),
        ("s.yaml", "columns: !!python/object:os.system {}", "not valid YAML"),
        ("s.yaml", "? [a]\n: b", "not valid YAML"),
        ("s.yaml", "", "Expected a schema"),
        ("s.yaml", "a: &a [*a]", "not valid YAML at line 1. Aliases"),
        ("s.json", "{", "not valid JSON at line 1"),
        (
            "s.json",
            '{"columns": {"a": {"kind": "number", "lower": NaN, "upper": 1, "missing": 0}}}',
            "finite number",
        ),
    ],
)
def test_a_file_that_says_no_schema_is_refused_plainly(tmp_path, name, text, words):
    with pytest.raises(InvalidSchema, match=words):
        loaded(tmp_path, text, name)


def test_a_schema_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InvalidSchema, match="cannot be read"):
        Schema.load(tmp_path / "none.yaml")
    with pytest.raises(InvalidSchema, match="cannot be read"):
        Schema.load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("columns: é".encode("latin-1"))
    with pytest.raises(InvalidSchema, match="not UTF-8"):
        Schema.load(tmp_path / "latin.yaml")


# Round trips

labels = st.text(min_size=1, max_size=8).filter(lambda text: text == text.strip(" \t\n\r\f\v") and not acting(text))
finite = st.floats(-1e100, 1e100)


@st.composite
def columns(draw):
    match draw(st.sampled_from(["number", "category", "binary", "plain", "count"])):
        case "number":
            lower, missing, upper = sorted(draw(st.tuples(finite, finite, finite)))
            upper = upper if lower < upper else lower + 1 + abs(lower)
            return {"kind": "number", "lower": lower, "upper": upper, "missing": missing}
        case "count":
            cap = draw(st.integers(1, 10**9))
            return {"kind": "count", "cap": cap, "missing": draw(st.integers(0, cap))}
        case "plain":
            return {"kind": "binary", "missing": draw(st.sampled_from(["no", "yes", False, True, 0, 1]))}
        case kind:
            size = 2 if kind == "binary" else draw(st.integers(2, 5))
            levels = draw(st.lists(labels.map(lambda text: f"x{text}"), min_size=size, max_size=size, unique=True))
            return {"kind": kind, "levels": levels, "missing": draw(st.sampled_from(levels))}


@patient
@given(st.dictionaries(labels, columns(), min_size=1, max_size=4))
def test_a_saved_schema_is_the_same_schema(declared_columns):
    schema = Schema.from_dict({"dataset": "d", "columns": declared_columns})
    jsonschema.validate(schema.to_dict(), Schema.json_schema())
    with tempfile.TemporaryDirectory() as folder:
        for name in ("s.yaml", "s.json"):
            schema.save(Path(folder) / name)
            again = Schema.load(Path(folder) / name)
            assert again == schema
            assert (again.digest, hash(again)) == (schema.digest, hash(schema))
    assert Schema.from_dict(schema.to_dict()) == schema


def test_the_json_schema_refuses_what_the_schema_refuses():
    for bad in (
        declared(upper=...),
        declared(kind=...),
        declared(uper=1),
        {"columns": {}},
        {"columns": {"x": 3}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, Schema.json_schema())
        with pytest.raises(InvalidSchema):
            Schema.from_dict(bad)
    jsonschema.validate(FULL, Schema.json_schema())
    assert json.loads(json.dumps(Schema.json_schema())) == Schema.json_schema()


def test_any_change_of_a_declaration_changes_the_digest():
    digests = {
        Schema.from_dict(schema).digest
        for schema in (
            FULL,
            {**FULL, "dataset": "other"},
            {**FULL, "max_records": 2},
            {**FULL, "inferred_from": "file.csv"},
            {**FULL, "columns": {**FULL["columns"], "age": {**NUMBER, "upper": 11}}},
            {**FULL, "columns": {**FULL["columns"], "sex": {**CATEGORY, "levels": ["b", "a"]}}},
        )
    }
    assert len(digests) == 6


def test_a_schema_is_a_value_that_cannot_be_changed():
    schema = Schema.from_dict(FULL)
    with pytest.raises(TypeError):
        schema.columns["age"] = Count(cap=1, missing=0)
    with pytest.raises(ValueError, match="frozen"):
        schema.person = "other"
    with pytest.raises(ValueError, match="frozen"):
        schema.columns["age"].upper = 100.0
    assert schema == Schema.from_dict(FULL)
    assert Schema(columns={"smoker": Binary(missing="no")}).columns["smoker"].missing == "no"


def test_a_schema_travels_between_processes_unchanged():
    schema = Schema.from_dict(FULL)
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert copy.deepcopy(schema) == copy.copy(schema) == schema


def test_an_existing_file_is_not_replaced(tmp_path):
    schema = Schema.from_dict(FULL)
    schema.save(tmp_path / "s.yaml")
    with pytest.raises(CannotWrite, match="exists already"):
        schema.save(tmp_path / "s.yaml")
    with pytest.raises(CannotWrite, match="cannot be written"):
        schema.save(tmp_path / "no folder" / "s.yaml")


def test_an_inferred_schema_carries_its_notice():
    assert Schema.from_dict(FULL).notice is None
    inferred = Schema.from_dict({**FULL, "inferred_from": "public.csv"})
    assert inferred.notice == "inferred from public.csv: must be public"
    assert inferred.to_yaml().startswith("# inferred from public.csv: must be public\n")


def test_the_unit_is_one_record_unless_declared():
    assert Schema.from_dict({"columns": {"x": NUMBER}}).records_per_person == 1
    assert Schema.from_dict({"person": "id", "columns": {"x": NUMBER}}).records_per_person == 1
    assert Schema.from_dict(FULL).records_per_person == 3


def test_importing_the_room_loads_no_table_library():
    heavy = {"pyarrow", "narwhals", "pandas", "polars", "yaml"}
    code = f"import sys, onedraw.data; print(*{heavy} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""
