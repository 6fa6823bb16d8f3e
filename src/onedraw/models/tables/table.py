"""Tables: numbers that follow from sums of whole numbers over the records, one cell for each group.

A record becomes whole numbers in the block of its group, by what is declared alone; blocks are added exactly. Noise on
such sums is all a plain-noise release consists of (`onedraw.methods.AddedNoise`), so a table states how far one
replaced record moves them: ``reach("laplace")`` is the L1 distance, ``reach("gaussian")`` the *square* of the L2 distance,
both of the sums times ``weights``. There is no prior.

**Groups.** Membership is private unless ``sizes`` declares how many records each group has. Where it is private a
replaced record may leave one cell and enter another, so two cells move, and the numbers of records in the groups are
published like everything else. Where it is public a replaced record stays in its group, and every group is a data set of
its own: parallel composition.

`Grouped` holds plain data of such a table: a column and the codes of its groups. Records name the columns.
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.data.sums import Blocks, Statistic, block_rows, blocked
from onedraw.errors import InvalidModel
from onedraw.models.batches import Batch, batches, check_shape, is_records
from onedraw.models.model import COUNT_FOR_NOBODY, ColumnModel, count
from onedraw.models.sums.clamped_sums import Summary, is_skip, known_codes, marks, real, unknown_codes
from onedraw.private import Private

STEPS = 1 << 30
"""Lattice steps from one end of a range to the other (private groups), or from its middle to an end."""

Side = tuple[str, tuple[str, ...]]

LAWS = ("laplace", "gaussian")
MOST_CELLS = 10**6
MOST_GROUPINGS = 3


@dataclass(frozen=True, eq=False, repr=False)
class Grouped(Private):
    """A column and, for each grouping, the codes 0, 1, … of the declared groups; any other code is the first group."""

    values: Any
    codes: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.values)


class Table(ColumnModel):
    """What the tables of categories and of numbers share: groups, reading, and adding up."""

    shown: ClassVar[tuple[str, ...]]
    """What it can show."""

    show: str
    by: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    sizes: tuple[int, ...] | None
    nobody: bool
    """Whether records may count for nobody, which makes the number of known and missing cells together private."""

    later: ClassVar[frozenset[str]] = frozenset({"nobody"})

    most_moved: ClassVar[int] = 6
    """Entries that one replaced record can move: two blocks of at most three numbers."""
    each_level: ClassVar[tuple[str, ...]] = ()
    """The levels counted in each group, where several are; empty where a group has one number."""
    interval_method: ClassVar[str] = ""
    """How intervals for the population are made, in words."""

    @property
    def about_records(self) -> bool:
        """Whether its numbers are about these records alone, as counts and sums are, and not about a population."""
        return False

    # ── what a record becomes ──────────────────────────────────────────────────────────────────────────────

    def _declare(self, **fields: Any) -> None:
        """Set a table's own fields, and those that all of them have."""
        if self.show not in self.shown:
            raise InvalidModel(f"show is one of {', '.join(self.shown)}, but {self.show!r} was given.")
        self._set(**fields, **declared_groups(self.by, self.groups, self.sizes))

    @property
    @abc.abstractmethod
    def block(self) -> int:
        """Whole numbers that are kept of each group."""

    skips_by_itself: ClassVar[bool] = False
    """Whether `add` leaves out records with a missing cell."""
    filler: ClassVar[float] = 0.0
    """What stands for a cell that is not known while it is added to a group that is dropped."""
    unit_of_count: ClassVar[int] = 1
    """What a record adds to a sum that counts records."""

    def cell_of(self, values: Batch) -> Array:
        """Return the column's cells as numbers: NaN for a missing one, −∞ of a record that counts for nobody."""
        return np.asarray(values, dtype=np.float64)

    def add_counts(self, sums: Integers, known: Integers, missing: Integers) -> None:
        """Add, by groups, what is counted of known and of missing cells besides, where missing cells are skipped."""

    @abc.abstractmethod
    def add(self, sums: Integers, group: Integers | None, values: Batch) -> None:
        """Add a batch's records to ``sums`` (groups, block); ``group`` is None where there is one group only."""

    @property
    def skips(self) -> bool:
        return is_skip(getattr(self, "missing", None))

    @property
    def apart(self) -> int:
        """Numbers that follow those of all groups: of private groups, the missing cells, wherever they are missing."""
        return int(self.skips and self.moves_between_cells)

    @property
    def total_is_public(self) -> bool:
        """Whether all cells, those of missing ones included, add up to a public number."""
        return not (self.skips and self.nobody)

    def weights(self, law: str) -> tuple[int, ...]:
        """What each number of a block is multiplied with before noise is added: public, and divided out afterwards."""
        return (1,) * self.block

    @abc.abstractmethod
    def reach(self, law: str) -> int:
        """How far one replaced record moves the weighted sums: L1, or the square of L2; rounded up."""

    @property
    @abc.abstractmethod
    def largest(self) -> int:
        """The largest size of one record's weighted entry."""

    # ── what is published ──────────────────────────────────────────────────────────────────────────────────

    @abc.abstractmethod
    def estimate(self, noisy: Array, n: int, apart: float = 0.0) -> Array:
        """The published numbers that follow from noisy sums (groups, block), the weights divided out; ``apart`` is the noisy
        number of missing cells where it is one number for all groups."""

    def known_of(self, noisy: Array, n: int) -> Array:
        """The noisy number of known cells in each group, of a table that skips missing ones."""
        raise NotImplementedError

    def missing_of(self, noisy: Array, n: int, apart: float, law: str) -> tuple[float, list[float]]:
        """The noisy number of missing cells, and what one step of each noise contributes to it."""
        raise NotImplementedError

    @property
    def divides(self) -> bool:
        """Whether it divides by the number of known cells: not of counts and sums."""
        return not self.about_records

    @abc.abstractmethod
    def noise_error(self, spread: Array, n: int) -> float:
        """The standard error of a typical published number where a block's sums have noise of these deviations."""

    @abc.abstractmethod
    def sampling_error(self, n: int) -> float:
        """The standard error of a typical published number without any noise, by a public guess; 0 for counts and sums,
        which are about these records."""

    def sides(self, target: str | None) -> tuple[Side, Side] | None:
        """What runs down and what runs across a cross table, each with its name; None where the numbers make none."""
        if self.each_level and self.by:
            groups = tuple(", ".join(names) for names in itertools.product(*self.groups))
            return (" and ".join(self.by), groups), (target or "level", self.each_level)
        if len(self.by) < 2:
            return None
        *first, second = zip(self.by, self.groups, strict=True)
        down = tuple(", ".join(names) for names in itertools.product(*(levels for _, levels in first)))
        return (" and ".join(name for name, _ in first), down), second

    @property
    def of_groups(self) -> tuple[str, str]:
        """Within what a number is, and what is said of the groups' sizes: parts of a sentence."""
        within = f" within each group ({' and '.join(self.by)})" if self.by else ""
        private = (
            " Who belongs to which group is private: the numbers of records in the groups are released with noise too."
        )
        return within, private if self.moves_between_cells else ""

    def interval_meaning(self, level: str, *, crossed: bool) -> str:
        start = f"{'Beside the numbers' if crossed else 'Bars'} are {level} intervals"
        if self.about_records:
            return (
                f"{start} for the number in these records: all they allow for is the noise that was added for "
                "privacy, whose law is known."
            )
        return (
            f"{start} about the population the records were drawn from, for sampling and the noise added for privacy "
            f"together, {self.interval_method}.{'' if crossed else ' The thick part is what sampling alone would leave.'}"
        )

    @property
    def cells(self) -> int:
        return math.prod(len(levels) for levels in self.groups)

    @property
    def moves_between_cells(self) -> bool:
        """Whether a replaced record may leave one group and enter another."""
        return self.cells > 1 and self.sizes is None

    @property
    def group_names(self) -> tuple[str, ...]:
        """One for each cell; an empty one where there is one cell."""
        return group_names(self.by, self.groups)

    def group_sizes(self, n: int) -> Array | None:
        """The public number of records in each cell; None where it is private."""
        if self.sizes is not None:
            return np.array(self.sizes, dtype=np.float64)
        return np.array([float(n)]) if self.cells == 1 else None

    # ── reading ────────────────────────────────────────────────────────────────────────────────────────────

    def check(self, data: Any) -> None:
        if is_records(data) or not self.groups:
            super().check(data)
        if self.groups:
            check_grouped(data, self.by, self.groups)
            if is_records(data):
                self.check_skips([data.schema.column(name) for name in self.by])
        elif self.skips and is_records(data) and data.schema.person is not None and not self.nobody:
            raise InvalidModel(COUNT_FOR_NOBODY)
        if self.sizes is not None and sum(self.sizes) != len(data):
            raise InvalidModel(
                f"sizes declares {sum(self.sizes):,} records in all groups together, but the data have {len(data):,}. "
                "Sizes are public: declare those of this data set."
            )

    def summarise(self, data: Any) -> Summary:
        """n and the exact sums; no record can make it fail."""
        self.check(data)
        return Summary(len(data), tuple(int(value) for value in self.summed(data, TableSums(self))))

    def summed(self, data: Any, statistic: Any, *public: Any) -> Integers:
        """Return the exact sums of a statistic of the column and its groups."""
        if is_records(data):
            named = replace(statistic, columns=(data.target or data.columns[0], *self.by))
            return np.asarray(data.sum(named, *public))
        n = len(data)
        return Blocks(n, lambda: blocked(grouped_batches(data), block_rows(n)), held=False).sum(statistic, *public)

    def cell(self, codes: Sequence[Batch]) -> Integers:
        """The cell of each record: a code that is not declared is the first group."""
        return cell_of(self.groups, codes)


def cell_of(groups: Sequence[Sequence[str]], codes: Sequence[Batch]) -> Integers:
    """Return the cell of each record, the last grouping fastest: a code that is not declared is the first group."""
    place: Any = 0
    for levels, column in zip(groups, codes, strict=True):
        place = place * len(levels) + known_codes(column, len(levels), missing=0)
    return np.asarray(place, dtype=np.int64)


def group_names(by: Sequence[str], groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return one name for each cell, the last grouping fastest: ``sex=F, school=high``; an empty one where there is no grouping."""
    parts = [[f"{name}={level}" for level in levels] for name, levels in zip(by, groups, strict=True)]
    return tuple(", ".join(names) for names in itertools.product(*parts))


def check_grouped(data: Any, by: Sequence[str], groups: Sequence[Sequence[str]]) -> None:
    """Refuse plain data that are not a column with its groups' codes, and records whose schema declares other groups."""
    if not is_records(data):
        if not isinstance(data, Grouped) or len(data.codes) != len(groups):
            raise InvalidModel(
                f"The table has {len(groups)} grouping(s), so the data must be Grouped(values, codes) with as many "
                f"columns of codes, or Records that name them; a {type(data).__name__} was given."
            )
        for column in (data.values, *data.codes):
            check_shape(column, None, dim=1)
            if len(column) != len(data):
                raise InvalidModel("The column and the codes of its groups must have one entry per record each.")
    for name, levels in zip(by, groups, strict=True) if is_records(data) else ():
        declared = data.schema.column(name)
        if declared.role not in ("category", "binary") or tuple(declared.labels) != levels:
            raise InvalidModel(
                f"The table is by {name!r} with the groups {', '.join(levels)}, but the schema declares another column. "
                "Groups are the declared levels of a category or binary column."
            )


def grouped_batches(data: Any) -> Iterator[list[Batch]]:
    """Return the column, and the codes of its groups, of plain data."""
    if isinstance(data, Grouped):
        yield [np.concatenate([np.zeros(0), *batches(column)]) for column in (data.values, *data.codes)]
    else:
        yield from ([batch] for batch in batches(data))


@dataclass(frozen=True)
class TableSums(Statistic):
    """What a record adds to the sums of a table: a statistic of `onedraw.data.sums`."""

    table: Table
    columns: tuple[str, ...] = ()

    def bound(self) -> float:
        return float(self.table.largest)

    def of_block(self, *columns_and_weight: Batch) -> Integers:
        *columns, weight = columns_and_weight
        values, *codes = (real(column, weight) for column in columns)
        if self.table.skips and not self.table.skips_by_itself:
            return self._of_known(values, codes)
        sums = np.zeros((self.table.cells, self.table.block), dtype=np.int64)
        self.table.add(sums, self.table.cell(codes) if codes else None, values)
        return sums.reshape(-1)

    def _of_known(self, values: Batch, codes: Sequence[Batch]) -> Integers:
        """The sums of records with all cells, and how many count for somebody and lack one.

        Others are added to a group of their own, which is dropped: the same steps are taken whatever cells are missing.
        """
        table = self.table
        value, levels = table.cell_of(values), [len(one) for one in table.groups]
        groups = [unknown_codes(one, size) for one, size in zip(codes, levels, strict=True)]
        known, missing = marks([value, *groups])
        place = (
            table.cell([np.where(np.isfinite(one), one, 0.0) for one in groups])
            if groups
            else np.zeros(len(known), int)
        )
        sums = np.zeros((table.cells + 1, table.block), dtype=np.int64)
        table.add(sums, np.where(known, place, table.cells), np.where(known, value, table.filler))
        table.add_counts(sums, np.where(known, place, table.cells), np.where(missing, place, table.cells))
        return np.append(sums[:-1].reshape(-1), [np.count_nonzero(missing) * table.unit_of_count] * table.apart)


def declared_groups(by: Any, groups: Any, sizes: Any) -> dict[str, Any]:
    """The three fields of a table's groups, checked and made plain."""
    names = tuple(str(name) for name in by)
    levels = tuple(tuple(str(level) for level in one) for one in groups)
    if len(names) != len(levels) or len(names) > MOST_GROUPINGS or len(set(names)) < len(names):
        raise InvalidModel(
            f"by names one to three columns, each once, and groups lists their levels; {len(names)} name(s) and {len(levels)} "
            "list(s) were given."
        )
    for name, one in zip(names, levels, strict=True):
        if not one or len(set(one)) < len(one):
            raise InvalidModel(f"The groups of {name!r} must be declared, each once; {len(one)} were given.")
    cells = math.prod(len(one) for one in levels)
    if cells > MOST_CELLS:
        raise InvalidModel(f"A table has at most {MOST_CELLS:,} groups, but {cells:,} were given. Group by less.")
    counted = None if sizes is None else tuple(count("a size", size) for size in sizes)
    if counted is not None and (not names or len(counted) != cells):
        raise InvalidModel(
            f"sizes has the public number of records of each of the {cells} group(s), but {len(counted)} were given."
        )
    return {"by": names, "groups": levels, "sizes": counted}


def proportional(values: Array, total: float) -> Array:
    """The nearest point (least squares) with no negative entry and this sum, of each row by itself: the simplex projection of
    Duchi et al. (ICML 2008)."""
    if not total > 0:
        return np.zeros(values.shape)
    ordered = np.sort(values, axis=-1)[..., ::-1]
    excess = (np.cumsum(ordered, axis=-1) - total) / np.arange(1, values.shape[-1] + 1)
    last = values.shape[-1] - 1 - np.argmax((ordered > excess)[..., ::-1], axis=-1)
    return np.maximum(values - np.take_along_axis(excess, last[..., None], axis=-1), 0.0)


def whole(values: Array, total: int) -> Array:
    """Whole numbers of this sum, nearest to non-negative values of the same sum: the largest remainders are rounded up."""
    floors = np.floor(values)
    missing = round(total - float(floors.sum()))
    order = np.argsort(floors - values, kind="stable")
    floors[order[:missing]] += 1.0
    return floors
