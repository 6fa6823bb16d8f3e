"""One cell of the network figures: every method and ε on the same splits of one data set with n rows to train with.

A network of ten ReLU units, N(0, 1) priors, σ² ~ InvGamma(1, 1) above a floor of 0.01. Methods, and what ε is true of them:

| method | what is released | true ε |
| --- | --- | --- |
| published | a β-divergence draw, w = 1, β by the published code: from the *prior's* variance in regression (errata 3) | 2Δ(β), far above |
| jewson | the same with the floor of the variance; where a β exists (classification: the published one) | ε |
| optimal | a β-divergence draw with β and weight at their best | ε |
| posterior | a draw of the plain posterior, as β → 1: the twin of the three | ∞ |
| dp-sgd | Adam on clipped, noisy gradients, accounted for one record replaced, δ = 10⁻⁵ | ε |
| dp-sgd add/remove | the same accounted as the paper does: for one record left out | about 2ε |
| dp-sgd plain | as dp-sgd, with plain steps in place of Adam's | ε |
| sgd | the same training without clip and noise: the twin | ∞ |

The number is log RMSE on the test rows (regression) or the area under the ROC curve (classification).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from experiments.beta_bayes_networks import tables, training
from experiments.beta_bayes_networks.tables import HIDDEN, SIMULATED, Array, Split
from experiments.simulation import NETWORK, Effort, draws
from scipy import stats

import onedraw as od
from onedraw.errors import PromiseRefused

EPSILONS = {SIMULATED: (0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0), "uci": (0.2, 0.5, 1.0, 5.0)}
"""Those of the published configurations, and 10, where the corrected w = 1 has a β in regression."""

EFFORT = NETWORK
"""Of every chain; that it is enough is the study network-chains."""

FLOOR = 0.01
PLAIN = 1.02
"""β of the plain posterior: so near 1 that the loss is the negative log-likelihood, so far that 32 bits can tell two apart."""

RESPONSE_NOISE = 0.2
"""Declared for responses in [0, 1], to choose β by; of simulated ones 1, their median."""


class Method(NamedTuple):
    """A method at its ε: what it promises in truth, and its plan or its training."""

    name: str
    epsilon: float
    true_epsilon: float
    plan: Any = None
    setting: Any = None


def run(
    *, seeds: tuple[int, ...], task: str, data: str, n: int, features: int, spread: float
) -> Iterator[dict[str, Any]]:
    """A row for each seed, method and ε."""
    splits = [tables.split(data, task, seed, n=n, features=features, spread=spread) for seed in seeds]
    width = splits[0].X.shape[1]
    drawn, fitted = draw_methods(task, data, n, width), training_methods(task, data, n)
    thetas = sampled(task, splits, seeds, [one.plan for one in drawn], EFFORT)
    trained = training.trained(task, splits, seeds, [one.setting for one in fitted])
    net = model_of(task, width)
    for place, (seed, split) in enumerate(zip(seeds, splits, strict=True)):
        rows = net.summarise((split.X_test, split.y_test)).X
        for method, theta in zip((*drawn, *fitted), (*thetas[place], *trained[place]), strict=True):
            found = score(task, predicted(net, theta, rows), split.y_test)
            for epsilon in epsilons(data) if math.isnan(method.epsilon) else (method.epsilon,):
                yield {"seed": seed, "method": method.name, "epsilon": epsilon, "true_epsilon": method.true_epsilon, "score": found}  # fmt: skip


def epsilons(data: str) -> tuple[float, ...]:
    return EPSILONS.get(data, EPSILONS["uci"])


def model_of(task: str, features: int) -> Any:
    floor: dict[str, Any] = {"variance_floor": FLOOR} if task == "regression" else {}
    return od.models.Network(features=features, hidden=HIDDEN, task=task, activation="relu", bounds=(0.0, 1.0), **floor)


# ── draws ────────────────────────────────────────────────────────────────────────────────────────────────────────


def draw_methods(task: str, data: str, n: int, features: int) -> list[Method]:
    """Every draw of a cell. The plain posterior is one for all ε."""
    model, noise = model_of(task, features), 1.0 if data == SIMULATED else RESPONSE_NOISE
    mechanisms = {
        "jewson": od.BetaDivergence(rule="jewson"),
        "optimal": od.BetaDivergence(noise=noise),
    }
    if task == "regression":
        mechanisms["published"] = od.BetaDivergence(rule="jewson", as_published=True)
    found = [planned(name, one, model, epsilon, n) for epsilon in epsilons(data) for name, one in mechanisms.items()]
    plain = od.calibrate(od.BetaDivergence(beta=PLAIN, weight=1.0), model, od.PureDP(1e3), n=n)
    return [*(one for one in found if one is not None), Method("posterior", math.nan, math.inf, plan=plain)]


def planned(name: str, mechanism: Any, model: Any, epsilon: float, n: int) -> Method | None:
    """None where w = 1 has no β."""
    try:
        plan = od.calibrate(mechanism, model, od.PureDP(epsilon), n=n)
    except PromiseRefused:
        return None
    return Method(name, epsilon, plan.parameters.get("true_range", epsilon), plan=plan)


def sampled(task: str, splits: Sequence[Split], seeds: Sequence[int], plans: Sequence[Any], effort: Effort) -> Array:
    """One draw of each plan on each split, θ (split, plan, d); splits of one seed may be repeated under other seeds."""
    model = model_of(task, splits[0].X.shape[1])
    encoded = [model.summarise((one.X, one.y)) for one in splits]
    targets = [plan.target(one) for one in encoded for plan in plans]
    own = [1000 * seed + place for seed in seeds for place in range(len(plans))]
    return draws(targets, own, effort, single=True).thetas.reshape(len(splits), len(plans), -1)


# ── trainings ────────────────────────────────────────────────────────────────────────────────────────────────────


def training_methods(task: str, data: str, n: int) -> list[Method]:
    found = []
    for epsilon in epsilons(data):
        steps, replace, leave = (
            training.steps(n, epsilon),
            *(training.noise(n, epsilon, one) for one in training.RELATIONS),
        )
        found += [
            Method("dp-sgd", epsilon, replace.epsilon, setting=training.Setting(steps, replace.multiplier, adam=True)),
            Method("dp-sgd add/remove", epsilon, leave.epsilon, setting=training.Setting(steps, leave.multiplier, adam=True)),
            Method("dp-sgd plain", epsilon, replace.epsilon, setting=training.Setting(steps, replace.multiplier, adam=False)),
            Method("sgd", epsilon, math.inf, setting=training.Setting(steps, 0.0, adam=True)),
        ]  # fmt: skip
    return found


# ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def _size(net: Any) -> int:
    return int(net.predictor_function.size)


def predicted(net: Any, theta: Array, rows: Array) -> Array:
    """u of each row; a variance at the end of θ is left out."""
    return np.asarray(net.predictor_function(theta[: _size(net)], rows), dtype=np.float64)


def score(task: str, found: Array, truth: Array) -> float:
    """log RMSE, or the area under the ROC curve; NaN where the test rows have one class."""
    if task == "regression":
        return 0.5 * math.log(np.mean((found - truth) ** 2))
    positive = truth > 0.0
    hits, misses = int(positive.sum()), int((~positive).sum())
    if not hits * misses:
        return math.nan
    return float((stats.rankdata(found)[positive].sum() - 0.5 * hits * (hits + 1)) / (hits * misses))
