"""A second path to one ledger, and processes that die under the first. Also run as a script by test_two_paths.py.

Run as a script it prints how 300 kills ended. It imports once and forks, so that a kill costs milliseconds:

    two_paths.py study WAY KILLS CHECKS    CHECKS: all, mark (what can be seen is not refused), none (the planted fault)
    two_paths.py one-path KILLS
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from onedraw.errors import LedgerError
from onedraw.ledger import Kind, Ledger
from onedraw.privacy import PureDP

SPEND = PureDP(2.0**-20)
DISK = tempfile.gettempdir()
"""Not in memory: while a process waits for a disk it is met in the middle of a transaction."""
WAYS = ("hard link", "bind mount", "move")


def begin(path: Path) -> None:
    Ledger.open(path, create=True).init("patients", PureDP(1.0))


def die_while_reserving(path: Path) -> None:
    """Leave what a process leaves that dies before its commit: a hot journal beside an unchanged file.

    Without synchronization SQLite writes a journal that is valid from the start.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO onedraw_events SELECT sequence + 1, 'e', 'closed', 'patients', '{}', hash, 'h' FROM onedraw_events "
        "ORDER BY sequence DESC LIMIT 1"
    )
    journal = Path(f"{path}-journal").read_bytes()
    connection.execute("ROLLBACK")
    connection.close()
    Path(f"{path}-journal").write_bytes(journal)


def may_mount() -> bool:
    """Whether this process is allowed to mount one file on another."""
    with tempfile.TemporaryDirectory() as folder:
        here, there = Path(folder, "here"), Path(folder, "there")
        here.touch()
        there.touch()
        if subprocess.run(["mount", "--bind", here, there], capture_output=True, check=False).returncode:
            return False
        subprocess.run(["umount", there], check=True)
        return True


@contextmanager
def second_path(way: str, path: Path, *, with_mark: bool) -> Iterator[Path]:
    """Reach the ledger under another path for the length of the block; its journal is never there."""
    other = path.parent / "other" / path.name
    other.parent.mkdir(exist_ok=True)
    pairs = [(path, other)]
    if with_mark and Path(f"{path}.mark").exists():
        pairs.append((Path(f"{path}.mark"), Path(f"{other}.mark")))
    for old, new in pairs:
        if way == "hard link":
            os.link(old, new)
        elif way == "move":
            os.rename(old, new)
        else:
            new.touch()
            subprocess.run(["mount", "--bind", old, new], check=True)
    try:
        yield other
    finally:
        for old, new in pairs:
            if way == "move":
                os.rename(new, old)
            elif way == "bind mount":
                subprocess.run(["umount", new], check=True)
        for name in other.parent.iterdir():
            name.unlink()


def spend(path: Path, times: int) -> list[str]:
    """Return the entries whose reservation was acknowledged, until one is refused."""
    acknowledged: list[str] = []
    with suppress(LedgerError):
        ledger = Ledger.open(path)
        while len(acknowledged) < times:
            acknowledged.append(ledger.reserve("patients", SPEND).entry)
    return acknowledged


def outcome(path: Path, acknowledged: list[str]) -> str:
    """Say what became of acknowledged spends when the ledger is opened under its first path again."""
    try:
        ledger = Ledger.open(path)
        there = {event.entry for event in ledger.events("patients") if event.kind == Kind.RESERVED}
        if not ledger.verify():
            return "refused loudly"
        ledger.reserve("patients", SPEND)
    except LedgerError:
        return "refused loudly"
    if not set(acknowledged) <= there:
        return "lost silently"
    return "kept" if acknowledged else "nothing spent"


def spend_and_return(way: str, path: Path, *, with_mark: bool) -> str:
    """Spend three times under a second path, go back to the first, and say what became of the spends."""
    with second_path(way, path, with_mark=with_mark) as other:
        acknowledged = spend(other, 3)
    return outcome(path, acknowledged)


# Studies: real processes, killed at random moments.


def kill_while_spending(path: Path, moment: float, *, in_transaction: bool) -> list[str]:
    """Kill a process that reserves without end; return what was acknowledged to it.

    ``in_transaction``: after the moment wait until a journal stands, so that more of the kills leave a hot one.
    """
    ledger = Ledger.open(path)
    ledger.remaining("patients")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        while True:
            os.write(writer, f"{ledger.reserve('patients', SPEND).entry}\n".encode())
    os.close(writer)
    os.read(reader, 1)  # it has begun
    time.sleep(moment)
    end = time.monotonic() + 0.1
    while in_transaction and not os.path.exists(f"{path}-journal") and time.monotonic() < end:
        pass
    time.sleep(moment / 20 if in_transaction else 0.0)  # from there on anywhere in the transaction
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader) as lines:
        return lines.read().splitlines()[1:]


def is_hot(path: Path) -> bool:
    journal = Path(f"{path}-journal")
    return journal.exists() and journal.read_bytes()[:8] == bytes.fromhex("d9d505f920a163d7")


def study(way: str, kills: str, checks: str) -> Counter[str]:
    """Count how kills under one path end for spends under another. Every second time the mark is there as well."""
    switch_off(checks)
    seed = random.SystemRandom().randrange(10**6)
    moments, counts = random.Random(seed), Counter({"seed of the moments": seed})
    for number in range(int(kills)):
        with tempfile.TemporaryDirectory(dir=DISK) as folder:
            path = Path(folder) / "ledger.db"
            begin(path)
            first = kill_while_spending(path, moments.uniform(0.0, 0.01), in_transaction=moments.random() < 0.5)
            counts["kills"] += 1
            counts["hot journals"] += is_hot(path)
            with second_path(way, path, with_mark=bool(number % 2)) as other:
                acknowledged = spend(other, 3)
            counts[
                outcome(path, first + acknowledged) if acknowledged else f"{outcome(path, first)}, second path refused"
            ] += 1
    return counts


def switch_off(checks: str) -> None:
    """Switch off what the study is to do without. Versions before the mark have nothing to switch off."""
    if checks == "all" or find_spec("onedraw.ledger.mark") is None:
        return
    from onedraw.ledger import mark, relocation, storage

    mark.REFUSE_WHAT_IS_SEEN = False
    if checks == "none":
        for module in (mark, relocation, storage):
            module.compare = lambda *_: None  # type: ignore[attr-defined]


def one_path(kills: str) -> Counter[str]:
    """Count how often a ledger is refused after a process was killed under its only path."""
    seed = random.SystemRandom().randrange(10**6)
    moments, counts = random.Random(seed), Counter({"seed of the moments": seed})
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        path, acknowledged = Path(folder) / "ledger.db", list[str]()
        begin(path)
        for _ in range(int(kills)):
            acknowledged += kill_while_spending(path, moments.uniform(0.0, 0.01), in_transaction=moments.random() < 0.5)
            counts["kills"] += 1
            counts["hot journals"] += is_hot(path)
            counts[outcome(path, [])] += 1
        counts[f"in the end {outcome(path, acknowledged)}"] += 1
    return counts


if __name__ == "__main__":
    print(json.dumps({"study": study, "one-path": one_path}[sys.argv[1]](*sys.argv[2:])))
