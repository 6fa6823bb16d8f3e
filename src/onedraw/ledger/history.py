"""The spends of one account, and what a filter makes of them."""

from __future__ import annotations

from collections.abc import Iterator

from onedraw.privacy import compose
from onedraw.privacy.filters import NOTHING, Charge, Filter, Spend, add

WORK_ALONE = compose()
"""What an attempt that let nothing out has promised: no draw; its padded work is within γ₂ of a public number."""


class History:
    """Spends, newest first: a new one shares all older ones, so a history of any length grows by one step per event. ``count``
    has releases and lists, not further attempts at them."""

    __slots__ = ("_known", "count", "older", "spend")

    def __init__(self, spend: Spend, older: History | None) -> None:
        self.spend, self.older = spend, older
        self.count: int = (0 if older is None else older.count) + (spend.promise != WORK_ALONE)
        self._known: dict[Filter, Charge] | None = None

    def __iter__(self) -> Iterator[Spend]:
        step: History | None = self
        while step is not None:
            yield step.spend
            step = step.older

    def total(self, by: Filter) -> Charge:
        """Add up every charge, from the newest step that has been asked before.

        The total is also kept one step back: whether a promise fits is asked of a step that is then thrown away.
        """
        steps: list[History] = []
        step: History | None = self
        while step is not None and (step._known is None or by not in step._known):
            steps.append(step)
            step = step.older
        total = NOTHING if step is None or step._known is None else step._known[by]
        for later in reversed(steps):
            total = add(total, by.charge(later.spend))
            if later is self or later is self.older:
                later._known = {**(later._known or {}), by: total}
        return total
