"""A regression can be asked for by what it estimates: that is taken, or refused with what helps."""

from __future__ import annotations

import dataclasses

import pytest

import onedraw as od
from onedraw.errors import InvalidModel, PromiseRefused, WrongCall
from onedraw.methods import PerturbedMode
from onedraw.methods.fit import AveragedSteps
from onedraw.planning import Regression, rank_plans
from onedraw.planning.options import ESTIMANDS, KINDS

from .cases import BUDGET, LINEAR, LOGISTIC, QUESTIONS

COUNTS = Regression("poisson", 2, bounds=(0, 1), largest=8)
ASKED = {
    "logistic": LOGISTIC, "linear": LINEAR, "quantile": QUESTIONS["quantile"], "poisson": COUNTS, "softmax": QUESTIONS["softmax"],
}  # fmt: skip
PURE = od.PureDP(1.0)
SCHEMA = {
    "dataset": "patients",
    "columns": {
        "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 50},
        "cost": {"kind": "number", "lower": 0, "upper": 10_000, "missing": 3000},
    },
}


def asking(question: Regression, estimand: str | None) -> Regression:
    return dataclasses.replace(question, estimand=estimand)


def refusal(question: Regression, budget: od.Promise = BUDGET, n: int = 4000, **options: object) -> str:
    with pytest.raises(PromiseRefused) as refused:
        rank_plans(question, budget, n=n, **options)  # type: ignore[arg-type]
    return str(refused.value)


@pytest.mark.parametrize("kind", ASKED)
def test_each_estimand_has_its_own_fit_and_the_usual_one_is_the_default(kind: str) -> None:
    usual, robust = ESTIMANDS[kind]
    assert robust == "robust"
    default = rank_plans(ASKED[kind], BUDGET, n=4000).best
    assert isinstance(default.mechanism, AveragedSteps)
    assert rank_plans(asking(ASKED[kind], usual), BUDGET, n=4000).best == default, (
        "the same plan, so old ones stay as they are"
    )
    by_name = rank_plans(asking(ASKED[kind], robust), BUDGET, n=4000).best
    assert isinstance(by_name.mechanism, AveragedSteps)
    assert by_name.mechanism.robust
    assert not default.mechanism.robust
    assert by_name == rank_plans(asking(ASKED[kind], robust), BUDGET, n=4000, mechanism="averaged-steps").best
    assert "robust line" in by_name.mechanism.estimand(by_name)
    assert "do not" in by_name.mechanism.estimand_note(by_name) or "does not" in by_name.mechanism.estimand_note(
        by_name
    )


@pytest.mark.parametrize("kind", ASKED)
def test_a_budget_or_n_that_does_not_reach_the_estimand_is_refused_with_what_helps(kind: str) -> None:
    question = asking(ASKED[kind], ESTIMANDS[kind][0])
    assert isinstance(rank_plans(ASKED[kind], PURE, n=4000).best.mechanism, PerturbedMode), (
        "taken if nothing was asked for"
    )
    assert 'Pass a δ above 0, or estimand="robust"' in refusal(question, PURE)
    few = refusal(question, n=40)
    assert "Use more records or a larger ε." in few
    assert "n = 40" in few
    assert "PerturbedMode" not in few
    assert isinstance(rank_plans(asking(question, "robust"), PURE, n=4000).best.mechanism, PerturbedMode)
    assert isinstance(rank_plans(asking(question, "robust"), od.GaussianDP(0.3), n=4000).best.mechanism, AveragedSteps)


def test_the_robust_line_is_a_remedy_only_where_the_budget_allows_it() -> None:
    gaussian = od.GaussianDP(0.1)
    assert 'estimand="robust"' not in refusal(asking(LOGISTIC, "maximum-likelihood"), gaussian, n=40)
    assert "more records or a larger ε" in refusal(asking(LOGISTIC, "robust"), gaussian, n=40)


def test_several_draws_a_prior_or_a_missing_bound_are_named_as_the_reason() -> None:
    asked = asking(LOGISTIC, "maximum-likelihood")
    assert "Leave out draws" in refusal(asked, draws=4)
    assert "posterior(size, prior=…)" in refusal(dataclasses.replace(asked, prior_scale=1.0))
    huber = Regression("linear", 2, bounds=(0, 1), threshold=1.0, estimand="least-squares")
    assert "response_bound=" in refusal(huber)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in QUESTIONS or kind == "poisson"])
@pytest.mark.parametrize(
    "estimand", ["least-squares", "maximum-likelihood", "quantile", "robust", "median", 3, ["robust"]]
)
def test_a_value_that_does_not_belong_is_refused_with_those_that_do(kind: str, estimand: object) -> None:
    question, known = {**QUESTIONS, **ASKED}[kind], ESTIMANDS.get(kind, ())
    if estimand in known:
        assert dataclasses.replace(question, estimand=estimand).estimand == estimand  # type: ignore[arg-type]
        return
    with pytest.raises(InvalidModel, match=f"does not belong to a {kind} regression") as refused:
        dataclasses.replace(question, estimand=estimand)  # type: ignore[arg-type]
    for value in known:
        assert repr(value) in str(refused.value)


def test_a_mechanism_that_estimates_something_else_is_refused() -> None:
    asked, robust = asking(LINEAR, "least-squares"), asking(LINEAR, "robust")
    for question, name in ((asked, "perturbed-mode"), (robust, "noisy-gradient"), (asked, "noisy-gradient")):
        with pytest.raises(InvalidModel, match="Leave one of them out"):
            rank_plans(question, BUDGET, n=4000, mechanism=name)
    for question, name in ((robust, "averaged-steps"), (asked, "averaged-steps"), (asked, "fit"), (robust, "fit")):
        assert rank_plans(question, BUDGET, n=4000, mechanism=name).best == rank_plans(question, BUDGET, n=4000).best


def test_a_plan_names_the_robust_line_also_where_nobody_asked_for_it() -> None:
    pure = od.plan(SCHEMA, "cost", "linear", n=5000, epsilon=1.0, delta=0)
    robust = od.plan(SCHEMA, "cost", "linear", n=5000, epsilon=1.0, estimand="robust")
    for plan, shrinks in ((pure, "hardly shrinks"), (robust, "does not shrink")):
        assert plan.estimand == plan.to_dict()["estimand"] == "coefficients of a robust line for cost"
        assert "Rows and residuals far out count less" in plan.estimand_note
        assert (
            f"differ from those of least squares by an amount that {shrinks} with n" in plan.to_dict()["estimand_note"]
        )
        assert plan.estimand in repr(plan)
        assert plan.estimand_note in repr(plan)


@pytest.mark.parametrize("epsilons", [(0.5, 20.0)])
def test_the_robust_line_is_the_same_at_every_epsilon(epsilons: tuple[float, float]) -> None:
    """The length of scores is in units that do not depend on n or ε."""
    plans = [
        rank_plans(asking(question, "robust"), od.ApproxDP(epsilon, 1e-6), n=n).best
        for question in (LINEAR, LOGISTIC, COUNTS)
        for epsilon in epsilons
        for n in (4000, 10**6)
    ]
    lengths = {
        type(plan.model).__name__: {other.parameters["step_bound"] for other in plans if other.model == plan.model}
        for plan in plans
    }
    assert all(len(found) == 1 for found in lengths.values())


def test_od_plan_takes_an_estimand_by_name_or_among_its_options() -> None:
    def planned(**options: object) -> od.planning.Planned:  # type: ignore[name-defined]
        return od.plan(SCHEMA, "cost", "linear", n=5000, epsilon=1.0, **options)  # type: ignore[arg-type]

    assert planned(options={"estimand": "robust"}).plan == planned(estimand="robust").plan
    assert (
        planned(estimand="least-squares").fingerprint == planned().fingerprint != planned(estimand="robust").fingerprint
    )
    with pytest.raises(InvalidModel, match="Choose 'least-squares' or 'robust'"):
        planned(estimand="maximum-likelihood")
    with pytest.raises(WrongCall, match="estimand does not belong to a mean"):
        od.plan(SCHEMA, "cost", "mean", n=5000, epsilon=1.0, estimand="robust")


def test_options_of_one_column_are_not_lost_among_the_arguments() -> None:
    columns = {**SCHEMA["columns"], "sex": {"kind": "binary", "levels": ["f", "m"], "missing": "f"}}  # type: ignore[dict-item]
    by_option = od.plan({"columns": columns}, "cost", "mean", n=5000, epsilon=1.0, options={"by": ("sex",)})
    assert by_option.plan == od.plan({"columns": columns}, "cost", "mean", n=5000, epsilon=1.0, by=("sex",)).plan
