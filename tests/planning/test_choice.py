"""Which mechanism answers a regression: every one offered or refused with a reason, the best taken, and why."""

from __future__ import annotations

import dataclasses
import inspect
import json
import time

import numpy as np
import pytest

import onedraw as od
from onedraw import errors
from onedraw.methods import Measured, PerturbedMode, plan_from_dict
from onedraw.methods.draws.replicated import why_no_interval
from onedraw.methods.fit import AveragedSteps
from onedraw.planning import Regression, rank_plans
from onedraw.planning.rules import MAX_SECONDS, MEASURED_BONUS
from tests.planning.cases import BUDGET, LINEAR, LOGISTIC, QUESTIONS


@pytest.fixture
def without_fits(monkeypatch):
    """Leave out fits and predictors, which would be taken wherever there is one: all other variants are ranked."""
    monkeypatch.setattr(Regression, "fits", ())
    monkeypatch.setattr("onedraw.planning.choice.predictor_of", lambda *_: None)


@pytest.mark.usefixtures("without_fits")
@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_eligible_plan_keeps_the_budget_is_proven_and_can_be_stored(kind):
    found = rank_plans(QUESTIONS[kind], od.GaussianDP(0.3), n=2000)
    assert set(found.refused) | {choice.name for choice in found.eligible} == {
        variant.name for variant in QUESTIONS[kind].variants()
    }
    for choice in found.eligible:
        assert choice.plan.guarantee.promise.implies(choice.plan.request.exact_budget)
        assert choice.plan.mechanism.proven
        assert choice.seconds <= MAX_SECONDS
        assert plan_from_dict(json.loads(json.dumps(choice.plan.to_dict()))) == choice.plan
    expected = [
        choice.expected.private / (MEASURED_BONUS if isinstance(choice.plan.mechanism, Measured) else 1.0)
        for choice in found.eligible
    ]
    assert expected == sorted(expected), "what measures the columns may be a little worse in the reference design"
    assert np.isfinite(expected).all()
    assert found.best is found.eligible[0].plan


@pytest.mark.parametrize("kind", [kind for kind in QUESTIONS if kind != "huber"])
def test_a_fit_is_taken_wherever_there_is_one(kind):
    for budget in (BUDGET, od.PureDP(1.0), od.GaussianDP(0.3), od.ZCDP(0.05)):
        found = rank_plans(QUESTIONS[kind], budget, n=2000)
        assert [choice.name for choice in found.eligible] == ["fit"]
        assert isinstance(found.best.mechanism, PerturbedMode if budget.is_pure else AveragedSteps)
        assert found.best.guarantee.promise.implies(budget)
    assert rank_plans(QUESTIONS[kind], BUDGET, n=2000, draws=4).eligible[0].name != "fit", "it is published once"


def test_choice_of_a_fit_says_what_it_measures_and_what_to_expect_of_two_designs():
    found = rank_plans(LOGISTIC, BUDGET, n=8000)
    typical, worst = found.eligible[0].designs
    assert (typical.name, worst.name) == ("typical", "worst")
    assert typical.expected is not None
    assert found.eligible[0].expected.private == typical.expected.private < worst.expected.private
    declared = rank_plans(dataclasses.replace(LOGISTIC, effect=1.0), BUDGET, n=8000).eligible[0].designs
    assert declared[0].expected == typical.expected
    assert declared[1].expected.private < worst.expected.private, "strong effects leave a record less information"
    assert "three times as strong" in worst.words
    assert "three times as strong" not in declared[1].words
    assert "first measures how the columns spread" in found.why
    assert "standard errors" in found.why
    expected = f"{typical.expected.private:.3g} in a typical design and {worst.expected.private:.3g} in a worst design"
    assert expected in found.expectation
    assert typical.words in found.expectation
    assert expected not in found.why
    assert "before any record was read" in found.why


def test_planning_forty_columns_takes_seconds():
    began = time.process_time()
    rank_plans(Regression("logistic", 40, bounds=(0, 1), classes=[0, 1]), BUDGET, n=26_000)
    assert time.process_time() - began < 2.0


def test_each_fit_can_be_named_and_few_records_are_refused_with_what_predicts():
    assert isinstance(
        rank_plans(LOGISTIC, od.PureDP(1.0), n=2000, mechanism="perturbed-mode").best.mechanism, PerturbedMode
    )
    assert isinstance(rank_plans(LOGISTIC, BUDGET, n=2000, mechanism="averaged-steps").best.mechanism, AveragedSteps)
    for name in ("fit", "averaged-steps"):
        with pytest.raises(errors.PromiseRefused, match=r"more records or a larger ε, or ClippedGradients\(\)"):
            rank_plans(LOGISTIC, BUDGET, n=60, mechanism=name)


def test_a_declared_prior_goes_with_the_fit():
    declared = dataclasses.replace(LOGISTIC, prior_scale=1.0)
    plan = rank_plans(declared, BUDGET, n=2000).best
    assert isinstance(plan.mechanism, AveragedSteps)
    assert plan.mechanism.prior
    assert plan.mechanism.estimand(plan).endswith("at their posterior mode under the declared prior")


@pytest.mark.usefixtures("without_fits")
def test_the_choice_says_what_it_took_and_why():
    found = rank_plans(LOGISTIC, od.GaussianDP(0.3), n=2000)
    best = found.eligible[0]
    assert found.why.startswith(f"{best.name}: expected error {best.expected.private:.3g} per coefficient")
    assert "before any record was read" in found.why
    assert best.expected.private > best.expected.sampling


def test_nothing_of_a_choice_can_depend_on_a_record():
    """There is no argument through which one could come in."""
    assert set(inspect.signature(rank_plans).parameters) == {
        "self", "budget", "n", "draws", "records_per_person", "mechanism", "accept", "compare",
    }  # fmt: skip


@pytest.mark.usefixtures("without_fits")
def test_unproven_samplers_are_not_taken_unless_named():
    assert "accept=" in rank_plans(LOGISTIC, od.GaussianDP(0.3), n=500, draws=4).refused["beta-divergence"]
    with pytest.raises(errors.PromiseRefused, match="accept="):
        rank_plans(LOGISTIC, BUDGET, n=500, mechanism="beta-divergence")
    found = rank_plans(LOGISTIC, BUDGET, n=500, mechanism="beta-divergence", accept="assumed")
    assert type(found.best.mechanism).__name__ == "BetaDivergence"


def test_a_network_has_no_proven_mechanism_and_says_so():
    network = Regression("network-classifier", 2, bounds=(0, 1), classes=[0, 1], hidden=3)
    with pytest.raises(errors.PromiseRefused, match="No mechanism answers"):
        rank_plans(network, BUDGET, n=500)
    found = rank_plans(network, BUDGET, n=500, accept="assumed")
    assert "proven, or accepted by name, for" in found.why
    assert found.eligible[0].name == "beta-divergence"
    assert "cannot be predicted" in found.why


def test_a_named_mechanism_is_taken_and_an_unknown_name_lists_the_known():
    found = rank_plans(LOGISTIC, BUDGET, n=2000, mechanism="gdp")
    assert [choice.name for choice in found.eligible] == ["gdp"]
    assert "named by the caller" in found.why
    with pytest.raises(errors.InvalidModel, match="noisy-gradient exp-linear"):
        rank_plans(LOGISTIC, BUDGET, n=2000, mechanism="exponential")


@pytest.mark.usefixtures("without_fits")
def test_work_beyond_the_cap_is_left_to_those_who_name_it(monkeypatch):
    monkeypatch.setattr("onedraw.planning.rules.MAX_SECONDS", 0.001)
    found = rank_plans(LINEAR, od.GaussianDP(0.3), n=2000)
    assert {choice.name for choice in found.eligible} == {"least-squares", "least-squares gdp"}
    assert "Name it" in found.refused["noisy-gradient huber"]
    assert rank_plans(LINEAR, BUDGET, n=2000, mechanism="noisy-gradient huber").best is not None


def test_estimated_seconds_grow_with_what_is_public():
    def seconds(n):
        plan = od.calibrate(od.Gibbs("gdp"), LOGISTIC.variant("gdp").model, BUDGET, n=n)
        return od.samplers.default_sampler(plan)[0].seconds(plan)

    assert seconds(100) < seconds(10_000) < seconds(1_000_000)


def test_several_draws_share_the_budget():
    found = rank_plans(LINEAR, BUDGET, n=5000, draws=4, mechanism="noisy-gradient huber").best
    assert found.draws == 4
    assert found.guarantee.promise.implies(BUDGET)
    declared = dataclasses.replace(LINEAR, prior_scale=1.0)
    assert rank_plans(declared, BUDGET, n=5000, draws=4, mechanism="noisy-gradient").best.model.prior.scale == 1.0


def test_the_unit_of_the_response_changes_nothing_but_the_unit():
    cents, euros = (Regression("linear", 2, bounds=(0, 1), response_bound=bound) for bound in (80_000.0, 800.0))
    for name in ("noisy-gradient huber", "least-squares"):
        many, few = (rank_plans(question, BUDGET, n=2000, mechanism=name).eligible[0] for question in (cents, euros))
        assert many.expected.private == pytest.approx(100.0 * few.expected.private, rel=1e-3)


def test_a_plan_releases():
    generator = np.random.default_rng(2)
    X, y = generator.random((400, 3)), generator.integers(0, 2, 400)
    released = od.release(rank_plans(LOGISTIC, BUDGET, n=400).best, (X, y))
    assert od.verify(released.certificate)


@pytest.mark.usefixtures("without_fits")
@pytest.mark.parametrize("budget", [od.GaussianDP(0.3), od.ZCDP(0.05)], ids=str)
def test_where_a_fit_cannot_keep_the_budget_auto_measures_the_columns_all_the_same(budget):
    found = rank_plans(LOGISTIC, budget, n=2000)
    assert found.eligible[0].name == "noisy-gradient measured"
    assert found.best.parameters["moments_noise"] > 0.0


@pytest.mark.usefixtures("without_fits")
def test_a_nearly_as_good_mechanism_that_measures_is_preferred_and_the_words_say_so():
    found = rank_plans(LOGISTIC, od.GaussianDP(2.0), n=3000)
    assert found.eligible[0].name == "noisy-gradient measured"
    if found.eligible[0].expected.private > min(choice.expected.private for choice in found.eligible):
        assert "nearly the smallest" in found.why


def test_draws_for_an_interval_are_not_made_in_measured_coordinates_unless_named():
    found = rank_plans(LOGISTIC, od.GaussianDP(2.0), n=20_000, draws=4)
    assert all("measured" not in choice.name for choice in found.eligible)
    named = rank_plans(LOGISTIC, od.GaussianDP(2.0), n=20_000, draws=4, mechanism="noisy-gradient measured")
    assert "in the same measured coordinates" in why_no_interval(named.best, 0.95)


def test_a_declared_prior_is_about_declared_columns_so_nothing_is_measured():
    with pytest.raises(errors.InvalidModel, match="noisy-gradient measured"):
        rank_plans(
            dataclasses.replace(LOGISTIC, prior_scale=1.0),
            od.GaussianDP(0.3),
            n=2000,
            mechanism="noisy-gradient measured",
        )
