"""What can befall a statistic at a worker, who sees it by its own import of this file."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onedraw.data.sums import Statistic

AT_A_WORKER = "ONEDRAW_WORKER" in os.environ


def new_file(path: str) -> bool:
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class Totals(Statistic):
    """Sums of two columns, the codes of a third, and the records."""

    columns: tuple[str, ...] = ("age", "visits", "region")

    def bound(self) -> float:
        return 2.0**30

    def of_block(self, age, visits, region, weight):
        return np.array([(np.rint(age * 2**20) * weight).sum(), visits @ weight, region @ weight, weight.sum()])


@dataclass(frozen=True)
class Unlucky(Statistic):
    """A statistic of the library's, and what befalls the first worker that is asked for it."""

    statistic: Any
    flag: str

    @property
    def columns(self) -> tuple[str, ...]:
        return self.statistic.columns

    def bound(self, *public: Any) -> float:
        return self.statistic.bound(*public)

    def of_block(self, *block: Any) -> Any:
        found = self.statistic.of_block(*block)
        return self.befalls(found) if AT_A_WORKER else found

    def befalls(self, found: Any) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class KillsItsExecutor(Unlucky):
    """Whoever comes first kills the Java process it works for."""

    def befalls(self, found: Any) -> Any:
        if new_file(self.flag):
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
            os.kill(int(daemon[1]), signal.SIGKILL)  # this process's parent's parent
            time.sleep(60)
        return found


@dataclass(frozen=True)
class RunsTwice(Unlucky):
    """The first attempt at part 0 fails after it has added up, so that Spark makes a second one."""

    def befalls(self, found: Any) -> Any:
        from pyspark import TaskContext

        part, attempt = TaskContext.get().partitionId(), TaskContext.get().attemptNumber()
        assert part or not new_file(f"{self.flag}-{attempt}") or attempt, "the first attempt at part 0"
        return found


@dataclass(frozen=True)
class OtherArithmetic(Unlucky):
    """A worker whose processor rounds the last bit otherwise."""

    def befalls(self, found: Any) -> Any:
        return np.asarray(found) + 1
