"""Which mechanisms are attacked, and on which pairs: the list, by the name of the model.

`cases` calibrates every mechanism that can be asked for a model under a budget, on small models whose worst pairs are
known; `case_for` turns any plan, that of a release file for example, into a case. Both read no data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from onedraw import methods
from onedraw.errors import PromiseRefused, WrongCall
from onedraw.methods import Plan
from onedraw.models import FAMILIES, ConjugateModel, ConvexModel
from onedraw.privacy import Promise

from . import (
    baselines,
    chains,
    clipped,
    conjugate,
    convex,
    divergence,
    finite,
    fits,
    measured,
    moments,
    noise,
    quantiles,
    rejection,
    steps,
    together,
)
from .case import Case, no_formula, pure
from .investigation import RandomisedResponse

WITH_NOISE = {name: (partial(noise.noise_cases, name),) for name in noise.TABLES}

BUILDERS: Mapping[str, tuple[Callable[[Promise], list[Any]], ...]] = {
    **WITH_NOISE,
    **{family.kind: (partial(conjugate.family_cases, family), *WITH_NOISE.get(family.kind, ())) for family in FAMILIES},
    "median": (quantiles.quantile_cases,),
    "description": (together.together_cases,),
    "choice": (finite.choice_cases,),
    "evaluation": (noise.score_cases,),
    "covariance": (moments.covariance_cases,),
    "linear": (partial(convex.rule_cases, "linear"), convex.linear_path_cases),
    "logistic": (
        partial(convex.rule_cases, "logistic"), rejection.rejection_cases, convex.logistic_path_cases, divergence.binary_cases,
        finite.two_candidates, chains.logistic_paths, partial(fits.fits_of, "logistic"), partial(measured.measured_cases, "logistic"),
        partial(steps.steps_of, "logistic"), partial(clipped.clipped_of, "logistic"),
    ),
    "hinge": (partial(convex.rule_cases, "hinge"), chains.hinge_paths, partial(fits.fits_of, "hinge"), partial(steps.steps_of, "hinge")),
    "huber": (partial(convex.rule_cases, "huber"),),
    "least-squares": (partial(convex.rule_cases, "least-squares"), partial(steps.steps_of, "least-squares"), partial(clipped.clipped_of, "least-squares")),
    "gaussian": (divergence.gaussian_cases,),
    "log-cosh": (partial(fits.fits_of, "log-cosh"), partial(measured.measured_cases, "log-cosh")),
    "quantile": (partial(fits.fits_of, "quantile"), partial(steps.steps_of, "quantile")),
    "counts": (partial(fits.fits_of, "counts"), partial(steps.steps_of, "counts"), partial(clipped.clipped_of, "counts")),
    "classes": (partial(fits.fits_of, "classes"), partial(steps.steps_of, "classes"), partial(clipped.clipped_of, "classes")),
}  # fmt: skip
"""Model → the functions that make its cases from a budget."""

CASES: Mapping[type, Callable[[Plan], Case]] = {
    methods.Candidates: finite.candidate_case,
    methods.AddedNoise: noise.noise_case,
    methods.CenteredNoise: noise.noise_case,
    methods.ExponentialChoice: finite.choice_case,
    methods.ExponentialQuantiles: quantiles.selection_case,
    methods.GroupQuantiles: quantiles.group_case,
    methods.Together: together.together_case,
    methods.PerturbedMode: fits.fit_case,
    methods.AveragedSteps: steps.steps_case,
    methods.ClippedGradients: clipped.clipped_case,
    methods.Moments: moments.moments_case,
    methods.Measured: measured.measured_case,
    methods.BetaDivergence: divergence.divergence_case,
    methods.NoisyGradient: convex.path_case,
    methods.BarkerPath: chains.step_case,
    ConjugateModel: conjugate.conjugate_case,
    ConvexModel: convex.predictor_case,
}
"""Mechanism → the case of its plans; of the others by the kind of model. A mechanism of another package brings its own (`audit_case`)."""

YARDSTICK = "randomised-response"

LITERATURE = "baselines"
"""The word for the cases of `baselines`."""


def cases(model: str, budget: Promise, *, mechanism: str | None = None) -> list[Any]:
    """The cases of a model under a budget; ``mechanism`` keeps those whose name begins with it."""
    if model == YARDSTICK:
        return [RandomisedResponse(pure(budget).stated_epsilon)]
    if model != LITERATURE and model not in BUILDERS:
        known = ", ".join([*BUILDERS, YARDSTICK, LITERATURE])
        raise WrongCall(f"The audit knows no model {model!r}. Choose one of: {known}.")
    found: list[Any] = []
    refused: PromiseRefused | None = None
    for builder in baselines.BUILDERS if model == LITERATURE else BUILDERS[model]:
        try:
            found += builder(budget)
        except PromiseRefused as error:
            refused = error
    chosen = [case for case in found if mechanism is None or case.key.startswith(mechanism)]
    if found and not chosen:
        known = ", ".join(dict.fromkeys(case.key for case in found))
        raise WrongCall(f"No mechanism of {model} is called {mechanism!r}. Under this budget there are: {known}.")
    if not chosen:
        raise refused or PromiseRefused(f"No mechanism for {model} keeps {budget}, so there is nothing to attack.")
    return chosen


def every_case(budget: Promise) -> list[Any]:
    """All of our own mechanisms, the yardstick first."""
    return [case for model in (YARDSTICK, *BUILDERS) for case in cases(model, budget)]


def case_for(plan: Plan) -> Case:
    """The case of a plan, on the worst pair that is known for it; `WrongCall` where there is none."""
    own = plan.mechanism.audit_case(plan)
    if own is not None:
        checked: Case = own
        return checked
    for kind, build in (*baselines.CASES.items(), *CASES.items()):
        if isinstance(plan.mechanism, kind) or isinstance(plan.model, kind):
            return build(plan if kind is methods.Candidates else one_draw(plan))
    raise no_formula(f"the mechanisms of its list, not {type(plan.mechanism).__name__} of", plan.model)


def one_draw(plan: Plan) -> Plan:
    """The same numbers for one draw and one record per person: what several of them promise follows from it."""
    if plan.draws == 1 and plan.request.records_per_person == 1:
        return plan
    single: Plan = plan.mechanism.plan(replace(plan.request, draws=1, records_per_person=1), dict(plan.parameters))
    return single
