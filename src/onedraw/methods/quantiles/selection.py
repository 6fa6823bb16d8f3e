"""What an `ExponentialQuantiles` plan selects, and when. Statements and proofs: proof.md.

**The tree**: the root selects one quantile from all records; what lies below the cut goes left, the rest right, and
each side is asked for its own quantiles in the same way (H. Kaplan, S. Schnapp, U. Stemmer, ICML 2022).

**Runs**: places of the lattice between two neighbouring records have the same ranks, so they form one run of so many
places with one cost, and a selection is a choice among at most 2n + 1 runs, however fine the lattice. Where records are
cut in two, ties are cut too, on a lattice of 2^b ≥ n slots for each place (`models.tables.column_quantiles`). Records
are counted, never sorted or held.

**Widths**: the released place is public when its interval is asked for, so all that is left to learn is a width, and a
factor of √2 is near enough: a ladder from the whole range down has about fifty rungs where the lattice has ten million
places.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, SupportsFloat

import numpy as np
from scipy import special

from onedraw.arrays import Array, Integers
from onedraw.models.tables.column_quantiles import ColumnQuantiles, PlaceCounts, spread_below, spread_place
from onedraw.private import Private

# ── the tree: public levels and shifts, no record ────────────────────────────────────────────────────────────

UNITS = 2**20
"""Levels count in multiples of 1/UNITS, so that rank distances are whole numbers."""


@dataclass(frozen=True)
class Node:
    """Select quantile ``index`` of a part, ``shift``·n/UNITS records beyond the middle of its own, at this depth."""

    index: int
    shift: int
    depth: int
    left: Node | None = None
    right: Node | None = None

    @property
    def splits(self) -> bool:
        return self.left is not None or self.right is not None

    @property
    def nodes(self) -> Iterator[Node]:
        yield self
        for child in (self.left, self.right):
            if child is not None:
                yield from child.nodes

    def wanted(self, size: int, n: int) -> int:
        """The rank, in 1/UNITS of a record, asked of a part of ``size`` among ``n`` records."""
        return size * (UNITS // 2) + n * self.shift


def quantile_tree(levels: tuple[float, ...]) -> Node:
    """As flat as can be; among the flattest, cuts as near to the middle of their part as can be."""
    return _tree(levels, 0, len(levels), Fraction(0), Fraction(1), 0)


def _tree(levels: tuple[float, ...], first: int, last: int, low: Fraction, high: Fraction, depth: int) -> Node:
    most = 2 ** ((last - first).bit_length() - 1) - 1  # quantiles that a side of the flattest tree has room for
    possible = [index for index in range(first, last) if index - first <= most and last - 1 - index <= most]
    fractions = {index: (Fraction(levels[index]) - low) / (high - low) for index in possible}
    index = min(possible, key=lambda one: abs(fractions[one] - Fraction(1, 2)))
    shift = round((Fraction(levels[index]) - (low + high) / 2) * UNITS)
    at = Fraction(levels[index])
    return Node(
        index, shift, depth,
        _tree(levels, first, index, low, at, depth + 1) if index > first else None,
        _tree(levels, index + 1, last, at, high, depth + 1) if index + 1 < last else None,
    )  # fmt: skip


def depth_of(root: Node) -> int:
    """How many levels there are."""
    return max(node.depth for node in root.nodes) + 1


def rank_variances(root: Node, weights: tuple[float, ...], count: int) -> list[float]:
    """Of each quantile, the variance of its rank, in records², where records are spread evenly about it: 2/η² of its
    own, and a quarter of what each cut around it has."""
    found = [0.0] * count

    def visit(node: Node, low: float, high: float) -> None:
        found[node.index] = 2.0 / weights[node.depth] ** 2 + (low + high) / 4.0
        for child, ends in ((node.left, (low, found[node.index])), (node.right, (found[node.index], high))):
            if child is not None:
                visit(child, *ends)

    visit(root, 0.0, 0.0)
    return found


# ── widths of intervals ──────────────────────────────────────────────────────────────────────────────────────

NO_END = -1
"""Where no rank in the records is safe enough: the end is the declared bound, and costs nothing in coverage."""

TAIL = 12.0
"""Standard deviations beyond which a binomial is left out, and counted as a miss: 1e-30."""

PENALTY = math.ceil(math.log(5.0 / 3.0) * 2**40)
"""−ln θ: what a rung costs for being narrower than the one before, on the lattice 2^−40."""

NARROWER = 1.5
"""θ/(1 − θ): what all narrower rungs together weigh."""


def ladder(steps: int) -> Integers:
    """Widths in lattice places, from the whole range down to none, by factors of √2; each once."""
    count = 2 * steps.bit_length() + 1
    rungs = np.ceil(steps * 2.0 ** (-np.arange(count) / 2.0)).astype(np.int64)
    return np.append(np.unique(rungs)[::-1], 0)


def shortfall(places: PlaceCounts, place: int, low: int, high: int) -> Integers:
    """d of every rung; ``low`` and ``high`` are ranks counted from below and from above, or NO_END."""
    rungs = ladder(places.steps)
    under, up_to = np.split(places.below(np.concatenate([place - rungs, place + rungs + 1])), 2)
    above, below = places.known - high - up_to, under - low
    missing = np.maximum(above if high != NO_END else below, below if low != NO_END else above)
    return np.asarray(np.maximum(0, np.maximum(missing, np.append(-missing[1:], 0))))


def end_ranks(model: Any, n: int, weight: SupportsFloat, *, flip: bool) -> list[int]:
    """Return the ranks of all lower ends, then of all upper ones (counted from the top)."""
    room = least_room(model.steps, weight)
    pairs = [_ranks(n, level, float(weight), 1.0 - model.interval, flip, room) for level in model.levels]
    return [low for low, _ in pairs] + [high for _, high in pairs]


def least_room(steps: int, weight: SupportsFloat) -> float:
    """Return how many records have to lie beyond an end, so that the widest rungs are not selected instead of it.

    In a long tail every wider rung has almost the same records. The widest then costs ``weight`` times the records
    beyond the end, and the narrowest that is wide enough the penalties up to it: half of the ladder is allowed for.
    """
    return len(ladder(steps)) / 2.0 * PENALTY / 2.0**40 / float(weight)


def misses(model: Any, n: int, weight: SupportsFloat, ranks: Sequence[int], *, flip: bool) -> float:
    """The largest probability, over the quantiles, with which an interval of these ranks misses."""
    size = len(model.levels)
    pairs = zip(model.levels, ranks[:size], ranks[size:], strict=True)
    return max(_miss(n, level, float(weight), low, high, flip) for level, low, high in pairs)


def expected_margins(
    levels: Sequence[float], n: int, weight: float, alpha: float, room: float, *, flip: bool
) -> tuple[int, Array]:
    """Return how many ends lack room, and how many ranks each quantile's interval ends from it.

    The number of records below the quantile is taken for normal, so that the margin has a closed equation. Only the
    share of the budget rests on this; the ranks of the ends are exact.
    """
    level = np.asarray(levels)
    spread = np.sqrt(n * level * (1.0 - level))
    steep, penalty = weight * spread, math.log(NARROWER * (0.5 if flip else 1.0))

    def log_missed(margin: Array) -> Array:
        outside = special.log_ndtr(-margin / spread)
        most, least = special.log_ndtr(margin / spread - steep), special.log_ndtr(-steep)
        inside = most + np.log1p(-np.exp(np.minimum(least - most, -1e-300)))
        selected = penalty - weight * margin + steep**2 / 2.0 + inside
        return np.asarray(math.log(2.0) + np.logaddexp(outside, selected))

    low, high = np.zeros(len(level)), 10.0 * spread + 60.0 / weight
    for _ in range(60):
        middle = (low + high) / 2.0
        short = log_missed(middle) > math.log(alpha)
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    beyond = n * np.concatenate([level, 1.0 - level]) - np.tile(high, 2)
    return int((beyond < room).sum()), np.minimum(high, n * np.maximum(level, 1.0 - level))


def is_dropped(near: Any, far: Any, room: float) -> Any:
    """Return whether the nearer end goes to the declared bound: it lacks room, and the other end has twice as much."""
    return (near < room) & (far >= 2.0 * near)


NOISE_PARTS = 16
"""Equally likely parts of the noise in a number of known cells, each taken at its middle."""


def ranks_of_known(
    model: Any, known: float, n: int, scale: float, ends: Sequence[int], weight: SupportsFloat, *, flip: bool
) -> list[int]:
    """Return the ranks of all lower ends, then of all upper ones, for a noisy number of known cells with Laplace noise of this scale.

    The ranks follow the noisy number, so an interval misses by the average over its noise, if as many cells are known as the
    number says. Margins grow with that; it is taken two deviations larger. ``ends`` are the plan's, for n records: what they leave out
    stays out.
    """
    parts = (np.arange(NOISE_PARTS) + 0.5) / NOISE_PARTS
    noise = -scale * np.sign(parts - 0.5) * np.log1p(-2.0 * np.abs(parts - 0.5))
    size, count = len(model.levels), max(0, min(n, round(known)))
    most = max(1, min(n, math.ceil(known + 2.0 * math.sqrt(2.0) * scale)))
    pairs = []
    for place, level in enumerate(model.levels):
        asked = ends[place] != NO_END, ends[size + place] != NO_END
        margin = _margin_of_known(most, level, float(weight), 1.0 - model.interval, noise, asked, flip=flip)
        pairs.append(_ends_about(count, level, margin, asked))
    return [low for low, _ in pairs] + [high for _, high in pairs]


def _margin_of_known(
    known: int, level: float, weight: float, alpha: float, noise: Array, asked: tuple[bool, bool], *, flip: bool
) -> int:
    """Return the smallest margin with which an interval misses by at most ``alpha`` on average over the noise."""

    def missed(margin: int) -> float:
        ends = (_ends_about(known + float(one), level, margin, asked) for one in noise)
        return float(np.mean([_miss(known, level, weight, low, high, flip) for low, high in ends]))

    return bisect_left(range(known + 1), True, key=lambda margin: missed(margin) <= alpha)


def _ends_about(known: float, level: float, margin: int, asked: tuple[bool, bool]) -> tuple[int, int]:
    """Return the ranks of both ends, counted from below and from above, for so many known cells; NO_END where none is asked for."""
    low, high = math.floor(known * level) - margin, math.floor(known * (1.0 - level)) - margin
    return max(low, NO_END) if asked[0] else NO_END, max(high, NO_END) if asked[1] else NO_END


def _miss(n: int, level: float, weight: float, low: int, high: int, flip: bool) -> float:
    if low == high == NO_END:
        return 0.0
    spread = TAIL * math.sqrt(n * level * (1.0 - level)) + 1.0
    counts = np.arange(max(0, math.floor(n * level - spread)), min(n, math.ceil(n * level + spread)) + 1)
    chosen = special.gammaln(n + 1.0) - special.gammaln(counts + 1.0) - special.gammaln(n - counts + 1.0)
    masses = np.exp(chosen + special.xlogy(counts, level) + special.xlog1py(n - counts, -level))
    above, below = n - high - counts if high != NO_END else np.inf, counts - low if low != NO_END else np.inf
    room = np.minimum(above, below)  # t of the theorem
    missed = np.where(room <= 0, 1.0, NARROWER * (0.5 if flip else 1.0) * np.exp(-weight * np.maximum(room, 0.0)))
    return float(masses @ missed) + max(0.0, 1.0 - float(masses.sum()))


def _ranks(n: int, level: float, weight: float, alpha: float, flip: bool, room: float) -> tuple[int, int]:
    """Return nq ∓ c for the smallest whole c that keeps the level, both or only the far one."""
    sides = math.floor(n * level), math.floor(n * (1.0 - level))

    def ends(has_low: bool, has_high: bool) -> tuple[int, int]:
        def at(margin: int) -> tuple[int, int]:
            low, high = (max(side - margin, NO_END) for side in sides)
            return low if has_low else NO_END, high if has_high else NO_END

        least = bisect_left(range(n + 1), True, key=lambda margin: _miss(n, level, weight, *at(margin), flip) <= alpha)
        return at(least)

    low, high = ends(True, True)
    near, far = sorted((low, high))
    if not is_dropped(near, far, room):
        return low, high
    return ends(low > high, high > low)


# ── what the sampler is handed ───────────────────────────────────────────────────────────────────────────────

BITS = 40
"""Costs are whole numbers on the lattice 2^−BITS."""

LARGEST_COST = 2**48
"""Costs are cut here, e^−256 of what is best: cutting moves two of them apart by no more than before. All that is
further behind is one run on either side, so a selection looks at the records near the wanted rank alone."""


class Runs(NamedTuple):
    """Places ``first[j] … first[j] + lengths[j] − 1`` have the cost ``costs[j]``."""

    costs: Integers
    lengths: Integers
    first: Integers


@dataclass(frozen=True, eq=False, repr=False)
class QuantileTarget(Private):
    """One data set's selection problem. As private as the records: never printed or written."""

    model: ColumnQuantiles
    places: PlaceCounts
    root: Node
    widths: tuple[int, ...]
    width_ends: int = 0
    ends: tuple[int, ...] = ()
    bits: int = BITS
    flip: bool = False
    """Whether values and widths are selected by permute and flip; cuts, on a lattice too fine for it, never are."""
    width_known: int = 0
    """What a known cell is worth in their noisy number, in lattice steps a record; 0 where missing cells are not skipped."""
    count: int = 0
    """By which public ranks are found: n, or the noisy number of known cells that was published."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", self.count or self.places.n)

    def about(self, known: float) -> QuantileTarget:
        """The same with ranks for the noisy number of known cells that was published."""
        n, ends = self.places.n, self.ends
        if ends:
            scale, weight = 2.0**self.bits / (self.width_known * UNITS), self.width_ends * UNITS / 2.0**self.bits
            ends = tuple(ranks_of_known(self.model, known, n, scale, ends, weight, flip=self.flip))
        return replace(self, count=round(min(max(known, 1.0), float(n))), ends=ends)

    @cached_property
    def slot_bits(self) -> int:
        return (self.places.n - 1).bit_length()

    @property
    def wanted_of(self) -> int:
        """The public number of records of which levels are shares."""
        return self.count

    @property
    def first_place(self) -> int:
        return 0

    @property
    def last_place(self) -> int:
        return int(self.model.steps)

    def whole(self) -> tuple[int, int]:
        """The first and the last cut: before and after every record."""
        return self.first_place << self.slot_bits, (self.last_place + 1) << self.slot_bits

    def place_of(self, cut: int) -> int:
        """The last cut lies beyond the last place."""
        return min(cut >> self.slot_bits, self.last_place)

    def rank(self, cut: int) -> int:
        """Records below a cut."""
        place = cut >> self.slot_bits
        slot = cut - (place << self.slot_bits)
        below, up_to = self.places.below([place, place + (slot > 0)]).tolist()
        return int(below + spread_below(slot, up_to - below, self.slot_bits))

    def cuts(self, node: Node, low: int, high: int) -> Runs:
        """Cuts in [low, high] of the part of the records between these two."""
        first, last = self.rank(low), self.rank(high)
        wanted, width = node.wanted(last - first, self.wanted_of), self.widths[node.depth]
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
        wanted, width = node.wanted(last - first, self.wanted_of), self.widths[node.depth]
        near = _near(last - first, wanted, width)
        atoms, *ranks = self.places.atoms(first + near.start, first + near.stop)
        below, up_to = (np.clip(rank, first, last) - first for rank in ranks)
        before = below[:1] if len(atoms) else np.zeros(1, dtype=np.int64)
        # gap before the first atom, atom, gap, atom, …, gap after the last
        inner = np.column_stack([atoms, atoms + 1]).reshape(-1)
        starts = np.concatenate([[self.place_of(low)], inner]).astype(np.int64)
        least = np.concatenate([before, np.column_stack([below, up_to]).reshape(-1)])
        most = np.concatenate([before, np.column_stack([up_to, up_to]).reshape(-1)])
        # the distance of ``wanted``/UNITS from [#{x < v}, #{x ≤ v}]
        behind = np.maximum(0, np.maximum(wanted - most * UNITS, least * UNITS - wanted))
        lengths = np.diff(np.append(starts, self.place_of(high) + 1))
        return _without_empty(_costs(behind, width), lengths, starts)

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


def _costs(behind: Integers, width: int) -> Integers:
    return np.minimum(behind, LARGEST_COST // width) * width


def _without_empty(costs: Integers, lengths: Integers, first: Integers) -> Runs:
    kept = lengths > 0
    return Runs(costs[kept], lengths[kept], first[kept])
