"""What every source of records looks like from inside the package.

A `Table` knows its column names and its number of records before any cell is looked at, and hands over the
wanted columns as chunks, in order, as often as asked. Everything that can be wrong with a *file* is found
when the table is opened, by `check_whole` or, of a page of a long file, by the pass that decodes it; nothing that is wrong with a *record* is ever an error.

Tables in memory are here too: data frames of pandas, Polars and others of their kind (narwhals, met in this one file), and
dictionaries of columns (lists, NumPy arrays, series). The type of a frame's column may be inferred from its records: one word among the numbers makes it `object`, one missing
integer makes it float, one dictionary a struct. So a type is never a reason to refuse (columns.py), and a list is read cell by cell,
never made into an array first.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Generic, TypeVar, final

import numpy as np

from onedraw.data.columns import Chunk, Wanted, chunk_in, chunks_in, container
from onedraw.errors import FileMismatch
from onedraw.plain_text import shown_place

Batch = dict[str, Chunk]
Part = Callable[[], Iterator[Batch]]


class Table:
    """A source of records: names and n at once, chunks when asked."""

    names: tuple[str, ...]  # as the source has them, repeats kept
    n: int  # public
    what: str  # the source in words, for messages
    exact = True  # False where column types are inferred from the records (see persons.py)
    ahead = False  # True where parts may be read by other threads
    even = True  # False where the size of a batch depends on the records' lengths
    count_note = ""  # a sentence for whoever finds another n than expected

    def unsuitable(self, wanted: Mapping[str, Wanted]) -> dict[str, str]:
        """Columns whose declared type cannot hold what they are to be read as, with that type."""
        return {}

    def kinds(self) -> dict[str, str]:
        """Columns whose stored type is that of one declared kind, whatever the records are, with that kind."""
        return {}

    def check_whole(self, names: Sequence[str]) -> None:
        """Before the charge: refuse what is seen to be damaged. Most sources are whole once they are open."""
        return None

    def version(self) -> Any:
        """Changes when the source does, as far as that is seen without reading it."""
        return None

    def engaged(self, records: Any) -> Any:
        """The records with the engine this table brings along, if it brings one."""
        return records

    def parts(self, wanted: Mapping[str, Wanted], rows: int) -> Sequence[Part]:
        """Consecutive parts; each, when called, yields batches of about `rows` records at most. One, unless a source has more."""
        return [partial(self.batches, dict(wanted), rows)]

    def batches(self, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Batch]:
        """The wanted columns of a source that is one part."""
        raise NotImplementedError(f"{self.what} is read in parts of its own")


@final
@dataclass(frozen=True, repr=False)
class DatabaseTable:
    """A table in a database, by its names: goes wherever a file or a frame may be given.

    `place` is a postgresql:// URL or a SQLite file; `name` is the table's, or schema.table, taken as written. Nothing is
    opened yet. It prints without the URL's password.
    """

    place: str
    name: str

    def __repr__(self) -> str:
        return f"DatabaseTable({shown_place(self.place)!r}, {self.name!r})"


# ── tables in memory ──


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

    def batches(self, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Batch]:
        for start in range(0, self.n, rows):
            sliced = {name: self._frame[name][start : start + rows].to_native() for name in wanted}
            yield {name: chunk_in(column, wanted[name]) for name, column in sliced.items()}


class Columns(Table):
    """Columns of equal length, by name."""

    exact = False
    what = "the mapping of columns"

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = {name: container(column) for name, column in columns.items()}
        for name, held in self._columns.items():
            if isinstance(held, np.ndarray) and held.ndim != 1:
                raise FileMismatch(
                    f"The column {name!r} has {held.ndim} dimensions, expected one entry for each record. "
                    "Give every feature a column and a name of its own."
                )
        self.names = tuple(self._columns)
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) > 1:
            raise FileMismatch(
                f"Expected columns of one length, got lengths {sorted(lengths)}: a record is one entry of "
                "each. Give every column the same number of entries."
            )
        self.n = lengths.pop() if lengths else 0

    def batches(self, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Batch]:
        columns = [chunks_in(self._columns[name], kind, rows) for name, kind in wanted.items()]
        yield from (dict(zip(wanted, chunks, strict=True)) for chunks in zip(*columns, strict=True))


# ── reading files ──


def file_version(path: Path) -> tuple[int, ...]:
    """Which file it is, how long, and when it was written."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


Item = TypeVar("Item")
_END = object()
ITEMS_AHEAD = 8  # for each thread; a batch is at most two megabytes


def workers() -> int:
    """How many threads read ahead: one beside the reader on a small machine, up to four on a large one."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(4, processors // 2))


def in_order(parts: Sequence[Callable[[], Iterator[Item]]], *, ahead: bool) -> Iterator[Item]:
    """The items of all parts in their order; `ahead` lets a few threads work on the next ones meanwhile."""
    if not ahead:
        yield from chain.from_iterable(part() for part in parts)
        return
    waiting, running = iter(parts), deque[_Ahead[Item]]()
    try:
        running.extend(map(_Ahead, islice(waiting, workers())))
        while running:
            yield from running[0]
            running.popleft().thread.shutdown()
            running.extend(map(_Ahead, islice(waiting, 1)))
    finally:
        for part in running:
            part.thread.shutdown(cancel_futures=True)


class _Ahead(Generic[Item]):
    """A part with a thread of its own, which works on the next few items; what goes wrong there is raised to the reader."""

    def __init__(self, part: Callable[[], Iterator[Item]]) -> None:
        self.thread, self._items = ThreadPoolExecutor(1, "onedraw-read"), part()
        self._coming = deque(self._next() for _ in range(ITEMS_AHEAD))

    def _next(self) -> Future[Any]:
        return self.thread.submit(next, self._items, _END)

    def __iter__(self) -> Iterator[Item]:
        while (item := self._coming.popleft().result()) is not _END:
            self._coming.append(self._next())
            yield item
