"""Many processes, and processes that die: the ledger never accepts too much and never loses a spend."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from onedraw.errors import BudgetSpent
from onedraw.ledger import Kind, Ledger
from onedraw.ledger.storage import Writer
from onedraw.privacy import PureDP

WORKER = Path(__file__).with_name("ledger_worker.py")
ROUNDS = 50


def run_worker(*arguments: object) -> Any:
    completed = subprocess.run(
        [sys.executable, str(WORKER), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


@pytest.mark.parametrize(
    ("epsilon", "budget", "allowed"),
    [(2.0**-7, 200 * 2.0**-7, {200}), (0.01, 2.0, {199, 200})],
    ids=["exact in binary", "rounded"],
)
def test_eight_processes_together_spend_the_budget_and_no_more(
    ledger: Ledger, place: str, epsilon: float, budget: float, allowed: set[int]
) -> None:
    ledger.init("patients", PureDP(budget))
    counts = run_worker("spend", place, "patients", epsilon, 8, 50)
    assert sum(counts) in allowed
    assert min(counts) >= 0
    kinds = [event.kind for event in ledger.events("patients")]
    assert kinds.count(Kind.RESERVED) == sum(counts)
    assert ledger.verify().ok
    with pytest.raises(BudgetSpent):
        ledger.reserve("patients", PureDP(epsilon))


def crash(ledger: Ledger, place: str, order: str) -> dict[str, list[str]]:
    """What processes had said they reserved and settled when they were killed, one after another."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed of the moments: {seed}")
    ledger.init("patients", PureDP(1.0))
    said: dict[str, list[str]] = {"reserved": [], "settled": []}
    for report in run_worker("crash", place, "patients", ROUNDS, seed, order):
        for line in report:
            verb, entry = line.split(" ", 1)
            said[verb].append(entry)
    return said


def test_no_spend_is_lost_when_processes_are_killed_at_random_moments(ledger: Ledger, place: str) -> None:
    said = crash(ledger, place, "reserve-first")
    events = ledger.events("patients")
    reserved = {event.entry for event in events if event.kind == Kind.RESERVED}
    settled = {event.entry for event in events if event.kind == Kind.SETTLED}
    assert set(said["reserved"]) <= reserved
    assert set(said["settled"]) <= settled <= reserved
    assert ledger.verify().ok
    assert ledger.spent("patients").epsilon(0.0) == len(reserved) * 2.0**-20
    # The moments do fall between reserve and settle: otherwise the test would have shown nothing.
    assert reserved - settled


def test_a_process_that_reports_before_it_reserves_is_caught(ledger: Ledger, place: str) -> None:
    """The planted fault: the same experiment must see a spend that was reported and then lost."""
    said = crash(ledger, place, "report-first")
    assert len(said["reserved"]) > ledger.account("patients").reservations


def test_threads_share_one_ledger(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(20 * 2.0**-7))
    accepted: list[int] = []

    def work() -> None:
        for _ in range(10):
            try:
                accepted.append(ledger.reserve("patients", PureDP(2.0**-7)).sequence)
            except BudgetSpent:
                continue

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(accepted) == len(set(accepted)) == 20
    assert ledger.verify().ok


@pytest.mark.finding("B4")
def test_a_history_is_read_before_the_writers_lock_is_taken(
    ledger: Ledger, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the lock a process reads what came since it last looked, however long the history is."""
    ledger.init("patients", PureDP(1.0))
    for _ in range(20):
        ledger.reserve("patients", PureDP(2.0**-7))
    rows, counts = Writer.rows, []

    def counted(self: Writer, start: int, *count: int) -> list[Any]:
        found = rows(self, start, *count)
        counts.append(len(found))
        return found

    monkeypatch.setattr(Writer, "rows", counted)
    Ledger.open(place).reserve("patients", PureDP(2.0**-7))
    assert counts[-1] == 1  # under the lock: the last event, to see that it still stands
