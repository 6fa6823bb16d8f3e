"""A ledger with many different promises is read in one pass; benchmarks/ledger_scale.py measures a hundred thousand."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from onedraw.ledger import Kind, Ledger
from onedraw.ledger.events import Position, new_event
from onedraw.ledger.storage import storage_at
from onedraw.privacy import ApproxDP, PureDP

EVENTS = 6000
RESERVED = {"gamma": 0.0, "part": None, "seeded": False, "label": "", "plan": ""}


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    """Reservations of which no two are alike, as of releases with different n."""
    ledger = Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", ApproxDP(3.0, 1e-5))
    last = ledger.events()[-1]
    position = Position(last.sequence, last.hash)
    with storage_at(tmp_path / "ledger.db").writing() as writer:
        for number in range(EVENTS):
            content = {**RESERVED, "promise": PureDP(1e-3 * (1.0 + number / EVENTS)).to_dict()}
            event = new_event(position, Kind.RESERVED, entry=f"e{number}", dataset="patients", content=content)
            writer.append(event)
            position = Position(event.sequence, event.hash)
    return tmp_path / "ledger.db"


@pytest.mark.finding("B4")
def test_a_ledger_with_many_different_promises_is_read_and_spent_from_in_a_moment(ledger_file: Path) -> None:
    """A hundred thousand take 6.4 s of a processor, so these 0.4 s; the square of their number took 9 s and more."""
    ledger = Ledger.open(ledger_file)
    start = time.process_time()
    assert ledger.account("patients").reservations == EVENTS
    read = time.process_time()
    ledger.reserve("patients", PureDP(1e-4))
    assert ledger.remaining("patients").epsilon > 0
    end = time.process_time()
    print(f"{EVENTS} different promises: read in {read - start:.2f} s, spent from in {end - read:.2f} s")
    assert read - start < 3.0
    assert end - read < 1.5
