"""One column, in whatever container it came, as cells, and from cells to the numbers a model sees by what is declared of it.

This is the one place where a container in memory is opened. A container gives all its cells one type, and which one can depend on a
single record. So the type only ever says how the cells are got out, never what they mean: `Numbers` where the container holds numbers,
`Cells` otherwise, each different value once where the source knows that, and `Times` where a column of dates is wanted and the container
holds dates. Any other type (lists, structs, durations, and dates where numbers or levels are wanted) is a column of missing cells, and never a reason to fail. An `Encoder` reads both shapes by the rule of cells.py, to the same
codes (tests: a frame's inferred type never matters), and what it cannot read (missing, unparseable, undeclared, NaN, ±inf) as the
declared `missing`:

| kind     | encoded as                | a readable cell                                                |
| -------- | ------------------------- | -------------------------------------------------------------- |
| number   | float64 in [lower, upper] | moved to the nearest bound                                     |
| count    | int64 in 0 … cap          | moved to the nearest bound, then rounded (halves to even)      |
| category | int64 code 0 … K−1        | the code of the declared level it is                           |
| binary   | int64 0 or 1              | the code of the declared level it is                           |
| date     | float64 days from the     | moved to the nearest end; a `part` of it is an int64 code      |
|          | first day on              | (dates.py)                                                     |

Where missing cells are skipped every kind is float64: NaN is a missing cell, −∞ a record that counts for nobody.

pandas, Polars and pyarrow are known by name and not imported here: models must run where none of them is installed.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, final

import numpy as np
import numpy.typing as npt

from onedraw.arrays import Array, Mask
from onedraw.data.cells import BINARY_WORDS, label_of, number_in, number_of

Encoded = npt.NDArray[Any]
NUMERIC = "iufb"
"""The kinds of NumPy array whose cells are numbers as they stand."""

_READ_ONE_BY_ONE = "OUSTc"
_LIBRARIES = ("pandas", "polars", "pyarrow")


class Wanted(Enum):
    """What a column will be read as, so that a source holding text can prepare it."""

    NUMBERS = "numbers"
    LABELS = "labels"
    IDENTIFIERS = "identifiers"
    DATES = "dates"


class ReadWithSchema:
    """What `onedraw.data.records.Records` is to packages that run without loading it, and what it needs."""

    schema: Any
    target: str | None
    n: int


@final
@dataclass(frozen=True, slots=True)
class Numbers:
    """Integers, floats or truth values as the source holds them; `absent` marks nulls that are not NaN."""

    values: npt.NDArray[Any]
    absent: Mask | None = None

    def __len__(self) -> int:
        return len(self.values)

    def floats(self) -> Array:
        """A copy as float64, NaN where absent; what only a longer float can hold becomes infinite, which is missing too."""
        with np.errstate(all="ignore"):
            found = np.array(self.values, dtype=np.float64)
        if self.absent is not None:
            found[self.absent] = np.nan
        return found

    def as_cells(self) -> Cells:
        """Each different number once."""
        different, codes = np.unique(self.floats(), return_inverse=True)
        return Cells(different.tolist(), codes)


@final
@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of any kind: row i holds `values[codes[i]]`, and nothing where the code is −1."""

    values: Sequence[Any]
    codes: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.codes)


TICKS = {
    "W": 7 * 86400 * 10**6, "D": 86400 * 10**6, "h": 3600 * 10**6, "m": 60 * 10**6, "s": 10**6, "ms": 1000, "us": 1,
}  # fmt: skip
"""Microseconds in a unit of NumPy's."""

FINE_TICKS = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
"""Units in a microsecond."""

CALENDAR = 20_000 * 366 * 86400 * 10**6
"""More microseconds from 1970 than any year of four digits is away."""


@final
@dataclass(frozen=True, slots=True)
class Times:
    """Dates or times as the source holds them: whole ``ticks`` since 1970, ``microseconds`` says which; read as dates alone.

    ``utc`` where they are instants, known with their offset from UTC; otherwise they are what a clock showed.
    """

    ticks: npt.NDArray[np.int64]
    unit: str
    absent: Mask
    utc: bool = False

    def __len__(self) -> int:
        return len(self.ticks)

    @classmethod
    def of_numpy(cls, array: npt.NDArray[Any], *, utc: bool = False) -> Times:
        """Return the moments of an array of datetime64; NaT is absent."""
        unit, count = np.datetime_data(array.dtype)
        absent = np.isnat(array)
        ticks = np.ascontiguousarray(array).view(np.int64).copy()
        if count != 1 and unit != "generic":  # ten seconds a tick: in ticks of one
            ticks = np.clip(ticks, -CALENDAR, CALENDAR) * count
        return cls(ticks, unit, absent, utc)

    def microseconds(self) -> tuple[npt.NDArray[np.int64], Mask]:
        """Return microseconds since 1970 and which of them can be read; none overflows, whatever a record holds."""
        readable, ticks = ~self.absent, self.ticks
        if self.unit in FINE_TICKS:
            return ticks // FINE_TICKS[self.unit], readable
        if self.unit in ("Y", "M"):
            years = 20_000 * (12 if self.unit == "M" else 1)
            readable &= np.abs(ticks) <= years
            days = np.where(readable, ticks, 0).astype(f"datetime64[{self.unit}]").astype("datetime64[D]")
            return days.astype(np.int64) * TICKS["D"], readable
        if self.unit not in TICKS:
            return np.zeros_like(ticks), np.zeros(len(ticks), dtype=bool)
        readable &= np.abs(ticks) <= CALENDAR // TICKS[self.unit]
        return np.where(readable, ticks, 0) * TICKS[self.unit], readable

    def as_cells(self) -> Cells:
        """Each different moment once, as ISO text."""
        moments, readable = self.microseconds()
        different, codes = np.unique(moments, return_inverse=True)
        texts = np.datetime_as_string(different.astype("datetime64[us]"), timezone="UTC" if self.utc else "naive")
        return Cells(texts.tolist(), np.where(readable, codes, -1))


Chunk = Numbers | Cells | Times


def cells(values: Sequence[Any]) -> Cells:
    """Cells from one Python object per row; equal texts and integers are kept once, other objects are never compared."""
    different: list[Any] = []
    places: dict[str | int, int] = {}
    codes = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        kind, place = type(value), len(different)
        if kind is str or kind is int or kind is bool:  # 1 and True are one cell
            place = places.setdefault(value, place)
        if place == len(different):
            different.append(value)
        codes[row] = place
    return Cells(different, codes)


def missing_cells(rows: int) -> Cells:
    """A column of which nothing can be read."""
    return Cells([], np.full(rows, -1))


def chunk_in(column: Any, wanted: Wanted) -> Chunk:
    """The cells of a column: a list or tuple, an array of one dimension, a pandas or Polars series, an Arrow array."""
    if isinstance(column, list | tuple):
        return cells(column)
    match library_of(column):
        case "pandas":
            return _in_pandas(column, wanted)
        case "polars":
            kind = column.dtype
            if wanted is Wanted.DATES and str(kind).partition("(")[0] in ("Date", "Datetime"):
                return _times_in_polars(column)
            if kind.is_nested() or kind.is_temporal():  # not even converted: Arrow does not know all of them
                return missing_cells(len(column))
            if str(kind) in ("Object", "Int128", "UInt128"):  # nor these: cell by cell
                return cells(column.to_list())
            return chunk_in(column.to_arrow(), wanted)
        case "pyarrow":
            from onedraw.data.arrow_tables import chunk_of

            return chunk_of(column, wanted)
    return _in_array(plain_array(column), wanted)


def container(column: Any) -> Any:
    """A column that can be sliced: as it came, unless it is no list, tuple or series."""
    return column if isinstance(column, list | tuple) or library_of(column) else plain_array(column)


def chunks_in(column: Any, wanted: Wanted, rows: int) -> Iterator[Chunk]:
    """The same, some records at a time."""
    column = container(column)
    sliced = column.iloc if hasattr(column, "iloc") else column
    for start in range(0, len(column), rows):
        yield chunk_in(sliced[start : start + rows], wanted)


def columns_in(table: Any) -> list[Any] | None:
    """The columns of a data frame or an Arrow table, in order; None if it is neither."""
    library, shape = library_of(table), getattr(table, "shape", None)
    if library is None or not isinstance(shape, tuple) or len(shape) != 2:
        return None
    if library == "pandas":
        return [table.iloc[:, place] for place in range(shape[1])]
    return list(table.get_columns() if library == "polars" else table.columns)


def plain_array(data: Any) -> npt.NDArray[Any]:
    """An array of NumPy's own class, or a masked one; other classes (a matrix) slice and flatten by rules of their own."""
    return data if isinstance(data, np.ma.MaskedArray) else np.asarray(data)


def library_of(column: Any) -> str | None:
    """pandas, polars or pyarrow if the object's class derives from one of theirs."""
    for base in type(column).__mro__:
        library = base.__module__.partition(".")[0]
        if library in _LIBRARIES:
            return library
    return None


def _in_array(array: npt.NDArray[Any], wanted: Wanted) -> Chunk:
    """NumPy: numbers as they are, dates where they are wanted, texts and objects cell by cell, anything else missing."""
    masked = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    values = np.ma.getdata(array)
    if values.dtype.kind in NUMERIC:
        return Numbers(values, masked)
    if values.dtype.kind == "M" and wanted is Wanted.DATES:
        moments = Times.of_numpy(values)
        return moments if masked is None else replace(moments, absent=moments.absent | masked)
    found = cells(values.tolist()) if values.dtype.kind in _READ_ONE_BY_ONE else missing_cells(len(values))
    return found if masked is None else Cells(found.values, np.where(masked, -1, found.codes))


def _in_pandas(column: Any, wanted: Wanted) -> Chunk:
    """pandas: a category by its codes, numbers as they are, Arrow's types by Arrow, anything else cell by cell."""
    if getattr(column, "nlevels", 1) > 1:  # an index of tuples
        return missing_cells(len(column))
    if not hasattr(column, "iloc"):  # an index, or a pandas array
        column = sys.modules["pandas"].Series(column)
    kind = column.dtype
    if isinstance(kind, np.dtype):
        return _in_array(column.to_numpy(), wanted)
    if hasattr(kind, "categories"):
        return Cells(column.cat.categories.tolist(), column.cat.codes.to_numpy())
    if hasattr(kind, "pyarrow_dtype"):
        return chunk_in(column.array.__arrow_array__(), wanted)
    if kind.kind == "M" and wanted is Wanted.DATES:  # with a time zone: the same instants in UTC
        return Times.of_numpy(column.dt.tz_convert(None).to_numpy(), utc=True)
    if kind.kind in NUMERIC:
        with np.errstate(all="ignore"):  # what only a longer float holds, in a sparse column
            return Numbers(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return cells(column.tolist()) if kind.kind in _READ_ONE_BY_ONE else missing_cells(len(column))


def _times_in_polars(column: Any) -> Times:
    """Dates and datetimes by the whole numbers that they are stored as; the zone's rules are not asked."""
    kind, days = column.dtype, str(column.dtype) == "Date"
    absent = column.is_null().to_numpy()
    ticks = column.to_physical().fill_null(0).to_numpy().astype(np.int64)
    return Times(ticks, "D" if days else kind.time_unit, absent, utc=not days and kind.time_zone is not None)


# ── from cells to what a model sees ───────────────────────────────────────────────────────────────────────────────


class Encoder(ABC):
    """Encodes chunks of one declared column; `missing` is the code of a missing cell, NaN where such cells are skipped."""

    missing: float | int
    wanted: Wanted  # as what a source that holds text should try to hand it over
    real: bool = False
    """Whether it encodes cells as real numbers; otherwise they become whole ones."""

    @property
    def skips(self) -> bool:
        """Whether missing cells contribute nothing: codes are then float64 for every record, since dtypes must not tell."""
        return self.missing != self.missing

    @property
    def nobody(self) -> float | int:
        """The code of a record that counts for nobody: beyond its person's limit, or without a person."""
        return -np.inf if self.skips else self.missing

    @final
    def encode(self, chunk: Chunk) -> Encoded:
        if isinstance(chunk, Numbers):
            return self._encode_numbers(chunk)
        if isinstance(chunk, Times):
            return self._encode_times(chunk)
        different = self._encode_cells(chunk.values)
        with_missing = np.append(different, different.dtype.type(self.missing))
        encoded: Encoded = with_missing[chunk.codes]  # code −1 is the appended one
        return encoded

    @abstractmethod
    def _encode_numbers(self, chunk: Numbers) -> Encoded: ...

    @abstractmethod
    def _encode_cells(self, values: Sequence[Any]) -> Encoded: ...

    def _encode_times(self, chunk: Times) -> Encoded:
        """Dates are numbers and levels of no column but one of dates."""
        return self._all_missing(len(chunk))

    def _all_missing(self, rows: int) -> Encoded:
        return np.full(rows, self.missing, dtype=np.float64 if self.real or self.missing != self.missing else np.int64)


@final
@dataclass(frozen=True)
class NumberEncoder(Encoder):
    wanted = Wanted.NUMBERS
    real = True

    lower: float
    upper: float
    missing: float

    def _encode_numbers(self, chunk: Numbers) -> Encoded:
        encoded = chunk.floats()
        readable = np.isfinite(encoded)
        np.clip(encoded, self.lower, self.upper, out=encoded)
        if not readable.all():
            encoded[~readable] = self.missing
        return encoded

    def _encode_cells(self, values: Sequence[Any]) -> Encoded:
        numbers = (value if type(value) is float else number_of(value) for value in values)
        return self._encode_numbers(Numbers(np.fromiter(numbers, np.float64, len(values))))


@final
class CountEncoder(Encoder):
    wanted = Wanted.NUMBERS

    def __init__(self, cap: int, missing: int) -> None:
        self.missing, self._clamp = missing, NumberEncoder(0, cap, missing)

    def _encode_numbers(self, chunk: Numbers) -> Encoded:
        if self.skips:
            return np.rint(self._clamp._encode_numbers(chunk))
        if chunk.values.dtype.kind in "iub" and chunk.absent is None:  # whole already: no detour through floats
            kind = chunk.values.dtype
            largest = 1 if kind.kind == "b" else int(np.iinfo(kind).max)
            cap = kind.type(min(int(self._clamp.upper), largest))
            return np.asarray(np.clip(chunk.values, kind.type(0), cap), dtype=np.int64)
        return np.rint(self._clamp._encode_numbers(chunk)).astype(np.int64)

    def _encode_cells(self, values: Sequence[Any]) -> Encoded:
        counts = np.rint(self._clamp._encode_cells(values))
        return counts if self.skips else counts.astype(np.int64)


@final
class LevelEncoder(Encoder):
    """Codes levels by their labels; `plain_binary` also knows the words no and yes, in any case."""

    wanted = Wanted.LABELS

    def __init__(self, labels: Sequence[str | float], missing: str | float, *, plain_binary: bool = False) -> None:
        if plain_binary:
            self._codes: dict[str | None, int] = {"0": 0, "1": 1, BINARY_WORDS[0]: 0, BINARY_WORDS[1]: 1}
        else:
            self._codes = {label_of(label): code for code, label in enumerate(labels)}
        self._any_case = plain_binary
        self.missing = math.nan if missing != missing else self._codes[self._label(missing)]
        self._kind: type[np.float64] | type[np.int64] = np.float64 if self.skips else np.int64
        values = ((number_in(label), code) for label, code in self._codes.items() if label is not None)
        numeric = {value: code for value, code in values if value is not None}  # a label that is a number is finite
        self._in_order = [numeric.get(float(code)) for code in range(len(numeric))] == list(range(len(numeric)))
        self._numbers = np.array(sorted(numeric), dtype=np.float64)
        self._number_codes = np.array([numeric[value] for value in sorted(numeric)], dtype=np.int64)

    def _label(self, cell: Any) -> str | None:
        label = label_of(cell)
        return label.lower() if self._any_case and label is not None else label

    def _encode_numbers(self, chunk: Numbers) -> Encoded:
        values = chunk.values
        whole = self._in_order and chunk.absent is None and values.dtype.kind in "iub" and len(values)
        if whole and int(values.min()) >= 0 and int(values.max()) < len(self._numbers):
            return values.astype(self._kind)  # every value is its own code
        values = chunk.floats()
        if not len(self._numbers):
            return np.full(len(values), self.missing, dtype=self._kind)
        place = np.minimum(np.searchsorted(self._numbers, values), len(self._numbers) - 1)
        return np.where(self._numbers[place] == values, self._number_codes[place], self.missing)  # NaN equals nothing

    def _encode_cells(self, values: Sequence[Any]) -> Encoded:
        codes = (self._codes.get(self._label(value), self.missing) for value in values)
        return np.fromiter(codes, self._kind, len(values))
