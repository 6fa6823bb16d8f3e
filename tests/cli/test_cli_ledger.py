"""The books on the command line: a copy put back is noticed by what was kept outside."""

from __future__ import annotations

import json
import shutil

import pytest


def roll_back(run, release):
    """Two releases; the books are put back to the copy made between them. Returns the last head."""
    release("ill", "proportion", out="first.json")
    shutil.copy("books.db", "older.db")
    assert release("ill", "proportion", out="second.json")[0] == 0
    head = json.loads(run("ledger", "verify", "books.db", "--json")[1])["head"]
    assert (
        run("ledger", "verify", "books.db", "--head", head, "--release", "first.json", "--release", "second.json")[0]
        == 0
    )
    shutil.copy("older.db", "books.db")
    return head


@pytest.mark.finding("B5")
def test_a_rolled_back_ledger_is_noticed_by_a_head(run, release):
    head = roll_back(run, release)
    assert run("ledger", "verify", "books.db")[0] == 0  # an older copy is a whole chain
    code, _, err = run("ledger", "verify", "books.db", "--head", head)
    assert code == 2
    assert "does not contain the head" in err


@pytest.mark.finding("B5")
def test_a_rolled_back_ledger_is_noticed_by_a_release(run, release):
    roll_back(run, release)
    assert run("ledger", "verify", "books.db", "--release", "first.json")[0] == 0
    code, _, err = run("ledger", "verify", "books.db", "--release", "first.json", "--release", "second.json")
    assert code == 2
    assert "does not contain the head" in err


@pytest.mark.finding("B5")
def test_books_cut_off_between_a_spend_and_its_settlement_are_noticed(run, release, hospital):
    """The head on a certificate is that of its reservation: the digest must be held as well."""
    import sqlite3

    assert release("ill", "proportion", out="only.json")[0] == 0
    books = sqlite3.connect(hospital / "books.db")
    books.execute("DROP TRIGGER onedraw_events_no_delete")
    books.execute("DELETE FROM onedraw_events WHERE sequence = (SELECT max(sequence) FROM onedraw_events)")
    books.commit()
    books.close()
    code, _, err = run("ledger", "verify", "books.db", "--release", "only.json")
    assert code == 2
    assert "not yet the certificate" in err
