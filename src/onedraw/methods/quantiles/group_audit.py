"""Quantiles within private groups, written down again: a selection in each of two groups, and the noise on their sizes.

The worst record leaves one group for the other. Each rank distance then moves by a half in both groups, and two numbers of records by
one. A pair that attains the sum of both ranges has the records at the ends.
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
from onedraw.methods.base import calibrate
from onedraw.methods.quantiles import GroupQuantiles
from onedraw.methods.quantiles.audit import RankCase, rank_law
from onedraw.models import ColumnQuantiles, Grouped
from onedraw.plans import Plan
from onedraw.privacy import ZCDP, Promise, PureDP

ATTAINED = "one record leaves a group for another: two numbers of records move by one"


class GroupSelection(RankCase):
    """The first level of selections in two groups, one for each; its promise is its own part of the plan's.

    A record leaves one group for the other: each rank distance moves by a half in both. ``sizes`` is the noisy number of records
    that was published before, the same for both data sets.
    """

    sizes = (4, 4)

    @property
    def flip(self) -> bool:
        return bool(self.plan.parameters["flip"])

    @property
    def promise(self) -> Promise:
        return PureDP(self.plan.parameters["epsilon_1"])

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        return audit.finite_profile(*(self.law(records, factor) for records in pair))

    def law(self, records: Grouped, factor: float = 1.0) -> Array:
        """The probability of every pair of places."""
        model, eta = self.plan.model, self.eta("width_1", factor)
        places, codes = self.places(records.values), np.asarray(records.codes[0])
        (level,) = model.levels
        laws = []
        for group, size in enumerate(self.sizes):
            own = places[codes == group].tolist()
            wanted = len(own) / 2.0 + size * (level - 0.5)
            laws.append(rank_law(own, range(model.steps + 1), wanted, eta, flip=self.flip))
        return np.outer(*laws).reshape(-1)


class GroupSizes(Case):
    """Noise on numbers of records: a record that changes its group moves two of them; the fault divides the noise."""

    noises = ("sizes_scale",)

    @property
    def promise(self) -> Promise:
        numbers = self.plan.parameters
        return PureDP(numbers["sizes_epsilon"]) if "sizes_epsilon" in numbers else ZCDP(numbers["sizes_rho"])

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        counts = [np.bincount(np.asarray(records.codes[0]).astype(int), minlength=2) for records in pair]
        moved, scale = np.abs(counts[0] - counts[1]), self.numbers(factor)["sizes_scale"]
        if "sizes_rho" in self.plan.parameters:
            return audit.finite_profile(*normal_cells(float(np.hypot.reduce(moved)) / scale))
        first, second = np.ones(1), np.ones(1)
        for distance in moved[moved > 0]:
            q = math.exp(-int(distance) / scale)  # of whole numbers, one step apart: at most the lower count, or more
            masses = np.array([1.0, q]) / (1.0 + q)
            first, second = np.outer(first, masses).reshape(-1), np.outer(second, masses[::-1]).reshape(-1)
        return audit.finite_profile(first, second)


def group_cases(budget: Promise) -> list[Case]:
    """Selections in two groups on a small lattice, and the noise on the groups' sizes."""
    model = ColumnQuantiles((0.5,), 0.0, 8.0, step=1.0, interval=None, by=("group",), groups=(("a", "b"),))
    plan = calibrate(GroupQuantiles(), model, budget, n=8)
    pairs = tuple(
        Pair(f"a record at {start} of one group is at {end} of the other",
             Grouped([*first, start, *second], ([0.0] * (len(first) + 1) + [1.0] * len(second),)),
             Grouped([*first, *second, end], ([0.0] * len(first) + [1.0] * (len(second) + 1),)))
        for first, start, second, end in (([8.0] * 3, 8.0, [0.0] * 4, 0.0), ([0.0, 8.0, 8.0], 0.0, [0.0, 8.0], 8.0), ([4.0] * 3, 8.0, [3.0, 5.0], 0.0))
    )  # fmt: skip
    reason = "all rank distances of both groups move by a half at once only if the records crowd at the ends"
    return [
        GroupSelection(plan, pairs, reason, False, "two groups"),
        GroupSizes(plan, pairs[:1], ATTAINED, True, "sizes of groups"),
    ]


def group_case(plan: Plan) -> Case:
    """The noise on the sizes of any plan: the part of it whose worst pair is known."""
    first = Grouped([plan.model.lower] * plan.n, tuple([0.0] * plan.n for _ in plan.model.groups))
    second = Grouped(
        [plan.model.lower] * plan.n,
        tuple([0.0] * (plan.n - 1) + [float(k == 0)] for k, _ in enumerate(plan.model.groups)),
    )
    return GroupSizes(plan, (Pair("one record changes its group", first, second),), ATTAINED, True, "sizes of groups")


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {"median": group_cases}
