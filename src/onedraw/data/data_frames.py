"""Tables in memory: data frames of pandas, Polars and others of their kind (narwhals, met in this one file), and dictionaries of
columns (lists, NumPy arrays, series).

The type of a frame's column may be inferred from its records: one word among the numbers makes it `object`, one missing
integer makes it float, one dictionary a struct. So a type is never a reason to refuse (columns.py), and a list is read cell by cell,
never made into an array first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onedraw.data.columns import Wanted, chunk_in, chunks_in, library_of, plain_array
from onedraw.data.tables import Batch, Part, Table
from onedraw.errors import FileMismatch


class Frame(Table):
    """An eager data frame, read in slices."""

    exact = False

    def __init__(self, native: Any) -> None:
        import narwhals as nw

        self.what = f"the {type(native).__module__.partition('.')[0]} {type(native).__name__}"
        try:
            self._frame = nw.from_native(native, eager_only=True)
            self.names = tuple(self._frame.columns)
        except TypeError:
            raise FileMismatch(
                f"Expected a path, a pyarrow table, a pandas or Polars frame or a mapping of arrays, got "
                f"{self.what}. Collect a lazy frame first; put plain arrays into a dictionary by column name."
            ) from None
        except nw.exceptions.DuplicateError:
            raise FileMismatch(
                f"{self.what} has two columns of the same name, so it is not clear which is meant. Rename one of them."
            ) from None
        self.n = len(self._frame)

    def parts(self, wanted: Mapping[str, Wanted], rows: int) -> Sequence[Part]:
        def part() -> Iterator[Batch]:
            for start in range(0, self.n, rows):
                yield {
                    name: chunk_in(self._frame[name][start : start + rows].to_native(), kind)
                    for name, kind in wanted.items()
                }

        return [part]


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
