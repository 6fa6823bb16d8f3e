"""What pages say before any record is read: the errors that a plan expects, and what is declared of the columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from onedraw.plain_text import shown


def declared_columns(planned: Any) -> list[dict[str, str]]:
    """Return what the schema of a plan declares of each column."""
    declared: dict[str, Callable[[Any], str]] = {
        "number": lambda column: f"{shown(column.lower)} to {shown(column.upper)}",
        "count": lambda column: f"0 to {shown(column.cap)}",
        "date": lambda column: ", ".join(f"{name} {value}" for name, value in column.stated.items()),
    }
    return [
        {
            "name": name
            + (" (explained)" if name not in planned.asked.schema.predictors(planned.asked.target) else ""),
            "kind": column.kind,
            "declared": declared.get(column.kind, lambda of: ", ".join(of.labels))(column),
            "missing": shown(column.missing),
        }
        for name, column in planned.asked.schema.columns.items()
    ]


def _error(error: float) -> str:
    return shown(error) if math.isfinite(error) else "unknown"


def expected_of(choices: Any, *, replaced: bool = False) -> dict[str, Any]:
    """The plan's table: every mechanism that could have been used, best first, and why the others could not.

    A fit's plan speaks of each column in two designs instead; where the release has standard errors they replace it.
    """
    from onedraw.planning.designs import BEYOND

    choice = choices.eligible[0]
    fit, shown_designs = choice.found is None, () if replaced or choice.found is not None else choice.designs
    rows = [(one.plan.heading, _error(one.expected.private), _error(one.expected.sampling)) for one in choices.eligible if not fit]  # fmt: skip
    marked = ", no interval" if shown_designs and choice.intervals else ""
    columns = [
        (one.name, *(f"{_error(error.private)}{marked if error.has_interval is False else ''}" for error in (one, worst)), _error(one.sampling))
        for one, worst in (choice.by_column if shown_designs else ())
    ]  # fmt: skip
    return {
        "columns": columns,
        "beyond": f"{choice.designs_in_words} {BEYOND}" if shown_designs else "",
        "intervals": choice.intervals if shown_designs else "",
        "rows": rows,
        "refused": sorted(choices.refused.items()),
        "why": choices.why,
    }
