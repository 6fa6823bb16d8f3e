"""Measure robust lines, support vector classifiers and several classes fitted by averaged steps.

    python benchmarks/fit_kinds.py [--populations FOLDER] [--samples 100]

Samples are drawn with replacement from a simulated population or from a table of benchmarks/populations whose numbers are cut into
classes. The truth is the same estimand on the whole population, solved without privacy: for robust lines and margins the weights and
the unit of residuals are those of the population. Log-loss is over the whole population; beside it that of the truth, and of the class
shares. Not private: seeds are fixed, and nothing is certified. Needs NumPy, SciPy and JAX.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from scipy import optimize, special

import onedraw as od
from onedraw import models
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit.run import Stages
from onedraw.models import Gaussian
from onedraw.samplers.noise import Noise

RESULTS = Path(__file__).parent / "results" / "fit_kinds.md"
POPULATION, COLUMNS, DELTA = 60_000, 4, 1e-6
MOST_COLUMNS, LEAST_DEVIATION = 8, 0.12
"""Of a table: its first columns that vary at least this much over their declared ranges."""

SIZES = ((5000, 1.0), (10_000, 1.0), (20_000, 3.0))
TABLES = (("abalone_rings", 4), ("AER_CPS1988", 3), ("AER_CPSSWEducation", 3))
"""Tables for deriving whose number is cut into classes: the lowest four tenths, and equal parts of the rest."""


class Population(NamedTuple):
    name: str
    X: Any
    y: Any
    model: Any
    robust: bool
    truth: Any


def rows_of(rng: np.random.Generator) -> Any:
    """Return correlated columns in [−1, 1], the last of two values."""
    half = np.linalg.cholesky(0.5 * np.eye(COLUMNS) + 0.5)
    X = np.clip(0.35 * rng.standard_normal((POPULATION, COLUMNS)) @ half.T, -1, 1)
    X[:, -1] = np.where(X[:, -1] > 0.2, 1, -1)
    return X


def with_ones(X: Any) -> Any:
    return np.column_stack([X, np.ones(len(X))])


def lengths(X: Any) -> Any:
    """Return how long rows are in standardized coordinates, over √p."""
    z = np.linalg.solve(np.linalg.cholesky(np.cov(X.T)), (X - X.mean(axis=0)).T)
    return np.sqrt((1.0 + (z**2).sum(axis=0)) / (len(z) + 1))


def solved(X: Any, weights: Any, psi: Callable[[Any], Any]) -> Any:
    """Return the coefficients at which Σ weight·row·ψ(predictor) is 0."""
    rows = with_ones(X)
    found = optimize.root(
        lambda b: rows.T @ (weights * psi(rows @ b)) / len(rows), np.zeros(rows.shape[1]), method="lm"
    )
    return found.x


def separating(X: Any, signs: Any, weights: Any) -> Any:
    """Return the coefficients that minimize the weighted hinge loss with its kink rounded over ½."""
    rows = with_ones(X)

    def loss(b: Any) -> tuple[float, Any]:
        short = 1.0 - signs * (rows @ b)
        bent = np.clip(short, 0.0, 0.5)
        value = weights @ (bent**2 + np.maximum(short - 0.5, 0.0))
        return float(value) / len(rows), -rows.T @ (weights * signs * 2.0 * bent) / len(rows)

    return optimize.minimize(
        loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
    ).x


def likeliest(X: Any, codes: Any, classes: int) -> Any:
    rows, own = with_ones(X), np.eye(classes)[codes]

    def loss(b: Any) -> tuple[float, Any]:
        scores = rows @ b.reshape(classes, -1).T
        value = special.logsumexp(scores, axis=1).mean() - (scores * own).sum(axis=1).mean()
        return float(value), ((special.softmax(scores, axis=1) - own).T @ rows).ravel() / len(rows)

    found = optimize.minimize(
        loss,
        np.zeros(classes * rows.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )
    b = found.x.reshape(classes, -1)
    return (b - b.mean(axis=0)).ravel()


def simulated() -> list[Population]:
    """Return populations in which the model does not hold: a square is left out, and residuals have skew and long tails."""
    rng = np.random.default_rng(5)
    X = rows_of(rng)
    u = X @ np.array([1.2, -0.9, 0.6, 0.4]) + 0.3 * X[:, 0] ** 2
    rows: dict[str, Any] = {"features": COLUMNS, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}
    y = np.clip(
        u + 0.3 * (rng.exponential(size=POPULATION) - 1.0) * (1.0 + X[:, 0]) + 0.3 * rng.standard_t(4, POPULATION),
        -6,
        6,
    )
    plain = np.linalg.lstsq(with_ones(X), y, rcond=None)[0]
    unit, far = np.std(y - with_ones(X) @ plain), lengths(X)
    line = solved(X, np.minimum(1.0, 1.0 / far), lambda e: np.tanh((y - e) / unit))
    labels = (rng.uniform(size=POPULATION) < special.expit(1.5 * u)).astype(int)
    margin = separating(X, 2.0 * labels - 1.0, np.minimum(1.0, 1.0 / far))
    found = [
        Population("robust line", X, y, models.OrdinaryLeastSquares(**rows, response_bound=6.0), True, line),
        Population("support vectors", X, labels, models.HuberisedHinge(**rows, width=0.5), False, margin),
    ]
    for classes in (3, 4):
        scores = X @ (0.8 * rng.standard_normal((classes, COLUMNS))).T + np.linspace(0.8, -0.8, classes)
        scores = scores + 1.0 * X[:, [0]] ** 2 * rng.standard_normal(classes)
        found.append(of_classes(f"{classes} classes, simulated", X, drawn(scores, rng), classes))
    return found


def drawn(scores: Any, rng: np.random.Generator) -> Any:
    return (special.softmax(scores, axis=1).cumsum(axis=1)[:, :-1] < rng.uniform(size=(len(scores), 1))).sum(axis=1)


def of_classes(name: str, X: Any, codes: Any, classes: int) -> Population:
    rows: dict[str, Any] = {"features": X.shape[1], "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}
    model = models.Softmax(**rows, classes=tuple(range(classes)))
    return Population(name, X, codes, model, False, likeliest(X, codes, classes))


def tables(folder: Path) -> list[Population]:
    """Return tables whose number is cut into classes."""
    found = []
    for name, classes in TABLES:
        stored = np.load(folder / f"{name}.npz", allow_pickle=True)
        if str(stored["group"]) not in ("given", "derive"):
            raise SystemExit(f"{name} is set aside for checking. Choose a table for deriving.")
        low, high = stored["lower"].astype(float), stored["upper"].astype(float)
        X = np.clip(2.0 * (stored["X"] - low) / np.where(high > low, high - low, 1.0) - 1.0, -1.0, 1.0)
        X = X[:, X.std(axis=0) > LEAST_DEVIATION][:, :MOST_COLUMNS]
        shares = np.cumsum([0.4, *[0.6 / (classes - 1)] * (classes - 1)])[:-1]
        codes = np.searchsorted(np.quantile(stored["y"], shares), stored["y"], side="right")
        found.append(of_classes(f"{classes} classes, {name}", X, codes, classes))
    return found


def log_loss(population: Population, coefficients: Any) -> float:
    scores = with_ones(population.X) @ coefficients.reshape(len(population.model.classes), -1).T
    return float(np.mean(special.logsumexp(scores, axis=1) - scores[np.arange(len(scores)), population.y]))


def line_of(population: Population, n: int, epsilon: float, samples: int) -> str:
    """Return a row of the page."""
    plan = od.calibrate(AveragedSteps(robust=population.robust), population.model, od.ApproxDP(epsilon, DELTA), n=n)
    mechanism: Any = plan.mechanism
    given, covered, ratios, losses, estimates = [], [], [], [], []
    for sample in range(samples):
        rng = np.random.default_rng([sample, n])
        places = rng.integers(0, len(population.y), n)
        records = population.model.summarise((population.X[places], population.y[places]))
        published = Stages(plan.target(records), Noise(rng, pure=False)).run()
        result = mechanism.result(plan, published.to_dict())
        low, high = result.conf_int().T
        given.append(result.given)
        covered.append((low <= population.truth) & (population.truth <= high))
        ratios.append(np.sqrt(np.diag(result.covariance)))
        estimates.append(result.estimate)
        if "classes" in population.name:
            losses.append(log_loss(population, result.estimate))
    seen, inside = np.array(given), np.array(covered)
    usual = seen.mean(axis=0) > 0.5
    width = np.median(np.median(ratios, axis=0)[usual] / np.std(estimates, axis=0)[usual]) if usual.any() else math.nan
    words = "–"
    if losses:
        shares = np.bincount(population.y) / len(population.y)
        words = f"{np.mean(losses):.4f} ({log_loss(population, population.truth):.4f}; {-np.sum(shares * np.log(shares)):.4f})"
    coverage = f"{100 * inside[seen].mean():.1f} %" if seen.any() else "–"
    return (
        f"| {population.name} | {n:,} | {epsilon:g} | {100 * seen.mean():.0f} % | {coverage} | {width:.2f} | {words} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--populations", type=Path)
    parser.add_argument("--samples", type=int, default=100)
    asked = parser.parse_args()
    populations = [*simulated(), *([] if asked.populations is None else tables(asked.populations))]
    lines = []
    for population in populations:
        for n, epsilon in SIZES:
            lines.append(line_of(population, n, epsilon, asked.samples))
            print(lines[-1], flush=True)
    RESULTS.write_text(PAGE.format(samples=asked.samples, rows="\n".join(lines)), encoding="utf-8")


PAGE = """# Robust lines, support vectors and several classes

Fits by averaged steps (methods/fit), δ = 1e-6, {samples} samples a row, drawn with replacement from a population in which the model does not
hold. The truth is the same estimand on the whole population. *Given* is the share of coefficients with an interval, *coverage* that of the
95 % intervals that were given, *printed over realized* the median standard error over the deviation of the estimates, for coefficients that are usually
given. Log-loss is on the population: of the fits, and in brackets of the truth and of the class shares. Not private: seeds are fixed.

What to expect:

- Robust lines and support vectors: intervals cover, and are about as wide as the errors.
- Several classes: where effects are strong or columns nearly repeat each other (three simulated classes, abalone), noise hides the weakest directions of the information. Their intervals
  are up to twice as wide as the errors, or not given.
- carData_SLID, which is set aside for checking, was run once by mistake in place of the last table, and no constant follows from it. Its coverage at these
  sizes was 98.8, 97.2 and 89.8 %: the last is less than it says.
- Log-loss is within 0.01 of the truth's wherever n·μ is at least 90 for each column and class, from where on `auto` takes the fit, but for abalone at n = 5,000, where it is less.

| population | n | ε | given | coverage | printed over realized | log-loss (truth; shares) |
| --- | --- | --- | --- | --- | --- | --- |
{rows}
"""

if __name__ == "__main__":
    main()
