"""Does the error that a plan prints come true? Its range over designs beside what fits of real tables and simulated data do.

    python benchmarks/plan_accuracy.py [--fits 40] [--only abalone uniform]      # ten minutes on two cores

For each row a question is put as a person would, with public bounds and nothing else declared, and ``auto`` answers with a plan
and a range, "Expected error per coefficient: … to …". Then fits of that plan are made on fresh samples, by the program of a
release (NumPy's generator for OpenDP's): real tables are populations of which n records are drawn with replacement, designs are
simulated. The realised error is the root mean squared distance, over samples and coefficients of columns scaled to [−1, 1] and
the intercept, from what the loss gives on the whole table without privacy, or from the truth.

Below, what ``auto`` takes under Gaussian budgets, where it ranks by expected error: expected beside realised in the reference
design, for what it takes and for the next two. Writes benchmarks/results/plan_accuracy.md.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

sys.path.insert(0, str(Path(__file__).parent / "peers"))
sys.path.insert(0, str(Path(__file__).parents[1]))
import fit_coverage
from experiments.many_fits import fit_many
from tables import DELTA, EPSILONS, FOLDER, scaled, tables

import onedraw as od
from onedraw.models.convex import losses, number_losses
from onedraw.planning import Regression, choose
from onedraw.planning.expected_errors import simulated_error

RESULT = Path(__file__).parent / "results" / "plan_accuracy.md"
SIMULATED = ("uniform", "skewed", "heavy", "off-centre", "rare 0.05")
SIZES = (1000, 8000)
ADULT = {"age": (15, 95), "education_num": (1, 16), "hours_per_week": (0, 100), "capital_gain": (0, 1e5), "capital_loss": (0, 5000)}  # fmt: skip
"""The number columns of a census table: two of them are 0 for nearly everybody."""

MANY_ROWS = 400_000
"""Records fitted for one row of the table, at most; at least ten fits."""


@dataclass(frozen=True)
class Population:
    """What a row is about: a kind of regression, n, what is declared, and where samples and the truth come from."""

    name: str
    kind: str
    n: int
    columns: int
    declared: dict
    truth: np.ndarray
    sample: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]

    @property
    def question(self) -> Regression:
        return Regression(self.kind, self.columns, bounds=(-1.0, 1.0), **self.declared)


# ── real tables ──────────────────────────────────────────────────────────────────────────────────────────────────


def real_tables() -> Iterator[Population]:
    for table in tables():
        X = scaled(table)
        if table.response is None:
            yield population(table.name, X, 2.0 * table.y - 1.0, None)
        else:
            low, high = table.response
            yield population(table.name, X, table.y - (low + high) / 2, (high - low) / 2)
    with gzip.open(FOLDER / "adult_train.csv.gz", "rt", encoding="utf-8") as packed:
        rows = list(csv.DictReader(packed))
    ends = np.array(list(ADULT.values()), dtype=float)
    X = np.clip(np.array([[float(row[name]) for name in ADULT] for row in rows]), *ends.T)
    y = np.array([1.0 if row["income"].strip().startswith(">50K") else -1.0 for row in rows])
    yield population("adult, numbers", (X - ends.mean(axis=1)) / np.diff(ends, axis=1)[:, 0] * 2.0, y, None)


def population(name: str, X: np.ndarray, y: np.ndarray, bound: float | None) -> Population:
    """A table to draw records from; labels are −1 and +1, numbers are about the middle of their range."""

    def sample(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        chosen = generator.integers(len(y), size=len(y))
        return X[chosen], y[chosen]

    kind, declared = ("logistic", {}) if bound is None else ("linear", {"response_bound": bound})
    return Population(name, kind, len(y), X.shape[1], declared, minimum(X, y, bound), sample)


def minimum(X: np.ndarray, y: np.ndarray, bound: float | None) -> np.ndarray:
    """The unweighted minimum of the fit's loss over the whole table, thresholds in its own residual deviations."""
    rows = np.column_stack([X, np.ones(len(X))])
    start = np.linalg.lstsq(rows, y, rcond=None)[0]
    spread = float(np.std(y - rows @ start))
    loss = losses.ExpLinearLoss() if bound is None else number_losses.LogCoshLoss(spread)
    found = optimize.minimize(
        lambda theta: float(np.mean(loss.value(rows @ theta, y))), start, method="BFGS",
        jac=lambda theta: rows.T @ loss.slope(rows @ theta, y) / len(y), options={"gtol": 1e-7, "maxiter": 2000},
    )  # fmt: skip
    return np.asarray(found.x)


# ── simulated designs ────────────────────────────────────────────────────────────────────────────────────────────


def simulated_designs() -> Iterator[Population]:
    for kind in ("logistic", "linear"):
        for name in SIMULATED:
            for n in SIZES:
                yield simulated(kind, name, n)


def simulated(kind: str, name: str, n: int) -> Population:
    """The designs of the coverage study; numbers are declared to lie within four deviations of their noise."""

    def sample(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows, responses, _ = fit_coverage.simulated(kind, name, generator, n)
        return rows[:, :-1], np.clip(responses, -bound, bound)

    bound = 4.0 * fit_coverage.NOISE
    truth = fit_coverage.simulated(kind, name, np.random.default_rng(0), 10)[2]
    return Population(name, kind, n, len(truth) - 1, {} if kind == "logistic" else {"response_bound": bound}, truth, sample)  # fmt: skip


# ── a row ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Row:
    population: Population
    epsilon: float
    name: str
    low: float
    high: float
    realised: float
    uncertainty: float
    """The standard error of ``realised``, relatively."""

    @property
    def factor(self) -> float:
        """1 inside the printed range, two standard errors of the simulation allowed; how many times outside otherwise."""
        found = max(self.realised / self.high, self.low / self.realised)
        return found if found > 1.0 + 2.0 * self.uncertainty else 1.0

    @property
    def text(self) -> str:
        one = self.population
        side = "inside" if self.factor == 1.0 else f"{self.factor:.2f} × {'above' if self.realised > self.high else 'below'}"  # fmt: skip
        return (
            f"| {one.name} | {one.kind} | {one.n:,} | {one.columns} | {self.epsilon:g} | {self.name} | "
            f"{self.low:.3g} to {self.high:.3g} | {self.realised:.3g} ± {self.realised * self.uncertainty:.1g} | {side} |"
        )


def measured_row(one: Population, epsilon: float, fits: int) -> Row:
    found = choose(one.question, od.ApproxDP(epsilon, DELTA), n=one.n)
    plan, errors = found.best, [design.expected.private for design in found.eligible[0].designs]
    fits = max(10, min(fits, MANY_ROWS // one.n))
    generator = np.random.default_rng([one.n, round(10 * epsilon), *map(ord, one.name)])
    squares = []
    for seed in range(fits):
        X, y = one.sample(generator)
        published = fit_many(plan, X[None], labelled(plan, y)[None], [seed])
        parts = {name: value[0] for name, value in vars(published).items() if value is not None}
        estimate = plan.mechanism.result(plan, parts).estimate
        squares.append(np.mean((estimate - one.truth) ** 2))
    what = ("pure " if plan.parameters["pure"] else "") + ("measured" if plan.parameters["moments_noise"] else "as declared")  # fmt: skip
    uncertainty = float(np.std(squares, ddof=1) / math.sqrt(fits) / (2.0 * np.mean(squares)))
    return Row(one, epsilon, what, min(errors), max(errors), math.sqrt(np.mean(squares)), uncertainty)


def labelled(plan, y: np.ndarray) -> np.ndarray:
    """Responses as the model reads them: its labels are 0 and 1."""
    return (y + 1.0) / 2.0 if hasattr(plan.model, "classes") else y


# ── budgets that no fit keeps ────────────────────────────────────────────────────────────────────────────────────

DECLARED: dict[str, dict[str, Any]] = {"logistic": {}, "linear": {"response_bound": 4.0}}
RANKED = [
    (Regression(kind, columns, bounds=(0.0, 1.0), **declared), n, mu)
    for kind, declared in DECLARED.items()
    for columns, n in ((4, 600), (4, 8000), (10, 4000))
    for mu in (0.15, 1.0)
]
QUICK = 1.0
"""Seconds of a draw that is simulated; chains that take longer are left out."""


def ranked_row(question: Regression, n: int, mu: float, data_sets: int) -> tuple[str, list[float]]:
    """(line of the table, expected over realised): what "auto" takes first, and the next two that are quick."""
    found = choose(question, od.GaussianDP(mu), n=n)
    sizes, parts, ratios = question.sizes, [], []
    for choice in [choice for choice in found.eligible if choice.seconds < QUICK][:3]:
        generator = np.random.default_rng(n)
        realised = simulated_error(choice.plan, data_sets=data_sets, generator=generator, **sizes).private
        parts.append(f"{choice.name} {choice.expected.private:.3f}/{realised:.3f}")
        ratios.append(choice.expected.private / realised)
    head = f"| {question.kind} | {n:,} | {question.features} | {mu:g} | **{parts[0]}** | "
    return head + f"{', '.join(parts[1:])} |", ratios


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────

HEAD = """# Plan and outcome

Root mean squared errors per coefficient of columns scaled to [−1, 1], δ = {delta:g}: the range that a plan prints before any record is read, and
what fits of that plan did, ± the standard error of the study (at most {fits} fits a row). Real tables are populations of which as many
records as they have are drawn with replacement; their truth is what the loss gives on the whole table without privacy. A row is
inside its range if it is within two standard errors of it. Written by `benchmarks/plan_accuracy.py`.

| records | kind | n | columns | ε | columns are taken as | printed range | realised | |
| --- | --- | ---: | ---: | ---: | --- | --- | ---: | --- |
"""
SECOND = """## Where no fit keeps the budget: expected/realised in the reference design

GaussianDP(μ). Bold: what `auto` takes; then the next two whose draws take less than a second.

| kind | n | columns | μ | taken | the next |
| --- | ---: | ---: | ---: | --- | --- |
"""


def verdict(rows: list[Row]) -> str:
    above = [row for row in rows if row.factor > 1.0 and row.realised > row.high]
    below = [row for row in rows if row.factor > 1.0 and row.realised < row.low]
    names = ", ".join(f"{row.population.name} (ε = {row.epsilon:g}) {row.factor:.2g}" for row in above)
    real = [row for row in rows if row.population.name not in SIMULATED]
    kept = sum(row not in above for row in real)
    return (
        f"{len(rows) - len(above) - len(below)} of {len(rows)} rows are inside, {len(below)} are better than the range, by a factor of at most "
        f"{max((row.factor for row in below), default=1.0):.2g} (their effects are weaker than a plan assumes), {len(above)} are above it: of real tables "
        f"{len(real) - kept} of {len(real)}. Above, times the upper end: {names or 'none'}."
    )


WHY = """Where it is far outside no range would help. Banknote's classes can nearly be told apart, so that its best coefficients are near
infinity (log-odds of standard deviation 25), and in vertebral one column is the sum of two others, so that single coefficients are
not defined. What was published tells so: coefficients about which it says too little are refused an interval."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=40)
    parser.add_argument("--only", nargs="*", help="rows whose name begins so; nothing is written")
    arguments = parser.parse_args()
    start, rows = time.perf_counter(), []
    for one in (*real_tables(), *simulated_designs()):
        if arguments.only is None or any(one.name.startswith(name) for name in arguments.only):
            for epsilon in EPSILONS:
                rows.append(measured_row(one, epsilon, arguments.fits))
                print(rows[-1].text, flush=True)
    if arguments.only is not None:
        return
    lines, ratios = [], []
    for setting in RANKED:
        line, found = ranked_row(*setting, arguments.fits)
        print(line, flush=True)
        lines.append(line)
        ratios += found
    closing = f"{len(ratios)} figures: expected over realised between {min(ratios):.2f} and {max(ratios):.2f}."
    text = [
        HEAD.format(delta=DELTA, fits=arguments.fits) + "\n".join(row.text for row in rows),
        "",
        verdict(rows),
        "",
        WHY,
        "",
    ]
    text += [SECOND + "\n".join(lines), "", closing, ""]
    RESULT.write_text("\n".join(text), encoding="utf-8")
    print(verdict(rows), closing, f"written to {RESULT.name}, {time.perf_counter() - start:.0f} s", sep="\n")


if __name__ == "__main__":
    main()
