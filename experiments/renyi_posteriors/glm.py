"""Test error and negative log-likelihood of one logistic draw (Geumlek et al., A.8): abalone, adult, MNIST 3 against 8.

Every tenth record of a random order is held out. Columns are brought to [0, 1] by their ranges, categories are indicators, digits are
means over blocks of 4 × 4 pixels (a public choice: 49 columns in place of 784); a row is divided by √(number of columns), so that it
lies in the unit ball. The prior is N(0, s²) in each coordinate; the supplement does not give the paper's.

A Gibbs posterior of Gaussian DP μ has a Rényi divergence of λμ²/2 at every order: ε at order λ is μ = √(2ε/λ). OPS (Wang, Fienberg,
Smola 2015) bounds the log-likelihood by a ball that holds 99 % of the prior, and calls for pure ε; "OPS, bounded range" is the same
draw with what it really promises at order λ, min(ε, λε²/8).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from experiments.data import data_file
from experiments.simulation import GLM, draws
from scipy import special, stats

import onedraw as od

EPSILONS = (0.01, 0.1, 1.0, 10.0, 100.0)
METHODS = ("diffused", "concentrated", "OPS", "OPS, bounded range", "not private")
FILES = {"abalone": "abalone.csv", "adult": "adult_train.csv.gz", "mnist": "mnist_3v8_train.csv.gz"}
NUMBERS = ("age", "education_num", "hours_per_week", "capital_gain", "capital_loss")
"""Of adult: those that the literature's code uses."""


@cache
def table(name: str) -> tuple[Any, Any]:
    """(rows in the unit ball, labels ±1)."""
    import pandas as pd

    data = pd.read_csv(data_file(FILES[name]))
    if name == "abalone":
        X, positive = pd.get_dummies(data.drop(columns="rings"), columns=["sex"]), data["rings"] > 10
    elif name == "adult":
        X, positive = data[list(NUMBERS)], data["income"].str.contains(">50K")
    else:
        pixels = data.drop(columns="label").to_numpy(dtype=np.float64).reshape(-1, 7, 4, 7, 4)
        X, positive = pd.DataFrame(pixels.mean(axis=(2, 4)).reshape(-1, 49)), data["label"] == 8
    values = X.to_numpy(dtype=np.float64)
    low, high = values.min(axis=0), values.max(axis=0)
    scaled = (values - low) / np.where(high > low, high - low, 1.0)
    return scaled / math.sqrt(scaled.shape[1]), np.where(positive, 1.0, -1.0)


def run(*, seeds: tuple[int, ...], data: str, order: float, scale: float) -> Iterator[dict[str, Any]]:
    """For each seed (a split, and a draw of each method and ε): test error and loss per held-out record."""
    X, y = table(data)
    model = od.models.Logistic(X.shape[1], data_norm=1.0, prior=od.Gaussian(scale=scale))
    for seed in seeds:
        shuffled = np.random.default_rng(seed).permutation(len(y))
        held, kept = np.split(shuffled, [len(y) // 10])
        asked = [(method, epsilon) for epsilon in EPSILONS for method in METHODS]
        summary = model.summarise((X[kept], y[kept]))
        plans = [plan_for(method, model, epsilon, order, len(kept)) for method, epsilon in asked]
        thetas = draws(
            [plan.target(summary) for plan in plans], [1000 * seed + k for k in range(len(asked))], GLM
        ).thetas
        margins = y[held] * (X[held] @ thetas[:, :-1].T + thetas[:, -1]).T
        for (method, epsilon), own in zip(asked, margins, strict=True):
            found = {"error": float((own < 0).mean()), "loss": float(-special.log_expit(own).mean())}
            yield {"seed": seed, "method": method, "epsilon": epsilon, **found}


def plan_for(method: str, model: Any, epsilon: float, order: float, n: int) -> Any:
    """Whose target a draw is made from; OPS is the Gibbs posterior of its weight, the ball's edge left to one draw in a hundred."""
    if method in ("diffused", "concentrated"):
        mechanism = od.Diffused() if method == "diffused" else od.Concentrated()
        return od.calibrate(mechanism, model, od.GaussianDP(math.sqrt(2.0 * epsilon / order)), n=n)
    weight = 1.0
    if method != "not private":
        dimension = len(model.parameter_names)
        radius = model.prior.scale * math.sqrt(stats.chi2(dimension).ppf(0.99))
        pure = epsilon if method == "OPS" else max(epsilon, math.sqrt(8.0 * epsilon / order))
        weight = min(
            1.0, pure / (2.0 * radius * math.sqrt(2.0))
        )  # ℓ(θ, x) − ℓ(θ, x′) spans at most 2·R·√2, intercept included
    return od.calibrate(od.Gibbs(weight=weight), model, od.GaussianDP(1e6), n=n)
