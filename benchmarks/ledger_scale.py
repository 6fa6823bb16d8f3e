"""How long a ledger with many different promises takes to read, to show and to spend from; prints a table.

Every promise differs, as it does when releases have different n: nothing can be counted instead of read.

    python benchmarks/ledger_scale.py [--events 100000]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from onedraw.ledger import Kind, Ledger
from onedraw.ledger.events import Position, new_event
from onedraw.ledger.storage import storage_at
from onedraw.privacy import ApproxDP, PureDP

ALLOWED = {"cold read": 15.0, "ledger show": 15.0, "reservation": 1.0, "reservation, under the lock": 1.0}
RESERVED = {"gamma": 0.0, "part": None, "seeded": False, "label": "", "plan": ""}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    count = parser.parse_args().events
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "ledger.db"
        fill(place, count)
        taken = measured(place)
    print(
        f"| {count:,} different promises | seconds | of a processor | allowed for 100,000 |\n| --- | --- | --- | --- |"
    )
    for what, (seconds, busy) in taken.items():
        print(f"| {what} | {seconds:.2f} | {busy:.2f} | {ALLOWED[what]:g} |")


def fill(place: Path, count: int) -> None:
    """A ledger with ``count`` reservations, no two alike, written in one transaction."""
    ledger = Ledger.open(place, create=True)
    ledger.init("patients", ApproxDP(3.0, 1e-5))
    last = ledger.events()[-1]
    position = Position(last.sequence, last.hash)
    with storage_at(place).writing() as writer:
        for number in range(count):
            promise = PureDP(1e-3 * (1.0 + number / count)).to_dict()
            content = {**RESERVED, "promise": promise}
            event = new_event(position, Kind.RESERVED, entry=f"{number:032x}", dataset="patients", content=content)
            writer.append(event)
            position = Position(event.sequence, event.hash)


def measured(place: Path) -> dict[str, tuple[float, float]]:
    ledger = Ledger.open(place)
    read = clocked(lambda: ledger.remaining("patients"))
    spend = clocked(lambda: ledger.reserve("patients", PureDP(1e-4)))
    with ledger._turn() as turn:
        account = turn.accounts.by_name["patients"]
        locked = clocked(lambda: account.has_room_for(PureDP(1e-4)))
    show = [sys.executable, "-c", "from onedraw.cli import main; main()", "ledger", "show", str(place)]
    shown = clocked(lambda: subprocess.run(show, check=True, stdout=subprocess.DEVNULL))
    return {"cold read": read, "ledger show": shown, "reservation": spend, "reservation, under the lock": locked}


def clocked(task: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the wall, and of a processor: the first also counts what else the machine is doing."""
    start, before = time.perf_counter(), os.times()
    task()
    after = os.times()
    return time.perf_counter() - start, sum(after[:4]) - sum(before[:4])


if __name__ == "__main__":
    main()
