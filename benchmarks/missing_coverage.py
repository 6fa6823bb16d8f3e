"""Do intervals cover when cells are missing, and how much wider are they than the plain intervals of the known cells?

    python benchmarks/missing_coverage.py                # some hours; writes results/missing_coverage.jsonl and .md
    python benchmarks/missing_coverage.py --first 1      # the cells that a requirement is about: n = 5,000, ε = 1, up to 20 %
    python benchmarks/missing_coverage.py --runs 40      # fewer data sets a cell, in a file of their own

A cell is a statistic, a share of missing cells, how they came to be missing, n and ε. It is written as soon as it ends, and a second run
goes on with those that are not written yet. What has to be covered is the value in the population of known cells: of records with all
their cells, for regressions and moments. It is computed from two million records with the same missing cells. Counts and sums are
about these records, so theirs is computed from each data set.

| cells are missing | with probability |
| --- | --- |
| at random | the share |
| by another column | the share times 1 + 0.8z, z even on (−1, 1) and correlated with the cell |
| by their own value | the share times 1 + 0.8(2u − 1), u the cell's place among all others |

Probabilities end at 0.95. A plain interval has no noise: mean ± 1.96 standard errors, Wald's of a share, two order statistics of a quantile,
of a variance the error that the fourth moment gives, of regressions the sandwich. Counts and sums have none.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import onedraw as od

RESULTS = Path(__file__).parent / "results"
RUNS, REGRESSION_RUNS, LEVEL, SEED = 400, 200, 0.95, 20261120
SHARES, SIZES, EPSILONS = (0.0, 0.05, 0.2, 0.6), (5000, 500), (1.0, 0.5)
HOW = ("at random", "by another column", "by their own value")
POPULATION, Z = 2_000_000, 1.959964
REQUIRED, WIDEST = 0.93, 2.5

Data = dict[str, np.ndarray]


def population(n: int, generator: np.random.Generator) -> Data:
    """Draw records without missing cells."""
    z = generator.uniform(-1.0, 1.0, n)
    age = np.clip(45.0 + 10.0 * z + 14.0 * generator.standard_normal(n), 0.0, 100.0)
    cost = np.minimum(generator.exponential(8.0 * np.exp(0.3 * z)), 60.0)
    group = np.minimum((3 * generator.random(n) ** 1.3).astype(int), 2)
    x = np.clip(0.5 * z + 0.4 * generator.standard_normal((2, n)), -2.0, 2.0)
    u = 0.3 + 0.8 * x[0] - 0.5 * x[1]
    ill = (generator.random(n) < 1.0 / (1.0 + np.exp(-u))).astype(float)
    y = np.clip(1.0 + 0.6 * x[0] - 0.4 * x[1] + 0.5 * generator.standard_normal(n), -4.0, 4.0)
    return {"z": z, "age": age, "cost": cost, "group": group.astype(float), "x0": x[0], "x1": x[1], "ill": ill, "y": y}


def with_missing(data: Data, name: str, share: float, how: str, generator: np.random.Generator) -> np.ndarray:
    """Return a column with missing cells."""
    values = data[name].copy()
    tilt = np.zeros(len(values))
    if how == HOW[1]:
        tilt = 0.8 * data["z"]
    elif how == HOW[2]:
        tilt = 0.8 * (2.0 * (np.argsort(np.argsort(values + 1e-9 * data["z"])) + 0.5) / len(values) - 1.0)
    values[generator.random(len(values)) < np.minimum(share * (1.0 + tilt), 0.95)] = np.nan
    return values


class Found(NamedTuple):
    """Of one data set: estimates, ends, what had to be covered if that is about the records, and widths of plain intervals."""

    low: np.ndarray
    high: np.ndarray
    truth: np.ndarray | None
    plain: np.ndarray


@dataclass(frozen=True)
class Statistic:
    """Which columns lose cells, how it is released, what it is in a population, and how wide a plain interval is."""

    columns: tuple[str, ...]
    release: Callable[[Data, float, int], tuple[np.ndarray, np.ndarray]]
    truth: Callable[[Data], np.ndarray]
    plain: Callable[[Data], np.ndarray]
    about_records: bool = False
    runs: int = RUNS


def known(data: Data, *names: str) -> list[np.ndarray]:
    """Return columns of the records that have all of these cells."""
    whole = np.all([np.isfinite(data[name]) for name in names], axis=0)
    return [data[name][whole] for name in names]


def of_column(name: str, make: Callable[[float, int], Any], truth: Any, plain: Any, **options: Any) -> Statistic:
    """Return a statistic of one column, by an estimator."""

    def released(data: Data, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        low, high = make(epsilon, seed).fit(data[name]).conf_int(LEVEL).T
        return low, high

    return Statistic(
        (name,), released, lambda data: np.atleast_1d(truth(known(data, name)[0])), lambda data: np.atleast_1d(plain(known(data, name)[0])), **options
    )  # fmt: skip


def mean_width(values: np.ndarray) -> float:
    return 2.0 * Z * float(values.std()) / math.sqrt(len(values))


def share_width(values: np.ndarray) -> float:
    return mean_width(values)


def variance_width(values: np.ndarray) -> float:
    deviations = values - values.mean()
    return 2.0 * Z * math.sqrt(max(float((deviations**4).mean()) - values.var() ** 2, 0.0) / len(values))


def quantile_width(level: float) -> Callable[[np.ndarray], float]:
    def width(values: np.ndarray) -> float:
        n, ordered = len(values), np.sort(values)
        reach = Z * math.sqrt(n * level * (1.0 - level))
        ends = np.clip([math.floor(n * level - reach), math.ceil(n * level + reach)], 0, n - 1).astype(int)
        return float(ordered[ends[1]] - ordered[ends[0]])

    return width


def shares(values: np.ndarray) -> np.ndarray:
    return np.bincount(values.astype(int), minlength=3) / len(values)


def grouped(epsilon: float, seed: int, data: Data) -> Any:
    frame = {"age": data["age"], "group": data["group"]}
    rows = list(zip(*frame.values(), strict=True))
    return od.DPMean(epsilon=epsilon, bounds=(0, 100), by={"group": [0, 1, 2]}, random_state=seed).fit(rows)


def group_means(data: Data) -> np.ndarray:
    age, group = known(data, "age", "group")
    return np.array([age[group == one].mean() for one in range(3)])


def group_widths(data: Data) -> np.ndarray:
    age, group = known(data, "age", "group")
    return np.array([mean_width(age[group == one]) for one in range(3)])


def of_groups(data: Data, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    low, high = grouped(epsilon, seed, data).conf_int(LEVEL)[:3].T
    return low, high


def cross(data: Data, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rows = list(zip(data["ill"], data["group"], strict=True))
    table = od.DPCount(epsilon=epsilon, levels=[0, 1], by={"group": [0, 1, 2]}, random_state=seed).fit(rows)
    low, high = table.conf_int(LEVEL).T
    return low, high


def cross_truth(data: Data) -> np.ndarray:
    ill, group = known(data, "ill", "group")
    return np.bincount((2 * group + ill).astype(int), minlength=6).astype(float)


def design(data: Data, target: str) -> tuple[np.ndarray, np.ndarray]:
    x0, x1, y = known(data, "x0", "x1", target)
    return np.column_stack([x0, x1, np.ones(len(x0))]), y


def least_squares(data: Data) -> np.ndarray:
    rows, y = design(data, "y")
    return np.linalg.lstsq(rows, y, rcond=None)[0]


def logistic(data: Data) -> np.ndarray:
    rows, y = design(data, "ill")
    theta = np.zeros(3)
    for _ in range(25):
        p = 1.0 / (1.0 + np.exp(-rows @ theta))
        theta = theta + np.linalg.solve(rows.T @ (rows * (p * (1.0 - p))[:, None]), rows.T @ (y - p))
    return theta


def sandwich(rows: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    inverse = np.linalg.inv(rows.T @ (rows * weights[:, None]))
    return 2.0 * Z * np.sqrt(np.diag(inverse @ (rows.T @ (rows * (scores**2)[:, None])) @ inverse))


def least_squares_widths(data: Data) -> np.ndarray:
    rows, y = design(data, "y")
    return sandwich(rows, y - rows @ least_squares(data), np.ones(len(y)))


def logistic_widths(data: Data) -> np.ndarray:
    rows, y = design(data, "ill")
    p = 1.0 / (1.0 + np.exp(-rows @ logistic(data)))
    return sandwich(rows, y - p, p * (1.0 - p))


def fitted(kind: str, target: str, **options: Any) -> Callable[[Data, float, int], tuple[np.ndarray, np.ndarray]]:
    def released(data: Data, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rows = np.column_stack([data["x0"], data["x1"]])
        model = getattr(od, kind)(epsilon=epsilon, bounds=(-2, 2), random_state=seed, **options).fit(rows, data[target])
        nothing = np.full(3, np.nan)
        if not model._given.any():
            return nothing, nothing
        low, high = model.conf_int(LEVEL).T
        return low, high

    return released


def moments(data: Data, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.column_stack([data["x0"], data["x1"], data["y"]])
    found = od.DPCovariance(epsilon=epsilon, bounds=([-2, -2, -4], [2, 2, 4]), random_state=seed).fit(rows)
    low, high = found.conf_int(LEVEL).T
    return low, high


def moments_truth(data: Data) -> np.ndarray:
    rows = np.column_stack(known(data, "x0", "x1", "y"))
    correlation = np.corrcoef(rows.T)
    return np.concatenate([rows.mean(axis=0), rows.std(axis=0), correlation[np.tril_indices(3, -1)]])


def moments_widths(data: Data) -> np.ndarray:
    rows = np.column_stack(known(data, "x0", "x1", "y"))
    n, r = len(rows), np.corrcoef(rows.T)[np.tril_indices(3, -1)]
    spread = rows.std(axis=0)
    kurtosis = (((rows - rows.mean(axis=0)) / spread) ** 4).mean(axis=0)
    return 2.0 * Z / math.sqrt(n) * np.concatenate([spread, spread * np.sqrt(kurtosis - 1.0) / 2.0, 1.0 - r**2])


STATISTICS: dict[str, Statistic] = {
    "mean": of_column("age", lambda e, s: od.DPMean(epsilon=e, bounds=(0, 100), random_state=s), np.mean, mean_width),
    "skewed mean": of_column("cost", lambda e, s: od.DPMean(epsilon=e, bounds=(0, 60), random_state=s), np.mean, mean_width),
    "sum": of_column(
        "age", lambda e, s: od.DPSum(epsilon=e, bounds=(0, 100), random_state=s), np.sum, lambda values: np.nan, about_records=True
    ),
    "proportion": of_column("ill", lambda e, s: od.DPProportion(epsilon=e, classes=[0, 1], random_state=s), np.mean, share_width),
    "count": of_column(
        "ill", lambda e, s: od.DPCount(epsilon=e, levels=[0, 1], level=1, random_state=s), np.sum, lambda values: np.nan,
        about_records=True,
    ),
    "histogram": of_column(
        "group", lambda e, s: od.DPHistogram(epsilon=e, levels=[0, 1, 2], random_state=s), shares,
        lambda values: 2.0 * Z * np.sqrt(shares(values) * (1.0 - shares(values)) / len(values)),
    ),
    "least squares": Statistic(
        ("x0", "x1", "y"), fitted("DPLinearRegression", "y", response_bound=4), least_squares, least_squares_widths,
        runs=REGRESSION_RUNS,
    ),
    "logistic": Statistic(
        ("x0", "x1", "ill"), fitted("DPLogisticRegression", "ill", classes=[0, 1]), logistic, logistic_widths, runs=REGRESSION_RUNS
    ),
    "median": of_column(
        "age", lambda e, s: od.DPQuantile(epsilon=e, bounds=(0, 100), step=0.1, random_state=s), np.median, quantile_width(0.5)
    ),
    "upper quartile": of_column(
        "cost", lambda e, s: od.DPQuantile(epsilon=e, quantiles=[0.75], bounds=(0, 60), random_state=s),
        lambda values: np.quantile(values, 0.75), quantile_width(0.75),
    ),
    "variance": of_column("age", lambda e, s: od.DPVariance(epsilon=e, bounds=(0, 100), random_state=s), np.var, variance_width),
    "skewed variance": of_column(
        "cost", lambda e, s: od.DPVariance(epsilon=e, bounds=(0, 60), random_state=s), np.var, variance_width
    ),
    "means by group": Statistic(("age", "group"), of_groups, group_means, group_widths),
    "cross table": Statistic(("ill", "group"), cross, cross_truth, lambda data: np.full(6, np.nan), about_records=True),
    "moments": Statistic(("x0", "x1", "y"), moments, moments_truth, moments_widths),
}  # fmt: skip


class Cell(NamedTuple):
    """What is studied."""

    statistic: str
    share: float
    how: str
    n: int
    epsilon: float

    @property
    def required(self) -> bool:
        """Whether its width has a limit."""
        return self.n == 5000 and self.epsilon == 1.0 and self.share <= 0.2


def cells() -> Iterator[Cell]:
    """All cells, those with a limit first; without missing cells there is one way for them to be missing."""
    found = [
        Cell(*one) for one in itertools.product(STATISTICS, SHARES, HOW, SIZES, EPSILONS) if one[1] or one[2] == HOW[0]
    ]
    yield from sorted(found, key=lambda cell: (not cell.required, cell.n, -cell.epsilon))


def made(statistic: Statistic, n: int, share: float, how: str, generator: np.random.Generator) -> Data:
    """Draw records; of several columns each loses its part of the share, so that about this many records are incomplete."""
    data = population(n, generator)
    each = 1.0 - (1.0 - share) ** (1.0 / len(statistic.columns))
    lost = {name: with_missing(data, name, each, how, generator) for name in statistic.columns}
    return {**data, **lost}


@lru_cache(maxsize=256)
def truth_of(name: str, share: float, how: str) -> np.ndarray:
    """Return what is to be covered, in the population of known cells."""
    generator = np.random.default_rng(SEED)
    return STATISTICS[name].truth(made(STATISTICS[name], POPULATION, share, how, generator))


def study(cell: Cell, runs: int | None) -> dict[str, Any]:
    """Return coverage, the share of intervals that are given, and widths over the plain ones."""
    statistic, started = STATISTICS[cell.statistic], time.process_time()
    truth = None if statistic.about_records else truth_of(cell.statistic, cell.share, cell.how)
    covered, given, ratios, widths = [], [], [], []
    for run in range(runs or statistic.runs):
        generator = np.random.default_rng(
            [
                SEED,
                run,
                cell.n,
                round(100 * cell.share),
                HOW.index(cell.how),
                round(100 * cell.epsilon),
                list(STATISTICS).index(cell.statistic),
            ]
        )
        data = made(statistic, cell.n, cell.share, cell.how, generator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            low, high = statistic.release(data, cell.epsilon, int(generator.integers(2**31)))
        value = statistic.truth(data) if truth is None else truth
        there = np.isfinite(low)
        given.append(there)
        covered.append(np.where(there, (low <= value) & (value <= high), np.nan))
        widths.append(high - low)
        ratios.append((high - low) / statistic.plain(data))
    hits, all_given = np.array(covered), np.array(given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # means of nothing
        numbers = {
            "coverage": np.nanmean(hits, axis=0).tolist(), "given": all_given.mean(axis=0).tolist(),
            "width": np.nanmedian(widths, axis=0).tolist(), "ratio": np.nanmedian(ratios, axis=0).tolist(),
        }  # fmt: skip
    return {**cell._asdict(), "runs": len(hits), **numbers, "seconds": round(time.process_time() - started, 1)}


def lowest(runs: int) -> float:
    """Return the coverage that a cell must reach: the required one less two standard errors."""
    return REQUIRED - 2.0 * math.sqrt(REQUIRED * (1.0 - REQUIRED) / runs)


def page(found: list[dict[str, Any]]) -> str:
    """Return the results as Markdown: one line for each statistic, n and ε, and those below what is required."""
    lines = [
        "# Coverage and width of intervals with missing cells", "",
        f"By `benchmarks/missing_coverage.py`; {len(found)} of {len(list(cells()))} cells. 95 % intervals; of several numbers each is counted for itself.",
        "Least coverage over the numbers and over the ways in which cells are missing, and the median width over that of the plain interval of the known cells,",
        "the largest over the same.", "",
        "| statistic | n | ε | 0 % missing | 5 % | 20 % | 60 % |", "| --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    below, wide = [], []
    for name, n, epsilon in itertools.product(STATISTICS, SIZES, EPSILONS):
        columns = []
        for share in SHARES:
            here = [one for one in found if (one["statistic"], one["n"], one["epsilon"], one["share"]) == (name, n, epsilon, share)]  # fmt: skip
            rates = [rate for one in here for rate in one["coverage"] if rate == rate]
            ratios = [ratio for one in here for ratio in one["ratio"] if ratio == ratio]
            given = [rate for one in here for rate in one["given"]]
            words = f"{100 * min(rates):.1f} %" if rates else "none" if here else ""
            words += f", ×{max(ratios):.2f}" if ratios else ""
            words += f", given {100 * min(given):.0f} %" if given and min(given) < 1.0 else ""
            columns.append(words)
            below += [(one, rate) for one in here for rate in one["coverage"] if rate < lowest(one["runs"])]
            wide += [(one, max(one["ratio"])) for one in here if Cell(*(one[key] for key in Cell._fields)).required and max(one["ratio"]) > WIDEST]  # fmt: skip
        if any(columns):
            lines.append(f"| {name} | {n:,} | {epsilon:g} | {' | '.join(columns)} |")
    numbers = sum(rate == rate for one in found for rate in one["coverage"])
    lines += ["", f"Of {numbers} numbers {len(below)} are below {100 * REQUIRED:g} % less two standard errors:", ""]  # fmt: skip
    lines += [f"- {one['statistic']}, {100 * one['share']:g} % {one['how']}, n = {one['n']:,}, ε = {one['epsilon']:g}: {100 * rate:.1f} %" for one, rate in below] or ["- none"]  # fmt: skip
    lines += ["", f"Wider than {WIDEST} plain intervals at n = 5,000, ε = 1 and up to 20 %:", ""]
    lines += [f"- {one['statistic']}, {100 * one['share']:g} % {one['how']}: ×{ratio:.2f}" for one, ratio in wide] or [
        "- none"
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, help="data sets a cell; results go to a file of their own")
    parser.add_argument("--first", type=int, default=0, help="1: only the cells whose width has a limit")
    parser.add_argument("--only", help="statistics, separated by commas")
    parser.add_argument(
        "--part", default="0/1", help="i/k: every k-th cell, beginning with the i-th, for several processes"
    )
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    name = "missing_coverage" if options.runs is None else f"missing_coverage_{options.runs}"
    kept = RESULTS / f"{name}.jsonl"
    stored = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {Cell(*(one[key] for key in Cell._fields)) for one in stored}
    chosen = set(options.only.split(",")) if options.only else set(STATISTICS)
    for place, cell in enumerate(cells()):
        if (
            place % parts != part
            or cell in done
            or cell.statistic not in chosen
            or (options.first and not cell.required)
        ):
            continue
        with kept.open("a") as file:
            found = study(cell, options.runs)
            file.write(json.dumps(found) + "\n")
        print(f"{cell}: covered {[round(one, 3) for one in found['coverage']]}, ×{[round(one, 2) for one in found['ratio']]}, {found['seconds']} s", flush=True)  # fmt: skip
    stored = [json.loads(line) for line in kept.read_text().splitlines()]
    (RESULTS / f"{name}.md").write_text(page(stored))


if __name__ == "__main__":
    main()
