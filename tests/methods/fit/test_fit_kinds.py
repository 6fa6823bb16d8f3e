"""Robust lines, margins, several classes and declared priors: that steps find what they are said to find, whatever ε is (kinds.py, class_scores.py)."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

import onedraw as od
from onedraw.data.sums import Blocks, block_rows, blocked
from onedraw.errors import PromiseRefused, WrongCall
from onedraw.methods import calibrate
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit import mechanism as promising
from onedraw.methods.fit import run as running
from onedraw.methods.fit.audit import steps_case
from onedraw.methods.fit.class_scores import ClassScore, class_score, points
from onedraw.methods.fit.kinds import FIXED_LENGTH, LIMITS
from onedraw.methods.fit.replay import replay_steps
from onedraw.methods.fit.run import Stages
from onedraw.methods.fit.scores import Score, score_of
from onedraw.methods.fit.sums import (
    ClassInformation,
    ClassShares,
    ClippedScores,
    Responses,
    ScoreCovariance,
    StepRows,
)
from onedraw.models import Gaussian, LogCoshRegression, Logistic, OrdinaryLeastSquares, Softmax
from onedraw.models.moments.measured import Layout
from onedraw.plans import Plan

from .cases import CLASSES, model_of, plan_of, run, table_of

N = 40_000
MUCH = od.ApproxDP(40.0, 1e-6)
"""Under which noise is small beside sampling."""


def with_ones(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X))])


def rooted(equations: Any, size: int) -> np.ndarray:
    found = optimize.root(equations, np.zeros(size), method="lm", tol=1e-10)
    assert np.abs(found.fun).max() < 1e-6
    return np.asarray(found.x)


def row_weights(X: np.ndarray, longest: float | np.ndarray = 1.0) -> np.ndarray:
    """Return min(1, √p/(‖z‖·longest ψ)) in standardized coordinates, in plain NumPy."""
    z = np.linalg.solve(np.linalg.cholesky(np.cov(X.T)), (X - X.mean(axis=0)).T)
    return np.minimum(1.0, math.sqrt(len(z) + 1) / (np.sqrt(1.0 + (z**2).sum(axis=0)) * longest))


def skewed(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and responses with long tails on one side, about no line."""
    X, y = table_of("number", n, seed)
    rng = np.random.default_rng(seed + 50)
    return X, np.clip(y + 0.8 * X[:, 0] ** 2 + 0.5 * (rng.exponential(size=n) - 1.0) * (1.0 + X[:, 0]), -4.0, 4.0)


# What is estimated


def test_robust_line_is_the_declared_one_at_every_epsilon_and_not_least_squares() -> None:
    X, y = skewed(N)
    rows, weights = with_ones(X), row_weights(X)
    plain = np.linalg.lstsq(rows, y, rcond=None)[0]
    unit = np.std(y - rows @ plain)
    line = rooted(lambda b: rows.T @ (weights * np.tanh((y - rows @ b) / unit)) / len(y), 3)
    results = [run(plan_of("robust number", N, od.ApproxDP(epsilon, 1e-6)), (X, y)) for epsilon in (1.0, 40.0)]
    for result in results:
        assert result.given.all()
        assert (np.abs(result.estimate - line) < 4.0 * result.standard_errors).all()
    assert np.abs(results[1].estimate - line).max() < 0.01
    assert np.abs(line - plain).max() > 4.0 * results[1].standard_errors.max(), "least squares would be noticed"
    assert results[1].estimand_of("cost") == "coefficients of a robust line for cost"
    assert "does not shrink with n" in results[1].remark
    assert results[1].dependence == "", "how far records count is part of what is estimated"


def test_standard_errors_of_the_robust_line_are_those_of_resampling() -> None:
    X, y = skewed(200_000, seed=3)
    plan, found = plan_of("robust number", 8000, od.ApproxDP(2.0, 1e-6)), []
    for seed in range(30):
        places = np.random.default_rng(seed).integers(0, len(y), 8000)
        found.append(run(plan, (X[places], y[places]), seed))
    spread = np.std([one.estimate for one in found], axis=0)
    stated = np.median([one.standard_errors for one in found], axis=0)
    low, high = np.sqrt(stats.chi2(29).ppf([0.0005, 0.9995]) / 29)
    assert ((stated / spread > 1.0 / high) & (stated / spread < 1.0 / low)).all()


def test_margin_is_the_weighted_hinge() -> None:
    X, y = table_of("margin", N)
    rows, signs, weights = with_ones(X), 2.0 * y - 1.0, row_weights(X)

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        short = 1.0 - signs * (rows @ b)
        bent = np.clip(short, 0.0, 0.5)
        return float(weights @ (bent**2 + np.maximum(short - 0.5, 0.0))), -rows.T @ (weights * signs * 2.0 * bent)

    line = optimize.minimize(loss, np.zeros(3), jac=True, tol=1e-12).x
    result = run(plan_of("margin", N, MUCH), (X, y))
    assert (np.abs(result.estimate - line) < 3.0 * np.sqrt(np.diag(result.covariance))).all()
    assert np.mean(np.sign(rows @ result.estimate) == signs) > np.mean(np.sign(rows @ line) == signs) - 0.01
    assert "hinge loss" in result.estimand


def classes_by_likelihood(X: np.ndarray, y: np.ndarray, precision: float = 0.0) -> np.ndarray:
    """Return coefficients of all classes that add up to 0, class by class."""
    rows, own = with_ones(X), (y[:, None] == np.array(CLASSES)) * 1.0

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        b = b.reshape(3, -1)
        scores = rows @ b.T
        value = special.logsumexp(scores, axis=1).sum() - (scores * own).sum() + 0.5 * precision * (b**2).sum()
        return float(value), ((special.softmax(scores, axis=1) - own).T @ rows + precision * b).ravel()

    b = optimize.minimize(loss, np.zeros(9), jac=True, tol=1e-12).x.reshape(3, -1)
    return np.asarray((b - b.mean(axis=0)).ravel())


def test_several_classes_are_fitted_by_maximum_likelihood() -> None:
    table = table_of("classes", N)
    likeliest, result = classes_by_likelihood(*table), run(plan_of("classes", N, MUCH), table)
    assert result.given.all()
    assert (np.abs(result.estimate - likeliest) < result.standard_errors).all()
    assert result.estimate.reshape(3, -1).sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-9)
    assert result.estimand == "maximum-likelihood coefficients"
    small = run(plan_of("classes", 8000), table_of("classes", 8000))
    truth = classes_by_likelihood(*table_of("classes", 60_000, 9))
    assert (np.abs(small.estimate - truth) < 4.0 * small.standard_errors).all()


def test_two_codes_of_a_class_model_agree_with_the_model_of_labels() -> None:
    X, y = table_of("label", N)
    rows = {"features": 2, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}
    softmax = calibrate(AveragedSteps(), Softmax(**rows, classes=(0, 1)), MUCH, n=N)
    found, labels = run(softmax, (X, y)), run(plan_of("label", N, MUCH), (X, y))
    assert np.abs(found.estimate[3:] - found.estimate[:3] - labels.estimate).max() < labels.standard_errors.min()


@pytest.mark.parametrize("kind", ["number", "label", "classes"])
def test_declared_prior_gives_its_posterior_mode(kind: str) -> None:
    X, y = table_of(kind, 4000)
    rows, scale = with_ones(X), 0.02 if kind == "number" else 0.1
    rows_of: dict[str, Any] = {"features": 2, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=scale)}
    if kind == "number":
        model: Any = OrdinaryLeastSquares(**rows_of, response_bound=4.0)
        unit = np.std(y - rows @ np.linalg.lstsq(rows, y, rcond=None)[0])
        mode = np.linalg.solve(rows.T @ rows + unit**2 / scale**2 * np.eye(3), rows.T @ y)
    elif kind == "label":
        model = Logistic(**rows_of)
        mode = rooted(lambda b: (rows.T @ (y - special.expit(rows @ b)) - b / scale**2) / len(y), 3)
    else:
        model, mode = Softmax(**rows_of, classes=CLASSES), classes_by_likelihood(X, y, scale**-2)
    plan = calibrate(AveragedSteps(prior=True), model, MUCH, n=4000)
    result, plain = (run(one, (X, y)) for one in (plan, plan_of(kind, 4000, MUCH)))
    noise = np.sqrt(np.diag(result.parts[1]))
    assert (np.abs(result.estimate - mode) < 4.0 * noise + 0.005).all()
    assert np.abs(plain.estimate - mode).max() > 0.03, "the prior pulls"
    assert (np.diag(result.covariance) < np.diag(plain.covariance)).all(), "and says something"
    assert result.estimand.endswith("at their posterior mode under the declared prior")


def test_location_of_a_prior_counts() -> None:
    X, y = table_of("label", 2000)
    model = Logistic(2, bounds=(-1, 1), scaled=True, prior=Gaussian(scale=0.01, mean=(0.5, -1.0, 0.25)))
    plan = calibrate(AveragedSteps(prior=True), model, od.ApproxDP(0.5, 1e-6), n=2000)
    assert run(plan, (X, y)).estimate == pytest.approx([0.5, -1.0, 0.25], abs=0.05)


def test_small_tables_are_refused_without_a_prior_and_fitted_with_one() -> None:
    with pytest.raises(PromiseRefused, match=r"more records or a larger ε, or ClippedGradients\(\) for predictions"):
        plan_of("label", 300)
    result = run(plan_of("label", 300, prior=True), table_of("label", 300))
    assert np.abs(result.estimate).max() < 5.0


# What sizes and words follow from


def test_fixed_lengths_do_not_depend_on_n_or_budget() -> None:
    for kind, longest in (("robust number", 1.0), ("robust count", 3.0), ("robust label", 1.0), ("margin", 1.0)):
        plans = [plan_of(kind, n, budget) for n in (20_000, 10**7) for budget in (od.ApproxDP(1.0, 1e-6), od.ZCDP(2.0))]
        assert {plan.parameters["step_bound"] for plan in plans} == {FIXED_LENGTH * longest * math.sqrt(3.0)}
        assert all(plan.parameters["tail_noise"] == plan.parameters["count_noise"] == 0.0 for plan in plans)


def test_constants_are_those_that_the_trade_off_states() -> None:
    """Efficiency of log-cosh at t and of weights at c, and the rate of Poisson counts that a limit of t finds."""
    e = np.random.default_rng(1).standard_normal(400_000)
    information, square = np.mean(1.0 - np.tanh(e) ** 2), np.mean(np.tanh(e) ** 2)
    assert square / information**2 == pytest.approx(1.07, abs=0.01)
    score = score_of(model_of("number"), robust=True)
    assert (score.information, score.variance) == pytest.approx((information, square), abs=2e-3)
    counts, t = np.arange(60), LIMITS["count"]
    shares = stats.poisson(0.3).pmf(counts)
    found = optimize.brentq(lambda m: shares @ np.tanh((counts - m) / (t * math.sqrt(0.3))), 1e-3, 1.0)
    assert found / 0.3 == pytest.approx(0.91, abs=0.01)


def test_log_cosh_model_is_the_robust_line_of_least_squares() -> None:
    rows: dict[str, Any] = {"features": 2, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}
    model = LogCoshRegression(**rows, response_bound=4.0)
    assert score_of(model) == score_of(OrdinaryLeastSquares(**rows, response_bound=4.0), robust=True)


@pytest.mark.parametrize("kind", ["margin", "classes"])
def test_effects_are_refused_where_the_estimand_would_depend_on_them(kind: str) -> None:
    with pytest.raises(WrongCall, match="Leave out effects"):
        calibrate(AveragedSteps(effects=(0,)), model_of(kind), MUCH, n=N)


@pytest.mark.parametrize("classes", [3, 6])
def test_expected_information_is_that_of_normal_rows(classes: int) -> None:
    rng, layout = np.random.default_rng(classes), Layout(3)
    score, spread = class_score(classes), np.array([1.0, 0.5, 0.0])
    theta = 0.7 * rng.standard_normal((classes - 1, layout.width))
    found = score.expected_information(theta.ravel(), spread, True, 1.0)
    z = with_ones(rng.standard_normal((50_000, 3)) * np.sqrt(spread))
    chances = special.softmax(z @ theta.T @ score.contrasts.T, axis=1)
    factors = np.sqrt(chances)[:, :, None] * (score.contrasts - (chances @ score.contrasts)[:, None, :])
    weights = np.einsum("nja,njb->nab", factors, factors)
    plain = np.einsum("nab,ni,nj->aibj", weights, z, z, optimize=True).reshape(found.shape) / len(z)
    assert np.abs(found - plain).max() < 0.03 * plain.max()
    assert np.linalg.eigvalsh(found).min() > -1e-9
    assert points(classes - 1).mean(axis=0) == pytest.approx(np.zeros(classes - 1), abs=1e-12)


def test_longest_score_is_over_all_classes() -> None:
    score = class_score(4)
    u = np.random.default_rng(1).standard_normal((3, 50)) * 3.0
    each = [np.asarray(np.linalg.norm(score.slope(u, np.full(50, k), 1.0), axis=0)) for k in range(4)]
    assert np.asarray(score.longest_at(u, None)) == pytest.approx(np.max(each, axis=0))
    assert np.max(each) <= math.sqrt(2.0) + 1e-12


def test_matrices_of_many_coefficients_are_left_out() -> None:
    plan = plan_of("classes", 10**6, columns=80)
    assert plan.parameters["covariance_noise"] == plan.parameters["information_noise"] == 0.0
    assert "covariance" not in plan.mechanism.stage_sizes(plan)  # type: ignore[attr-defined]
    assert "megabytes" in (plan.mechanism.why_no_interval(plan) or "")  # type: ignore[attr-defined]


def test_sums_of_classes_do_not_depend_on_order_or_partition_and_can_be_sent() -> None:
    """They are the same integers for streams, and on engines that send statistics to workers."""
    rng, score, layout = np.random.default_rng(4), class_score(3), Layout(2)
    X, y = with_ones(rng.uniform(-1, 1, (500, 2))), rng.integers(0, 3, 500).astype(float)
    theta = rng.standard_normal(6)

    def totals(*parts: Any) -> list[list[int]]:
        blocks = [block for part in parts for block in blocked([(X[part], y[part])], block_rows(500))]
        records = Blocks.holding(500, blocks).read_as(Responses(score.scale, score.shift))
        rows = records.read_as(StepRows(layout, score), np.zeros(2), np.eye(2), 0.0, 1.0)
        found = [records.sum(ClassShares(3), 2.0**30)]
        for statistic in (ClippedScores(score), ClassInformation(score), ScoreCovariance(score)):
            sent = pickle.loads(pickle.dumps(statistic))
            assert sent == statistic
            bound = () if isinstance(statistic, ClippedScores) else (1.2,)
            found.append(rows.sum(sent, 2.0**16, 1.2, theta, 1.0, *bound))
        return [one.tolist() for one in found]

    whole = totals(slice(None))
    assert totals(rng.permutation(500)) == whole == totals(slice(300, None), slice(0, 7), slice(7, 300))
    assert whole[0] == [int(np.sum(y == code)) * 2**30 for code in range(3)]


# Planted faults


class Forgotten(ClippedScores):
    """The planted fault: rows are not weighted. Scores are cut where they are too long, by their response too."""

    def _weights(self, z: Any, longest: Any, bound: Any, stretch: Any = None) -> Any:
        return 1.0


class LessLimited(Score):
    """The planted fault: residuals count up to twice as many deviations as declared."""

    limit = 2.0  # type: ignore[assignment]


class WrongNorm(ClassScore):
    """The planted fault: contrasts are longer than 1, so that a record's score is longer than its distance of chances."""

    @property
    def contrasts(self) -> np.ndarray:  # type: ignore[override]
        return np.asarray(1.5 * self.kernel.contrasts)


def program_of(change: Any) -> Any:
    """Return the program with another problem than its plan's."""
    return lambda target, noise: Stages(replace(target, problem=change(target.problem)), noise)


@pytest.mark.parametrize("kind", ["robust number", "margin", "classes"])
def test_program_that_forgets_the_weights_of_rows_is_caught(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(kind)
    if kind == "classes":  # whose bound is long enough for all synthetic rows
        short = {**plan.parameters, "early_bound": 0.3, "step_bound": 0.6, "covariance_radius": 0.6}
        plan = plan.mechanism.plan(plan.request, short)  # type: ignore[attr-defined]
    monkeypatch.setattr(running, "ClippedScores", Forgotten)
    assert any("is not the sum that the plan declares" in one for one in replay_steps(plan))


def test_program_with_another_limit_of_residuals_is_caught() -> None:
    plan = plan_of("robust number")

    def longer(problem: Any) -> Any:
        score = problem.score
        return replace(problem, score=LessLimited(score.kind, score.kernel, score.scale, robust=True))

    assert any("is not the sum" in one for one in replay_steps(plan, program=program_of(longer)))


def test_program_with_another_norm_of_contrasts_is_caught() -> None:
    plan, score = plan_of("classes"), class_score(3)
    wrong = WrongNorm(score.kind, score.kernel, score.scale, score.shift, score.information, score.variance)
    found = replay_steps(plan, program=program_of(lambda problem: replace(problem, score=wrong)))
    assert "the step is not the sum that the plan declares" in found


def test_prior_that_is_read_from_the_records_is_caught() -> None:
    """Iterates then go elsewhere than what was published says, and later sums are at other coefficients."""
    plan = plan_of("number", prior=True)
    table = table_of("number", 8000)
    assert replay_steps(plan, [table]) == []
    read = Gaussian(scale=0.05, mean=float(table[1].mean()))
    found = replay_steps(plan, [table], program=program_of(lambda problem: replace(problem, prior=read)))
    assert "the step is not the sum that the plan declares" in found


@pytest.mark.parametrize("kind", ["robust number", "margin", "classes"])
@pytest.mark.parametrize("part", ["step", "information", "covariance"])
def test_half_the_sensitivity_breaks_the_promise(kind: str, part: str) -> None:
    case = steps_case(plan_of(kind, budget=od.ApproxDP(1.0, 1e-5)))
    assert case.profile(case.pairs[0]).breaks(case.promise) is None
    assert case.running(**{f"{part}_noise": 0.5}).profile(case.pairs[0]).breaks(case.promise) is not None


def test_half_the_sensitivity_of_class_shares_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    request = plan_of("classes").request
    right = plan_of("classes").guarantee.promise.gaussian_mu
    true = promising.stages_of

    def halved(setting: Any, numbers: Any) -> Any:
        first, *others = true(setting, numbers)
        return [first._replace(reach=first.reach / 2.0), *others]

    monkeypatch.setattr(promising, "stages_of", halved)
    plan: Plan = AveragedSteps().calibrate(request)
    monkeypatch.undo()
    numbers = plan.mechanism.problem(plan).sizes  # type: ignore[attr-defined]
    honest = promising.promise_of(plan.mechanism.setting(request), numbers).gaussian_mu  # type: ignore[attr-defined]
    assert honest > right * (1.0 + 1e-6)


def test_counts_are_fitted_where_steps_find_their_way_from_a_noisy_level() -> None:
    """With 400 records and ε = 4 the mean count has noise of about 0.4; it was refused before."""
    X = np.random.default_rng(2).uniform(-1, 1, (400, 2))
    y = np.random.default_rng(3).poisson(np.exp(0.6 * X[:, 0] - 0.4 * X[:, 1] - 1.0)).astype(float)
    plan = plan_of("count", 400, od.ApproxDP(4.0, 1e-6), largest=12)
    rows = with_ones(X)
    likeliest = rooted(lambda b: rows.T @ (y - np.exp(rows @ b)) / len(y), 3)
    found = [run(plan, (X, y), seed) for seed in range(6)]
    assert np.abs(np.median([one.estimate for one in found], axis=0) - likeliest).max() < 0.5
    with pytest.raises(PromiseRefused, match="mean count below one"):
        plan_of("count", 400, od.ApproxDP(1.0, 1e-6), largest=12)
