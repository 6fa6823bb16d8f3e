"""Differences between released groups, and tests of them: post-processing of what was published, it costs nothing.

A mean, a share or a median of a group comes with `Scores`: what each group's noisy records say of one number, as a sum over cells
whose noise has a known law. Two groups are alike if their numbers are; how far two may lie apart by chance is sampling, estimated
from the noisy records, and the noise, whose law is known. P-values are tails of this law.

| question | test | its law if the groups are alike |
| --- | --- | --- |
| two means, two shares | difference over its standard error | normal sampling and the noise's own law (`noise_law`) |
| two medians | shares of records below one place between the medians (Mood) | the same |
| several groups | Σ (number − mean of all)²/variance | the same law, simulated |
| a cross table | Σ (count − expected)²/variance, expected from noisy margins | a table without association of as many records, with fresh noise |

Simulations start from a fixed public seed, so that a release has one p-value. A group whose noisy number of records does not exceed
its noise by two standard deviations gives no difference and no test.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from onedraw.arrays import Array, Mask
from onedraw.methods.noise_law import NoiseLaw

SIMULATED, TABLES = 9999, 1999
"""Simulated sets of groups, and simulated cross tables."""

CLEAR = 2.0
"""Standard deviations of its noise by which a group's number of records has to exceed 0."""

ALL_PAIRS = 4
"""Groups of which every two are compared; of more, each with the first."""


class Difference(NamedTuple):
    """The first group's number less the second's, with its interval, and the p-value of "they are alike"."""

    first: str
    second: str
    estimate: float
    low: float
    high: float
    p_value: float


class GroupTest(NamedTuple):
    """A test of all groups together; NaN where noise leaves too little of a group."""

    name: str
    statistic: float
    p_value: float


@dataclass(frozen=True)
class Comparison:
    """The differences of the groups, and the test of all of them together."""

    quantity: str
    level: float
    differences: tuple[Difference, ...]
    joint: GroupTest | None
    note: str = ""

    def __str__(self) -> str:
        head = ["groups", f"difference of the {self.quantity}s", f"{100 * self.level:g} % interval", "p"]
        lines = [head] if self.differences else []
        for row in self.differences:
            between = "–" if math.isnan(row.low) else f"{row.low:.4g} to {row.high:.4g}"
            lines.append([f"{row.first} − {row.second}", f"{row.estimate:.4g}", between, p_words(row.p_value)])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)] if lines else []
        said = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        if self.joint is not None:
            p_value = p_words(self.joint.p_value)
            said.append(f"{self.joint.name}: p {p_value if p_value[:1] in '<–' else f'= {p_value}'}")
        return "\n".join([*said, *([self.note] if self.note else [])])

    __repr__ = __str__

    def to_dict(self) -> dict[str, object]:
        """Everything, ready for JSON; None where there is no number."""

        def plain(row: NamedTuple) -> dict[str, object]:
            found = row._asdict()
            return {
                name: None if isinstance(value, float) and math.isnan(value) else value for name, value in found.items()
            }

        return {
            "quantity": self.quantity, "level": self.level, "differences": [plain(row) for row in self.differences],
            "joint": None if self.joint is None else plain(self.joint), "note": self.note,
        }  # fmt: skip


def p_words(value: float) -> str:
    return "–" if math.isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"


@dataclass(frozen=True, eq=False)
class Scores:
    """What each group says of one number: ``values``, the standard deviation of ``sampling``, and the factors of the noise
    variates in it, one row for each group. ``known`` says which groups are clear of their noise. ``shown`` are other numbers to
    be shown in place of the values, with their own ends: medians."""

    quantity: str
    names: tuple[str, ...]
    values: Array
    sampling: Array
    factors: Array
    law: NoiseLaw
    known: Mask
    scale: float = 1.0
    shown: tuple[Array, Array, Array] | None = None

    @classmethod
    def of_cells(
        cls, quantity: str, names: Sequence[str], cells: Array, law: NoiseLaw, *, split: bool, unit: float = 1.0, scale: float = 1.0,
        shown: tuple[Array, Array, Array] | None = None,
    ) -> Self:  # fmt: skip
        """Return those of noisy numbers of records at 0, ½ and 1, one row for each group; ``split`` says that a record at t is
        spread over the three as (1 − t)², 2t(1 − t), t². ``unit`` is what a record counts in steps of the noise."""
        places, records = np.array([0.0, 0.5, 1.0]), cells.sum(axis=1)
        size = np.maximum(records, 1.0)
        share = np.clip(cells @ places / size, 0.0, 1.0)
        square = cells[:, 2] / size if split else (cells[:, 1] / 4.0 + cells[:, 2]) / size
        common = float(np.average(share, weights=np.maximum(records, 1.0)))
        spread = np.clip(square - share**2, 0.0, share * (1.0 - share)) + 1.0 / size**2
        factors = (places - common) / (size[:, None] * unit)
        known = records > CLEAR * law.deviation([1.0 / unit] * 3)
        return cls(quantity, tuple(names), share, np.sqrt(spread / size), factors, law, known, scale, shown)

    @classmethod
    def of_shares(
        cls, names: Sequence[str], counts: Array, sizes: Array | None, law: NoiseLaw, quantity: str = "share", *, others: int = 1
    ) -> Self:  # fmt: skip
        """Return those of noisy counts of one level and of all others, (groups, 2); ``sizes`` are public numbers of records, and the
        count of the level alone has noise then. ``others`` is of how many noisy counts that of all others is the sum."""
        records = counts.sum(axis=1) if sizes is None else sizes
        size = np.maximum(records, 1.0)
        share = np.clip(counts[:, 1] / size, 0.0, 1.0)
        common = float(np.average(share, weights=size))
        spread = max(common * (1.0 - common), 1.0 / float(size.sum()))
        if sizes is None:
            factors = np.array([*[-common] * others, 1.0 - common]) / size[:, None]
            known = records > CLEAR * law.deviation([1.0] * (others + 1))
        else:
            factors, known = 1.0 / size[:, None], records > 0
        return cls(quantity, tuple(names), share, np.sqrt(spread / size), factors, law, known)

    @property
    def deviations(self) -> Array:
        """The standard error of each group's number, sampling and noise together."""
        return np.hypot(self.sampling, [self.law.deviation(row.tolist()) for row in self.factors])

    def compare(self, level: float = 0.95) -> Comparison:
        """Return the differences, of every two groups or of each with the first, and one test of all."""
        count = len(self.names)
        pairs = (
            list(itertools.combinations(range(count), 2)) if count <= ALL_PAIRS else [(k, 0) for k in range(1, count)]
        )
        notes = []
        if self.shown is not None:
            notes.append(
                "Tests count records on either side of one place; intervals hold for every distribution and are wider."
            )
        if len(pairs) > 1:
            notes.append(
                f"Intervals of {100 * level:g} % hold one by one; only the test of all groups allows for their number."
            )
        note = " ".join(notes)
        return Comparison(
            self.quantity, level, tuple(self._difference(i, j, level) for i, j in pairs), self.joint() if count > 2 else None, note
        )  # fmt: skip

    def _difference(self, i: int, j: int, level: float) -> Difference:
        names, nothing = (self.names[i], self.names[j]), (math.nan,) * 4
        if not (self.known[i] and self.known[j]):
            return Difference(*names, *nothing)
        factors = np.concatenate([self.factors[i], self.factors[j]]).tolist()
        sampling = float(math.hypot(self.sampling[i], self.sampling[j]))
        apart = float(self.values[i] - self.values[j])
        p_value = min(2.0 * float(self.law.beyond(abs(apart), factors, sampling)), 1.0)
        if self.shown is not None:
            values, low, high = self.shown  # MOVER: Zou and Donner (Statistics in Medicine 27, 2008)
            estimate = float(values[i] - values[j])
            below = math.hypot(values[i] - low[i], high[j] - values[j])
            above = math.hypot(high[i] - values[i], values[j] - low[j])
            return Difference(*names, estimate, estimate - below, estimate + above, p_value)
        q = self.law.quantile(level, factors, sampling)
        ends = (self.scale * max(apart - q, -1.0), self.scale * min(apart + q, 1.0))
        return Difference(*names, self.scale * apart, *ends, p_value)

    def joint(self) -> GroupTest:
        """Return the test that all groups are alike."""
        name = f"All {len(self.names)} groups together"
        if not self.known.all():
            return GroupTest(name, math.nan, math.nan)
        weights = self.deviations**-2.0

        def distance(values: Array) -> Array:
            middle = values @ weights / weights.sum()
            return np.asarray(((values - middle[..., None]) ** 2) @ weights)

        found = float(distance(self.values))
        if self.law.law == "gaussian":
            return GroupTest(name, found, float(special.chdtrc(len(self.names) - 1, found)))
        generator = np.random.default_rng(20_240_501)
        noise = self.law.scale * generator.laplace(size=(SIMULATED, *self.factors.shape))
        drawn = self.sampling * generator.standard_normal((SIMULATED, len(self.names))) + np.einsum(
            "sgc,gc->sg", noise, self.factors
        )
        return GroupTest(name, found, float((1 + np.count_nonzero(distance(drawn) >= found)) / (1 + SIMULATED)))


def independence(counts: Array, n: int, law: NoiseLaw) -> GroupTest:
    """Return the χ² test of "rows and columns of a cross table are independent", from noisy counts of n records.

    The law of the statistic is simulated: tables of n records without association, by the noisy margins, with fresh noise.
    """
    noise = law.deviation([1.0]) ** 2
    rows, columns = _margins(counts[None])
    if n < 1 or min(rows.min(), columns.min()) * n <= CLEAR * math.sqrt(noise * max(counts.shape)):
        # a margin that is noise says nothing of its cells
        kept = _clear(counts, noise)
        if kept is None:
            return GroupTest("χ² test of independence", math.nan, math.nan)
        counts = kept
        rows, columns = _margins(counts[None])

    def statistic(tables: Array) -> Array:
        down, across = _margins(tables)
        total = np.maximum(tables.sum(axis=(1, 2)), 1.0)
        expected = total[:, None, None] * down[:, :, None] * across[:, None, :]
        return np.asarray(((tables - expected) ** 2 / (np.maximum(expected, 0.5) + noise)).sum(axis=(1, 2)))

    generator = np.random.default_rng(20_240_502)
    shares = (rows[0][:, None] * columns[0][None, :]).reshape(-1)
    total = max(round(float(counts.sum())), 1) if counts.size else n
    drawn = (
        generator.multinomial(total, shares / shares.sum(), size=TABLES)
        .reshape(TABLES, *counts.shape)
        .astype(np.float64)
    )
    if law.law == "laplace":
        drawn += np.rint(law.scale * generator.laplace(size=drawn.shape))
    else:
        drawn += np.rint(law.scale * generator.standard_normal(drawn.shape))
    found = float(statistic(counts[None])[0])
    return GroupTest(
        "χ² test of independence", found, float((1 + np.count_nonzero(statistic(drawn) >= found)) / (1 + TABLES))
    )


def _margins(tables: Array) -> tuple[Array, Array]:
    """Return shares of rows and of columns of each table, none negative."""
    down, across = np.maximum(tables.sum(axis=2), 0.0), np.maximum(tables.sum(axis=1), 0.0)
    return down / np.maximum(down.sum(axis=1, keepdims=True), 1.0), across / np.maximum(
        across.sum(axis=1, keepdims=True), 1.0
    )


def _clear(counts: Array, noise: float) -> Array | None:
    """Return the table without rows and columns that do not exceed their noise; None if fewer than two of either are left."""
    down = counts.sum(axis=1) > CLEAR * math.sqrt(noise * counts.shape[1])
    across = counts.sum(axis=0) > CLEAR * math.sqrt(noise * counts.shape[0])
    return counts[down][:, across] if down.sum() >= 2 and across.sum() >= 2 else None
