"""narwhals, met in this one file: pandas and Polars frames, and others of their kind.

The type of a frame's column may be inferred from its records: one word among the numbers makes it `object`, one missing
integer makes it float, one dictionary a struct. So a type is never a reason to refuse (columns.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw

from onedraw.data.columns import Wanted, chunk_in
from onedraw.data.tables import Batch, Part, Table
from onedraw.errors import FileMismatch


class Frame(Table):
    """An eager data frame, read in slices."""

    exact = False

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

    def parts(self, wanted: Mapping[str, Wanted], rows: int) -> Sequence[Part]:
        def part() -> Iterator[Batch]:
            for start in range(0, self.n, rows):
                yield {
                    name: chunk_in(self._frame[name][start : start + rows].to_native(), kind)
                    for name, kind in wanted.items()
                }

        return [part]
