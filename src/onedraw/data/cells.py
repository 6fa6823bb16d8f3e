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
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_TRUTH = {"true": 1.0, "false": 0.0}
_NUMERIC = (int, float, Decimal, Fraction, np.integer, np.floating, np.bool_)


def number_of(cell: Any) -> float:
    """The finite float64 a cell stands for, or NaN when it stands for none (the cell is then missing)."""
    try:
        if isinstance(cell, (str, bytes)):
            text = text_of(cell)
            return math.nan if text is None else _number_of_text(text)
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
        if text is None or _NOT_FINITE.fullmatch(text):
            return None
        value = _number_of_text(text)
        return label_of_number(value) if math.isfinite(value) or _NUMBER.fullmatch(text) else text
    return label_of_number(number_of(cell))


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


def _number_of_text(text: str) -> float:
    if _NUMBER.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else math.nan
    return _TRUTH.get(text.lower(), math.nan) if len(text) <= 5 else math.nan
