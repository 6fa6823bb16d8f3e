"""Oracle and property: exact rational arithmetic decides which side of the truth a rounded number is on.

And the search for the largest and smallest admissible number: what it returns always holds.
"""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.errors import WrongCall
from onedraw.privacy.numbers import (
    at_most_stated,
    crossing,
    down,
    fraction_down,
    fraction_up,
    geometric,
    largest,
    narrowed,
    root_down,
    root_up,
    smallest,
    sum_up,
    text,
    text_up,
    up,
    weighted_sum_up,
)

numbers = st.floats(min_value=1e-300, max_value=1e300)
many = settings(deadline=None, print_blob=True, max_examples=200)


@many
@given(st.lists(st.floats(min_value=0.0, max_value=1e200), min_size=1, max_size=20))
def test_a_sum_is_the_smallest_float_not_below_the_exact_sum(values):
    exact = sum((Fraction(value) for value in values), Fraction(0))
    rounded = sum_up(values)
    assert Fraction(rounded) >= exact
    assert rounded == 0.0 or Fraction(math.nextafter(rounded, -math.inf)) < exact


def test_four_hundred_equal_parts_add_up_exactly():
    assert weighted_sum_up([(2.0**-7, 400)]) == 3.125
    assert sum_up([0.1] * 10) > 1.0  # the float 0.1 is above one tenth, and the sum must not hide it


@many
@given(numbers, numbers)
def test_quotients_are_rounded_to_the_side_asked_for(numerator, denominator):
    exact = Fraction(numerator) / Fraction(denominator)
    low, high = fraction_down(exact), fraction_up(exact)
    assert Fraction(low) <= exact
    assert high == math.inf or Fraction(high) >= exact
    assert high in (low, math.nextafter(low, math.inf))


def test_a_number_too_large_for_a_float_rounds_up_to_infinity():
    assert fraction_up(Fraction(10) ** 400) == math.inf
    assert fraction_down(Fraction(10) ** 400) < math.inf


@many
@given(st.floats(min_value=1e-290, max_value=1e290), st.integers(1, 50))
def test_square_roots_are_the_two_neighbours_of_the_exact_one(value, times):
    square = Fraction(value) ** 2 * times
    low, high = root_down(square), root_up(square)
    assert Fraction(low) ** 2 <= square < Fraction(math.nextafter(low, math.inf)) ** 2
    assert high == math.inf or Fraction(math.nextafter(high, 0.0)) ** 2 < square <= Fraction(high) ** 2
    assert high in (low, math.nextafter(low, math.inf), math.inf)


def test_square_roots_at_the_ends_of_floating_point():
    assert root_down(Fraction(0)) == root_up(Fraction(0)) == 0.0
    assert root_down(Fraction(4)) == root_up(Fraction(4)) == 2.0
    assert root_down(Fraction(10) ** 4000) == math.nextafter(math.inf, 0.0)
    assert root_up(Fraction(10) ** 4000) == math.inf
    assert root_down(Fraction(1, 10**4000)) == 0.0 < root_up(Fraction(1, 10**4000))


@many
@given(st.floats(min_value=-1e300, max_value=1e300))
def test_up_and_down_move_strictly_outward(value):
    assert down(value) < value < up(value)


def test_infinity_stays_infinite():
    assert up(math.inf) == math.inf == down(math.inf)
    assert sum_up([1.0, math.inf]) == math.inf


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.0, "1"),
        (0.1, "0.1"),
        (1e-5, "1e-05"),
        (math.inf, "∞"),
        (1e22, "1e+22"),
        (1 / 3, "0.3333333333333333"),
    ],
)
def test_printing_a_number_keeps_every_digit(value, words):
    assert text(value) == words
    assert value == math.inf or float(text(value)) == value


THRESHOLDS = st.floats(1e-140, 1e140)


@given(THRESHOLDS, st.sampled_from([1e-3, 1.0, 1e6]), st.sampled_from([2.0, 16.0]))
def test_the_largest_holds_and_the_next_float_does_not(threshold, start, factor):
    found = largest(lambda x: x <= threshold, start=start, factor=factor)
    assert found == threshold


@given(THRESHOLDS, st.sampled_from([1e-3, 1.0, 1e6]), st.sampled_from([2.0, 4.0]))
def test_the_smallest_holds_and_the_float_before_does_not(threshold, start, factor):
    assert smallest(lambda x: x >= threshold, start=start, factor=factor) == threshold


@given(THRESHOLDS, st.sampled_from([1e-2, 1e-9]))
def test_a_coarse_answer_is_on_the_safe_side_and_as_close_as_asked_for(threshold, precision):
    low = largest(lambda x: x <= threshold, precision=precision, middle=geometric)
    high = smallest(lambda x: x >= threshold, precision=precision)
    assert threshold * (1.0 - 1.1 * precision) <= low <= threshold <= high <= threshold * (1.0 + 1.1 * precision)


def test_the_ends_are_kept():
    assert largest(lambda x: True, most=8.5) == 8.5
    assert largest(lambda x: x <= 1e-3, least=1e-2) is None
    assert largest(lambda x: x <= 1e-2, least=1e-2) == 1e-2
    assert smallest(lambda x: True, least=0.3) == 0.3
    assert smallest(lambda x: x >= 9.0, most=8.5) is None


def test_a_bracket_closes_on_either_side_and_may_begin_at_zero():
    true, false = narrowed(lambda x: x >= math.pi, true=100.0, false=0.0)
    assert true == math.pi
    assert false == math.nextafter(math.pi, 0.0)


def test_no_more_is_asked_than_allowed():
    asked = []
    narrowed(lambda x: bool(asked.append(x)), true=0.0, false=1.0, steps=5)
    assert len(asked) == 5


@pytest.mark.parametrize("search", [largest, smallest])
def test_nothing_holds(search):
    assert search(lambda x: False) is None


@given(st.decimals(min_value="1e-6", max_value="100", places=4))
def test_largest_float_of_a_decimal_is_not_above_it_and_the_next_one_is(decimal):
    stated, exact = float(decimal), Fraction(decimal)
    found = at_most_stated(stated)
    assert Fraction(found) <= exact < Fraction(math.nextafter(found, math.inf)) or found == stated
    assert found in (stated, math.nextafter(stated, 0.0))


def test_infinity_is_its_own_decimal():
    assert at_most_stated(math.inf) == math.inf


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.19999999999999998, "0.2"),
        (0.2, "0.2"),
        (0.3, "0.3"),
        (0.29999999999999993, "0.29999999999999993"),
        (0.09999847412109375, "0.09999847412109375"),
    ],
)
def test_promised_number_is_shown_as_the_decimal_it_was_calibrated_to(value, words):
    assert text_up(value) == words
    assert float(words) >= value


@pytest.mark.parametrize("steep", [1e-3, 0.3, 1.0, 30.0, 1e4])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, steep: math.tanh(steep * x), lambda x, steep: x**3, lambda x, steep: -math.expm1(-min(steep, 100.0) * x),
        lambda x, steep: math.copysign(1.0, x), lambda x, steep: -math.atan(steep * x) - 0.1 * x,
    ],
)  # fmt: skip
def test_crossing_is_where_the_sign_changes(function, steep):
    for truth in (0.0131, 0.5, 0.87654321):
        asked = []
        found = crossing(
            lambda x, truth=truth, asked=asked: (asked.append(x), function(x - truth, steep))[1],
            0.0,
            1.0,
            precision=1e-12,
        )
        assert abs(found - truth) <= 2e-12 or abs(function(found - truth, steep)) < 1e-30
        assert len(asked) < 70


def test_crossing_at_an_end_is_that_end():
    assert crossing(lambda x: x, 0.0, 1.0, precision=1e-12) == 0.0
    assert crossing(lambda x: x - 1.0, 0.0, 1.0, precision=1e-12) == 1.0


def test_crossing_without_a_change_of_sign_is_refused():
    with pytest.raises(WrongCall, match="same sign"):
        crossing(lambda x: x + 1.0, 0.0, 1.0, precision=1e-12)
