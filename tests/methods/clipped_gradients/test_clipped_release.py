"""Clipped gradients as a release: certificate, verification, predictions, summary, report, estimators and the variant by name (mechanism.py, result.py)."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

import onedraw as od
from onedraw.errors import CertificateRejected, InvalidModel, OnedrawError, PromiseRefused
from onedraw.methods import Mechanism
from onedraw.methods.clipped_gradients import ClippedGradients
from onedraw.methods.clipped_gradients import run as running
from onedraw.methods.perturbed_mode.run import Fit
from onedraw.planning import Regression
from onedraw.release import Release, release, verify
from onedraw.samplers.noise import Noise
from onedraw.samplers.padding import PASSES
from onedraw.samplers.randomness import is_secure
from onedraw.samplers.sampler import Sampler

from .cases import BUDGET, KINDS, plan_of, run, table_of

N = 500
COLUMNS: dict[str, Any] = {
    "age": {"kind": "number", "lower": 18, "upper": 98, "missing": 58},
    "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
    "stage": {"kind": "category", "levels": ["I", "II", "III"], "missing": "I"},
    "visits": {"kind": "count", "cap": 12, "missing": 0},
}


@pytest.fixture(scope="module")
def patients() -> pd.DataFrame:
    rng, n = np.random.default_rng(4), 5000
    frame = pd.DataFrame({"age": rng.uniform(18, 98, n), "ward": rng.choice(list("abc"), n)})
    older = (frame.age - 58) / 20
    scores = np.column_stack([np.zeros(n), older, 1.5 * (frame.ward == "b") - older])
    frame["stage"] = np.array(["I", "II", "III"])[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]
    frame["visits"] = rng.poisson(np.exp(0.5 * older))
    return frame


@pytest.fixture(scope="module")
def schema() -> Any:
    return od.Schema.from_dict({"dataset": "p", "columns": COLUMNS})


@pytest.fixture(scope="module")
def stages(patients: pd.DataFrame, schema: Any) -> Any:
    """Return a classifier of three stages, fitted by a schema."""
    model = od.DPLogisticRegression(1.0, schema=schema, target="stage", mechanism="clipped-gradients", random_state=0)
    return model.fit(patients)


@pytest.mark.parametrize("kind", KINDS)
def test_release_of_every_kind_verifies_and_loads(kind: str, tmp_path: Any) -> None:
    plan = plan_of(kind, N)
    found = release(plan, table_of(kind, N), random_state=3)
    found.save(tmp_path / "it.json")
    assert verify(tmp_path / "it.json").answer == "consistent"
    loaded = Release.load(tmp_path / "it.json")
    assert loaded.plan == plan
    result = plan.mechanism.result(plan, found.certificate.draw.stages)  # type: ignore[attr-defined]
    assert loaded.draws[0] == pytest.approx(result.estimate, abs=1e-5)
    assert "for prediction: no intervals; clipping biases coefficients" in found.certificate.sentence
    assert found.certificate.sampler["name"] == "ClippedSteps"
    assert "confirmed" in found.certificate.second_opinion


def test_edited_stages_are_rejected() -> None:
    found = release(plan_of("label", N), table_of("label", N), random_state=3)
    drawn = found.certificate.draw
    assert drawn.stages is not None
    for name, values in drawn.stages.items():
        # the level moves the derivatives' unit for counts alone, so of two classes only its length is noticed
        for edited in ([value - 7e3 for value in values], values[:-1])[name == "level" :]:
            draw = drawn.model_copy(update={"stages": {**drawn.stages, name: edited}})
            with pytest.raises(CertificateRejected):
                verify(found.certificate.model_copy(update={"draw": draw}))


def test_one_charge_pays_for_all_parts(tmp_path: Any) -> None:
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("d", BUDGET)
    release(plan_of("label", N), table_of("label", N), ledger=ledger, dataset="d", random_state=1)
    assert 0.9 < ledger.spent("d").epsilon(1e-6) <= 1.0


def test_padded_release_states_its_passes() -> None:
    plan = plan_of("label", N)
    found = release(plan, table_of("label", N), timing="padded", random_state=1)
    timing = found.certificate.timing
    assert timing is not None
    assert timing.work == {PASSES: plan.mechanism.own_sampler()().passes(plan)}


def test_other_samplers_are_refused() -> None:
    with pytest.raises(OnedrawError, match=r"carried out by ClippedSteps"):
        release(plan_of("label", N), table_of("label", N), sampler=Fit())


def test_names_are_read_back() -> None:
    assert Mechanism.from_dict({"name": "ClippedGradients", "categories": [[0, 2]]}) == ClippedGradients(((0, 2),))
    assert type(Sampler.from_dict({"name": "ClippedSteps"})).__name__ == "ClippedSteps"


def test_intervals_are_refused_with_the_reason() -> None:
    found = release(plan_of("count", N), table_of("count", N), random_state=1)
    with pytest.raises(PromiseRefused, match="clipping biases coefficients"):
        found.conf_int()
    summary = found.summary()
    assert not summary.given
    assert "clipping biases coefficients" in str(summary)
    assert [row.estimate for row in summary] == pytest.approx(found.draws[0], abs=1e-9)


def test_zeros_of_slopes_are_said_to_be_no_estimates(tmp_path: Any) -> None:
    """If the temperature is 0, a summary and a report say so; otherwise they do not."""
    plan, said = plan_of("label", 60), set()
    for seed in range(4):
        found = release(plan, table_of("label", 60, effect=0.0), random_state=seed)
        zero = not found.draws[0][:-1].any()
        assert ("every record gets the same prediction" in str(found.summary())) is zero
        if zero not in said:
            found.report(tmp_path / f"{seed}.html")
            assert ("every record gets the same prediction" in (tmp_path / f"{seed}.html").read_text()) is zero
        said.add(zero)
    assert said == {True, False}


# By a schema


def test_classifier_predicts_and_its_certificate_verifies(stages: Any, patients: pd.DataFrame) -> None:
    assert isinstance(stages.release_.plan.mechanism, ClippedGradients)
    assert stages.release_.plan.mechanism.categories == ((1, 3),)
    assert verify(stages.certificate_).answer == "consistent"
    assert stages.coef_.shape == (3, 4)
    assert stages.coef_.sum(axis=0) == pytest.approx(np.zeros(4), abs=1e-5)
    hits = np.mean(stages.predict(patients.drop(columns="stage")) == patients.stage)
    assert hits > patients.stage.value_counts(normalize=True).max() + 0.1
    assert stages.predict_proba(patients[:3]).sum(axis=1) == pytest.approx(np.ones(3))


def test_estimator_says_that_there_is_no_interval(stages: Any) -> None:
    assert "clipping biases coefficients" in stages.interval_reason_
    assert np.isnan(stages.bse_).all()
    assert not stages.summary().given
    for call in (stages.conf_int, lambda: stages.posterior(5)):
        with pytest.raises(PromiseRefused, match="clipping biases coefficients"):
            call()
    with pytest.raises(PromiseRefused, match="gives no interval"):
        stages.predict_proba(pd.DataFrame({"age": [30.0], "ward": ["a"], "visits": [1]}), interval=0.9)


def test_report_and_predictions_of_a_file(stages: Any, tmp_path: Any) -> None:
    stages.release_.report(tmp_path / "it.html")
    page = (tmp_path / "it.html").read_text()
    assert "clipping biases coefficients" in page
    new = pd.DataFrame({"age": [20.0, 95.0], "ward": ["b", "a"], "visits": [0, 3]})
    predictions = stages.release_.predict(new)
    assert predictions.columns == ("P(I)", "P(II)", "P(III)")
    assert predictions.labels == ["III", "II"]


def test_counts_by_an_estimator(patients: pd.DataFrame, schema: Any) -> None:
    model = od.DPPoissonRegressor(1.0, schema=schema, target="visits", mechanism="clipped-gradients", random_state=0)
    found = model.fit(patients).predict(pd.DataFrame({"age": [25.0, 95.0], "ward": ["a"] * 2, "stage": ["I"] * 2}))
    assert found[0] < 1.0 < found[1]


# The variant


QUESTION = {"features": 2, "bounds": (-1, 1)}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("logistic", {}),
        ("softmax", {"classes": (1, 2, 3)}),
        ("poisson", {"largest": 9}),
        ("linear", {"response_bound": 2.0}),
    ],
)
def test_variant_is_found_by_name_and_never_by_auto(kind: str, options: dict[str, Any]) -> None:
    question = Regression(kind, **QUESTION, **options)
    choice = question.choices(BUDGET, n=4000, mechanism="clipped-gradients")
    assert isinstance(choice.best.mechanism, ClippedGradients)
    assert "clipped-gradients: named by the caller" in choice.why
    assert "clipping biases" in question.why_no_interval(choice.best)
    assert np.isnan(choice.eligible[0].expected.private)
    auto = question.choices(BUDGET, n=4000)
    assert not any(isinstance(one.plan.mechanism, ClippedGradients) for one in auto.eligible)


@pytest.mark.parametrize(
    "question",
    [
        Regression("logistic", **QUESTION, prior_scale=1.0), Regression("logistic", **QUESTION, intercept=False),
        Regression("svc", **QUESTION), Regression("quantile", **QUESTION, response_bound=1.0),
    ],
    ids=["a declared prior", "no intercept", "svc", "quantile"],
)  # fmt: skip
def test_questions_without_the_variant_name_those_they_have(question: Regression) -> None:
    with pytest.raises(InvalidModel, match=r"clipped-gradients.*Choose 'auto' or one of"):
        question.choices(BUDGET, n=4000, mechanism="clipped-gradients")


def test_estimand_and_robust_errors_do_not_belong_to_it() -> None:
    for options in ({"estimand": "maximum-likelihood"}, {"robust": True}):
        with pytest.raises(InvalidModel, match="would do nothing"):
            Regression("logistic", **QUESTION, **options).choices(BUDGET, n=4000, mechanism="clipped-gradients")


def test_same_seed_gives_the_same_estimate_as_the_program() -> None:
    plan, table = plan_of("number", N), table_of("number", N)
    first, second = (release(plan, table, random_state=5).draws for _ in range(2))
    assert (first == second).all()
    assert run(plan, table).estimate.shape == first[0].shape


def test_noise_of_a_release_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise comes from the generator of the release: a secure one without a seed, and another one for another seed."""
    plan, table, seen = plan_of("label", 60), table_of("label", 60), []

    class Spied(Noise):
        def __init__(self, generator: Any, *, pure: bool) -> None:
            super().__init__(generator, pure=pure)
            seen.append(is_secure(generator))

    monkeypatch.setattr(running, "Noise", Spied)
    published = [release(plan, table, random_state=seed).certificate.draw.stages for seed in (None, 5, 6)]
    assert seen == [True, False, False]
    for first, second in combinations(published, 2):
        assert all(set(first[name]).isdisjoint(second[name]) for name in first)


def test_few_records_are_said_to_leave_the_level() -> None:
    """There is no prior that a release of few records would follow."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (20, 8)), np.arange(20) % 3
    model = od.DPLogisticRegression(
        1.0, bounds=(-1, 1), classes=[0, 1, 2], mechanism="clipped-gradients", missing="middle", random_state=0
    )
    with pytest.warns(od.estimators.FewRecords, match="level than about the columns"):
        assert np.isfinite(model.fit(X, y).coef_).all()
