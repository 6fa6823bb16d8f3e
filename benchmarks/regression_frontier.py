"""Find the number of records from which averaged steps err at most 1.1 times as much as a fit without privacy.

    python benchmarks/regression_frontier.py --out benchmarks/results/regression_frontier.md

The error is the root mean square, over coefficients and data sets, of the estimate less the truth. Designs are uniform
columns on [-1, 1], and exponential columns of which most records fill a tenth of the declared range. The number is the
smallest of a grid, by bisection, with 20 data sets at each n. Not private: seeds are fixed.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from regression_coverage import fit_plain, run_once

import onedraw as od
from onedraw import models
from onedraw.errors import OnedrawError
from onedraw.methods.fit import AveragedSteps
from onedraw.models import Gaussian

EPSILON, DELTA = 1.0, 1e-6
MAX_RATIO = 1.1
MIN_LOG2, MAX_LOG2, STEPS_A_DOUBLING = 10, 20, 2
"""Grid of n: powers of two, and the numbers between them."""

EFFECT, NOISE = 0.15, 0.2
"""Standard deviations of a number's linear predictor and about it; a label's predictor has standard deviation 1."""


def make_columns(generator: np.random.Generator, design: str, n: int, d: int) -> np.ndarray:
    """Return n rows of independent columns in [-1, 1]."""
    if design == "uniform":
        return generator.uniform(-1.0, 1.0, (n, d))
    return np.minimum(2.0 * generator.exponential(0.2, (n, d)) - 1.0, 1.0)


def make_truth(design: str, kind: str, d: int) -> np.ndarray:
    """Return coefficients of equal size and alternating sign, the intercept last, with a mean predictor of 0."""
    columns = make_columns(np.random.default_rng(0), design, 200_000, 1)
    size = (EFFECT if kind == "linear" else 1.0) / (math.sqrt(d) * columns.std())
    slopes = size * np.where(np.arange(d) % 2, -1.0, 1.0)
    return np.append(slopes, -columns.mean() * slopes.sum())


def make_data(
    generator: np.random.Generator, design: str, kind: str, n: int, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a data set with this truth; numbers beyond 1 are clamped, four standard deviations out."""
    X = make_columns(generator, design, n, len(truth) - 1)
    predictor = X @ truth[:-1] + truth[-1]
    if kind == "linear":
        return X, np.clip(predictor + generator.normal(0.0, NOISE, n), -1.0, 1.0)
    return X, (generator.random(n) < 1.0 / (1.0 + np.exp(-predictor))).astype(int)


def compute_ratio(design: str, kind: str, d: int, n: int, samples: int) -> float:
    """Return the private error over that without privacy; infinite if the plan is refused."""
    shared: dict[str, Any] = {"features": d, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}
    model = (
        models.OrdinaryLeastSquares(**shared, response_bound=1.0)
        if kind == "linear"
        else models.Logistic(**shared, classes=(0, 1))
    )
    try:
        plan = od.calibrate(AveragedSteps(), model, od.ApproxDP(EPSILON, DELTA), n=n)
    except OnedrawError:
        return math.inf
    truth = make_truth(design, kind, d)
    private, plain = [], []
    for seed in range(samples):
        generator = np.random.default_rng([seed, d, n])
        X, y = make_data(generator, design, kind, n, truth)
        fit = fit_plain(X, y, kind)
        assert fit is not None
        private.append(run_once(plan, X, y, generator).estimate - truth)
        plain.append(fit[0] - truth)
    slopes = slice(0, d)
    return float(np.sqrt(np.mean(np.array(private)[:, slopes] ** 2) / np.mean(np.array(plain)[:, slopes] ** 2)))


def find_frontier(design: str, kind: str, d: int, samples: int, largest: int) -> tuple[int | None, dict[int, float]]:
    """Return the smallest n of the grid with a ratio of at most `MAX_RATIO`, None beyond `largest`, and all ratios."""
    grid = [round(2.0 ** (step / STEPS_A_DOUBLING)) for step in range(MIN_LOG2 * STEPS_A_DOUBLING, MAX_LOG2 * STEPS_A_DOUBLING + 1)]  # fmt: skip
    grid = [n for n in grid if n <= largest]
    low, high, ratios = -1, len(grid), {}
    while high - low > 1:
        middle = (low + high) // 2
        ratios[grid[middle]] = compute_ratio(design, kind, d, grid[middle], samples)
        if ratios[grid[middle]] <= MAX_RATIO:
            high = middle
        else:
            low = middle
    return (grid[high] if high < len(grid) else None), ratios


def main() -> None:
    """Print the table, and write it as a page after each row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--largest", type=int, default=2**MAX_LOG2)
    parser.add_argument("--columns", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--models", nargs="+", default=["linear", "logistic"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [
        f"# Records needed for {MAX_RATIO} times the error without privacy",
        "",
        f"Made by `benchmarks/regression_frontier.py`: ε = {EPSILON:g}, δ = {DELTA:g}, {options.samples} data sets at each n.",
        f"A frontier beyond {options.largest:,} was not looked for.",
        "",
        "| model | columns | d | smallest n | ratios (n: ratio) | seconds |",
        "| --- | --- | ---: | ---: | --- | ---: |",
    ]  # fmt: skip
    for d in options.columns:
        for kind in options.models:
            for design in ("uniform", "skewed"):
                started = time.perf_counter()
                smallest, ratios = find_frontier(design, kind, d, options.samples, options.largest)
                steps = ", ".join(f"{n:,}: {ratio:.2f}" for n, ratio in sorted(ratios.items()))
                number = f"{smallest:,}" if smallest else f"above {options.largest:,}"
                lines.append(f"| {kind} | {design} | {d} | {number} | {steps} | {time.perf_counter() - started:.0f} |")
                print(lines[-1], flush=True)
                if options.out:
                    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
