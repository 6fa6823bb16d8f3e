"""One cell at a time: the table in cells.py, and that nothing a cell holds can raise."""

import datetime
import math
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.data.cells import label_of, number_of

patient = settings(deadline=None, print_blob=True)  # timing is not what is tested here

ONES = [
    1,
    1.0,
    True,
    1 + 0j,
    np.int8(1),
    np.float32(1),
    np.bool_(True),
    np.uint64(1),
    Decimal("1.00"),
    Fraction(1),
]
ONES += [np.array(1), np.array("1"), np.complex64(1), "(1+0j)", "1-0j"]
ONES += ["1", " 1.0\t", "01", "+1", "1e0", "10e-1", "1.", "true", "True", "TRUE", b"1", b" true "]
MISSING = [
    None,
    "",
    "  \t",
    math.nan,
    math.inf,
    -math.inf,
    "nan",
    "NaN",
    "-inf",
    "Infinity",
    "1e400",
    "-1e999",
]
MISSING += [b"\xff\xfe", Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), 10**400, Fraction(10**400)]
MISSING += [[1], {}, object(), datetime.date(2026, 1, 1), np.datetime64("2026-01-01")]
MISSING += [np.ma.masked, np.timedelta64(1, "D"), np.array([1, 2]), bytearray(b"1"), type, Exception("x")]
WORDS = [
    "yes",
    "no",
    "1,5",
    "1_000",
    "10j",
    "1e+0j",
    "2j",
    "0x10",
    "1 2",
    "--1",
    "1e",
    ".",
    "+",
    "١",
    "NA",
    "None",
    "é",
    "1\x00",
    "t",
]


@pytest.mark.parametrize("cell", ONES, ids=repr)
def test_every_spelling_of_one_is_the_same_cell(cell):
    assert number_of(cell) == 1.0
    assert label_of(cell) == "1"


@pytest.mark.parametrize("cell", MISSING, ids=lambda cell: repr(cell)[:20])
def test_what_is_no_finite_number_and_no_text_is_missing(cell):
    assert math.isnan(number_of(cell))
    assert label_of(cell) is None


@pytest.mark.parametrize("cell", WORDS)
def test_a_word_is_no_number_and_its_own_label(cell):
    assert math.isnan(number_of(cell))
    assert label_of(f"  {cell} ") == label_of(cell.encode()) == cell


def test_a_complex_number_is_its_real_part_or_what_numpy_writes():
    texts = np.array([1 + 0j, -0.0 + 0j, 2j, 1 + 2j, complex("nan"), "word"]).tolist()[:5]
    for cell, text in zip([1 + 0j, -0.0 + 0j, 2j, 1 + 2j, complex("nan")], texts, strict=True):
        assert label_of(cell) == label_of(text) == label_of(np.complex128(cell))
        assert np.array_equal(number_of(cell), number_of(text), equal_nan=True)


def test_falsehood_and_minus_zero_are_zero():
    assert {label_of(cell) for cell in (False, "false", "FALSE", 0, -0.0, "-0", "0.000", b"0")} == {"0"}


def test_labels_of_numbers_are_written_one_way():
    assert label_of(0.5) == label_of("0.50") == label_of(".5") == label_of(Decimal("0.500")) == "0.5"
    assert label_of(2**60) == label_of(float(2**60)) == label_of(str(2**60))
    assert label_of(0.1) != label_of(0.1 + 2**-50)


@patient
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_and_its_text_are_the_same_cell(value):
    assert number_of(repr(value)) == value
    assert label_of(repr(value)) == label_of(value)


@patient
@given(st.one_of(st.binary(), st.text(), st.integers(), st.floats(), st.decimals(), st.complex_numbers(), st.none()))
def test_no_cell_raises_and_every_number_is_finite_or_missing(cell):
    assert not math.isinf(number_of(cell))
    label = label_of(cell)
    assert label is None or (label and label_of(label) == label)


def test_no_code_of_a_records_own_class_is_run():
    class Hostile(int):
        def __float__(self):
            raise KeyboardInterrupt

    class Pretender:
        @property
        def __class__(self):
            raise RuntimeError

        __float__ = __str__ = __eq__ = __hash__ = __len__ = __class__

    class Rude(str):
        def strip(self, *_):
            raise RuntimeError

    assert (number_of(Hostile(3)), label_of(Hostile(3))) == (3.0, "3")  # read as NumPy reads it
    assert math.isnan(number_of(Pretender()))
    assert label_of(Pretender()) is None
    assert label_of(Rude(" a ")) == "a"


class Half(Fraction):
    """A fraction whose own properties end the program; so does, while it is armed, the hook that other classes are compared by."""

    armed = False

    @property
    def numerator(self):
        raise RuntimeError

    denominator = __float__ = __int__ = numerator

    @classmethod
    def __subclasshook__(cls, other):
        if cls.armed:
            raise RuntimeError
        return NotImplemented


class Text(str):
    @property
    def __class__(self):
        raise RuntimeError


@pytest.mark.finding("reliability N7a", commit="8a7c0fb")
def test_a_fraction_and_a_text_of_their_own_class_are_plain_ones(monkeypatch):
    assert number_of(Half(1, 2)) == 0.5
    assert label_of(Text(" a ")) == "a"
    monkeypatch.setattr(Half, "armed", True)
    assert label_of(type("Unknown", (), {})()) is None  # not asked whether it is a fraction
    assert number_of(np.array(3.0)) == 3.0


@pytest.mark.parametrize("cell", ["1" * 10**6 + "x", "1" * 10**6, "." * 10**6, " " * 10**6, "1e" + "9" * 10**6])
def test_a_long_cell_costs_linear_time(cell):
    start = time.perf_counter()
    number_of(cell)
    label_of(cell)
    assert time.perf_counter() - start < 2
