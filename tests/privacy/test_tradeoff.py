"""The attacker's figures against closed forms: never weaker than he may be, and not much stronger."""

import math

import pytest
from scipy.stats import norm

import onedraw as od
from onedraw.privacy import Attacker

ALPHAS = [0.0, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.8, 0.99, 1.0]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 5.0])
def test_a_pure_promise_has_its_two_lines(epsilon):
    attacker = Attacker(od.PureDP(epsilon))
    for alpha in ALPHAS:
        truth = max(0.0, 1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha))
        assert attacker.misses(alpha) == pytest.approx(truth, abs=1e-9)
    assert attacker.right_guesses == pytest.approx(1 / (1 + math.exp(-epsilon)), abs=1e-9)
    assert attacker.always
    assert attacker.odds_factor == pytest.approx(math.exp(epsilon))


@pytest.mark.parametrize("mu", [0.05, 0.24, 1.0, 3.0])
def test_a_gaussian_promise_has_the_gaussian_curve_from_below(mu):
    attacker = Attacker(od.GaussianDP(mu), 1e-6)
    for alpha in ALPHAS[1:-1]:
        truth = norm.cdf(norm.isf(alpha) - mu)
        assert truth - 2e-3 <= attacker.misses(alpha) <= truth + 1e-12
    right = norm.cdf(mu / 2)
    assert right - 1e-12 <= attacker.right_guesses <= right + 2e-3
    assert not attacker.always


def test_a_slack_of_delta_is_a_miss_less():
    epsilon, delta = 1.0, 0.05
    attacker = Attacker(od.ApproxDP(epsilon, delta), delta)
    for alpha in ALPHAS:
        truth = max(0.0, 1 - delta - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - delta - alpha))
        assert attacker.misses(alpha) == pytest.approx(truth, abs=1e-9)
    assert attacker.right_guesses == pytest.approx(1 - (1 - delta) / (1 + math.e), abs=1e-9)


def test_the_odds_of_a_common_finding_are_bounded_by_epsilon_and_delta():
    """A finding of probability p has P(finding | other) ≥ (p − δ)e^{−ε}."""
    attacker = Attacker(od.ApproxDP(1.0, 1e-6), 1e-6)
    assert attacker.odds_factor == pytest.approx(math.e * 0.01 / (0.01 - 1e-6), rel=1e-6)
    assert Attacker(od.ApproxDP(1.0, 0.02), 0.02).odds_factor == math.inf


@pytest.mark.parametrize(
    "promise", [od.PureDP(1.0), od.GaussianDP(0.7), od.ZCDP(0.1), od.BoundedRange(1.0), od.ApproxDP(1.0, 1e-3)]
)
def test_every_curve_is_convex_symmetric_and_below_blind_guessing(promise):
    attacker = Attacker(promise, 1e-3)
    values = [attacker.misses(k / 50) for k in range(51)]
    assert all(value <= 1 - k / 50 + 1e-12 for k, value in enumerate(values))
    assert all(
        left + right >= 2 * middle - 1e-9 for left, middle, right in zip(values, values[1:], values[2:], strict=False)
    )
    for alpha in (0.05, 0.2, 0.4):
        assert attacker.misses(attacker.misses(alpha)) == pytest.approx(alpha, abs=5e-3)


def test_a_promise_that_is_none_gives_everything_away_without_overflow():
    attacker = Attacker(od.PureDP(1e6))
    assert attacker.right_guesses == pytest.approx(1.0)
    assert attacker.odds_factor == math.inf
    assert attacker.misses(0.01) == 0.0


def test_a_weaker_promise_never_looks_stronger():
    rights = [Attacker(od.GaussianDP(mu)).right_guesses for mu in (0.1, 0.5, 1.0, 2.0, 4.0)]
    assert rights == sorted(rights)
    assert rights[0] < rights[-1]
