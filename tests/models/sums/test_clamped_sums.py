"""Sums of records: exact, order-free, and deaf to whatever a record contains."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onedraw.data import Schema, read
from onedraw.errors import InvalidModel
from onedraw.models import BetaBernoulli, DirichletCategorical, GammaExponential, GammaPoisson, GaussianMean
from onedraw.models.batches import BATCH_ROWS
from onedraw.models.sums.clamped_sums import RADIUS_STEPS, STEPS, BallSum

MODELS = [
    BetaBernoulli(),
    BetaBernoulli(lower=-3.0, upper=7.3, missing=0.1),
    DirichletCategorical([1.0, 2.0, 0.5], missing=1),
    GaussianMean(bound=2.5, variance=1.0, prior_count=1.0),
    GaussianMean(bound=1.7, variance=1.0, prior_count=1.0, centre=40.0),
    GammaPoisson((1.0, 1.0), cap=9, missing=2),
    GammaExponential((1.0, 1.0), cap=3.3, missing=0.7),
]
BALL = GaussianMean(bound=1.3, variance=1.0, prior_count=1.0, dim=3, centre=(0.0, 1.0, -5.0))

anything = st.one_of(
    st.floats(),
    st.integers(),
    st.booleans(),
    st.none(),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.complex_numbers(),
    st.decimals(),
    st.lists(st.floats(), max_size=2),
    st.sampled_from([object(), 10**400, np.datetime64("2026-01-01"), pd.NA, np.array([1.0]), Decimal("0.5"), {}]),
)


def by_name(model):
    return type(model).__name__


@settings(max_examples=150, deadline=None)
@given(st.lists(anything, min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_no_record_fails_and_no_order_matters(records, random):
    shuffled = random.sample(records, len(records))
    for model in [*MODELS, BALL]:
        assert model.summarise(shuffled) == model.summarise(records)
        assert model.summarise(records).n == len(records)


@settings(max_examples=150, deadline=None)
@given(st.lists(anything, min_size=1, max_size=20), anything)
def test_replacing_a_record_moves_the_sum_by_no_more_than_stated(records, replacement):
    """Exactly: in rational arithmetic, without a tolerance."""
    for model in MODELS:
        before, after = model.summarise(records).total, model.summarise([replacement, *records[1:]]).total
        limit = Fraction(model.bounds["sensitivity"].value)
        assert all(abs(p - q) <= limit for p, q in zip(before, after, strict=True))
    before, after = BALL.summarise(records).total, BALL.summarise([replacement, *records[1:]]).total
    distance = sum((p - q) ** 2 for p, q in zip(before, after, strict=True))
    assert distance <= Fraction(BALL.bounds["sensitivity"].value) ** 2


@settings(max_examples=100, deadline=None)
@given(st.lists(anything, min_size=1, max_size=20))
def test_what_a_record_counts_as_does_not_depend_on_the_others(records):
    for model in [*MODELS, BALL]:
        alone = [model.summarise([record]).total for record in records]
        assert model.summarise(records).total == tuple(map(sum, zip(*alone, strict=True)))


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_]), st.integers(1, 50)))
def test_an_array_and_a_list_of_the_same_numbers_give_the_same_sum(array):
    for model in MODELS:
        assert model.summarise(array) == model.summarise(array.tolist())
        assert model.summarise(pd.Series(array)) == model.summarise(array)


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_batches_add_up(model):
    values = np.random.default_rng(3).normal(2.0, 3.0, 3 * BATCH_ROWS + 17)
    values[::1000] = math.nan
    values[1::1000] = math.inf
    whole, parts = model.summarise(values), [model.summarise(part) for part in np.array_split(values, 7)]
    assert whole.n == values.size
    assert whole.total == tuple(map(sum, zip(*(part.total for part in parts), strict=True)))


def test_a_floating_point_sum_would_have_been_caught():
    """The planted fault: adding the clamped floats depends on their order, the exact sum does not."""
    values = np.random.default_rng(1).random(100_000)
    assert float(np.cumsum(values)[-1]) != float(np.cumsum(values[::-1])[-1])
    assert BetaBernoulli().summarise(values) == BetaBernoulli().summarise(values[::-1].copy())


def test_statistics_are_clamped_and_rounded_to_the_public_lattice():
    (total,) = BetaBernoulli().summarise([0.25, 1.0, 7.0, -1.0, math.inf, -math.inf]).total
    assert total == Fraction(1, 4) + 1 + 1 + 0 + 0 + 0  # infinities are missing records
    (total,) = BetaBernoulli().summarise([1 / 3]).total
    assert total == Fraction(round(STEPS / 3), STEPS)
    (total,) = BetaBernoulli(lower=10.0, upper=20.0).summarise([10.0, 12.5, 20.0, 35.0]).total
    assert total == Fraction(9, 4)


def test_what_is_not_a_number_counts_as_the_declared_missing_value():
    garbage = [None, math.nan, "x", object(), [1, 2]]
    assert BetaBernoulli().summarise(garbage).total == (0,)
    assert BetaBernoulli(missing=0.5).summarise(garbage).total == (Fraction(5, 2),)
    assert DirichletCategorical([1, 1, 1], missing=2).summarise([*garbage, -1, 3, 0.5, 1.0]).total == (
        0,
        1,
        8,
    )
    assert GammaPoisson((1, 1), cap=9, missing=4).summarise(garbage).total == (20,)
    assert GammaExponential((1, 1), cap=8.0, missing=2.0).summarise(garbage).total == (10,)
    assert GaussianMean(1.0, 1.0, 1.0, centre=50.0).summarise(garbage).total == (0,)


def test_counts_are_clipped_and_rounded():
    assert GammaPoisson((1, 1), cap=5).summarise([0, 1, 2.4, 4.6, 99, -3, math.inf]).total == (
        0 + 1 + 2 + 5 + 5 + 0 + 0,
    )
    assert GammaPoisson((1, 1), cap=300).summarise(np.array([200, 255], dtype=np.uint8)).total == (455,)


def test_a_mean_is_summed_around_its_centre():
    model = GaussianMean(bound=4.0, variance=1.0, prior_count=1.0, centre=10.0)
    assert model.summarise([10.0, 12.0, 99.0, -99.0, 9.0]).total == (0 + 2 + 4 - 4 - 1,)


@settings(max_examples=100, deadline=None)
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 20), st.just(4)), elements=st.floats()),
    st.floats(1e-3, 1e6),
)
def test_no_vector_leaves_the_ball_even_after_rounding(rows, radius):
    for row in rows:
        steps = BallSum((0.0,) * 4, radius).of_block(row[np.newaxis], np.ones(1))
        assert sum(int(step) ** 2 for step in steps) <= RADIUS_STEPS**2


def test_vectors_are_scaled_onto_the_ball_in_their_direction():
    model = GaussianMean(bound=2.0, variance=1.0, prior_count=1.0, dim=2)
    inside = [float(value) for value in model.summarise([[0.3, -0.4]]).total]
    outside = [float(value) for value in model.summarise([[300.0, -400.0]]).total]
    assert inside == pytest.approx([0.3, -0.4], abs=2e-9)
    assert outside == pytest.approx([1.2, -1.6], abs=2e-9)
    assert model.summarise([[1e308, 0.0], [math.inf, 0.0]]).total == pytest.approx((2.0, 0.0), abs=2e-9)
    assert model.summarise([[1.0], None, "ab", [1, 2, 3]]).total == (0, 0)


def test_masked_and_nullable_values_are_missing():
    masked = np.ma.array([1.0, 1.0, 1.0], mask=[False, True, False])
    assert BetaBernoulli().summarise(masked).total == (2,)
    assert BetaBernoulli().summarise(pd.Series([1, None, 1], dtype="Int64")).total == (2,)
    ball = GaussianMean(bound=5.0, variance=1.0, prior_count=1.0, dim=2)
    rows = np.ma.array([[1.0, 2.0], [1.0, 2.0]], mask=[[False, True], [False, False]])
    assert ball.summarise(rows).total == pytest.approx((2.0, 2.0), abs=1e-8)


def test_a_summary_does_not_show_its_records():
    assert "<private>" in repr(BetaBernoulli().summarise([1.0, 0.0]))
    assert "0.125" not in repr(BetaBernoulli().summarise([0.125]))
    assert repr(BetaBernoulli().summarise([1.0])) == repr(BetaBernoulli().summarise([0.0]))


# ── what is public about the data is checked before a record is read ───────────────────────────────────────

SCHEMA = Schema.from_dict(
    {
        "dataset": "test",
        "columns": {
            "smoker": {"kind": "binary", "missing": "no"},
            "age": {"kind": "number", "lower": 0, "upper": 120, "missing": 50},
            "kind": {"kind": "category", "levels": ["a", "b", "c"], "missing": "c"},
            "visits": {"kind": "count", "cap": 20, "missing": 0},
        },
    }
)
TABLE = {
    "smoker": ["yes", "no", "yes", None],
    "age": [30.0, 60.0, 500.0, None],
    "kind": ["a", "b", "zzz", "b"],
    "visits": [1, 2, 99, -1],
}


def records(target):
    return read(TABLE, SCHEMA, target=target)


def test_records_are_summed_as_their_schema_encodes_them():
    assert BetaBernoulli().summarise(records("smoker")).total == (2,)
    assert DirichletCategorical([1, 1, 1]).summarise(records("kind")).total == (1, 2, 1)
    assert GammaPoisson((1, 1), cap=20).summarise(records("visits")).total == (1 + 2 + 20 + 0,)
    for model, total in (
        (BetaBernoulli(upper=120.0), (30 + 60 + 120 + 50) / 120),
        (GaussianMean(60.0, 1.0, 1.0, centre=60.0), -30 + 0 + 60 - 10),
        (GammaExponential((1, 1), cap=120.0), 30 + 60 + 120 + 50),
    ):
        summary = model.summarise(records("age"))
        assert summary.n == 4
        assert float(summary.total[0]) == pytest.approx(total, abs=1e-7)


def test_records_of_several_columns_become_vectors():
    columns = {name: SCHEMA.to_dict()["columns"][name] for name in ("age", "visits")}
    schema = Schema.from_dict({"dataset": "test", "columns": columns})
    model = GaussianMean(bound=1000.0, variance=1.0, prior_count=1.0, dim=2)
    total = model.summarise(read(TABLE, schema)).total
    assert [float(value) for value in total] == pytest.approx([260.0, 23.0], abs=1e-5)


@pytest.mark.parametrize(
    ("model", "target", "words"),
    [
        (BetaBernoulli(), "kind", "binary or number"),
        (BetaBernoulli(), "age", "upper=120"),
        (DirichletCategorical([1, 1]), "kind", "3 levels"),
        (DirichletCategorical([1, 1]), "age", "category or binary"),
        (GammaPoisson((1, 1), cap=20), "age", "count"),
        (GammaExponential((1, 1), cap=20.0), "kind", "number or count"),
        (GaussianMean(1.0, 1.0, 1.0), "kind", "number"),
        (GaussianMean(1.0, 1.0, 1.0, dim=2), "age", "column"),
        (BetaBernoulli(), None, "Name a target"),
    ],
)
def test_a_column_that_does_not_fit_is_refused_with_the_remedy(model, target, words):
    with pytest.raises(InvalidModel, match=words):
        model.check(records(target))
    with pytest.raises(InvalidModel, match=words):
        model.summarise(records(target))


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (BetaBernoulli(), np.zeros((3, 2))),
        (BetaBernoulli(), pd.DataFrame({"a": [1.0], "b": [2.0]})),
        (BetaBernoulli(), np.float64(1.0)),
        (BetaBernoulli(), iter([1.0])),
        (GaussianMean(1.0, 1.0, 1.0, dim=2), np.zeros(4)),
        (GaussianMean(1.0, 1.0, 1.0, dim=2), np.zeros((4, 3))),
    ],
)
def test_data_of_the_wrong_shape_are_refused(model, data):
    with pytest.raises(InvalidModel):
        model.summarise(data)
