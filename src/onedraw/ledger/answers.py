"""What a ledger answers: how much is left, and whether its history holds."""

from __future__ import annotations

from dataclasses import dataclass

from onedraw.privacy import Promise


@dataclass(frozen=True)
class Remaining:
    """What is left. A reservation of PureDP(``epsilon``) is accepted as long as nobody else spends first.

    ``spent_epsilon`` is the ε spent at ``delta`` (`Promise.quoted_delta` of the budget) by the proven filter
    that gives the smallest. ``kept_by`` says whether the budget is kept by a filter ("adaptive: …") or as one list
    ("pre-declared: …"). ``listed_epsilon`` is the total as if every promise had been fixed before the first draw; it
    is computed only where nothing else keeps the budget.
    """

    epsilon: float
    delta: float
    spent_epsilon: float
    budget: Promise
    kept_by: str = ""
    listed_epsilon: float | None = None


@dataclass(frozen=True)
class Verification:
    """The chain holds. ``ok``: every budget is found kept as well; ``findings`` say where not.

    ``mark`` says what the history was compared with: the mark beside a SQLite file, or nothing for a copy.
    ``remarks`` name budgets kept only if every promise was fixed before the first draw: older ledgers may hold such.
    """

    ok: bool
    events: int
    head: str
    findings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    mark: str = ""

    def __bool__(self) -> bool:
        return self.ok
