"""Records on their way into a convex model: bounded whatever they hold, each on its own, never a reason to fail."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onedraw.data import Schema, read
from onedraw.errors import InvalidModel
from onedraw.models import (
    Gaussian,
    HuberRegression,
    LeastSquares,
    Logistic,
    LogitNormalBernoulli,
    Quantile,
    Softmax,
    schema_features,
)

PRIOR = Gaussian(scale=1.0)
BALL = Gaussian(scale=1.0, radius=2.0)

NORM = Logistic(2, data_norm=1.5, prior=PRIOR)
BOXED = Logistic(2, bounds=((-1.0, 0.5), (2.0, 1.0)), prior=PRIOR)
SQUARES = LeastSquares(2, data_norm=1.5, response_bound=2.0, prior=BALL)
CLASSES = Softmax(2, data_norm=1.5, classes=["a", "b", 3], prior=PRIOR)

garbage = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.none(),
    st.text(max_size=3),
    st.integers(-(10**400), 10**400),
    st.booleans(),
    st.just(object()),
    st.complex_numbers(allow_nan=True),
    st.binary(max_size=2),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.integers(), st.integers(), max_size=1),
)
rows = st.one_of(st.lists(garbage, min_size=2, max_size=2), st.lists(garbage, max_size=4), garbage)
labels = st.one_of(garbage, st.sampled_from(["a", "b", 3, 0, 1, -1]))


def exact_norm_squared(row):
    return sum(Fraction(value) ** 2 for value in row)


def assert_inside(model, encoded):
    assert encoded.X.dtype == encoded.y.dtype == np.float64
    assert np.all(np.isfinite(encoded.X))
    assert np.all(encoded.X[:, -1] == 1.0)
    for row in encoded.X[:, :-1].tolist():
        if model.features.box is None:
            assert exact_norm_squared(row) <= Fraction(model.features.data_norm) ** 2
        else:
            low, high = model.features.box
            assert all(lo <= value <= hi for lo, value, hi in zip(low, row, high, strict=True))
    lower, upper = model.response.interval
    assert np.all((encoded.y >= lower) & (encoded.y <= upper))


@pytest.mark.parametrize("model", [NORM, BOXED, SQUARES, CLASSES], ids=lambda model: type(model).__name__)
@given(data=st.data())
def test_no_record_makes_encoding_fail_or_leaves_the_bounds(model, data):
    n = data.draw(st.integers(1, 5))
    X = data.draw(st.lists(rows, min_size=n, max_size=n))
    y = data.draw(st.lists(labels, min_size=n, max_size=n))
    encoded = model.summarise((X, y))
    assert encoded.n == n
    assert encoded.X.shape == (n, 3)
    assert_inside(model, encoded)


@pytest.mark.parametrize("model", [NORM, BOXED, SQUARES, CLASSES], ids=lambda model: type(model).__name__)
@given(data=st.data())
def test_one_record_never_affects_the_row_of_another(model, data):
    n = data.draw(st.integers(2, 5))
    X = data.draw(st.lists(rows, min_size=n, max_size=n))
    y = data.draw(st.lists(labels, min_size=n, max_size=n))
    place = data.draw(st.integers(0, n - 1))
    before = model.summarise((X, y))
    X[place], y[place] = data.draw(rows), data.draw(labels)
    after = model.summarise((X, y))
    others = np.arange(n) != place
    np.testing.assert_array_equal(before.X[others], after.X[others])
    np.testing.assert_array_equal(before.y[others], after.y[others])
    alone = model.summarise(([X[place]], [y[place]]))
    np.testing.assert_array_equal(alone.X[0], after.X[place])
    np.testing.assert_array_equal(alone.y[0], after.y[place])


@given(
    st.lists(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=2, max_size=2), min_size=1, max_size=8)
)
def test_arrays_and_lists_are_encoded_alike(values):
    y = [1.0] * len(values)
    for model in (NORM, BOXED):
        from_list, from_array = model.summarise((values, y)), model.summarise((np.array(values), np.array(y)))
        np.testing.assert_array_equal(from_list.X, from_array.X)


def test_rows_inside_the_bounds_are_kept_and_others_are_moved():
    inside = np.array([[0.3, 0.6], [-0.9, 1.0]])
    np.testing.assert_allclose(NORM.summarise((inside, [1, 0])).X[:, :-1], inside, rtol=1e-15)
    np.testing.assert_array_equal(BOXED.summarise((inside, [1, 0])).X[:, :-1], inside)
    outside = np.array([[30.0, 40.0], [np.inf, 0.0], [np.nan, np.nan], [-np.inf, np.nan], [1e308, -1e308]])
    scaled = NORM.summarise((outside, [0] * 5)).X[:, :-1]
    half = 1.5 / np.sqrt(2)
    np.testing.assert_allclose(scaled, [[0.9, 1.2], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [half, -half]], rtol=1e-11)
    clamped = BOXED.summarise((outside, [0] * 5)).X[:, :-1]
    np.testing.assert_array_equal(clamped, [[2.0, 1.0], [0.0, 0.5], [0.0, 0.5], [0.0, 0.5], [2.0, 0.5]])


def test_labels_become_signs_or_codes():
    X = np.zeros((6, 2))
    assert NORM.summarise((X, [0, 1, -1, 1.0, np.nan, 7])).y.tolist() == [-1, 1, -1, 1, -1, -1]
    assert NORM.summarise((X, np.array([0, 1, 1, 0, 0, 1], bool))).y.tolist() == [-1, 1, 1, -1, -1, 1]
    named = Logistic(2, data_norm=1.0, classes=["well", "ill"], prior=PRIOR)
    assert named.summarise((X, ["ill", "well", "", None, "ILL", "ill"])).y.tolist() == [1, -1, -1, -1, -1, 1]
    assert named.summarise((X, np.array(["ill"] * 6))).y.tolist() == [1] * 6
    assert CLASSES.summarise((X, ["a", "b", 3, "3", None, 3.0])).y.tolist() == [0, 1, 2, 2, 0, 2]
    numbers = Softmax(2, data_norm=1.0, classes=[10, 20, 2.5], prior=PRIOR)
    assert numbers.summarise((X, np.array([10, 20, 2.5, np.nan, 0, 20.0]))).y.tolist() == [0, 1, 2, 0, 0, 1]


def test_responses_are_clamped_and_unreadable_ones_become_the_value_nearest_to_zero():
    X = np.zeros((5, 2))
    assert SQUARES.summarise((X, [1e300, -1e300, np.inf, "x", 0.5])).y.tolist() == [2.0, -2.0, 0.0, 0.0, 0.5]
    assert Quantile(2, data_norm=1.5, prior=BALL).summarise((X, [1e300, -3.7, 9.0, 0.1, 0.2])).y[0] < 4.0
    free = HuberRegression(2, data_norm=1.5, threshold=1.0, prior=PRIOR)
    assert 1e6 < free.summarise((X, [1e300] * 5)).y[0] < 1e8


def test_a_proportion_takes_its_values_alone():
    model = LogitNormalBernoulli(variance=1.0)
    encoded = model.summarise([1, 0, 1, None])
    assert encoded.X.tolist() == [[1.0]] * 4
    assert encoded.y.tolist() == [1, -1, 1, -1]
    assert model.count([1, 0]) == 2


def test_one_feature_may_come_as_a_plain_column():
    model = Logistic(1, data_norm=1.0, prior=PRIOR)
    for column in (
        [0.5, -0.5],
        np.array([0.5, -0.5]),
        [[0.5], [-0.5]],
        np.array([[0.5], [-0.5]]),
        pd.Series([0.5, -0.5]),
    ):
        np.testing.assert_allclose(model.summarise((column, [1, 0])).X, [[0.5, 1.0], [-0.5, 1.0]], rtol=1e-15)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_are_read_as_matrices(frame):
    table = frame({"a": [0.5, 0.25], "b": [None, 1.0]})
    encoded = NORM.summarise((table, [1, 0]))
    np.testing.assert_allclose(encoded.X[:, :-1], [[0.5, 0.0], [0.25, 1.0]], rtol=1e-15)
    assert NORM.count((table, [1, 0])) == 2


def test_encoded_arrays_cannot_be_changed():
    encoded = NORM.summarise((np.zeros((2, 2)), [0, 1]))
    for array in (encoded.X, encoded.y):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


# Schemas

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 50},
            "sex": {"kind": "category", "levels": ["f", "m", "x"], "missing": "x"},
            "smoker": {"kind": "binary", "missing": "no"},
            "visits": {"kind": "count", "cap": 5, "missing": 0},
            "ill": {"kind": "binary", "levels": ["well", "ill"], "missing": "well"},
            "dose": {"kind": "number", "lower": -1, "upper": 1, "missing": 0},
        }
    }
)
TABLE = {
    "age": [30, 150, None],
    "sex": ["f", "m", "?"],
    "smoker": ["yes", "no", "yes"],
    "visits": [2, 9, -1],
    "ill": ["ill", "well", "who knows"],
    "dose": [0.5, -3, 0.25],
}
NAMES = ("age", "sex=m", "sex=x", "smoker=yes", "visits", "dose")


def test_records_of_a_schema_become_named_features():
    model = Logistic(**schema_features(SCHEMA, "ill"), prior=PRIOR)
    assert model.parameter_names == (*NAMES, "intercept")
    assert model.features.box == ((0, 0, 0, 0, 0, -1), (100, 1, 1, 1, 5, 1))
    records = read(TABLE, SCHEMA, target="ill")
    encoded = model.summarise(records)
    expected = [[30, 0, 0, 1, 2, 0.5, 1], [100, 1, 0, 0, 5, -1, 1], [50, 0, 1, 1, 0, 0.25, 1]]
    np.testing.assert_array_equal(encoded.X, expected)
    assert encoded.y.tolist() == [1.0, -1.0, -1.0]
    assert model.count(records) == 3


def test_the_same_records_serve_regression_softmax_and_a_proportion():
    numbers = HuberRegression(**schema_features(SCHEMA, "dose"), threshold=1.0, prior=PRIOR)
    assert numbers.summarise(read(TABLE, SCHEMA, target="dose")).y.tolist() == [0.5, -1.0, 0.25]
    sexes = Softmax(**schema_features(SCHEMA, "sex"), classes=["f", "m", "x"], prior=PRIOR)
    assert sexes.summarise(read(TABLE, SCHEMA, target="sex")).y.tolist() == [0, 1, 2]
    share = LogitNormalBernoulli(variance=1.0, classes=["well", "ill"])
    assert share.summarise(read(TABLE, SCHEMA, target="ill")).y.tolist() == [1, -1, -1]


@pytest.mark.parametrize(
    ("model", "target", "words"),
    [
        (Logistic(2, data_norm=1.0, prior=PRIOR), "ill", "gives 6 besides the target"),
        (Logistic(6, data_norm=1.0, prior=PRIOR), None, "needs a target"),
        (Logistic(6, data_norm=1.0, prior=PRIOR), "dose", "declared as binary or category"),
        (Logistic(5, data_norm=1.0, prior=PRIOR), "sex", "two levels"),
        (Logistic(6, data_norm=1.0, classes=["ill", "well"], prior=PRIOR), "ill", "same order"),
        (Logistic(6, data_norm=1.0, feature_names=list("abcdef"), prior=PRIOR), "ill", "wrong names"),
        (HuberRegression(5, data_norm=1.0, threshold=1.0, prior=PRIOR), "sex", "declared as number"),
        (Softmax(5, data_norm=1.0, classes=["f", "m"], prior=PRIOR), "sex", "same ones in the same order"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_before_a_record_is_read(model, target, words):
    with pytest.raises(InvalidModel, match=words):
        model.check(read(TABLE, SCHEMA, target=target))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (np.zeros((3, 2)), "pair"),
        ((np.zeros((3, 5)), [0, 1, 0]), r"shape \(n, 2\)"),
        ((np.zeros((3, 2)), [0, 1]), "3 rows and y 2"),
        ((np.zeros((3, 2)), np.zeros((3, 1))), "one number or label per record"),
        ((iter([]), [0]), "length"),
        ((np.zeros((3, 2)), 5), "array or a list"),
    ],
)
def test_containers_of_the_wrong_shape_are_refused(data, words):
    with pytest.raises(InvalidModel, match=words):
        NORM.summarise(data)
