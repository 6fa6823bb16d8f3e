"""The ledger on the command line: a copy put back is noticed by its mark and by what was kept outside; the ways out."""

from __future__ import annotations

import json
import shutil

import pytest


def roll_back(run, release):
    """Two releases; the ledger is put back to the copy made between them. Returns the last head."""
    release("ill", "proportion", out="first.json")
    shutil.copy("ledger.db", "older.db")
    assert release("ill", "proportion", out="second.json")[0] == 0
    head = json.loads(run("ledger", "verify", "ledger.db", "--json")[1])["head"]
    assert (
        run("ledger", "verify", "ledger.db", "--head", head, "--release", "first.json", "--release", "second.json")[0]
        == 0
    )
    shutil.copy("older.db", "ledger.db")
    return head


@pytest.mark.finding("B5")
def test_a_rolled_back_ledger_is_noticed_by_a_head(run, release):
    head = roll_back(run, release)
    code, _, err = run("ledger", "verify", "ledger.db")
    assert code == 2
    assert "2 events are lost" in err
    copy = "sqlite:///ledger.db?mode=ro"  # an older copy is a whole chain, and no mark belongs to a copy
    code, printed, _ = run("ledger", "verify", copy)
    assert code == 0
    assert "not compared with a mark" in printed
    code, _, err = run("ledger", "verify", copy, "--head", head)
    assert code == 2
    assert "does not contain the head" in err


@pytest.mark.finding("B5")
def test_a_rolled_back_ledger_is_noticed_by_a_release(run, release):
    roll_back(run, release)
    copy = "sqlite:///ledger.db?mode=ro"
    assert run("ledger", "verify", copy, "--release", "first.json")[0] == 0
    code, _, err = run("ledger", "verify", copy, "--release", "first.json", "--release", "second.json")
    assert code == 2
    assert "does not contain the head" in err


@pytest.mark.finding("B5")
def test_a_ledger_cut_off_between_a_spend_and_its_settlement_is_noticed(run, release, hospital):
    """The head on a certificate is that of its reservation: the digest must be held as well."""
    import sqlite3

    assert release("ill", "proportion", out="only.json")[0] == 0
    connection = sqlite3.connect(hospital / "ledger.db")
    connection.execute("DROP TRIGGER onedraw_events_no_delete")
    connection.execute("DELETE FROM onedraw_events WHERE sequence = (SELECT max(sequence) FROM onedraw_events)")
    connection.commit()
    connection.close()
    code, _, err = run("ledger", "verify", "ledger.db", "--release", "only.json")
    assert code == 2
    assert "its mark has seen event 4" in err
    code, _, err = run("ledger", "verify", "sqlite:///ledger.db?mode=ro", "--release", "only.json")
    assert code == 2
    assert "not yet the certificate" in err


# ── spending that is chosen step by step, or declared ──


@pytest.mark.finding("10.11")
def test_init_and_show_say_the_order_and_which_kind_of_total_keeps_the_budget(run):
    code, out, _ = run("ledger", "init", "new.db", "--dataset", "d", "--epsilon", 3, "--delta", 1e-5)
    assert code == 0
    assert "Rényi order 8.65" in out
    assert "adaptive: proven filter" in run("ledger", "show", "new.db")[1]
    shown = json.loads(run("ledger", "show", "new.db", "--json")[1])["datasets"]["d"]
    assert (shown["order"], shown["listed_epsilon"]) == (8.65, None)


@pytest.mark.finding("10.11")
def test_a_declared_list_is_spent_before_its_releases(run, release, hospital):
    (hospital / "list.json").write_text('[{"promise": {"kind": "PureDP", "epsilon": 0.05}, "times": 90}]')
    run("ledger", "init", "new.db", "--dataset", "d", "--epsilon", 2, "--delta", 1e-5)
    code, out, err = run("ledger", "declare", "new.db", "list.json", "--dataset", "d", "--label", "ninety days")
    assert code == 0, err
    assert "90 promises declared" in out
    shown = run("ledger", "show", "new.db")[1]
    assert "pre-declared: one list" in shown
    assert "90 declared promises are still to be drawn" in shown
    assert "ninety days; 90 promises" in shown
    assert run("ledger", "declare", "new.db", "list.json", "--dataset", "d")[0] == 4
    assert run("ledger", "verify", "new.db")[0] == 0


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "[1]", '[{"kind": "X"}]', '[{"promise": 1}]', '[{"promise": {}, "n": 1}]']
)
def test_a_file_that_holds_no_list_of_promises_is_refused(run, tmp_path, content):
    (tmp_path / "list.json").write_text(content)
    run("ledger", "init", "new.db", "--dataset", "d", "--epsilon", 2)
    code, _, err = run("ledger", "declare", "new.db", "list.json", "--dataset", "d")
    assert code == 2
    assert "Traceback" not in err


def test_a_long_history_shows_its_newest_events(run):
    run("ledger", "init", "new.db", "--dataset", "d", "--epsilon", 2)
    for epsilon in (3, 4, 5):
        run("ledger", "top-up", "new.db", "--dataset", "d", "--epsilon", epsilon)
    out = run("ledger", "show", "new.db", "--last", 2)[1]
    assert "2 earlier events are not shown" in out
    assert "budget ε = 5" in out
    assert "budget ε = 3" not in out


def test_ledger_move_then_release_and_verify(run, release, hospital):
    assert release("ill", "proportion", out="first.json")[0] == 0
    (hospital / "safe").mkdir()
    code, printed, _ = run("ledger", "move", "ledger.db", "safe/ledger.db", "--json")
    assert code == 0
    assert json.loads(printed)["events"] == 4
    code, printed, _ = run("ledger", "verify", "safe/ledger.db", "--release", "first.json")
    assert code == 0
    assert "it agrees with its mark, which has seen event 4" in printed
    for command in (("ledger", "show", "ledger.db"), ("verify", "first.json", "--ledger", "ledger.db")):
        code, _, err = run(*command)
        assert code == 2
        assert "was moved to" in err
    code, _, err = release("ill", "proportion", out="second.json")
    assert code == 2
    assert "Nothing was charged" in err
    assert not (hospital / "second.json").exists()
    assert release("ill", "proportion", out="second.json", ledger="safe/ledger.db")[0] == 0


def test_ledger_restore_asks_for_a_head_or_for_consent(run, release, hospital):
    assert release("ill", "proportion", out="first.json")[0] == 0
    shutil.copy("ledger.db", "copy.db")
    for name in ("ledger.db", "ledger.db.mark"):
        (hospital / name).unlink()
    code, _, err = run("ledger", "restore", "ledger.db", "--backup", "copy.db")
    assert code == 2
    assert "--head HASH" in err
    assert not (hospital / "ledger.db").exists()
    head = json.loads((hospital / "first.json").read_text())["ledger"]["head"]
    code, printed, _ = run("ledger", "restore", "ledger.db", "--backup", "copy.db", "--head", head)
    assert code == 0
    assert "not known whether events are lost" in printed
    code, printed, _ = run("ledger", "restore", "ledger.db")
    assert code == 0
    assert "Nothing was changed" in printed
    shutil.copy("copy.db", "ledger.db")
    assert run("ledger", "restore", "ledger.db", "--head", head)[0] == 2
    code, printed, _ = run("ledger", "restore", "ledger.db", "--accept-lost-spends", "--json")
    assert code == 0
    assert json.loads(printed)["lost"] == 1
    assert release("ill", "proportion", out="second.json")[0] == 0
    code, printed, _ = run("ledger", "show", "ledger.db", "--json")
    assert code == 0
    shown = json.loads(printed)
    assert [event["kind"] for event in shown["datasets"]["p"]["events"]].count("reserved") == 2
    assert [event["what"] for event in shown["restored"]] == ["a copy was accepted; the mark had seen event 5"]
    assert "a copy was accepted; the mark had seen event 5" in run("ledger", "show", "ledger.db")[1]
