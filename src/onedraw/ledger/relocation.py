"""Ways out for a ledger that has to lie elsewhere: `move_ledger`, and `restore_ledger` for a copy or a backup.

**Moving.** The history is copied through SQLite, read back and compared, under the writer's lock of the old file. One write
then decides which file is the ledger: the old mark says ``moved_to``. Before it the new mark says ``moved_from``, so
nothing is spent there; after it nothing is spent under the old name. After a crash the same call goes on from where it was:

| state after a crash | the old ledger | the same call |
| --- | --- | --- |
| new mark ``moved_from``, old mark unchanged | in use as before | copies again from the start |
| old mark ``moved_to``, new mark ``moved_from`` | refused | compares the copy, begins its mark, removes the old file |
| old mark ``moved_to``, new mark begun | refused | removes the old file |

The old mark stays, so that nobody begins an empty ledger under the old name by accident.

**Restoring.** Accepts the file that stands at a path as the ledger, whatever its mark says. Spends that were made after the
copy was taken may be missing from it. So a head from outside must stand in it (of the latest certificate, say), and the
event that the mark has seen, if there is a mark; or the caller accepts the loss. The chain gets an event ``restored``. It
is written before the mark: after a crash between the two the ledger is still refused, and the same call begins again.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace

from onedraw.errors import CannotWrite, LedgerError

from .accounts import Accounts
from .database import BEFORE_ALL, Writer
from .events import START, Event, Kind, Position, broken, new_event, read_chain
from .mark import Mark, compare, count_of_events, sync_folder
from .storage import SQLiteStorage, storage_at


@dataclass(frozen=True)
class Restored:
    """Outcome of `restore_ledger`.

    ``lost`` is the number of events that the mark has seen and the file does not have; None if no mark was found.
    ``changed`` is false if the ledger agreed with its mark already.
    """

    events: int
    head: str
    lost: int | None
    changed: bool = True


# Moving.


def move_ledger(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> Position:
    """Move a SQLite ledger with its journal and its mark; return where its history ends."""
    source, target = _file_at(old), _file_at(new)
    if os.path.realpath(source.path) == os.path.realpath(target.path):
        raise LedgerError(f"{source.path} and {target.path} are the same ledger. Nothing was moved. Give a new name.")
    mark = source.mark.read()
    if mark is None or mark.moved_to != target.path:
        source.check(create=False)
        with source.connected(writing=True) as connection:
            writer = Writer(connection)
            source.take_turn(connection)  # SQLite has finished or undone what an earlier process left
            with source.marking(writer) as held:
                assert held is not None  # no ledger that is moved is read-only
                _clear(target, source)
                _copy(source, target, writer.last())
                held.write(replace(held.mark, moved_to=target.path))
                return _finish_move(source, target, held.mark)
    return _finish_move(source, target, mark)


def _file_at(place: str | os.PathLike[str]) -> SQLiteStorage:
    storage = storage_at(place)
    if not isinstance(storage, SQLiteStorage) or storage.read_only:
        raise LedgerError(
            f"{storage.name} is not a SQLite file that can be written, so there is nothing to move or to restore here. Nothing "
            "was changed. Give two paths. Entries are not moved between SQLite and PostgreSQL."
        )
    return storage


def _clear(target: SQLiteStorage, source: SQLiteStorage) -> None:
    """Make room for the copy: remove what an interrupted move left, and refuse anything else that stands there."""
    mark = target.mark.read()
    if mark is not None and mark.moved_from == source.path:
        for path in (target.path, f"{target.path}-journal"):
            with suppress(FileNotFoundError):
                os.unlink(path)
    back = mark is not None and bool(mark.moved_to)  # a ledger stood here once and was moved away
    ours = mark is None or mark.moved_from == source.path or back
    taken = [path for path in (target.path, f"{target.path}-journal") if os.path.lexists(path)]
    if taken or not ours:
        raise LedgerError(
            f"{(taken or [target.mark.path])[0]} exists already. Nothing was moved. Choose a name that no file has, or move "
            "that file away."
        )


def _copy(source: SQLiteStorage, target: SQLiteStorage, end: Position) -> None:
    """Copy the history to a file that is refused until its mark is begun; it is on disk when this returns."""
    mode = os.stat(source.path).st_mode
    target.mark.begin(end, 0, mode, moved_from=source.path)
    _backup(source, target)
    os.chmod(target.path, mode & 0o777)
    _check_end(target, end)


def _backup(source: SQLiteStorage, target: SQLiteStorage) -> None:
    # By SQLite alone: closing another handle would drop this process's locks on the file.
    try:
        with closing(source.connect()) as old, closing(target.connect("rwc")) as new:
            old.backup(new)
        sync_folder(target.path)
    except (sqlite3.Error, OSError) as error:
        raise CannotWrite(
            f"{source.path} cannot be copied to {target.path} ({error}). {source.path} is as it was. Free some space or choose "
            "another place, and try again."
        ) from error


def _check_end(storage: SQLiteStorage, end: Position) -> list[Event]:
    """Read the whole history back and refuse one that does not hold the event at ``end``."""
    events = list(read_chain(storage.stored_rows()))
    if len(events) < end.sequence or events[end.sequence - 1].hash != end.hash:
        raise LedgerError(
            f"The copy at {storage.path} is not whole: it does not hold event {end.sequence} of the ledger. The ledger that it "
            "was made from is still there. Check the disk, remove the copy and its .mark, and try again."
        )
    return events


def _finish_move(source: SQLiteStorage, target: SQLiteStorage, mark: Mark) -> Position:
    """Begin the mark of the new ledger if it has none, then remove the old file."""
    arrived = target.mark.read()
    if arrived is None:
        raise LedgerError(
            f"The ledger at {source.path} was moved to {target.path}, but its mark is missing there. Nothing was removed. If "
            f"the ledger has been moved on, use it there. Otherwise run `onedraw ledger restore {target.path}`."
        )
    events = _check_end(target, mark.position)
    if arrived.moved_from:
        target.mark.begin(mark.position, target.inode, os.stat(target.path).st_mode)
    else:
        target.rows(mark.sequence, 1)  # compares it with its mark
    if os.path.lexists(source.path) and os.stat(source.path).st_ino == mark.ledger_inode:
        os.unlink(source.path)
        with suppress(FileNotFoundError):
            os.unlink(f"{source.path}-journal")
        sync_folder(source.path)
    return Position(events[-1].sequence, events[-1].hash)


# Restoring.


def restore_ledger(
    place: str | os.PathLike[str], *, backup: str | os.PathLike[str] | None = None, heads: Iterable[str] = (),
    accept_lost_spends: bool = False,
) -> Restored:  # fmt: skip
    """Accept the file at ``place`` as the ledger, or first put a copy of ``backup`` there."""
    storage, confirmed = _file_at(place), tuple(heads)
    mark = _mark_or_none(storage)

    def confirm(path: str, events: Sequence[Event]) -> None:
        if not accept_lost_spends:
            _check_confirmed(path, events, mark, confirmed)

    if backup is not None:
        _bring(storage_at(backup), storage, confirm)
    if not os.path.lexists(storage.path):
        raise LedgerError(
            f"There is no file at {storage.path}. Nothing was changed. Give the backup: `onedraw ledger restore "
            f"{storage.path} --backup FILE`."
        )
    storage.check(create=False)
    with storage.connected(writing=True) as connection:
        writer = Writer(connection)
        storage.take_turn(connection)
        events = list(read_chain(writer.rows(BEFORE_ALL)))
        end = Accounts().after(events).position  # reads what every event says
        if end == START:
            raise broken(1, "it is missing")
        if mark is not None and _agrees(storage, mark, writer):
            return Restored(end.sequence, end.hash, 0, changed=False)
        confirm(storage.path, events)
        known = None if mark is None else {"sequence": mark.sequence, "head": mark.head}
        content = {"mark": known, "heads": list(confirmed)}
        event = new_event(end, Kind.RESTORED, entry=uuid.uuid4().hex, dataset="", content=content)
        writer.append(event)
        connection.commit()
        storage.mark.begin(Position(event.sequence, event.hash), storage.inode, os.stat(storage.path).st_mode)
    return Restored(event.sequence, event.hash, None if mark is None else _lost(events, mark))


def _mark_or_none(storage: SQLiteStorage) -> Mark | None:
    try:
        return storage.mark.read()
    except LedgerError:  # damaged: as good as missing
        return None


def _agrees(storage: SQLiteStorage, mark: Mark, writer: Writer) -> bool:
    try:
        compare(storage.path, mark, storage.inode, writer)
    except LedgerError:
        return False
    return True


def _lost(events: Sequence[Event], mark: Mark) -> int:
    """Return how many events the mark has seen at least that are not in this history."""
    if not mark.sequence or (len(events) >= mark.sequence and events[mark.sequence - 1].hash == mark.head):
        return 0
    return max(1, mark.sequence - len(events))


def _check_confirmed(path: str, events: Sequence[Event], mark: Mark | None, heads: Sequence[str]) -> None:
    """Refuse a history from which spends may be missing, unless what is known from outside stands in it."""
    known = {event.hash for event in events}
    here = f"The file at {path} ends at event {len(events)}, head {events[-1].hash}."
    way = "Or accept with --accept-lost-spends that spends are missing from the ledger."
    if mark is not None and (mark.moved_to or mark.moved_from):
        other = mark.moved_to or mark.moved_from
        raise LedgerError(
            f"{here} Its mark says that the ledger lies at {other}. Nothing was changed. Use the ledger there, or finish its "
            f"move. {way}"
        )
    if mark is not None and _lost(events, mark):
        raise LedgerError(
            f"{here} Its mark has seen event {mark.sequence}, head {mark.head}, which is not in it: at least "
            f"{count_of_events(_lost(events, mark))} lost. Nothing was changed. Look for a newer copy. {way}"
        )
    missing = [head for head in heads if head not in known]
    if missing:
        raise LedgerError(
            f"{here} It does not hold the head {missing[0]}, so spends are lost. Nothing was changed. Look for a newer copy. {way}"
        )
    if not heads:
        raise LedgerError(
            f"{here} Nothing shows that it is the newest copy. Nothing was changed. Give the head of the latest certificate or "
            f"one that was written down (--head HASH). {way}"
        )


def _bring(backup: object, storage: SQLiteStorage, confirm: Callable[[str, Sequence[Event]], None]) -> None:
    """Put a copy of a confirmed backup where no file is; do nothing if an earlier call has put it there."""
    if not isinstance(backup, SQLiteStorage):
        raise LedgerError("A backup of a SQLite ledger is a file. Nothing was changed. Give its path.")
    copied = replace(backup, read_only=True)
    events = list(read_chain(copied.stored_rows()))
    if not events:
        raise broken(1, "it is missing")
    if os.path.lexists(storage.path):
        there = list(read_chain(storage.stored_rows()))
        later = there[len(events) :]
        if there[: len(events)] == events and all(event.kind == Kind.RESTORED for event in later):
            return
        raise LedgerError(
            f"{storage.path} exists already. Nothing was changed. Move it away with its -journal, and keep it: it may hold "
            "spends that the backup lacks. Its .mark stays: it tells what is lost."
        )
    if os.path.lexists(f"{storage.path}-journal"):
        raise LedgerError(
            f"A journal without its ledger stands at {storage.path}-journal. SQLite would apply it to the backup. Nothing was "
            "changed. Move it to the ledger that it belongs to, or remove it."
        )
    confirm(copied.path, events)
    fresh = replace(storage, path=f"{storage.path}.restoring")
    for path in (fresh.path, f"{fresh.path}-journal"):
        with suppress(FileNotFoundError):
            os.unlink(path)
    _backup(copied, fresh)
    os.chmod(fresh.path, 0o600)
    _check_end(fresh, Position(events[-1].sequence, events[-1].hash))
    os.rename(fresh.path, storage.path)
    sync_folder(storage.path)
