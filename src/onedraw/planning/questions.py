"""From a person's question to a table or a model with public bounds.

An analyst asks for a proportion, a count, a histogram, a mean, a sum, a variance or a rate of a column, perhaps by groups. The
schema has already said what is public about that column; this file turns the two into a table for plain noise (`table_for`),
and where there is one into a conjugate model with a weak, public prior (`model_for`). Every default here is a function of the
schema, n and the budget, never of a record.

| question | column | table | model and default prior |
| --- | --- | --- | --- |
| proportion | binary | share of the second level | Beta–Bernoulli, Beta(1, 1), uniform |
| histogram | category, binary | shares of all levels | Dirichlet–Categorical, one pseudo-record per level |
| count | category, binary | counts of all levels, of the second, or of ``level`` | none |
| count, proportion with ``between`` | number, count | the count or share of records within | none |
| mean | number | mean, with a second moment for its interval | Gaussian mean of known variance, one pseudo-record at mid-range |
| sum, variance | number, count | sum, variance | none |
| rate | count | mean | Gamma–Poisson, worth one record at half the cap |
| median, quantiles | number, count | none | quantiles by rank, on a lattice of the column's range |
| duration | number from 0 | none | Gamma–Exponential, worth two records at half the bound |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onedraw.data import Schema
from onedraw.errors import InvalidModel, InvalidSchema
from onedraw.models import FAMILIES, CategoryTable, ColumnQuantiles, NumberTable
from onedraw.models.tables.category_table import condition
from onedraw.plans import record_count
from onedraw.privacy import Promise

# question → the column kinds it can be asked of
QUESTIONS = {
    "proportion": ("binary",),
    "histogram": ("category", "binary"),
    "count": ("category", "binary"),
    "mean": ("number",),
    "sum": ("number", "count"),
    "variance": ("number", "count"),
    "rate": ("count",),
    **{family.kind: family.asked_of for family in FAMILIES},
    "median": ("number", "count"),
    "quantiles": ("number", "count"),
}

POSTERIOR = tuple(family.kind for family in FAMILIES)
"""Questions that a conjugate posterior answers; most are answered by a table too."""

RANKS = ("median", "quantiles")
"""Answered by selection."""

CONDITIONS = ("count", "proportion")
"""Questions that can be about a public condition on a number."""

GROUPED = ("count", "histogram", "proportion", "mean", "sum", "variance", "rate")


def table_for(
    schema: Schema, target: str, *, question: str, by: Sequence[str] = (), level: str | None = None,
    between: Sequence[float] | None = None,
) -> CategoryTable | NumberTable | None:  # fmt: skip
    """The table that answers ``question`` about column ``target``, in the groups of the columns ``by``; None for durations and ranks."""
    column = column_for(schema, target, question, numeric=between is not None)
    groups = grouping(schema, target, by, question)
    if between is not None:
        return condition_table(column, target, question, level, between, groups)
    if level is not None and question != "count":
        raise InvalidModel(f"level is for a count of one level; a {question} has none. Leave it out.")
    match question:
        case "proportion" | "histogram" | "count":
            labels = tuple(map(str, column.labels))
            only = (
                level
                if level is not None
                else labels[1]
                if column.kind == "binary" and question != "histogram"
                else None
            )
            return CategoryTable(labels, show="counts" if question == "count" else "shares", only=only, **groups)
        case "mean" | "sum" | "variance" | "rate":
            lower, upper = (0.0, float(column.cap)) if column.kind == "count" else (column.lower, column.upper)
            return NumberTable(lower, upper, show=question, **groups)
        case _:  # ranks, and families without a table
            return None


def condition_table(
    column: Any, target: str, question: str, level: str | None, between: Sequence[float], groups: dict[str, Any]
) -> CategoryTable:
    """Records whose number lies within a public condition. The column's declared range is where records are clamped to, so a
    condition that it misses altogether is a slip."""
    if level is not None or len(between) != 2:
        raise InvalidModel(
            f"between is two numbers, low and high, and goes without level; {len(between)} number(s)"
            f"{'' if level is None else ' and a level'} came. Pass --between 18,30 alone."
        )
    lower, upper = (0.0, float(column.cap)) if column.kind == "count" else (column.lower, column.upper)
    asked = condition(*(float(end) for end in between))
    low, high = asked["between"]
    if high < lower or upper < low:
        raise InvalidModel(
            f"No record can be {asked['only']}: {target!r} is declared on [{lower:g}, {upper:g}], and values outside count as the "
            "nearest end. Correct the condition or the schema."
        )
    return CategoryTable(**asked, show="counts" if question == "count" else "shares", **groups)


def grouping(schema: Schema, target: str, by: Sequence[str], question: str) -> dict[str, Any]:
    """The declared groups: levels of one or two category or binary columns."""
    if not by:
        return {}
    if question not in GROUPED:
        raise InvalidModel(f"A {question} is not given by groups. Ask for a {', '.join(GROUPED)}.")
    levels = []
    for name in by:
        column: Any = schema.column(name)
        if column.kind not in ("category", "binary") or name == target:
            raise InvalidSchema(
                f"Groups are the levels of a category or binary column other than the target, but {name!r} is "
                f"{'the target' if name == target else f'declared as {column.kind}'}. Choose another column for by."
            )
        levels.append(tuple(map(str, column.labels)))
    return {"by": tuple(by), "groups": tuple(levels)}


def model_for(
    schema: Schema,
    target: str,
    *,
    question: str,
    n: int,
    budget: Promise,
    prior: Sequence[float] | None = None,
    quantiles: Sequence[float] | None = None,
    interval: float | None = 0.95,
) -> Any:
    """The model that answers ``question`` about column ``target``, with bounds from the schema: conjugate, or of ranks."""
    column = column_for(schema, target, question)
    if question not in (*POSTERIOR, *RANKS):
        raise InvalidModel(f"No posterior is known for a {question}: it is released with plain noise.")
    if question in RANKS:
        return quantile_model(column, question, quantiles, prior, interval)
    (family,) = (family for family in FAMILIES if family.kind == question)
    return family.for_column(column, n=record_count(n), budget=budget, prior=prior)


def quantile_model(column: Any, question: str, levels: Any, prior: Any, interval: float | None) -> ColumnQuantiles:
    """Quantiles of a column in its declared range; counts on whole numbers."""
    if prior is not None:
        raise InvalidModel("Quantiles are selected by rank and have no prior. Leave it out.")
    if question == "median" and levels is not None and tuple(levels) != (0.5,):
        raise InvalidModel("The median is one quantile, the 0.5. For others ask for quantiles.")
    wanted = (0.5,) if question == "median" else (0.25, 0.5, 0.75) if levels is None else tuple(levels)
    whole = column.kind == "count"
    lower, upper = (0.0, float(column.cap)) if whole else (column.lower, column.upper)
    return ColumnQuantiles(wanted, lower, upper, step=1.0 if whole else None, interval=interval)


def column_for(schema: Schema, target: str, question: str, *, numeric: bool = False) -> Any:
    """The declared column, if the question can be asked of its kind; ``numeric`` with a condition on its numbers."""
    if question not in QUESTIONS:
        raise InvalidModel(f"No model is called {question!r}. Choose one of: {', '.join(QUESTIONS)}.")
    column = schema.column(target)
    if numeric and question not in CONDITIONS:
        raise InvalidModel(
            f"between is for a {' or a '.join(CONDITIONS)} of records; a {question} has none. Leave it out."
        )
    kinds = ("number", "count") if numeric else QUESTIONS[question]
    if column.kind not in kinds:
        fits = [name for name, kinds in QUESTIONS.items() if column.kind in kinds]
        remedy = f"Ask for its {' or '.join(fits)}, or correct the schema."
        if question in CONDITIONS and column.kind in ("number", "count"):
            remedy = f"Say which numbers are counted, --between 18,30, or ask for its {' or '.join(fits)}."
        raise InvalidSchema(
            f"A {question}{' between two numbers' if numeric else ''} needs a {' or '.join(kinds)} column, but {target!r} is declared as "
            f"{column.kind}. {remedy}"
        )
    return column
