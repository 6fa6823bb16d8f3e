"""Selection from public candidates where the variance is a parameter: error against an exact draw, Gaussian regression.

For every setting data sets are simulated, y = θ₀ᵀx + N(0, 1), x ~ N(0, I), ‖θ₀‖ = 1, each is released by `Candidates()`
(more than once where that is quick), and the error of an exact draw from the same posterior is computed by importance
sampling about its mode, in the model's unconstrained coordinates. RMSE is √E‖θ̃ − θ₀‖² of the coefficients, and that of
log σ². Prior: θ | σ² ~ N(0, s²σ²I) with s = √3/√d, σ² ~ InvGamma(1, 1). Writes
benchmarks/results/candidates_variance.md.

    python benchmarks/candidates_variance.py [--seeds 16] [--only 3]
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, special

from onedraw.methods import calibrate
from onedraw.methods.candidates.mechanism import Candidates
from onedraw.methods.candidates.run import Selection
from onedraw.models import GaussianRegression, NormalInverseGamma
from onedraw.privacy import PureDP
from onedraw.samplers import seeded_generator

RESULT = Path(__file__).parent / "results" / "candidates_variance.md"
EPSILON = 1.0
SETTINGS = [(2, 2000, 0.1, 8), (3, 2000, 0.1, 4), (3, 2000, 0.01, 4), (8, 2000, 0.1, 4)]
"""d, n, floor, releases of each data set."""


def exact_errors(plan: Any, encoded: Any, theta: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """Mean squared errors under the posterior, and the effective number of draws they rest on."""
    model, beta, weight = plan.model, plan.parameters["beta"], plan.parameters["weight"]

    def potential(points: np.ndarray) -> np.ndarray:
        parts = [
            model.beta_kernel.losses_of_many(part, encoded.X, encoded.y, beta).sum(axis=1)
            for part in np.array_split(points, max(1, len(points) // 100))
        ]
        return weight * np.concatenate(parts) - np.asarray(model.log_prior(points))

    start = np.append(theta, math.log(1.0 - model.likelihood.floor))
    mode = optimize.minimize(lambda point: float(potential(point[None])[0]), start, method="BFGS")
    root, freedom, size = np.linalg.cholesky(mode.hess_inv), 8.0, 4000
    z = rng.standard_normal((size, len(start))) / np.sqrt(rng.chisquare(freedom, (size, 1)) / freedom)
    points = mode.x + 1.2 * z @ root.T
    log_proposal = -0.5 * (freedom + len(start)) * np.log1p((z**2).sum(axis=1) / freedom)
    weights = special.softmax(-potential(points) - log_proposal)
    found = errors(model.constrain(points), theta)
    return {name: float(weights @ value) for name, value in found.items()} | {"size": 1.0 / float((weights**2).sum())}


def errors(draws: np.ndarray, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Squared errors of coefficients and of log σ², whose truth is 0."""
    return {"coefficients": ((draws[:, :-1] - theta) ** 2).sum(axis=1), "log variance": np.log(draws[:, -1]) ** 2}


def measure(d: int, n: int, *, floor: float = 0.1, seeds: int, draws: int = 1) -> dict[str, float]:
    """RMSE of a release and of an exact draw, over ``seeds`` data sets and ``draws`` releases of each."""
    prior = NormalInverseGamma(scale=math.sqrt(3.0 / d))
    model = GaussianRegression(d, variance_floor=floor, intercept=False, prior=prior)
    plan = calibrate(Candidates(), model, PureDP(EPSILON), n=n)
    squares: dict[str, list[float]] = defaultdict(list)
    sizes, seconds = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(1000 * d + seed)
        X, direction = rng.standard_normal((n, d)), rng.standard_normal(d)
        theta = direction / np.linalg.norm(direction)
        encoded = model.summarise((X, X @ theta + rng.standard_normal(n)))
        begun = time.perf_counter()
        released = Selection().run(plan.target(encoded), seeded_generator(seed), size=draws).draws
        seconds.append((time.perf_counter() - begun) / draws)
        exact = exact_errors(plan, encoded, theta, rng)
        sizes.append(exact.pop("size"))
        for name, value in errors(released, theta).items():
            squares[name].append(float(value.mean()))
            squares[f"exact {name}"].append(exact[name])
    return {
        **{name: plan.parameters[name] for name in ("rounds", "candidates", "beta")},
        "planned": plan.parameters["expected_error"],
        "planned log variance": plan.parameters["expected_log_variance_error"],
        **{name: math.sqrt(np.mean(values)) for name, values in squares.items()},
        "seconds": float(np.median(seconds)),
        "smallest size": min(sizes),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--only", default="", help="dimensions, separated by commas")
    options = parser.parse_args()
    only = {int(d) for d in options.only.split(",") if d}
    lines = [
        f"# Candidates with the variance as a parameter, against an exact draw (Gaussian regression, ε = {EPSILON:g})",
        "",
        f"{options.seeds} data sets for each row, σ = 1, ‖θ₀‖ = 1. RMSE of the coefficients, √E‖θ̃ − θ₀‖², and of log σ².",
        "",
        "| d | n | floor | β | rounds × candidates | RMSE | exact draw | ratio | planned | RMSE of log σ² | exact draw | "
        "ratio | planned | seconds |",
        "| --- " * 14 + "|",
    ]
    print("\n".join(lines))
    for d, n, floor, draws in SETTINGS:
        if only and d not in only:
            continue
        m = measure(d, n, floor=floor, seeds=options.seeds, draws=draws)
        pairs = [
            f"{m[name]:.3f} | {m['exact ' + name]:.3f} | {m[name] / m['exact ' + name]:.2f} | {m[planned]:.3f}"
            for name, planned in (("coefficients", "planned"), ("log variance", "planned log variance"))
        ]
        lines.append(
            f"| {d} | {n} | {floor:g} | {m['beta']:.2f} | {m['rounds']:.0f} × {m['candidates']:,.0f} | {pairs[0]} | "
            f"{pairs[1]} | {m['seconds']:.1f} |"
        )
        print(lines[-1], f"  (smallest effective size {m['smallest size']:.0f})", flush=True)
    if not only:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
