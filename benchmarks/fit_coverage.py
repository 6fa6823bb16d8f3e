"""Do the intervals of a perturbed mode cover, in designs nobody would choose, and how wide are they beside the usual ones?

    python benchmarks/fit_coverage.py                     # the whole study: hours on two cores, minutes on sixteen
    python benchmarks/fit_coverage.py --sets 100 --cells logistic/uniform/8000

Each cell simulates data sets with a known truth, fits them by the mechanism's own program and counts, coefficient by coefficient: how often an interval was given, how often those
given cover at 90 and 95 %, how often those refused would have, how wide they are beside a fit without privacy, and the
error a report prints over the one realised. A cell fails if the upper 99.9 % limit of a coverage is below nominal − 2
points. The intercept of "linear skewed" is not judged: it is that of the loss's centre, not of the mean, as the
documentation says. NumPy, SciPy and JAX are all it needs. Several runs are put together with --table.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import time
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np
from scipy import special, stats

RESULTS = Path(__file__).parent / "results"
LEVELS = (0.90, 0.95)
FIRST = 200
"""Data sets after which a cell is not continued in which no coefficient was ever given an interval."""

FRESH = 1_000_000
"""The first seed: constants were chosen on data sets with small ones, so what is reported here is independent of them."""

SIZES, EPSILONS = (3000, 8000, 20000), (0.5, 1.0, 5.0)


# ── designs: rows in [−1, 1]⁴ and the truth ──────────────────────────────────────────────────────────────────────


def uniform(rng, n):
    return rng.uniform(-1, 1, (n, 4))


def skewed(rng, n):
    """Exponential columns with a common part, most of them near one end of the range."""
    return np.clip(2.0 * (rng.exponential(0.12, (n, 4)) + rng.exponential(0.08, (n, 1))) - 1.0, -1, 1)


def heavy(rng, n):
    return np.clip(0.15 * rng.standard_t(3, (n, 4)), -1, 1)


def off_centre(rng, n):
    return np.clip(0.6 + 0.12 * rng.standard_normal((n, 4)), -1, 1)


def common(rng, n):
    """Columns = common + N(0, 0.03²) of a range of 1."""
    return np.clip(rng.uniform(-0.9, 0.9, (n, 1)) + 0.06 * rng.standard_normal((n, 4)), -1, 1)


def rare(share):
    def rows(rng, n):
        X = rng.uniform(-1, 1, (n, 4))
        X[:, 0] = np.where(rng.uniform(size=n) < share, 1.0, -1.0)
        return X

    return rows


USUAL = (1.0, -0.5, 0.5, 0.0, 0.3)
DESIGNS = {
    "uniform": (uniform, USUAL),
    "skewed": (skewed, (1.5, -1.0, 0.5, 0.0, 0.5)),
    "heavy": (heavy, (2.0, -1.0, 1.0, 0.0, 0.3)),
    "off-centre": (off_centre, (2.0, -2.0, 1.0, 0.0, -0.5)),
    "common": (common, (6.0, -6.0, 0.0, 0.0, 0.0)),
    "strong": (uniform, (3.0, -2.0, 1.0, 0.0, 0.0)),
    "rare 0.05": (rare(0.05), (1.0, -0.5, 0.5, 0.0, 1.0)),
    "rare 0.01": (rare(0.01), (1.0, -0.5, 0.5, 0.0, 1.0)),
    "rare 0.002": (rare(0.002), (2.0, -0.5, 0.5, 0.0, 2.0)),
    "separable": (uniform, (12.0, -12.0, 0.0, 0.0, 0.0)),
    "base rate": (uniform, (1.0, -0.5, 0.5, 0.0, -3.7)),
}
RESIDUALS = {
    "normal": lambda rng, X: rng.standard_normal(len(X)),
    "t3": lambda rng, X: rng.standard_t(3, len(X)),
    "skewed": lambda rng, X: rng.exponential(1.0, len(X)) - 1.0,
    "uneven": lambda rng, X: (0.4 + 0.8 * np.abs(X[:, 0])) * rng.standard_normal(len(X)),
}
NOISE, RANGE, LARGEST = 0.5, 4.0, 8
"""Residual deviation and half-range of linear responses; the declared largest count."""


def cells():
    """kind/design/n/ε, the designs of a review first."""
    budgets = list(itertools.product(SIZES, EPSILONS))
    for design, (n, epsilon) in itertools.product(DESIGNS, budgets):
        yield f"logistic/{design}/{n}/{epsilon:g}"
    linear = [*(f"linear/{design}" for design in DESIGNS if design not in ("base rate", "separable", "strong"))]
    linear += [f"linear {residual}/uniform" for residual in RESIDUALS if residual != "normal"]
    for name, (n, epsilon) in itertools.product(linear, budgets):
        yield f"{name}/{n}/{epsilon:g}"
    for design, (n, epsilon) in itertools.product(("uniform", "skewed", "heavy", "off-centre", "rare 0.05"), budgets):
        yield f"counts/{design}/{n}/{epsilon:g}"


# ── one data set ─────────────────────────────────────────────────────────────────────────────────────────────────


def simulated(kind, design, rng, n):
    """(rows with their 1, responses, truth)."""
    rows, truth = DESIGNS[design]
    X, theta = np.column_stack([rows(rng, n), np.ones(n)]), np.array(truth)
    u = X @ theta
    if kind == "logistic":
        return X, np.where(rng.uniform(size=n) < special.expit(u), 1.0, -1.0), theta
    if kind == "counts":
        theta = theta / 2.0
        return X, np.minimum(rng.poisson(np.exp(np.clip(u / 2.0, -20, 6))), LARGEST).astype(float), theta
    residual = kind.removeprefix("linear").strip() or "normal"
    theta = theta / 4.0
    return X, np.clip(u / 4.0 + NOISE * RESIDUALS[residual](rng, X), -RANGE, RANGE), theta


def usual_errors(kind, X, y, theta):
    """Standard errors without privacy: of the likelihood at the truth, or of least squares with the residuals' deviation."""
    if kind == "logistic":
        p = special.expit(X @ theta)
        weight = p * (1.0 - p)
    elif kind == "counts":
        weight = np.exp(np.clip(X @ theta, -20, 6))
    else:
        weight = np.full(len(X), 1.0 / np.mean((y - X @ theta) ** 2))
    information = (X * weight[:, None]).T @ X
    return np.sqrt(np.diag(np.linalg.pinv(information)))


@cache
def plan_of(kind, n, epsilon):
    from onedraw.methods import calibrate
    from onedraw.methods.perturbed_mode.mechanism import PerturbedMode
    from onedraw.models import CountRegression, Gaussian, LogCoshRegression, Logistic
    from onedraw.privacy import PureDP

    model: Logistic | CountRegression | LogCoshRegression
    rows: dict[str, Any] = {"features": 4, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}
    if kind == "logistic":
        model = Logistic(**rows, loss="exp-linear")
    elif kind == "counts":
        model = CountRegression(**rows, largest=LARGEST)
    else:
        model = LogCoshRegression(**rows, response_bound=RANGE)
    return calibrate(PerturbedMode(intervals=True), model, PureDP(epsilon), n=n)


def one(plan, kind, design, seed):
    from onedraw.methods.perturbed_mode.run import Stages
    from onedraw.models.fit.result import FitResult
    from onedraw.models.row_model import Encoded
    from onedraw.samplers.noise import Noise

    rng = np.random.default_rng(seed)
    X, y, truth = simulated(kind, design, rng, plan.n)
    target = plan.target(Encoded(plan.n, X, y))
    published = Stages(target, Noise(rng, pure=True)).run()
    fit = FitResult.of(target.problem, published)
    error = np.abs(fit.estimate - truth)
    spread = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0))
    reaches = [fit.multiplier(level) * spread for level in LEVELS]
    usual = usual_errors(kind, X, y, truth)
    width = reaches[1] / (special.ndtri(0.975) * usual)
    return np.stack([fit.given, *(error <= reach for reach in reaches), width, error**2, spread**2]).astype(float)


def run_chunk(task):
    cell, seeds = task
    kind, design, n, epsilon = cell.split("/")
    try:
        plan = plan_of(kind.split()[0], int(n), float(epsilon))
    except Exception as refusal:  # a budget too small for any plan is a result of its own
        return cell, str(refusal)
    return cell, [one(plan, kind, design, seed).tolist() for seed in seeds]


# ── many ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def summary(found):
    """Per coefficient: share given, coverage of those given, would-be coverage of the others, width, error ratio."""
    given, c90, c95, width, squared, spread = np.moveaxis(np.array(found), 1, 0)
    rows = []
    for j in range(given.shape[1]):
        here, gone = given[:, j] == 1.0, given[:, j] == 0.0
        count = int(here.sum())
        rows.append(
            {
                "given": float(here.mean()),
                "coverage": [float(c[here, j].mean()) if count else None for c in (c90, c95)],
                "limit": [upper_limit(int(c[here, j].sum()), count) for c in (c90, c95)],
                "refused": float(c95[gone, j].mean()) if gone.any() else None,
                "width": float(width[here, j].mean()) if count else None,
                "error": float(math.sqrt(spread[here, j].mean() / squared[here, j].mean())) if count else None,
            }
        )
    return rows


def upper_limit(hits, count):
    """The upper 99.9 % Clopper–Pearson limit."""
    if not count:
        return None
    return 1.0 if hits == count else float(stats.beta.ppf(0.999, hits + 1, count - hits))


def failed(cell, rows):
    judged = rows[:-1] if cell.startswith("linear skewed") else rows
    return any(
        limit is not None and limit < level - 0.02
        for row in judged
        for limit, level in zip(row["limit"], LEVELS, strict=True)
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--cells", nargs="*", default=[""], help="run the cells whose name begins so")
    parser.add_argument("--hopeful", action="store_true", help="only cells large enough for intervals to be given")
    parser.add_argument(
        "--cells-part", default="1/1", help="2/3 runs the second of three parts of the cells, alike in kind"
    )
    parser.add_argument("--table", nargs="+", type=Path, help="run nothing; write fit_coverage.md from these results")
    parser.add_argument("--first-seed", type=int, default=FRESH, help="data sets are numbered from here on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--chunk", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no further chunk after this long")
    parser.add_argument("--out", type=Path, default=RESULTS / "fit_coverage.json")
    options = parser.parse_args()
    if options.table:
        return write(options.table)
    chosen = [
        cell
        for cell in cells()
        if any(cell.startswith(prefix) for prefix in options.cells) and (hopeful(cell) or not options.hopeful)
    ]
    part, parts = map(int, options.cells_part.split("/"))
    chosen = chosen[part - 1 :: parts]
    began, refused = time.monotonic(), {}
    found: dict[str, list[Any]] = {}
    with get_context("spawn").Pool(options.jobs) as pool:
        for first, last in ((0, min(FIRST, options.sets)), (FIRST, options.sets)):
            going = [cell for cell in chosen if not first or any(np.any(one[0]) for one in found.get(cell, []))]
            tasks = [  # all cells alike, however long there is
                (cell, range(options.first_seed + start, options.first_seed + min(start + options.chunk, last)))
                for start in range(first, last, options.chunk)
                for cell in going
            ]
            for cell, part in pool.imap_unordered(run_chunk, tasks):
                if isinstance(part, str):
                    refused[cell] = part
                else:
                    found.setdefault(cell, []).extend(part)
                if time.monotonic() - began > options.seconds:
                    pool.terminate()
                    break
            if time.monotonic() - began > options.seconds:
                break
    result = {cell: {"sets": len(found[cell]), "rows": summary(found[cell])} for cell in chosen if cell in found}
    for cell, entry in result.items():
        print("FAILS" if failed(cell, entry["rows"]) else "holds", cell, entry["sets"], line(entry["rows"]), flush=True)
    options.out.write_text(json.dumps({"cells": result, "refused": refused}), encoding="utf-8")
    print(
        f"{len(result)} cells, {sum(failed(cell, entry['rows']) for cell, entry in result.items())} fail, {len(refused)} refused, {time.monotonic() - began:.0f} s"
    )


def hopeful(cell):
    """Whether n·ε is so large that some design is given intervals."""
    _, _, n, epsilon = cell.split("/")
    return int(n) * float(epsilon) >= 8000


def write(files):
    """One table of all cells; a cell that stands in several files is taken from the one with most data sets."""
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        for cell, entry in json.loads(file.read_text(encoding="utf-8"))["cells"].items():
            if cell not in found or entry["sets"] > found[cell]["sets"]:
                found[cell] = entry
    held = sum(not failed(cell, entry["rows"]) for cell, entry in found.items())
    text = [
        "# Coverage of the intervals of perturbed modes",
        "",
        "Written by `benchmarks/fit_coverage.py`. Pure ε; four coefficients and the intercept, in this order. "
        "Coverage at nominal 95 %, of the intervals given; would-be coverage of those refused; width over that of a fit without "
        "privacy; the standard error printed over the error realised. A cell holds if no coefficient's upper 99.9 % limit is below "
        f"nominal − 2 points at 90 or 95 %: {held} of {len(found)} do.",
        "",
        f"Over all cells the intervals given cover: {pooled(found)}. A cell of 200 sets was given no interval in any of them and not continued. Data sets are numbered from {FRESH:,} on: no constant was chosen on them. Coefficients that are "
        "given in a few per cent of the fits are given where the information happened to be measured large, and may cover less there.",
        "",
        "## What is refused",
        "",
        *(f"- {found_line}" for found_line in refusals(found)),
        "",
        "## Every cell",
        "",
        "| cell | sets | | given | coverage | refused would cover | width | error |",
        "| --- | ---: | --- | --- | --- | --- | --- | --- |",
    ]
    for cell in (cell for cell in cells() if cell in found):
        entry = found[cell]
        parts = [part.strip().split(" ", 1)[1] for part in line(entry["rows"]).replace("95 % ", "coverage ").split("|")]
        text.append(
            f"| {cell} | {entry['sets']} | {'**fails**' if failed(cell, entry['rows']) else 'holds'} | {' | '.join(parts)} |"
        )
    (RESULTS / "fit_coverage.md").write_text("\n".join([*text, ""]), encoding="utf-8")


def refusals(found):
    """Coefficients whose interval would cover less than 90 % if it were always given (by its upper 99.9 % limit), and how often
    those were refused."""
    doubtful, refused, hits = [], 0.0, 0.0
    for cell, entry in found.items():
        sets = entry["sets"]
        for j, row in enumerate(entry["rows"][:-1] if cell.startswith("linear skewed") else entry["rows"]):
            given, covered, would = row["given"], row["coverage"][1] or 0.0, row["refused"] or 0.0
            refused, hits = refused + (1 - given) * sets, hits + (1 - given) * sets * would
            always = round((given * covered + (1 - given) * would) * sets)
            if upper_limit(always, sets) < LEVELS[1] - 0.05:
                doubtful.append((given, covered, f"{cell}, coefficient {j}"))
    often = sorted((one for one in doubtful if one[0] > 0.05), reverse=True)
    yield f"{len(doubtful)} coefficients of a cell would cover below 90 % at nominal 95 % if they were always given an interval; {len(doubtful) - len(often)} of them are refused one in at least 95 % of the fits"
    for given, covered, name in often:
        yield f"… {name}: given in {100 * given:.0f} % of the fits, where it covers {100 * covered:.0f} %"
    yield f"the {refused:,.0f} intervals refused would cover {100 * hits / max(refused, 1):.1f} % as plain normal ones"


def pooled(found):
    """Coverage at 95 % of all intervals given, by kind of model."""
    hits: dict[str, float] = {}
    count: dict[str, float] = {}
    for cell, entry in found.items():
        kind = cell.split("/")[0].split(" ")[0]
        rows = entry["rows"][:-1] if cell.startswith("linear skewed") else entry["rows"]
        for row in (row for row in rows if row["given"]):
            given = row["given"] * entry["sets"]
            hits[kind] = hits.get(kind, 0.0) + given * row["coverage"][1]
            count[kind] = count.get(kind, 0.0) + given
    return "; ".join(f"{kind} {100 * hits[kind] / count[kind]:.1f} % of {count[kind]:,.0f}" for kind in hits)


def line(rows):
    def each(name):
        return " ".join("–" if row[name] is None else f"{row[name]:.2f}" for row in rows)

    coverage = " ".join("–" if row["coverage"][1] is None else f"{row['coverage'][1]:.3f}" for row in rows)
    return f"given {each('given')} | 95 % {coverage} | refused {each('refused')} | width {each('width')} | error {each('error')}"


if __name__ == "__main__":
    main()
