"""β-divergence plans: the best β under a public design, what is promised, and that concrete pairs stay within it."""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from onedraw.errors import InvalidModel, OnedrawError, PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods import BetaDivergence, calibrate, plan_from_dict
from onedraw.methods.beta_divergence import mechanism as beta_divergence
from onedraw.methods.beta_divergence.mechanism import sensitivity_of
from onedraw.models import (
    BetaBernoulli,
    BinaryRegression,
    GammaRegression,
    Gaussian,
    GaussianRegression,
    Hinge,
    Logistic,
    NegativeBinomialRegression,
    Network,
    OwnDensity,
    PoissonRegression,
    Predictor,
    Softmax,
    StudentTRegression,
)
from onedraw.models.likelihood.density import register_density
from onedraw.models.likelihood.reference_design import ReferenceDesign
from onedraw.privacy import ZCDP, ApproxDP, BoundedRange, GaussianDP, Provenance, PureDP, RenyiDP
from tests.methods.cases import Pair

SPHERE = Logistic(3, data_norm=2.0, intercept=False, prior=Gaussian(scale=3.0))
BOX = Logistic(2, bounds=(-1.0, 1.0), prior=Gaussian(scale=3.0))
LINEAR = GaussianRegression(2, variance_floor=0.01)
MODELS = {
    "logistic": BOX,
    "unbounded logistic": BinaryRegression(4),
    "softmax": Softmax(2, classes=["a", "b", "c"], data_norm=1.0, prior=Gaussian(scale=2.0)),
    "linear": LINEAR,
    "linear, known variance": GaussianRegression(1, variance=0.25),
    "student": StudentTRegression(2, df=4.0, variance_floor=0.01),
    "poisson": PoissonRegression(2),
    "negative binomial": NegativeBinomialRegression(2, dispersion=2.0),
    "gamma": GammaRegression(2, rate_cap=5.0, shape=1.5),
    "network": Network(3, hidden=2),
    "network regression": Network(3, hidden=2, task="regression", variance_floor=0.01),
}

BINARY_OPTIMUM = 1.0 + 1.0 / math.log(2.0)
"""β* at p = ½: (β−1)·2^{−(β−1)} is largest there."""


# ── the best β ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epsilon", "ratio"), [(0.1, 27.8), (0.2, 5.7), (0.5, 1.5), (1.0, 1.04), (5.0, 1.27), (10.0, 1.5)]
)
def test_the_papers_rule_has_this_many_times_our_variance(epsilon, ratio):
    design = ReferenceDesign(SPHERE, 1.0)

    def variance(rule):
        numbers = calibrate(BetaDivergence(rule), SPHERE, PureDP(epsilon), n=100).parameters
        return design.trace(numbers["beta"], numbers["weight"])

    found = variance("jewson") / variance("optimal")
    assert found == pytest.approx(ratio, abs=0.05 if ratio < 10 else 0.1)


def test_beta_tends_to_one_plus_one_over_log_two_as_the_design_concentrates_at_a_half():
    distances = []
    for effect in (2.0, 1.0, 0.3, 0.001):
        numbers = calibrate(BetaDivergence(effect=effect), SPHERE, PureDP(0.1), n=10).parameters
        distances.append(abs(numbers["beta"] - BINARY_OPTIMUM))
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-4
    assert pytest.approx(2.4427, abs=1e-4) == BINARY_OPTIMUM
    assert numbers["weight"] == pytest.approx(0.1 / (2 * math.log(2)), rel=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_no_other_beta_of_the_search_has_a_smaller_error(name):
    model, epsilon = MODELS[name], 0.8
    plan = calibrate(BetaDivergence(), model, PureDP(epsilon), n=50)
    design, best = ReferenceDesign(model, 1.0), plan.parameters["beta"]

    def error(beta):
        return design.trace(beta, epsilon / (2 * sensitivity_of(model)(beta)))

    low, high = (1.5, 4.0) if type(model.likelihood).__name__ == "Bernoulli" else (1.02, 4.0)
    assert low - 1e-6 <= best <= high + 1e-6
    smallest = error(best)
    assert all(smallest <= error(beta) * (1 + 1e-9) for beta in np.linspace(low, high, 40))
    assert plan.parameters["weight"] == pytest.approx(epsilon / (2 * sensitivity_of(model)(best)))


def test_the_gaussian_beta_follows_the_declared_noise():
    """σ = 10 s has its optimum near 1.29, σ = s near 3; the sampling error pulls both a little towards 1."""
    found = [
        calibrate(BetaDivergence(noise=noise), LINEAR, PureDP(0.01), n=10).parameters["beta"] for noise in (1.0, 0.1)
    ]
    assert found == pytest.approx([1.288, 3.0], abs=0.03)
    assert calibrate(BetaDivergence(noise=0.001), LINEAR, PureDP(0.01), n=10).parameters["beta"] == found[1], (
        "the floor"
    )


def test_the_stored_curvature_is_the_smallest_eigenvalue_under_the_design():
    numbers = calibrate(BetaDivergence(), SPHERE, PureDP(1.0), n=10).parameters
    u = np.random.default_rng(5).standard_normal(400_000)
    p, beta = special.expit(u), numbers["beta"]
    information = (p**2 * (1 - p) ** 2 * (p ** (beta - 2) + (1 - p) ** (beta - 2))).mean()
    assert numbers["curvature"] == pytest.approx(4.0 / 3.0 * information, rel=2e-3)
    assert numbers["effect"] == 1.0
    assert "curvature" not in calibrate(BetaDivergence(), MODELS["network"], PureDP(1.0), n=10).parameters


# ── the promise ────────────────────────────────────────────────────────────────────────────────────────────

BUDGETS = [
    PureDP(1.0),
    BoundedRange(0.3),
    ApproxDP(1.0, 1e-5),
    ApproxDP(2.0, 0.0),
    ZCDP(0.1),
    RenyiDP.at(4.0, 1.0),
    GaussianDP(0.5),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_plans_keep_their_budget_and_read_back(budget):
    plan = calibrate(BetaDivergence(), BOX, budget, n=200, records_per_person=2)
    numbers = plan.parameters
    assert plan.guarantee.promise.implies(budget)
    assert plan.guarantee.promise.range_epsilon == pytest.approx(4 * numbers["weight"] * numbers["sensitivity"])
    assert numbers["range"] == pytest.approx(2 * numbers["weight"] * numbers["sensitivity"])
    assert plan_from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert plan.requires == "exact"
    assert not plan.closed_form


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("rule", ["optimal", "jewson"])
def test_every_model_plans_and_reads_back_by_either_rule(name, rule):
    plan = calibrate(BetaDivergence(rule), MODELS[name], PureDP(9.0), n=50)
    assert plan.guarantee.promise == BoundedRange(plan.parameters["range"])
    assert plan.parameters["range"] == pytest.approx(9.0, rel=1e-9)
    assert plan_from_dict(plan.to_dict()) == plan
    proofs = {
        assumption.provenance for assumption in plan.guarantee.assumptions if "sensitivity" in assumption.statement
    }
    assert proofs == {Provenance.PROVED}


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 30.0), st.integers(1, 40), st.integers(1, 5))
def test_pure_budgets_are_spent_to_the_last_digit(epsilon, draws, people):
    plan = calibrate(BetaDivergence(beta=2.5), BOX, PureDP(epsilon), n=10, draws=draws, records_per_person=people)
    assert plan.guarantee.promise.epsilon(0.0) <= epsilon
    assert plan.guarantee.promise.epsilon(0.0) == pytest.approx(epsilon, rel=1e-14)
    assert plan.parameters["weight"] == pytest.approx(1.5 * epsilon / (2 * draws * people))


def test_several_draws_weigh_more_where_delta_pays_for_them():
    pure = calibrate(BetaDivergence(beta=2.5), BOX, PureDP(1.0), n=10, draws=8).parameters["weight"]
    plan = calibrate(BetaDivergence(beta=2.5), BOX, ApproxDP(1.0, 1e-5), n=10, draws=8)
    assert plan.parameters["weight"] > 1.4 * pure
    assert plan_from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize("field", ["weight", "beta", "sensitivity", "range", "curvature", "effect"])
def test_an_edited_number_is_refused(field):
    stored = calibrate(BetaDivergence(), BOX, PureDP(1.0), n=50).to_dict()
    for factor in (1.001, 0.999):
        edited = copy.deepcopy(stored)
        edited["parameters"][field] *= factor
        with pytest.raises(OnedrawError):
            plan_from_dict(edited)


def test_a_sensitivity_that_another_machine_rounded_differently_is_accepted():
    stored = calibrate(BetaDivergence(beta=1.7, weight=0.01), LINEAR, PureDP(1.0), n=50).to_dict()
    moved = math.nextafter(stored["parameters"]["sensitivity"], math.inf)
    model = LINEAR.likelihood
    assert moved != model.sensitivity(1.7).value
    plan = BetaDivergence(beta=1.7, weight=0.01).plan(
        calibrate(BetaDivergence(), LINEAR, PureDP(1.0), n=50).request, stored["parameters"] | {"sensitivity": moved}
    )
    assert plan.parameters["sensitivity"] == moved


# ── beta= and weight= ──────────────────────────────────────────────────────────────────────────────────────


def test_a_given_beta_gets_the_largest_weight_and_a_given_weight_the_best_beta_it_allows():
    assert calibrate(BetaDivergence(beta=3.0), BOX, PureDP(1.0), n=9).parameters["weight"] == 1.0
    for weight, beta in ((0.1, 1.2), (1.2, 3.4)):
        plan = calibrate(BetaDivergence(weight=weight), BOX, PureDP(1.0), n=9)
        assert plan.parameters["beta"] == pytest.approx(beta, abs=1e-5), "2w/(β−1) ≤ 1 asks for it"
        assert plan.guarantee.promise.implies(PureDP(1.0))
    both = calibrate(BetaDivergence(beta=2.0, weight=0.25), BOX, PureDP(1.0), n=9)
    assert both.guarantee.promise == BoundedRange(0.5)
    assert BetaDivergence().promise(BOX, beta=2.0, weight=0.25, draws=3) == BoundedRange(1.5)


def test_what_cannot_be_kept_is_refused():
    with pytest.raises(PromiseRefused, match="not proven to imply"):
        calibrate(BetaDivergence(beta=2.0, weight=0.6), BOX, PureDP(1.0), n=9)
    with pytest.raises(PromiseRefused, match="keeps a range"):
        calibrate(BetaDivergence(weight=50.0), BOX, PureDP(1.0), n=9)
    with pytest.raises(PromiseRefused, match="would not matter"):
        calibrate(BetaDivergence(), BOX, PureDP(1e-19), n=9)
    with pytest.raises(PromiseRefused, match="no β at all"):
        calibrate(BetaDivergence("jewson"), LINEAR, PureDP(1.0), n=9)


@pytest.mark.parametrize("model", [Hinge(2, data_norm=1.0, prior=Gaussian(scale=1.0)), BetaBernoulli(prior=(1.0, 1.0))])
def test_a_model_without_a_bounded_density_is_refused(model):
    with pytest.raises(UnsupportedBudget, match="likelihood"):
        calibrate(BetaDivergence(), model, PureDP(1.0), n=9)


def test_for_a_density_of_the_users_own_the_bound_is_enforced_and_beta_must_be_given():
    register_density("uniform of the plans", lambda u, y: 0.0 * (u + y), lambda beta, u: 0.0 * beta * u)
    model = Predictor(
        first_feature, 1, likelihood=OwnDensity("uniform of the plans", 1.0), features=1, prior=Gaussian(scale=1.0)
    )
    with pytest.raises(UnsupportedBudget, match=r"Pass BetaDivergence\(beta"):
        calibrate(BetaDivergence(), model, PureDP(1.0), n=9)
    numbers = calibrate(BetaDivergence(beta=2.0), model, PureDP(1.0), n=9).parameters
    assert numbers["sensitivity"] == pytest.approx(1.5), "1/(β−1) + 1/β at M = 1"
    assert numbers["weight"] == pytest.approx(1 / 3)


def first_feature(theta, x):
    return theta[0] * x[0]


@pytest.mark.parametrize("beta", [1.0, 0.5, -2.0, math.nan, math.inf])
def test_a_beta_of_at_most_one_is_refused(beta):
    with pytest.raises(OnedrawError):
        BetaDivergence(beta=beta)


def test_a_beta_of_one_is_told_why():
    with pytest.raises(InvalidModel, match="without bound"):
        BetaDivergence(beta=1.0)


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "best"},
        {"as_published": True},
        {"rule": "jewson", "beta": 2.0},
        {"rule": "jewson", "weight": 1.0},
        {"weight": 0.0},
        {"effect": 1e6},
        {"noise": -1.0},
    ],
)
def test_contradictory_options_are_refused(options):
    with pytest.raises(WrongCall):
        BetaDivergence(**options)


# ── as published ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "true"), [("linear", 7.65), ("network regression", 7.69)])
def test_the_published_gaussian_calibration_is_available_and_says_it_is_not_proven(name, true):
    plan = calibrate(BetaDivergence("jewson", as_published=True), MODELS[name], PureDP(1.0), n=100)
    assert not plan.mechanism.proven
    assert plan.parameters["range"] == pytest.approx(1.0)
    assert plan.parameters["true_range"] == pytest.approx(true, abs=0.005)
    assert "NOT PROVEN" in plan.guarantee.theorem
    first = plan.guarantee.assumptions[0]
    assert first.provenance == Provenance.ASSUMED
    assert f"{true:.2f}"[:3] in first.statement
    assert plan_from_dict(plan.to_dict()) == plan


def test_where_the_published_calibration_is_right_the_plan_is_proven():
    published = calibrate(BetaDivergence("jewson", as_published=True), BOX, PureDP(1.0), n=100)
    assert published == calibrate(BetaDivergence("jewson"), BOX, PureDP(1.0), n=100)
    high = GaussianRegression(1, variance_floor=20.0)
    assert calibrate(BetaDivergence("jewson", as_published=True), high, PureDP(1.0), n=100).mechanism.proven


# ── concrete pairs, by quadrature ──────────────────────────────────────────────────────────────────────────


def pair(plan, model, first, second, grid):
    """The posteriors of two data sets on a grid of one parameter."""
    logs = []
    for data in (first, second):
        target = plan.target(model.summarise(data))
        totals = target.losses(grid[:, None]).sum(axis=1)
        logs.append(model.log_prior(grid[:, None]) - plan.parameters["weight"] * totals)
    return Pair(*logs, grid[1] - grid[0])


def gaussian_pair(mechanism, budget):
    """Twenty responses at 0, one of which becomes 4: neighbours on which the promise is nearly reached."""
    model = GaussianRegression(1, variance=0.01, intercept=False)
    plan = calibrate(mechanism, model, budget, n=20)
    X, y = np.ones((20, 1)), np.zeros(20)
    return plan, pair(plan, model, (X, y), (X, np.where(np.arange(20) == 0, 4.0, y)), np.linspace(-12, 12, 9601))


def test_a_gaussian_pair_with_a_floor_of_a_hundredth_stays_below_epsilon_one():
    plan, profile = gaussian_pair(BetaDivergence(), PureDP(1.0))
    assert plan.guarantee.promise.epsilon(0.0) == pytest.approx(1.0)
    assert profile.supremum <= 1.0 + 1e-9
    assert profile.range <= 1.0 + 1e-9
    assert profile.range > 0.98, "the bound is nearly attained, so the test has teeth"
    assert profile.delta(1.0) <= 1e-12


def test_the_same_pair_exposes_the_published_calibration():
    """Planted fault: the prior's variance in place of the floor, β = 1.598 at w = 1 for a nominal ε = 1."""
    _, profile = gaussian_pair(BetaDivergence("jewson", as_published=True), PureDP(1.0))
    assert profile.supremum > 3.0
    assert profile.range > 7.5


@pytest.mark.parametrize(
    ("epsilon", "largest", "accuracy"),
    [
        (0.2, 0.100, 0.5096),
        (1.0, 0.500, 0.5816),
        (2.0, 1.000, 0.6560),
        (7.0, 3.500, 0.7776),
        (10.0, 4.998, 0.7957),
        (20.0, 9.817, 0.8163),
    ],
)
def test_the_papers_membership_pair_has_the_reference_profile(epsilon, largest, accuracy):
    """D = {(1, 1), (0, 0)} against D' = {(−1, 1), (0, 0)}, θ ~ N(0, 9)."""
    model = Logistic(1, bounds=(-1.0, 1.0), intercept=False, prior=Gaussian(scale=3.0))
    plan = calibrate(BetaDivergence("jewson"), model, PureDP(epsilon), n=2)
    labels = [1, 0]
    profile = pair(plan, model, ([[1.0], [0.0]], labels), ([[-1.0], [0.0]], labels), np.linspace(-40, 40, 8001))
    assert profile.supremum == pytest.approx(largest, abs=6e-4)
    assert 0.5 + 0.5 * profile.delta(0.0) == pytest.approx(accuracy, abs=6e-5)


def test_the_target_is_the_density_of_the_definition():
    X, y = np.array([[0.5, -0.2], [0.1, 0.9], [-1.0, 0.3]]), np.array([1, 0, 1])
    plan = calibrate(BetaDivergence(), BOX, PureDP(1.0), n=3)
    target, theta = plan.target(BOX.summarise((X, y))), np.array([0.4, -1.0, 0.2])
    beta, weight = plan.parameters["beta"], plan.parameters["weight"]
    p = special.expit(np.column_stack([X, np.ones(3)]) @ theta)
    density = np.where(y == 1, p, 1 - p)
    losses = -(density ** (beta - 1)) / (beta - 1) + (p**beta + (1 - p) ** beta) / beta
    zero = np.zeros(3)
    difference = weight * (losses.sum() - 3 * (-(0.5 ** (beta - 1)) / (beta - 1) + 2 * 0.5**beta / beta))
    found = float(target.potential(theta)) - float(target.potential(zero))
    assert found == pytest.approx(difference + theta @ theta / 18, rel=1e-12)


# ── the range of a draw ────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-6, 1e3), st.floats(1e-6, 1e6), st.integers(1, 50))
def test_the_weight_spends_the_range_and_never_more(largest, sensitivity, people):
    weight = beta_divergence.weight_within(largest, sensitivity, records_per_person=people)
    assert 2 * Fraction(weight) * Fraction(sensitivity) * people <= Fraction(largest)
    more = math.nextafter(weight, math.inf)
    assert 2 * Fraction(more) * Fraction(sensitivity) * people > Fraction(largest)
    spent = beta_divergence.draw_range(weight, sensitivity, records_per_person=people)
    assert spent <= largest
    assert spent == pytest.approx(largest, rel=1e-15)


def test_a_weight_that_would_not_matter_is_refused():
    with pytest.raises(PromiseRefused, match="below 2"):
        beta_divergence.weight_within(1e-19, 1.0)


@pytest.mark.parametrize("draws", [1, 2, 7])
@pytest.mark.parametrize(
    "budget", [PureDP(1.0), BoundedRange(0.7), ZCDP(0.05), ApproxDP(1.0, 1e-5), ApproxDP(1.0, 0.0)]
)
def test_the_range_of_one_draw_is_the_largest_that_all_draws_can_afford(budget, draws):
    largest = beta_divergence.largest_range(budget, draws)
    assert beta_divergence.promise_of_draws(largest, draws, budget).implies(budget)
    assert not beta_divergence.promise_of_draws(
        largest * (1 + 3 * beta_divergence.RANGE_PRECISION), draws, budget
    ).implies(budget)


def test_several_draws_gain_from_composition_where_the_budget_has_a_delta():
    budget = ApproxDP(1.0, 1e-5)
    assert beta_divergence.largest_range(PureDP(1.0), 20) == pytest.approx(0.05)
    assert beta_divergence.largest_range(budget, 20) > 2 * 0.05
    assert beta_divergence.largest_range(ZCDP(0.1), 20) == pytest.approx(math.sqrt(8 * 0.1 / 20), rel=1e-5)
