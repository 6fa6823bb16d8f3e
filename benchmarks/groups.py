"""Groups: how often tests reject where groups are alike, how near medians by group come, and how wide a small table's median interval is.

    python benchmarks/groups.py    # some minutes; writes benchmarks/results/groups.md

Sums are those of data sets from a known law, and noise is drawn at the scales of plans. The tests then read them as they read a release.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from scipy import stats

import onedraw as od
from onedraw.methods import AddedNoise, ExponentialQuantiles, GroupQuantiles, comparisons
from onedraw.methods.base import calibrate
from onedraw.methods.comparisons import Scores, independence
from onedraw.methods.noise_law import NoiseLaw, law_of
from onedraw.methods.quantiles.groups import count_law
from onedraw.models import CategoryTable, ColumnQuantiles, NumberTable
from onedraw.models.tables.table import STEPS

HERE = Path(__file__).parent
BUDGETS = {"(1, 1e-6)": od.ApproxDP(1.0, 1e-6), "ρ = 0.05": od.ZCDP(0.05)}
NAMES = tuple("abcd")
PAIRS, JOINTLY = 3000, 600
"""Data sets for a test of two groups, and for one that is simulated."""


def noisy(sums, law: NoiseLaw, generator):
    draws = generator.laplace if law.law == "laplace" else generator.normal
    return sums + draws(0.0, law.scale, sums.shape)


def mean_scores(x, codes, groups, law, generator):
    t = x / 100.0
    cells = (
        np.stack([np.bincount(codes, part, groups) for part in ((1 - t) ** 2, 2 * t * (1 - t), t**2)], axis=1) * STEPS
    )
    return Scores.of_cells(
        "mean", NAMES[:groups], noisy(cells, law, generator) / STEPS, law, split=True, unit=float(STEPS)
    )


def share_scores(x, codes, groups, law, generator):
    hit = x < 5.0
    counts = np.stack([np.bincount(codes[~hit], minlength=groups), np.bincount(codes[hit], minlength=groups)], axis=1)
    return Scores.of_shares(NAMES[:groups], noisy(counts.astype(float), law, generator), None, law)


def median_scores(x, codes, groups, law, generator):
    sizes = np.bincount(codes, minlength=groups)
    middle = np.rint(np.average([np.median(x[codes == g]) for g in range(groups)], weights=sizes))
    cells = np.stack(
        [np.bincount(codes[part], minlength=groups) for part in (x < middle, x == middle, x > middle)], axis=1
    )
    return Scores.of_cells("median", NAMES[:groups], noisy(cells.astype(float), law, generator), law, split=False)


def laws(budget, n, groups):
    by = {"by": ("g",), "groups": (NAMES[:groups],)}
    medians = calibrate(GroupQuantiles(), ColumnQuantiles((0.5,), 0.0, 100.0, **by), budget, n=n)
    return {
        "means": (mean_scores, law_of(calibrate(AddedNoise(), NumberTable(0.0, 100.0, **by), budget, n=n))),
        "shares": (share_scores, law_of(calibrate(AddedNoise(), CategoryTable(("n", "y"), show="shares", only="y", **by), budget, n=n))),
        "medians": (median_scores, count_law(medians, "signs")),
    }  # fmt: skip


def rejections():
    comparisons.SIMULATED, comparisons.TABLES = 999, 999
    rows = []
    for n in (500, 2000, 10_000):
        for written, budget in BUDGETS.items():
            for groups, runs in ((2, PAIRS), (4, JOINTLY)):
                for name, (scores_of, law) in laws(budget, n, groups).items():
                    generator, tests, rejected = np.random.default_rng((n, groups)), 0, 0
                    for _ in range(runs):
                        codes = generator.choice(
                            groups, size=n, p=np.arange(1, groups + 1) / (groups * (groups + 1) / 2)
                        )
                        x = np.minimum(generator.poisson(generator.gamma(2.0, 8.0, n)), 100).astype(float)
                        scores = scores_of(x, codes, groups, law, generator)
                        p_value = scores._difference(0, 1, 0.95).p_value if groups == 2 else scores.joint().p_value
                        tests, rejected = tests + (not np.isnan(p_value)), rejected + (p_value < 0.05)
                    rows.append((f"{name}, {groups} groups", n, written, tests, rejected))
            law, shares = laws(budget, n, 2)["shares"][1], np.outer([0.5, 0.3, 0.2], [0.6, 0.25, 0.15]).reshape(-1)
            generator, tests, rejected = np.random.default_rng(n), 0, 0
            for _ in range(JOINTLY):
                table = noisy(generator.multinomial(n, shares).reshape(3, 3).astype(float), law, generator)
                p_value = independence(np.rint(table), n, law).p_value
                tests, rejected = tests + (not np.isnan(p_value)), rejected + (p_value < 0.05)
            rows.append(("cross table, 3 × 3", n, written, tests, rejected))
            print(rows[-7:], flush=True)
    return rows


def rank_errors():
    """Of a median by group over that of the group alone, by the weight that a rank has in the selection."""
    for n in (1000, 10_000):
        for written, budget in {**BUDGETS, "pure 0.5": od.PureDP(0.5)}.items():
            for interval in (0.95, None):
                options = {"levels": (0.5,), "lower": 0.0, "upper": 100.0, "interval": interval}
                grouped = ColumnQuantiles(**options, by=("g",), groups=(NAMES,))
                together = calibrate(GroupQuantiles(), grouped, budget, n=n)
                alone = calibrate(ExponentialQuantiles(), ColumnQuantiles(**options), budget, n=n // 4)
                ratio = alone.parameters["width_1"] / together.parameters["width_1"]
                yield n // 4, written, "with" if interval else "without", ratio


def fares(runs):
    with Path("/work/shared/data/titanic.csv").open(encoding="utf-8") as file:
        values = np.sort([float(row["fare"]) for row in csv.DictReader(file)])
    rank = int(stats.binom.ppf(0.025, len(values), 0.5))
    plain = values[len(values) - rank] - values[rank - 1]
    ends = [
        od.DPQuantile(epsilon=1.0, bounds=(0, 600), random_state=seed).fit(values).conf_int()[0] for seed in range(runs)
    ]
    return float(np.mean(np.diff(ends))), float(plain)


if __name__ == "__main__":
    lines = ["# Groups", "", "## Medians by group against the group alone", "",
             "Ratio of the errors of the released rank, for four groups of equal size.", "",
             "| records in the group | budget | intervals | ratio |", "| --- | --- | --- | --- |"]  # fmt: skip
    lines += [f"| {size:,} | {budget} | {interval} | {ratio:.3f} |" for size, budget, interval, ratio in rank_errors()]
    found, pooled = rejections(), {}
    for name, _, _, tests, rejected in found:
        before = pooled.get(name, (0, 0))
        pooled[name] = before[0] + tests, before[1] + rejected
    lines += ["", "## Rejections at 5 % where groups are alike", "",
              "Skewed counts (gamma–Poisson) with ties, groups of unequal size; shares of 18 %.", "",
              *(f"- {name}: {100 * rejected / max(tests, 1):.1f} % of {tests:,} tests" for name, (tests, rejected) in pooled.items()), "",
              "| test | n | budget | tests | rejected |", "| --- | --- | --- | --- | --- |"]  # fmt: skip
    lines += [
        f"| {name} | {n:,} | {budget} | {tests:,} | {100 * rejected / tests:.1f} % |"
        if tests
        else f"| {name} | {n:,} | {budget} | 0 | none is given |"
        for name, n, budget, tests, rejected in found
    ]
    width, plain = fares(200)
    lines += [
        "",
        "## The median of 891 fares",
        "",
        f"Bounds 0 to 600, ε = 1: mean width of 200 intervals {width:.2f}, of order statistics {plain:.2f}, ratio {width / plain:.2f}.",
    ]
    (HERE / "results" / "groups.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
