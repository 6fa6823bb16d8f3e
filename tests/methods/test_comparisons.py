"""Comparisons of groups: what differs is found, noise counts, little is said of what noise hides, and alike groups are rarely told apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from onedraw.methods import comparisons
from onedraw.methods.comparisons import ALL_PAIRS, Scores, independence
from onedraw.methods.noise_law import NoiseLaw

NAMES = ("a", "b", "c", "d", "e", "f", "g", "h")


def cells_of(generator, sizes, means):
    """Exact cells ((1 − t)², 2t(1 − t), t²) of records about these means."""
    rows = []
    for size, mean in zip(sizes, means, strict=True):
        t = generator.beta(4 * mean, 4 * (1 - mean), size)
        rows.append([((1 - t) ** 2).sum(), (2 * t * (1 - t)).sum(), (t**2).sum()])
    return np.array(rows)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.5, 30.0])
def test_alike_groups_are_rejected_in_about_one_of_twenty(law, scale, monkeypatch):
    monkeypatch.setattr(comparisons, "SIMULATED", 999)
    generator, rejected, jointly, runs = np.random.default_rng(7), 0, 0, 500
    noise_law = NoiseLaw(law, scale, law == "gaussian")
    for _ in range(runs):
        cells = cells_of(generator, (900, 600, 500), (0.3,) * 3)
        draws = generator.laplace if law == "laplace" else generator.normal
        scores = Scores.of_cells("mean", NAMES[:3], cells + draws(0.0, scale, cells.shape), noise_law, split=True)
        rejected += scores.compare().differences[0].p_value < 0.05
        jointly += scores.joint().p_value < 0.05
    for count in (rejected, jointly):
        assert stats.binom.cdf(count, runs, 0.03) > 1e-3
        assert stats.binom.sf(count - 1, runs, 0.065) > 1e-3


def test_a_test_that_forgets_the_noise_rejects_too_often():
    generator, runs, forgotten = np.random.default_rng(8), 300, 0
    for _ in range(runs):
        cells = cells_of(generator, (900, 600), (0.3, 0.3)) + generator.laplace(0.0, 30.0, (2, 3))
        scores = Scores.of_cells("mean", NAMES[:2], cells, NoiseLaw("laplace", 1e-9, False), split=True)
        forgotten += scores.compare().differences[0].p_value < 0.05
    assert stats.binom.cdf(forgotten, runs, 0.10) > 0.5


def test_a_difference_is_found_with_its_interval():
    cells = cells_of(np.random.default_rng(1), (4000, 4000), (0.3, 0.5))
    scores = Scores.of_cells("mean", NAMES[:2], cells, NoiseLaw("laplace", 4.0, False), split=True, scale=100.0)
    (row,) = scores.compare().differences
    assert row.low <= -20.0 <= row.high < -15.0
    assert row.p_value < 1e-6
    assert "mean" in str(scores.compare())


def test_a_group_hidden_by_noise_has_no_difference_and_no_test():
    cells = np.array([[500.0, 300.0, 200.0], [2.0, -3.0, 1.0], [400.0, 200.0, 100.0]])
    found = Scores.of_cells("mean", NAMES[:3], cells, NoiseLaw("laplace", 20.0, False), split=True).compare()
    known = [row for row in found.differences if not math.isnan(row.p_value)]
    assert [(row.first, row.second) for row in known] == [("a", "c")]
    assert math.isnan(found.joint.p_value)
    assert found.to_dict()["joint"]["p_value"] is None


def test_shares_of_public_and_of_private_groups_agree_without_noise():
    counts, quiet = np.array([[700.0, 300.0], [800.0, 200.0]]), NoiseLaw("laplace", 1e-6, False)
    private = Scores.of_shares(NAMES[:2], counts, None, quiet).compare().differences[0]
    public = Scores.of_shares(NAMES[:2], counts, counts.sum(axis=1), quiet).compare().differences[0]
    assert private[2:] == pytest.approx(public[2:], abs=1e-6)
    pooled = math.sqrt(0.25 * 0.75 * 2 / 1000)
    assert private.p_value == pytest.approx(2 * stats.norm.sf(0.1 / pooled), rel=1e-6)


def test_many_groups_are_compared_with_the_first():
    cells = cells_of(np.random.default_rng(1), (300,) * 8, (0.4,) * 8)
    scores = Scores.of_cells("mean", NAMES, cells, NoiseLaw("gaussian", 1.0, True), split=True)
    assert len(scores.names) > ALL_PAIRS
    assert [row.second for row in scores.compare().differences] == ["a"] * 7


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_independence_keeps_its_level_and_finds_association(law):
    generator, rejected, runs = np.random.default_rng(9), 0, 200
    noise_law = NoiseLaw(law, 6.0, law == "gaussian")
    draws = generator.laplace if law == "laplace" else generator.normal
    shares = np.outer([0.5, 0.3, 0.2], [0.6, 0.25, 0.15])
    for _ in range(runs):
        counts = generator.multinomial(1500, shares.reshape(-1)).reshape(3, 3) + np.rint(draws(0.0, 6.0, (3, 3)))
        rejected += independence(counts, 1500, noise_law).p_value < 0.05
    assert stats.binom.cdf(rejected, runs, 0.03) > 1e-3
    assert stats.binom.sf(rejected - 1, runs, 0.065) > 1e-3
    associated = np.array([[500.0, 100.0, 50.0], [100.0, 300.0, 50.0], [50.0, 50.0, 300.0]])
    assert independence(associated, 1500, noise_law).p_value < 0.001
    assert math.isnan(independence(np.array([[3.0, -2.0], [1.0, 0.0]]), 2, noise_law).p_value)


def test_a_simulated_p_value_is_the_same_twice():
    cells = cells_of(np.random.default_rng(1), (300,) * 3, (0.4, 0.45, 0.4))
    scores = Scores.of_cells("mean", NAMES[:3], cells, NoiseLaw("laplace", 5.0, False), split=True)
    assert scores.joint() == scores.joint()
