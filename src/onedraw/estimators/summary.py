"""Estimates as a table: a tuple of named rows that prints well, and that ``pandas.DataFrame(table)`` takes as it is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Self


class Estimate(NamedTuple):
    """One number people read, in the column's own units; NaN where there is no interval.

    ``sampling_error`` and ``privacy_error`` are standard errors of the estimate: from the sample of people, and from the
    draws. ``label`` is the class or level the row is about, empty where there is only one.
    """

    term: str
    label: str
    estimate: float
    low: float
    high: float
    sampling_error: float
    privacy_error: float
    p_value: float = math.nan


class Summary(tuple[Estimate, ...]):
    """Rows of `Estimate`, with the sentences that belong beside them."""

    level: float
    remarks: tuple[str, ...]

    def __new__(cls, rows: Iterable[Estimate], *, level: float, remarks: Iterable[str] = ()) -> Self:
        table = super().__new__(cls, rows)
        table.level, table.remarks = level, tuple(remarks)
        return table

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (tuple(self),), {"level": self.level, "remarks": self.remarks}

    def __str__(self) -> str:
        labelled = any(row.label for row in self)
        tested = any(not math.isnan(row.p_value) for row in self)
        head = ["term", *(["label"] if labelled else []), "estimate", f"{100 * self.level:g} % interval"]
        lines = [[*head, "std err", "p"] if tested else head]
        for row in self:
            known = not math.isnan(row.low)
            between = f"{_shown(row.low)} to {_shown(row.high)}" if known else "–"
            line = [row.term, *([row.label] if labelled else []), _shown(row.estimate), between]
            lines.append([*line, *_test(row)] if tested else line)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = (
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )
        return "\n".join([*table, *self.remarks])

    __repr__ = __str__


def _test(row: Estimate) -> list[str]:
    if math.isnan(row.p_value):
        return ["–", "–"]
    small = row.p_value < 0.001
    return [_shown(math.hypot(row.sampling_error, row.privacy_error)), "< 0.001" if small else f"{row.p_value:.3f}"]


def _shown(value: float) -> str:
    return f"{value:.4g}"
