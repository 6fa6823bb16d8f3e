"""What a regression was asked to estimate: which values belong to its kind, and why no fit estimates it.

An estimand is a number of the population: its least-squares coefficients, say. Averaged steps estimate the usual one of each
kind, or a robust line where it is asked for; the perturbed mode, which serves a pure ε, estimates a robust line of its own.
With ``estimand=`` nothing else is taken.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.privacy import PureDP

from .options import ESTIMANDS, RESIDUALS

if TYPE_CHECKING:
    from .choice import Terms
    from .regression import Regression

NAMES = {
    "least-squares": "least-squares coefficients", "maximum-likelihood": "maximum-likelihood coefficients",
    "quantile": "coefficients of the quantile itself", "robust": "coefficients of a robust line",
}  # fmt: skip
"""Estimands in words."""

NEEDS_BOUND = "of responses without a bound. Pass response_bound=, the public size beyond which responses are clamped."


def check_estimand(kind: str, estimand: Any) -> None:
    """Refuse a value that does not belong to this kind of regression."""
    known = ESTIMANDS.get(kind, ())
    if estimand is None or (isinstance(estimand, str) and estimand in known):
        return
    if not known:
        raise InvalidModel(
            f"estimand={estimand!r} does not belong to a {kind} regression; it is for {', '.join(ESTIMANDS)}. Leave it out."
        )
    raise InvalidModel(
        f"estimand={estimand!r} does not belong to a {kind} regression. Choose {' or '.join(map(repr, known))}, or leave it out."
    )


def check_named(asked: Regression, name: str, fits: Collection[str]) -> None:
    """Refuse a mechanism that does not estimate what was asked for."""
    estimand = asked.estimand
    if estimand is None or name == "fit":
        return
    if name not in fits:
        raise InvalidModel(
            f"estimand= is about what a fit estimates, and {name!r} is none: it would do nothing. Leave one of them out."
        )
    if name == "perturbed-mode" and estimand != "robust":
        raise InvalidModel(
            f"{name!r} does not estimate {NAMES[estimand]}, which estimand={estimand!r} asks for. Leave one of them out."
        )


def estimand_refused(question: Regression, terms: Terms, why: str) -> PromiseRefused:
    """Return the refusal of a question whose estimand no fit estimates, or whose effects of interest none uses; ``why`` is the fit's
    own reason, if one was tried."""
    head = "No fit uses effects of interest"
    if question.estimand is not None:
        head = f"No fit estimates {NAMES[question.estimand]}"
    if terms.draws > 1:
        return PromiseRefused(
            f"{head} in {terms.draws} draws: it is published once, and its normal posterior gives as many draws as you want at no "
            "privacy cost. Leave out draws."
        )
    if question.kind in RESIDUALS and question.response_bound is None:
        return PromiseRefused(f"{head} {NEEDS_BOUND}")
    if question.estimand == "robust":
        return PromiseRefused(f"{head} under {terms.budget} with n = {terms.n:,}. {why}")
    other = _or_robust(question, terms)
    if question.prior_scale is not None:
        return PromiseRefused(
            f"{head} under a declared prior, which pulls them towards 0. Leave out prior_scale, and give the prior to "
            f"posterior(size, prior=…) afterwards{other}."
        )
    if isinstance(terms.budget, PureDP):
        return PromiseRefused(
            f"{head} under {terms.budget}: its steps add Gaussian noise, which needs a δ. Pass a δ above 0{other}."
        )
    reason = why.partition(" Use ")[0]  # what to use is said here, by the names that people type
    return PromiseRefused(f"{head}. {reason} Use more records or a larger ε{other}.")


def _or_robust(question: Regression, terms: Terms) -> str:
    """Return the robust line as a last remedy, if these terms allow it, or what a plan without effects may be."""
    if question.effects is not None:
        return ", or leave out effects"
    from .variants import fits_under

    for fit in fits_under(replace(question, estimand="robust"), terms.budget):
        try:
            terms.calibrated(fit.mechanism, fit.model)
        except (PromiseRefused, InvalidModel):
            continue
        return ', or estimand="robust" for a line that is affected less by records far out'
    return ""
