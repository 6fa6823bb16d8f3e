"""Promises of earlier versions that ledgers and certificates hold: read back, worth what they were, counted at least so in compositions."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.errors import InvalidBudget
from onedraw.privacy import (
    ZCDP,
    ApproxDP,
    Corner,
    CornerDP,
    GaussianDP,
    Promise,
    PureDP,
    RenyiDP,
    certify,
    compose,
)
from onedraw.privacy.retired import profile, shifted_delta
from tests.privacy.cases import gaussian_profile
from tests.privacy.test_promises_properties import singles

many = settings(deadline=None, print_blob=True, max_examples=50)
few = settings(deadline=None, print_blob=True, max_examples=6)

numbers = st.floats(-4.0, 1.0).map(lambda power: 10.0**power)
corners = st.builds(Corner, st.integers(1, 4), st.one_of(st.just(0.0), numbers), st.one_of(st.just(0.0), numbers))
promises = (
    st.lists(corners, min_size=1, max_size=4)
    .filter(lambda terms: any(term.square or term.shift for term in terms))
    .map(lambda terms: CornerDP(tuple(terms)))
)
deltas = st.floats(-12.0, -1.0).map(lambda power: 10.0**power)

FIT = CornerDP((Corner(1, 0.05, 0.2), Corner(2, 0.0125, 0.2)))


def plainly(terms, epsilon):
    """The definition, without any care for rounding."""
    singles = (
        times
        * (
            float(gaussian_profile(math.sqrt(square), epsilon - shift))
            if square
            else -math.expm1(min(0.0, epsilon - shift))
        )
        for times, square, shift in terms
    )
    return min(1.0, sum(singles))


@many
@given(promises)
def test_a_corner_polynomial_survives_json_and_pickle_and_is_hashable(promise):
    assert Promise.from_dict(json.loads(json.dumps(promise.to_dict(), allow_nan=False))) == promise
    assert pickle.loads(pickle.dumps(promise)) == promise
    assert hash(Promise.from_dict(promise.to_dict())) == hash(promise)
    curve = promise.renyi
    assert Promise.from_dict(json.loads(json.dumps(curve.to_dict(), allow_nan=False))) == curve
    assert Promise.from_dict(compose(promise, promise).to_dict()) == compose(promise, promise)


@pytest.mark.parametrize(
    "terms",
    [
        (),
        ((1, 0.0, 0.0),),
        ((0, 1.0, 0.0),),
        ((1, -1.0, 0.0),),
        ((1, math.nan, 0.0),),
        ((1, 1.0, -0.1),),
        ((1, math.inf, 0.0),),
        ((1.5, 1.0, 0.0),),
    ],
)
def test_a_corner_that_no_promise_can_be_made_of_is_refused(terms):
    with pytest.raises(InvalidBudget):
        CornerDP(tuple(Corner(*term) for term in terms))


@pytest.mark.parametrize("stored", [None, [{"times": 1, "square": 1.0}], [[1, 1.0]], ["abc"], [7]])
def test_stored_terms_of_another_shape_are_refused(stored):
    with pytest.raises(InvalidBudget):
        Promise.from_dict({"kind": "CornerDP", "terms": stored})


def test_equal_corners_in_any_order_are_one_promise():
    assert CornerDP((Corner(1, 0.5, 0.1), Corner(2, 0.1, 0.1))) == CornerDP(
        (Corner(1, 0.1, 0.1), Corner(1, 0.5, 0.1), Corner(1, 0.1, 0.1))
    )


# ── the profile ──


@many
@given(promises, st.floats(-5.0, 5.0))
def test_the_profile_is_the_definition_rounded_up_at_every_real_epsilon(promise, epsilon):
    exact = plainly(promise.terms, epsilon)
    assert exact * (1 - 1e-9) - 1e-15 <= profile(promise.terms, epsilon) <= exact * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.2, 3.0, 60.0])
@pytest.mark.parametrize("epsilon", [-800.0, -30.0, -1.0, -1e-9, 0.0, 1e-9, 1.0, 30.0, 800.0])
def test_the_gaussian_profile_is_sound_far_out_on_both_sides(mu, epsilon):
    """Against 60 digits, where a difference of tails keeps them."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        a, b = mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu, -mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu
        tail = lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2  # noqa: E731
        exact = tail(a) - mpmath.exp(epsilon) * tail(b)
        found = shifted_delta(mu, epsilon)
        assert found >= exact
        assert found <= exact * (1 + mpmath.mpf(10) ** -6) + mpmath.mpf(2) ** -990


@many
@given(promises, deltas)
def test_epsilon_and_delta_are_inverse_and_imply_the_budget(promise, delta):
    epsilon = promise.epsilon(delta)
    assert promise.delta(epsilon) <= delta
    if epsilon > 1e-6:
        assert promise.delta(epsilon * (1 - 1e-6)) >= delta * (1 - 1e-3)
        assert promise.implies(ApproxDP(epsilon, delta))
        assert not promise.implies(ApproxDP(epsilon * (1 - 1e-6), delta * (1 - 1e-2)))


def test_special_cases_are_the_promises_one_knows():
    gaussian, pure = CornerDP((Corner(1, 0.25, 0.0),)), CornerDP((Corner(1, 0.0, 0.3),))
    assert gaussian.implies(GaussianDP(0.5))
    assert gaussian.epsilon(1e-5) == pytest.approx(GaussianDP(0.5).epsilon(1e-5), rel=1e-12)
    assert pure.pure_epsilon == pure.epsilon(0.0) == 0.3
    assert pure.implies(PureDP(0.3))
    assert pure.delta(0.3) == 0.0
    assert FIT.epsilon(0.0) == math.inf
    assert not FIT.implies(GaussianDP(0.5))
    assert not FIT.implies(PureDP(50.0))


# ── together with others ──


@pytest.mark.parametrize("mu", [0.05, 0.3])
@pytest.mark.parametrize("fits", [1, 3])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_a_composition_is_never_counted_below_the_convolution_of_its_losses(fits, mu, delta):
    """Plain nested sums of the definition: what an account shows for old fits is at least what they cost."""
    nested = [(1, mu**2, 0.0)]
    for _ in range(fits):
        nested = [(t * u, s + v, k + m) for t, s, k in nested for u, v, m in FIT.terms]
    epsilon = compose(*[FIT] * fits, GaussianDP(mu)).epsilon(delta)
    assert plainly(nested, epsilon) <= delta
    assert plainly(nested, epsilon / 1.3) > delta  # and not much above it


def test_very_many_fits_are_counted_by_the_renyi_curve():
    small = CornerDP((Corner(1, 1e-6, 1e-4), Corner(2, 2.5e-7, 1e-4)))
    assert compose(*[FIT] * 10).epsilon(1e-5) == compose(*[FIT] * 10).renyi.epsilon(1e-5)
    assert compose(*[small] * 5000).epsilon(1e-5) < math.inf


def test_an_approximate_part_and_a_distance_are_paid_once():
    whole = compose(FIT, ApproxDP(0.1, 1e-7), gammas=[1e-9])
    assert compose(FIT, PureDP(0.1)).delta(1.0) + 1e-7 <= whole.delta(1.0)
    assert not whole.implies(CornerDP((Corner(9, 1.0, 1.0),)))


# ── Rényi ──


def test_the_renyi_curve_bounds_the_moments_of_a_mechanism_that_keeps_the_promise():
    """The Gaussian mechanism with the widest corner keeps it, and so does any with fewer corners."""
    curve = FIT.renyi.curve
    orders = np.array([1.001, 1.5, 2.0, 8.0, 64.0, 1e4])
    assert np.all(curve(orders) >= orders * 0.05 / 2.0)
    assert np.all(np.diff(curve(orders)) >= 0.0)
    assert FIT.epsilon(1e-6) <= FIT.renyi.epsilon(1e-6)
    assert FIT.implies(ZCDP(FIT.zcdp_rho))
    assert FIT.implies(RenyiDP.at(8.0, curve(8.0)))
    assert not FIT.implies(RenyiDP.at(8.0, curve(8.0) * 0.99))


@many
@given(promises, st.floats(1.01, 50.0))
def test_the_line_lies_above_the_curve(promise, order):
    curve = promise.renyi.curve
    assert curve(order) <= curve.slope * order * (1 + 1e-9)


def test_it_implies_itself_and_no_narrower_promise():
    assert FIT.implies(FIT)
    assert not FIT.implies(CornerDP((Corner(3, 0.05, 0.19),)))
    assert not CornerDP((Corner(3, 0.05, 0.2),)).implies(FIT)


@few
@given(st.lists(promises, min_size=1, max_size=2), singles, deltas)
def test_one_release_more_never_costs_less(fits, another, delta):
    before, after = compose(*fits), compose(*fits, another)
    assert after.epsilon(delta) >= before.epsilon(delta) * (1 - 1e-3) - 1e-9
    assert before.implies(after)


def test_the_second_opinion_catches_a_figure_below_the_widest_corner():
    from onedraw.errors import SecondOpinion

    whole = compose(FIT, GaussianDP(0.2))
    assert "confirmed" in certify(whole, epsilon=whole.epsilon(1e-5), delta=1e-5)
    with pytest.raises(SecondOpinion):
        certify(whole, epsilon=0.5, delta=1e-5)


def test_an_old_event_counts_at_least_what_it_was_booked_at():
    """As a ledger of an earlier version holds it: a fit at ε = 1, δ = 1e-6, with its corners as promise."""
    from onedraw.ledger.accounts import Account
    from onedraw.privacy import Unit

    stored = {
        "kind": "CornerDP",
        "terms": [{"times": 1, "square": 0.0478, "shift": 0.1}, {"times": 2, "square": 0.012, "shift": 0.1}],
    }
    fit, budget = Promise.from_dict(stored), ApproxDP(4.0, 1e-5)
    account = Account("people", budget, Unit()).charged(fit, gamma=0.0, part=None)
    assert account.spent().epsilon(1e-5) >= fit.epsilon(1e-5) * (1.0 - 1e-12)
    assert account.total().epsilon() >= fit.epsilon(1e-5)
    another = account.charged(fit, gamma=0.0, part=None)
    assert another.spent().epsilon(1e-5) > 1.2 * fit.epsilon(1e-5)
    while account.has_room_for(fit):
        account = account.charged(fit, gamma=0.0, part=None)
    assert account.spent().epsilon(1e-5) <= 4.0
