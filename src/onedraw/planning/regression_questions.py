"""From a schema and a person's words to a regression with public bounds.

The schema has already said what is public: ranges and levels of the features, and of the target. A classification takes
its classes from the target's levels. A regression of numbers takes the target's range; responses are measured from its
middle, in units of a part of it, so that a prior around 0 is around the middle of what can be. Middle and unit are given
back to whoever reads the result (`release.reading`). Every default is a function of the schema, never of a record.

| model | target | asks for |
| --- | --- | --- |
| logistic | binary, category | log-odds; of more than two levels a score for each |
| softmax | category, binary | a score for each level |
| svc | binary, or a category of two levels | the side of a hyperplane |
| linear, huber, quantile | number, count | coefficients of a mean, a robust mean, a quantile |
| poisson, negative-binomial | count | coefficients of the logarithm of an expected count |
| network-classifier, network-regressor | as above | predictions of one hidden layer (no proven sampler: name what you accept) |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from onedraw.data import Measure, Schema
from onedraw.errors import InvalidModel, InvalidSchema
from onedraw.models.features import category_columns, column_range, schema_features
from onedraw.release.intervals.design import UNITS_IN_BOUND

from .choice import Choice, Choices, why_taken
from .expected_errors import Expectation
from .questions import QUESTIONS
from .regression import KINDS, Regression

ALIASES = {"multiclass": "softmax", "multinomial": "softmax", "ridge": "linear"}

CLASSIFICATIONS = ("logistic", "softmax", "svc", "network-classifier")
COUNTS = ("poisson", "negative-binomial")

USES = {
    "prior_scale": KINDS,
    "effect": KINDS,
    "radius": ("logistic", "softmax", "svc", "linear", "huber", "quantile"),
    "response_bound": ("linear", "huber", "quantile", "network-regressor"),
    "noise": ("linear", "huber", "quantile", "network-regressor"),
    "variance_floor": ("linear", "network-regressor"),
    "threshold": ("linear", "huber"),
    "quantile": ("quantile",),
    "robust": ("logistic", "softmax", "svc", "linear", "quantile", "poisson"),
    "dispersion": ("negative-binomial",),
    "hidden": ("network-classifier", "network-regressor"),
}
"""Which option belongs to which model: one that does nothing is a mistake, and is refused."""

HALF_WIDTH = {"network-regressor": 2.0}
"""Responses are measured in units in which half of their range is 4, so that no plan depends on whether money is counted
in cents; of a network 2, the size that weights of N(0, 1) expect."""

FLOOR = (0.05 * HALF_WIDTH["network-regressor"]) ** 2
"""Of a network's residual variance, unless declared: that of a twentieth of half the range."""

POWERS = {"prior_scale": 1, "radius": 1, "effect": 1, "noise": 1, "threshold": 1, "variance_floor": 2}
"""In which power of the response's unit an option is declared."""


def is_regression(model: str) -> bool:
    """Whether the word names a regression; an unknown one is an error that lists all there are."""
    if model in QUESTIONS:
        return False
    if ALIASES.get(model, model) not in KINDS:
        raise InvalidModel(
            f"No model is called {model!r}. Choose one of: {', '.join((*QUESTIONS, 'covariance', *KINDS))}."
        )
    return True


def regression_for(
    schema: Schema, target: str, *, model: str, options: Mapping[str, Any] | None = None
) -> tuple[Regression, Measure | None]:
    """The question about ``target``, all other columns being its features, and what responses are measured in.

    ``options`` are the arguments of `Regression` by name, None or absent where left out; ``response_bound`` a pair
    (low, high), by default the target's declared range.
    """
    kind, column = ALIASES.get(model, model), schema.column(target)
    given = {name: value for name, value in (options or {}).items() if value is not None}
    if kind == "logistic" and len(getattr(column, "labels", ())) > 2:
        kind = "softmax"
    check_options(kind, given)
    features = schema_features(schema, target)
    if not features["features"]:
        raise InvalidSchema(
            f"The schema declares no column besides the target {target!r}, so there is nothing to explain it by. Declare "
            "the features, or ask for a proportion, a histogram or a mean."
        )
    features["categories"] = category_columns(schema, target)
    if kind in CLASSIFICATIONS:
        return Regression(kind, **features, classes=classes_of(column, target, kind), **given), None
    if kind in COUNTS:
        largest = largest_count(column, target, kind)
        return Regression(kind, **features, largest=largest, **given), None
    measure, sizes = measured(column, target, kind, given)
    return Regression(kind, **features, **sizes), measure


def check_options(kind: str, given: Mapping[str, Any]) -> None:
    for name in given:
        if kind not in USES[name]:
            raise InvalidModel(
                f"--{name.replace('_', '-')} does not belong to a {kind} regression and would do nothing; it is for "
                f"{', '.join(USES[name])}. Leave it out."
            )


def classes_of(column: Any, target: str, kind: str) -> tuple[str, ...]:
    labels = getattr(column, "labels", None)
    if labels is None:
        raise InvalidSchema(
            f"A {kind} regression needs classes, but the schema declares {target!r} as {column.kind}, without any. They are "
            "never read from the records: a label that only one person has would give that person away. Declare it as "
            "`kind: binary` or `kind: category` with `levels:`, or ask for a linear regression."
        )
    if kind == "svc" and len(labels) != 2:
        raise InvalidSchema(
            f"An svc separates two classes, but the schema declares {len(labels)} levels of {target!r}. Ask for softmax."
        )
    return tuple(labels)


def largest_count(column: Any, target: str, kind: str) -> int:
    """The declared cap of the target: what a larger count is read as."""
    if column.kind != "count":
        raise InvalidSchema(
            f"A {kind} regression explains a count, but the schema declares {target!r} as {column.kind}. Declare it as "
            "`kind: count` with `cap:`, the largest count that is to matter, or ask for a linear regression."
        )
    return int(column.cap)


def measured(column: Any, target: str, kind: str, given: Mapping[str, Any]) -> tuple[Measure, dict[str, Any]]:
    """What responses are measured in, and the options of the question in that unit."""
    if column.kind not in ("number", "count"):
        raise InvalidSchema(
            f"A {kind} regression explains a number, but the schema declares {target!r} as {column.kind}. Ask for a "
            "logistic regression, or correct the schema."
        )
    low, high = response_range(given.get("response_bound") or column_range(column))
    half_width = HALF_WIDTH.get(kind, UNITS_IN_BOUND)
    measure = Measure(low + (high - low) / 2.0, (high - low) / 2.0 / half_width)
    sizes = dict(given) | {
        name: given[name] / measure.unit**power
        for name, power in POWERS.items()
        if name in given and _is_size(name, kind)
    }
    if kind == "network-regressor":
        return measure, {
            name: value for name, value in ({"variance_floor": FLOOR} | sizes).items() if name != "response_bound"
        }
    return measure, sizes | {"response_bound": half_width}


def _is_size(name: str, kind: str) -> bool:
    """A network's prior is about weights, which are in nobody's units."""
    return not (kind == "network-regressor" and name == "prior_scale")


def in_response_units(choices: Choices, measure: Measure | None, *, mechanism: str) -> Choices:
    """The same plans, their expected errors in the target's own unit."""
    if measure is None:
        return choices
    found = [in_units(choice, measure.unit) for choice in choices.eligible]
    return Choices(tuple(found), choices.refused, why_taken(found, mechanism, choices.best.budget, choices.best.n))


def in_units(choice: Choice, unit: float) -> Choice:
    designs = tuple(replace(design, expected=_times(design.expected, unit)) for design in choice.designs)
    return replace(choice, expected=_times(choice.expected, unit), designs=designs)


def _times(expected: Expectation, unit: float) -> Expectation:
    return Expectation(expected.private * unit, expected.sampling * unit, expected.bias * unit)


def response_range(pair: tuple[float, float]) -> tuple[float, float]:
    low, high = map(float, pair)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidModel(
            f"The range of responses must be two finite numbers, the lower first, but {low:g} and {high:g} came."
        )
    return low, high
