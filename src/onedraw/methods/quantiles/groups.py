"""Quantiles within groups whose members are private, for the price of the quantiles of one group.

A record lies in one group, and groups are parts of one lattice: the places of a group follow those of the group before it. What
`selection` selects from a part between two public cuts it selects here from every group. A record that leaves one group for
another takes half a rank from each, so a level of selections has the range that it has for one column. One whose cell goes missing takes half a
rank from one group.

| stage | what is published | a replaced record moves it by |
| --- | --- | --- |
| sizes | the number of records of every group, and of missing cells that are skipped, with noise | 2 in L1, √2 in L2 |
| quantiles | the quantiles of every group, level by level of the tree | range 2η a level |
| signs | records below, at and above the middle of the groups' medians, with noise | 2 in L1, √2 in L2 |
| ends | the width of every interval | range 2η for each of the quantiles |

Statement and proof: groups.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import special

from onedraw.arrays import Array, Integers
from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.methods.base import Mechanism, NoisyCount
from onedraw.methods.calibration import RANGE_MARGIN, check_selects, largest_range, whole_number
from onedraw.methods.comparisons import Scores
from onedraw.methods.expectation import Expectation
from onedraw.methods.intervals import Interval, Published
from onedraw.methods.noise_law import NoiseLaw
from onedraw.models import ColumnQuantiles
from onedraw.models.tables.column_quantiles import PlaceCounts
from onedraw.models.tables.table import proportional, whole
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import ZCDP, Assumption, Promise, Provenance, PureDP, RenyiDP, compose
from onedraw.privacy.curves import BoundedRangeCurve, LinearCurve, add_curves
from onedraw.privacy.numbers import fraction_up
from onedraw.private import Private

from . import selection
from .intervals import why_no_ends
from .mechanism import FEWEST_KNOWN, LARGEST_WIDTH, LEAST_KNOWN, _flips, _largest_total, _weight, share_of_intervals
from .selection import BITS, NO_END, PENALTY, UNITS, QuantileTarget, depth_of, ladder, quantile_tree

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

    from .run import GroupRanks

PURE_SHARE, RENYI_SHARE = 0.04, 0.08
"""Of a pure ε, or of ρ, for the groups' sizes, and the same for the records below and above the middle of their medians. The rank of a
quantile is then off by at most 1/0.92 = 1.09, or 1/√0.84 = 1.09, times what it would be off in the group alone."""

SIZE_MISS = 0.05
"""The part of an interval's α that is left to groups larger or smaller than their noisy sizes allow for."""

THEOREM = (
    "the exponential mechanism on ranks (McSherry and Talwar, FOCS 2007; Smith, STOC 2011), for a pure ε by permute and "
    "flip (McKenna and Sheldon, NeurIPS 2020), in disjoint groups: a record that changes its group moves every rank distance of "
    "two groups by at most 1/2; levels of halving (Kaplan, Schnapp and Stemmer, ICML 2022), interval widths, and noise on "
    "numbers of records add up"
)

PRIVATE_GROUPS = (
    "who belongs to which group is private: a replaced record may leave one group and enter another, and selections and noise "
    "cover both; the numbers of records in the groups are released, not assumed"
)


SKIPPED = "a record whose cell or group is missing is in no group; how many these are is released with the groups' numbers of records"


@dataclass(frozen=True)
class GroupNumbers:
    """What runs: lattice steps for a unit of rank, of every level of the tree and of interval widths, and the scales of the noise
    on sizes and signs. ``width_ends`` and ``signs_scale`` are 0 where there are no intervals, or no medians."""

    widths: tuple[int, ...]
    width_ends: int
    sizes_scale: float
    signs_scale: float
    flip: bool

    def to_dict(self) -> dict[str, float]:
        named = {f"width_{depth}": float(width) for depth, width in enumerate(self.widths, 1)}
        named |= {"width_ends": float(self.width_ends), "sizes_scale": self.sizes_scale}
        return named | {"signs_scale": self.signs_scale, "flip": float(self.flip)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, float], model: ColumnQuantiles) -> GroupNumbers:
        """Whole numbers and scales within their ranges, or refused."""
        levels = range(1, depth_of(quantile_tree(model.levels)) + 1)
        widths = tuple(whole_number(stored, f"width_{depth}", 1, LARGEST_WIDTH) for depth in levels)
        flip, sizes = stored.get("flip", math.nan), stored.get("sizes_scale", math.nan)
        signs = stored.get("signs_scale", math.nan)
        signed = 0.0 < signs < 2.0**40 if has_signs(model) else signs == 0.0
        if flip not in (0.0, 1.0) or not 0.0 < sizes < 2.0**40 or not signed:
            raise PromiseRefused(
                "Quantiles by group need the scales of their noise, and flip as 0 or 1; those stated are not."
            )
        return cls(widths, whole_number(stored, "width_ends", 0, LARGEST_WIDTH), sizes, signs, flip == 1.0)

    @classmethod
    def of(cls, plan: Plan) -> GroupNumbers:
        return cls.from_dict(plan.parameters, plan.model)


def has_signs(model: ColumnQuantiles) -> bool:
    """Return whether records below and above the middle of the medians are counted, by which medians are compared."""
    return 0.5 in model.levels and model.cells > 1


@dataclass(frozen=True)
class GroupQuantiles(Mechanism):
    """Exact selection of lattice places by rank in each of several groups whose members are private."""

    title: ClassVar[str] = "exponential mechanism on ranks within groups"
    noun: ClassVar[str] = "estimate"
    whole_sums: ClassVar[bool] = True
    requires: ClassVar[str] = "ranks"
    skips: ClassVar[bool] = True

    def heading(self, plan: Plan) -> str:
        numbers, model = GroupNumbers.of(plan), plan.model
        flip = " by permute and flip" if numbers.flip else ""
        ends = ", the widths of intervals" if numbers.width_ends else ""
        many = "s" if len(model.levels) > 1 else ""
        what = f"{len(model.levels)} quantile{many} in each of {model.cells} groups"
        return f"{self.title}{flip}, {what}{ends}, and their numbers of records"

    def calibrate(self, request: Request) -> Plan:
        model = _checked(request)
        flip = _flips(request, model)
        share = 0.0
        if model.interval is not None:
            share = share_of_intervals(
                request.budget,
                model,
                model.interval,
                max(request.n // model.cells, 1),
                request.records_per_person,
                flip=flip,
            )
        return self.plan(request, _numbers(request, model, share, flip=flip).to_dict())

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        model = _checked(request)
        numbers = GroupNumbers.from_dict(parameters, model)
        if numbers.width_ends and model.interval is None:
            raise PromiseRefused("The plan states widths of intervals, and its model asks for none.")
        k, exact = request.records_per_person, Provenance.ENFORCED
        spent = {
            f"epsilon_{depth}": fraction_up(k * 2 * _weight(width)) for depth, width in enumerate(numbers.widths, 1)
        }
        if numbers.width_ends:
            spent["epsilon_end"] = fraction_up(k * 2 * _weight(numbers.width_ends))
        pure = numbers.flip or request.budget.is_pure
        for name, scale in (("sizes", numbers.sizes_scale), ("signs", numbers.signs_scale)):
            if scale and pure:
                spent[f"{name}_epsilon"] = fraction_up(Fraction(2 * k) / Fraction(scale))
            elif scale:
                spent[f"{name}_rho"] = fraction_up(Fraction(k * k) * (1 + Fraction(1, 2**40)) / Fraction(scale) ** 2)
        assumptions = (
            *fixed_in_advance(request, "levels, bounds, step and groups"),
            Assumption("every record is clamped to the range and rounded to the lattice by itself", exact),
            Assumption("selections are exact, on whole numbers; ties are spread in a fixed order", exact),
            Assumption(
                "noise on numbers of records is drawn by OpenDP, exactly, on the operating system's entropy", exact
            ),
            Assumption(PRIVATE_GROUPS, Provenance.PROVED),
            *((Assumption(SKIPPED, exact),) if model.skips else ()),
        )
        promise = _promise(numbers, spent, model, request.budget)
        return Plan.of(self, request, numbers.to_dict() | spent, promise, THEOREM, assumptions)

    def target(self, plan: Plan, summary: Any) -> GroupTarget:
        return GroupTarget(plan, summary)

    def own_sampler(self) -> type[GroupRanks]:
        from .run import GroupRanks  # which only a draw needs

        return GroupRanks

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        cells, numbers = plan.model.cells, GroupNumbers.of(plan)
        size = cells * len(plan.model.levels)
        sizes = {"sizes": cells + plan.model.skips, "quantiles": size}
        sizes |= {"signs": 3 * cells} if numbers.signs_scale else {}
        return sizes | ({"lower": size, "upper": size} if numbers.width_ends else {})

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        sizes, missing = noisy_sizes(plan, stages)
        if plan.model.skips and plan.model.nobody:  # known and missing cells add up to no public number
            shown = np.clip(sizes, 0.0, float(plan.n))
        else:
            shown = whole(proportional(np.append(sizes, missing), float(plan.n)), plan.n)[: len(sizes)]
        return np.concatenate([stages["quantiles"], shown])

    def interval(
        self, plan: Plan, published: Published, level: float, *, effect: float | None = None, noise: float | None = None
    ) -> Interval:
        """Return the released ends of the quantiles, and what the noise allows of the numbers of records."""
        centre, stages, model = published.draws[0], published.stages or {}, plan.model
        size, numbers = model.cells * len(model.levels), GroupNumbers.of(plan)
        if numbers.width_ends and level > model.interval:
            raise PromiseRefused(
                f"This release has intervals of {100 * model.interval:g} %, planned before the records were read. For "
                f"{100 * level:g} % ask for interval={level:g} next time."
            )
        law = count_law(plan, "sizes")
        reach, unknown = law.reach(level), np.full(size, np.nan)
        ends = [
            np.array(stages[side], dtype=np.float64) if numbers.width_ends else unknown for side in ("lower", "upper")
        ]
        noisy = np.clip(noisy_sizes(plan, stages)[0], 0.0, float(plan.n))
        low = np.minimum(np.clip(noisy - reach, 0.0, plan.n), centre[size:])
        high = np.maximum(np.clip(noisy + reach, 0.0, plan.n), centre[size:])
        errors = np.concatenate([unknown, np.full(model.cells, law.deviation([1.0]))])
        sampling = np.concatenate([unknown, np.zeros(model.cells)])
        return Interval(centre, np.concatenate([ends[0], low]), np.concatenate([ends[1], high]), sampling, errors)

    def missing_of(self, plan: Plan, stages: Mapping[str, Any]) -> NoisyCount | None:
        if not (plan.model.skips and stages):
            return None
        law = count_law(plan, "sizes")
        return NoisyCount(float(noisy_sizes(plan, stages)[1][0]), law.reach, float(plan.n))

    def without_estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Array | None:
        if not (plan.model.skips and stages):
            return None
        few = noisy_sizes(plan, stages)[0] < max(LEAST_KNOWN * count_law(plan, "sizes").deviation([1.0]), FEWEST_KNOWN)
        return np.concatenate([np.repeat(few, len(plan.model.levels)), np.zeros(len(few), dtype=bool)])

    def scores(self, plan: Plan, published: Published) -> Scores | None:
        """Return the share of each group's records below the middle of all medians, and the medians with their ends."""
        stages, model, numbers = published.stages or {}, plan.model, GroupNumbers.of(plan)
        if not numbers.signs_scale:
            return None
        at = list(model.levels).index(0.5)
        ends = [np.array(stages[name], dtype=np.float64).reshape(model.cells, -1)[:, at]
                if name in stages else np.full(model.cells, np.nan) for name in ("quantiles", "lower", "upper")]  # fmt: skip
        cells = np.array(stages["signs"], dtype=np.float64).reshape(model.cells, 3)
        law = count_law(plan, "signs")
        return Scores.of_cells("median", model.group_names, cells, law, split=False, shown=(ends[0], ends[1], ends[2]))

    def expected_error(self, plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
        # of the ranks, as shares of a group's records: selection and sampling
        selecting, levels = np.array(self.rank_errors(plan)), np.array(plan.model.levels)
        squares = levels * (1.0 - levels) * plan.model.cells / plan.n
        return Expectation(float(np.sqrt(np.mean(selecting**2 + squares))), float(np.sqrt(np.mean(squares))), 0.0)

    def why_no_ends(self, plan: Plan) -> str:
        """Return why a release by this plan has no intervals, where it has none; from public numbers alone."""
        return "" if GroupNumbers.of(plan).width_ends else why_no_ends(plan)

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import group_case

        return group_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import group_audit_cases

        return group_audit_cases()

    def rank_errors(self, plan: Plan) -> list[float]:
        """Return the expected error of each quantile's rank, as a share of a group's records, for groups of equal size."""
        levels, numbers = plan.model.levels, GroupNumbers.of(plan)
        weights = tuple(float(_weight(width)) for width in numbers.widths)
        variances = np.array(selection.rank_variances(quantile_tree(levels), weights, len(levels)))
        shifted = (np.array(levels) - 0.5) ** 2 * count_law(plan, "sizes").deviation([1.0]) ** 2
        return [float(error) for error in np.sqrt(variances + shifted) * plan.model.cells / plan.n]


def noisy_sizes(plan: Plan, stages: Mapping[str, Any]) -> tuple[Array, Array]:
    """Return the noisy numbers of records in the groups, and that of missing cells, empty where they are not skipped."""
    sizes = np.array(stages["sizes"], dtype=np.float64)
    return sizes[: plan.model.cells], sizes[plan.model.cells :]


def count_law(plan: Plan, stage: str) -> NoiseLaw:
    """Return the law of the noise on "sizes" or "signs": Laplace where ε adds up, Gaussian where ρ does."""
    numbers = plan.parameters
    scale, law = numbers[f"{stage}_scale"], "laplace" if f"{stage}_epsilon" in numbers else "gaussian"
    return NoiseLaw(law, scale, law == "gaussian" and scale > 2.0**12)


# ── how much each stage gets ─────────────────────────────────────────────────────────────────────────────────


def _numbers(request: Request, model: ColumnQuantiles, share: float, *, flip: bool) -> GroupNumbers:
    """Return what runs if intervals have this share of what the quantiles and they have together."""
    depth, intervals = depth_of(quantile_tree(model.levels)), len(model.levels) if share else 0
    counted = 1 + has_signs(model)
    pure = flip or request.budget.is_pure
    parts = ((1.0 - share) / depth,) * depth + ((share / intervals,) * intervals if intervals else ())
    k = request.records_per_person
    if pure:
        total = _largest_total(request.budget, parts, k, flip)
        scale = 2.0 / (PURE_SHARE * total)
        total *= 1.0 - counted * PURE_SHARE
    else:
        total, rho = _largest_renyi(request.budget, parts, k, counted)
        scale = k / math.sqrt(rho)
    widths = [int(Fraction(total * part / 2.0) * 2**BITS / UNITS) for part in parts]
    if not all(widths):
        raise PromiseRefused(
            f"{request.budget} is too small to select quantiles in {model.cells} groups. Use a larger budget."
        )
    width_ends = widths[depth] if intervals else 0
    return GroupNumbers(tuple(widths[:depth]), width_ends, scale, scale if has_signs(model) else 0.0, flip)


@lru_cache(maxsize=256)
def _largest_renyi(budget: Promise, parts: tuple[float, ...], k: int, counted: int) -> tuple[float, float]:
    """Return Σ of the ranges for one record, and the ρ of each vector of noisy counts for a person, that keep the budget together."""

    def rho(total: float) -> float:
        ranges = sum((total * part * k) ** 2 for part in parts) / 8.0
        return ranges * RENYI_SHARE / (1.0 - counted * RENYI_SHARE)

    def keeps(total: float) -> bool:
        curves = [(BoundedRangeCurve(total * part * k), 1) for part in parts]
        return RenyiDP(add_curves([*curves, (LinearCurve(rho(total)), counted)])).implies(budget)

    total = largest_range(keeps, budget, "a selection") * (1.0 - RANGE_MARGIN)
    return total, rho(total)


def _promise(numbers: GroupNumbers, spent: Mapping[str, float], model: ColumnQuantiles, budget: Promise) -> Promise:
    """Return what all stages promise together: the sum of pure ε, or of Rényi curves and ρ."""
    ranges = [spent[f"epsilon_{depth}"] for depth in range(1, len(numbers.widths) + 1)]
    ranges += [spent["epsilon_end"]] * len(model.levels) if numbers.width_ends else []
    noises = [spent[name] for name in spent if name.startswith(("sizes_", "signs_"))]
    if numbers.flip or budget.is_pure:
        return PureDP(fraction_up(sum(map(Fraction, [*ranges, *noises]), Fraction(0))))
    return compose(*(RenyiDP(BoundedRangeCurve(part)) for part in ranges), *map(ZCDP, noises))


def _checked(request: Request) -> ColumnQuantiles:
    model = request.model
    if not isinstance(model, ColumnQuantiles) or not model.by:
        raise InvalidModel(
            "GroupQuantiles selects quantiles within groups. Use models.ColumnQuantiles(levels, lower, upper, by=…, groups=…)."
        )
    check_selects(request)
    if request.draws != 1:
        raise PromiseRefused("Quantiles are released once: further draws would only share the budget. Use draws=1.")
    if model.cells * (model.steps + 1) * request.n >= 2**61 or model.cells * (model.steps + 1) >= 2**40:
        raise PromiseRefused(
            f"{request.n:,} records in {model.cells} groups on {model.steps:,} lattice steps are more than whole numbers of 64 bits "
            "hold. Declare a coarser step."
        )
    return model


# ── ranks of ends, from noisy sizes ──────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=4096)
def margins(
    level: float, steps: int, size: int, slack: float, weight: float, alpha: float, flip: bool
) -> tuple[float | None, float | None]:
    """Return how many ranks the ends of an interval lie beyond its quantile, below and above; None where the end is the declared bound.

    The group has ``size`` records up to ``slack`` more or fewer. Sampling is largest for the largest group, for which the margin is
    found; one rank is added for the lattice of ranks, and what a shifted rank is off by.
    """
    most, room = max(math.ceil(size + slack), 1), selection.least_room(steps, weight)
    low, high = selection._ranks(most, level, weight, alpha, flip, room)
    if low == high == NO_END:
        return None, None
    shifted = abs(level - 0.5) * slack + 2.0
    sides = (
        level * most - low + shifted if low != NO_END else None,
        (1.0 - level) * most - high + shifted if high != NO_END else None,
    )
    least = max(size - slack, 0.0)
    below = sides[0] if sides[0] is not None and level * least >= sides[0] else None
    above = sides[1] if sides[1] is not None and (1.0 - level) * least >= sides[1] else None
    return below, above


@dataclass(frozen=True, eq=False, repr=False)
class GroupTarget(Private):
    """One data set's selection problems, one for each group. As private as the records: never printed or written."""

    plan: Plan
    places: PlaceCounts

    @property
    def sizes(self) -> Integers:
        """Records in each group, and missing cells where they are skipped."""
        sizes = np.diff(self.places.below(np.arange(self.plan.model.cells + 1) * (self.plan.model.steps + 1)))
        return np.append(sizes, self.places.missing) if self.plan.model.skips else sizes

    def signs(self, middle: int) -> Integers:
        """Return the records of each group below, at and above a place, one group after the other."""
        first = np.arange(self.plan.model.cells) * (self.plan.model.steps + 1)
        edges = np.column_stack([first, first + middle, first + middle + 1, first + self.plan.model.steps + 1])
        return np.diff(self.places.below(edges.reshape(-1)).reshape(edges.shape), axis=1).reshape(-1)

    def group(self, cell: int, size: int) -> GroupPart:
        """Return the problem of one group, whose noisy number of records is ``size``."""
        numbers = GroupNumbers.of(self.plan)
        return GroupPart(
            self.plan.model, self.places, quantile_tree(self.plan.model.levels), widths=numbers.widths,
            width_ends=numbers.width_ends, flip=numbers.flip, cell=cell, size=size,
        )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class GroupPart(QuantileTarget):
    """One group: the records between its first and its last place, and their noisy number."""

    cell: int = 0
    size: int = 0

    @property
    def wanted_of(self) -> int:
        return self.size

    @property
    def first_place(self) -> int:
        return self.cell * (self.model.steps + 1)

    @property
    def last_place(self) -> int:
        return self.first_place + self.model.steps

    def rungs(self, index: int, place: int) -> selection.Runs:
        """Widths of the interval of a quantile released at ``place`` of the group: one run for each rung of the ladder.

        Ranks are counted from the middle of the group's records, which a record that comes or goes moves by a half.
        """
        model, first, last = self.model, self.first_place, self.last_place
        below, above = self.margins(index)
        steps = ladder(model.steps)
        edges = np.concatenate(
            [np.maximum(place - steps, first), np.minimum(place + steps, last) + 1, [first, last + 1]]
        )
        under, up_to = np.split(self.places.below(edges)[:-2], 2)
        start, end = self.places.below(edges[-2:]).tolist()
        shift = round((Fraction(model.levels[index]) - Fraction(1, 2)) * UNITS)
        wanted = (end - start) * (UNITS // 2) + self.size * shift
        missing = np.full(len(steps), -(2**60), dtype=np.int64)
        if above is not None:
            missing = np.maximum(missing, wanted + math.ceil(above * UNITS) - (up_to - start) * UNITS)
        if below is not None:
            missing = np.maximum(missing, (under - start) * UNITS - wanted + math.ceil(below * UNITS))
        behind = np.maximum(0, np.maximum(missing, np.append(-missing[1:], 0)))
        rungs = np.arange(len(steps), dtype=np.int64)
        return selection.Runs(selection._costs(behind, self.width_ends) + rungs * PENALTY, np.ones_like(rungs), rungs)

    def margins(self, index: int) -> tuple[float | None, float | None]:
        """Return the margins of a quantile's ends, from public numbers."""
        return end_margins(self.model, index, self.size, float(_weight(self.width_ends)), self.slack, flip=self.flip)

    slack: float = 0.0

    def has_end(self, index: int) -> bool:
        return self.margins(index) != (None, None)

    def interval(self, index: int, place: int, rung: int) -> tuple[int, int]:
        width = int(ladder(self.model.steps)[rung])
        below, above = self.margins(index)
        low = max(place - width, self.first_place) if below is not None else self.first_place
        return low, min(place + width, self.last_place) if above is not None else self.last_place


def end_margins(
    model: ColumnQuantiles, index: int, size: int, weight: float, slack: float, *, flip: bool
) -> tuple[float | None, float | None]:
    assert model.interval is not None
    alpha = (1.0 - model.interval) * (1.0 - SIZE_MISS)
    return margins(model.levels[index], model.steps, max(size, 0), slack, weight, alpha, flip)


def size_slack(model: ColumnQuantiles, law: NoiseLaw) -> float:
    """Return by how much a noisy size may be off, but for `SIZE_MISS` of an interval's α. A discrete law's tail from m on is at most
    that of the continuous one from m − 1 on."""
    assert model.interval is not None
    alpha = (1.0 - model.interval) * SIZE_MISS
    tail = math.log(1.0 / alpha) if law.law == "laplace" else -float(special.ndtri(alpha / 2.0))
    return law.scale * tail + 1.0


def middle_place(model: ColumnQuantiles, sizes: Any, quantiles: Any) -> int:
    """Return a place about which the groups' medians lie, from what was published: the median of the groups' medians, by noisy size."""
    at = list(model.levels).index(0.5)
    medians = np.array(quantiles, dtype=np.int64).reshape(model.cells, -1)[:, at]
    weights = np.maximum(np.asarray(sizes, dtype=np.float64), 1.0)
    return int(np.clip(np.rint(medians @ (weights / weights.sum())), 0, model.steps))
