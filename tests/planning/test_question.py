"""`onedraw.plan`: from a schema and a question to a plan, a page to sign, and the release that bears its fingerprint."""

import numpy as np
import pandas as pd
import pytest

import onedraw as od
from onedraw.errors import CountMismatch, InvalidModel, OnedrawError, WrongCall

SCHEMA = {
    "dataset": "p",
    "columns": {
        "age": {"kind": "number", "lower": 18, "upper": 98, "missing": 50},
        "ward": {"kind": "category", "levels": ["<a>", "b"], "missing": "b"},
        "cost": {"kind": "number", "lower": 0, "upper": 9000, "missing": 4000},
    },
}


@pytest.fixture(scope="module")
def stays():
    generator = np.random.default_rng(3)
    age, ward = generator.uniform(18, 98, 3000), generator.choice(["<a>", "b"], 3000)
    return pd.DataFrame({"age": age, "ward": ward, "cost": 1000 + 40 * age + 300 * generator.standard_normal(3000)})


@pytest.fixture(scope="module")
def planned():
    return od.plan(SCHEMA, "cost", "linear", epsilon=2.0, n=3000)


def test_a_plan_says_what_to_expect_and_its_release_bears_its_fingerprint(planned, stays, tmp_path):
    assert "linear regression of cost" in repr(planned)
    assert "Expected error per coefficient" in repr(planned)
    assert "<table" in planned._repr_html_()
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("p", od.ApproxDP(5.0, 1e-5))
    release = planned.release(stays, ledger=tmp_path / "ledger.db", out=tmp_path / "release.json")
    assert release.certificate.fingerprint == planned.fingerprint
    assert release.named()["age"] == pytest.approx(40, rel=0.2)
    assert od.load(tmp_path / "release.json").certificate == release.certificate
    assert release.certificate.ledger.dataset == "p"


def test_questions_about_one_column_are_planned_and_released_alike(stays):
    release = od.plan(SCHEMA, "cost", "mean", epsilon=1.0, n=3000).release(stays)
    assert next(iter(release.named().values())) == pytest.approx(stays.cost.mean(), rel=0.05)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, WrongCall, "needs a budget"),
        ({"epsilon": 1.0, "budget": od.PureDP(1.0)}, WrongCall, "exactly one of the two"),
        ({"epsilon": 1.0, "options": {"quantile": 0.5}}, InvalidModel, "does not belong to a linear regression"),
    ],
)
def test_a_plan_without_what_it_needs_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        od.plan(SCHEMA, "cost", "linear", n=3000, **options)


def test_a_plan_is_for_its_own_number_of_records(planned, stays):
    with pytest.raises(CountMismatch, match=r"n = 3,000 records, the data have 10"):
        planned.release(stays.head(10))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"target": None, "model": "logistic"}, "Pass target=…."),
        ({"target": "age", "model": "count"}, "between=(18, 30)"),
        ({"target": "age", "model": "mean", "options": {"prior_scale": 1.0}}, 'options={"prior_scale": …}'),
        ({"target": "ward", "model": "logistic", "by": ("ward",)}, "by does not belong to a logistic regression"),
        ({"target": "age", "model": "covariance"}, "Pass columns=… for target."),
        ({"target": "age", "model": "mean", "columns": ["age"]}, "columns does not belong to a mean"),
    ],
)
def test_in_python_a_plan_speaks_of_arguments_and_never_of_options_to_type(call, words):
    with pytest.raises(OnedrawError) as refusal:
        od.plan(SCHEMA, epsilon=1.0, n=1000, **call)
    assert words in str(refusal.value)
    assert "--" not in str(refusal.value)


@pytest.mark.finding("newcomer S20", commit="8a7c0fb")
@pytest.mark.parametrize(
    ("typed", "meant"), [("logit", "logistic"), ("poison", "poisson"), ("multinom", "multinomial")]
)
def test_unknown_model_names_the_one_that_was_perhaps_meant(typed, meant):
    with pytest.raises(InvalidModel, match=f"No model is called '{typed}'. Perhaps {meant}?"):
        od.plan(SCHEMA, "cost", typed, n=1000, epsilon=1.0)


@pytest.mark.finding("newcomer S20", commit="8a7c0fb")
def test_features_that_are_not_scaled_are_no_matter_of_the_budget():
    model = od.models.Logistic(2, bounds=(0, 9), prior=od.Gaussian(scale=1.0))
    with pytest.raises(InvalidModel, match="Pass scaled=True"):
        od.calibrate(od.methods.PerturbedMode(), model, od.ApproxDP(1.0, 1e-6), n=1000)


@pytest.mark.finding("newcomer S4", commit="8a7c0fb")
@pytest.mark.parametrize(("n", "said"), [(10**6, "It may give standard errors"), (150, "gives no standard errors")])
def test_plan_of_a_fit_promises_no_standard_errors(n, said):
    """Whether they are given is known after the release; the words of plan and certificate are fixed before it."""
    planned = od.plan(SCHEMA, "cost", "linear", n=n, epsilon=1.0)
    assert (planned.plan.mechanism.why_no_interval(planned.plan) is None) == (n == 10**6)
    assert said in planned.choices.why
    assert "standard errors" not in planned.plan.heading
    assert "with standard errors" not in repr(planned)
