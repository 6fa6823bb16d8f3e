"""Comparisons of groups: what differs is found, noise counts, little is said of what noise hides, and alike groups are rarely told apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import onedraw as od
from onedraw.methods import AddedNoise, comparisons
from onedraw.methods.added_noise.intervals import group_scores
from onedraw.methods.comparisons import ALL_PAIRS, Scores, independence
from onedraw.methods.intervals import Published
from onedraw.methods.noise_law import NoiseLaw
from onedraw.models import CategoryTable, Grouped, NumberTable

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


# ── missing cells that are skipped ───────────────────────────────────────────────────────────────────────────


def skipping_scores(table, values, codes, seed, budget):
    """Return the scores of a release and its plan."""
    records = Grouped(values, (codes,))
    plan = od.calibrate(AddedNoise(), table, budget, n=len(values))
    summary = table.summarise(records)
    noise = plan.mechanism.simulated_noise(
        plan, (len(plan.mechanism.target(plan, summary).sums),), np.random.default_rng(seed)
    )
    stages = {"noisy sums": np.rint(np.array(plan.mechanism.target(plan, summary).sums, dtype=float) + noise)}
    return group_scores(plan, stages), plan, stages


@pytest.mark.parametrize("sizes", [None, (1200, 1200)])
@pytest.mark.parametrize("kind", ["mean", "share"])
def test_groups_whose_cells_are_missing_are_compared_by_known_ones(kind, sizes):
    """Half of one group's cells are missing: differences about 0 are as far off as their deviations say."""
    found, counted = [], []
    shared = {"missing": "skip", "by": ("g",), "groups": (("a", "b"),), "sizes": sizes}
    table = NumberTable(0.0, 10.0, **shared) if kind == "mean" else CategoryTable(("x", "y"), show="shares", **shared)
    codes = np.repeat([0.0, 1.0], 1200)
    for seed in range(150):
        generator = np.random.default_rng(seed)
        values = generator.uniform(6.0, 10.0, 2400) if kind == "mean" else (generator.random(2400) < 0.8) * 1.0
        values[:600] = np.nan
        scores, plan, stages = skipping_scores(table, values, codes, seed, od.PureDP(0.3))
        found.append((scores.values[0] - scores.values[1]) / np.hypot(*scores.deviations))
        counted.append(np.mean([one.value for one in plan.mechanism.known_of(plan, stages)[:1]]))
        assert scores.values == pytest.approx([0.8, 0.8], abs=0.2)
    assert 0.8 < np.std(found) < 1.2
    assert abs(np.mean(found)) < 0.3
    assert np.mean(counted) == pytest.approx(600, abs=10)


def test_standard_deviations_are_of_known_cells():
    generator = np.random.default_rng(5)
    values, codes = generator.uniform(2.0, 6.0, 4000), np.repeat([0.0, 1.0], 2000)
    values[:1500] = np.nan
    for sizes in (None, (2000, 2000)):
        table = NumberTable(0.0, 10.0, missing="skip", by=("g",), groups=(("a", "b"),), sizes=sizes)
        _, plan, stages = skipping_scores(table, values, codes, 7, od.PureDP(3.0))
        value, low, high = plan.mechanism.deviations(
            plan, Published(np.zeros((1, 2)), stages, 1.0, np.eye(2), np.ones(2), np.zeros(2), ("a", "b")), 0.95
        )
        truth = 4.0 / np.sqrt(12.0)
        assert ((low <= truth) & (truth <= high)).all()
        assert value == pytest.approx([truth, truth], abs=0.6)
