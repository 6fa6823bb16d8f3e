"""Oracle: two accountants that share no code path agree, and the check between them has teeth."""

import math
from functools import cache
from itertools import pairwise

import pytest
from dp_accounting.pld import privacy_loss_distribution as foreign

from onedraw.errors import SecondOpinion
from onedraw.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRange,
    BoundedRangeCurve,
    DirichletPosterior,
    GaussianDP,
    PureCurve,
    PureDP,
    RenyiDP,
    certify,
    compose,
    pld,
    pld_optimistic_epsilon,
)
from onedraw.privacy.pld import (
    GaussianPair,
    RangeEnvelope,
    TwoPointPair,
    dominating_pair,
    randomised_response,
)

pytestmark = pytest.mark.oracle


COUNTS = [1, 10, 1000]


@cache  # two routes are held against the same figures
def pld_epsilons(parts, delta):
    largest = pld.largest_loss(parts)
    return (
        pld.lower_profile(parts).epsilon(delta, largest=largest),
        pld.upper_profile(parts).epsilon(delta, largest=largest),
    )


# ── the three routes agree ──


@pytest.mark.parametrize("times", COUNTS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_gaussian_and_privacy_loss_routes_agree_within_one_percent(times, epsilon, delta):
    mu = ApproxDP(epsilon, delta).allows(GaussianDP) / math.sqrt(times)
    exact = compose(*[GaussianDP(mu)] * times).epsilon(delta)
    low, high = pld_epsilons(((GaussianPair(mu), times),), delta)
    assert exact == pytest.approx(epsilon, rel=1e-6)
    assert 0.99 * exact <= low <= exact <= high * (1 + 1e-9) <= 1.01 * exact


@pytest.mark.parametrize("times", COUNTS)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_the_renyi_route_is_never_below_and_within_a_quarter(times, epsilon, delta):
    mu = ApproxDP(epsilon, delta).allows(GaussianDP) / math.sqrt(times)
    renyi = compose(*[ZCDP(mu * mu / 2)] * times).epsilon(delta)
    low, _ = pld_epsilons(((GaussianPair(mu), times),), delta)
    assert epsilon * (1 - 1e-6) <= renyi <= 1.25 * epsilon
    assert low <= renyi


@pytest.mark.parametrize("times", COUNTS)
def test_the_foreign_accountant_used_by_itself_says_the_same(times):
    mu, delta = 0.8 / math.sqrt(times), 1e-5
    alone = foreign.from_gaussian_mechanism(1.0 / mu, value_discretization_interval=1e-4, use_connect_dots=True)
    theirs = alone.self_compose(times).get_epsilon_for_delta(delta)
    assert compose(*[GaussianDP(mu)] * times).epsilon(delta) == pytest.approx(theirs, rel=0.01)


@pytest.mark.parametrize(
    ("part", "times"),
    [(PureDP(0.1), 30), (PureDP(3.0), 2), (PureDP(0.01), 1000), (ApproxDP(0.2, 1e-9), 20)],
)
def test_upper_and_lower_profiles_enclose_each_other_closely(part, times):
    parts = ((dominating_pair(part), times),)
    low, high = pld_epsilons(parts, 1e-5)
    assert low <= high <= low * 1.02


@pytest.mark.parametrize("delta", [1e-4, 1e-7])
def test_the_envelope_is_above_every_single_response(delta):
    envelope = pld_epsilons_upper(((RangeEnvelope(0.5), 20),), delta)
    for share in (0.05, 0.3, 0.5, 0.8, 0.95):
        single = ((TwoPointPair(0.5 * share, 0.5 * share - 0.5), 20),)
        assert pld.lower_profile(single).epsilon(delta, largest=pld.largest_loss(single)) < envelope


def pld_epsilons_upper(parts, delta):
    return pld.upper_profile(parts).epsilon(delta, largest=pld.largest_loss(parts))


def test_one_envelope_has_the_profile_it_should():
    profile = pld.upper_profile(((RangeEnvelope(1.5), 1),))
    for epsilon in (0.0, 0.4, 1.0, 1.4):
        exact = BoundedRange(1.5).delta(epsilon)
        assert exact <= profile.delta(epsilon) <= exact * 1.01 + 1e-5


@pytest.mark.parametrize(
    "parts",
    [
        ((GaussianPair(0.7), 3), (randomised_response(0.2), 5)),
        ((RangeEnvelope(0.3), 4), (randomised_response(0.2, leak=1e-7), 2)),
    ],
)
def test_profiles_fall_and_stay_probabilities(parts):
    profile = pld.upper_profile(parts)
    values = [profile.delta(epsilon / 10) for epsilon in range(0, 60)]
    assert all(0.0 < value <= 1.0 for value in values)
    assert all(later <= earlier for earlier, later in pairwise(values))


def test_far_out_the_noise_of_the_convolution_is_not_read_as_zero():
    parts = ((GaussianPair(0.05), 1000),)
    for epsilon in (15.0, 30.0, 1e6, math.inf):
        assert pld.upper_profile(parts).delta(epsilon) >= 1e-13
        assert pld.lower_profile(parts).delta(epsilon) == 0.0


# ── the check ──


@pytest.mark.parametrize(
    ("promise", "delta"),
    [
        (GaussianDP(0.5), 1e-5),
        (compose(*[GaussianDP(0.05)] * 1000), 1e-6),
        (compose(*[PureDP(0.1)] * 30), 1e-5),
        (compose(*[PureDP(2.0**-7)] * 400), 1e-6),
        (compose(GaussianDP(0.3), PureDP(0.2), ApproxDP(0.1, 1e-9)), 1e-5),
        (PureDP(1.0), 0.0),
        (compose(*[PureDP(2.0**-7)] * 400), 0.0),
        (RenyiDP(PureCurve(1.0)), 0.0),
        (BoundedRange(1.0), 1e-3),
    ],
)
def test_a_figure_two_percent_too_small_is_refused(promise, delta):
    figure = promise.epsilon(delta)
    assert certify(promise, epsilon=figure, delta=delta).startswith("confirmed by a privacy-loss accountant")
    with pytest.raises(SecondOpinion, match="too small") as refusal:
        certify(promise, epsilon=0.98 * figure, delta=delta)
    assert refusal.value.exit_code == 3
    assert 0.98 * figure < refusal.value.estimate <= figure


@pytest.mark.parametrize(
    "promise",
    [
        ZCDP(0.1),
        BoundedRange(0.5),
        compose(*[BoundedRange(0.1)] * 20),
        compose(ZCDP(0.05), GaussianDP(0.2), BoundedRange(0.3), PureDP(0.1), RenyiDP(BoundedRangeCurve(0.1))),
        compose(*[PureDP(0.05)] * 10, gammas=[1e-9]),
        compose(),
    ],
    ids=str,
)
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_an_honest_figure_is_never_refused(promise, delta):
    assert certify(promise, epsilon=promise.epsilon(delta), delta=delta).startswith("confirmed")


def test_the_worst_single_response_is_searched_for():
    one = pld_optimistic_epsilon(BoundedRange(1.0), 1e-3)
    middle = pld.lower_profile(((TwoPointPair(0.5, -0.5), 1),)).epsilon(1e-3, largest=2.0)
    assert middle < one <= BoundedRange(1.0).epsilon(1e-3)


@pytest.mark.parametrize(
    "promise",
    [
        RenyiDP.at(4.0, 0.5),
        RenyiDP(DirichletPosterior(prior=(2.0, 3.0), n=100)),
        compose(PureDP(0.1), RenyiDP.at(4.0, 0.5)),
    ],
    ids=str,
)
def test_where_no_occurring_pair_is_known_the_check_is_skipped_in_words(promise):
    assert pld_optimistic_epsilon(promise, 1e-5) is None
    sentence = certify(promise, epsilon=0.001, delta=1e-5)
    assert sentence.startswith("skipped: no pair of laws that really occurs is known")


@pytest.mark.parametrize("mu", [1e-4, 0.03, 0.7, 5.0, 100.0])
def test_losses_of_one_gaussian_are_those_of_dp_accounting(mu):
    pair = GaussianPair(mu)
    own = pld.lower_profile(((pair, 1),))
    theirs = pair.rounded_down(own.distribution.interval)
    for epsilon in (0.0, 0.1 * mu, mu, mu * mu / 2.0, 3.0 * mu, mu * mu / 2.0 + 5.0 * mu):
        assert own.distribution.get_delta_for_epsilon(epsilon) == pytest.approx(
            theirs.get_delta_for_epsilon(epsilon), rel=1e-9, abs=1e-14
        )
