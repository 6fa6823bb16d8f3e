"""Which private chain? Error, promise and cost of every chain beside draws and fits, on the same records: the tables of docs/private-chains.md.

    python benchmarks/private_chains.py --jobs 2       # what is not stored yet, then the page's tables; an hour of one core
    python benchmarks/private_chains.py --render       # the tables again from benchmarks/results/private_chains.json
    python benchmarks/private_chains.py --only Barker  # methods whose names begin so

Logistic regressions with features on the sphere of radius √d, ‖θ₀‖ = 1, prior N(0, I), under (ε = 1, δ = 1e-5); what keeps a pure ε
keeps ε = 1. RMSE = √E‖θ̃ − θ₀‖² over up to `SETS` data sets, the same ones for every method: as many as `SECONDS` of processor time
allow, at least `FEWEST`, and the page says how many where it is fewer; a draw is the default sampler's. The design is the one that every plan expects, which favours all of them alike; what other designs do to
a path is in results/barker_path.md. Seeds are fixed: no number here is a private release. Cells computed elsewhere (`--out`) are
taken over by `--take`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import special

import onedraw as od
from onedraw import baselines
from onedraw import methods as mechanisms
from onedraw.errors import OnedrawError

ROOT = Path(__file__).resolve().parents[1]
RESULT, PAGE = ROOT / "benchmarks" / "results" / "private_chains.json", ROOT / "docs" / "private-chains.md"
BEGIN, END = "<!-- {}: written by benchmarks/private_chains.py -->", "<!-- end of {} -->"
BUDGET, PURE = od.ApproxDP(1.0, 1e-5), od.PureDP(1.0)
CELLS = tuple((n, d) for d in (2, 6, 30) for n in (1000, 10_000))
SETS, FEWEST, SECONDS = 40, 4, 60.0
COST_SIZES = ((1000, 6), (10_000, 6))
"""Cells whose weight, steps and passes are shown."""
MOST_STEPS = 60_000
"""Paths of more steps, each a pass over all records, are planned and not walked: minutes each."""


class Method(NamedTuple):
    """One line of the table."""

    name: str
    law: str
    mechanism: Any
    loss: str = "exp-linear"
    budget: Any = BUDGET


METHODS = (
    Method("fit, `PerturbedMode`", "an estimate with standard errors", mechanisms.PerturbedMode(), "logistic", PURE),
    Method("`NoisyGradient`", "Langevin for a finite time", od.NoisyGradient()),
    Method("`BarkerPath`", "path of exact decisions", mechanisms.BarkerPath()),
    Method("`BarkerPath(length=4)`", "the same in a quarter of the steps", mechanisms.BarkerPath(length=4.0)),
    Method("`Penalty(length=4)`", "path of noisy decisions", baselines.Penalty(length=4.0)),
    Method("`DPHMC`", "path of noisy trajectories", baselines.DPHMC()),
    Method('`DPHMC(test="barker")`', "the same, decided by Barker's test", baselines.DPHMC(test="barker")),
    Method("`MultiProposal`", "path of choices among several", baselines.MultiProposal()),
    Method("`DPSGLD`", "neither posterior nor clipped", baselines.DPSGLD(batch_size=250)),
    Method('`Gibbs("gdp")`', "a posterior draw", od.Gibbs("gdp")),
    Method("`Candidates`, β-divergence", "a pick from public candidates", od.Candidates(), "logistic", PURE),
    Method("`KNG`", "gradient-norm selection", baselines.KNG(), "exp-linear", PURE),
)


def model(loss: str, d: int) -> Any:
    prior = od.Gaussian(scale=1.0)
    return od.models.Logistic(d, data_norm=math.sqrt(d), intercept=False, loss=loss, prior=prior)


def records(n: int, d: int, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(X, y, θ₀) of one data set."""
    generator = np.random.default_rng([n, d, number])
    X = generator.standard_normal((n, d))
    X *= math.sqrt(d) / np.linalg.norm(X, axis=1, keepdims=True)
    truth = generator.standard_normal(d)
    truth /= np.linalg.norm(truth)
    return X, (generator.random(n) < special.expit(X @ truth)).astype(int), truth


def without_privacy(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The posterior's mode under the logistic likelihood, by Newton's method."""
    theta = np.zeros(X.shape[1])
    for _ in range(12):
        p = special.expit(X @ theta)
        information = (X * (p * (1.0 - p))[:, None]).T @ X + np.eye(len(theta))
        theta = theta - np.linalg.solve(information, X.T @ (p - y) + theta)
    return theta


def computed(name: str, n: int, d: int) -> dict[str, Any]:
    """One cell: squared errors, the promise and its numbers; or why there is no plan."""
    method = next(method for method in METHODS if method.name == name)
    found: dict[str, Any] = {"method": name, "n": n, "d": d}
    try:
        plan = od.calibrate(method.mechanism, model(method.loss, d), method.budget, n=n)
    except OnedrawError as refusal:
        return {**found, "refused": str(refusal)}
    if plan.parameters.get("steps", 0.0) > MOST_STEPS:
        return {**found, **plan_numbers(plan)}
    clock, squares = time.process_time(), []
    for number in range(SETS):
        X, y, truth = records(n, d, number)
        squares.append(float(((drawn(plan, X, y, number) - truth) ** 2).sum()))
        if number + 1 >= FEWEST and time.process_time() - clock > SECONDS:
            break
    return {**found, "squares": squares, "seconds": time.process_time() - clock, **plan_numbers(plan)}


def plan_numbers(plan: Any) -> dict[str, Any]:
    names = {"weight": "weight", "record_weight": "weight", "steps": "steps"}
    shown = {name: plan.parameters[key] for key, name in names.items() if key in plan.parameters}
    return {"promise": type(plan.guarantee.promise).__name__, **shown}


def drawn(plan: Any, X: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """What a release would publish, without its certificate: the default sampler on these records."""
    sampler, _ = od.samplers.default_sampler(plan)
    source = od.samplers.seeded_key if sampler.randomness == "jax" else od.samplers.seeded_generator
    return np.asarray(sampler.draw(plan.target(plan.model.summarise((X, y))), source(seed)))


def plain(n: int, d: int) -> dict[str, Any]:
    squares = []
    for number in range(SETS):
        X, y, truth = records(n, d, number)
        squares.append(float(((without_privacy(X, y) - truth) ** 2).sum()))
    return {"method": "without privacy", "n": n, "d": d, "squares": squares, "promise": "ε = ∞"}


# ── stored cells ─────────────────────────────────────────────────────────────────────────────────────────────────────


def stored(path: Path = RESULT) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def store(cells: list[dict[str, Any]], path: Path = RESULT) -> None:
    cells.sort(key=lambda cell: (cell["d"], cell["n"], cell["method"]))
    path.write_text(json.dumps(cells, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def missing(cells: list[dict[str, Any]], only: str) -> Iterator[tuple[str, int, int]]:
    """The longest first."""
    have = {(cell["method"], cell["n"], cell["d"]) for cell in cells}
    for n, d in sorted(CELLS, key=math.prod, reverse=True):
        for method in METHODS:
            if (method.name, n, d) not in have and method.name.strip("`").startswith(tuple(only.split(","))):
                yield method.name, n, d


def run(jobs: int, only: str, out: Path) -> None:
    """Every cell is written as soon as it is there."""
    cells = stored(out)
    have = {(cell["n"], cell["d"]) for cell in cells if cell["method"] == "without privacy"}
    cells += [plain(n, d) for n, d in CELLS if (n, d) not in have]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(computed, *cell) for cell in missing(cells, only)]):
            cell = done.result()
            cells.append(cell)
            store(cells, out)
            print({key: value for key, value in cell.items() if key != "squares"}, flush=True)


# ── the tables ───────────────────────────────────────────────────────────────────────────────────────────────────────


def error(cell: dict[str, Any] | None) -> str:
    """RMSE and its standard error, in the last digits shown; over how many data sets, if fewer than all."""
    if cell is None or "refused" in cell:
        return "–"
    if "squares" not in cell:
        return f"{cell['steps']:,.0f} steps"
    squares = np.array(cell["squares"])
    root = math.sqrt(squares.mean())
    off = squares.std(ddof=1) / math.sqrt(len(squares)) / (2.0 * root)
    return f"{root:.3f} ± {off:.3f}" + (f" ({len(squares)})" if len(squares) < SETS else "")


def errors(cells: list[dict[str, Any]]) -> str:
    by = {(cell["method"], cell["n"], cell["d"]): cell for cell in cells}
    heads = ["method", "what it releases", "counted in", *(f"d = {d}, n = {n:,}" for n, d in CELLS)]
    rows = [heads, ["---"] * 3 + ["---:"] * len(CELLS)]
    laws = {method.name: method.law for method in METHODS} | {"without privacy": "the mode"}
    for name in ("without privacy", *(method.name for method in METHODS)):
        found = [by.get((name, n, d)) for n, d in CELLS]
        promise = next((cell["promise"] for cell in found if cell and "promise" in cell), "–")
        rows.append([name, laws[name], promise, *map(error, found)])
    return lines(rows)


def costs(cells: list[dict[str, Any]]) -> str:
    """Of what walks: its weight, its steps, and how often it reads all records."""
    by = {(cell["method"], cell["n"], cell["d"]): cell for cell in cells}
    heads = [f"{name}, n = {n:,}" for n, _ in COST_SIZES for name in ("w", "steps", "passes")]
    rows = [["d = 6", *heads], ["---"] + ["---:"] * len(heads)]
    for method in METHODS:
        found = [by.get((method.name, n, d), {}) for n, d in COST_SIZES]
        if "steps" in found[0]:
            rows.append([method.name, *(text for cell in found for text in planned(method.mechanism, cell))])
    return lines(rows)


def planned(mechanism: Any, cell: dict[str, Any]) -> tuple[str, str, str]:
    """(w, steps, passes). On samples a step reads the share of a batch."""
    kernel = getattr(mechanism, "kernel", None)
    each = (
        mechanism.batch_size / cell["n"] if isinstance(mechanism, baselines.DPSGLD) else kernel.passes if kernel else 1
    )
    weight = f"{cell['weight']:.2g}" if "weight" in cell else "–"
    return weight, f"{cell['steps']:,.0f}", f"{cell['steps'] * each:,.0f}"


def lines(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def render() -> None:
    text, cells = PAGE.read_text(encoding="utf-8"), stored()
    for name, found in (("errors", errors(cells)), ("costs", costs(cells))):
        before, rest = text.split(BEGIN.format(name))
        after = rest.split(END.format(name))[1]
        text = f"{before}{BEGIN.format(name)}\n\n{found}\n\n{END.format(name)}{after}"
    PAGE.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="methods whose names begin so, with commas between")
    parser.add_argument("--out", type=Path, default=RESULT, help="where cells are kept")
    parser.add_argument("--take", type=Path, help="cells computed elsewhere, to be added")
    parser.add_argument("--render", action="store_true", help="write the page's tables and nothing else")
    asked = parser.parse_args()
    if asked.take is not None:
        cells = stored()
        have = {(cell["method"], cell["n"], cell["d"]) for cell in cells}
        new = [cell for cell in stored(asked.take) if (cell["method"], cell["n"], cell["d"]) not in have]
        store(cells + new)
    elif not asked.render:
        run(asked.jobs, asked.only, asked.out)
    if asked.out == RESULT:
        render()


if __name__ == "__main__":
    main()
