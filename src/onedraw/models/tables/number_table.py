"""The mean, sum or variance of numbers in a public range: of one column, or within groups.

**One group, or groups of public size.** With v ∈ [−1, 1] the place of a record in its range, a record adds v and v². One
replaced record moves Σv by |v − v'| and Σv² by |v − v'|·|v + v'|, and |v − v'| ≤ 2 − s for s = |v + v'|. So

    |Δ Σv| + ½·|Δ Σv²|       ≤ (2 − s)(1 + s/2)         ≤ 2          (L1)
    (Δ Σv)² + (3/2·Δ Σv²)²   ≤ (2 − s)²(1 + 9s²/4)      ≤ 4          (L2)

and Σv alone moves by 2: *the second moment, at these weights, costs nothing*. (The first is 2 − s²/2. The second has its one
local maximum at s = 2/3, where it is 32/9.) A mean therefore comes with a private variance for its interval, for the same
noise. For a variance the L1 weight is 6/5: |Δ Σv| + w·|Δ Σv²| ≤ (2 − s)(1 + ws) ≤ (1 + 2w)²/4w = 289/120.

**Groups whose members are private.** A record splits one unit over three cells, ((1 − t)², 2t(1 − t), t²) with t its place in
[0, 1]. The three sum to 1, so a record that leaves one group for another moves the sums by 2 in L1 and √2 in L2, as for a
count: number of records, mean and variance of every group for the price of a histogram. Missing cells that are skipped are one
more cell, for all groups together.

**Missing cells that are skipped** (``missing="skip"``), one group or groups of public size. A known cell adds (v, v², 1), any other
(0, 0, 0). Between two known cells the third number does not move. A cell that becomes missing moves the sums by |v|, v² and 1, so with the
weights of the L1 norm by at most

    1 + ½ + ½ = 2,    or for a variance 1 + 6/5 + 1/5 < 289/120:

*the number of known cells costs nothing either*. Squared L2, with weights (1, 3/2, 3/4): 1 + 9/4 + 9/16 < 4. The mean is a quotient of two
noisy sums, Σ v about the middle of the range: no other public center has a smaller worst error, since |v| ≤ 1 is what pays for the count.
Where records may count for nobody, missing cells are a fourth number with the third one's weight: the sums move by at most 5/2, or
in squared L2 by 70/16.

Places are whole steps, 2^30 to the range, and squares are rounded to whole steps; the bounds below allow for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.errors import InvalidModel
from onedraw.models.batches import Batch
from onedraw.models.model import Bound, check_covers, declared_missing, declared_range
from onedraw.models.sums.clamped_sums import Summary, places_of
from onedraw.plain_text import shown
from onedraw.privacy import Provenance

from .centered_squares import CenteredSquares, SummaryOfSquares
from .table import STEPS, Table, proportional, whole


@dataclass(frozen=True)
class NumberTable(Table):
    """``show`` is "mean", "rate" (the mean of counts), "sum" or "variance" of numbers in [lower, upper].

    | record | counts as |
    | --- | --- |
    | below lower, above upper | lower, upper |
    | NaN, ±inf, None, not a number | ``missing`` (the middle, unless declared), or with "skip" nothing |

    With private groups the number of records of each is published beside.
    """

    lower: float
    upper: float
    show: str = "mean"
    missing: Any = None
    by: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    sizes: tuple[int, ...] | None = None
    nobody: bool = False

    kinds, form, largest = ("number", "count", "binary"), "groups", 6 * STEPS
    shown = ("mean", "rate", "sum", "variance")
    interval_method = "with spreads that were released within the same spend"

    @classmethod
    def example(cls) -> Self:
        return cls(0.0, 10.0)

    def __post_init__(self) -> None:
        lower, upper = declared_range(self.lower, self.upper)
        if self.show == "variance" and not 1e-140 < upper - lower < 1e140:
            raise InvalidModel(
                f"The variance of a range [{lower!r}, {upper!r}] is beyond floating-point numbers. Use other units."
            )
        missing = declared_missing(self.missing, lower, upper, default=lower + (upper - lower) / 2)
        self._declare(lower=lower, upper=upper, missing=missing)

    @property
    def quantity(self) -> str:  # type: ignore[override]  # of one class here, not of all its values
        return "rate of counts" if self.show == "rate" else self.show

    @property
    def parameter_names(self) -> tuple[str, ...]:
        if not self.by:
            return (self.show,)
        if not self.moves_between_cells:
            return tuple(f"{group}: {self.show}" for group in self.group_names)
        return tuple(f"{group}: {what}" for what in (self.show, "records") for group in self.group_names)

    @property
    def about_records(self) -> bool:
        return self.show == "sum"

    @property
    def is_mean(self) -> bool:
        """Whether its numbers are means: values of the column's own range."""
        return self.show == "mean"

    @property
    def is_average(self) -> bool:
        """Whether its numbers are means or rates, by which groups are compared."""
        return self.show in ("mean", "rate")

    @property
    def is_total(self) -> bool:
        """Whether its numbers are sums over the records."""
        return self.show == "sum"

    @property
    def is_spread(self) -> bool:
        """Whether its numbers are variances: what it estimates is quadratic in the numbers of the records."""
        return self.show == "variance"

    @property
    def title(self) -> str:
        return "Rate of counts" if self.show == "rate" else self.show.capitalize()

    @property
    def meaning(self) -> str:
        within, sizes = self.of_groups
        what = "mean count" if self.show == "rate" else self.show
        return (
            f"The {what} of the column{within}, declared to lie between {shown(self.lower)} and {shown(self.upper)}; values "
            f"outside were read as the nearest end.{sizes}"
        )

    def unit(self, name: str) -> str:
        return "records" if name.endswith(": records") else ""

    @property
    def public_range(self) -> tuple[float, float] | None:
        return (self.lower, self.upper) if self.show in ("mean", "rate") else None

    @property
    def width(self) -> float:
        return self.upper - self.lower

    @property
    def prior_scale(self) -> float:
        """There is no prior: numbers are published on a lattice some 2^−30 of the range wide, sums on a coarser one."""
        scale = self.width**2 if self.show == "variance" else self.width
        if self.moves_between_cells:
            scale = min(scale, 1.0)  # numbers of records stand beside
        return max(scale, 1e-250) * (2.0**4 if self.show == "sum" else 2.0**-10)

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {
            "range": Bound((self.lower, self.upper), Provenance.ENFORCED, "records are clamped to it"),
            "l1": Bound(self.reach("laplace") / STEPS, Provenance.PROVED, "one replaced record, in lattice ranges"),
        }

    def _check_column(self, column: Any) -> None:
        check_covers(self, column)

    # ── sums ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def block(self) -> int:
        """Of private groups three cells; else Σ v and Σ v², known cells if missing ones are skipped, and missing cells if known
        and missing ones do not add up to a public number."""
        return 3 if self.moves_between_cells else 2 + self.skips + (not self.total_is_public)

    def weights(self, law: str) -> tuple[int, ...]:
        if self.moves_between_cells:
            return (1, 1, 1)
        if self.skips:
            counts = self.block - 2
            if law == "gaussian":
                return (4, 6, *(3,) * counts)
            return (5, 6, *(1,) * counts) if self.show == "variance" else (2, 1, *(1,) * counts)
        if law == "gaussian":
            return (2, 3)
        return (5, 6) if self.show == "variance" else (2, 1)

    def reach(self, law: str) -> int:
        """In steps; rounding a square moves it by up to half a step, at most one (and a hair) between two records."""
        if self.moves_between_cells:
            return 2 * STEPS if law == "laplace" else 2 * STEPS**2
        more = 0 if self.total_is_public else 1
        if self.skips and law == "gaussian":  # as below, times 4; and what a missing cell moves, of whole steps
            return max(64 * STEPS**2 + 100 * STEPS + 40, (52 + 9 * (1 + more)) * STEPS**2)
        if self.skips:
            both = -(-289 * STEPS // 24) + 7 if self.show == "variance" else 4 * STEPS + 2
            return max(both, (12 if self.show == "variance" else 4) * STEPS + more * STEPS)
        if law == "gaussian":  # (4, 0)·STEPS, and at most 3.1 more in the second entry, itself below 4·STEPS
            return 16 * STEPS**2 + 25 * STEPS + 10
        return -(-289 * STEPS // 24) + 7 if self.show == "variance" else 4 * STEPS + 2

    unit_of_count = STEPS

    @property
    def filler(self) -> float:  # type: ignore[override]  # an attribute of all others
        return self.lower

    def add_counts(self, sums: Integers, known: Integers, missing: Integers) -> None:
        for column, places in zip(range(2, self.block), (known, missing), strict=False):
            if not self.moves_between_cells:
                sums[:, column] += np.bincount(places, minlength=len(sums)) * STEPS

    def add(self, sums: Integers, group: Integers | None, values: Batch) -> None:
        place = self.places(values)
        if self.moves_between_cells:
            square = np.rint(place * (place / STEPS))
            parts = [STEPS - 2.0 * place + square, 2.0 * (place - square), square]
        else:
            place *= 2.0
            place -= STEPS
            square = place / STEPS
            square *= place
            parts = [place, np.rint(square, out=square)]
        for column, part in enumerate(parts):
            if self.skips:
                sums[:, column] += np.bincount(np.asarray(group), part, len(sums)).astype(np.int64)  # exact, as below
            elif group is None:
                sums[0, column] += int(part.sum())  # whole numbers below 2^34, at most 2^16 of them: exact in float64
            else:
                np.add.at(sums[:, column], group, part.astype(np.int64))

    @property
    def centers(self) -> bool:
        """Whether its squares can be summed about released means: a variance whose groups have public sizes."""
        return self.show == "variance" and not self.moves_between_cells

    def summarise(self, data: Any) -> Summary:
        """n and the exact sums; of a variance also the records, to be read again about a released mean."""
        summary = super().summarise(data)
        if not self.centers:
            return summary
        squares = partial(self.summed, data, CenteredSquares(self))
        return SummaryOfSquares(summary.n, summary.total, squares)

    def places(self, values: Batch) -> Array:
        """0, …, STEPS (as floats): the place of each record in the range, itself alone deciding."""
        scale = STEPS / self.width
        place = places_of(values, self.lower, scale)
        lost = np.isnan(place)
        if not self.skips and lost.any():
            place[lost] = np.rint((self.missing - self.lower) * scale)
        return np.clip(place, 0.0, STEPS, out=place)

    # ── what is published ──────────────────────────────────────────────────────────────────────────────────

    def known_of(self, noisy: Array, n: int) -> Array:
        return np.asarray(noisy.sum(axis=1) if self.moves_between_cells else noisy[:, 2]) / STEPS

    def missing_of(self, noisy: Array, n: int, apart: float, law: str) -> tuple[float, list[float]]:
        if self.apart:
            return apart / STEPS, [1.0 / STEPS]
        factors = [1.0 / (self.weights(law)[2] * STEPS)] * len(noisy)
        if not self.total_is_public:
            return float(noisy[:, 3].sum()) / STEPS, factors
        return n - float(noisy[:, 2].sum()) / STEPS, factors

    def estimate(self, noisy: Array, n: int, apart: float = 0.0) -> Array:
        sizes, share, spread = self.moments(noisy, n, apart)
        values = self.lower + self.width * np.clip(share, 0.0, 1.0)
        if self.show == "sum" and self.moves_between_cells:
            ends = np.array([self.lower, self.lower + self.width / 2.0, self.upper])
            values = np.clip(noisy @ ends / STEPS, n * min(self.lower, 0.0), n * max(self.upper, 0.0))
        elif self.show == "sum":
            values = values * sizes
        elif self.show == "variance":
            values = self.width**2 * np.clip(spread, 0.0, _unbiased(np.full(len(sizes), 0.25), np.maximum(sizes, 1.0)))
        return np.concatenate([values, sizes]) if self.moves_between_cells else values

    def noise_error(self, spread: Array, n: int) -> float:
        """For a mean half way between the middle and an end of the range, in groups of equal size."""
        records = max(n / self.cells, 1.0)
        if self.moves_between_cells:  # t = ¼: Σ (t_j − t)·c_j with t_j = 0, ½, 1; and for a variance (t_j − t)² − Var
            place = float(np.hypot.reduce(spread * np.array([0.25, 0.25, 0.75]))) / (records * STEPS)
            square = float(np.hypot.reduce(spread * np.array([0.0, 0.2, 0.5]))) / (records * STEPS)
        else:
            place = float(spread[0]) / (2.0 * records * STEPS)
            square = float(np.hypot(spread[1], spread[0])) / (4.0 * records * STEPS)
            if self.skips:  # half way to an end: (v − ½)/2 of a known cell
                place = float(np.hypot(spread[0], 0.5 * spread[2])) / (2.0 * records * STEPS)
                square = float(np.hypot.reduce([spread[1], spread[0], 0.25 * spread[2]])) / (4.0 * records * STEPS)
        if self.show == "variance":
            return self.width**2 * square
        return self.width * place * (records if self.show == "sum" else 1.0)

    def sampling_error(self, n: int) -> float:
        """For records that spread over half of their range: a standard deviation of a quarter of it."""
        records = max(n / self.cells, 1.0)
        if self.show == "sum":
            return 0.0
        return (self.width**2 / 16.0 if self.show == "variance" else self.width / 4.0) / float(np.sqrt(records))

    def moments(self, noisy: Array, n: int, apart: float = 0.0) -> tuple[Array, Array, Array]:
        """Of each group: the number of records, and mean and variance of a record's place in [0, 1]; not yet cut off."""
        known = self.group_sizes(n)
        if known is not None:
            if self.skips:
                known = np.clip(self.known_of(noisy, n), 0.0, known)
            sizes, least = known, np.maximum(known, 1.0)
            mean, square = noisy[:, 0] / (least * STEPS), noisy[:, 1] / (least * STEPS)
            return sizes, (1.0 + mean) / 2.0, _unbiased((square - mean**2) / 4.0, least)
        units = noisy / STEPS
        records = units.sum(axis=1)
        least = np.maximum(records, 1.0)
        share, square = (units[:, 1] / 2.0 + units[:, 2]) / least, units[:, 2] / least
        if not self.total_is_public:
            sizes = np.rint(np.maximum(records, 0.0))
        elif self.skips:
            sizes = whole(proportional(np.append(records, apart / STEPS), float(n)), n)[:-1]
        else:
            sizes = whole(proportional(records, float(n)), n)
        return sizes, share, _unbiased(square - share**2, least)


def _unbiased(spread: Array, records: Array) -> Array:
    """The variance with n − 1 for n."""
    return spread * records / np.maximum(records - 1.0, 1.0)
