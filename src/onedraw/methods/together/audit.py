"""Several tables released together: the laws of all noisy sums on two data sets that differ in one record.

The record goes from one end of every column, and from one group, to the other: each table is moved as far as it can be at once, and the
parts' losses add up. Of Laplace noise the outcomes of a number are at most one sum, between the two, at least the other; of more than eight
numbers only the first eight are looked at, which can only hide information. Parts that select are left out here: their own cases
attack them. The fault divides the noise of every table; a promise that forgets a part is broken by the same pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onedraw import audit
from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, Pair
from onedraw.audit.cases.laws import normal_cells
from onedraw.methods.base import Mechanism, calibrate
from onedraw.methods.together import Together
from onedraw.models import CategoryTable, NumberTable, Several, Table
from onedraw.plans import Plan
from onedraw.privacy import ZCDP, Promise, PureDP

MOST_NUMBERS = 8

REASON = "the record goes from one end of every column to the other: all tables are moved as far as they can be at once"


class TogetherCase(Case):
    """Noisy tables of one plan: a Gaussian law of one number, the sum of all moves, or the product of Laplace laws."""

    without_draws = "its tables are attacked by draws one by one, as cases of their own"

    @property
    def tables(self) -> list[Plan]:
        found = self.plan.mechanism.part_plans(self.plan)
        return [part for part in found if isinstance(part.model, Table)]

    @property
    def promise(self) -> Promise:
        """Of the tables alone: their shares of the plan's."""
        found = [part.guarantee.promise for part in self.tables]
        if self.plan.parameters["pure"]:
            return PureDP(sum(one.pure_epsilon for one in found) * (1.0 + 2.0**-40))
        return ZCDP(sum(one.zcdp_rho for one in found) * (1.0 + 2.0**-40))

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        if all(part.mechanism.law == "gaussian" for part in self.tables):
            squares = [self.moved(part) ** 2 / self.scale(part, factor) ** 2 for part in self.tables]
            return audit.finite_profile(*normal_cells(math.sqrt(sum(map(float, map(np.sum, squares))))))
        first, second = np.ones(1), np.ones(1)
        losses = [
            distance / self.scale(part, factor)
            for part in self.tables
            if part.mechanism.law == "laplace"
            for distance in self.moved(part)
        ]
        for loss in losses[:MOST_NUMBERS]:
            beyond = 0.5 * math.exp(-loss)
            masses = np.array([0.5, 0.5 - beyond, beyond])
            first, second = np.outer(first, masses).reshape(-1), np.outer(second, masses[::-1]).reshape(-1)
        return audit.finite_profile(first, second)

    def scale(self, part: Plan, factor: float) -> float:
        return part.parameters["scale"] / part.parameters["refinement"] / factor

    def moved(self, part: Plan) -> Array:
        """How far the weighted sums move."""
        table, steps = part.model, 2.0**30
        if isinstance(table, CategoryTable):
            return np.ones(1 if table.rest_is_known else 2)
        if table.cells > 1:
            return np.full(2, steps)
        return np.array([2.0 * steps * table.weights(str(part.mechanism.law))[0]])


def together_case(plan: Plan) -> TogetherCase:
    pair = Pair("one record from end to end in every column", (), ())
    return TogetherCase(plan, (pair,), REASON, False, "tables together")


def together_cases(budget: Promise) -> list[Case]:
    """Three tables of one data set; in all of them the same record moves."""
    noise = Mechanism.from_dict({"name": "AddedNoise", "law": None})
    model = Several(
        ("a", "b", "c"),
        (
            NumberTable(0.0, 1.0),
            CategoryTable(("x", "y", "z"), show="shares"),
            NumberTable(0.0, 5.0, by=("b",), groups=(("x", "y"),)),
        ),
    )
    return [together_case(calibrate(Together((noise,) * 3), model, budget, n=100))]


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {"description": together_cases}
