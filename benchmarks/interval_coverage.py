"""Do the intervals cover? Nominal 90 % and 95 % over 1000 simulated data sets: logistic (three designs), linear, proportion.

Each data set is simulated record by record. Whether an interval is given is decided by `planning.replication` from public
numbers, as in a fit; where it is refused the reason is shown. To make a thousand releases of eight draws affordable a
draw is taken from the normal law that a noisy-gradient path has on *these* records (`planning.moments`, mean and spread
carried along the path); the last table shows the library's own chains beside it. Proportions are released as they are.

Contract: wherever intervals are given, coverage is at least the nominal level less two points. Ends with 1 if that is
missed. Writes benchmarks/results/interval_coverage.md; a quarter of an hour on two idle cores.

    python benchmarks/interval_coverage.py [--data-sets 1000] [--own 150]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import math
import multiprocessing
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import special, stats

import onedraw as od
from onedraw.models import Encoded
from onedraw.planning import Regression, choices, interval, replication
from onedraw.planning.design import Design, design_of
from onedraw.planning.moments import OfRecords

RESULT = Path(__file__).parent / "results" / "interval_coverage.md"
DELTA, EPSILONS, LEVELS = 1e-6, (1.0, 5.0), (0.90, 0.95)
ALLOWED = 0.02


# ── the designs ────────────────────────────────────────────────────────────────────────────────────────────


def uniform(design: Design, generator, n: int) -> np.ndarray:
    return design.rows(generator, n)


def skewed(design: Design, generator, n: int) -> np.ndarray:
    """Features that pile up near one end of their range and move together, in [−1, 1]."""
    common = generator.beta(2.0, 4.0, (n, 1))
    rows = 2.0 * (0.4 * common + 0.6 * generator.beta(2.0, 4.0, (n, design.features.count))) - 1.0
    return np.concatenate([rows, np.ones((n, 1))], axis=1)


@dataclass(frozen=True)
class Cell:
    """A question, how its records really are, and how many there are at ε = 1 and at 5."""

    name: str
    question: Regression
    sizes: tuple[int, int]
    rows: Callable = uniform
    intercept: float = 0.0


BOX = {"bounds": (0.0, 1.0)}
CELLS = (
    Cell("logistic, uniform in a box", Regression("logistic", 4, **BOX), (8000, 2000)),
    Cell("logistic, on a sphere", Regression("logistic", 5, data_norm=1.0, intercept=False), (15_000, 4000)),
    Cell("logistic, skewed, correlated", Regression("logistic", 3, **BOX), (12_000, 4000), skewed, -0.5),
    Cell("linear, uniform in a box", Regression("linear", 4, **BOX, response_bound=4.0), (5000, 1000)),
    Cell("logistic, too few records", Regression("logistic", 4, **BOX), (1000, 300)),
)


# ── simulation ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Tally:
    """How often the truth was covered, by level, and how wide the intervals were."""

    covered: dict[float, list[float]] = field(default_factory=lambda: {level: [] for level in LEVELS})
    width: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)

    def add(self, found: dict, truth: np.ndarray, plain: np.ndarray) -> None:
        """Averages over the coefficients; widths are those of the last level."""
        for level, part in found.items():
            self.covered[level].append(float(((part.low <= truth) & (truth <= part.high)).mean()))
        self.width.append(float((part.high - part.low).mean()))
        self.plain.append(float(2.0 * stats.norm.ppf(0.5 + LEVELS[-1] / 2.0) * np.mean(plain)))

    def missed(self) -> list[float]:
        return [level for level in LEVELS if np.mean(self.covered[level]) < level - ALLOWED]

    @property
    def text(self) -> str:
        shown = " | ".join(f"{100 * np.mean(self.covered[level]):.1f}" for level in LEVELS)
        return f"{shown} | {np.mean(self.width):.3f} | {np.mean(self.plain):.3f} |"


def data_set(cell: Cell, design: Design, n: int, generator) -> tuple[np.ndarray, Encoded]:
    theta = design.parameters(generator, 1)[0]
    if design.features.intercept:
        theta[-1] = cell.intercept
    rows = cell.rows(design, generator, n)
    return theta, Encoded(n, rows, design.responses(theta, rows, generator))


def plain_errors(data: Encoded, theta: np.ndarray, design: Design) -> np.ndarray:
    """Standard errors of the usual estimate without privacy."""
    p = special.expit(data.X @ theta)
    weights = np.full(data.n, design.noise**-2.0) if design.numeric else p * (1.0 - p)
    return np.sqrt(np.diag(np.linalg.inv((data.X * weights[:, None]).T @ data.X)))


def regression(cell: Cell, epsilon: float, n: int, data_sets: int, *, own: bool = False) -> tuple[str, Tally | None]:
    """(what was planned or why there is no interval, the tally)."""
    found = replication(cell.question, od.ApproxDP(epsilon, DELTA), n=n)
    if found.draws == 1:
        return found.reason, None
    plan, sizes = found.plan, {"effect": cell.question.expected_effect, "noise": cell.question.unit}
    design, generator, tally = design_of(plan, **sizes), np.random.default_rng([n, int(epsilon)]), Tally()
    sampler, _ = od.samplers.default_sampler(plan)
    for number in range(data_sets):
        theta, data = data_set(cell, design, n, generator)
        if own:
            draws = sampler.run(plan.target(data), od.samplers.seeded_key(number), size=plan.draws).draws
        else:
            mean, spread = OfRecords(plan, design, data).law()
            draws = generator.multivariate_normal(mean, spread, size=plan.draws)
        tally.add(
            {level: interval(draws, plan, level, **sizes) for level in LEVELS}, theta, plain_errors(data, theta, design)
        )
    return f"{plan.draws} draws, {found.choices.eligible[0].name}", tally


def proportion(truth: float, epsilon: float, n: int, data_sets: int) -> tuple[str, Tally]:
    """Released as they are: one draw and its closed form."""
    plan = choices(od.models.BetaBernoulli(), od.ApproxDP(epsilon, DELTA), n=n).best
    generator, tally = np.random.default_rng([n, int(epsilon), int(1000 * truth)]), Tally()
    for number in range(data_sets):
        draw = od.release(plan, generator.random(n) < truth, random_state=number).draws
        found = {level: interval(draw, plan, level) for level in LEVELS}
        tally.add(found, np.array([truth]), np.array([math.sqrt(truth * (1.0 - truth) / n)]))
    return f"1 draw, {type(plan.mechanism).__name__.lower()}", tally


# ── the table ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Job:
    """One row: a cell's number, or a proportion."""

    epsilon: float
    data_sets: int
    cell: int | None = None
    truth: float | None = None
    own: bool = False


def jobs(data_sets: int, own: int) -> list[Job]:
    found = []
    for epsilon in EPSILONS:
        found += [Job(epsilon, data_sets, cell=number) for number in range(len(CELLS))]
        found += [Job(epsilon, data_sets, truth=truth) for truth in (0.05, 0.3)]
    return found + [Job(5.0, own, cell=number, own=True) for number in (0, 3)]


def measure(job: Job) -> tuple[str, float, int, str, Tally | None]:
    if job.truth is not None:
        return f"proportion {job.truth:g}", job.epsilon, 1000, *proportion(job.truth, job.epsilon, 1000, job.data_sets)
    cell = CELLS[job.cell]
    n = cell.sizes[EPSILONS.index(job.epsilon)]
    name = f"{cell.name}, own chains ({job.data_sets} data sets)" if job.own else cell.name
    return name, job.epsilon, n, *regression(cell, job.epsilon, n, job.data_sets, own=job.own)


HEAD = """# Coverage of intervals

Nominal 90 % and 95 %, δ = {delta:g}, {data_sets} data sets a row (a standard error of at most 1 point), coverage averaged over the
coefficients; width of the 95 % interval beside that of the usual one without privacy, in the coordinates of the scaled
features. Written by `benchmarks/interval_coverage.py`.

| design | ε | n | released | 90 % | 95 % | width | not private |
| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=1000)
    parser.add_argument("--own", type=int, default=150)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    start, lines, refusals, missed = time.perf_counter(), [], [], []

    def note(name: str, epsilon: float, n: int, how: str, tally: Tally | None) -> str:
        head = f"| {name} | {epsilon:g} | {n:,} | "
        if tally is None:
            refusals.append(f"- {name}, ε = {epsilon:g}, n = {n:,}: {how}")
            return head + "1 draw, no interval | | | | |"
        missed.extend(f"{name}, ε = {epsilon:g}, {100 * level:.0f} %" for level in tally.missed())
        return head + f"{how} | {tally.text}"

    with concurrent.futures.ProcessPoolExecutor(
        arguments.workers, mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        for result in pool.map(measure, jobs(arguments.data_sets, arguments.own)):
            lines.append(note(*result))
            print(lines[-1], flush=True)
    verdict = f"Below nominal less two points: {'; '.join(missed) or 'none'}."
    parts = [HEAD.format(delta=DELTA, data_sets=arguments.data_sets) + "\n".join(lines), "", verdict, "",
             "## Refused", "", *refusals, ""]  # fmt: skip
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n".join(parts), encoding="utf-8")
    print(verdict, f"\nwritten to {RESULT.name}, {time.perf_counter() - start:.0f} s")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
