"""Fits by perturbed modes: the promise follows from the numbers that run, sums are exact, and no table makes one fail."""

from __future__ import annotations

import math

import numpy as np
import pytest

import onedraw as od
from onedraw.data.sums import Blocks, block_rows, blocked
from onedraw.errors import CertificateRejected, PromiseRefused, UnsupportedBudget
from onedraw.methods import PerturbedMode, calibrate, plan_from_dict
from onedraw.methods.perturbed_mode import run as fitting
from onedraw.methods.perturbed_mode.numbers import EFFECT
from onedraw.methods.perturbed_mode.run import Stages
from onedraw.models import (
    CountRegression,
    Gaussian,
    HuberisedHinge,
    LogCoshRegression,
    Logistic,
    Quantile,
    Softmax,
)
from onedraw.models.fit.problem import Aside
from onedraw.models.fit.result import FitResult
from onedraw.models.fit.sums import FitRows, NewtonSums, Outer
from onedraw.models.moments.measured import ColumnSums, Layout, MomentColumns, SecondMoments
from onedraw.models.row_model import Encoded
from onedraw.models.sums.exact_sums import gram_steps, held, symmetric
from onedraw.release import release, verify
from onedraw.release.certificate import read_certificate
from onedraw.samplers.noise import Noise

ROWS = {"features": 3, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}
MODELS = {
    "exp-linear": Logistic(**ROWS, loss="exp-linear"),
    "logistic": Logistic(**ROWS),
    "hinge": HuberisedHinge(**ROWS, width=0.5),
    "log-cosh": LogCoshRegression(**ROWS, response_bound=2.0),
    "quantile": Quantile(**ROWS, level=0.8, response_bound=2.0),
    "counts": CountRegression(**ROWS, largest=5),
    "several classes": Softmax(**ROWS, classes=["a", "b", "c"]),
}
BUDGETS = [od.PureDP(2.0), od.ApproxDP(1.0, 1e-6), od.RenyiDP.at(8.0, 1.0)]
"""One of pure ε, and others that pure ε keeps as well."""


def data_for(name: str, n: int, seed: int = 0) -> Encoded:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, (n, 3)), np.ones(n)])
    u = X @ [1.0, -1.0, 0.5, 0.2]
    if name in ("log-cosh", "quantile"):
        return Encoded(n, X, np.clip(u + 0.3 * rng.standard_normal(n), -2, 2))
    if name == "counts":
        return Encoded(n, X, np.minimum(rng.poisson(np.exp(u)), 5).astype(float))
    if name == "several classes":
        return Encoded(n, X, rng.integers(0, 3, n).astype(float))
    return Encoded(n, X, np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-u)), 1.0, -1.0))


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "approximate", "Rényi"])
@pytest.mark.parametrize("name", MODELS)
def test_a_plan_keeps_its_budget_and_is_derived_again_from_its_numbers(name: str, budget: od.privacy.Promise) -> None:
    plan = calibrate(PerturbedMode(), MODELS[name], budget, n=3000)
    assert isinstance(plan.guarantee.promise, od.PureDP)
    assert plan.guarantee.promise.implies(budget)
    assert not od.PureDP(1.01 * plan.guarantee.promise.stated_epsilon).implies(budget)
    assert plan_from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize("number", ["mode_noise", "moments_noise", "ridge", "closing_noise", "mean_noise"])
def test_less_noise_or_ridge_than_the_budget_needs_is_refused(number: str) -> None:
    plan = calibrate(PerturbedMode(), MODELS["exp-linear"], od.PureDP(1.0), n=8000)
    stated = plan.to_dict()
    stated["parameters"] = {**stated["parameters"], number: 0.9 * stated["parameters"][number]}
    with pytest.raises((PromiseRefused, CertificateRejected)):
        plan_from_dict(stated)


def test_a_person_with_several_records_is_paid_for() -> None:
    fit, model, budget = PerturbedMode(), MODELS["exp-linear"], od.PureDP(1.0)
    alone, several = (calibrate(fit, model, budget, n=5000, records_per_person=k) for k in (1, 3))
    assert several.parameters["mode_noise"] > 2.5 * alone.parameters["mode_noise"]
    assert several.guarantee.promise.implies(budget)


def test_of_the_ridges_and_shares_of_the_plan_none_near_it_is_better() -> None:
    """The closed form against a search: squared error of the noise and the ridge at what is left of ε."""
    plan = calibrate(PerturbedMode(intervals=False), MODELS["exp-linear"], od.PureDP(1.0), n=20_000)
    setting = plan.mechanism.setting(plan.request)
    row, p, n = plan.parameters["row_bound"], 4, 20_000

    def error(ridge: float) -> float:
        left = 1.0 - setting.loss.volume_cost(row, ridge)
        noise = math.sqrt(p * (p + 1.0)) * 2.0 * setting.loss.slope_bound * row / (0.87 * left)
        return (noise**2 + (ridge * EFFECT) ** 2) / (0.2 * n + ridge) ** 2 if left > 0.0 else math.inf

    best = min(error(plan.parameters["ridge"] * math.exp(step / 20.0)) for step in range(-60, 61))
    assert error(plan.parameters["ridge"]) <= 1.1 * best


@pytest.mark.parametrize("budget", [od.GaussianDP(0.5), od.ZCDP(0.1)], ids=str)
def test_budgets_that_pure_noise_would_waste_are_refused_with_the_mechanism_to_use(budget: od.privacy.Promise) -> None:
    with pytest.raises(UnsupportedBudget, match=r"Use a budget in ε\. .*use Diffused\(\)"):
        od.calibrate(PerturbedMode(), MODELS["exp-linear"], budget, n=1000)


def test_several_draws_are_refused_because_a_posterior_is_free() -> None:
    with pytest.raises(UnsupportedBudget, match="posterior"):
        calibrate(PerturbedMode(), MODELS["exp-linear"], od.PureDP(1.0), n=1000, draws=4)


def test_a_wide_table_spends_nothing_on_information_that_would_drown_in_its_noise() -> None:
    wide = Logistic(**{**ROWS, "features": 98}, loss="exp-linear")
    few, many = (calibrate(PerturbedMode(), wide, od.PureDP(1.0), n=n) for n in (26_000, 8_000_000))
    assert few.parameters["information_noise"] == 0.0
    assert many.parameters["information_noise"] > 0.0


def test_a_plan_without_standard_errors_knows_from_how_many_records_on_there_are_some() -> None:
    wide = Logistic(**{**ROWS, "features": 30}, loss="exp-linear")
    few = calibrate(PerturbedMode(), wide, od.PureDP(1.0), n=4_000)
    more = PerturbedMode().missing_records(few)
    assert more > 2.0
    for times, measured in ((0.8, False), (1.3, True)):
        plan = calibrate(PerturbedMode(), wide, od.PureDP(1.0), n=int(times * more * 4_000))
        assert (plan.parameters["information_noise"] > 0.0) is measured


def test_nothing_is_simulated_where_every_coefficient_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = calibrate(PerturbedMode(intervals=True), MODELS["exp-linear"], od.ApproxDP(0.5, 1e-6), n=200)
    target = plan.target(data_for("exp-linear", 200))
    published = Stages(target, Noise(np.random.default_rng(1), pure=True)).run()
    monkeypatch.setattr(FitResult, "_pivots", property(lambda _: pytest.fail("simulated")))
    fit = FitResult.of(target.problem, published)
    assert not fit.given.any()
    assert fit.multiplier(0.95) == pytest.approx(np.full(4, 1.959964))


# ── exact sums ───────────────────────────────────────────────────────────────────────────────────────────────────

LAYOUTS = [Layout(3), Layout(5, ((1, 4),)), Layout(4, intercept=False), Layout(3, ball=2.0)]


def odd_rows(rng: np.random.Generator, layout: Layout, n: int) -> np.ndarray:
    """Rows of encoded columns, some of them as far out as rows can be."""
    X = rng.uniform(-1, 1, (n, layout.columns)) * (layout.ball or 1.0)
    X[: n // 4] = np.sign(X[: n // 4]) * (layout.ball or 1.0)
    return np.column_stack([X, np.ones(n)]) if layout.intercept else X


def public_of(rng: np.random.Generator, layout: Layout) -> tuple[object, ...]:
    root = rng.standard_normal((layout.columns, layout.columns))
    return rng.uniform(-1, 1, layout.columns), root @ root.T, 1.3


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_replacing_a_record_moves_no_sum_beyond_its_sensitivity(layout: Layout) -> None:
    rng = np.random.default_rng(5)
    radius, row = 0.9, 2.1
    counts = MODELS["counts"].fit_loss
    Y = counts.slope_bound
    bounds = {
        "exp-linear": {"information": 0.25, "curvature": 0.5, "variability": 0.25, "squares": 0.25},
        "counts": {"variability": counts.curvature_bound, "squares": Y**2},
    }
    mean, root, stretch = public_of(rng, layout)
    theta, where = 1e-3 * rng.standard_normal(layout.width), (mean, root, stretch, row, np.array([0.0, 1.0]))
    steps = 2.0**14
    cases = [
        (ColumnSums(layout, True), (steps,), MomentColumns(layout, True).spread * steps, False),
        (SecondMoments(layout, False), (steps, mean, radius), (radius * steps) ** 2, True),
        *(
            (
                Outer(MODELS[name].fit_loss, of),
                (steps, row, theta),
                bound * (row * steps) ** 2,
                True,
            )
            for name, parts in bounds.items()
            for of, bound in parts.items()
        ),
    ]
    for statistic, public, sensitivity, matrix in cases:
        largest = 0.0
        for _ in range(40):
            X, y = odd_rows(rng, layout, 2), np.sign(rng.standard_normal(2))
            if isinstance(statistic, Outer) and statistic.loss == counts:
                y = Y * (y > 0.0)
            records = [held(X[i : i + 1], y[i : i + 1]) for i in (0, 1)]
            if isinstance(statistic, Outer):
                records = [one.read_as(FitRows(layout), *where) for one in records]
            shares = [one.sum(statistic, *public) for one in records]
            moved = (shares[0] - shares[1]).astype(float)
            if matrix:
                moved = np.linalg.eigvalsh(symmetric(moved, (math.isqrt(8 * len(moved) + 1) - 1) // 2))
                most = max(moved[moved > 0.0].sum(), -moved[moved < 0.0].sum())
                largest = max(largest, float(most))  # the larger of two traces: what the pure law of matrices hides
            else:
                largest = max(largest, float(np.linalg.norm(moved)))
        assert largest <= sensitivity * (1.0 + 1e-12)
        assert largest > 0.04 * sensitivity  # the bound is of the right size


def test_sums_do_not_depend_on_the_order_or_the_partition_of_the_records() -> None:
    rng, layout = np.random.default_rng(7), Layout(3)
    mean, root, stretch = public_of(rng, layout)
    data = data_for("exp-linear", 1000)
    statistic, public = NewtonSums(MODELS["exp-linear"].fit_loss), (2.0**14, 2.0, rng.standard_normal(4))

    def total(*parts: slice | np.ndarray) -> np.ndarray:
        blocks = [block for part in parts for block in blocked([(data.X[part], data.y[part])], block_rows(1000))]
        records = Blocks.holding(1000, blocks).read_as(FitRows(layout), mean, root, stretch, 2.0, np.array([0.0, 1.0]))
        return records.sum(statistic, *public)

    whole, order = total(slice(None)), rng.permutation(1000)
    assert np.array_equal(whole, total(order))
    assert np.array_equal(whole, total(slice(700, None), slice(0, 1), slice(1, 700)))


def test_products_on_the_lattice_stay_exact_within_a_block() -> None:
    for squared in (0.01, 1.0, 7.3, 150.0):
        assert (1 << 16) * squared * gram_steps(squared, 1) ** 2 < 2.0**53


# ── what runs ────────────────────────────────────────────────────────────────────────────────────────────────────


def stages_of(name: str, n: int = 1500, seed: int = 3, **options: object) -> tuple[Stages, object]:
    plan = calibrate(PerturbedMode(**options), MODELS[name], od.ApproxDP(2.0, 1e-6), n=n)  # type: ignore[arg-type]
    target = plan.target(data_for(name, n))
    return Stages(target, Noise(np.random.default_rng(seed), pure=True)), plan


@pytest.mark.parametrize("name", [name for name in MODELS if name != "several classes"])
def test_the_mode_that_is_found_has_the_gradient_the_promise_rests_on(name: str) -> None:
    """Against derivatives written a second time, in plain NumPy."""
    stages, _ = stages_of(name, measured=False)
    problem = stages.target.problem
    where = fitting.coordinates(problem, fitting.Published(np.zeros(0)))
    tilt = np.random.default_rng(1).standard_normal(4) * problem.numbers["mode_noise"]
    theta, _ = stages.minimum(stages.target.measured(where), problem.loss, stages._objective(where, tilt))
    X, y = stages.target.encoded.X, stages.target.encoded.y / problem.response_scale
    a = np.minimum(1.0, problem.numbers["row_bound"] ** 2 / (X**2).sum(axis=1))
    slopes = problem.loss.kernel.slope(X @ theta, (y - where.centre) / where.unit)
    gradient = X.T @ (a * slopes) + problem.numbers["ridge"] * theta + tilt
    assert np.linalg.norm(gradient) <= problem.numbers["tolerance"]


def test_where_newton_does_not_arrive_public_gradient_steps_do(monkeypatch: pytest.MonkeyPatch) -> None:
    stages, _ = stages_of("exp-linear", n=200, measured=False)
    where = fitting.coordinates(stages.target.problem, fitting.Published(np.zeros(0)))
    tilt = np.random.default_rng(1).standard_normal(4) * stages.target.problem.numbers["mode_noise"]
    records = stages.target.measured(where)
    by_newton, _ = stages.minimum(records, stages.target.problem.loss, stages._objective(where, tilt))
    monkeypatch.setattr(fitting, "MOST_PASSES", 1)
    by_gradient, _ = stages.minimum(records, stages.target.problem.loss, stages._objective(where, tilt))
    within = 2.0 * stages.target.problem.numbers["tolerance"] / stages.target.problem.numbers["ridge"]
    assert np.linalg.norm(by_newton - by_gradient) <= within


def test_a_fit_estimates_the_truth_within_its_standard_errors() -> None:
    """Fifty fits; the average error in standard errors, squared, is 1 for honest ones (α about 1e-6: ± 0.45)."""
    plan = calibrate(PerturbedMode(intervals=True), MODELS["exp-linear"], od.PureDP(4.0), n=10_000)
    truth, scores = np.array([1.0, -1.0, 0.5, 0.2]), []
    for seed in range(50):
        target = plan.target(data_for("exp-linear", 10_000, seed))
        published = Stages(target, Noise(np.random.default_rng(seed), pure=True)).run()
        result = plan.mechanism.result(plan, published.to_dict())
        assert result.given.all()
        scores.append(((result.estimate - truth) / result.standard_errors) ** 2)
    assert 0.55 < np.mean(scores) < 1.45


TABLES = {
    "one record": (np.array([[0.3, -0.2, 0.9]]), np.array([1.0])),
    "fewer records than parameters": (np.random.default_rng(0).uniform(-1, 1, (3, 3)), np.array([1.0, -1.0, 1.0])),
    "a constant column": (np.column_stack([np.full(200, 0.5), np.random.default_rng(1).uniform(-1, 1, (200, 2))]), np.tile([1.0, -1.0], 100)),
    "a column twice": (np.tile(np.random.default_rng(2).uniform(-1, 1, (200, 1)), (1, 3)), np.tile([1.0, -1.0], 100)),
    "all responses equal": (np.random.default_rng(3).uniform(-1, 1, (200, 3)), np.ones(200)),
    "separable": (np.column_stack([np.repeat([-1.0, 1.0], 100)] * 3), np.repeat([-1.0, 1.0], 100)),
}  # fmt: skip


@pytest.mark.parametrize("measured", [True, False, None])
@pytest.mark.parametrize("table", TABLES)
def test_no_table_makes_a_fit_fail(table: str, measured: bool | None) -> None:
    X, y = TABLES[table]
    plan = calibrate(
        PerturbedMode(measured=measured, intervals=True), MODELS["exp-linear"], od.ApproxDP(5.0, 1e-6), n=len(y)
    )
    found = release(plan, (X, np.where(y > 0, 1, 0)), random_state=1)
    result = plan.mechanism.result(plan, found.certificate.draw.stages)
    assert np.isfinite(found.draws).all()
    assert np.isfinite(result.estimate).all()
    assert np.isfinite(result.standard_errors[result.given]).all()


# ── by `release` ────────────────────────────────────────────────────────────────────────────────────────────────


def released(tmp_path: object, **options: object) -> tuple[object, object]:
    plan = calibrate(PerturbedMode(**options), MODELS["exp-linear"], od.ApproxDP(1.0, 1e-6), n=4000)  # type: ignore[arg-type]
    data = data_for("exp-linear", 4000)
    return release(plan, (data.X[:, :3], (data.y > 0).astype(int))), plan


def test_a_released_fit_verifies_and_its_stages_cannot_be_edited(tmp_path: object) -> None:
    found, plan = released(tmp_path, intervals=True)
    path = tmp_path / "fit.json"  # type: ignore[operator]
    found.save(path)
    assert verify(path).answer == "consistent"
    certificate = read_certificate(path)
    assert certificate.sentence.startswith("Proven: ")
    stages = certificate.draw.stages
    for name in stages:
        for edited in ({**stages, name: [value + 1.0 for value in stages[name]]}, {**stages, name: stages[name][:-1]}):
            if name == "variability" and len(edited[name]) == len(stages[name]):
                continue  # no coefficient follows from it, as an edit of a draw it is noticed with the ledger only
            draw = certificate.draw.model_copy(update={"stages": edited})
            with pytest.raises(CertificateRejected):
                verify(certificate.model_copy(update={"draw": draw}))
    assert {name: len(values) for name, values in stages.items()} == plan.mechanism.stage_sizes(plan)


def test_one_charge_pays_for_all_stages(tmp_path: object) -> None:
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)  # type: ignore[operator]
    ledger.init("d", od.ApproxDP(1.0, 1e-6))
    plan = calibrate(PerturbedMode(), MODELS["exp-linear"], od.ApproxDP(1.0, 1e-6), n=4000)
    data = data_for("exp-linear", 4000)
    release(plan, (data.X[:, :3], (data.y > 0).astype(int)), ledger=ledger, dataset="d")
    assert 0.9 < ledger.spent("d").epsilon(1e-6) <= 1.0


def categories_fit(shares: list[float], seed: int, n: int = 20_000) -> tuple[FitResult, np.ndarray]:
    """A fit of a number and a category with these shares of its levels, in the columns' own units, and the truth."""
    rng, levels = np.random.default_rng(seed), len(shares) - 1
    chosen = rng.choice(levels + 1, size=n, p=shares)
    X = np.column_stack([rng.uniform(-1, 1, n), *(2.0 * (chosen == k) - 1.0 for k in range(1, levels + 1)), np.ones(n)])
    own = np.diag([1.0, *(2.0,) * levels, 1.0])
    own[-1, 1:-1] = -1.0
    truth = np.array([1.0, *np.linspace(-0.5, 0.5, levels), 0.3])
    y = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-X @ np.linalg.solve(own, truth))), 1.0, -1.0)
    model = Logistic(**{**ROWS, "features": levels + 1}, loss="exp-linear")
    plan = calibrate(PerturbedMode(categories=((1, levels + 1),)), model, od.PureDP(8.0), n=n)
    target = plan.target(Encoded(n, X, y))
    published = Stages(target, Noise(rng, pure=True)).run()
    fit = FitResult.of(target.problem, published)
    return fit.in_units(own, np.ones(levels + 2), np.zeros(levels + 2)), truth


@pytest.mark.parametrize(
    ("shares", "refused"), [([0.4, 0.3, 0.3, 0.0], [3]), ([0.4, 0.0, 0.6, 0.0], [1, 3]), ([0.0, 0.4, 0.3, 0.3], [1, 2, 3, 4])]
)  # fmt: skip
def test_a_level_without_records_is_left_out_and_costs_the_others_nothing(
    shares: list[float], refused: list[int]
) -> None:
    for seed in range(4):
        fit, truth = categories_fit(shares, seed)
        assert [place for place in range(5) if not fit.given[place]] == refused
        assert np.all(np.abs(fit.estimate) <= 3.5)
        known = fit.given
        assert np.all(np.abs(fit.estimate - truth)[known] <= 4.5 * fit.standard_errors[known])
        assert np.all(fit.multiplier(0.95) <= 2.2)
        assert np.all(fit.standard_errors[known] <= 0.1)


def test_setting_a_level_aside_changes_no_other_level_s_prediction() -> None:
    layout = Layout(4, ((1, 4),))
    rng = np.random.default_rng(3)
    root = rng.standard_normal((4, 4))
    change = layout.encoded_coefficients(np.array([0.1, 0.5, 0.5, 0.0]), root @ root.T, 1.2)
    aside = Aside.of(layout, np.array([0.1, 0.5, 0.5, 0.0]), 0.001, change, 1)
    assert aside.moved.shape == (5, 2)  # the last level, and the first, which has no column
    coefficients = change @ (20.0 * rng.standard_normal(5))
    left = coefficients - aside.implausible(coefficients, 3.0)
    there = np.array([[0.3, 1.0, -1.0, -1.0, 1.0], [-0.7, -1.0, 1.0, -1.0, 1.0]])  # rows of the two levels with records
    assert there @ left == pytest.approx(there @ coefficients)
    assert not aside.touched(there @ change).any()
    assert aside.touched(np.array([[0.0, -1.0, -1.0, 1.0, 1.0], [0.0, -1.0, -1.0, -1.0, 1.0]]) @ change).all()


@pytest.mark.parametrize("name", ["exp-linear", "several classes"])
def test_more_records_than_the_sums_have_room_for_are_refused_before_anything_is_spent(name):
    assert fitting.Fit().exactness(calibrate(PerturbedMode(), MODELS[name], BUDGETS[0], n=10**9))
    with pytest.raises(PromiseRefused, match="64-bit whole numbers"):
        calibrate(PerturbedMode(), MODELS[name], BUDGETS[0], n=2**31)
