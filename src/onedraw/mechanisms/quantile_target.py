"""The selections of an `ExponentialQuantiles` plan, once the records are there: what its sampler is handed.

Places of the lattice between two neighbouring records have the same ranks, so they form one *run*: of so many places, with
one cost. A selection is a choice among at most 2n + 1 runs, however fine the lattice.

A quantile at which the records are cut in two needs ties to be cut too. There the lattice is refined: record i at place k
becomes k·n + π(i), π an order drawn without the records, and a cut is a place of the refined lattice. All records are then
different, and which of the tied ones go left changes nothing but who is counted where.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from onedraw.models.column_quantiles import ColumnQuantiles, Places

from .quantile_tree import UNITS, Node
from .quantile_widths import NO_END, PENALTY, ladder, shortfall

BITS = 40
"""Costs are whole numbers on the lattice 2^−BITS."""

LARGEST_COST = 2**53
"""Costs are cut here, 2^13 behind the best: cutting moves two of them apart by no more than before. All that is further behind has
one cost and is one run on either side, so a selection looks at the records near the wanted rank alone."""

Integers = NDArray[np.int64]


class Runs(NamedTuple):
    """Places ``first[j] … first[j] + lengths[j] − 1`` have the cost ``costs[j]``."""

    costs: Integers
    lengths: Integers
    first: Integers


@dataclass(frozen=True, eq=False)
class QuantileTarget:
    """One data set's selection problem. As private as the records: never printed or written."""

    model: ColumnQuantiles
    places: Places
    root: Node
    widths: tuple[int, ...]
    width_ends: int = 0
    ends: tuple[int, ...] = ()
    bits: int = BITS
    flip: bool = False
    """Whether values and widths are selected by permute and flip; cuts, whose lattice is too fine for it to help, never are."""

    def __repr__(self) -> str:
        return f"QuantileTarget(n={self.places.n}, levels={len(self.widths)}, records=<private>)"

    def refined(self, generator: Generator) -> Integers:
        """The records as different whole numbers, in order."""
        n = self.places.n
        if not self.root.splits:
            return self.places.sorted * n
        return np.sort(self.places.sorted * n + generator.permutation(n))

    def whole(self) -> tuple[int, int]:
        """The first and the last cut: before and after every record."""
        return 0, (self.model.steps + 1) * self.places.n

    def cuts(self, node: Node, records: Integers, low: int, high: int) -> Runs:
        """Cuts in [low, high] of a part of the refined records, which all lie in [low, high)."""
        wanted, width = node.wanted(len(records), self.places.n), self.widths[node.depth]
        near = _near(len(records), wanted, width)
        edges = np.concatenate([[low - 1], records[near], [high]]).astype(np.int64)  # cut z: after records below z
        behind = np.abs(np.arange(near.start, near.stop + 1, dtype=np.int64) * UNITS - wanted)
        return _without_empty(_costs(behind, width), np.diff(edges), edges[:-1] + 1)

    def values(self, node: Node, records: Integers, low: int, high: int) -> Runs:
        """Lattice places between the two cuts, for a part that is cut no further: ties count as one place."""
        n = max(self.places.n, 1)
        first, last = (
            min(cut // n, self.model.steps) for cut in (low, high)
        )  # the last cut lies beyond the last place
        return _by_rank(records, n, first, last, node.wanted(len(records), self.places.n), self.widths[node.depth])

    def has_end(self, index: int) -> bool:
        """Whether an end of this quantile's interval lies among the records; otherwise both are the declared bounds."""
        return self._ranks(index) != (NO_END, NO_END)

    def rungs(self, index: int, place: int) -> Runs:
        """Widths of the interval of a quantile released at ``place``: one run for each rung of the ladder."""
        behind = shortfall(self.places.sorted, place, *self._ranks(index), self.model.steps)
        rungs = np.arange(len(behind), dtype=np.int64)
        return Runs(_costs(behind * UNITS, self.width_ends) + rungs * PENALTY, np.ones_like(rungs), rungs)

    def interval(self, index: int, place: int, rung: int) -> tuple[int, int]:
        """The ends, as places."""
        width, last = int(ladder(self.model.steps)[rung]), self.model.steps
        low, high = (rank != NO_END for rank in self._ranks(index))
        return max(place - width, 0) if low else 0, min(place + width, last) if high else last

    def _ranks(self, index: int) -> tuple[int, int]:
        return self.ends[index], self.ends[len(self.ends) // 2 + index]


def _near(size: int, wanted: int, width: int) -> slice:
    """The records, in order, at whose ranks costs are not cut yet, and one more on either side."""
    reach = LARGEST_COST // width
    first, last = (wanted - reach) // UNITS - 1, -(-(wanted + reach) // UNITS) + 1
    return slice(min(max(first, 0), size), max(min(last, size), 0))


def _by_rank(records: Integers, n: int, low: int, high: int, wanted: int, width: int) -> Runs:
    """Places low … high, by the distance of ``wanted``/UNITS from [#{x < v}, #{x ≤ v}]."""
    atoms = np.unique(records[_near(len(records), wanted, width)] // n)
    below, up_to = (np.searchsorted(records, place * n).astype(np.int64) for place in (atoms, atoms + 1))
    before = below[:1] if len(atoms) else np.zeros(1, dtype=np.int64)
    # gap before the first atom, atom, gap, atom, …, gap after the last
    first = np.concatenate([[low], np.column_stack([atoms, atoms + 1]).reshape(-1)]).astype(np.int64)
    least = np.concatenate([before, np.column_stack([below, up_to]).reshape(-1)])
    most = np.concatenate([before, np.column_stack([up_to, up_to]).reshape(-1)])
    lengths = np.diff(np.append(first, high + 1))
    behind = np.maximum(0, np.maximum(wanted - most * UNITS, least * UNITS - wanted))
    return _without_empty(_costs(behind, width), lengths, first)


def _costs(behind: Integers, width: int) -> Integers:
    return np.minimum(behind, LARGEST_COST // width) * width


def _without_empty(costs: Integers, lengths: Integers, first: Integers) -> Runs:
    kept = lengths > 0
    return Runs(costs[kept], lengths[kept], first[kept])
