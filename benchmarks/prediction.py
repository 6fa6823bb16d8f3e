"""Compare predictions at equal promises: labels, classes, counts and numbers, on tables that a rule has fixed.

    python benchmarks/prediction.py auto level --group derive --out FOLDER     # cells are written as they end; resumable
    python benchmarks/prediction_page.py FOLDER                                # writes benchmarks/results/prediction.md

Each cell is a table, a split, an ε and a method (`prediction_methods.py`); δ = 1e-5, neighbors replace one record. Scores are
of the held-out fifth: accuracy and log-loss of labels and classes, deviance of counts, root mean square error of numbers.

Scores treat all methods alike. A probability below 1e-4 counts as 1e-4, and the probabilities of a record are then divided by
their sum. An expected count is clamped to [0.01, Y] with the declared largest count Y, an expected number to its declared
range. Predictions that are not finite count as the middle: equal probabilities, or the middle of the range.

The tables lie in the folder that ONEDRAW_PREDICTION names (`populations/prediction_tables.py` and `prediction_fresh.py` build them).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import multiprocessing
import os
import time
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import prediction_methods
from cells import read_cells

LISTS = [Path(__file__).parent / "populations" / f"prediction_{name}.json" for name in ("tables", "fresh", "later")]
EPSILONS, SPLITS = (0.1, 0.5, 1.0, 5.0), 10
LEAST_PROBABILITY, LEAST_COUNT = 1e-4, 0.01


@dataclass(frozen=True)
class Table:
    """Rows in natural units, responses, and what is declared of them."""

    name: str
    group: str
    kind: str
    classes: int
    X: np.ndarray
    y: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    y_lower: float
    y_upper: float

    @property
    def scaled(self) -> np.ndarray:
        """The rows, scaled to [−1, 1] by the declared bounds."""
        middle, half = (self.upper + self.lower) / 2, (self.upper - self.lower) / 2
        return (np.clip(self.X, self.lower, self.upper) - middle) / half


def load(name: str) -> Table:
    """Load a table by name."""
    with np.load(Path(os.environ["ONEDRAW_PREDICTION"]) / f"{name}.npz") as stored:
        parts = {key: stored[key] for key in ("X", "y", "lower", "upper")}
        return Table(
            name=name, group=str(stored["group"]), kind=str(stored["kind"]), classes=int(stored["classes"]),
            y_lower=float(stored["y_lower"]), y_upper=float(stored["y_upper"]), **parts,
        )  # fmt: skip


def listed() -> list[dict[str, Any]]:
    """Return what is public of every table, small ones first."""
    return sorted((one for path in LISTS for one in json.loads(path.read_text())["tables"]), key=lambda one: one["n"])


def names_of(group: str | None = None) -> list[str]:
    """Return the names of the tables of a group, small ones first."""
    return [one["name"] for one in listed() if group in (None, one["group"])]


def split(table: Table, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the records of a split: four fifths to fit and one fifth to score."""
    order = np.random.RandomState(seed).permutation(len(table.y))
    cut = len(order) * 4 // 5
    return order[:cut], order[cut:]


def score(table: Table, test: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return the scores of predictions of the held-out records: probabilities (n, K), or expected values (n,)."""
    y = table.y[test]
    predicted = np.asarray(predicted, dtype=float)
    if table.kind in ("label", "class"):
        predicted = np.where(np.isfinite(predicted).all(axis=1)[:, None], predicted, 1.0 / table.classes)
        chosen = predicted.argmax(axis=1)
        clamped = np.maximum(predicted, LEAST_PROBABILITY)
        clamped /= clamped.sum(axis=1, keepdims=True)
        losses = -np.log(clamped[np.arange(len(y)), y.astype(int)])
        return {"accuracy": float(np.mean(chosen == y)), "log_loss": float(losses.mean())}
    middle = (table.y_lower + table.y_upper) / 2
    predicted = np.where(np.isfinite(predicted), predicted, middle)
    if table.kind == "count":
        rates = np.clip(predicted, LEAST_COUNT, table.y_upper)
        y = np.minimum(y, table.y_upper)
        logs = np.where(y > 0, y * np.log(np.maximum(y, 1.0) / rates), 0.0)
        return {"deviance": float(2.0 * np.mean(logs - y + rates))}
    predicted = np.clip(predicted, table.y_lower, table.y_upper)
    return {"rmse": float(np.sqrt(np.mean((predicted - y) ** 2)))}


def cells(methods: list[str], tables: list[str], splits: int, epsilons: tuple[float, ...]) -> Iterator[tuple[str, str, int, float]]:  # fmt: skip
    """Yield (table, method, split, ε); methods without privacy have ε = inf."""
    for name in tables:
        for method in methods:
            for seed in range(splits):
                for epsilon in (np.inf,) if method == "none" else epsilons:
                    yield name, method, seed, epsilon


@lru_cache(maxsize=1)
def latest(name: str) -> Table:
    """Return a table; every process keeps the last one."""
    return load(name)


def cell_of(job: tuple[str, str, int, float]) -> dict[str, object]:
    """Return the scores of a cell, or why it was refused."""
    name, method, seed, epsilon = job
    table, started = latest(name), time.perf_counter()
    train, test = split(table, seed)
    cell: dict[str, object] = {"table": name, "split": seed, "epsilon": epsilon}
    try:
        noise = zlib.crc32(f"{name} {seed} {epsilon:g}".encode())  # independent noise in every cell
        predicted = prediction_methods.predict(method, table, train, test, epsilon, noise)
        cell |= score(table, test, predicted)
    except ImportError:  # a fault of the environment: no result
        raise
    except Exception as error:  # a refusal is a result
        cell["refused"] = f"{type(error).__name__}: {error}"[:200]
    return cell | {"seconds": round(time.perf_counter() - started, 3)}


def missing(options: argparse.Namespace) -> Iterator[tuple[str, str, int, float]]:
    """Yield the cells that no file has yet."""
    names = options.tables or names_of(options.group)
    kinds = {one["name"]: one["kind"] for one in listed()}
    done = {
        method: {(one["table"], one["split"], one["epsilon"]) for one in read_cells(options.out / f"{method}.jsonl")}
        for method in options.methods
    }
    for name, method, seed, epsilon in cells(options.methods, names, options.splits, tuple(options.epsilons)):
        if (name, seed, epsilon) not in done[method] and prediction_methods.applies(method, kinds[name]):
            yield name, method, seed, epsilon


def run(options: argparse.Namespace) -> None:
    """Run the cells that no file has yet; this process alone writes them."""
    options.out.mkdir(parents=True, exist_ok=True)
    began, jobs = time.monotonic(), list(missing(options))
    in_time = itertools.takewhile(lambda job: time.monotonic() - began < options.seconds, jobs)
    with contextlib.ExitStack() as stack:
        found: Iterable[tuple[str, dict[str, object]]]
        if options.processes == 1:
            found = map(named_cell, in_time)
        else:
            # as few as possible are handed out before they can begin, so that the time is kept
            pool = stack.enter_context(ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")))
            found = answers(pool, in_time, 2 * options.processes)
        for method, cell in found:
            with (options.out / f"{method}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(cell) + "\n")


def named_cell(job: tuple[str, str, int, float]) -> tuple[str, dict[str, object]]:
    """Return the method and the cell."""
    return job[1], cell_of(job)


def answers(pool: ProcessPoolExecutor, jobs: Iterator[tuple[str, str, int, float]], most: int) -> Iterator[tuple[str, dict[str, object]]]:  # fmt: skip
    """Yield cells as they end, with at most this many handed out."""
    waiting = {pool.submit(named_cell, job) for job in itertools.islice(jobs, most)}
    while waiting:
        ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for one in ended:
            yield one.result()
        waiting |= {pool.submit(named_cell, job) for job in itertools.islice(jobs, len(ended))}


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description="Compare predictions at equal promises.")
    parser.add_argument("methods", nargs="+", help="see prediction_methods.py")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--group", choices=["derive", "hold-out", "fresh", "later"])
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--epsilons", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no cell after this long")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
