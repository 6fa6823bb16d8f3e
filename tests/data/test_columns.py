"""Columns in bulk and cell by cell: the fast way to read a container gives the codes of the slow one."""

import datetime
import decimal
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onedraw.data.columns import CountEncoder, LevelEncoder, NumberEncoder, Wanted, cells, chunk_in, chunks_in
from onedraw.models.batches import batches
from onedraw.models.responses import Codes

patient = settings(deadline=None, print_blob=True, max_examples=40)

ENCODERS = [
    NumberEncoder(-math.inf, math.inf, math.nan),
    NumberEncoder(-2.5, 7, 1),
    CountEncoder(5, 3),
    LevelEncoder([0, 1, 2], 0),
    LevelEncoder(["2", "word", -1.0, 0.5], "word"),
    LevelEncoder(["no", "yes"], "no", plain_binary=True),
    LevelEncoder([str(2**53 + 2), 2**64, 255, "-0"], 255),
]
NUMERIC = [
    *(np.dtype(kind) for kind in ("bool", "int8", "uint8", "int16", "uint32", "int64", "uint64")),
    *(np.dtype(kind) for kind in ("float16", "float32", "float64", "longdouble")),
]


def same(fast, slow):
    """Every encoder's codes of a chunk are those of its cells one by one, and nothing is warned."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for encoder in ENCODERS:
            assert np.array_equal(encoder.encode(fast), encoder.encode(cells(slow)), equal_nan=True)


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
@patient
@given(data=st.data())
def test_numpy_numbers_are_read_in_bulk_as_one_by_one(dtype, data):
    values = st.booleans() if dtype.kind == "b" else None
    array = data.draw(arrays.arrays(dtype, st.integers(0, 12), elements=values))
    same(chunk_in(array, Wanted.NUMBERS), list(array))
    one_by_one = NumberEncoder(-math.inf, math.inf, math.nan).encode(cells(list(array)))
    assert np.array_equal(np.concatenate([np.zeros(0), *batches(array)]), one_by_one, equal_nan=True)


EXTREME = [0, 1, -1, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, -(2**63), 2**64 - 1, 2**63]


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "longdouble", "object"])
def test_the_largest_integers_are_the_same_cell_in_every_array(dtype):
    held = [
        value
        for value in EXTREME
        if dtype not in ("int64", "uint64") or np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
    ]
    array = np.array(held, dtype=dtype)
    if dtype != "float64":  # which rounds them itself
        same(chunk_in(array, Wanted.NUMBERS), held)
    same(chunk_in(array, Wanted.LABELS), list(array))
    if dtype == "longdouble":
        same(chunk_in(np.array([np.longdouble("1e4000"), 1]), Wanted.NUMBERS), ["1e400", 1])


WORDS = st.sampled_from(["1", "0", " 2.0", "true", "yes", "word", "nan", "1e400", "(1+0j)", "", "0.5", str(2**53 + 2)])
MIXED = st.lists(st.one_of(st.none(), WORDS), max_size=12)


@patient
@given(MIXED)
def test_texts_are_read_by_category_and_in_arrow_as_one_by_one(texts):
    arrow = pa.array(texts, pa.string())
    held = [
        pd.Series(texts, dtype=object),
        pd.Series(texts, dtype="category"),
        pd.Series(texts, dtype="str"),
        pd.Series(texts, dtype=pd.ArrowDtype(pa.string())),
        pl.Series(texts, dtype=pl.String),
        pl.Series(texts, dtype=pl.Categorical),
        arrow,
        arrow.dictionary_encode(),
        arrow.cast(pa.large_binary()),
        pa.chunked_array([arrow, arrow])[: len(texts)],
        np.array(texts, dtype=object),
    ]
    for column in held:
        for wanted in (Wanted.NUMBERS, Wanted.LABELS):
            if wanted is Wanted.LABELS:
                same(chunk_in(column, wanted), texts)
            chunks = list(chunks_in(column, wanted, 3))
            number = NumberEncoder(-math.inf, math.inf, math.nan)
            found = np.concatenate([np.zeros(0), *map(number.encode, chunks)])
            assert np.array_equal(found, number.encode(cells(texts)), equal_nan=True)


@patient
@given(st.lists(st.one_of(st.none(), st.integers(-3, 300), st.booleans()), max_size=12))
def test_nullable_columns_are_read_as_their_cells(values):
    whole = [None if value is None else int(value) for value in values]
    for column in (
        pd.Series(whole, dtype="Int64"),
        pd.Series(whole, dtype=pd.ArrowDtype(pa.int64())),
        pd.Series(whole, dtype="category"),
        pd.Series(whole, dtype=object),
        pl.Series(whole, dtype=pl.Int64),
        pa.array(whole, pa.int64()),
        pa.array(whole, pa.int64()).dictionary_encode(),
        np.ma.MaskedArray([value or 0 for value in whole], mask=[value is None for value in whole], dtype=np.int64),
    ):
        same(chunk_in(column, Wanted.LABELS), whole)


ODD_TYPES = [
    pd.Series(pd.period_range("2026-01", periods=2, freq="M")),
    pd.Series(pd.interval_range(0, 2)),
    pd.Series(pd.date_range("2026-01-01", periods=2, tz="UTC")),
    pd.Series(pd.to_timedelta([1, 2])),
    pd.Series(pd.date_range("2026-01-01", periods=2)).astype("category"),
    pd.Series([1, 2], dtype=pd.ArrowDtype(pa.duration("ns"))),
    pd.Index([(1, 2), (3, 4)]),
    pl.Series([[10**30], [1]], strict=False),
    pl.Series([{"a": 1}, {}]),
    pa.array([{"a": 1}, {}]),
    pa.array([[1], [2]]),
    pa.chunked_array([pa.array([datetime.date(2026, 1, 1)] * 2).dictionary_encode()]),
    np.array(["2026-01-01", "NaT"], dtype="datetime64[D]"),
    np.array([1, 2], dtype="timedelta64[ns]"),
    np.array([(1, 2), (3, 4)], dtype=[("a", int), ("b", int)]),
]


@pytest.mark.parametrize(
    "column", ODD_TYPES, ids=lambda column: f"{type(column).__name__} {getattr(column, 'dtype', '')}"
)
def test_a_type_that_holds_neither_numbers_nor_text_is_two_missing_cells(column):
    for wanted in Wanted:
        same(chunk_in(column, wanted), [None, None])


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([1, 2], dtype=pl.Int128),
        pl.Series([1, 2], dtype=pl.UInt128),
        pl.Series(["1", "2"], dtype=pl.Enum(["2", "1"])),
        pl.Series([decimal.Decimal("1.0"), decimal.Decimal("2.0")]),
        pa.array([decimal.Decimal("1.0"), decimal.Decimal("2.0")]).dictionary_encode(),
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 2], pa.int8())),
        pd.Series([1, 2], index=["cat", "iloc"]),
        pd.Categorical([1, 2]),
        range(1, 3),
    ],
    ids=lambda column: f"{type(column).__name__} {getattr(column, 'dtype', '')}",
)
def test_rarer_types_of_numbers_are_read_as_numbers(column):
    same(chunk_in(column, Wanted.LABELS), [1, 2])


SPARSE = pd.arrays.SparseArray
PANDAS_COLUMNS = {
    "sparse complex": lambda odd: SPARSE([1, 0, 1 + 2j if odd else 2]),
    "sparse complex that is real": lambda odd: SPARSE(np.array([1, 0, 1 + 0j if odd else 2]), fill_value=1),
    "sparse objects": lambda odd: SPARSE(np.array([1, 0, "word" if odd else 2], dtype=object), fill_value=0),
    "sparse integers": lambda odd: SPARSE([1, 0, 7 if odd else 2], fill_value=7),
    "sparse long floats": lambda odd: SPARSE(np.array([1, 0, "1e4000" if odd else 2], dtype=np.longdouble)),
    "categories": lambda odd: pd.Categorical([1, 0, 1 + 2j if odd else 2]),
    "index": lambda odd: pd.Index(SPARSE([1, 0, 1 + 2j if odd else 2])),
    "NumPy in pandas": lambda odd: pd.arrays.NumpyExtensionArray(np.array([1, 0, 1 + 2j if odd else 2])),
    "nullable": lambda odd: pd.array([1, 0, None if odd else 2], dtype="Float32"),
    "text": lambda odd: pd.array(["1", "0", "word" if odd else "2"], dtype="string[python]"),
}


ODD_BEFORE = ("sparse complex", "sparse complex that is real", "sparse long floats", "index")
SPARSE_COMPLEX = pytest.mark.finding("reliability N5", commit="8a7c0fb")


@pytest.mark.parametrize(
    "container",
    [
        pytest.param(make, id=name, marks=[SPARSE_COMPLEX] if name in ODD_BEFORE else [])
        for name, make in PANDAS_COLUMNS.items()
    ],
)
def test_an_odd_record_in_a_pandas_type_changes_only_itself(container):
    for column in (container, lambda odd: pd.Series(container(odd))):
        whole, odd = (chunk_in(column(is_odd), Wanted.NUMBERS) for is_odd in (False, True))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for encoder in ENCODERS:
                assert np.array_equal(encoder.encode(whole), encoder.encode(cells([1, 0, 2])), equal_nan=True)
                assert np.array_equal(encoder.encode(odd)[:2], encoder.encode(cells([1, 0])), equal_nan=True)


def test_numbers_that_pandas_holds_sparsely_are_read_as_they_are():
    column = pd.Series(pd.arrays.SparseArray([0.0, 1.0, math.nan, 0.0]))
    same(chunk_in(column, Wanted.NUMBERS), [0, 1, None, 0])


@patient
@given(st.lists(st.one_of(st.integers(-1, 3), st.sampled_from([0.5, math.nan, math.inf])), max_size=12))
def test_classes_are_found_in_bulk_as_one_by_one(values):
    for classes in ((0, 1, 2), ("1", "0.5"), (2.0, "no")):
        fast = Codes(classes).from_values(np.array(values, dtype=np.float64))
        assert np.array_equal(fast, Codes(classes).from_values(values))
        assert np.array_equal(fast, Codes(classes).from_values([str(value) for value in values]))
