"""The search for the worst pair finds it where it is known, and never leaves the declared domain."""

import math

import numpy as np
import pytest

from onedraw.audit import Ball, Box, Finite, Product, exact_profile, worst_pair
from onedraw.audit.search import differing_record
from onedraw.errors import WrongCall


@pytest.fixture
def generator():
    return np.random.default_rng(11)


DOMAINS = {
    "interval": Box(-1.0, 2.0),
    "box": Box([-1.0, 0.0], [1.0, 5.0]),
    "ball": Ball(2.0, 3),
    "symmetric interval": Ball(0.5),
    "labels": Finite([-1, 1]),
    "rows": Finite([[0, 0], [1, 0], [0, 1]]),
    "features and label": Product(Ball(1.0, 2), Finite([-1, 1])),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_everything_tried_is_a_pair_of_the_domain(name, generator):
    domain = DOMAINS[name]
    seen = []

    def score(dataset, neighbour):
        assert np.all(domain.inside(domain.rows(dataset)))
        assert np.all(domain.inside(domain.rows(neighbour)))
        differing_record(dataset, neighbour, n=4)
        seen.append(dataset.shape)
        return float(np.sum(np.asarray(dataset)) - np.sum(np.asarray(neighbour)))

    found = worst_pair(score, domain, 4, generator=generator, evaluations=150)
    assert len(seen) <= 150
    assert set(seen) == ({(4,)} if domain.scalar else {(4, domain.dimension)})
    assert found.value == score(found.dataset, found.neighbour)


def test_the_worst_pair_of_a_sum_is_two_ends_of_the_interval(generator):
    found = worst_pair(
        lambda dataset, neighbour: abs(dataset.sum() - neighbour.sum()), Box(-1.0, 3.0), 5, generator=generator
    )
    assert found.value == pytest.approx(4.0)


def test_the_worst_pair_of_a_sum_in_a_ball_is_two_opposite_points(generator):
    found = worst_pair(
        lambda dataset, neighbour: float(np.linalg.norm(dataset.sum(axis=0) - neighbour.sum(axis=0))),
        Ball(1.0, 4), 3, generator=generator, evaluations=600,
    )  # fmt: skip
    assert found.value > 1.98


def test_the_worst_pair_of_a_proportions_posterior_is_found_by_its_exact_log_ratio(generator):
    """Beta(1 + s, 1 + n − s) on [0.01, 0.99]: worst where all records agree and the odd one is replaced."""
    n = 4

    def logdensity(successes):
        return lambda x: successes * np.log(x[:, 0]) + (n - successes) * np.log1p(-x[:, 0])

    def score(dataset, neighbour):
        laws = logdensity(dataset.sum()), logdensity(neighbour.sum())
        return exact_profile(*laws, (0.01, 0.99), tolerance=1e-4).largest_log_ratio

    table = {
        s: score(np.array([1.0] * s + [0.0] * (n - s)), np.array([1.0] * (s + 1) + [0.0] * (n - s - 1)))
        for s in range(n)
    }
    found = worst_pair(score, Finite([0, 1]), n, generator=generator, evaluations=40)
    assert found.value == pytest.approx(max(table.values()), rel=1e-6)


def test_a_start_is_improved_on(generator):
    start = np.zeros(3), np.array([0.0, 0.1, 0.0])
    found = worst_pair(
        lambda dataset, neighbour: abs(dataset.sum() - neighbour.sum()),
        Box(0.0, 1.0), 3, generator=generator, evaluations=80, start=start,
    )  # fmt: skip
    assert found.value > 0.9
    only = worst_pair(
        lambda a, b: abs(a.sum() - b.sum()), Box(0.0, 1.0), 3, generator=generator, evaluations=1, start=start
    )
    assert only.value == pytest.approx(0.1)


def test_an_infinite_or_undefined_score_does_no_harm(generator):
    assert worst_pair(lambda a, b: math.inf, Box(0.0, 1.0), 2, generator=generator).value == math.inf
    assert worst_pair(lambda a, b: math.nan, Box(0.0, 1.0), 2, generator=generator, evaluations=20).value == -math.inf


@pytest.mark.parametrize(
    "start", [([0.0], [0.0, 1.0]), ([0.0, 0.0], [1.0, 1.0]), ([0.0, 0.0], [0.0, 7.0]), ([0.0] * 3, [0.0] * 3)]
)
def test_a_start_that_is_no_pair_of_the_domain_is_refused(start, generator):
    with pytest.raises(WrongCall):
        worst_pair(lambda a, b: 0.0, Box(0.0, 1.0), 2, generator=generator, start=start)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Box(1.0, 0.0), lambda: Box(0.0, math.inf), lambda: Box([0.0], [0.0, 1.0]), lambda: Ball(0.0),
        lambda: Ball(1.0, 0), lambda: Finite([]), lambda: Finite([math.nan]), lambda: Product(), lambda: Product(3.0),
    ],
)  # fmt: skip
def test_a_domain_that_is_none_is_refused(build):
    with pytest.raises(WrongCall):
        build()
