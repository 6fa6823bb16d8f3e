"""Do the intervals of everyday statistics cover? 2,000 data sets or more for every statistic, n and ε.

    python benchmarks/everyday_coverage.py              # about a quarter of an hour; writes results/everyday_coverage.md
    python benchmarks/everyday_coverage.py --quick 10   # a tenth of the data sets, prints only

Every line draws data sets anew, adds noise under a pure ε, and asks whether the interval holds the truth: for counts, sums and
numbers of records in groups that of the records, for all else that of the law they were drawn from. The interval of a share follows from
one noisy count and rises with it, so the counts that cover are found by bisection and 10,000 data sets counted against them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import onedraw as od
from onedraw.methods import AddedNoise
from onedraw.methods.added_noise.intervals import table_interval
from onedraw.methods.added_noise.mechanism import noisy_sums
from onedraw.methods.added_noise.run import NoisySums
from onedraw.models import CategoryTable, Grouped, NumberTable, Summary
from onedraw.samplers import seeded_generator

RESULTS = Path(__file__).parent / "results"
SIZES, EPSILONS, LEVELS = (50, 500, 4177, 100_000), (0.1, 0.5, 1.0, 2.0), (0.90, 0.95)
THREE, GROUPS = np.array([0.69, 0.3, 0.01]), np.array([0.7, 0.25, 0.05])
IN_GROUPS = np.array([0.5, 0.1, 0.02])
"""The share that is counted in each of three groups."""

Draw = Callable[[np.random.Generator, int], np.ndarray]


class Study(NamedTuple):
    words: str
    table: Any
    n: int
    draw: Callable[[np.random.Generator], np.ndarray]
    """The exact sums of one data set, or of fixed records."""
    truth: np.ndarray


# ── what is drawn ────────────────────────────────────────────────────────────────────────────────────────────


def spiked(generator: np.random.Generator, n: int) -> np.ndarray:
    return np.where(generator.random(n) < 0.2, generator.random(n), 0.0)


NUMBERS: dict[str, tuple[float, float, Draw]] = {
    "uniform": (0.0, 1.0, lambda g, n: g.random(n)),
    "log-normal, cut at 20 medians": (0.0, 20.0, lambda g, n: np.minimum(g.lognormal(0.0, 1.0, n), 20.0)),
    "97 % zeros, else 1": (0.0, 1.0, lambda g, n: (g.random(n) < 0.03).astype(float)),
    "80 % zeros, else uniform": (0.0, 1.0, spiked),
}
COUNTS: dict[str, tuple[float, float, Draw]] = {
    "3 in the mean, at most 20": (0.0, 20.0, lambda g, n: np.minimum(g.poisson(3.0, n), 20)),
    "0.05 in the mean, at most 10": (0.0, 10.0, lambda g, n: np.minimum(g.poisson(0.05, n), 10)),
}


@cache
def moments(name: str) -> tuple[float, float]:
    """Mean and variance, of a very large sample."""
    sample = {**NUMBERS, **COUNTS}[name][2](np.random.default_rng(2), 10_000_000)
    return float(sample.mean()), float(sample.var())


def sums_of(table: Any, values: Any, codes: Any = None) -> np.ndarray:
    return np.array(table.summarise(values if codes is None else Grouped(values, (codes,))).total)


def drawn_sums(table: Any, draw: Draw, n: int, codes: Any = None) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda generator: sums_of(table, draw(generator, n), codes)


def one_count(n: int, share: float) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda generator: np.array([generator.binomial(n, share)])


def studies(n: int) -> Iterator[Study]:
    """Of one column; the cheap ones first."""
    one, counts = CategoryTable(("no", "yes"), show="shares", only="yes"), CategoryTable(("no", "yes"), only="yes")
    for share in (0.001, 0.01, 0.1, 0.5):
        yield Study(f"share of {share:g}", one, n, one_count(n, share), np.array([share]))
    yield Study("count", counts, n, lambda g: np.array([n // 5]), np.array([n // 5]))
    three = CategoryTable(("a", "b", "c"), show="shares")
    yield Study("histogram: 0.69, 0.3, 0.01", three, n, lambda g: g.multinomial(n, THREE), THREE)
    for name, (low, high, draw) in NUMBERS.items():
        for show in ("mean", "variance"):
            table = NumberTable(low, high, show=show)
            truth = np.array([moments(name)[show == "variance"]])
            yield Study(f"{show}: {name}", table, n, drawn_sums(table, draw, n), truth)
    for name, (low, high, draw) in COUNTS.items():
        table = NumberTable(low, high, show="rate", missing=0.0)
        yield Study(f"rate: {name}", table, n, drawn_sums(table, draw, n), np.array([moments(name)[0]]))
    table = NumberTable(-10.0, 10.0, show="sum")
    values = np.linspace(-2.0, 9.0, n)
    exact = sums_of(table, values)
    yield Study("sum", table, n, lambda g: exact, np.array([values.sum()]))


def grouped_studies(n: int) -> Iterator[Study]:
    """Within three private groups, of 70, 25 and 5 % of the records."""
    groups: dict[str, Any] = {"by": ("group",), "groups": (("a", "b", "c"),)}
    shares = CategoryTable(("no", "yes"), show="shares", only="yes", **groups)

    def counted(g: np.random.Generator) -> np.ndarray:
        sizes = g.multinomial(n, GROUPS)
        yes = g.binomial(sizes, IN_GROUPS)
        return np.column_stack([sizes - yes, yes]).ravel()

    yield Study("shares in groups: 0.5, 0.1, 0.02", shares, n, counted, IN_GROUPS)
    fixed = np.round(n * GROUPS).astype(int)
    fixed[0] += n - fixed.sum()
    cells = CategoryTable(("no", "yes"), **groups)
    table = np.column_stack([fixed - fixed // 3, fixed // 3]).ravel()
    yield Study("cross table, 3 × 2 counts", cells, n, lambda g: table, table)
    for name, (low, high, draw) in list(NUMBERS.items())[1:3]:
        means, codes = NumberTable(low, high, **groups), np.repeat(np.arange(3), fixed)
        truth = np.concatenate([np.full(3, moments(name)[0]), fixed])
        yield Study(f"means in groups, and their sizes: {name}", means, n, drawn_sums(means, draw, n, codes), truth)


# ── whether it is covered ────────────────────────────────────────────────────────────────────────────────────


def by_bisection(study: Study) -> bool:
    return isinstance(study.table, CategoryTable) and not study.table.by


def covered(study: Study, plan: od.Plan, published: list[np.ndarray]) -> np.ndarray:
    """(levels, numbers): the share of data sets whose interval holds the truth."""
    if by_bisection(study):
        return np.array([by_counts(study, plan, published, level) for level in LEVELS])
    hits = np.zeros((len(LEVELS), len(study.truth)))
    for noisy in published:
        for place, level in enumerate(LEVELS):
            low, high, *_ = table_interval(plan, {"noisy sums": noisy}, level)
            hits[place] += (low <= study.truth) & (study.truth <= high)
    return hits / len(published)


def by_counts(study: Study, plan: od.Plan, published: list[np.ndarray], level: float) -> list[float]:
    """Each number's interval depends on one count, what is known of the sum taken into account, and rises with it."""
    noisy = np.array([noisy_sums(plan, {"noisy sums": one})[0] for one in published])
    if noisy.shape[1] > 1:
        noisy = noisy - (noisy.sum(axis=1, keepdims=True) - study.n) / noisy.shape[1]

    def inside(place: int, truth: float) -> float:
        values, releases = np.unique(noisy[:, place], return_index=True)

        @cache
        def ends(index: int) -> tuple[float, float]:
            low, high, *_ = table_interval(plan, {"noisy sums": published[releases[index]]}, level)
            return float(low[place]), float(high[place])

        first = bisected(len(values), lambda index: ends(index)[1] >= truth)
        last = bisected(len(values), lambda index: ends(index)[0] > truth)
        return float(np.isin(noisy[:, place], values[first:last]).mean())

    return [inside(place, truth) for place, truth in enumerate(study.truth)]


def bisected(size: int, true_from: Callable[[int], bool]) -> int:
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if true_from(middle) else (middle + 1, high)
    return low


def released(plan: od.Plan, n: int, sums: np.ndarray, noise: Any) -> np.ndarray:
    stages = NoisySums().run(plan.target(Summary(n, tuple(int(one) for one in sums))), noise).stages
    assert stages is not None
    return np.array(stages["noisy sums"])


def line(study: Study, runs: int, generator: np.random.Generator, noise: Any) -> tuple[str, list[np.ndarray]]:
    drawn = [study.draw(generator) for _ in range(runs)]
    cells, found = [], []
    for epsilon in EPSILONS:
        plan = od.calibrate(AddedNoise(), study.table, od.PureDP(epsilon), n=study.n)
        published = [released(plan, study.n, sums, noise) for sums in drawn]
        found.append(covered(study, plan, published))
        cells.append(" / ".join(f"{least:.3f}" for least in found[-1].min(axis=1)))
    return f"| {study.words} | {study.n:,} | {' | '.join(cells)} |", found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", type=int, default=1)
    parser.add_argument("--only", default="", help="studies whose name contains this")
    options = parser.parse_args()
    runs = 2000 // options.quick
    generator, noise = np.random.default_rng(20261115), seeded_generator(7)
    head = ["| statistic | n | ε = 0.1 | 0.5 | 1 | 2 |", "| --- | --- | --- | --- | --- | --- |"]
    lines, each = [], []
    asked = [study for n in SIZES for study in studies(n)] + [study for n in SIZES[1:3] for study in grouped_studies(n)]
    for study in asked:
        if options.only not in study.words:
            continue
        many = (5 if by_bisection(study) or study.words == "sum" else 1) * runs
        words, found = line(study, many, generator, noise)
        lines.append(words)
        each += [one.T for one in found]
        print(words, flush=True)
    figures = np.concatenate(each)
    least, allowed = figures.min(axis=0), [level - 0.01 for level in LEVELS]
    below = [(figures[:, place] < allowed[place]).sum() for place in range(2)]
    error = [math.sqrt(level * (1.0 - level) / runs) for level in LEVELS]
    surely = [(figures[:, place] < allowed[place] - 3.0 * error[place]).sum() for place in range(2)]
    summary = (
        f"{len(figures):,} intervals at each level. Least: {least[0]:.3f} at 90 %, {least[1]:.3f} at 95 %. Below 0.89: {below[0]}, below 0.94: "
        f"{below[1]}; by more than three standard errors of {runs:,} data sets ({error[0]:.4f}, {error[1]:.4f}): {surely[0]} and {surely[1]}."
    )
    print(summary)
    if options.quick == 1 and not options.only:
        text = f"""# Coverage of everyday statistics

By `benchmarks/everyday_coverage.py`: {runs:,} data sets drawn anew for every line ({5 * runs:,} for shares, counts, histograms and
sums), covered at 90 % / 95 %; the least of the numbers a release publishes. Under a pure ε, replace-one, n public. Counts, sums and numbers of records in groups are about these records, all
else about the law they were drawn from.

{chr(10).join([*head, *lines])}

{summary}
"""
        (RESULTS / "everyday_coverage.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
