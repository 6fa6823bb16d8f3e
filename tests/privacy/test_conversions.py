"""Oracle: every conversion against 50-digit arithmetic or brute force; never on the wrong side, and close."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.privacy import conversions

pytestmark = pytest.mark.oracle


mpmath.mp.dps = 50
many = settings(deadline=None, print_blob=True, max_examples=150)
few = settings(deadline=None, print_blob=True, max_examples=25)

epsilons = st.floats(min_value=1e-6, max_value=30.0)
scales = st.floats(min_value=1e-4, max_value=20.0)
deltas = st.floats(min_value=-13.0, max_value=-0.31).map(lambda exponent: 10.0**exponent)
orders = st.floats(min_value=-6.0, max_value=6.0).map(lambda exponent: 1.0 + 10.0**exponent)


def normal(value):
    """Φ to 50 digits however far out, where mpmath's own ncdf loses relative precision."""
    return mpmath.erfc(-value / mpmath.sqrt(2)) / 2


def exact_gaussian_delta(mu, epsilon):
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return normal(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * normal(-mu / 2 - epsilon / mu)


# ── GaussianDP ──


@pytest.mark.parametrize(("epsilon", "delta", "printed"), [(1.0, 1e-5, "0.2680511"), (0.1, 1e-3, "0.0574567")])
def test_the_reference_values_of_mu_to_every_digit(epsilon, delta, printed):
    mu = conversions.gaussian_mu(epsilon, delta)
    digits = len(printed) - 2
    assert f"{mu:.{digits}f}" == printed
    assert exact_gaussian_delta(mu, epsilon) <= delta < exact_gaussian_delta(mu * (1 + 1e-9), epsilon)


@many
@given(scales, epsilons)
def test_the_gaussian_profile_is_rounded_up_and_close(mu, epsilon):
    exact = exact_gaussian_delta(mu, epsilon)
    ours = conversions.gaussian_delta(mu, epsilon)
    assert exact <= ours <= float(exact) * (1 + 1e-5) + 1e-300


@pytest.mark.parametrize(("mu", "epsilon"), [(1e-3, 0.03), (0.5, 15.0), (30.0, 3.0), (2.0, 70.0), (1e-9, 0.0)])
def test_the_gaussian_profile_at_its_extremes(mu, epsilon):
    exact = exact_gaussian_delta(mu, epsilon)
    ours = conversions.gaussian_delta(mu, epsilon)
    assert exact <= ours <= float(exact) * (1 + 1e-4) + 1e-300


@pytest.mark.parametrize(("mu", "epsilon"), [(1e-5, 1.0), (1e-300, 1e300), (1e-320, 1.0)])
def test_a_gaussian_delta_that_underflows_is_still_not_zero(mu, epsilon):
    assert 0.0 < conversions.gaussian_delta(mu, epsilon) < 1e-290


@many
@given(scales, deltas)
def test_the_gaussian_epsilon_is_rounded_up_and_close(mu, delta):
    epsilon = conversions.gaussian_epsilon(mu, delta)
    assert exact_gaussian_delta(mu, epsilon) <= delta
    if epsilon > 0.0:
        assert exact_gaussian_delta(mu, epsilon * (1 - 1e-7) - 1e-12) > delta


@many
@given(epsilons, deltas)
def test_mu_of_epsilon_and_delta_is_rounded_down_and_close(epsilon, delta):
    mu = conversions.gaussian_mu(epsilon, delta)
    assert conversions.gaussian_delta(mu, epsilon) <= delta
    assert exact_gaussian_delta(mu, epsilon) <= delta
    assert exact_gaussian_delta(mu * (1 + 1e-5), epsilon) > delta


def test_no_delta_means_no_gaussian():
    assert conversions.gaussian_mu(1.0, 0.0) == 0.0
    assert conversions.gaussian_epsilon(1.0, 0.0) == math.inf


@many
@given(st.lists(st.tuples(scales, st.integers(1, 1000)), min_size=1, max_size=5))
def test_gaussians_compose_by_root_of_squares(parts):
    exact = mpmath.sqrt(sum(times * mpmath.mpf(mu) ** 2 for mu, times in parts))
    ours = conversions.compose_gaussian(parts)
    assert exact <= ours <= float(exact) * (1 + 1e-15)


# ── PureDP ──


@many
@given(st.floats(min_value=1e-12, max_value=700.0))
def test_a_pure_promise_is_gaussian_where_both_errors_meet(epsilon):
    mu = conversions.pure_to_gaussian(epsilon)
    kink = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
    assert normal(-mpmath.mpf(mu) / 2) <= kink
    assert normal(-mpmath.mpf(mu) * (1 - mpmath.mpf("1e-11")) / 2) > kink


@many
@given(epsilons, st.floats(min_value=0.0, max_value=1.5))
def test_the_pure_profile_is_that_of_randomised_response(epsilon, share):
    asked = share * epsilon
    high = mpmath.exp(mpmath.mpf(epsilon)) / (1 + mpmath.exp(mpmath.mpf(epsilon)))
    exact = mpmath.mpf(0)
    if asked < epsilon:
        exact = high - mpmath.exp(mpmath.mpf(asked)) * (1 - high)
    ours = conversions.pure_delta(epsilon, asked)
    assert exact <= ours <= float(exact) * (1 + 1e-9) + 1e-300
    assert (ours == 0.0) == (asked >= epsilon)


@many
@given(epsilons, deltas)
def test_the_pure_profile_and_its_inverse_agree(epsilon, delta):
    found = conversions.pure_epsilon(epsilon, delta)
    assert 0.0 <= found <= epsilon
    high = mpmath.exp(mpmath.mpf(epsilon)) / (1 + mpmath.exp(mpmath.mpf(epsilon)))
    assert high - mpmath.exp(mpmath.mpf(found)) * (1 - high) <= delta
    if found > 0.0:
        lower = mpmath.mpf(found) * (1 - mpmath.mpf("1e-9"))
        assert high - mpmath.exp(lower) * (1 - high) > delta * (1 - 1e-6)


@many
@given(epsilons, orders)
def test_the_pure_curve_is_that_of_randomised_response(epsilon, order):
    alpha, exponent = mpmath.mpf(order), mpmath.mpf(epsilon)
    ratio = (mpmath.exp(alpha * exponent) + mpmath.exp((1 - alpha) * exponent)) / (1 + mpmath.exp(exponent))
    exact = mpmath.log(ratio) / (alpha - 1)
    ours = float(conversions.pure_renyi_divergence(epsilon, np.array([order]))[0])
    assert exact * (1 - mpmath.mpf("1e-40")) <= ours <= float(exact) * (1 + 1e-10)
    assert ours <= epsilon
    assert ours <= epsilon**2 * order / 2 * (1 + 1e-12)


def test_pure_to_zcdp_is_half_the_square_or_the_epsilon_itself():
    assert conversions.pure_to_zcdp(0.5) == 0.125
    assert conversions.pure_to_zcdp(10.0) == 10.0


# ── BoundedRange ──


def response_profile(epsilon, upper, asked):
    """δ of one generalised randomised response: log-ratio ``upper`` or ``upper − epsilon``."""
    mass = mpmath.expm1(upper - epsilon) / mpmath.expm1(-epsilon)
    return mass * max(mpmath.mpf(0), -mpmath.expm1(asked - upper))


@few
@given(st.floats(min_value=1e-3, max_value=10.0), st.floats(min_value=0.0, max_value=0.999))
def test_the_range_profile_is_the_envelope_of_generalised_responses(epsilon, share):
    ours = conversions.bounded_range_delta(epsilon, share * epsilon)
    epsilon, asked = mpmath.mpf(epsilon), mpmath.mpf(share * epsilon)
    brute = max(response_profile(epsilon, asked + (epsilon - asked) * step / 400, asked) for step in range(401))
    assert brute <= ours <= float(brute) * (1 + 1e-4)


@many
@given(epsilons, deltas)
def test_the_range_profile_and_its_inverse_agree(epsilon, delta):
    found = conversions.bounded_range_epsilon(epsilon, delta)
    assert 0.0 <= found <= epsilon
    root = mpmath.expm1((mpmath.mpf(found) - mpmath.mpf(epsilon)) / 2)
    assert root**2 / -mpmath.expm1(-mpmath.mpf(epsilon)) <= delta
    if found > 0.0:
        assert conversions.bounded_range_delta(epsilon, found * (1 - 1e-9)) >= delta * (1 - 1e-6)


@few
@given(st.floats(min_value=1e-3, max_value=10.0), st.floats(-3.0, 3.0).map(lambda power: 1 + 10.0**power))
def test_the_range_curve_is_the_largest_over_generalised_responses(epsilon, order):
    exponent, alpha = mpmath.mpf(epsilon), mpmath.mpf(order)

    def divergence(upper):
        mass = mpmath.expm1(upper - exponent) / mpmath.expm1(-exponent)
        moment = mass * mpmath.exp((alpha - 1) * upper) + (1 - mass) * mpmath.exp((alpha - 1) * (upper - exponent))
        return mpmath.log(moment) / (alpha - 1)

    brute = max(divergence(exponent * step / 300) for step in range(301))
    peak = (alpha - 1) / alpha * mpmath.expm1(alpha * exponent) / mpmath.expm1((alpha - 1) * exponent)
    worst = divergence(mpmath.log(peak))
    ours = float(conversions.bounded_range_renyi_divergence(epsilon, np.array([order]))[0])
    assert brute <= worst * (1 + mpmath.mpf("1e-30"))
    assert worst * (1 - mpmath.mpf("1e-30")) <= ours <= float(worst) * (1 + 1e-8)


@many
@given(epsilons, orders)
def test_the_range_curve_never_exceeds_the_known_bounds(epsilon, order):
    ours = float(conversions.bounded_range_renyi_divergence(epsilon, np.array([order]))[0])
    assert 0.0 < ours <= min(epsilon, epsilon**2 * order / 8 * (1 + 1e-12))


@many
@given(st.floats(min_value=1e-8, max_value=500.0))
def test_log_sinhc_keeps_its_digits(value):
    exact = mpmath.log(mpmath.sinh(mpmath.mpf(value)) / mpmath.mpf(value))
    assert float(conversions.log_sinhc(np.array([value]))[0]) == pytest.approx(float(exact), rel=1e-14)


# ── RenyiDP ──


def exact_renyi_epsilon(rho, delta, order):
    alpha = mpmath.mpf(order)
    cost = (mpmath.log(delta) + mpmath.log(alpha)) / (alpha - 1)
    return mpmath.mpf(rho) * alpha + mpmath.log((alpha - 1) / alpha) - cost


@many
@given(st.floats(-10.0, 4.0).map(lambda power: 10.0**power), deltas)
def test_the_conversion_of_a_line_is_rounded_up_and_nearly_the_best(rho, delta):
    found = conversions.renyi_epsilon(lambda orders: rho * orders, delta)
    assert found.value == 0.0 or exact_renyi_epsilon(rho, delta, found.order) <= found.value
    best = min(exact_renyi_epsilon(rho, delta, 1 + 10.0 ** (power / 20)) for power in range(-120, 160))
    assert found.value <= max(0.0, float(best)) * (1 + 1e-9)


@many
@given(st.floats(-6.0, 2.0).map(lambda power: 10.0**power), st.floats(min_value=0.0, max_value=50.0))
def test_the_delta_of_a_line_is_rounded_up_and_inverts_the_epsilon(rho, epsilon):
    found = conversions.renyi_delta(lambda orders: rho * orders, epsilon)
    if 1e-290 < found.value < 1.0:
        alpha = mpmath.mpf(found.order)
        drift = mpmath.mpf(rho) * alpha - mpmath.mpf(epsilon) + mpmath.log((alpha - 1) / alpha)
        assert mpmath.exp((alpha - 1) * drift) / alpha <= found.value
        back = conversions.renyi_epsilon(lambda orders: rho * orders, found.value).value
        assert back <= epsilon * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("below", [1.0001, 1.5, 2.0, 1e6])
def test_the_best_order_stays_below_the_limit_and_may_lie_close_to_it(below):
    found = conversions.renyi_epsilon(lambda orders: np.full(orders.shape, 0.01), 1e-5, below=below)
    assert 1.0 < found.order < below
    # A flat curve is best at its largest order, here the last float below the limit.
    last = math.nextafter(below, 1.0)
    here = exact_renyi_epsilon(0.0, 1e-5, last) + mpmath.mpf("0.01")
    assert found.value <= max(0.0, float(here)) * (1 + 1e-9) + 1e-9


def test_a_curve_that_is_infinite_everywhere_promises_nothing():
    def infinite(orders):
        return np.full(orders.shape, math.inf)

    assert conversions.renyi_epsilon(infinite, 1e-5).value == math.inf
    assert conversions.renyi_delta(infinite, 1.0).value == 1.0


def test_a_curve_of_nans_is_read_as_infinite():
    def broken(orders):
        return np.full(orders.shape, math.nan)

    assert conversions.renyi_epsilon(broken, 1e-5).value == math.inf
    assert conversions.renyi_delta(broken, 1.0).value == 1.0


# ── groups and total variation ──


@many
@given(epsilons, deltas, st.integers(min_value=1, max_value=50))
def test_the_delta_of_a_group_is_rounded_up(epsilon, delta, size):
    exponent = mpmath.mpf(epsilon)
    exact = mpmath.mpf(delta) * mpmath.expm1(size * exponent) / mpmath.expm1(exponent)
    ours = conversions.group_approx_delta(epsilon, delta, size)
    assert ours >= exact * (1 - mpmath.mpf("1e-40"))
    assert ours == math.inf or ours <= float(exact) * (1 + 1e-9)


@many
@given(st.floats(min_value=0.0, max_value=100.0), st.floats(min_value=1e-300, max_value=1.0))
def test_the_price_of_total_variation_is_rounded_up(epsilon, gamma):
    exact = (1 + mpmath.exp(mpmath.mpf(epsilon))) * mpmath.mpf(gamma)
    assert exact <= conversions.total_variation_delta(epsilon, gamma) <= float(exact) * (1 + 1e-11)
