"""Statistics that misbehave at a worker, once: it sees them by its own import of this file."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

AT_A_WORKER = "ONEDRAW_WORKER" in os.environ


def new_file(path: str) -> bool:
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class Totals:
    """Sums of two columns, the codes of a third, and the records."""

    columns: tuple[str, ...] = ("age", "visits", "region")

    def bound(self) -> float:
        return 2.0**30

    def of_block(self, age, visits, region, weight):
        return np.array([(np.rint(age * 2**20) * weight).sum(), visits @ weight, region @ weight, weight.sum()])


@dataclass(frozen=True)
class KillsItsExecutor(Totals):
    """Whoever comes first kills the Java process it works for."""

    flag: str = ""

    def of_block(self, *block):
        if AT_A_WORKER and new_file(self.flag):
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
            os.kill(int(daemon[1]), signal.SIGKILL)  # this process's parent's parent
            time.sleep(60)
        return super().of_block(*block)


@dataclass(frozen=True)
class RunsTwice(Totals):
    """The first attempt at part 0 fails after it has added up, so that Spark makes a second one."""

    flag: str = ""

    def of_block(self, *block):
        found = super().of_block(*block)
        if AT_A_WORKER:
            from pyspark import TaskContext

            part, attempt = TaskContext.get().partitionId(), TaskContext.get().attemptNumber()
            assert part or not new_file(f"{self.flag}-{attempt}") or attempt, "the first attempt at part 0"
        return found


@dataclass(frozen=True)
class OtherArithmetic(Totals):
    """A worker whose processor rounds the last bit otherwise."""

    def of_block(self, *block):
        return super().of_block(*block) + (1 if AT_A_WORKER else 0)
