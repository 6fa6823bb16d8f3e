"""Clipped gradients in place of a fit: by public numbers, and only where nothing about coefficients was asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onedraw as od
from onedraw.errors import PromiseRefused
from onedraw.methods.clipped_gradients import ClippedGradients
from onedraw.methods.fit import AveragedSteps
from onedraw.planning.predictors import LEAST_INFORMED
from onedraw.planning.regression import Regression

NUMBER = {"kind": "number", "lower": 0, "upper": 1, "missing": 0}
COLUMNS = {f"x{place}": NUMBER for place in range(8)}
TARGETS = {
    "logistic": {"kind": "binary", "levels": ["no", "yes"], "missing": "no"},
    "softmax": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
    "poisson": {"kind": "count", "cap": 20, "missing": 0},
    "linear": NUMBER,
}


def planned(kind: str, n: int, epsilon: float = 1.0, **options: Any) -> Any:
    schema = {"dataset": "few", "columns": COLUMNS | {"y": TARGETS[kind]}}
    return od.plan(schema, "y", kind, epsilon=epsilon, n=n, **options)


def taken(kind: str, n: int, epsilon: float = 1.0, **options: Any) -> type:
    return type(planned(kind, n, epsilon, **options).plan.mechanism)


@pytest.mark.parametrize("kind", LEAST_INFORMED)
def test_few_records_are_predicted_and_many_are_fitted(kind: str) -> None:
    assert taken(kind, 300) is ClippedGradients
    assert taken(kind, 100_000) is not ClippedGradients


def test_lines_are_fitted_unless_the_fit_refuses_the_size() -> None:
    assert taken("linear", 1000) is AveragedSteps
    assert taken("linear", 100) is ClippedGradients
    assert "no fit keeps the budget for this n" in planned("linear", 100).choices.why


def test_coefficients_that_have_intervals_are_worth_more_than_a_better_prediction() -> None:
    """At this n noise leaves less than the threshold, and the fit still gives intervals."""
    few = planned("logistic", 2000)
    assert type(few.plan.mechanism) is AveragedSteps
    assert not few.why_no_interval


def test_who_asks_for_coefficients_is_given_a_fit_or_refused() -> None:
    assert taken("softmax", 2500) is ClippedGradients
    assert taken("softmax", 2500, mechanism="fit") is AveragedSteps
    for asked in ({"mechanism": "fit"}, {"estimand": "robust"}, {"estimand": "maximum-likelihood"}):
        with pytest.raises(PromiseRefused):
            planned("logistic", 100, **asked)


def test_pure_budgets_keep_the_fit() -> None:
    schema = {"dataset": "few", "columns": COLUMNS | {"y": TARGETS["logistic"]}}
    found = od.plan(schema, "y", "logistic", budget=od.PureDP(1.0), n=300)
    assert type(found.plan.mechanism) is not ClippedGradients


def test_why_says_which_numbers_decided_and_what_to_name_instead() -> None:
    why = planned("softmax", 2500).choices.why
    assert "below 90 for each column and class" in why
    assert "mechanism='fit'" in why
    assert "Decided from public numbers" in why


def test_why_names_a_fit_only_if_one_keeps_the_budget() -> None:
    """With 20 records no fit does, so that mechanism='fit' is refused and not recommended."""
    question = Regression("poisson", 3, bounds=(-1, 1), largest=10)
    why = question.choices(od.GaussianDP(2.0), n=20).why
    assert "no fit keeps the budget" in why
    assert "mechanism='fit'" not in why
    assert "no intervals" not in why
    with pytest.raises(PromiseRefused):
        question.choices(od.GaussianDP(2.0), n=20, mechanism="fit")


def test_more_records_of_a_person_count_against_the_fit() -> None:
    question = Regression("softmax", 8, bounds=(-1, 1), classes=["a", "b", "c"])
    n = int(LEAST_INFORMED["softmax"] * 8 * 2 / 0.24)
    for records, predicted in ((1, False), (8, True)):
        found = question.choices(od.ApproxDP(2.0, 1e-6), n=n, records_per_person=records)
        assert isinstance(found.best.mechanism, ClippedGradients) is predicted


def test_estimator_predicts_with_few_records_and_says_so() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 4))
    y = (rng.uniform(size=300) < 1.0 / (1.0 + np.exp(-3.0 * X[:, 0]))).astype(int)
    model = od.DPLogisticRegression(1.0, bounds=(-1, 1), classes=[0, 1], random_state=1).fit(X, y)
    assert isinstance(model.choice_.best.mechanism, ClippedGradients)
    chances = model.predict_proba(X)
    assert np.isfinite(chances).all()
    assert chances.sum(axis=1) == pytest.approx(1.0)
    assert np.mean(model.predict(X) == y) > 0.6
