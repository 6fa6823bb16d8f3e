"""Two designs that a plan of a fit states errors for, column by column in each column's own units: a typical and a worst one.

What columns are like decides the error, and nobody has looked at them. So a plan names two designs, in words:

| design | numbers | levels of a category | effects |
| --- | --- | --- | --- |
| typical | fill half of their declared range, correlate at 0.5 | half of an equal share of the records | usual |
| worst | fill a quarter of it, correlate at 0.9 | 1 % of the records | three times as strong, unless declared |

On nine public tables with round bounds (57 numbers, 52 levels) half of all columns vary less, given the others, than in the
typical design, and one in ten less than in the worst one. "Fill" is meant for columns that are uniform on their part of the range: a
column of standard deviation s and half-range h fills s√3/h of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onedraw.methods.expectation import Expectation
from onedraw.plans import Plan

from .expected_errors import fit_column_error, fit_error


@dataclass(frozen=True)
class PlanDesign:
    """What columns are taken to be like."""

    name: str
    filled: float
    correlation: float
    words: str
    """The design in words, without the share of levels."""
    stronger: float = 1.0
    """How many times as strong effects are as the usual ones, unless they were declared."""
    level_share: float | None = None
    """Share of the records that have a level; None: half of an equal share."""
    level_correlation: float = 0.5

    def share_of(self, levels: int) -> float:
        """Return the share of the records that have one of so many levels."""
        return 0.5 / levels if self.level_share is None else min(self.level_share, 0.5 / levels)


TYPICAL = PlanDesign(
    "typical", 0.5, 0.5,
    "numbers fill half of their declared range and correlate at 0.5; half of an equal share of the records have a level",
)  # fmt: skip
WORST = PlanDesign(
    "worst", 0.25, 0.9,
    "numbers fill a quarter of their declared range and correlate at 0.9; 1 % of the records have a level",
    stronger=3.0, level_share=0.01,
)  # fmt: skip

STRONG = "; effects are three times as strong as usual"

BEYOND = (
    "Columns that add up to another one, and classes that the columns can nearly tell apart, are beyond the worst design: their "
    "coefficients hardly exist, with or without privacy. Predictions can be good all the same. Rarer levels, and levels that are "
    "compared with a rare first one, are worse too."
)
"""What no design would help with: measured, up to fifteen times the worst error (benchmarks/results/plan_accuracy.md)."""


MOST_NAMED = 6
"""Columns that a sentence names; others are counted."""

STILL = "Rarer levels, and columns that nearly repeat another one, may get none."
AFTER = "The release names the columns without an interval, and what helps."


@dataclass(frozen=True)
class ColumnError:
    """Expected root mean squared error of one coefficient, in units of the response for one unit of the column."""

    name: str
    private: float
    sampling: float
    factor: float
    """How many times this ε an interval would need: at most 1 if it is expected; infinity if no larger ε is known to give
    one, NaN if it cannot be predicted."""

    def times(self, unit: float) -> ColumnError:
        """Return the errors in another unit of the response."""
        return replace(self, private=self.private * unit, sampling=self.sampling * unit)

    @property
    def has_interval(self) -> bool | None:
        """Return whether an interval is expected; None if that is not known."""
        return None if math.isnan(self.factor) else self.factor <= 1.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "column": self.name, "expected_error": self.private, "without_privacy": self.sampling, "interval": self.has_interval,
        }  # fmt: skip


@dataclass(frozen=True)
class DesignError:
    """The expected error in one design: per coefficient of columns scaled to [-1, 1], and for each column in its units."""

    design: PlanDesign
    expected: Expectation
    columns: tuple[ColumnError, ...]
    stronger: bool = False

    @property
    def name(self) -> str:
        return self.design.name

    @property
    def words(self) -> str:
        """The design in a phrase."""
        return self.design.words + (STRONG if self.stronger else "")

    def times(self, unit: float) -> DesignError:
        """Return the errors in another unit of the response."""
        columns = tuple(column.times(unit) for column in self.columns)
        return replace(self, expected=self.expected.times(unit), columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the design as `onedraw plan --json` prints it."""
        return {
            "design": self.name, "words": self.words, "filled": self.design.filled, "correlation": self.design.correlation,
            "stronger_effects": self.stronger, "expected_rmse": self.expected.private,
            "rmse_without_privacy": self.expected.sampling, "columns": [column.to_dict() for column in self.columns],
        }  # fmt: skip


def design_errors(plan: Plan, *, effect: float, noise: float, declared: bool = True) -> tuple[DesignError, ...]:
    """Return what to expect of a fit in the typical and in the worst design.

    Parameters
    ----------
    effect, noise : float
        Sizes of the linear predictor and of a number about it, in units of the response, or of log-odds.
    declared : bool
        Whether effects were declared; otherwise the worst design has stronger ones.
    """
    found = []
    for design in (TYPICAL, WORST):
        sizes = {"effect": effect if declared else design.stronger * effect, "noise": noise}
        overall = fit_error(plan, filled=design.filled, correlation=design.correlation, **sizes)
        columns = column_errors(plan, design, **sizes)
        found.append(DesignError(design, overall, columns, stronger=not declared and design.stronger > 1.0))
    return tuple(found)


def column_errors(plan: Plan, design: PlanDesign, *, effect: float, noise: float) -> tuple[ColumnError, ...]:
    """Return the errors of all columns, each in a design in which every column is like it."""
    features = plan.model.features
    kinds: dict[tuple[int, bool], tuple[float, float, float]] = {}
    levels = {column: stop - start + 1 for start, stop in plan.mechanism.categories for column in range(start, stop)}
    found = []
    for column, name in enumerate(features.column_names[: features.count]):
        kind, named = levels.get(column, 0), column in getattr(plan.mechanism, "effects", ())
        if (kind, named) not in kinds:
            filled, correlation, share = design.filled, design.correlation, None
            if kind:  # a column of 0 and 1, whose variance is that of a uniform one on this share of [-1, 1]
                share = design.share_of(kind)
                filled, correlation = math.sqrt(3.0 * share * (1.0 - share)), design.level_correlation
            sizes = {"filled": filled, "correlation": correlation, "effect": effect, "noise": noise}
            kinds[kind, named] = fit_column_error(plan, named=named, share=share, **sizes)
        private, sampling, factor = kinds[kind, named]
        half_range = 1.0 if kind or not features.scaled else float(features.scale[1][column])
        if half_range > 0.0:  # a column whose ends are equal has no coefficient
            found.append(ColumnError(name, private / half_range, sampling / half_range, factor))
    return tuple(found)


def designs_words(designs: Iterable[DesignError]) -> str:
    """Return what the designs are, a sentence each."""
    return " ".join(f"{design.name.capitalize()}: {design.words}." for design in designs)


def intervals_words(typical: DesignError, worst: DesignError) -> str:
    """Return which columns are expected to have intervals in a typical and in a worst design."""
    if any(column.has_interval is None for column in typical.columns):
        return f"Columns that vary enough get intervals. {AFTER}"
    without, few = ([column for column in design.columns if not column.has_interval] for design in (typical, worst))
    if without:
        factor = max(column.factor for column in without)
        remedy = f"About {factor:g} times this ε would give them." if math.isfinite(factor) else "Use more records."
        if len(without) == len(typical.columns):
            return f"No column of a typical design is expected to have an interval. {remedy} {AFTER}"
        return f"In a typical design expect intervals for all columns but {_named(without)}. {remedy} {AFTER}"
    if not few:
        return f"Expect intervals for every column, also in a worst design. {STILL} {AFTER}"
    which = "for none" if len(few) == len(worst.columns) else f"for all but {_named(few)}"
    return f"Expect intervals for every column of a typical design; in a worst one {which}. {AFTER}"


def _named(columns: Sequence[ColumnError]) -> str:
    names = [column.name for column in columns]
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")
