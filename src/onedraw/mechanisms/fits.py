"""What fits have in common: they publish in stages, and an estimate with standard errors follows from what they published."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

from onedraw.errors import InvalidModel, WrongCall
from onedraw.models.moments.measured import Layout
from onedraw.models.normal_estimates import NormalEstimates
from onedraw.plans import Mechanism, Plan

from .stages import Categories


class FitMechanism(Mechanism):
    """An estimate of a regression's coefficients with standard errors, in one release."""

    noun: ClassVar[str] = "fit"

    interval_words: ClassVar[str]
    """What intervals are about, for a report."""

    estimand_words: ClassVar[str] = ""
    """What to know about the estimand before a release, if that is the same for every plan."""

    categories: Categories = ()

    @abc.abstractmethod
    def problem(self, plan: Plan) -> Any:
        """Return everything public of the fit, from the plan alone."""

    @abc.abstractmethod
    def result(self, plan: Plan, stages: Mapping[str, Any]) -> NormalEstimates:
        """Return estimate, errors and intervals for encoded rows, from what was published."""

    @abc.abstractmethod
    def estimand(self, plan: Plan, target: str | None = None) -> str:
        """Return what the plan's release estimates about this column, in words."""

    def estimand_note(self, plan: Plan) -> str:
        """Return what to know about the estimand before a release."""
        return self.estimand_words

    def effects_note(self, plan: Plan) -> str:
        """Return what naming effects of interest does to the noise; empty if none are named."""
        return ""

    @abc.abstractmethod
    def why_no_interval(self, plan: Plan) -> str | None:
        """Return why the plan has no standard errors, by public numbers; None where it measures what they are made of."""

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        return self.result(plan, stages).estimate


def layout_of(model: Any, categories: Categories) -> Layout:
    """Return the columns that are measured: scaled to public bounds, or rows of a public norm."""
    features = model.features
    if features.data_norm is None and not features.scaled:
        raise InvalidModel(
            "Columns are measured by their public ranges, so features must be scaled. Pass scaled=True to the model."
        )
    if categories and features.data_norm is not None:
        raise WrongCall("categories need columns with bounds, not rows with a norm. Pass bounds=(lo, hi).")
    return Layout(features.count, categories, features.intercept, features.data_norm)
