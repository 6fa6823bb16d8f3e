"""What predictions keep of a fit: the share of its slopes that noise does not explain (methods/fit/prediction.py)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import onedraw as od
from onedraw.methods.fit.prediction import POINTS, is_drawn_back, share_kept
from onedraw.methods.fit.result import StepsResult

from .cases import MORE, plan_of, run, table_of

SMALL = od.ApproxDP(0.6, 1e-6)


def test_share_of_a_line_is_what_noise_does_not_explain() -> None:
    assert share_kept(np.full(POINTS, 8.0), 1.5) == pytest.approx(1.0 - 1.5 / 8.0)


@pytest.mark.parametrize("by_noise", [8.0, 8.1, 90.0])
def test_level_alone_is_left_where_noise_explains_the_whole_way(by_noise: float) -> None:
    assert share_kept(np.full(POINTS, 8.0), by_noise) == 0.0


def test_share_counts_the_information_along_the_way() -> None:
    """Of δᵀH(u)δ = 4(1 − u)³ the way from t to 1 is (1 − t)⁴: 1/16 is left from a half on."""
    along = 4.0 * (1.0 - np.linspace(0.0, 1.0, 4001)) ** 3
    assert share_kept(along, 1.0 / 16.0) == pytest.approx(0.5, abs=1e-6)
    assert share_kept(along, 0.0) == 1.0


def test_labels_told_apart_nearly_without_fault_keep_their_slopes() -> None:
    """Their information is small at the estimate and large on the way to the level, which they are far from."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (3000, 2))
    y = (rng.uniform(size=3000) < special.expit(9.0 * X[:, 0])).astype(int)
    result = run(plan_of("label", 3000, od.ApproxDP(2.0, 1e-6)), (X, y))
    moved = result.published.step - result.where.level
    noise = result._covariance + result._noise[0] ** 2 * result._noise_shape
    by_noise = np.trace(np.linalg.solve(result._information, noise))
    unchanged = max(0.0, 1.0 - by_noise / (moved @ result._information @ moved))
    assert unchanged < result.kept < 1.0
    assert result.kept > 0.5


@pytest.mark.parametrize(("size", "most"), [(0.0, 0.15), (1.0, 0.4), (10.0, 1.005)])
def test_expected_loss_is_below_that_of_the_estimate(size: float, most: float) -> None:
    """Known normal noise in six directions, whose loss is 9 for the estimate: without a signal, with a weak one, with a strong one."""
    rng = np.random.default_rng(3)
    information = np.diag([1.0, 2.0, 3.0, 1.0, 1.0, 2.0])
    noise, truth = 1.5 * information, size * np.array([0.9, -0.5, 0.4, 0.7, 0.0, 0.3])
    spread = np.linalg.inv(information) @ noise @ np.linalg.inv(information)
    found = truth + rng.multivariate_normal(np.zeros(6), spread, 4000)
    by_noise = float(np.trace(np.linalg.solve(information, noise)))
    shares = np.array([share_kept(np.full(POINTS, one @ information @ one), by_noise) for one in found])
    apart = shares[:, None] * found - truth
    assert float(np.einsum("ij,jk,ik->i", apart, information, apart).mean()) < most * 9.0


@pytest.mark.parametrize("kind", ["number", "label", "count", "classes"])
def test_level_has_no_slopes_and_is_the_published_one(kind: str) -> None:
    X, y = table_of(kind, 8000)
    result = run(plan_of(kind), (X, y))
    level = result.change @ result.where.level + result.shift
    blocks = level.reshape(-1, 3)
    assert np.abs(blocks[:, :2]).max() < 1e-12
    if kind == "classes":
        shares = np.array([np.mean(y == one) for one in "abc"])
        assert special.softmax(blocks[:, 2]) == pytest.approx(shares, abs=0.02)
    elif kind == "label":
        assert special.expit(blocks[0, 2]) == pytest.approx(y.mean(), abs=0.02)
    else:
        assert (np.exp(blocks[0, 2]) if kind == "count" else blocks[0, 2]) == pytest.approx(
            np.mean(y), rel=0.05, abs=0.05
        )


@pytest.mark.parametrize("kind", ["number", "label", "count", "classes"])
def test_predicting_coefficients_lie_between_level_and_estimate(kind: str) -> None:
    result = run(plan_of(kind), table_of(kind, 8000))
    assert 0.8 < result.kept < 1.0
    level = result.change @ result.where.level + result.shift
    between = level + result.kept * (result.estimate - level)
    np.testing.assert_allclose(result.predicting, between, rtol=1e-12, atol=1e-12)
    doubled = result.in_units(np.eye(len(level)), np.full(len(level), 2.0), np.zeros(len(level)))
    np.testing.assert_allclose(doubled.predicting, 2.0 * between, rtol=1e-12, atol=1e-12)


def test_columns_that_say_nothing_are_left_out_more_often_than_not() -> None:
    """Labels without a signal at a small budget: shares near 0, and predictions never farther from the level than the fit's."""
    shares = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-1, 1, (3000, 2)), rng.integers(0, 2, 3000)
        result = run(plan_of("label", 3000, SMALL), (X, y), seed)
        shares.append(result.kept)
        assert np.abs(result.predicting[:2]).max() <= np.abs(result.estimate[:2]).max()
    assert np.median(shares) < 0.5
    assert min(shares) == 0.0


def kept_of(kind: str, **options: bool) -> StepsResult:
    return run(plan_of(kind, 4000, **options), table_of(kind.removeprefix("robust "), 4000))


@pytest.mark.parametrize("kind", ["quantile", *(kind for kind in MORE if kind != "classes")])
def test_what_is_no_mean_and_robust_lines_are_predicted_as_estimated(kind: str) -> None:
    result = kept_of(kind)
    assert not is_drawn_back(result.problem)
    assert result.kept == 1.0
    np.testing.assert_array_equal(result.predicting, result.estimate)
    assert result.about_predictions == ""


def test_declared_prior_is_not_drawn_back_again() -> None:
    assert not is_drawn_back(plan_of("label", 4000, prior=True).mechanism.problem(plan_of("label", 4000, prior=True)))


def test_line_without_an_intercept_has_no_level_to_be_drawn_to() -> None:
    plan = plan_of("label", 4000, intercept=False)
    assert not is_drawn_back(plan.mechanism.problem(plan))
