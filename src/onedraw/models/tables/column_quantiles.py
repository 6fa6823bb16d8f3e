"""Quantiles of one column: the median, quartiles, any levels, as places on a public lattice.

There is no likelihood and no prior: all that is asked of the records is how many lie below a place. A record is clamped to
the declared range and rounded to the lattice ``lower + k·step``, so it is a whole number, and so is everything after it.

**How many records lie below a place**: ranks from histograms, which are sums of whole numbers over the records.

    counts = PlaceCounts(n, steps, records)    # the records rewritten as places 0 … steps (`PlaceOf`), on any engine
    counts.below(places)                       # of each place, the records below it
    counts.atoms(first, last)                  # the places that hold the records of these ranks

One pass counts the records in up to 2¹⁶ cells of consecutive places. Single places are counted when somebody asks about them,
in the cells asked about and no other: a quantile takes three passes, and what is kept are the counts near it. Nothing is sorted, and
no record is kept here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from onedraw.arrays import Array, Integers, Mask
from onedraw.data.sums import Blocks, Reading, Statistic, block_rows, blocked
from onedraw.errors import InvalidModel
from onedraw.models.batches import is_records
from onedraw.models.model import COUNT_FOR_NOBODY, Bound, ColumnModel, count, declared_missing, number
from onedraw.models.sums.clamped_sums import is_skip, marks, real, unknown_codes
from onedraw.plain_text import shown
from onedraw.privacy import Provenance
from onedraw.private import Private

from .table import cell_of, check_grouped, declared_groups, group_names, grouped_batches

# ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────────


LEAST_STEPS = 10_000_000
"""Lattice steps across the range where none is declared, at least."""

MOST_STEPS = 2**32
MOST_LEVELS = 99

NAMES = {0.25: "lower quartile", 0.5: "median", 0.75: "upper quartile"}


@dataclass(frozen=True)
class ColumnQuantiles(ColumnModel):
    """The quantiles of ``levels`` of numbers in [``lower``, ``upper``], on the lattice ``lower + k·step``.

    ``step`` None: the largest 1, 2 or 5 times a power of ten that cuts the range into ten million parts, so that round numbers are places. ``interval`` is the level of the confidence intervals that are released within
    the same spend; None: none, and all of it goes to the quantiles.

    | record | counts as |
    | --- | --- |
    | outside the range | its nearest end |
    | between two places of the lattice | the nearest |
    | NaN, ±inf, None, not a number | ``missing``, by default the middle of the range, or with "skip" nothing |

    With ``by``, the quantiles of each group, ``groups`` the declared levels of one to three columns. Who belongs to which group
    is private, and the numbers of records in the groups are released too.
    """

    quantity: ClassVar[str] = "quantiles"
    title = "Quantiles"
    kinds = ("number", "count")

    levels: tuple[float, ...]
    lower: float
    upper: float
    step: float | None = None
    missing: Any = None
    interval: float | None = 0.95
    by: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    nobody: bool = False
    """Whether records may count for nobody, which makes the number of known and missing cells together private."""

    later = frozenset({"by", "groups", "nobody"})

    @classmethod
    def example(cls) -> Self:
        return cls((0.25, 0.5), 0.0, 10.0, step=0.5)

    def __post_init__(self) -> None:
        lower, upper = number("lower", self.lower), number("upper", self.upper)
        if not (lower < upper and math.isfinite(upper - lower)):
            raise InvalidModel(f"The range needs lower below upper, but {lower!r} and {upper!r} were given.")
        step = _round_step((upper - lower) / LEAST_STEPS) if self.step is None else number("step", self.step)
        if not (step > 0.0 and 1.0 <= (upper - lower) / step <= MOST_STEPS):
            raise InvalidModel(
                f"step must cut the range into 1 to {MOST_STEPS:,} parts, but {step!r} was given. Pass the rounding of the column, "
                "1 for whole numbers, or leave it out."
            )
        missing = declared_missing(self.missing, lower, upper, default=(lower + upper) / 2)
        level = None if self.interval is None else number("interval", self.interval)
        if level is not None and not 0.5 <= level < 1.0:
            raise InvalidModel(
                f"interval is a level such as 0.95, at least 0.5 and below 1, or None; {level!r} was given."
            )
        self._set(levels=_levels(self.levels), lower=lower, upper=upper, step=step, missing=missing, interval=level)
        declared = declared_groups(self.by, self.groups, None)
        self._set(by=declared["by"], groups=declared["groups"])

    @property
    def skips(self) -> bool:
        return is_skip(self.missing)

    @property
    def meaning(self) -> str:
        between = f"{shown(self.lower)} and {shown(self.upper)}"
        within = f" within each group ({' and '.join(self.by)})" if self.by else ""
        private = (
            " Who belongs to which group is private: the numbers of records in the groups are released with noise too."
        )
        return (
            f"Quantiles of the column{within}, declared to lie between {between}: the share of records below each is its "
            f"level.{private if self.by else ''}"
        )

    @property
    def form(self) -> str:  # type: ignore[override]  # an attribute of all others
        return "groups" if self.by else "quantiles"

    def unit(self, name: str) -> str:
        return "records" if name.endswith(": records") else ""

    @property
    def cells(self) -> int:
        """How many groups there are; 1 for the column as a whole."""
        return math.prod(len(levels) for levels in self.groups)

    @property
    def group_names(self) -> tuple[str, ...]:
        """One for each cell."""
        return group_names(self.by, self.groups)

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
        names = tuple(NAMES.get(level, f"quantile {level:g}") for level in self.levels)
        if not self.by:
            return names
        each = tuple(f"{group}: {name}" for group in self.group_names for name in names)
        return each + tuple(f"{group}: records" for group in self.group_names)

    @property
    def prior_scale(self) -> float:
        """There is no prior: what the lattice of released numbers is derived from is the step."""
        return min(float(self.step or 1.0), 1.0) if self.by else float(self.step or 1.0)

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {
            "range": Bound((self.lower, self.upper), Provenance.ENFORCED, "records are clamped to it"),
            "sensitivity": Bound(
                1.0, Provenance.PROVED, "replacing a record moves every count below a place by at most 1"
            ),
        }

    def summarise(self, data: Any) -> PlaceCounts:
        """The records as places, each clamped and rounded by itself, to be counted."""
        self.check(data)
        missing = float("nan") if self.skips else float(self.missing or 0.0)
        n, columns = len(data), (data.target or data.columns[0], *self.by) if is_records(data) else ()
        place = PlaceOf(self.lower, float(self.step or 1.0), self.steps, missing, columns, self.groups)
        if is_records(data):
            read = data.read_as(place)
        else:
            read = Blocks.holding(n, blocked(grouped_batches(data), block_rows(n))).read_as(place)
        return PlaceCounts(n, self.cells * (self.steps + 1) - 1, read, skips=self.skips)

    def check(self, data: Any) -> None:
        if is_records(data) or not self.groups:
            super().check(data)
        if self.groups:
            check_grouped(data, self.by, self.groups)
            if is_records(data):
                self.check_skips([data.schema.column(name) for name in self.by])
        if self.skips and is_records(data) and data.schema.person is not None and not self.nobody:
            raise InvalidModel(COUNT_FOR_NOBODY)


def _round_step(most: float) -> float:
    """The largest 1, 2 or 5 times a power of ten up to ``most``: people round to such numbers, and ties lie there."""
    power = math.floor(math.log10(most))
    steps = [float(f"{digit}e{exponent}") for exponent in (power - 1, power) for digit in (1, 2, 5)]
    return max(step for step in steps if step <= most)


def _levels(given: Any) -> tuple[float, ...]:
    """Strictly between 0 and 1, each once, in order."""
    try:
        levels = sorted(number("a quantile's level", level) for level in given)
    except TypeError:
        raise InvalidModel(
            f"levels is a list such as [0.25, 0.5, 0.75], but a {type(given).__name__} was given."
        ) from None
    count("the number of quantiles", len(levels), least=1, most=MOST_LEVELS)
    if not all(0.0 < level < 1.0 for level in levels) or len(set(levels)) != len(levels):
        raise InvalidModel(
            f"Quantile levels lie strictly between 0 and 1, each once, but {given!r} was given. The smallest and the largest record "
            "are single persons and cannot be released; ask for 0.01 and 0.99, say."
        )
    return tuple(levels)


# ── counts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


CELL_BITS = 16
"""The first histogram has up to 2 to the power of this entries: it stays in the processor's cache."""

MOST_ENTRIES = 1 << 18
"""Of a further histogram, in one pass."""

LEAST_BITS = 3
"""Into at least 2 to the power of this a part is cut at a time: so few where records are many and far apart."""


@dataclass(frozen=True)
class PlaceOf(Reading):
    """A record's place round((x − lower)/step) in 0 … steps, itself alone deciding; NaN is at that of ``missing``. A reading of
    `onedraw.data.sums`. The places of a group follow those of the group before it. Where ``missing`` is NaN, missing cells are skipped:
    they are in a cell beyond all others, and records that count for nobody in the one after it. A record whose group is not known is as one
    whose own cell is missing: no group has it."""

    lower: float
    step: float
    steps: int
    missing: float
    columns: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    width = 1

    def of_block(self, values: NDArray[Any], *codes_and_weight: Any) -> tuple[NDArray[Any]]:
        codes, last = codes_and_weight[:-1], math.prod(len(levels) for levels in self.groups) * (self.steps + 1) - 1
        with np.errstate(all="ignore"):  # infinities are at the ends
            places = np.subtract(values, self.lower, dtype=np.float64)
            places /= self.step
        np.rint(places, out=places)
        if np.isnan(self.missing):
            codes = tuple(unknown_codes(one, len(levels)) for one, levels in zip(codes, self.groups, strict=True))
            groupless = marks([np.zeros(len(places)), *codes])[1]
            nobody = np.logical_or.reduce([np.asarray(one) == -np.inf for one in (values, *codes)])
            lost = np.isnan(places) | groupless
            np.clip(places, 0, self.steps, out=places)
        elif not (places.min(initial=0.0) >= 0.0 and places.max(initial=0.0) <= self.steps):  # NaN is neither
            places[np.isnan(places)] = np.rint((self.missing - self.lower) / self.step)
            np.clip(places, 0, self.steps, out=places)
        if codes:
            places += cell_of(self.groups, codes) * float(self.steps + 1)  # whole numbers below 2^53
        if np.isnan(self.missing):
            beyond = cell_count(last) << cell_shift(last)
            places[lost], places[nobody] = beyond, beyond + (1 << cell_shift(last))
        return (places.astype(np.int32 if last < 2**30 else np.int64),)  # half as much to hold


def cell_shift(steps: int) -> int:
    """Return how many bits of a place tell it from others in its cell."""
    return max(0, steps.bit_length() - CELL_BITS)


def cell_count(steps: int) -> int:
    """Return how many cells there are."""
    return (steps >> cell_shift(steps)) + 1


@dataclass(frozen=True)
class CellCounts(Statistic):
    """Records in every cell of 2^shift places."""

    shift: int
    cells: int
    columns: tuple[str, ...] = ()

    def bound(self) -> float:
        return 1.0

    def of_block(self, places: NDArray[Any], weight: Array) -> Integers:
        return np.bincount(real(places, weight) >> self.shift, minlength=self.cells)


@dataclass(frozen=True)
class NodeCounts(Statistic):
    """Records in each of the 2^bits equal parts of every node, one node after the other. A node is 2^shift places, known by its number;
    ``nodes`` are in order, and ``asked`` says in which cells they lie."""

    cell_shift: int
    shift: int
    bits: int
    columns: tuple[str, ...] = ()

    def bound(self, nodes: Any, asked: Any) -> float:
        return 1.0

    def of_block(self, places: NDArray[Any], weight: Array, nodes: Integers, asked: Any) -> Integers:
        places = real(places, weight)
        first, last = int(nodes[0]) << self.shift, int(nodes[-1] + 1) << self.shift
        if last - first <= 2 * len(nodes) << self.shift:  # side by side: half the work
            chosen = (places >= first) & (places < last)
        else:
            chosen = asked.take(places >> self.cell_shift)
        inside = places[np.flatnonzero(chosen)].astype(np.int64)
        node = np.searchsorted(nodes, inside >> self.shift)
        there = nodes.take(node, mode="clip") == inside >> self.shift
        part = inside >> (self.shift - self.bits) & ((1 << self.bits) - 1)
        return np.bincount(((node << self.bits) + part)[there], minlength=len(nodes) << self.bits)


@dataclass(frozen=True, eq=False, repr=False)
class PlaceCounts(Private):
    """Ranks of ``n`` records at places 0 … ``steps``, or of those with a known cell. As private as they are: never printed or written."""

    n: int
    steps: int
    records: Any
    skips: bool = False
    _known: dict[int, tuple[Integers, Integers]] = field(default_factory=dict)
    """Of cells asked about: their occupied places, and the records up to each."""

    def below(self, places: Any) -> Integers:
        """Of each place, how many records lie below it."""
        places = np.clip(np.asarray(places, dtype=np.int64), 0, len(self._occupied) << self._shift)
        places[places > self.steps] = len(self._occupied) << self._shift  # beyond all of them
        cells = places >> self._shift
        inside = np.unique(cells[places & ((1 << self._shift) - 1) > 0])  # others begin there: no need to look
        occupied, up_to = self._single(inside[self._occupied[inside]])
        found: Integers = self._cells[cells]
        if len(occupied):
            last = np.searchsorted(occupied, places) - 1
            same = (last >= 0) & (occupied[last] >> self._shift == cells)
            found = np.where(same, up_to[last], found)
        return found

    def atoms(self, first: int, last: int) -> tuple[Integers, Integers, Integers]:
        """(places, records below each, records up to each) of the records of ranks first … last − 1, counted from 0."""
        if last <= first:
            return _NOTHING, _NOTHING, _NOTHING
        ends = np.searchsorted(self._cells, [first, last - 1], side="right") - 1
        cells = np.arange(ends[0], ends[1] + 1)
        cells = cells[self._occupied[cells]]
        occupied, up_to = self._single(cells)
        below = np.append(self._cells[cells[0]], up_to[:-1])
        asked = (up_to > first) & (below < last)
        return occupied[asked], below[asked], up_to[asked]

    @property
    def known(self) -> int:
        """How many records have a place."""
        return int(self._cells[-1])

    @property
    def missing(self) -> int:
        """How many count for somebody and have none."""
        return int(self._counted[cell_count(self.steps)]) if self.skips else 0

    @cached_property
    def _shift(self) -> int:
        return cell_shift(self.steps)

    @cached_property
    def _counted(self) -> Integers:
        """Records in every cell, and where missing ones are skipped those, and those that count for nobody."""
        cells = cell_count(self.steps) + (2 if self.skips else 0)
        return np.asarray(self.records.sum(CellCounts(self._shift, cells)))

    @cached_property
    def _cells(self) -> Integers:
        """Records below every cell, and all of them."""
        return np.append(0, np.cumsum(self._counted[: cell_count(self.steps)]))

    @cached_property
    def _occupied(self) -> Mask:
        return np.diff(self._cells) > 0

    def _single(self, cells: Integers) -> tuple[Integers, Integers]:
        """Of these cells, in order and none of them empty: occupied places, and the records up to each."""
        unknown = np.array([cell for cell in cells.tolist() if cell not in self._known], dtype=np.int64)
        if len(unknown):
            self._look(unknown)
        known = [self._known[cell] for cell in cells.tolist()]
        places, up_to = (np.concatenate([_NOTHING, *(pair[side] for pair in known)]) for side in (0, 1))
        return places, up_to

    def _look(self, cells: Integers) -> None:
        """Into occupied cells, by parts of parts that are occupied: in one step where they are few."""
        nodes, shift, counts = cells, self._shift, np.diff(self._cells)[cells]
        while shift:
            bits = min(shift, max(LEAST_BITS, (MOST_ENTRIES // len(nodes)).bit_length() - 1))
            at_once = MOST_ENTRIES >> bits
            counts = np.concatenate(
                [self._parts(nodes[start : start + at_once], shift, bits) for start in range(0, len(nodes), at_once)]
            )
            nodes = ((nodes[:, np.newaxis] << bits) + np.arange(1 << bits)).reshape(-1)[counts > 0]
            counts, shift = counts[counts > 0], shift - bits
        ends = np.searchsorted(nodes, (cells + 1) << self._shift)
        parts = zip(np.split(nodes, ends[:-1]), np.split(counts, ends[:-1]), strict=True)
        for cell, (places, found) in zip(cells.tolist(), parts, strict=True):
            self._known[cell] = places, self._cells[cell] + np.cumsum(found)

    def _parts(self, nodes: Integers, shift: int, bits: int) -> Integers:
        """One pass."""
        asked = np.zeros(len(self._counted), dtype=bool)
        asked[nodes >> (self._shift - shift)] = True
        return np.asarray(self.records.sum(NodeCounts(self._shift, shift, bits), nodes, asked))


_NOTHING = np.zeros(0, dtype=np.int64)


# ── ties ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def spread_place(rank: Any, ties: Any, bits: int) -> Integers:
    """Where the rank-th of ``ties`` equal records lies among 2^bits slots, if the j-th of them is put into the slot whose digits are
    those of j in reverse (van der Corput's sequence): evenly, and one tie more takes a slot that was free."""
    rank, ties = np.asarray(rank, dtype=np.int64), np.asarray(ties, dtype=np.int64)
    slot: Integers = np.zeros_like(rank)
    for _ in range(bits):  # even j's lie in the lower half, odd ones in the upper
        lower = (ties + 1) // 2
        upper = rank >= lower
        slot = 2 * slot + upper
        rank, ties = np.where(upper, rank - lower, rank), np.where(upper, ties // 2, lower)
    return slot


def spread_below(slot: int, ties: int, bits: int) -> int:
    """How many of the equal records lie below a slot."""
    below = 0
    for bit in reversed(range(bits)):
        if slot >> bit & 1:
            below, ties = below + (ties + 1) // 2, ties // 2
        else:
            ties = (ties + 1) // 2
    return below
