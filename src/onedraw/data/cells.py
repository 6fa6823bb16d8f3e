"""How one cell is read, whatever file, frame, array or list it came from.

**The rule.** What a cell says is the finite float64 it stands for, however it is spelled or typed, or else its text
without blanks at both ends; everything else is a missing cell.

A cell is a text, a number, a truth value, or anything else; what it means may depend on the declared column
and on nothing besides: not on its neighbours, not on the type a container happened to infer for the whole
column. A frame turns 1 into 1.0 when another record is missing, into "1" when another record is a word, into 1+0j
when another is complex, and a list of truth values into numbers when another record is one. All of these are
therefore the same cell here:

| cell                                                      | as a number        | as a level         |
| --------------------------------------------------------- | ------------------ | ------------------ |
| 1, 1.0, True, 1+0j, Decimal("1.00"), "1", " 1.0 ", "01", "true", "(1+0j)" | 1.0 | "1"              |
| "1e400", NaN, ±inf, "nan", "inf", "Infinity"              | missing            | missing            |
| None, "", blanks                                          | missing            | missing            |
| other text, after blanks at both ends are removed         | missing            | itself, case kept  |
| 2j and other complex numbers                              | missing            | as NumPy writes it |
| bytes                                                     | as their UTF-8 text, missing if not UTF-8 |
| an array of no dimension                                  | as the cell in it                       |
| anything else (dates, lists, …)                           | missing            | missing            |

Nothing here ever raises or warns, and no code of a record's own class is run: a cell that could stop the program
would be a leak.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np

BLANKS = " \t\n\r\f\v"
BINARY_WORDS = ("no", "yes")
EXACT_INTEGERS = 2**53  # below this magnitude every integer is a float64

# No two neighbouring repeats can match the same digit, so a long cell costs linear time to refuse.
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER = re.compile(NUMBER)
_REAL = re.compile(rf"\(?(?:({NUMBER}|[+-]?nan|[+-]?inf)[+-]|[+-]?)0j\)?")  # a real number as a complex array writes it
_STARTS_NUMBER = frozenset("+-.0123456789")
_WORDS = {"true": 1.0, "false": 0.0} | {
    sign + word: math.nan for sign in ("", "+", "-") for word in ("nan", "inf", "infinity")
}
_LONGEST_WORD = max(map(len, _WORDS))


def number_of(cell: Any) -> float:
    """The finite float64 a cell stands for, or NaN when it stands for none (the cell is then missing)."""
    cell = _plain(cell)
    if type(cell) is str:
        value = number_in(cell)
        return math.nan if value is None else value
    if type(cell) is complex:
        cell = cell.real if cell.imag == 0 else math.nan
    return cell if type(cell) is float and math.isfinite(cell) else math.nan


def label_of(cell: Any) -> str | None:
    """The text by which a cell is compared with declared levels, or None when the cell is missing."""
    cell = _plain(cell)
    if type(cell) is str:
        value = number_in(cell)
        return cell if value is None else label_of_number(value)
    if type(cell) is complex and cell.imag != 0:
        return str(cell)
    return label_of_number(number_of(cell))


def _plain(cell: Any) -> str | float | complex | None:
    """The cell as a text (trimmed, not empty), a float or a complex number; None if it is none of these.

    Classes derived from a number or a text are read by the methods of the class they derive from, as NumPy would.
    """
    kind = type(cell)
    if kind is float:
        return cast("float", cell)
    try:
        if issubclass(kind, (str, bytes)):
            return text_of(cell)
        for number, read in _NUMERIC:
            if issubclass(kind, number):
                return cast("float | complex | None", read(cell))
        if derives_from(kind, Fraction):
            return _quotient(cell)
        if issubclass(kind, np.ndarray) and np.ndarray.ndim.__get__(cell) == 0:
            return None if issubclass(kind, np.ma.MaskedArray) else _plain(np.ndarray.item(cell))
    except Exception:  # 10**400, a signalling NaN, an array in itself: the record is missing and nothing stops
        pass
    return None


_NUMERIC: tuple[tuple[Any, Any], ...] = (
    (float, float.__float__),
    (int, int.__float__),
    (np.timedelta64, lambda _: None),  # NumPy counts it among the integers
    ((np.integer, np.floating, np.bool_), np.generic.__float__),
    (complex, complex.__complex__),
    (
        np.complexfloating,
        lambda cell: complex(*(float(part.__get__(cell)) for part in (np.generic.real, np.generic.imag))),
    ),
    (Decimal, Decimal.__float__),
)


def derives_from(kind: type, base: type) -> bool:
    """Say whether a class derives from `base`, an abstract one such as Fraction: `issubclass` would run the hooks of all its classes."""
    return any(one is base for one in type.__dict__["__mro__"].__get__(kind))


def _quotient(cell: Any) -> float | None:
    """Divide a fraction's own parts, whatever a derived class says of them."""
    parts = [getattr(Fraction, name).__get__(cell) for name in ("_numerator", "_denominator")]
    return parts[0] / parts[1] if all(type(part) is int for part in parts) else None


def integer_of(cell: Any) -> int | None:
    """Return the integer of a cell that is typed as one, or None."""
    kind = type(cell)
    if issubclass(kind, np.timedelta64):  # NumPy counts it among the integers
        return None
    if issubclass(kind, np.integer):
        cell = np.generic.item(cell)
        kind = type(cell)
    return int.__int__(cell) if issubclass(kind, int) else None


def bytes_of(cell: Any) -> bytes | None:
    """Return a copy of bytes in their plain class, or None where the cell holds none."""
    return bytes.__getitem__(cell, slice(None)) if issubclass(type(cell), bytes) else None


def number_in(text: str) -> float | None:
    """The number a text writes (NaN where it writes one that is not finite), or None where it is a word."""
    if text[0] in _STARTS_NUMBER and _NUMBER.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else math.nan
    if text.endswith(("0j", "0j)")) and (real := _REAL.fullmatch(text)):
        return 0.0 if real[1] is None else number_in(real[1])
    return _WORDS.get(text.lower()) if len(text) <= _LONGEST_WORD else None


def label_of_number(value: float) -> str | None:
    """1.0 → "1", 0.5 → "0.5": numbers are compared as float64, integers written without a point."""
    if not math.isfinite(value):
        return None
    if value.is_integer() and abs(value) < EXACT_INTEGERS:
        return str(int(value))
    return repr(float(value))


def text_of(cell: str | bytes) -> str | None:
    """The text without blanks at both ends; None when nothing is left or the bytes are not UTF-8."""
    if issubclass(type(cell), bytes):
        try:
            cell = bytes.decode(cast("bytes", cell), "utf-8")
        except UnicodeDecodeError:
            return None
    return str.strip(cast("str", cell), BLANKS) or None
