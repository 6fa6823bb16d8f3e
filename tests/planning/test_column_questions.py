"""Planning from public numbers: the right model, a ranking, and predictions that come true."""

import math
import subprocess
import sys

import numpy as np
import pytest

import onedraw as od
from onedraw import errors
from onedraw.planning import ColumnQuestion, choices, expected_error, model_for, table_for

SCHEMA = od.Schema.from_dict({"columns": {
    "outcome": {"kind": "binary", "missing": "no"},
    "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
    "age": {"kind": "number", "lower": 20, "upper": 120, "missing": 50},
    "stay": {"kind": "number", "lower": 0, "upper": 30, "missing": 1},
    "visits": {"kind": "count", "cap": 20, "missing": 0},
}})  # fmt: skip
BUDGET = od.ApproxDP(1.0, 1e-6)


@pytest.mark.parametrize(
    ("question", "target", "expected"),
    [
        ("proportion", "outcome", od.models.BetaBernoulli(prior=(1, 1))),
        ("histogram", "ward", od.models.DirichletCategorical(prior=(1, 1, 1), levels=("a", "b", "c"))),
        ("rate", "visits", od.models.GammaPoisson(prior=(1, 0.1), cap=20)),
        ("duration", "stay", od.models.GammaExponential(prior=(2, 30), cap=30)),
    ],
)
def test_a_question_becomes_a_model_with_the_schemas_bounds(question, target, expected):
    assert model_for(SCHEMA, target, question=question, n=100, budget=BUDGET) == expected


def test_a_mean_takes_the_smallest_variance_the_budget_pays_for():
    """Direct sampling then meets the budget, and the draw's noise is that of the Gaussian mechanism."""
    model = model_for(SCHEMA, "age", question="mean", n=1000, budget=BUDGET)
    mu = od.ApproxDP(1.0, 1e-6).allows(od.GaussianDP)
    plan = choices(model, BUDGET, n=1000).best
    assert plan.parameters["mu"] == pytest.approx(mu, rel=1e-6)
    law = plan.target(model.summarise(np.full(1000, 50.0)))
    assert math.sqrt(law.variance) == pytest.approx(100 / (mu * 1001), rel=1e-3)


def test_a_duration_that_can_be_negative_is_refused():
    schema = od.Schema.from_dict({"columns": {"t": {"kind": "number", "lower": -1, "upper": 1, "missing": 0}}})
    with pytest.raises(errors.InvalidSchema, match="durations start at 0"):
        model_for(schema, "t", question="duration", n=10, budget=BUDGET)


def test_the_wrong_kind_of_column_is_refused_and_the_right_question_offered():
    with pytest.raises(errors.InvalidSchema, match="18,30, or ask for its mean or sum or variance"):
        model_for(SCHEMA, "age", question="proportion", n=10, budget=BUDGET)


def test_the_best_choice_has_the_smallest_expected_error_and_refusals_have_reasons():
    found = choices(od.models.BetaBernoulli(prior=(1, 1)), BUDGET, n=5000)
    errors_ = [choice.expected.private for choice in found.eligible]
    assert errors_ == sorted(errors_)
    assert found.best is found.eligible[0].plan
    assert "Diffused" in found.refused["direct"]


def test_no_eligible_mechanism_is_a_refused_promise():
    with pytest.raises(errors.PromiseRefused):
        choices(od.models.BetaBernoulli(prior=(1, 1)), od.PureDP(1.0), n=100)


def test_the_prediction_comes_true_on_simulated_releases():
    """The error of 300 real releases at truths drawn from the prior agrees with the plan's prediction to 25 %."""
    plan = choices(od.models.BetaBernoulli(prior=(2, 2)), BUDGET, n=2000).best
    generator = np.random.default_rng(11)
    found = []
    for truth in generator.beta(2, 2, size=300):
        records = generator.random(2000) < truth
        found.append(od.release(plan, records).draw - truth)
    assert np.sqrt(np.mean(np.square(found))) == pytest.approx(expected_error(plan).private, rel=0.25)


@pytest.mark.parametrize(
    "model",
    [
        od.models.BetaBernoulli(prior=(2, 2)),
        od.models.DirichletCategorical(prior=(2, 2, 2)),
        od.models.GaussianMean(bound=1, variance=0.01, prior_count=1, dim=3),
        od.models.GammaPoisson(prior=(2, 1), cap=10),
        od.models.GammaExponential(prior=(3, 3), cap=5),
    ],
)
def test_more_records_and_more_budget_mean_less_error(model):
    def error(n, epsilon):
        return expected_error(od.calibrate(od.Diffused(), model, od.ApproxDP(epsilon, 1e-6), n=n)).private

    few, many, rich = error(200, 1.0), error(20_000, 1.0), error(200, 8.0)
    assert many < few
    assert rich < few


def test_a_choice_is_made_from_public_numbers_and_names_what_it_took():
    schema = od.Schema.from_dict(
        {"columns": {"x": {"kind": "binary", "missing": 0}, "g": {"kind": "binary", "missing": 0}}}
    )
    table = table_for(schema, "x", question="proportion")
    question = ColumnQuestion(table, lambda n, budget: od.models.BetaBernoulli())
    sure = question.choices(od.ApproxDP(1.0, 1e-6), n=5000)
    assert "laplace noise" in sure.why
    assert len(sure.eligible) == 1
    weighed = question.choices(od.ApproxDP(1.0, 1e-6), n=5000, compare=True)
    assert next(choice.name for choice in weighed.eligible) == "laplace"
    assert "against" in weighed.why
    grouped = table_for(schema, "x", question="count", by=["g"])
    assert grouped.groups == (("no", "yes"),)
    for wrong in ({"by": ["x"]}, {"by": ["nothing"]}, {"level": "perhaps"}):
        with pytest.raises(od.errors.OnedrawError):
            table_for(schema, "x", question="count", **wrong)


def test_a_question_about_one_column_loads_nothing_heavy():
    code = (
        "import sys, onedraw as od\n"
        "from onedraw.planning import ColumnQuestion, table_for\n"
        "plan = ColumnQuestion(od.models.CategoryTable(('n', 'y'), only='y')).choices(od.PureDP(1.0), n=3).best\n"
        "od.release(plan, [0, 1, 1]).conf_int()\n"
        "print([m for m in ('jax', 'scipy.stats', 'sklearn', 'pandas', 'numpyro', 'matplotlib') if m in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert found.stdout.strip() == "[]", found.stderr
