"""A dictionary of columns: lists, NumPy arrays, series. A list is read cell by cell, never made into an array first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onedraw.data.columns import Wanted, chunks_in, library_of, plain_array
from onedraw.data.tables import Batch, Part, Table
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
            columns = [chunks_in(self._columns[name], kind, rows) for name, kind in wanted.items()]
            yield from (dict(zip(wanted, chunks, strict=True)) for chunks in zip(*columns, strict=True))

        return [part]


def _held(name: str, column: Any) -> Any:
    held: Any = column if isinstance(column, list | tuple) or library_of(column) else plain_array(column)
    if isinstance(held, np.ndarray) and held.ndim != 1:
        raise FileMismatch(
            f"The column {name!r} has {held.ndim} dimensions, expected one entry for each record. "
            "Give every feature a column and a name of its own."
        )
    return held
