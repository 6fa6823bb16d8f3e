"""What every source of records is tested with: one column of each kind, odd cells of every type, and malformed files with secrets in them."""

import datetime
import decimal
import io
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from onedraw.data import Schema, read

COLUMNS = {
    "number": {"kind": "number", "lower": -5, "upper": 5, "missing": 0.25},
    "count": {"kind": "count", "cap": 3, "missing": 2},
    "category": {"kind": "category", "levels": ["2", "1", "0.5", "word"], "missing": "word"},
    "binary": {"kind": "binary", "missing": "no"},
    "skipped number": {"kind": "number", "lower": -5, "upper": 5},
    "skipped count": {"kind": "count", "cap": 3},
    "skipped category": {"kind": "category", "levels": ["2", "1", "0.5", "word"]},
    "skipped binary": {"kind": "binary"},
    "own level": {"kind": "category", "levels": ["2", "1", "0.5", "word"], "missing": "level"},
    "date": {"kind": "date", "first": "2020-01-01", "last": "2026-12-31", "format": "%Y%m%d", "missing": "2023-07-01"},
    "weekday": {
        "kind": "date", "first": "2020-01-01", "last": "2026-12-31", "format": "%d.%m.%Y %H:%M", "zone": "Europe/Berlin",
        "part": "weekday", "missing": "Sunday",
    },
    "skipped date": {"kind": "date", "first": "2020-01-01", "last": "2026-12-31", "format": "%Y%m%d"},
    "skipped weekday": {
        "kind": "date", "first": "2020-01-01", "last": "2026-12-31", "format": "%d.%m.%Y %H:%M", "zone": "Europe/Berlin",
        "part": "weekday",
    },
}  # fmt: skip

DATES = ("date", "weekday", "skipped date", "skipped weekday")
"""The columns that hold dates, of which only these may have a type of dates."""


def schema_of(kind, name="v"):
    return Schema.from_dict({"columns": {name: COLUMNS[kind]}})


def encoded(source, schema, column="v", **options):
    records = read(source, schema, **options)
    arrays = list(records.values(column))
    result = np.concatenate(arrays).tolist() if arrays else []
    assert len(result) == records.n
    if schema.columns[column].skips:
        assert all(array.dtype == np.float64 for array in arrays)
    return [SKIPPED.get(repr(value), value) for value in result]


SKIPPED = {"nan": "missing cell", "-inf": "nobody's"}
"""What stands for cells that contribute nothing, which equal themselves."""


# Odd cells, by Arrow's type

ARROW = [
    *[pa.array([1, None, 2, 100], kind) for kind in (pa.int8(), pa.uint16(), pa.int64(), pa.uint64())],
    *[pa.array([1.0, None, 0.5, math.nan, math.inf], kind) for kind in (pa.float32(), pa.float64())],
    pa.array([1.0, None, 0.5], pa.float16()),
    pa.array([True, False, None]),
    pa.array([None, None], pa.null()),
    *[pa.array([Decimal("0.5"), None, Decimal("-99")], kind(9, 1)) for kind in (pa.decimal128, pa.decimal256)],
    *[
        pa.array(["1", None, "word", "0.50", "", " 2 ", "x", "True"], kind)
        for kind in (pa.string(), pa.large_string(), pa.string_view())
    ],
    *[pa.array([b"1", None, b"\xff", b"2"], kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())],
    pa.array([b"1.", None, b"\xff\xff"], pa.binary(2)),
    pa.array(["word", None, "1", "word"]).dictionary_encode(),
    pa.array([1, None, 2, 1]).dictionary_encode(),
    pa.DictionaryArray.from_arrays(pa.array([0, 2, None], pa.uint8()), pa.array(["1", "2", None, "unused"])),
]

TYPED = [
    pa.array([[1], [2]]),
    pa.array([{"a": 1}]),
    pa.array([datetime.date(2026, 1, 1)]),
    pa.array([datetime.datetime(2026, 1, 1)]),
    pa.array([datetime.timedelta(1)]),
    pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
]


_MOMENTS = [
    datetime.datetime(2026, 3, 29, 1, 30),
    None,
    datetime.datetime(1, 1, 1),
    datetime.datetime(9999, 12, 31, 23, 59, 59),
]
_NEAR = [
    datetime.datetime(2026, 3, 29, 0, 59, 59, 999999),
    None,
    datetime.datetime(1970, 1, 1),
    datetime.datetime(2100, 1, 1),
]

DATED = [
    pa.array([None if one is None else one.date() for one in _MOMENTS], pa.date32()),
    pa.array([None if one is None else one.date() for one in _MOMENTS], pa.date64()),
    *[pa.array([None if one is None else one.replace(microsecond=0) for one in _MOMENTS], pa.timestamp(unit)) for unit in ("s", "ms", "us")],
    *[pa.array(_NEAR, pa.timestamp(unit, zone)) for unit in ("us", "ns") for zone in (None, "UTC", "America/New_York")],
    pa.array([2**62, -(2**62), None], pa.int64()).view(pa.timestamp("s")),
]  # fmt: skip
"""Columns typed as dates, by Arrow's type."""


# Odd cells beside plain ones

CSV_CELLS = [
    b"", b" ", b"unknown", b"nan", b"-inf", b"1e400", b"True", b"true", b"01", b" 1 ", b"1.0", b"(1+0j)", b"2j", b"1,5", b'"', b'"1', b'"1"',
    b'""', b"\xff\xfe", b"\x00", b"9" * 5000, b"-0", b"0x10", b"2026-01-01", b"[1]", b"{}", "é".encode(), b"\r", b"1;2", b"NULL", b"None", b"1e308",
    b"20260101", b"20260101.0", b"01.02.2026 10:00", b"1.2.2026 1:02", b"2026-01-01T23:30:00Z", b"2026-02-30", b"31.12.2026 24:00",
]  # fmt: skip

PARQUET_COLUMNS = {
    "texts": (pa.string(), str, ["", "unknown", "nan", "1e400", "True", "01", " 1 ", "(1+0j)", "9" * 5000, None]),
    "bytes": (pa.binary(), lambda cell: str(cell).encode(), [b"", b"\xff\xfe", b"unknown", None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), str, ["unknown", "true", None]),
    "floats": (pa.float64(), float, [math.nan, math.inf, -math.inf, 1e308, 5e-324, -0.0, None]),
    "half floats": (pa.float16(), np.float16, [np.float16(math.nan), np.float16(math.inf), None]),
    "integers": (pa.int64(), int, [2**63 - 1, -(2**63), 2**53 + 1, None]),
    "unsigned": (pa.uint64(), int, [2**64 - 1, None]),
    "decimals": (pa.decimal128(38, 2), decimal.Decimal, [decimal.Decimal("9" * 30), decimal.Decimal("-0.01"), None]),
}  # fmt: skip


# Malformed files

SECRET = "s3cr3t"
RECORD = f"{SECRET}-1,{SECRET}-2,{SECRET}-3"
MALFORMED_SCHEMA = """\
dataset: p
columns:
  ill: {kind: binary, levels: [no, yes], missing: no}
  age: {kind: number, lower: 0, upper: 100, missing: 50}
  ward: {kind: category, levels: [a, b, c], missing: a}
"""


def parquet_bytes(**columns):
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, compression="none")
    return file.getvalue()


def malformed_parquet():
    """By name: what an export, a copy or a mistake may leave behind, with secrets in it."""
    table = {"ill": [f"{SECRET}-1"] * 50, "age": [f"{SECRET}-2"] * 50, "ward": [f"{SECRET}-3"] * 50}
    parquet = parquet_bytes(**table)
    return {
        "text.parquet": f"ill,age,ward\n{RECORD}\n".encode(),
        "cut.parquet": parquet[: len(parquet) // 2],
        "damaged.parquet": parquet[:200].replace(SECRET.encode(), b"\xff" * 6) + parquet[200:],
        "lists.parquet": parquet_bytes(ill=["a"], age=[[SECRET]], ward=["a"]),
        "structs.parquet": parquet_bytes(ill=["a"], age=[{SECRET: 1}], ward=["a"]),
        "names.parquet": parquet_bytes(**{f"{SECRET}-{place}": [1] for place in range(3)}),
    }
