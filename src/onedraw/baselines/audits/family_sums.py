"""Noisy sums of conjugate families, written down again from Foulds et al. (arXiv:1603.07294, §3): what one record
adds, and the law of its sum with noise on two data sets that differ in one record; and of the products of a
regression's rows, from Bernstein and Sheldon (arXiv:1910.13153, §3).

A record's share is its sufficient statistic in whole steps: a place in its range (2³² steps), a count, one unit in its
category, a distance from the centre (2³¹ steps to the bound). The laws of the coordinates that the record moves are
those of `methods.added_noise.audit`. Posterior and intervals are post-processing, so whoever is told the noisy sums knows all there is to
know: both baselines are attacked there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onedraw import models
from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, Pair
from onedraw.audit.cases.conjugate import worst_pairs
from onedraw.audit.cases.laws import Law
from onedraw.baselines import NoiseAware, SufficientStatistics
from onedraw.methods.added_noise.audit import ATTAINED, NoiseCase, laplace, law_of
from onedraw.methods.catalog import cases_of
from onedraw.models.conjugate.family import Move
from onedraw.plans import Plan
from onedraw.privacy import Promise

PLACES, TO_THE_BOUND = 2.0**32, 2.0**31

LAWS = ("laplace", "gaussian")


class FamilySumsCase(NoiseCase):
    """A record is its statistic, in whole steps."""

    def share(self, data: Any) -> Array:
        model, record = self.plan.model, data[-1]
        match model:
            case models.BetaBernoulli():
                place = (record - model.lower) / (model.upper - model.lower)
                return np.array([np.rint(PLACES * min(max(place, 0.0), 1.0))])
            case models.DirichletCategorical():
                return np.array([float(record == code) for code in range(len(model.prior))])
            case models.GaussianMean():
                away = (np.atleast_1d(record) - np.atleast_1d(model.centre)) / model.bound
                return np.asarray(np.rint(TO_THE_BOUND * away / max(1.0, float(np.linalg.norm(away)))))
            case models.GammaPoisson():
                return np.array([float(min(max(round(record), 0), model.cap))])
        return np.array([np.rint(PLACES * min(max(record / model.cap, 0.0), 1.0))])


def family_sums_case(plan: Plan, *, label: str = "") -> FamilySumsCase:
    """The case of any plan of noisy sums of a family, on its worst neighbours."""
    return FamilySumsCase(plan, worst_pairs(_worst_moves(plan.model), plan.n), ATTAINED, True, label)


def _worst_moves(model: Any) -> tuple[Move, ...]:
    """Of vectors along the ball's diagonal, which is far in L1 as well as in L2."""
    if not isinstance(model, models.GaussianMean) or model.dim == 1:
        return tuple(model.worst_moves)
    away = model.bound / math.sqrt(model.dim)
    low, high = ((np.atleast_1d(model.centre) + sign * away).tolist() for sign in (-1.0, 1.0))
    return (Move(low, low, high),)


# ── products of rows and responses ───────────────────────────────────────────────────────────────────────────────────


class ProductSumsCase(NoiseCase):
    """A record is the products of its entries, each over its bound, the intercept's own left out."""

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        """Of Laplace noise on many entries: their laws multiplied one by one, cells of equal log-ratio merged."""
        if law_of(self.plan) == "gaussian":
            return super().profile(pair, factor)
        scale, moved = self.numbers(factor)["scale"], self.moved(pair)
        laws = (Law(*map(np.log, laplace(moved[[j]], scale))) for j in np.flatnonzero(moved))
        return Law.together(laws).profile()

    def share(self, data: Any) -> Array:
        model, mechanism = self.plan.model, self.plan.mechanism
        bounds = np.maximum(*np.abs(np.array(model.features.encoded_ends)))
        row = np.append(data[0][-1] / bounds, [1.0, data[1][-1] / float(mechanism.response_bound or 1.0)])
        k = np.rint(np.clip(row, -1.0, 1.0) * 2.0**18)
        products = np.tril(np.outer(k, k))
        products[-2, -2] = 0.0
        return products[np.tril_indices(len(k))]


def product_sums_case(plan: Plan, *, label: str = "") -> ProductSumsCase:
    """Rows with an intercept: from all entries at 1 to all at −1/(q+1), which is farthest in L1; and, for L2, to ±1 in
    turns."""
    columns, scale = plan.model.features.count, np.array(plan.model.features.encoded_ends[1])
    y = float(plan.mechanism.response_bound or 1.0)
    far = np.full(columns + 1, -1.0 / (columns + 2.0))
    if law_of(plan) == "gaussian":
        far = np.where(np.arange(columns + 1) % 2 == columns % 2, -1.0, 1.0)
    others = np.ones((plan.n - 1, columns + 1))
    tables = (np.vstack([others, last]) for last in (others[0], far))
    ends = [(table[:, :-1] * scale, table[:, -1] * y) for table in tables]
    even = law_of(plan) == "laplace" or columns % 2 == 0
    return ProductSumsCase(
        plan, (Pair("one row from 1 to the farthest", *ends),), ATTAINED if even else ODD, even, label
    )


ODD = "no two rows of ±1 are orthogonal: with an odd number of entries the bound p is not attained"

REGRESSION = models.GaussianRegression(2, bounds=(-2, 2), variance_floor=0.01)


def product_sums_cases(budget: Promise, *, n: int = 12) -> list[Case]:
    asked = [(law, NoiseAware(law, response_bound=3.0), REGRESSION) for law in LAWS]
    return cases_of(product_sums_case, asked, budget, n=n)


def noise_aware_case(plan: Plan) -> Case:
    return product_sums_case(plan) if isinstance(plan.model, models.GaussianRegression) else family_sums_case(plan)


# ── families ─────────────────────────────────────────────────────────────────────────────────────────────────────────


FAMILIES: tuple[Any, ...] = (
    models.BetaBernoulli(), models.DirichletCategorical((1.0, 2.0, 3.0)),
    models.GaussianMean(bound=2.0, variance=1.0, prior_count=1.0),
    models.GaussianMean(bound=1.0, variance=1.0, prior_count=1.0, dim=3),
    models.GammaPoisson(prior=(1.0, 1.0), cap=5), models.GammaExponential(prior=(2.0, 2.0), cap=2.0),
)  # fmt: skip


def family_sums_cases(mechanism: Callable[[str], Any], budget: Promise, *, n: int = 10) -> list[Case]:
    """Every family, with Laplace noise and with Gaussian noise where the budget admits it."""
    sizes = ((f", {family.dim} dimensions" if getattr(family, "dim", 1) > 1 else "", family) for family in FAMILIES)
    asked = [(law + size, mechanism(law), family) for size, family in sizes for law in LAWS]
    return cases_of(family_sums_case, asked, budget, n=n)


def sufficient_statistics_cases(budget: Promise) -> list[Case]:
    return family_sums_cases(SufficientStatistics, budget)


def noise_aware_cases(budget: Promise) -> list[Case]:
    return [*family_sums_cases(NoiseAware, budget), *product_sums_cases(budget)]
