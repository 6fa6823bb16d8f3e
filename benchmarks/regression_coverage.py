"""Measure the coverage of averaged steps (AveragedSteps) on populations that are tables, not models.

    python benchmarks/regression_coverage.py --populations FOLDER --out cells.jsonl
    python benchmarks/regression_coverage.py --populations FOLDER --summary cells.jsonl

Each cell draws samples with replacement from a table (benchmarks/populations), runs the mechanism's own stages on
each with a seeded generator of NumPy, and compares the estimates with the fit of the whole table without privacy.
A cell that the output file holds is skipped. Not private: seeds are fixed, and nothing is certified.
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
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
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
from populations.load import Loaded, load

RESULTS = Path(__file__).parent / "results" / "regression_coverage.md"
MODELS = ("linear", "median", "logistic", "poisson")
DELTA = 1e-6
MIN_ROWS_OF_LARGE = 25_000
"""Rows of a table from which samples of 50,000 are drawn."""

MIN_USED_SHARE = 0.2
"""Share of the samples that must be given and reached, for a coefficient's coverage to be counted."""

TOO_WIDE = 1.25
"""Printed over realized standard error from which intervals are called too wide."""

CPS_EDUCATION = ("cps_log_wage_3", "linear", 50_000)
CPS_EPSILONS = (0.3, 1.0, 10.0, 100.0)


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
    spread = min(residual.std(), np.subtract(*np.quantile(residual, (0.75, 0.25))) / 1.34)
    width = max(1.06 * spread * len(rows) ** -0.2, 1e-9)
    density = np.exp(-0.5 * (residual / width) ** 2) / (width * math.sqrt(2.0 * math.pi))
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
            "mean_estimate": estimate.mean(axis=0), "median_error": np.median(error, axis=0),
            "specification": float(np.median(specification)), "limited": float(np.median(limited)),
            "share_limited": float(np.median(share_limited)),
        }  # fmt: skip


def _mean(values: np.ndarray, where: np.ndarray) -> np.ndarray:
    count = where.sum(axis=0)
    total = np.where(where, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


# The study.


def list_cells(folder: Path, options: argparse.Namespace) -> list[Cell]:
    """Return the cells that the options ask for, the wide populations and medians last."""
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
    return sorted(cells, key=lambda cell: (cell.population.endswith("_wide"), cell.model == "median", cell.n > 10_000))


def run_study(options: argparse.Namespace) -> None:
    """Run the cells that the output file does not hold, each written as it ends."""
    if options.compiled:
        import jax

        jax.config.update("jax_compilation_cache_dir", str(options.compiled))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    done = {(cell["population"], cell["model"], cell["n"], cell["epsilon"]) for cell in read_cells(options.out)}
    cells = [cell for cell in list_cells(options.populations, options) if tuple(cell) not in done]
    print(f"{len(cells)} cells to run; {len(done)} are in {options.out.name}", flush=True)
    jobs = [(str(options.populations), cell, options.samples, options.seed, options.raw) for cell in cells]
    with options.out.open("a", encoding="utf-8") as file:
        for record in _results(jobs, options.processes):
            file.write(json.dumps(_plain(record)) + "\n")
            file.flush()
            print(describe_cell(record), flush=True)


def _results(jobs: list[Any], processes: int) -> Iterator[dict[str, Any]]:
    if processes == 1:
        yield from map(_measure, jobs)
        return
    with get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(_measure, jobs, chunksize=1)


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


# The summary.


class Figure(NamedTuple):
    """A slope of a cell."""

    cell: dict[str, Any]
    number: int

    def get(self, name: str) -> float:
        value = self.cell[name][self.number]
        return math.nan if value is None else float(value)

    @property
    def used_share(self) -> float:
        return self.get("used") / float(self.cell["samples"])

    @property
    def low_line(self) -> float:
        """Return 88% less two standard errors of a share of 88%."""
        return 0.88 - 2.0 * math.sqrt(0.88 * 0.12 / max(self.get("used"), 1.0))


def list_slopes(cells: Iterable[dict[str, Any]]) -> list[Figure]:
    """Return one figure for each slope of each cell that was not refused."""
    return [Figure(cell, number) for cell in cells if "refused" not in cell for number in range(cell["d"])]


def summarize(cells: Sequence[dict[str, Any]], note: str = "") -> str:
    """Return the page of results, with a note on how they were measured."""
    lines = ["# Coverage of averaged steps on tables", "", *_head(cells), *(["", note] if note else [])]
    for group in ("derive", "hold-out", "given", "simulated"):
        chosen = [cell for cell in cells if cell["group"] == group]
        if chosen:
            lines += ["", f"## Group {group}", "", *_group_table(chosen)]
    lines += ["", "## Where coverage fails", "", *_failures(cells)]
    lines += ["", "## Where intervals are too wide", "", *_too_wide(cells)]
    lines += ["", "## What is withheld or named", "", *_withheld(cells)]
    lines += ["", "## Education in the CPS of 2024", "", *_education(cells)]
    return "\n".join(lines) + "\n"


def _head(cells: Sequence[dict[str, Any]]) -> list[str]:
    samples = sorted({cell["samples"] for cell in cells})
    return [
        "Made by `benchmarks/regression_coverage.py`. A cell is a population, a model, a number of records and ε, with",
        f"δ = {DELTA:g} and {' or '.join(map(str, samples))} samples with replacement. The parameter is the fit of the whole table.",
        "",
        "- given, reached: share of (slope, sample) with an interval, and of samples whose estimand is the plain one. It is not where",
        "  single records are limited, or rare levels counted with the first one.",
        "- coverage: of 95% intervals that are given, in samples that are reached. Mean over slopes.",
        "- below 92%: share of slopes with such a coverage. Below 88%: by more than two standard errors. Both of slopes with",
        f"  at least {100 * MIN_USED_SHARE:.0f}% of the samples given and reached (`judged`).",
        "- coverage given: the same, reached or not, for slopes that are given in at least that share of the samples.",
        "- printed/realized: median printed standard error over the root mean squared error, 10, 50 and 90% quantiles.",
        "- distance: root mean squared distance to the same sample's fit without privacy, in its robust standard errors.",
    ]  # fmt: skip


def _group_table(cells: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "| model | n | ε | cells (refused) | slopes | given | reached | judged | coverage | below 92% | below 88% | coverage given | printed/realized | distance 50%, 90% | printed/plain |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- | ---: |",
    ]
    keys = sorted({(MODELS.index(cell["model"]), cell["n"], cell["epsilon"]) for cell in cells})
    for model, n, epsilon in keys:
        chosen = [cell for cell in cells if (cell["model"], cell["n"], cell["epsilon"]) == (MODELS[model], n, epsilon)]
        refused = sum("refused" in cell for cell in chosen)
        slopes = list_slopes(chosen)
        if not slopes:
            lines.append(f"| {MODELS[model]} | {n:,} | {epsilon:g} | {len(chosen)} ({refused}) | | | | | | | | | | | |")
            continue
        judged = [slope for slope in slopes if slope.used_share >= MIN_USED_SHARE]
        coverage = np.array([slope.get("coverage") for slope in judged])
        low = np.array([slope.low_line for slope in judged])
        reached = np.mean([cell["share_reached"] for cell in chosen if "refused" not in cell])
        lines.append(
            f"| {MODELS[model]} | {n:,} | {epsilon:g} | {len(chosen)} ({refused}) | {len(slopes)} "
            f"| {np.mean([slope.get('share_given') for slope in slopes]):.2f} | {reached:.2f} | {len(judged)} "
            f"| {_number(coverage.mean() if judged else math.nan, 3)} "
            f"| {_percent(coverage < 0.92)} | {_percent(coverage < low)} | {_number(_mean_of(slopes, 'coverage_given'), 3)} "
            f"| {_quantiles(judged, 'printed_over_realized', (0.1, 0.5, 0.9))} | {_quantiles(slopes, 'distance', (0.5, 0.9))} "
            f"| {_quantiles(judged, 'printed_over_plain', (0.5,))} |"
        )
    return lines


def _failures(cells: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "Slopes that are judged and cover less than 88% by more than two standard errors. Bias, printed and spread in plain",
        "standard errors.",
        "",
        "| group | population | model | n | ε | slope | coverage | samples | bias | printed | spread | specification | limited |",
        "| --- | --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for slope in list_slopes(cells):
        if slope.used_share >= MIN_USED_SHARE and slope.get("coverage") < slope.low_line:
            cell = slope.cell
            lines.append(
                f"| {cell['group']} | {cell['population']} | {cell['model']} | {cell['n']:,} | {cell['epsilon']:g} | {cell['names'][slope.number]} "
                f"| {slope.get('coverage'):.2f} | {slope.get('used'):.0f} | {slope.get('bias'):+.2f} | {slope.get('printed_over_plain'):.2f} "
                f"| {slope.get('spread_over_plain'):.2f} | {cell['specification']:.1f} | {cell['limited']:.2f} |"
            )
    return lines if len(lines) > 5 else ["None."]


def _too_wide(cells: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        f"Share of judged slopes whose printed standard error exceeds the realized one by a factor above {TOO_WIDE}.",
        "",
        "| model | n | ε | share | populations with the most |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    keys = sorted({(MODELS.index(cell["model"]), cell["n"], cell["epsilon"]) for cell in cells})
    for model, n, epsilon in keys:
        chosen = [
            slope
            for slope in list_slopes(cells)
            if (slope.cell["model"], slope.cell["n"], slope.cell["epsilon"]) == (MODELS[model], n, epsilon)
            and slope.used_share >= MIN_USED_SHARE
        ]
        wide = [slope for slope in chosen if slope.get("printed_over_realized") > TOO_WIDE]
        counts: dict[str, int] = {}
        for slope in wide:
            counts[slope.cell["population"]] = counts.get(slope.cell["population"], 0) + 1
        most = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items(), key=lambda pair: -pair[1])[:4])
        if chosen:
            lines.append(f"| {MODELS[model]} | {n:,} | {epsilon:g} | {len(wide) / len(chosen):.2f} | {most} |")
    return lines


def _withheld(cells: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "Cells of n = 10,000 that are refused, whose estimand is named in at least a fifth of the samples, or in which at least a",
        "fifth of the intervals of a slope are withheld; at ε = 1, counts at ε = 3.",
        "",
        "| group | population | model | n | ε | named | slopes withheld (share of samples) |",
        "| --- | --- | --- | ---: | ---: | ---: | --- |",
    ]
    shown = [
        cell
        for cell in cells
        if cell["n"] == 10_000 and cell["epsilon"] == (3.0 if cell["model"] == "poisson" else 1.0)
    ]
    for cell in sorted(shown, key=lambda cell: (cell["group"], cell["model"], cell["population"])):
        head = f"| {cell['group']} | {cell['population']} | {cell['model']} | {cell['n']:,} | {cell['epsilon']:g} "
        if "refused" in cell:
            lines.append(f"{head}| refused | all |")
            continue
        withheld = {cell["names"][index]: 1.0 - cell["share_given"][index] for index in range(cell["d"])}
        withheld = {name: share for name, share in withheld.items() if share >= 0.2}
        if withheld or cell["share_reached"] <= 0.8:
            slopes = ", ".join(f"{name} {share:.2f}" for name, share in withheld.items())
            lines.append(f"{head}| {1.0 - cell['share_reached']:.2f} | {slopes} |")
    return lines if len(lines) > 5 else ["Nothing."]


def _education(cells: Sequence[dict[str, Any]]) -> list[str]:
    name, model, n = CPS_EDUCATION
    chosen = {
        cell["epsilon"]: cell
        for cell in cells
        if (cell["population"], cell["model"], cell["n"]) == CPS_EDUCATION and "refused" not in cell
    }
    if not any(epsilon in chosen for epsilon in CPS_EPSILONS):
        return [
            f"Not run: `--only {name} --models {model} --n {n} --epsilon {' '.join(f'{e:g}' for e in CPS_EPSILONS)}`."
        ]
    lines = [
        f"Slope of log wage in years of education ({name}, n = {n:,}), the same samples at each ε. Distances, bias and printed",
        "standard errors in standard errors of the same sample's OLS. Agreement: share of the samples in which the estimate is",
        "within 1.96 standard errors of the privacy noise of both estimates from that of the largest ε.",
        "",
        "| ε | distance | bias | printed | printed for privacy | coverage | agreement |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    samples = min(len(cell["education"]["estimate"]) for cell in chosen.values())
    last = {part: values[:samples] for part, values in chosen[max(chosen)]["education"].items()}
    for epsilon, cell in sorted(chosen.items()):
        slope = Figure(cell, cell["names"].index("educ_years"))
        values = {part: np.array(cell["education"][part][:samples]) for part in cell["education"]}
        noise = np.hypot(values["privacy"], np.array(last["privacy"]))
        agreement = np.mean(np.abs(values["estimate"] - np.array(last["estimate"])) <= 1.96 * noise)
        lines.append(
            f"| {epsilon:g} | {slope.get('distance'):.2f} | {slope.get('bias'):+.2f} | {slope.get('printed_over_plain'):.2f} "
            f"| {slope.get('privacy_over_plain'):.2f} | {slope.get('coverage_given'):.2f} | {agreement:.2f} |"
        )
    return lines


def _quantiles(slopes: Sequence[Figure], name: str, levels: Sequence[float]) -> str:
    values = np.array([slope.get(name) for slope in slopes])
    values = values[np.isfinite(values)]
    return ", ".join(f"{value:.2f}" for value in np.quantile(values, levels)) if len(values) else "-"


def _mean_of(slopes: Sequence[Figure], name: str) -> float:
    values = np.array([slope.get(name) for slope in slopes if slope.get("share_given") >= MIN_USED_SHARE])
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else math.nan


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


def _percent(marks: np.ndarray) -> str:
    return f"{100.0 * marks.mean():.1f}%" if len(marks) else "-"


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
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], help="parts that the population's name contains")
    parser.add_argument("--out", type=Path, default=Path("regression_coverage.jsonl"))
    parser.add_argument("--raw", type=Path, help="folder for the results of every sample, for diagnosis")
    parser.add_argument("--compiled", type=Path, help="folder in which compiled programs are kept between runs")
    parser.add_argument("--summary", type=Path, nargs="+", help="files of cells to summarize")
    parser.add_argument("--note", default="", help="what the page is to say about how the cells were measured")
    parser.add_argument("--page", type=Path, default=RESULTS, help="page that the summary is written to")
    options = parser.parse_args()
    if options.summary:
        page = summarize([cell for path in options.summary for cell in read_cells(path)], options.note)
        options.page.write_text(page, encoding="utf-8")
        print(page)
        return
    if options.populations is None:
        raise SystemExit("No folder of populations is named.\nPass --populations FOLDER or set ONEDRAW_POPULATIONS.")
    run_study(options)


if __name__ == "__main__":
    main()
