"""Proportion, mean, histogram, count: our error beside OpenDP's and diffprivlib's, and whether the intervals cover.

    python benchmarks/everyday_statistics.py              # about a quarter of an hour; writes results/everyday_statistics.md
    python benchmarks/everyday_statistics.py --quick 20   # a twentieth of the runs, prints only

Everybody keeps the same promise: replace-one, n public. OpenDP's Laplace, geometric and Gaussian measurements run here, those of
diffprivlib in an environment of their own (peers/everyday_diffprivlib.py). *Total error* is the root mean squared distance to the
truth the records were drawn from; the sampling error is common to all. Coverage is over 2,000 data sets drawn anew each time.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import onedraw as od
from onedraw.mechanisms import AddedNoise
from onedraw.models import CategoryTable, NumberTable
from onedraw.planning.table_intervals import table_interval
from onedraw.samplers import seeded_generator
from onedraw.samplers.noisy_sums import NoisySums

RESULTS = Path(__file__).parent / "results"
SIZES, EPSILONS, DELTA = (500, 4177, 100_000), (0.1, 0.5, 1.0, 2.0), 1e-6
SHARES, COVERED = (0.001, 0.01, 0.1, 0.5), (50, 500, 4177, 100_000)
LEVELS = np.array([0.69, 0.3, 0.01])
SHARE = CategoryTable(("no", "yes"), show="shares", only="yes")
STATISTICS = {
    "proportion": SHARE,
    "count": CategoryTable(("no", "yes"), only="yes"),
    "histogram": CategoryTable(("a", "b", "c"), show="shares"),
    "mean": NumberTable(0.0, 1.0),
}


KNOWN: dict[tuple[str, str, str, int], str] = {}
"""Rows that an interrupted run has printed already."""


def row(words: str, n: int, epsilon: float, columns: int, compute: Callable[[], str]) -> str:
    """A line of a table, known or computed, and printed as it comes."""
    start = (words, f"{n:,}", f"{epsilon:g}")
    line = KNOWN.get((*start, columns - 1)) or f"| {' | '.join(start)} | {compute()} |"
    print(line, flush=True)
    return line


def our_noise(name: str, n: int, epsilon: float, runs: int, generator: np.random.Generator) -> float:
    """The error of the noise alone, of the release as it is published."""
    table = STATISTICS[name]
    plan = od.calibrate(AddedNoise(), table, od.ApproxDP(epsilon, DELTA), n=n)
    totals = table.summarise(records_for(name, n))
    target, sampler = plan.target(totals), NoisySums()
    truth = table.estimate(np.array(totals.sums, dtype=float).reshape(table.cells, table.block), n)
    return float(np.sqrt(np.mean((sampler.run(target, generator, size=runs).draws - truth) ** 2)))


def records_for(name: str, n: int) -> np.ndarray:
    if name == "mean":
        return np.linspace(0.0, 1.0, n)
    return np.arange(n) % 3 if name == "histogram" else (np.arange(n) < n // 5).astype(int)


def opendp_noise(name: str, n: int, epsilon: float, runs: int) -> float:
    """OpenDP's own Laplace on floats for shares and means, its geometric on counts, at the replace-one sensitivity."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    if name in ("count", "histogram"):
        sensitivity = 1 if name == "count" else 2
        space = dp.vector_domain(dp.atom_domain(T="i64"), size=runs), dp.l1_distance(T="i64")
        drawn = np.array(dp.m.make_laplace(*space, scale=sensitivity / epsilon)([0] * runs), dtype=float)
        return float(np.sqrt(np.mean(drawn**2))) / (1 if name == "count" else n)
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False), size=runs), dp.l1_distance(T="f64")
    drawn = np.array(dp.m.make_laplace(*space, scale=1.0 / (n * epsilon))([0.0] * runs))
    return float(np.sqrt(np.mean(drawn**2)))


def sampling_of(name: str, n: int) -> float:
    return {"proportion": math.sqrt(0.16 / n), "mean": math.sqrt(1 / 12 / n), "histogram": math.sqrt(2 / 9 / n)}.get(
        name, 0.0
    )


def errors(runs: int) -> list[str]:
    peers = {}
    if (RESULTS / "peers_everyday.json").exists():
        peers = {
            (row["n"], row["epsilon"], row["statistic"]): row["rmse"]
            for row in json.loads((RESULTS / "peers_everyday.json").read_text())
        }
    lines = [
        "| statistic | n | ε | our noise | OpenDP's | diffprivlib's | total, ours over the better |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    worst, generator = 0.0, seeded_generator(11)

    def compared(name: str, n: int, epsilon: float) -> str:
        ours, opendp = our_noise(name, n, epsilon, runs, generator), opendp_noise(name, n, epsilon, runs)
        theirs, sampling = peers.get((n, epsilon, name), math.nan), sampling_of(name, n)
        best = min(value for value in (opendp, theirs) if not math.isnan(value))
        ratio = math.hypot(ours, sampling) / math.hypot(best, sampling)
        return f"{ours:.3g} | {opendp:.3g} | {theirs:.3g} | {ratio:.3f}"

    for name in STATISTICS:
        for n in SIZES:
            for epsilon in EPSILONS:
                lines.append(row(name, n, epsilon, 7, partial(compared, name, n, epsilon)))
                worst = max(worst, float(lines[-1].strip("| ").split(" | ")[-1]))
    return [
        *lines,
        "",
        f"Largest ratio: {worst:.3f} (runs: {runs:,}; the ratio of two simulated errors is uncertain by 2 to 3 %).",
    ]


# ── coverage ─────────────────────────────────────────────────────────────────────────────────────────────────


def lognormal(generator: np.random.Generator, n: int) -> np.ndarray:
    return np.minimum(generator.lognormal(0.0, 1.0, n), 20.0)


COLUMNS = {
    "uniform on its range": (0.0, 1.0, lambda g, n: g.random(n), 0.5),
    "log-normal, cut at 20 medians": (0.0, 20.0, lognormal, None),
    "97 % zeros, else 1": (0.0, 1.0, lambda g, n: (g.random(n) < 0.03).astype(float), 0.03),
    "80 % zeros, else uniform": (0.0, 1.0, lambda g, n: (g.random(n) < 0.2) * g.random(n), 0.1),
}


def coverage(
    plan: od.Plan, data, truth: float, runs: int, generator: np.random.Generator, noise
) -> tuple[float, float, float]:
    hits, width = np.zeros(2), 0.0

    @cache
    def ends(published: tuple[float, ...], level: float) -> tuple[np.ndarray, np.ndarray]:
        return table_interval(plan, {"noisy sums": published}, level)[:2]

    for _ in range(runs):
        stages = NoisySums().run(plan.target(plan.model.summarise(data(generator))), noise).stages
        for place, level in enumerate((0.90, 0.95)):
            low, high = ends(tuple(stages["noisy sums"]), level)
            hits[place] += np.mean((low <= truth) & (truth <= high))
            width += (high - low).mean() / runs if place else 0.0
    return hits[0] / runs, hits[1] / runs, width


def of_share(n: int, share: float, generator: np.random.Generator) -> np.ndarray:
    return (np.arange(n) < generator.binomial(n, share)).astype(int)


def of_levels(n: int, generator: np.random.Generator) -> np.ndarray:
    return np.repeat(np.arange(3), generator.multinomial(n, LEVELS))


@cache
def wanted(show: str, draw: Any, mean: float | None) -> float:
    """The truth: known, or of a very large sample."""
    if show == "mean" and mean is not None:
        return mean
    sample = draw(np.random.default_rng(2), 10_000_000)
    return float(sample.mean() if show == "mean" else sample.var())


def covering(runs: int) -> list[str]:
    lines = [
        "| statistic | n | ε | covered at 90 % | at 95 % | width at 95 % |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    generator, noise = np.random.default_rng(20261115), seeded_generator(7)
    least = [1.0, 1.0]

    def line(words: str, n: int, epsilon: float, table: Any, data: Any, truth: Any, times: int) -> None:
        def found() -> str:
            plan = od.calibrate(AddedNoise(), table, od.PureDP(epsilon), n=n)
            covered = coverage(plan, data, truth() if callable(truth) else truth, times, generator, noise)
            return f"{covered[0]:.3f} | {covered[1]:.3f} | {covered[2]:.3g}"

        lines.append(row(words, n, epsilon, 6, found))
        figures = lines[-1].strip("| ").split(" | ")
        least[:] = [min(least[0], float(figures[3])), min(least[1], float(figures[4]))]

    for n in COVERED:
        for share in SHARES:
            for epsilon in (0.5, 2.0):
                line(f"share of {share:g}", n, epsilon, SHARE, partial(of_share, n, share), share, runs)
        line("count", n, 1.0, STATISTICS["count"], lambda g, n=n: (np.arange(n) < n // 5).astype(int), n // 5, runs)
        line("histogram", n, 1.0, STATISTICS["histogram"], partial(of_levels, n), LEVELS, runs)
        for words, (low, high, draw, truth) in COLUMNS.items():
            times = min(runs, 500) if n > 10_000 else runs
            for show in ("mean", "variance"):
                table = NumberTable(low, high, show=show)
                line(
                    f"{show}: {words}",
                    n,
                    1.0,
                    table,
                    lambda g, n=n, draw=draw: draw(g, n),
                    partial(wanted, show, draw, truth),
                    times,
                )
    return [*lines, "", f"Least: {least[0]:.3f} at 90 %, {least[1]:.3f} at 95 %."]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", type=int, default=1)
    parser.add_argument("--known", type=Path, help="what an interrupted run printed: its rows are not run again")
    options = parser.parse_args()
    divisor = options.quick
    if options.known is not None:
        printed = [line for line in options.known.read_text().splitlines() if line.startswith("| ")]
        KNOWN.update({(*line.strip("| ").split(" | ")[:3], line.count(" | ")): line for line in printed})
    table = errors(16_000 // divisor)
    covered = covering(2000 // divisor)
    if divisor == 1:
        text = f"""# Everyday statistics

By `benchmarks/everyday_statistics.py`. Noise errors are root mean squared, for a share of 0.2, a uniform column on [0, 1] and three
equal levels, all under the same promise (replace-one, n public; ours is asked for (ε, 1e-6) and takes the better law).

## Error beside OpenDP and diffprivlib

{chr(10).join(table)}

Doubling ε halves the noise, until the sampling error is all there is.

## Coverage

Over 2,000 data sets drawn anew (500 for means and variances of 100,000 records). Counts are about the records, all else about
the law they were drawn from.

{chr(10).join(covered)}
"""
        (RESULTS / "everyday_statistics.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
