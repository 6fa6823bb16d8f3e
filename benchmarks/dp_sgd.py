"""DP-SGD: what a training takes with Opacus, with JAX and many side by side; and how far it is from the truth, beside a fit.

    python benchmarks/dp_sgd.py > benchmarks/results/dp_sgd.md      # where torch and Opacus are installed; else without their column

Simulated logistic regression, two features uniform in [−1, 1], coefficients (2, −1) and an intercept of 0.5; (ε, δ = 1e-5),
replace-one for all. Learning rates are not tuned on the records, which would have to be paid for: several are shown.
"""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from experiments.trainings import train_many

import onedraw as od
from onedraw.baselines import DPSGD, Training

TRUTH = np.array([2.0, -1.0, 0.5])
SETS, RATES = 100, (0.01, 0.1, 1.0)
LOGISTIC = od.models.Logistic(2, bounds=(-1, 1), prior=od.Gaussian(scale=3.0))
NETWORK = od.models.Network(2, hidden=10)


def simulated(n: int, sets: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(n)
    X = generator.uniform(-1.0, 1.0, (sets, n, 2))
    return X, (generator.random((sets, n)) < 1.0 / (1.0 + np.exp(-(X @ TRUTH[:2] + TRUTH[2])))).astype(int)


def seconds(n: int, model: od.models.Model) -> list[str]:
    """Of one release by each engine, the second of two; and of one among many."""
    X, y = simulated(n, 50)
    plan = od.calibrate(DPSGD(), model, od.ApproxDP(1.0, 1e-5), n=n)
    found = []
    for engine in ("opacus", "jax"):
        if engine == "opacus" and find_spec("opacus") is None:
            found.append("–")
            continue
        for _ in range(2):
            start = time.perf_counter()
            od.release(plan, (X[0], y[0]), sampler=Training(engine))
            taken = time.perf_counter() - start
        found.append(f"{taken:.2g}")
    for _ in range(2):
        start = time.perf_counter()
        train_many(plan, X, y, range(50))
        taken = (time.perf_counter() - start) / 50
    return [*found, f"{taken:.2g}"]


def errors(n: int, epsilon: float) -> list[float]:
    """RMSE of the coefficients: DP-SGD at each learning rate, its twin without privacy, and a fit."""
    X, y = simulated(n, SETS)
    budget, draws = od.ApproxDP(epsilon, 1e-5), []
    for rate in RATES:
        plan = od.calibrate(DPSGD(epochs=14 + int(epsilon), learning_rate=rate), LOGISTIC, budget, n=n)
        draws.append(train_many(plan, X, y, range(SETS)))
    draws.append(train_many(plan, X, y, range(SETS), private=False))
    fit = od.calibrate(od.methods.PerturbedMode(intervals=False), od.models.Logistic(
        2, bounds=(-1, 1), scaled=True, prior=od.Gaussian(scale=3.0)
    ), budget, n=n)  # fmt: skip
    draws.append(np.array([fit.model.in_column_units(od.release(fit, pair).draw) for pair in zip(X, y, strict=True)]))
    return [float(np.sqrt(np.mean((one - TRUTH) ** 2))) for one in draws]


def main() -> None:
    print("# DP-SGD: time, and error beside a fit\n")
    print(
        "Seconds of one release (15 epochs, batches of 100), and of one training among 50 side by side. Cores were shared: columns tell orders of magnitude.\n"
    )
    print("| model | n | steps | Opacus | JAX | JAX, each of 50 |\n| --- | --- | --- | --- | --- | --- |")
    for model in (LOGISTIC, NETWORK):
        for n in (1000, 5000):
            words = [type(model).__name__, f"{n:,}", str(DPSGD().steps(n)), *seconds(n, model)]
            print(f"| {' | '.join(words)} |", flush=True)
    rates = " | ".join(f"DP-SGD, η = {rate:g}" for rate in RATES)
    print(
        f"\nRMSE of a logistic regression's coefficients, {SETS} data sets; 14 + ⌊ε⌋ epochs, batches of 100, clip 1.\n"
    )
    print(f"| n | ε | {rates} | SGD, η = {RATES[-1]:g}, NOT PRIVATE, ε = ∞ | fit |\n| --- {'| --- ' * 6}|")
    for n in (200, 1000, 5000):
        for epsilon in (0.5, 1.0, 5.0):
            print(f"| {n:,} | {epsilon:g} | {' | '.join(f'{one:.3g}' for one in errors(n, epsilon))} |", flush=True)


if __name__ == "__main__":
    main()
