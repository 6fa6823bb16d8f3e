"""A dictionary of columns: lists, NumPy arrays, series.

The type of an array made from a list depends on every element, so it is never a reason to refuse: numbers are
taken as numbers, texts and objects cell by cell, and arrays of dates are missing cells. A
list is read cell by cell and never made into an array first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onedraw.data.encoding import Cells, Chunk, Numbers, cells
from onedraw.data.tables import Batch, Part, Table, Wanted
from onedraw.errors import FileMismatch


class Columns(Table):
    """Columns of equal length, by name."""

    exact = False
    what = "the mapping of columns"

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = {name: _held(name, column) for name, column in columns.items()}
        self.names = tuple(self._columns)
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) > 1:
            raise FileMismatch(
                f"Expected columns of one length, got lengths {sorted(lengths)}: a record is one entry of "
                "each. Give every column the same number of entries."
            )
        self.n = lengths.pop() if lengths else 0

    def parts(self, wanted: Mapping[str, Wanted], rows: int) -> Sequence[Part]:
        def part() -> Iterator[Batch]:
            for start in range(0, self.n, rows):
                yield {name: _chunk(self._columns[name][start : start + rows]) for name in wanted}

        return [part]


def _held(name: str, column: Any) -> Any:
    held: Any = column if isinstance(column, (list, tuple, np.ma.MaskedArray)) else np.asarray(column)
    if isinstance(held, np.ndarray) and held.ndim != 1:
        raise FileMismatch(
            f"The column {name!r} has {held.ndim} dimensions, expected one entry for each record. "
            "Give every feature a column and a name of its own."
        )
    return held


def _chunk(column: Any) -> Chunk:
    if not isinstance(column, np.ndarray):
        return cells(column)
    absent = np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else None
    values = np.ma.getdata(column)
    numbers = Numbers.of(values, absent)
    if numbers is not None:
        return numbers
    if values.dtype.kind not in "USOT":
        return Cells([], np.full(len(values), -1))
    found = cells(values.tolist())
    return found if absent is None else Cells(found.values, np.where(absent, -1, found.codes))
