"""How one cell is read, whatever file or frame it came from.

A cell is a text, a number, a truth value, or anything else; what it means may depend on the declared column
and on nothing besides: not on its neighbours, not on the type a data frame happened to infer for the whole
column. A frame turns 1 into 1.0 when another record is missing, into "1" when another record is a word, and a
list of truth values into numbers when another record is one. All of these are therefore the same cell here:

| cell                                                      | as a number        | as a level         |
| --------------------------------------------------------- | ------------------ | ------------------ |
| 1, 1.0, True, 1+0j, Decimal("1.00"), "1", " 1.0 ", "01", "true" | 1.0          | "1"                |
| "1e400", NaN, ±inf, "nan", "inf", "Infinity"              | missing            | missing            |
| None, "", blanks                                          | missing            | missing            |
| other text, after blanks at both ends are removed         | missing            | itself, case kept  |
| bytes                                                     | as their UTF-8 text, missing if not UTF-8 |
| anything else (dates, lists, 2j, …)                       | missing            | missing            |

Nothing here ever raises: a cell that could stop the program would be a leak.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

BLANKS = " \t\n\r\f\v"
EXACT_INTEGERS = 2**53  # below this magnitude every integer is a float64

# No two neighbouring repeats can match the same digit, so a long cell costs linear time to refuse.
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER = re.compile(NUMBER)
_STARTS_NUMBER = frozenset("+-.0123456789")
_WORDS = {"true": 1.0, "false": 0.0} | {
    sign + word: math.nan for sign in ("", "+", "-") for word in ("nan", "inf", "infinity")
}
_LONGEST_WORD = max(map(len, _WORDS))
_NUMERIC = (int, float, Decimal, Fraction, np.integer, np.floating, np.bool_)


def number_of(cell: Any) -> float:
    """The finite float64 a cell stands for, or NaN when it stands for none (the cell is then missing)."""
    try:
        if isinstance(cell, (str, bytes)):
            text = text_of(cell)
            value = None if text is None else number_in(text)
            return math.nan if value is None else value
        if isinstance(cell, (complex, np.complexfloating)) and cell.imag == 0:
            cell = cell.real
        if isinstance(cell, _NUMERIC):
            value = float(cell)
            return value if math.isfinite(value) else math.nan
    except Exception:  # whatever an odd object does when asked, the record is missing and nothing stops
        pass
    return math.nan


def label_of(cell: Any) -> str | None:
    """The text by which a cell is compared with declared levels, or None when the cell is missing."""
    if isinstance(cell, (str, bytes)):
        text = text_of(cell)
        value = None if text is None else number_in(text)
        return text if value is None else label_of_number(value)
    return label_of_number(number_of(cell))


def number_in(text: str) -> float | None:
    """The number a text writes (NaN where it writes one that is not finite), or None where it is a word."""
    if text[0] in _STARTS_NUMBER and _NUMBER.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else math.nan
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
    if isinstance(cell, bytes):
        try:
            cell = bytes.decode(cell, "utf-8")
        except UnicodeDecodeError:
            return None
    return str.strip(cell, BLANKS) or None
