"""One of several settings, selected by loss: the law is the one written down, and the promise is attained and no more."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import onedraw as od
from onedraw.audit.cases.selections import selection_law
from onedraw.errors import UnsupportedBudget
from onedraw.methods import ExponentialChoice, plan_from_dict
from onedraw.methods.model_choice.run import LossSelection
from onedraw.models.tables.scores import LOSS_STEPS, Losses, ModelChoice
from onedraw.samplers import seeded_generator

BUDGETS = [od.PureDP(1.0), od.ApproxDP(1.0, 1e-6), od.BoundedRange(1.0), od.ZCDP(0.1)]


def plan_for(budget, names=("a", "b", "c"), n=10):
    return od.calibrate(ExponentialChoice(), ModelChoice(names), budget, n=n)


def choices_of(plan, losses, size, seed=0):
    target = plan.target(plan.model.summarise(Losses(len(losses), lambda: np.asarray(losses, dtype=float))))
    return LossSelection().run(target, seeded_generator(seed), size=size).draws[:, 0].astype(int)


def law_of(plan, losses):
    sums = np.sum(np.asarray(losses, dtype=float), axis=0)
    eta = plan.parameters["width"] * LOSS_STEPS / 2.0**40
    return selection_law(-eta * sums, np.ones(len(sums)), flip="flip" in plan.parameters)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_program_chooses_by_the_law_that_is_written_down(budget):
    losses = [[0.0, 0.5, 1.0]] * 3
    plan = plan_for(budget, n=3)
    counts = np.bincount(choices_of(plan, losses, 2000), minlength=3)
    assert stats.chisquare(counts, 2000 * law_of(plan, losses)).pvalue > 1e-6


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_promise_is_attained_on_the_worst_pair_and_half_the_sensitivity_is_caught(budget):
    plan = plan_for(budget, ("a", "b"), n=60)
    first, second = [[0, 1]] * 59 + [[0, 1]], [[0, 1]] * 59 + [[1, 0]]
    ratio = np.abs(np.log(law_of(plan, first)) - np.log(law_of(plan, second))).max()
    promised = plan.guarantee.promise.pure_epsilon
    assert ratio <= promised * (1 + 1e-9)
    assert ratio == pytest.approx(promised, rel=1e-3)
    numbers = dict(plan.numbers)
    cheat = type(plan)(
        plan.mechanism, plan.request, tuple({**numbers, "width": 2 * numbers["width"]}.items()), plan.guarantee
    )
    assert np.abs(np.log(law_of(cheat, first)) - np.log(law_of(cheat, second))).max() > 1.5 * promised


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_plans_of_choices_keep_their_budget_and_are_derived_again(budget):
    plan = plan_for(budget)
    assert plan.guarantee.promise.implies(budget)
    assert plan_from_dict(plan.to_dict()) == plan


def test_other_budgets_are_refused_in_words():
    with pytest.raises(UnsupportedBudget, match="PureDP"):
        plan_for(od.GaussianDP(1.0))
