"""What fits have in common: they publish in stages, and an estimate with standard errors follows from what they published."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.errors import InvalidModel, PromiseRefused, WrongCall
from onedraw.methods.noisy_moments import least_known
from onedraw.methods.stages import Categories
from onedraw.models.moments.measured import Layout
from onedraw.models.normal_estimates import NormalEstimates
from onedraw.models.sums.exact_sums import deviation, matrix_deviation, symmetric
from onedraw.plans import Plan
from onedraw.privacy import PureDP

from . import interval_refusals
from .base import Mechanism, NoisyCount, SecondMoments
from .expectation import Expectation
from .intervals import Interval, Published

COMPLETE = "a record with a missing cell has weight 0 in every sum; the number of the others is released with noise, and sums are divided by that"
"""What is enforced where records with a missing cell contribute nothing."""


class CompleteCases(Mechanism):
    """What methods have in common that skip records with a missing cell and publish how many others there are, as the stage "known"."""

    skips: ClassVar[bool] = True

    def missing_of(self, plan: Plan, stages: Mapping[str, Any]) -> NoisyCount | None:
        """Return the noisy number of records with all cells."""
        found, noise = stages.get("known"), plan.parameters.get("known_noise")
        if found is None or not noise:
            return None
        pure = isinstance(plan.guarantee.promise, PureDP)
        return NoisyCount(float(found[0]), lambda level: known_reach(noise, level, pure=pure), float(plan.n))

    def missing_words(self, plan: Plan) -> str:
        return "records have all their cells, and the others contribute nothing"

    def without_estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Array | None:
        counted = self.missing_of(plan, stages)
        if counted is None:
            return None
        noise = deviation(plan.parameters["known_noise"], 1, pure=isinstance(plan.guarantee.promise, PureDP))
        few = counted.value < least_known(noise)
        return np.full(len(plan.model.parameter_names), few)


def known_reach(noise: float, level: float, *, pure: bool) -> float:
    """Return how far the interval of a noisy number of records reaches to each side: normal noise, or Laplace's."""
    if pure:
        return -noise * math.log(1.0 - level)
    return -noise * float(special.ndtri((1.0 - level) / 2.0))


class FitMechanism(CompleteCases):
    """An estimate of a regression's coefficients with standard errors, in one release."""

    skips: ClassVar[bool] = False
    noun: ClassVar[str] = "fit"
    publishes_fit: ClassVar[bool] = True

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

    @abc.abstractmethod
    def why_no_interval(self, plan: Plan) -> str | None:
        """Return why the plan has no standard errors, by public numbers; None where it measures what they are made of."""

    def measures_columns(self, plan: Plan) -> bool:
        return plan.parameters["moments_noise"] > 0.0

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        return self.result(plan, stages).estimate

    def fit_of(self, plan: Plan, published: Published) -> NormalEstimates:
        assert published.stages is not None
        return self.result(plan, published.stages).in_units(published.change, published.scale, published.shift)

    def interval(
        self, plan: Plan, published: Published, level: float, *, effect: float | None = None, noise: float | None = None
    ) -> Interval:
        fit = self.fit_of(plan, published)
        if not fit.given.any():
            raise PromiseRefused(f"No interval: {why_fit_refused(fit, plan, published.names)}")
        low, high = fit.conf_int(level).T
        return Interval(fit.estimate, low, high, *fit.errors)

    def expected_error(self, plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
        """Return the error in the reference design: columns fill their declared ranges and do not go together."""
        from .draws.law import design_of

        design = design_of(plan, effect=effect, noise=noise)
        sizes = {"effect": design.effect, "noise": design.noise}
        return Expectation(*self.expected_errors(plan, filled=1.0, correlation=0.0, **sizes))

    @abc.abstractmethod
    def expected_errors(self, plan: Plan, **design: float) -> tuple[float, float, float]:
        """Return the error to expect per coefficient in a design, the error without privacy, and the part that is bias."""

    @abc.abstractmethod
    def expected_column_error(self, plan: Plan, **design: Any) -> tuple[float, float, float]:
        """Return what to expect of a column's coefficient: error, error without privacy, how many times ε an interval needs."""

    def second_moments(self, plan: Plan, stages: Mapping[str, Any]) -> SecondMoments | None:
        return second_moments_of(self.problem(plan), stages)


def why_fit_refused(
    fit: NormalEstimates, plan: Plan, names: Sequence[str], columns: Sequence[str] | None = None
) -> str:
    """Return why a fit gives no interval, or none for some coefficients; empty if each has one.

    ``columns`` are the names of the columns that cause it, if coefficients are called otherwise.
    """
    public = None if fit.informed else plan.mechanism.why_no_interval(plan)
    return public or interval_refusals.why_refused(fit, names, columns)


def second_moments_of(problem: Any, stages: Mapping[str, Any]) -> SecondMoments | None:
    """Return the second moments among the stages of a plan with this problem; None where it published none."""
    if (moments := stages.get("moments")) is None:
        return None
    columns, response = problem.layout.columns, problem.moment_columns.response
    size = columns + int(response)
    noise = matrix_deviation(problem.numbers["moments_noise"], size, pure=problem.pure)
    second = symmetric(np.asarray(moments, dtype=np.float64), size)
    return SecondMoments(columns, response, second, noise, problem.pure)


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
