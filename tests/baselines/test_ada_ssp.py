"""AdaSSP: how far one record moves its sums, what their noise promises, and the estimate that follows."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

import onedraw as od
from onedraw import models
from onedraw.audit.cases import examine, smallest_caught_factor
from onedraw.baselines import AdaSSP
from onedraw.baselines.ada_ssp import NoisyRegressionSums
from onedraw.baselines.regression_sums import RegressionSums, both_moved
from onedraw.methods import plan_from_dict
from onedraw.methods.catalog import case_for, cases
from onedraw.samplers.noise import Noise
from tests.baselines.cases import ODD, linear_records

PRIOR = od.Gaussian(scale=1.0, radius=5.0)
MODELS = {
    "box": models.LeastSquares(features=3, bounds=(-1, 1), response_bound=2.0, prior=PRIOR),
    "ball": models.LeastSquares(features=3, data_norm=0.3, response_bound=1e-9, prior=PRIOR),
    "scaled": models.LeastSquares(
        features=3, bounds=((0, -5, 1e4), (1, 5, 1e6)), scaled=True, response_bound=50.0, prior=PRIOR
    ),
    "without intercept": models.LeastSquares(
        features=3, bounds=(-1e4, 2e4), intercept=False, response_bound=1e7, prior=PRIOR
    ),
}
BUDGET, N = od.ApproxDP(1.0, 1e-6), 60


def sums_of(plan, records):
    """(λ₁, XᵀX, Xᵀy) as the program computes them."""
    sums, summary = RegressionSums.of(plan.request, "AdaSSP"), plan.model.summarise(records)
    square, product = sums.matrices(*sums.whole(summary))
    return sums.whole_eigenvalue(square) * sums.row_unit**2, square, product


# ── how far a record moves the sums ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.oracle
@pytest.mark.parametrize(("squares", "products"), [(1.0, 1.0), (0.2, 3.0), (5.0, 0.1), (1.0, 0.75), (1.0, 0.70)])
def test_no_pair_of_rows_moves_both_sums_further_than_the_lemma_says_and_one_attains_it(squares, products):
    """Rows in the unit ball of three dimensions, responses in [−1, 1]: random ones, and a search from the best."""
    generator = np.random.default_rng(3)

    def apart(numbers):
        x, z = numbers[:3], numbers[4:7]
        x, z = (one / max(1.0, np.linalg.norm(one)) for one in (x, z))
        y, w = np.clip(numbers[[3, 7]], -1.0, 1.0)
        matrix = np.linalg.norm(np.outer(x, x) - np.outer(z, z)) / squares
        return math.hypot(matrix, np.linalg.norm(x * y - z * w) / products)

    pairs = generator.normal(size=(3000, 8)) * generator.uniform(0.2, 2.0, (3000, 1))
    found = np.array([apart(one) for one in pairs])
    best = [
        -optimize.minimize(lambda one: -apart(one), start, method="Nelder-Mead", options={"maxiter": 4000}).fun
        for start in pairs[np.argsort(found)[-2:]]
    ]
    furthest, bound = max(found.max(), *best), both_moved(squares, products)
    assert 0.999 * bound <= furthest <= bound


@pytest.mark.parametrize("name", MODELS)
def test_no_random_pair_moves_a_sum_beyond_its_bound(name):
    model, generator = MODELS[name], np.random.default_rng(4)
    plan = od.calibrate(AdaSSP(), model, BUDGET, n=4)
    sums = RegressionSums.of(plan.request, "AdaSSP")
    numbers, largest = plan.parameters, 0.0
    for _ in range(12):
        X, y = linear_records(model, 4, generator, wild=True)
        other, labels = X.copy(), y.copy()
        other[0] = -other[0] if generator.uniform() < 0.5 else linear_records(model, 1, generator, wild=True)[0][0]
        labels[0] = -labels[0] if generator.uniform() < 0.5 else labels[0]
        (first, A, b), (second, C, d) = sums_of(plan, (X, y)), sums_of(plan, (other, labels))
        assert abs(first - second) <= sums.eigenvalue_reach(1)
        assert np.linalg.norm(A - C) <= math.sqrt(2.0) * sums.reach**2 * (1.0 + 1e-12)
        both = np.linalg.norm(A - C) / numbers["squares_noise"], np.linalg.norm(b - d) / numbers["products_noise"]
        first_ratio = abs(first - second) / numbers["eigenvalue_noise"]
        largest = max(largest, math.hypot(first_ratio, *both) / plan.guarantee.promise.mu)
    assert 0.0 < largest <= 1.0


@pytest.mark.parametrize("name", ["box", "ball"])
@pytest.mark.parametrize("odd", ODD)
def test_one_odd_cell_neither_fails_nor_moves_the_sums_beyond_the_bound(name, odd):
    model, generator = MODELS[name], np.random.default_rng(5)
    plan = od.calibrate(AdaSSP(), model, BUDGET, n=12)
    X, y = linear_records(model, 12, generator)
    start = sums_of(plan, (X, y))
    rows, labels = X.astype(object), y.astype(object)
    rows[3, 1] = labels[3] = odd
    numbers, moved = plan.parameters, sums_of(plan, (rows.tolist(), labels.tolist()))
    scales = numbers["eigenvalue_noise"], numbers["squares_noise"], numbers["products_noise"]
    ratios = [np.linalg.norm(a - b) / scale for a, b, scale in zip(start, moved, scales, strict=True)]
    assert math.hypot(*ratios) <= plan.guarantee.promise.mu
    assert np.isfinite(od.release(plan, (rows.tolist(), labels.tolist()), random_state=1).draw).all()


@pytest.mark.parametrize("name", MODELS)
def test_sums_are_those_of_the_encoded_rows(name):
    model = MODELS[name]
    plan = od.calibrate(AdaSSP(), model, BUDGET, n=N)
    records = linear_records(model, N, np.random.default_rng(6))
    X, y = (getattr(model.summarise(records), part) for part in ("X", "y"))
    least, square, product = sums_of(plan, records)
    sums = RegressionSums.of(plan.request, "AdaSSP")
    fine = 4.0 * N * sums.reach
    assert square == pytest.approx(X.T @ X, abs=fine * sums.row_unit)
    assert product == pytest.approx(
        X.T @ y, abs=4.0 * N * (sums.bound * sums.row_unit + sums.reach * sums.response_unit)
    )
    assert least == pytest.approx(np.linalg.eigvalsh(square)[0], abs=sums.eigenvalue_error)


# ── promise and release ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "budget", [BUDGET, od.GaussianDP(0.5), od.ZCDP(0.1), od.ApproxDP(0.01, 1e-9), od.ApproxDP(20.0, 1e-3)]
)
def test_a_release_keeps_its_budget_and_verifies(budget):
    plan = od.calibrate(AdaSSP(), MODELS["box"], budget, n=N)
    assert plan.guarantee.promise.implies(budget)
    release = od.release(plan, linear_records(MODELS["box"], N, np.random.default_rng(1)))
    assert release.certificate.sentence.startswith("Proven")
    assert od.verify(release)
    assert plan_from_dict(plan.to_dict()) == plan


def test_the_promise_is_that_of_three_stages_in_the_papers_proportions():
    """λ₁ is 1, both sums together √4.5 beside noise of the same relative size: μ = √5.5 over it."""
    plan = od.calibrate(AdaSSP(), MODELS["box"], od.GaussianDP(0.5), n=N)
    relative = plan.parameters["squares_noise"] / 4.0
    assert relative == pytest.approx(math.sqrt(5.5) / 0.5, rel=1e-6)
    assert plan.parameters["eigenvalue_noise"] == pytest.approx(4.0 * relative)
    assert plan.parameters["products_noise"] == pytest.approx(4.0 * relative)  # B·Y = 2·2


def test_a_person_with_three_records_gets_three_times_the_noise():
    one, three = (
        od.calibrate(AdaSSP(), MODELS["box"], BUDGET, n=N, records_per_person=k).parameters["squares_noise"]
        for k in (1, 3)
    )
    assert three == pytest.approx(3.0 * one, rel=1e-6)


def test_a_certificate_with_less_noise_is_rejected():
    plan = od.calibrate(AdaSSP(), MODELS["box"], BUDGET, n=N)
    release = od.release(plan, linear_records(MODELS["box"], N, np.random.default_rng(1)))
    written = release.certificate.model_dump(mode="json")
    for name in ("eigenvalue_noise", "squares_noise", "products_noise", "row_bound"):
        edited = {**written, "plan": {**written["plan"], "parameters": dict(written["plan"]["parameters"])}}
        edited["plan"]["parameters"][name] *= 0.99
        with pytest.raises(od.errors.CertificateRejected):
            od.verify(type(release.certificate).model_validate(edited))


@pytest.mark.statistical
def test_the_noise_has_the_law_that_the_plan_says():
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    plan = od.calibrate(AdaSSP(), MODELS["box"], BUDGET, n=N)
    records = linear_records(MODELS["box"], N, np.random.default_rng(2))
    target, generator = plan.target(plan.model.summarise(records)), np.random.default_rng(seed)
    whole, (least, square, product) = target.sums.whole(target.summary), sums_of(plan, records)
    noise = NoisyRegressionSums().stages
    found = [noise(target, whole, Noise(generator, pure=False)) for _ in range(5000)]
    place = np.tril_indices(4)
    away = {
        "eigenvalue": np.array([one["eigenvalue"] for one in found]) - least,
        "squares": (np.array([one["squares"] for one in found]) - square[place])
        * np.where(place[0] == place[1], 1.0, math.sqrt(2.0)),
        "products": np.array([one["products"] for one in found]) - product,
    }
    for name, values in away.items():
        law = stats.norm(scale=plan.parameters[f"{name}_noise"])
        assert stats.kstest(values.ravel(), law.cdf).pvalue > 1e-6
        assert stats.kstest(1.3 * values.ravel(), law.cdf).pvalue < 1e-6


def test_with_little_noise_the_estimate_is_least_squares():
    model, n = MODELS["box"], 100_000
    X, y = linear_records(model, n, np.random.default_rng(7))
    plan = od.calibrate(AdaSSP(), model, od.ApproxDP(20.0, 1e-3), n=n)
    found = od.release(plan, (X, y), random_state=1).draw
    assert found == pytest.approx(np.linalg.lstsq(np.c_[X, np.ones(n)], y, rcond=None)[0], abs=2e-3)


def test_the_ridge_shrinks_as_the_least_eigenvalue_grows():
    plan = od.calibrate(AdaSSP(), MODELS["box"], BUDGET, n=N)
    ridges = [plan.mechanism.ridge(plan, value) for value in (-1e6, 0.0, 200.0, 1e6)]
    edge = plan.parameters["squares_noise"] * math.sqrt(4 * math.log(32 / 0.05))
    assert ridges[0] == ridges[1] == pytest.approx(edge)
    assert ridges[1] > ridges[2] > ridges[3] == 0.0


def test_records_all_alike_or_all_zero_still_give_an_estimate():
    model = MODELS["box"]
    plan = od.calibrate(AdaSSP(), model, BUDGET, n=N)
    for records in ((np.zeros((N, 3)), np.zeros(N)), (np.ones((N, 3)), np.full(N, 9.0))):
        for seed in range(20):
            assert np.isfinite(od.release(plan, records, random_state=seed).draw).all()


def test_what_it_is_not_for_is_refused_with_a_remedy():
    refused = od.errors.UnsupportedBudget
    logistic = models.Logistic(features=1, bounds=(-1, 1), prior=od.Gaussian(scale=1.0))
    for model, budget, options, words in (
        (MODELS["box"], od.PureDP(1.0), {}, "ApproxDP"),
        (logistic, BUDGET, {}, "models.LeastSquares"),
        (MODELS["box"], BUDGET, {"draws": 2}, "Leave out draws"),
    ):
        with pytest.raises(refused, match=words):
            od.calibrate(AdaSSP(), model, budget, n=N, **options)
    with pytest.raises(od.errors.PromiseRefused, match="64 bits"):
        od.calibrate(AdaSSP(), MODELS["box"], od.ApproxDP(1e-9, 1e-12), n=N)
    with pytest.raises(od.errors.WrongCall, match=r"0\.05"):
        AdaSSP(failure=0.0)


# ── the audit ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "epsilon", [pytest.param(0.1, marks=pytest.mark.slow), 1.0, pytest.param(8.0, marks=pytest.mark.slow)]
)
def test_the_audit_finds_the_promise_kept_and_attained_and_a_fault_of_one_percent(epsilon):
    for case in cases("baselines", od.ApproxDP(epsilon, 1e-5), mechanism="ada-ssp"):
        worst, tables = case.pairs
        assert case.profile(worst).breaks(case.promise) is None
        assert case.profile(worst, 1.01).breaks(case.promise) is not None
        assert case.distance(worst, case.numbers()) == pytest.approx(case.promise.mu, rel=1e-8)
        assert 0.5 * case.promise.mu < case.distance(tables, case.numbers()) < case.promise.mu
        assert case.replayed() == ()


@pytest.mark.slow
def test_an_examination_of_every_case_passes():
    found = [examine(case) for case in cases("baselines", od.ApproxDP(1.0, 1e-5), mechanism="ada-")]
    assert len(found) == 3
    assert all(one.passed for one in found)
    assert all(smallest_caught_factor(one.case, one.pair, gap=one.gap) < 1.05 for one in found)


def test_a_program_that_adds_up_something_else_is_caught(monkeypatch):
    case = case_for(od.calibrate(AdaSSP(), MODELS["box"], BUDGET, n=N))
    whole = RegressionSums.whole
    monkeypatch.setattr(RegressionSums, "whole", lambda self, summary: tuple(2 * part for part in whole(self, summary)))
    assert len(case.replayed()) == 6


def test_noise_for_a_record_more_or_less_instead_of_a_replaced_one_is_caught():
    """The paper's sensitivities, 1 for each stage, as one Gaussian mechanism: √3 in place of √5.5."""
    (case, *_) = cases("baselines", od.ApproxDP(1.0, 1e-5), mechanism="ada-ssp")
    assert case.profile(case.pairs[0], math.sqrt(5.5 / 3.0)).breaks(case.promise) is not None


def test_the_papers_own_noise_is_enough_though_its_stages_are_not():
    """√log(6/δ)/(ε/3) at (1, 1e-6): each stage misses its own (ε/3, δ/3), all of them together keep (ε, δ)."""
    relative = math.sqrt(math.log(6e6)) / (1.0 / 3.0)
    assert od.GaussianDP(1.0 / relative).delta(1.0 / 3.0) == pytest.approx(2.65 * 1e-6 / 3.0, rel=0.01)
    assert od.GaussianDP(math.sqrt(5.5) / relative).delta(1.0) < 1e-6
    ours = od.calibrate(AdaSSP(), MODELS["box"], BUDGET, n=N).parameters["squares_noise"] / 4.0
    assert 1.15 < relative / ours < 1.25
