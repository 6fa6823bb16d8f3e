"""A choice among settings, written down again: exp(−η·loss), or permute and flip.

On the worst pair all records but one favour the same candidate, so the others have next to no chance, and the last record takes its
whole loss from one of them to the winner: that one's chance grows by e^{2η}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onedraw import audit
from onedraw.mechanisms import ExponentialChoice, Plan, calibrate
from onedraw.models.tables.model_choice import LOSS_STEPS, Losses, ModelChoice
from onedraw.privacy import Promise

from .case import Case, LogDensity, Pair
from .quantiles import flips, selection_law, with_widths


@dataclass(frozen=True)
class ChoiceCase(Case):
    """Records are rows of losses, one for each candidate."""

    weights: ClassVar[tuple[str, ...]] = ("width",)

    def faulty(self, factor: float) -> Plan:
        return with_widths(self.plan, factor)

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        return audit.finite_profile(*(self.law(records, factor) for records in (pair.first, pair.second)))

    def law(self, records: Any, factor: float = 1.0) -> Any:
        eta = factor * self.plan.parameters["width"] * LOSS_STEPS / 2.0**40
        sums = np.sum(records.read(), axis=0)
        return selection_law(-eta * sums, np.ones(len(sums)), flip=flips(self.plan))

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        chances = np.log(self.law(records, factor))
        return lambda draws: chances[np.asarray(draws).reshape(-1).astype(int)]


def choice_case(plan: Plan) -> ChoiceCase:
    """The case of any plan: one record changes sides among all, and among records in balance, where draws tell most."""
    size, n = len(plan.model.names), plan.n

    def rows(losers: int, last: bool) -> Losses:
        """The first candidate loses ``losers`` times, the second as often as not, all others always."""
        table = np.ones((n, size))
        table[:, 0], table[:, 1] = 0.0, 1.0
        table[:losers, 0], table[:losers, 1] = 1.0, 0.0
        if last:
            table[-1, 0], table[-1, 1] = 1.0, 0.0
        return Losses(n, lambda: table)

    pairs = tuple(
        Pair(name, rows(losers, False), rows(losers, True))
        for name, losers in (("all agree but one", 0), ("in balance", (n - 1) // 2))
    )
    return ChoiceCase(
        plan, pairs, "the other records agree, so that the record that changes sides moves one chance by all of ε", True
    )


def choice_cases(budget: Promise) -> list[Case]:
    return [choice_case(calibrate(ExponentialChoice(), ModelChoice(("a", "b", "c")), budget, n=1000))]
