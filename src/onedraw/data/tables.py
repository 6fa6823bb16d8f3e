"""What every source of records looks like from inside the room.

A `Table` knows its column names and its number of records before any cell is looked at, and hands over the
wanted columns as chunks, in order, as often as asked. Everything that can be wrong with a *file* is found
when the table is opened, by `check_whole` or, of a page of a long file, by the pass that decodes it; nothing that is wrong with a *record* is ever an error.
"""

from __future__ import annotations

import os
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, final

from onedraw.data.columns import Chunk, Wanted
from onedraw.plain_text import shown_place

Batch = dict[str, Chunk]
Part = Callable[[], Iterator[Batch]]


class Table(ABC):
    """A source of records: names and n at once, chunks when asked."""

    names: tuple[str, ...]  # as the source has them, repeats kept
    n: int  # public
    what: str  # the source in words, for messages
    exact = True  # False where column types are inferred from the records (see persons.py)
    ahead = False  # True where parts may be read by other threads
    even = True  # False where the size of a batch depends on the records' lengths

    def unsuitable(self, names: Sequence[str]) -> dict[str, str]:
        """Columns whose declared type can hold no number, level or identifier, with that type."""
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

    @abstractmethod
    def parts(self, wanted: Mapping[str, Wanted], rows: int) -> Sequence[Part]:
        """Consecutive parts; each, when called, yields batches of about `rows` records at most."""


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


class _Failed:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def in_order(parts: Sequence[Callable[[], Iterator[Item]]], *, ahead: bool) -> Iterator[Item]:
    """The items of all parts in their order; `ahead` lets a few threads work on the next ones meanwhile."""
    if not ahead:
        for part in parts:
            yield from part()
        return
    stop = threading.Event()
    running: deque[tuple[threading.Thread, queue.Queue[Any]]] = deque()
    waiting = iter(parts)
    try:
        running.extend(_start(part, stop) for part in islice(waiting, workers()))
        while running:
            _, items = running[0]
            while (item := items.get()) is not _END:
                if isinstance(item, _Failed):
                    raise item.error
                yield item
            running.popleft()
            running.extend(_start(part, stop) for part in islice(waiting, 1))
    finally:
        stop.set()
        for thread, items in running:
            while not items.empty():  # a thread waits for room at most once more, then sees `stop`
                items.get_nowait()
            thread.join()


def _start(part: Callable[[], Iterator[Any]], stop: threading.Event) -> tuple[threading.Thread, queue.Queue[Any]]:
    items: queue.Queue[Any] = queue.Queue(maxsize=ITEMS_AHEAD)

    def work() -> None:
        last: Any = _END
        try:
            for item in part():
                if stop.is_set():
                    return
                items.put(item)
        except BaseException as error:  # handed to the reader, who raises it
            last = _Failed(error)
        if not stop.is_set():
            items.put(last)

    thread = threading.Thread(target=work, name="onedraw-read", daemon=True)
    thread.start()
    return thread, items
