"""How much work does an exact draw on a ball take, and does it agree with the proximal chain? `Perfect` beside `Proximal`.

Logistic regression, rows on the unit sphere, ε = 1, δ = 0. Printed: curvature ratios and bounds on the mean number of tries (κ^{d/2});
tries of 200 draws for n = 10,000, d = 6, B = 2.83 on data as the model has it, with all labels 1 (rows on one side, and all around),
and with every row a hundred times; passes and seconds of a draw by either sampler; and Kolmogorov–Smirnov p-values of 5,000
draws against 5,000 chains, coordinate by coordinate, with a weight that is right and one 5 % too large.

Contract: at most 107 tries on average (the last data set comes nearest to the bound, with labels that agree all around), p above 1e-6 for
the right weight and below it for the wrong one. Ends with 1 if that is missed. Writes benchmarks/results/perfect.md; about two
minutes of one core.

    python benchmarks/perfect.py [--quick]      # without the chains
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ks_2samp

import onedraw as od
from onedraw.models.convex.draw_cost import most_tries
from onedraw.samplers import Perfect, Proximal, Sampler, default_sampler, seeded_generator, seeded_key

RESULT = Path(__file__).parent / "results" / "perfect.md"
BOUNDS, DIMENSIONS = (1.0, 2.0, 2.83, 4.0), (3, 6, 10, 15)
B, D, N, MOST, ALPHA = 2.83, 6, 10_000, 107.0, 1e-6
COPIES, KS_DRAWS = 100, 5000


def sphere(n: int, d: int, generator: np.random.Generator) -> np.ndarray:
    X = generator.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def model_of(d: int, bound: float, scale: float = 1.0) -> od.models.Logistic:
    return od.models.Logistic(d, data_norm=1.0, intercept=False, prior=od.Gaussian(scale=scale, radius=bound))


def labelled(X: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return (generator.random(len(X)) < 1.0 / (1.0 + np.exp(-X.sum(axis=1)))).astype(int)


def data_sets(n: int, d: int = D) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    generator = np.random.default_rng(16)
    X = sphere(n, d, generator)
    y = labelled(X, generator)
    return {
        "as the model has it": (X, y),
        "all labels 1, rows on one side": (np.where(X[:, :1] < 0.0, -X, X), np.ones(n, dtype=int)),
        "every row a hundred times": (np.repeat(X[: n // 100], 100, axis=0), np.repeat(y[: n // 100], 100)),
        "all labels 1, rows all around": (X, np.ones(n, dtype=int)),
    }


def ratios() -> list[str]:
    lines = ["| B | κ | " + " | ".join(f"d = {d}" for d in DIMENSIONS) + " |", "| ---: " * (2 + len(DIMENSIONS)) + "|"]
    for bound in BOUNDS:
        kappa = math.cosh(bound / 2) ** 2
        tries = " | ".join(f"{most_tries(kappa, d):,.4g}" for d in DIMENSIONS)
        lines.append(f"| {bound:g} | {kappa:.6f} | {tries} |")
    return lines


def tries() -> tuple[list[str], bool]:
    plan = od.calibrate(od.Gibbs("bounded"), model_of(D, B), od.PureDP(1.0), n=N)
    lines, good = ["| data | tries a draw |", "| --- | ---: |"], True
    for number, (name, data) in enumerate(data_sets(N).items()):
        target = plan.target(plan.model.summarise(data))
        found = Perfect().run(target, seeded_generator(number), size=200).diagnostics["tries"] / 200
        good &= found <= MOST
        lines.append(f"| {name} | {found:.1f} |")
    return lines, good


def speeds() -> list[str]:
    """Of one draw, compiled before; n = 10,000."""
    lines = ["| d | B | tries, at most | chosen | seconds | proximal iterations | seconds |", "| ---: " * 7 + "|"]
    for d, bound in ((3, 2.0), (3, 2.83), (6, 2.0), (6, 2.83), (10, 2.0)):
        plan = od.calibrate(od.Gibbs("bounded"), model_of(d, bound), od.ApproxDP(1.0, 1e-10), n=N)
        target = plan.target(plan.model.summarise(data_sets(N, d)["as the model has it"]))
        chain, chosen = Proximal(gamma=plan.gamma), type(default_sampler(plan)[0]).__name__
        took = []
        samplers: list[tuple[Sampler, Callable[[int], Any]]] = [(Perfect(), seeded_generator), (chain, seeded_key)]
        for sampler, source in samplers:
            sampler.run(target, source(0))
            start = time.perf_counter()
            sampler.run(target, source(1), size=1)
            took.append(time.perf_counter() - start)
        bound_on = most_tries(plan.parameters["curvature_ratio"], d)
        lines.append(
            f"| {d} | {bound:g} | {bound_on:,.4g} | {chosen} | {took[0]:.3f} | {chain.passes(plan) // 2} | {took[1]:.2f} |"
        )
    return lines


def agreement() -> tuple[list[str], bool]:
    """With a prior as strong as the records, so that their weight shows in where the posterior is. A hundred rows, each a hundred
    times, have the law of these rows alone at a hundred times the weight: from that one the chains draw."""
    X, y = data_sets(COPIES)["all labels 1, rows on one side"]
    plan = od.calibrate(od.Gibbs("bounded"), model_of(D, B, 0.1), od.PureDP(1.0), n=N)
    rows = plan.model.summarise((np.repeat(X, COPIES, axis=0), np.repeat(y, COPIES)))
    right, weight = plan.target(rows), plan.parameters["weight"]
    alone = replace(right, encoded=plan.model.summarise((X, y)), weight=COPIES * weight)
    chains = Proximal(gamma=1e-6).run(alone, seeded_key(1), size=KS_DRAWS).draws
    worst = {}
    for factor in (1.0, 1.05):
        draws = Perfect().run(replace(right, weight=factor * weight), seeded_generator(2), size=KS_DRAWS).draws
        worst[factor] = min(ks_2samp(draws[:, i], chains[:, i]).pvalue for i in range(D))
    lines = [
        f"Least p-value of {D} coordinates: {worst[1.0]:.3g} with the right weight, {worst[1.05]:.3g} with 1.05 times it."
    ]
    return lines, worst[1.0] > ALPHA > worst[1.05]


def main() -> None:
    found, enough = tries()
    sections = {"Curvature ratios, and κ^(d/2)": ratios(), f"n = {N:,}, d = {D}, B = {B}, PureDP(1)": found}
    agrees = True
    if "--quick" not in sys.argv:
        sections[f"One draw, n = {N:,}"] = speeds()
        sections[f"Against the chain, n = {N:,}, {KS_DRAWS:,} draws"], agrees = agreement()
    page = "# Exact draws on a ball\n\n" + "\n\n".join(
        f"## {name}\n\n" + "\n".join(text) for name, text in sections.items()
    )
    print(page)
    if "--quick" not in sys.argv:
        RESULT.write_text(page + "\n", encoding="utf-8")
    sys.exit(0 if enough and agrees else 1)


if __name__ == "__main__":
    main()
