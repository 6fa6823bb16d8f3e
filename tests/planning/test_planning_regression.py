"""A person's question about a regression: public defaults, every mechanism offered or refused with a reason."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math

import numpy as np
import pytest

import onedraw as od
from onedraw import errors
from onedraw.mechanisms.plan import plan_from_dict
from onedraw.planning import Regression, choose, smallest_epsilon, smallest_n
from onedraw.planning.choice import MOST_SECONDS, TOLERATED
from onedraw.planning.expectation import error_of_narrow_columns, expected_error
from onedraw.planning.work import estimated_seconds

BUDGET = od.ApproxDP(1.0, 1e-6)
LOGISTIC = Regression("logistic", 3, bounds=(0, 1), classes=[0, 1])
LINEAR = Regression("linear", 2, bounds=((0, -5), (10, 5)), response_bound=8.0)


# ── the question ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_defaults_are_those_of_the_contract():
    """prior_scale = 2/r̃ and radius = prior_scale·(√d + 2), in units of the response."""
    assert LOGISTIC.rows.scaled
    assert LOGISTIC.rows.reach == pytest.approx(2.0), "three scaled features and the intercept's 1"
    assert LOGISTIC.scale == pytest.approx(1.0)
    assert LOGISTIC.ball == pytest.approx(4.0)
    assert LINEAR.unit == 2.0, "a quarter of the response's bound"
    assert LINEAR.scale == pytest.approx(2.0 * 2.0 / math.sqrt(3.0))
    assert Regression("logistic", 3, data_norm=2.0, prior_scale=0.5, radius=1.5).ball == 1.5


def test_a_question_is_a_value():
    lists = Regression("logistic", 2, bounds=([0, 0], np.array([1.0, 2.0])), classes=[0, 1], feature_names=["a", "b"])
    tuples = Regression("logistic", 2, bounds=((0, 0), (1.0, 2.0)), classes=(0, 1), feature_names=("a", "b"))
    assert lists == tuples
    assert hash(lists) == hash(tuples)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "cox"}, "kind must be one of"),
        ({"kind": "logistic"}, "needs one public bound"),
        ({"kind": "logistic", "bounds": (0, 1), "data_norm": 1.0}, "both came"),
        ({"kind": "softmax", "bounds": (0, 1)}, "never read from the records"),
        ({"kind": "linear", "bounds": (0, 1)}, "response_bound=Y"),
        ({"kind": "linear", "bounds": (0, 1), "response_bound": -1.0}, "positive finite"),
        ({"kind": "linear", "bounds": (0, 1), "response_bound": 1.0, "classes": [0, 1]}, "classes belong"),
        ({"kind": "logistic", "bounds": (0, 1), "effect": math.nan}, "positive finite"),
    ],
)
def test_what_is_missing_or_wrong_is_refused_with_a_remedy(options, message):
    with pytest.raises(errors.InvalidModel, match=message):
        Regression(options.pop("kind"), 2, **options)


QUESTIONS = {
    "logistic": LOGISTIC,
    "softmax": Regression("softmax", 2, bounds=(0, 1), classes=["a", "b", "c"]),
    "svc": Regression("svc", 2, data_norm=1.0),
    "linear": LINEAR,
    "huber": Regression("huber", 2, bounds=(0, 1), threshold=1.0),
    "quantile": Regression("quantile", 2, bounds=(0, 1), quantile=0.9, response_bound=4.0),
}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_eligible_plan_keeps_the_budget_is_proven_and_can_be_stored(kind):
    found = choose(QUESTIONS[kind], BUDGET, n=2000)
    assert set(found.refused) | {choice.name for choice in found.eligible} == {
        variant.name for variant in QUESTIONS[kind].variants()
    }
    for choice in found.eligible:
        assert choice.plan.guarantee.promise.implies(choice.plan.request.exact_budget)
        assert choice.plan.mechanism.proven
        assert choice.seconds <= MOST_SECONDS
        assert plan_from_dict(json.loads(json.dumps(choice.plan.to_dict()))) == choice.plan
    expected = [choice.expected.private for choice in found.eligible]
    assert expected[1:] == sorted(expected[1:])
    assert expected[0] <= TOLERATED * min(expected)
    assert np.isfinite(expected).all()
    assert found.best is found.eligible[0].plan


# ── the choice ───────────────────────────────────────────────────────────────────────────────────────────────


def test_of_nearly_equal_plans_the_one_for_narrow_columns_is_taken():
    """A longer path costs a little under the design and saves much where columns fill a third of their ranges."""
    taken = choose(LOGISTIC, od.ApproxDP(5.0, 1e-5), n=600).eligible[0]
    variant = LOGISTIC.variant(taken.name)
    usual = od.calibrate(variant.mechanism, variant.model, od.ApproxDP(5.0, 1e-5), n=600)
    assert taken.expected.private <= TOLERATED * expected_error(usual).private
    assert taken.narrow == error_of_narrow_columns(taken.plan) < 0.85 * error_of_narrow_columns(usual)


def test_the_choice_says_what_it_took_and_why():
    found = choose(LOGISTIC, BUDGET, n=2000)
    best = found.eligible[0]
    assert found.why.startswith(f"{best.name}: expected error {best.expected.private:.3g} per coefficient")
    assert "before any record was read" in found.why
    assert best.expected.private > best.expected.sampling


def test_nothing_of_a_choice_can_depend_on_a_record():
    """There is no argument through which one could come in."""
    assert set(inspect.signature(choose).parameters) == {
        "question", "budget", "n", "draws", "records_per_person", "mechanism", "accept",
    }  # fmt: skip


def test_unproven_samplers_are_not_taken_unless_named():
    assert "accept=" in choose(LOGISTIC, BUDGET, n=500).refused["beta-divergence"]
    with pytest.raises(errors.PromiseRefused, match="accept="):
        choose(LOGISTIC, BUDGET, n=500, mechanism="beta-divergence")
    found = choose(LOGISTIC, BUDGET, n=500, mechanism="beta-divergence", accept="assumed")
    assert type(found.best.mechanism).__name__ == "BetaDivergence"


def test_a_network_has_no_proven_mechanism_and_says_so():
    network = Regression("network-classifier", 2, bounds=(0, 1), classes=[0, 1], hidden=3)
    with pytest.raises(errors.PromiseRefused, match="No mechanism answers"):
        choose(network, BUDGET, n=500)
    found = choose(network, BUDGET, n=500, accept="assumed")
    assert "proven, or accepted by name, for" in found.why
    assert found.eligible[0].name == "beta-divergence"
    assert "cannot be predicted" in found.why


def test_a_named_mechanism_is_taken_and_an_unknown_name_lists_the_known():
    found = choose(LOGISTIC, BUDGET, n=2000, mechanism="gdp")
    assert [choice.name for choice in found.eligible] == ["gdp"]
    assert "named by the caller" in found.why
    with pytest.raises(errors.InvalidModel, match="noisy-gradient exp-linear"):
        choose(LOGISTIC, BUDGET, n=2000, mechanism="exponential")


def test_a_pure_budget_leaves_the_exact_mechanisms():
    assert {choice.name for choice in choose(LOGISTIC, od.PureDP(1.0), n=2000).eligible} == {"candidates"}
    assert {choice.name for choice in choose(LINEAR, od.PureDP(1.0), n=2000).eligible} == {"least-squares"}


def test_work_beyond_the_cap_is_left_to_those_who_name_it(monkeypatch):
    monkeypatch.setattr("onedraw.planning.choice.MOST_SECONDS", 0.001)
    found = choose(LINEAR, BUDGET, n=2000)
    assert {choice.name for choice in found.eligible} == {"least-squares", "least-squares gdp"}
    assert "Name it" in found.refused["noisy-gradient huber"]
    assert choose(LINEAR, BUDGET, n=2000, mechanism="noisy-gradient huber").best is not None


def test_estimated_seconds_grow_with_what_is_public():
    def seconds(n):
        plan = od.calibrate(od.Gibbs("gdp"), LOGISTIC.variant("gdp").model, BUDGET, n=n)
        return estimated_seconds(plan, od.samplers.default_sampler(plan)[0])

    assert seconds(100) < seconds(10_000) < seconds(1_000_000)


def test_several_draws_share_the_budget():
    found = choose(LINEAR, BUDGET, n=5000, draws=4, mechanism="noisy-gradient huber").best
    assert found.draws == 4
    assert found.guarantee.promise.implies(BUDGET)
    declared = dataclasses.replace(LINEAR, prior_scale=1.0)
    assert choose(declared, BUDGET, n=5000, draws=4, mechanism="noisy-gradient").best.model.prior.scale == 1.0


def test_the_unit_of_the_response_changes_nothing_but_the_unit():
    cents, euros = (Regression("linear", 2, bounds=(0, 1), response_bound=bound) for bound in (80_000.0, 800.0))
    for name in ("noisy-gradient huber", "least-squares"):
        many, few = (choose(question, BUDGET, n=2000, mechanism=name).eligible[0] for question in (cents, euros))
        assert many.expected.private == pytest.approx(100.0 * few.expected.private, rel=1e-3)


def test_a_column_whose_ends_are_equal_changes_no_expectation():
    plain = choose(Regression("logistic", 2, bounds=(0, 1)), BUDGET, n=2000, mechanism="noisy-gradient").eligible[0]
    question = Regression("logistic", 3, bounds=((0, 0, 5), (1, 1, 5)))
    constant = choose(question, BUDGET, n=2000, mechanism="noisy-gradient").eligible[0]
    assert constant.expected.private == pytest.approx(plain.expected.private, rel=0.1)
    assert constant.expected.sampling == pytest.approx(plain.expected.sampling, rel=0.02)


def test_a_plan_releases():
    generator = np.random.default_rng(2)
    X, y = generator.random((400, 3)), generator.integers(0, 2, 400)
    released = od.release(choose(LOGISTIC, BUDGET, n=400).best, (X, y))
    assert od.verify(released.certificate)


# ── wanted precision ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_smallest_n_reaches_the_wanted_error_and_little_less_does_not():
    def error(n):
        return choose(LINEAR, BUDGET, n=n, mechanism="noisy-gradient huber").eligible[0].expected.private

    n = smallest_n(LINEAR, BUDGET, 0.3, mechanism="noisy-gradient huber")
    assert error(n) <= 0.3 < error(int(0.8 * n))


def test_the_smallest_epsilon_reaches_the_wanted_error():
    def error(epsilon):
        budget = od.ApproxDP(epsilon, 1e-6)
        return choose(LINEAR, budget, n=2000, mechanism="noisy-gradient huber").eligible[0].expected.private

    epsilon = smallest_epsilon(LINEAR, 0.3, n=2000, mechanism="noisy-gradient huber")
    assert error(epsilon) <= 0.3 * 1.01
    assert error(0.8 * epsilon) > 0.3


def test_a_precision_beyond_reach_is_refused():
    with pytest.raises(errors.PromiseRefused, match="the sample itself"):
        smallest_epsilon(LINEAR, 1e-4, n=1000, mechanism="least-squares")
    with pytest.raises(errors.WrongCall, match="above 0"):
        smallest_n(LINEAR, BUDGET, 0.0)
