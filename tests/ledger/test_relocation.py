"""Moving and restoring a ledger: whatever is interrupted, at most one file can be spent from, and no spend is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from onedraw.errors import LedgerError, OnedrawError
from onedraw.ledger import Kind, Ledger, mark
from onedraw.privacy import PureDP

from .two_paths import begin, die_while_reserving, spend

STEPS = ("pwrite", "rename", "unlink", "chmod", "fsync")
"""Functions of the operating system through which moving and restoring act."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A ledger with two spends, and a process that died in the third."""
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    path = tmp_path / "old" / "ledger.db"
    begin(path)
    assert len(spend(path, 2)) == 2
    die_while_reserving(path)
    return path


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return tmp_path / "new" / "books.db"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def spends(path: Path) -> int:
    return Ledger.open(path).account("patients").reservations


class Killed(BaseException):
    """What a process sees last."""


@contextmanager
def killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Stop before the step with this number; nothing that follows is done."""
    taken: list[str] = []

    def stopping(name: str) -> Callable[..., Any]:
        function = getattr(os, name)

        def run(*arguments: Any, **options: Any) -> Any:
            if len(taken) >= step:
                raise Killed
            taken.append(name)
            return function(*arguments, **options)

        return run

    with monkeypatch.context() as machine:
        for name in STEPS:
            machine.setattr(os, name, stopping(name))
        yield taken


def usable(*paths: Path) -> list[Path]:
    """The paths under which a spend is acknowledged."""
    return [path for path in paths if path.exists() and spend(path, 1)]


# Moving.


def test_move_takes_history_and_mark_along(old: Path, new: Path) -> None:
    old.chmod(0o640)
    end = Ledger.move(old, new)
    assert (end.sequence, end.hash) == (4, Ledger.open(new).head())
    assert spends(new) == 2
    assert Ledger.open(new).verify().mark.startswith("it agrees with its mark")
    assert names(old.parent) == ["ledger.db.mark"]
    assert names(new.parent) == ["books.db", "books.db.mark"]
    assert {path.stat().st_mode & 0o777 for path in new.parent.iterdir()} == {0o640}


def test_moved_ledger_is_refused_under_its_old_name(old: Path, new: Path) -> None:
    ledger = Ledger.open(old)
    Ledger.move(old, new)
    for call in (ledger.head, lambda: ledger.reserve("patients", PureDP(0.5)), lambda: Ledger.open(old, create=True)):
        with pytest.raises(LedgerError, match=r"was moved to .*books\.db"):
            call()
    assert not old.exists()


def test_move_back_and_again_is_allowed(old: Path, new: Path) -> None:
    for here, there in ((old, new), (new, old), (old, new)):
        Ledger.move(here, there)
        assert usable(old, new) == [there]
    assert spends(new) == 5


def test_move_to_another_file_system(old: Path, tmp_path: Path) -> None:
    other = Path("/dev/shm" if tmp_path.stat().st_dev != Path("/dev/shm").stat().st_dev else "/tmp")
    if other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("one file system")
    there = other / f"onedraw-test-{os.getpid()}.db"
    try:
        Ledger.move(old, there)
        assert spends(there) == 2
    finally:
        for path in (there, Path(f"{there}.mark")):
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("taken", ["books.db", "books.db-journal", "books.db.mark"])
def test_move_onto_something_is_refused(old: Path, new: Path, taken: str) -> None:
    if taken.endswith("mark"):
        begin(new)
        new.unlink()
    else:
        (new.parent / taken).write_text("kept")
    before = (new.parent / taken).read_bytes()
    with pytest.raises(LedgerError, match=r"exists already. Nothing was moved"):
        Ledger.move(old, new)
    assert (new.parent / taken).read_bytes() == before
    assert usable(old) == [old]


def test_move_of_a_ledger_that_is_refused_is_refused(old: Path, new: Path) -> None:
    Path(f"{old}.mark").unlink()
    with pytest.raises(LedgerError, match="has no mark"):
        Ledger.move(old, new)
    with pytest.raises(LedgerError, match="same ledger"):
        Ledger.move(old, old)
    with pytest.raises(LedgerError, match="not a SQLite file that can be written"):
        Ledger.move(f"sqlite:///{old}?mode=ro", new)
    assert names(new.parent) == []


def test_move_killed_at_any_step_is_finished_by_the_same_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[tuple[bool, bool]] = set()
    for step in range(100):
        folder = tmp_path / f"{step}"
        folder.mkdir()
        old, new = folder / "old.db", folder / "new.db"
        begin(old)
        assert len(spend(old, 2)) == 2
        with killed_at(step, monkeypatch) as taken:
            try:
                Ledger.move(old, new)
            except Killed:
                finished = False
            else:
                finished = True
        there = usable(old, new)
        seen.add((old in there, new in there))
        assert len(there) <= 1, taken
        Ledger.move(old, new)
        assert usable(old, new) == [new], taken
        assert spends(new) == 3 + len(there), taken
        if finished:
            break
    print(f"{step} steps, states after a kill (old usable, new usable): {seen}")
    assert step > 8
    assert seen == {(True, False), (False, False), (False, True)}


def test_process_that_waits_during_a_move_spends_nothing(old: Path, new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to the old file that was opened before: its turn comes when the ledger has left."""
    from onedraw.ledger.storage import SQLiteStorage

    waiting, take_turn = Ledger.open(old), SQLiteStorage.take_turn

    def moved_first(self: SQLiteStorage, connection: Any) -> None:
        monkeypatch.setattr(SQLiteStorage, "take_turn", take_turn)
        Ledger.move(old, new)
        take_turn(self, connection)

    monkeypatch.setattr(SQLiteStorage, "take_turn", moved_first)
    with pytest.raises(OnedrawError, match=r"was moved to|cannot be written"):
        waiting.reserve("patients", PureDP(0.5))
    assert spends(new) == 2


def test_new_ledger_killed_at_any_step_can_be_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in range(100):
        path = tmp_path / f"{step}.db"
        with killed_at(step, monkeypatch) as taken:
            try:
                begin(path)
            except Killed:
                finished = False
            else:
                finished = True
        ledger = Ledger.open(path, create=True)
        if "patients" not in ledger.datasets():
            ledger.init("patients", PureDP(1.0))
        assert usable(path) == [path], taken
        if finished:
            break
    assert step > 5


# Restoring.


@pytest.fixture
def backup(old: Path, tmp_path: Path) -> Path:
    """A copy of the ledger with two spends, of which it has made one more since."""
    Ledger.open(old)
    shutil.copy(old, tmp_path / "backup.db")
    assert len(spend(old, 1)) == 1
    return tmp_path / "backup.db"


def test_restore_of_a_shorter_copy_says_what_is_lost(old: Path, backup: Path) -> None:
    old.write_bytes(backup.read_bytes())
    head = Ledger.open(f"sqlite:///{backup}?mode=ro").head()
    for heads in ((), head):
        with pytest.raises(
            LedgerError, match=r"ends at event 4.*has seen event 5.*at least 1 event is lost.*Nothing was"
        ):
            Ledger.restore(old, head=heads)
    done = Ledger.restore(old, accept_lost_spends=True)
    assert (done.events, done.lost, done.changed) == (5, 1, True)
    event = Ledger.open(old).events()[-1]
    assert event.kind == Kind.RESTORED
    assert event.payload["mark"]["sequence"] == 5
    assert usable(old) == [old]


def test_restore_of_a_whole_copy_takes_a_head(old: Path, new: Path) -> None:
    head = Ledger.open(old).head()
    shutil.copy(old, new)
    shutil.copy(f"{old}.mark", f"{new}.mark")
    with pytest.raises(LedgerError, match="Nothing shows that it is the newest copy"):
        Ledger.restore(new)
    with pytest.raises(LedgerError, match="does not hold the head abc"):
        Ledger.restore(new, head=[head, "abc"])
    done = Ledger.restore(new, head=head)
    assert (done.events, done.lost) == (5, 0)
    assert usable(new) == [new]
    assert not Ledger.restore(new).changed


def test_restore_puts_a_backup_where_no_file_is(old: Path, backup: Path) -> None:
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.restore(old, backup=backup, accept_lost_spends=True)
    old.unlink()
    with pytest.raises(LedgerError, match="There is no file"):
        Ledger.restore(old, accept_lost_spends=True)
    with pytest.raises(LedgerError, match="at least 1 event is lost"):
        Ledger.restore(old, backup=backup)
    assert names(old.parent) == ["ledger.db.mark"]
    assert Ledger.restore(old, backup=backup, accept_lost_spends=True).lost == 1
    assert names(old.parent) == ["ledger.db", "ledger.db.mark"]
    assert usable(old) == [old]
    assert names(backup.parent).count("backup.db") == 1


def test_restore_beside_a_journal_of_another_file_is_refused(old: Path, backup: Path) -> None:
    die_while_reserving(old)
    old.unlink()
    with pytest.raises(LedgerError, match="journal without its ledger"):
        Ledger.restore(old, backup=backup, accept_lost_spends=True)
    assert not old.exists()


def test_restore_of_a_ledger_that_was_moved_is_refused(old: Path, new: Path, backup: Path) -> None:
    Ledger.move(old, new)
    with pytest.raises(LedgerError, match=r"ledger lies at .*books\.db"):
        Ledger.restore(old, backup=backup, head=Ledger.open(f"sqlite:///{backup}?mode=ro").head())
    assert not old.exists()
    assert usable(old, new) == [new]


def test_restore_killed_at_any_step_is_finished_by_the_same_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path / "backup.db")
    spend(tmp_path / "backup.db", 2)
    for step in range(100):
        folder = tmp_path / f"{step}"
        folder.mkdir()
        path = folder / "ledger.db"
        with killed_at(step, monkeypatch) as taken:
            try:
                Ledger.restore(path, backup=tmp_path / "backup.db", accept_lost_spends=True)
            except Killed:
                finished = False
            else:
                finished = True
        there = usable(path)
        if not there:
            Ledger.restore(path, backup=tmp_path / "backup.db", accept_lost_spends=True)
        assert usable(path) == [path], taken
        assert spends(path) == 3 + len(there), taken
        if finished:
            break
    print(f"{step} steps")
    assert step > 5


def test_restore_of_a_damaged_history_is_refused(old: Path) -> None:
    import sqlite3

    Ledger.open(old)
    connection = sqlite3.connect(old)
    connection.execute("DROP TRIGGER onedraw_events_no_update")
    connection.execute("UPDATE onedraw_events SET payload = '{}' WHERE sequence = 3")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="broken at event 3"):
        Ledger.restore(old, accept_lost_spends=True)


def test_switch_of_the_tests_is_on_for_users() -> None:
    assert mark.REFUSE_WHAT_IS_SEEN
