"""The selections of an `ExponentialQuantiles` plan, once the records are there: what its sampler is handed.

Places of the lattice between two neighbouring records have the same ranks, so they form one *run*: of so many places, with
one cost. A selection is a choice among at most 2n + 1 runs, however fine the lattice.

A quantile at which the records are cut in two needs ties to be cut too. There the lattice is refined: a place becomes 2^b ≥ n
slots, ties are spread over them in a fixed order (`place_counts`), and a cut is a slot. All records are then different, and a
record replaced is one slot left and one taken. Records are counted, never sorted or held: the ranks near the wanted one are all
that a selection asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onedraw.models.tables.column_quantiles import ColumnQuantiles
from onedraw.models.tables.place_counts import PlaceCounts, spread_below, spread_place

from .quantile_tree import UNITS, Node
from .quantile_widths import NO_END, PENALTY, ladder, shortfall

BITS = 40
"""Costs are whole numbers on the lattice 2^−BITS."""

LARGEST_COST = 2**48
"""Costs are cut here, e^−256 of what is best: cutting moves two of them apart by no more than before. All that is further behind has
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
    places: PlaceCounts
    root: Node
    widths: tuple[int, ...]
    width_ends: int = 0
    ends: tuple[int, ...] = ()
    bits: int = BITS
    flip: bool = False
    """Whether values and widths are selected by permute and flip; cuts, whose lattice is too fine for it to help, never are."""

    def __repr__(self) -> str:
        return f"QuantileTarget(n={self.places.n}, levels={len(self.widths)}, records=<private>)"

    @cached_property
    def slot_bits(self) -> int:
        return (self.places.n - 1).bit_length()

    def whole(self) -> tuple[int, int]:
        """The first and the last cut: before and after every record."""
        return 0, (self.model.steps + 1) << self.slot_bits

    def place_of(self, cut: int) -> int:
        """The last cut lies beyond the last place."""
        return min(cut >> self.slot_bits, self.model.steps)

    def rank(self, cut: int) -> int:
        """Records below a cut."""
        place = cut >> self.slot_bits
        slot = cut - (place << self.slot_bits)
        below, up_to = self.places.below([place, place + (slot > 0)]).tolist()
        return int(below + spread_below(slot, up_to - below, self.slot_bits))

    def cuts(self, node: Node, low: int, high: int) -> Runs:
        """Cuts in [low, high] of the part of the records between these two."""
        first, last = self.rank(low), self.rank(high)
        wanted, width = node.wanted(last - first, self.places.n), self.widths[node.depth]
        near = _near(last - first, wanted, width)
        edges = np.concatenate([[low - 1], self._slots(first + near.start, first + near.stop), [high]]).astype(np.int64)
        behind = np.abs(np.arange(near.start, near.stop + 1, dtype=np.int64) * UNITS - wanted)
        return _without_empty(_costs(behind, width), np.diff(edges), edges[:-1] + 1)  # cut z: after records below z

    def _slots(self, first: int, last: int) -> Integers:
        """Where the records of these ranks lie on the refined lattice."""
        places, below, up_to = self.places.atoms(first, last)
        ranks = np.arange(first, last, dtype=np.int64)
        atom = np.searchsorted(up_to, ranks, side="right")
        slots = spread_place(ranks - below[atom], (up_to - below)[atom], self.slot_bits)
        return (places[atom] << self.slot_bits) + slots

    def values(self, node: Node, low: int, high: int) -> Runs:
        """Lattice places between the two cuts, for a part that is cut no further: ties count as one place."""
        first, last = self.rank(low), self.rank(high)
        wanted, width = node.wanted(last - first, self.places.n), self.widths[node.depth]
        near = _near(last - first, wanted, width)
        atoms, *ranks = self.places.atoms(first + near.start, first + near.stop)
        below, up_to = (np.clip(rank, first, last) - first for rank in ranks)
        return _by_rank(atoms, below, up_to, self.place_of(low), self.place_of(high), wanted, width)

    def has_end(self, index: int) -> bool:
        """Whether an end of this quantile's interval lies among the records; otherwise both are the declared bounds."""
        return self._ranks(index) != (NO_END, NO_END)

    def rungs(self, index: int, place: int) -> Runs:
        """Widths of the interval of a quantile released at ``place``: one run for each rung of the ladder."""
        behind = shortfall(self.places, place, *self._ranks(index))
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


def _by_rank(atoms: Integers, below: Integers, up_to: Integers, low: int, high: int, wanted: int, width: int) -> Runs:
    """Places low … high, by the distance of ``wanted``/UNITS from [#{x < v}, #{x ≤ v}]; ``atoms`` are those with records."""
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
