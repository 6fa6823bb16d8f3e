"""Selection from public candidates against an exact draw: RMSE, bias and time for logistic regression.

For every setting: data sets are simulated, each is released by `Candidates()` (more than once where that is quick),
and the error of an exact draw from the same β-divergence posterior is computed by importance sampling around its mode. RMSE is √E‖θ̃ − θ₀‖², bias
the mean of (θ̃ − θ₀) along θ₀, negative towards the prior's mean; "corrected" is ``publish="corrected"``. Designs: "sphere", rows uniform on the
sphere of radius √d; "correlated", normal rows with correlation ½ between any two features, scaled into the same ball;
"intercept", as sphere with an intercept of ½ besides. Writes benchmarks/results/candidates_table.md.

    python benchmarks/candidates_table.py [--seeds 10] [--only 3,12]
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import optimize, special

from onedraw.methods import calibrate
from onedraw.methods.candidates.mechanism import Candidates
from onedraw.methods.candidates.run import Selection
from onedraw.models import Gaussian, Logistic
from onedraw.privacy import PureDP
from onedraw.samplers import seeded_generator

RESULT = Path(__file__).parent / "results" / "candidates_table.md"
EPSILON = 1.0
DRAWS = {2: 20, 3: 10, 5: 3, 10: 2, 12: 2}
"""Releases of each data set, where more than one."""

SETTINGS = [  # d, n, ‖θ₀‖, design
    (2, 2000, 1.0, "sphere"),
    (3, 2000, 1.0, "sphere"),
    (5, 2000, 1.0, "sphere"),
    (10, 2000, 1.0, "sphere"),
    (12, 2000, 1.0, "sphere"),
    (12, 2000, 2.0, "sphere"),
    (12, 2000, 3.0, "sphere"),
    (12, 2000, 1.0, "intercept"),
    (12, 2000, 1.0, "correlated"),
    (30, 5000, 1.0, "sphere"),
]


def rows(design: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    noise = rng.standard_normal((n, d))
    if design == "correlated":
        noise = math.sqrt(0.5) * (noise + rng.standard_normal((n, 1)))
        return noise * np.minimum(1.0, math.sqrt(d) / np.linalg.norm(noise, axis=1, keepdims=True))
    return math.sqrt(d) * noise / np.linalg.norm(noise, axis=1, keepdims=True)


def truth(design: str, d: int, size: float, rng: np.random.Generator) -> np.ndarray:
    direction = rng.standard_normal(d)
    coefficients = size * direction / np.linalg.norm(direction)
    return np.append(coefficients, 0.5) if design == "intercept" else coefficients


def beta_loss(beta: float, margins: np.ndarray) -> np.ndarray:
    p, q = special.expit(margins), special.expit(-margins)
    return (p**beta + q**beta) / beta - p ** (beta - 1.0) / (beta - 1.0)


def exact_draw(
    plan, encoded, start: np.ndarray, rng: np.random.Generator, draws: int = 4000
) -> tuple[np.ndarray, float]:
    """Mean and mean squared distance from ``start`` under the posterior: t-distributed proposals about the mode."""
    beta, weight = plan.parameters["beta"], plan.parameters["weight"]
    signed, precision = encoded.X * encoded.y[:, None], plan.model.prior.precision(len(start))

    def potential(theta: np.ndarray) -> float:
        return weight * beta_loss(beta, signed @ theta).sum() + 0.5 * (precision * theta) @ theta

    def gradient(theta: np.ndarray) -> np.ndarray:
        p, q = special.expit(signed @ theta), special.expit(-(signed @ theta))
        return -weight * (p ** (beta - 1.0) * q**2 + p * q**beta) @ signed + precision * theta

    mode = optimize.minimize(potential, start, jac=gradient, method="BFGS").x
    step = 1e-4
    hessian = np.array(
        [(gradient(mode + step * e) - gradient(mode - step * e)) / (2 * step) for e in np.eye(len(mode))]
    )
    root = np.linalg.cholesky(np.linalg.inv((hessian + hessian.T) / 2))
    freedom = 20.0
    z = rng.standard_normal((draws, len(mode))) / np.sqrt(rng.chisquare(freedom, (draws, 1)) / freedom)
    thetas = mode + z @ root.T
    log_proposal = -0.5 * (freedom + len(mode)) * np.log1p((z**2).sum(axis=1) / freedom)
    weights = special.softmax(np.array([-potential(theta) for theta in thetas]) - log_proposal)
    return weights @ thetas, float(weights @ ((thetas - start) ** 2).sum(axis=1))


def measure(d: int, n: int, size: float, design: str, *, seeds: int, draws: int = 1) -> dict[str, float]:
    """RMSE, bias and seconds of a release, averaged over ``seeds`` data sets and ``draws`` releases of each."""
    radius = math.sqrt(d)
    intercept = design == "intercept"
    model = Logistic(d, data_norm=radius, intercept=intercept, prior=Gaussian(scale=2.0 / radius))
    plan = calibrate(Candidates(), model, PureDP(EPSILON), n=n)
    found: dict[str, list[float]] = defaultdict(list)
    for seed in range(seeds):
        rng = np.random.default_rng(1000 * d + seed)
        X, theta = rows(design, n, d, rng), truth(design, d, size, rng)
        full = np.column_stack([X, np.ones(n)]) if intercept else X
        y = np.where(rng.random(n) < special.expit(full @ theta), 1.0, 0.0)
        encoded = model.summarise((X, y))
        begun = time.perf_counter()
        target = replace(plan.target(encoded), published="picks")
        picks = Selection().run(target, seeded_generator(seed), size=draws * target.rounds).draws
        found["seconds"].append((time.perf_counter() - begun) / draws)
        groups = [list(group) for group in picks.reshape(draws, target.rounds, -1)]
        released = np.array([target.mean(group) for group in groups]) - theta
        corrected = np.array([target.corrected(group) for group in groups]) - theta
        mean, square = exact_draw(plan, encoded, theta, rng)
        unit = theta / np.linalg.norm(theta)
        found["released"].append(float((released**2).sum(axis=1).mean()))
        found["corrected"].append(float((corrected**2).sum(axis=1).mean()))
        found["corrected bias"].append(float((corrected @ unit).mean()))
        found["exact"].append(square)
        found["bias"].append(float((released @ unit).mean()))
        found["exact bias"].append(float((mean - theta) @ unit))
    return {
        "rounds": plan.parameters["rounds"],
        "candidates": plan.parameters["candidates"],
        "expected": plan.parameters["expected_error"],
        **{name: math.sqrt(np.mean(found[name])) for name in ("released", "corrected", "exact")},
        **{name: float(np.mean(found[name])) for name in ("bias", "corrected bias", "exact bias")},
        "seconds": float(np.median(found["seconds"])),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default="", help="dimensions, separated by commas")
    options = parser.parse_args()
    only = {int(d) for d in options.only.split(",") if d}
    lines = [
        f"# Candidates against an exact draw (logistic regression, ε = {EPSILON:g}, prior scale 2/√d)",
        "",
        f"{options.seeds} data sets for each row (half as many from d = 30 on). RMSE is √E‖θ̃ − θ₀‖²; bias is along θ₀.",
        "",
        "| d | n | ‖θ₀‖ | design | rounds × candidates | RMSE | exact draw | ratio | planned | bias | exact bias | "
        "corrected RMSE | bias | seconds |",
        "| --- " * 14 + "|",
    ]
    print("\n".join(lines))
    for d, n, size, design in SETTINGS:
        if only and d not in only:
            continue
        seeds = max(3, options.seeds // 2) if d >= 30 else options.seeds
        m = measure(d, n, size, design, seeds=seeds, draws=DRAWS.get(d, 1))
        lines.append(
            f"| {d} | {n} | {size:g} | {design} | {m['rounds']:.0f} × {m['candidates']:,.0f} | {m['released']:.3f} | "
            f"{m['exact']:.3f} | {m['released'] / m['exact']:.2f} | {m['expected']:.3f} | {m['bias']:+.3f} | "
            f"{m['exact bias']:+.3f} | {m['corrected']:.3f} | {m['corrected bias']:+.3f} | {m['seconds']:.1f} |"
        )
        print(lines[-1], flush=True)
    if not only:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
