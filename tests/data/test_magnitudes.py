"""Magnitudes: every number at its place on the public grid, whatever it came in."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onedraw.data import Schema
from onedraw.data.columns import Numbers, cells
from onedraw.data.magnitudes import (
    LABELS,
    LARGEST,
    LEVELS,
    MISSING,
    PLACES,
    SMALLEST,
    MagnitudeEncoder,
    ends_of,
    magnitudes_of,
)
from tests.source_cases import encoded


@pytest.mark.oracle
@given(st.floats())
def test_a_number_lies_between_the_ends_of_its_magnitude(value):
    level = int(magnitudes_of(np.array([value]))[0])
    if not math.isfinite(value):
        assert level == MISSING
        return
    low, high = ends_of(level)
    clamped = math.copysign(min(max(abs(value), 2.0**SMALLEST), 2.0**LARGEST), value) if value else 0.0
    assert low <= clamped <= high
    if value > 0 and abs(value) > 2.0**SMALLEST:
        assert low < clamped
    if value < 0 and abs(value) > 2.0**SMALLEST:
        assert clamped < high


def test_levels_are_in_the_order_of_the_numbers_and_meet_on_the_grid():
    ends = [ends_of(level) for level in range(PLACES)]
    assert all(first[1] == second[0] for first, second in itertools.pairwise(ends))
    assert (ends[0][0], ends[-1][1]) == (-(2.0**LARGEST), 2.0**LARGEST)
    assert len(set(LABELS)) == len(LABELS) == LEVELS
    powers = [sign * 2.0**k for k in range(SMALLEST, LARGEST + 1) for sign in (1, -1)]
    assert [
        ends_of(int(level))[int(power > 0)]
        for power, level in zip(powers, magnitudes_of(np.array(powers)), strict=True)
    ] == powers


def test_cells_are_read_in_bulk_as_one_by_one():
    values = [1, 0.0, -0.0, 1e300, -1e-300, math.nan, math.inf, 1024, 1024.0000000000002, -3.5]
    encoder = MagnitudeEncoder()
    assert np.array_equal(encoder.encode(Numbers(np.array(values))), encoder.encode(cells(values)))
    schema = Schema.from_dict({"columns": {"v": {"kind": "magnitude"}}})
    odd = [*map(str, values), "word", "", None, "1e400"]
    assert encoded({"v": odd}, schema) == encoded(pa.table({"v": odd}), schema)
    assert encoded({"v": odd}, schema)[-4:] == [MISSING] * 4
