"""A ledger in PostgreSQL.

It needs no mark (mark.py). The server alone opens the database's files, finds its own log of transactions and ends every
transaction of a client that dies. A client names a server, not a file, so there is no second path to the same file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

from onedraw.errors import OnedrawError, check_extra
from onedraw.plain_text import shown_place, without_passwords

from . import database
from .database import Connection, Storage
from .events import POSTGRESQL

if TYPE_CHECKING:
    from sqlalchemy import Connection as ServerConnection
    from sqlalchemy import Engine
    from sqlalchemy.exc import DBAPIError


@dataclass(frozen=True)
class PostgreSQLConnection:
    """A connection of SQLAlchemy's, which begins a transaction with the first statement."""

    opened: ServerConnection

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Carry out one statement and return its rows."""
        from sqlalchemy import text

        if values is None:
            result = self.opened.exec_driver_sql(statement)
        else:
            result = self.opened.execute(text(statement), dict(values))
        return [tuple(row) for row in result] if result.returns_rows else []

    def commit(self) -> None:
        """End the transaction and keep what was written."""
        self.opened.commit()

    def rollback(self) -> None:
        """End the transaction and undo what was written."""
        self.opened.rollback()


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

    @contextmanager
    def connected(self, *, writing: bool) -> Iterator[Connection]:
        """Give a connection to a block, and close it."""
        from sqlalchemy.exc import DBAPIError

        try:
            with self._engine.connect() as opened:
                yield PostgreSQLConnection(opened)
        except DBAPIError as error:
            raise self._explain(error, writing=writing) from error

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_engine"}

    def check(self, *, create: bool) -> bool:
        with self.connected(writing=False) as connection:
            if self._holds_ledger(connection):
                return True
        if not create:
            raise self._nothing_here()
        return False

    def _holds_ledger(self, connection: Connection) -> bool:
        return bool(connection.execute("SELECT to_regclass('onedraw_events') IS NOT NULL")[0][0])

    def take_turn(self, connection: Connection) -> None:
        # An advisory lock, not LOCK TABLE: it needs no right beyond SELECT and INSERT. The key spells "onedraw".
        connection.execute(f"SET LOCAL lock_timeout = '{database.WAIT_SECONDS}s'")
        connection.execute(
            "SELECT set_config('synchronous_commit', 'on', true) "
            "WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')"
        )
        connection.execute(f"SELECT pg_advisory_xact_lock({int.from_bytes(b'onedraw')})")

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
