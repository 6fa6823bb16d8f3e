"""Every clause of every rule that decides what "auto" takes (planning/rules.py)."""

from __future__ import annotations

import inspect
import math

import pytest

from onedraw.planning import rules

FUNCTIONS = [
    function for _, function in inspect.getmembers(rules, inspect.isfunction) if function.__module__ == rules.__name__
]


@pytest.mark.parametrize("rule", FUNCTIONS, ids=lambda rule: rule.__name__)
def test_a_rule_has_named_arguments_and_states_itself(rule):
    parameters = inspect.signature(rule).parameters.values()
    assert all(one.kind is one.KEYWORD_ONLY for one in parameters)
    statement = inspect.getdoc(rule)
    assert all(one.name in statement for one in parameters)
    assert f"`{rule.__name__}`" in rules.__doc__


def test_noise_is_surely_better_from_twenty_records_on_below_nine_tenths_of_the_sampling_error():
    assert rules.noise_is_surely_better(noise=0.89, sampling=1.0, n=20)
    assert not rules.noise_is_surely_better(noise=0.9, sampling=1.0, n=20)
    assert not rules.noise_is_surely_better(noise=0.89, sampling=1.0, n=19)


def test_the_smallest_error_is_taken_and_one_that_measures_the_columns_may_be_a_little_worse():
    def first(**errors):
        keys = {
            name: rules.ranking_error(expected=one, measures_columns=name == "measured") for name, one in errors.items()
        }
        return min(keys, key=keys.get)

    assert first(plain=1.0, other=1.1) == "plain"
    assert first(plain=1.0, measured=1.14) == "measured"
    assert first(plain=1.0, measured=1.16) == "plain"


def test_an_error_that_nobody_can_predict_comes_last():
    known = rules.ranking_error(expected=1e9, measures_columns=False)
    assert known < rules.ranking_error(expected=math.nan, measures_columns=True)


@pytest.mark.parametrize(("seconds", "quick"), [(0.0, True), (60.0, True), (60.1, False), (math.nan, True)])
def test_draws_may_take_a_minute_or_a_time_that_nobody_knows(seconds, quick):
    assert rules.is_quick_enough(seconds=seconds) is quick


def test_the_longest_path_is_taken_whose_interval_is_nearly_the_narrowest():
    def chosen(*half_widths, informed=(30.0, 30.0, 30.0)):
        return rules.choose_path(informed=informed, half_widths=half_widths, least_informed=25.0)

    assert chosen(1.0, 1.1, 1.14) == 2
    assert chosen(1.0, 1.1, 1.16) == 1
    assert chosen(1.0, 1.2, 1.14) == 2
    assert chosen(1.2, 1.3, 1.0) == 2


def test_a_path_that_is_not_informed_is_neither_taken_nor_compared_with():
    assert rules.choose_path(informed=(20.0, 25.0, 30.0), half_widths=(0.1, 1.0, 2.0), least_informed=25.0) == 1
    assert rules.choose_path(informed=(20.0, 24.9), half_widths=(1.0, 1.0), least_informed=25.0) is None


def test_the_prior_of_replicates_is_four_times_as_wide_unless_it_was_declared():
    assert rules.prior_of_replicates(usual=0.5, declared=None) == 2.0
    assert rules.prior_of_replicates(usual=0.5, declared=0.3) == 0.3
