"""The mark beside a SQLite ledger: what it says, what it refuses, and that writing it never loses it."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onedraw.errors import CannotWrite, LedgerError
from onedraw.ledger import Kind, Ledger, mark
from onedraw.ledger import ledger as ledger_module
from onedraw.ledger.database import Writer
from onedraw.ledger.events import Position, new_event
from onedraw.ledger.mark import SLOT_BYTES, Mark, MarkFile
from onedraw.privacy import PureDP, Unit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with two spends."""
    ledger = Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", PureDP(1.0))
    ledger.reserve("patients", PureDP(0.125))
    ledger.reserve("patients", PureDP(0.125))
    return tmp_path / "ledger.db"


def mark_of(path: Path) -> Mark:
    found = MarkFile.beside(str(path)).read()
    assert found is not None
    return found


# What it says.


def test_mark_after_every_event_is_at_the_head(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.db", create=True)
    assert mark_of(tmp_path / "ledger.db").position == Position(1, ledger.head())
    ledger.init("patients", PureDP(1.0))
    reservation = ledger.reserve("patients", PureDP(0.5))
    assert mark_of(tmp_path / "ledger.db").position == Position(3, reservation.head)
    settled = ledger.settle(reservation, "digest")
    assert mark_of(tmp_path / "ledger.db").position == Position(4, settled.hash)
    assert ledger.verify().mark == "it agrees with its mark, which has seen event 4"


def test_mark_is_on_disk_before_reserve_returns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Synced after the commit: at the sync the event is in the ledger and the mark holds it already."""
    synced: list[tuple[int, int]] = []
    sync = mark._sync

    def seen(handle: int) -> None:
        sync(handle)
        reader = Ledger.open(f"sqlite:///{path}?mode=ro")
        synced.append((len(reader.events()), mark_of(path).sequence))

    monkeypatch.setattr(mark, "_sync", seen)
    Ledger.open(path).reserve("patients", PureDP(0.125))
    assert synced == [(5, 5)]


def test_mark_has_the_rights_of_its_ledger(path: Path) -> None:
    assert Path(f"{path}.mark").stat().st_mode & 0o777 == 0o600


def test_chain_longer_than_mark_is_normal_and_moves_it_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies between the commit and the mark leaves this."""
    with monkeypatch.context() as killed:
        killed.setattr(mark.HeldMark, "advance", lambda *_: None)
        Ledger.open(path).reserve("patients", PureDP(0.125))
    assert (mark_of(path).sequence, len(Ledger.open(path).events())) == (4, 5)
    Ledger.open(path).reserve("patients", PureDP(0.125))
    assert mark_of(path).sequence == 6


# What is refused.


def test_ledger_without_its_mark_is_refused(path: Path) -> None:
    Path(f"{path}.mark").unlink()
    with pytest.raises(LedgerError, match=r"has no mark.*Nothing was charged.*ledger restore"):
        Ledger.open(path)


def test_open_ledger_that_loses_its_mark_takes_no_spend(path: Path) -> None:
    ledger = Ledger.open(path)
    Path(f"{path}.mark").unlink()
    for call in (ledger.head, ledger.verify, lambda: ledger.reserve("patients", PureDP(0.125))):
        with pytest.raises(LedgerError, match="has no mark"):
            call()
    assert not Path(f"{path}.mark").exists()


def test_older_content_in_the_same_file_is_refused(path: Path, tmp_path: Path) -> None:
    older = path.read_bytes()
    ledger = Ledger.open(path)
    ledger.reserve("patients", PureDP(0.125))
    path.write_bytes(older)
    with pytest.raises(LedgerError, match="ends at event 4, but its mark has seen event 5: 1 event is lost"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match=r"broken at event 5|ends at event 4"):
        ledger.reserve("patients", PureDP(0.125))


def test_another_history_of_the_same_length_is_refused(path: Path) -> None:
    older = path.read_bytes()
    Ledger.open(path).reserve("patients", PureDP(0.125))
    newer_mark = Path(f"{path}.mark").read_bytes()
    path.write_bytes(older)
    Path(f"{path}.mark").unlink()
    Ledger.restore(path, accept_lost_spends=True)
    Path(f"{path}.mark").write_bytes(newer_mark)
    mark_file = Path(f"{path}.mark")
    mark_file.write_bytes(rewritten(mark_file.read_bytes(), mark_file.stat().st_ino))
    with pytest.raises(LedgerError, match="has another event 5 than its mark has seen"):
        Ledger.open(path)


def rewritten(content: bytes, inode: int) -> bytes:
    """The same marks for a file with another inode."""
    slots = [mark._decoded(content[start : start + SLOT_BYTES]) for start in (0, SLOT_BYTES)]
    whole = [slot for slot in slots if slot is not None]
    newest = max(whole, key=lambda slot: slot.generation)
    return mark._encoded(Mark(newest.sequence, newest.head, newest.ledger_inode, inode)) + bytes(SLOT_BYTES)


def test_copied_folder_is_not_the_ledger(path: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copy"
    copied.mkdir()
    for name in ("ledger.db", "ledger.db.mark"):
        shutil.copy(tmp_path / name, copied / name)
    with pytest.raises(
        LedgerError, match=r"is not the file that its mark belongs to.*ledger move.*ledger restore.*mode=ro"
    ):
        Ledger.open(copied / "ledger.db")
    reader = Ledger.open(f"sqlite:///{copied}/ledger.db?mode=ro")
    assert reader.verify().mark == "read as a copy (mode=ro): not compared with a mark"
    with pytest.raises(CannotWrite):
        reader.reserve("patients", PureDP(0.125))


@pytest.mark.parametrize("seen", [True, False])
def test_copied_mark_does_not_stand_for_the_ledger(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    """A mark that was saved is put back later to get rid of a refusal; it knows its own file."""
    monkeypatch.setattr(mark, "REFUSE_WHAT_IS_SEEN", seen)
    saved = tmp_path / "saved"
    shutil.copy(f"{path}.mark", saved)
    os.replace(saved, f"{path}.mark")
    with pytest.raises(LedgerError, match="is not the file that its mark belongs to"):
        Ledger.open(path)


def test_hard_link_is_refused_under_both_names(path: Path, tmp_path: Path) -> None:
    ledger = Ledger.open(path)
    os.link(path, tmp_path / "second.db")
    for call in (ledger.head, lambda: Ledger.open(path), lambda: Ledger.open(tmp_path / "second.db")):
        with pytest.raises(LedgerError, match=r"has 2 names \(hard links\).*Nothing was charged"):
            call()
    (tmp_path / "second.db").unlink()
    assert ledger.remaining("patients").epsilon == 0.75


@pytest.mark.parametrize("name", ["ledger.db", "with space.db", "back\\slash.db"])
def test_file_in_the_table_of_mounts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path = tmp_path / name
    Ledger.open(path, create=True)
    table = tmp_path / "mountinfo"
    written = str(path).replace("\\", "\\134").replace(" ", "\\040")
    table.write_text(f"23 1 0:5 / /proc rw - proc proc rw\n36 35 98:0 {written} /elsewhere rw - ext4 /dev/sda rw\n")
    monkeypatch.setattr(mark, "MOUNTS", str(table))
    assert Ledger.open(path).datasets() == ()
    table.write_text(f"36 35 98:0 /ledger.db {written} rw,relatime master:1 - ext4 /dev/sda rw\n")
    with pytest.raises(LedgerError, match=r"mounted as a single file.*Mount the folder"):
        Ledger.open(path)
    monkeypatch.setattr(mark, "MOUNTS", str(tmp_path / "no such table"))
    assert Ledger.open(path).datasets() == ()


def test_new_ledger_where_one_has_vanished_is_refused(path: Path) -> None:
    path.unlink()
    for create in (False, True):
        with pytest.raises(LedgerError, match=r"no ledger at .* but its mark has seen 4 events.*--backup"):
            Ledger.open(path, create=create)
    assert not path.exists()
    path.touch()
    with pytest.raises(LedgerError, match="its mark has seen 4 events"):
        Ledger.open(path, create=True)
    Path(f"{path}.mark").unlink()
    assert Ledger.open(path, create=True).datasets() == ()


# Files that cannot be written or read.


@pytest.mark.parametrize("content", [b"", b"{}\n", bytes(2 * SLOT_BYTES), b"x" * 3 * SLOT_BYTES])
def test_damaged_mark_is_refused_and_said(path: Path, content: bytes) -> None:
    Path(f"{path}.mark").write_bytes(content)
    with pytest.raises(LedgerError, match=r"is damaged.*Nothing was charged"):
        Ledger.open(path)
    Ledger.restore(path, accept_lost_spends=True)
    assert Ledger.open(path).remaining("patients").epsilon == 0.75


@pytest.mark.parametrize("length", [0, 1, 100, 300, SLOT_BYTES - 1])
def test_torn_write_of_a_mark_leaves_the_one_before(path: Path, length: int) -> None:
    before, old = mark_of(path), Path(f"{path}.mark").read_bytes()
    Ledger.open(path).reserve("patients", PureDP(0.125))
    new = Path(f"{path}.mark").read_bytes()
    (slot,) = [start for start in (0, SLOT_BYTES) if old[start : start + SLOT_BYTES] != new[start : start + SLOT_BYTES]]
    torn = bytearray(old)
    torn[slot : slot + length] = new[slot : slot + length]
    with open(f"{path}.mark", "r+b") as file:  # in place, as it is written
        file.write(torn)
    assert mark_of(path) in (before, mark._decoded(new[slot : slot + SLOT_BYTES]))
    assert Ledger.open(path).account("patients").reservations == 3


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch, function: str) -> Iterator[None]:
    """The mark alone meets a full or broken disk: SQLite does not write through Python."""

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, function, fail)
        yield


@pytest.mark.parametrize("function", ["pwrite", "fsync"])
def test_mark_that_cannot_be_written_is_said_and_the_spend_stands(
    path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    with full_disk(monkeypatch, function), pytest.raises(CannotWrite, match=r"Event 5 stands in the ledger and counts"):
        Ledger.open(path).reserve("patients", PureDP(0.125))
    assert Ledger.open(path).account("patients").reservations == 3


@pytest.mark.parametrize("function", ["pwrite", "fsync"])
def test_settlement_whose_mark_cannot_be_written_is_settled(
    path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """The draw exists: an error here would lose it. A mark that lies behind is normal."""
    ledger = Ledger.open(path)
    reservation = ledger.reserve("patients", PureDP(0.125))
    with full_disk(monkeypatch, function):
        ledger.settle(reservation, "digest")
    assert Ledger.open(path).certificate_digest(reservation.entry) == "digest"
    Ledger.open(path).reserve("patients", PureDP(0.125))
    assert mark_of(path).sequence == 7


def test_new_ledger_whose_mark_cannot_be_written_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        full_disk(monkeypatch, "pwrite"),
        pytest.raises(CannotWrite, match=r"mark .* cannot be written \(No space left"),
    ):
        Ledger.open(tmp_path / "ledger.db", create=True)
    with pytest.raises(LedgerError, match="file is empty"):
        Ledger.open(tmp_path / "ledger.db")
    Ledger.open(tmp_path / "ledger.db", create=True).init("patients", PureDP(1.0))
    assert mark_of(tmp_path / "ledger.db").sequence == 2


def test_locked_mark_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark, "WAIT_SECONDS", 0.05)
    ledger = Ledger.open(path)
    with MarkFile.beside(str(path)).held(), pytest.raises(LedgerError, match="locked by another process"):
        ledger.reserve("patients", PureDP(0.125))
    ledger.reserve("patients", PureDP(0.125))


def test_threads_that_spend_leave_the_mark_at_the_head(path: Path) -> None:
    ledger = Ledger.open(path)
    threads = [
        threading.Thread(target=lambda: [ledger.reserve("patients", PureDP(2.0**-10)) for _ in range(10)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mark_of(path).position == Position(44, ledger.head())


# Ledgers of earlier versions.


@pytest.fixture
def earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger as format 3 left it: no mark, and a chain that knows of none."""
    monkeypatch.setattr(ledger_module, "FORMAT", 3)
    storage = Ledger.open(tmp_path / "ledger.db", create=True)._storage
    content = {"budget": PureDP(1.0).to_dict(), "order": None, "unit": Unit().to_dict(), "note": ""}
    with storage.writing() as writer:
        writer.append(new_event(writer.last(), Kind.DATASET_OPENED, entry="e2", dataset="patients", content=content))
    Path(f"{tmp_path}/ledger.db.mark").unlink()
    return tmp_path / "ledger.db"


def test_earlier_ledger_gets_its_mark_when_first_opened(earlier: Path) -> None:
    ledger = Ledger.open(earlier)
    assert [event.kind for event in ledger.events()] == ["book-opened", "dataset-opened", "marked"]
    assert mark_of(earlier).position == Position(3, ledger.head())
    ledger.reserve("patients", PureDP(0.5))
    Ledger.open(earlier)
    assert [event.kind for event in ledger.events()].count(Kind.MARKED) == 1
    Path(f"{earlier}.mark").unlink()
    with pytest.raises(LedgerError, match="has no mark"):
        Ledger.open(earlier)


def test_earlier_ledger_that_cannot_be_written_can_be_read(earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Ledger.open(f"sqlite:///{earlier}?mode=ro").remaining("patients").epsilon == 1.0

    monkeypatch.setattr(MarkFile, "begin", lambda *_, **__: refuse())
    ledger = Ledger.open(earlier)
    assert ledger.remaining("patients").epsilon == 1.0
    assert ledger.verify().mark == "no mark yet"
    with pytest.raises(CannotWrite, match="read-only"):
        ledger.reserve("patients", PureDP(0.5))


def refuse() -> None:
    raise CannotWrite("read-only")


def test_earlier_ledger_whose_mark_another_begins_is_read(earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between this reader's look for a mark and its look at the chain, another process opens the ledger."""
    read = MarkFile.read

    def overtaken(self: MarkFile) -> Mark | None:
        monkeypatch.setattr(MarkFile, "read", read)
        found = read(self)
        Ledger.open(earlier)
        return found

    monkeypatch.setattr(MarkFile, "read", overtaken)
    assert Ledger.open(earlier).verify().events == 3


def test_earlier_ledger_marked_while_a_reader_looks_is_read(earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Just after this reader found that the chain knows of no mark, another process begins one."""
    asked = Writer.says_marked

    def overtaken(self: Writer) -> bool:
        monkeypatch.setattr(Writer, "says_marked", asked)
        answer = asked(self)
        Ledger.open(earlier)
        return answer

    monkeypatch.setattr(Writer, "says_marked", overtaken)
    assert Ledger.open(earlier).verify().events == 3


def test_earlier_ledger_killed_before_it_says_so_goes_on(earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark is begun before the event that speaks of it; a kill between the two leaves a mark alone."""
    with monkeypatch.context() as killed:
        killed.setattr(MarkFile, "held", lambda *_: refuse())
        Ledger.open(earlier)
    assert mark_of(earlier).sequence == 2
    ledger = Ledger.open(earlier)
    ledger.reserve("patients", PureDP(0.5))
    assert [event.kind for event in ledger.events()] == ["book-opened", "dataset-opened", "marked", "reserved"]


# A disk that fails (tools/exhaustive_faults.py found these).


@pytest.mark.parametrize("call", ["pread", "fstat"])
def test_mark_on_failing_disk_is_an_error_of_the_ledger(path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(handle: int, *_: object) -> object:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    ledger = Ledger.open(path)
    with monkeypatch.context() as patch:
        patch.setattr(mark.os, call, fails)
        with pytest.raises(LedgerError, match="Input/output error"):
            ledger.head()
        with pytest.raises((LedgerError, CannotWrite), match="Input/output error"):
            ledger.reserve("patients", PureDP(0.125))
    assert len(ledger.events()) == 4


@pytest.mark.parametrize("call", ["flock", "close"])
def test_mark_that_cannot_be_let_go_loses_no_event(path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unlocking and closing come when everything is on disk."""
    module = mark.fcntl if call == "flock" else mark.os
    real = getattr(module, call)

    def fails(handle: int, *operation: int) -> None:
        real(handle, *operation)
        if call == "close" or operation == (mark.fcntl.LOCK_UN,):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    ledger = Ledger.open(path)
    with monkeypatch.context() as patch:
        patch.setattr(module, call, fails)
        reservation = ledger.reserve("patients", PureDP(0.125))
    assert ledger.head() == reservation.head
