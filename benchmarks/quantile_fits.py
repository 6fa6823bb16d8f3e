"""From how many records on do quantiles and hinges have standard errors, and do their intervals cover?

    python benchmarks/quantile_fits.py [--sets 100]      # a few minutes; writes benchmarks/results/quantile_fits.md

The curvature of these losses is all in a window: a quarter of a residual deviation on either side of the quantile, margins
from ½ to 1 for the hinge. A record inside adds up to 2‖z‖² to the information, one outside nothing, and noise has to hide
the largest share while the average is a fifth of it. Slopes of the quantile are judged against the truth, residuals
normal, heavy-tailed, skewed or in two humps with a gap at the median (where there is hardly any information, and intervals
must be refused); the hinge against the minimum of its risk on 4·10⁵ records. Nominal 95 %, δ = 1e-6, three uniform columns.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from experiments.many_fits import fit_many
from scipy import optimize, special

import onedraw as od
from onedraw.mechanisms import PerturbedMode, calibrate
from onedraw.models import Gaussian, HuberisedHinge, Quantile
from onedraw.models.fit.problem import PARTS, Published
from onedraw.models.fit.result import FitResult

RESULT = Path(__file__).parent / "results" / "quantile_fits.md"
TRUTH = np.array([0.5, -0.5, 0.3, 0.1])
ROWS: dict[str, Any] = {"features": 3, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}
RESIDUALS = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "t₃": lambda rng, size: rng.standard_t(3, size) / math.sqrt(3.0),
    "skewed": lambda rng, size: rng.exponential(1.0, size) - 1.0,
    "two humps": lambda rng, size: np.sign(rng.uniform(-1, 1, size)) + rng.standard_normal(size) / 3.0,
}
CELLS = [
    *(("quantile", level, residual, n, epsilon) for level, residual in ((0.5, "normal"), (0.8, "normal"), (0.5, "t₃"), (0.8, "skewed"), (0.5, "two humps")) for n, epsilon in ((8000, 1.0), (20000, 1.0), (3000, 5.0))),
    *(("hinge", scale, "", n, epsilon) for scale in (2.0, 6.0) for n, epsilon in ((8000, 1.0), (20000, 1.0), (3000, 5.0))),
]  # fmt: skip


def simulated(rng, cell, sets, n):
    kind, scale, residual = cell[:3]
    X = rng.uniform(-1, 1, (sets, n, 3))
    score = X @ TRUTH[:3] + TRUTH[3]
    if kind == "quantile":
        return X, np.clip(score + 0.3 * RESIDUALS[residual](rng, (sets, n)), -3, 3)
    return X, (rng.uniform(size=(sets, n)) < special.expit(scale * score)).astype(int)


def minimum_of_risk(model, cell):
    (X,), (y,) = simulated(np.random.default_rng(99), cell, 1, 400_000)
    rows, sign, kernel = np.column_stack([X, np.ones(len(X))]), 2.0 * y - 1.0, model.kernel

    def risk(theta):
        u = rows @ theta
        return kernel.value(u, sign).mean(), rows.T @ kernel.slope(u, sign) / len(rows)

    return optimize.minimize(risk, np.zeros(4), jac=True, method="BFGS").x


def row_of(cell, sets):
    kind, scale, residual, n, epsilon = cell
    model = Quantile(**ROWS, level=scale, response_bound=3.0) if kind == "quantile" else HuberisedHinge(**ROWS, width=0.5)  # fmt: skip
    truth, judged = (TRUTH, slice(0, 3)) if kind == "quantile" else (minimum_of_risk(model, cell), slice(0, 4))
    budget = od.ApproxDP(epsilon, 1e-6)
    plan = calibrate(PerturbedMode(intervals=True, pure=False), model, budget, n=n)
    itself = bool(calibrate(PerturbedMode(), model, budget, n=n).parameters["information_noise"])
    X, y = simulated(np.random.default_rng([n, 7]), cell, sets, n)
    found = fit_many(plan, X, y, range(sets))
    problem, held, shown, ratios = plan.mechanism.problem(plan), [], [], []
    for index in range(sets):
        parts = {name: getattr(found, name)[index] for name in PARTS if getattr(found, name) is not None}
        result = FitResult.of(problem, Published(**parts))
        reach = result.multiplier(0.95) * np.sqrt(np.diag(result.covariance))
        held.append((np.abs(result.estimate - truth) <= reach)[judged])
        shown.append(result.given[judged])
        ratios.append(result._known.found.mean() / result._known.noise)
    hits, given = np.array(held), np.array(shown)
    name = f"quantile {scale:g}, {residual}" if kind == "quantile" else f"hinge, effects × {scale:g}"
    covered = f"{100 * hits[given].mean():.1f} %" if given.mean() > 0.02 else "–"
    refused = f"{100 * hits[~given].mean():.0f} %" if (~given).mean() > 0.02 else "–"
    return f"| {name} | {n:,}, {epsilon:g} | {np.mean(ratios):.1f} | {'yes' if itself else 'no'} | {100 * given.mean():.0f} % | {covered} | {refused} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=100)
    sets = parser.parse_args().sets
    lines = [
        "# Quantiles and hinges", "",
        f"Written by `benchmarks/quantile_fits.py`: {sets} data sets a row, nominal 95 %, δ = 1e-6, three uniform columns.", "",
        "| fit | n, ε | information over its noise | measured unless asked | given | coverage of those given | would-be coverage of those refused |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for cell in CELLS:
        lines.append(row_of(cell, sets))
        print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
