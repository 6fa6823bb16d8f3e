"""Schema files made to hang or break the reader: each is refused in words, and quickly."""

import json
import time

import pytest

from onedraw.data import Schema, infer, read
from onedraw.errors import InvalidSchema

COLUMN = "{kind: number, lower: 0, upper: 1, missing: 0}"
BOMB = "\n".join(
    ["a0: &a0 {x: 1}", *(f"a{k}: &a{k} {{{', '.join(f'k{i}: *a{k - 1}' for i in range(10))}}}" for k in range(1, 10))]
)


@pytest.mark.finding("C4")
@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        BOMB + "\ncolumns: *a9",
        "&a {columns: *a}",
        "columns: &a {x: *a}",
        f"columns:\n  a: &n {COLUMN}\n  b: *n",
        'columns: {a: {kind: number, lower: !!int "", upper: 1, missing: 0}}',
        'columns: {a: {kind: number, lower: !!float "", upper: 1, missing: 0}}',
        "columns: {a: {kind: binary, missing: !!bool foo}}",
        "columns: {a: {kind: binary, missing: !!timestamp foo}}",
        "columns: {a: {kind: binary, missing: !!binary é}}",
        "columns: !!set {a, b}",
        "columns: !!omap [a: 1]",
        "columns: !!pairs [a]",
        "!!null columns: 1",
        "columns: {a: ! x}",
        f"columns: {{a: {COLUMN}, <<: !!map {{}}}}",
    ],
    ids=lambda text: text[-40:],
)
def test_aliases_and_tags_are_refused_in_words(tmp_path, text):
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSchema, match=r"not valid YAML at line \d+\. (Aliases|Tags)"):
        Schema.load(tmp_path / "s.yaml")


@pytest.mark.finding("C4")
@pytest.mark.parametrize("size", [20_000])
def test_a_schema_of_many_columns_is_read_in_linear_time(tmp_path, size):
    declared = {f"c{i}": {"kind": "binary", "missing": "no"} for i in range(size)}
    (tmp_path / "s.json").write_text(json.dumps({"columns": declared}))
    begun = time.process_time()
    schema = Schema.load(tmp_path / "s.json")
    assert time.process_time() - begun < 4, "the repeated-key check took 21 s when it was quadratic"
    (tmp_path / "wide.csv").write_text(",".join(declared) + "\n" + ",".join(["1"] * size) + "\n")
    begun = time.process_time()
    assert read(tmp_path / "wide.csv", schema).n == 1
    assert time.process_time() - begun < 2


@pytest.mark.finding("C4")
def test_a_schema_is_inferred_from_many_columns_in_linear_time(tmp_path):
    names = [f"c{i}" for i in range(20_000)]
    (tmp_path / "wide.csv").write_text(",".join([*names, "c0"]) + "\n1\n0\n")  # ragged: every cell is missing
    begun = time.process_time()
    with pytest.raises(InvalidSchema, match="could be described"):
        infer(tmp_path / "wide.csv")
    assert time.process_time() - begun < 4


def test_nesting_and_long_numbers_are_refused_in_words(tmp_path):
    deep: dict = {"columns": {}}
    place = deep["columns"]
    for _ in range(20_000):
        place["x"] = {}
        place = place["x"]
    with pytest.raises(InvalidSchema):
        Schema.from_dict(deep)
    for name, text in (("s.yaml", "columns: {a: {kind: count, cap: " + "9" * 5000), ("t.json", "9" * 5000)):
        (tmp_path / name).write_text(text)
        with pytest.raises(InvalidSchema):
            Schema.load(tmp_path / name)


INVISIBLE = ["\u200b", "\ufeff", "\u00ad", "\u3164", "\u115f", "\u200c", "\u2063", "\ufe0f", "\U000e0041"]
HIDDEN = pytest.mark.finding("reliability N7", commit="8a7c0fb")


@pytest.mark.parametrize(
    "mark",
    [
        *(
            pytest.param(mark, marks=pytest.mark.finding("B3"))
            for mark in ["\n", "\r", "\x1b[8m", "\x9b", "\u2028", "\u202e", "\u2066", "\x00"]
        ),
        *(pytest.param(mark, marks=HIDDEN) for mark in INVISIBLE),
    ],
)
def test_what_would_act_on_a_terminal_cannot_be_declared(mark):
    column = {"kind": "category", "levels": ["a", "b"], "missing": "a"}
    for declared in (
        {"columns": {f"a{mark}b": column}},
        {"columns": {"a": column | {"levels": ["a", f"b{mark}c"]}}},
        {"dataset": f"d{mark}d", "columns": {"a": column}},
        {"person": f"d{mark}d", "columns": {"a": column}},
        {"inferred_from": f"d{mark}d", "columns": {"a": column}},
    ):
        with pytest.raises(InvalidSchema, match="would act on a terminal"):
            Schema.from_dict(declared)


def test_what_languages_are_written_with_may_be_declared():
    for text in ("naïve", "\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645", "a\u00a0b", "日本語", "\u0600\u0661"):
        assert Schema.from_dict({"columns": {text: {"kind": "binary", "levels": [text, "b"], "missing": text}}})


@pytest.mark.finding("B3")
def test_a_column_that_cannot_be_shown_is_left_out_of_an_inferred_schema():
    found = infer({"a\x1b[8m": [0, 1], "b": ["x\u202ey", "z", "z"][:2], "c": [0, 1]})
    assert list(found.schema.columns) == ["c"]
    assert set(found.left_out) == {"a\x1b[8m", "b"}
