"""Posteriors of conjugate families at the weights of Algorithms 1 to 3 (`audit.cases.conjugate`), attacked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from onedraw.audit.cases.case import Case
from onedraw.audit.cases.conjugate import conjugate_case
from onedraw.audit.cases.predictor import predictor_case
from onedraw.errors import PromiseRefused
from onedraw.methods.base import calibrate
from onedraw.methods.catalog import eligible
from onedraw.methods.exponential_family import Concentrated, Direct
from onedraw.models import FAMILIES, ConjugateModel, ConvexModel
from onedraw.plans import Plan
from onedraw.privacy import Promise


def posterior_case(plan: Plan) -> Case | None:
    """Return the case of any plan for a conjugate family or a convex loss."""
    if isinstance(plan.model, ConjugateModel):
        return conjugate_case(plan, concentrated=isinstance(plan.mechanism, Concentrated))
    return predictor_case(plan) if isinstance(plan.model, ConvexModel) else None


def family_cases(mechanism: Any, family: type[ConjugateModel], budget: Promise, *, n: int = 10) -> list[Case]:
    """Return the cases of a family under one of the three algorithms."""
    if mechanism is not Direct:
        plan = calibrate(mechanism(), family.example(), budget, n=n)
    elif family.plain_draw_is_useless:
        return []
    else:
        plan = _strong_enough(family, budget, n=n)
    case = posterior_case(plan)
    assert case is not None
    return [case]


def _strong_enough(family: type[ConjugateModel], budget: Promise, *, n: int) -> Plan:
    """Direct sampling, free in its prior alone: the first power of 1.5 as its strength that keeps the budget."""
    for step in range(60):
        for plan in eligible(Direct(), family.example(1.5**step), budget, n=n):
            return plan
    raise PromiseRefused(f"No prior up to {1.5**59:.3g} records lets Direct sampling keep {budget}.")


def posterior_cases(mechanism: Any) -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases of one of the three algorithms, by the word for a family."""
    return {family.kind: partial(family_cases, mechanism, family) for family in FAMILIES}
