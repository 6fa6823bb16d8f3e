"""What pages need around them: the PostgreSQL page a server, the one that the ledger's tests start."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

LEDGER = Path(__file__).resolve().parents[1] / "ledger" / "conftest.py"


def _ledger_fixtures():
    spec = importlib.util.spec_from_file_location("ledger_conftest", LEDGER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


postgresql = _ledger_fixtures().postgresql


@pytest.fixture
def surroundings(request, monkeypatch):
    """Called with a page's name: sets what the page takes for granted."""

    def prepare(page: str) -> None:
        if page == "postgresql-ledger.md":
            monkeypatch.setenv("LEDGER", request.getfixturevalue("postgresql").new_place())

    return prepare
