"""Do the intervals cover? Nominal 90 % and 95 % over 1000 simulated data sets: logistic (three designs), linear, proportion;
and designs that a path of noisy gradients is too slow for: rare columns, columns that nearly repeat each other.

Each data set is simulated record by record. Whether an interval is given is decided by `planning.replication` from public
numbers, as in a fit; where it is refused the reason is shown. To make a thousand releases of eight draws affordable a
draw is taken from the normal law that a noisy-gradient path has on *these* records (`planning.moments`, mean and spread
carried along the path); the last table shows the library's own chains beside it. Proportions are released as they are.

Whether a coefficient keeps its interval is decided from the draws (`remembers_start`); "would be" is the coverage if it
were not.

Contract: a coefficient has an interval that misses in at most 1 − level, plus two points, of the releases. Ends with 1 if
that is missed. Writes benchmarks/results/interval_coverage.md; half an hour on two idle cores (`--data-sets 200`: six
minutes).

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
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

import numpy as np
from scipy import special, stats

import onedraw as od
from onedraw.models import Encoded
from onedraw.planning import Regression, choices, interval, replication
from onedraw.planning import intervals as module
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


def in_box(columns: np.ndarray) -> np.ndarray:
    """Columns of [0, 1], clamped and scaled to [−1, 1]."""
    return np.concatenate([2.0 * np.clip(columns, 0.0, 1.0) - 1.0, np.ones((len(columns), 1))], axis=1)


def rare(chance: float) -> Callable:
    """The first column is 1 in few records, the others are uniform."""

    def rows(design: Design, generator, n: int) -> np.ndarray:
        columns = generator.uniform(size=(n, design.features.count))
        columns[:, 0] = columns[:, 0] < chance
        return in_box(columns)

    return rows


def repeated(noise: float) -> Callable:
    """All columns are one common column, and noise."""

    def rows(design: Design, generator, n: int) -> np.ndarray:
        common = generator.uniform(size=(n, 1))
        return in_box(common + generator.normal(0.0, noise, (n, design.features.count)))

    return rows


def combined(design: Design, generator, n: int) -> np.ndarray:
    """The first column is nearly the second and a fifth of the third: little of what is missing shows in the third."""
    columns = generator.uniform(0.15, 0.85, (n, design.features.count))
    columns[:, 0] = columns[:, 1] + 0.2 * (columns[:, 2] - 0.5) + generator.normal(0.0, 0.01, n)
    return in_box(columns)


@dataclass(frozen=True)
class Cell:
    """A question, how its records really are, and how many there are at ε = 1 and at 5; None: not measured there.

    ``slopes`` are the coefficients of columns in [0, 1]; without them the effect is the declared one, its direction random.
    """

    name: str
    question: Regression
    sizes: tuple[int | None, int]
    rows: Callable = uniform
    intercept: float = 0.0
    slopes: tuple[float, ...] | None = None
    noise: float | None = None
    """Of the responses, where it is not the one assumed: outside the contract."""


BOX = {"bounds": (0.0, 1.0)}
CELLS = (
    Cell("logistic, uniform in a box", Regression("logistic", 4, **BOX), (8000, 2000)),
    Cell("logistic, on a sphere", Regression("logistic", 5, data_norm=1.0, intercept=False), (15_000, 4000)),
    Cell("logistic, skewed, correlated", Regression("logistic", 3, **BOX), (12_000, 4000), skewed, -0.5),
    Cell("linear, uniform in a box", Regression("linear", 4, **BOX, response_bound=4.0), (5000, 1000)),
    Cell("logistic, too few records", Regression("logistic", 4, **BOX), (1000, 300)),
)
SLOW_LINEAR, SLOW_LOGISTIC = Regression("linear", 3, **BOX, response_bound=10.0), Regression("logistic", 3, **BOX)
SLOW = (
    *(Cell(f"linear, a 1 in {p:.1%} of the first column", SLOW_LINEAR, (None, 3000), rare(p), slopes=(5, 1, -1))
      for p in (0.002, 0.01, 0.05)),
    *(Cell(f"linear, common + N(0, {sd:g}²), θ = {slopes}", SLOW_LINEAR, (None, 3000), repeated(sd), slopes=slopes)
      for sd in (0.02, 0.05, 0.1, 0.2) for slopes in ((6, -6, 0), (7, -3, -3))),
    Cell("linear, one column nearly combines the others", SLOW_LINEAR, (None, 3000), combined, slopes=(6, -6, 0)),
    Cell("logistic, a 1 in 1.0% of the first column", SLOW_LOGISTIC, (None, 3000), rare(0.01), slopes=(3, 1, -1)),
    Cell("logistic, common + N(0, 0.03²), θ = (8, -8, 0)", SLOW_LOGISTIC, (None, 3000), repeated(0.03), slopes=(8, -8, 0)),
    Cell("logistic, near-separable, θ = (12, -12, 0)", SLOW_LOGISTIC, (None, 3000), slopes=(12, -12, 0)),
    Cell("linear, noise 4 where 2.5 is assumed", SLOW_LINEAR, (None, 3000), slopes=(5, 1, -1), noise=4.0),
)  # fmt: skip
ALL = CELLS + SLOW
OUTSIDE = tuple(cell.name for cell in ALL if cell.noise is not None)
"""The model does not hold there, and an interval under the model need not cover."""


# ── simulation ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Tally:
    """By level, for each data set and coefficient, whether the truth would be covered; which were given; how wide."""

    covered: dict[float, list[np.ndarray]] = field(default_factory=lambda: {level: [] for level in LEVELS})
    given: list[np.ndarray] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)

    def add(self, found: dict, truth: np.ndarray, plain: np.ndarray, given: np.ndarray) -> None:
        """Widths are those of the last level, averaged over the coefficients."""
        for level, part in found.items():
            self.covered[level].append((part.low <= truth) & (truth <= part.high))
        self.given.append(given)
        if given.any():
            self.width.append(float((part.high - part.low)[given].mean()))
        self.plain.append(float(2.0 * stats.norm.ppf(0.5 + LEVELS[-1] / 2.0) * np.mean(plain)))

    def missed(self) -> list[float]:
        return [level for level in LEVELS if self.wrong(level).mean() > 1.0 - level + ALLOWED]

    def wrong(self, level: float) -> np.ndarray:
        """For each coefficient, the share of data sets with an interval that misses."""
        return (np.array(self.given) & ~np.array(self.covered[level])).mean(axis=0)

    @property
    def text(self) -> str:
        given = np.array(self.given)
        of_given = [100 * np.array(self.covered[level])[given].mean() if given.any() else math.nan for level in LEVELS]
        would_be = 100 * np.array(self.covered[LEVELS[-1]]).mean(axis=0).min()
        figures = [100 * given.mean(), *of_given, 100 * self.wrong(LEVELS[-1]).max(), would_be]
        width = f"{np.mean(self.width):.3f}" if self.width else ""
        shown = " | ".join("" if math.isnan(figure) else f"{figure:.1f}" for figure in figures)
        return f"{shown} | {width} | {np.mean(self.plain):.3f} |"


def data_set(cell: Cell, design: Design, n: int, generator) -> tuple[np.ndarray, Encoded]:
    theta = design.parameters(generator, 1)[0]
    if cell.slopes is not None:
        theta[:-1] = np.array(cell.slopes) / 2.0
    if design.features.intercept:
        theta[-1] = cell.intercept
    rows = cell.rows(design, generator, n)
    real = design if cell.noise is None else replace(design, noise=cell.noise)
    return theta, Encoded(n, rows, real.responses(theta, rows, generator))


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
        given = ~module.remembers_start(draws, plan)
        with mock.patch.object(module, "remembers_start", return_value=np.zeros(given.size, dtype=bool)):
            would_be = {level: interval(draws, plan, level, **sizes) for level in LEVELS}
        tally.add(would_be, theta, plain_errors(data, theta, design), given)
    return f"{plan.draws} draws, {found.choices.eligible[0].name}", tally


def proportion(truth: float, epsilon: float, n: int, data_sets: int) -> tuple[str, Tally]:
    """Released as they are: one draw and its closed form."""
    plan = choices(od.models.BetaBernoulli(), od.ApproxDP(epsilon, DELTA), n=n).best
    generator, tally = np.random.default_rng([n, int(epsilon), int(1000 * truth)]), Tally()
    for number in range(data_sets):
        draw = od.release(plan, generator.random(n) < truth, random_state=number).draws
        found = {level: interval(draw, plan, level) for level in LEVELS}
        tally.add(found, np.array([truth]), np.array([math.sqrt(truth * (1.0 - truth) / n)]), np.array([True]))
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
    for place, epsilon in enumerate(EPSILONS):
        found += [Job(epsilon, data_sets, cell=number) for number, cell in enumerate(ALL) if cell.sizes[place]]
        found += [Job(epsilon, data_sets, truth=truth) for truth in (0.05, 0.3)]
    return found + [Job(5.0, own, cell=number, own=True) for number in (0, 3, len(CELLS))]


def measure(job: Job) -> tuple[str, float, int, str, Tally | None]:
    if job.truth is not None:
        return f"proportion {job.truth:g}", job.epsilon, 1000, *proportion(job.truth, job.epsilon, 1000, job.data_sets)
    cell = ALL[job.cell]
    n = cell.sizes[EPSILONS.index(job.epsilon)]
    name = f"{cell.name}, own chains ({job.data_sets} data sets)" if job.own else cell.name
    return name, job.epsilon, n, *regression(cell, job.epsilon, n, job.data_sets, own=job.own)


HEAD = """# Coverage of intervals

Nominal 90 % and 95 %, δ = {delta:g}, {data_sets} data sets a row. *Given*: how many of the coefficients' intervals the draws
vouch for. The two columns after it are the coverage of those, averaged over the coefficients. *Wrong*: in how many releases the
worst coefficient has a 95 % interval that misses. *Would be*: the coverage of the worst coefficient's 95 % interval if none
were refused. Width of the 95 % interval beside that of the usual one without privacy, in the coordinates of the scaled
features. Written by `benchmarks/interval_coverage.py`.

| design | ε | n | released | given | 90 % | 95 % | wrong | would be | width | not private |
| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
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
            return head + "1 draw, no interval | | | | | | | |"
        if name not in OUTSIDE:
            missed.extend(f"{name}, ε = {epsilon:g}, {100 * level:.0f} %" for level in tally.missed())
        return head + f"{how} | {tally.text}"

    with concurrent.futures.ProcessPoolExecutor(
        arguments.workers, mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        for result in pool.map(measure, jobs(arguments.data_sets, arguments.own)):
            lines.append(note(*result))
            print(lines[-1], flush=True)
    verdict = (
        f"Wrong more often than 1 − level and two points: {'; '.join(missed) or 'none'}; outside: {'; '.join(OUTSIDE)}."
    )
    parts = [HEAD.format(delta=DELTA, data_sets=arguments.data_sets) + "\n".join(lines), "", verdict, "",
             "## Refused", "", *refusals, ""]  # fmt: skip
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n".join(parts), encoding="utf-8")
    print(verdict, f"\nwritten to {RESULT.name}, {time.perf_counter() - start:.0f} s")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
