"""Quantiles of one column: the median, quartiles, any levels, as places on a public lattice.

There is no likelihood and no prior: all that is asked of the records is how many lie below a place. A record is clamped to
the declared range and rounded to the lattice ``lower + k·step``, so it is a whole number, and so is everything after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from onedraw.data.sums import Blocks, block_rows, blocked
from onedraw.errors import InvalidModel
from onedraw.models.batches import batches, is_records
from onedraw.models.model import Bound, Model, check_column, count, number, register_model, set_fields, shown
from onedraw.privacy import Provenance

from .place_counts import PlaceCounts, PlaceOf

LEAST_STEPS = 10_000_000
"""Lattice steps across the range where none is declared, at least."""

MOST_STEPS = 2**32
MOST_LEVELS = 99

NAMES = {0.25: "lower quartile", 0.5: "median", 0.75: "upper quartile"}


@register_model
@dataclass(frozen=True)
class ColumnQuantiles(Model):
    """The quantiles of ``levels`` of numbers in [``lower``, ``upper``], on the lattice ``lower + k·step``.

    ``step`` None: the largest 1, 2 or 5 times a power of ten that cuts the range into ten million parts, so that round numbers are places. ``interval`` is the level of the confidence intervals that are released within
    the same spend; None: none, and all of it goes to the quantiles.

    | record | counts as |
    | --- | --- |
    | outside the range | its nearest end |
    | between two places of the lattice | the nearest |
    | NaN, ±inf, None, not a number | ``missing``, by default the middle of the range |
    """

    quantity: ClassVar[str] = "quantiles"
    title, form = "Quantiles", "quantiles"
    kinds: ClassVar[tuple[str, ...]] = ("number", "count")

    levels: tuple[float, ...]
    lower: float
    upper: float
    step: float | None = None
    missing: float | None = None
    interval: float | None = 0.95

    def __post_init__(self) -> None:
        lower, upper = number("lower", self.lower), number("upper", self.upper)
        if not (lower < upper and math.isfinite(upper - lower)):
            raise InvalidModel(f"The range needs lower below upper, but {lower!r} and {upper!r} came.")
        step = round_step((upper - lower) / LEAST_STEPS) if self.step is None else number("step", self.step)
        if not (step > 0.0 and 1.0 <= (upper - lower) / step <= MOST_STEPS):
            raise InvalidModel(
                f"step must cut the range into 1 to {MOST_STEPS:,} parts, but {step!r} came. Pass the rounding of the column, "
                "1 for whole numbers, or leave it out."
            )
        missing = (lower + upper) / 2 if self.missing is None else number("missing", self.missing)
        if not lower <= missing <= upper:
            raise InvalidModel(f"missing must lie in the range {lower!r} to {upper!r}, but {missing!r} came.")
        set_fields(self, levels=_levels(self.levels), lower=lower, upper=upper, step=step, missing=missing,
                   interval=_interval(self.interval))  # fmt: skip

    @property
    def meaning(self) -> str:
        between = f"{shown(self.lower)} and {shown(self.upper)}"
        return (
            f"Quantiles of the column, declared to lie between {between}: the share of records below each is its level."
        )

    def interval_meaning(self, level: str, *, crossed: bool) -> str:
        return (
            f"Bars are {level} intervals for the quantile of the population the records were drawn from, sampling and noise for "
            "privacy together, whatever the column is like; how wide they are was released with the quantiles, within the same spend."
        )

    @property
    def steps(self) -> int:
        """K: places are 0 … K."""
        return round((self.upper - self.lower) / float(self.step or 1.0))

    def value(self, place: Any) -> Any:
        """The number at a place of the lattice; the last place is the upper end itself."""
        values = self.lower + np.asarray(place, dtype=np.float64) * float(self.step or 1.0)
        return np.minimum(values, self.upper)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(NAMES.get(level, f"quantile {level:g}") for level in self.levels)

    @property
    def prior_scale(self) -> float:
        """There is no prior: what the lattice of released numbers is derived from is the step."""
        return float(self.step or 1.0)

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {
            "range": Bound((self.lower, self.upper), Provenance.ENFORCED, "records are clamped to it"),
            "sensitivity": Bound(
                1.0, Provenance.PROVED, "replacing a record moves every count below a place by at most 1"
            ),
        }

    def check(self, data: Any) -> None:
        check_column(self, data)

    def count(self, data: Any) -> int:
        return len(data)

    def summarise(self, data: Any) -> PlaceCounts:
        """The records as places, each clamped and rounded by itself, to be counted."""
        self.check(data)
        n, place = len(data), PlaceOf(self.lower, float(self.step or 1.0), self.steps, float(self.missing or 0.0))
        if is_records(data):
            read = data.read_as(replace(place, columns=(data.target or data.columns[0],)))
        else:
            read = Blocks.holding(n, blocked(((batch,) for batch in batches(data)), block_rows(n))).read_as(place)
        return PlaceCounts(n, self.steps, read)


def round_step(most: float) -> float:
    """The largest 1, 2 or 5 times a power of ten up to ``most``: people round to such numbers, and ties lie there."""
    power = math.floor(math.log10(most))
    steps = [float(f"{digit}e{exponent}") for exponent in (power - 1, power) for digit in (1, 2, 5)]
    return max(step for step in steps if step <= most)


def _levels(given: Any) -> tuple[float, ...]:
    """Strictly between 0 and 1, each once, in order."""
    try:
        levels = sorted(number("a quantile's level", level) for level in given)
    except TypeError:
        raise InvalidModel(f"levels is a list such as [0.25, 0.5, 0.75], but a {type(given).__name__} came.") from None
    count("the number of quantiles", len(levels), least=1, most=MOST_LEVELS)
    if not all(0.0 < level < 1.0 for level in levels) or len(set(levels)) != len(levels):
        raise InvalidModel(
            f"Quantile levels lie strictly between 0 and 1, each once, but {given!r} came. The smallest and the largest record "
            "are single persons and cannot be released; ask for 0.01 and 0.99, say."
        )
    return tuple(levels)


def _interval(given: Any) -> float | None:
    if given is None:
        return None
    level = number("interval", given)
    if not 0.5 <= level < 1.0:
        raise InvalidModel(f"interval is a level such as 0.95, at least 0.5 and below 1, or None; {given!r} came.")
    return level
