"""Releases of regressions: what each sampler's certificate says, and that it can be checked."""

import math
from importlib.metadata import version

import jax
import numpy as np
import pytest

import onedraw as od
from onedraw import errors
from onedraw.models.compute import computed_on
from onedraw.release.certificate import Certificate
from tests.release.cases import missed_edits

N, D = 60, 2
BUDGET = od.ApproxDP(1.0, 1e-5)
SHAPE = {"features": D, "bounds": (-1.0, 1.0)}
FREE = od.Gaussian(scale=1.0)
BALL = od.Gaussian(scale=1.0, radius=1.0)


@pytest.fixture(scope="module")
def records():
    generator = np.random.default_rng(5)
    X = generator.uniform(-1, 1, (N, D))
    return X, (X[:, 0] > 0).astype(float)


PLANS = {
    "gdp": (od.Gibbs("gdp"), od.models.Logistic(**SHAPE, prior=FREE), BUDGET, "Proven"),
    "bounded": (od.Gibbs("bounded"), od.models.Logistic(**SHAPE, prior=BALL), od.ApproxDP(1.0, 1e-9), "Exact"),
    "bounded, by a chain": (
        od.Gibbs("bounded"),
        od.models.Logistic(**SHAPE, loss="exp-linear", prior=BALL),
        od.ApproxDP(1.0, 1e-9),
        "Accounted",
    ),
    "noisy": (od.NoisyGradient(), od.models.Logistic(**SHAPE, loss="exp-linear", prior=FREE), BUDGET, "Proven"),
    "measured": (
        od.Measured(share=0.3),
        od.models.Logistic(**SHAPE, scaled=True, loss="exp-linear", prior=FREE),
        BUDGET,
        "Proven",
    ),
    "least squares": (
        od.Gibbs("bounded"),
        od.models.LeastSquares(**SHAPE, response_bound=1.0, prior=BALL),
        od.PureDP(1.0),
        "Exact",
    ),
    "candidates": (od.Candidates(), od.models.BinaryRegression(D, prior=FREE), od.PureDP(1.0), "Exact"),
    "diffused": (od.Diffused(), od.models.Logistic(**SHAPE, prior=FREE), od.ZCDP(0.05), "Proven"),
}


@pytest.fixture(scope="module")
def releases(records):
    return {
        name: od.release(od.calibrate(mechanism, model, budget, n=N), records)
        for name, (mechanism, model, budget, _) in PLANS.items()
    }


@pytest.mark.parametrize("name", PLANS)
def test_the_first_word_says_how_exact_the_draw_is(releases, name):
    assert releases[name].certificate.sentence.startswith(
        f"{PLANS[name][-1]}: this {'estimate' if name == 'noisy' else 'draw'} is (ε = "
    )
    assert releases[name].draws.shape == (1, D + 1)


@pytest.mark.parametrize("name", PLANS)
def test_every_promise_keeps_its_budget_and_verifies(releases, name):
    certificate = releases[name].certificate
    assert od.verify(certificate).answer == "consistent"
    assert od.privacy.Promise.from_dict(certificate.promise.native).implies(PLANS[name][2])


@pytest.mark.parametrize("name", PLANS)
def test_every_edit_of_a_promise_bearing_field_is_caught(releases, name):
    assert missed_edits(releases[name].certificate) == []


def test_least_squares_on_a_ball_is_pure(releases):
    assert releases["least squares"].certificate.promise.delta == 0
    assert releases["least squares"].certificate.promise.epsilon <= 1


def test_a_noisy_gradient_release_does_not_call_itself_a_draw(releases):
    sentence = releases["noisy"].certificate.sentence
    assert "draw" not in sentence
    assert "by noisy gradient steps" in sentence


def test_a_pick_from_candidates_rests_on_exact_sums(releases):
    certificate = releases["candidates"].certificate
    assert certificate.promise.delta == 0
    assert "summed exactly" in certificate.numeric_model
    assert not any("arithmetic is real" in a.statement for a in certificate.assumptions)


def test_a_beta_divergence_posterior_has_no_proven_chain_and_says_what_to_use(records):
    plan = od.calibrate(od.BetaDivergence(), od.models.BinaryRegression(D, prior=FREE), od.PureDP(1.0), n=N)
    with pytest.raises(errors.ExactnessRefused, match="Candidates"):
        od.release(plan, records)


def test_the_certificate_says_that_sums_are_floating_point(releases):
    certificate = releases["gdp"].certificate
    assert "also in sums over records" in certificate.numeric_model
    assert any("arithmetic is real" in a.statement and a.provenance == "assumed" for a in certificate.assumptions)


def test_the_certificate_names_the_device_that_read_the_records(releases):
    for release in releases.values():
        engine = release.certificate.data.engine
        assert engine.model_dump() == {
            "name": "one process",
            "version": version("onedraw"),
            "parts": 1,
            **computed_on(),
        }
        assert (engine.platform, engine.jax) == (jax.default_backend(), version("jax"))


def test_a_count_needs_no_compiled_code_and_names_no_device():
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6), n=4)
    assert od.release(plan, [0, 1, 1, 0]).certificate.data.engine is None


def test_a_certificate_from_before_devices_were_named_keeps_its_digest(releases):
    """What is absent is not written."""
    written = next(iter(releases.values())).certificate.model_dump(mode="json")
    older = {"name": "Spark", "version": "4.0.1", "parts": 2, "digest": "0" * 64}
    written["data"]["engine"] = older
    assert Certificate.model_validate(written).model_dump(mode="json")["data"]["engine"] == older


def test_total_variation_is_a_ledger_entry_of_its_own(records, tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", od.ApproxDP(2.0, 1e-5))
    mechanism, model, budget, _ = PLANS["bounded, by a chain"]
    release = od.release(od.calibrate(mechanism, model, budget, n=N), records, ledger=ledger, dataset="patients")
    event = next(event for event in ledger.events("patients") if event.kind == "reserved")
    assert 0 < event.payload["gamma"] <= 1e-9
    assert event.payload["promise"]["kind"] == "BoundedRange"
    assert od.verify(release.certificate, ledger=ledger).answer == "authentic"


def test_corollary_8_as_published_says_not_proven_first(records):
    model = od.models.Logistic(**SHAPE, prior=FREE)
    plan = od.calibrate(od.Gibbs("corollary8", as_published=True), model, od.ApproxDP(20.0, 1e-5), n=N)
    sampler = od.samplers.Proximal(gamma=plan.gamma / 2)
    release = od.release(plan, records, sampler=sampler)
    assert release.certificate.sentence.startswith("NOT PROVEN, as published: ")


def test_a_spend_that_is_not_proven_cannot_be_charged(records, tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", od.ApproxDP(50.0, 1e-2))
    model = od.models.Logistic(**SHAPE, prior=FREE)
    plan = od.calibrate(od.Gibbs("corollary8", as_published=True), model, od.ApproxDP(20.0, 1e-5), n=N)
    sampler = od.samplers.Proximal(gamma=plan.gamma / 2)
    with pytest.raises(errors.PromiseRefused, match="would understate it"):
        od.release(plan, records, ledger=ledger, dataset="patients", sampler=sampler)
    assert len(ledger.events("patients")) == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda plan: od.samplers.LastIterateLangevin(10, 3.0 / plan.parameters["smoothness"]), "step"),
        (lambda plan: od.samplers.LastIterateLangevin(0, 0.1 / plan.parameters["smoothness"]), "steps"),
        (lambda plan: od.samplers.Exact(), "Exact"),
        (lambda plan: od.samplers.Langevin(gamma=1e-9), "steps"),
    ],
)
def test_a_sampler_that_cannot_keep_the_promise_is_refused_and_nothing_is_spent(records, tmp_path, make, words):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", od.ApproxDP(2.0, 1e-5))
    mechanism, model, budget, _ = PLANS["gdp"]
    plan = od.calibrate(mechanism, model, budget, n=N)
    with pytest.raises(errors.OnedrawError, match=words):
        od.release(plan, records, ledger=ledger, dataset="patients", sampler=make(plan))
    assert len(ledger.events("patients")) == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e308, "x", None])
def test_no_record_can_make_a_gibbs_release_fail(records, bad):
    X, y = records
    broken = X.astype(object)
    broken[0, 0] = bad
    labels = y.astype(object)
    labels[1] = bad
    mechanism, model, budget, _ = PLANS["gdp"]
    release = od.release(od.calibrate(mechanism, model, budget, n=N), (broken, labels))
    assert np.all(np.isfinite(release.draws))


def test_the_certificate_depends_on_the_records_through_the_draw_alone(records):
    documents = []
    for X, y in (records, (-records[0], 1 - records[1]), (np.full((N, D), np.nan), np.zeros(N))):
        mechanism, model, budget, _ = PLANS["bounded"]
        release = od.release(od.calibrate(mechanism, model, budget, n=N), (X, y), random_state=3)
        document = release.certificate.model_dump(mode="json")
        document["draw"].pop("values")
        document.pop("prepared_at")
        documents.append(document)
    assert documents[0] == documents[1] == documents[2]


def test_the_certificate_says_why_the_sampler_was_chosen(releases, records):
    assert "noisy gradient steps" in releases["noisy"].certificate.sampler_choice
    assert "closed form" in releases["least squares"].certificate.sampler_choice
    mechanism, model, budget, _ = PLANS["gdp"]
    plan = od.calibrate(mechanism, model, budget, n=N)
    sampler = od.samplers.LastIterateLangevin(5, 0.5 / plan.parameters["smoothness"])
    assert od.release(plan, records, sampler=sampler).certificate.sampler_choice == "named by the caller"
