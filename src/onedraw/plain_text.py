"""Text that others will read, in a terminal, a report or a table: it shows what it says and does nothing else.

A line end can forge a line of somebody's output, an escape sequence can hide the next one, and a bidirectional control can
turn a figure round (CVE-2021-42574). Such characters are refused where a text is declared (names, levels, notes, labels, a
certificate's words) and escaped where one is shown. Joiners and no-break spaces stay: languages are written with them.
A spreadsheet does more than show: it computes what begins with =, +, - or @ (OWASP, "CSV injection").
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

_CONTROLS = ("Cc", "Cs", "Zl", "Zp")  # controls (ESC, line ends, C1), lone surrogates, line and paragraph separators
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_COMPUTED = tuple("=+-@＝＋－＠")  # full-width signs too


def acting(text: str) -> str:
    """The characters of a text that would act on what shows it, each once; empty for a plain text."""
    if text.isascii() and text.isprintable():
        return ""
    found = (mark for mark in text if mark in _DIRECTIONS or unicodedata.category(mark) in _CONTROLS)
    return "".join(dict.fromkeys(found))


def escaped(text: str) -> str:
    """A text with those characters written out, as in \\x1b: for what somebody else wrote."""
    return text.translate({ord(mark): ascii(mark)[1:-1] for mark in acting(text)})


def texts_in(document: Any) -> Iterator[str]:
    """Every text of a JSON document, the names of its fields included."""
    waiting = [document]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            waiting += item


def for_spreadsheet(text: str) -> str:
    """A cell of a CSV file that no spreadsheet computes: with an apostrophe before it, unless it is a number."""
    if not text.startswith(_COMPUTED):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def known(value: float | None) -> float | None:
    """JSON has no NaN and no infinity: what is not known, or not bounded, is null."""
    return value if value is not None and math.isfinite(value) else None


def readable(value: float) -> str:
    """Four digits, and no powers of ten where people count."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def shown_as_html(
    sentence: str, head: Sequence[str] = (), rows: Iterable[Sequence[str]] = (), *, more: str = ""
) -> str:
    """A paragraph, a table where there are rows, and a line in small print."""
    lines = [
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    ]  # fmt: skip
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>" if lines else ""
    return f"<p>{escape(sentence)}</p>{table}" + (f"<p><small>{escape(more)}</small></p>" if more else "")
