"""What an accelerator makes of the sums, fits and chains: the same integers, and how long they take.

    python benchmarks/gpu.py [--small] [--parts many fit] [--out results.md]

Needs JAX, NumPy and SciPy beside onedraw. Times are of the second run, after compilation; a transfer to the device is timed apart.
``--small`` makes everything a hundred times smaller, to see that it runs.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from experiments.many_fits import fit_many

import onedraw as od
from onedraw.methods import Gibbs, NoisyGradient, PerturbedMode, calibrate
from onedraw.methods.perturbed_mode.run import Stages
from onedraw.models import Encoded, Gaussian, Logistic
from onedraw.models.compute import check_arithmetic, jax
from onedraw.models.fit.losses import FitLoss
from onedraw.models.fit.sums import NewtonSums
from onedraw.models.moments.measured import SecondMoments
from onedraw.samplers import LastIterateLangevin, Proximal
from onedraw.samplers.chacha import seeded_key
from onedraw.samplers.hamiltonian import HMC
from onedraw.samplers.noise import Noise

Row = tuple[str, str, str]


def timed(task: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = jax.block_until_ready(task())
    return time.perf_counter() - start, found


def logistic(n: int, columns: int, seed: int = 0) -> tuple[Any, Encoded]:
    rng = np.random.default_rng(seed)
    X = np.ones((n, columns + 1))
    X[:, :-1] = 2.0 * rng.random((n, columns)) - 1.0
    theta = rng.normal(0.0, 0.5, columns + 1)
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-X @ theta)), 1.0, -1.0)
    model = Logistic(columns, bounds=(-1, 1), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))
    return model, Encoded(n, X, y)


def sums(small: bool) -> list[Row]:
    """The integers of one fit's statistics on a public block, here and on the processor."""
    check_arithmetic()
    model, encoded = logistic(65_536, 20)
    plan = calibrate(PerturbedMode(intervals=True), model, od.ApproxDP(1.0, 1e-6), n=encoded.n)
    problem = plan.target(encoded).problem
    assert isinstance(problem.loss, FitLoss)
    columns, width = problem.moment_columns, problem.size
    z = (encoded.X / np.sqrt(width)).T

    def digest(statistic: Any, arrays: Any, *public: Any) -> str:
        return hashlib.sha256(np.asarray(statistic.of_block(*arrays, np.ones(encoded.n), *public)).astype(np.int64).tobytes()).hexdigest()[:12]  # fmt: skip

    def both() -> tuple[str, str]:
        second = (
            SecondMoments(columns.layout, columns.response),
            (encoded.X, encoded.y),
            2.0**17,
            np.zeros(columns.count),
            2.0,
        )
        newton = NewtonSums(problem.loss), (z, np.ones(encoded.n), encoded.y), 2.0**17, 1.0, np.full(width, 0.3)
        return digest(*second), digest(*newton)

    there = both()
    with jax.default_device(jax.devices("cpu")[0]):
        here = both()
    words = ["the same" if a == b else "others (exp has other last bits)" for a, b in zip(there, here, strict=True)]
    return [
        ("products of whole numbers below 2⁵³", "those of a processor, or refused", "the same"),
        ("second moments of 65,536 × 20, digest", "those of a processor", words[0]),
        ("gradient and Hessian with exp, digest", "one device for all records", words[1]),
    ]


def fit(small: bool) -> list[Row]:
    n, columns = (100_000, 50) if small else (10_000_000, 50)
    model, encoded = logistic(n, columns)
    plan = calibrate(PerturbedMode(intervals=True), model, od.ApproxDP(1.0, 1e-6), n=n)
    target = plan.target(encoded)
    moved, _ = timed(lambda: [block.arrays for block in target.records])

    def run(seed: int) -> Stages:
        stages = Stages(target, Noise(np.random.default_rng(seed), pure=True))
        stages.run()
        return stages

    first, _ = timed(lambda: run(0))
    again, stages = min((timed(partial(run, seed)) for seed in (1, 2)), key=lambda found: found[0])
    return [
        (f"transfer of n = {n:,}, d = {columns}", "–", f"{moved:.2f} s"),
        ("a fit of it after the transfer", "< 2 s", f"{again:.2f} s, {stages.passes} passes (first run {first:.1f} s)"),
    ]


def langevin(small: bool) -> list[Row]:
    """A step of a chain: the slope of runs of two lengths. Noisy gradients run on whole numbers, posterior chains on floats."""
    rows = []
    for n, columns, limit in ((100_000, 20, "200 µs before"), (1_000_000, 20, "< 150 µs")):
        n = n // 100 if small else n
        model, encoded = logistic(n, columns)
        target = calibrate(NoisyGradient(), model, od.ZCDP(0.5), n=n).target(encoded)

        def path(steps: int, target: Any = target) -> Any:
            return LastIterateLangevin(steps, 1e-7).run(target, seeded_key(1)).draws

        rows.append((f"a noisy gradient's step, n = {n:,}, d = {columns}", limit, a_step(path, 640, 6400)))
        posterior = calibrate(Gibbs("gdp"), model, od.ZCDP(0.5), n=n).target(encoded)

        def chain(steps: int, target: Any = posterior) -> Any:
            return LastIterateLangevin(steps, 1e-7).run(target, seeded_key(1)).draws

        rows.append((f"a Langevin step, n = {n:,}, d = {columns}", limit, a_step(chain, 640, 6400)))
        if n <= 100_000:

            def proximal(steps: int, target: Any = posterior) -> Any:
                return Proximal(iterations=steps).run(target, seeded_key(1)).draws

            rows.append((f"a proximal step, n = {n:,}, d = {columns}", "–", a_step(proximal, 64, 640)))
    return rows


def a_step(run: Callable[[int], Any], few: int, many: int) -> str:
    run(few)
    short, long = (min(timed(partial(run, steps))[0] for _ in range(2)) for steps in (few, many))
    return f"{1e6 * (long - short) / (many - few):.0f} µs"


def hamiltonian(small: bool) -> list[Row]:
    """Needs BlackJAX."""
    n = 1_000 if small else 100_000
    model, encoded = logistic(n, 20)
    target = calibrate(Gibbs("gdp"), model, od.ZCDP(0.5), n=n).target(encoded)
    step = a_step(lambda steps: HMC(steps=steps).run(target, seeded_key(1)).draws, 64, 640)
    return [(f"a step of HMC, n = {n:,}, d = 20", "–", step)]


def many(small: bool) -> list[Row]:
    fits, n, columns = 100 if small else 10_000, 1_000, 5
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (fits, n, columns))
    y = (rng.random((fits, n)) < 1.0 / (1.0 + np.exp(-X @ np.linspace(-1.0, 1.0, columns)))).astype(int)
    model = Logistic(columns, bounds=(-1, 1), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))
    plan = calibrate(PerturbedMode(intervals=True), model, od.ApproxDP(1.0, 1e-6), n=n)
    taken, _ = timed(lambda: fit_many(plan, X, y, range(fits)).mode)
    return [(f"{fits:,} fits of n = {n:,}, d = {columns}, compilation included", "< 30 s", f"{taken:.1f} s")]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--small", action="store_true")
    options.add_argument("--parts", nargs="*", help="run these alone: sums, many, langevin, fit, hamiltonian")
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    device = jax.devices()[0]
    lines = [
        "# On an accelerator",
        "",
        f"{device.device_kind} ({device.platform}), JAX {jax.__version__}, float64.",
        "",
        "| what | asked for | seen |",
        "| --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    for part in (sums, many, langevin, fit, hamiltonian):
        for row in part(given.small) if not given.parts or part.__name__ in given.parts else ():
            lines.append(f"| {' | '.join(row)} |")
            print(lines[-1], flush=True)
            if given.out is not None:
                given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
