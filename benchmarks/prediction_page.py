"""Write the page of the prediction study: wins, losses and regret, paired over splits.

python benchmarks/prediction_page.py FOLDER [--group fresh --page benchmarks/results/prediction_fresh.md]
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from cells import read_cells
from prediction import EPSILONS, listed
from scipy import stats

RESULT = Path(__file__).parent / "results" / "prediction.md"
SIGNS = {"accuracy": 1.0, "log_loss": -1.0, "deviance": -1.0, "rmse": -1.0}
"""Whether a larger score is a better one."""
OURS, CHOSEN, FIT = "clipped-gradients", "auto", "fit"
RIVALS = ("level", "clipped-gd", "landed", "diffprivlib", "dp-ebm", "objective-perturbation", "ada-ssp", "opacus")
FEWEST = 3
"""Splits that a comparison needs."""
Cells = dict[tuple[str, float, int], dict[str, Any]]


def read(folder: Path, method: str) -> Cells:
    """Return the cells of a method that gave a prediction."""
    found = read_cells(folder / f"{method}.jsonl")
    return {(one["table"], float(one["epsilon"]), one["split"]): one for one in found if "refused" not in one}


def paired(ours: Cells, others: Cells, table: str, epsilon: float, metric: str) -> tuple[float, float] | None:
    """Return the mean advantage over the splits and its standard error; None where there are too few."""
    differences = [
        SIGNS[metric] * (cell[metric] - others[key][metric])
        for key, cell in ours.items()
        if key[:2] == (table, epsilon) and metric in cell and key in others
    ]
    if len(differences) < FEWEST:
        return None
    return float(np.mean(differences)), float(np.std(differences, ddof=1) / math.sqrt(len(differences)))


def verdicts(tables: list[dict[str, Any]], ours: Cells, others: Cells, epsilon: float) -> tuple[int, int, int, list[str]]:  # fmt: skip
    """Return the comparisons ahead, level and behind beyond two standard errors, and those behind in words."""
    ahead, even, behind = 0, 0, []
    for table in tables:
        for metric in SIGNS:
            found = paired(ours, others, table["name"], epsilon, metric)
            if found is None:
                continue
            mean, error = found
            if mean < -2.0 * error:
                behind.append(f"{table['name']} {metric} {mean:.4g} ± {error:.2g}")
            elif mean > 2.0 * error:
                ahead += 1
            else:
                even += 1
    return ahead, even, len(behind), behind


def surely_behind(tables: list[dict[str, Any]], ours: Cells, others: Cells) -> int:
    """Return the comparisons with ε of at least 0.5 that are behind by Holm's test: of all together, false in at most 5%.

    Of m comparisons that are even, about 3.8% are behind by two standard errors of ten splits (a one-sided t-test), by chance.
    """
    chances = []
    for table in tables:
        for epsilon in EPSILONS:
            for metric in SIGNS:
                found = paired(ours, others, table["name"], epsilon, metric) if epsilon >= 0.5 else None
                if found is not None:
                    mean, error = found
                    degrees = sum(key[:2] == (table["name"], epsilon) and key in others for key in ours) - 1
                    chances.append(float(stats.t.cdf(mean / error, degrees)) if error else float(mean >= 0.0))
    below = [chance <= 0.05 / (len(chances) - place) for place, chance in enumerate(sorted(chances))]
    return below.index(False) if False in below else len(below)


def compare(tables: list[dict[str, Any]], name: str, ours: Cells, rivals: dict[str, Cells]) -> list[str]:
    """Return the table of wins and losses of one method, and the list of its losses for ε of at least 0.5."""
    lines = [f"| {name} against | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |", "| --- " * 5 + "|"]
    losses = []
    for rival, others in rivals.items():
        found = [verdicts(tables, ours, others, epsilon) for epsilon in EPSILONS]
        if any(sum(one[:3]) for one in found):
            lines.append(f"| {rival} | " + " | ".join("/".join(map(str, one[:3])) for one in found) + " |")
        if rival in RIVALS[:3]:
            losses += [
                f"- {rival}, ε = {epsilon:g}: {', '.join(one[3])}"
                for epsilon, one in zip(EPSILONS, found, strict=True)
                if epsilon >= 0.5 and one[3]
            ]
    return [*lines, "", "Behind, for ε of at least 0.5:", "", *(losses or ["- nothing"]), ""]


def summarize(tables: list[dict[str, Any]], methods: dict[str, Cells], rivals: dict[str, Cells]) -> list[str]:
    """Return the share of comparisons with ε of at least 0.5 in which methods are behind."""
    lines = ["| behind, ε ≥ 0.5 | " + " | ".join(rivals) + " |", "| --- " * (len(rivals) + 1) + "|"]
    for name, cells in methods.items():
        row = []
        for others in rivals.values():
            found = [verdicts(tables, cells, others, epsilon)[:3] for epsilon in EPSILONS if epsilon >= 0.5]
            behind, whole = sum(one[2] for one in found), sum(sum(one) for one in found)
            surely = surely_behind(tables, cells, others)
            row.append(f"{behind} of {whole} ({behind / max(whole, 1):.1%}), Holm {surely}")
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return [*lines, ""]


def shares(tables: list[dict[str, Any]], methods: dict[str, Cells], level: Cells, plain: Cells) -> list[str]:
    """Return the mean share of the gain from the level to no privacy, by kind, metric and ε."""
    lines = ["| kind, score | ε | " + " | ".join(methods) + " |", "| --- " * (len(methods) + 2) + "|"]
    for kind, metric in (("label", "accuracy"), ("label", "log_loss"), ("class", "accuracy"), ("class", "log_loss"), ("count", "deviance"), ("number", "rmse")):  # fmt: skip
        for epsilon in EPSILONS:
            cells = [_mean_share([t for t in tables if t["kind"] == kind], one, level, plain, epsilon, metric) for one in methods.values()]  # fmt: skip
            lines.append(f"| {kind}, {metric} | {epsilon:g} | " + " | ".join(cells) + " |")
    return lines


def gain(cells: Cells, level: Cells, plain: Cells, table: str, epsilon: float, metric: str) -> float | None:
    """Return the share of the gain from the level at ε = 5 to no privacy, between -1 and 1.1; None if there is no gain."""
    keys = [key for key in cells if key[:2] == (table, epsilon) and metric in cells[key]]
    keys = [key for key in keys if (table, 5.0, key[2]) in level and (table, math.inf, key[2]) in plain]
    if not keys:
        return None
    start = np.mean([level[table, 5.0, key[2]][metric] for key in keys])
    whole = SIGNS[metric] * (np.mean([plain[table, math.inf, key[2]][metric] for key in keys]) - start)
    if whole <= (0.01 if metric == "accuracy" else 1e-6):
        return None
    reached = SIGNS[metric] * (np.mean([cells[key][metric] for key in keys]) - start)
    return float(np.clip(reached / whole, -1.0, 1.1))


def _mean_share(tables, cells, level, plain, epsilon, metric):
    found = [gain(cells, level, plain, table["name"], epsilon, metric) for table in tables]
    kept = [one for one in found if one is not None]
    return f"{np.mean(kept):.2f}" if kept else "–"


def regrets(tables: list[dict[str, Any]], rules: dict[str, Cells], level: Cells, plain: Cells) -> list[str]:
    """Return the mean regret of rules, in shares of the gain: what the better of fit and clipped gradients has more."""
    lines = ["| rule | accuracy | log-loss, deviance or RMSE |", "| --- | --- | --- |"]
    for name, cells in rules.items():
        lost: dict[bool, list[float]] = {True: [], False: []}
        for table in tables:
            for epsilon in EPSILONS:
                for metric in SIGNS:
                    each = [
                        gain(one, level, plain, table["name"], epsilon, metric)
                        for one in (rules[FIT], rules[OURS], cells)
                    ]
                    if None not in each:
                        lost[metric == "accuracy"].append(max(each[:2]) - each[2])
        lines.append(f"| {name} | {np.mean(lost[True]):.3f} | {np.mean(lost[False]):.3f} |")
    return lines


def goals(folder: Path) -> list[str]:
    """Return the scores at ε = 1 of the two tables that have goals of their own."""
    cells = read(folder, OURS)
    lines = []
    for table, metric, goal in (("digits", "accuracy", "at least 0.82"), ("doctor_visits", "deviance", "at most 0.92")):
        found = [one[metric] for key, one in cells.items() if key[:2] == (table, 1.0)]
        if len(found) >= FEWEST:
            error = np.std(found, ddof=1) / math.sqrt(len(found))
            lines.append(f"- {table}, {metric} of {OURS} at ε = 1: {np.mean(found):.3f} ± {error:.3f}, goal {goal}")
    return [*lines, ""]


def section(group: str, listed: list[dict[str, Any]], folder: Path) -> list[str]:
    """Return the part of the page about one half."""
    level, plain, clipped, fit, auto = (read(folder, name) for name in ("level", "none", OURS, FIT, CHOSEN))
    ran = {key[0] for key in (clipped or auto)}
    tables = [one for one in listed if one["group"] == group and one["name"] in ran]
    if not tables:
        return []
    rivals = {name: read(folder, name) for name in RIVALS}
    short = [one for one in tables if one["kind"] != "number"]
    lines = [f"## {group}: {len(tables)} tables", "", "Comparisons of a table by a score: ahead/level/behind, beyond two standard errors of paired differences; of even methods about 3.8% are behind by chance. \"Holm\" counts those that are behind by Holm's test of all comparisons together, at 5%. The first table of ahead/level/behind leaves out numbers.", ""]  # fmt: skip
    simple = {name: rivals[name] for name in RIVALS[:3]}
    ours = {name: cells for name, cells in {CHOSEN: auto, OURS: clipped, FIT: fit}.items() if cells}
    lines += summarize(tables, ours, simple)
    lines += [*(compare(short, OURS, clipped, rivals) if clipped else []), *compare(tables, CHOSEN, auto, rivals)]
    lines += ["Mean share of the gain from the level to no privacy:", ""]
    methods = {name: cells for name, cells in {**ours, **rivals}.items() if cells}
    lines += [*shares(tables, methods, level, plain), ""]
    if clipped and fit:
        lines += [
            "Regret, over all ε:",
            "",
            *regrets(tables, {FIT: fit, OURS: clipped, CHOSEN: auto}, level, plain),
            "",
        ]
    return lines


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Write the page of the prediction study.")
    parser.add_argument("folder", type=Path)
    groups = ["derive", "hold-out", "fresh", "later"]
    parser.add_argument("--group", choices=groups, nargs="*", default=groups)
    parser.add_argument("--page", type=Path, default=RESULT)
    options = parser.parse_args()
    tables = listed()
    head = [
        "# Predictions at equal promises", "",
        "Written by `benchmarks/prediction_page.py` from the cells of `benchmarks/prediction.py`; the tables are fixed by "
        "`benchmarks/populations/prediction_rule.md`. δ = 1e-5, neighbors replace one record, ten splits, the held-out fifth. "
        "`auto` is the package's choice between the fit and clipped gradients (src/onedraw/planning/predictors.py), `landed` "
        "its choice before there were clipped gradients, always a fit. "
        "diffprivlib's promise is pure ε; Opacus, run on two tables, has add/remove-one neighbors, which is weaker.", "",
    ]  # fmt: skip
    options.page.write_text("\n".join(head + goals(options.folder) + [line for group in options.group for line in section(group, tables, options.folder)]))  # fmt: skip


if __name__ == "__main__":
    main()
