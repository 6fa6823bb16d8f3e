"""Unit and golden: the six promises as values, their ranges, and which proves which."""

import copy
import json
import math
import pickle

import pytest

from onedraw.errors import InvalidBudget, WrongCall
from onedraw.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRange,
    BoundedRangeCurve,
    GaussianDP,
    LinearCurve,
    Promise,
    PureCurve,
    PureDP,
    RenyiDP,
    compose,
)

PROMISES = [
    PureDP(1.0),
    ApproxDP(1.0, 1e-5),
    ApproxDP(0.5, 0.0),
    BoundedRange(0.3),
    ZCDP(0.125),
    GaussianDP(0.5),
    RenyiDP.at(8.0, 0.5),
    RenyiDP(LinearCurve(0.2), below=3.5),
    RenyiDP(PureCurve(0.7)),
    RenyiDP(BoundedRangeCurve(0.7)),
    compose(PureDP(0.1), PureDP(0.1), GaussianDP(0.3), gammas=[1e-9]),
]


# ── ranges ──


@pytest.mark.parametrize("kind", [PureDP, BoundedRange, ZCDP, GaussianDP])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_a_parameter_that_is_not_positive_and_finite_is_refused(kind, value):
    with pytest.raises(InvalidBudget, match="must be a finite number above 0") as refusal:
        kind(value)
    assert refusal.value.exit_code == 2
    assert isinstance(refusal.value, WrongCall)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_an_epsilon_out_of_range_is_refused_with_delta_too(value):
    with pytest.raises(InvalidBudget, match="ε must be a finite number above 0"):
        ApproxDP(value, 1e-5)


@pytest.mark.parametrize("value", [-1e-9, 1.0, 2.0, math.nan, math.inf])
def test_a_delta_outside_zero_to_one_is_refused(value):
    with pytest.raises(InvalidBudget, match=r"δ must lie in \[0, 1\)"):
        ApproxDP(1.0, value)
    with pytest.raises(InvalidBudget, match=r"δ must lie in \[0, 1\)"):
        GaussianDP(1.0).epsilon(value)


@pytest.mark.parametrize("value", ["1", None, True, [1.0], 1j])
def test_a_parameter_that_is_no_number_is_refused(value):
    with pytest.raises(InvalidBudget, match="must be a real number"):
        PureDP(value)


@pytest.mark.parametrize("value", [1.0, 0.5, math.nan, math.inf])
def test_an_order_must_be_finite_and_above_one(value):
    with pytest.raises(InvalidBudget, match="above 1"):
        RenyiDP.at(value, 1.0)


def test_a_limit_that_leaves_no_order_is_refused():
    with pytest.raises(InvalidBudget, match="below must be above 1"):
        RenyiDP(LinearCurve(1.0), below=1.0)


def test_a_bare_function_is_no_curve():
    with pytest.raises(InvalidBudget, match="named curve"):
        RenyiDP(lambda order: order)


@pytest.mark.parametrize("value", [-0.1, math.nan])
def test_a_profile_is_not_asked_at_negative_epsilon(value):
    with pytest.raises(InvalidBudget, match="ε ≥ 0"):
        PureDP(1.0).delta(value)


def test_no_gaussian_promise_has_delta_zero():
    assert ApproxDP(1.0, 0.0).allows(GaussianDP) == PureDP(1.0).allows(GaussianDP) == 0.0


@pytest.mark.parametrize("budget", [PureDP(0.7), BoundedRange(0.7), ApproxDP(0.7, 0.0), ApproxDP(0.7, 1e-6), GaussianDP(0.7),
                                    ZCDP(0.7), RenyiDP.at(4.0, 0.7)], ids=str)  # fmt: skip
@pytest.mark.parametrize("kind", [PureDP, BoundedRange, GaussianDP, ZCDP])
def test_what_a_budget_allows_implies_it_and_little_more_does(budget, kind):
    allowed = budget.allows(kind)
    if allowed:
        assert kind(allowed).implies(budget)
        assert kind is PureDP or not kind(allowed * (1.0 + 2.0**-30)).implies(budget)
    else:
        assert not kind(1e-9).implies(budget)


def test_only_a_delta_pays_for_total_variation():
    budget = ApproxDP(1.0, 1e-6)
    gamma = budget.total_variation(0.5)
    assert budget.less(gamma).stated_delta == pytest.approx(5e-7)
    assert budget.less(2.0 * budget.total_variation()) is None
    assert GaussianDP(1.0).total_variation() == PureDP(1.0).total_variation() == 0.0
    assert PureDP(1.0).less(1e-9) is None
    assert PureDP(1.0).less(0.0) == PureDP(1.0)


# ── values ──


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_a_promise_is_a_frozen_hashable_value(promise):
    assert copy.deepcopy(promise) == promise == pickle.loads(pickle.dumps(promise))
    assert hash(copy.deepcopy(promise)) == hash(promise)
    with pytest.raises(AttributeError):
        promise.gamma = 0.5
    assert promise != PureDP(123.0)


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_a_promise_survives_json(promise):
    assert Promise.from_dict(json.loads(json.dumps(promise.to_dict(), allow_nan=False))) == promise


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_an_unknown_or_missing_parameter_is_refused(promise):
    stored = promise.to_dict()
    with pytest.raises(InvalidBudget, match="give exactly these"):
        Promise.from_dict(stored | {"surprise": 1.0})
    for name in set(stored) - {"kind"}:
        with pytest.raises(InvalidBudget, match="give exactly these"):
            Promise.from_dict({key: value for key, value in stored.items() if key != name})


@pytest.mark.parametrize("stored", [{}, {"kind": "Hope"}, {"kind": None}, [], "PureDP", {"kind": ["PureDP"]}])
def test_an_unknown_kind_is_refused(stored):
    with pytest.raises(InvalidBudget, match="No promise is called"):
        Promise.from_dict(stored)


@pytest.mark.parametrize(
    "stored",
    [
        {"kind": "PureDP", "epsilon": -1.0},
        {"kind": "PureDP", "epsilon": "1.0"},
        {"kind": "ApproxDP", "epsilon": 1.0, "delta": 1.5},
        {
            "kind": "Composed",
            "parts": [{"promise": {"kind": "PureDP", "epsilon": 1.0}, "times": 0}],
            "gamma": 0.0,
        },
        {"kind": "Composed", "parts": [], "gamma": 2.0},
        {"kind": "RenyiDP", "curve": {"family": "wishful"}, "below": None},
        {"kind": "RenyiDP", "curve": {"family": "linear", "rho": 1.0, "extra": 0}, "below": None},
        {"kind": "RenyiDP", "curve": {"family": "linear", "rho": math.inf}, "below": None},
    ],
)
def test_a_stored_promise_out_of_range_is_refused(stored):
    with pytest.raises(InvalidBudget):
        Promise.from_dict(stored)


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        (PureDP(1.0), "ε = 1"),
        (ApproxDP(1.0, 1e-5), "(ε = 1, δ = 1e-05)"),
        (BoundedRange(0.5), "bounded range ε = 0.5"),
        (ZCDP(0.25), "zCDP with ρ = 0.25"),
        (GaussianDP(0.1), "Gaussian DP with μ = 0.1"),
        (RenyiDP.at(2.0, 0.5), "(λ = 2, ε = 0.5) Rényi DP"),
        (RenyiDP(LinearCurve(0.5), below=4.0), "Rényi DP, D_α ≤ 0.5·α, for orders below 4"),
        (compose(PureDP(0.5), PureDP(0.5), gammas=[1e-9]), "2 × [ε = 0.5], within total variation 1e-09"),
        (compose(), "nothing released"),
    ],
)
def test_a_promise_reads_as_words(promise, words):
    assert str(promise) == words


def test_representations_name_the_constructor_arguments():
    assert repr(PureDP(1.0)) == "PureDP(epsilon=1.0)"
    assert repr(ApproxDP(1.0, 1e-5)) == "ApproxDP(epsilon=1.0, delta=1e-05)"
    assert eval(repr(BoundedRange(0.1))) == BoundedRange(0.1)


# ── profiles ──


def test_a_promise_asked_at_its_own_numbers_returns_them_exactly():
    assert PureDP(0.1).epsilon(0.0) == 0.1
    assert PureDP(0.1).delta(0.1) == 0.0
    assert BoundedRange(0.1).epsilon(0.0) == 0.1
    assert ApproxDP(0.1, 1e-6).epsilon(1e-6) == 0.1
    assert ApproxDP(0.1, 1e-6).delta(0.1) == 1e-6
    assert ApproxDP(0.1, 0.0).epsilon(0.0) == 0.1


def test_what_is_not_promised_is_infinite():
    assert ApproxDP(0.1, 1e-6).epsilon(1e-7) == math.inf
    assert GaussianDP(0.1).epsilon(0.0) == math.inf
    assert ZCDP(0.1).epsilon(0.0) == math.inf
    assert RenyiDP.at(2.0, 0.1).epsilon(0.0) == math.inf


def test_a_curve_that_bounds_the_log_ratio_needs_no_delta():
    assert RenyiDP(PureCurve(0.7)).epsilon(0.0) == 0.7
    assert RenyiDP(PureCurve(0.7), below=100.0).epsilon(0.0) == math.inf


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_a_profile_ends_at_infinity(promise):
    leftover = promise.delta(math.inf)
    assert leftover <= promise.delta(1.0)
    assert leftover < 1e-4


def test_the_calibrated_gaussian_implies_its_budget_and_no_larger_one_does():
    for epsilon, delta in [(1.0, 1e-5), (0.1, 1e-3), (3.0, 1e-10), (1e-3, 1e-6)]:
        promise = GaussianDP(ApproxDP(epsilon, delta).allows(GaussianDP))
        assert promise.implies(ApproxDP(epsilon, delta))
        assert not GaussianDP(promise.mu * 1.0001).implies(ApproxDP(epsilon, delta))


# ── ordering ──


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        (PureDP(1.0), PureDP(1.0)),
        (PureDP(0.9), PureDP(1.0)),
        (PureDP(1.0), ApproxDP(1.0, 0.0)),
        (ApproxDP(1.0, 0.0), PureDP(1.0)),
        (PureDP(1.0), ApproxDP(1.0, 1e-9)),
        (PureDP(1.0), ApproxDP(0.5, 0.3)),
        (PureDP(0.5), BoundedRange(1.0)),
        (PureDP(1.0), ZCDP(0.5)),
        (PureDP(20.0), ZCDP(20.0)),
        (PureDP(1.0), GaussianDP(1.23204)),
        (PureDP(1.0), RenyiDP.at(100.0, 1.0)),
        (PureDP(1.0), RenyiDP(PureCurve(1.0))),
        (BoundedRange(1.0), PureDP(1.0)),
        (BoundedRange(1.0), ZCDP(0.125)),
        (BoundedRange(1.0), RenyiDP(LinearCurve(0.125))),
        (BoundedRange(1.0), RenyiDP(BoundedRangeCurve(1.0))),
        (GaussianDP(1.0), ZCDP(0.5)),
        (GaussianDP(1.0), RenyiDP.at(2.0, 1.0)),
        (GaussianDP(1.0), ApproxDP(4.3772, 1e-5)),
        (ZCDP(0.5), RenyiDP.at(2.0, 1.0)),
        (ZCDP(0.5), RenyiDP(LinearCurve(0.6), below=7.0)),
        (RenyiDP(LinearCurve(0.5)), ZCDP(0.5)),
        (RenyiDP(PureCurve(1.0)), PureDP(1.0)),
        (RenyiDP.at(8.0, 0.5), RenyiDP.at(4.0, 0.5)),
        (RenyiDP.at(8.0, 0.5), RenyiDP.at(8.0, 0.6)),
        (RenyiDP.at(8.0, 0.5), RenyiDP(LinearCurve(0.5), below=8.0)),
        (RenyiDP(LinearCurve(0.5), below=9.0), RenyiDP.at(8.0, 4.0)),
        (ApproxDP(1.0, 1e-6), ApproxDP(1.0, 1e-5)),
        (ApproxDP(0.9, 1e-6), ApproxDP(1.0, 1e-6)),
    ],
)
def test_what_is_proven_is_implied(stronger, weaker):
    assert stronger.implies(weaker)


@pytest.mark.parametrize(
    ("promise", "other"),
    [
        (PureDP(1.0), PureDP(0.999)),
        (PureDP(1.0), BoundedRange(1.5)),
        (PureDP(1.0), ZCDP(0.49)),
        (PureDP(1.0), GaussianDP(1.23203)),
        (BoundedRange(1.0), ZCDP(0.12)),
        (RenyiDP(BoundedRangeCurve(1.0)), BoundedRange(1.5)),
        (GaussianDP(1.0), PureDP(100.0)),
        (GaussianDP(1.0), ZCDP(0.49)),
        (GaussianDP(1.0), ApproxDP(4.377, 1e-5)),
        (ZCDP(0.5), GaussianDP(1.0)),
        (RenyiDP.at(8.0, 0.5), RenyiDP.at(9.0, 10.0)),
        (RenyiDP.at(8.0, 0.5), ZCDP(10.0)),
        (RenyiDP(LinearCurve(0.5), below=9.0), ZCDP(0.5)),
        (RenyiDP(LinearCurve(0.5), below=8.0), RenyiDP.at(8.0, 4.0)),
        (ApproxDP(1.0, 1e-5), ApproxDP(1.0, 1e-6)),
        (ApproxDP(1.0, 1e-5), PureDP(100.0)),
        (ApproxDP(1.0, 1e-5), ZCDP(100.0)),
        (ApproxDP(1.0, 1e-5), RenyiDP.at(2.0, 100.0)),
    ],
)
def test_what_is_not_proven_is_not_implied(promise, other):
    assert not promise.implies(other)


def test_only_promises_can_be_compared():
    with pytest.raises(InvalidBudget, match="only imply another promise"):
        PureDP(1.0).implies(1.0)
