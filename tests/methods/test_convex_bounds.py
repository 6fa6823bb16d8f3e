"""What bounds on a convex loss promise: rounding both ways, and pairs that attain the bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.errors import InvalidBudget, InvalidModel, PromiseRefused
from onedraw.methods import convex_bounds
from onedraw.methods import published_rules as literature
from onedraw.methods.convex_bounds import Curvature
from onedraw.methods.gibbs import mechanism as gibbs
from onedraw.privacy import ZCDP, ApproxDP, BoundedRange, GaussianDP, RenyiDP
from onedraw.privacy.conversions import gaussian_delta, gaussian_mu
from tests.methods.cases import constants, gibbs_pair, hinge, huber, linear, logistic, squares

UNIT = Curvature(2.0, 1.0)


# ── who allows more weight ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-5), ZCDP(0.05), RenyiDP.at(8.0, 0.4)], ids=str)
def test_gdp_allows_at_least_as_much_as_rdp_and_as_much_where_only_divergences_count(budget):
    gdp, rdp = convex_bounds.gdp_weight(budget, UNIT), gibbs.rdp_weight(budget, UNIT)
    assert gdp >= rdp * (1 - 1e-9)
    assert (gdp > 1.05 * rdp) == isinstance(budget, ApproxDP)


# ── rounding, and both directions ──────────────────────────────────────────────────────────────────────────

BUDGETS = [
    ApproxDP(1.0, 1e-5),
    ApproxDP(0.1, 1e-9),
    ApproxDP(12.0, 1e-4),
    GaussianDP(0.3),
    ZCDP(0.1),
    RenyiDP.at(4.0, 0.2),
]


@settings(max_examples=80, deadline=None)
@given(constants, st.floats(1e-3, 10.0))
def test_the_weight_of_a_mu_is_the_largest_float_that_keeps_it(curvature, mu):
    weight = convex_bounds.weight_at(mu, curvature)
    assert convex_bounds.gdp_promise(weight, curvature).mu <= mu
    assert convex_bounds.gdp_promise(weight * (1 + 1e-12), curvature).mu > mu
    copies = curvature.records_per_person * math.sqrt(curvature.draws)
    total = curvature.n * weight * curvature.strong_convexity + curvature.prior_strong_convexity
    assert convex_bounds.gdp_promise(weight, curvature).mu == pytest.approx(
        copies * weight * curvature.gradient_difference / math.sqrt(total), rel=1e-12
    )


@settings(max_examples=60, deadline=None)
@given(constants, st.sampled_from(BUDGETS))
def test_calibrated_weights_keep_the_budget_and_a_thousandth_more_breaks_it(curvature, budget):
    found = [(convex_bounds.gdp_weight(budget, curvature), convex_bounds.gdp_promise)]
    if not isinstance(budget, GaussianDP):
        found.append((gibbs.rdp_weight(budget, curvature), gibbs.rdp_promise))
    for weight, promise in found:
        assert promise(weight, curvature).implies(budget)
        assert not promise(weight * 1.001, curvature).implies(budget)


def test_strong_convexity_of_the_loss_follows_the_closed_form_of_section_4():
    lipschitz, strong, prior, n, mu = 1.3, 0.02, 0.7, 400, 0.25
    curvature = Curvature(2 * lipschitz, prior, strong_convexity=strong, n=n)
    printed = (mu**2 * n * strong + math.sqrt(mu**4 * n**2 * strong**2 + 16 * lipschitz**2 * mu**2 * prior)) / (
        8 * lipschitz**2
    )
    assert convex_bounds.weight_at(mu, curvature) == pytest.approx(printed, rel=1e-13)
    assert printed > mu * math.sqrt(prior) / (2 * lipschitz), "curvature of the loss buys weight"


def test_the_bounded_rule_is_exact_arithmetic():
    assert gibbs.loss_range(0.5) == 1.0
    assert gibbs.loss_range(2.0, 3.0) == 3.0
    assert gibbs.bounded_weight(1.0, gibbs.loss_range(0.25)) == 2.0
    weight = gibbs.bounded_weight(0.7, 0.3, records_per_person=3, draws=4)
    assert Fraction(weight) * Fraction(0.3) * 12 <= Fraction(0.7)
    assert gibbs.bounded_promise(weight, 0.3, records_per_person=3, draws=4).implies(BoundedRange(0.7))
    assert not gibbs.bounded_promise(math.nextafter(weight, 1.0), 0.3, records_per_person=3, draws=4).implies(
        BoundedRange(0.7)
    )


@pytest.mark.parametrize(("records", "draws"), [(1, 1), (2, 1), (1, 4), (3, 5)])
def test_groups_and_draws_are_the_shift_of_a_gaussian_product(records, draws):
    """With a linear loss each draw is N(w Σ z, 1/m): k records move it by 2wk, J draws add their squared shifts."""
    curvature = Curvature(2.0, 1.0, records_per_person=records, draws=draws)
    exact = math.sqrt(draws) * 2.0 * 0.1 * records
    assert convex_bounds.gdp_promise(0.1, curvature).mu == pytest.approx(exact, rel=1e-14)
    tail, true = literature.theorem7_delta(0.1, 4.0, curvature), gaussian_delta(exact, 4.0)
    assert true <= tail, "Theorem 7 stretched by k√J still bounds the exact profile"


def test_there_is_no_promise_without_curvature_or_without_a_delta():
    with pytest.raises(InvalidModel, match="flat coordinate"):
        Curvature(1.0, 0.0)
    with pytest.raises(InvalidBudget):
        Curvature(math.inf, 1.0)
    with pytest.raises(PromiseRefused, match="δ = 0"):
        literature.theorem7_weight(1.0, 0.0, UNIT)
    with pytest.raises(PromiseRefused, match="GaussianDP"):
        convex_bounds.gdp_weight(ApproxDP(1.0, 0.0), UNIT)
    with pytest.raises(PromiseRefused, match="Theorem 7 says nothing"):
        literature.theorem7_promise(5.0, 1.0, UNIT)


# ── concrete pairs, by quadrature ──────────────────────────────────────────────────────────────────────────

EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0)
CORNER = np.array([0.6, 0.8])


def profile_excess(pair, mu):
    """The largest of exact δ(ε) − promised δ(ε); above 0 the promise is broken."""
    return max(pair.delta(epsilon) - gaussian_delta(mu, epsilon) for epsilon in EPSILONS)


def pairs_in(dimension):
    """Loss, Lipschitz constant, and worst-looking neighbours: a flipped label, an opposite corner."""
    z = np.array([1.0]) if dimension == 1 else CORNER
    others = [(z * s, y) for s, y in ((0.5, 1), (-1.0, 1), (0.2, -1))]
    return {
        "hinge, label": (hinge, 1.0, [(z, 1)], [(z, -1)]),
        "hinge, corner": (hinge, 1.0, [*others, (z, 1)], [*others, (-z, 1)]),
        "huber, response": (huber(0.5), 0.5, [(z, 4.0)], [(z, -4.0)]),
        "huber, corner": (huber(0.5), 0.5, [*others, (z, 4.0)], [*others, (-z, 4.0)]),
        "logistic, label": (logistic, 1.0, [(z, 1)], [(z, -1)]),
        "logistic, corner": (logistic, 1.0, [*others, (z, 1)], [*others, (-z, 1)]),
    }


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_the_gdp_promise_dominates_the_exact_profile_of_adjacent_pairs(dimension, weight):
    """The prior is tight enough that hinge and Huber stay on their linear pieces, where 2L is attained."""
    precision, slack = 9.0, {}
    for name, (loss, lipschitz, records, neighbour) in pairs_in(dimension).items():
        pair = gibbs_pair(loss, records, neighbour, weight=weight, precision=precision, dimension=dimension, width=3.0)
        mu = convex_bounds.gdp_promise(weight, Curvature(2 * lipschitz, precision)).mu
        assert profile_excess(pair, mu) <= 1e-6, name
        slack[name] = gaussian_delta(mu, 0.0) / pair.delta(0.0)
    print({name: round(value, 2) for name, value in slack.items()})
    assert slack["hinge, label"] < 1.05
    assert slack["huber, response"] < 1.05
    assert 1.8 < slack["logistic, label"] < 2.2, "a flipped label differs by θᵀz only: half of what 2L allows"


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("name", ["hinge, label", "hinge, corner", "huber, response", "huber, corner"])
def test_a_lipschitz_constant_halved_is_caught(dimension, name):
    loss, lipschitz, records, neighbour = pairs_in(dimension)[name]
    pair = gibbs_pair(loss, records, neighbour, weight=1.0, precision=9.0, dimension=dimension, width=3.0)
    faulty = convex_bounds.gdp_promise(1.0, Curvature(lipschitz, 9.0)).mu
    assert profile_excess(pair, faulty) > 1e-3


@pytest.mark.parametrize("precision", [9.0, 1.0])
def test_restricting_to_a_ball_keeps_the_gdp_promise(precision):
    """Theorem 10 without its constant: the ball may cut off most of the posterior."""
    z = np.array([1.0])
    for radius in (0.2, 1.0, 3.0):
        pair = gibbs_pair(hinge, [(z, 1)], [(z, -1)], weight=1.0, precision=precision, radius=radius)
        assert profile_excess(pair, convex_bounds.gdp_promise(1.0, Curvature(2.0, precision)).mu) <= 1e-6


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_bounded_loss_stays_below_epsilon_and_a_flipped_label_at_the_corner_reaches_half(dimension, epsilon):
    z, radius = (np.array([1.0]) if dimension == 1 else CORNER), 2.0
    weight = gibbs.bounded_weight(epsilon, gibbs.loss_range(radius))  # logistic: Δ = B = R‖z‖
    flipped = gibbs_pair(
        logistic, [(z, 1)], [(z, -1)], weight=weight, precision=0.5, radius=radius, dimension=dimension
    )
    assert 0.45 * epsilon <= flipped.supremum <= epsilon
    assert flipped.range <= gibbs.bounded_promise(weight, 2 * radius).stated_epsilon * (1 + 1e-9)
    skewed = [(z, 1)] * 60
    pair = gibbs_pair(
        logistic,
        [*skewed, (z, 1)],
        [*skewed, (z, -1)],
        weight=weight,
        precision=0.5,
        radius=radius,
        dimension=dimension,
    )
    assert flipped.supremum < pair.supremum <= epsilon, "others that agree push the pair towards ε"
    assert pair.delta(epsilon) == 0.0
    doubled = gibbs_pair(
        logistic,
        [*skewed, (z, 1)],
        [*skewed, (z, -1)],
        weight=2.5 * weight,
        precision=0.5,
        radius=radius,
        dimension=dimension,
    )
    assert doubled.supremum > epsilon, "a weight 2.5 times too large is caught"


@pytest.mark.parametrize(("response", "radius"), [(2.0, 1.0), (0.5, 1.5)])
def test_the_range_of_least_squares_on_a_ball_is_attained(response, radius):
    """ϱ = 4YB if B ≤ Y, (Y+B)² otherwise: opposite responses, or a record that says nothing."""
    sensitivity = (response + radius) ** 2 / 2
    sharp = 4 * response * radius if radius <= response else (response + radius) ** 2
    weight = gibbs.bounded_weight(1.0, gibbs.loss_range(sensitivity, sharp))
    z = np.array([1.0])
    ranges = [
        gibbs_pair(squares, [(z, response)], [other], weight=weight, precision=0.1, radius=radius).range
        for other in ((z, -response), (-z, response), (0 * z, 0.0))
    ]
    assert max(ranges) <= 1.0 + 1e-9
    if radius <= response:
        assert max(ranges) == pytest.approx(1.0, rel=1e-6)
    else:
        assert max(ranges) > 0.45


def test_the_profile_by_quadrature_agrees_with_the_gaussian_closed_form():
    z = np.array([1.0])
    pair = gibbs_pair(linear, [(z, 1)], [(z, -1)], weight=0.4, precision=1.0, width=12.0)
    for epsilon in EPSILONS:
        assert pair.delta(epsilon) == pytest.approx(gaussian_delta(0.8, epsilon), abs=1e-7)
    assert all(a >= b for a, b in pairwise(pair.delta(epsilon) for epsilon in EPSILONS))
    assert gaussian_mu(1.0, pair.delta(1.0)) == pytest.approx(0.8, rel=1e-4)
