"""The Bayes-optimal attack and the black-box ones: what they estimate, what they catch, what they must not trip over."""

import json
import math
import os

import numpy as np
import pytest
from scipy import special

import onedraw as od
from onedraw.audit import (
    attack_draws,
    blackbox_lower_bound,
    exact_profile,
    log_normaliser_ratio,
    membership_attack,
    membership_score,
)
from onedraw.errors import TooFewRounds, WrongCall
from tests.audit.mechanisms import KNOWN, beta_posterior, gaussian, laplace

SEED = int(os.environ.get("ONEDRAW_TEST_SEED", "20261115"))


@pytest.fixture
def generator():
    return np.random.default_rng(SEED)


# ── membership ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_score_is_the_probability_of_the_neighbour():
    """Errata 20: M = 1/(1 + p(θ|D)/p(θ|D')), not the ratio."""
    points = np.array([[0.3], [2.0]])
    densities = [lambda x: -x[:, 0], lambda x: -2.0 * x[:, 0]]  # Z = 1 and ½
    exact = [2.0 * np.exp(-2.0 * x) / (np.exp(-x) + 2.0 * np.exp(-2.0 * x)) for x in points[:, 0]]
    np.testing.assert_allclose(membership_score(*densities, points, log_ratio=math.log(0.5)), exact)


@pytest.mark.statistical
def test_the_normaliser_ratio_comes_from_draws_under_one_data_set_within_its_error(generator):
    """Beta(3, 5) against Beta(4, 4): log B(4,4)/B(3,5) within 5 standard errors (α ≈ 6e-7); ×1.05 is rejected."""
    known = beta_posterior(0.02)
    truth = special.betaln(4, 4) - special.betaln(3, 5)
    found = log_normaliser_ratio(*known.logdensities, known.draw(0, generator, 400_000))
    assert abs(found.value - truth) < 5.0 * found.error
    assert found.error < 0.002
    assert abs(found.value - (truth + math.log(1.05))) > 5.0 * found.error


@pytest.mark.statistical
@pytest.mark.parametrize("known", KNOWN[1:], ids=lambda known: known.name)
def test_the_fixed_threshold_has_the_exact_accuracy_of_the_profile(known, generator):
    """Within 5 standard deviations (α ≈ 6e-7) of what quadrature says the best guess achieves."""
    exact = exact_profile(*known.logdensities, known.domain).accuracy
    found = membership_attack(
        known.draw,
        *known.logdensities,
        rounds=100_000,
        calibration_rounds=50_000,
        generator=generator,
        delta=known.delta,
    )
    assert abs(found.accuracy - exact) < 5.0 * math.sqrt(0.25 / 100_000)
    assert found.rounds0 == found.rounds1 == 50_000
    assert abs(found.accuracy - (exact + 0.02)) > 5.0 * math.sqrt(0.25 / 100_000)


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "accuracy"), [(1.0, 0.5816), (10.0, 0.7957)])
def test_the_papers_attack_succeeds_as_often_as_the_reference_file_says(epsilon, accuracy, generator):
    """003 §5, its pair D = {(1,1),(0,0)}, D' = {(−1,1),(0,0)}, the right β and the right M; 5 standard deviations."""
    beta, grid = 1.0 + 2.0 / epsilon, np.linspace(-40.0, 40.0, 400_001)

    def logdensity(x):
        def at(theta):
            p = special.expit(x * theta[:, 0])
            loss = (p**beta + (1.0 - p) ** beta) / beta - p ** (beta - 1.0) / (beta - 1.0)
            return -(theta[:, 0] ** 2) / 18.0 - loss  # the record (0, 0) adds a constant

        return at

    laws = logdensity(1.0), logdensity(-1.0)
    distributions = [np.cumsum(np.exp(law(grid[:, None]))) for law in laws]

    def draw(which, generator, size):
        distribution = distributions[which]
        return np.interp(generator.random(size) * distribution[-1], distribution, grid)

    found = membership_attack(draw, *laws, rounds=40_000, calibration_rounds=20_000, generator=generator)
    tolerance = 5.0 * math.sqrt(0.25 / 40_000)
    assert abs(found.accuracy - accuracy) < tolerance
    assert abs(found.accuracy - (accuracy + 0.03)) > tolerance  # the planted fault: three points more
    assert found.epsilon_lower_bound <= epsilon / 2.0  # what this pair can lose at most


def test_a_wrong_constant_in_the_densities_changes_nothing(generator):
    """They may be unnormalised: that is what the calibration draws are for."""
    known = laplace(1.0)

    def shifted(points):
        return known.logdensities[1](points) + 37.0

    found = membership_attack(
        known.draw, known.logdensities[0], shifted, rounds=20_000, calibration_rounds=20_000, generator=generator
    )
    assert found.log_normaliser_ratio == pytest.approx(37.0, abs=0.1)
    assert 0.5 < found.epsilon_lower_bound < 1.05


def test_calibration_draws_are_not_counted(generator):
    asked = []

    def draw(which, generator, size):
        asked.append((which, size))
        return known.draw(which, generator, size)

    known = laplace(1.0)
    options = {"rounds": 1_000, "calibration_rounds": 300, "generator": generator}
    fixed = membership_attack(draw, *known.logdensities, **options)
    assert asked == [(0, 300), (0, 500), (1, 500)]
    assert (fixed.rounds0, fixed.rounds1, fixed.calibration_rounds) == (500, 500, 300)
    asked.clear()
    chosen = membership_attack(draw, *known.logdensities, threshold="held-out", **options)
    assert asked == [(0, 300), (0, 300), (1, 300), (0, 500), (1, 500)]
    assert chosen.calibration_rounds == 900


def test_a_chosen_threshold_beats_the_bayes_rule_where_the_loss_sits_in_a_tail(generator):
    """Accuracy is not ε: a rare event with a large ratio shows more than the best guess does."""
    laws = np.array([[0.970, 0.030, 0.000], [0.968, 0.002, 0.030]])

    def draw(which, generator, size):
        return generator.choice(3, p=laws[which], size=size).astype(float)

    def logdensity(which):
        with np.errstate(divide="ignore"):
            return lambda points: np.log(np.maximum(laws[which], 1e-12))[points[:, 0].astype(int)]

    options = {"rounds": 40_000, "calibration_rounds": 20_000, "delta": 0.0, "generator": generator}
    fixed = membership_attack(draw, logdensity(0), logdensity(1), threshold=0.5, **options)
    chosen = membership_attack(draw, logdensity(0), logdensity(1), threshold="held-out", **options)
    swept = membership_attack(draw, logdensity(0), logdensity(1), threshold=[0.02, 0.3, 0.5, 0.9], **options)
    assert chosen.epsilon_lower_bound > 2.0
    assert swept.epsilon_lower_bound > 2.0
    assert swept.thresholds == 4
    assert chosen.epsilon_lower_bound >= 0.9 * fixed.epsilon_lower_bound


def test_a_draw_that_is_not_finite_betrays_its_data_set(generator):
    known = gaussian(0.01, 0.001)

    def draw(which, generator, size):
        values = known.draw(which, generator, size)
        return np.where(generator.random(size) < 0.3 * which, math.nan, values)

    found = membership_attack(
        draw, *known.logdensities, rounds=4_000, calibration_rounds=1_000, threshold=0.9, generator=generator
    )
    assert found.epsilon_lower_bound > 2.0
    assert 400 < found.non_finite < 800


def test_noise_added_in_floating_point_betrays_itself_when_every_bit_counts(generator):
    """Mironov 2012: 2 + noise and 3 + noise are different sets of floats. At the usual resolution that is not looked at."""

    def draw(which, generator, size):
        return (2.0 + which) + generator.laplace(size=size)

    def logdensity(which):
        return lambda points: -np.abs(points[:, 0] - (2.0 + which))

    def largest(resolution):
        options = {"rounds": 10_000, "calibration_rounds": 3_000, "threshold": "held-out", "confidence": 0.999999}
        attacks = [
            membership_attack(draw, logdensity(0), logdensity(1), resolution=resolution, generator=generator, **options)
            for _ in range(12)
        ]
        return max(attack.epsilon_lower_bound for attack in attacks)

    assert 0.7 < largest(2.0**-30) <= 1.0
    assert largest(0.0) > 1.3


@pytest.mark.parametrize("threshold", ["best", 0.0, 1.0, -1.0, [0.5, 2.0], []])
def test_a_threshold_that_means_nothing_is_refused(threshold, generator):
    known = laplace(1.0)
    with pytest.raises(WrongCall, match="threshold"):
        membership_attack(
            known.draw, *known.logdensities, rounds=100, calibration_rounds=10, threshold=threshold, generator=generator
        )


def test_an_attack_too_short_to_show_anything_is_refused(generator):
    known = laplace(1.0)
    with pytest.raises(TooFewRounds):
        membership_attack(
            known.draw, *known.logdensities, rounds=8, calibration_rounds=10, confidence=0.999999, generator=generator
        )
    with pytest.raises(TooFewRounds):
        blackbox_lower_bound(lambda dataset, generator: 0.0, [0], [1], rounds=12, confidence=0.999, generator=generator)


# ── black box ──────────────────────────────────────────────────────────────────────────────────────────────


def test_one_draw_at_a_time_and_many_at_once_are_the_same_to_the_attack(generator):
    def single(dataset, generator):
        return dataset[0] + generator.laplace()

    def batched(dataset, generator, size):
        return dataset[0] + generator.laplace(size=size)

    options = {"rounds": 8_000, "generator": generator}
    found = [blackbox_lower_bound(one, [0.0], [3.0], **options) for one in (single, batched)]
    assert all(1.5 < result.epsilon_lower_bound < 3.2 for result in found)
    assert found[0].rounds0 == found[1].rounds0 == 2_000


@pytest.mark.parametrize("method", ["histogram", "classifier"])
@pytest.mark.parametrize(
    "leak",
    [
        pytest.param(lambda which, g, n: np.where(g.random(n) < 0.5 * which, math.nan, g.normal(size=n)), id="NaN"),
        pytest.param(
            lambda which, g, n: np.where(g.random(n) < 0.5 * which, math.inf, g.normal(size=n)), id="infinity"
        ),
        pytest.param(lambda which, g, n: g.normal(size=n) * (1.0 + 9.0 * which), id="scale"),
        pytest.param(lambda which, g, n: np.where(g.random(n) < 0.5 * which, 0.25, g.normal(size=n)), id="an atom"),
        pytest.param(lambda which, g, n: g.normal(size=(n, 2)) + 4.0 * which, id="two dimensions"),
        pytest.param(lambda which, g, n: g.normal(size=(n, 5)) + 3.0 * which, id="five dimensions"),
        pytest.param(lambda which, g, n: g.integers(0, 2 + 2 * which, size=n), id="whole numbers"),
    ],
)
def test_what_leaks_is_found_whatever_its_shape(leak, method, generator):
    draws = [leak(which, generator, 1_600) for which in (0, 1)]
    assert attack_draws(*draws, confidence=0.95, method=method).epsilon_lower_bound > 0.9


def test_draws_that_are_all_broken_alike_show_nothing(generator):
    draws = np.full(400, math.nan)
    assert attack_draws(draws, draws).epsilon_lower_bound == 0.0
    assert attack_draws(np.zeros(400), np.zeros(400)).epsilon_lower_bound == 0.0
    assert attack_draws(draws, draws, method="classifier").epsilon_lower_bound == 0.0


def test_a_draw_whose_size_depends_on_the_records_is_refused(generator):
    with pytest.raises(WrongCall, match="the size of a draw is public"):
        attack_draws(np.zeros((100, 2)), np.zeros((100, 3)))


def test_an_unknown_method_is_refused(generator):
    with pytest.raises(WrongCall, match="histogram"):
        attack_draws(np.zeros(100), np.zeros(100), method="crystal ball")


def test_an_exception_of_the_mechanism_is_passed_on(generator):
    def fragile(dataset, generator):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        blackbox_lower_bound(fragile, [0], [1], rounds=100, generator=generator)


# ── results ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_result_breaks_every_kind_of_promise_it_disproves(generator):
    known = laplace(2.0)
    found = membership_attack(
        known.draw, *known.logdensities, rounds=50_000, calibration_rounds=5_000, threshold="held-out",
        confidence=0.999999, generator=generator,
    )  # fmt: skip
    for promise in (
        od.PureDP(1.2), od.BoundedRange(1.2), od.ApproxDP(1.0, 1e-3), od.GaussianDP(1.0), od.ZCDP(0.3),
        od.RenyiDP.at(2.0, 0.5), od.compose(od.PureDP(0.5), od.PureDP(0.5)),
    ):  # fmt: skip
        violation = found.breaks(promise)
        assert violation is not None, promise
        assert violation.found > violation.promised
        assert violation.confidence == 0.999999
    for promise in (od.PureDP(2.0), od.BoundedRange(4.0), od.ApproxDP(2.0, 1e-6), od.GaussianDP(3.0), od.ZCDP(2.0)):
        assert found.breaks(promise) is None, promise


def test_a_result_says_what_it_can_about_mu_and_renyi_and_goes_to_json(generator):
    known = gaussian(1.0, 0.05)
    found = membership_attack(
        known.draw, *known.logdensities, rounds=50_000, calibration_rounds=5_000, delta=0.05, generator=generator
    )
    assert 0.9 < found.mu_lower_bound < 1.02
    assert 0.2 < found.renyi_lower_bound(2.0) < 1.02
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert stored["fp"] == found.fp
    assert stored["fpr_upper"] == found.limits[0] > found.rates[0]
    assert min(min(point) for point in stored["roc"]) >= 0.0
