"""How many records, or which share of them, have each declared level: of one column, or within groups.

A record adds 1 to one cell. Replacing it moves two cells by 1, so the sums move by 2 in L1 and √2 in L2; of two levels in a
group of public size one is enough, for the other is the rest, and it moves by 1. Nothing else need be said about counts.

With ``missing="skip"`` missing cells are one more cell: in each group of public size, or one for all private groups, where the group may be
what is missing. A record that loses its cell leaves one cell and enters this one, so the sums move as before. A record that counts for nobody is in
none of them, and one that becomes so leaves one cell: half as far.

With private groups the cells of all groups are one histogram, whose total n is public: what is published sums to it.

A public condition on a number, ``between``, makes two levels of it: records that meet it and the rest.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.errors import InvalidModel
from onedraw.models.batches import Batch
from onedraw.models.model import Bound, count, different_names, number
from onedraw.models.sums.clamped_sums import SKIP, is_skip, known_codes, unknown_codes
from onedraw.privacy import Provenance

from .table import Table, proportional, whole

LARGEST = sys.float_info.max
"""What an open end of a condition is written as: every finite number is within."""


@dataclass(frozen=True)
class CategoryTable(Table):
    """Counts or ``show="shares"`` of ``levels``; ``only`` one of them against the rest, as for a proportion.

    | record | counts as |
    | --- | --- |
    | a code 0, …, len(levels) − 1 (2.0 is 2) | itself |
    | any other number, NaN, None, not a number | level ``missing`` (0, unless declared), or with "skip" nothing |

    With ``between`` = (low, high) a record is a number: it has the second of two levels if low ≤ it ≤ high, and else, as when it is
    no finite number, the first.

    Shares are within a group where there are groups, and sum to 1 in each.
    """

    levels: tuple[str, ...]
    show: str = "counts"
    only: str | None = None
    missing: Any = 0
    by: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    sizes: tuple[int, ...] | None = None
    between: tuple[float, float] | None = None
    nobody: bool = False

    shown, largest = ("counts", "shares"), 1

    @classmethod
    def example(cls) -> Self:
        return cls(("a", "b", "c"))

    def __post_init__(self) -> None:
        levels = different_names("levels", self.levels)
        if self.only is not None and str(self.only) not in levels:
            raise InvalidModel(f"only names one of the levels {', '.join(levels)}, but {self.only!r} was given.")
        missing = self.missing if is_skip(self.missing) else count("missing", self.missing)
        if not is_skip(missing) and missing >= len(levels):
            raise InvalidModel(f"missing must be one of the codes 0 to {len(levels) - 1}, but {missing} was given.")
        between = None if self.between is None else (number("low", self.between[0]), number("high", self.between[1]))
        if between is not None and not (between[0] <= between[1] and len(levels) == 2 and missing in (0, SKIP)):
            raise InvalidModel(f"between is (low, high), low at most high, and makes two levels; {between} was given.")
        only = None if self.only is None else str(self.only)
        self._declare(levels=levels, only=only, missing=missing, between=between)

    @property
    def kinds(self) -> tuple[str, ...]:  # type: ignore[override]  # an attribute of all others
        return ("category", "binary") if self.between is None else ("number", "count")

    @property
    def quantity(self) -> str:  # type: ignore[override]  # of one class here, not of all its values
        what = "count" if self.show == "counts" else "proportion"
        return what if self.only else f"{what}s"

    @property
    def parameter_names(self) -> tuple[str, ...]:
        if not self.by:
            return self.levels if self.only is None else (self.only,)
        if self.only is not None:
            return self.group_names
        return tuple(f"{group}: {level}" for group in self.group_names for level in self.levels)

    @property
    def title(self) -> str:
        names = ("Histogram", "Proportion") if self.show == "shares" else ("Counts", "Count")
        return names[self.only is not None]

    @property
    def about_records(self) -> bool:
        return self.show == "counts"

    @property
    def form(self) -> str:  # type: ignore[override]  # an attribute of all others
        return "shares" if self.show == "shares" else "bars"

    @property
    def meaning(self) -> str:
        within, sizes = self.of_groups
        level = "with each level" if self.only is None else f"with the level “{self.only}”"
        level = level if self.between is None else str(self.only)
        if self.show == "shares":
            return f"The share of records {level}{within}.{sizes}"
        beside = " and that of missing cells" if self.skips else ""
        total = f" All counts together{beside} are n, the public number of records." if self.only is None else ""
        total = total if self.total_is_public else ""
        return f"The number of these records {level}{within}.{total}"

    def unit(self, name: str) -> str:
        return "share" if self.show == "shares" else "records"

    @property
    def public_range(self) -> tuple[float, float] | None:
        return (0.0, 1.0) if self.show == "shares" else None

    @property
    def each_level(self) -> tuple[str, ...]:  # type: ignore[override]  # an attribute of all others
        return self.levels if self.only is None else ()

    @property
    def interval_method(self) -> str:  # type: ignore[override]  # an attribute of all others
        if self.skips:
            return "as a quotient of two noisy counts"
        quotient = "for each group as a quotient of two noisy counts"
        return quotient if self.moves_between_cells else "by exact inversion of both laws"

    @property
    def prior_scale(self) -> float:
        """There is no prior: the lattice of counts has spacing 1, that of shares 2^−30."""
        return 2.0**20 if self.show == "counts" else 2.0**-10

    @property
    def kept(self) -> int:
        """Levels that are told apart: all of them, or the rest and the one of ``only``."""
        return len(self.levels) if self.only is None else 2

    @property
    def rest_is_known(self) -> bool:
        """Whether one of two is published alone: the other is the rest of a group of public size."""
        return self.kept == 2 and not self.moves_between_cells and not self.skips

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {
            "levels": Bound(float(len(self.levels)), Provenance.ENFORCED, "undeclared codes become `missing`"),
            "l1": Bound(
                float(self.reach("laplace")), Provenance.PROVED, "a replaced record leaves one cell for another"
            ),
        }

    def _check_column(self, column: Any) -> None:
        if self.between is None and tuple(column.labels) != self.levels:
            raise InvalidModel(
                f"The table's levels are {', '.join(self.levels)}, those of the target {', '.join(column.labels)}. Use the "
                "same ones in the same order."
            )

    # ── sums ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def block(self) -> int:
        """Levels kept; then missing cells, where they are counted in each group."""
        return 1 if self.rest_is_known else self.kept + int(self.skips and not self.moves_between_cells)

    def reach(self, law: str) -> int:
        return 1 if self.rest_is_known else 2

    def add(self, sums: Integers, group: Integers | None, values: Batch) -> None:
        codes = self.codes(values)
        if self.only is not None:
            codes = codes == self.levels.index(self.only)
        if self.skips:
            place = np.asarray(group) * self.block + codes
            sums += np.bincount(place, minlength=sums.size).reshape(sums.shape)
            return
        if group is None and self.rest_is_known:
            sums[0, 0] += np.count_nonzero(codes)
            return
        codes = codes.astype(np.int64, copy=False)
        place = codes if group is None else group * self.kept + codes
        counts = np.bincount(place, minlength=self.cells * self.kept).reshape(self.cells, self.kept)
        sums += counts[:, 1:] if self.rest_is_known else counts

    def cell_of(self, values: Batch) -> Array:
        return super().cell_of(values) if self.between is not None else unknown_codes(values, len(self.levels))

    def add_counts(self, sums: Integers, known: Integers, missing: Integers) -> None:
        if not self.moves_between_cells:
            sums[:, -1] += np.bincount(missing, minlength=len(sums))

    def codes(self, values: Batch) -> Integers:
        """The place of each record's level, itself alone deciding."""
        if self.between is None:
            return known_codes(values, len(self.levels), missing=0 if self.skips else self.missing)
        low, high = self.between
        with np.errstate(invalid="ignore"):
            return np.asarray((values >= low) & (values <= high), dtype=np.int64)

    # ── what is published ──────────────────────────────────────────────────────────────────────────────────

    def estimate(self, noisy: Array, n: int, apart: float = 0.0) -> Array:
        """Counts that are whole, not negative and sum to what is public; shares of them."""
        counts = self.whole_table(noisy, n, apart)
        if self.show == "shares":
            counts = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        return (counts if self.only is None else counts[:, 1:]).reshape(-1)

    def noise_error(self, spread: Array, n: int) -> float:
        return float(spread[0]) / (1.0 if self.show == "counts" else max(n / self.cells, 1.0))

    def sampling_error(self, n: int) -> float:
        if self.show == "counts":
            return 0.0
        return float(np.sqrt((self.kept - 1.0) / (self.kept * (self.kept + 1.0)) / max(n / self.cells, 1.0)))

    def known_of(self, noisy: Array, n: int) -> Array:
        return np.asarray(noisy[:, : self.kept].sum(axis=1))

    def missing_of(self, noisy: Array, n: int, apart: float, law: str) -> tuple[float, list[float]]:
        return (apart, [1.0]) if self.apart else (float(noisy[:, -1].sum()), [1.0] * len(noisy))

    def whole_table(self, noisy: Array, n: int, apart: float = 0.0) -> Array:
        """(groups, levels kept): the nearest table to the noisy one that could be a table of n records."""
        sizes = self.group_sizes(n)
        if not self.total_is_public:
            return np.asarray(np.rint(np.maximum(noisy[:, : self.kept], 0.0)))
        if self.skips and sizes is None:
            return whole(proportional(np.append(noisy, apart), float(n)), n)[:-1].reshape(noisy.shape)
        if self.skips:
            return self._whole_groups(noisy, sizes)[:, : self.kept]
        if self.rest_is_known:
            assert sizes is not None
            known = np.clip(noisy[:, 0], 0.0, sizes)
            return np.column_stack([sizes - known, known])
        if sizes is None:
            return whole(proportional(noisy.reshape(-1), float(n)), n).reshape(noisy.shape)
        return self._whole_groups(noisy, sizes)

    @staticmethod
    def _whole_groups(noisy: Array, sizes: Any) -> Array:
        """Of groups of public size."""
        return np.array([whole(proportional(row, size), int(size)) for row, size in zip(noisy, sizes, strict=True)])


def condition(between: Any) -> dict[str, Any]:
    """The levels, the one that is counted and ``between`` of a public condition (low, high) on a number; None is an open end."""
    if not isinstance(between, list | tuple | np.ndarray) or len(between) != 2:
        raise InvalidModel(
            f"between is (low, high), the public ends of what is counted, None for an open one, got {between!r}. Pass (18, 30), say."
        )
    low, high = between
    ends = [
        sign * LARGEST if end is None or end == sign * np.inf else number("an end of between", end)
        for end, sign in ((low, -1.0), (high, 1.0))
    ]
    if ends[0] == -LARGEST and ends[1] == LARGEST:
        raise InvalidModel(
            "between has no end, so it would count everybody, and n is public. Give at least one end: 18,30."
        )
    if not ends[0] <= ends[1]:
        raise InvalidModel(
            f"between is low and high, low at most high, but {low:g} and {high:g} were given. Exchange them."
        )
    words = f"between {ends[0]:g} and {ends[1]:g}"
    if ends[0] == -LARGEST:
        words = f"at most {ends[1]:g}"
    elif ends[1] == LARGEST:
        words = f"at least {ends[0]:g}"
    return {"levels": ("other", words), "only": words, "between": (ends[0], ends[1])}
