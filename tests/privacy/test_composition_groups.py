"""Unit and property: from one record to k, and draws within a total variation distance."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.errors import InvalidBudget, PromiseRefused
from onedraw.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRange,
    GaussianDP,
    PureDP,
    RenyiDP,
    compose,
    group,
    ungroup,
    with_total_variation,
)

many = settings(deadline=None, print_blob=True, max_examples=150)
positives = st.floats(min_value=1e-6, max_value=20.0)


@pytest.mark.parametrize(
    ("promise", "expected"),
    [
        (PureDP(0.5), PureDP(1.5)),
        (BoundedRange(0.5), BoundedRange(1.5)),
        (GaussianDP(0.5), GaussianDP(1.5)),
        (ZCDP(0.5), ZCDP(4.5)),
        (
            compose(PureDP(0.5), GaussianDP(0.25), gammas=[1e-6]),
            compose(PureDP(1.5), GaussianDP(0.75), gammas=[1e-6]),
        ),
    ],
)
def test_three_records_at_once(promise, expected):
    assert group(promise, 3) == expected


def test_the_delta_of_three_records_is_a_geometric_sum():
    grouped = group(ApproxDP(0.5, 1e-6), 3)
    exact = 1e-6 * (1 + math.exp(0.5) + math.exp(1.0))
    assert grouped.stated_epsilon == 1.5
    assert exact <= grouped.stated_delta <= exact * (1 + 1e-9)


@pytest.mark.parametrize("promise", [PureDP(0.5), RenyiDP.at(2.0, 0.5), ApproxDP(1.0, 0.1), compose(PureDP(1.0))])
def test_one_record_changes_nothing(promise):
    assert group(promise, 1) == promise == ungroup(promise, 1)


def test_a_renyi_curve_says_nothing_about_groups():
    for refused in (lambda: group(RenyiDP.at(2.0, 0.5), 2), lambda: ungroup(RenyiDP.at(2.0, 0.5), 2)):
        with pytest.raises(PromiseRefused, match="one record per person") as refusal:
            refused()
        assert refusal.value.exit_code == 3
    with pytest.raises(PromiseRefused):
        group(compose(PureDP(1.0), RenyiDP.at(2.0, 0.5)), 2)


def test_a_group_whose_delta_reaches_one_is_refused():
    with pytest.raises(PromiseRefused, match="δ grows"):
        group(ApproxDP(5.0, 1e-3), 10)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "2"])
def test_the_size_of_a_group_is_a_whole_number(size):
    with pytest.raises(InvalidBudget):
        group(PureDP(1.0), size)


budgets = st.one_of(
    positives.map(PureDP),
    positives.map(BoundedRange),
    positives.map(GaussianDP),
    positives.map(ZCDP),
    st.builds(ApproxDP, positives, st.floats(min_value=1e-15, max_value=0.5)),
)


@many
@given(budgets, st.integers(min_value=1, max_value=1000))
def test_what_is_divided_among_records_adds_up_to_at_most_the_budget(budget, size):
    single = ungroup(budget, size)
    assert group(single, size).implies(budget)


@many
@given(st.one_of(positives.map(PureDP), positives.map(GaussianDP)), st.integers(min_value=2, max_value=1000))
def test_no_more_could_have_been_given_to_a_record(budget, size):
    single = ungroup(budget, size)
    [(name, value)] = [item for item in single.to_dict().items() if item[0] != "kind"]
    larger = type(single)(**{name: math.nextafter(value, math.inf)})
    assert not group(larger, size).implies(budget)


# ── total variation ──


def test_the_example_of_the_bounded_predictor():
    promise = with_total_variation(PureDP(1.0), 1e-11)
    assert promise.stated_epsilon == 1.0
    assert promise.stated_delta == pytest.approx(3.7e-11, rel=0.01)
    assert promise.stated_delta >= (1 + math.e) * 1e-11


def test_the_distance_is_added_to_the_delta_of_the_exact_promise():
    exact = GaussianDP(0.5)
    kept = with_total_variation(exact, 1e-9, 2.0)
    assert kept == ApproxDP(2.0, kept.stated_delta)
    assert kept.stated_delta == pytest.approx(exact.delta(2.0) + (1 + math.exp(2.0)) * 1e-9, rel=1e-12)
    assert with_total_variation(ApproxDP(1.0, 1e-6), 0.0) == ApproxDP(1.0, 1e-6)


def test_a_promise_without_an_epsilon_of_its_own_must_be_told_one():
    with pytest.raises(InvalidBudget, match="pass epsilon="):
        with_total_variation(GaussianDP(0.5), 1e-9)


def test_a_distance_that_leaves_nothing_is_refused():
    with pytest.raises(PromiseRefused, match="Run the sampler longer"):
        with_total_variation(PureDP(1.0), 0.5)


@pytest.mark.parametrize("gamma", [-1e-9, 1.0, math.nan])
def test_a_distance_is_a_probability(gamma):
    with pytest.raises(InvalidBudget, match="γ must lie in"):
        with_total_variation(PureDP(1.0), gamma)


@many
@given(positives, st.floats(min_value=1e-15, max_value=1e-6), positives)
def test_composing_with_a_distance_agrees_with_applying_it_once(mu, gamma, epsilon):
    composed = compose(GaussianDP(mu), gammas=[gamma])
    try:
        direct = with_total_variation(GaussianDP(mu), gamma, epsilon).stated_delta
    except PromiseRefused:
        direct = 1.0
    # The composition may also use a smaller ε, which never makes δ larger.
    assert composed.delta(epsilon) <= direct * (1 + 1e-12)
