"""Objective perturbation after two papers: their numbers, which of their claims hold, and what runs."""

import math

import numpy as np
import pytest
from scipy import stats

import onedraw as od
from onedraw import models
from onedraw.audit.cases import examine, smallest_caught_factor
from onedraw.baselines.audits.tilted import MODELS as ONE_COEFFICIENT
from onedraw.baselines.audits.tilted import objective_cases
from onedraw.baselines.objective_perturbation import ObjectivePerturbation, TiltedMinimum
from onedraw.methods.catalog import case_for

PRIOR = od.Gaussian(scale=2.0)
LOGISTIC = models.Logistic(features=3, bounds=(-1, 1), prior=PRIOR)
HUBER = models.HuberRegression(features=3, bounds=(-1, 1), threshold=0.5, prior=PRIOR)
PURE, APPROX = od.PureDP(1.0), od.ApproxDP(1.0, 1e-6)
VERSIONS = ("chaudhuri", "kifer")


def labelled(n, generator):
    return generator.uniform(-3, 3, (n, 3)), generator.integers(0, 2, n)


# ── the papers' numbers ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("scale", "epsilon"), [(0.05, 1.0), (2.0, 1.0), (2.0, 0.1), (1.0, 8.0)])
def test_chaudhuri_has_the_noise_and_the_ridge_of_algorithm_2(scale, epsilon):
    """‖x‖ ≤ 1, |φ'| ≤ 1, φ'' ≤ c = ¼, in means: ε' = ε − log(1 + 2c/(nΛ) + c²/(nΛ)²), or ε/2 with a ridge; β = ε'/2."""
    model = models.Logistic(features=2, data_norm=1.0, intercept=False, prior=od.Gaussian(scale=scale))
    n, c, spent = 50, 0.25, epsilon * (1.0 - 2.0**-7)
    found = od.calibrate(ObjectivePerturbation("chaudhuri"), model, od.PureDP(epsilon), n=n).parameters
    Lambda = 1.0 / (n * scale**2)
    left, Delta = spent - math.log(1.0 + 2.0 * c / (n * Lambda) + (c / (n * Lambda)) ** 2), 0.0
    if left <= 0.0:
        Delta, left = c / (n * (math.exp(spent / 4.0) - 1.0)) - Lambda, spent / 2.0
    assert found["ridge"] == pytest.approx(n * Delta, rel=1e-6, abs=1e-12)
    assert found["tilt_noise"] == pytest.approx(2.0 / left, rel=1e-6)


def test_kifer_as_published_has_the_numbers_of_algorithm_1():
    model = models.Logistic(features=2, data_norm=1.0, intercept=False, prior=PRIOR)
    pure, gaussian = (
        od.calibrate(ObjectivePerturbation("kifer", as_published=True), model, budget, n=50)
        for budget in (PURE, APPROX)
    )
    assert pure.parameters["ridge"] == gaussian.parameters["ridge"] == pytest.approx(2 * 0.25 / 1.0)
    assert pure.parameters["tilt_noise"] == pytest.approx(2.0)
    assert gaussian.parameters["tilt_noise"] == pytest.approx(math.sqrt(8 * math.log(2 / 1e-6) + 4))


def test_kifer_corrected_has_more_noise_and_a_stronger_ridge_than_published():
    for budget in (PURE, APPROX):
        true, published = (
            od.calibrate(ObjectivePerturbation("kifer", as_published=known), LOGISTIC, budget, n=50).parameters
            for known in (False, True)
        )
        for name in ("ridge", "tilt_noise"):
            assert 1.1 < true[name] / published[name] < 2.0


def test_our_perturbed_mode_has_less_noise_than_either_paper_for_the_same_promise():
    """In the same columns, without measuring them and without intervals."""
    model = models.Logistic(features=3, bounds=(-1, 1), scaled=True, prior=PRIOR)
    ours = od.calibrate(od.methods.PerturbedMode(measured=False, intervals=False), model, PURE, n=1000).parameters
    row = ours["row_bound"]
    for version in VERSIONS:
        theirs = od.calibrate(ObjectivePerturbation(version), model, PURE, n=1000).parameters
        assert theirs["tilt_noise"] / theirs["lipschitz"] > 1.02 * ours["mode_noise"] / row


# ── what runs ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("budget", "model"),
    [(PURE, LOGISTIC), (APPROX, LOGISTIC), (od.PureDP(0.05), HUBER), (od.ApproxDP(12.0, 1e-9), HUBER)],
    ids=["pure", "approximate", "small", "large"],
)
def test_a_release_keeps_its_budget_and_verifies(version, budget, model):
    plan = od.calibrate(ObjectivePerturbation(version), model, budget, n=60)
    assert plan.guarantee.promise.implies(budget)
    release = od.release(plan, labelled(60, np.random.default_rng(3)))
    assert release.certificate.sentence.startswith("Proven")
    assert od.verify(release)


def test_the_minimum_solves_its_tilted_equations_to_the_certified_gradient():
    plan = od.calibrate(ObjectivePerturbation("kifer", regularisation=0.01), HUBER, PURE, n=40)
    generator = np.random.default_rng(4)
    records = labelled(40, generator)
    target = plan.target(plan.model.summarise(records))
    X, y = target.encoded.X, target.encoded.y
    for tilt in generator.normal(0.0, 5.0, (3, 4)):
        theta, _ = target.problem.minimum(target, plan.parameters["tolerance"], tilt)
        gradient = X.T @ np.clip(X @ theta - y, -0.5, 0.5) + plan.parameters["strong_convexity"] * theta + tilt
        assert np.linalg.norm(gradient) <= plan.parameters["tolerance"]
        assert np.linalg.norm(gradient - 0.01 * tilt) > plan.parameters["tolerance"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_long_tilt_is_counted_in_what_is_certified(version):
    """Small ε, many columns: the tilt is then far longer than all records pull, and its own digits are what is missing."""
    model = models.Logistic(features=40, bounds=(-1, 1), prior=PRIOR)
    budget = od.PureDP(1e-6) if version == "chaudhuri" else od.ApproxDP(1e-6, 1e-6)
    plan, generator = od.calibrate(ObjectivePerturbation(version), model, budget, n=5), np.random.default_rng(8)
    target = plan.target(model.summarise((generator.uniform(-1, 1, (5, 40)), generator.integers(0, 2, 5))))
    fit, tolerance = target.problem, plan.parameters["tolerance"]
    X, y = (np.asarray(part, dtype=np.longdouble) for part in (target.encoded.X, target.encoded.y))
    tilt = TiltedMinimum().tilt(plan, generator)
    theta, passes = fit.minimum(target, tolerance, tilt)
    slopes = -y / (1.0 + np.exp(y * (X @ theta)))
    gradient = X.T @ slopes + np.asarray(fit.precision, dtype=np.longdouble) * theta + tilt
    assert np.linalg.norm(np.asarray(gradient, dtype=float)) <= tolerance
    assert passes < 100
    with pytest.raises(od.errors.PromiseRefused, match="certified"):
        plan.mechanism.plan(plan.request, {**plan.parameters, "tolerance": 2.0**-32 * plan.parameters["lipschitz"]})


ODD = [np.nan, np.inf, -np.inf, 1e308, -1e308, 7.0, None, "x"]


@pytest.mark.parametrize("version", VERSIONS)
def test_one_odd_cell_neither_fails_nor_moves_the_minimum_beyond_the_bound(version):
    """For one tilt the minimum moves by at most 2L/m, and 2t/m for the search."""
    generator = np.random.default_rng(5)
    for model in (LOGISTIC, HUBER):
        plan = od.calibrate(ObjectivePerturbation(version), model, PURE, n=15)
        numbers, tilt = plan.parameters, generator.normal(0.0, 3.0, 4)
        X, y = labelled(15, generator)

        def minimum(rows, labels, plan=plan, tilt=tilt):
            target = plan.target(plan.model.summarise((rows, labels)))
            return target.problem.minimum(target, plan.parameters["tolerance"], tilt)[0]

        start, farthest = minimum(X, y), 0.0
        for value in ODD:
            rows, labels = X.astype(object), y.astype(object)
            rows[2, 0], labels[2] = value, value
            farthest = max(farthest, float(np.linalg.norm(minimum(rows.tolist(), labels.tolist()) - start)))
        bound = (2.0 * numbers["lipschitz"] + 2.0 * numbers["tolerance"]) / numbers["strong_convexity"]
        assert 0.0 < farthest <= bound


def test_a_certificate_with_less_noise_is_rejected():
    for mechanism in (ObjectivePerturbation("kifer"), ObjectivePerturbation("chaudhuri", as_published=True)):
        plan = od.calibrate(mechanism, LOGISTIC, PURE, n=30)
        release = od.release(plan, labelled(30, np.random.default_rng(1)))
        written = release.certificate.model_dump(mode="json")
        for name, factor in (("tilt_noise", 0.99), ("tolerance", 1e-12), ("strong_convexity", 2.0)):
            edited = {**written, "plan": {**written["plan"], "parameters": dict(written["plan"]["parameters"])}}
            edited["plan"]["parameters"][name] *= factor
            with pytest.raises(od.errors.CertificateRejected):
                od.verify(type(release.certificate).model_validate(edited))


def test_as_published_says_first_that_it_is_not_proven():
    for version in VERSIONS:
        plan = od.calibrate(ObjectivePerturbation(version, as_published=True), LOGISTIC, PURE, n=30)
        release = od.release(plan, labelled(30, np.random.default_rng(1)))
        assert release.certificate.sentence.startswith("NOT PROVEN, as published")
        assert "Proven:" not in release.certificate.sentence
        assert od.verify(release)


def test_what_cannot_be_kept_is_refused():
    for model, budget, words in (
        (LOGISTIC, od.GaussianDP(1.0), "PureDP"),
        (LOGISTIC, od.ZCDP(0.1), "PureDP"),
        (models.Logistic(features=1, data_norm=1.0, prior=od.Gaussian(scale=1.0, radius=3.0)), PURE, "radius"),
        (models.LeastSquares(1, data_norm=1, response_bound=1, prior=od.Gaussian(scale=1, radius=9)), PURE, "Huber"),
    ):  # fmt: skip
        with pytest.raises(od.errors.UnsupportedBudget, match=words):
            od.calibrate(ObjectivePerturbation(), model, budget, n=10)
    with pytest.raises(od.errors.WrongCall, match="version"):
        ObjectivePerturbation("smith")


def test_a_person_with_several_records_is_paid_for():
    for version in VERSIONS:
        one, three = (
            od.calibrate(ObjectivePerturbation(version), LOGISTIC, PURE, n=90, records_per_person=k) for k in (1, 3)
        )
        assert three.guarantee.promise.implies(PURE)
        assert three.parameters["tilt_noise"] > 2.5 * one.parameters["tilt_noise"]


# ── the audit ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def examined():
    return [examine(case, thorough=False) for case in objective_cases(od.ApproxDP(1.0, 1e-5))]


def test_no_promise_is_broken_and_the_corrected_pure_one_is_attained(examined):
    assert [one.case.name for one in examined if not one.passed] == []
    attained = [one for one in examined if one.case.attained]
    assert attained
    assert all(1.0 - 1e-6 <= one.gap < 1.001 for one in attained)


def test_planted_faults_are_caught(examined):
    for one in examined:
        factor = smallest_caught_factor(one.case, one.pair, gap=one.gap, confirm=False)
        assert factor is not None
        assert factor < (1.01 if one.case.attained else 5.0)
    attained = next(one for one in examined if one.case.attained)
    assert attained.case.profile(attained.pair, 1.05).breaks(attained.case.promise) is not None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("budget", [PURE, pytest.param(APPROX, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "model",
    [
        LOGISTIC,
        HUBER,
        models.HuberisedHinge(features=3, bounds=(-1, 1), intercept=False, width=0.5, prior=PRIOR),
        models.HuberRegression(features=1, data_norm=2.0, intercept=False, prior=PRIOR, threshold=0.5),
        models.HuberisedHinge(features=2, data_norm=0.3, prior=PRIOR, classes=("no", "yes")),
        models.LogCoshRegression(features=2, data_norm=2.0, intercept=False, prior=PRIOR, response_bound=3.0),
    ],
    ids=["logistic", "huber", "hinge", "near", "ball", "log-cosh"],
)
def test_any_plan_can_be_turned_into_a_case_that_holds(version, budget, model):
    one = examine(case_for(od.calibrate(ObjectivePerturbation(version), model, budget, n=40)), thorough=False)
    assert one.passed
    assert one.gap >= 1.0 - 1e-6
    if (
        version == "kifer"
        and budget is PURE
        and not model.features.intercept
        and isinstance(model, models.HuberisedHinge)
    ):
        assert one.gap < 1.001  # attained in three coefficients as in one


def published_case(version, budget, *, model=ONE_COEFFICIENT[0]):
    """The papers' own numbers, on the same pairs."""
    return case_for(od.calibrate(ObjectivePerturbation(version, as_published=True), model, budget, n=200))


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.1, 1.476), (1.0, 1.336), (4.0, 1.173)])
def test_kifer_as_published_is_broken_by_a_replaced_record_and_kept_by_a_removed_one(epsilon, ratio):
    """On the hinge. A record whose row is 0 counts for nothing, so that moving it there removes it."""
    case = published_case("kifer", od.PureDP(epsilon))
    lost = {pair.name: case.profile(pair).largest_log_ratio / epsilon for pair in case.pairs}
    assert max(lost.values()) == pytest.approx(ratio, abs=2e-3)
    assert max(value for name, value in lost.items() if "removed" in name) <= 1.0
    assert not examine(case, thorough=False).passed


def test_kifer_gaussian_as_published_is_broken_by_a_replaced_record_at_a_small_delta():
    """At ε = 1 the δ on a pair of real tables is 2.6 times the claimed 1e-8; at 1e-5 the same pairs show nothing."""
    case = published_case("kifer", od.ApproxDP(1.0, 1e-8))
    shown = {pair.name: case.profile(pair).delta_bracket(1.0)[0] for pair in case.pairs}
    assert max(shown.values()) == pytest.approx(2.6e-8, rel=0.02)
    assert max(value for name, value in shown.items() if "removed" in name) <= 1e-8
    assert not examine(case).passed
    coarse = published_case("kifer", od.ApproxDP(1.0, 1e-5))
    assert max(coarse.profile(pair).delta_bracket(1.0)[1] for pair in coarse.pairs) < 1e-5


def test_the_paper_of_2008_leaves_out_volume():
    """Logistic regression, its own loss: a record moved to 0 at ε = 0.1 and nΛ = 1 loses 2.35 ε."""
    case = published_case("chaudhuri", od.PureDP(0.1), model=ONE_COEFFICIENT[1])
    assert case.plan.parameters["strong_convexity"] == 1.0
    lost = max(case.profile(pair).largest_log_ratio for pair in case.pairs)
    assert lost / 0.1 == pytest.approx(2.35, abs=5e-3)
    assert not examine(case, thorough=False).passed
    corrected = od.calibrate(ObjectivePerturbation("chaudhuri"), case.plan.model, od.PureDP(0.1), n=200)
    assert examine(case_for(corrected), thorough=False).passed


@pytest.mark.statistical
@pytest.mark.parametrize("budget", [PURE, APPROX], ids=["pure", "gaussian"])
def test_the_programs_draws_have_the_law_that_the_audit_writes_down(budget):
    """θ ≤ t where the noise is at most g(t), so the noise's distribution at g(θ) is uniform (α ≈ 1e-6)."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    plan = od.calibrate(ObjectivePerturbation("kifer"), ONE_COEFFICIENT[0], budget, n=20)
    case = case_for(plan)
    target = plan.target(plan.model.summarise(case.pairs[0].first))
    draws = TiltedMinimum().run(target, np.random.default_rng(seed), size=500).draws[:, 0]
    places = case.equations(case.pairs[0].first, draws) / plan.parameters["tilt_noise"]
    law = stats.laplace if plan.parameters["pure"] else stats.norm
    assert stats.kstest(places, law.cdf).pvalue > 1e-6
    assert stats.kstest(2.0 * places, law.cdf).pvalue < 1e-6
