"""The study of feasibility: the metrics of Barrientos et al. (JASA 2023) for wage regressions on another table.

What is computed stands in releases.py, the metrics in metrics.py, sentences in findings.py; claims and what was found in README.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from experiments.feasibility import releases
from experiments.feasibility.findings import state_findings
from experiments.feasibility.metrics import CELL, MEDIANS, SHARES, compare, summaries
from experiments.feasibility.wages import FILE, INTERCEPT, REGRESSIONS, WHOLE
from experiments.figures import lines
from experiments.study import Quantity, Study, Table, grid, named

EPSILONS = [0.5, 1.0, 5.0, 10.0, 20.0]
SIZES = ["2000", "5000", "10000", WHOLE]
SHOWN = "women cubic"
"""The regression of the figures."""


def quantities(table: Table) -> dict[str, Quantity]:
    """Return every metric of every coefficient, named by its cell; shares with their standard error."""
    quantities: dict[str, Quantity] = {}
    for cell, found in summaries(table):
        values = {name: _plain(cell[name]) for name in CELL}
        quantities |= {named(metric, **values): found[metric] for metric in MEDIANS}
        quantities |= {named(metric, **values): _with_error(found, metric) for metric in SHARES}
    return quantities


def _with_error(found: Mapping[str, float], metric: str) -> tuple[float, float]:
    """Return a share and its standard error; coverage is a share of the intervals that are given."""
    counts = {"covers": found["repetitions"] * found["given"], "covers reached": found["judged"]}
    share, count = found[metric], counts.get(metric, found["repetitions"])
    return share, math.sqrt(share * (1.0 - share) / count) if count else math.nan


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def figures(table: Table) -> dict[str, Any]:
    """Return the shares with the same sign and significance: by method, and of the default fit by size."""
    labels = {
        "epsilon": "ε promised", "same": "share in agreement", "term": "column", "size": "records"
    }  # fmt: skip
    chosen = table.where(regression=SHOWN)
    names = (*CELL, "same")
    long = Table({**{name: chosen[name] for name in CELL}, "same": compare(chosen)["same"]})
    slopes = Table({name: long[name][long["term"] != INTERCEPT] for name in names})
    sizes = slopes.values("size")
    methods = slopes.where(size=WHOLE if WHOLE in sizes else sizes[-1])
    return {
        "methods": lines(methods, x="epsilon", y="same", by="method", panel="term", labels=labels),
        "sizes": lines(slopes.where(method="onedraw"), x="epsilon", y="same", by="size", panel="term", labels=labels),
    }


STUDIES = (
    Study(
        name="feasibility",
        claim="Private wage regressions come to the conclusions of least squares where noisy sums do not",
        paper="after Barrientos, Williams, Snoke, Bowen (JASA 2023), on another table and other columns",
        run=releases.run,
        cells=grid(regression=list(REGRESSIONS), size=SIZES, epsilon=EPSILONS, method=list(releases.METHODS)),
        quick=grid(regression=["women cubic"], size=["10000"], epsilon=[1.0, 5.0], method=list(releases.METHODS)),
        seeds=100,
        quick_seeds=20,
        batch=100,
        quantities=quantities,
        figures=figures,
        findings=state_findings,
        data=(FILE,),
    ),
)
