"""What pages need around them: the PostgreSQL pages a server."""

from __future__ import annotations

import pytest


def a_table_of_patients(url: str) -> str:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE patients (income numeric, ward text)")
        connection.execute("INSERT INTO patients SELECT 40 * i % 90000, 'surgery' FROM generate_series(1, 2000) AS i")
    return url


@pytest.fixture
def environment(request, monkeypatch):
    """Called with a page's name: sets what the page takes for granted."""

    def prepare(page: str) -> None:
        if page == "postgresql-ledger.md":
            monkeypatch.setenv("LEDGER", request.getfixturevalue("postgresql").new_place())
        if page == "from-postgresql.md":
            monkeypatch.setenv("RECORDS", a_table_of_patients(request.getfixturevalue("postgresql").new_place()))

    return prepare
