"""A choice among settings, attacked by summation.

On its worst pair all records but one favour the same setting, so the others have next to no chance, and the last record takes its
whole loss from one of them to the winner: that one's chance grows by e^{2η}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, FiniteCase, LogDensity, Pair
from onedraw.audit.cases.selections import SelectionCase, selection_law
from onedraw.methods.base import calibrate
from onedraw.methods.model_choice import ExponentialChoice
from onedraw.models.tables.scores import LOSS_STEPS, Losses, ModelChoice
from onedraw.plans import Plan
from onedraw.privacy import Promise

SIDES = "the other records agree, so that the record that changes sides moves one chance by all of ε"


class ChoiceCase(FiniteCase, SelectionCase):
    """Records are rows of losses, one for each candidate: exp(−η·loss), or permute and flip."""

    def law(self, records: Any, factor: float = 1.0) -> Array:
        sums = np.sum(records.read(), axis=0)
        return selection_law(-self.eta("width", factor, LOSS_STEPS) * sums, np.ones(len(sums)), flip=self.flip)

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        chances = np.log(self.law(records, factor))
        return lambda draws: chances[np.asarray(draws).reshape(-1).astype(int)]


def choice_case(plan: Plan) -> ChoiceCase:
    """The case of any plan: one record changes sides among all, and among records in balance, where draws tell most."""
    size, n = len(plan.model.names), plan.n

    def rows(losers: int, last: bool) -> Losses:
        """The first candidate loses ``losers`` times, the second as often as not, all others always."""
        table = np.ones((n, size))
        lost = np.arange(n) < losers
        lost[-1] |= last
        table[:, 0], table[:, 1] = lost, ~lost
        return Losses(n, lambda: table)

    crowds = ("all agree but one", 0), ("in balance", (n - 1) // 2)
    pairs = tuple(Pair(name, rows(losers, False), rows(losers, True)) for name, losers in crowds)
    return ChoiceCase(plan, pairs, SIDES, True)


def choice_cases(budget: Promise) -> list[Case]:
    return [choice_case(calibrate(ExponentialChoice(), ModelChoice(("a", "b", "c")), budget, n=1000))]


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {"choice": choice_cases}
