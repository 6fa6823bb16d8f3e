"""A cross table as a heat map: the number in each cell with its interval beside it, the stronger the colour the larger the number.

Its two sides are the groups and the levels that are counted in them, or, where one number is given for each group, the two
columns that make the groups. The longer side runs down the page, so that a table of two by six is readable on a phone. Counts of all levels have
totals: sums of the cells that are shown, which together are the public n.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onedraw.models import Model, Table
from onedraw.models.tables.table import Side

from .formatting import whole

MOST_CELLS = 240
"""More cells than this are a list."""

TONES = 5
"""Classes of the style sheet, from the faintest to the strongest colour."""


def sides_of(model: Model, target: str | None) -> tuple[Side, Side] | None:
    """What runs down and what runs across, each with its name; None where the numbers make no cross table."""
    sides = model.sides(target) if isinstance(model, Table) else None
    if sides is None:
        return None
    rows, columns = (len(levels) for _, levels in sides)
    return sides if min(rows, columns) >= 2 and rows * columns <= MOST_CELLS else None


def cross_of(model: Table, target: str | None, values: Sequence[float], words: Sequence[dict[str, Any]]) -> Any:
    """For the page; ``values`` and ``words`` are those of the cells, the last side fastest."""
    sides = sides_of(model, target)
    if sides is None:
        return None
    (down, rows), (across, columns) = sides
    shape = len(rows), len(columns)
    numbers = np.array(values[: shape[0] * shape[1]], dtype=np.float64).reshape(shape)
    cells = np.array(words[: numbers.size], dtype=object).reshape(shape)
    if len(columns) > len(rows):
        down, rows, across, columns, numbers, cells = across, columns, down, rows, numbers.T, cells.T
    tones = tones_of(numbers, from_zero=model.form != "groups")
    total = model.show == "counts" and bool(model.each_level)
    return {
        "down": down,
        "across": across,
        "columns": columns,
        "rows": [
            {
                "name": name,
                "cells": [{**cells[i, j], "tone": int(tones[i, j])} for j in range(len(columns))],
                "total": whole(float(numbers[i].sum())) if total else None,
            }
            for i, name in enumerate(rows)
        ],
        "totals": [whole(float(sum_)) for sum_ in numbers.sum(axis=0)] if total else None,
        "all": whole(float(numbers.sum())) if total else None,
        "largest": largest(numbers, rows, columns, cells),
    }


def tones_of(numbers: Any, *, from_zero: bool) -> Any:
    low, high = (0.0 if from_zero else float(np.min(numbers))), float(np.max(numbers))
    if not high > low:
        return np.zeros(numbers.shape, dtype=np.int64)
    return np.clip(np.ceil(TONES * (numbers - low) / (high - low)), 0, TONES).astype(np.int64)


def largest(numbers: Any, rows: Sequence[str], columns: Sequence[str], cells: Any) -> str:
    """For whoever cannot see the colours."""
    i, j = divmod(int(np.argmax(numbers)), numbers.shape[1])
    return f"The largest is {cells[i, j]['value']}, of {rows[i]} and {columns[j]}."
