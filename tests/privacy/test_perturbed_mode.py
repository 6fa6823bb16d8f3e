"""What a tilted minimum promises: its two terms, the constants of every loss, and what a plan spends of it."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from onedraw.errors import InvalidBudget
from onedraw.methods import PerturbedMode
from onedraw.methods import calibrate as plan_for
from onedraw.models import Gaussian, Logistic
from onedraw.privacy import PureDP
from onedraw.privacy.perturbed_mode import (
    count_curvature,
    ridge_for,
    softmax_ridge_for,
    softmax_volume_cost,
    tilted_epsilon,
    volume_cost,
)
from tests.privacy.cases import counts, exp_linear, huber, huberised_hinge, log_cosh, logistic, quantile

RNG = np.random.default_rng(20261115)


@pytest.mark.parametrize(
    ("loss", "low", "high", "curvature"),
    [
        (exp_linear, 0.5, 0.0, 0.5),
        (logistic, 1.0, 0.0, 0.25),
        (huberised_hinge, 1.0, 0.0, 2.0),
        (huber, 1.0, 1.0, 1.0),
        (log_cosh, 1.0, 1.0, 1.0),
        (quantile, 0.8, 0.2, 5.0),
    ],
)
def test_the_table_of_losses_has_the_right_slopes_and_curvatures(loss, low, high, curvature):
    slope, bend = loss(np.linspace(-40.0, 40.0, 400_001))
    assert slope.min() == pytest.approx(-low, abs=1e-9)
    assert slope.max() == pytest.approx(high, abs=1e-9)
    assert bend.max() == pytest.approx(curvature, rel=1e-6)
    assert bend.min() >= 0.0


@pytest.mark.parametrize("largest", [1, 2, 3, 10, 60])
def test_counts_bend_at_most_as_much_as_is_said(largest):
    slope, bend = counts(np.linspace(-12.0, 9.0, 40_001), largest=largest)
    assert bend.max() <= count_curvature(largest)
    assert bend.max() == pytest.approx(count_curvature(largest), rel=1e-5)
    assert -1e-9 <= slope.min() <= slope.max() <= largest + 1e-9


# ── the promise ──


@pytest.mark.parametrize("records", [1, 2, 7])
def test_pull_and_volume_add_up_over_a_person_s_records_rounded_up(records):
    pull, scale, kappa = 0.5 * 2.3, 7.1, 0.15
    exact = records * (2 * Fraction(pull) / Fraction(scale) + Fraction(kappa))
    found = tilted_epsilon(pull, scale, kappa, records=records)
    assert exact <= Fraction(found) <= exact * (1 + Fraction(1, 2**50))


@pytest.mark.parametrize("wrong", [(0.0, 1.0, 0.1), (1.0, 0.0, 0.1), (1.0, 1.0, -0.1), (1.0, math.nan, 0.1)])
def test_numbers_that_no_promise_can_be_made_of_are_refused(wrong):
    with pytest.raises(InvalidBudget):
        tilted_epsilon(*wrong)


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), (1.0, 1.0), (0.8, 0.2)])
def test_no_two_records_pull_further_apart_than_twice_the_steepest_slope(low, high):
    """‖α'π' − απ‖ for slopes at either end and rows in the unit ball, attained by opposite ones."""
    rows = RNG.normal(size=(60, 2))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    rows = np.concatenate([rows, np.eye(2), -np.eye(2)])
    ends = (-low, high)
    farthest = max(
        np.linalg.norm(a * second - b * first) for first, second in product(rows, rows) for a, b in product(ends, ends)
    )
    assert farthest == pytest.approx(2.0 * max(low, high))


def test_ridge_and_volume_are_inverse():
    ridge = ridge_for(0.2, curvature=0.5, radius_squared=5.0)
    assert round(ridge, 8) == 11.29163892
    assert volume_cost(curvature=0.5, radius_squared=5.0, ridge=ridge) <= 0.2 * (1 + 1e-12)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_softmax_ridge_and_volume_are_inverse(classes):
    ridge = softmax_ridge_for(0.2, classes, radius_squared=5.0)
    assert softmax_volume_cost(classes, radius_squared=5.0, ridge=ridge) == pytest.approx(0.2, rel=1e-9)
    p = RNG.dirichlet(np.ones(classes), size=2000)
    p = np.concatenate([p, np.full((1, classes), 1.0 / classes)])
    for row in p[-200:]:
        hessian = np.diag(row) - np.outer(row, row)
        assert np.linalg.slogdet(np.eye(classes) + 5.0 / ridge * hessian)[1] <= 0.2 + 1e-9


# ── from a budget to a plan ──

MODEL = Logistic(5, bounds=(-1.0, 1.0), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 5.0, 300.0])
@pytest.mark.parametrize("records", [1, 4])
def test_a_plan_spends_all_of_its_budget(epsilon, records):
    plan = plan_for(
        PerturbedMode(measured=True, intervals=True), MODEL, PureDP(epsilon), n=5000, records_per_person=records
    )
    assert (1.0 - 1e-9) * epsilon < plan.guarantee.promise.stated_epsilon <= epsilon


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
@pytest.mark.parametrize("n", [1000, 10_000])
@pytest.mark.parametrize("records", [1, 4])
def test_plans_spend_a_fifth_to_a_third_of_epsilon_on_volume(epsilon, n, records):
    how = PerturbedMode(measured=True, intervals=True)
    numbers = plan_for(how, MODEL, PureDP(epsilon), n=n, records_per_person=records).parameters
    assert 0.05 <= numbers["kappa"] / epsilon <= 0.4
    kappa = volume_cost(curvature=0.5, radius_squared=numbers["row_bound"] ** 2, ridge=numbers["ridge"])
    assert numbers["kappa"] == pytest.approx(records * kappa)


def test_the_closing_noise_of_very_many_records_is_below_their_sampling_error():
    """Rounding of 10⁹ gradients must be hidden: the ridge grows with them, and stays small beside the information."""
    model = Logistic(10, bounds=(-1.0, 1.0), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))
    for n in (10**7, 10**8, 10**9):
        numbers = plan_for(PerturbedMode(intervals=True), model, PureDP(1.0), n=n).parameters
        assert numbers["closing_noise"] * math.sqrt(12.0) <= 2.0 / math.sqrt(n)
        assert numbers["ridge"] / (0.15 * n) <= 7.0 / math.sqrt(n)
