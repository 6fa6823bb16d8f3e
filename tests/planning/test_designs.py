"""A plan states the error of each column in its own units, for a typical and a worst design, and promises intervals with care."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import onedraw as od
from onedraw.methods.expectation import Expectation
from onedraw.methods.fit.expected_error import expected_column_error, is_given
from onedraw.methods.fit.run import Stages
from onedraw.planning import Regression, rank_plans
from onedraw.planning.designs import TYPICAL, WORST, ColumnError, DesignError, intervals_words
from onedraw.samplers.noise import Noise

from .cases import BUDGET

SCHEMA = {
    "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 50},
    "weight": {"kind": "number", "lower": 0, "upper": 200, "missing": 70},
    "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
    "smoker": {"kind": "binary", "levels": ["no", "yes"], "missing": "no"},
    "cost": {"kind": "number", "lower": 0, "upper": 10_000, "missing": 3000},
}


def planned(n: int = 5000, epsilon: float = 1.0, **changes: Any) -> Any:
    columns = {name: SCHEMA[name] | changes.get(name, {}) for name in SCHEMA}
    return od.plan({"columns": columns}, "cost", "linear", n=n, epsilon=epsilon)


def errors_of(plan: Any) -> list[dict[str, ColumnError]]:
    return [{one.name: one for one in design.columns} for design in plan.choices.eligible[0].designs]


def test_each_column_has_an_error_in_its_own_units() -> None:
    typical, worst = errors_of(planned())
    assert list(typical) == ["age", "weight", "ward=b", "ward=c", "smoker=yes"]
    assert typical["weight"].private == pytest.approx(typical["age"].private / 2.0), "its range is twice as wide"
    assert typical["ward=b"].private == typical["ward=c"].private
    assert typical["smoker=yes"].private < typical["ward=b"].private, (
        "more records have one of two levels than of three"
    )
    assert worst["smoker=yes"].private == worst["ward=b"].private, "1 % of the records have either"
    for name, error in typical.items():
        assert error.sampling < error.private < worst[name].private
    wider = errors_of(planned(age={"upper": 400}))[0]
    assert wider["age"].private == pytest.approx(typical["age"].private / 4.0)
    assert wider["weight"] == typical["weight"]


def test_errors_follow_the_unit_of_the_response() -> None:
    cents = errors_of(planned(cost={"upper": 1_000_000, "missing": 300_000}))[0]
    assert cents["age"].private == pytest.approx(100.0 * errors_of(planned())[0]["age"].private)


def test_plan_says_what_it_estimates_and_what_the_designs_are() -> None:
    plan = planned()
    assert plan.estimand == "least-squares coefficients of cost"
    document = plan.to_dict()
    assert document["estimand"] == plan.estimand
    designs = document["eligible"][0]["designs"]
    assert [design["words"] for design in designs] == [
        TYPICAL.words,
        WORST.words + "; effects are three times as strong as usual",
    ]
    text = repr(plan)
    assert "Estimates least-squares coefficients of cost." in text
    assert TYPICAL.words in text
    assert "Responses are taken to scatter about the line by 1.25e+03, unless --noise says better" in text
    known = od.plan({"columns": SCHEMA}, "cost", "linear", n=5000, epsilon=1.0, options={"noise": 300.0})
    assert "--noise" not in repr(known)


def table(rng: np.random.Generator, n: int, d: int, filled: float, correlation: float, kind: str) -> Any:
    """Simulate normal columns of this standard deviation and correlation, a predictor of deviation 1, and a response."""
    deviation = filled / math.sqrt(3.0)
    matrix = np.full((d, d), correlation) + (1.0 - correlation) * np.eye(d)
    X = np.clip(rng.standard_normal((n, d)) @ np.linalg.cholesky(matrix).T * deviation, -1.0, 1.0)
    truth = np.ones(d) / math.sqrt(d * (1.0 + (d - 1) * correlation)) / deviation
    u = X @ truth
    if kind == "linear":
        return X, u + rng.standard_normal(n), truth
    return X, np.where(rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-u)), 1.0, -1.0), truth


@pytest.mark.parametrize(
    ("kind", "filled", "correlation", "epsilon", "expected"),
    [
        ("linear", 0.5, 0.5, 1.0, True), ("linear", 0.25, 0.9, 1.0, False), ("linear", 0.25, 0.9, 5.0, True),
        ("logistic", 0.5, 0.5, 1.0, True), ("logistic", 0.25, 0.9, 0.5, False), ("logistic", 0.25, 0.9, 3.0, True),
    ],
)  # fmt: skip
def test_expected_errors_and_intervals_are_those_of_simulated_fits(
    kind: str, filled: float, correlation: float, epsilon: float, expected: bool
) -> None:
    """Twelve fits of five columns each, from fixed seeds: most coefficients are given an interval, or hardly any."""
    own = {"classes": [0, 1]} if kind == "logistic" else {"response_bound": 8.0, "noise": 1.0}
    question = Regression(kind, 5, bounds=(-1, 1), effect=1.0, **own)
    plan = rank_plans(question, od.ApproxDP(epsilon, 1e-6), n=2000).best
    problem = plan.mechanism.problem(plan)
    design = {"filled": filled, "correlation": correlation, "effect": 1.0, "noise": 1.0}
    assert is_given(problem, *design.values()) == expected
    given, squares = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y, truth = table(rng, 2000, 5, filled, correlation, kind)
        target = plan.target(od.models.Encoded(2000, np.column_stack([X, np.ones(2000)]), y))
        published = Stages(target, Noise(rng, pure=False)).run()
        result = plan.mechanism.result(plan, published.to_dict())
        given.append(result.given[:5].mean())
        squares.append((result.estimate[:5] - truth) ** 2)
    assert np.mean(given) > 0.6 if expected else np.mean(given) < 0.2
    error, plain, factor = expected_column_error(problem, **design)
    assert (factor <= 1.0) == expected
    assert plain < error
    if expected:
        assert math.sqrt(np.mean(squares)) == pytest.approx(error, rel=0.4)


def of_columns(design: Any, **factors: float) -> DesignError:
    columns = tuple(ColumnError(name, 1.0, 0.5, factor) for name, factor in factors.items())
    return DesignError(design, Expectation(1.0, 0.5, 0.0), columns)


@pytest.mark.parametrize(
    ("typical", "worst", "said"),
    [
        ({"a": 1, "b": 1}, {"a": 1, "b": 1}, "Expect intervals for every column, also in a worst design."),
        ({"a": 1, "b": 1}, {"a": 1, "b": 3}, "every column of a typical design; in a worst one for all but b."),
        ({"a": 1, "b": 1}, {"a": 2, "b": 3}, "every column of a typical design; in a worst one for none."),
        ({"a": 1, "b": 2}, {"a": 2, "b": 3}, "for all columns but b. About 2 times this ε would give them."),
        ({"a": 2, "b": 3}, {"a": 4, "b": 5}, "No column of a typical design is expected to have an interval. About 3 times"),
        ({"a": 2, "b": math.inf}, {"a": 4, "b": 5}, "No column of a typical design is expected to have an interval. Use more"),
        ({"a": math.nan}, {"a": math.nan}, "Columns that vary enough get intervals."),
    ],
)  # fmt: skip
def test_intervals_are_promised_only_where_they_are_expected(typical: Any, worst: Any, said: str) -> None:
    words = intervals_words(of_columns(TYPICAL, **typical), of_columns(WORST, **worst))
    assert said in words
    assert "The release names the columns without an interval" in words


def test_plan_that_gives_no_standard_errors_promises_no_interval() -> None:
    for few in (planned(n=150), planned(n=1000, epsilon=0.5)):
        assert few.why_no_interval
        assert few.choices.intervals == ""


def test_perturbed_mode_states_errors_by_column_too() -> None:
    question = Regression("softmax", 3, bounds=(0, 10), classes=["x", "y", "z"])
    (choice,) = rank_plans(question, od.PureDP(1.0), n=20_000, mechanism="fit").eligible
    typical, worst = choice.designs
    assert [column.name for column in typical.columns] == list(choice.plan.model.features.column_names[:3])
    assert typical.columns[0].private < worst.columns[0].private
    assert typical.columns[0].has_interval is None
    assert choice.intervals.startswith("Columns that vary enough get intervals.")


def test_errors_of_several_classes_are_stated_by_column_and_fall_with_n() -> None:
    question = Regression("softmax", 3, bounds=(0, 10), classes=["x", "y", "z"])
    found = [rank_plans(question, BUDGET, n=n, mechanism="fit").eligible[0].designs for n in (5000, 20_000)]
    for (typical, worst), _ in zip(found, (5000, 20_000), strict=True):
        assert typical.columns[0].private < worst.columns[0].private
        assert typical.columns[0].sampling < typical.columns[0].private
        assert typical.columns[0].has_interval
    assert found[1][0].columns[0].private < found[0][0].columns[0].private
