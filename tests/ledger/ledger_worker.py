"""Processes that spend from one ledger at the same time, or die while they do. Run as a script by the tests.

Imports once and forks, so that a process costs milliseconds; the ledger is opened before the fork on purpose.

    ledger_worker.py spend PLACE DATASET EPSILON PROCESSES TIMES   → accepted reservations, per process
    ledger_worker.py crash PLACE DATASET ROUNDS SEED ORDER         → what each killed process had reported
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time

from onedraw.errors import BudgetSpent
from onedraw.ledger import Ledger
from onedraw.privacy import PureDP


def spend(place: str, dataset: str, epsilon: str, processes: str, times: str) -> list[int]:
    """Every process tries ``times`` reservations as fast as it can; all begin at once."""
    ledger = Ledger.open(place)
    ledger.remaining(dataset)
    gate_reader, gate_writer = os.pipe()
    pipes = []
    for _ in range(int(processes)):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(gate_writer)
            os.read(gate_reader, 1)  # end of file when the parent opens the gate
            os.write(writer, str(accepted(ledger, dataset, float(epsilon), int(times))).encode())
            os._exit(0)
        os.close(writer)
        pipes.append(reader)
    os.close(gate_writer)
    counts = [int(os.read(reader, 100) or -1) for reader in pipes]
    for _ in pipes:
        os.wait()
    return counts


def accepted(ledger: Ledger, dataset: str, epsilon: float, times: int) -> int:
    count = 0
    for _ in range(times):
        try:
            ledger.reserve(dataset, PureDP(epsilon))
            count += 1
        except BudgetSpent:
            pass
    return count


def crash(place: str, dataset: str, rounds: str, seed: str, order: str) -> list[list[str]]:
    """Kill a spending process at a random moment, again and again; return the lines each had written."""
    moments = random.Random(seed)
    ledger = Ledger.open(place)
    longest = 6 * seconds_of_one_release(ledger, dataset)
    return [killed(ledger, dataset, moments.uniform(0.0, longest), order) for _ in range(int(rounds))]


def seconds_of_one_release(ledger: Ledger, dataset: str) -> float:
    """Moments are drawn on this scale, so that they fall into every step however busy the machine is."""
    start = time.perf_counter()
    for _ in range(5):
        ledger.settle(ledger.reserve(dataset, PureDP(2.0**-20)), "digest")
    return (time.perf_counter() - start) / 5


def killed(ledger: Ledger, dataset: str, moment: float, order: str) -> list[str]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, b".")
        keep_spending(ledger, dataset, writer, order)
    os.close(writer)
    os.read(reader, 1)  # it has begun
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader) as lines:
        return lines.read().splitlines()


def keep_spending(ledger: Ledger, dataset: str, writer: int, order: str) -> None:
    """Reserve, report, settle, report, until killed; ``report-first`` is the fault the test must see."""
    while True:
        if order == "report-first":
            os.write(writer, b"reserved before-its-time\n")
        reservation = ledger.reserve(dataset, PureDP(2.0**-20))
        if order == "reserve-first":
            os.write(writer, f"reserved {reservation.entry}\n".encode())
        ledger.settle(reservation, f"digest of {reservation.entry}")
        os.write(writer, f"settled {reservation.entry}\n".encode())


if __name__ == "__main__":
    print(json.dumps({"spend": spend, "crash": crash}[sys.argv[1]](*sys.argv[2:])))
