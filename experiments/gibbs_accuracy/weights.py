"""How much weight each rule gives the records, and how many steps a chain then takes: Minami et al., Figure 1 to Proposition 13.

Nothing is drawn here but the Bernoulli posterior, which has one parameter and is integrated on a grid. Weights are those that
`onedraw.calibrate` finds; what a paper prints is computed beside it from the formula as printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from experiments.gibbs_accuracy.pac_bayes import HingePacBayes
from scipy import special

import onedraw as od
from onedraw.errors import ExactnessRefused

SMALL = od.ApproxDP(0.1, 0.001)
"""The budget of the supplement's two examples."""

USUAL = od.ApproxDP(1.0, 1e-5)
FLAT = 1e-9
"""Records that the prior of the Gaussian mean is worth: λ = 0 in the paper."""


def shapes(*, seeds: tuple[int, ...], norm: float) -> Iterator[dict[str, Any]]:
    """Figure 1: the logistic losses of (z, 1) and (z, −1), their difference, and the difference of their slopes."""
    for theta in np.linspace(-10.0, 10.0, 81):
        u = theta * norm
        yield {
            "theta": theta, "loss +": np.logaddexp(0.0, -u), "loss -": np.logaddexp(0.0, u), "loss difference": abs(u),
            "slope difference": norm * (special.expit(-u) + special.expit(u)),
        }  # fmt: skip


def gaussian_mean(*, seeds: tuple[int, ...], n: int) -> Iterator[dict[str, Any]]:
    """Supplement B: weights per record for |x| ≤ 1, by rule and by the two formulas that the paper sets against each other."""
    epsilon, delta = SMALL.stated_epsilon, SMALL.stated_delta
    k = math.log(1.0 / delta)
    yield {"rule": "B.7 as printed", "weight": epsilon**2 * n / (8.0 * math.log(2.0 / delta))}
    yield {"rule": "B.8 as printed", "weight": 0.5 * n * (epsilon + 2.0 * k - 2.0 * math.sqrt(k * (epsilon + k)))}
    yield {"rule": "exponential mechanism", "weight": epsilon / 8.0}
    model = od.models.GaussianMean(bound=1.0, variance=1.0, prior_count=FLAT)
    for rule in ("theorem7", "rdp", "gdp"):
        yield {"rule": rule, "weight": od.calibrate(od.Gibbs(rule), model, SMALL, n=n).parameters["weight"]}


def bernoulli(*, seeds: tuple[int, ...], rule: str, n: int, truth: float) -> Iterator[dict[str, Any]]:
    """Example 17: the draw's variance over that of the estimate, expected over data sets, and what Theorem 16 predicts for large n."""
    plan = od.calibrate(od.Gibbs(rule), od.models.LogitNormalBernoulli(variance=1.0), SMALL, n=n)
    weight, thetas = plan.parameters["weight"], np.linspace(-8.0, 8.0, 16_001)
    ones = np.random.default_rng(list(seeds)).binomial(n, truth, size=200)
    logs = -0.5 * thetas**2 + weight * (ones[:, None] * thetas - n * np.logaddexp(0.0, thetas))
    law = special.softmax(logs, axis=1)
    mean = law @ thetas
    spread = law @ thetas**2 - mean**2
    estimate = 1.0 / (n * truth * (1.0 - truth))
    yield {"weight": weight, "ratio": float(spread.mean() / estimate), "predicted": 1.0 / weight}


def logistic(*, seeds: tuple[int, ...], rule: str, prior: str, n: int) -> Iterator[dict[str, Any]]:
    """Section 3.3, rows in the unit ball and an intercept: the weight at (1, 1e-5) for a fixed prior, or one that shrinks with n."""
    scale = 1.0 if prior == "fixed" else 1.0 / math.sqrt(0.01 * n)
    features = od.models.Logistic(5, data_norm=1.0, prior=od.Gaussian(scale=scale, radius=4.0 * scale))
    k = 1.0 + 2.0 * math.log(1.0 / USUAL.stated_delta)
    if rule == "(13) as printed":
        yield {"weight": USUAL.stated_epsilon / 2.0 / (scale * math.sqrt(k))}
    else:
        plan = od.calibrate(od.Gibbs(rule), features, USUAL, n=n, gamma=0.0)  # of an exact draw, as the paper's
        yield {"weight": plan.parameters["weight"]}


def moments(*, seeds: tuple[int, ...], share: float) -> Iterator[dict[str, Any]]:
    """Example 19 at n = 20, λ = 0.05, r = 1, labels even: log E exp(β(R − R_n)) against the f printed and the f corrected."""
    bound = HingePacBayes(n=20, features=1, data_norm=1.0, regularisation=0.05)
    n, beta = bound.n, share * bound.n * bound.weight_limit
    theta = np.linspace(-40.0, 40.0, 200_001)
    losses = np.maximum(0.0, 1.0 - theta), np.maximum(0.0, 1.0 + theta)
    terms = [beta / n * (sum(losses) / 2.0 - loss) - math.log(2.0) for loss in losses]
    logs = n * np.logaddexp(*terms) - 0.5 * n * bound.regularisation * theta**2
    logs += 0.5 * math.log(n * bound.regularisation / (2.0 * math.pi))
    yield {"beta": beta, "f": "log moment", "value": special.logsumexp(logs) + math.log(theta[1] - theta[0])}
    inside = 1.0 - beta**2 / (4.0 * bound.regularisation * n**2)
    yield {"beta": beta, "f": "printed", "value": beta**2 / (4.0 * n) - 0.5 * math.log(inside)}
    yield {"beta": beta, "f": "corrected", "value": bound.hoeffding(beta / n)}


def steps(*, seeds: tuple[int, ...], sampler: str, d: int, n: int, gamma: float) -> Iterator[dict[str, Any]]:
    """Proposition 13's Langevin steps, as corrected, and the iterations of the proximal sampler, for the same posterior."""
    model = od.models.Logistic(d - 1, data_norm=1.0, prior=od.Gaussian(scale=1.0))
    plan = od.calibrate(od.Gibbs("gdp"), model, USUAL, n=n)
    kinds: dict[str, Callable[[], float]] = {
        "Proposition 13": lambda: od.samplers.Langevin(gamma=gamma, most_steps=10**300).passes(plan),
        "proximal": lambda: od.samplers.Proximal(gamma=gamma).passes(plan) / 2,
    }
    try:
        yield {"steps": float(kinds[sampler]())}
    except ExactnessRefused:  # γ is less than the rounding of so many steps: no claim is made
        yield {"steps": math.nan}
