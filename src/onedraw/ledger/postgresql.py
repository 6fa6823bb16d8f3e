"""A ledger in PostgreSQL.

It needs no mark (mark.py). The server alone opens the database's files, finds its own log of transactions and ends every
transaction of a client that dies. A client names a server, not a file, so there is no second path to the same file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

from onedraw.errors import OnedrawError, check_extra
from onedraw.plain_text import shown_place, without_passwords

from . import database
from .database import Storage
from .events import POSTGRESQL

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError


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
        with self.connected(writing=False) as connection:
            if self._holds_ledger(connection):
                return True
        if not create:
            raise self._nothing_here()
        return False

    def _holds_ledger(self, connection: Connection) -> bool:
        return bool(connection.exec_driver_sql("SELECT to_regclass('onedraw_events') IS NOT NULL").scalar_one())

    def take_turn(self, connection: Connection) -> None:
        # An advisory lock, not LOCK TABLE: it needs no right beyond SELECT and INSERT. The key spells "onedraw".
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{database.WAIT_SECONDS}s'")
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
