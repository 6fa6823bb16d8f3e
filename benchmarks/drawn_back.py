"""Compare rules that draw a fit's predictions back to the level, on the fits that `auto` takes (methods/fit/prediction.py).

    python benchmarks/drawn_back.py --group derive --out FOLDER      # releases and the page; resumable

A release is kept as its certificate, and every rule reads the same one. Scores and splits are those of `prediction.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import prediction
from cells import read_cells
from prediction_methods import package_model
from prediction_page import SIGNS

import onedraw as od
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit.result import StepsResult
from onedraw.release.certificate import certificate_from

EPSILONS = (0.5, 1.0, 5.0)


def share(result: StepsResult, caution: float = 0.0, less: float = 0.0) -> float:
    """Return the share kept of the slopes if noise is taken to be longer by deviations of its length, or shorter by directions."""
    present = np.logical_not(result.where.absent)
    among = np.ix_(present, present)
    moved, information = (result.published.step - result.where.level)[present], result._information[among]
    noise = (result._covariance + result._noise[0] ** 2 * result._noise_shape)[among]
    over = np.linalg.solve(information, noise)
    longest = float(np.linalg.eigvals(over).real.max())
    length = float(np.trace(over)) + caution * math.sqrt(2.0 * float(np.trace(over @ over))) - less * longest
    seen = float(moved @ information @ moved)
    return min(1.0, max(0.0, 1.0 - length / seen)) if seen > 0.0 else 0.0


RULES: dict[str, Callable[[StepsResult], float]] = {
    "the estimate": lambda result: 1.0,
    "drawn back": lambda result: result.kept,
    "information unchanged": share,
    "a half deviation more": lambda result: share(result, caution=0.5),
    "one deviation more": lambda result: share(result, caution=1.0),
    "two directions less": lambda result: share(result, less=2.0),
}
"""The share of the slopes that each rule keeps. The last is the constant of James and Stein (1961)."""


def scores_of(table: prediction.Table, test: np.ndarray, release: od.Release) -> dict[str, dict[str, float]]:
    """Return the scores of the level and of each rule."""
    result, predictor = release.plan.mechanism.result(release.plan, release.certificate.draw.stages), release.predictor
    rows = release.plan.model.features.enforce(table.X[test])
    middle = (table.y_lower + table.y_upper) / 2 if table.kind == "number" else 0.0
    found = {}
    for name, kept in [("level", 0.0), *((name, rule(result)) for name, rule in RULES.items())]:
        theta = result.where.level + kept * (result.published.step - result.where.level)
        blocks = (result.change @ theta + result.shift).reshape(release.plan.model.row_blocks, -1)
        expected = predictor.expected((rows @ blocks.T)[np.newaxis])
        found[name] = prediction.score(
            table, test, expected if table.kind in ("label", "class") else expected[:, 0] + middle
        )
    return found


def cells(group: str, out: Path, splits: int) -> Iterator[dict[str, Any]]:
    """Yield the scores of every fit that `auto` takes, from certificates that are kept."""
    path = out / f"fits_{group}.jsonl"
    done = {(one["table"], one["split"], one["epsilon"]): one for one in read_cells(path)}
    for name in prediction.names_of(group):
        table = prediction.load(name)
        for seed in range(splits):
            train, test = prediction.split(table, seed)
            for epsilon in EPSILONS:
                cell = done.get((name, seed, epsilon))
                if cell is None:
                    noise = zlib.crc32(f"{name} {seed} {epsilon:g}".encode())
                    release = package_model("auto", table, train, epsilon, noise).release_
                    fitted = isinstance(release.plan.mechanism, AveragedSteps)
                    kept = release.certificate.to_json() if fitted else None
                    cell = {"table": name, "split": seed, "epsilon": epsilon, "certificate": kept}
                    with path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(cell) + "\n")
                if cell["certificate"]:
                    release = od.Release(certificate_from(json.loads(cell["certificate"])))
                    yield {"table": name, "epsilon": epsilon, "scores": scores_of(table, test, release)}


def page(group: str, found: list[dict[str, Any]]) -> str:
    """Return the page."""
    settings = sorted({(one["table"], one["epsilon"]) for one in found})
    behind, lost, rows = dict.fromkeys(RULES, 0), {name: list[float]() for name in RULES}, []
    for name, epsilon in settings:
        own = [one["scores"] for one in found if (one["table"], one["epsilon"]) == (name, epsilon)]
        for metric in own[0]["level"]:
            gains = {
                rule: np.array([SIGNS[metric] * (one[rule][metric] - one["level"][metric]) for one in own])
                for rule in RULES
            }
            best = max(float(values.mean()) for values in gains.values())
            words = []
            for rule, values in gains.items():
                mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(own))
                behind[rule] += mean < -2.0 * error
                if best > 0.0:
                    lost[rule].append(min(1.0, (best - mean) / best))
                words.append(f"{mean:.4g} ± {error:.2g}")
            rows.append(f"| {name}, {metric}, ε = {epsilon:g} | {' | '.join(words)} |")
    head = "| | " + " | ".join(RULES) + " |"
    line = "| --- " * (len(RULES) + 1) + "|"
    return "\n".join([
        "# Predictions of fits, drawn back to the level", "",
        f"Written by `benchmarks/drawn_back.py`: the tables of the group *{group}* on which `auto` takes a fit, {prediction.SPLITS} splits, "
        "δ = 1e-5. Every rule reads the same releases. \"A deviation more\" takes noise to be longer than it is on average, both with the information unchanged on the way; \"two "
        "directions less\" is the constant of James and Stein (1961). Gains are over the published level; the loss is what a rule has less than "
        "the best rule, as a share of the gain.", "",
        head, line,
        f"| behind the level by two standard errors, of {len(rows)} | " + " | ".join(str(int(behind[rule])) for rule in RULES) + " |",
        "| mean share of the gain that is lost | " + " | ".join(f"{np.mean(lost[rule]):.3f}" for rule in RULES) + " |",
        "", "Gain over the level:", "", head, line, *rows, "",
    ])  # fmt: skip


def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(description="Compare rules that draw predictions back to the level.")
    parser.add_argument("--group", default="derive")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=prediction.SPLITS)
    parser.add_argument("--page", type=Path, default=Path(__file__).parent / "results" / "drawn_back.md")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.page.write_text(page(options.group, list(cells(options.group, options.out, options.splits))))


if __name__ == "__main__":
    main()
