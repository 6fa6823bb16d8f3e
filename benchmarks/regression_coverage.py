"""Measure the coverage of averaged steps (AveragedSteps) on populations that are tables, not models.

    python benchmarks/regression_coverage.py --populations FOLDER --out cells.jsonl
    python benchmarks/regression_coverage.py --populations FOLDER --deciding deciding.json
    python benchmarks/regression_coverage.py --summary cells.jsonl --deciding deciding.json
    python benchmarks/regression_coverage.py --populations FOLDER --groups fresh --epsilon 0.5 1 3 10 --processes 16 --minutes 8

Each cell draws samples with replacement from a table (benchmarks/populations), runs the mechanism's own stages on
each with a seeded generator of NumPy, and compares the estimates with the fit of the whole table without privacy.
A cell that the output file holds is skipped, so that a study can be run in pieces (`--minutes`). Not private: seeds are fixed, and nothing is certified.
The study needs NumPy, SciPy and JAX.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
import zlib
from collections.abc import Iterator
from functools import lru_cache
from multiprocessing import TimeoutError as StillRunning
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from scipy import special

import onedraw as od
from onedraw import models
from onedraw.errors import OnedrawError
from onedraw.methods.fit import AveragedSteps
from onedraw.models import Gaussian

sys.path.insert(0, str(Path(__file__).parent))
from cells import read_cells
from few_records import deciding_rows, density_at_zero
from populations.load import Loaded, load
from regression_coverage_page import CPS_EDUCATION, DELTA, MODELS, RESULTS, summarize

MIN_ROWS_OF_LARGE = 25_000
"""Rows of a table from which samples of 50,000 are drawn."""


class Cell(NamedTuple):
    """Population, model, number of records and ε."""

    population: str
    model: str
    n: int
    epsilon: float


class Table(NamedTuple):
    """A population in encoded units: columns and numeric responses in [-1, 1], labels 0 and 1, capped counts."""

    group: str
    natural: np.ndarray
    """Rows within their bounds, as a release reads them."""
    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    """Coefficients of the whole table, the intercept last."""
    names: list[str]
    model: Any
    categories: tuple[tuple[int, int], ...]


# Tables.


@lru_cache(maxsize=2)
def read_table(folder: str, name: str, model: str) -> Table:
    """Return a population with its model and the coefficients of its whole table, in encoded units."""
    population = load(name, folder)
    lower, upper = population.lower.astype(float), population.upper.astype(float)
    natural = np.clip(population.X.astype(float), lower, upper)
    half, middle = (upper - lower) / 2.0, (upper + lower) / 2.0
    truth = population.truth[model].astype(float)
    truth = np.append(truth[:-1] * half, truth[-1] + truth[:-1] @ middle)
    y = population.y.astype(float)
    if model in ("linear", "median"):
        unit, center = (population.y_upper - population.y_lower) / 2.0, (population.y_upper + population.y_lower) / 2.0
        y, truth = np.clip((y - center) / unit, -1.0, 1.0), truth / unit
        truth[-1] -= center / unit
    elif model == "poisson":
        y = np.minimum(y, population.y_upper)
    else:
        y = y.astype(int)
    return Table(
        population.group,
        natural,
        (natural - middle) / half,
        y,
        truth,
        [*population.columns, "(intercept)"],
        declare_model(population, model),
        tuple(population.categories),
    )


def declare_model(population: Loaded, model: str) -> Any:
    """Return the model with the bounds that the data holder declares."""
    bounds = (population.lower.astype(float).tolist(), population.upper.astype(float).tolist())
    shared: dict[str, Any] = {
        "features": len(bounds[0]), "bounds": bounds, "scaled": True, "prior": Gaussian(scale=1.0)
    }  # fmt: skip
    match model:
        case "linear":
            return models.OrdinaryLeastSquares(**shared, response_bound=1.0)
        case "median":
            return models.Quantile(**shared, level=0.5, response_bound=1.0)
        case "logistic":
            return models.Logistic(**shared, classes=(0, 1))
    return models.CountRegression(**shared, largest=int(population.y_upper))


# Fits without privacy.


def fit_plain(X: np.ndarray, y: np.ndarray, model: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return OLS or MLE coefficients, the intercept last, with robust standard errors; None where there are none."""
    rows = np.c_[X, np.ones(len(X))]
    size = rows.shape[1]
    if model == "linear":
        information = rows.T @ rows
        if np.linalg.cond(information) > 1e12:
            return None
        estimate = np.linalg.solve(information, rows.T @ y)
        residual = y - rows @ estimate
    else:
        fitted = _fit_by_newton(rows, y, model)
        if fitted is None:
            return None
        estimate, information, residual = fitted
    influence = np.linalg.solve(information, (rows * residual[:, None]).T)
    errors = np.sqrt(np.einsum("ij,ij->i", influence, influence))
    return (estimate, errors) if np.isfinite(errors).all() and size else None


def _fit_by_newton(rows: np.ndarray, y: np.ndarray, model: str) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    theta = np.zeros(rows.shape[1])
    rate = min(max(float(y.mean()), 1e-3), 1.0 - 1e-3) if model == "logistic" else max(float(y.mean()), 1e-3)
    theta[-1] = special.logit(rate) if model == "logistic" else math.log(rate)
    for _ in range(30):
        predictor = np.clip(rows @ theta, -30.0, 30.0)
        mean = special.expit(predictor) if model == "logistic" else np.exp(predictor)
        weight = mean * (1.0 - mean) if model == "logistic" else mean
        information = (rows * weight[:, None]).T @ rows
        if np.linalg.cond(information) > 1e12:
            return None
        step = np.linalg.solve(information, rows.T @ (y - mean))
        step *= min(1.0, 3.0 / max(float(np.abs(rows @ step).max()), 1e-12))
        theta = theta + step
        if np.abs(step).max() < 1e-7:
            return theta, information, y - mean
    return None


def compute_median_errors(table: Table, n: int) -> np.ndarray:
    """Return the standard errors of the median's coefficients from n records, by the whole table's density at zero."""
    rows = np.c_[table.X, np.ones(len(table.X))]
    residual = table.y - rows @ table.truth
    density = density_at_zero(residual)
    inverse = np.linalg.inv((rows * density[:, None]).T @ rows / len(rows))
    return np.sqrt(np.diag(inverse @ (rows.T @ rows / len(rows)) @ inverse) * 0.25 / n)


# Private fits.


def calibrate(table: Table, n: int, epsilon: float) -> Any:
    """Return the plan of a cell."""
    return od.calibrate(AveragedSteps(categories=table.categories), table.model, od.ApproxDP(epsilon, DELTA), n=n)


def run_once(plan: Any, X: np.ndarray, y: np.ndarray, generator: np.random.Generator) -> Any:
    """Return the result of the mechanism's own stages, with noise from a generator: simulation only, never private."""
    target = plan.target(plan.model.summarise((X, y)))
    sample = plan.mechanism.own_sampler()().run(target, generator)
    return plan.mechanism.result(plan, sample.stages)


def measure_cell(folder: str, cell: Cell, samples: int, seed: int, raw: Path | None = None) -> dict[str, Any]:
    """Return what a cell stores. If a folder `raw` is named, write every sample's results there too."""
    started, table = time.perf_counter(), read_table(folder, cell.population, cell.model)
    record: dict[str, Any] = {
        **cell._asdict(), "group": table.group, "rows": len(table.y), "d": table.X.shape[1], "samples": samples,
        "names": table.names, "truth": table.truth,
    }  # fmt: skip
    try:
        plan = calibrate(table, cell.n, cell.epsilon)
    except OnedrawError as error:
        return record | {"refused": str(error).splitlines()[0]}
    tag = zlib.crc32(f"{cell.population} {cell.model}".encode())
    generator = np.random.default_rng([seed, tag, cell.n])  # the same samples at each ε
    noise = np.random.default_rng([seed, tag, cell.n, round(1000 * cell.epsilon)])
    parts: dict[str, list[Any]] = {}
    for _ in range(samples):
        index = generator.integers(0, len(table.y), cell.n)
        result = run_once(plan, table.natural[index], table.y[index], noise)
        plain = None if cell.model == "median" else fit_plain(table.X[index], table.y[index], cell.model)
        missing = np.full(len(table.truth), np.nan)
        sampling, privacy = (np.sqrt(np.diag(part)) for part in result.parts)
        values = {
            "estimate": result.estimate, "error": np.sqrt(np.diag(result.covariance)), "sampling": sampling,
            "privacy": privacy, "given": result.given, "reached": result.reached and not result.where.merged.any(),
            "plain": missing if plain is None else plain[0], "plain_error": missing if plain is None else plain[1],
            "specification": result.specification, "limited": result.limited,
            "share_limited": result.share_limited[0],
            "early": result.change @ result.published.early + result.shift,
        }  # fmt: skip
        for name, value in values.items():
            parts.setdefault(name, []).append(value)
    arrays = {name: np.array(value) for name, value in parts.items()}
    early = arrays.pop("early")
    if cell.model == "median":
        arrays["plain_error"] = np.tile(compute_median_errors(table, cell.n), (samples, 1))
    if raw:
        name = f"{cell.population}-{cell.model}-{cell.n}-{cell.epsilon:g}.npz"
        np.savez_compressed(raw / name, truth=table.truth, early=early, **arrays)
    record |= summarize_samples(table.truth, **arrays)
    if (cell.population, cell.model, cell.n) == CPS_EDUCATION:
        slope = table.names.index("educ_years")
        record["education"] = {
            name: arrays[name][:, slope] for name in ("estimate", "error", "privacy", "plain", "plain_error")
        }
    record["beta"] = plan.parameters["step_bound"] / math.sqrt(len(table.truth))
    return record | {"seconds": time.perf_counter() - started}


def summarize_samples(
    truth: np.ndarray, estimate: np.ndarray, error: np.ndarray, sampling: np.ndarray, privacy: np.ndarray,
    given: np.ndarray, reached: np.ndarray, plain: np.ndarray, plain_error: np.ndarray, specification: np.ndarray,
    limited: np.ndarray, share_limited: np.ndarray,
) -> dict[str, Any]:  # fmt: skip
    """Return the figures of a cell, one for each coefficient, from one row for each sample."""
    away = estimate - truth
    covers = np.abs(away) <= special.ndtri(0.975) * error
    used = given & reached[:, None]
    usual = np.nanmedian(plain_error, axis=0) if np.isfinite(plain_error).any() else np.full(len(truth), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a median of no samples is NaN
        distance = np.sqrt(_mean(((estimate - plain) / plain_error) ** 2, np.isfinite(plain)))
        realized = np.sqrt(_mean(away**2, used))
        printed = np.nanmedian(np.where(used, error, np.nan), axis=0)
        return {
            "share_given": given.mean(axis=0), "share_reached": float(reached.mean()), "used": used.sum(axis=0),
            "coverage": _mean(covers, used), "coverage_given": _mean(covers, given), "coverage_all": covers.mean(axis=0),
            "distance": distance, "printed_over_realized": printed / realized, "bias": away.mean(axis=0) / usual,
            "printed_over_plain": np.median(error, axis=0) / usual, "spread_over_plain": estimate.std(axis=0) / usual,
            "sampling_over_plain": np.median(sampling, axis=0) / usual,
            "privacy_over_plain": np.median(privacy, axis=0) / usual, "plain_error": usual,
            "mean_estimate": estimate.mean(axis=0), "median_error": np.median(error, axis=0), "printed": printed,
            "coverage_plain": _mean(np.abs(plain - truth) <= special.ndtri(0.975) * plain_error, np.isfinite(plain)),
            "specification": float(np.median(specification)), "limited": float(np.median(limited)),
            "share_limited": float(np.median(share_limited)),
        }  # fmt: skip


def _mean(values: np.ndarray, where: np.ndarray) -> np.ndarray:
    count = where.sum(axis=0)
    total = np.where(where, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


# The study.


def list_cells(folder: Path, options: argparse.Namespace) -> list[Cell]:
    """Return the cells that the options ask for: n = 10,000 at ε = 1 first, then those that take long."""
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    cells = [
        Cell(name, model, n, epsilon)
        for name, entry in index.items()
        if entry["group"] in options.groups and all(part in name for part in options.only)
        for model in entry["models"]
        if model in options.models
        for n in options.n
        if n <= 10_000 or entry["n"] >= MIN_ROWS_OF_LARGE
        for epsilon in options.epsilon
    ]
    size = {name: entry["d"] + 1 for name, entry in index.items()}
    return sorted(cells, key=lambda cell: (cell[2:] != (10_000, 1.0), -cell.n * size[cell.population]))


def run_study(options: argparse.Namespace) -> None:
    """Run the cells that the output file does not hold, each written as it ends."""
    if options.compiled:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(options.compiled.resolve())
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    done = {(cell["population"], cell["model"], cell["n"], cell["epsilon"]) for cell in read_cells(options.out)}
    cells = [cell for cell in list_cells(options.populations, options) if tuple(cell) not in done]
    print(f"{len(cells)} cells to run; {len(done)} are in {options.out.name}", flush=True)
    jobs = [(str(options.populations), cell, options.samples, options.seed, options.raw) for cell in cells]
    with options.out.open("a", encoding="utf-8") as file:
        for record in _results(jobs, options.processes, options.minutes):
            file.write(json.dumps(_plain(record)) + "\n")
            file.flush()
            print(describe_cell(record), flush=True)


def find_deciding_rows(options: argparse.Namespace) -> None:
    """Write which rows decide each slope of the populations (few_records.py), without privacy."""
    index = json.loads((options.populations / "index.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = {}
    for name, entry in index.items():
        for model in entry["models"] if entry["group"] in options.groups else ():
            table = read_table(str(options.populations), name, model)
            found[f"{name} {model}"] = _plain(deciding_rows(table.X, table.y, table.truth, model))
    options.deciding.write_text(json.dumps(found) + "\n", encoding="utf-8")


def _results(jobs: list[Any], processes: int, minutes: float) -> Iterator[dict[str, Any]]:
    """Yield the records of cells as they end, until the time is over: cells under way then are lost."""
    end = time.monotonic() + 60.0 * minutes
    if processes == 1:
        for job in jobs:
            if time.monotonic() > end:
                return
            yield _measure(job)
        return
    with get_context("spawn").Pool(processes) as pool:
        results = pool.imap_unordered(_measure, jobs, chunksize=1)
        for _ in jobs:
            try:
                yield results.next(None if math.isinf(end) else max(0.0, end - time.monotonic()))
            except StillRunning:
                return


def _measure(job: Any) -> dict[str, Any]:
    return measure_cell(*job)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value


def describe_cell(record: dict[str, Any]) -> str:
    """Return a line about a cell."""
    head = f"{record['population']} {record['model']} n={record['n']} e={record['epsilon']:g}"
    if "refused" in record:
        return f"{head} refused"
    slopes = slice(0, -1)

    def show(name: str) -> str:
        values = np.asarray(record[name], dtype=float)[slopes]
        return " ".join("-" if not math.isfinite(value) else f"{value:.2f}" for value in values)

    return (
        f"{head} reached {record['share_reached']:.2f} | given {show('share_given')} | coverage {show('coverage')} | "
        f"printed/realized {show('printed_over_realized')} | {record['seconds']:.0f} s"
    )


def main() -> None:
    """Run the study, or summarize its file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--populations", type=Path, default=os.environ.get("ONEDRAW_POPULATIONS"))
    parser.add_argument("--groups", nargs="+", default=["derive", "given", "simulated"])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--n", nargs="+", type=int, default=[2_000, 10_000, 50_000])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this time; run again to go on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], help="parts that the population's name contains")
    parser.add_argument("--out", type=Path, default=Path("regression_coverage.jsonl"))
    parser.add_argument("--raw", type=Path, help="folder for the results of every sample, for diagnosis")
    parser.add_argument("--compiled", type=Path, help="folder in which compiled programs are kept between runs")
    parser.add_argument("--summary", type=Path, nargs="+", help="files of cells to summarize")
    parser.add_argument(
        "--deciding", type=Path, help="file of the rows that decide each slope: written, or read for a summary"
    )
    parser.add_argument("--note", default="", help="what the page is to say about how the cells were measured")
    parser.add_argument("--page", type=Path, default=RESULTS, help="page that the summary is written to")
    options = parser.parse_args()
    if options.summary:
        cells = [cell for path in options.summary for cell in read_cells(path)]
        deciding = json.loads(options.deciding.read_text(encoding="utf-8")) if options.deciding else {}
        page = summarize(cells, options.note, deciding)
        options.page.write_text(page, encoding="utf-8")
        print(page)
        return
    if options.populations is None:
        raise SystemExit("No folder of populations is named.\nPass --populations FOLDER or set ONEDRAW_POPULATIONS.")
    find_deciding_rows(options) if options.deciding else run_study(options)


if __name__ == "__main__":
    main()
