"""Contract and unit: what every curve family owes its callers, and how curves add and compare."""

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

from onedraw.errors import InvalidBudget
from onedraw.privacy import (
    AtOrderCurve,
    BoundedRangeCurve,
    Curve,
    LinearCurve,
    PureCurve,
    RenyiDP,
    RepeatedCurve,
    SumCurve,
    add_curves,
)
from onedraw.privacy.curves import curve_at_most

CURVES = [
    LinearCurve(0.3),
    AtOrderCurve(8.0, 0.5),
    PureCurve(0.7),
    PureCurve(50.0),
    BoundedRangeCurve(0.7),
    BoundedRangeCurve(50.0),
    RepeatedCurve(PureCurve(0.1), 30),
    RepeatedCurve(AtOrderCurve(1.0001, 0.1), 3),
    SumCurve((LinearCurve(0.1), AtOrderCurve(4.0, 0.2), RepeatedCurve(BoundedRangeCurve(1.0), 2))),
]
ORDERS = np.concatenate([1 + np.geomspace(1e-9, 1e12, 200), [2.0, 4.0, 8.0, 1e300]])


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_one_order_gives_a_float_and_an_array_gives_the_same_numbers(curve):
    values = curve(ORDERS)
    assert isinstance(values, np.ndarray)
    assert values.shape == ORDERS.shape
    for order, value in zip(ORDERS[::7], values[::7], strict=True):
        alone = curve(float(order))
        assert isinstance(alone, float)
        assert alone == pytest.approx(value, rel=1e-13)


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_values_are_positive_never_nan_and_infinite_from_the_limit_on(curve):
    values = curve(ORDERS)
    assert not np.isnan(values).any()
    assert (values > 0).all()
    assert np.isinf(values[curve.below <= ORDERS]).all()
    assert np.isfinite(values[curve.below > ORDERS]).all()
    assert curve(math.inf) == math.inf


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_a_curve_never_decreases(curve):
    values = curve(np.sort(ORDERS))
    finite = values[np.isfinite(values)]
    assert (np.diff(finite) >= -1e-6 * finite[:-1]).all()


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_a_curve_stays_within_its_limit_and_its_slope(curve):
    values = curve(ORDERS)
    inside = np.isfinite(values)
    assert (values[inside] <= curve.limit * (1 + 1e-12)).all()
    assert (values[inside] <= curve.slope * ORDERS[inside] * (1 + 1e-12)).all()


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_a_curve_survives_json(curve):
    assert Curve.from_dict(json.loads(json.dumps(curve.to_dict(), allow_nan=False))) == curve


@pytest.mark.parametrize("order", [1.0, 0.5, -2.0, math.nan])
def test_an_order_of_one_or_less_is_refused(order):
    with pytest.raises(InvalidBudget, match="above 1"):
        LinearCurve(1.0)(order)
    with pytest.raises(InvalidBudget, match="above 1"):
        LinearCurve(1.0)(np.array([2.0, order]))


def test_one_pair_is_finite_at_its_order_and_infinite_just_above():
    curve = AtOrderCurve(8.0, 0.5)
    assert curve(8.0) == 0.5 == curve(1.5)
    assert curve(math.nextafter(8.0, 9.0)) == math.inf


def test_the_limit_of_a_promise_is_the_smaller_of_the_two():
    promise = RenyiDP(AtOrderCurve(8.0, 0.5), below=3.0)
    assert promise.limit == 3.0
    assert promise.at_order(2.9) == 0.5
    assert promise.at_order(3.0) == math.inf


def test_equal_curves_are_counted_and_lines_added_exactly():
    curves = [(LinearCurve(2.0**-7), 400), (PureCurve(0.1), 2), (RepeatedCurve(PureCurve(0.1), 3), 1)]
    assert add_curves(curves) == SumCurve((LinearCurve(3.125), RepeatedCurve(PureCurve(0.1), 5)))
    assert add_curves([(LinearCurve(0.5), 1), (SumCurve((LinearCurve(0.25),)), 1)]) == LinearCurve(0.75)


def test_a_sum_is_the_sum():
    parts = (LinearCurve(0.1), PureCurve(0.5), BoundedRangeCurve(2.0))
    total = SumCurve(parts)
    for order in (1.01, 2.0, 30.0):
        assert total(order) == pytest.approx(sum(part(order) for part in parts), rel=1e-12)
        assert total(order) >= math.fsum(part(order) for part in parts)
    assert RepeatedCurve(PureCurve(0.5), 7)(3.0) == pytest.approx(7 * PureCurve(0.5)(3.0), rel=1e-12)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        (LinearCurve(0.1), LinearCurve(0.2)),
        (PureCurve(0.5), LinearCurve(0.125)),
        (BoundedRangeCurve(0.5), PureCurve(0.5)),
        (RepeatedCurve(PureCurve(0.5), 2), RepeatedCurve(PureCurve(0.5), 3)),
        (RepeatedCurve(PureCurve(0.4), 2), RepeatedCurve(PureCurve(0.5), 2)),
        (PureCurve(0.4), SumCurve((LinearCurve(0.1), PureCurve(0.5)))),
        (
            SumCurve((PureCurve(0.4), AtOrderCurve(3.0, 0.1))),
            SumCurve((AtOrderCurve(3.0, 0.1), PureCurve(0.5))),
        ),
        (RepeatedCurve(PureCurve(1.0), 2), LinearCurve(1.0)),
        (AtOrderCurve(2.0, 1.0), SumCurve((PureCurve(0.5), AtOrderCurve(2.0, 1.0)))),
        (LinearCurve(0.1), AtOrderCurve(3.0, 0.5)),
        (RepeatedCurve(LinearCurve(0.5), 2), SumCurve((LinearCurve(1.0), PureCurve(0.5)))),
        (SumCurve((LinearCurve(0.5), PureCurve(0.5))), LinearCurve(0.625)),
    ],
)
def test_a_smaller_curve_is_recognised(smaller, larger):
    assert curve_at_most(smaller, larger)
    assert not curve_at_most(larger, smaller)
    assert (smaller(ORDERS[::5]) <= larger(ORDERS[::5]) * (1 + 1e-6)).all()


def test_lines_are_compared_without_rounding():
    assert not curve_at_most(LinearCurve(0.30000000000000004), RepeatedCurve(LinearCurve(0.1), 3))
    assert curve_at_most(LinearCurve(0.3), RepeatedCurve(LinearCurve(0.1), 3))


def test_curves_that_cross_are_not_ordered():
    line, pair = LinearCurve(0.1), AtOrderCurve(8.0, 0.5)
    assert not curve_at_most(line, pair)
    assert not curve_at_most(pair, line)


def test_an_empty_sum_and_a_count_of_zero_are_refused():
    with pytest.raises(InvalidBudget, match="at least one curve"):
        SumCurve(())
    with pytest.raises(InvalidBudget, match="at least 1"):
        RepeatedCurve(LinearCurve(1.0), 0)
    with pytest.raises(InvalidBudget, match="whole number"):
        RepeatedCurve(LinearCurve(1.0), 1.5)


@pytest.mark.parametrize("stored", [{"family": "unheard-of"}, {}, [], None, {"family": "linear"}])
def test_an_unknown_family_or_a_missing_parameter_is_refused(stored):
    with pytest.raises(InvalidBudget):
        Curve.from_dict(stored)


def test_two_families_cannot_share_a_name():
    with pytest.raises(InvalidBudget, match="rename"):

        class Impostor(Curve, tag="linear"):
            def values(self, orders):
                return orders


def test_a_family_that_goes_wrong_fails_closed():
    @dataclass(frozen=True)
    class Broken(Curve):
        def values(self, orders):
            return np.full(orders.shape, math.nan)

    assert Broken()(2.0) == math.inf
    assert RenyiDP(Broken()).epsilon(1e-5) == math.inf
