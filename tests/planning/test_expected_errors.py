"""What is expected of a regression is what simulations of it show."""

from __future__ import annotations

import math

import numpy as np
import pytest

import onedraw as od
from onedraw.planning import Regression, rank_plans
from onedraw.planning.expected_errors import expected_error, fit_error, simulated_error
from tests.planning.cases import BUDGET, LINEAR, LOGISTIC


@pytest.mark.parametrize("filled", [1.0, 1.0 / 3.0])
def test_the_expected_error_of_a_fit_is_that_of_simulated_fits(filled):
    """Sixty fits in a design that a plan names: within 20 % of what it says."""
    from onedraw.methods.fit.run import Stages
    from onedraw.samplers.noise import Noise

    n, generator, squares = 6000, np.random.default_rng(3), []
    taken = rank_plans(Regression("logistic", 3, bounds=(-1, 1), effect=1.0), BUDGET, n=n).eligible[0]
    for _ in range(60):
        truth = np.array([1.0, -1.0, 1.0, 0.0]) / filled
        X = np.column_stack([filled * generator.uniform(-1, 1, (n, 3)), np.ones(n)])
        y = np.where(generator.uniform(size=n) < 1.0 / (1.0 + np.exp(-X @ truth)), 1.0, -1.0)
        target = taken.plan.target(od.models.Encoded(n, X, y))
        published = Stages(target, Noise(generator, pure=target.problem.pure)).run()
        squares.append((taken.plan.mechanism.estimate(taken.plan, published.to_dict()) - truth) ** 2)
    expected = fit_error(taken.plan, filled=filled, correlation=0.0, effect=1.0, noise=1.0).private
    assert math.sqrt(np.mean(squares)) == pytest.approx(expected, rel=0.2)


def test_a_column_whose_ends_are_equal_changes_no_expectation():
    plain = rank_plans(Regression("logistic", 2, bounds=(0, 1)), BUDGET, n=2000, mechanism="noisy-gradient").eligible[0]
    question = Regression("logistic", 3, bounds=((0, 0, 5), (1, 1, 5)))
    constant = rank_plans(question, BUDGET, n=2000, mechanism="noisy-gradient").eligible[0]
    assert constant.expected.private == pytest.approx(plain.expected.private, rel=0.1)
    assert constant.expected.sampling == pytest.approx(plain.expected.sampling, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("question", [LOGISTIC, LINEAR], ids=["logistic", "linear"])
def test_the_expected_error_in_measured_coordinates_is_that_of_a_simulation(question):
    plan = rank_plans(question, od.GaussianDP(0.5), n=2000, mechanism="noisy-gradient measured").best
    sizes = question.sizes
    seen = simulated_error(plan, data_sets=40, generator=np.random.default_rng(3), **sizes)
    assert expected_error(plan, **sizes).private == pytest.approx(seen.private, rel=0.25)


def test_a_huber_regression_is_drawn_in_measured_coordinates_with_the_error_it_is_expected_to_have():
    found = rank_plans(Regression("huber", 3, bounds=(0, 1), threshold=1.345), BUDGET, n=3000)
    assert found.eligible[0].name == "noisy-gradient measured"
    simulated = simulated_error(found.best, data_sets=12, generator=np.random.default_rng(4), effect=1.0, noise=1.0)
    assert found.eligible[0].expected.private == pytest.approx(simulated.private, rel=0.35)
