"""The page of a description: the first table of a paper, on at most two printed pages."""

from __future__ import annotations

import math
from typing import Any

from onedraw.ledger import Ledger
from onedraw.planning.description import budget_split
from onedraw.privacy import Promise
from onedraw.release import Release
from onedraw.release.description import Cell, Line, TableOne, between
from onedraw.release.review import flags_of

from .content import assumption_words, verification, warnings_of


def table_content(release: Release, *, ledger: Ledger | None = None, level: float = 0.95) -> dict[str, Any]:
    """Everything `table_one.html` needs, by name."""
    verified, unverified = verification(release, ledger)
    certificate, plan = release.certificate if verified is None else verified.certificate, release.plan
    table = release.table_one(level)
    promise = Promise.from_dict(certificate.promise.native)
    return {
        "certificate": certificate,
        "title": "Table 1" + (f" by {' and '.join(table.by)}" if table.by else ""),
        "warnings": warnings_of(certificate, plan, finding=None, promise=promise, unverified=unverified),
        "flags": flags_of(
            certificate,
            verified=None if verified is None else verified.answer,
            intervals=[not math.isnan(cell.low) for cell in table.cells],
        ),
        "head": table.head,
        "blocks": list(blocks_of(table)),
        "note": table.note,
        "coverage": certificate.coverage("this report and release.json"),
        "split": budget_split(plan),
        "assumptions": assumption_words(certificate.assumptions),
        "json": release.certificate.to_json(),
    }


def blocks_of(table: TableOne) -> Any:
    """The lines of each column together, its name above them."""
    columns: dict[str, list[Line]] = {}
    for line in table.lines:
        columns.setdefault(line.column, []).append(line)
    width = len(table.head) - 1
    for column, lines in columns.items():
        single = len(lines) == 1
        block = [] if single else [{"column": True, "name": column, "cells": [empty()] * width}]
        for line in lines:
            name = line.name if not single or line.column == line.name else f"{column}: {line.name}"
            block.append(
                {
                    "column": single,
                    "name": name,
                    "cells": [cell_words(table, line, cell) for cell in table.row_of(line)],
                }
            )
        yield block


def empty() -> dict[str, Any]:
    return {"value": "", "interval": "", "noisy": False}


def cell_words(table: TableOne, line: Line, cell: Cell | str) -> dict[str, Any]:
    """A cell's value, its interval, and whether it is too noisy; the difference is never marked."""
    if isinstance(cell, str):
        return {"value": cell, "interval": "", "noisy": False}
    value, _, interval = between(line, cell).partition(" (")
    return {
        "value": value,
        "interval": interval.removesuffix(")"),
        "noisy": cell.too_noisy and cell is not line.difference,
    }
