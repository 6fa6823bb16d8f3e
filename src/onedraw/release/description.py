"""A table 1 from a description: lines, cells and differences, as CSV, LaTeX and HTML. Post-processing of what was published."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from onedraw.errors import WrongCall
from onedraw.methods.base import NoisyCount
from onedraw.methods.comparisons import GroupTest, Scores, p_words
from onedraw.methods.intervals import Published
from onedraw.models import CategoryTable, ColumnQuantiles, NumberTable, Several, Table
from onedraw.plain_text import brief, for_spreadsheet
from onedraw.plans import Plan
from onedraw.privacy.numbers import confidence_level

from .certificate import Certificate
from .estimates import published_of
from .tables import latex

TOO_NOISY = 0.5
"""An interval wider than this part of the declared range says too little."""

STATISTICS = (
    "records",
    "known",
    "missing",
    "mean",
    "standard deviation",
    "lower quartile",
    "median",
    "upper quartile",
    "share",
)


class Cell(NamedTuple):
    """A released number with its interval; ``reach`` is the width of its declared range."""

    value: float
    low: float
    high: float
    reach: float

    @property
    def too_noisy(self) -> bool:
        """Whether the interval exceeds half of the declared range, or is not given."""
        return not self.high - self.low <= TOO_NOISY * self.reach


class Line(NamedTuple):
    """One statistic of one column, in each group, with the difference of two groups and the p-value of "they are alike".

    Missing cells have one number for all groups together, for the group may be what is missing."""

    column: str
    statistic: str
    level: str
    cells: tuple[Cell, ...]
    difference: Cell | None = None
    p_value: float = math.nan

    @property
    def name(self) -> str:
        return f"missing {self.level}".strip() if self.statistic == "missing" else self.level or self.statistic


@dataclass(frozen=True, repr=False)
class TableOne:
    """The first table of a paper: one line for each statistic, one cell for each group."""

    n: int
    by: tuple[str, ...]
    groups: tuple[str, ...]
    lines: tuple[Line, ...]
    level: float
    sentence: str

    @property
    def cells(self) -> list[Cell]:
        return [cell for line in self.lines for cell in line.cells]

    @property
    def noisy_share(self) -> float:
        """The share of cells marked as too noisy: their interval exceeds half of the declared range."""
        return sum(cell.too_noisy for cell in self.cells) / max(len(self.cells), 1)

    @property
    def note(self) -> str:
        """What to know about all cells, in a sentence or two."""
        marked = sum(cell.too_noisy for cell in self.cells)
        words = f"{marked} of {len(self.cells)} cells ({100 * self.noisy_share:.1f} %) are marked too noisy: their interval exceeds half of the declared range."
        medians = (
            " The test of medians counts records on either side of one place; the interval of their difference holds for every distribution and is wider."
            if len(self.groups) > 1 and any(line.statistic == "median" for line in self.lines)
            else ""
        )
        return (
            f"n = {self.n:,}. Intervals of {100 * self.level:g} % are about the population and allow for sampling and the noise for privacy; of "
            f"numbers of records, for the noise.{self._missing}{medians} {words}"
        )

    @property
    def _missing(self) -> str:
        if not any(line.statistic == "missing" for line in self.lines):
            return ""
        grouped = " A cell also counts as missing where its group is." if self.by else ""
        return f" Statistics are about the known cells.{grouped}"

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dictionary for each cell and difference: what `to_csv` writes and ``pandas.DataFrame(list(table.rows()))`` takes."""
        for line in self.lines:
            for group, cell in zip(
                self.groups if len(line.cells) == len(self.groups) else [""], line.cells, strict=True
            ):
                yield self._row(line, group, cell)
            if line.difference is not None:
                yield self._row(line, f"{self.groups[0]} − {self.groups[1]}", line.difference) | {"too_noisy": ""}

    def _row(self, line: Line, group: str, cell: Cell) -> dict[str, Any]:
        numbers = {
            name: "" if math.isnan(value) else value for name, value in cell._asdict().items() if name != "reach"
        }
        return {"column": line.column, "statistic": line.statistic, "level": line.level, "group": group, **numbers, "too_noisy": cell.too_noisy,
                "p_value": "" if math.isnan(line.p_value) else line.p_value}  # fmt: skip

    def to_csv(self) -> str:
        """Return one row for each cell, numbers in full; names are made safe for spreadsheets."""
        text = io.StringIO()
        names = ["column", "statistic", "level", "group", "value", "low", "high", "too_noisy", "p_value"]
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        for row in self.rows():
            writer.writerow(
                {name: for_spreadsheet(value) if isinstance(value, str) else value for name, value in row.items()}
            )
        return text.getvalue()

    @property
    def head(self) -> list[str]:
        """The words above the columns."""
        heads = ["", *(group or "all records" for group in self.groups)]
        return [*heads, *(["difference"] if len(self.groups) == 2 else []), *(["p"] if len(self.groups) > 1 else [])]

    def row_of(self, line: Line) -> list[Cell | str]:
        """Return the cells of a line as the head has them: of each group, the difference, the p-value."""
        cells: list[Cell | str] = [*line.cells, *([""] * (len(self.groups) - len(line.cells)))]
        if len(self.groups) == 2:
            cells.append("" if line.difference is None else line.difference)
        if len(self.groups) > 1:
            cells.append("" if math.isnan(line.p_value) else p_words(line.p_value))
        return cells

    def words(self) -> Iterator[tuple[bool, list[str]]]:
        """Return each line as words: whether it begins a column, and its cells."""
        column = None
        for line in self.lines:
            first = line.column != column
            column, single = line.column, sum(other.column == line.column for other in self.lines) == 1
            if first and not single:
                yield True, [column, *([""] * (len(self.head) - 1))]
            cells = [cell if isinstance(cell, str) else between(line, cell) for cell in self.row_of(line)]
            marked = [
                word + (" too noisy" if cell.too_noisy else "") for word, cell in zip(cells, line.cells, strict=False)
            ]
            name = f"{column}: {line.name}" if single and line.name != column else line.name
            yield single, [name, *marked, *cells[len(marked) :]]

    def __str__(self) -> str:
        table = [self.head, *(row for _, row in self.words())]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join([*("  ".join(map(str.ljust, row, widths)).rstrip() for row in table), self.note])

    __repr__ = __str__

    def to_latex(self) -> str:
        """Return a ``tabular`` with the rules of the package booktabs, and the note below as a comment."""
        return latex(self.head, [(head, row) for head, row in self.words()], note=self.note)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(word)}</th>" for word in self.head)
        body = "".join(
            "<tr>" + "".join(f"<{'th' if bold or not place else 'td'}>{escape(word)}</{'th' if bold or not place else 'td'}>" for place, word in enumerate(row)) + "</tr>"
            for bold, row in self.words()
        )  # fmt: skip
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{escape(self.note)}</p>"


def between(line: Line, cell: Cell) -> str:
    """Return a number and its interval as words; of numbers of records the number alone."""
    if math.isnan(cell.value):
        return "–"
    counted, share = line.statistic in ("records", "known", "missing"), line.statistic == "share"
    write = "{:,.0f}".format if counted else _percent if share else brief
    value, low, high = (write(part).replace("-", "−") for part in cell[:3])
    unit = " %" if share else ""
    return f"{value}{unit}" if counted or math.isnan(cell.low) else f"{value}{unit} ({low} to {high})"


def _percent(value: float) -> str:
    return f"{round(100.0 * value, 1) + 0.0:.1f}"


# ── from a certificate ───────────────────────────────────────────────────────────────────────────────────────


def table_one(certificate: Certificate, plan: Plan, level: float = 0.95) -> TableOne:
    """Return the table of a description; `WrongCall` for another release."""
    if not isinstance(plan.model, Several):
        raise WrongCall("This release is no description of a data set, so it has no table 1. Use onedraw.describe.")
    level = confidence_level(level)
    parts = plan.mechanism.published_parts(plan, published_of(certificate, plan))
    groups = max((part.model.group_names for part, _ in parts), key=len)
    by = max((part.model.by for part, _ in parts), key=len)
    lines: list[Line] = []
    sized = bool(by) and plan.model.columns[0] in by
    for k, (column, (part, published)) in enumerate(zip(plan.model.columns, parts, strict=True)):
        if sized and not k:
            lines += _sizes(part, published, level)
            lines += _missing_cells(" and ".join(by), part, published, level)
            continue
        if isinstance(part.model, Table):
            lines += _known_cells(column, part, published, level)
            lines += _missing_cells(column, part, published, level)
        if isinstance(part.model, NumberTable):
            lines += _numbers(column, part, published, level)
        elif isinstance(part.model, CategoryTable):
            lines += _shares(column, part, published, level)
        else:
            lines += _quartiles(column, part, published, level)
    return TableOne(plan.n, tuple(by), groups, tuple(lines), level, certificate.sentence)


def _cells(part: Plan, published: Published, level: float, reach: float) -> list[Cell]:
    found = part.mechanism.interval(part, published, level)
    columns = np.stack([published.draws[0], found.low, found.high])
    if (without := _without(part, published)) is not None:
        columns[:, without] = np.nan
    return [Cell(value, low, high, reach) for value, low, high in columns.T.tolist()]


def _without(part: Plan, published: Published) -> Any:
    """Return which numbers are no estimates, because too few cells are known."""
    return part.mechanism.without_estimate(part, published.stages or {})


def _sizes(part: Plan, published: Published, level: float) -> Iterator[Line]:
    """The numbers of records in the groups."""
    yield Line("records", "records", "", tuple(_cells(part, published, level, float(part.n))))


def _known_cells(column: str, part: Plan, published: Published, level: float) -> Iterator[Line]:
    """In each group, where missing cells are skipped; as a whole, the missing ones say it."""
    if part.model.skips and part.model.by:
        found = part.mechanism.known_of(part, published.stages or {})
        yield Line(column, "known", "", tuple(_counted(one, level) for one in found))


def _missing_cells(column: str, part: Plan, published: Published, level: float) -> Iterator[Line]:
    if (missing := part.mechanism.missing_of(part, published.stages or {})) is not None:
        yield Line(column, "missing", "in all groups" if part.model.by else "", (_counted(missing, level),))


def _counted(count: NoisyCount, level: float) -> Cell:
    low, high = count.interval(level)
    return Cell(float(count.shown), float(low), float(high), count.of)


def _numbers(column: str, part: Plan, published: Published, level: float) -> Iterator[Line]:
    table = part.model
    found = _cells(part, published, level, table.width)
    means = found[: table.cells]
    scores = part.mechanism.scores(part, published)
    yield Line(column, "mean", "", tuple(means), *_compared(scores, level, table.width))
    deviation = np.stack(part.mechanism.deviations(part, published, level))
    if (without := _without(part, published)) is not None:
        deviation[:, without[: table.cells]] = np.nan
    cells = (Cell(float(v), float(lo), float(hi), table.width) for v, lo, hi in zip(*deviation, strict=True))
    yield Line(column, "standard deviation", "", tuple(cells))


def _compared(
    scores: Scores | None, level: float, reach: float, test: GroupTest | None = None
) -> tuple[Cell | None, float]:
    """The difference of two groups and its p-value; of more groups that of all together."""
    if scores is None:
        return None, math.nan
    comparison = scores.compare(level)
    if comparison.joint is not None:
        return None, comparison.joint.p_value
    (row,) = comparison.differences
    return Cell(row.estimate, row.low, row.high, reach), row.p_value


def _shares(column: str, part: Plan, published: Published, level: float) -> Iterator[Line]:
    table = part.model
    found = np.array(_cells(part, published, level, 1.0), dtype=object).reshape(-1, len(table.levels), 4)[: table.cells]
    test = part.mechanism.independence(part, published)
    two = len(table.levels) == 2
    for place, name in enumerate(table.levels):
        if two and not place:
            continue  # the rest
        cells = tuple(Cell(*map(float, row)) for row in found[:, place])
        scores = part.mechanism.level_scores(part, published, place)
        difference, p_value = _compared(scores, level, 1.0)
        if not two:
            p_value = test.p_value if test is not None and not place else math.nan
        yield Line(column, "share", name, cells, difference, p_value)


def _quartiles(column: str, part: Plan, published: Published, level: float) -> Iterator[Line]:
    model: ColumnQuantiles = part.model
    found = _cells(part, published, level, model.upper - model.lower)
    size = len(model.levels)
    scores = part.mechanism.scores(part, published)
    for place, name in enumerate(("lower quartile", "median", "upper quartile")):
        cells = tuple(found[group * size + place] for group in range(model.cells))
        yield Line(
            column,
            name,
            "",
            cells,
            *(_compared(scores, level, model.upper - model.lower) if name == "median" else (None, math.nan)),
        )
