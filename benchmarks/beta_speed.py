"""What a draw from a β-divergence posterior costs, beside NumPyro's NUTS on the same potential. Ratios within one run.

Contract: a release at n = 10⁴, d = 10 (logistic) at least 10× faster than NumPyro's NUTS with 1000 steps of warm-up and
100 draws, at a coupling-estimated total variation of at most 0.01; 64 fits of simulated data sets at n = 200, d = 2 in one
call at least 4× cheaper than 64 calls. The couplings are run before the release, once for each plan, and read no record.

    python benchmarks/beta_speed.py > benchmarks/results/beta_speed.md
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

os.environ["ONEDRAW_CACHE"] = tempfile.mkdtemp()  # so that the first call compiles
sys.path.insert(0, str(Path(__file__).parents[1]))

import jax
import numpy as np
from experiments.many_fits import fits

import onedraw as od
from onedraw.models.likelihood.beta_target import compiled
from onedraw.samplers import HMC

RELEASE_LIMIT, BATCH_LIMIT = 10.0, 4.0
STAN = "5.6 CPU s at n = 1,000 and 77 CPU s at n = 10,000, after about 50 s of compiling the model"
"""Of the paper's own sampler: Stan, 1000 + 100 steps of NUTS, d = 2 (reference file beta-bayes-simulation)."""


T = TypeVar("T")


def timed(action: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def cheapest(action, repeats: int = 7) -> tuple[float, float]:
    """The least wall and the least CPU seconds of several calls: others use the machine too."""
    wall, cpu = [], []
    for _ in range(repeats):
        started = time.process_time()
        wall.append(timed(action)[0])
        cpu.append(time.process_time() - started)
    return min(wall), min(cpu)


def records(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d))
    theta = generator.standard_normal(d) / np.sqrt(d)
    return X, (generator.random(n) < 1.0 / (1.0 + np.exp(-X @ theta))).astype(float)


def numpyro_nuts(target):
    """A function that runs 1000 + 100 steps for a seed; compiled at its first call."""
    from numpyro.infer import MCMC, NUTS

    potential = compiled(target.kernel, "potential")
    sampler = MCMC(
        NUTS(potential_fn=lambda theta: potential(theta, *target.arguments)), num_warmup=1000, num_samples=100,
        progress_bar=False,
    )  # fmt: skip

    def run(seed: int) -> np.ndarray:
        sampler.run(jax.random.key(seed), init_params=np.zeros(target.dimension))
        return np.asarray(sampler.get_samples())

    return run


def against_numpyro() -> list[str]:
    n, d = 10_000, 10
    data = records(n, d)
    model = od.models.BinaryRegression(d)
    plan = od.calibrate(od.BetaDivergence(), model, od.ApproxDP(1.0, 0.1), n=n, gamma=0.01)
    couplings, sampler = timed(lambda: HMC.coupled(plan))
    first, _ = timed(lambda: od.release(plan, data, sampler=sampler, accept="estimated"))
    later = min(timed(lambda: od.release(plan, data, sampler=sampler, accept="estimated"))[0] for _ in range(5))
    target = plan.target(model.summarise(data))
    theirs = numpyro_nuts(target)
    theirs_first, _ = timed(lambda: theirs(0))
    theirs_later = min(timed(partial(theirs, seed))[0] for seed in (1, 2))
    return [
        f"## One release, logistic, n = {n:,}, d = {d} and an intercept, ε = 1\n",
        "| | seconds, first call | seconds, later calls |",
        "| --- | --- | --- |",
        f"| `release` with `HMC.coupled`, {sampler.steps} steps | {first:.2f} | {later:.3f} |",
        f"| NumPyro's NUTS, 1000 + 100, same potential | {theirs_first:.2f} | {theirs_later:.2f} |",
        f"| ratio | {theirs_first / first:.1f} | **{theirs_later / later:.0f}** (contract: ≥ {RELEASE_LIMIT:g}) |",
        "",
        f"Couplings before the release: {couplings:.0f} s, compilation included, once for the plan and without any record; "
        f"estimated total variation after {sampler.steps} steps at most {sampler.meeting_times.limit:.3g} "
        f"({sampler.meeting_times.replications} pairs, confidence {sampler.meeting_times.confidence:g}). A first call compiles; programs are "
        "kept on disk for the next process (not here, where the cache starts empty).",
        "",
        f"The published sampler's cost, for comparison: {STAN}.",
    ]


def batched_fits() -> list[str]:
    n, d, many = 200, 2, 64
    model = od.models.BinaryRegression(d - 1)  # with the intercept d parameters
    plan = od.calibrate(od.BetaDivergence(), model, od.PureDP(1.0), n=n)
    targets = [plan.target(model.summarise(records(n, d - 1, seed))) for seed in range(many)]
    asked = HMC.coupled(plan, tv=0.05).steps
    lines = [
        f"\n## {many} fits of simulated data, logistic, n = {n}, d = {d}\n",
        "| steps | | seconds, first call | seconds, later calls | CPU seconds, later calls |",
        "| --- | --- | --- | --- | --- |",
    ]
    for steps in (asked, 40):
        lines += batch_lines(HMC(steps), targets)
    return [
        *lines,
        "",
        f"Contract: one call ≥ {BATCH_LIMIT:g}× cheaper. {asked} steps are what couplings on simulated data ask for at a total "
        "variation of 0.05; with more steps a single fit is bound by its arithmetic and a batch saves less. Both ways use "
        "JAX's own generator: simulated records need no cipher.",
    ]


def batch_lines(sampler: HMC, targets: list) -> list[str]:
    key = jax.random.key(0)
    keys = jax.random.split(key, len(targets))

    def one_by_one():
        return [sampler.draw(target, own) for target, own in zip(targets, keys, strict=True)]

    def together():
        return fits(targets, sampler, key=key)

    first_single, _ = timed(one_by_one)
    first_batch, _ = timed(together)
    single, single_cpu = cheapest(one_by_one)
    batch, batch_cpu = cheapest(together)
    return [
        f"| {sampler.steps} | {len(targets)} calls | {first_single:.2f} | {single:.3f} | {single_cpu:.3f} |",
        f"| | `fits`, one call | {first_batch:.2f} | {batch:.3f} | {batch_cpu:.3f} |",
        f"| | ratio | {first_single / first_batch:.1f} | {single / batch:.1f} | **{single_cpu / batch_cpu:.1f}** |",
    ]


if __name__ == "__main__":
    print("# Cost of a draw from a β-divergence posterior\n")
    print(f"{os.cpu_count()} cores, {platform.machine()}, JAX {jax.__version__}; shared machine: read the ratios.\n")
    print("\n".join(against_numpyro()), flush=True)
    print("\n".join(batched_fits()))
