"""Unit and oracle: compositions, exact where they can be, and γ as an entry of its own."""

import json
import math
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest

from onedraw.errors import InvalidBudget
from onedraw.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRange,
    Composed,
    GaussianDP,
    LinearCurve,
    Promise,
    PureDP,
    RenyiDP,
    compose,
    pld,
)
from onedraw.privacy.pld import randomised_response

# ── the exact routes ──


def test_four_hundred_small_pure_promises_add_up_exactly_and_quickly():
    before = time.perf_counter()
    spent = compose(*[PureDP(2.0**-7)] * 400)
    assert spent.epsilon(0.0) == 3.125
    assert spent.implies(PureDP(3.125))
    assert spent.implies(ApproxDP(3.125, 0.0))
    assert not compose(spent, PureDP(2.0**-7)).implies(PureDP(3.125))
    assert time.perf_counter() - before < 0.5


def test_four_hundred_hundredths_are_not_quite_four():
    hundredth = PureDP(0.01)
    assert Fraction(0.01) * 400 > 4
    assert not compose(*[hundredth] * 400).implies(PureDP(4.0))
    assert compose(*[hundredth] * 399).implies(PureDP(4.0))


def test_a_growing_ledger_of_pure_promises_stays_quick():
    spent, before = compose(), time.perf_counter()
    for _ in range(400):
        spent = compose(spent, PureDP(2.0**-7))
        assert spent.implies(PureDP(3.125))
    assert time.perf_counter() - before < 10.0


def test_gaussians_compose_exactly():
    spent = compose(*[GaussianDP(0.1)] * 25, GaussianDP(math.sqrt(0.75)))
    assert spent.gaussian_mu == pytest.approx(1.0, rel=1e-15)
    assert spent.epsilon(1e-5) == pytest.approx(GaussianDP(1.0).epsilon(1e-5), rel=1e-12)
    assert compose(GaussianDP(3.0), GaussianDP(4.0)).gaussian_mu == 5.0
    assert compose(GaussianDP(3.0), GaussianDP(4.0)).implies(GaussianDP(5.0))


def test_concentrated_promises_add_their_rho():
    spent = compose(ZCDP(0.25), ZCDP(0.25), GaussianDP(1.0), BoundedRange(2.0), RenyiDP(LinearCurve(0.25)))
    assert spent.zcdp_rho == 0.25 * 3 + 0.5 + 0.5
    assert spent.implies(ZCDP(1.75))
    assert not spent.implies(ZCDP(1.74))


def test_renyi_pairs_compose_at_the_smaller_order():
    spent = compose(RenyiDP.at(8.0, 0.5), RenyiDP.at(4.0, 0.25))
    assert spent.implies(RenyiDP.at(4.0, 0.75 * (1 + 1e-12)))
    assert not spent.implies(RenyiDP.at(4.5, 100.0))


def test_ranges_do_not_add_because_later_ones_may_be_placed_in_view_of_earlier_ones():
    assert compose(BoundedRange(1.0)).implies(BoundedRange(1.0))
    twice = compose(BoundedRange(1.0), BoundedRange(1.0))
    assert not twice.implies(BoundedRange(2.0))
    assert twice.implies(PureDP(2.0))
    assert twice.implies(BoundedRange(4.0))


def test_approximate_promises_add_both_numbers_at_least():
    spent = compose(*[ApproxDP(2.0**-7, 2.0**-30)] * 64)
    assert spent.implies(ApproxDP(0.5, 2.0**-24))
    assert spent.delta(0.5) == 2.0**-24
    assert spent.epsilon(2.0**-25) == math.inf
    assert spent.epsilon(1e-5) < 0.5


def test_a_single_part_is_worth_what_it_is_alone():
    for part in (
        PureDP(1.0),
        BoundedRange(1.0),
        GaussianDP(0.5),
        ZCDP(0.1),
        RenyiDP.at(4.0, 0.5),
        ApproxDP(1.0, 1e-6),
    ):
        alone = compose(part)
        for delta in (1e-6, 1e-4):
            assert alone.epsilon(delta) == pytest.approx(part.epsilon(delta), rel=1e-9)
        assert alone.delta(0.7) == pytest.approx(part.delta(0.7), rel=1e-9)
        assert alone.implies(part)
        assert part.implies(alone)


def test_nothing_released_implies_everything():
    nothing = compose()
    assert nothing.epsilon(0.0) == 0.0 == nothing.delta(0.0)
    for promise in (PureDP(1e-9), ApproxDP(1e-9, 0.0), RenyiDP.at(50.0, 1e-9), GaussianDP(1e-9), nothing):
        assert nothing.implies(promise)


# ── the privacy-loss route ──


def exact_randomised_responses(epsilon, times, asked):
    """δ of k randomised responses, from the binomial law, in 50 digits."""
    with mpmath.workdps(50):
        high = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        total = mpmath.mpf(0)
        for count in range(times + 1):
            loss = (2 * count - times) * mpmath.mpf(epsilon)
            if loss > asked:
                mass = mpmath.binomial(times, count) * high**count * (1 - high) ** (times - count)
                total -= mass * mpmath.expm1(mpmath.mpf(asked) - loss)
        return total


@pytest.mark.parametrize(("epsilon", "times"), [(2.0**-7, 400), (0.1, 30), (1.0, 10)])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_equal_pure_promises_are_nearly_as_good_as_the_binomial_law(epsilon, times, delta):
    found = compose(*[PureDP(epsilon)] * times).epsilon(delta)
    assert exact_randomised_responses(epsilon, times, found) <= delta
    assert exact_randomised_responses(epsilon, times, found * 0.995) > delta


def test_the_noise_granted_to_the_convolution_is_well_above_the_noise_found():
    profile = pld.upper_profile(((randomised_response(2.0**-7), 400),))
    for epsilon in (0.0, 0.1, 0.3, 0.625, 1.0, 2.0):
        exact = exact_randomised_responses(2.0**-7, 400, epsilon)
        found = float(profile.distribution.get_delta_for_epsilon(epsilon))
        assert abs(found - exact) < profile.noise / 50
        assert exact <= profile.delta(epsilon) <= exact + 2 * profile.noise


def test_a_tiny_part_beside_a_large_one_does_not_make_the_grid_explode():
    before = time.perf_counter()
    together = compose(PureDP(1e-9), PureDP(1.0), GaussianDP(1e-6)).epsilon(1e-6)
    assert PureDP(1.0).epsilon(1e-6) <= together <= 1.001
    assert time.perf_counter() - before < 20.0


def test_mixed_parts_are_better_than_any_cheap_route():
    spent = compose(GaussianDP(0.5), *[PureDP(0.05)] * 20, BoundedRange(0.5), ApproxDP(0.1, 1e-8))
    cheap = replace(spent._routes, pairs=None)
    assert spent.epsilon(1e-5) < 0.97 * (cheap.epsilon(1e-5 - 1e-8))
    assert spent.delta(2.0) < 0.9 * cheap.delta(2.0)


def test_an_over_budget_answer_asks_every_route_and_a_kept_one_only_the_cheap_ones():
    program = (
        "import sys\n"
        "from onedraw.privacy import ApproxDP, GaussianDP, PureDP, compose\n"
        "spent = compose(*[PureDP(0.01)] * 50, GaussianDP(0.1))\n"
        "assert spent.implies(ApproxDP(3.0, 1e-6)) and spent.implies(ApproxDP(1.1, 1e-5))\n"
        "assert 'dp_accounting' not in sys.modules\n"
        "assert not spent.implies(ApproxDP(0.2, 1e-6))\n"
        "assert 'dp_accounting' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_importing_the_room_loads_nothing_heavy():
    program = (
        "import sys, onedraw.privacy\n"
        "heavy = {'jax', 'sklearn', 'dp_accounting', 'scipy.stats', 'scipy.optimize', 'scipy.signal'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# ── γ ──


def test_gamma_is_paid_once_at_the_epsilon_reached():
    exact = compose(PureDP(0.5), PureDP(0.5))
    near = compose(PureDP(0.5), PureDP(0.5), gammas=[1e-9, 2e-9])
    assert near.gamma == pytest.approx(3e-9)
    assert near.delta(1.0) == pytest.approx(exact.delta(1.0) + (1 + math.e) * 3e-9, rel=1e-9)
    epsilon = near.epsilon(1e-5)
    assert exact.epsilon(1e-5) < epsilon < exact.epsilon(0.9e-5) * 1.001
    assert exact.delta(epsilon) + (1 + math.exp(epsilon)) * 3e-9 <= 1e-5 * (1 + 1e-9)


def test_with_gamma_only_epsilon_delta_promises_follow():
    near = compose(PureDP(0.5), gammas=[1e-9])
    assert near.implies(ApproxDP(0.5, 3e-9))
    assert not near.implies(ApproxDP(0.5, 1e-9))
    for promise in (PureDP(10.0), ZCDP(10.0), GaussianDP(10.0), RenyiDP.at(2.0, 10.0), BoundedRange(10.0)):
        assert not near.implies(promise)


def test_at_a_large_epsilon_a_smaller_one_is_used():
    near = compose(GaussianDP(0.5), gammas=[1e-12])
    assert (1 + math.exp(40.0)) * 1e-12 > 1.0
    assert near.delta(40.0) < 1e-9
    assert near.delta(1e6) == pytest.approx(near.delta(40.0), rel=0.05)


def test_a_gamma_that_uses_up_delta_leaves_no_epsilon():
    assert compose(PureDP(0.5), gammas=[1e-5]).epsilon(1e-5) == math.inf


@pytest.mark.parametrize("gammas", [[0.6, 0.5], [1.0], [-1e-9], [math.nan]])
def test_gammas_that_leave_nothing_are_refused(gammas):
    with pytest.raises(InvalidBudget):
        compose(PureDP(1.0), gammas=gammas)


# ── as a value ──


def test_compositions_are_flattened_and_do_not_depend_on_order():
    one, two, three = PureDP(1.0), GaussianDP(0.5), PureDP(0.5)
    left = compose(compose(one, two, gammas=[1e-9]), three)
    right = compose(three, compose(two), one, gammas=[1e-9])
    assert left == right
    assert hash(left) == hash(right)
    assert len(left.parts) == 3


def test_equal_parts_are_stored_once():
    spent = compose(*[PureDP(2.0**-7)] * 400, GaussianDP(0.5))
    stored = json.loads(json.dumps(spent.to_dict()))
    assert len(stored["parts"]) == 2
    assert Promise.from_dict(stored) == spent


def test_parts_must_be_single_promises():
    with pytest.raises(InvalidBudget, match="single promises"):
        Composed((1.0,))
    with pytest.raises(InvalidBudget, match="flattens"):
        Composed((compose(PureDP(1.0)),))


def test_a_composition_is_implied_part_by_part():
    budget = compose(PureDP(1.0), GaussianDP(0.5), gammas=[1e-9])
    assert PureDP(0.9).implies(budget)
    assert compose(PureDP(0.9), GaussianDP(0.5)).implies(budget)
    assert compose(PureDP(0.3), gammas=[1e-10]).implies(budget)
    assert not compose(PureDP(0.3), gammas=[1e-8]).implies(budget)
    assert not compose(PureDP(0.4), PureDP(0.4), PureDP(0.4)).implies(budget)
    assert not compose(PureDP(1.1)).implies(budget)
    assert compose(PureDP(0.4), PureDP(0.4)).implies(compose(PureDP(0.8), PureDP(0.1)))


@pytest.mark.parametrize("large", [BoundedRange(2000.0), PureDP(1e6), GaussianDP(60.0), ApproxDP(1e4, 1e-9)], ids=str)
def test_losses_too_large_for_a_float_still_compose(large):
    """A budget of ε = 10⁶ is for trying things out; its ledger must still close."""
    spent = compose(large, GaussianDP(1.0), PureDP(0.5))
    assert large.epsilon(1e-4) <= spent.epsilon(1e-4) < math.inf
    assert 0.0 <= spent.delta(2e6) <= 1e-6
