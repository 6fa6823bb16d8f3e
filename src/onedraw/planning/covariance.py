"""Which columns go together: the question whose answer is a table of means, deviations and correlations.

All number and count columns of the schema, or those that are named; a category or a binary column is coded as 0 and 1, a
category one for each level but its first. What may be expected is said of a correlation, from public numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from onedraw.data import Schema
from onedraw.errors import InvalidSchema, WrongCall
from onedraw.mechanisms import Moments, Plan, calibrate
from onedraw.models import Columns
from onedraw.models.features import category_columns, schema_features
from onedraw.privacy import ApproxDP, Promise

from .choice import Choice, Choices
from .expected_errors import Expectation

NAME = "moments"

FILLED = 1.0 / 3.0
"""The variance of a column that fills its declared range evenly, in half-ranges."""


def chosen_columns(schema: Schema, names: Sequence[str] | None = None) -> Schema:
    """The schema of the columns that are described: those named, or all numbers and counts."""
    if names is None:
        names = [name for name, column in schema.columns.items() if column.kind in ("number", "count")]
        if not names:
            raise InvalidSchema(
                "The schema declares no number column, so there is nothing to be correlated. Name the columns with "
                "--columns; categories are coded as 0 and 1."
            )
    if len(set(names)) < len(names):
        raise WrongCall("--columns names a column twice; its correlation with itself is 1. Name each once.")
    for name in names:
        schema.column(name)
    return schema.model_copy(update={"columns": {name: schema.columns[name] for name in names}})


def moments_of_schema(schema: Schema) -> tuple[Moments, Columns]:
    """The mechanism and the model for all columns of a schema."""
    return Moments(categories=category_columns(schema, None)), Columns(**schema_features(schema, None))


def covariance_choices(
    mechanism: Moments, model: Any, budget: Promise, *, n: int, records_per_person: int = 1
) -> Choices:
    """The one plan there is, and what to expect of it."""
    plan = calibrate(mechanism, model, budget, n=n, records_per_person=records_per_person)
    expected = expected_correlation(plan)
    assert isinstance(plan.mechanism, Moments)
    given = "" if plan.mechanism.problem(plan).gives_correlations else "; with this n and ε the noise is too large for correlations, so none will be given: more records, fewer columns or a larger ε help"  # fmt: skip
    stronger = (
        "; it keeps pure ε, which costs nothing here"
        if plan.parameters["pure"] and isinstance(budget, ApproxDP)
        else ""
    )
    why = (
        f"{NAME}: noise on exact sums; a correlation of two columns is expected to be off by {expected.private:.3g} "
        f"({expected.sampling:.3g} without privacy), a mean by {mean_error(plan):.3g} of half its range by noise{given}{stronger}. "
        "Decided from public numbers, before any record was read."
    )
    return Choices((Choice(plan, expected, NAME, plan.n * model.features.count**2 / 2e9),), {}, why)


def mean_error(plan: Plan) -> float:
    """Standard deviation of a mean's noise, in half-ranges."""
    assert isinstance(plan.mechanism, Moments)
    return plan.mechanism.problem(plan).deviation("sums")


def expected_correlation(plan: Plan) -> Expectation:
    """The error of one correlation, for columns that fill their ranges and do not go together; of one column its mean's."""
    assert isinstance(plan.mechanism, Moments)
    problem = plan.mechanism.problem(plan)
    if problem.columns.count == 1:
        sampling = math.sqrt(FILLED / plan.n)
        return Expectation(math.hypot(sampling, problem.deviation("sums")), sampling, 0.0)
    sampling = 1.0 / math.sqrt(plan.n)
    return Expectation(math.hypot(sampling, problem.deviation("moments") / math.sqrt(2.0)), sampling, 0.0)
