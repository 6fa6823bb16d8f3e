"""Plans: public, frozen, derived again from their numbers, and refused after an edit."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

from onedraw.errors import CountMismatch, OnedrawError, PromiseRefused
from onedraw.methods import Concentrated, Diffused, Direct, Plan, Request, calibrate, plan_from_dict
from onedraw.models import (
    BetaBernoulli,
    DirichletCategorical,
    GammaExponential,
    GammaPoisson,
    GaussianMean,
    distributions,
)
from onedraw.privacy import ApproxDP, GaussianDP, Neighbours, Provenance, RenyiDP

PLANS = [
    calibrate(Direct(), BetaBernoulli((6, 12)), RenyiDP.at(2.0, 1.0), n=100),
    calibrate(Diffused(), BetaBernoulli((6, 12)), RenyiDP.at(15, 0.1), n=100),
    calibrate(Diffused(), DirichletCategorical([1, 2, 3]), ApproxDP(1.0, 1e-6), n=100, draws=3, gamma=1e-9),
    calibrate(Concentrated(), GammaPoisson((2, 1), cap=4), ApproxDP(1.0, 1e-6), n=100, records_per_person=2),
    calibrate(Concentrated(), GammaExponential((2, 1), cap=4.0), RenyiDP.at(3.0, 0.5), n=100),
    calibrate(Diffused(), GaussianMean(1.0, 1.0, 1.0, dim=2), GaussianDP(0.1), n=100, draws=2, records_per_person=2),
    calibrate(Diffused(), BetaBernoulli((6, 12)).with_public([1, 0, 1]), ApproxDP(1.0, 1e-6), n=100),
]


def by_name(plan):
    return f"{type(plan.mechanism).__name__}-{type(plan.model).__name__}"


def through_json(plan):
    return json.loads(json.dumps(plan.to_dict(), allow_nan=False))


@pytest.mark.parametrize("plan", PLANS, ids=by_name)
def test_a_plan_is_derived_again_from_its_numbers(plan):
    again = plan_from_dict(through_json(plan))
    assert again == plan
    assert again.digest == plan.digest
    assert again.to_dict() == plan.to_dict()


@pytest.mark.parametrize("plan", PLANS, ids=by_name)
def test_a_plan_is_a_value(plan):
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert hash(copy.deepcopy(plan)) == hash(plan)
    with pytest.raises(AttributeError):
        plan.guarantee = None
    with pytest.raises(TypeError):
        plan.parameters["r"] = 1.0


@pytest.mark.parametrize("plan", PLANS, ids=by_name)
def test_a_plan_says_what_it_promises_and_why(plan):
    guarantee = plan.guarantee
    assert guarantee.promise.implies(plan.budget)
    assert guarantee.neighbours is Neighbours.REPLACE_ONE
    assert "Geumlek" in guarantee.theorem
    provenances = {assumption.provenance for assumption in guarantee.assumptions}
    assert provenances == {Provenance.DECLARED, Provenance.ENFORCED, Provenance.PROVED}
    assert plan.requires == "exact"
    assert {"r", "prior_factor"} < set(plan.parameters)


def test_public_records_are_named_among_the_assumptions():
    statements = [assumption.statement for assumption in PLANS[-1].guarantee.assumptions]
    assert "the 3 records in the prior are public" in statements


def places(value, path=()):
    """Every place of a JSON document, containers and leaves."""
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def edits(value):
    if isinstance(value, bool) or value is None:
        return [7]
    if isinstance(value, int):
        return [value + 1, value - 1, float(value), None, str(value)]
    if isinstance(value, float):
        return [value * 1.01 + 1e-6, value * 0.99 - 1e-6, -value, None, str(value), float("nan")]
    if isinstance(value, str):
        return [value + "x", "", None, 1]
    return [None, 1, []]


@pytest.mark.parametrize("plan", PLANS, ids=by_name)
def test_an_edit_anywhere_is_refused_or_makes_another_plan_that_keeps_its_budget(plan):
    """Nothing is accepted whose own numbers do not imply its own budget, and no edit keeps the digest."""
    stored = through_json(plan)
    for path in list(places(stored)):
        *parents, last = path
        for edit in edits(_at(stored, path)):
            edited = copy.deepcopy(stored)
            _at(edited, parents)[last] = edit
            if edited == stored or path[:2] in (("guarantee", "theorem"), ("guarantee", "assumptions")):  # sentences
                continue
            try:
                accepted = plan_from_dict(edited)
            except (OnedrawError, TypeError, ValueError, KeyError):
                continue
            assert accepted.guarantee.promise.implies(accepted.budget)
            assert accepted.digest != plan.digest
            assert path[0] in ("model", "budget", "parameters", "gamma", "draws", "n"), path


@pytest.mark.parametrize("plan", PLANS[:1], ids=by_name)
def test_plan_from_dict_writes_its_own_sentences_for_edited_ones(plan):
    edited = through_json(plan)
    edited["guarantee"] |= {"theorem": "none", "assumptions": []}
    found = plan_from_dict(edited)
    assert (found, found.digest) == (plan, plan.digest)
    assert found.to_dict() == plan.to_dict()


def _at(document, path):
    for key in path:
        document = document[key]
    return document


@pytest.mark.parametrize("plan", PLANS, ids=by_name)
def test_a_larger_weight_under_the_same_budget_is_refused(plan):
    stored = through_json(plan)
    for name in ("r", "prior_factor"):
        edited = copy.deepcopy(stored)
        edited["parameters"][name] = min(1.0, stored["parameters"][name] * 1.001)
        if edited != stored:
            with pytest.raises(OnedrawError):
                plan_from_dict(edited)


def test_missing_and_unknown_fields_are_refused():
    stored = through_json(PLANS[1])
    for name in stored:
        with pytest.raises(OnedrawError):
            plan_from_dict({key: value for key, value in stored.items() if key != name})
    with pytest.raises(OnedrawError):
        plan_from_dict(stored | {"note": "hello"})
    with pytest.raises(OnedrawError):
        plan_from_dict(stored | {"mechanism": {"name": "Diffused", "speed": 3}})
    with pytest.raises(OnedrawError):
        plan_from_dict([])


def test_a_plan_that_does_not_keep_its_budget_cannot_be_built():
    plan = PLANS[1]
    smaller = Request(plan.model, RenyiDP.at(15, 0.09), n=100)
    with pytest.raises(PromiseRefused, match="not proven to imply"):
        Plan(plan.mechanism, smaller, plan.numbers, plan.guarantee)


def test_the_target_is_the_scaled_posterior():
    data = np.array([1.0] * 30 + [0.0] * 70)
    plan = PLANS[1]
    r = plan.parameters["r"]
    law = plan.target(plan.model.summarise(data))
    assert law.a == pytest.approx(6 + 30 * r, rel=1e-15)
    assert law.b == pytest.approx(12 + 70 * r, rel=1e-15)
    concentrated = calibrate(Concentrated(), BetaBernoulli((6, 12)), RenyiDP.at(15, 0.1), n=100)
    m = concentrated.parameters["prior_factor"]
    law = concentrated.target(concentrated.model.summarise(data))
    assert (law.a, law.b) == pytest.approx((6 / m + 30, 12 / m + 70), rel=1e-15)
    assert PLANS[0].target(PLANS[0].model.summarise(data)) == distributions.Beta(36.0, 82.0)


def test_data_of_another_size_have_no_target():
    plan = PLANS[1]
    with pytest.raises(CountMismatch, match="n = 100 records, the summary has 99") as caught:
        plan.target(plan.model.summarise([0.0] * 99))
    assert (caught.value.expected, caught.value.found) == (100, 99)
