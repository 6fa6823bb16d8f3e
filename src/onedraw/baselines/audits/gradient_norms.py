"""KNG under attack: one coefficient, public candidates, and the law of the pick by summation.

A candidate's score is written down again: Σ ⌊(V − √d)·φ'(θᵀx, y)·x/L⌉, each term 0 where it is longer than V, the prior's gradient added,
and the whole part of the norm. Half of the records pull one way and half the other, so that the gradient vanishes near 0; there a record
whose label is turned moves it by nearly all of 2L. A candidate on one side gains what the likeliest one, on the other, loses: the
whole ε. Candidates are drawn anew for each release, and of many layouts the worst is looked at.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, no_formula, pure
from onedraw.audit.cases.losses import flips, records_of, slope_of
from onedraw.audit.cases.selections import SelectionCase
from onedraw.baselines import KNG
from onedraw.methods.candidates.audit import ProposedCase
from onedraw.methods.catalog import cases_of
from onedraw.models import Gaussian, Logistic
from onedraw.plans import Plan
from onedraw.privacy import Promise

FARTHEST = 600.0
"""A candidate further behind is taken to be no further: its chance still is a number with all its digits."""

OPPOSITE = "a candidate gains what the likeliest one, on the other side of the minimum, loses: the whole ε"


class NormCase(ProposedCase, SelectionCase):
    """The pick of a KNG plan, given its candidates."""

    layouts = 20

    def law(self, records: Any, factor: float = 1.0) -> Array:
        """The probabilities of the candidates of the worst layout; records ``factor`` times as heavy are more steps of the same lattice."""
        return self._law(self.proposed(self.layout_seed)[0], records, factor)

    def _law(self, thetas: Array, records: Any, factor: float) -> Array:
        numbers, model, slope = self.numbers(factor), self.plan.model, slope_of(self.plan.model)
        reach = slope.steepest * math.sqrt(float(model.features.squared_reach))
        scale = (numbers["width"] - math.sqrt(model.dimension)) / reach
        X, y = records_of(model, records)
        rows, counts = np.unique(X * y[:, None], axis=0, return_counts=True)
        steps = np.rint(scale * slope.slope(thetas @ rows.T)[:, :, None] * rows)
        steps[(steps**2).sum(axis=2) > numbers["width"] ** 2] = 0.0
        prior = np.rint(
            scale * model.prior.precision(model.dimension) * (thetas - model.prior.location(model.dimension))
        )
        norms = np.floor(np.linalg.norm(counts @ steps + prior, axis=1))
        behind = np.ldexp(norms - norms.min(), -int(numbers["bits"]))
        return np.asarray(special.softmax(-np.minimum(behind, FARTHEST)))

    def contrast(self, thetas: Array) -> float:
        first, second = (self._law(thetas, records, 1.0) for records in self.pairs[0])
        return float(np.abs(np.log(first) - np.log(second)).max())


def norm_case(plan: Plan, *, label: str = "") -> NormCase:
    """The case of any plan for two classes: the crowd in balance along the longest row, and one label turned."""
    model = plan.model
    if not isinstance(model, Logistic):
        raise no_formula("gradient norms of Logistic, not of", model)
    return NormCase(plan, flips(model, plan.n), OPPOSITE, model.dimension == 1, label)


def norm_cases(budget: Promise) -> list[Case]:
    model = Logistic(1, bounds=(-1, 1), intercept=False, loss="exp-linear", prior=Gaussian(scale=1.0))
    return cases_of(norm_case, [("", KNG(), model)], pure(budget), n=20_001)
