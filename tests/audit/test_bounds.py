"""From error counts to lower bounds: the formula, its edges, and the published one that is wrong."""

import math

import numpy as np
import pytest
from scipy import stats

from onedraw.audit import (
    check_rounds,
    clopper_pearson_upper,
    epsilon_lower_bound,
    gaussian_mu_lower_bound,
    renyi_lower_bound,
    rounds_needed,
    sweep_lower_bound,
)
from onedraw.errors import TooFewRounds, WrongCall


@pytest.mark.parametrize(("k", "n", "alpha"), [(0, 10, 0.025), (3, 10, 0.025), (9, 10, 0.05), (250, 1000, 1e-6)])
def test_a_clopper_pearson_limit_is_where_so_few_successes_have_probability_alpha(k, n, alpha):
    limit = clopper_pearson_upper(k, n, alpha)
    assert stats.binom.cdf(k, n, limit) == pytest.approx(alpha, rel=1e-6)
    assert clopper_pearson_upper(n, n, alpha) == 1.0


def test_the_bound_is_the_formula_written_out():
    fpr, fnr = stats.beta.ppf(0.975, 21, 80), stats.beta.ppf(0.975, 11, 190)
    expected = max(math.log((1 - 1e-3 - fpr) / fnr), math.log((1 - 1e-3 - fnr) / fpr))
    assert epsilon_lower_bound(20, 10, 100, 200, 1e-3, 0.95) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param((50, 50, 100, 100), id="a coin flip"),
        pytest.param((100, 100, 100, 100), id="always wrong: the rule was fixed, not its opposite"),
        pytest.param((100, 0, 100, 100), id="always the neighbour"),
        pytest.param((0, 100, 100, 100), id="never the neighbour"),
    ],
)
def test_an_attack_that_knows_nothing_shows_nothing(counts):
    assert epsilon_lower_bound(*counts, 0.0, 0.95) == 0.0
    assert gaussian_mu_lower_bound(*counts, 0.95) == 0.0
    assert renyi_lower_bound(*counts, order=2.0, confidence=0.95) == 0.0


def test_a_non_positive_numerator_gives_zero_and_not_an_error():
    assert epsilon_lower_bound(0, 0, 100, 100, delta=0.99, confidence=0.95) == 0.0


@pytest.mark.parametrize("rounds", [10, 40])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_confidence_holds_exactly_not_only_on_average(epsilon, rounds):
    """Every outcome of a fixed guess on randomised response, with its probability; plain rates in place of limits fail."""
    errs = 1.0 / (1.0 + math.exp(epsilon))
    weights = stats.binom.pmf(np.arange(rounds + 1), rounds, errs)

    def failure(bound):
        shown = np.array([[bound(fp, fn) for fn in range(rounds + 1)] for fp in range(rounds + 1)])
        return float(weights @ (shown > epsilon) @ weights)

    def plain(fp, fn):
        fpr, fnr = (fp + 1e-9) / rounds, (fn + 1e-9) / rounds
        return max(math.log(max(1 - fpr, 1e-9) / fnr), math.log(max(1 - fnr, 1e-9) / fpr))

    assert failure(lambda fp, fn: epsilon_lower_bound(fp, fn, rounds, rounds, 0.0, 0.95)) <= 0.05
    assert failure(plain) > 0.3


def published_bound(fp, fn, rounds, confidence):
    """Errata 6c: the published attack divides both counts by all rounds instead of by those of their class."""
    alpha = 1.0 - confidence
    fpr, fnr = (clopper_pearson_upper(count, rounds, alpha / 2.0) for count in (fp, fn))
    return max(0.0, math.log((1.0 - fpr) / fnr), math.log((1.0 - fnr) / fpr))


def test_the_published_rates_prove_that_a_coin_flip_leaks():
    """A mechanism that ignores its data, attacked by guessing: rates over all rounds "prove" ε ≥ 0.9, ours nothing."""
    generator = np.random.default_rng(20261115)
    published, ours = [], []
    for _ in range(200):
        truth, guess = generator.random(1000) < 0.5, generator.random(1000) < 0.5
        fp, fn = int(np.sum(~truth & guess)), int(np.sum(truth & ~guess))
        published.append(published_bound(fp, fn, 1000, 0.95))
        ours.append(epsilon_lower_bound(fp, fn, int(np.sum(~truth)), int(np.sum(truth)), 0.0, 0.95))
    assert np.median(published) > 0.9
    assert published_bound(250, 250, 1000, 0.95) == pytest.approx(0.95, abs=0.01)
    assert published_bound(250_000_000, 250_000_000, 1_000_000_000, 0.95) == pytest.approx(math.log(3.0), abs=1e-3)
    assert np.mean(np.array(ours) > 0.0) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def test_a_sweep_pays_for_every_threshold():
    generator = np.random.default_rng(3)
    scores0, scores1 = generator.normal(size=500), generator.normal(size=500) + 2.0
    thresholds = [0.5, 1.0, 1.5, 2.0]
    found = sweep_lower_bound(scores0, scores1, thresholds, 0.0, 0.95)
    by_hand = [
        epsilon_lower_bound(int(np.sum(scores0 > t)), int(np.sum(scores1 <= t)), 500, 500, 0.0, 1.0 - 0.05 / 4)
        for t in thresholds
    ]
    assert found.epsilon_lower_bound == pytest.approx(max(by_hand))
    assert found.threshold == thresholds[int(np.argmax(by_hand))]
    assert found.alpha == pytest.approx(0.05 / 4)


def test_the_gaussian_bound_approaches_mu_and_does_not_pass_it():
    # N(0,1) against N(1,1), threshold ½: both rates are Φ(−½)
    rounds = 1_000_000
    count = round(rounds * stats.norm.cdf(-0.5))
    assert 0.99 < gaussian_mu_lower_bound(count, count, rounds, rounds, 0.95) < 1.0


def test_the_renyi_bound_of_two_coins_is_their_divergence():
    rounds, order = 10**9, 3.0
    p, q = 0.75, 0.25
    shown = renyi_lower_bound(round(q * rounds), round((1 - p) * rounds), rounds, rounds, order, 0.95)
    exact = math.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)
    assert shown < exact
    assert shown == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta", "confidence"), [(0.0, 0.0, 0.95), (1.0, 1e-5, 0.95), (3.0, 0.1, 0.999999)]
)
def test_so_many_rounds_are_needed_and_one_less_does_not_do(epsilon, delta, confidence):
    needed = rounds_needed(epsilon, delta, confidence)
    assert epsilon_lower_bound(0, 0, needed, needed, delta, confidence) >= epsilon
    assert epsilon_lower_bound(0, 0, needed, needed, delta, confidence) > 0.0
    if needed > 1:
        assert epsilon_lower_bound(0, 0, needed - 1, needed - 1, delta, confidence) <= max(epsilon, 1e-6)


def test_too_few_rounds_are_refused_with_the_number_needed():
    with pytest.raises(TooFewRounds, match=f"At least {rounds_needed(2.0, 0.0, 0.99)} are needed") as caught:
        check_rounds(10, 2.0, 0.0, 0.99)
    assert caught.value.needed == rounds_needed(2.0, 0.0, 0.99)
    check_rounds(rounds_needed(2.0, 0.0, 0.99), 2.0, 0.0, 0.99)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 95, math.nan])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(WrongCall, match="strictly between 0 and 1"):
        epsilon_lower_bound(1, 1, 10, 10, 0.0, confidence)


@pytest.mark.parametrize("counts", [(11, 0, 10, 10), (-1, 0, 10, 10), (0, 0, 0, 10)])
def test_counts_that_cannot_be_are_refused(counts):
    with pytest.raises(WrongCall):
        epsilon_lower_bound(*counts, 0.0, 0.95)
