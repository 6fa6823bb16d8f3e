"""Every model has an example, and what its records add up to moves by no more than it states, and by as much (model.py)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from onedraw.errors import InvalidModel
from onedraw.models import (
    CategoryTable,
    ClassifierScores,
    ColumnQuantiles,
    Columns,
    ConjugateModel,
    DirichletCategorical,
    Grouped,
    MagnitudeTable,
    Model,
    ModelChoice,
    NumberTable,
    Table,
)
from onedraw.models.moments.measured_model import MeasuredModel
from onedraw.models.tables.scores import LOSS_STEPS, Judged, Losses
from onedraw.privacy import Provenance
from tests.models.members import examples, model_classes, name_of

pytestmark = pytest.mark.contract

EXTREMES = (0.0, -0.0, 0.3, 1.0, 2.0, 2.6, 5.0, 10.0, -1.0, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan)
"""Raw numbers of one record."""


# Examples


@pytest.mark.parametrize("kind", model_classes(), ids=name_of)
def test_example_of_every_model_is_of_its_class_and_can_be_stored(kind):
    example = kind.example()
    assert type(example) is kind
    if kind is not MeasuredModel:  # made by a plan, never stored
        assert Model.from_dict(example.to_dict()) == example


@pytest.mark.parametrize("kind", model_classes(), ids=name_of)
def test_example_of_every_model_states_bounds_with_a_reason(kind):
    bounds = kind.example().bounds
    assert bounds
    for bound in bounds.values():
        assert isinstance(bound.provenance, Provenance)
        assert bound.why


def test_model_without_an_example_is_refused():
    class Bare(Model):
        """A model that forgot its example."""

    with pytest.raises(NotImplementedError, match="Bare has no example"):
        Bare.example()


@pytest.mark.finding("house 2", commit="8a7c0fb")
def test_models_that_the_lists_left_out_have_examples():
    """LogCoshRegression and CountRegression stood in no list of tests."""
    examples = {kind.__name__: kind.example() for kind in model_classes()}
    assert len(examples) >= 34
    assert {"LogCoshRegression", "CountRegression", "LeastSquares", "NumpyroModel", "ConvexLoss"} <= set(examples)


# Conjugate families


def change_of_sum(model, first, second) -> float:
    """The largest change of an entry of Σ η(x), from raw records through the model's own reading."""
    sums = (model.added(model.summarise(list(rows))) for rows in (first, second))
    return max(float(abs(one - other)) for one, other in zip(*sums, strict=True))


def check_sum(model, records=1):
    """Raise unless the sum moves by at most k times the stated sensitivity, and by as much for some records."""
    bound = records * model.bounds["sensitivity"].value
    rest = [0.0, 1.0, math.nan]
    rows = [[value] * records + rest for value in EXTREMES]
    found = max(change_of_sum(model, *pair) for pair in itertools.combinations(rows, 2))
    assert found <= bound, f"sum: {found} found, {bound} stated"
    assert found >= 0.99 * bound, f"sum: only {found} found, {bound} stated"


@pytest.mark.parametrize("records", [1, 2])
@pytest.mark.parametrize("kind", model_classes(ConjugateModel), ids=name_of)
def test_sum_of_every_family_moves_by_its_sensitivity(kind, records):
    check_sum(kind.example(), records)


@pytest.mark.parametrize("kind", model_classes(ConjugateModel), ids=name_of)
def test_share_of_every_family_is_what_the_exact_sum_adds(kind):
    model = kind.example()
    for value in (0.0, 1.0, 2.0) if kind is DirichletCategorical else (0.0, 1.0):
        assert model.share(value) == tuple(map(float, model.added(model.summarise([value]))))


@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("kind", model_classes(ConjugateModel), ids=name_of)
def test_family_with_another_sensitivity_is_noticed(kind, factor, monkeypatch):
    example = kind.example()
    change_bound(monkeypatch, example, "sensitivity", factor)
    with pytest.raises(AssertionError, match="sum:"):
        check_sum(example)


def change_bound(monkeypatch, model, name, factor):
    """State `factor` times a bound."""
    bounds = dict(model.bounds)
    bounds[name] = type(bounds[name])(factor * bounds[name].value, bounds[name].provenance, bounds[name].why)
    monkeypatch.setattr(type(model), "bounds", bounds)


# Tables

SEXES = {"by": ("sex",), "groups": (("f", "m"),)}

TABLES = [
    *examples(Table),
    *(NumberTable(-3.0, 5.0, show=show, **groups) for show in ("sum", "variance", "rate") for groups in ({}, SEXES)),
    NumberTable(-3.0, 5.0, **SEXES, sizes=(3, 1)),
    CategoryTable(("a", "b"), **SEXES),
    CategoryTable(("a", "b", "c"), **SEXES, sizes=(3, 1)),
    ClassifierScores(("a", "b", "c")),
    MagnitudeTable(("a", "b", "c")),
]


def table_name(table) -> str:
    return f"{name_of(table)} {table.show if hasattr(table, 'show') else ''} {table.cells} {table.sizes}"


def records_of(table):
    """Raw records: a number, a code, a number with a group, or what a record was with what a model said of it."""
    if isinstance(table, MagnitudeTable):
        return [(value,) * len(table.names) for value in (*EXTREMES, 2.0**-10, 2.0**40)]
    if hasattr(table, "show"):
        groups = range(table.cells) if table.sizes is None else [0]
        fine = [*EXTREMES, *np.linspace(-3.0, 10.0, 27)] if isinstance(table, NumberTable) else EXTREMES
        return list(itertools.product(fine, groups if table.groups else [0]))
    return list(itertools.product([*EXTREMES, -0.5, 0.5], repeat=2))


def sums_of(table, rows):
    """The exact sums of a data set, from raw records through the table's own reading."""
    if isinstance(table, MagnitudeTable):
        width = len(table.names)
        matrix = np.array([(*row, *row)[:width] if len(row) < width else row for row in rows], dtype=float)
        return np.array(table.summarise(matrix).total, dtype=object)
    values, others = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if not hasattr(table, "show"):
        return np.array(
            table.summarise(Judged(len(rows), lambda: np.stack([values, others], axis=1))).total, dtype=object
        )
    return np.array(table.summarise(Grouped(values, (others,)) if table.groups else values).total, dtype=object)


def check_reach(table, law, records=1):
    """Raise unless k replaced records move the weighted sums by at most k times the stated reach, and by nearly as much."""
    rest = [(0.0, 0), (2.0, 1 if table.sizes else 0), (math.nan, 0)][: 4 - records] if table.sizes else [(0.0, 0)]
    weights = np.array(table.weights(law) * table.cells, dtype=object)
    sums = {repr(row): sums_of(table, [row] * records + rest) * weights for row in records_of(table)}
    different = list({tuple(one): one for one in sums.values()}.values())
    changes = (first - second for first, second in itertools.combinations(different, 2))
    found = max(sum(abs(c) for c in one) if law == "laplace" else sum(c * c for c in one) for one in changes)
    bound = (records if law == "laplace" else records**2) * table.reach(law)
    assert found <= bound, f"sums: {found} found, {bound} stated"
    assert found >= 0.9 * bound, f"sums: only {found} found, {bound} stated"


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("table", TABLES, ids=table_name)
def test_sums_of_every_table_move_as_far_as_it_says(table, law):
    check_reach(table, law)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", model_classes(Table), ids=name_of)
def test_sums_of_every_table_move_k_times_as_far_by_k_records(kind, law):
    check_reach(kind.example(), law, records=2)


@pytest.mark.finding("house 2", commit="8a7c0fb")
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("kind", model_classes(Table), ids=name_of)
def test_table_with_another_reach_is_noticed(kind, factor, law, monkeypatch):
    table, true = kind.example(), kind.reach
    monkeypatch.setattr(kind, "reach", lambda self, law: int(factor * true(self, law)))
    with pytest.raises(AssertionError, match="sums:"):
        check_reach(table, law)


@pytest.mark.parametrize("table", TABLES, ids=table_name)
def test_largest_entry_of_every_table_is_not_exceeded(table):
    """What refuses sums beyond 64 bits rests on it."""
    rest = [(0.0, 0)] * (sum(table.sizes) - 1 if table.sizes else 0)
    if table.sizes:
        rest[-1] = (0.0, 1)
    nothing = sums_of(table, [(0.0, 0), *rest])
    for law in ("laplace", "gaussian"):
        weights = np.array(table.weights(law) * table.cells, dtype=object)
        for row in records_of(table):
            entry = max(abs(int(value)) for value in (sums_of(table, [row, *rest]) - nothing) * weights)
            assert entry <= 2 * table.largest


# Quantiles, choices, columns


@pytest.mark.parametrize("records", [1, 2])
def test_counts_below_a_place_move_by_the_sensitivity(records):
    model = ColumnQuantiles.example()
    places = np.arange(model.steps + 2)
    rows = [[value] * records + [1.0, 7.5, math.nan] for value in EXTREMES]
    counts = [model.summarise(np.array(row)).below(places) for row in rows]
    found = max(int(np.abs(one - other).max()) for one, other in itertools.combinations(counts, 2))
    assert found == records * model.bounds["sensitivity"].value


@pytest.mark.parametrize("records", [1, 2])
def test_sums_of_losses_move_by_the_bound_of_a_loss(records):
    model = ModelChoice.example()
    rows = [np.array([[first, second]] * records + [[0.5, 0.5]]) for first in EXTREMES for second in (0.0, math.nan)]
    sums = [np.array(model.summarise(Losses(len(row), lambda row=row: row)).total) for row in rows]
    found = max(int(np.abs(one - other).max()) for one, other in itertools.combinations(sums, 2))
    assert found == records * LOSS_STEPS * model.bounds["loss"].value


def test_entries_of_rows_of_columns_reach_the_stated_range():
    model = Columns.example()
    rows = model.summarise(np.array(list(itertools.product(EXTREMES, repeat=2)))).X[:, : model.features.count]
    assert np.abs(rows).max() == model.bounds["range"].value


@pytest.mark.parametrize("ends", [(-1e300, 1e300), (0.0, 1e-300)])
def test_range_that_floats_cannot_divide_is_refused_as_such(ends):
    with pytest.raises(InvalidModel, match="wide"):
        NumberTable(*ends)
