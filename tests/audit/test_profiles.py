"""Exact profiles against closed forms, against 30-digit quadrature, and against promises; the reference file's numbers."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import onedraw as od
from onedraw.audit import exact_profile, finite_profile
from onedraw.audit.quadrature import GAUSS, KRONROD, NODES
from onedraw.errors import WrongCall
from onedraw.privacy.conversions import gaussian_delta
from tests.audit.mechanisms import INFINITE, beta_delta, beta_posterior, gaussian, laplace

EPSILONS = (0.0, 0.1, 0.5, 0.9, 1.5, 3.0)


def profile_of(known, **options):
    return exact_profile(*known.logdensities, known.domain, **options)


def between(bracket, truth):
    low, high = bracket
    return low <= truth <= high


# ── closed forms ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def gaussian_profile():
    return profile_of(gaussian(1.0, 0.05))


@pytest.fixture(scope="module")
def laplace_profile():
    return profile_of(laplace(1.0))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delta_of_a_gaussian_shift(gaussian_profile, epsilon):
    truth = gaussian_delta(1.0, epsilon)
    assert gaussian_profile.delta(epsilon) == pytest.approx(truth, abs=1e-10)
    assert between(gaussian_profile.delta_bracket(epsilon), truth)
    low, high = gaussian_profile.delta_bracket(epsilon)
    assert high - low < 1e-9


def test_a_gaussian_shift_has_its_tradeoff_curve_its_mu_and_no_largest_log_ratio(gaussian_profile):
    alphas = np.array([1e-6, 1e-3, 0.05, 0.3, 0.7, 0.99])
    truth = stats.norm.cdf(stats.norm.ppf(1.0 - alphas) - 1.0)
    np.testing.assert_allclose(gaussian_profile.tradeoff(alphas), truth, atol=1e-6)
    assert gaussian_profile.tradeoff([0.0, 1.0]) == pytest.approx([1.0, 0.0])
    assert gaussian_profile.gaussian_mu == pytest.approx(1.0, abs=1e-6)
    assert gaussian_profile.largest_log_ratio == math.inf
    assert gaussian_profile.accuracy == pytest.approx(stats.norm.cdf(0.5), abs=1e-10)
    for order in (1.5, 2.0, 8.0, 32.0):
        assert between(gaussian_profile.renyi_bracket(order), order / 2.0)
        assert gaussian_profile.renyi(order) == pytest.approx(order / 2.0, rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delta_of_laplace(laplace_profile, epsilon):
    truth = max(0.0, -math.expm1((epsilon - 1.0) / 2.0))
    assert laplace_profile.delta(epsilon) == pytest.approx(truth, abs=1e-10)
    assert between(laplace_profile.delta_bracket(epsilon), truth)


def test_laplace_attains_its_log_ratio_its_epsilon_and_its_divergence(laplace_profile):
    assert between(laplace_profile.largest_log_ratio_bracket, 1.0)
    assert laplace_profile.largest_log_ratio == pytest.approx(1.0, abs=1e-10)
    assert laplace_profile.log_ratio_range == pytest.approx(2.0, abs=1e-10)
    for delta in (1e-6, 1e-3, 0.1):
        truth = 1.0 + 2.0 * math.log1p(-delta)
        assert laplace_profile.epsilon(delta) == pytest.approx(truth, abs=1e-7)
        assert between(laplace_profile.epsilon_bracket(delta), truth)
    assert laplace_profile.epsilon(0.0) == pytest.approx(1.0, abs=1e-10)
    for order in (1.5, 2.0, 5.0):
        parts = order * math.exp(order - 1) / (2 * order - 1) + (order - 1) * math.exp(-order) / (2 * order - 1)
        assert between(laplace_profile.renyi_bracket(order), math.log(parts) / (order - 1))


def test_delta_of_beta_posteriors():
    found = profile_of(beta_posterior(0.02))
    for epsilon in EPSILONS:
        truth = beta_delta((3.0, 5.0), (4.0, 4.0), epsilon)
        assert between(found.delta_bracket(epsilon), truth)
        assert found.delta(epsilon) == pytest.approx(truth, abs=1e-10)
    assert found.largest_log_ratio == math.inf  # log x at the end of the interval


def beta_divergence(order, first, second):
    mixed = [order * p + (1.0 - order) * q for p, q in zip(first, second, strict=True)]
    if min(mixed) <= 0.0:
        return math.inf
    return (special.betaln(*mixed) - order * special.betaln(*first) - (1.0 - order) * special.betaln(*second)) / (
        order - 1.0
    )


@pytest.mark.parametrize("first", [(1.5, 3.5), (0.5, 2.5)])
def test_renyi_of_beta_posteriors_and_where_it_becomes_infinite(first):
    """Densities with infinite ends; from λ* on the divergence is infinite, and just below it the bracket is wide but honest."""
    second = first[0] + 1.0, first[1] - 1.0

    def logdensity(law):
        return lambda x: (law[0] - 1.0) * np.log(x[:, 0]) + (law[1] - 1.0) * np.log1p(-x[:, 0])

    found = exact_profile(logdensity(first), logdensity(second), (0.0, 1.0))
    limit = 1.0 + first[0]  # λ*(p ‖ q): λ a − (λ−1)(a+1) > 0
    for order in (1.2, 1.0 + 0.5 * first[0], 1.0 + 0.9 * first[0]):
        truth = max(beta_divergence(order, first, second), beta_divergence(order, second, first))
        low, high = found.renyi_bracket(order)
        assert low <= truth * (1 + 1e-12)
        assert truth <= high * (1 + 1e-12)
    assert found.renyi(limit + 0.1) == math.inf


def test_randomised_response_by_summation():
    truth = special.expit(1.0)
    found = finite_profile([truth, 1.0 - truth], [1.0 - truth, truth])
    assert found.largest_log_ratio == pytest.approx(1.0, abs=1e-12)
    assert found.accuracy == pytest.approx(truth, abs=1e-12)
    for epsilon in (0.0, 0.5, 0.99, 1.5):
        assert found.delta(epsilon) == pytest.approx(max(0.0, truth - math.exp(epsilon) * (1.0 - truth)), abs=1e-14)
    curve = found.tradeoff([0.0, 1.0 - truth, truth, 1.0])
    assert curve == pytest.approx([1.0, 1.0 - truth, math.exp(-1.0) * (1.0 - truth), 0.0], abs=1e-12)
    promise = od.PureDP(1.0)
    assert found.breaks(promise) is None
    assert found.gap(promise) == pytest.approx(1.0)
    assert found.breaks(od.PureDP(0.999)).quantity == "log-ratio"


def test_rational_probabilities_are_summed_exactly():
    first = [Fraction(1, 3), Fraction(1, 6), Fraction(1, 2)]
    second = [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]
    found = finite_profile(first, second)
    assert found.largest_log_ratio == pytest.approx(math.log(1.5), abs=1e-14)
    assert found.delta(0.0) == pytest.approx(1.0 / 12.0, abs=1e-15)
    with pytest.raises(WrongCall, match="exactly 1"):
        finite_profile([Fraction(1, 3), Fraction(1, 3)], [Fraction(1, 2), Fraction(1, 2)])


def test_log_probabilities_may_be_unnormalised_and_tiny():
    logs = np.array([-2000.0, -2001.0, -2050.0])
    other = np.array([-3000.0, -3000.5, -3060.0])
    found = finite_profile(logs, other, log=True)
    p, q = special.softmax(logs), special.softmax(other)
    assert found.largest_log_ratio == pytest.approx(np.max(np.abs(np.log(p / q))), rel=1e-12)


def test_an_outcome_too_rare_to_be_written_down_counts():
    found = finite_profile([0.0, -2000.0], [0.0, -2003.0], log=True)
    assert found.largest_log_ratio == pytest.approx(3.0)
    assert found.breaks(od.PureDP(2.9)) is not None


def test_an_outcome_only_one_data_set_has_is_an_infinite_loss_with_its_own_delta():
    found = finite_profile([0.9, 0.1, 0.0], [0.9, 0.0, 0.1])
    assert found.largest_log_ratio == math.inf
    assert found.renyi(2.0) == math.inf
    assert found.delta(5.0) == pytest.approx(0.1)
    assert found.breaks(od.ApproxDP(5.0, 0.11)) is None
    assert found.breaks(od.ApproxDP(5.0, 0.09)).quantity == "delta"


# ── two dimensions, ends, scales ───────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def plane():
    """A shift of length 1 in the plane, aslant, with correlated noise."""
    root = np.array([[2.0, 0.0], [0.6, 0.5]])
    shift = root @ np.array([0.6, 0.8])
    inverse = np.linalg.inv(root)

    def logdensity(centre):
        return lambda x: -(((x - centre) @ inverse.T) ** 2).sum(axis=1) / 2.0

    return exact_profile(logdensity(np.array([5.0, -3.0])), logdensity(np.array([5.0, -3.0]) + shift), [INFINITE] * 2)


def test_a_shift_in_the_plane_is_one_on_the_line(plane):
    for epsilon in (0.0, 1.0, 2.5):
        truth = gaussian_delta(1.0, epsilon)
        assert between(plane.delta_bracket(epsilon), truth)
        assert plane.delta(epsilon) == pytest.approx(truth, abs=2e-5)
    assert plane.error < 5e-4
    assert plane.renyi(4.0) == pytest.approx(2.0, rel=1e-5)
    assert plane.tradeoff([0.1])[0] == pytest.approx(stats.norm.cdf(stats.norm.ppf(0.9) - 1.0), abs=1e-4)


def test_a_plane_breaks_a_smaller_promise_and_keeps_its_own(plane):
    assert plane.breaks(od.GaussianDP(1.0)) is None
    assert plane.breaks(od.GaussianDP(0.97)) is not None


def test_a_half_line_beside_a_line():
    """Gamma(3) of no interest times a normal shift."""

    def logdensity(shift):
        return lambda x: 2.0 * np.log(x[:, 0]) - 4.0 * x[:, 0] - (x[:, 1] - shift) ** 2 / 2.0

    found = exact_profile(logdensity(0.0), logdensity(0.7), [(0.0, math.inf), INFINITE])
    assert between(found.delta_bracket(0.5), gaussian_delta(0.7, 0.5))


@pytest.mark.parametrize(("centre", "scale"), [(0.0, 1e-6), (1e4, 1e-2), (-300.0, 1e3)])
def test_mass_is_found_wherever_it_is(centre, scale):
    def logdensity(shift):
        return lambda x: -(((x[:, 0] - centre) / scale - shift) ** 2) / 2.0

    found = exact_profile(logdensity(0.0), logdensity(1.0), INFINITE)
    assert between(found.delta_bracket(1.0), gaussian_delta(1.0, 1.0))


def test_a_log_density_that_overflows_far_out_does_not_matter():
    """tanh written with exponentials is NaN far beyond where anybody is; closer by it is refused, with what to do."""

    def careless(shift, scale=20.0):
        def at(x):
            up, down = np.exp(x[:, 0] / scale), np.exp(-x[:, 0] / scale)
            return -((x[:, 0] - shift) ** 2) / 2.0 + 0.1 * (up - down) / (up + down)

        return at

    found = exact_profile(careless(0.0), careless(1.0), INFINITE)
    assert 0.3 < found.delta(0.0) < 0.5
    with pytest.raises(WrongCall, match="smaller domain"):
        exact_profile(careless(0.0, 1.0), careless(1.0, 1.0), INFINITE)
    assert exact_profile(careless(0.0, 1.0), careless(1.0, 1.0), (-50.0, 50.0)).delta(0.0) > 0.3


def test_a_log_ratio_far_from_all_mass_is_found():
    """At eight standard deviations, on an interval a quarter as wide: improbable, and a promise of pure ε covers it."""
    found = exact_profile(
        lambda x: -(x[:, 0] ** 2) / 2.0 + 0.5 * np.exp(-4.0 * (x[:, 0] - 8.1) ** 2),
        lambda x: -(x[:, 0] ** 2) / 2.0,
        INFINITE,
    )
    assert found.largest_log_ratio == pytest.approx(0.5, abs=1e-9)
    assert found.delta(0.1) < 1e-12
    assert found.breaks(od.PureDP(0.49)) is not None


def test_supports_that_differ_leave_a_delta_at_every_epsilon():
    def uniform(start):
        return lambda x: np.where((x[:, 0] > start) & (x[:, 0] < start + 1.0), 0.0, -math.inf)

    found = exact_profile(uniform(0.0), uniform(0.1), (-1.0, 3.0))
    assert found.largest_log_ratio == math.inf
    for epsilon in (0.0, 5.0, 50.0):
        assert found.delta(epsilon) == pytest.approx(0.1, abs=1e-9)


def test_a_log_density_that_underflows_in_the_tails_is_not_taken_for_one_that_vanishes():
    def careless(shift):
        return lambda x: np.log(np.exp(-np.abs(x[:, 0] - shift)))  # −∞ beyond 745

    with np.errstate(divide="ignore"):
        found = exact_profile(careless(0.0), careless(1.0), INFINITE)
    assert found.largest_log_ratio == pytest.approx(1.0, abs=1e-6)
    assert found.breaks(od.PureDP(1.0)) is None


# ── error bounds are honest ────────────────────────────────────────────────────────────────────────────────


def precise_delta(first, second, epsilon, points):
    """max of both directions of ∫(p − e^ε q)₊ in 30 digits, split where the integrand has kinks."""
    with mpmath.workdps(30):
        totals = [mpmath.quad(lambda x, f=f: mpmath.exp(f(x)), points) for f in (first, second)]

        def one_way(f, g, zf, zg):
            def excess(x):
                return mpmath.exp(f(x)) / zf - mpmath.exp(epsilon) * mpmath.exp(g(x)) / zg

            grid = [mpmath.mpf(a) for a in np.linspace(-30.0, 30.0, 241)]
            values = [excess(x) for x in grid]
            roots = [
                mpmath.findroot(excess, (a, b), solver="anderson", tol=1e-50, verify=False)
                for a, b, u, v in zip(grid, grid[1:], values, values[1:], strict=False)
                if u * v < 0
            ]
            ends = sorted({*points, *roots})
            return mpmath.quad(lambda x: max(mpmath.mpf(0), excess(x)), ends)

        return float(max(one_way(first, second, *totals), one_way(second, first, totals[1], totals[0])))


SKEWED = {
    "logistic with a lasso prior": (
        (lambda x: -mpmath.fabs(x) - mpmath.log(1 + mpmath.exp(-3 * x))),
        (lambda x: -mpmath.fabs(x) - mpmath.log(1 + mpmath.exp(2 * x))),
        (lambda x: -np.abs(x[:, 0]) - np.logaddexp(0.0, -3.0 * x[:, 0])),
        (lambda x: -np.abs(x[:, 0]) - np.logaddexp(0.0, 2.0 * x[:, 0])),
    ),
    "two bumps": (
        (lambda x: mpmath.log(mpmath.exp(-((x - 2) ** 2)) + mpmath.exp(-((x + 2) ** 2)) / 5)),
        (lambda x: mpmath.log(mpmath.exp(-((x - 2) ** 2)) + mpmath.exp(-((x + 1) ** 2)) / 3)),
        (lambda x: np.logaddexp(-((x[:, 0] - 2.0) ** 2), -((x[:, 0] + 2.0) ** 2) - math.log(5.0))),
        (lambda x: np.logaddexp(-((x[:, 0] - 2.0) ** 2), -((x[:, 0] + 1.0) ** 2) - math.log(3.0))),
    ),
}


@pytest.mark.parametrize("name", SKEWED)
def test_brackets_contain_what_thirty_digits_say(name):
    first, second, fast_first, fast_second = SKEWED[name]
    points = [-mpmath.inf, -8, -2, 0, 2, 8, mpmath.inf]
    truths = {epsilon: precise_delta(first, second, epsilon, points) for epsilon in (0.0, 0.7)}
    for tolerance in (1e-3, 1e-6, 1e-9):
        found = exact_profile(fast_first, fast_second, INFINITE, tolerance=tolerance)
        for epsilon, truth in truths.items():
            low, high = found.delta_bracket(epsilon)
            assert low <= truth <= high
            assert high - low <= 2.0 * tolerance


def test_the_rules_are_gauss_and_kronrod():
    """Exact for polynomials up to degree 13 and 22: one wrong digit in the constants would show."""
    for degree in range(23):
        assert float(KRONROD @ NODES**degree) == pytest.approx(1.0 / (degree + 1), rel=1e-14)
        if degree <= 13:
            assert float(GAUSS @ NODES**degree) == pytest.approx(1.0 / (degree + 1), rel=1e-14)


# ── the reference file ─────────────────────────────────────────────────────────────────────────────────────

REFERENCE = [
    (0.2, 0.5096, 0.100),
    (1.0, 0.5816, 0.500),
    (2.0, 0.6560, 1.000),
    (7.0, 0.7776, 3.500),
    (10.0, 0.7957, 4.998),
    (20.0, 0.8163, 9.817),
]


def beta_posterior_of_logistic(records, epsilon):
    """003 (4) with w = 1 and β = 1 + 2/ε, prior N(0, 9): an oracle of three lines."""
    beta = 1.0 + 2.0 / epsilon

    def logdensity(theta):
        probabilities = [special.expit((2 * y - 1) * x * theta[:, 0]) for x, y in records]
        losses = [(p**beta + (1.0 - p) ** beta) / beta - p ** (beta - 1.0) / (beta - 1.0) for p in probabilities]
        return -(theta[:, 0] ** 2) / 18.0 - sum(losses)

    return logdensity


@pytest.mark.parametrize(("epsilon", "accuracy", "largest"), REFERENCE)
def test_the_reference_files_membership_attack(epsilon, accuracy, largest):
    """Accuracy to 4 digits on the line. Its log-ratios are the largest for |θ| ≤ 40, to 3 digits; on the line it is ε/2."""
    laws = [beta_posterior_of_logistic(data, epsilon) for data in ([(1, 1), (0, 0)], [(-1, 1), (0, 0)])]
    line, interval = exact_profile(*laws, INFINITE), exact_profile(*laws, (-40.0, 40.0))
    assert round(line.accuracy, 4) == accuracy
    assert round(interval.accuracy, 4) == accuracy
    assert round(interval.largest_log_ratio, 3) == largest
    assert line.largest_log_ratio == pytest.approx(epsilon / 2.0, abs=1e-8)
    assert line.breaks(od.PureDP(epsilon)) is None


# ── against promises ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("promise", "smaller"),
    [
        (od.GaussianDP(1.0), od.GaussianDP(0.99)),
        (od.ZCDP(0.5), od.ZCDP(0.495)),
        (od.RenyiDP.at(4.0, 2.0), od.RenyiDP.at(4.0, 1.99)),
        (od.ApproxDP(1.0, 0.12693673751), od.ApproxDP(1.0, 0.1269)),
        (od.compose(od.GaussianDP(0.6), od.GaussianDP(0.8)), od.compose(od.GaussianDP(0.6), od.GaussianDP(0.79))),
    ],
    ids=lambda promise: promise.tag,
)
def test_a_gaussian_shift_keeps_its_promises_and_breaks_those_one_percent_smaller(gaussian_profile, promise, smaller):
    assert gaussian_profile.breaks(promise) is None
    violation = gaussian_profile.breaks(smaller)
    assert violation is not None
    assert violation.found > violation.promised
    assert violation.confidence is None
    assert gaussian_profile.gap(promise) >= 1.0 - 1e-6
    assert gaussian_profile.gap(smaller) < 1.0


def test_a_pure_promise_and_a_range_are_told_apart(laplace_profile):
    assert laplace_profile.breaks(od.PureDP(1.0)) is None
    assert laplace_profile.breaks(od.BoundedRange(2.0)) is None
    assert laplace_profile.breaks(od.BoundedRange(1.9)).quantity == "range"
    assert laplace_profile.breaks(od.PureDP(0.99)).quantity == "log-ratio"
    assert laplace_profile.gap(od.PureDP(1.3)) == pytest.approx(1.3)
    assert laplace_profile.gap(od.BoundedRange(3.0)) == pytest.approx(1.5)


def test_equal_laws_give_nothing_away():
    found = finite_profile([0.5, 0.5], [0.5, 0.5])
    assert found.largest_log_ratio == 0.0
    assert found.delta(0.0) == 0.0
    assert found.accuracy == 0.5
    assert found.gap(od.PureDP(1.0)) == math.inf
    assert found.breaks(od.PureDP(1e-6)) is None


def test_a_profile_goes_to_json(gaussian_profile):
    import json

    stored = json.loads(json.dumps(gaussian_profile.to_dict(), allow_nan=False))
    assert stored["largest_log_ratio"] is None
    assert stored["delta"]["1"] == pytest.approx(gaussian_delta(1.0, 1.0), abs=1e-6)


@pytest.mark.parametrize(
    ("laws", "domain", "message"),
    [
        ((lambda x: 0.0 * x[:, 0], lambda x: -x[:, 0]), (0.0, math.inf), "normalised"),
        ((lambda x: x[:, 0] * math.nan, lambda x: -x[:, 0]), (0.0, math.inf), "NaN"),
        ((lambda x: -x, lambda x: -x[:, 0]), (0.0, 1.0), "one row each"),
        ((lambda x: -x[:, 0], lambda x: -x[:, 0]), (1.0, 0.0), "lo < hi"),
        ((lambda x: -x[:, 0], lambda x: -x[:, 0]), [(0, 1)] * 3, "one or two dimensions"),
        ((lambda x: -x[:, 0], lambda x: -x[:, 0]), "everything", "pairs"),
    ],
)
def test_what_has_no_profile_is_refused_with_a_reason(laws, domain, message):
    with pytest.raises(WrongCall, match=message):
        exact_profile(*laws, domain)


@pytest.mark.parametrize(
    "vectors", [([0.5, 0.6], [0.5, 0.5]), ([0.5, 0.5], [1.0]), ([], []), ([-0.1, 1.1], [0.5, 0.5])]
)
def test_what_is_no_probability_vector_is_refused(vectors):
    with pytest.raises(WrongCall):
        finite_profile(*vectors)
