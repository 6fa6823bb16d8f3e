"""The first table of a paper, in one release: which questions `describe` asks about the columns of a schema, from public numbers alone.

| column | released, in each group |
| --- | --- |
| the groups themselves | number of records |
| number, count | mean, standard deviation; quartiles and median |
| category, binary | share of each level |
| any, if missing cells are skipped | known cells, which the others are about; of all groups together the missing cells |

**The split of the budget** is a function of the schema, n and the budget. Each table has the weight 1, whatever its range and its number of
levels: a replaced record moves it by the same distance. Quartiles take five selections and have the weight 2, the power 1/3 of
their number, which makes the sum of the errors of sums and quartiles about least. Quartiles are left out where noise alone would move their ranks by more than
5 % of a group's records (groups of equal size), or where no end of an interval could be told from the declared bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from onedraw.data import Schema
from onedraw.errors import InvalidSchema, WrongCall
from onedraw.methods import AddedNoise, ExponentialQuantiles, GroupQuantiles, Mechanism, Plan, Together, calibrate
from onedraw.models import CategoryTable, Several, Table
from onedraw.privacy import Promise

from .column_questions import column_for, grouping, quantile_model, skipped_of, table_for

TABLE_WEIGHT, QUARTILES_WEIGHT = 1.0, 2.0

LARGEST_RANK_ERROR = 0.05
"""The part of a group's records by which noise may move the rank of a quartile, at most."""

QUARTILES = (0.25, 0.5, 0.75)

MEANS = {"number": "mean", "count": "rate"}
"""The question about the mean of a column, by its kind."""


def description_plan(
    schema: Schema, budget: Promise, *, n: int, by: Sequence[str] = (), columns: Sequence[str] | None = None
) -> Plan:
    """Return the plan of a description of the columns, by default of all but those of ``by``; no record is read."""
    by = tuple(by)
    names = [name for name in schema.columns if name not in by] if columns is None else list(columns)
    if not names:
        raise InvalidSchema("No column is left to describe. Declare more columns, or group by fewer.")
    for name in names:
        if names.count(name) > 1 or name in by:
            raise WrongCall(f"The column {name!r} is named twice. Name each once, in columns or in by.")
    asked = _questions(schema, names, by, quartiles=True)
    plan = _calibrated(asked, schema, budget, n)
    if plan is not None and _worst_rank(plan) <= LARGEST_RANK_ERROR and _has_ends(plan):
        return plan
    asked = _questions(schema, names, by, quartiles=False)
    found = _calibrated(asked, schema, budget, n, last=True)
    assert found is not None
    return found


Asked = list[tuple[str, Any, Mechanism, float]]


def _questions(schema: Schema, names: Sequence[str], by: tuple[str, ...], *, quartiles: bool) -> Asked:
    """Return (column, model, mechanism, weight) of each part."""
    found: Asked = []
    if by:
        *others, last = by
        shares = table_for(schema, last, question="histogram", by=others)
        assert isinstance(shares, CategoryTable)
        found.append((last, replace(shares, show="counts"), AddedNoise(), TABLE_WEIGHT))
    for name in names:
        numeric = schema.column(name).role in MEANS
        table = table_for(schema, name, question=MEANS.get(schema.column(name).role, "histogram"), by=by)
        assert isinstance(table, Table)
        found.append((name, table, AddedNoise(), TABLE_WEIGHT))
        if numeric and quartiles:
            column, groups = column_for(schema, name, "quantiles"), grouping(schema, name, by, "quantiles")
            model = quantile_model(column, "quantiles", QUARTILES, 0.95, **groups, **skipped_of(schema, (name, *by)))
            found.append((name, model, GroupQuantiles() if by else ExponentialQuantiles(), QUARTILES_WEIGHT))
    return found


def _calibrated(asked: Asked, schema: Schema, budget: Promise, n: int, *, last: bool = False) -> Plan | None:
    """Return the plan; None where quartiles are too much for the budget."""
    from onedraw.errors import PromiseRefused

    columns, models, mechanisms, weights = zip(*asked, strict=True)
    try:
        return calibrate(
            Together(mechanisms, weights), Several(columns, models), budget, n=n, records_per_person=schema.records_per_person
        )  # fmt: skip
    except PromiseRefused:
        if last:
            raise
        return None


def _worst_rank(plan: Plan) -> float:
    published = plan.mechanism.part_plans(plan)
    errors = [max(part.mechanism.rank_errors(part)) for part in published if hasattr(part.mechanism, "rank_errors")]
    return max(errors, default=0.0)


def _has_ends(plan: Plan) -> bool:
    """Return whether the quartiles of columns as a whole have intervals; within groups single ones may lack them."""
    published = plan.mechanism.part_plans(plan)
    alone = [part for part in published if not (isinstance(part.model, Table) or part.model.by)]
    return all("lower" in part.mechanism.stage_sizes(part) for part in alone)


def budget_split(plan: Plan) -> str:
    """Return in a sentence what the budget was divided into."""
    weights, parts = plan.mechanism.weights, plan.model.parts
    tables = sum(isinstance(part, Table) for part in parts)
    quartiles = len(parts) - tables
    kind = plan.mechanism.what_adds_up(plan)
    each = 100.0 * TABLE_WEIGHT / sum(weights)
    if not quartiles:
        return f"Each of {tables} tables has {each:.2g} % of {kind}; quartiles would have been noise with this n and budget."
    return f"Each of {tables} tables has {each:.2g} % of {kind}, the quartiles of each of {quartiles} columns {2 * each:.2g} %."
