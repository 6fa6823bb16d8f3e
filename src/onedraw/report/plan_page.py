"""A plan as a page to read and sign, before any record is read: what would be promised, published and assumed.

Everything on it is public: the question, the schema, n, the budget and what follows from them. Its fingerprint is that of the plan,
which stands on the certificate of every release made by it, so that what was signed can be told from what was not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from onedraw.data import Schema
from onedraw.errors import CannotWrite
from onedraw.privacy import Promise
from onedraw.privacy.attacker import Attacker
from onedraw.release.files import write_whole

from .content import assumption_words, attacker_words, expected_of
from .formatting import shown, shown_up, small
from .page import check_place, template

MOST_NAMES = 60
"""Numbers listed by name, at most."""


def plan_html(planned: Any) -> str:
    """The plan as one HTML document; ``planned`` is what `onedraw.plan` returns."""
    return str(template("plan.html").render(plan_content(planned)))


def write_plan(planned: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write `plan_html` to ``path``, whole or not at all."""
    target = Path(path)
    check_place(target, overwrite=overwrite)
    text = plan_html(planned)
    try:
        write_whole(target, text, overwrite=overwrite)
    except OSError as error:
        raise CannotWrite(
            f"The plan could not be written to {target}: {error.strerror}. Choose another place."
        ) from error
    return target


def plan_content(planned: Any) -> dict[str, Any]:
    """Everything `plan.html` needs, by name."""
    plan, schema = planned.plan, planned.asked.schema
    budget: Promise = planned.budget
    delta, names = budget.quoted_delta, list(plan.model.parameter_names)
    return {
        "title": planned.asked.title[:1].upper() + planned.asked.title[1:],
        "budget": str(budget),
        "epsilon": shown_up(budget.epsilon(delta)),
        "delta": small(delta),
        "n": f"{planned.n:,}",
        "unit": plan.guarantee.unit.sentence,
        "dataset": schema.dataset,
        "quantity": plan.model.quantity,
        "names": names[:MOST_NAMES],
        "more": max(0, len(names) - MOST_NAMES),
        "besides": sum(plan.stage_sizes.values()),
        "method": planned.choices.why,
        "why_no_interval": planned.why_no_interval,
        "attacker": attacker_words(Attacker(plan.guarantee.promise, delta), plan),
        "assumptions": assumption_words(plan.guarantee.assumptions),
        "expected": expected_of(planned.choices),
        "columns": columns_of(schema, planned.asked.target),
        "inferred": schema.notice,
        "person": schema.person,
        "digest": plan.digest,
    }


def columns_of(schema: Schema, target: str | None) -> list[dict[str, str]]:
    """What is declared about each column, in words."""
    return [
        {
            "name": name + (" (explained)" if name == target else ""),
            "kind": column.kind,
            "declared": declared_words(column),
            "missing": shown(column.missing),
        }
        for name, column in schema.columns.items()
    ]


def declared_words(column: Any) -> str:
    match column.kind:
        case "number":
            return f"{shown(column.lower)} to {shown(column.upper)}"
        case "count":
            return f"0 to {shown(column.cap)}"
        case _:
            return ", ".join(column.labels)
