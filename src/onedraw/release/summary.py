"""Estimates as a table: a tuple of named rows that prints well, and that ``pandas.DataFrame(table)`` takes as it is.

A category of several levels has a row for each and one test of all of them together (`Joint`): single levels are compared with
the first one declared, and which one that is should not decide whether the category matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from onedraw.data import Schema
from onedraw.mechanisms import PerturbedMode, Plan
from onedraw.models.fit.result import FitResult

from .certificate import Certificate


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


class Joint(NamedTuple):
    """Wald's test of "this category makes no difference": all its levels at once; NaN where one of them is refused."""

    term: str
    label: str
    statistic: float
    degrees: int
    p_value: float

    def __str__(self) -> str:
        about = f"{self.term}{f' ({self.label})' if self.label else ''}, all {self.degrees + 1} levels together"
        if math.isnan(self.p_value):
            return f"{about}: no test, since the records say too little about one of them"
        return (
            f"{about}: χ² = {_shown(self.statistic)} on {self.degrees} degrees of freedom, p {_p_words(self.p_value)}"
        )


class Summary(tuple[Estimate, ...]):
    """Rows of `Estimate`, the tests of whole categories, and the sentences that belong beside them."""

    level: float
    joint: tuple[Joint, ...]
    remarks: tuple[str, ...]

    def __new__(
        cls, rows: Iterable[Estimate], *, level: float, joint: Iterable[Joint] = (), remarks: Iterable[str] = ()
    ) -> Self:
        table = super().__new__(cls, rows)
        table.level, table.joint, table.remarks = level, tuple(joint), tuple(remarks)
        return table

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (tuple(self),), {"level": self.level, "joint": self.joint, "remarks": self.remarks}

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
        return "\n".join([*table, *map(str, self.joint), *self.remarks])

    __repr__ = __str__


def _test(row: Estimate) -> list[str]:
    error = math.hypot(row.sampling_error, row.privacy_error)
    if math.isnan(row.p_value):
        return ["–" if math.isnan(row.low) or math.isnan(error) else _shown(error), "–"]
    return [_shown(error), _p_words(row.p_value).removeprefix("= ")]


def _p_words(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _shown(value: float) -> str:
    return f"{value:.4g}"


# ── from a certificate ───────────────────────────────────────────────────────────────────────────────────────


def no_interval(reason: str) -> str:
    return f"No interval: {reason.rstrip('.')}."


def terms_of(certificate: Certificate, plan: Plan) -> list[tuple[str, str]]:
    """(term, label) of each released number: of several classes the column and the class."""
    model: Any = plan.model
    blocks = getattr(model, "row_blocks", 1)
    if blocks == 1 or not hasattr(model, "classes"):
        return [(name, "") for name in certificate.draw.names]
    return [(name, str(label)) for label in model.classes for name in model.features.column_names]


def joint_tests(fit: FitResult, certificate: Certificate, plan: Plan) -> tuple[Joint, ...]:
    """One for each declared category of more than two levels, and for each class where there are several."""
    declared, mechanism = certificate.data.declared, plan.mechanism
    if declared is None or not isinstance(mechanism, PerturbedMode) or not fit.informed:
        return ()
    columns = Schema.from_dict(declared).columns
    coded = [name for name, column in columns.items() if name != certificate.data.target and column.kind in ("category", "binary")]  # fmt: skip
    width, labels = plan.model.features.width, getattr(plan.model, "classes", None) or ()
    labels = [str(label) for label in labels] if plan.model.row_blocks > 1 else [""]
    return tuple(
        Joint(name, label, *fit.wald(range(block * width + start, block * width + stop)))
        for block, label in enumerate(labels)
        for name, (start, stop) in zip(coded, mechanism.categories, strict=True)
        if stop - start > 1
    )
