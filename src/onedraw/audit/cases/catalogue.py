"""Which mechanisms are attacked, and on which pairs: the list, by the name of the model.

`cases` calibrates every mechanism that can be asked for a model under a budget, on small models whose worst pairs are known;
`case_for` turns any plan, that of a release file for example, into a case. Both read no data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from onedraw.errors import PromiseRefused, WrongCall
from onedraw.mechanisms import (
    AddedNoise,
    BetaDivergence,
    Candidates,
    ExponentialChoice,
    ExponentialQuantiles,
    Measured,
    Moments,
    NoisyGradient,
    PerturbedMode,
    Plan,
)
from onedraw.models import ClassifierScores, ConjugateModel, ConvexModel, RegressorScores
from onedraw.privacy import Promise, PureDP

from . import (
    choices,
    conjugate,
    convex,
    divergence,
    finite,
    fits,
    gradient,
    measured,
    moments,
    noise,
    quantiles,
    scores,
)
from .case import Case

Builder = Callable[..., list[Any]]

BUILDERS: Mapping[str, tuple[Builder, ...]] = {
    "proportion": (conjugate.proportion_cases, partial(noise.noise_cases, "proportion")),
    "histogram": (conjugate.histogram_cases, partial(noise.noise_cases, "histogram")),
    "mean": (conjugate.mean_cases, partial(noise.noise_cases, "mean")),
    "rate": (conjugate.rate_cases, partial(noise.noise_cases, "rate")),
    **{name: (partial(noise.noise_cases, name),) for name in ("count", "cross-table", "sum", "variance", "mean-by-group")},
    "duration": (conjugate.duration_cases,),
    "median": (quantiles.quantile_cases,),
    "choice": (choices.choice_cases,),
    "evaluation": (scores.score_cases,),
    "covariance": (moments.covariance_cases,),
    "linear": (convex.linear_cases, gradient.linear_path_cases),
    "logistic": (convex.logistic_cases, gradient.logistic_path_cases, divergence.binary_cases, finite.two_candidates, finite.two_candidates_on_a_ball, fits.logistic_fits, measured.logistic_cases),
    "hinge": (convex.hinge_cases, fits.hinge_fits),
    "huber": (convex.huber_cases,),
    "least-squares": (convex.least_squares_cases,),
    "gaussian": (divergence.gaussian_cases,),
    "log-cosh": (fits.log_cosh_fits, measured.log_cosh_cases),
    "quantile": (fits.quantile_fits,),
    "counts": (fits.count_fits,),
    "classes": (fits.class_fits,),
}  # fmt: skip
"""Model → the functions that make its cases from a budget."""

YARDSTICK = "randomised-response"


def cases(model: str, budget: Promise, *, mechanism: str | None = None) -> list[Any]:
    """The cases of a model under a budget; ``mechanism`` keeps those whose name begins with it."""
    if model == YARDSTICK:
        return [finite.RandomisedResponse(divergence.pure(budget).stated_epsilon)]
    if model not in BUILDERS:
        raise WrongCall(
            f"The audit knows no model called {model!r}. Choose one of: {', '.join([*BUILDERS, YARDSTICK])}."
        )
    found: list[Any] = []
    refused: PromiseRefused | None = None
    for builder in BUILDERS[model]:
        try:
            found += builder(budget)
        except PromiseRefused as error:
            refused = error
    chosen = [case for case in found if mechanism is None or key(case).startswith(mechanism)]
    if found and not chosen:
        known = ", ".join(dict.fromkeys(key(case) for case in found))
        raise WrongCall(f"No mechanism of {model} is called {mechanism!r}. Under this budget there are: {known}.")
    if not chosen:
        raise refused or PromiseRefused(f"No mechanism for {model} keeps {budget}, so there is nothing to attack.")
    return chosen


def every_case(budget: Promise) -> list[Any]:
    """All of them, the yardstick first."""
    return [case for model in (YARDSTICK, *BUILDERS) for case in cases(model, budget)]


def key(case: Any) -> str:
    """A mechanism's name as the command line spells it: gibbs-gdp, beta-divergence-optimal."""
    return str(case.mechanism.replace(" ", "-"))


def case_for(plan: Plan) -> Case:
    """The case of a plan, on the worst pair that is known for it; `WrongCall` where there is none."""
    if isinstance(plan.mechanism, Candidates):
        return finite.candidate_case(plan)
    one = one_draw(plan)
    if isinstance(plan.model, ClassifierScores | RegressorScores):
        return scores.score_case(one)
    if isinstance(plan.mechanism, AddedNoise):
        return noise.noise_case(one)
    if isinstance(plan.mechanism, ExponentialChoice):
        return choices.choice_case(one)
    if isinstance(plan.mechanism, ExponentialQuantiles):
        return quantiles.selection_case(one)
    if isinstance(plan.mechanism, PerturbedMode):
        return fits.fit_case(one)
    if isinstance(plan.mechanism, Moments):
        return moments.moments_case(one)
    if isinstance(plan.mechanism, Measured):
        return measured.measured_case(one)
    if isinstance(plan.mechanism, BetaDivergence):
        return divergence.divergence_case(one)
    if isinstance(plan.mechanism, NoisyGradient):
        return gradient.path_case(one)
    if isinstance(plan.model, ConjugateModel):
        return conjugate.conjugate_case(one)
    if isinstance(plan.model, ConvexModel) and hasattr(plan.model, "features"):
        return convex.predictor_case(one)
    raise WrongCall(
        f"Nobody has written down what {type(plan.mechanism).__name__} of {type(plan.model).__name__} publishes on a worst pair "
        "of tables, so this command cannot attack it. Attack its draws with onedraw.audit.blackbox_lower_bound."
    )


def one_draw(plan: Plan) -> Plan:
    """The same numbers as a plan of one draw and one record per person: what several of them promise follows from it."""
    if plan.draws == 1 and plan.request.records_per_person == 1:
        return plan
    request = replace(plan.request, draws=1, records_per_person=1)
    return plan.mechanism.plan(request, dict(plan.parameters))


def promised_at(case: Any) -> float:
    """The δ at which promise and lower bound are compared: the stated one, 0 if it is pure, otherwise 1e-5."""
    promise: Promise = case.promise
    stated = getattr(case, "delta", getattr(promise, "stated_delta", None))
    if stated is not None:
        return float(stated)
    return 0.0 if isinstance(promise, PureDP) or promise.pure_epsilon < float("inf") else 1e-5
