"""How one cell is read as a date or a time of day, and what a model sees of it.

**The rule.** A cell says a moment if it is typed as one, if its text has the declared format, or if its text has the form in which
containers write typed cells (ISO 8601: ``2026-03-01``, ``2026-03-01 14:30:00``, with or without an offset). Everything else is a
missing cell. Each cell is read by itself: no library guesses a format from a column.

| cell | is |
| --- | --- |
| a date, or a moment without an offset | what a clock in the declared zone showed |
| a moment with an offset or a time zone | the same instant on a clock in the declared zone |
| a number, where the format is digits alone (``%Y%m%d``) | its digits, zeros in front put back |
| a day that does not exist, a year outside 1 to 9999 | missing |
| an object whose time zone is neither ``datetime.timezone`` nor ``zoneinfo.ZoneInfo`` | missing: its own code is not run |

A format that would read ISO text as another day (``%Y-%d-%m``) is refused, because a frame can turn a column of typed dates into
such text when another record is a word. So is one that writes decimal numbers (``%Y.%m%d``), which a frame may round.

All arithmetic is on whole microseconds since 1970. Cells one by one and typed columns in bulk end in the same function
(`DateEncoder._encoded`), so they give identical answers. Offsets of the zone come from one public table, made once from the
declared range (`zone_offsets`), so that workers of other machines use the same.
"""

from __future__ import annotations

import datetime
import itertools
import re
import sys
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, final

import numpy as np

from onedraw.arrays import Integers, Mask
from onedraw.data.cells import label_of, label_of_number, number_in, text_of
from onedraw.data.columns import Encoded, Encoder, Numbers, Times, Wanted

Part = Literal["year", "quarter", "month", "weekday", "hour"]

SECOND = 10**6
HOUR, DAY = 3600 * SECOND, 86400 * SECOND
"""Microseconds, in which all moments are counted."""

EPOCH = datetime.date(1970, 1, 1).toordinal()
EARLIEST, LATEST = ((day.toordinal() - EPOCH) * DAY for day in (datetime.date.min, datetime.date.max))
LATEST += DAY - 1

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
QUARTERS = ("Q1", "Q2", "Q3", "Q4")
PIVOT = 69
"""Two digits from here on are a year of the 1900s, as POSIX has it."""

Moment = tuple[int, bool]
"""Microseconds since 1970, and whether they are those of an instant (UTC) or of a clock in the declared zone."""


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────


class UnknownFormat(ValueError):
    """A format that cannot be read, in words that end in what to do."""


_WIDTHS = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "I": 2, "M": 2, "S": 2, "f": 6, "j": 3}
_NAMES = {
    "B": MONTHS, "b": tuple(name[:3] for name in MONTHS), "A": WEEKDAYS, "a": tuple(name[:3] for name in WEEKDAYS),
    "p": ("AM", "PM"),
}  # fmt: skip
_OFFSET = r"Z|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?"
_ISO = re.compile(
    r"(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"
    rf"(?:[T ](?P<H>[0-9]{{2}}):(?P<M>[0-9]{{2}})(?::(?P<S>[0-9]{{2}})(?:\.(?P<f>[0-9]{{1,18}}))?)?(?P<z>{_OFFSET})?)?"
)
_SHORT = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S"}
KNOWN = "%Y %y %m %b %B %d %j %H %I %p %M %S %f %z %a %A %F %T %%"


@final
@dataclass(frozen=True)
class Format:
    """A declared format, compiled to one pattern; names of months and days are English, in any case."""

    text: str
    pattern: re.Pattern[str]
    has_time: bool
    digits: int
    """Digits of a text in a format of digits alone; 0 of any other."""

    def read(self, text: str) -> Moment | None:
        """Return the moment that a text says, or None."""
        found = self.pattern.fullmatch(text) or _ISO.fullmatch(text)
        if found is None and self.digits and (value := number_in(text)) is not None:
            label = label_of_number(value)
            found = None if label is None else self.pattern.fullmatch(label.zfill(self.digits))
        return None if found is None else _moment(found.groupdict())


@lru_cache(maxsize=256)
def compiled(text: str) -> Format:
    """Compile a declared format; `UnknownFormat` says what is wrong with it."""
    written = text
    for short, long in _SHORT.items():
        written = written.replace(short, long)
    tokens = re.findall(r"%.|[^%]+|%", written, flags=re.DOTALL)
    numeric = [token[0] == "%" and token[1:] in _WIDTHS for token in tokens]
    pieces, used = list[str](), list[str]()
    for place, token in enumerate(tokens):
        name = token[1:] if token[0] == "%" else ""
        if not name or name == "%":
            if token == "%":
                raise UnknownFormat(f"the format {text!r} ends in a single %. Write %% for a percent sign")
            pieces.append(re.escape("%" if name else token))
            continue
        used.append(name)
        if name in _WIDTHS:
            beside = any(numeric[other] for other in (place - 1, place + 1) if 0 <= other < len(tokens))
            width = _WIDTHS[name]
            fixed = beside or name in "Yy"
            pieces.append(f"(?P<{name}>[0-9]{{{width if fixed else 1},{width}}})")
        elif name in _NAMES:
            pieces.append(f"(?P<{name}>{'|'.join(_NAMES[name])})")
        elif name == "z":
            pieces.append(f"(?P<z>{_OFFSET})")
        else:
            raise UnknownFormat(f"%{name} in the format {text!r} is not known. Use {KNOWN}")
    _check_parts(text, used)
    found = Format(
        text,
        re.compile("".join(pieces), flags=re.IGNORECASE | re.ASCII),
        has_time=bool({"H", "I"} & set(used)),
        digits=sum(_WIDTHS[name] for name in used) if all(numeric) else 0,
    )
    _check_alike(found, tokens)
    return found


def _check_parts(text: str, used: Sequence[str]) -> None:
    """Refuse a format from which no day follows, or one part of it twice."""
    said = set(used)
    if len(said) < len(used):
        raise UnknownFormat(f"the format {text!r} has a part twice. Give each once")
    year, month = len(said & {"Y", "y"}), len(said & {"m", "b", "B"})
    if year != 1 or not (
        (month == 1 and "d" in said and "j" not in said) or (month == 0 and said & {"d", "j"} == {"j"})
    ):
        raise UnknownFormat(
            f"the format {text!r} must say the year (%Y), the month (%m) and the day (%d) once each, so that a cell is one day. "
            "Add what is missing; of a column of years declare numbers, of months a category"
        )
    if ("I" in said) != ("p" in said) or {"H", "I"} <= said:
        raise UnknownFormat(f"the format {text!r} needs %H, or %I together with %p. Give one of the two")
    for part, before in (("M", "hours"), ("S", "minutes"), ("f", "seconds"), ("z", "hours")):
        needs = {"hours": {"H", "I"}, "minutes": {"M"}, "seconds": {"S"}}[before]
        if part in said and not needs & said:
            raise UnknownFormat(f"the format {text!r} has %{part} without {before}. Add them")


def _check_alike(form: Format, tokens: Sequence[str]) -> None:
    """Refuse a format whose texts a frame could hold as something else."""
    truth = datetime.datetime(2001, 2, 3, 4, 5, 6)
    for written in (f"{truth:%Y-%m-%d}", f"{truth:%Y-%m-%d %H:%M:%S}", f"{truth:%Y-%m-%dT%H:%M:%S}"):
        match = form.pattern.fullmatch(written)
        found = _moment(match.groupdict()) if match else None
        if found is not None and found != _moment(_ISO.fullmatch(written).groupdict()):  # type: ignore[union-attr]
            raise UnknownFormat(
                f"the format {form.text!r} reads 2001-02-03 as another day than the 3rd of February. A frame may write typed dates so, "
                "and then they would change. Write the column in another order, such as %d.%m.%Y"
            )
    example = "".join(_example(token) for token in tokens)
    if not form.digits and number_in(example) is not None:
        raise UnknownFormat(
            f"the texts of the format {form.text!r} are decimal numbers, and a frame that holds them so would change them. Write "
            "the column with another sign between its parts, such as %Y-%m-%d"
        )


def _example(token: str) -> str:
    if token[0] != "%":
        return token
    name = token[1:]
    return (
        "1" * _WIDTHS[name]
        if name in _WIDTHS
        else _NAMES[name][0]
        if name in _NAMES
        else "+01:00"
        if name == "z"
        else "%"
    )


def _moment(said: dict[str, str | None]) -> Moment | None:
    """The moment of the parts of a text; None where there is no such day or time."""
    part = {name: value for name, value in said.items() if value is not None}
    number = {name: int(value) for name, value in part.items() if name in _WIDTHS and name != "f"}
    year = number.get("Y")
    if year is None:
        year = number["y"] + (1900 if number["y"] >= PIVOT else 2000)
    month = number.get("m")
    if month is None and (named := part.get("B") or part.get("b")):
        month = next(place for place, name in enumerate(MONTHS, 1) if name[:3].lower() == named[:3].lower())
    try:
        if month is None:
            day = datetime.date(year, 1, 1).toordinal() + number["j"] - 1
            if not 1 <= number["j"] <= datetime.date(year, 12, 31).timetuple().tm_yday:
                return None
        else:
            day = datetime.date(year, month, number["d"]).toordinal()
    except ValueError:  # the 31st of February, the year 0
        return None
    hour = number.get("H", 0)
    if "I" in number:
        if not 1 <= number["I"] <= 12:
            return None
        hour = number["I"] % 12 + 12 * (part["p"].lower() == "pm")
    minute, second = number.get("M", 0), number.get("S", 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int(part["f"][:6].ljust(6, "0")) if "f" in part else 0
    moment = (day - EPOCH) * DAY + hour * HOUR + minute * 60 * SECOND + second * SECOND + fraction
    if "z" not in part:
        return moment, False
    offset = _offset(part["z"])
    return None if offset is None else (moment - offset, True)


def _offset(text: str) -> int | None:
    """Microseconds east of UTC; None where there is no such offset."""
    if text in "Zz":
        return 0
    parts = [int(piece) for piece in re.findall("[0-9]{2}", text)]
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    size = hours * HOUR + minutes * 60 * SECOND + seconds * SECOND
    return -size if text[0] == "-" else size


# ── one cell ─────────────────────────────────────────────────────────────────────────────────────────────────


def moment_of(cell: Any, form: Format) -> Moment | None:
    """Return the moment that a cell says, or None when it is missing. Nothing here raises, and no record's own code is run."""
    try:
        kind = type(cell)
        if issubclass(kind, str | bytes):
            text = text_of(cell)
            return None if text is None else form.read(text)
        if issubclass(kind, np.ndarray):
            if np.ndarray.ndim.__get__(cell) or issubclass(kind, np.ma.MaskedArray):
                return None
            return moment_of(np.ndarray.__getitem__(cell, ()), form)
        if kind is np.datetime64:
            return _of_numpy(cell)
        if issubclass(kind, datetime.date):
            return _of_python(cell, kind)
        if not form.digits:
            return None
        label = label_of(cell)
        return None if label is None else form.read(label)
    except Exception:  # a record is missing and nothing stops
        return None


def _of_numpy(cell: Any, *, utc: bool = False) -> Moment | None:
    moments, readable = Times.of_numpy(np.array([cell])).microseconds()
    return (int(moments[0]), utc) if readable[0] else None


def _of_python(cell: Any, kind: type) -> Moment | None:
    """A date or datetime by the fields of Python's own classes; a pandas Timestamp by its ticks."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and kind is type(pandas.NaT):  # counted among the datetimes
        return None
    if pandas is not None and kind is pandas.Timestamp:
        return _of_numpy(cell.asm8, utc=cell.tzinfo is not None)
    own = datetime.datetime if issubclass(kind, datetime.datetime) else datetime.date
    day = datetime.date(*(getattr(datetime.date, name).__get__(cell) for name in ("year", "month", "day")))
    moment = (day.toordinal() - EPOCH) * DAY
    if own is datetime.date:
        return moment, False
    names = ("hour", "minute", "second", "microsecond", "fold")
    hour, minute, second, fraction, fold = (getattr(datetime.datetime, name).__get__(cell) for name in names)
    moment += hour * HOUR + minute * 60 * SECOND + second * SECOND + fraction
    zone = datetime.datetime.tzinfo.__get__(cell)
    if zone is None:
        return moment, False
    if type(zone) not in (datetime.timezone, zoneinfo.ZoneInfo):
        return None
    clock = datetime.datetime.combine(day, datetime.time(hour, minute, second, fraction, fold=fold))
    offset = type(zone).utcoffset(zone, clock)
    return moment - offset // datetime.timedelta(microseconds=1), True


# ── the zone ─────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=64)
def zone_offsets(zone: str, first: datetime.date, last: datetime.date) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return (starts, offsets) of a zone in microseconds: from each instant on, how far its clocks are ahead of UTC.

    Good for instants from two days before ``first`` to two days after ``last``; what lies beyond is outside the declared range by
    any clock. `KeyError` where no such zone is known.
    """
    try:
        rules = zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise KeyError(zone) from None
    if zone == "UTC":
        return (0,), (0,)

    def offset(second: int) -> int:
        clock = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=second)
        return int(clock.astimezone(rules).utcoffset() / datetime.timedelta(microseconds=1))  # type: ignore[operator]

    lowest, highest = datetime.date.min.toordinal() + 3, datetime.date.max.toordinal() - 3
    ends = max(lowest, first.toordinal() - 2), min(highest, last.toordinal() + 3)
    days = [(day - EPOCH) * 86400 for day in range(ends[0], ends[1] + 1)]
    starts, offsets = [days[0]], [offset(days[0])]
    for low, high in itertools.pairwise(days):
        after = offset(high)
        while offsets[-1] != after:  # clocks were changed within this day: find the second
            below, above = max(low, starts[-1]), high
            while above - below > 1:
                middle = (below + above) // 2
                below, above = (below, middle) if offset(middle) != offsets[-1] else (middle, above)
            starts.append(above)
            offsets.append(offset(above))
    return tuple(start * SECOND for start in starts), tuple(offsets)


# ── what a model sees ────────────────────────────────────────────────────────────────────────────────────────


@final
class DateEncoder(Encoder):
    """Encodes moments as days since the first declared day, or as the code of a part of the date.

    Without a part a day outside the declared range is moved to the nearest end; with one it is missing, like an undeclared level.
    """

    wanted = Wanted.DATES

    def __init__(
        self,
        form: Format,
        zone: str,
        first: datetime.date,
        last: datetime.date,
        part: Part | None,
        missing: float | int,
    ) -> None:
        self._form, self._part, self.missing = form, part, missing
        self.real = part is None
        starts, offsets = zone_offsets(zone, first, last)
        self._starts, self._offsets = np.array(starts, dtype=np.int64), np.array(offsets, dtype=np.int64)
        self._first, self._last = first.toordinal() - EPOCH, last.toordinal() - EPOCH
        self._span = span_of(form, first, last)
        self._codes = np.array(part_codes(part, first, last), dtype=np.int64) if part else None

    def _encode_numbers(self, chunk: Numbers) -> Encoded:
        if not self._form.digits:
            return self._all_missing(len(chunk))
        return self.encode(chunk.as_cells())

    def _encode_cells(self, values: Sequence[Any]) -> Encoded:
        said = [moment_of(value, self._form) for value in values]
        moments = np.fromiter((0 if one is None else one[0] for one in said), np.int64, len(said))
        readable = np.fromiter((one is not None for one in said), np.bool_, len(said))
        instants = np.fromiter((one is not None and one[1] for one in said), np.bool_, len(said))
        return self._encoded(moments, readable, instants)

    def _encode_times(self, chunk: Times) -> Encoded:
        moments, readable = chunk.microseconds()
        return self._encoded(moments, readable, np.full(len(chunk), chunk.utc))

    def covers(self, cell: Any) -> bool | None:
        """Return whether the day of a cell is in the declared range; None of a cell that says no day."""
        said = moment_of(cell, self._form)
        if said is None:
            return None
        day = int(self._clock(np.array([said[0]]), np.array([said[1]]))[0] // DAY)
        return self._first <= day <= self._last

    def _clock(self, moments: Integers, instants: Mask) -> Integers:
        """What a clock in the declared zone showed at each moment."""
        place = np.maximum(np.searchsorted(self._starts, moments, side="right") - 1, 0)
        return np.where(instants, moments + self._offsets[place], moments)

    def _encoded(self, moments: Integers, readable: Mask, instants: Mask) -> Encoded:
        readable = readable & (moments >= EARLIEST) & (moments <= LATEST)
        clock = self._clock(np.where(readable, moments, 0), instants)
        day = clock // DAY
        if self._codes is None:
            days = (day - self._first).astype(np.float64)
            if self._form.has_time:
                days += (clock - day * DAY) / DAY
            np.clip(days, 0.0, self._span, out=days)
            days[~readable] = self.missing
            return days
        inside = readable & (day >= self._first) & (day <= self._last)
        raw = raw_parts(self._part, np.where(inside, day, self._first), clock - day * DAY, self._first)
        codes = self._codes[raw]
        return np.where(inside & (codes >= 0), codes, self.missing)


def span_of(form: Format, first: datetime.date, last: datetime.date) -> float:
    """Days from the start of the first day to the last one, or to its end where the time of day counts."""
    return float((last - first).days + form.has_time)


def raw_parts(part: Part | None, day: Integers, within: Integers, first: int) -> Integers:
    """Return the part of each day (counted from 1970) as a whole number from 0."""
    if part == "hour":
        return np.asarray(within // HOUR)
    if part == "weekday":
        return np.asarray((day + 3) % 7)  # the 1st of January 1970 was a Thursday
    months = _months(day)
    if part == "year":
        return np.asarray(months // 12 - _months(np.array([first]))[0] // 12)
    return np.asarray(months % 12 // 3 if part == "quarter" else months % 12)


def _months(day: Integers) -> Integers:
    """Whole months since January 1970."""
    return np.asarray(day).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


@lru_cache(maxsize=256)
def part_levels(part: Part, first: datetime.date, last: datetime.date) -> tuple[tuple[int, str], ...]:
    """Return (whole number, label) of each part of a date that can occur from the first to the last day."""
    if part == "hour":
        return tuple((hour, str(hour)) for hour in range(24))
    if part == "year":
        return tuple((year - first.year, str(year)) for year in range(first.year, last.year + 1))
    names = {"quarter": QUARTERS, "month": MONTHS, "weekday": WEEKDAYS}[part]
    start = first.toordinal() - EPOCH
    days = np.arange(start, min(last.toordinal() - EPOCH, start + 400) + 1)
    occur = np.unique(raw_parts(part, days, np.zeros_like(days), start)).tolist()
    return tuple((raw, names[raw]) for raw in occur)


def part_codes(part: Part, first: datetime.date, last: datetime.date) -> list[int]:
    """Return the code of each whole number of `raw_parts`; −1 of one that cannot occur."""
    codes = {raw: code for code, (raw, _) in enumerate(part_levels(part, first, last))}
    return [codes.get(raw, -1) for raw in range(max(codes) + 1)]


# ── shown to people ──────────────────────────────────────────────────────────────────────────────────────────


def shown_day(first: datetime.date, days: float, *, clock: bool) -> str:
    """Return days since the first one as a date, to the day or, where the time of day counts, to the minute."""
    start = datetime.datetime.combine(first, datetime.time())
    try:
        if not clock:
            return (start + datetime.timedelta(days=round(days))).date().isoformat()
        return (start + datetime.timedelta(minutes=round(days * 1440))).isoformat(" ", "minutes")
    except (OverflowError, ValueError):  # beyond the calendar: noise may carry an end there
        return f"{days:.6g} days after {first.isoformat()}"
