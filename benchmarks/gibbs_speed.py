"""What a Langevin step and a default release cost. Printed as ratios within one run; machines are shared and noisy.

Contract: a step at n = 10⁵, d = 20 at most 1.5× the two NumPy matrix–vector products it consists of; a release with the
default sampler at n = 10⁴, d = 10 at most 2 s after the first compilation, and the compilation is kept on disk; a draw of
the bounded rule with a certified δ of 1e-10 (|θᵀx| ≤ 2.83) at n = 1000, d = 5 in under 1 s after compilation, at n = 10⁵,
d = 10 in under 60 s, with iterations that do not depend on n; a noisy-gradient step, whose sums are whole numbers, at most 1.25× the
same step with floating-point sums.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import fields
from functools import partial

import numpy as np

import onedraw as od
from onedraw.models.convex.draw_cost import iterations_of
from onedraw.models.convex.gibbs_target import GibbsTarget
from onedraw.samplers.chains import numbers_of_plan
from onedraw.samplers.proximal import geometry_of

STEP_LIMIT, RELEASE_LIMIT, LATTICE_LIMIT = 1.5, 2.0, 1.25
BOUNDED_LIMITS = {(1_000, 5): 1.0, (100_000, 10): 60.0}
PREDICTOR_BOUND = 2.83

FIRST_CALL = """
import time, numpy as np, onedraw as od
g = np.random.default_rng(0); X = g.uniform(-1, 1, (10_000, 10)); y = (g.random(10_000) < 0.5).astype(float)
model = od.models.Logistic(features=10, bounds=(-1.0, 1.0), prior=od.Gaussian(scale=0.6))
plan = od.calibrate(od.Gibbs("gdp"), model, od.ApproxDP(1.0, 1e-5), n=10_000)
start = time.perf_counter(); od.release(plan, (X, y)); print(time.perf_counter() - start)
"""


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.uniform(-1, 1, (n, d)), (generator.random(n) < 0.5).astype(float)


def best_of(action, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def step_ratio() -> float:
    n, d, steps = 100_000, 20, 200
    X, y = data(n, d)
    model = od.models.Logistic(features=d, bounds=(-1.0, 1.0), intercept=False, prior=od.Gaussian(scale=0.5))
    plan = od.calibrate(od.Gibbs("gdp"), model, od.ApproxDP(1.0, 1e-5), n=n)
    target = plan.target(model.summarise((X, y)))
    sampler = od.samplers.LastIterateLangevin(steps, 1.0 / plan.parameters["smoothness"])
    key = od.samplers.seeded_key(0)
    sampler.run(target, key, size=1)
    ours = best_of(lambda: sampler.run(target, key, size=1)) / steps
    theta, residual = np.ones(d), np.ones(n)
    # NumPy's faster way of writing the second product; X.T @ residual takes several times as long.
    theirs = best_of(lambda: [(X @ theta, residual @ X) for _ in range(steps)]) / steps
    print(
        f"Langevin step, n = {n:,}, d = {d}: {ours * 1e6:.0f} µs; two products {theirs * 1e6:.0f} µs; ratio {ours / theirs:.2f}"
    )
    return ours / theirs


def lattice_ratio() -> float:
    """The worst over three sizes of the processor time of a path on the lattice, by that of one in floats, taken in turns."""
    found = []
    for n, d, steps in ((1_000, 6, 2000), (10_000, 20, 300), (100_000, 20, 60)):
        X, y = data(n, d)
        model = od.models.Logistic(features=d, bounds=(-1.0, 1.0), prior=od.Gaussian(scale=1.0))
        plan = od.calibrate(od.NoisyGradient(), model, od.ApproxDP(1.0, 1e-6), n=n)
        whole = plan.target(model.summarise((X, y)))
        floats = GibbsTarget(*(getattr(whole, field.name) for field in fields(whole)))
        sampler, key = od.samplers.LastIterateLangevin(steps, plan.parameters["step_size"]), od.samplers.seeded_key(0)
        times: dict[str, list[float]] = {"floats": [], "whole": []}
        for turn in range(11):
            for name, target in (("floats", floats), ("whole", whole)):
                start = time.process_time()
                sampler.run(target, key, size=1)
                times[name] += [time.process_time() - start] if turn else []  # the first compiles
        ratio = float(np.median(times["whole"]) / np.median(times["floats"]))
        print(
            f"noisy-gradient step, n = {n:,}, d = {d}: whole numbers take {ratio:.2f} times the processor time of floats"
        )
        found.append(ratio)
    return max(found)


def default_release() -> float:
    n, d = 10_000, 10
    X, y = data(n, d)
    model = od.models.Logistic(features=d, bounds=(-1.0, 1.0), prior=od.Gaussian(scale=0.6))
    plan = od.calibrate(od.Gibbs("gdp"), model, od.ApproxDP(1.0, 1e-5), n=n)
    od.release(plan, (X, y))
    seconds = best_of(lambda: od.release(plan, (X, y)), repeats=3)
    print(f"release with the default sampler, n = {n:,}, d = {d}: {seconds:.2f} s after compilation")
    return seconds


def bounded_plan(n: int, d: int) -> od.Plan:
    prior = od.Gaussian(scale=1.0, radius=PREDICTOR_BOUND / np.sqrt(d + 1))
    model = od.models.Logistic(features=d, bounds=(-1.0, 1.0), prior=prior)
    return od.calibrate(od.Gibbs("bounded"), model, od.ApproxDP(1.0, 1e-10), n=n)


def bounded_releases() -> bool:
    """Whether every bounded release is within its limit, and its iterations are the same for any n."""
    kept = True
    for (n, d), limit in BOUNDED_LIMITS.items():
        plan, records = bounded_plan(n, d), data(n, d)
        draw = partial(
            od.release, plan, records, sampler=od.samplers.Proximal(gamma=plan.gamma)
        )  # not exactly, as by default
        first, seconds = draw(), best_of(draw, repeats=2)
        iterations, fewer = (
            iterations_of(p.gamma, geometry_of(numbers_of_plan(p, sampler="Proximal")))
            for p in (plan, bounded_plan(1_000, d))
        )
        kept &= seconds <= limit and iterations == fewer and first.certificate.promise.delta <= 1e-10
        print(
            f"bounded rule, n = {n:,}, d = {d}: {seconds:.2f} s (≤ {limit:g}), δ = {first.certificate.promise.delta:g}, "
            f"{iterations:,} iterations, {fewer:,} at n = 1,000, {first.diagnostics['tries_per_step']:.2f} tries a step"
        )
    return kept


def cached_compilation() -> None:
    with tempfile.TemporaryDirectory() as cache:
        first, second = (
            float(subprocess.run([sys.executable, "-c", FIRST_CALL], env=os.environ | {"ONEDRAW_CACHE": cache},
                                 check=True, capture_output=True, text=True).stdout)
            for _ in range(2)
        )  # fmt: skip
    print(f"first release of a process: {first:.1f} s with an empty cache, {second:.1f} s with the compilation on disk")


if __name__ == "__main__":
    ratio, lattice, seconds = step_ratio(), lattice_ratio(), default_release()
    cached_compilation()
    ok = bounded_releases() and ratio <= STEP_LIMIT and seconds <= RELEASE_LIMIT and lattice <= LATTICE_LIMIT
    print(
        "within the contract"
        if ok
        else f"MISSED: step {ratio:.2f} (≤ {STEP_LIMIT}), release {seconds:.2f} s (≤ {RELEASE_LIMIT}), lattice {lattice:.2f} (≤ {LATTICE_LIMIT})"
    )
    sys.exit(0 if ok else 1)
