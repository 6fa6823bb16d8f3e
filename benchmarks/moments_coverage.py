"""Do the intervals of private moments hold, and how far off are they? Simulated designs and real tables.

    python benchmarks/moments_coverage.py --data-sets 160 --out benchmarks/results/moments_coverage.md

Nominal 95 %. A cell is a design, n and ε; means, standard deviations and every correlation that is given count, against
the truth of the clamped population. A cell fails if the upper 99.9 % Clopper–Pearson limit of its coverage is below 93 %.
Real tables are resampled: the table is the population. Nothing here is a release: noise is seeded.
"""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

import onedraw as od
from onedraw.methods import Moments, calibrate
from onedraw.methods.moments.run import measure_all
from onedraw.models import Columns
from onedraw.samplers.noise import Noise

LEVEL, LEAST = 0.95, 0.93
SIZES, EPSILONS, DELTA = (500, 4177, 20_000), (0.5, 1.0, 5.0), 1e-6


# ── designs, all in [−1, 1] ──────────────────────────────────────────────────────────────────────────────────────


def common(generator, n, columns, correlation):
    shared = generator.standard_normal((n, 1))
    return math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * generator.standard_normal((n, columns))


def uniform(generator, n):
    return generator.uniform(-1, 1, (n, 4))


def narrow(generator, n):
    return 0.1 * common(generator, n, 6, 0.5)


def wide(generator, n):
    return 0.35 * common(generator, n, 6, 0.5)


def skewed(generator, n):
    shared = generator.exponential(1, (n, 1))
    return 2 * (0.5 * shared + generator.exponential(0.5, (n, 5))) / 8 - 1


def off_centre(generator, n):
    return 0.8 + 0.05 * common(generator, n, 5, 0.6)


def heavy(generator, n):
    return 0.7 * (generator.standard_t(3, (n, 1)) + generator.standard_t(3, (n, 5))) / 12


def rare(generator, n):
    labels = (generator.uniform(size=(n, 2)) < [0.05, 0.02]) * 2.0 - 1.0
    return np.column_stack([labels, 0.3 * generator.standard_normal((n, 3)) + 0.15 * labels[:, :1]])


def alike(generator, n):
    return 0.8 * generator.uniform(-1, 1, (n, 1)) + 0.03 * generator.standard_normal((n, 4))


def elliptic(generator, n):
    return 0.15 * common(generator, n, 8, 0.4) / np.sqrt(generator.chisquare(4, (n, 1)) / 4)


def lognormal(generator, n):
    return 2 * np.exp(0.7 * common(generator, n, 5, 0.5)) / 10 - 1


def curved(generator, n):
    x, y = generator.standard_normal((2, n))
    return 0.2 * np.column_stack([x, y, x**2 - 1 + 0.5 * generator.standard_normal(n), x * y])


DESIGNS = (uniform, narrow, wide, skewed, off_centre, heavy, rare, alike, elliptic, lognormal, curved)

TABLES: dict[str, dict[str, tuple[float, float]]] = {
    "abalone.csv": {"length": (0, 1), "diameter": (0, 1), "height": (0, 0.5), "whole_weight": (0, 3), "shucked_weight": (0, 2), "viscera_weight": (0, 1), "shell_weight": (0, 1.5), "rings": (0, 30)},
    "banknote_authentication.csv": {"variance": (-8, 8), "skewness": (-15, 15), "curtosis": (-10, 20), "entropy": (-10, 5)},
    "wine_quality_red.csv": {"fixed_acidity": (0, 20), "volatile_acidity": (0, 2), "citric_acid": (0, 1), "residual_sugar": (0, 20), "chlorides": (0, 1), "sulphates": (0, 2), "alcohol": (8, 16), "quality": (0, 10)},
    "kin8nm.csv": {"theta1": (-1.6, 1.6), "theta3": (-1.6, 1.6), "theta5": (-1.6, 1.6), "y": (0, 1.5)},
    "boston_housing.csv": {"CRIM": (0, 100), "NOX": (0.3, 1), "RM": (3, 9), "AGE": (0, 100), "LSTAT": (0, 40), "MEDV": (0, 50)},
    "adult_train.csv.gz": {"age": (17, 90), "education_num": (1, 16), "capital_gain": (0, 100_000), "capital_loss": (0, 5000), "hours_per_week": (1, 99)},
}  # fmt: skip
"""Columns with bounds that somebody who never saw the rows might declare."""


def table(name: str) -> np.ndarray:
    import pandas

    folder = Path(os.environ.get("ONEDRAW_DATA", "../shared/data"))
    bounds = TABLES[name]
    values = pandas.read_csv(folder / name)[list(bounds)].to_numpy(dtype=np.float64)
    lower, upper = np.array(list(bounds.values()), dtype=np.float64).T
    return 2.0 * (values - lower) / (upper - lower) - 1.0


# ── one cell ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Cell:
    """Counts over data sets: held and given, by part; squared errors; widths over the usual ones."""

    name: str
    n: int
    budget: str
    held: dict[str, int]
    given: dict[str, int]
    asked: dict[str, int]
    squared: dict[str, float]
    width: float

    def coverage(self, part: str) -> float:
        return self.held[part] / self.given[part] if self.given[part] else math.nan

    def fails(self, part: str) -> bool:
        if not self.given[part]:
            return False
        # numbers of one data set are not independent: the limit is that of a tenth as many
        trials = max(1, self.given[part] // 10)
        held = round(self.coverage(part) * trials)
        return held < trials and float(stats.beta.ppf(0.999, held + 1, trials - held)) < LEAST


def study(name, draw, truth, n, budget, data_sets, seed) -> Cell:
    generator = np.random.default_rng([seed, n])
    columns = len(truth[0])
    plan = calibrate(Moments(), Columns(columns, bounds=(-1, 1)), budget, n=n)
    problem = plan.mechanism.problem(plan)
    below = np.tril_indices(columns, -1)
    parts = {"means": slice(0, columns), "deviations": slice(columns, 2 * columns), "correlations": slice(2 * columns, None)}  # fmt: skip
    wanted = np.concatenate([truth[0], truth[1], truth[2][below]])
    usual = (1 - wanted[parts["correlations"]] ** 2) / math.sqrt(n)
    held, given, asked = (dict.fromkeys(parts, 0) for _ in range(3))
    cell = Cell(name, n, str(budget), held, given, asked, dict.fromkeys(parts, 0.0), 0.0)
    widths = []
    for _ in range(data_sets):
        target = plan.target(plan.model.summarise(np.clip(draw(generator, n), -1, 1)))
        found = plan.mechanism.result(
            plan, measure_all(target.records.sum, problem, Noise(generator, pure=problem.pure))
        )
        ends, values = found.conf_int(LEVEL), found.values
        for part, where in parts.items():
            low, high = ends[where].T
            known = np.isfinite(low)
            cell.asked[part] += len(low)
            cell.given[part] += int(known.sum())
            cell.held[part] += int(((low <= wanted[where]) & (wanted[where] <= high))[known].sum())
            cell.squared[part] += float(np.mean((values[where] - wanted[where]) ** 2))
        half = np.diff(ends[parts["correlations"]], axis=1)[:, 0] / 2.0 / 1.96
        widths += (half / usual)[np.isfinite(half)].tolist()
    cell.width = float(np.median(widths)) if widths else math.nan
    for part in parts:
        cell.squared[part] = math.sqrt(cell.squared[part] / data_sets)
    return cell


def described(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = np.clip(rows, -1, 1)
    return rows.mean(axis=0), rows.std(axis=0), np.corrcoef(rows.T)


def cells(data_sets: int, *, pure: bool, designs=DESIGNS, sizes=SIZES, epsilons=EPSILONS, tables=True):
    budgets = [od.PureDP(epsilon) if pure else od.ApproxDP(epsilon, DELTA) for epsilon in epsilons]
    for index, design in enumerate(designs):
        truth = described(design(np.random.default_rng(index), 1_000_000))
        for n in sizes:
            for budget in budgets:
                yield study(design.__name__, design, truth, n, budget, data_sets, index)
    for index, name in enumerate(TABLES if tables else ()):
        rows = table(name)
        truth = described(rows)

        def resampled(generator, n, rows=rows):
            return rows[generator.integers(len(rows), size=n)]

        for budget in budgets:
            yield study(name.split(".")[0], resampled, truth, len(rows), budget, data_sets, 100 + index)


def line(cell: Cell) -> str:
    given = cell.given["correlations"] / max(1, cell.asked["correlations"])
    failed = [part for part in cell.held if cell.fails(part)]
    cover = " | ".join(
        "–" if math.isnan(cell.coverage(part)) else f"{100 * cell.coverage(part):.1f}" for part in cell.held
    )
    errors = " | ".join(f"{cell.squared[part]:.3f}" for part in cell.held)
    return f"| {cell.name} | {cell.n:,} | {cell.budget} | {cover} | {100 * given:.0f} % | {cell.width:.2f} | {errors} | {', '.join(failed)} |"


HEAD = """| design | n | budget | means | deviations | correlations | given | width | error of a mean | of a deviation | of a correlation | fails |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""

TITLE = """# Coverage of the intervals of private moments

Written by `benchmarks/moments_coverage.py`. Nominal 95 %, δ = 1e-06 or pure ε; coverage in per cent of the means, the standard
deviations and the correlations that are given (their share beside it); half-widths of correlations over the usual 1.96·(1 − r²)/√n,
which for columns that are nearly equal is next to nothing; root mean squared errors in half-ranges, of a correlation that is not given
those of 0. Tables are resampled with bounds that somebody who never saw them might declare. A cell fails if the upper 99.9 % limit of
its coverage is below 93 %: {failed} of {cells} do.
"""


def report(found: list[Cell], data_sets: int) -> str:
    """The page: what was done, and a line for each cell."""
    failed = sum(any(cell.fails(part) for part in cell.held) for cell in found)
    head = TITLE.format(failed=failed, cells=len(found))
    return (
        f"{head}\n{data_sets} data sets a cell, a quarter of it for pure ε.\n\n{HEAD}\n"
        + "\n".join(map(line, found))
        + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=160)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found: list[Cell] = []
    print(HEAD, flush=True)
    for pure in (False, True):
        for cell in cells(max(1, options.data_sets // (4 if pure else 1)), pure=pure):
            found.append(cell)
            print(line(cell), flush=True)
    if options.out:
        options.out.write_text(report(found, options.data_sets))


if __name__ == "__main__":
    main()
