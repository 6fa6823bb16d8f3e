"""Ledgers to test with, in SQLite and in PostgreSQL; every test gets a schema of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from onedraw.ledger import Ledger
from tests.postgresql_server import PostgreSQLServer

BACKENDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)]


@pytest.fixture(params=BACKENDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new ledger may be opened: a path, or a PostgreSQL URL."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    server: PostgreSQLServer = request.getfixturevalue("postgresql")
    return server.new_place()


@pytest.fixture
def ledger(place: str) -> Ledger:
    """New and empty."""
    return Ledger.open(place, create=True)


@pytest.fixture
def direct_sql(place: str) -> Callable[..., list[tuple[object, ...]]]:
    """Runs statements past the ledger, as someone with access to the database could."""

    def run(*statements: str) -> list[tuple[object, ...]]:
        import sqlalchemy
        from sqlalchemy.pool import NullPool

        address = place.replace("postgresql://", "postgresql+psycopg://") if "://" in place else f"sqlite:///{place}"
        engine = sqlalchemy.create_engine(address, poolclass=NullPool)
        rows: list[tuple[object, ...]] = []
        with engine.begin() as connection:
            for statement in statements:
                result = connection.execute(sqlalchemy.text(statement.replace(":", r"\:")))
                rows = [tuple(row) for row in result] if result.returns_rows else []
        return rows

    return run


@pytest.fixture
def unguarded(place: str, direct_sql: Callable[..., object]) -> Callable[..., object]:
    """Like ``direct_sql``, after removing the triggers that forbid changes."""
    if "://" in place:
        disarm = ["ALTER TABLE onedraw_events DISABLE TRIGGER USER"]
    else:
        names = ("no_update", "no_delete", "follow")
        disarm = [f"DROP TRIGGER IF EXISTS onedraw_events_{name}" for name in names]

    def run(*statements: str) -> object:
        return direct_sql(*disarm, *statements)

    return run
