"""How good are the estimators, beside diffprivlib and DP-SGD, and beside no privacy at all?

    python benchmarks/estimators_table.py --ours ours.json     # our scores; needs NumPy, SciPy and JAX alone
    python benchmarks/estimators_table.py --table ours.json    # writes benchmarks/results/estimators_table.md

AUC (banknote, abalone, vertebral) and RMSE (boston, wine, kin8nm) on a held-out fifth, at ε ∈ {0.5, 1, 5}, δ = 1e-5 and pure.
Forty random splits with three fits each for tables under 1,000 rows, ten with three otherwise. All libraries see the same
public bounds (peers/tables.py) and, on the first ten splits, the same rows; ours are fitted by the estimators' default mechanism
and its own program, with NumPy's generator for OpenDP's; the peers run in environments of their own
(peers/*.py) and leave their scores in benchmarks/results/peers_*.json. "Before" is commit da2a7c6, on the same splits.
"""

from __future__ import annotations

import argparse
import json
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from tables import DELTA, EPSILONS, Table, quality, scaled, splits, tables

RESULTS = Path(__file__).parent / "results"
PEERS = {
    "before": "onedraw before fits",
    "diffprivlib": "diffprivlib, pure ε",
    "opacus": "Opacus DP-SGD, add/remove-one",
    "opacus_replace": "Opacus DP-SGD, replace-one",
}
OURS, PURE = "onedraw, (ε, δ)", "onedraw, pure ε"
SMALL, MANY, FEW, FITS = 1000, 40, 10, 3
WANTED = {
    ("approx", "abalone"): (0.835, 0.845, 0.849), ("approx", "banknote"): (0.990, 0.997, 0.999), ("approx", "vertebral"): (0.76, 0.85, 0.92),
    ("pure", "abalone"): (0.835, 0.846, 0.850), ("pure", "banknote"): (0.990, 0.997, 0.999),
    ("approx", "wine"): (0.73, 0.70, 0.665), ("approx", "kin8nm"): (0.2035,) * 3, ("approx", "boston"): (7.5, 6.6, 4.8),
}  # fmt: skip
"""What was set as a goal before fits were built, at ε = 0.5, 1, 5: reached if the mean is, give or take a standard error."""


def plan_for(table: Table, epsilon: float, delta: float, n: int):
    from onedraw.methods import PerturbedMode, calibrate
    from onedraw.models import Gaussian, LogCoshRegression, Logistic
    from onedraw.privacy import ApproxDP, PureDP

    model: Logistic | LogCoshRegression
    rows: dict[str, Any] = {
        "features": table.X.shape[1],
        "bounds": (-1, 1),
        "scaled": True,
        "prior": Gaussian(scale=1.0),
    }
    if table.response is None:
        model = Logistic(**rows, loss="exp-linear")
    else:
        model = LogCoshRegression(**rows, response_bound=(table.response[1] - table.response[0]) / 2)
    return calibrate(PerturbedMode(), model, ApproxDP(epsilon, delta) if delta else PureDP(epsilon), n=n)


def private_scores(table: Table, epsilon: float, delta: float, count: int) -> list[float]:
    """For every split the mean score of ``FITS`` fits."""
    from onedraw.methods.perturbed_mode.run import Stages
    from onedraw.models.fit.result import FitResult
    from onedraw.models.row_model import Encoded
    from onedraw.samplers.noise import Noise

    rows, found = np.column_stack([scaled(table), np.ones(len(table.y))]), []
    middle = 0.0 if table.response is None else sum(table.response) / 2
    y = 2.0 * table.y - 1.0 if table.response is None else table.y - middle
    plan = plan_for(table, epsilon, delta, len(table.y) * 4 // 5)
    for seed, train, test in splits(table, count):
        target = plan.target(Encoded(plan.n, rows[train], y[train]))
        scores = []
        for fit in range(FITS):
            noise = Noise(np.random.default_rng([seed, fit]), pure=True)
            predicted = rows[test] @ FitResult.of(target.problem, Stages(target, noise).run()).estimate
            if table.response is not None:
                predicted = np.clip(predicted + middle, *table.response)
            scores.append(quality(table, test, predicted))
        found.append(float(np.mean(scores)))
    return found


def row_of(task):
    name, epsilon = task
    table = next(table for table in tables() if table.name == name)
    count = MANY if len(table.y) < SMALL else FEW
    return {"table": name, "epsilon": epsilon, "approx": private_scores(table, epsilon, DELTA, count), "pure": private_scores(table, epsilon, 0.0, count)}  # fmt: skip


def run_ours(path: Path) -> None:
    tasks = [(table.name, epsilon) for table in tables() for epsilon in EPSILONS]
    with get_context("spawn").Pool() as pool:
        path.write_text(json.dumps(pool.map(row_of, tasks, chunksize=1)), encoding="utf-8")


def plain_scores(table: Table, count: int) -> list[float]:
    from sklearn.linear_model import LinearRegression, LogisticRegression

    X, scores = scaled(table), []
    for _, train, test in splits(table, count):
        if table.response is None:
            model = LogisticRegression(C=1e6, max_iter=10_000).fit(X[train], table.y[train])
            predicted = model.decision_function(X[test])
        else:
            predicted = LinearRegression().fit(X[train], table.y[train]).predict(X[test])
        scores.append(quality(table, test, predicted))
    return scores


def constant_score(table: Table) -> float:
    """What knowing nothing gives: AUC ½, or the RMSE of the best constant."""
    return 0.5 if table.response is None else float(table.y.std())


def peer_scores() -> dict[tuple[str, str, float], list[float]]:
    found = {}
    for peer in PEERS:
        path = RESULTS / f"peers_{peer}.json"
        if path.exists():
            for entry in json.loads(path.read_text(encoding="utf-8")):
                found[peer, entry["table"], entry["epsilon"]] = entry["scores"]
    return found


def shown(scores: list[float] | None) -> str:
    if not scores:
        return "–"
    spread = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
    return f"{np.mean(scores):.4f} ± {spread:.4f}"


def gained(peer: list[float], ours: list[float], larger: bool) -> tuple[float, float]:
    """What ours are better by, and its paired standard error, over the splits both have."""
    gap = (np.array(ours[: len(peer)]) - np.array(peer)) * (1.0 if larger else -1.0)
    return float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", type=Path, help="fit, and write our scores here")
    parser.add_argument("--table", type=Path, help="write the table from our scores there and the peers'")
    options = parser.parse_args()
    if options.ours:
        run_ours(options.ours)
    if options.table:
        write_table(json.loads(options.table.read_text(encoding="utf-8")))


def write_table(entries: list[dict]) -> None:
    scores = {(entry["table"], entry["epsilon"]): entry for entry in entries}
    peers, lines, compared = peer_scores(), [], []
    lost: list[str] = []
    fallen: list[str] = []
    for table in tables():
        larger, count = table.response is None, MANY if len(table.y) < SMALL else FEW
        plain = plain_scores(table, count)
        for epsilon in EPSILONS:
            ours, pure = (scores[table.name, epsilon][kind] for kind in ("approx", "pure"))
            others = {peer: peers.get((peer, table.name, epsilon)) for peer in PEERS}
            cells = [
                shown(ours),
                shown(pure),
                *map(shown, others.values()),
                shown(plain),
            ]
            measure = "AUC" if larger else "RMSE"
            lines.append(
                f"| {table.name} ({measure}) | {len(table.y) * 4 // 5:,} | {count} × {FITS} | {epsilon:g} | {' | '.join(cells)} | {constant_score(table):.3f} |"
            )
            for peer, theirs in others.items():
                if not theirs:
                    continue
                gain, error = gained(theirs, ours, larger)
                if peer == "before":
                    compared.append(f"| {table.name} | {epsilon:g} | {len(theirs)} | {gain:+.4f} ± {error:.4f} |")
                if gain < -error:
                    (fallen if peer == "before" else lost).append(
                        f"- {table.name}, ε = {epsilon:g}: {PEERS[peer]} {shown(theirs)}, ours on the same splits {shown(ours[: len(theirs)])}."
                    )
    write(lines, lost, fallen, compared, [goal(kind, name, scores) for kind, name in WANTED])


def goal(kind: str, name: str, scores: dict) -> str:
    """One line: what was wanted, what was found, whether it is reached."""
    sign, cells = 1.0 if name in ("banknote", "abalone", "vertebral") else -1.0, []
    for wanted, epsilon in zip(WANTED[kind, name], EPSILONS, strict=True):
        found = np.array(scores[name, epsilon][kind])
        reached = sign * found.mean() + found.std(ddof=1) / np.sqrt(len(found)) >= sign * wanted
        cells.append(f"{found.mean():.4g} for {wanted:g} {'reached' if reached else '**missed**'}")
    return f"| {name} | {OURS if kind == 'approx' else PURE} | {' | '.join(cells)} |"


def write(lines: list[str], lost: list[str], fallen: list[str], compared: list[str], goals: list[str]) -> None:
    heading = ["data", "n", "splits × fits", "ε", OURS, PURE, *PEERS.values(), "not private", "a constant"]
    text = [
        "# Estimators beside their peers",
        "",
        "Mean ± standard error over random splits (four fifths to fit, one fifth to score). AUC: larger is better, RMSE: smaller is "
        f"better. δ = {DELTA:g} for onedraw and Opacus; diffprivlib's promise is pure ε. onedraw's neighbours are replace-one. Opacus "
        "accounts add/remove-one, which is less at the same ε; it stands there a second time with what is left of ε and δ for the same "
        "replace-one promise. diffprivlib's linear regression adds no noise where a lower bound is 0 and is shown, not compared. Bounds "
        "are public round numbers, the same for all (`peers/tables.py`). Written by `benchmarks/estimators_table.py`.",
        "",
        "The shares, weights, ridges and thresholds of fits were last chosen with these six tables in view, together with 38 others, most of "
        "them simulated: our columns are not a test on tables nobody had looked at.",
        "",
        "| " + " | ".join(heading) + " |",
        "| " + " | ".join("---" for _ in heading) + " |",
        *lines,
        "",
        "## Where a peer is ahead by more than a paired standard error",
        "",
        *(lost or ["Nowhere in this table."]),
        "",
        "## Where fits are worse than what was there before them",
        "",
        "By more than a paired standard error, split by split (commit da2a7c6, run again on the splits of this table; where there is a dash "
        "its table of ten splits had AUC 0.960 and 0.983 for banknote at ε = 0.5 and 5, 0.790 for abalone at 5, 0.723 for vertebral at 0.5):",
        "",
        *(fallen or ["Nowhere in this table."]),
        "",
        "| data | ε | splits | gained by fits, paired |",
        "| --- | --- | --- | --- |",
        *compared,
        "",
        "## What was wanted",
        "",
        "Reached if the mean is, give or take one standard error.",
        "",
        "| data | promise | ε = 0.5 | ε = 1 | ε = 5 |",
        "| --- | --- | --- | --- | --- |",
        *goals,
        "",
    ]
    (RESULTS / "estimators_table.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
