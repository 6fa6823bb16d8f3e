"""The mark of a SQLite ledger: the file ``<ledger>.mark``, which says how far the history has come.

SQLite finds the journal of an interrupted transaction by the path of the database. Suppose a process dies under one path
and another process spends under a second path to the same file, where there is no journal. Whoever opens the first path
next makes SQLite undo the second process's transactions. What remains is a shorter history whose chain is whole. Hard
links, a file mounted by itself (a usual way into a container) and a file moved without its journal all lead there.

The mark lies outside the database, so no journal undoes it. It holds the sequence number and the hash of the last event,
and it is on disk after the event and before `Storage.writing` returns. The rule for readers:

| the chain | what it means |
| --- | --- |
| ends at the mark, or goes on after it | normal: a process may die between the commit and the mark |
| ends before the mark, or has another event there | acknowledged spends are lost: refused |
| says that a mark is kept, and there is none | reached under another path, or moved without its mark: refused |

The mark names the inode of the ledger's file and its own, so a copy is not taken for the ledger. Device numbers are not
compared: they change when a machine restarts and inside containers.

The mark's file lock (flock) is held from before the comparison until the new mark is on disk, so marks are written in the
order of the commits. The file has two slots with checksums, written in turn: a torn write leaves the other slot.

What the mark cannot notice: a ledger and a mark that are both put back byte for byte into the same files, or a snapshot of
the whole disk that is put back. The heads on certificates show that (`Ledger.verify(head=...)`).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from shlex import quote
from typing import Protocol

from onedraw.errors import CannotWrite, LedgerError, WrongCall

from .events import START, Position, Row, canonical

SLOT_BYTES = 4096
READ_ATTEMPTS = 3
WAIT_SECONDS = 60
NO_FILE = -1
"""The inode that no file has."""


@dataclass(frozen=True)
class Mark:
    """How far a ledger has come, in which file. ``moved_to`` and ``moved_from`` are set while it is moved."""

    sequence: int
    head: str
    ledger_inode: int
    mark_inode: int
    generation: int = 1
    moved_to: str = ""
    moved_from: str = ""

    @property
    def position(self) -> Position:
        return Position(self.sequence, self.head)


@dataclass
class HeldMark:
    """A mark's file that is open for writing and locked."""

    handle: int
    mark: Mark
    name: str

    def advance(self, position: Position) -> None:
        """Write the position of an event that was just committed, and wait until it is on disk."""
        try:
            self.write(replace(self.mark, sequence=position.sequence, head=position.hash))
        except OSError as error:
            raise CannotWrite(
                f"The mark {self.name} cannot be written ({error.strerror}). Event {position.sequence} stands in the ledger "
                "and counts as spent. Nothing was drawn. Repair the disk before you release anything else."
            ) from error

    def write(self, mark: Mark) -> None:
        """Replace the older of the two slots by this mark, one generation on."""
        mark = replace(mark, generation=self.mark.generation + 1)
        slot = _encoded(mark)
        if os.pwrite(self.handle, slot, SLOT_BYTES * (mark.generation % 2)) != len(slot):
            raise OSError(0, "the disk took only a part of it")
        _sync(self.handle)
        self.mark = mark


@dataclass(frozen=True)
class MarkFile:
    """The file that a ledger's mark is in."""

    path: str

    @staticmethod
    def beside(ledger: str) -> MarkFile:
        """Return the mark's file for a ledger's path; symbolic links lead to the same one."""
        return MarkFile(f"{os.path.realpath(ledger)}.mark")

    def read(self) -> Mark | None:
        """Return the mark, or None if there is no such file."""
        for _ in range(READ_ATTEMPTS):  # a reader can meet a slot that is being written
            try:
                handle = os.open(self.path, os.O_RDONLY)
                try:
                    mark = _newest(handle)
                finally:
                    _close(handle)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise LedgerError(
                    f"The mark {self.path} cannot be read ({error.strerror}). Nothing was charged. Give it the same owner and "
                    "rights as the ledger's file."
                ) from error
            if mark is not None:
                return mark
        raise LedgerError(
            f"The mark {self.path} is damaged or is not the mark of a ledger. Nothing was charged. Compare the ledger's head "
            "with the latest certificate, then accept the ledger with `onedraw ledger restore`."
        )

    def begin(self, position: Position, ledger_inode: int, mode: int, *, moved_from: str = "") -> Mark:
        """Make the file, all or nothing, in place of any mark that stands there. Only under the ledger's lock."""
        fresh = f"{self.path}.new"
        try:
            with suppress(FileNotFoundError):
                os.unlink(fresh)
            handle = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            try:
                os.fchmod(handle, mode & 0o666)
                own = os.fstat(handle).st_ino
                mark = Mark(position.sequence, position.hash, ledger_inode, own, moved_from=moved_from)
                slot = _encoded(mark)
                # Both slots are laid out now, so that a full disk cannot stop a later mark.
                os.pwrite(handle, bytes(SLOT_BYTES) + slot, 0)
                _sync(handle)
            finally:
                os.close(handle)
            os.rename(fresh, self.path)
            sync_folder(self.path)
        except OSError as error:
            raise CannotWrite(
                f"The mark {self.path} cannot be written ({error.strerror}), and a ledger without one may lose spends. "
                "Nothing was charged. Make its folder writable."
            ) from error
        return mark

    @contextmanager
    def held(self) -> Iterator[HeldMark]:
        """Lock the mark's file; the block may then advance it."""
        try:
            handle = os.open(self.path, os.O_RDWR)
        except OSError as error:
            raise CannotWrite(
                f"The mark {self.path} cannot be written ({error.strerror}), and a spend counts only with its mark. Nothing "
                "was charged. Give it the same owner and rights as the ledger's file."
            ) from error
        try:
            self._lock(handle)
            mark = _newest(handle) or self.read()
            if mark is None:
                raise LedgerError(f"The mark {self.path} disappeared. Nothing was charged. Try again.")
            yield HeldMark(handle, mark, self.path)
        finally:
            # Closing would not be enough: a child that another thread forked meanwhile has the lock too.
            with suppress(OSError):  # what was written is on disk already
                fcntl.flock(handle, fcntl.LOCK_UN)
            _close(handle)

    def _lock(self, handle: int) -> None:
        end = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise LedgerError(
                        f"The mark {self.path} has been locked by another process for more than {WAIT_SECONDS} seconds. "
                        "Nothing was charged. See which process holds it, end it if it hangs, and try again."
                    ) from None
                time.sleep(0.001)


def _encoded(mark: Mark) -> bytes:
    text = canonical(asdict(mark))
    line = f"{text} {hashlib.sha256(text.encode()).hexdigest()}\n".encode("ascii")
    if len(line) > SLOT_BYTES:
        raise WrongCall("The path of a ledger is too long to be written down. Choose a shorter one.")
    return line.ljust(SLOT_BYTES)


def _newest(handle: int) -> Mark | None:
    """Return the newer of the slots that are whole; None if neither is."""
    content, own = os.pread(handle, 2 * SLOT_BYTES, 0), os.fstat(handle).st_ino
    marks = [_decoded(content[start : start + SLOT_BYTES]) for start in (0, SLOT_BYTES)]
    whole = [mark for mark in marks if mark is not None]
    newest = max(whole, key=lambda mark: mark.generation, default=None)
    if newest is not None and newest.mark_inode != own:
        return replace(newest, ledger_inode=NO_FILE)  # a copy of a mark
    return newest


def _decoded(slot: bytes) -> Mark | None:
    text, _, digest = slot.rstrip().rpartition(b" ")
    if not text or hashlib.sha256(text).hexdigest().encode() != digest:
        return None
    try:
        return Mark(**json.loads(text))
    except (TypeError, ValueError):
        return None


def _close(handle: int) -> None:
    """Close a file that was read, or synced: where this fails nothing is lost."""
    with suppress(OSError):
        os.close(handle)


def _sync(handle: int) -> None:
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: make a sync reach the platter
    if full is None:
        os.fsync(handle)
    else:
        fcntl.fcntl(handle, full)


def sync_folder(path: str) -> None:
    """Wait until the names in the folder of ``path`` are on disk."""
    handle = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# What can be seen of a ledger's file without opening it.

REFUSE_WHAT_IS_SEEN = True
"""Tests alone switch this off, to show that the mark by itself loses no spend silently."""
MOUNTS = "/proc/self/mountinfo"


def check_one_path(path: str) -> None:
    """Refuse a file that can be reached under a second path: SQLite would look for its journal in two places."""
    if not REFUSE_WHAT_IS_SEEN or not os.path.exists(path):
        return
    links = os.stat(path).st_nlink
    if links > 1:
        raise LedgerError(
            f"The ledger at {path} has {links} names (hard links). If a process dies under one name, spends under another can "
            "be lost. Nothing was charged. Keep one name and remove the others; use `onedraw ledger move` to rename a ledger."
        )
    if is_mounted(path):
        raise LedgerError(
            f"The ledger at {path} is mounted as a single file, so its journal and its mark lie elsewhere. If a process dies, "
            "spends can be lost. Nothing was charged. Mount the folder that holds the ledger, not the file."
        )


def is_mounted(path: str) -> bool:
    """Whether the file itself is a mount point, as ``docker run -v ledger.db:/data/ledger.db`` makes it."""
    real = os.path.realpath(path)
    try:
        with open(MOUNTS, "rb") as table:
            lines = table.read().splitlines()
    except OSError:  # no Linux; there a mount of one file has another device than its folder
        return os.path.ismount(real)
    name = os.fsencode(real)
    for mark, written in ((b"\\", b"\\134"), (b" ", b"\\040"), (b"\t", b"\\011"), (b"\n", b"\\012")):
        name = name.replace(mark, written)
    return any(line.split(b" ", 5)[4:5] == [name] for line in lines)


class Chain(Protocol):
    """What a mark is compared with: the events of a ledger, as one writer or reader sees them."""

    def rows(self, start: int, count: int) -> list[Row]: ...

    def last(self) -> Position: ...

    def says_marked(self) -> bool: ...


def compare(place: str, mark: Mark | None, inode: int, chain: Chain) -> None:
    """Refuse a chain that is not the one its mark has seen."""
    if mark is None:
        if chain.says_marked():
            raise LedgerError(
                f"The ledger at {place} has no mark ({place}.mark), so it cannot be checked that no spend is missing: it was "
                "copied or moved without it, or this is another path to it. Nothing was charged. If you moved it by hand, move "
                f"its .mark and its -journal too. To accept a copy or a backup, run `onedraw ledger restore {quote(place)}`."
            )
        return
    check_not_moved(place, mark)
    if mark.ledger_inode != inode and (REFUSE_WHAT_IS_SEEN or mark.ledger_inode == NO_FILE):
        raise LedgerError(
            f"The file at {place} is not the file that its mark belongs to: it is a copy, a restored backup, or was moved to "
            "another disk. Spends may be missing from it, or be made in the other file. Nothing was charged. To move a ledger, "
            f"use `onedraw ledger move OLD NEW`. To accept this file, run `onedraw ledger restore {quote(place)}`. To look at a copy, "
            "give its URL: sqlite:///PATH?mode=ro."
        )
    if mark.position == START:
        return
    row = next(iter(chain.rows(mark.sequence, 1)), None)
    if row is None or row[0] != mark.sequence:
        last = chain.last().sequence
        raise LedgerError(
            f"The ledger at {place} ends at event {last}, but its mark has seen event {mark.sequence}: "
            f"{count_of_events(mark.sequence - last)} lost, spends perhaps among them. An older copy was put back, or the "
            "ledger was used under two paths. Nothing was charged. Put the newer ledger back. If it no longer exists, see "
            f"`onedraw ledger restore --help`."
        )
    if row[-1] != mark.head:
        raise LedgerError(
            f"The ledger at {place} has another event {mark.sequence} than its mark has seen: this is another history, and "
            "spends may be missing. Nothing was charged. Put back the ledger that the mark belongs to, or see "
            f"`onedraw ledger restore --help`."
        )


def count_of_events(count: int) -> str:
    """Return "1 event is" or "2 events are", for messages."""
    return "1 event is" if count == 1 else f"{count} events are"


def check_not_moved(place: str, mark: Mark) -> None:
    """Refuse a ledger that has left for another path, or has not arrived yet."""
    if mark.moved_to:
        raise LedgerError(
            f"The ledger at {place} was moved to {mark.moved_to}. Nothing was charged. Use it there. If the move was "
            f"interrupted, run `onedraw ledger move {quote(place)} {quote(mark.moved_to)}` again. Delete {place}.mark only to begin another "
            "ledger under this name."
        )
    if mark.moved_from:
        raise LedgerError(
            f"The ledger at {place} is still being moved from {mark.moved_from}. Nothing was charged. If the move was "
            f"interrupted, run `onedraw ledger move {quote(mark.moved_from)} {quote(place)}` again."
        )
