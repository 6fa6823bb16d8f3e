"""Noisy sums of conjugate families, written down again from Foulds et al. (arXiv:1603.07294, §3): what one record adds, and the law
of its sum with noise on two data sets that differ in one record.

A record's share is its sufficient statistic in whole steps: a place in its range (2³² steps), a count, one unit in its category, a
distance from the centre (2³¹ steps to the bound). The laws of the coordinates that the record moves are those of `noise`. Posterior and
intervals are post-processing, so whoever is told the noisy sums knows all there is to know: both baselines are attacked there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.models import BetaBernoulli, DirichletCategorical, GammaExponential, GammaPoisson, GaussianMean
from onedraw.models.conjugate.family import Move
from onedraw.plans import Mechanism, Plan
from onedraw.privacy import Promise

from .case import Array, Case, Pair, eligible
from .noise import ATTAINED, NoiseCase, law_of

PLACES, TO_THE_BOUND = 2.0**32, 2.0**31


@dataclass(frozen=True)
class FamilySumsCase(NoiseCase):
    """A record is its statistic, in whole steps."""

    def share(self, data: Any) -> Array:
        model, record = self.plan.model, data[-1]
        match model:
            case BetaBernoulli():
                place = (record - model.lower) / (model.upper - model.lower)
                return np.array([np.rint(PLACES * min(max(place, 0.0), 1.0))])
            case DirichletCategorical():
                return np.array([float(record == code) for code in range(len(model.prior))])
            case GaussianMean():
                away = (np.atleast_1d(record) - np.atleast_1d(model.centre)) / model.bound
                return np.asarray(np.rint(TO_THE_BOUND * away / max(1.0, float(np.linalg.norm(away)))))
            case GammaPoisson():
                return np.array([float(min(max(round(record), 0), model.cap))])
        return np.array([np.rint(PLACES * min(max(record / model.cap, 0.0), 1.0))])


def family_sums_case(plan: Plan, *, label: str = "") -> FamilySumsCase:
    """The case of any plan of noisy sums of a family, on its worst neighbours."""
    pairs = tuple(
        Pair(
            f"the last record from {move.before} to {move.after}",
            *([move.others] * (plan.n - 1) + [last] for last in move[1:]),
        )
        for move in _worst_moves(plan.model)
    )
    return FamilySumsCase(plan, pairs, ATTAINED, True, label)


def _worst_moves(model: Any) -> tuple[Move, ...]:
    """Of vectors along the ball's diagonal, which is far in L1 as well as in L2."""
    if not isinstance(model, GaussianMean) or model.dim == 1:
        return tuple(model.worst_moves)
    away = model.bound / math.sqrt(model.dim)
    low, high = ((np.atleast_1d(model.centre) + sign * away).tolist() for sign in (-1.0, 1.0))
    return (Move(low, low, high),)


FAMILIES = (
    BetaBernoulli(), DirichletCategorical((1.0, 2.0, 3.0)), GaussianMean(bound=2.0, variance=1.0, prior_count=1.0),
    GaussianMean(bound=1.0, variance=1.0, prior_count=1.0, dim=3), GammaPoisson(prior=(1.0, 1.0), cap=5),
    GammaExponential(prior=(2.0, 2.0), cap=2.0),
)  # fmt: skip


def family_sums_cases(mechanism: type[Mechanism], budget: Promise, *, n: int = 10) -> list[Case]:
    """Every family, with Laplace noise and with Gaussian noise where the budget admits it."""
    make: Any = mechanism
    found = [(family, law) for family in FAMILIES for law in ("laplace", "gaussian")]
    plans = [plan for family, law in found for plan in eligible(make(law), family, budget, n=n)]
    return [family_sums_case(plan, label=_label(plan)) for plan in plans]


def _label(plan: Plan) -> str:
    several = isinstance(plan.model, GaussianMean) and plan.model.dim > 1
    return f"{law_of(plan)}, {plan.model.dim} dimensions" if several else law_of(plan)
