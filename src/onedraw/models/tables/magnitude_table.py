"""How many records have each magnitude, for several columns at once: histograms that need no bounds.

A record adds 1 to one level of each of m columns. Replacing it moves, for each column, at most two levels by 1: the sums move by at
most 2m in L1, and by √(2m) in L2. The grid of magnitudes (`onedraw.data.magnitudes`) is fixed, so nothing else is declared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.data.magnitudes import LABELS, LEVELS, MISSING, magnitudes_of
from onedraw.data.sums import Blocks, Statistic, block_rows, blocked
from onedraw.errors import InvalidModel
from onedraw.models.batches import Batch, is_records, row_batches
from onedraw.models.model import Bound
from onedraw.models.sums.clamped_sums import Summary, known_codes, real
from onedraw.privacy import Provenance

from .table import Table, proportional, whole

MOST_COLUMNS = 1000


@dataclass(frozen=True)
class MagnitudeTable(Table):
    """Counts of magnitudes of the columns ``names``: of `Records` that declare them as magnitudes, or of a matrix of numbers.

    | record | counts as, in each column |
    | --- | --- |
    | a finite number | its magnitude on the public grid |
    | NaN, ±inf, None, not a number | missing |
    """

    kinds: ClassVar[tuple[str, ...]] = ("magnitude",)
    by: ClassVar[tuple[str, ...]] = ()  # type: ignore[misc]  # no groups
    groups: ClassVar[tuple[tuple[str, ...], ...]] = ()  # type: ignore[misc]
    sizes: ClassVar[tuple[int, ...] | None] = None  # type: ignore[misc]
    show: ClassVar[str] = "counts"  # type: ignore[misc]
    shown: ClassVar[tuple[str, ...]] = ("counts",)

    quantity: ClassVar[str] = "records by magnitude"
    title = "Magnitudes"
    form = "folded"
    largest, prior_scale = 1, 2.0**20  # there is no prior: counts are whole
    about_records = True

    names: tuple[str, ...]

    @classmethod
    def example(cls) -> Self:
        return cls(("a", "b"))

    def __post_init__(self) -> None:
        names = tuple(map(str, self.names))
        if not 1 <= len(names) <= MOST_COLUMNS or len(set(names)) < len(names):
            raise InvalidModel(
                f"Magnitudes are of 1 to {MOST_COLUMNS:,} columns, each named once, got {len(names)} names."
            )
        self._set(names=names)

    @property
    def meaning(self) -> str:
        return "The number of these records with each magnitude, between powers of two on one public grid. A column's counts add up to n."

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(f"{name}: {label}" for name in self.names for label in LABELS)

    def unit(self, name: str) -> str:
        return "records"

    @property
    def most_moved(self) -> int:  # type: ignore[override]  # an attribute of all others
        return 2 * len(self.names)

    @property
    def _bounds(self) -> dict[str, Bound]:
        reach = float(self.reach("laplace"))
        return {"l1": Bound(reach, Provenance.PROVED, "a replaced record leaves one level of each column for another")}

    @property
    def block(self) -> int:
        return len(self.names) * LEVELS

    def reach(self, law: str) -> int:
        return 2 * len(self.names)

    # ── reading ────────────────────────────────────────────────────────────────────────────────────────────

    def check(self, data: Any) -> None:
        if is_records(data):
            for name in self.names:
                if data.schema.column(name).kind not in self.kinds:
                    raise InvalidModel(
                        f"Magnitudes are counted of columns declared as magnitude, but {name!r} is declared otherwise."
                    )
            return
        shape = getattr(data, "shape", None)
        if shape is None or len(shape) != 2 or shape[1] != len(self.names):
            raise InvalidModel(
                f"The table has {len(self.names)} column(s), so the data must be Records that declare them, or a matrix of as many columns."
            )

    def summarise(self, data: Any) -> Summary:
        self.check(data)
        return Summary(len(data), tuple(int(value) for value in self.summed(data, MagnitudeCounts(self))))

    def summed(self, data: Any, statistic: Any, *public: Any) -> Integers:
        if is_records(data):
            return np.asarray(data.sum(replace(statistic, columns=self.names), *public))
        n = len(data)
        rows = ([*map(magnitudes_of, batch.T)] for batch in row_batches(data, dim=len(self.names)))
        return Blocks(n, lambda: blocked(rows, block_rows(n)), held=False).sum(statistic, *public)

    def add(self, sums: Integers, group: Integers | None, values: Batch) -> None:
        """Add records, of which ``values`` has a level for each column."""
        for place, levels in enumerate(values.T):
            known = known_codes(levels, LEVELS, missing=MISSING)
            sums[0, place * LEVELS : (place + 1) * LEVELS] += np.bincount(known, minlength=LEVELS)

    # ── what is published ──────────────────────────────────────────────────────────────────────────────────

    def estimate(self, noisy: Array, n: int, apart: float = 0.0) -> Array:
        """Counts of each column that are whole, not negative and sum to n."""
        rows = noisy.reshape(len(self.names), LEVELS)
        return np.concatenate([whole(proportional(row, float(n)), n) for row in rows])

    def noise_error(self, spread: Array, n: int) -> float:
        return float(spread[0])

    def sampling_error(self, n: int) -> float:
        return 0.0


@dataclass(frozen=True)
class MagnitudeCounts(Statistic):
    """What a record adds: 1 to one level of each column."""

    table: MagnitudeTable
    columns: tuple[str, ...] = ()

    def bound(self) -> float:
        return 1.0

    def of_block(self, *columns_and_weight: Batch) -> Integers:
        *columns, weight = columns_and_weight
        sums = np.zeros((1, self.table.block), dtype=np.int64)
        self.table.add(sums, None, np.column_stack([real(column, weight) for column in columns]))
        return sums.reshape(-1)
