"""How wide are the intervals of a variance, and do they cover? By columns, n and ε, beside the plain interval.

    python benchmarks/variance_intervals.py              # about forty minutes; writes results/variance_intervals.md
    python benchmarks/variance_intervals.py --quick 10   # a tenth of the data sets, prints only

The plain interval has no noise and the sampling error that a column's fourth moment gives: 2·1.96·√((κ − 1)/n)·V.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

import onedraw as od
from onedraw.methods import CenteredNoise, Plan
from onedraw.methods.added_noise.intervals import table_interval
from onedraw.methods.added_noise.run import CenteredSums, NoisySums
from onedraw.methods.added_noise.variance_intervals import variance_interval
from onedraw.models import NumberTable
from onedraw.planning import ColumnQuestion
from onedraw.samplers import seeded_generator

RESULTS = Path(__file__).parent / "results"
RUNS, LEVEL, SEED = 1000, 0.95, 20261119
SIZES, EPSILONS = (200, 1000, 5000), (0.2, 1.0, 3.0)
TABLE = NumberTable(0.0, 1.0, show="variance")

Draw = Callable[[np.random.Generator, int], np.ndarray]


def rare(share: float, low: float = 0.0, high: float = 0.0) -> Draw:
    """Draw 1 for this share of the records, else a uniform number between two others."""
    return lambda g, n: np.where(g.random(n) < share, 1.0, low + (high - low) * g.random(n))


COLUMNS: dict[str, Draw] = {
    "exponential(1) on (0, 10)": lambda g, n: np.minimum(g.exponential(0.1, n), 1.0),
    "exponential(1) on (0, 20)": lambda g, n: np.minimum(g.exponential(0.05, n), 1.0),
    "t₃ on (-10, 10)": lambda g, n: np.clip(0.5 + 0.05 * g.standard_t(3, n), 0.0, 1.0),
    "log-normal, cut at 20 medians": lambda g, n: np.minimum(g.lognormal(0.0, 1.0, n) / 20.0, 1.0),
    "normal, 0.15 of the range": lambda g, n: np.clip(0.5 + 0.15 * g.standard_normal(n), 0.0, 1.0),
    "uniform": lambda g, n: g.random(n),
    "nearly constant": lambda g, n: 0.5 + 0.001 * g.standard_normal(n),
    "0 or 1, half and half": rare(0.5),
    "0 or 1, 0.1 ones": rare(0.1),
    "0 or 1, 0.02 ones": rare(0.02),
    "0 or 1, 0.005 ones": rare(0.005),
    "0 or 1, 0.001 ones": rare(0.001),
    "uniform to 0.2, 0.001 at 1": rare(0.001, 0.0, 0.2),
    "uniform to 0.2, 0.01 at 1": rare(0.01, 0.0, 0.2),
    "about the middle, 0.003 at 1": rare(0.003, 0.45, 0.55),
}


def study(draw: Draw, plan: Plan, runs: int, seed: int = 0) -> tuple[float, float]:
    """Return the width over that of the plain interval, and the coverage."""
    truth = float(draw(np.random.default_rng(1), 4_000_000).var())
    generator, noise, n = np.random.default_rng([SEED, seed, plan.n]), seeded_generator(SEED + seed), plan.n
    centered = isinstance(plan.mechanism, CenteredNoise)
    sampler, interval = (CenteredSums(), variance_interval) if centered else (NoisySums(), table_interval)
    widths, plain, hits = 0.0, 0.0, 0
    for _ in range(runs):
        values = draw(generator, n)
        stages = sampler.run(plan.target(TABLE.summarise(values)), noise).stages or {}
        low, high, *_ = interval(plan, stages, LEVEL)
        deviations = values - values.mean()
        fourth, spread = (deviations**4).mean(), deviations.var()
        widths, hits = widths + float(high[0] - low[0]), hits + int(low[0] <= truth <= high[0])
        plain += 2.0 * 1.96 * math.sqrt(max(fourth - spread**2, 0.0) / n)
    return widths / plain, hits / runs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", type=int, default=1)
    parser.add_argument("--only", default="", help="columns whose name contains this")
    options = parser.parse_args()
    runs = RUNS // options.quick
    cases = [(n, epsilon) for n in SIZES for epsilon in EPSILONS]
    plans = [ColumnQuestion(TABLE).choices(od.PureDP(epsilon), n=n).best for n, epsilon in cases]
    named = " | ".join(f"{n:,}, {epsilon:g}" for n, epsilon in cases)
    lines = [f"| n, ε | middle: 1,000, 1 | {named} |", "| --- " * (len(cases) + 2) + "|"]
    before = ColumnQuestion(TABLE).choices(od.PureDP(1.0), n=1000, mechanism="laplace").best
    figures = []
    for place, (name, draw) in enumerate(COLUMNS.items()):
        if options.only not in name:
            continue
        found = [study(draw, plan, runs // (4 if plan is before else 1), place) for plan in (before, *plans)]
        figures += [coverage for _, coverage in found[1:]]
        lines.append(f"| {name} | {' | '.join(f'{shown(width)} / {coverage:.3f}' for width, coverage in found)} |")
        print(lines[-1], flush=True)
    error = math.sqrt(LEVEL * (1.0 - LEVEL) / runs)
    summary = (
        f"{len(figures)} columns and sizes. Least coverage: {min(figures):.3f}; below 0.95 by more than two standard "
        f"errors of {runs:,} data sets ({error:.4f}): {sum(one < LEVEL - 2 * error for one in figures)}."
    )
    print(summary)
    if options.quick == 1 and not options.only:
        rules = ", ".join(
            f"{n:,} and {epsilon:g}"
            for (n, epsilon), plan in zip(cases, plans, strict=True)
            if not isinstance(plan.mechanism, CenteredNoise)
        )
        text = f"""# Intervals of a variance

By `benchmarks/variance_intervals.py`: width over that of the plain interval / coverage, of 95 % intervals under a pure ε, {runs:,} data
sets each. The plain interval has no noise and uses the column's own fourth moment. The first figures are those of squares about the middle of
the range (`--mechanism laplace`, a quarter of the data sets); all others are what `auto` takes: squares about a released mean, but for n and ε of {rules}.
A column of 0 and 1, half and half, hardly has a sampling error, and a nearly constant one has none that the noise would leave: their widths say nothing.

{chr(10).join(lines)}

{summary}
"""
        (RESULTS / "variance_intervals.md").write_text(text, encoding="utf-8")


def shown(width: float) -> str:
    return f"{width:.2f}" if width < 100.0 else "–"


if __name__ == "__main__":
    main()
