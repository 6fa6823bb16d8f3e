"""Posterior mechanisms in declared and in measured coordinates, on the tables of the estimators.

    python benchmarks/measured_table.py [mechanism …]    # some minutes; writes benchmarks/results/measured_table.md

The same splits, bounds, ε and δ as `estimators_table.py`; ten splits (four for candidates), one release each. A row names a mechanism, its scores where the
columns are taken as declared and where their moments are measured first (one budget for both stages), and the fit's.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from estimators_table import estimator, plain_scores, shown
from tables import DELTA, EPSILONS, quality, splits, tables

RESULTS = Path(__file__).parent / "results"
COUNT, FEW = 10, 4
"""Splits; fewer for candidates, which take seconds a release."""

FLOOR = 0.1
"""Of a residual's deviation for candidates, as a share of half the responses' declared range."""

MECHANISMS = {
    "noisy-gradient": (("noisy-gradient exp-linear", "noisy-gradient huber"), "noisy-gradient measured", DELTA),
    "gdp": (("gdp exp-linear", "gdp huber"), "gdp measured", DELTA),
    "candidates": (("candidates", "candidates"), "candidates measured", 0.0),
}
"""Name → (in declared coordinates for classes and for numbers, in measured ones, δ)."""


def scores(table, epsilon: float, mechanism: str, delta: float) -> list[float] | None:
    """One release on each split; None where the mechanism refuses."""
    from onedraw.errors import OnedrawError

    found = []
    options = {"mechanism": mechanism, "n_draws": 1, "delta": delta}
    if "candidates" in mechanism and table.response is not None:
        options["variance_floor"] = (FLOOR * (table.response[1] - table.response[0]) / 2.0) ** 2
    for _, train, test in splits(table, FEW if delta == 0.0 else COUNT):
        model = estimator(table, epsilon, **options)
        try:
            model.fit(table.X[train], table.y[train])
        except OnedrawError:
            return None
        classes = table.response is None
        predicted = model.decision_function(table.X[test]) if classes else model.predict(table.X[test])
        found.append(quality(table, test, predicted if classes else np.clip(predicted, *table.response)))
    return found


def ahead(first: list[float] | None, second: list[float] | None, larger: bool) -> str:
    """Whether the second is better by more than a paired standard error, or worse."""
    if first is None or second is None:
        return "–"
    gap = (np.array(second) - np.array(first)) * (1.0 if larger else -1.0)
    error = gap.std(ddof=1) / np.sqrt(len(gap))
    return "better" if gap.mean() > error else "worse" if gap.mean() < -error else "the same"


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    kept = RESULTS / "measured_table.json"
    rows = {tuple(row["key"]): row for row in (json.loads(kept.read_text()) if kept.exists() else [])}
    for table in tables():
        larger = table.response is None
        plain = {count: plain_scores(table, count) for count in (COUNT, FEW)}
        for epsilon in EPSILONS:
            for name in names:
                declared, measured, delta = MECHANISMS[name]
                began = time.perf_counter()
                found = [
                    scores(table, epsilon, mechanism, delta) for mechanism in (declared[not larger], measured, "fit")
                ]
                rows[name, table.name, epsilon] = {
                    "key": [name, table.name, epsilon],
                    "cells": [
                        name, f"{table.name} ({'AUC' if larger else 'RMSE'})", f"{len(table.y) * 4 // 5:,}", f"{epsilon:g}",
                        *map(shown, found), shown(plain[FEW if delta == 0.0 else COUNT]), ahead(found[0], found[1], larger),
                    ],
                }  # fmt: skip
                print(
                    " | ".join(rows[name, table.name, epsilon]["cells"]),
                    f"{time.perf_counter() - began:.0f} s",
                    flush=True,
                )
    kept.write_text(json.dumps(list(rows.values()), indent=1) + "\n", encoding="utf-8")
    write([row["cells"] for row in rows.values()])


def write(rows: list[list[str]]) -> None:
    heading = ["mechanism", "data", "n", "ε", "declared", "measured first", "a fit", "not private", "measured is"]
    text = [
        "# Posterior mechanisms in declared and in measured coordinates",
        "",
        f"Mean ± standard error over {COUNT} random splits ({FEW} for candidates), one release each; AUC: larger is better, RMSE: smaller is better. δ = {DELTA:g}, replace-one "
        "neighbours; candidates keep pure ε. The same public bounds throughout. “Measured first” spends a part of the same budget on the columns' means and covariances "
        "and draws in the coordinates they give; where its noise would drown the columns (vertebral and boston at small ε) it takes rows as declared and weights "
        "them. “Measured is”: better or worse than declared by more than a paired standard error. Written by `benchmarks/measured_table.py`.",
        "",
        "| " + " | ".join(heading) + " |",
        "| " + " | ".join("---" for _ in heading) + " |",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]
    (RESULTS / "measured_table.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or list(MECHANISMS))
