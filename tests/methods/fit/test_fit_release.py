"""Averaged steps as a release: certificate, verification, intervals, predictions and the test of a category (mechanism.py, published.py, result.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import onedraw as od
from onedraw.errors import CertificateRejected, OnedrawError
from onedraw.methods import Mechanism, PerturbedMode, calibrate, plan_from_dict
from onedraw.methods.catalog import case_for
from onedraw.methods.fit import AveragedSteps, run
from onedraw.methods.fit.replay import replay_steps
from onedraw.methods.fit.run import FitBySteps
from onedraw.methods.perturbed_mode.run import Fit
from onedraw.planning import Regression
from onedraw.release import Release, release, verify
from onedraw.release.certificate import read_certificate
from onedraw.samplers.padding import PASSES
from onedraw.samplers.sampler import Sampler

from .cases import BUDGET, KINDS, model_of, plan_of, table_of

N = 8000
COLUMNS: dict[str, Any] = {
    "age": {"kind": "number", "lower": 18, "upper": 98, "missing": 58},
    "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
    "cost": {"kind": "number", "lower": 0, "upper": 10_000, "missing": 3000},
}
TRUTH = {"age": 30.0, "ward=b": 800.0, "ward=c": -500.0, "intercept": 1500.0}


@pytest.fixture(scope="module")
def released() -> Release:
    return release(plan_of("number", N), table_of("number", N))


@pytest.fixture(scope="module")
def patients() -> pd.DataFrame:
    rng, n = np.random.default_rng(4), 6000
    frame = pd.DataFrame({"age": rng.uniform(18, 98, n), "ward": rng.choice(list("abc"), n)})
    mean = 1500 + 30 * frame.age + 800 * (frame.ward == "b") - 500 * (frame.ward == "c")
    frame["cost"] = mean + 500 * rng.standard_normal(n)
    return frame


@pytest.fixture(scope="module")
def line(patients: pd.DataFrame) -> Any:
    schema = od.Schema.from_dict({"dataset": "p", "columns": COLUMNS})
    return od.DPLinearRegression(3.0, schema=schema, target="cost", random_state=0).fit(patients)


# Arithmetic


@pytest.mark.parametrize("kind", ["number", "label", "count", "quantile", "margin", "classes", "robust number"])
def test_numpy_and_jax_release_the_same_numbers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums are whole numbers, of which rounding moves some by a step; a different function would move them all."""
    plan, table = plan_of(kind, N), table_of(kind, N)
    by_numpy = release(plan, table, random_state=3)
    monkeypatch.setattr(run, "MOST_NUMPY_VALUES", 0)
    by_jax = release(plan, table, random_state=3)
    assert by_numpy.certificate.data.engine.jax is None
    assert by_jax.certificate.data.engine.jax is not None
    for name, published in by_jax.certificate.draw.stages.items():
        assert by_numpy.certificate.draw.stages[name] == pytest.approx(published, rel=1e-6, abs=1e-6), name
    assert by_numpy.draw == pytest.approx(by_jax.draw, rel=1e-6, abs=1e-6)


def test_many_records_are_added_up_by_jax() -> None:
    most = run.MOST_NUMPY_VALUES // plan_of("number", N).mechanism.problem(plan_of("number", N)).layout.width
    assert FitBySteps().adds_in_numpy(plan_of("number", most))
    assert not FitBySteps().adds_in_numpy(plan_of("number", most + 1))


# Certificates


@pytest.mark.parametrize("kind", KINDS)
def test_release_of_every_kind_verifies_and_loads(kind: str, tmp_path: Any) -> None:
    plan = plan_of(kind, N)
    found = release(plan, table_of(kind, N))
    found.save(tmp_path / "fit.json")
    loaded = Release.load(tmp_path / "fit.json")
    assert verify(tmp_path / "fit.json").answer == "consistent"
    assert loaded.plan == plan
    assert loaded.fit.estimate == pytest.approx(found.fit.estimate)
    assert loaded.draw == pytest.approx(found.fit.estimate, abs=1e-5)
    assert np.array_equal(loaded.conf_int(0.9), found.conf_int(0.9))
    assert found.certificate.sentence.startswith("Proven: this fit is")
    assert found.certificate.sampler["name"] == "FitBySteps"
    assert "confirmed" in found.certificate.second_opinion
    assert found.diagnostics.keys() == {"passes", "work"}


def test_edited_stages_are_rejected(released: Release) -> None:
    """A coefficient follows from most of them; an edit of the others is noticed with the ledger only."""
    certificate, plan = released.certificate, released.plan
    stages = certificate.draw.stages
    assert stages is not None
    free = {"tail", "early", "count", "covariance"}
    for name in stages:
        edits = {
            "added to": [value + 1.0 for value in stages[name]], "shortened": stages[name][:-1],
            "no numbers": [float("nan")] * len(stages[name]),
        }  # fmt: skip
        if name in free:
            del edits["added to"]
        for edited in edits.values():
            draw = certificate.draw.model_copy(update={"stages": {**stages, name: edited}})
            with pytest.raises(CertificateRejected):
                verify(certificate.model_copy(update={"draw": draw}))
    assert {name: len(values) for name, values in stages.items()} == plan.mechanism.stage_sizes(plan)


def test_stage_that_is_missing_or_unknown_is_rejected(released: Release) -> None:
    certificate = released.certificate
    stages = certificate.draw.stages
    assert stages is not None
    for edited in ({**stages, "information": stages["covariance"]}, {k: v for k, v in stages.items() if k != "count"}):
        draw = certificate.draw.model_copy(update={"stages": edited})
        with pytest.raises(CertificateRejected):
            verify(certificate.model_copy(update={"draw": draw}))


@pytest.mark.parametrize("kind", KINDS)
def test_certificate_from_before_the_level_verifies(kind: str) -> None:
    """Its plan has no number for the response's mean alone."""
    stored = plan_of(kind, N).to_dict()
    assert stored["parameters"].pop("level_noise") == 0.0
    plan = plan_from_dict(stored)
    assert plan.to_dict() == stored, "its digest stays"
    assert verify(release(plan, table_of(kind, N)).certificate).answer == "consistent"
    assert case_for(plan).law(case_for(plan).pairs[0])
    assert replay_steps(plan, [table_of(kind, 500)]) == []
    stored["parameters"]["another"] = 0.0
    with pytest.raises(CertificateRejected, match="parameters is not what follows"):
        plan_from_dict(stored)


def test_plan_that_leaves_out_its_level_is_rejected() -> None:
    stored = plan_of("number", 400, od.ApproxDP(2.0, 1e-6)).to_dict()
    assert plan_from_dict(stored).parameters["level_noise"] > 0.0
    del stored["parameters"]["level_noise"]
    with pytest.raises(CertificateRejected):
        plan_from_dict(stored)


def test_one_charge_pays_for_all_parts(tmp_path: Any) -> None:
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("d", BUDGET)
    release(plan_of("label", N), table_of("label", N), ledger=ledger, dataset="d")
    assert 0.9 < ledger.spent("d").epsilon(1e-6) <= 1.0


def test_padded_release_states_its_passes() -> None:
    plan = plan_of("label", N)
    found = release(plan, table_of("label", N), timing="padded")
    timing = found.certificate.timing
    assert timing is not None
    assert timing.work == {PASSES: plan.mechanism.own_sampler()().passes(plan)}
    assert timing.gamma == 0.0
    assert verify(found).answer == "consistent"


def test_other_samplers_are_refused() -> None:
    with pytest.raises(OnedrawError, match=r"carried out by FitBySteps"):
        release(plan_of("label", N), table_of("label", N), sampler=Fit())
    old = calibrate(PerturbedMode(), model_of("label"), BUDGET, n=N)
    with pytest.raises(OnedrawError, match=r"carried out by Fit with"):
        release(old, table_of("label", N), sampler=FitBySteps())


def test_names_are_found_by_their_entry_points() -> None:
    assert Mechanism.from_dict({"name": "AveragedSteps", "categories": [[0, 2]]}) == AveragedSteps(categories=((0, 2),))
    assert type(Sampler.from_dict({"name": "FitBySteps"})).__name__ == "FitBySteps"


# What a release offers


def test_summary_intervals_and_fit_agree(released: Release) -> None:
    summary, fit = released.summary(), released.fit
    assert [row.estimate for row in summary] == pytest.approx(list(fit.estimate))
    assert np.allclose([[row.low, row.high] for row in summary], released.conf_int())
    assert released.conf_int(0.95) == pytest.approx(fit.conf_int(0.95))
    assert (np.diff(released.conf_int(0.99)) > np.diff(released.conf_int(0.9))).all()
    assert np.hypot(*fit.errors) == pytest.approx(fit.standard_errors)


def test_posterior_costs_nothing_and_takes_a_prior(released: Release) -> None:
    draws = released.posterior(4000, random_state=1)
    narrow = released.posterior(4000, prior=od.Gaussian(scale=1e-3), random_state=1)
    assert draws.mean(axis=0) == pytest.approx(released.fit.estimate, abs=0.01)
    assert np.abs(narrow).max() < 0.01


def test_remark_of_a_heavy_tailed_table_stands_in_the_summary() -> None:
    plan = plan_of("number", 4000, bound=20.0)
    found = release(plan, table_of("number", 4000, 5, tails=1.1), random_state=1)
    assert found.fit.remark in str(found.summary())
    assert "so far out that their influence is limited" in found.fit.remark
    assert found.fit.estimand == "least-squares coefficients, with the influence of single records limited"


# By an estimator and its schema


def test_default_fit_estimates_in_the_columns_units(line: Any) -> None:
    assert isinstance(line.release_.plan.mechanism, AveragedSteps)
    assert [row.term for row in line.summary()] == list(TRUTH)
    estimate = np.append(line.coef_, line.intercept_)
    assert np.all(np.abs(estimate - list(TRUTH.values())) < 5.0 * line.bse_)
    assert verify(line.certificate_).answer == "consistent"


def test_category_is_tested_as_a_whole(line: Any) -> None:
    (joint,) = line.summary().joint
    assert (joint.term, joint.degrees) == ("ward", 2)
    assert joint.p_value < 1e-6
    assert joint.statistic == pytest.approx(line.release_.fit.wald([1, 2])[0])


def test_predictions_have_intervals_that_hold_the_truth(line: Any) -> None:
    new = pd.DataFrame({"age": [30.0, 70.0, 97.0], "ward": ["a", "b", "c"]})
    truth = [2400.0, 4400.0, 3910.0]
    found = line.predict(new, interval=0.9999)
    assert found.estimate == pytest.approx(line.predict(new), rel=2e-3)  # which are drawn back a little
    assert ((found.low < truth) & (truth < found.high)).all()
    assert (found.high - found.low < 400.0).all()


@pytest.mark.parametrize(
    ("budget", "mechanism"), [(od.ApproxDP(3.0, 1e-6), AveragedSteps), (od.GaussianDP(0.5), AveragedSteps), (od.PureDP(3.0), PerturbedMode)],
    ids=["approximate", "Gaussian", "pure"],
)  # fmt: skip
def test_budget_decides_which_fit_is_the_default(budget: Any, mechanism: type) -> None:
    question = Regression("linear", 2, bounds=(-1, 1), response_bound=4.0)
    assert isinstance(question.choices(budget, n=5000).best.mechanism, mechanism)


def test_edited_certificate_of_a_file_is_rejected(released: Release, tmp_path: Any) -> None:
    released.save(tmp_path / "fit.json")
    text = (tmp_path / "fit.json").read_text()
    noise = repr(released.plan.parameters["step_noise"])
    assert noise in text
    (tmp_path / "edited.json").write_text(text.replace(noise, repr(0.9 * released.plan.parameters["step_noise"])))
    with pytest.raises(CertificateRejected):
        verify(read_certificate(tmp_path / "edited.json"))
