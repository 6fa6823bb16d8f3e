"""What averaged steps estimate: least squares, maximum likelihood and quantiles, with standard errors that hold (result.py, steps.py)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

import onedraw as od
from onedraw.methods.fit.result import StepsResult
from onedraw.methods.fit.scores import Score
from onedraw.methods.fit.steps import Curvature, _shares_left
from onedraw.models.normal_estimates import Reason, Refusal

from .cases import KINDS, TRUTH, plan_of, run, table_of

N = 60_000
LARGE = od.ApproxDP(4.0, 1e-6)


def without_privacy(kind: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the estimate that is estimated: by normal equations, Newton's method, or a linear program's smooth stand-in."""
    Z = np.column_stack([X, np.ones(len(X))])
    if kind in ("number", "quantile"):
        start = np.linalg.lstsq(Z, np.clip(y, -4, 4), rcond=None)[0]
        if kind == "number":
            return start

        def check(theta: np.ndarray) -> tuple[float, np.ndarray]:
            # |t| smoothed within a thousandth: what it moves is far below a standard error
            t, h = Z @ theta - y, 1e-3
            root = np.sqrt(t * t + h * h)
            return float(root.sum()), Z.T @ (t / root)

        return np.asarray(optimize.minimize(check, start, jac=True, method="BFGS").x)
    theta = np.zeros(3)
    for _ in range(30):
        u = Z @ theta
        if kind == "label":
            mean, weight = special.expit(u), special.expit(u) * special.expit(-u)
            pull = y - mean
        else:
            weight = np.exp(u)
            pull = np.minimum(y, 8) - weight
        theta = theta + np.linalg.solve((Z * weight[:, None]).T @ Z, Z.T @ pull)
    return theta


@pytest.mark.parametrize("kind", KINDS)
def test_estimate_is_that_without_privacy_up_to_its_noise(kind: str) -> None:
    """At 60,000 records, over four noises: the mean error in units of the privacy error alone stays within 4.5 of its own."""
    plan, (X, y) = plan_of(kind, N, LARGE), table_of(kind, N, 21)
    exact, scores = without_privacy(kind, X, y), []
    for seed in range(4):
        result = run(plan, (X, y), seed)
        assert result.given.all()
        assert result.reached
        assert result.standard_errors == pytest.approx(np.full(3, result.standard_errors.mean()), rel=0.6)
        # least squares is moved by shortened scores, which the sampling error has room for
        scores.append((result.estimate - exact) / np.hypot(result.errors[1], 0.1 * result.errors[0]))
        assert np.abs(result.estimate - TRUTH).max() <= 5.0 * result.standard_errors.max()
        assert result.standard_errors.max() <= 0.02
    assert np.abs(np.mean(scores, axis=0)).max() <= 4.5 / math.sqrt(4)
    assert np.abs(scores).max() <= 5.0


def squared_scores(kind: str, repetitions: int, factor: float = 1.0) -> np.ndarray:
    """Return squared errors over variances on tables of their own, standard errors times ``factor``."""
    plan, found = plan_of(kind, 4000, od.ApproxDP(1.5, 1e-6)), []
    for seed in range(repetitions):
        result = run(plan, table_of(kind, 4000, 100 + seed), seed)
        assert result.given.all()
        found.append(((result.estimate - TRUTH) / (factor * result.standard_errors)) ** 2)
    return np.array(found)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["number", "label"])
def test_errors_cover_and_halved_errors_do_not(kind: str) -> None:
    """40 fits of 3 coefficients. Their mean squared score is χ² over its degrees of freedom; α = 1e-6 above.

    Coefficients are nearly independent. Standard errors may be up to a third too long: allowances are part of them.
    """
    scores = squared_scores(kind, 40)
    degrees = scores.size
    longest = stats.chi2.isf(1e-6, degrees) / degrees
    shortest = stats.chi2.ppf(1e-6, degrees) / degrees / 1.33**2
    assert shortest < scores.mean() < longest
    assert 4.0 * scores.mean() > longest  # the planted fault: halved standard errors
    assert np.mean(scores <= stats.norm.ppf(0.975) ** 2) >= stats.binom.ppf(1e-6, degrees, 0.95) / degrees
    assert np.mean(4.0 * scores <= stats.norm.ppf(0.975) ** 2) < stats.binom.ppf(1e-6, degrees, 0.95) / degrees


# Heavy tails


def heavy(tails: float | None) -> StepsResult:
    return run(plan_of("number", 4000, bound=20.0), table_of("number", 4000, 5, tails=tails))


def test_heavy_tails_are_named_and_light_ones_are_not() -> None:
    light, tailed = heavy(None), heavy(1.1)
    assert light.reached
    assert light.remark == ""
    assert light.estimand == "least-squares coefficients"
    assert not tailed.reached
    assert tailed.limited > 2.0 * light.limited
    assert "influence" in tailed.remark
    assert tailed.share_limited[0] > 0.005


def test_a_count_within_its_noise_names_nothing() -> None:
    result = heavy(None)
    assert result.published.count is not None
    noise = result.problem.sizes.count_noise
    for count, reached in ((-3.0, True), (0.0, True), (0.9, True), (1.1, False), (9.0, False)):
        published = replace_count(result, count * noise)
        assert published.reached is reached
        assert (published.remark == "") is reached
        assert published.limited >= 0.0


def without_allowance(result: StepsResult) -> np.ndarray:
    """Return the privacy part if both averages were the same."""
    same = replace(result, published=replace(result.published, early=result.published.step))
    return same.parts[1]


def test_allowance_is_at_most_twice_the_noise_where_counts_chose_the_bound() -> None:
    """However far apart both averages are."""
    found = run(plan_of("label", N, LARGE), table_of("label", N, 21))
    assert found.problem.factor < 1.0
    result = replace(found, published=replace(found.published, early=found.published.step + 0.5))
    assert result.specification > 100.0
    noise = without_allowance(result)
    extra = result.parts[1] - noise
    assert 0.0 < np.trace(np.linalg.solve(noise, extra)) <= 4.0 * 3 * (1.0 + 1e-9)
    longest = replace(result, problem=replace(result.problem, factor=1.0))
    assert np.trace(np.linalg.solve(noise, longest.parts[1] - noise)) > 100.0


def test_classes_of_a_model_that_holds_are_not_moved_by_shorter_scores() -> None:
    """Whether a record counts less depends on its columns, not on its class: both averages agree though many scores are long."""
    for seed in (21, 22, 23):
        result = run(plan_of("label", N, LARGE), table_of("label", N, seed), seed)
        assert result.problem.factor < 1.0
        assert result.specification < 8.0


def table_with_a_rare_level(seed: int, n: int = 8000) -> tuple[np.ndarray, np.ndarray]:
    """Return counts with a 0/1 column that one record in a hundred has: its moments are shortened far below the true ones."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, n), np.where(rng.uniform(size=n) < 0.01, 1.0, -1.0)])
    return X, np.minimum(rng.poisson(np.exp(X @ np.array([0.8, 1.0]) + 0.4)), 8).astype(float)


def rare_errors() -> np.ndarray:
    plan = plan_of("count", 8000, od.ApproxDP(20.0, 1e-6))
    return np.array([run(plan, table_with_a_rare_level(seed), seed).estimate[1] - 1.0 for seed in range(4)])


def far_table(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulate odds that fall steeply along a column with a long tail: records far out say nothing, and most are near its lower end."""
    rng = np.random.default_rng(seed)
    far = np.minimum(rng.lognormal(-6.2, 1.8, n), 1.0)
    X = np.column_stack([2.0 * far - 1.0, rng.uniform(-1, 1, n)])
    return X, (rng.uniform(size=n) < special.expit(0.5 * X[:, 1] - 1.2 - 150.0 * far)).astype(int)


def test_steps_that_are_still_on_their_way_give_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, table = plan_of("label", 20_000, LARGE), far_table(20_000, 0)
    result = run(plan, table)
    assert result.given.tolist() == [False, True, False]
    refusals = result.refusals
    assert refusals[1] is None
    assert refusals[0] == refusals[2] == Refusal(Reason.UNSETTLED, (0,))
    monkeypatch.setattr("onedraw.methods.fit.result.LARGEST_WAY", math.inf)
    off = (replace(result).estimate[0] + 75.0) / replace(result).standard_errors[0]
    assert off > 3.0, "an interval here would miss"


@pytest.mark.parametrize("rate", [0.03, 0.1, 0.4, 0.9])
def test_way_left_is_that_of_steps_without_noise(rate: float) -> None:
    """Steps that leave 1 − rate of the way each, averaged as the program does."""
    theta = (1.0 - rate) ** np.arange(43.0)  # the solution is 0
    early, damping = theta[4:12].mean(), 2.5
    late = theta[12:42].mean() + (damping - 1.0) * (theta[42] - theta[12]) / 30.0
    left = _shares_left(np.array([rate]), damping)[0] * (late - early)
    assert left == pytest.approx(-late if late > 0.0 else 0.0, abs=1e-12)


def test_squares_that_are_shortened_along_a_rare_level_do_not_shorten_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A column that 5 % of the records have: their squared scores are shortened, their information is not."""
    rng = np.random.default_rng(3)
    X = np.column_stack([np.where(rng.uniform(size=20_000) < 0.05, 1.0, -1.0), rng.uniform(-1, 1, 20_000)])
    chance = special.expit(0.3 * X[:, 0] - 1.0)
    Z = np.column_stack([X, np.ones(len(X))])
    plain = np.sqrt(np.diag(np.linalg.inv((Z * (chance * (1.0 - chance))[:, None]).T @ Z)))
    plan = plan_of("label", 20_000, od.ApproxDP(10.0, 1e-6))
    result = run(plan, (X, (rng.uniform(size=20_000) < chance).astype(int)))
    raised = result.errors[0]
    assert (raised > 0.9 * plain).all()
    monkeypatch.setattr(Score, "variance_follows", False)
    assert replace(result).errors[0][0] < 0.85 * raised[0]


def test_counts_that_scatter_less_than_poisson_ones_keep_their_short_intervals() -> None:
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (20_000, 2))
    y = (1.0 + (rng.uniform(size=20_000) < 0.5)).astype(float)  # mean 1.5, variance 0.25
    sampling = run(plan_of("count", 20_000, od.ApproxDP(10.0, 1e-6)), (X, y)).errors[0]
    poisson = np.array([3.0, 3.0, 1.0]) ** 0.5 / math.sqrt(1.5 * 20_000)
    assert (sampling < 0.7 * poisson).all()


def test_steps_do_not_jump_across_the_solution_along_a_rare_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """They learn from the published sums that information is larger there; the planted fault is that they do not."""
    assert np.sqrt(np.mean(rare_errors() ** 2)) < 0.1
    monkeypatch.setattr(Curvature, "learn", lambda *given: False)
    assert np.sqrt(np.mean(rare_errors() ** 2)) > 0.3


def replace_count(result: StepsResult, count: float) -> StepsResult:
    return replace(result, published=replace(result.published, count=np.array([count])))


def test_misfit_between_both_averages_widens_the_privacy_part() -> None:
    result = heavy(None)
    moved = replace(result, published=replace(result.published, early=result.published.step + 0.5))
    assert moved.specification > 10.0 * max(1.0, result.specification)
    assert (np.diag(moved.parts[1]) >= np.diag(without_allowance(result))).all()
    assert moved.errors[1].max() > 2.0 * result.errors[1].max()


# Units and tests


def test_units_carry_estimate_errors_and_reach_alike() -> None:
    result = run(plan_of("number", 4000), table_of("number", 4000, 6))
    change, scale, shift = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 1.0]]), np.array([3.0, 1.0]), np.array([0.5, -1.0])
    moved = result.in_units(change, scale, shift)
    full: Any = scale[:, None] * change
    assert moved.estimate == pytest.approx(full @ result.estimate + shift)
    assert moved.covariance == pytest.approx(full @ result.covariance @ full.T)
    assert result.reach(change, 0.95) == pytest.approx(
        1.959964 * np.sqrt(np.diag(change @ result.covariance @ change.T))
    )


def test_wald_test_finds_an_effect_and_not_a_missing_one() -> None:
    result = run(plan_of("label", 20_000), table_of("label", 20_000, 8))
    statistic, degrees, p = result.wald([0, 1])
    assert degrees == 2
    assert statistic > 30.0
    assert p < 1e-6
    centered = result.in_units(np.eye(3)[:2], np.ones(2), -TRUTH[:2])
    assert centered.wald([0, 1])[2] > 1e-4


def test_posterior_has_the_moments_of_the_estimate() -> None:
    result = run(plan_of("number", 4000), table_of("number", 4000, 6))
    draws = result.posterior(20_000, np.random.default_rng(1))
    assert draws.mean(axis=0) == pytest.approx(
        result.estimate, abs=5.0 * result.standard_errors.max() / math.sqrt(20_000)
    )
    assert np.cov(draws.T) == pytest.approx(result.covariance, abs=0.06 * result.covariance.max())
