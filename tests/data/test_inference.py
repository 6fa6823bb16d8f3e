"""A first schema from a public file: what each column becomes, and that the mark stays."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.data import Binary, Category, Count, Number, Schema, infer, infer_schema, inference, read
from onedraw.errors import FileMismatch, InvalidSchema

patient = settings(deadline=None, print_blob=True)  # timing is not what is tested here


def inferred(cells, **options):
    return infer({"v": cells, "other": [0, 1] * (len(cells) // 2) + [0] * (len(cells) % 2)}, **options)


@pytest.mark.parametrize(
    ("cells", "column"),
    [
        ([1.5, -2, 4.0], Number(lower=-2, upper=4)),
        (["1.5", "-2", "?", "4.0"], Number(lower=-2, upper=4)),
        ([3, 0, 9], Count(cap=9)),
        (["3", "0", "", "9.0", "NA"], Count(cap=9)),
        ([0, 1, 10**12], Number(lower=0, upper=1e12)),
        ([-1, 0, 5], Number(lower=-1, upper=5)),
        (["b", "a", "c", "a"], Category(levels=["a", "b", "c"])),
        (["b", "1", "c", "1"], Category(levels=["1", "b", "c"])),
        (["yes", "no", "yes"], Binary()),
        (["m", "f", "f"], Binary(levels=["f", "m"])),
        ([2, 1, 2], Binary(levels=["1", "2"])),
        ([10, 9, 10], Binary(levels=["9", "10"])),
        ([True, False], Binary(levels=["0", "1"])),
        (["FALSE", 0, "true"], Binary(levels=["false", "true"])),
        (["true", "false", "true"], Binary(levels=["false", "true"])),
        (["positive", "negative", "positive"], Binary(levels=["negative", "positive"])),
    ],
    ids=repr,
)
def test_each_column_becomes_what_it_looks_like(cells, column):
    assert inferred(cells).schema.columns["v"] == column


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([7, 7], "all its values are the same"),
        ([None, ""], "no values"),
        ([f"free text {row}" for row in range(60)], "more than 50 different values"),
        ([f"word{row}" for row in range(30)] + list(range(30)), "more than 50 different values"),
        ([-1.7e308, 0, 1.7e308], "too large"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_column_that_cannot_be_described_is_left_out_with_the_reason(cells, words):
    result = inferred(cells)
    assert "v" not in result.schema.columns
    assert words in result.left_out["v"]


def test_the_number_of_levels_can_be_chosen():
    cells = [f"level{row}" for row in range(60)]
    assert len(inferred(cells, max_levels=60).schema.columns["v"].levels) == 60


def test_the_mark_names_the_file_and_not_its_place(tmp_path):
    (tmp_path / "public.csv").write_text("a,b\n1,x\n2.5,y\n")
    schema = infer_schema(tmp_path / "public.csv")
    assert schema.inferred_from == "public.csv"
    assert schema.notice == "inferred from public.csv: must be public"
    schema.save(tmp_path / "schema.yaml")
    assert Schema.load(tmp_path / "schema.yaml") == schema
    assert str(tmp_path) not in schema.to_yaml()


def test_a_public_file_reads_under_its_own_schema_without_clamping(tmp_path):
    rng = np.random.default_rng(4)
    table = pa.table({"x": rng.normal(size=500), "k": rng.poisson(3, size=500), "c": rng.choice(["a", "b", "c"], 500)})
    pq.write_table(table, tmp_path / "public.parquet")
    schema = infer_schema(tmp_path / "public.parquet")
    (batch,) = read(tmp_path / "public.parquet", schema).batches()
    assert batch["x"].tolist() == table["x"].to_pylist()
    assert batch["k"].tolist() == table["k"].to_pylist()
    assert [schema.columns["c"].labels[int(code)] for code in batch["c"]] == table["c"].to_pylist()


def test_types_that_hold_no_kind_and_repeated_names_are_left_out(tmp_path):
    pq.write_table(pa.table({"x": [1.5, 2.5, 3.5], "l": [[1], [2], [3]]}), tmp_path / "public.parquet")
    assert "list" in infer(tmp_path / "public.parquet").left_out["l"]
    (tmp_path / "public.csv").write_text("a,b,b\n1,2,3\n2,3,4\n")
    assert infer(tmp_path / "public.csv").left_out == {"b": "its name occurs twice"}


def test_a_file_that_says_nothing_gives_no_schema(tmp_path):
    (tmp_path / "public.csv").write_text("a,b\n")
    with pytest.raises(InvalidSchema, match="could be described"):
        infer_schema(tmp_path / "public.csv")
    with pytest.raises(FileMismatch, match="found none"):
        infer_schema(tmp_path / "nothing.csv")


scraps = st.one_of(st.none(), st.text(max_size=5), st.floats(), st.integers(), st.booleans(), st.binary(max_size=5))


@patient
@given(st.lists(scraps, max_size=30))
def test_whatever_a_public_file_holds_the_schema_is_a_schema_or_left_out(cells):
    result = inferred([*cells, None, None])
    assert ("v" in result.schema.columns) != ("v" in result.left_out)
    assert Schema.from_dict(result.schema.to_dict()) == result.schema


@pytest.mark.parametrize(
    "levels", [("no", "Yes"), ("false", "True"), ("n", "Y"), ("absent", "Present"), ("negative", "POSITIVE")]
)
def test_no_comes_before_yes_however_they_are_written(levels):
    """The alphabet alone puts capitals first."""
    assert inference._zero_first(Counter(levels)) == levels
    assert inference._zero_first(Counter(reversed(levels))) == levels
