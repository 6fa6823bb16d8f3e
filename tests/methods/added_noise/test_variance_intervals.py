"""Intervals of variances from squares about a released mean: coverage, widths and the tests they invert."""

import math

import numpy as np
import pytest

import onedraw as od
from onedraw.methods import CenteredNoise
from onedraw.methods.added_noise import variance_intervals as variances
from onedraw.methods.added_noise.run import CenteredSums
from onedraw.methods.added_noise.variance_intervals import _SquareTest, variance_interval
from onedraw.methods.noise_law import NoiseLaw
from onedraw.models import NumberTable
from onedraw.models.tables.centered_squares import Squares
from onedraw.samplers import seeded_generator


def rare(share, rest):
    """A far value of this share of the records, others by ``rest``."""
    return lambda g, n: np.where(g.random(n) < share, 1.0, rest(g, n))


COLUMNS = {
    "exponential": lambda g, n: np.minimum(g.exponential(0.1, n), 1.0),
    "t3": lambda g, n: np.clip(0.5 + 0.05 * g.standard_t(3, n), 0.0, 1.0),
    "rare": rare(0.003, lambda g, n: np.zeros(n)),
    "rare beside others": rare(0.002, lambda g, n: 0.45 + 0.1 * g.random(n)),
    "two ends": lambda g, n: (g.random(n) < 0.1).astype(float),
    "nearly constant": lambda g, n: 0.5 + 0.001 * g.standard_normal(n),
}


def intervals(draw, n, epsilon, runs):
    """(data sets, 3): the ends, and the width of the plain interval."""
    plan = od.calibrate(CenteredNoise(), NumberTable(0, 1, show="variance"), od.PureDP(epsilon), n=n)
    generator, found, noise = np.random.default_rng(3), [], seeded_generator(8)
    for _ in range(runs):
        values = draw(generator, n)
        stages = CenteredSums().run(plan.target(plan.model.summarise(values)), noise).stages
        low, high, *_ = variance_interval(plan, stages, 0.95)
        fourth, spread = ((values - values.mean()) ** 4).mean(), values.var()
        found.append((low[0], high[0], 2 * 1.96 * math.sqrt(max(fourth - spread**2, 0.0) / n)))
    return np.array(found)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(("n", "epsilon"), [(300, 1.0), (2000, 1.0)])
def test_interval_covers_whatever_the_column_is_like(name, n, epsilon):
    """200 data sets; 0.94 less four standard errors, α below 1e-4."""
    truth = COLUMNS[name](np.random.default_rng(1), 2_000_000).var()
    low, high, _ = intervals(COLUMNS[name], n, epsilon, 200).T
    assert ((low <= truth) & (truth <= high)).mean() > 0.94 - 4 * math.sqrt(0.94 * 0.06 / 200)


@pytest.mark.parametrize(
    ("name", "n", "most"), [("exponential", 1000, 2.7), ("t3", 1000, 1.8), ("exponential", 5000, 1.7)]
)
def test_interval_is_not_much_wider_than_the_plain_one(name, n, most):
    """2.5, 1.6 and 1.6 times as wide, where squares about the middle had 4.3, 2.6 and 4.0."""
    low, high, plain = intervals(COLUMNS[name], n, 1.0, 60).T
    assert (high - low).mean() / plain.mean() < most


def certain_count(n, share):
    """The number of far records as if it did not vary."""
    return np.array([n * share]), np.ones(1)


@pytest.mark.parametrize(
    ("where", "name", "fault", "column", "epsilon"),
    [
        (variances, "binomial", certain_count, rare(0.02, lambda g, n: np.zeros(n)), 10.0),
        (
            _SquareTest,
            "_factors",
            lambda self, parts: [1e-16 * part for part in parts],
            COLUMNS["exponential"],
            0.2,
        ),
    ],
    ids=["far part", "noise"],
)
def test_interval_that_forgets_a_part_is_noticed(where, name, fault, column, epsilon, monkeypatch):
    """Coverage falls below 0.8 without the far part's sampling error, or without the noise."""
    monkeypatch.setattr(where, name, fault)
    truth = column(np.random.default_rng(1), 2_000_000).var()
    low, high, _ = intervals(column, 2000, epsilon, 100).T
    assert ((low <= truth) & (truth <= high)).mean() < 0.8


def square_test(near=0.3, far=0.02, fourth=0.1, n=1000.0, scale=1.0):
    return _SquareTest(Squares(n, 0.81, near, far, fourth, 1e-4), NoiseLaw("laplace", scale, True))


def test_chances_fall_and_rise_with_the_candidate():
    test, squares = square_test(scale=2.0**33), np.linspace(0.001, 0.5, 60)
    upper, lower = (
        np.array([chance(v) for v in squares]) for chance in (test.upper_chance, lambda v: test.lower_chance(v, 0.95))
    )
    assert (np.diff(upper) <= 1e-9).all()
    assert (np.diff(lower) >= -0.01).all()
    assert upper[0] > 0.9 > 0.1 > upper[-1]
    assert lower[0] < 0.1 < 0.9 < lower[-1]


def test_ends_without_noise_are_those_of_the_normal_sampling_error():
    """No far part and a fourth moment known: z has mean 0.0375 and E z² = 0.1/64."""
    test = square_test(near=0.3, far=0.0, fourth=0.1, n=1e6)
    low, high, sampling, _ = test.interval(0.95)
    error = math.sqrt(0.1 / 64 - 0.0375**2) / 1e3
    assert sampling == pytest.approx(0.81 * error, rel=1e-3)
    assert low == pytest.approx(0.81 * (0.0375 - 1.96 * error), rel=2e-3)
    assert high == pytest.approx(0.81 * (0.0375 + 1.96 * error), rel=2e-2)


def test_lower_end_gives_the_far_part_more_weight_where_noise_is_small():
    small, large = (square_test(scale=scale).weight_for(0.05) for scale in (2.0**28, 2.0**40))
    assert large < small
    assert small > 0.8


@pytest.mark.parametrize(("n", "epsilon"), [(50, 1e-4), (1, 1.0), (50, 1.0)])
def test_mean_that_is_only_noise_leaves_the_whole_range(n, epsilon):
    """Its squares are not corrected by more than the range allows."""
    values = np.random.default_rng(3).uniform(0.0, 1.0, n)
    plan = od.calibrate(CenteredNoise(), NumberTable(0, 1, show="variance"), od.PureDP(epsilon), n=n)
    target = plan.target(plan.model.summarise(values))
    for seed in range(20):
        stages = CenteredSums().run(target, seeded_generator(seed)).stages
        low, high, *_ = variance_interval(plan, stages, 0.95)
        assert low[0] <= 1 / 12 <= high[0]


@pytest.mark.parametrize("noisy", [-5.0, 5.0])
def test_noise_beyond_what_can_be_still_gives_an_interval(noisy):
    low, high, *_ = square_test(near=noisy, far=noisy, fourth=noisy, scale=2.0**42).interval(0.95)
    assert 0.0 <= low <= high <= 0.25 * 1000 / 999


def test_estimator_takes_two_stages_where_they_pay_and_shows_an_interval():
    values = np.random.default_rng(3).exponential(1.0, 1000)
    many = od.DPVariance(epsilon=1.0, delta=0, bounds=(0, 10), random_state=1).fit(values)
    few = od.DPVariance(epsilon=0.1, delta=0, bounds=(0, 10), random_state=1).fit(values)
    assert type(many.choice_.best.mechanism).__name__ == "CenteredNoise"
    assert type(few.choice_.best.mechanism).__name__ == "AddedNoise"
    (low, high), wider = many.conf_int()[0], many.conf_int(0.99)[0]
    assert wider[0] <= low <= many.variance_ <= high <= wider[1]
    assert "variance" in str(many.summary())
