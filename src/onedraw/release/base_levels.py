"""Levels of a category compared with another level than the declared one: a linear change of what was published, which is free.

The coefficient of a level says how it differs from the first declared level. If few records have that one, all coefficients of the
category are uncertain together, however common their own levels are. Compared with the commonest level, by the published noisy
shares, each is as certain as its own level allows:

    level l against c: β_l − β_c        the first level against c: −β_c        intercept: + β_c
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onedraw.data import Schema
from onedraw.data.terms import Term
from onedraw.methods import Plan
from onedraw.models.features import coded_columns, schema_terms
from onedraw.models.normal_estimates import NormalEstimates

from .certificate import Certificate

NOT_KNOWN = (
    "Levels are compared with the first one declared, because this release says nothing about how common others are."
)

BY_FORMULA = (
    "The formula says what levels are compared with. Write C(column, Treatment('level')) to compare with another level."
)


@dataclass(frozen=True)
class BaseLevels:
    """A fit with its categories compared with other levels, the names of its coefficients, and what was compared."""

    fit: NormalEstimates
    names: tuple[str, ...]
    changed: tuple[int, ...]
    """Indices of the coefficients that are compared with another level; the intercept is not among them."""
    remark: str


def schema_of(certificate: Certificate, plan: Plan) -> Schema | None:
    """Return the schema of a fit; None of another release, or without one."""
    declared = certificate.data.declared
    return None if declared is None or not plan.mechanism.publishes_fit else Schema.from_dict(declared)


def coded_categories(certificate: Certificate, plan: Plan) -> list[tuple[str, tuple[str, ...], int, int]]:
    """Return (column, its levels, start, stop) of each category among the coefficients whose levels can be compared with
    another one; none without a schema. In a formula a category that other terms name too keeps its level."""
    schema = schema_of(certificate, plan)
    coded = () if schema is None else coded_columns(schema, certificate.data.target)
    return [(one.name, one.levels, one.start, one.stop) for one in coded if one.levels]


def terms_of(certificate: Certificate, plan: Plan) -> tuple[Term, ...]:
    """Return the columns of each term of a fit's formula, or of each category of its schema."""
    schema = schema_of(certificate, plan)
    return () if schema is None else schema_terms(schema, certificate.data.target)


def compare_with_commonest(fit: NormalEstimates, certificate: Certificate, plan: Plan) -> BaseLevels:
    """Return the fit with each category compared with its commonest level, by the published noisy shares."""
    names, shares = list(certificate.draw.names), fit.level_shares
    categories = coded_categories(certificate, plan)
    if not categories:
        return BaseLevels(
            fit, tuple(names), (), BY_FORMULA if certificate.data.formula and plan.mechanism.categories else ""
        )
    if shares is None or len(names) != plan.model.features.width or not plan.model.features.intercept:
        return BaseLevels(fit, tuple(names), (), NOT_KNOWN)
    change, changed, compared = np.eye(len(names)), [], []
    for name, levels, start, stop in categories:
        commonest = start + int(np.argmax(shares[start:stop]))
        if shares[commonest] <= 1.0 - shares[start:stop].sum():
            compared.append(f"{name} with {levels[0]}")
            continue
        common = levels[1 + commonest - start]
        change[start:stop, commonest] -= 1.0
        change[commonest, commonest] = -1.0
        change[-1, commonest] = 1.0
        for place in range(start, stop):
            level = levels[0] if place == commonest else levels[1 + place - start]
            names[place] = f"{name}={level} vs {common}"
            changed.append(place)
        compared.append(f"{name} with {common}")
    rebased = fit.in_units(change, np.ones(len(names)), np.zeros(len(names)))
    remark = f"Levels are compared with the commonest one, by the published noisy shares: {', '.join(compared)}."
    return BaseLevels(rebased, tuple(names), tuple(changed), remark)
