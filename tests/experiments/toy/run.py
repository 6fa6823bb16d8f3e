"""A study for the tests of the runner: cells that sleep, count, fail or fall ill as they are told."""

from __future__ import annotations

import os
import signal
import time

from experiments.figures import lines
from experiments.study import Study, grid, means


def run(*, seeds, cell, seconds=0.0, fate=None):
    time.sleep(seconds)
    if fate == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fate == "interrupted":
        raise KeyboardInterrupt
    return [{"seed": seed, "value": cell + 0.01 * seed, "words": f"cell {cell}"} for seed in seeds]


def quantities(table):
    return means(table, "value", by=("cell",))


def figures(table):
    return {"value": lines(table, x="seed", y="value", by="cell", log="")}


def study(cells, **options):
    return Study(
        "toy", "Cells are what they are", "no paper", run, cells=cells, quick=cells[:1], quantities=quantities,
        **{"figures": figures, "findings": lambda table: [f"{table.rows} rows."], "seeds": 3, "quick_seeds": 1} | options,
    )  # fmt: skip


STUDIES = (study(grid(cell=[1, 2, 3])),)
