"""Posterior mechanisms in measured coordinates: the promise for every value of the moments, the plan, bad input."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onedraw as od
from onedraw import errors, models
from onedraw.methods import Measured, NoisyGradient, plan_from_dict
from onedraw.methods.candidates.run import Selection
from onedraw.methods.measured.run import MeasuredFirst
from onedraw.models.fit.problem import Coordinates, Published
from onedraw.privacy import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP
from onedraw.report.tables import correlations
from tests.methods.cases import FITTED, ROWS

BUDGET = ApproxDP(1.0, 1e-5)
MODELS = FITTED | {
    "huber": models.HuberRegression(**ROWS, threshold=0.7),
    "rows of a norm": models.Logistic(3, data_norm=2.0, prior=od.Gaussian(scale=1.0)),
    "without an intercept": models.Logistic(**ROWS, intercept=False, loss="exp-linear"),
}


def planned(name="exp-linear", budget=BUDGET, *, n=4000, draws=1, records_per_person=1, **options):
    mechanism = Measured(**options)
    return od.calibrate(mechanism, MODELS[name], budget, n=n, draws=draws, records_per_person=records_per_person)


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(1)
    X = generator.normal(0.3, 0.2, (300, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    return np.clip(X, -1.0, 1.0), (X[:, 0] + 0.2 * generator.standard_normal(300) > 0.3).astype(float)


# ── the promise ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("budget", [BUDGET, GaussianDP(0.4), ZCDP(0.05), RenyiDP.at(8.0, 0.5)], ids=str)
def test_squares_of_both_stages_add_up_to_what_the_budget_allows(budget):
    plan = planned(budget=budget)
    inner, promise = plan.mechanism.inner(plan), plan.guarantee.promise
    ratios = np.array([
        math.sqrt(12.0) / plan.parameters["mean_noise"],
        math.sqrt(2.0) * plan.parameters["moment_radius"] ** 2 / plan.parameters["moments_noise"],
    ])  # fmt: skip
    assert promise.mu == pytest.approx(math.sqrt((ratios**2).sum() + inner.guarantee.promise.mu**2), rel=1e-9)
    assert promise.implies(budget)
    assert not GaussianDP(promise.mu * 1.01).implies(budget)


def test_a_persons_records_multiply_every_sensitivity():
    plan = planned(records_per_person=3)
    numbers = plan.parameters
    moments = 3 * math.sqrt(2.0) * numbers["moment_radius"] ** 2 / numbers["moments_noise"]
    mean = 3 * math.sqrt(12.0) / numbers["mean_noise"]
    assert plan.guarantee.promise.mu == pytest.approx(
        math.sqrt(mean**2 + moments**2 + (3 * numbers["mu"]) ** 2), rel=1e-9
    )
    assert plan.guarantee.promise.implies(BUDGET)


def test_several_draws_share_one_measurement():
    plan = planned(draws=4)
    numbers = plan.parameters
    stage = (math.sqrt(12.0) / numbers["mean_noise"]) ** 2 + 2.0 * (
        numbers["moment_radius"] ** 2 / numbers["moments_noise"]
    ) ** 2
    assert plan.guarantee.promise.mu == pytest.approx(math.sqrt(stage + 4 * numbers["mu"] ** 2), rel=1e-9)


@pytest.mark.parametrize("name", MODELS)
@given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from([0.0, 1e-3, 1.0, 1e6]))
@settings(max_examples=8, deadline=None)
def test_one_record_moves_the_gradient_by_at_most_g_whatever_was_published(name, seed, size):
    """Random neighbours in one odd record, random published moments (also absurd ones), random θ: the adaptive premise."""
    generator, plan = np.random.default_rng(seed), planned(name, n=200, share=0.2)
    inner = plan.mechanism.inner(plan)
    columns = 3 + plan.mechanism.problem(plan).measuring.response
    mean = size * generator.standard_normal(columns) if plan.parameters["mean_noise"] else None
    moments = size * generator.standard_normal(columns * (columns + 1) // 2)
    where = plan.mechanism.problem(plan).coordinates(Published(np.zeros(0), mean, moments))
    odd = generator.choice([-1.0, 1.0, 0.0, np.nan, np.inf, -1e308, 5e-324], (2, 3))
    responses = generator.choice([0.0, 1.0, -1e300, np.inf, np.nan, 5.0], 2)
    targets = [
        plan.mechanism.target(plan, plan.model.summarise(([row.tolist()] * 200, [response] * 200)))
        for row, response in zip(odd, responses, strict=True)
    ]
    laws = [target.within(where) for target in targets]
    for theta in generator.standard_normal((3, inner.model.dimension)) * generator.choice([0.1, 1.0, 100.0]):
        gradients = [np.asarray(law.kernel.gradient_total(theta, law.encoded.X[:1], law.encoded.y[:1])) for law in laws]
        assert np.linalg.norm(gradients[0] - gradients[1]) <= inner.parameters["gradient_difference"]
        for law in laws:
            hessian = np.asarray(law.kernel.hessian_total(theta, law.encoded.X[:1], law.encoded.y[:1]))
            assert np.linalg.eigvalsh(hessian)[-1] <= inner.model.bounds["smoothness"].value * (1.0 + 1e-12)


def test_the_gradients_bound_is_nearly_reached():
    """So that the test above could fail: opposite corners, stretched to r, both on the wrong side far out."""
    plan = planned(n=200, share=0.2)
    long = math.sqrt((plan.parameters["row_bound"] ** 2 - 1.0) / 3.0) * np.eye(3)
    laws = [
        plan.mechanism.target(plan, plan.model.summarise(([row] * 200, [1] * 200))).within(
            Coordinates(np.zeros(3), long)
        )
        for row in ([1.0, 1.0, 1.0], [-1.0, -1.0, -1.0])
    ]
    far = np.array([0.0, 0.0, 0.0, -100.0])
    slopes = [np.asarray(law.kernel.gradient_total(far, law.encoded.X[:1], law.encoded.y[:1])) for law in laws]
    assert 0.85 < np.linalg.norm(slopes[0] - slopes[1]) / plan.parameters["gradient_difference"] <= 1.0


# ── the plan ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", MODELS)
def test_a_plan_survives_being_written_and_read(name):
    plan = planned(name)
    assert plan_from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


@pytest.mark.parametrize(
    "number", ["mean_noise", "moments_noise", "row_bound", "moment_radius", "weight", "prior_deviation"]
)
def test_a_plan_whose_numbers_were_made_more_favourable_is_refused(number):
    stored = planned().to_dict()
    stored["parameters"][number] *= (
        1.2 if number in ("row_bound", "moment_radius", "weight", "prior_deviation") else 0.8
    )
    with pytest.raises(errors.OnedrawError):
        plan_from_dict(stored)


def test_too_few_records_leave_the_first_stage_out_and_the_heading_says_so():
    few, many = planned(n=60, budget=ApproxDP(0.5, 1e-5)), planned()
    assert few.parameters["moments_noise"] == 0.0
    assert few.heading.endswith("with weighted rows")
    assert many.heading.endswith("in measured coordinates")
    assert few.parameters["row_bound"] == pytest.approx(math.sqrt(0.36 * 3 + 1))
    assert list(few.mechanism.stage_sizes(few)) == ["draws"]
    assert planned(n=60, share=0.3).parameters["moments_noise"] > 0.0
    assert planned(share=0.0).parameters["moments_noise"] == 0.0


def test_with_few_records_a_path_is_shorter_and_never_longer_than_usual():
    def lasting(plan):
        numbers = plan.parameters
        return plan.n * numbers["weight"] * numbers["curvature"] * numbers["time"]

    few, more = (lasting(planned(n=n, budget=ApproxDP(0.5, 1e-5))) for n in (150, 4000))
    assert 0.1 * 0.999 <= few < 1.0
    assert few < more <= 3.0 * 1.001
    asked = lasting(planned(n=150, budget=ApproxDP(0.5, 1e-5), of=NoisyGradient(relaxations=2.0)))
    assert asked == pytest.approx(2.0, rel=1e-3)


def test_the_certificate_states_the_prior_that_is_used():
    words = " ".join(assumption.statement for assumption in planned(prior_scale=0.7).guarantee.assumptions)
    assert "prior of deviation 0.7 on coefficients of measured columns" in words
    assert "weight min(1, r²/‖z‖²)" in words


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Measured(od.Direct()), "and Direct was given"),
        (lambda: Measured(share=1.0), "share is the part"),
        (lambda: Measured(share=math.nan), "share is the part"),
        (lambda: Measured(prior_scale=-1.0), "prior's scale"),
        (lambda: planned(categories=((1, 5),)), "categories are"),
        (lambda: planned(budget=PureDP(1.0)), "a δ above 0"),
        (lambda: planned(budget=ApproxDP(1.0, 0.0)), "a δ above 0"),
        (lambda: od.calibrate(Measured(), models.Logistic(2, bounds=(-1, 1), prior=od.Gaussian(scale=1)), BUDGET, n=100), "scaled=True"),
        (lambda: od.calibrate(Measured(), models.Hinge(**ROWS), BUDGET, n=100), "measured coordinates"),
        (lambda: od.calibrate(Measured(), models.Softmax(**ROWS, classes=("a", "b", "c")), BUDGET, n=100), "measured coordinates"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_words(call, words):
    with pytest.raises(errors.OnedrawError, match=words):
        call()


def test_one_record_is_a_result_whatever_it_holds():
    drawn = od.release(planned(n=1), ([[np.nan, 1e308, "x"]], [None]), random_state=1)
    assert np.isfinite(drawn.draws).all()


# ── other inner mechanisms ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("of", [od.Gibbs(), od.Candidates(), od.BetaDivergence()], ids=lambda of: type(of).__name__)
def test_other_mechanisms_within_are_refused_and_certificates_that_had_them_named_a_remedy(of):
    with pytest.raises(errors.WrongCall, match="Take a fit"):
        Measured(of)
    stored = planned().to_dict()
    stored["mechanism"]["of"] = of.to_dict()
    with pytest.raises(errors.CertificateRejected, match="the version that made it"):
        plan_from_dict(stored)


def test_another_algorithm_than_the_inner_plans_is_refused():
    plan = planned()
    inner, _ = od.samplers.default_sampler(plan)
    for other in (od.samplers.Exact(), Selection(), od.samplers.LastIterateLangevin(7, inner.of.step_size)):
        with pytest.raises(errors.ExactnessRefused):
            MeasuredFirst(other).exactness(plan)
    with pytest.raises(errors.ExactnessRefused, match="has none"):
        inner.exactness(od.calibrate(NoisyGradient(), MODELS["exp-linear"], BUDGET, n=300))


def test_a_delta_that_the_variates_cannot_carry_is_refused():
    plan = planned(budget=ApproxDP(5.0, 1e-17), n=10**6)
    with pytest.raises(errors.ExactnessRefused, match="variates"):
        od.samplers.default_sampler(plan)[0].exactness(plan)


# ── what runs ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_draw_follows_from_what_was_published(table):
    plan = od.calibrate(Measured(share=0.2), MODELS["exp-linear"], ApproxDP(5.0, 1e-5), n=300, draws=2)
    drawn = od.release(plan, table, random_state=3)
    stages = drawn.certificate.draw.stages
    assert list(stages) == ["mean", "moments", "draws"]
    assert od.verify(drawn.certificate).answer == "consistent"
    assert np.allclose(plan.mechanism.estimate(plan, stages), drawn.draws, atol=2.0 * drawn.certificate.lattice)
    assert drawn.draws[0, 0] > 0.0


def test_the_report_shows_the_correlations_that_were_measured(table):
    plan = od.calibrate(Measured(share=0.3), MODELS["exp-linear"], ApproxDP(20.0, 1e-5), n=300)
    drawn = od.release(plan, table, random_state=3)
    found = correlations(drawn.certificate, plan)
    assert found.values[1][0] == pytest.approx(np.corrcoef(table[0].T)[1, 0], abs=0.25)


def test_duplicated_and_constant_columns_are_a_result(table):
    X, y = table
    same = np.column_stack([X[:, 0], X[:, 0], np.full(len(X), 0.25)])
    drawn = od.release(planned(n=300, share=0.2), (same, y), random_state=4)
    assert np.isfinite(drawn.draws).all()


def test_hubers_loss_is_followed_in_units_of_its_threshold():
    """Narrow, off-centre columns and responses without a range: a tenth of the declared coordinates' error."""
    generator, n = np.random.default_rng(8), 3000
    X = generator.normal(0.5, 0.1, (n, 3))
    y = 40.0 * X[:, 0] - 20.0 * X[:, 1] + 100.0 + generator.standard_normal(n)
    model = models.HuberRegression(**{**ROWS, "prior": od.Gaussian(scale=30.0)}, threshold=2.0)
    errors = [
        np.std(X @ (od.release(od.calibrate(one, model, ApproxDP(5.0, 1e-5), n=n), (X, y), random_state=2).draw[:3] - [40.0, -20.0, 0.0]))
        for one in (Measured(), NoisyGradient(noise=1.0))
    ]  # fmt: skip
    assert errors[0] < 0.5 * errors[1]


def test_measured_coordinates_find_what_declared_ones_miss():
    """Narrow, correlated, off-centre columns: in the declared box a path sees hardly any of the direction that matters."""
    generator, n = np.random.default_rng(7), 300
    common = generator.normal(0.6, 0.1, n)
    X = np.column_stack([common + 0.05 * generator.standard_normal(n) for _ in range(3)])
    u = 30.0 * (X[:, 0] - X[:, 1])
    y = (generator.random(n) < 1.0 / (1.0 + np.exp(-u))).astype(float)
    missed = {}
    for name, mechanism in (("declared", NoisyGradient()), ("measured", Measured())):
        theta = od.release(
            od.calibrate(mechanism, MODELS["exp-linear"], ApproxDP(5.0, 1e-5), n=n), (X, y), random_state=11
        ).draw
        missed[name] = np.std(X @ theta[:-1] - u) / np.std(u)
    assert missed["measured"] < 0.75 < 0.9 < missed["declared"]
