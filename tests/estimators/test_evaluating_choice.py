"""A private choice among settings: the best is taken most often, one charge, and its law is the one written down."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import onedraw as od
from onedraw.audit.cases.quantiles import selection_law
from onedraw.errors import InvalidBudget, InvalidModel, UnsupportedBudget, WrongCall
from onedraw.mechanisms import ExponentialChoice, plan_from_dict
from onedraw.models.tables.scores import LOSS_STEPS, Losses, ModelChoice
from onedraw.samplers import seeded_generator
from onedraw.samplers.selection import LossSelection

BUDGETS = [od.PureDP(1.0), od.ApproxDP(1.0, 1e-6), od.BoundedRange(1.0), od.ZCDP(0.1)]


@pytest.fixture(scope="module")
def held_out():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(600, 2))
    return X, (generator.random(600) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)


@pytest.fixture(scope="module")
def settings(held_out):
    X, y = held_out
    return {
        "majority": DummyClassifier().fit(X, y),
        "logistic": LogisticRegression().fit(X, y),
        "stiff": LogisticRegression(C=1e-5).fit(X, y),
    }


def plan_for(budget, names=("a", "b", "c"), n=10):
    return od.calibrate(ExponentialChoice(), ModelChoice(names), budget, n=n)


def choices_of(plan, losses, size, seed=0):
    target = plan.target(plan.model.summarise(Losses(len(losses), lambda: np.asarray(losses, dtype=float))))
    return LossSelection().run(target, seeded_generator(seed), size=size).draws[:, 0].astype(int)


def law_of(plan, losses):
    sums = np.sum(np.asarray(losses, dtype=float), axis=0)
    eta = plan.parameters["width"] * LOSS_STEPS / 2.0**40
    return selection_law(-eta * sums, np.ones(len(sums)), flip="flip" in plan.parameters)


def test_the_best_setting_wins_and_the_ledger_is_charged_once(tmp_path, settings, held_out):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("held-out", od.PureDP(1.0))
    found = od.choose(
        settings,
        *held_out,
        epsilon=1.0,
        classes=[0, 1],
        batch=True,
        ledger=ledger,
        dataset="held-out",
        out=tmp_path / "c.json",
    )
    assert found.name == "logistic"
    assert found.model is settings["logistic"]
    assert ledger.remaining("held-out").spent_epsilon == pytest.approx(1.0, rel=1e-4)
    assert od.verify(tmp_path / "c.json", ledger=ledger).answer == "authentic"
    assert any("paid for itself" in note.statement for note in found.certificate.data.notes)


def test_regressors_compare_by_their_squared_errors():
    generator = np.random.default_rng(3)
    X = generator.normal(size=(800, 1))
    y = 2 * X[:, 0] + generator.normal(size=800)
    good, bad = LinearRegression().fit(X, y), LinearRegression().fit(X, -y)
    assert od.choose([bad, good], X, y, epsilon=2.0, bounds=(-9, 9), largest_error=5.0, batch=True).name == "setting 1"


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


def test_losses_are_cut_and_a_failing_model_loses(held_out):
    X, y = held_out

    class Broken:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            if X.any():
                raise RuntimeError("never")
            return np.array([[0.5, 0.5]])

    sums = ModelChoice(("a", "b")).summarise(Losses(2, lambda: np.array([[-5.0, np.nan], [0.25, 7.0]]))).total
    assert sums == (LOSS_STEPS // 4, 2 * LOSS_STEPS)
    good = LogisticRegression().fit(X, y)
    assert od.choose({"broken": Broken(), "good": good}, X, y, epsilon=1.0, classes=[0, 1]).name == "good"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m, d: od.choose(m, *d, classes=[0, 1]), InvalidBudget, "needs epsilon"),
        (lambda m, d: od.choose([m["stiff"]], *d, epsilon=1.0, classes=[0, 1]), InvalidModel, "2 to"),
        (lambda m, d: od.choose(m, *d, epsilon=1.0), InvalidModel, "classes"),
        (lambda m, d: od.choose(m, d[0], epsilon=1.0, classes=[0, 1]), WrongCall, "true responses"),
        (lambda m, d: plan_for(od.GaussianDP(1.0)), UnsupportedBudget, "PureDP"),
    ],
)
def test_what_cannot_be_chosen_is_refused_in_words(settings, held_out, call, error, words):
    with pytest.raises(error, match=words):
        call(settings, held_out)
