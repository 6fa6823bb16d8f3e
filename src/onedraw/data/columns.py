"""One column, in whatever container it came, as cells: the one place where a container in memory is opened.

A container gives all its cells one type, and which one can depend on a single record. So the type only ever says how the
cells are got out, never what they mean: `Numbers` where the container holds numbers, `Cells` otherwise, and an encoder
(encoding.py) reads both by the rule of cells.py. A type that holds neither numbers nor text (dates, lists, structs) is a
column of missing cells, and never a reason to fail.

pandas, Polars and pyarrow are known by name and not imported here: models must run where none of them is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, final

import numpy as np
import numpy.typing as npt

NUMERIC = "iufb"
"""The kinds of NumPy array whose cells are numbers as they stand."""

_READ_ONE_BY_ONE = "OUSTc"
_LIBRARIES = ("pandas", "polars", "pyarrow")


class Wanted(Enum):
    """What a column will be read as, so that a source holding text can prepare it."""

    NUMBERS = "numbers"
    LABELS = "labels"
    IDENTIFIERS = "identifiers"


class ReadWithSchema:
    """What `onedraw.data.records.Records` is to rooms that run without loading it, and what it needs."""

    schema: Any
    target: str | None
    n: int


@final
@dataclass(frozen=True, slots=True)
class Numbers:
    """Integers, floats or truth values as the source holds them; `absent` marks nulls that are not NaN."""

    values: npt.NDArray[Any]
    absent: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def floats(self) -> npt.NDArray[np.float64]:
        """A copy as float64; what only a longer float can hold becomes infinite, which is missing, without a word."""
        with np.errstate(all="ignore"):
            return np.array(self.values, dtype=np.float64)


@final
@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of any kind: row i holds `values[codes[i]]`, and nothing where the code is −1."""

    values: Sequence[Any]
    codes: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.codes)


Chunk = Numbers | Cells


def cells(values: Sequence[Any]) -> Cells:
    """Cells from one Python object per row; equal texts and integers are kept once, other objects are never compared."""
    different: list[Any] = []
    places: dict[str | int, int] = {}
    codes = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        kind = type(value)
        if kind is str or kind is int or kind is bool:  # 1 and True are one cell
            place = places.setdefault(value, len(different))
            if place == len(different):
                different.append(value)
        else:
            place = len(different)
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
            return _in_polars(column, wanted)
        case "pyarrow":
            from onedraw.data.arrow_tables import chunk_of

            return chunk_of(column, wanted)
    return _in_array(plain_array(column))


def chunks_in(column: Any, wanted: Wanted, rows: int) -> Iterator[Chunk]:
    """The same, some records at a time."""
    if not isinstance(column, list | tuple) and library_of(column) is None:
        column = plain_array(column)
    for start in range(0, len(column), rows):
        yield chunk_in(_slice(column, start, start + rows), wanted)


def columns_in(table: Any) -> list[Any] | None:
    """The columns of a data frame or an Arrow table, in order; None if it is neither."""
    if not is_frame(table):
        return None
    if library_of(table) == "pandas":
        return [table.iloc[:, place] for place in range(table.shape[1])]
    return list(table.get_columns() if library_of(table) == "polars" else table.columns)


def is_frame(data: Any) -> bool:
    """Whether this is a table of named columns: a pandas or Polars frame, an Arrow table or batch."""
    shape = getattr(data, "shape", None)
    return library_of(data) is not None and isinstance(shape, tuple) and len(shape) == 2


def plain_array(data: Any) -> npt.NDArray[Any]:
    """An array of NumPy's own class, or a masked one; other classes (a matrix) slice and flatten by rules of their own."""
    return data if isinstance(data, np.ma.MaskedArray) else np.asarray(data)


def library_of(column: Any) -> str | None:
    """pandas, polars or pyarrow if the object's class derives from one of theirs."""
    for base in type(column).__mro__:
        room = base.__module__.partition(".")[0]
        if room in _LIBRARIES:
            return room
    return None


def _slice(column: Any, start: int, stop: int) -> Any:
    if hasattr(column, "iloc"):
        return column.iloc[start:stop]
    return column[start:stop]


def _in_array(array: npt.NDArray[Any]) -> Chunk:
    """NumPy: numbers as they are, texts and objects cell by cell, anything else (dates, structures) missing."""
    masked = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    values = np.ma.getdata(array)
    if values.dtype.kind in NUMERIC:
        return Numbers(values, masked)
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
        return _in_array(column.to_numpy())
    if hasattr(kind, "categories"):
        return Cells(column.cat.categories.tolist(), column.cat.codes.to_numpy())
    if hasattr(kind, "pyarrow_dtype"):
        return chunk_in(column.array.__arrow_array__(), wanted)
    if kind.kind in NUMERIC:
        return Numbers(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return cells(column.tolist()) if kind.kind == "O" else missing_cells(len(column))


def _in_polars(column: Any, wanted: Wanted) -> Chunk:
    """Polars: by way of Arrow; Python objects and types that Arrow does not know (128-bit integers) cell by cell."""
    kind = column.dtype
    if kind.is_nested() or kind.is_temporal():  # not even converted: Arrow does not know all of them
        return missing_cells(len(column))
    if str(kind) in ("Object", "Int128", "UInt128"):
        return cells(column.to_list())
    return chunk_in(column.to_arrow(), wanted)
