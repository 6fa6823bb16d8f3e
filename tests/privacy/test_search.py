"""The search for the largest and smallest admissible number: what it returns always holds."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onedraw.privacy.search import geometric, largest, narrowed, smallest

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
