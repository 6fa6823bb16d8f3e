"""Expected errors of regressions come true: predicted moments beside the mechanisms themselves."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import onedraw as od
from onedraw.methods.candidates.layout import shares
from onedraw.methods.draws import law as moments
from onedraw.methods.draws.law import design_of, moments_of
from onedraw.models.convex.number_losses import SquaredLoss
from onedraw.planning import Regression, expected_error, rank_plans, simulated_error
from tests.methods.draws.cases import OfRecords

BUDGET = od.ApproxDP(1.0, 1e-6)
LOGISTIC = Regression("logistic", 3, bounds=(0, 1))
LINEAR = Regression("linear", 3, bounds=(0, 1), response_bound=4.0)

ROWS = [
    (LOGISTIC, "noisy-gradient exp-linear", 500),
    (LOGISTIC, "gdp", 500),
    (LINEAR, "noisy-gradient huber", 500),
    (LINEAR, "least-squares", 1000),
]


@pytest.mark.parametrize(("question", "name", "n"), ROWS, ids=lambda value: str(getattr(value, "kind", value)))
def test_the_expected_error_is_within_a_fifth_of_the_simulated_one(question, name, n):
    """80 data sets: the simulated figure's standard error is about 4 %, so an expectation that is 40 % off is found out."""
    plan = rank_plans(question, BUDGET, n=n, mechanism=name).best
    found = simulated_error(plan, data_sets=80, generator=np.random.default_rng(3), effect=1.0, noise=1.0)
    assert expected_error(plan, effect=1.0, noise=1.0).private == pytest.approx(found.private, rel=0.2)


def test_a_closed_form_is_met_exactly():
    """Least squares without a ball in reach: mean and covariance are those of ridge regression."""
    plan = rank_plans(LINEAR, od.ApproxDP(20.0, 1e-6), n=4000, mechanism="least-squares gdp").best
    design = dataclasses.replace(design_of(plan, effect=0.3, noise=0.5), limit=math.inf)
    weight, n = plan.parameters["weight"], plan.n
    second = np.diag([1 / 3, 1 / 3, 1 / 3, 1.0])
    precision = n * weight * second + np.diag(plan.model.prior.precision(4))
    found = moments_of(plan, design)
    assert np.allclose(found.drawing, np.linalg.inv(precision), rtol=1e-6)
    assert np.allclose(found.mean, found.truth @ (n * weight * np.linalg.inv(precision) @ second).T, atol=1e-9)
    shrunk = np.linalg.inv(precision) @ (n * weight**2 * 0.25 * second) @ np.linalg.inv(precision)
    assert np.allclose(np.diagonal(found.sampling.mean(axis=0)), np.diag(shrunk), rtol=0.1)
    assert np.allclose(np.diagonal(found.plain.mean(axis=0)), 0.25 / n / np.diag(second), rtol=1e-6)


def test_the_law_of_one_data_set_is_that_of_its_chains():
    """300 chains of the library on one data set; mean and spread at α ≈ 1e-6. Half the time would be found out."""
    variant = LOGISTIC.variant("noisy-gradient exp-linear")
    plan = od.calibrate(variant.mechanism, variant.model, od.ApproxDP(5.0, 1e-6), n=600)
    design = design_of(plan)
    data = design.data_set(design.parameters(np.random.default_rng(4), 1)[0], 600, np.random.default_rng(5))
    draws = od.samplers.default_sampler(plan)[0].run(plan.target(data), od.samplers.seeded_key(1), size=300).draws
    mean, spread = OfRecords(plan, design, data).law()
    deviations = np.sqrt(np.diag(spread))
    assert np.abs((draws.mean(axis=0) - mean) / deviations).max() < 5.5 / math.sqrt(300) + 0.1
    assert np.abs(draws.std(axis=0) / deviations - 1.0).max() < 5.5 / math.sqrt(600) + 0.05
    numbers = tuple((name, value / 2 if name == "time" else value) for name, value in plan.numbers)
    fault, _ = OfRecords(dataclasses.replace(plan, numbers=numbers), design, data).law()
    assert np.abs((draws.mean(axis=0) - fault) / deviations).max() > 5.5 / math.sqrt(300) + 0.1


def test_declared_effects_and_more_records_move_the_expectation_the_right_way():
    plan = rank_plans(LOGISTIC, BUDGET, n=1000, mechanism="noisy-gradient").best
    weak, strong = (expected_error(plan, effect=effect) for effect in (0.5, 3.0))
    assert weak.bias < strong.bias, "a path ends before it has arrived at a strong effect"
    few, many = (rank_plans(LOGISTIC, BUDGET, n=n, mechanism="gdp").eligible[0].expected for n in (1000, 10_000))
    assert many.private < few.private
    assert many.sampling == pytest.approx(few.sampling / math.sqrt(10), rel=1e-6)


def test_several_draws_average_the_private_noise_alone():
    plan = rank_plans(LINEAR, BUDGET, n=2000, draws=4, mechanism="least-squares gdp").best
    found = moments_of(plan, design_of(plan))
    one, four = (dataclasses.replace(found, radius=None).errors(draws)[0] ** 2 for draws in (1, 4))
    private = np.trace(found.drawing, axis1=1, axis2=2).mean() / 4
    assert one - four == pytest.approx(0.75 * private, rel=1e-9)


@pytest.mark.parametrize("kind", ["svc", "quantile"])
def test_a_loss_that_estimates_something_else_is_judged_by_that(kind):
    """The hinge's own minimiser, and the quantile's line, which lies above the mean's."""
    options = {"quantile": 0.9, "response_bound": 4.0} if kind == "quantile" else {}
    plan = rank_plans(Regression(kind, 2, bounds=(0, 1), **options), BUDGET, n=1000, mechanism="noisy-gradient").best
    found = simulated_error(plan, data_sets=40, generator=np.random.default_rng(9), noise=1.0)
    assert expected_error(plan, noise=1.0).private == pytest.approx(found.private, rel=0.35)


def test_several_classes_are_predicted_up_to_a_common_score():
    question = Regression("softmax", 2, data_norm=1.0, classes=["a", "b", "c"])
    plan = rank_plans(question, BUDGET, n=1000, mechanism="noisy-gradient").best
    found = simulated_error(plan, data_sets=40, generator=np.random.default_rng(6))
    assert expected_error(plan).private == pytest.approx(found.private, rel=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("question", [LOGISTIC, LINEAR], ids=["logistic", "linear"])
def test_what_auto_picks_is_close_to_the_best_that_is_proven(question):
    """100 data sets for every proven mechanism but fits; benchmarks/plan_accuracy.py has twelve settings."""
    generator, errors = np.random.default_rng(8), []
    for choice in rank_plans(question, od.GaussianDP(0.25), n=600).eligible:
        if choice.seconds < 0.2:
            found = simulated_error(choice.plan, data_sets=100, generator=generator, effect=1.0, noise=1.0)
            errors.append(found.private)
            measured = type(choice.plan.mechanism).__name__ == "Measured"
            assert choice.expected.private == pytest.approx(found.private, rel=0.25 if measured else 0.2)
    assert len(errors) >= 4
    assert errors[0] <= 1.3 * min(errors)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_mean_of_rounds_of_least_squares_is_a_closed_form(rounds):
    """A pick of weight pw has mean S·nwp·M·θ and covariance S = (nwp·M + P)⁻¹; picks are weighted by p and independent."""
    plan = rank_plans(LINEAR, od.ApproxDP(20.0, 1e-6), n=4000, mechanism="least-squares gdp").best
    average = moments._Average(
        dataclasses.replace(design_of(plan, effect=0.3, noise=0.5), limit=math.inf), SquaredLoss()
    )
    n, weight, precision, location = 300, 0.02, np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 0.1)
    M = average.rows.T @ average.rows / len(average.rows)
    mean, drawing, follow = 0.0, np.zeros((4, 4)), np.zeros((4, 4))
    for part in map(float, shares(rounds)):
        spread = np.linalg.inv(n * part * weight * M + np.diag(precision))
        mean = mean + part * (average.truths @ (n * part * weight * M) + precision * location) @ spread
        drawing, follow = drawing + part**2 * spread, follow + part * (part * weight) * spread
    found = average.rounds(n, weight, precision, location, parts=list(map(float, shares(rounds))))
    np.testing.assert_allclose(found[0], mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found[2], np.broadcast_to(drawing, found[2].shape), rtol=1e-9, atol=1e-12)
    variability = average.derivatives(found[0], found[2])[2]
    np.testing.assert_allclose(found[1], n * follow @ variability @ follow, rtol=1e-9, atol=1e-12)


def test_draws_that_never_fall_on_the_ball_are_put_on_its_edge():
    centers = np.array([[30.0, 40.0], [0.1, 0.2]])
    drawn = moments._on_ball(centers, 1e-9 * np.eye(2), 2.0, np.random.default_rng(3))
    assert drawn == pytest.approx(np.array([[1.2, 1.6], [0.1, 0.2]]), abs=1e-6)
