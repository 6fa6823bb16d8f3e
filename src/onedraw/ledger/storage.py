"""Where a ledger is kept: a SQLite file with its mark, or a PostgreSQL database. `storage_at` reads the place's name."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, final

from onedraw.errors import LedgerError, OnedrawError

from . import database
from .database import Connection, Storage, Writer
from .events import SQLITE, START
from .mark import HeldMark, Mark, MarkFile, check_not_moved, check_one_path, compare
from .postgresql import PostgreSQLStorage


@dataclass(frozen=True)
class SQLiteConnection:
    """A connection of Python's own module, in which nothing begins a transaction but `SQLiteStorage.take_turn`."""

    opened: sqlite3.Connection

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Carry out one statement and return its rows."""
        return self.opened.execute(statement, dict(values or {})).fetchall()

    def commit(self) -> None:
        """End the transaction and keep what was written."""
        self.opened.commit()

    def rollback(self) -> None:
        """End the transaction and undo what was written."""
        self.opened.rollback()


@final
@dataclass(frozen=True)
class SQLiteStorage(Storage):
    """A ledger in one file, with a mark beside it. ``read_only`` for looking at a copy, which no mark belongs to."""

    path: str
    read_only: bool = False
    _schema = SQLITE

    @property
    def name(self) -> str:
        return self.path

    def connect(self, mode: str = "rw") -> sqlite3.Connection:
        # mode=rw: SQLite must never make a missing file anew, that would be an empty history.
        mode = "ro" if self.read_only else mode
        address = f"{Path(self.path).as_uri()}?mode={mode}"
        connection = sqlite3.connect(address, uri=True, timeout=database.WAIT_SECONDS, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: make a sync reach the platter
            if _in_wal(connection):  # back to a rollback journal, which moves what stands in ``-wal`` into the file
                with suppress(sqlite3.OperationalError):  # held open by somebody else, or not ours to write
                    connection.execute("PRAGMA busy_timeout = 1000")
                    connection.execute("PRAGMA journal_mode = DELETE")
                if _in_wal(connection):
                    raise self._wal()
                connection.execute(f"PRAGMA busy_timeout = {1000 * database.WAIT_SECONDS:.0f}")
        except BaseException:  # not a database, say: nobody else would close it
            connection.close()
            raise
        return connection

    def _wal(self) -> LedgerError:
        return LedgerError(
            f"The ledger at {self.name} is in SQLite's WAL mode: a copy would miss the newest spends, in {self.name}-wal. Nothing "
            "was reserved. Close every program that holds it open and try again; or run PRAGMA journal_mode = DELETE on it."
        )

    @property
    def keeps_mark(self) -> bool:
        return not self.read_only

    def lacks_mark(self) -> bool:
        return self.keeps_mark and self.mark.read() is None

    @property
    def mark(self) -> MarkFile:
        return MarkFile.beside(self.path)

    @contextmanager
    def reading(self) -> Iterator[Writer]:
        mark = None if self.read_only else self.mark.read()  # before the chain, which can only be longer
        with super().reading() as writer:
            # Asked once: another process may begin the mark at any moment, and the mark is there before the chain says so.
            if not self.read_only and (mark is not None or writer.says_marked()):
                compare(self.path, mark or self.mark.read(), self.inode, writer)
            yield writer

    @contextmanager
    def connected(self, *, writing: bool) -> Iterator[Connection]:
        try:
            if not self.read_only:
                check_one_path(self.path)  # before SQLite opens it, which would roll back a journal
            with closing(self.connect()) as opened:
                try:
                    yield SQLiteConnection(opened)
                finally:
                    with suppress(sqlite3.Error):  # closing undoes the same; this cannot hide the error that led here
                        opened.rollback()
        except sqlite3.Error as error:
            raise self._explain(error, writing=writing) from error
        except OSError as error:  # of the mark, or of the file's state
            raise self._failed(error.strerror) from error

    @contextmanager
    def marking(self, writer: Writer, *, new: bool = False) -> Iterator[HeldMark | None]:
        if self.read_only:  # SQLite refuses what is written
            yield None
            return
        mark = self.mark.read()
        if new or mark is None:
            if not new:
                compare(self.path, None, self.inode, writer)
            elif mark is not None and _forbids_another(mark):
                raise self._nothing_here()
            self.mark.begin(START if new else writer.last(), self.inode, os.stat(self.path).st_mode)
        with self.mark.held() as held:
            compare(self.path, held.mark, self.inode, writer)
            yield held

    @property
    def inode(self) -> int:
        try:
            return os.stat(self.path).st_ino
        except FileNotFoundError:
            raise self._nothing_here() from None

    def agreement(self) -> str:
        if self.read_only:
            return "read as a copy (mode=ro): not compared with a mark"
        mark = self.mark.read()
        return "no mark yet" if mark is None else f"it agrees with its mark, which has seen event {mark.sequence}"

    def _nothing_here(self) -> LedgerError:
        mark = self.mark.read()
        if mark is None or not _forbids_another(mark):
            return super()._nothing_here()
        check_not_moved(self.path, mark)
        return LedgerError(
            f"There is no ledger at {self.path}, but its mark has seen {mark.sequence} events of one. Nothing was charged. Put "
            f"the ledger back, or a backup of it with `onedraw ledger restore {quote(self.path)} --backup FILE`. Delete {self.path}.mark "
            "only to begin another ledger under this name."
        )

    def check(self, *, create: bool) -> bool:
        # Only SQLite may open the file: closing another handle would drop this process's POSIX locks on it.
        mark = None if os.path.lexists(self.path) else self.mark.read()
        if not os.path.lexists(
            self.path
        ):  # once more: another process may have begun the ledger and its mark meanwhile
            if not create or (mark is not None and _forbids_another(mark)):
                raise self._nothing_here()
            try:
                self.connect("rwc").close()
            except sqlite3.Error as error:
                raise self._cannot_write(error) from error
            with suppress(OSError):  # some file systems know no modes
                os.chmod(self.path, 0o600)  # as a release: who else may read it is for its holder to say
        elif not os.path.isfile(self.path):
            raise self._not_a_ledger("it is not a regular file")
        with self.connected(writing=False) as connection:
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
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}

    def take_turn(self, connection: Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA journal_mode") == [("wal",)]:  # switched since we connected
            raise self._wal()

    def _explain(self, why: sqlite3.Error, *, writing: bool) -> OnedrawError:
        """Return SQLite's complaint as one of ours."""
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


def _forbids_another(mark: Mark) -> bool:
    """Whether a ledger stood here once, so that no other may begin under its name."""
    return bool(mark.sequence or mark.moved_to or mark.moved_from)


def _in_wal(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal")


_SQLITE_UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR)


def storage_at(place: str | os.PathLike[str]) -> Storage:
    """The storage a path or URL means."""
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
