"""What clipped gradients estimate: near the truth where n is large, the level where the slopes drown (result.py, temperature.py)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import special

import onedraw as od
from onedraw.methods.clipped_gradients.responses import Response
from onedraw.methods.clipped_gradients.temperature import choose_temperature, temperatures_for

from .cases import KINDS, plan_of, run, table_of
from .plain import Deviates


def loss(kind: str, estimate: np.ndarray, table: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the mean log-loss, half the squared error, or half a Poisson deviance up to a constant, of new records."""
    X, y = table
    blocks = estimate.reshape(-1, X.shape[1] + 1)
    u = X @ blocks[:, :-1].T + blocks[:, -1]
    if kind == "classes":
        return float(np.mean(special.logsumexp(u, axis=1) - u[np.arange(len(y)), y]))
    if kind == "label":
        return float(np.mean(np.logaddexp(0.0, u[:, 0]) - y * u[:, 0]))
    if kind == "count":
        return float(np.mean(np.exp(u[:, 0]) - y * u[:, 0]))
    return float(np.mean((u[:, 0] - y) ** 2) / 2.0)


def level_alone(kind: str, table: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the best estimate without slopes."""
    X, y = table
    outputs = 3 if kind == "classes" else 1
    blocks = np.zeros((outputs, X.shape[1] + 1))
    if kind == "classes":
        blocks[:, -1] = np.log(np.bincount(y) / len(y))
    else:
        mean = y.mean()
        blocks[0, -1] = {"label": special.logit(mean), "count": np.log(mean), "number": mean}[kind]
    return blocks.ravel()


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_predictor_gains_most_of_what_the_columns_say(kind: str) -> None:
    """At ε = 1 and n = 4000; with a hundred times the noise most of it is lost (the planted fault)."""
    plan, new = plan_of(kind), table_of(kind, 20_000, 99)
    result = run(plan, table_of(kind))
    best = loss(kind, run(plan_of(kind, budget=od.ApproxDP(1e4, 1e-6)), table_of(kind)).estimate, new)
    level = loss(kind, level_alone(kind, new), new)
    assert best < level - 0.03
    assert loss(kind, result.estimate, new) < level - 0.75 * (level - best)
    numbers = {**plan.parameters, "slope_noise": 100.0 * plan.parameters["slope_noise"]}
    drowned = replace(plan, numbers=tuple(numbers.items()))
    assert loss(kind, run(drowned, table_of(kind)).estimate, new) > level - 0.5 * (level - best)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["label", "classes"])
def test_slopes_that_are_noise_are_drawn_back_to_the_level(kind: str) -> None:
    """No column has an effect and the noise is large: releases lose at most half of what the steps alone lose.

    The steps alone (the planted fault: a temperature of 1 whatever was published) are worse than the level by far.
    """
    n = 300
    plan = plan_of(kind, n, od.ApproxDP(0.5, 1e-6))
    new = table_of(kind, 5000, 98, effect=0.0)
    excess, without = [], []
    for seed in range(40):
        result = run(plan, table_of(kind, n, seed, effect=0.0), seed)
        losses = [loss(kind, result.at(t), new) for t in (result.temperature, 0.0, 1.0)]
        excess.append(losses[0] - losses[1])
        without.append(losses[2] - losses[1])
    assert np.mean(without) > 0.01
    assert np.mean(excess) < 0.5 * np.mean(without)


@pytest.mark.parametrize("kind", KINDS)
def test_temperature_of_zero_is_the_published_level(kind: str) -> None:
    """Noise in intercepts of the steps is in no prediction then."""
    result = run(plan_of(kind), table_of(kind))
    blocks = result.at(0.0).reshape(result.problem.response.outputs, -1)
    scale = 4.0 if kind == "number" else 1.0
    assert not blocks[:, :-1].any()
    assert blocks[:, -1] == pytest.approx(scale * result.start.scores)


def test_mean_row_is_no_part_of_scores_without_scales() -> None:
    """Columns far from the middle of their bounds: the mean score is 0 after it was measured, and far from it before."""
    plan = plan_of("label", 600, od.ApproxDP(0.5, 1e-6), columns=40, categories=())
    assert plan.parameters["mean_noise"] == 0.0
    rng = np.random.default_rng(3)
    X = rng.uniform(0.2, 0.8, (600, 40))
    y = (rng.uniform(size=600) < special.expit(8.0 * (X[:, 0] - 0.5))).astype(int)

    class Exact(Deviates):
        """No noise at all."""

        def vector(self, sums: Any, steps: float, noise: float, each: Any = None) -> np.ndarray:
            return np.asarray(sums) / steps

    result = run(plan, (X, y), noise=Exact(1))
    scores = (X / 0.5) @ result.slopes
    with_steps = scores.mean() + (result.published.intercepts - result.start.scores)[0]
    assert abs(with_steps) > 1.0 * scores.std()
    assert scores.mean() + result.line.shift[0] == pytest.approx(0.0, abs=0.1 * abs(with_steps))


def test_unit_of_counts_follows_a_few_large_ones() -> None:
    """Beyond the noise of their square; below it the unit is that of a geometric count."""
    response, mean = Response("count", 1, 100.0), np.array([0.05])
    plain = math.sqrt(5.0 + 25.0) / 100.0
    assert response.unit(mean) == pytest.approx(plain)
    assert response.unit(mean, np.array([0.05]), 0.1) == pytest.approx(plain)
    assert response.unit(mean, np.array([0.05]), 0.001) == pytest.approx(math.sqrt(0.05 - 0.001 - 0.0025))
    assert response.unit(mean, np.array([9.0]), 0.0) <= 1.0


def test_temperature_is_the_zero_of_the_raised_derivatives() -> None:
    t = np.array([0.0, 0.5, 1.0, 1.5])
    assert choose_temperature(t, np.array([-1.0, 1.0, 1.0, 1.0]), 0.0) == pytest.approx(0.5)
    assert choose_temperature(t, np.array([-1.0, 1.0, 1.0, 1.0]), 0.5) == pytest.approx(0.25)
    assert choose_temperature(t, np.array([-1.0, 1.0, 1.0, 1.0]), 1.0) == 0.0
    assert choose_temperature(t, np.array([0.2, -9.0, 1.0, 1.0]), 0.1) == 0.0
    assert choose_temperature(t, np.array([-5.0, 1.0, 1.0, 1.0]), 0.25) == 1.5
    # derivatives that fall are pooled: -4, (0.5, -1.5), 2 becomes -4, -0.5, -0.5, 2
    assert choose_temperature(t, np.array([-4.0, 4.5, -2.0, 3.5]), 0.0) == pytest.approx(1.1)


def test_temperatures_begin_where_the_loss_is_nearly_a_parabola() -> None:
    assert temperatures_for(10.0, "label")[1] == pytest.approx(0.05)
    assert temperatures_for(0.1, "label")[1] == pytest.approx(0.5)
    assert temperatures_for(3.0, "classes")[[0, -1]] == pytest.approx([0.0, 1.5])
    assert temperatures_for(3.0, "count")[[0, -1]] == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize("mean", [-0.2, 0.0, 1e-9, 0.3, 1.0, 1.4])
@pytest.mark.parametrize("kind", KINDS)
def test_level_is_a_number_for_any_published_mean(kind: str, mean: float) -> None:
    response = Response(kind, 3 if kind == "classes" else 1, 8.0)  # type: ignore[arg-type]
    for noise in (1e-9, 0.05, 20.0):
        shares = response.shrink(np.full(response.outputs, mean), noise)
        assert np.isfinite(response.link(shares)).all()
        assert response.unit(shares) > 0.0


def test_level_is_the_mean_response_where_noise_is_small() -> None:
    assert Response("label").link(Response("label").shrink(np.array([0.2]), 1e-6)) == pytest.approx(
        [np.log(0.25)], abs=1e-4
    )
    classes = Response("classes", 3)
    shares = classes.shrink(np.array([0.5, 0.3, 0.2]), 1e-6)
    assert shares == pytest.approx([0.5, 0.3, 0.2], abs=1e-4)
    assert special.softmax(classes.link(shares)) == pytest.approx(shares)


def test_several_classes_and_two_agree_for_two() -> None:
    """A softmax of two classes has the log-odds of a logistic model, up to the clipping of two residuals in place of one."""
    plan = plan_of("classes", 4000, od.ApproxDP(1e4, 1e-6), classes=2)
    X, y = table_of("label")
    blocks = run(plan, (X, y)).estimate.reshape(2, -1)
    single = run(plan_of("label", 4000, od.ApproxDP(1e4, 1e-6)), (X, y)).estimate
    assert blocks.sum(axis=0) == pytest.approx(np.zeros(6), abs=1e-9)
    assert blocks[1] - blocks[0] == pytest.approx(single, abs=0.15)
