"""One append-only table in a database: what a ledger in SQLite (`storage`) and one in PostgreSQL have in common.

SQLite is met through Python's own module in `storage`, PostgreSQL through SQLAlchemy in `postgresql`; each gives a `Connection`.

What the rest of the package relies on:

* **One writer at a time.** `Storage.writing` holds an exclusive lock from before the events are read until the
  new event is on disk, so that a decision is made on the history it will be appended to.
* **On disk before it counts.** When ``writing`` returns, the event survives ``kill -9`` and a loss of power.
  SQLite runs with a rollback journal and ``synchronous=EXTRA`` (in this mode FULL does not yet sync the
  directory the journal is deleted from). Not WAL: there the newest events live in a second file, and a plain
  copy of ``ledger.db`` would silently be a history with spends missing. Any visitor may have switched a file to
  WAL, so every connection switches it back, and where that fails the ledger is refused. PostgreSQL runs with
  ``synchronous_commit`` on.
* **Marked.** When ``writing`` returns, the mark beside a SQLite file knows of the event too (mark.py). PostgreSQL
  needs none: one server owns the files, and a client cannot reach them under a second path.
* **Append only.** Triggers refuse UPDATE, DELETE, TRUNCATE and any INSERT that does not follow the last
  event. Who removes the triggers first is caught by the hash chain instead.
* **No connection is kept**: none can be shared by accident after a fork, none pins a lock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from onedraw.errors import CannotWrite, LedgerError, OnedrawError

from .events import INSERT, LAST, MARKED_EVENTS, NAMES, SELECT, START, Event, Position, Row

if TYPE_CHECKING:
    from .mark import HeldMark

WAIT_SECONDS = 60
ALL = 2**62
BEFORE_ALL = -(2**62)


class Connection(Protocol):
    """An open database, in which every statement of a ledger is carried out."""

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Carry out one statement and return its rows.

        Parameters
        ----------
        statement : str
            SQL. ``:name`` stands for a value if there are ``values``.
        values : mapping, optional
            The values by name.
        """

    def commit(self) -> None:
        """End the transaction and keep what was written."""

    def rollback(self) -> None:
        """End the transaction and undo what was written."""


@dataclass
class Writer:
    """The writer's turn: read what is there, append what follows. ``appended`` is the last event of this turn.

    If ``is_committing``, a failure leaves open whether that event stands.
    """

    connection: Connection
    appended: Position | None = None
    is_committing: bool = False

    def rows(self, start: int, count: int = ALL) -> list[Row]:
        return self.connection.execute(SELECT, {"start": start, "count": count})

    def append(self, event: Event) -> None:
        self.connection.execute(INSERT, dict(zip(NAMES, astuple(event), strict=True)))
        self.appended = Position(event.sequence, event.hash)

    def last(self) -> Position:
        """Return where the chain ends."""
        rows = self.connection.execute(LAST)
        return Position(*rows[0]) if rows else START

    def says_marked(self) -> bool:
        """Return whether the chain says that a mark is kept; its first event or a later one may."""
        count = self.connection.execute(MARKED_EVENTS)[0][0]
        return bool(count) or any(Event(*row).begins_mark for row in self.rows(1, 1))


class Storage(ABC):
    """A place that can hold a ledger. Picklable: a worker process connects anew."""

    @property
    @abstractmethod
    def name(self) -> str:
        """How messages call this place; never with a password."""

    @abstractmethod
    def check(self, *, create: bool) -> bool:
        """Whether a ledger stands here; `LedgerError` if something else does, or nothing and not ``create``."""

    @abstractmethod
    def take_turn(self, connection: Connection) -> None:
        """Begin a transaction that no other writer can overlap."""

    @abstractmethod
    def connected(self, *, writing: bool) -> AbstractContextManager[Connection]:
        """Give a connection to a block, and close it. The database's errors become errors of onedraw.

        Parameters
        ----------
        writing : bool
            Whether the block is to write, which decides what an error says.
        """

    _schema: tuple[str, ...]

    def rows(self, start: int, count: int = ALL) -> list[Row]:
        """Return the stored rows from number ``start`` on, of a ledger that agrees with its mark."""
        with self.reading() as writer:
            return writer.rows(start, count)

    def stored_rows(self) -> list[Row]:
        """Return all stored rows as they are, compared with nothing."""
        with self.connected(writing=False) as connection:
            return Writer(connection).rows(BEFORE_ALL)

    @contextmanager
    def reading(self) -> Iterator[Writer]:
        """Give what is there to a block that appends nothing."""
        with self.connected(writing=False) as connection:
            yield Writer(connection)

    @contextmanager
    def writing(
        self, prepare: Callable[[Writer], object] | None = None, *, must_be_marked: bool = True
    ) -> Iterator[Writer]:
        """Alone with the ledger until the block ends; then what was appended is on disk, or nothing is.

        ``prepare`` is what can be done before others are kept waiting: reading, above all. ``must_be_marked``: an event
        whose mark cannot be written is an error. It is not one for an event that spends nothing: a mark may lie behind.
        """
        writer: Writer | None = None
        try:
            with self.connected(writing=True) as connection:
                writer = Writer(connection)
                if prepare is not None:
                    prepare(writer)
                self.take_turn(connection)
                with self.marking(writer) as mark:
                    yield writer
                    writer.is_committing = True
                    connection.commit()
                    writer.is_committing = False
                    if mark is not None and writer.appended is not None:
                        with nullcontext() if must_be_marked else suppress(CannotWrite):
                            mark.advance(writer.appended)
        except OnedrawError as error:
            if writer is None or not writer.is_committing or writer.appended is None or self._lacks(writer.appended):
                raise
            raise self._doubtful(writer.appended, error.__cause__) from error

    def _lacks(self, position: Position) -> bool:
        """Return whether the ledger can be read and does not hold this event. Only when its connection is closed."""
        try:
            found = self.rows(position.sequence, 1)
        except OnedrawError:
            return False
        return not any((row[0], row[-1]) == (position.sequence, position.hash) for row in found)

    def create(self, first: Event) -> None:
        """Lay out the table with its first event, all or nothing, unless another process was quicker."""
        with self.connected(writing=True) as connection:
            self.take_turn(connection)
            if self._holds_ledger(connection):
                return connection.rollback()
            with self.marking(Writer(connection), new=True) as mark:
                for statement in self._schema:
                    connection.execute(statement)
                Writer(connection).append(first)
                connection.commit()
                if mark is not None:
                    mark.advance(Position(first.sequence, first.hash))

    @contextmanager
    def marking(self, writer: Writer, *, new: bool = False) -> Iterator[HeldMark | None]:
        """Compare the ledger with its mark, under the writer's lock; the block moves the mark on, if there is one."""
        yield None

    @property
    def keeps_mark(self) -> bool:
        """Whether a mark is kept beside this ledger."""
        return False

    def lacks_mark(self) -> bool:
        """Return whether the mark of this ledger is still to be begun."""
        return False

    def agreement(self) -> str:
        """Say what the ledger was compared with, for `Ledger.verify`; empty where there is no mark."""
        return ""

    @abstractmethod
    def _holds_ledger(self, connection: Connection) -> bool: ...

    def _nothing_here(self) -> LedgerError:
        return LedgerError(
            f"There is no ledger at {self.name}, and none is made by accident: a fresh one knows of no spends. Check the name; "
            "to begin a new ledger pass create=True, or run `onedraw ledger init`."
        )

    def _not_a_ledger(self, why: str) -> LedgerError:
        return LedgerError(
            f"{self.name} is not a onedraw ledger: {why}. Nothing was changed in it. Give the ledger's own file or URL, or "
            "another name for a new ledger."
        )

    def _cannot_write(self, why: object) -> CannotWrite:
        return CannotWrite(
            f"The ledger at {self.name} cannot be written ({why}), and a spend must be on disk before the data are touched: "
            "nothing was drawn. Make the place writable, free some space, or keep the ledger elsewhere."
        )

    def _doubtful(self, position: Position, why: object) -> CannotWrite:
        return CannotWrite(
            f"The ledger at {self.name} failed while event {position.sequence} was written ({getattr(why, 'orig', why)}). The "
            "event stands in the ledger, or may stand there, and then it counts. Nothing was drawn. Repair the disk or the "
            "server, then look with `onedraw ledger show`."
        )

    def _busy(self) -> LedgerError:
        return LedgerError(
            f"The ledger at {self.name} has been locked by another process for more than {WAIT_SECONDS} seconds. Nothing was "
            "reserved. See which process holds it, end it if it hangs, and try again."
        )

    def _failed(self, why: object) -> LedgerError:
        return LedgerError(
            f"The ledger at {self.name} could not be used: {why}. Nothing was released. A reservation that `onedraw ledger "
            "show` finds there is spent."
        )
