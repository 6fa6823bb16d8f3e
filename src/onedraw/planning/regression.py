"""A regression as a question, with everything in it public; from a schema, or from what a caller declares.

An analyst says what kind of regression, how many columns, and what is known of their ranges. That fixes the prior and the ball,
and with them every model and mechanism that could answer (`variants`). Which one is best is the business of `choose`. Every default
is a function of what was declared, never of a record. Features with bounds are scaled to [−1, 1]. Sizes are in units of the
response: 1 for log-odds; for numbers the declared ``noise``, or a quarter of ``response_bound``, or 1. With r̃ the largest norm of a
row (its 1 for the intercept included):

| left out | public default |
| --- | --- |
| prior_scale | 2/r̃ units: under the prior a linear predictor at the farthest row has standard deviation 2 |
| radius | prior_scale·(√d + 2), d the number of parameters: nearly all of the prior's mass |
| effect, noise | 1 unit each: the standard deviations of the linear predictor, and of a response about it |
| threshold | 1.345 units: 95 % efficiency for normal residuals |
| variance_floor | none: the mechanisms that need one are not offered |

**From a schema** (`regression_for`) a classification takes its classes from the target's levels. A regression of numbers takes the
target's range; responses are measured from its middle, in units of a part of it, so that a prior around 0 is around the middle of
what can be. Middle and unit are given back to whoever reads the result.

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
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from onedraw.data import Measure, Schema
from onedraw.data.terms import Term
from onedraw.defaults import LEVEL
from onedraw.errors import InvalidModel, InvalidSchema
from onedraw.methods import Plan
from onedraw.methods.draws.replicated import why_no_interval
from onedraw.models.design import PREDICTOR_DEVIATION, UNITS_IN_BOUND
from onedraw.models.features import (
    LARGEST,
    Features,
    category_columns,
    declared_features,
    schema_features,
    schema_terms,
)

from .choice import Question, for_regression
from .effects import check_effects, effect_places, listed_effects
from .estimands import check_estimand
from .options import (
    ALIASES,
    CLASSIFICATIONS,
    COUNTS,
    KINDS,
    NETWORKS,
    RESIDUALS,
    RegressionOptions,
    check_belongs,
    given,
)
from .variants import fit_of, fits_of, variant_of, variants_of

BEYOND = 2.0
"""The ball reaches this many prior deviations beyond the typical norm √d."""

HALF_WIDTH = {"network-regressor": 2.0}
"""Responses are measured in units in which half of their range is 4, so that no plan depends on whether money is counted
in cents; of a network 2, the size that weights of N(0, 1) expect."""

FLOOR = (0.05 * HALF_WIDTH["network-regressor"]) ** 2
"""Of a network's residual variance, unless declared: that of a twentieth of half the range."""

WHY_NEEDED = {
    "linear": "A linear regression needs response_bound=Y, the public size beyond which responses are clamped, or threshold=… for Huber's "
    "loss, which bounds what one response can do. Without either one record could move the fit by any amount; neither is computed "
    "from the records.",
    "poisson": "A Poisson regression needs largest=Y, the public count beyond which counts are read as Y. Without it one record could "
    "move the fit by any amount; it is never computed from the records. Pass largest=20, say.",
    "negative-binomial": "A negative binomial regression needs dispersion=r, a public number: counts of mean m then have the variance "
    "m + m²/r. Pass dispersion=1 for strongly scattered counts, or ask for a Poisson regression.",
    "softmax": "A classification of several classes needs classes=[…], all labels there can be. They are public and never read from "
    "the records: a label that only one person has would give that person away.",
}
SIZES = ("prior_scale", "radius", "response_bound", "variance_floor", "threshold", "dispersion", "effect", "noise")
NEEDED = {"linear": ("response_bound", "threshold"), "poisson": ("largest",), "negative-binomial": ("dispersion",), "softmax": ("classes",)}  # fmt: skip


@dataclass(frozen=True)
class Regression(RegressionOptions, Question):
    """A question with everything public about it; see the head of this file for the defaults.

    ``bounds`` = (lo, hi), numbers or one each per column, or ``data_norm``: exactly one of the two. ``classes`` are the
    labels of a classification, the negative one first. ``response_bound`` Y clamps responses to [−Y, Y]. ``largest`` is the
    largest count that is to matter; ``dispersion`` r makes the variance of a count of mean m equal to m + m²/r. ``robust``
    standard errors of a fit hold where the model does not. ``estimand`` is what a fit must estimate, one of `ESTIMANDS` for the
    kind; None takes the first that budget and n allow. ``effects`` are the columns, by name or place, whose coefficients a fit is to
    know better than the others. ``measure`` is what responses were brought into before: sizes
    here are in its unit, expected errors in the response's own.
    """

    kind: str
    features: int
    _: KW_ONLY
    bounds: Any = None
    data_norm: float | None = None
    intercept: bool = True
    classes: Any = None
    largest: int | None = None
    feature_names: Any = None
    categories: tuple[tuple[int, int], ...] = ()
    """(start, stop) of 0/1 columns that code one category; a fit uses that at most one of them is 1."""
    terms: tuple[Term, ...] = ()
    """The columns of each term of a formula, or of each category."""
    measure: Measure | None = None
    persons: bool = False
    """Whether the schema says whose a record is, of persons with several."""
    missing: str | None = None
    """"skip": records with a missing cell contribute nothing. None: the cell is the middle of its range, or as a schema declares."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidModel(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}.")
        for field in fields(self):  # lists become tuples: a question is a value
            object.__setattr__(self, field.name, _frozen(getattr(self, field.name)))
        if self.kind == "softmax" and self.classes is not None and len(self.classes) == 2:
            object.__setattr__(self, "kind", "logistic")  # the same model, fitted by a loss that pulls half as much
        for name in SIZES:
            value = getattr(self, name)
            if value is not None and not (_real(value) and 1.0 / LARGEST < value < LARGEST):
                raise InvalidModel(
                    f"{name} must be a positive finite number, between {1.0 / LARGEST:g} and {LARGEST:g}, or None, got {value!r}."
                )
        if not isinstance(self.robust, bool):
            raise InvalidModel(f"robust must be True or False, got {self.robust!r}.")
        check_estimand(self.kind, self.estimand)
        if self.effects is not None:
            object.__setattr__(self, "effects", listed_effects(self.effects))
        if self.kind not in CLASSIFICATIONS and self.classes is not None:
            raise InvalidModel(f"classes belong to a classification, and kind={self.kind!r} is about numbers.")
        if self.kind in NEEDED and all(getattr(self, name) is None for name in NEEDED[self.kind]):
            raise InvalidModel(WHY_NEEDED[self.kind])
        assert self.rows.bounded  # reading it refuses missing or double bounds
        check_effects(self)

    @property
    def columns(self) -> dict[str, Any]:
        """The features as every model of this question is given them."""
        return {
            "features": self.features, "bounds": self.bounds, "data_norm": self.data_norm, "scaled": self.bounds is not None,
            "intercept": self.intercept, "feature_names": self.feature_names, "missing": self.missing,
        }  # fmt: skip

    @cached_property
    def rows(self) -> Features:
        """The features as every model of this question encodes them."""
        return declared_features("A regression", **self.columns)

    @cached_property
    def effect_places(self) -> tuple[int, ...]:
        """The columns whose effects are of interest."""
        names = self.rows.column_names[: self.features]
        return effect_places(self.effects or (), names, self.categories, self.terms)

    @property
    def unit(self) -> float:
        """The size of the response's noise, which all other sizes are in units of."""
        if self.kind not in RESIDUALS:
            return 1.0
        if self.noise is not None:
            return self.noise
        return 1.0 if self.response_bound is None else float(self.response_bound) / UNITS_IN_BOUND

    @property
    def outputs(self) -> int:
        return len(self.classes) if self.kind == "softmax" else 1

    @property
    def dimension(self) -> int:
        """How many coefficients there are."""
        return self.outputs * self.rows.width

    @property
    def scale(self) -> float:
        """The prior's standard deviation, declared or by default."""
        if self.prior_scale is not None:
            return self.prior_scale
        return PREDICTOR_DEVIATION * self.unit / self.rows.reach

    @property
    def ball(self) -> float:
        """The radius of the ball, for the models that need one."""
        return self.scale * (math.sqrt(self.dimension) + BEYOND) if self.radius is None else self.radius

    @property
    def sizes(self) -> dict[str, float]:
        """What errors and intervals are predicted for."""
        unit = self.unit
        return {"effect": unit if self.effect is None else self.effect, "noise": unit}

    @property
    def tuning(self) -> dict[str, Any]:
        """What mechanisms are tuned by: how informative a residual is does not depend on the predictor's size."""
        name = "noise" if self.kind in RESIDUALS else "effect"
        return {name: self.sizes[name]}

    fit = property(fit_of)
    fits = property(fits_of)
    variants = variants_of
    variant = variant_of
    _choices = for_regression

    def why_no_interval(self, plan: Plan) -> str:
        if self.kind in NETWORKS:  # whose single weights mean nothing, which needs no plan to be known
            return ""
        if plan.mechanism.publishes_fit:  # a fit answers for itself
            return plan.mechanism.why_no_interval(plan) or ""
        return why_no_interval(plan, LEVEL, **self.sizes) or ""


def _frozen(value: Any) -> Any:
    """Lists and arrays, also within a pair of bounds, as tuples."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _real(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


# ── from a schema ────────────────────────────────────────────────────────────────────────────────────────────


def regression_for(schema: Schema, target: str, *, model: str, options: RegressionOptions) -> Regression:
    """The question about ``target``, all other columns being its features, or the terms of the schema's formula (`choose_columns`).

    The option ``response_bound`` is a pair (low, high), or Y for (−Y, Y); by default the target's declared range.
    """
    kind, column = ALIASES.get(model, model), schema.column(target)
    if kind == "logistic" and column.role == "category" and len(column.labels) > 2:
        kind = "softmax"
    check_belongs(options, kind)
    features = schema_features(schema, target)
    if not features["features"]:
        raise InvalidSchema(
            f"The schema declares no column besides the target {target!r}, so there is nothing to explain it by. Declare "
            "the features, or ask for a proportion, a histogram or a mean."
        )
    features["categories"] = category_columns(schema, target)
    features["terms"] = schema_terms(schema, target)
    features["persons"] = schema.person is not None and schema.records_per_person > 1
    asked = {one.name: value for one, value in given(options)}
    if kind in CLASSIFICATIONS:
        labels = column.labels if column.role in ("category", "binary") else None
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
        return Regression(kind, **features, classes=tuple(labels), **asked)
    if kind in COUNTS:
        if column.kind != "count":
            raise InvalidSchema(
                f"A {kind} regression explains a count, but the schema declares {target!r} as {column.kind}. Declare it as "
                "`kind: count` with `cap:`, the largest count that is to matter, or ask for a linear regression."
            )
        return Regression(kind, **features, largest=int(column.cap), **asked)  # a larger count is read as the cap
    return Regression(
        kind, **features, **_measured(column, target, kind, options, intercept=features.get("intercept", True))
    )


def _measured(column: Any, target: str, kind: str, options: RegressionOptions, *, intercept: bool) -> dict[str, Any]:
    """What responses are measured in, and the options of the question in that unit."""
    if column.role not in ("number", "count"):
        raise InvalidSchema(
            f"A {kind} regression explains a number, but the schema declares {target!r} as {column.kind}. Ask for a "
            "logistic regression, or correct the schema."
        )
    low, high = response_range(options.response_bound or column.ends)
    if not intercept:  # nothing could take up the middle
        low, high = -max(-low, high), max(-low, high)
    network, half_width = kind in NETWORKS, HALF_WIDTH.get(kind, UNITS_IN_BOUND)
    measure = Measure(low + (high - low) / 2.0, (high - low) / 2.0 / half_width)
    found: dict[str, Any] = {"variance_floor": FLOOR} if network else {}
    for one, value in given(options):
        power = one.metadata["power"]
        if network and one.name == "prior_scale":  # about weights, which are in nobody's units
            power = 0
        found[one.name] = value / measure.unit**power if power else value
    return found | {"response_bound": None if network else half_width, "measure": measure}


def response_range(declared: Any) -> tuple[float, float]:
    """(low, high); one number Y is (−Y, Y)."""
    ends = _frozen(declared)
    ends = ends if isinstance(ends, tuple) else (ends,)
    if len(ends) == 1 and _real(ends[0]):
        ends = (-ends[0], *ends)
    if not (len(ends) == 2 and all(map(_real, ends)) and -math.inf < ends[0] < ends[1] < math.inf):
        raise InvalidModel(
            "response_bound is one number Y, for −Y to Y, or LOW,HIGH, two finite numbers, the lower first, but "
            f"{declared!r} was given."
        )
    return float(ends[0]), float(ends[1])
