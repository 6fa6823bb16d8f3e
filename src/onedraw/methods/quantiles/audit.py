"""Quantiles by rank, written down again: exp(−η·distance of the wanted rank), place by place, level by level.

The worst pair of one selection has its mass on places that all lose a rank while a few gain one: ⌊r⌋ records at the low
end, two at the last place but one, the others at the top, and one moved from end to end. There the whole range 2η is
attained, and with it the pure ε. Within private groups the worst record leaves one for another: each rank distance moves by a half in
both, and two numbers of records by one. Small plans are enumerated whole: every cut, every pick of every level, every width.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import special

from onedraw import audit
from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, LogDensity, Pair
from onedraw.audit.cases.laws import normal_cells
from onedraw.audit.cases.selections import SelectionCase, selection_law
from onedraw.methods.base import calibrate
from onedraw.methods.quantiles import ExponentialQuantiles, GroupQuantiles
from onedraw.methods.quantiles.selection import UNITS, Node, quantile_tree
from onedraw.models import ColumnQuantiles, Grouped
from onedraw.plans import Plan
from onedraw.privacy import ZCDP, BoundedRange, Promise, PureDP


class RankCase(SelectionCase):
    """Selections by rank among the places of a column's lattice."""

    def places(self, records: Any) -> Any:
        """Where values lie on the lattice."""
        model = self.plan.model
        return np.rint((np.asarray(records, dtype=np.float64) - model.lower) / model.step).astype(np.int64)

    def eta(self, width: str, factor: float, units: float = UNITS) -> float:
        """Return what one unit of the score costs; ranks count in multiples of 1/UNITS."""
        return super().eta(width, factor, units)


class FirstSelection(RankCase):
    """The first selection of a plan, from all records; its promise is its own part of the plan's."""

    @property
    def promise(self) -> Promise:
        epsilon = self.plan.parameters["epsilon_1"]
        return PureDP(epsilon) if self.flip else BoundedRange(epsilon)

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        places = self.places([*pair.first, *pair.second])
        # the distance may change there
        edges = np.unique(np.concatenate([[0], places, places + 1, [self.plan.model.steps + 1]]))
        weights = [self.log_weights(records, edges[:-1], factor) for records in pair]
        flip = self.flip and not quantile_tree(self.plan.model.levels).splits
        return audit.finite_profile(*(selection_law(one, np.diff(edges), flip=flip) for one in weights))

    def log_weights(self, records: Any, at: Any, factor: float) -> Array:
        root = quantile_tree(self.plan.model.levels)
        places, eta = self.places(records), self.eta("width_1", factor)
        below, up_to = ranks(places, at)
        wanted = root.wanted(len(places), len(places)) / UNITS
        if root.splits:
            slots = slots_for(len(places))
            return np.array([_cut_weight(*ranks, wanted, eta, slots) for ranks in zip(below, up_to, strict=True)])
        return -eta * rank_distance(below, up_to, wanted)

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        model, index = self.plan.model, quantile_tree(self.plan.model.levels).index

        def density(draws: Array) -> Array:
            places = self.places(np.asarray(draws).reshape(len(draws), -1)[:, index])
            return self.log_weights(records, np.clip(places, 0, model.steps), factor)

        return density


def ranks(places: Any, at: Any) -> tuple[Any, Any]:
    """How many records lie below each place, and how many up to it."""
    ordered = np.sort(places)
    return np.searchsorted(ordered, at), np.searchsorted(ordered, at, side="right")


def rank_distance(below: Any, up_to: Any, wanted: float) -> Array:
    return np.asarray(np.maximum(0.0, np.maximum(wanted - up_to, below - wanted)), dtype=np.float64)


def _cut_weight(first: int, last: int, wanted: float, eta: float, slots: int) -> float:
    """log of the mean of exp(−η|c − r|) over the cuts that show as one place, c their ranks first … last."""
    cuts = np.diff([-1, *tied(last - first, slots), slots - 1])  # as many have each rank
    shares = np.log(np.maximum(cuts, 1e-300) / slots)
    return float(special.logsumexp(shares - eta * np.abs(np.arange(first, last + 1) - wanted)))


def slots_for(n: int) -> int:
    """Of every place: the smallest power of two that holds n ties."""
    return 1 << (n - 1).bit_length()


def tied(count: int, slots: int) -> list[int]:
    """Where equal records are: the digits of 0, 1, … in reverse."""
    left, found = np.arange(count), np.zeros(count, dtype=np.int64)
    for _ in range(slots.bit_length() - 1):
        found, left = 2 * found + left % 2, left // 2
    return [int(slot) for slot in np.sort(found)]


class WholeRelease(RankCase):
    """Everything a small plan publishes, enumerated: the quantiles of all levels, and the widths of their intervals."""

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        first, second = (self.law(records, factor) for records in pair)
        outcomes = sorted(first.keys() | second.keys())
        laws = [np.array([law.get(outcome, 0.0) for outcome in outcomes]) for law in (first, second)]
        return audit.finite_profile(*laws)

    def law(self, records: Any, factor: float = 1.0) -> dict[tuple[int, ...], float]:
        """Probability of every outcome: places of the quantiles, then rungs of the widths."""
        model, n = self.plan.model, len(records)
        places, slots = self.places(records), slots_for(n)
        refined = [
            int(place) * slots + slot
            for place, ties in zip(*np.unique(places, return_counts=True), strict=True)
            for slot in tied(int(ties), slots)
        ]
        found: dict[tuple[int, ...], float] = {}
        tree = quantile_tree(model.levels)
        for picks, chance in self.tree_law(tree, refined, 0, (model.steps + 1) * slots, n, factor):
            key = tuple(picks[index] for index in sorted(picks))
            widths = self.width_laws(places.tolist(), key, factor)
            for chosen in itertools.product(*(range(len(law)) for law in widths)):
                also = math.prod(law[rung] for law, rung in zip(widths, chosen, strict=True))
                found[key + chosen] = found.get(key + chosen, 0.0) + chance * also
        return found

    def tree_law(
        self, node: Node | None, part: list[int], low: int, high: int, n: int, factor: float
    ) -> Iterator[tuple[dict[int, int], float]]:
        if node is None:
            yield {}, 1.0
            return
        eta, wanted = self.eta(f"width_{node.depth + 1}", factor), node.wanted(len(part), n) / UNITS
        slots, steps = slots_for(n), self.plan.model.steps
        if not node.splits:
            values = range(min(low // slots, steps), min(high // slots, steps) + 1)
            law = rank_law([key // slots for key in part], values, wanted, eta, flip=self.flip)
            for value, chance in zip(values, law, strict=True):
                yield {node.index: value}, chance
            return
        cuts = range(low, high + 1)
        weights = np.array([-eta * abs(sum(key < cut for key in part) - wanted) for cut in cuts])
        for cut, chance in zip(cuts, special.softmax(weights), strict=True):
            left, right = [key for key in part if key < cut], [key for key in part if key >= cut]
            for low_picks, p in self.tree_law(node.left, left, low, cut, n, factor):
                for high_picks, q in self.tree_law(node.right, right, cut, high, n, factor):
                    yield {node.index: min(cut // slots, steps), **low_picks, **high_picks}, float(chance) * p * q

    def width_laws(self, places: list[int], picks: tuple[int, ...], factor: float) -> list[Array]:
        """Of every quantile with an end among the records, given where it was released."""
        numbers = self.plan.parameters
        if "width_ends" not in numbers:
            return []
        eta = self.eta("width_ends", factor)
        ranks = [(numbers[f"lower_rank_{k}"], numbers[f"upper_rank_{k}"]) for k in range(1, len(picks) + 1)]
        return [
            width_law(places, place, *pair, eta, self.plan.model.steps, flip=self.flip)
            for place, pair in zip(picks, ranks, strict=True)
            if max(pair) >= 0
        ]


def width_law(places: list[int], place: int, low: float, high: float, eta: float, steps: int, *, flip: bool) -> Array:
    """Rungs of the whole range, each 1/√2 of the one before, by the records that ends are short of or beyond."""
    widths = sorted({math.ceil(steps / math.sqrt(2.0) ** power) for power in range(2 * steps.bit_length() + 1)} | {0})
    beyond = []
    for width in widths[::-1]:
        sides = [sum(x <= place + width for x in places) - (len(places) - high)] if high >= 0 else []
        sides += [low - sum(x < place - width for x in places)] if low >= 0 else []
        beyond.append(min(sides))
    distance = [max(0.0, -here, after) for here, after in zip(beyond, [*beyond[1:], 0.0], strict=True)]
    costs = eta * np.array(distance) + math.log(5.0 / 3.0) * np.arange(len(distance))
    return selection_law(-costs, np.ones(len(costs)), flip=flip)


def rank_law(places: list[int], values: range, wanted: float, eta: float, *, flip: bool = False) -> Array:
    distance = rank_distance(*ranks(places, values), wanted)
    return selection_law(-eta * distance, np.ones(len(distance)), flip=flip)


def selection_case(plan: Plan) -> FirstSelection:
    """The first selection of any plan, on its worst pair and on the mirror image."""
    model, n = plan.model, plan.n
    wanted = quantile_tree(model.levels).wanted(n, n) / UNITS
    worst, mirrored = _worst(model, n, wanted), _worst(model, n, n - wanted, mirrored=True)
    pairs = worst, mirrored, _worst(model, n, wanted, at=model.steps // 2)
    reason = "the other records crowd at the ends, so that most places lose a rank while the last ones gain it"
    sure = model.steps >= 64 and not quantile_tree(model.levels).splits
    return FirstSelection(plan, pairs, reason, sure)


def _worst(model: ColumnQuantiles, n: int, wanted: float, *, at: int | None = None, mirrored: bool = False) -> Pair:
    """Two records at the last place but one; or ``at`` the middle, where draws are told apart most often."""
    low, high, last = 0, model.steps, max(model.steps - 1, 0) if at is None else at
    below = min(max(math.floor(wanted), 1), n)
    others = ([low] * (below - 1) + [last] * 2 + [high] * n)[: n - 1]
    places = [[*others, low], [*others, high]]
    if mirrored:
        places = [[model.steps - place for place in row] for row in places]
    values = [[float(model.value(place)) for place in row] for row in places]
    name = "one record from end to end" + (", mirrored" if mirrored else "" if at is None else ", in two halves")
    return Pair(name, *values)


def quantile_cases(budget: Promise) -> list[Case]:
    """One selection on a fine lattice; small plans of two levels, and with the width of an interval, whole."""
    single = calibrate(ExponentialQuantiles(), ColumnQuantiles((0.5,), 0.0, 1.0, interval=None), budget, n=20)
    levels = ColumnQuantiles((0.25, 0.5, 0.75), 0.0, 8.0, step=1.0, interval=None)
    small = calibrate(ExponentialQuantiles(), levels, budget, n=4)
    pairs = tuple(
        Pair(f"{crowd} and one from {start} to {end}", [*crowd, start], [*crowd, end])
        for crowd, start, end in (([3, 3, 8], 0, 8), ([0, 5, 5], 0, 6), ([0, 0, 8], 0, 8))
    )
    reason = "no pair is worst for all levels at once, and promises of several selections add up their worst"
    with_width = ColumnQuantiles((0.5,), 0.0, 8.0, step=1.0, interval=0.5)
    interval = calibrate(ExponentialQuantiles(), with_width, budget, n=60)
    wide = tuple(_worst(with_width, 60, 30.0, at=at) for at in (None, 4, 5))
    return [
        selection_case(single),
        WholeRelease(small, pairs, reason, False, "two levels"),
        WholeRelease(interval, wide, reason, False, "a quantile and its width"),
    ]


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {"median": quantile_cases}


# ── within private groups ──────────────────────────────────────────────────────────────────────────────────────────────

ATTAINED = "one record leaves a group for another: two numbers of records move by one"


PART = "it is one part of a release, and draws show all parts together"
"""Why the law of a part is compared with its own promise and its draws are not."""


class GroupSelection(RankCase):
    """The first level of selections in two groups, one for each; its promise is its own part of the plan's.

    A record leaves one group for the other: each rank distance moves by a half in both. ``sizes`` is the noisy number of records
    that was published before, the same for both data sets.
    """

    without_draws = PART
    sizes = (4, 4)

    @property
    def flip(self) -> bool:
        return bool(self.plan.parameters["flip"])

    @property
    def promise(self) -> Promise:
        return PureDP(self.plan.parameters["epsilon_1"])

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        return audit.finite_profile(*(self.law(records, factor) for records in pair))

    def law(self, records: Grouped, factor: float = 1.0) -> Array:
        """The probability of every pair of places."""
        model, eta = self.plan.model, self.eta("width_1", factor)
        places, codes = self.places(records.values), np.asarray(records.codes[0])
        (level,) = model.levels
        laws = []
        for group, size in enumerate(self.sizes):
            own = places[codes == group].tolist()
            wanted = len(own) / 2.0 + size * (level - 0.5)
            laws.append(rank_law(own, range(model.steps + 1), wanted, eta, flip=self.flip))
        return np.outer(*laws).reshape(-1)


class GroupSizes(Case):
    """Noise on numbers of records: a record that changes its group moves two of them; the fault divides the noise."""

    without_draws = PART
    noises = ("sizes_scale",)

    @property
    def promise(self) -> Promise:
        numbers = self.plan.parameters
        return PureDP(numbers["sizes_epsilon"]) if "sizes_epsilon" in numbers else ZCDP(numbers["sizes_rho"])

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        counts = [np.bincount(np.asarray(records.codes[0]).astype(int), minlength=2) for records in pair]
        moved, scale = np.abs(counts[0] - counts[1]), self.numbers(factor)["sizes_scale"]
        if "sizes_rho" in self.plan.parameters:
            return audit.finite_profile(*normal_cells(float(np.hypot.reduce(moved)) / scale))
        first, second = np.ones(1), np.ones(1)
        for distance in moved[moved > 0]:
            q = math.exp(-int(distance) / scale)  # of whole numbers, one step apart: at most the lower count, or more
            masses = np.array([1.0, q]) / (1.0 + q)
            first, second = np.outer(first, masses).reshape(-1), np.outer(second, masses[::-1]).reshape(-1)
        return audit.finite_profile(first, second)


def group_cases(budget: Promise) -> list[Case]:
    """Selections in two groups on a small lattice, and the noise on the groups' sizes."""
    model = ColumnQuantiles((0.5,), 0.0, 8.0, step=1.0, interval=None, by=("group",), groups=(("a", "b"),))
    plan = calibrate(GroupQuantiles(), model, budget, n=8)
    pairs = tuple(
        Pair(f"a record at {start} of one group is at {end} of the other",
             Grouped([*first, start, *second], ([0.0] * (len(first) + 1) + [1.0] * len(second),)),
             Grouped([*first, *second, end], ([0.0] * len(first) + [1.0] * (len(second) + 1),)))
        for first, start, second, end in (([8.0] * 3, 8.0, [0.0] * 4, 0.0), ([0.0, 8.0, 8.0], 0.0, [0.0, 0.0, 8.0, 8.0], 8.0), ([4.0] * 3, 8.0, [3.0, 3.0, 5.0, 5.0], 0.0))
    )  # fmt: skip
    reason = "all rank distances of both groups move by a half at once only if the records crowd at the ends"
    return [
        GroupSelection(plan, pairs, reason, False, "two groups"),
        GroupSizes(plan, pairs[:1], ATTAINED, True, "sizes of groups"),
    ]


def group_case(plan: Plan) -> Case:
    """The noise on the sizes of any plan: the part of it whose worst pair is known."""
    first = Grouped([plan.model.lower] * plan.n, tuple([0.0] * plan.n for _ in plan.model.groups))
    second = Grouped(
        [plan.model.lower] * plan.n,
        tuple([0.0] * (plan.n - 1) + [float(k == 0)] for k, _ in enumerate(plan.model.groups)),
    )
    return GroupSizes(plan, (Pair("one record changes its group", first, second),), ATTAINED, True, "sizes of groups")


def group_audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {"median": group_cases}
