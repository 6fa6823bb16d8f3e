"""Lower bounds are valid: of 1000 audits at 95 % confidence at most 5 % + 3σ exceed the true ε; and they are tight.

Statistical: the limits are conservative (each error rate at 2.5 %), so a right version fails with probability below 1e-6;
a version that counts on the draws it chose its event on is rejected.
"""

import math
import os

import numpy as np
import pytest

from onedraw.audit import attack_draws, blackbox_lower_bound, epsilon_lower_bound, membership_attack
from onedraw.audit.attacks import histogram_scorer
from onedraw.audit.bounds import best_threshold
from tests.audit.mechanisms import KNOWN, Known, gaussian, laplace, randomised_response

pytestmark = pytest.mark.statistical

SEED = int(os.environ.get("ONEDRAW_TEST_SEED", "20261115"))
AUDITS, CONFIDENCE = 1000, 0.95


def allowed(audits: int) -> float:
    return 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / audits)


def by_membership(threshold):
    def attack(known: Known, generator):
        return membership_attack(
            known.draw, *known.logdensities, rounds=400, calibration_rounds=100, threshold=threshold,
            delta=known.delta, confidence=CONFIDENCE, generator=generator,
        )  # fmt: skip

    return attack


def by_draws(method, size):
    def attack(known: Known, generator):
        draws = [known.draw(which, generator, size) for which in (0, 1)]
        return attack_draws(*draws, delta=known.delta, confidence=CONFIDENCE, method=method)

    return attack


def share_above_the_truth(known: Known, attack, audits: int) -> float:
    generator = np.random.default_rng([SEED, len(known.name)])
    bounds = np.array([attack(known, generator).epsilon_lower_bound for _ in range(audits)])
    share = float(np.mean(bounds > known.epsilon))
    print(f"seed {SEED}: {known.name}, true ε {known.epsilon:.3f}, median {np.median(bounds):.3f}, {share:.1%} above")
    return share


METHODS = {
    "held-out": by_membership("held-out"),
    "sweep": by_membership("sweep"),
    "histogram": by_draws("histogram", 400),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_at_most_one_in_twenty_bounds_exceeds_the_truth(known, method):
    assert share_above_the_truth(known, METHODS[method], AUDITS) <= allowed(AUDITS)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_learned_events_are_as_valid_as_others(known):
    """Fewer audits, since each fits two classifiers."""
    audits = 12
    exceeding = share_above_the_truth(known, by_draws("classifier", 300), audits)
    assert exceeding * audits <= 5  # of 12 at 2.5 % each, six or more have probability 2e-7


@pytest.mark.slow
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_learned_events_are_valid_in_many_audits(known):
    assert share_above_the_truth(known, by_draws("classifier", 300), 200) <= allowed(200)


@pytest.mark.parametrize("known", [laplace(0.1), gaussian(0.02, 0.001)], ids=lambda known: known.name)
def test_counting_where_one_chose_is_rejected(known):
    """The planted fault: event and counts from the same draws. On the same mechanisms, splitting passes."""

    def naive(known: Known, generator):
        draws = [np.asarray(known.draw(which, generator, 200)).reshape(-1, 1) for which in (0, 1)]
        scorer = histogram_scorer(*draws)
        scores = scorer(draws[0]), scorer(draws[1])
        threshold = best_threshold(*scores, delta=known.delta, confidence=CONFIDENCE)
        fp, fn = int(np.sum(scores[0] > threshold)), int(np.sum(scores[1] <= threshold))
        return _Bound(epsilon_lower_bound(fp, fn, 200, 200, known.delta, CONFIDENCE))

    assert share_above_the_truth(known, METHODS["histogram"], 300) <= allowed(300)
    assert share_above_the_truth(known, naive, 300) > allowed(300)


class _Bound:
    def __init__(self, epsilon_lower_bound: float) -> None:
        self.epsilon_lower_bound = epsilon_lower_bound


@pytest.mark.parametrize("method", ["histogram", "classifier"])
def test_randomised_response_is_bounded_within_fifteen_percent(method):
    """ε = 1, 10⁵ rounds, 95 %: black-box, half of the rounds spent on choosing the event."""
    known = randomised_response(1.0)
    found = blackbox_lower_bound(
        lambda dataset, generator, size: known.draw(int(dataset[0]), generator, size), [0], [1], rounds=100_000,
        confidence=0.95, method=method, generator=np.random.default_rng(SEED),
    )  # fmt: skip
    assert 0.85 <= found.epsilon_lower_bound <= 1.0 + 0.05
    assert found.rounds0 + found.rounds1 + found.calibration_rounds == 100_000


def test_randomised_response_is_bounded_within_fifteen_percent_by_the_optimal_attack():
    known = randomised_response(1.0)
    for threshold in (0.5, "held-out", "sweep"):
        found = membership_attack(
            known.draw, *known.logdensities, rounds=100_000, calibration_rounds=1_000, threshold=threshold,
            confidence=0.95, generator=np.random.default_rng(SEED),
        )  # fmt: skip
        assert 0.85 <= found.epsilon_lower_bound <= 1.0 + 0.05
