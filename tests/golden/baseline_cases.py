"""The literature's other methods are no part of the command line: what is kept of them is released in Python, from the same patients."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import onedraw as od
from onedraw import baselines, models


def patients(column: str) -> list[str]:
    with open("patients.csv", newline="") as file:
        return [row[column] for row in csv.DictReader(file)]


def _released(mechanism: Any, model: Any, data: Any, budget: Any) -> od.Release:
    return od.release(od.calibrate(mechanism, model, budget, n=400), data, random_state=1)


def sufficient_statistics() -> od.Release:
    ill = [float(cell == "yes") for cell in patients("ill")]
    return _released(baselines.SufficientStatistics(), models.BetaBernoulli(), ill, od.PureDP(2.0))


BASELINES: dict[str, Callable[[], od.Release]] = {"sufficient-statistics": sufficient_statistics}
