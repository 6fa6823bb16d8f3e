"""The estimators as they were before fits (commit da2a7c6), on the splits of the table they are compared in.

    git worktree add --detach build/before da2a7c6
    PYTHONPATH=build/before/src python benchmarks/peers/before_fits.py [table …] > benchmarks/results/peers_before.json

As many splits and fits a split as the table has (forty or ten, three), so that both can be compared split by split; where a
row takes longer than ``PATIENCE``, candidates drawn exactly from a few records, those splits that were finished.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
from tables import DELTA, EPSILONS, quality, splits, tables

from onedraw import DPLinearRegression, DPLogisticRegression

warnings.simplefilter("ignore")

SMALL, MANY, FEW, FITS, PATIENCE = 1000, 40, 10, 3, 240.0


def score(table, epsilon: float, train: np.ndarray, test: np.ndarray) -> float:
    public = {"delta": DELTA, "bounds": (table.lower.tolist(), table.upper.tolist())}
    if table.response is None:
        model = DPLogisticRegression(epsilon, classes=[0, 1], **public).fit(table.X[train], table.y[train])
        return quality(table, test, model.decision_function(table.X[test]))
    model = DPLinearRegression(epsilon, response_bound=table.response, **public).fit(table.X[train], table.y[train])
    return quality(table, test, np.clip(model.predict(table.X[test]), *table.response))


def main(names: list[str]) -> None:
    found = []
    for table in tables():
        for epsilon in EPSILONS if not names or table.name in names else ():
            scores, began = [], time.monotonic()
            for _, train, test in splits(table, MANY if len(table.y) < SMALL else FEW):
                scores.append(float(np.mean([score(table, epsilon, train, test) for _ in range(FITS)])))
                if time.monotonic() - began > PATIENCE:
                    break
            found.append({"table": table.name, "epsilon": epsilon, "scores": scores})
            print(table.name, epsilon, np.mean(scores), len(scores), file=sys.stderr)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
