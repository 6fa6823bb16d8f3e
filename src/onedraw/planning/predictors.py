"""Clipped gradients in place of a fit: where n·ε is too small for coefficients, and predictions are all there is to have.

Clipped gradients lose least where noise is large beside what the records say; the fit loses least where it is small. The
measure is ν = n·μ/(d·(K − 1)), with d columns, K classes (K − 1 = 1 for two classes and counts) and μ of the Gaussian promise for a
person's records. Below `LEAST_INFORMED` clipped gradients predict better on most of the tables for deriving
(benchmarks/results/prediction.md, which states the regret on the others). Of two classes and counts they are taken only if
the fit would give no intervals: coefficients that are known are worth more than a better prediction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.methods.convex_bounds import gdp_mu

from .reasons import DECIDED
from .variants import Variant, predictor_for

if TYPE_CHECKING:
    from onedraw.plans import Plan

    from .choice import Terms
    from .regression import Regression

LEAST_INFORMED = {"logistic": 120.0, "poisson": 120.0, "softmax": 90.0}
"""ν from which a fit is taken, by kind. Lines are fitted at any ν, unless the fit refuses the size."""


def predictor_of(question: Regression, terms: Terms, fit: Plan | None) -> Variant | None:
    """Return clipped gradients if they are to answer the question in place of this fit, else None."""
    asks_coefficients = question.estimand is not None or bool(question.effects) or question.robust
    if terms.draws > 1 or terms.budget.is_pure or asks_coefficients:
        return None
    predictor = predictor_for(question)
    if predictor is None or fit is None:
        return predictor
    if informed_by(question, predictor, terms) >= LEAST_INFORMED.get(question.kind, 0.0):
        return None
    gives_intervals = not (fit.mechanism.for_pure_budgets or fit.mechanism.why_no_interval(fit))
    return None if question.kind != "softmax" and gives_intervals else predictor


def informed_by(question: Regression, predictor: Variant, terms: Terms) -> float:
    """Return ν."""
    classes = len(question.classes) - 1 if question.kind == "softmax" else 1
    mu = gdp_mu(terms.budget) / terms.records_per_person
    return float(terms.n * mu / (predictor.model.features.count * classes))


def why_predicted(question: Regression, terms: Terms, fit: Plan | None) -> str:
    """Return why, in a sentence or two; `fit` is the plan they replace, None if no fit keeps the budget."""
    predictor = predictor_for(question)
    assert predictor is not None
    if fit is None:
        return (
            f"{predictor.name}: no fit keeps the budget for this n, and they predict without one. They give no coefficients to "
            f"interpret. {DECIDED}"
        )
    informed, least = informed_by(question, predictor, terms), LEAST_INFORMED[question.kind]
    instead = "" if question.kind == "softmax" else ", and a fit would give no intervals"
    return (
        f"{predictor.name}: they predict better than a fit where n·μ is below {least:g} for each column"
        f"{' and class' if question.kind == 'softmax' else ''} (here {informed:.3g}){instead}. They give no coefficients to "
        f"interpret; for those name mechanism='fit'. {DECIDED}"
    )
