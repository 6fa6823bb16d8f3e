"""Every mechanism: numbers calibrated for one record per person, and what they promise a person with two or four (base.py)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.metadata import entry_points

import pytest

import onedraw as od
from onedraw.errors import OnedrawError
from onedraw.methods import AddedNoise, Mechanism, Moments, PerturbedMode, catalog, plan_from_dict
from onedraw.methods.base import calibrate
from onedraw.methods.clipped_gradients import ClippedGradients
from onedraw.methods.fit import AveragedSteps
from onedraw.plans import Plan

pytestmark = pytest.mark.contract

DELTA = 1e-5
BUDGETS = {
    "approx": od.ApproxDP(1.0, DELTA),
    "pure": od.PureDP(1.0),
    "zcdp": od.ZCDP(0.05),
    "gaussian": od.GaussianDP(0.3),
}

LEAST = 0.98
"""A group of k is promised at least this share of k times the loss of one: a volume's cost grows a little slower than k."""

MOST = 1.03
"""The same the other way round."""

DERIVED = {"Candidates", "KNG", "DPSGD", "DPSGLD"}
"""Mechanisms some of whose numbers follow from the budget: plans for another budget may be refused, whatever k is."""

AT_THE_RUN = {"AdaOPS"}
"""Mechanisms that take k into noise when they run: their numbers are what a person's records may lose, not noise."""

AT_THE_BUDGET = {"theorem7", "corollary8", "Minami"}
"""Mechanisms, and rules of Gibbs, that promise the ε of the budget itself, with the δ that is left."""


def mechanism_names() -> set[str]:
    """Name the package's mechanisms, those behind entry points included."""
    for point in entry_points(group="onedraw.mechanisms"):
        point.load()
    return {name for name, kind in Mechanism.members().items() if kind.__module__.startswith("onedraw.")}


@cache
def templates() -> tuple[Plan, ...]:
    """Plans of the audit's cases, which are of every mechanism: each a mechanism, a model and n."""
    cases = [*catalog.every_case(BUDGETS["approx"])]
    for other in (BUDGETS["approx"], BUDGETS["pure"]):
        cases += catalog.cases(catalog.LITERATURE, other)
    return tuple(case.plan for case in cases if getattr(case, "plan", None) is not None)


@cache
def plans(budget: str) -> tuple[Plan, ...]:
    """Calibrate all of them for one record per person under a budget, as far as they can keep it."""
    known: dict[str, Plan] = {}
    for plan in templates():
        try:
            made = calibrate(plan.mechanism, plan.model, BUDGETS[budget], n=plan.n, draws=plan.draws)
        except OnedrawError:
            continue
        known[made.digest] = made
    return tuple(known.values())


def in_part_by_person(plan: Plan) -> bool:
    """Whether one record moves a sum as far as all k of its person: the loss then grows more slowly than k.

    That it grows as it must is in tests/methods/fit/test_fit_persons.py.
    """
    return plan.mechanism.by_person


def name_of(plan: Plan) -> str:
    return type(plan.mechanism).__name__


def loss(plan: Plan) -> float:
    """What one number the promise is about, in the budget's own kind."""
    promise = plan.guarantee.promise
    match plan.budget:
        case od.PureDP():
            return promise.pure_epsilon
        case od.ZCDP():
            return promise.zcdp_rho
        case od.GaussianDP():
            return promise.gaussian_mu
    return promise.epsilon(DELTA)


def group_budget(plan: Plan, records: int, share: float):
    """The budget that `share` of group privacy would need: k times ε or μ, and k² times ρ."""
    one = loss(plan)
    match plan.budget:
        case od.PureDP():
            return od.PureDP(share * records * one)
        case od.ZCDP():
            return od.ZCDP(share * records**2 * one)
        case od.GaussianDP():
            return od.GaussianDP(share * records * one)
    return od.ApproxDP(share * records * one, DELTA)


def planned_again(plan: Plan, records: int, budget) -> Plan | None:
    """The same numbers for a person with k records under another budget; None where they are refused."""
    request = replace(plan.request, budget=budget, records_per_person=records, gamma=0.0)
    try:
        return plan.mechanism.plan(request, plan.parameters)
    except OnedrawError:
        return None


def understated(budget: str, records: int, only: type | None = None) -> Iterator[str]:
    """Name the plans whose numbers are said to promise k records less than group privacy of one record's promise."""
    for plan in plans(budget):
        if (
            in_part_by_person(plan)
            or name_of(plan) in AT_THE_RUN
            or (only is not None and not isinstance(plan.mechanism, only))
        ):
            continue
        again = planned_again(plan, records, group_budget(plan, records, LEAST))
        if again is not None:
            yield f"{name_of(plan)} of {type(plan.model).__name__}: {again.guarantee.promise}"


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("records", [2, 4])
def test_numbers_for_one_record_are_refused_or_promise_k_times_as_much(budget, records):
    assert list(understated(budget, records)) == []


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("records", [1, 2, 4])
def test_numbers_for_one_record_are_accepted_under_enough_budget(budget, records):
    """So that what is refused above is refused for its promise."""
    for plan in plans(budget):
        again = planned_again(plan, records, group_budget(plan, records, 3.0))
        if name_of(plan) not in DERIVED:
            assert again is not None, plan.heading
        if again is not None:
            assert again.guarantee.unit.records_per_person == records


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("records", [1, 2, 4])
def test_numbers_calibrated_for_k_keep_the_budget_for_all_k(budget, records):
    """One record's share of them is at most the budget divided by k, so group privacy gives back the budget."""
    power = 2 if budget == "zcdp" else 1
    for plan in plans(budget):
        try:
            several = calibrate(
                plan.mechanism, plan.model, plan.budget, n=plan.n, draws=plan.draws, records_per_person=records
            )
        except OnedrawError:
            continue  # nothing is released
        assert several.guarantee.unit.records_per_person == records
        assert several.guarantee.promise.implies(several.request.exact_budget)
        alone = planned_again(several, 1, plan.budget)
        if (
            in_part_by_person(plan)
            or alone is None
            or {getattr(plan.mechanism, "rule", ""), name_of(plan)} & (AT_THE_BUDGET | AT_THE_RUN)
        ):
            continue
        assert loss(alone) <= MOST * plan.budget.number / records**power, plan.heading


@pytest.mark.parametrize("epsilon", [0.1, 0.2])
def test_pure_promises_are_at_most_the_decimal_of_the_budget(epsilon):
    """The floats 0.1 and 0.2 are more than 1/10 and 1/5; certificates of what is planned are made again."""
    planned = 0
    for template in templates():
        try:
            plan = calibrate(template.mechanism, template.model, od.PureDP(epsilon), n=template.n, draws=template.draws)
        except OnedrawError:
            continue
        assert Fraction(plan.guarantee.promise.pure_epsilon) <= Fraction(str(epsilon)), plan.heading
        assert plan_from_dict(plan.to_dict()) == plan
        planned += 1
    assert planned > 20


def test_every_mechanism_has_a_plan():
    """Those whose promise is not proven have one too: it is made as published, and a release says so."""
    planned = {name_of(plan) for budget in BUDGETS for plan in plans(budget)}
    assert planned >= mechanism_names()


# Planted faults


def forget_records(monkeypatch, kind: type) -> None:
    """Let a mechanism plan for one record per person whatever was asked."""
    true = kind.plan

    def plan(self, request, parameters):
        return true(self, replace(request, records_per_person=1), parameters)

    monkeypatch.setattr(kind, "plan", plan)


def test_mechanism_that_forgets_k_is_noticed(monkeypatch):
    kinds = {type(plan.mechanism) for plan in plans("approx") if name_of(plan) not in DERIVED | AT_THE_RUN}
    assert len(kinds) >= 18
    for kind in kinds:
        with monkeypatch.context() as patched:
            forget_records(patched, kind)
            assert list(understated("approx", 2, kind)), kind
            assert list(understated("approx", 4, kind)), kind


@pytest.mark.parametrize("budget", ["approx", "zcdp", "gaussian"])
def test_square_root_of_k_in_added_noise_is_noticed(budget, monkeypatch):
    """The fault of the review: k² became k in the promise of Gaussian noise."""
    from onedraw.methods.added_noise import mechanism as added_noise

    true = added_noise._promise

    def promised(request, sums, law, scale, refinement):
        if law == "laplace" or request.records_per_person == 1:
            return true(request, sums, law, scale, refinement)
        return true(replace(request, records_per_person=2), sums, law, scale, refinement)  # √4

    monkeypatch.setattr(added_noise, "_promise", promised)
    assert list(understated(budget, 4, AddedNoise))


@pytest.mark.parametrize("kind", [AveragedSteps, ClippedGradients, Moments, PerturbedMode])
def test_k_dropped_from_the_stages_is_noticed(kind, monkeypatch):
    """The fault of the review: k dropped where a stage's ratio is taken (stages.py)."""
    from onedraw.methods import stages

    true = stages.stage_ratios
    for module in [
        one for name, one in sys.modules.items() if name.startswith(("onedraw.methods.", "onedraw.methods."))
    ]:
        if getattr(module, "stage_ratios", None) is true:
            monkeypatch.setattr(module, "stage_ratios", lambda found, records, *, pure: true(found, 1, pure=pure))
    assert list(understated("approx", 4, kind))
