"""What is declared of one column: the five kinds, how each encodes a cell, and what is wrong with a declaration, in words.

Bounds, levels and caps decide how far one record can move a result: without them no promise exists, so what is not declared is
refused with the line to add. A missing cell contributes nothing (`missing: skip`, the default), or is a declared value, or a level
of its own.
"""

from __future__ import annotations

import abc
import datetime
import difflib
import math
import sys
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from onedraw.arrays import Array
from onedraw.data.cells import BINARY_WORDS, BLANKS, label_of
from onedraw.data.columns import Cells, CountEncoder, Encoder, LevelEncoder, NumberEncoder
from onedraw.data.dates import DateEncoder, Part, UnknownFormat, compiled, part_levels, span_of, zone_offsets
from onedraw.data.magnitudes import LABELS, MagnitudeEncoder
from onedraw.errors import InvalidSchema
from onedraw.plain_text import acting

SKIP = "skip"
"""What `missing:` says of a column whose missing cells contribute nothing; the default."""

OWN_LEVEL, MISSING_LEVEL = "level", "missing"
"""What `missing:` says of a category whose missing cells are a level of their own, after the declared ones, and what that is called."""

LARGEST_CAP = 10**9  # sums of a column then stay inside int64 up to nine billion records

UNDECLARED = {  # what is missing: why it matters, what to do
    "bounds": (
        "without declared bounds one record could move the result arbitrarily far, and no promise exists",
        "Add `lower:` and `upper:`, chosen from what the quantity can be, not from the private file",
    ),
    "cap": (
        "without a declared cap one record could move the result arbitrarily far, and no promise exists",
        "Add `cap:`, the largest count that is to matter, chosen without looking at the private file",
    ),
    "first": (
        "without a declared first and last day one record could move the result arbitrarily far, and no promise exists",
        "Add `first:` and `last:`, days as 2026-03-01, chosen from what is public, not from the private file",
    ),
    "levels": (
        "levels taken from the records would tell which values occur among them",
        "Add `levels:`, all the values the column may take",
    ),
    "columns": ("without columns nothing can be read", "Add `columns:` with at least one column"),
}
_EXPECTED = {
    "finite_number": "a finite number, since no promise follows from an infinite bound",
    "greater_than": "a number above 0: how much more of the column people speak of",
    "float_type": "a number",
    "literal_error": "one of year, quarter, month, weekday and hour",
    "int_type": "a whole number",
    "string_type": "a text",
    "string_too_short": "a text that is not empty",
    "tuple_type": "a list of levels",
    "mapping_type": "a mapping from column names to declarations",
    "dict_type": "a mapping from column names to declarations",
    "model_attributes_type": "a declaration such as {kind: number, lower: 0, upper: 1}",
}


def _label(level: Any) -> Any:
    if isinstance(level, bool):
        return "true" if level else "false"
    if isinstance(level, (int, float)):
        return label_of(level) or level
    return level.strip(BLANKS) if isinstance(level, str) else level


def plain(text: str) -> str:
    if found := acting(text):
        raise ValueError(
            f"{text!r} holds {', '.join(map(ascii, found))}, which would act on a terminal, a report or a table instead of "
            "being shown there, or show nothing. Use visible characters"
        )
    return text


def _day(value: Any) -> Any:
    """A date of Python's as text; of other values nothing is changed."""
    return value.isoformat() if type(value) is datetime.date else value


def _label_or_day(value: Any) -> Any:
    return _label(_day(value))


def _is_day(text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError(f"{text!r} is no day. Write year, month and day as 2026-03-01") from None


Text = Annotated[str, Field(min_length=1), AfterValidator(plain)]
Day = Annotated[
    str, BeforeValidator(_day), AfterValidator(_is_day), WithJsonSchema({"type": "string", "format": "date"})
]  # fmt: skip
Label = Annotated[
    str, BeforeValidator(_label), AfterValidator(plain),
    WithJsonSchema({"type": ["string", "number", "boolean"], "minLength": 1}),
]  # fmt: skip
Levels = Annotated[tuple[Label, ...], BeforeValidator(lambda some: tuple(some) if isinstance(some, list) else some)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Step = Annotated[Finite, Field(gt=0.0)]


LARGEST = sys.float_info.max


def _number_or_skip(value: Any) -> float | str:
    if isinstance(value, str) and value.strip(BLANKS) == SKIP:
        return SKIP
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= LARGEST:
        raise ValueError(
            f"`missing:` expected a finite number inside the bounds, or skip, got {_words_for(value)}. Leave it out, and missing "
            "cells contribute nothing"
        )
    return value


_NUMBER_OR_SKIP = BeforeValidator(_number_or_skip)
MissingNumber = Annotated[  # a float, as ever: a schema's digest is that of its JSON
    Any, _NUMBER_OR_SKIP, AfterValidator(lambda value: value if value == SKIP else float(value)), WithJsonSchema({"anyOf": [{"type": "number"}, {"const": SKIP}], "default": SKIP})
]  # fmt: skip
MissingCount = Annotated[
    Any, _NUMBER_OR_SKIP, WithJsonSchema({"anyOf": [{"type": "integer"}, {"const": SKIP}], "default": SKIP})
]  # fmt: skip


class Declared(BaseModel):
    """A frozen value that refuses unknown keys and explains itself in our words, not the validator's."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:  # all that is wrong, a line each
            sentences = (_sentence(type(self), problem) for problem in error.errors(include_url=False))
            raise InvalidSchema(*dict.fromkeys(sentence[:1].upper() + sentence[1:] for sentence in sentences)) from None


class _Column(Declared, abc.ABC):
    """What others ask of a declared column, whatever its kind."""

    kind: str
    missing: Any
    """What a missing or unreadable cell becomes; "skip": nothing."""

    @property
    def role(self) -> str:
        """What the column is in a question: a number, count, category or binary. A date is a number of days, or a category."""
        return self.kind

    @property
    def skips(self) -> bool:
        """Whether a missing cell contributes nothing: it is encoded as NaN, a record that counts for nobody as −∞."""
        return bool(self.missing == SKIP)

    @property
    def code_of_missing(self) -> Any:
        """What a missing cell is encoded from: NaN where it is skipped."""
        return math.nan if self.skips else self.missing

    @property
    def ends(self) -> tuple[float, float]:
        """Between which it lies as a number; of levels, 0 and 1 (one column for each)."""
        return 0.0, 1.0

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the levels in the order of their codes; none of a number."""
        return ()

    @abc.abstractmethod
    def encoder(self) -> Encoder:
        """From cells to the numbers a model sees."""

    @abc.abstractmethod
    def spread(self, shares: Array) -> NDArray[Any]:
        """Encoded values all over what is declared, from numbers in [0, 1): for public test blocks."""


class Number(_Column):
    """A bounded real number; values outside [lower, upper] are moved to the nearest bound."""

    kind: Literal["number"] = "number"
    lower: Finite
    upper: Finite
    missing: MissingNumber = SKIP
    step: Step | None = None

    @property
    def ends(self) -> tuple[float, float]:
        return self.lower, self.upper

    def encoder(self) -> Encoder:
        return NumberEncoder(self.lower, self.upper, self.code_of_missing)

    def spread(self, shares: Array) -> NDArray[Any]:
        return self.lower + shares * (self.upper - self.lower)

    @model_validator(mode="after")
    def _check(self) -> Number:
        if not self.lower < self.upper:
            raise ValueError(
                f"expected lower < upper, got lower = {self.lower:g} and upper = {self.upper:g}: no value "
                "lies strictly between them, so the column would say nothing. Exchange or widen the bounds"
            )
        if not math.isfinite(self.upper - self.lower):
            raise ValueError("the width upper − lower is not a finite number. Narrow the bounds")
        if not (self.skips or self.lower <= self.missing <= self.upper):
            raise ValueError(
                f"`missing: {self.missing:g}` lies outside [{self.lower:g}, {self.upper:g}], where no record "
                "can be. Choose a value inside the bounds"
            )
        return self


class Count(_Column):
    """A whole number from 0 to a cap; larger counts become the cap, fractions the nearest whole number."""

    kind: Literal["count"] = "count"
    cap: int
    missing: MissingCount = SKIP
    step: Step | None = None

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, float(self.cap)

    def encoder(self) -> Encoder:
        return CountEncoder(self.cap, self.code_of_missing)

    def spread(self, shares: Array) -> NDArray[Any]:
        counts = (shares * (self.cap + 1)).astype(np.int64)
        return counts.astype(np.float64) if self.skips else counts

    @model_validator(mode="after")
    def _check(self) -> Count:
        if not 1 <= self.cap <= LARGEST_CAP:
            raise ValueError(
                f"expected a cap from 1 to {LARGEST_CAP:,}, got {self.cap}: below, every record is 0; above, "
                "sums are not exact. Choose the largest count that is to matter, or use `kind: number`"
            )
        if not self.skips and not (isinstance(self.missing, int) and 0 <= self.missing <= self.cap):
            raise ValueError(
                f"`missing: {self.missing}` lies outside 0 … {self.cap}, where no record can be. "
                "Choose a count from 0 to the cap"
            )
        return self


class _Levels(_Column):
    """One of several labels, coded 0, 1, … in their order."""

    @property
    @abc.abstractmethod
    def labels(self) -> tuple[str, ...]:
        """In the order of their codes."""

    def spread(self, shares: Array) -> NDArray[Any]:
        codes = (shares * len(self.labels)).astype(np.int64)
        return codes.astype(np.float64) if self.skips else codes

    @property
    def skips(self) -> bool:
        """Whether a missing cell contributes nothing; a declared level that is called so is that level."""
        return self.missing == SKIP and SKIP not in self.labels


class Category(_Levels):
    """One of a declared list of levels, coded 0, 1, … in the order declared."""

    kind: Literal["category"] = "category"
    levels: Levels
    missing: Label = SKIP

    @property
    def labels(self) -> tuple[str, ...]:
        return (*self.levels, MISSING_LEVEL) if self._has_own_level else self.levels

    @property
    def _has_own_level(self) -> bool:
        """Whether missing cells are a level of their own: `missing: level`, and no declared level is called so."""
        return self.missing == OWN_LEVEL and OWN_LEVEL not in self.levels

    def encoder(self) -> Encoder:
        missing = MISSING_LEVEL if self._has_own_level else self.code_of_missing
        return LevelEncoder(self.labels, missing)

    @model_validator(mode="after")
    def _check(self) -> Category:
        if len(self.levels) < 2:
            raise ValueError(
                f"expected at least two levels, got {len(self.levels)}: a column of one value says nothing. "
                "Declare all the values the column may take"
            )
        _check_levels(self.levels, None if self.skips or self._has_own_level else self.missing)
        if self._has_own_level and MISSING_LEVEL in self.levels:
            raise ValueError(
                f"`missing: {OWN_LEVEL}` adds a level called {MISSING_LEVEL!r}, which is declared already. Write `missing: "
                f"{MISSING_LEVEL}`, or call the declared level otherwise"
            )
        return self


class Binary(_Levels):
    """One of two levels, coded 0 and 1; without `levels`, no/false/0 and yes/true/1 in any case."""

    kind: Literal["binary"] = "binary"
    levels: Levels | None = None
    missing: Label = SKIP

    @property
    def labels(self) -> tuple[str, ...]:
        return self.levels or BINARY_WORDS

    def encoder(self) -> Encoder:
        return LevelEncoder(self.labels, self.code_of_missing, plain_binary=self.levels is None)

    @model_validator(mode="after")
    def _check(self) -> Binary:
        if self.levels is not None and len(self.levels) != 2:
            raise ValueError(
                f"a binary column has two levels, got {len(self.levels)}. Declare the level coded 0 and then "
                "the level coded 1, or use `kind: category`"
            )
        if self.missing == OWN_LEVEL and OWN_LEVEL not in self.labels:
            raise ValueError(
                f"`missing: {OWN_LEVEL}` would make a third level of a binary column. Use `kind: category`, or leave it out: then "
                "missing cells contribute nothing"
            )
        if self.levels is not None:
            _check_levels(self.levels, None if self.skips else self.missing)
        elif self.skips:
            pass
        elif label_of(self.missing.lower()) not in ("0", "1", *BINARY_WORDS):
            raise ValueError(
                f"`missing: {self.missing}` is neither no nor yes, and no levels are declared. Choose one of "
                "them, or declare `levels:`"
            )
        return self


class Date(_Column):
    """A date or a time from a public first to a public last day: days since the first, or a category by `part` of the date.

    `format` says how text is read, and with hours in it that the time of day counts; `zone` is whose clocks are meant.
    """

    kind: Literal["date"] = "date"
    first: Day
    last: Day
    format: Text = "%Y-%m-%d"
    zone: Text = "UTC"
    part: Part | None = None
    missing: Annotated[
        str,
        BeforeValidator(_label_or_day),
        AfterValidator(plain),
        WithJsonSchema({"type": ["string", "number"], "default": SKIP}),
    ] = SKIP
    step: Step | None = None

    @property
    def role(self) -> str:
        return "number" if self.part is None else "category"

    @property
    def days(self) -> tuple[datetime.date, datetime.date]:
        """The first and the last day."""
        return datetime.date.fromisoformat(self.first), datetime.date.fromisoformat(self.last)

    @property
    def ends(self) -> tuple[float, float]:
        return (0.0, span_of(compiled(self.format), *self.days)) if self.part is None else (0.0, 1.0)

    @property
    def lower(self) -> float:
        return self.ends[0]

    @property
    def upper(self) -> float:
        return self.ends[1]

    @property
    def has_time(self) -> bool:
        """Whether the time of day counts: whether the format has hours."""
        return compiled(self.format).has_time

    @property
    def labels(self) -> tuple[str, ...]:
        """The parts that can occur from the first to the last day, in the order of their codes."""
        return tuple(label for _, label in part_levels(self.part, *self.days)) if self.part else ()

    @property
    def stated(self) -> dict[str, str]:
        """What a certificate says of the dates, and what is needed to write a number of days as a date."""
        said = {"first": self.first, "last": self.last, "format": self.format, "zone": self.zone}
        return said | ({"part": self.part} if self.part else {})

    def encoder(self) -> DateEncoder:
        return DateEncoder(compiled(self.format), self.zone, *self.days, self.part, self._missing_code)

    @property
    def _missing_code(self) -> float | int:
        if self.skips:
            return math.nan
        if self.part is not None:
            return self.labels.index(self.missing)
        days = _days_of(self.missing, self)
        assert days is not None
        return days

    def spread(self, shares: Array) -> NDArray[Any]:
        if self.part is None:
            return shares * self.ends[1]
        codes = (shares * len(self.labels)).astype(np.int64)
        return codes.astype(np.float64) if self.skips else codes

    @model_validator(mode="after")
    def _check(self) -> Date:
        try:
            form = compiled(self.format)
        except UnknownFormat as error:
            raise ValueError(str(error)) from None
        first, last = self.days
        if not first <= last or not span_of(form, first, last) > 0.0:
            raise ValueError(
                f"expected first before last, got first = {self.first} and last = {self.last}. Declare the days between which every date "
                "of the column can lie, from what is public"
            )
        try:
            zone_offsets(self.zone, first, last)
        except KeyError:
            raise ValueError(
                f"no time zone is called {self.zone!r} on this machine. Use a name such as Europe/Berlin or UTC, and install tzdata if "
                "the system has no zones"
            ) from None
        if self.part is None:
            if not self.skips and _days_of(self.missing, self) is None:
                raise ValueError(
                    f"`missing: {self.missing}` is no day from {self.first} to {self.last}. Choose one, written as 2026-03-01"
                )
            return self
        if self.part == "hour" and not form.has_time:
            raise ValueError(
                f"`part: hour` needs a format with hours, got {self.format!r}. Write one such as %Y-%m-%d %H:%M:%S, also for a column "
                "that is typed as date and time"
            )
        if self.step is not None:
            raise ValueError(f"`step:` is days of a number, and `part: {self.part}` makes levels. Leave one out")
        if len(self.labels) < 2:
            raise ValueError(
                f"from {self.first} to {self.last} there is only one {self.part}, so the column would say nothing. Widen the range, "
                "or choose another part"
            )
        if not self.skips and self.missing not in self.labels:
            raise ValueError(
                f"`missing: {self.missing}` is no {self.part} that occurs from {self.first} to {self.last}. Choose one of "
                f"{', '.join(self.labels[:12])}"
            )
        return self


def _days_of(text: str, column: Date) -> float | None:
    """Days from the first day on that a declared text says; None where it lies outside the declared range."""
    said = compiled(column.format).read(text)
    if said is None:
        return None
    encoder = DateEncoder(compiled(column.format), column.zone, *column.days, None, math.nan)
    days = float(encoder.encode(Cells([text], np.zeros(1, dtype=np.int64)))[0])
    first, last = column.days
    moment = datetime.date(1970, 1, 1) + datetime.timedelta(microseconds=said[0])
    return days if first <= moment <= last else None


class Magnitude(_Levels):
    """The magnitude of a number, between powers of two on one public grid: levels that need no bounds."""

    kind: Literal["magnitude"] = "magnitude"
    missing: Literal["missing"] = "missing"

    @property
    def role(self) -> str:
        return "category"

    @property
    def labels(self) -> tuple[str, ...]:
        return LABELS

    def encoder(self) -> Encoder:
        return MagnitudeEncoder()


Column = Number | Category | Binary | Count | Date | Magnitude


def _check_levels(levels: tuple[str, ...], missing: str | None) -> None:
    seen: dict[str, str] = {}
    for level in levels:
        label = label_of(level)
        if label is None:
            raise ValueError(f"{level!r} cannot be a level, because a cell that says so is read as missing. Remove it")
        if label in seen:
            raise ValueError(
                f"the levels {seen[label]!r} and {level!r} are read as the same value (numbers are compared "
                "as numbers, true as 1 and false as 0, since a data frame may hold them so). Keep one of "
                "them, or make them different words"
            )
        seen[label] = level
    if missing is not None and label_of(missing) not in seen:
        raise ValueError(
            f"`missing: {missing}` is not among the declared levels, where no record can be. "
            "Choose one of the levels, declare a level for it, or leave it out: then missing cells contribute nothing"
        )


# ── what is wrong, in words ────────────────────────────────────────────────────────────────────────────────


def _sentence(model: type[Declared], problem: Any) -> str:
    place = [part for part in problem["loc"] if isinstance(part, str)]
    kind, given, key = problem["type"], problem["input"], place[-1] if place else ""
    subject = f"Column {place[1]!r}: " if place[0:1] == ["columns"] and place[1:] else ""
    if kind == "value_error":
        sentence = str(problem["ctx"]["error"]).removesuffix(".")
        return f"{subject}{sentence[:1].lower() if subject else sentence[:1]}{sentence[1:]}."
    if kind == "missing":
        thing = "bounds" if key in ("lower", "upper") else "first" if key == "last" else key
        name = "one or both bounds are" if thing == "bounds" else f"`{key}:` is"
        return "{}{} not declared; {}. {}.".format(subject, name, *UNDECLARED[thing])
    if kind == "extra_forbidden":
        known = list(model.model_fields)
        return (
            f"{subject}the key {key!r} is unknown here (known: {', '.join(known)}); a misspelt bound must "
            f"not be overlooked. Remove or correct it{perhaps(key, known)}."
        )
    if kind.startswith("union_tag"):
        found = "nothing" if kind == "union_tag_not_found" else _words_for(given["kind"])
        return f"{subject}expected `kind:` number, category, binary, count or date, got {found}. Say which it is."
    where = "" if subject and key == place[1] else f"`{key}:` "
    expected = _EXPECTED.get(kind, "another kind of value")
    return f"{subject}{where}expected {expected}, got {_words_for(given)}. Correct it in the schema."


def _words_for(value: Any) -> str:
    if value is None or isinstance(value, (list, tuple, Mapping)):
        return kind_of(value)
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def kind_of(value: Any) -> str:
    """Without the value: what is no schema may be a file of records."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, (list, tuple)) else "a text" if isinstance(value, str) else "a number"


def perhaps(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (perhaps {close[0]!r} is meant)" if close else ""
