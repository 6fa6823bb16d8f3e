"""Groups: how often tests reject where groups are alike, how near medians by group come, and how wide a small table's median interval is.

    python benchmarks/groups.py [--runs 1000]

Writes results/groups.md. Every data set is drawn from a known law, so what is true is known.
"""

from __future__ import annotations

import argparse
import csv
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy import stats

import onedraw as od
from onedraw.methods import AddedNoise, ExponentialQuantiles, GroupQuantiles
from onedraw.methods.base import calibrate
from onedraw.methods.intervals import Published
from onedraw.models import CategoryTable, ColumnQuantiles, Grouped, NumberTable
from onedraw.privacy import ZCDP, ApproxDP

HERE = Path(__file__).parent
BUDGETS = {"(1, 1e-6)": ApproxDP(1.0, 1e-6), "ρ = 0.05": ZCDP(0.05)}


def released(plan, data, seed):
    """What left, as comparisons read it; without a certificate, which takes longer than the draw."""
    sample = plan.mechanism.own_sampler()().run(plan.target(plan.model.summarise(data)), np.random.default_rng(seed))
    size = len(plan.model.parameter_names)
    units = np.eye(size), np.ones(size), np.zeros(size)
    return Published(sample.draws, sample.stages, 0.0, *units, plan.model.parameter_names)


def groups_of(count, shares, generator, n):
    return generator.choice(count, size=n, p=shares)


def questions(n, groups, generator):
    """(name, plan of a budget, data) of every test under the null."""
    names = tuple("abcdefgh"[:groups])
    shares = np.arange(1, groups + 1) / np.arange(1, groups + 1).sum() if groups == 2 else np.full(groups, 1.0 / groups)
    codes = groups_of(groups, shares, generator, n)
    by = {"by": ("g",), "groups": (names,)}
    skewed = np.minimum(generator.gamma(2.0, 8.0, n), 100.0)
    whole = generator.poisson(12.0, n).astype(float)
    rare, level = (generator.random(n) < 0.1).astype(float), generator.choice(3, n, p=[0.5, 0.3, 0.2]).astype(float)
    return [
        ("means, skewed", AddedNoise(), NumberTable(0.0, 100.0, **by), skewed, codes),
        ("shares, 10 %", AddedNoise(), CategoryTable(("no", "yes"), show="shares", only="yes", **by), rare, codes),
        ("medians, skewed", GroupQuantiles(), ColumnQuantiles((0.5,), 0.0, 100.0, **by), skewed, codes),
        ("medians, whole numbers", GroupQuantiles(), ColumnQuantiles((0.5,), 0.0, 100.0, step=1.0, **by), whole, codes),
        ("cross table, 3 levels", AddedNoise(), CategoryTable(("x", "y", "z"), **by), level, codes),
    ]


def rejections(runs):
    settings = [(n, groups, written, runs) for n in (500, 2000, 10_000) for groups in (2, 4) for written in BUDGETS]
    with ProcessPoolExecutor() as pool:
        return [row for rows in pool.map(rejections_of, *zip(*settings, strict=True)) for row in rows]


def rejections_of(n, groups, written, runs):
    budget, plans, counts = BUDGETS[written], {}, {}
    for run in range(runs):
        generator = np.random.default_rng((n, groups, run))
        for name, mechanism, model, values, codes in questions(n, groups, generator):
            if name not in plans:
                plans[name] = calibrate(mechanism, model, budget, n=n)
            plan = plans[name]
            published = released(plan, Grouped(values, (codes,)), run)
            scores, table = mechanism_scores(plan, published)
            if scores is None:
                found = table.p_value
            else:
                found = scores.compare().differences[0].p_value if groups == 2 else scores.joint().p_value
            tests, rejected = counts.get(name, (0, 0))
            known = not np.isnan(found)
            counts[name] = tests + known, rejected + (known and found < 0.05)
    return [(name, n, groups, written, tests, rejected) for name, (tests, rejected) in counts.items()]


def mechanism_scores(plan, published):
    return plan.mechanism.scores(plan, published), plan.mechanism.independence(plan, published)


def medians(runs):
    """Root mean square errors of medians by group, and of the same mechanism on the group alone."""
    settings = [(n, epsilon, runs) for n in (1000, 10_000) for epsilon in (0.5, 1.0)]
    with ProcessPoolExecutor() as pool:
        return [row for rows in pool.map(medians_of, *zip(*settings, strict=True)) for row in rows]


def medians_of(n, epsilon, runs):
    """Return the ratios of errors, group by group."""
    rows = []
    budget, errors = ApproxDP(epsilon, 1e-6), {}
    model = ColumnQuantiles((0.5,), 0.0, 500.0, by=("g",), groups=(("a", "b", "c"),))
    plan = calibrate(GroupQuantiles(), model, budget, n=n)
    sizes = np.array([0.5, 0.3, 0.2]) * n
    alone = [
        calibrate(ExponentialQuantiles(), ColumnQuantiles((0.5,), 0.0, 500.0), budget, n=int(size)) for size in sizes
    ]
    codes = np.repeat([0, 1, 2], sizes.astype(int))
    for run in range(runs):
        values = np.minimum(np.random.default_rng((n, run)).lognormal(3.0, 1.0, n), 500.0)
        together = released(plan, Grouped(values, (codes,)), run).draws[0][:3]
        for k in range(3):
            own = np.sort(values[codes == k])
            single = released(alone[k], own, run).draws[0][0]
            for kind, value in (("group", together[k]), ("alone", single)):
                up_to = np.searchsorted(own, value, "right")
                rank = (np.searchsorted(own, value) + up_to - len(own)) / 2.0
                errors.setdefault((k, kind), []).append((value - np.exp(3.0), rank))
    for k in range(3):
        both = [np.sqrt(np.mean(np.square(errors[k, kind]), axis=0)) for kind in ("group", "alone")]
        rows.append((n, epsilon, int(sizes[k]), *(both[0] / both[1])))
    return rows


def fares(runs):
    with Path("/work/shared/data/titanic.csv").open(encoding="utf-8") as file:
        values = np.sort([float(row["fare"]) for row in csv.DictReader(file)])
    rank = int(stats.binom.ppf(0.025, len(values), 0.5))
    plain = values[len(values) - rank] - values[rank - 1]
    widths = []
    for seed in range(runs):
        low, high = od.DPQuantile(epsilon=1.0, bounds=(0, 600), random_state=seed).fit(values).conf_int()[0]
        widths.append(high - low)
    return float(np.mean(widths)), float(plain)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument(
        "--fares", nargs=2, type=float, help="Mean width and order statistics, if they were measured before."
    )
    given = parser.parse_args()
    runs = given.runs
    width, plain = given.fares or fares(200)
    lines = [
        "# Groups",
        "",
        f"Median of 891 fares (titanic, bounds 0 to 600, ε = 1): mean width of 200 intervals {width:.2f}, order statistics {plain:.2f}, ratio {width / plain:.2f}.",
        "",
        f"## Medians by group against the group alone ({runs} data sets)",
        "",
        "Ratio of root mean square errors, of the median about the population's and of its rank about the group's own middle.",
        "",
        "| n | ε | records in the group | median | rank |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {n:,} | {epsilon:g} | {size:,} | {value:.3f} | {rank:.3f} |"
        for n, epsilon, size, value, rank in medians(runs)
    ]
    found = rejections(runs)
    pooled = {}
    for name, *_, tests, rejected in found:
        before = pooled.get(name, (0, 0))
        pooled[name] = before[0] + tests, before[1] + rejected
    lines += [
        "",
        f"## Rejections at 5 % where groups are alike ({runs} data sets a row)",
        "",
        *(
            f"- {name}: {100 * rejected / max(tests, 1):.1f} % of {tests:,} tests"
            for name, (tests, rejected) in pooled.items()
        ),
        "",
        "| test | n | groups | budget | tests | rejected |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {name} | {n:,} | {groups} | {budget} | {tests} | {100 * rejected / max(tests, 1):.1f} % |"
        for name, n, groups, budget, tests, rejected in found
    ]
    Path(os.environ.get("OUT", HERE / "results"), "groups.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
