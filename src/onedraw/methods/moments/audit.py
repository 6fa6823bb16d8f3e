"""Released moments, attacked (see `audit.cases.staged`).

Rows at opposite corners of the box are the worst pair for means and squares (whose squares agree there: they add
nothing), orthogonal rows of the largest norm for products and fourth moments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from onedraw.audit.cases import staged
from onedraw.audit.cases.case import Case
from onedraw.audit.cases.staged import Moves, categories_of
from onedraw.methods.catalog import eligible
from onedraw.methods.moments import Moments
from onedraw.models import Columns
from onedraw.plans import Plan
from onedraw.privacy import Promise

from .replay import STAGES, provoke_moments, replay_moments

EACH = (
    "opposite corners for the sums, orthogonal rows of the largest norm for the others: every sensitivity is attained"
)
FEWER = "one column has no orthogonal rows, and a 0/1 column moves by 1 where √2 is allowed for"


class MomentsCase(staged.StagedCase):
    """Means and squares, then products of standardised columns, then fourth moments."""

    noises = tuple(f"{stage}_noise" for stage in STAGES)

    def replayed(self) -> tuple[str, ...]:
        return (*replay_moments(self.plan), *provoke_moments(self.plan))

    def moves(self, numbers: Mapping[str, float]) -> Moves:
        columns = int(self.plan.model.features.count)
        widths = [stop - start for start, stop in categories_of(self.plan)]
        box = math.sqrt(4.0 * (columns - sum(widths)) + sum(2.0 if width > 1 else 1.0 for width in widths))
        return {
            "sums": (box, 2 * columns - sum(widths), None),
            "moments": staged.matrix(numbers["moments_radius"] ** 2, columns, pure=self.pure),
            "fourth": staged.matrix(numbers["fourth_radius"] ** 2, columns, pure=self.pure),
        }


def moments_case(plan: Plan, *, label: str = "") -> MomentsCase:
    """The case of any release of moments."""
    attained = plan.model.features.count > 1 and all(stop - start > 1 for start, stop in categories_of(plan))
    return MomentsCase(plan, staged.EACH_STAGE, EACH if attained else FEWER, attained, label)


def covariance_cases(budget: Promise) -> list[Case]:
    """Three columns, with Gaussian and with pure noise."""
    plans = with_either_noise(Moments, Columns(3, bounds=(0, 1)), budget, n=2000)
    return [moments_case(plan, label="pure" if plan.parameters["pure"] else "") for plan in plans]


def with_either_noise(mechanism: Callable[..., Any], model: Any, budget: Promise, *, n: int) -> list[Plan]:
    """The plans with Gaussian and with pure noise, where the mechanism keeps the budget with the noise asked for."""
    plans = [(pure, plan) for pure in (False, True) for plan in eligible(mechanism(pure=pure), model, budget, n=n)]
    return [plan for pure, plan in plans if bool(plan.parameters["pure"]) is pure]


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {"covariance": covariance_cases}
