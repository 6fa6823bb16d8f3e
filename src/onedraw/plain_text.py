"""Text and numbers that others will read, in a terminal, a report or a table: it shows what it says and does nothing else.

A line end can forge a line of somebody's output, an escape sequence can hide the next one, and a bidirectional control can
turn a figure round (CVE-2021-42574). Such characters are refused where a text is declared (names, levels, notes, labels, a
certificate's words) and escaped where one is shown. So are characters that show nothing (`is_invisible`): two texts could look
alike. That includes the joiners of some scripts, U+200C and U+200D; leave them out of names. No-break spaces stay.
A spreadsheet does more than show: it computes what begins with =, +, - or @ (OWASP, "CSV injection").

Numbers have few digits, and are rounded outward where a figure must not be understated; the certificate has them all.

A PostgreSQL URL may hold a password before the host (``user:secret@``) or among its parameters (``?password=…``).
`shown_place` is the one function that hides them; messages, reprs and the command line print what it returns. Where an
unescaped / ? # or @ leaves open which piece is the password, nothing behind the scheme is printed.
"""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from functools import partial
from html import escape
from typing import Any
from urllib.parse import SplitResult, unquote, unquote_plus, urlsplit, urlunsplit

_CONTROLS = ("Cc", "Cs", "Zl", "Zp")  # controls (ESC, line ends, C1), lone surrogates, line and paragraph separators
_INVISIBLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)  # fmt: skip
"""Default_Ignorable_Code_Point (DerivedCoreProperties 15.0), the Braille blank, and format controls (category Cf) that show nothing
by themselves. Cf that shows a sign, such as Arabic number marks, is not among them."""
_JOINED = re.compile("(?<=[\u0600-\u08ff\u0900-\u0dff])[\u200c\u200d](?=[\u0600-\u08ff\u0900-\u0dff])")
"""A joiner between two letters of an Arabic or Indic script, where it changes their shape: words are spelled with it."""
_COMPUTED = tuple("=+-@＝＋－＠")  # full-width signs too
HIDDEN = "***"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SECRET = re.compile(r"pass(?!file)|pwd|secret|token", re.IGNORECASE)  # passfile names a file


def acting(text: str) -> str:
    """Return the characters of a text that would act on what shows it, or show nothing, each once; empty for a plain text."""
    if text.isascii() and text.isprintable():
        return ""
    plain = _JOINED.sub("", text)
    found = (mark for mark in plain if is_invisible(mark) or unicodedata.category(mark) in _CONTROLS)
    return "".join(dict.fromkeys(found))


def is_invisible(mark: str) -> bool:
    """Return whether a character shows nothing, or only turns the direction of others."""
    return any(first <= ord(mark) <= last for first, last in _INVISIBLE)


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


def shown_as_html(
    sentence: str, head: Sequence[str] = (), rows: Iterable[Sequence[str]] = (), *, more: str = ""
) -> str:
    """A paragraph, a table where there are rows, and a line in small print."""
    lines = ["<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows]
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>" if lines else ""
    return f"<p>{escape(sentence)}</p>{table}" + (f"<p><small>{escape(more)}</small></p>" if more else "")


# ── numbers ──


def known(value: float | None) -> float | None:
    """JSON has no NaN and no infinity: what is not known, or not bounded, is null."""
    return value if value is not None and math.isfinite(value) else None


def readable(value: float) -> str:
    """Four digits, and no powers of ten where people count."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def shown(value: Any, digits: int = 4) -> str:
    """For people: few digits, below a million without an exponent, thousands apart: 1,830, not 1.83e+03. Texts stay as they are."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return "none"
    rounded = float(f"{value:.{digits}g}")
    written = f"{rounded:,.0f}" if 10.0**digits <= abs(rounded) < 1e6 else f"{value:.{digits}g}"
    return written.replace("-", "−")


brief = partial(shown, digits=3)
"""A released number is noisy in the third digit already."""


def whole(value: float) -> str:
    """A count: every digit of it."""
    return f"{value:,.0f}".replace("-", "−") if math.isfinite(value) else "none"


def round_up(value: float, digits: int = 10) -> float:
    """Round outward to ``digits`` significant digits, so that the figure is readable and survives another machine."""
    if value <= 0 or not math.isfinite(value):
        return value
    shown = Decimal(repr(value))
    unit = Decimal(1).scaleb(shown.adjusted() + 1 - digits)
    rounded = float(shown.quantize(unit, rounding=ROUND_CEILING)) if unit > abs(shown) * Decimal("1e-17") else value
    return rounded if rounded >= value else math.nextafter(rounded, math.inf)


def shown_up(value: float, digits: int = 4) -> str:
    """A figure that must not be understated."""
    return f"{round_up(value, digits):.{digits}g}".replace("-", "−")


def shortened(text: str) -> str:
    """Long fractions cut after six decimals, and marked so; the certificate has every digit."""
    return re.sub(r"(\d+\.\d{6})\d{3,}(?![\d.e])", r"\1…", text)


def small(value: float) -> str:
    """A chance such as δ: a power of ten where it is one."""
    if not 0.0 < value < 1e-3:
        return shown_up(value) if value else "0"
    mantissa, exponent = f"{round_up(value, 3):.2e}".split("e")
    power = f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    factor = mantissa.rstrip("0").rstrip(".")
    return power if factor == "1" else f"{factor}·{power}"


def percent(value: float) -> str:
    if not math.isfinite(value):
        return "none"
    figure = f"{100 * value:.1f}" if abs(value) >= 0.001 else f"{100 * value:.2g}"
    return f"{figure} %".replace("-", "−")


def points(value: float) -> str:
    return f"{100 * value:.2g} percentage points"


# ── places ──


def shown_place(place: str | os.PathLike[str]) -> str:
    """The place as it may be printed: paths as they are, URLs with ``***`` for every password."""
    text = os.fspath(place)
    if "://" not in text:
        return text
    parts = _parts(text)
    if parts is None:
        return f"{text.partition('://')[0]}://{HIDDEN}"
    login, at, host = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    authority = f"{user}{colon}{HIDDEN if colon else ''}{at}{host}"
    pairs = (parameter.partition("=") for parameter in parts.query.split("&"))
    query = "&".join(f"{name}{sign}{HIDDEN if sign and _is_secret(name) else value}" for name, sign, value in pairs)
    return urlunsplit(parts._replace(netloc=authority, query=query))


def without_passwords(text: str, place: str) -> str:
    """Somebody else's words about a place, the driver's for instance, with the place's passwords taken out."""
    parts = _parts(place)
    if parts is None:
        return "the reason is not printed, because it may quote the URL; write / ? # @ : in a password as %2F %3F %23 %40 %3A"
    pairs = (parameter.partition("=") for parameter in parts.query.split("&"))
    secrets = [
        parts.netloc.rpartition("@")[0].partition(":")[2],
        *(value for name, _, value in pairs if _is_secret(name)),
    ]
    spellings = {spelling for secret in secrets for spelling in (secret, unquote(secret), unquote_plus(secret))}
    for spelling in sorted(filter(None, spellings), key=len, reverse=True):
        text = text.replace(spelling, HIDDEN)
    return text


def _parts(place: str) -> SplitResult | None:
    """The URL taken apart; None where it is not sure which piece is the password."""
    try:
        parts = urlsplit(place)
    except ValueError:
        return None
    rest = parts.path + parts.query + parts.fragment
    return None if "@" in rest or "#" in place or parts.netloc.count("@") > 1 else parts


def _is_secret(parameter: str) -> bool:
    return _SECRET.search(unquote_plus(parameter)) is not None
