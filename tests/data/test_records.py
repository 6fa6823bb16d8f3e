"""Parquet, Arrow, pandas, Polars, dictionaries: the same cells give the same records, whatever the types."""

import datetime
import math
import threading
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.data import Schema, read, tables
from onedraw.data import arrow_tables as arrow_adapter
from onedraw.data.cells import number_of
from onedraw.errors import FileMismatch, InvalidSchema
from tests.source_cases import ARROW, COLUMNS, DATED, DATES, TYPED, encoded, schema_of

patient = settings(deadline=None, print_blob=True)  # timing is not what is tested here

KINDS = list(COLUMNS)


def expected(cells, kind):
    """The rules of cells.py and columns.py once more, one cell at a time."""
    return encoded({"v": list(cells)}, schema_of(kind))


# Frames infer types from the records: no record may reach another through them

OTHERS = [
    None,
    math.nan,
    math.inf,
    "word",
    "",
    "x",
    2.5,
    7,
    True,
    "1",
    "true",
    [1],
    (),
    object(),
    10**400,
    2**63,
]
OTHERS += [
    Decimal("0.5"),
    Decimal("sNaN"),
    datetime.datetime(2026, 1, 1),
    1j,
    b"\xff",
    b"1",
    pd.NA,
    pd.NaT,
    {},
    20260301,
    "01.03.2026 12:00",
    "2026-03-01",
    datetime.date(2026, 3, 1),
    datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC),
    pd.Timestamp("2026-03-01", tz="Europe/Berlin"),
    np.datetime64("2026-03-01"),
    np.datetime64("NaT"),
    datetime.timedelta(1),
]
BASES = [[1, 0, 2], [1.0, 0.5, -9.0], [True, False, True], ["1", "word", "0.50"], ["true", "False", "no"]]
BASES += [
    [20260301, 20250101, 1],
    ["01.03.2026 12:00", "2026-03-01", "20260301"],
    [datetime.date(2026, 3, 1), datetime.date(2020, 1, 1), datetime.date(1, 1, 1)],
    [datetime.datetime(2026, 3, 1, 23, 30), datetime.datetime(2020, 1, 1), datetime.datetime(2026, 12, 31, 23, 59)],
    [pd.Timestamp("2026-03-01 23:30", tz="UTC"), pd.Timestamp("2020-06-01", tz="UTC"), pd.NaT],
]


def as_object_frame(cells):
    return pd.DataFrame({"v": pd.Series(cells, dtype=object)})


def as_frame(cells):
    return pd.DataFrame({"v": cells})


def as_array(cells):
    try:
        return {"v": np.array(cells)}
    except (ValueError, OverflowError):  # ragged lists are no array
        return {"v": as_object_frame(cells)["v"].to_numpy()}


def as_list(cells):
    return {"v": cells}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("base", BASES, ids=repr)
@pytest.mark.parametrize("make", [as_object_frame, as_frame, as_array, as_list])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_record_cannot_reach_others_through_an_inferred_type(make, base, kind):
    alone = encoded(make(base), schema_of(kind))
    assert alone == expected(base, kind)
    for other in OTHERS:
        frame = make([*base, other])
        if isinstance(frame, dict) and getattr(frame["v"], "ndim", 1) != 1:
            continue
        assert encoded(frame, schema_of(kind))[: len(base)] == alone, other


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("base", [[1, 0, 2], [1.0, 0.5, -9.0], ["1", "word", "0.50"], [True, False]], ids=repr)
@pytest.mark.parametrize("other", [None, "word", "x", 2.5, 7, True, "1", math.nan])
def test_a_record_cannot_reach_others_through_a_polars_type(base, kind, other):
    alone = encoded(pl.DataFrame({"v": base}), schema_of(kind))
    assert alone == expected(base, kind)
    try:
        frame = pl.DataFrame({"v": [*base, other]})
    except TypeError:  # Polars itself refuses mixtures; as objects it takes them
        frame = pl.DataFrame({"v": pl.Series([*base, other], dtype=pl.Object)})
    assert encoded(frame, schema_of(kind))[: len(base)] == alone


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["", "x", "2.5", "True", "1e400", "nan", "99999999999999999999", "01"])
@pytest.mark.parametrize("texts", [["1", "0", "2"], ["01", "1.0", "-7"], ["True", "False", "TRUE"]], ids=repr)
def test_what_pandas_reads_from_csv_does_not_depend_on_other_records(tmp_path, texts, other, kind):
    def parsed(cells):
        (tmp_path / "d.csv").write_text("v,w\n" + "".join(f"{cell},0\n" for cell in cells))
        return pd.read_csv(tmp_path / "d.csv")

    alone = encoded(parsed(texts), schema_of(kind))
    assert alone == encoded(tmp_path / "d.csv", schema_of(kind)) == expected(texts, kind)
    assert encoded(parsed([*texts, other]), schema_of(kind))[:3] == alone


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "dtype", ["Int64", "Float64", "boolean", "string", "category", "int64[pyarrow]", "str", "Sparse[float]"]
)
def test_every_pandas_type_is_read(kind, dtype):
    cells = [True, False, None] if dtype == "boolean" else [1, 2, None]
    column = pd.Series(cells, dtype=object)
    if dtype in ("string", "str"):
        cells = ["1", "2", None]
        column = pd.Series(cells, dtype=object)
    frame = pd.DataFrame({"v": column.astype("float64" if dtype.startswith("Sparse") else object).astype(dtype)})
    assert encoded(frame, schema_of(kind)) == expected(cells, kind)


def test_a_pandas_column_of_dates_or_lists_is_missing_cells():
    frames = [
        pd.DataFrame({"v": pd.date_range("2026-01-01", periods=2)}),
        pd.DataFrame({"v": pd.to_timedelta([1, 2])}),
        pd.DataFrame({"v": [1j, 2j]}),
        pd.DataFrame({"v": [[1], [2]]}),
        {"v": np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")},
        {"v": np.array([1j, 2 + 1j])},
    ]
    for frame in frames:
        assert encoded(frame, schema_of("number")) == [0.25, 0.25]
        assert encoded(frame, schema_of("category")) == [3, 3]


# Typed sources


def str_of_type(array):
    return str(array.type)[:40]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("array", ARROW, ids=str_of_type)
def test_every_arrow_type_is_read_as_its_cells(array, kind):
    cells = array.to_pylist()
    assert encoded(pa.table({"v": array}), schema_of(kind)) == expected(cells, kind)
    assert encoded(pa.table({"v": array}), schema_of(kind), batch_rows=1) == expected(cells, kind)


@pytest.mark.parametrize("array", [array for array in ARROW if "view" not in str(array.type)], ids=str_of_type)
def test_parquet_and_arrow_files_read_like_tables(tmp_path, array):
    table = pa.table({"other": array, "v": array})
    pa.feather.write_feather(table, tmp_path / "d.feather", compression="zstd")
    with pa.OSFile(str(tmp_path / "d.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    with pa.OSFile(str(tmp_path / "d.arrows"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    names = ["d.feather", "d.arrow", "d.arrows"]
    if array.null_count == len(array) or "unused" not in str(array):  # what Parquet can hold
        pq.write_table(table, tmp_path / "d.parquet", row_group_size=2)
        names.append("d.parquet")
    for name in names:
        read(tmp_path / name, schema_of("number")).check_whole()
        for kind in KINDS:
            assert encoded(tmp_path / name, schema_of(kind)) == expected(array.to_pylist(), kind), name


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_in_memory_is_read(kind):
    cells = [1.0, None, 2.0, 0.5, -9.0]
    table = pa.table({"v": pa.chunked_array([cells[:2], cells[2:]]), "w": [[1]] * 5})
    for source in (
        table,
        table.to_batches()[0],
        table.to_reader(),
        pl.DataFrame({"v": cells}),
        as_frame(cells),
    ):
        n = source.num_rows if isinstance(source, pa.RecordBatch) else 5
        assert encoded(source, schema_of(kind)) == expected(cells[:n], kind)


def test_records_can_be_read_again_even_from_a_reader():
    records = read(pa.table({"v": [1.0, 2.0]}).to_reader(), schema_of("number"), target="v")
    assert [values.tolist() for values in records.values()] == [values.tolist() for values in records.values()]


@pytest.mark.parametrize(
    "series",
    [
        pl.Series("v", ["word", None, "1"], dtype=pl.Categorical),
        pl.Series("v", ["word", None], dtype=pl.Enum(["word"])),
        pl.Series("v", [1, None, 2], dtype=pl.Int128),
        pl.Series("v", [Decimal("0.5"), None]),
        pl.Series("v", [None, None]),
        pl.Series("v", [b"\xff", b"1"]),
        pl.Series("v", [object(), 1, "word"], dtype=pl.Object),
    ],
    ids=lambda series: str(series.dtype)[:20],
)
def test_every_polars_type_is_read_as_its_cells(series):
    for kind in KINDS:
        assert encoded(series.to_frame(), schema_of(kind)) == expected(series.to_list(), kind)


@pytest.mark.parametrize("array", DATED, ids=lambda array: str(array.type)[:30])
def test_a_column_typed_as_dates_is_read_as_its_cells_in_memory_and_in_files(tmp_path, array):
    table = pa.table({"v": array})
    far = pa.types.is_timestamp(array.type) and array.type.unit == "s" and array[0].cast(pa.int64()).as_py() > 2**60
    cells = [None] * 3 if far else array.to_pylist()
    pa.feather.write_feather(table, tmp_path / "d.feather")
    if not far:  # which Parquet cannot hold
        pq.write_table(table, tmp_path / "d.parquet", row_group_size=2)
    sources = [table, pa.table({"v": array.dictionary_encode()}), tmp_path / "d.feather"]
    sources += [] if far else [tmp_path / "d.parquet", pl.DataFrame(table), pd.DataFrame({"v": cells})]
    sources += [] if far else [pd.DataFrame({"v": pd.Series(array, dtype=pd.ArrowDtype(array.type))})]
    for kind in DATES:
        for source in sources:
            assert encoded(source, schema_of(kind)) == expected(cells, kind), type(source)
    with pytest.raises(FileMismatch, match=r"cannot hold kind number; expected .* dates for kind date"):
        read(tmp_path / "d.feather", schema_of("number"))


@pytest.mark.parametrize("array", TYPED, ids=lambda array: str(array.type)[:20])
def test_a_declared_type_that_holds_no_kind_is_a_mismatch_of_the_file(tmp_path, array):
    table = pa.table({"v": array})
    pq.write_table(table, tmp_path / "d.parquet")
    with pytest.raises(FileMismatch, match=r"'v'.*cannot hold kind number"):
        read(tmp_path / "d.parquet", schema_of("number"))


@pytest.mark.finding("A2")
@pytest.mark.parametrize("array", TYPED, ids=lambda array: str(array.type)[:20])
def test_in_memory_such_a_type_may_come_from_one_record_and_is_missing_cells(array):
    table = pa.table({"v": array})
    for kind in KINDS:
        held = kind in DATES and isinstance(array[0].as_py(), datetime.date)
        for frame in (table, pl.DataFrame(table) if not pa.types.is_map(array.type) else table):
            cells = array.to_pylist() if held else [None] * len(array)
            assert encoded(frame, schema_of(kind)) == expected(cells, kind)


def test_the_type_of_a_column_that_is_not_declared_does_not_matter():
    assert encoded(pa.table({"v": [1.0], "w": [[1]]}), schema_of("number")) == [1.0]


def test_stored_text_that_is_not_utf8_is_missing(tmp_path):
    raw = pa.array([b"word", b"\xff", b"1"], pa.binary())
    table = pa.table({"v": raw.view(pa.string())})
    pq.write_table(table, tmp_path / "d.parquet")
    for kind in KINDS:
        assert encoded(tmp_path / "d.parquet", schema_of(kind)) == expected(["word", None, "1"], kind)


def test_decimals_are_the_nearest_floats():
    cells = [Decimal(number) / 10 for number in range(-40, 40)]
    table = pa.table({"v": pa.array(cells, pa.decimal128(5, 1))})
    assert encoded(table, schema_of("number")) == [float(cell) for cell in cells]
    schema = Schema.from_dict({"columns": {"v": {"kind": "binary", "levels": [0.3, 0.7], "missing": 0.3}}})
    assert encoded(pa.table({"v": pa.array([Decimal("0.7"), Decimal("0.3")])}), schema) == [1, 0]


def test_integers_beyond_the_floats_are_clamped_and_not_refused():
    assert encoded(pa.table({"v": pa.array([2**62, -(2**62), 3])}), schema_of("number")) == [5.0, -5.0, 3.0]


@patient
@given(st.lists(st.one_of(st.none(), st.text(), st.floats().map(repr), st.integers().map(str))))
def test_text_read_as_numbers_in_bulk_is_text_read_one_by_one(cells):
    raw = pa.array([None if cell is None else cell.encode("utf-8", "surrogatepass") for cell in cells], pa.binary())
    bulk = encoded(pa.table({"v": raw}), schema_of("number"))
    assert bulk == expected(cells, "number")


@patient
@given(st.text("0123456789+-.eExXinfatyNI_ ()pd", max_size=8))
def test_arrow_reads_no_number_that_the_rule_does_not(cell):
    numbers = arrow_adapter._cast(pa.array([cell.encode()], pa.large_binary()))
    if numbers is not None and math.isfinite(numbers[0]):
        assert number_of(cell) == numbers[0]


# Names, sizes, damage


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (pa.table({"w": [1]}), "lacks 'v'"),
        (pa.table([[1], [2]], names=["v", "v"]), "'v' more than once"),
        (pa.table([[1], [2]], names=["v", "v"]).to_reader(), "'v' more than once"),
        (pd.DataFrame([[1, 2]], columns=["v", "v"]), "same name"),
        (pd.DataFrame([[1]], columns=[0]), "lacks 'v'"),
        (pl.DataFrame({"V": [1]}), "lacks 'v'"),
        (pl.LazyFrame({"v": [1]}), "Collect a lazy frame"),
        ({"v": [1, 2], "w": [1]}, "one length"),
        ({"v": np.ones((2, 2))}, "2 dimensions"),
        ({}, "lacks 'v'"),
        ([1, 2], "Expected a path"),
        (3, "Expected a path"),
        (None, "Expected a path"),
        (pd.Series([1]), "Expected a path"),
        ("nowhere.csv", "found none"),
        (".", "found none"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_source_that_does_not_match_is_refused(source, words):
    with pytest.raises(FileMismatch, match=words):
        read(source, schema_of("number"))


@pytest.mark.parametrize("name", ["d.parquet", "d.arrow", "d.feather", "d.pq", "d.ipc"])
@pytest.mark.parametrize("raw", [b"", b"not a table", b"PAR1PAR1", b"ARROW1\0\0"])
def test_a_damaged_file_is_refused_when_opened(tmp_path, name, raw):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(FileMismatch, match="cannot be read as a Parquet or Arrow file"):
        read(tmp_path / name, schema_of("number"))


def test_a_page_damaged_after_the_footer_is_refused_without_quoting_it(tmp_path):
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"v": np.arange(50_000.0)}), path, compression="zstd", use_dictionary=False)
    raw = bytearray(path.read_bytes())
    raw[4:4000] = b"\x55" * 3996
    path.write_bytes(raw)
    with pytest.raises(FileMismatch, match="damaged"):
        encoded(path, schema_of("number"))


DAMAGED_TEXT = [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("kind", DAMAGED_TEXT, ids=str)
def test_an_arrow_file_whose_offsets_point_elsewhere_is_refused_before_they_are_followed(tmp_path, kind):
    """Following them would be a crash, or a read of memory that is none of the file's."""
    array = pa.array(["yes", "no", ""] * 2000).cast(kind)
    place, pattern = next(
        (buffer.address, buffer.to_pybytes())
        for buffer in array.buffers()
        if buffer is not None and buffer.size >= 4000
    )
    assert place
    path = tmp_path / "t.arrow"
    pyarrow.feather.write_feather(pa.table({"x": array}), path, compression="uncompressed")
    raw = path.read_bytes()
    at = raw.index(pattern[:400])
    path.write_bytes(raw[: at + 200] + b"\xff\x7f\xff\x7f" * 10 + raw[at + 240 :])
    records = read(path, Schema.from_dict({"columns": {"x": {"kind": "binary", "missing": "no"}}}))
    for reading in (
        records.check_whole,
        lambda: list(records.values("x")),
    ):  # before the charge, and in the pass itself
        with pytest.raises(FileMismatch, match="damaged"):
            reading()


def test_a_whole_file_of_odd_records_is_whole(tmp_path):
    """Bytes that are no UTF-8, empty and missing cells: records, and so no reason to refuse."""
    array = pa.array([b"\xff\xfe", b"", None, b"yes"] * 100).view(pa.string())
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1] * 100, pa.int8()), array.slice(0, 2))
    schema = Schema.from_dict({"columns": {name: {"kind": "binary", "missing": "no"} for name in ("x", "z")}})
    for name, write in (("t.arrow", pyarrow.feather.write_feather), ("t.parquet", pq.write_table)):
        write(pa.table({"x": array, "z": coded}), tmp_path / name)
        records = read(tmp_path / name, schema)
        records.check_whole()
        assert all(sum(len(values) for values in records.values(column)) == 400 for column in ("x", "z"))


def test_the_format_is_not_guessed(tmp_path):
    (tmp_path / "d.txt").write_text("v\n1\n")
    with pytest.raises(FileMismatch, match=r"ending in \.csv.*got '\.txt'"):
        read(tmp_path / "d.txt", schema_of("number"))


def test_a_name_with_a_dot_and_a_nested_column_are_told_apart(tmp_path):
    schema = Schema.from_dict({"columns": {"a.b": COLUMNS["number"], "v": COLUMNS["number"]}})
    table = pa.table({"v": [1.0], "v.w": [2.0], "a.b": [3.0], "a": [{"c": 4.0}]})
    pq.write_table(table, tmp_path / "d.parquet")
    assert encoded(tmp_path / "d.parquet", schema, "a.b") == [3.0]
    assert encoded(tmp_path / "d.parquet", schema, "v") == [1.0]


def test_a_parquet_file_that_grows_after_the_count_is_noticed(tmp_path):
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"v": [1.0]}), path)
    records = read(path, schema_of("number"), target="v")
    pq.write_table(pa.table({"v": [1.0, 2.0]}), path)
    with pytest.raises(FileMismatch, match="changed while it was read"):
        list(records.values())


@pytest.mark.parametrize("make", [lambda: pa.table({"v": pa.array([], pa.float64())}), lambda: {"v": []}])
def test_a_table_of_no_records_has_none(make):
    records = read(make(), schema_of("number"), target="v")
    assert records.n == 0
    assert list(records.values()) == []


# Records


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_records_come_in_order_and_in_batches_from_many_row_groups(tmp_path, monkeypatch, threads):
    monkeypatch.setattr(arrow_adapter, "ROWS_PER_PART", 500)
    monkeypatch.setattr(arrow_adapter, "workers", lambda: threads)
    monkeypatch.setattr(tables, "workers", lambda: threads)
    values = np.random.default_rng(2).uniform(-5, 5, size=20_011)
    pq.write_table(pa.table({"v": values}), tmp_path / "d.parquet", row_group_size=137)
    records = read(tmp_path / "d.parquet", schema_of("number"), target="v", batch_rows=100)
    arrays = list(records.values())
    assert max(len(array) for array in arrays) <= 100
    assert np.concatenate(arrays).tolist() == values.tolist()


def test_reading_may_stop_at_any_batch_and_leaves_no_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_adapter, "ROWS_PER_PART", 5000)
    monkeypatch.setattr(arrow_adapter, "workers", lambda: 3)
    monkeypatch.setattr(tables, "workers", lambda: 3)
    pq.write_table(pa.table({"v": np.zeros(300_000)}), tmp_path / "d.parquet", row_group_size=1000)
    records = read(tmp_path / "d.parquet", schema_of("number"), target="v", batch_rows=1000)
    for stop in (0, 1, 5, 50):
        values = records.values()
        for _ in range(stop):
            next(values)
        del values
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("onedraw-read")]


def test_batches_hold_the_declared_columns_with_their_types():
    declared = {
        name: column for name, column in COLUMNS.items() if not name.startswith("skipped") and name != "own level"
    }
    schema = Schema.from_dict({"columns": declared})
    records = read({name: [1] for name in (*COLUMNS, "other")}, schema, target="count")
    (batch,) = records.batches()
    assert {name: values.dtype.name for name, values in batch.items()} == {
        "number": "float64",
        "count": "int64",
        "category": "int64",
        "binary": "int64",
        "date": "float64",
        "weekday": "int64",
    }
    assert {name: values.tolist() for name, values in batch.items()} == {
        "number": [1.0],
        "count": [1],
        "category": [1],
        "binary": [1],
        "date": [1277.0],
        "weekday": [6],
    }
    assert list(next(records.batches(["binary"]))) == ["binary"]
    assert (records.columns, records.target, records.n) == (tuple(declared), "count", 1)


def test_the_source_is_never_changed():
    array = np.array([100.0, math.nan])
    assert encoded({"v": array}, schema_of("number")) == [5.0, 0.25]
    assert array[0] == 100.0
    table = pa.table({"v": array})
    encoded(table, schema_of("number"))
    assert table["v"][0].as_py() == 100.0


def test_masked_entries_are_missing():
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    words = np.ma.masked_array(["1", "word"], mask=[True, False])
    assert encoded({"v": masked}, schema_of("number")) == [1.0, 0.25]
    assert encoded({"v": words}, schema_of("binary")) == [0, 0]
    assert encoded({"v": words}, schema_of("category")) == [3, 3]


def test_a_target_or_column_that_is_not_declared_is_refused():
    with pytest.raises(InvalidSchema, match="'w' is not declared"):
        read({"v": [1]}, schema_of("number"), target="w")
    records = read({"v": [1]}, schema_of("number"))
    with pytest.raises(InvalidSchema, match="'w' is not declared"):
        records.batches(["w"])
    with pytest.raises(InvalidSchema, match="No target was named"):
        records.values()
    with pytest.raises(InvalidSchema, match="No column was asked for"):
        records.batches([])
    with pytest.raises(FileMismatch, match="batch_rows"):
        read({"v": [1]}, schema_of("number"), batch_rows=0)


def test_what_is_printed_of_records_holds_no_record():
    assert "123.456" not in repr(read({"v": [123.456]}, schema_of("number")))
