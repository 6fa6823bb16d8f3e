"""Geumlek et al.: the exact Beta–Bernoulli losses against plain simulation, the promises of the logistic draws, and the study."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.renyi_posteriors import bernoulli, glm
from experiments.renyi_posteriors.run import STUDIES

import onedraw as od
from tests.experiments.cases import quickly_checked


def simulated(method: str, prior: str, truth: float, epsilon: float, generator: np.random.Generator) -> float:
    """The loss by drawing data, parameter and held-out records, 400,000 times; rejection keeps OPS inside its interval."""
    (a, b), rounds = bernoulli.PRIORS[prior], 400_000
    sums = generator.binomial(bernoulli.RECORDS, truth, size=rounds)
    if method == "OPS":
        w = min(1.0, bernoulli.bounded_weight(epsilon))
        theta = generator.beta(a + w * sums, b + w * (bernoulli.RECORDS - sums))
        inside = np.abs(theta - 0.5) <= 0.5 - bernoulli.EDGE
        while not inside.all():
            again = ~inside
            theta[again] = generator.beta(a + w * sums[again], b + w * (bernoulli.RECORDS - sums[again]))
            inside = np.abs(theta - 0.5) <= 0.5 - bernoulli.EDGE
    else:
        model, budget = od.models.BetaBernoulli(prior=(a, b)), od.RenyiDP.at(bernoulli.ORDER, epsilon)
        numbers = od.calibrate(bernoulli.MECHANISMS[method], model, budget, n=bernoulli.RECORDS).parameters
        r, m = numbers["r"], numbers["prior_factor"]
        theta = generator.beta(a / m + r * sums, b / m + r * (bernoulli.RECORDS - sums))
    return float(-np.mean(truth * np.log(theta) + (1.0 - truth) * np.log1p(-theta)))


@pytest.mark.oracle
@pytest.mark.parametrize("method", ["diffused", "concentrated", "OPS"])
def test_the_expected_loss_is_that_of_a_plain_simulation(method):
    where = {"method": method, "prior": "uniform", "truth": 0.2, "epsilon": 0.1}
    (row,) = bernoulli.run(seeds=(0,), **where)
    assert row["loss"] == pytest.approx(simulated(**where, generator=np.random.default_rng(1)), abs=0.004)


def test_each_logistic_draw_promises_what_its_column_says():
    model = od.models.Logistic(5, data_norm=1.0, prior=od.Gaussian(scale=3.0))
    for method in ("diffused", "concentrated"):
        plan = glm.plan_for(method, model, 0.5, 10.0, 1000)
        mu = plan.guarantee.promise.mu
        assert 10.0 * mu**2 / 2.0 == pytest.approx(0.5, rel=1e-6)
    ball = od.models.Logistic(5, data_norm=1.0, prior=od.Gaussian(scale=3.0, radius=12.3))
    bounded = od.calibrate(od.Gibbs("bounded"), ball, od.ApproxDP(0.5, 1e-9), n=1000).parameters["weight"]
    assert glm.plan_for("OPS", model, 0.5, 10.0, 1000).parameters["weight"] == pytest.approx(bounded, rel=1e-3)


def test_the_bernoulli_study_meets_what_the_paper_says():
    checked = quickly_checked(STUDIES[0])
    assert {one.verdict for one in checked} == {"passed"}, checked
