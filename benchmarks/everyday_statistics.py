"""Proportion, mean, histogram, count: our error beside OpenDP's and diffprivlib's.

    python benchmarks/everyday_statistics.py              # about a minute; writes results/everyday_statistics.md
    python benchmarks/everyday_statistics.py --quick 20   # a twentieth of the runs, prints only

Everybody keeps the same promise: replace-one, n public. OpenDP's Laplace, geometric and Gaussian measurements run here, those of
diffprivlib in an environment of their own (peers/everyday_diffprivlib.py). *Total error* is the root mean squared distance to the
truth the records were drawn from; the sampling error is common to all. Whether intervals cover: everyday_coverage.py.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from pathlib import Path

import numpy as np

import onedraw as od
from onedraw.methods import AddedNoise
from onedraw.methods.added_noise.run import NoisySums
from onedraw.models import CategoryTable, NumberTable
from onedraw.samplers import seeded_generator

RESULTS = Path(__file__).parent / "results"
SIZES, EPSILONS, DELTA = (500, 4177, 100_000), (0.1, 0.5, 1.0, 2.0), 1e-6
STATISTICS = {
    "proportion": CategoryTable(("no", "yes"), show="shares", only="yes"),
    "count": CategoryTable(("no", "yes"), only="yes"),
    "histogram": CategoryTable(("a", "b", "c"), show="shares"),
    "mean": NumberTable(0.0, 1.0),
}


def our_noise(name: str, n: int, epsilon: float, runs: int, generator: np.random.Generator) -> float:
    """The error of the noise alone, of the release as it is published."""
    table = STATISTICS[name]
    plan = od.calibrate(AddedNoise(), table, od.ApproxDP(epsilon, DELTA), n=n)
    totals = table.summarise(records_for(name, n))
    target, sampler = plan.target(totals), NoisySums()
    truth = table.estimate(np.array(totals.total, dtype=float).reshape(table.cells, table.block), n)
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


def opendp_gaussian(name: str, n: int, epsilon: float, runs: int) -> float:
    """OpenDP's own Gaussian, at the smallest scale that its own conversion from zCDP to (ε, δ) allows."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    whole = name in ("count", "histogram")
    sensitivity = {"count": 1.0, "histogram": math.sqrt(2.0)}.get(name, 1.0 / n)
    atoms = dp.atom_domain(T="i64") if whole else dp.atom_domain(T="f64", nan=False)
    space = dp.vector_domain(atoms, size=runs), dp.l2_distance(T="f64")

    def keeps(scale: float) -> bool:
        noise = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale))
        return bool(dp.c.make_fix_delta(noise, DELTA).check(sensitivity, (epsilon, DELTA)))

    scale = dp.binary_search(keeps, (0.5 * sensitivity, 1e4 * sensitivity))
    drawn = np.array(dp.m.make_gaussian(*space, scale=scale)([0 if whole else 0.0] * runs), dtype=float)
    return float(np.sqrt(np.mean(drawn**2))) / (n if name == "histogram" else 1)


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
        "| statistic | n | ε | our noise | OpenDP's Laplace | its Gaussian | diffprivlib's | total, ours over the best |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    worst, generator = 0.0, seeded_generator(11)

    for name, n, epsilon in itertools.product(STATISTICS, SIZES, EPSILONS):
        ours, sampling = our_noise(name, n, epsilon, runs, generator), sampling_of(name, n)
        laplace, gaussian = opendp_noise(name, n, epsilon, runs), opendp_gaussian(name, n, epsilon, runs)
        theirs = peers.get((n, epsilon, name), math.nan)
        best = min(value for value in (laplace, gaussian, theirs) if not math.isnan(value))
        ratio = math.hypot(ours, sampling) / math.hypot(best, sampling)
        worst = max(worst, ratio)
        figures = " | ".join(f"{value:.3g}" for value in (ours, laplace, gaussian, theirs))
        lines.append(f"| {name} | {n:,} | {epsilon:g} | {figures} | {ratio:.3f} |")
        print(lines[-1], flush=True)
    return [
        *lines,
        "",
        f"Largest ratio: {worst:.3f} (runs: {runs:,}; the ratio of two simulated errors is uncertain by 2 to 3 %).",
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", type=int, default=1)
    divisor = parser.parse_args().quick
    table = errors(16_000 // divisor)
    if divisor == 1:
        text = f"""# Everyday statistics

By `benchmarks/everyday_statistics.py`. Noise errors are root mean squared, for a share of 0.2, a uniform column on [0, 1] and three
equal levels, all under the same promise (replace-one, n public; ours is asked for (ε, 1e-6) and takes the better law; OpenDP's Gaussian keeps
(ε, 1e-6), all other peers a pure ε).

{chr(10).join(table)}

Doubling ε halves the noise, until the sampling error is all there is. Coverage: [everyday_coverage.md](everyday_coverage.md).
"""
        (RESULTS / "everyday_statistics.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
