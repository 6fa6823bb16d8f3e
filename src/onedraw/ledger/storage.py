"""Where a ledger is kept: one append-only table in SQLite or PostgreSQL. SQLAlchemy is met only here.

What the rest of the room relies on:

* **One writer at a time.** `Storage.writing` holds an exclusive lock from before the events are read until the
  new event is on disk, so that a decision is made on the history it will be appended to.
* **On disk before it counts.** When ``writing`` returns, the event survives ``kill -9`` and a loss of power.
  SQLite runs with a rollback journal and ``synchronous=EXTRA`` (in this mode FULL does not yet sync the
  directory the journal is deleted from). Not WAL: there the newest events live in a second file, and a plain
  copy of ``ledger.db`` would silently be a history with spends missing. Any visitor may have switched a file to
  WAL, so every connection switches it back, and where that fails the ledger is refused. PostgreSQL runs with
  ``synchronous_commit`` on.
* **Append only.** Triggers refuse UPDATE, DELETE, TRUNCATE and any INSERT that does not follow the last
  event. Who removes the triggers first is caught by the hash chain instead.
* **No connection is kept** (``NullPool``): none can be shared by accident after a fork, none pins a lock.
"""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from onedraw.errors import CannotWrite, LedgerError, OnedrawError, check_extra
from onedraw.plain_text import shown_place, without_passwords

from .events import INSERT, NAMES, POSTGRESQL, SELECT, SQLITE, Event, Row

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError

WAIT_SECONDS = 60
ALL = 2**62
BEFORE_ALL = -(2**62)


@dataclass(frozen=True)
class Writer:
    """The writer's turn: read what is there, append what follows."""

    connection: Connection

    def rows(self, start: int, count: int = ALL) -> list[Row]:
        from sqlalchemy import text

        return [tuple(row) for row in self.connection.execute(text(SELECT), {"start": start, "count": count})]

    def append(self, event: Event) -> None:
        from sqlalchemy import text

        self.connection.execute(text(INSERT), dict(zip(NAMES, astuple(event), strict=True)))


class Storage(ABC):
    """A place that can hold a ledger. Picklable: a worker process connects anew."""

    @property
    @abstractmethod
    def name(self) -> str:
        """How messages call this place; never with a password."""

    @cached_property
    @abstractmethod
    def _engine(self) -> Engine:
        """What makes connections and keeps none."""

    @abstractmethod
    def check(self, *, create: bool) -> bool:
        """Whether a ledger stands here; `LedgerError` if something else does, or nothing and not ``create``."""

    @abstractmethod
    def _take_turn(self, connection: Connection) -> None:
        """Begin a transaction that no other writer can overlap."""

    @abstractmethod
    def _explain(self, error: DBAPIError, *, writing: bool) -> OnedrawError:
        """The database's complaint as one of ours."""

    _schema: tuple[str, ...]

    def rows(self, start: int, count: int = ALL) -> list[Row]:
        """Stored rows from number ``start`` on, as one consistent picture."""
        with self._connected(writing=False) as connection:
            return Writer(connection).rows(start, count)

    @contextmanager
    def writing(self, prepare: Callable[[Writer], object] | None = None) -> Iterator[Writer]:
        """Alone with the ledger until the block ends; then what was appended is on disk, or nothing is.

        ``prepare`` is what can be done before others are kept waiting: reading, above all.
        """
        with self._connected(writing=True) as connection:
            writer = Writer(connection)
            if prepare is not None:
                prepare(writer)
            self._take_turn(connection)
            yield writer
            connection.commit()

    def create(self, first: Event) -> None:
        """Lay out the table with its first event, all or nothing, unless another process was quicker."""
        with self._connected(writing=True) as connection:
            self._take_turn(connection)
            if not self._holds_ledger(connection):
                for statement in self._schema:
                    connection.exec_driver_sql(statement)
                Writer(connection).append(first)
            connection.commit()

    @abstractmethod
    def _holds_ledger(self, connection: Connection) -> bool: ...

    @contextmanager
    def _connected(self, *, writing: bool) -> Iterator[Connection]:
        from sqlalchemy.exc import DBAPIError

        try:
            with self._engine.connect() as connection:
                yield connection
        except DBAPIError as error:
            raise self._explain(error, writing=writing) from error

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_engine"}

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


@final
@dataclass(frozen=True)
class SQLiteStorage(Storage):
    """A ledger in one file. ``read_only`` for looking at a copy."""

    path: str
    read_only: bool = False
    _schema = SQLITE

    @property
    def name(self) -> str:
        return self.path

    @cached_property
    def _engine(self) -> Engine:
        from sqlalchemy import create_engine
        from sqlalchemy.pool import NullPool

        return create_engine("sqlite://", creator=self._connect, poolclass=NullPool)

    def _connect(self, mode: str = "rw") -> sqlite3.Connection:
        # mode=rw: SQLite must never make a missing file anew, that would be an empty history.
        mode = "ro" if self.read_only else mode
        address = f"{Path(self.path).as_uri()}?mode={mode}"
        connection = sqlite3.connect(address, uri=True, timeout=WAIT_SECONDS, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: make a sync reach the platter
            if _in_wal(connection):  # back to a rollback journal, which moves what stands in ``-wal`` into the file
                with suppress(sqlite3.OperationalError):  # held open by somebody else, or not ours to write
                    connection.execute("PRAGMA busy_timeout = 1000")
                    connection.execute("PRAGMA journal_mode = DELETE")
                if _in_wal(connection):
                    raise self._wal()
                connection.execute(f"PRAGMA busy_timeout = {1000 * WAIT_SECONDS:.0f}")
        except BaseException:  # not a database, say: nobody else would close it
            connection.close()
            raise
        return connection

    def _wal(self) -> LedgerError:
        return LedgerError(
            f"The ledger at {self.name} is in SQLite's WAL mode: a copy would miss the newest spends, in {self.name}-wal. Nothing "
            "was reserved. Close every program that holds it open and try again; or run PRAGMA journal_mode = DELETE on it."
        )

    def check(self, *, create: bool) -> bool:
        # Only SQLite may open the file: closing another handle would drop this process's POSIX locks on it.
        if not os.path.lexists(self.path):
            if not create:
                raise self._nothing_here()
            try:
                self._connect("rwc").close()
            except sqlite3.Error as error:
                raise self._cannot_write(error) from error
            with suppress(OSError):  # some file systems know no modes
                os.chmod(self.path, 0o600)  # as a release: who else may read it is for its holder to say
        elif not os.path.isfile(self.path):
            raise self._not_a_ledger("it is not a regular file")
        with self._connected(writing=False) as connection:
            tables = self._tables(connection)
        if tables and "onedraw_events" not in tables:
            raise self._not_a_ledger("it is another SQLite database")
        if not tables and not create:
            raise self._not_a_ledger("the file is empty (pass create=True to begin a new ledger in it)")
        return bool(tables)

    def _holds_ledger(self, connection: Connection) -> bool:
        return "onedraw_events" in self._tables(connection)

    def _tables(self, connection: Connection) -> set[str]:
        # One statement, one picture: another process may be laying out its table right now.
        return set(connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars())

    def _take_turn(self, connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        if connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal":  # switched since we connected
            raise self._wal()

    def _explain(self, error: DBAPIError, *, writing: bool) -> OnedrawError:
        why = error.orig
        code = getattr(why, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._busy()
        if code == sqlite3.SQLITE_CANTOPEN and not os.path.lexists(self.path):
            return self._nothing_here()
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return self._not_a_ledger(f"{why}")
        if code == sqlite3.SQLITE_FULL or (writing and code in _SQLITE_UNWRITABLE):
            return self._cannot_write(why)
        return self._failed(why)


def _in_wal(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal")


_SQLITE_UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR)


@final
@dataclass(frozen=True)
class PostgreSQLStorage(Storage):
    """A ledger in the table ``onedraw_events`` of a PostgreSQL database."""

    url: str
    _schema = POSTGRESQL

    @property
    def name(self) -> str:
        return shown_place(self.url)

    def __repr__(self) -> str:
        return f"PostgreSQLStorage({self.name!r})"

    @cached_property
    def _engine(self) -> Engine:
        from sqlalchemy import create_engine, make_url
        from sqlalchemy.pool import NullPool

        check_extra("postgresql", "psycopg", "A ledger in PostgreSQL")
        address = make_url(self.url).set(drivername="postgresql+psycopg")
        # READ COMMITTED: what is read after the lock was granted must be the newest, whatever the server's default.
        return create_engine(address, poolclass=NullPool, isolation_level="READ COMMITTED")

    def check(self, *, create: bool) -> bool:
        with self._connected(writing=False) as connection:
            if self._holds_ledger(connection):
                return True
        if not create:
            raise self._nothing_here()
        return False

    def _holds_ledger(self, connection: Connection) -> bool:
        return bool(connection.exec_driver_sql("SELECT to_regclass('onedraw_events') IS NOT NULL").scalar_one())

    def _take_turn(self, connection: Connection) -> None:
        # An advisory lock, not LOCK TABLE: it needs no right beyond SELECT and INSERT. The key spells "onedraw".
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'")
        connection.exec_driver_sql(
            "SELECT set_config('synchronous_commit', 'on', true) "
            "WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')"
        )
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({int.from_bytes(b'onedraw')})")

    def _explain(self, error: DBAPIError, *, writing: bool) -> OnedrawError:
        state = str(getattr(error.orig, "sqlstate", None) or "")
        why = without_passwords(str(error.orig).strip().partition("\n")[0], self.url)
        if state == "55P03":  # lock_not_available
            return self._busy()
        if state in ("42P01", "42703"):  # undefined_table, undefined_column
            return self._not_a_ledger(why)
        if writing and state in ("25006", "42501", "53100"):  # read-only, no privilege, disk full
            return self._cannot_write(why)
        return self._failed(why)


def storage_at(place: str | os.PathLike[str]) -> Storage:
    """The storage a path or SQLAlchemy URL means."""
    if isinstance(place, os.PathLike) or "://" not in place:
        return SQLiteStorage(_absolute(os.fspath(place)))
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(place)
    except (ArgumentError, ValueError):  # the reason is not passed on: it quotes pieces of the URL
        raise LedgerError(
            "The ledger's URL cannot be read. Write a path, or postgresql://user@host:5432/database: the port is a number, and "
            "/ ? # @ : in a password are written %2F %3F %23 %40 %3A."
        ) from None
    family = url.drivername.partition("+")[0]
    if family == "postgresql":
        return PostgreSQLStorage(url.render_as_string(hide_password=False))
    if family == "sqlite":
        return SQLiteStorage(_absolute(url.database or ""), read_only=url.query.get("mode") == "ro")
    raise LedgerError(
        f"A ledger is kept in SQLite or PostgreSQL, not in {family!r}. Give a path, or a URL that begins with postgresql://."
    )


def _absolute(path: str) -> str:
    if path in ("", ":memory:"):
        raise LedgerError(
            "A ledger needs a file: kept in memory its spends are forgotten. Give a path such as ledger.db."
        )
    return os.path.abspath(path)
