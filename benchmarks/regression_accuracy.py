"""Compare how well the regressions of two source trees predict, on the same splits of real tables.

    git worktree add --detach build/old 291b263e
    python benchmarks/regression_accuracy.py --old build/old --populations FOLDER --out cells.jsonl
    python benchmarks/regression_accuracy.py --summary cells.jsonl

The first command writes one line for each side, table, ε and split as it ends, and skips the lines that the file holds.
A side is known by a checksum of its source: when the source changes, its cells are run again and the other side's stay.
Each side is one process that stays alive; only one computes at a time. The second command writes the page.
Populations are built by benchmarks/populations/build.py; ONEDRAW_DATA names the folder of three more tables.
Not private: seeds are fixed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import warnings
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

sys.path.insert(0, str(Path(__file__).parent))
from cells import read_cells
from populations.load import load

PAGE = Path(__file__).parent / "results" / "regression_accuracy.md"
EPSILONS = (0.5, 1.0, 5.0)
DELTA = 1e-6
SPLITS, FITS = 10, 3
MAX_RECORDS = 20_000
"""Records of a table that a split uses, four fifths of them to fit."""

SEED = 20261119
PEERS = ("banknote", "vertebral", "boston")
"""Tables of benchmarks/peers/tables.py that are no population: they are smaller."""

SMALL = 5_000
"""Records of a table up to which the page compares ε = 1 with ε = 5."""

LEAST_RATE = 1e-3
"""Predicted counts are kept between this and the declared largest count."""

MEASURES = {"label": "AUC", "number": "RMSE", "count": "deviance"}
SIDES = ("old", "new")
ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}  # fmt: skip
"""Environment of a process that fits."""


class Table(NamedTuple):
    """Rows and responses of a table, and what a data holder declares about them."""

    name: str
    group: str
    kind: str
    """"label", "number" or "count"."""
    X: np.ndarray
    y: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    y_lower: float
    y_upper: float


class Cell(NamedTuple):
    """A table, ε and the number of a split."""

    table: str
    epsilon: float
    split: int


# Tables and splits.


@lru_cache(maxsize=1)
def read_table(folder: str, name: str) -> Table:
    """Return a population, or a table of the estimators' page."""
    if name in PEERS:
        from peers.tables import tables

        peer = next(table for table in tables() if table.name == name)
        response = peer.response or (0.0, 1.0)
        kind = "number" if peer.response else "label"
        return Table(name, "given", kind, peer.X, peer.y, peer.lower, peer.upper, *response)
    source = load(name, folder)
    return Table(name, source.group, source.kind, source.X.astype(float), source.y.astype(float),
                 source.lower.astype(float), source.upper.astype(float), source.y_lower, source.y_upper)  # fmt: skip


def list_tables(folder: Path, groups: Sequence[str], only: Sequence[str]) -> list[str]:
    """Return the names of the tables of these groups; those that are no population belong to the given ones."""
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    names = [name for name, entry in index.items() if entry["group"] in groups]
    names += PEERS if "given" in groups else ()
    return [name for name in names if not only or any(part in name for part in only)]


def split_rows(table: Table, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to fit and the rows to score: the same for every side."""
    generator = np.random.default_rng([SEED, zlib.crc32(table.name.encode()), split])
    order = generator.permutation(len(table.y))[:MAX_RECORDS]
    cut = len(order) * 4 // 5
    return order[:cut], order[cut:]


def measure(table: Table, y: np.ndarray, predicted: np.ndarray) -> float:
    """Return the AUC of scores, the RMSE of numbers within their bounds, or the mean Poisson deviance of rates."""
    if table.kind == "label":
        ranks, positive = stats.rankdata(predicted), y == 1
        count, rest = positive.sum(), (~positive).sum()
        return float((ranks[positive].sum() - count * (count + 1) / 2.0) / (count * rest))
    if table.kind == "number":
        return float(np.sqrt(np.mean((y - np.clip(predicted, table.y_lower, table.y_upper)) ** 2)))
    rate = np.clip(predicted, LEAST_RATE, table.y_upper)
    return float(2.0 * np.mean(special.xlogy(y, y / rate) - y + rate))


# Fits.


def fit_privately(table: Table, epsilon: float, train: np.ndarray, seed: int) -> Any:
    """Return the fitted estimator, all its options at their defaults."""
    import onedraw as od

    shared: dict[str, Any] = {
        "delta": DELTA, "bounds": (table.lower.tolist(), table.upper.tolist()), "random_state": seed
    }  # fmt: skip
    if table.kind == "label":
        model: Any = od.DPLogisticRegression(epsilon, classes=[0, 1], **shared)
    elif table.kind == "number":
        model = od.DPLinearRegression(epsilon, response_bound=(table.y_lower, table.y_upper), **shared)
    else:
        model = od.DPPoissonRegressor(epsilon, largest=int(table.y_upper), **shared)
    return model.fit(table.X[train], table.y[train])


def score_privately(folder: str, cell: Cell) -> dict[str, Any]:
    """Return the mean score of the fits of a split and the mechanism's name, or why there is none."""
    from onedraw.errors import OnedrawError

    table = read_table(folder, cell.table)
    train, test = split_rows(table, cell.split)
    scores = []
    for number in range(FITS):
        entropy = [SEED, zlib.crc32(cell.table.encode()), cell.split, round(1000 * cell.epsilon), number]
        seed = int(np.random.SeedSequence(entropy).generate_state(1)[0])
        try:
            model = fit_privately(table, cell.epsilon, train, seed)
        except OnedrawError as error:
            return {"refused": str(error).splitlines()[0]}
        predicted = model.decision_function(table.X[test]) if table.kind == "label" else model.predict(table.X[test])
        scores.append(measure(table, table.y[test], predicted))
    return {"score": float(np.mean(scores)), "mechanism": type(model.choice_.best.mechanism).__name__}


def score_plainly(table: Table, split: int) -> dict[str, float]:
    """Return the scores of a fit without privacy and of the best constant."""
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

    train, test = split_rows(table, split)
    middle, half = (table.upper + table.lower) / 2.0, (table.upper - table.lower) / 2.0
    X = (np.clip(table.X, table.lower, table.upper) - middle) / half
    if table.kind == "label":
        scores = LogisticRegression(C=1e6, max_iter=10_000).fit(X[train], table.y[train]).decision_function(X[test])
        return {"score": measure(table, table.y[test], scores), "constant": 0.5}
    plain = LinearRegression() if table.kind == "number" else PoissonRegressor(alpha=0.0, max_iter=10_000)
    predicted = plain.fit(X[train], table.y[train]).predict(X[test])
    constant = np.full(len(test), table.y[train].mean())
    return {
        "score": measure(table, table.y[test], predicted), "constant": measure(table, table.y[test], constant)
    }  # fmt: skip


# One process for each source tree.


class Worker:
    """A process that fits with one source tree, asked one cell at a time."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.source = hash_source(tree)
        self._command = [sys.executable, __file__, "--worker", "--populations", str(folder)]
        self._environment = {**ONE_THREAD, **os.environ, "PYTHONPATH": str(tree / "src")}
        self._process: subprocess.Popen[str] | None = None

    def score(self, cell: Cell) -> dict[str, Any]:
        """Return what `score_privately` returns in that process."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(cell) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"The process of {self._environment['PYTHONPATH']} ended.\nRead its error above.")
        result: dict[str, Any] = json.loads(answer)
        return result

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()


def hash_source(tree: Path) -> str:
    """Return a short checksum of the package's source."""
    package = tree / "src" / "onedraw"
    if not package.is_dir():
        raise SystemExit(f"{tree} has no src/onedraw.\nName the root of a source tree.")
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def answer_cells(folder: str) -> None:
    """Answer the cells that come by standard input, one line each."""
    warnings.simplefilter("ignore")
    import onedraw

    expected = Path(os.environ["PYTHONPATH"]).resolve()
    if expected not in Path(str(onedraw.__file__)).resolve().parents:
        raise SystemExit(f"onedraw is imported from {onedraw.__file__}, not from {expected}.\nCheck the environment.")
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(score_privately(folder, Cell(*json.loads(line)))), file=answers, flush=True)


# The study.


def key_of(record: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a line is about."""
    return record["side"], record["source"], record["table"], record["epsilon"], record["split"]


def run_study(options: argparse.Namespace) -> None:
    """Run the cells that the output file does not hold, each written as it ends."""
    trees = {"old": options.old, "new": options.new}
    workers = {side: Worker(trees[side].resolve(), options.populations) for side in options.sides}
    done = {key_of(record) for record in read_cells(options.out)}
    with options.out.open("a", encoding="utf-8") as file:
        for name in list_tables(options.populations, options.groups, options.only):
            for record in _records_of(options, name, workers, done):
                file.write(json.dumps(record) + "\n")
                file.flush()
            print(name, flush=True)
    for worker in workers.values():
        worker.close()


def _records_of(
    options: argparse.Namespace, name: str, workers: dict[str, Worker], done: set[tuple[Any, ...]]
) -> Iterator[dict[str, Any]]:
    table = read_table(str(options.populations), name)
    about = {"table": name, "group": table.group, "kind": table.kind, "n": len(table.y), "d": table.X.shape[1]}
    for split in range(options.splits):
        record = {"side": "plain", "source": "", **about, "epsilon": None, "split": split}
        if key_of(record) not in done:
            yield record | score_plainly(table, split)
    for side, worker in workers.items():
        for epsilon in options.epsilon:
            for split in range(options.splits):
                record = {"side": side, "source": worker.source, **about, "epsilon": epsilon, "split": split}
                if key_of(record) not in done:
                    yield record | worker.score(Cell(name, epsilon, split))


def main() -> None:
    """Run the study, or write its page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=Path, help="root of the source tree to compare with")
    parser.add_argument("--new", type=Path, default=Path(__file__).parents[1], help="root of the other source tree")
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=SIDES, help="which of both to run")
    parser.add_argument("--populations", type=Path, default=os.environ.get("ONEDRAW_POPULATIONS"))
    parser.add_argument("--groups", nargs="+", default=["derive", "given"])
    parser.add_argument("--only", nargs="+", default=[], help="parts of which the table's name contains one")
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--out", type=Path, default=Path("regression_accuracy.jsonl"))
    parser.add_argument("--summary", type=Path, nargs="+", help="files of cells to summarize")
    parser.add_argument("--page", type=Path, default=PAGE, help="page that the summary is written to")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.summary:
        from regression_accuracy_page import summarize

        page = summarize([record for path in options.summary for record in read_cells(path)])
        options.page.write_text(page, encoding="utf-8")
        return
    if options.populations is None:
        raise SystemExit("No folder of populations is named.\nPass --populations FOLDER or set ONEDRAW_POPULATIONS.")
    if options.worker:
        answer_cells(str(options.populations))
        return
    if options.old is None and "old" in options.sides:
        raise SystemExit("No tree to compare with is named.\nPass --old FOLDER, the root of a checkout.")
    run_study(options)


if __name__ == "__main__":
    main()
