"""How good are released classifiers? Test AUC on banknote and abalone against the fit without privacy.

Each mechanism with its sampler, ε ∈ {0.5, 1, 5}, δ = 1e-5, 20 random splits (80 % training; fewer, and then said so in
the cell, where one release of the plain proximal sampler takes more than 50,000 iterations). Feature bounds are round
public numbers, mapped to [−1, 1]. Data sets are read from the folder ONEDRAW_DATA (see its README for their sources).
Writes benchmarks/results/gibbs_utility.md.

    ONEDRAW_DATA=… python benchmarks/gibbs_utility.py [--repetitions 20]
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import onedraw as od
from onedraw.models.convex.draw_cost import iterations_of
from onedraw.samplers.chains import numbers_of_plan
from onedraw.samplers.proximal import geometry_of

FOLDER = Path(os.environ.get("ONEDRAW_DATA", Path(__file__).parents[2] / "shared" / "data"))
RESULT = Path(__file__).parent / "results" / "gibbs_utility.md"
EPSILONS, DELTA = (0.5, 1.0, 5.0), 1e-5
RADIUS_OF_PREDICTOR = 3.0
MOST_ITERATIONS = 10**6

# Bounds a person could write down without the file.
BANKNOTE = {"variance": (-8, 8), "skewness": (-15, 15), "curtosis": (-10, 20), "entropy": (-10, 5)}
ABALONE = {
    "length": (0, 1), "diameter": (0, 1), "height": (0, 0.5), "whole_weight": (0, 3), "shucked_weight": (0, 1.5),
    "viscera_weight": (0, 0.8), "shell_weight": (0, 1),
}  # fmt: skip


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features mapped by public bounds into [−1, 1], labels in {0, 1}."""
    path, target, positive = {
        "banknote": ("banknote_authentication.csv", "class", lambda value: float(value) == 1),
        "abalone": ("abalone.csv", "rings", lambda value: float(value) > 10),
    }[name]
    with (FOLDER / path).open() as handle:
        rows = list(csv.DictReader(handle))
    columns = [column for column in rows[0] if column != target]
    bounds = list((BANKNOTE if name == "banknote" else ABALONE).values())
    numeric = [column for column in columns if column.lower() != "sex"]
    scaled = [
        (np.clip([float(row[column]) for row in rows], low, high) - (low + high) / 2) / ((high - low) / 2)
        for column, (low, high) in zip(numeric, bounds, strict=True)
    ]
    if len(numeric) < len(columns):
        sexes = [row[next(c for c in columns if c.lower() == "sex")] for row in rows]
        scaled += [np.array([float(sex == level) for sex in sexes]) for level in ("I", "M")]
    return np.column_stack(scaled), np.array([float(positive(row[target])) for row in rows])


def candidates(dimension: int) -> dict[str, tuple]:
    """Name → (mechanism, model, sampler); None lets the library choose the sampler."""
    norm = np.sqrt(dimension)
    scale = 2 / np.sqrt(norm**2 + 1)
    wide: dict[str, Any] = {"features": dimension, "bounds": (-1.0, 1.0)}
    ball = od.Gaussian(scale=scale, radius=RADIUS_OF_PREDICTOR / np.sqrt(norm**2 + 1))
    free = od.Gaussian(scale=scale)
    logistic, linear = od.models.Logistic(**wide, prior=free), od.models.Logistic(**wide, loss="exp-linear", prior=free)
    return {
        "gdp, last-iterate Langevin": (od.Gibbs("gdp"), logistic, None),
        "gdp, exp-linear loss": (od.Gibbs("gdp"), linear, None),
        "bounded (θᵀx within ±3), proximal": (od.Gibbs("bounded"), od.models.Logistic(**wide, prior=ball), None),
        "noisy gradient, logistic": (od.NoisyGradient(), logistic, None),
        "noisy gradient, exp-linear": (od.NoisyGradient(), linear, None),
        "gdp, proximal": (od.Gibbs("gdp"), logistic, "proximal"),
    }


def cell(mechanism, model, sampler, epsilon, splits) -> str:
    """Mean ± standard error of the test AUC over the splits."""
    plan = od.calibrate(mechanism, model, od.ApproxDP(epsilon, DELTA), n=len(splits[0][0][1]))
    chosen = od.samplers.Proximal(gamma=plan.gamma) if sampler == "proximal" else None
    runs = len(splits)
    if chosen is not None:
        iterations = iterations_of(plan.gamma, geometry_of(numbers_of_plan(plan, sampler="Proximal")))
        runs = min(runs, max(3, MOST_ITERATIONS // iterations))
    found = []
    for train, test in splits[:runs]:
        theta = od.release(plan, train, sampler=chosen).draws[0]
        found.append(roc_auc_score(test[1], test[0] @ theta[:-1] + theta[-1]))
    fewer = "" if runs == len(splits) else f" ({runs} splits)"
    return f"{np.mean(found):.3f} ± {np.std(found) / np.sqrt(len(found)):.3f}{fewer}"


def table(name: str, repetitions: int) -> list[str]:
    X, y = load(name)
    lines = [f"## {name}: n = {int(0.8 * len(y)):,}, {X.shape[1]} features", "",
             "| method | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |",
             "| --- |" + " --- |" * len(EPSILONS)]  # fmt: skip
    splits = []
    for repetition in range(repetitions):
        order = np.random.default_rng(repetition).permutation(len(y))
        cut = int(0.8 * len(y))
        splits.append(((X[order[:cut]], y[order[:cut]]), (X[order[cut:]], y[order[cut:]])))
    plain = [roc_auc_score(test[1], LogisticRegression(C=1e3, max_iter=1000).fit(*train).decision_function(test[0]))
             for train, test in splits]  # fmt: skip
    lines.append(f"| without privacy | {np.mean(plain):.3f} | {np.mean(plain):.3f} | {np.mean(plain):.3f} |")
    for label, (mechanism, model, sampler) in candidates(X.shape[1]).items():
        cells = [cell(mechanism, model, sampler, epsilon, splits) for epsilon in EPSILONS]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    arguments = parser.parse_args()
    lines = ["# Test AUC of one released draw", "",
             f"δ = {DELTA:g}; mean ± standard error over {arguments.repetitions} random splits; intercept, prior scale 2/r̃.", ""]  # fmt: skip
    for name in ("banknote", "abalone"):
        lines += [*table(name, arguments.repetitions), ""]
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n".join(lines), encoding="utf-8")
    print(f"written to {RESULT.relative_to(Path.cwd()) if RESULT.is_relative_to(Path.cwd()) else RESULT}")


if __name__ == "__main__":
    main()
