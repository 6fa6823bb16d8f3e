"""narwhals, met in this one file: pandas and Polars frames, and others of their kind.

A Polars column has a type of its own, so a Polars frame is treated like an Arrow table. The type of a pandas
column is inferred from the records: one word among the numbers makes it `object`, one missing integer makes
it float. There a type is never a reason to refuse, and a column that is not numbers is read cell by cell;
dates, lists and the like are missing cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw

from onedraw.data.encoding import Chunk, Numbers, cells
from onedraw.data.tables import Batch, Part, Table, Wanted
from onedraw.errors import FileMismatch


class Frame(Table):
    """An eager data frame, read in slices."""

    def __init__(self, native: Any) -> None:
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
        self._typed = self._frame.implementation.is_polars()
        self.exact = self._typed

    def unsuitable(self, names: Sequence[str]) -> dict[str, str]:
        if not self._typed:
            return {}
        return {name: str(self._frame[name].dtype).partition("(")[0] for name in names if not self._suitable(name)}

    def _suitable(self, name: str) -> bool:
        from onedraw.data.arrow_tables import suitable

        column = self._frame[name][:0]
        arrow = _arrow_of(column)
        return arrow is None or suitable(arrow.type)

    def parts(self, wanted: Mapping[str, Wanted], rows: int) -> Sequence[Part]:
        def part() -> Iterator[Batch]:
            for start in range(0, self.n, rows):
                yield {
                    name: self._chunk(self._frame[name][start : start + rows], kind) for name, kind in wanted.items()
                }

        return [part]

    def _chunk(self, column: Any, wanted: Wanted) -> Chunk:
        if self._typed:
            from onedraw.data.arrow_tables import chunk_of

            arrow = _arrow_of(column)
            return cells(column.to_list()) if arrow is None else chunk_of(arrow, wanted)
        numbers = Numbers.of(column.to_numpy())
        return cells(column.to_list()) if numbers is None else numbers


def _arrow_of(column: Any) -> Any | None:
    """The Polars column as Arrow has it; None for Python objects and types that Arrow does not know."""
    if column.dtype == nw.Object:
        return None
    try:
        return column.to_arrow()
    except ValueError:  # pyarrow.ArrowInvalid: 128-bit integers
        return None
