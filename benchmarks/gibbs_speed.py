"""What a Langevin step and a default release cost. Printed as ratios within one run; machines are shared and noisy.

Contract: a step at n = 10⁵, d = 20 at most 1.5× the two NumPy matrix–vector products it consists of; a release with the
default sampler at n = 10⁴, d = 10 at most 2 s after the first compilation, and the compilation is kept on disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import onedraw as od

STEP_LIMIT, RELEASE_LIMIT = 1.5, 2.0

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


def default_release() -> float:
    n, d = 10_000, 10
    X, y = data(n, d)
    model = od.models.Logistic(features=d, bounds=(-1.0, 1.0), prior=od.Gaussian(scale=0.6))
    plan = od.calibrate(od.Gibbs("gdp"), model, od.ApproxDP(1.0, 1e-5), n=n)
    od.release(plan, (X, y))
    seconds = best_of(lambda: od.release(plan, (X, y)), repeats=3)
    print(f"release with the default sampler, n = {n:,}, d = {d}: {seconds:.2f} s after compilation")
    return seconds


def cached_compilation() -> None:
    with tempfile.TemporaryDirectory() as cache:
        first, second = (
            float(subprocess.run([sys.executable, "-c", FIRST_CALL], env=os.environ | {"ONEDRAW_CACHE": cache},
                                 check=True, capture_output=True, text=True).stdout)
            for _ in range(2)
        )  # fmt: skip
    print(f"first release of a process: {first:.1f} s with an empty cache, {second:.1f} s with the compilation on disk")


if __name__ == "__main__":
    ratio, seconds = step_ratio(), default_release()
    cached_compilation()
    ok = ratio <= STEP_LIMIT and seconds <= RELEASE_LIMIT
    print(
        "within the contract"
        if ok
        else f"MISSED: step {ratio:.2f} (≤ {STEP_LIMIT}), release {seconds:.2f} s (≤ {RELEASE_LIMIT})"
    )
    sys.exit(0 if ok else 1)
