"""Quantiles by the exponential mechanism on whole numbers (A. Smith, STOC 2011; McSherry and Talwar, FOCS 2007).

A place v of the lattice is selected with probability ∝ exp(−η·d(v)), d(v) the distance of the wanted rank from the
ranks that v has among the records, [#{x < v}, #{x ≤ v}]: 0 for every place that is a quantile of that level, ties or
not. Replacing a record moves d by at most 1, so the log-ratio has range 2η. Several quantiles share log-many levels of
halving; the width of every interval is one more selection, from a public ladder (selection.py). Statement and
proof: proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.methods.base import Mechanism, NoisyCount
from onedraw.methods.calibration import RANGE_MARGIN, check_selects, largest_range, whole_number
from onedraw.methods.expectation import Expectation
from onedraw.methods.intervals import Interval, Published, Spread
from onedraw.methods.quantiles import selection
from onedraw.methods.quantiles.intervals import inter_quartile_range, quantile_interval, why_no_ends
from onedraw.methods.quantiles.selection import BITS, NO_END, UNITS, QuantileTarget, depth_of, quantile_tree
from onedraw.models import ColumnQuantiles
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import ApproxDP, Assumption, BoundedRange, Promise, Provenance, PureDP, RenyiDP, compose
from onedraw.privacy.curves import BoundedRangeCurve, PureCurve, add_curves
from onedraw.privacy.numbers import fraction_up

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

    from .run import RankSelection

LARGEST_WIDTH = 2**40

MOST_FLIPPED = 2**25
"""Places up to which permute and flip is used: it takes a random bit for each place that is near enough to count."""

FORGONE = 1.15
"""How many times more might be spent under a weaker promise before permute and flip is given up for it."""

SHARES = tuple(step / 40.0 for step in range(1, 21))
"""Shares of a budget that intervals may get. The quantiles keep at least half."""

WIDER = 1.1
"""Width of the intervals that is accepted, over the narrowest, so that the quantiles keep more."""

THEOREM = (
    "the exponential mechanism on ranks (McSherry and Talwar, FOCS 2007; Smith, STOC 2011), for a pure ε by permute and "
    "flip (McKenna and Sheldon, NeurIPS 2020): replacing a record moves every rank distance by at most 1; levels of "
    "halving (Kaplan, Schnapp and Stemmer, ICML 2022) and interval widths add up"
)


@dataclass(frozen=True)
class QuantileNumbers:
    """What runs: for each level of the tree, and for interval widths, how many lattice steps a unit of rank costs."""

    widths: tuple[int, ...]
    flip: bool
    width_ends: int = 0
    ends: tuple[int, ...] = ()
    """The ranks of all lower ends of intervals, then of all upper ones; none where no interval is asked for. Where missing cells are
    skipped they say which ends there are; ranks then follow the published number of known cells."""
    width_known: int = 0
    """Of the number of known cells, where missing ones are skipped."""
    counts: int = 1
    """Numbers of cells that are published then."""

    def to_dict(self) -> dict[str, float]:
        known = {"width_known": float(self.width_known)} if self.width_known else {}
        return known | self._to_dict()

    def _to_dict(self) -> dict[str, float]:
        named = {f"width_{depth}": width for depth, width in enumerate(self.widths, 1)}
        if self.width_ends:
            named |= {"width_ends": self.width_ends} | dict(
                zip(_end_names(len(self.ends) // 2), self.ends, strict=True)
            )
        return {name: float(value) for name, value in named.items()} | ({"flip": 1.0} if self.flip else {})

    @classmethod
    def from_dict(cls, stored: Mapping[str, float], model: ColumnQuantiles, n: int) -> QuantileNumbers:
        """Whole numbers within their ranges, or refused."""
        if stored.get("flip", 1.0) != 1.0:
            raise PromiseRefused("The plan's flip is stated as 1 or not at all.")
        levels = range(1, depth_of(quantile_tree(model.levels)) + 1)
        widths = tuple(whole_number(stored, f"width_{depth}", 1, LARGEST_WIDTH) for depth in levels)
        if model.skips != ("width_known" in stored):
            raise PromiseRefused("A plan counts known cells where missing ones are skipped, and nowhere else.")
        known = whole_number(stored, "width_known", 1, LARGEST_WIDTH) if model.skips else 0
        counted: dict[str, Any] = {"width_known": known, "counts": 1 + model.nobody}
        if "width_ends" not in stored:
            return cls(widths, "flip" in stored, **counted)
        ends = tuple(whole_number(stored, name, NO_END, n) for name in _end_names(len(model.levels)))
        return cls(widths, "flip" in stored, whole_number(stored, "width_ends", 1, LARGEST_WIDTH), ends, **counted)

    @classmethod
    def of(cls, plan: Plan) -> QuantileNumbers:
        return cls.from_dict(plan.parameters, plan.model, plan.n)

    @property
    def ranges(self) -> list[Fraction]:
        """The range of the log-ratios of every level, then of every interval's width, for one replaced record."""
        half = len(self.ends) // 2
        selected = sum(pair != (NO_END, NO_END) for pair in zip(self.ends[:half], self.ends[half:], strict=True))
        return [2 * _weight(width) for width in self.widths + (self.width_ends,) * selected]


def _end_names(count: int) -> list[str]:
    return [f"{side}_rank_{index}" for side in ("lower", "upper") for index in range(1, count + 1)]


@dataclass(frozen=True)
class ExponentialQuantiles(Mechanism):
    """Exact selection of lattice places by rank; nothing converges, nothing is assumed."""

    title: ClassVar[str] = "exponential mechanism on ranks"
    skips: ClassVar[bool] = True
    noun: ClassVar[str] = "estimate"
    whole_sums: ClassVar[bool] = True
    requires: ClassVar[str] = "ranks"
    """The plan *is* an algorithm: its only sampler is `RankSelection`."""

    def heading(self, plan: Plan) -> str:
        numbers = QuantileNumbers.of(plan)
        levels = len(numbers.widths)
        steps = "one selection" if levels == 1 else f"{len(plan.model.levels)} quantiles in {levels} levels"
        flip = " by permute and flip" if numbers.flip else ""
        return f"{self.title}{flip}, {steps}{', and the widths of intervals' if numbers.width_ends else ''}"

    def calibrate(self, request: Request) -> Plan:
        model = _checked(request)
        flip = _flips(request, model)
        numbers = _numbers(request, model, _share(request, model, flip), flip=flip)
        if numbers.ends and all(rank == NO_END for rank in numbers.ends):
            numbers = _numbers(request, model, 0.0, flip=flip)
        return self.plan(request, numbers.to_dict())

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        model = _checked(request)
        numbers = QuantileNumbers.from_dict(parameters, model, request.n)
        if numbers.width_ends:
            missed = (
                0.0
                if model.skips
                else selection.misses(model, request.n, _weight(numbers.width_ends), numbers.ends, flip=numbers.flip)
            )
            if model.interval is None or missed > (1.0 - model.interval) * (1.0 + 1e-6):
                raise PromiseRefused("The ranks stated for the ends of intervals do not give the level stated.")
        promise = _promise(numbers, request.budget, request.records_per_person)
        spent = {f"epsilon_{depth}": fraction_up(2 * _weight(width)) for depth, width in enumerate(numbers.widths, 1)}
        if numbers.width_ends:
            spent["epsilon_end"] = fraction_up(2 * _weight(numbers.width_ends))
        spent |= {"epsilon_known": fraction_up(_weight(numbers.width_known))} if numbers.width_known else {}
        enforced = Provenance.ENFORCED
        found = (
            *fixed_in_advance(request, "levels, bounds, step"),
            Assumption("every record is clamped to the range and rounded to the lattice by itself", enforced),
            Assumption("selections are exact, on whole numbers; ties are spread in a fixed order", enforced),
            *((Assumption(SKIPPED, enforced),) if model.skips else ()),
        )
        return Plan.of(self, request, numbers.to_dict() | spent, promise, THEOREM, found)

    def target(self, plan: Plan, summary: Any) -> QuantileTarget:
        numbers = QuantileNumbers.of(plan)
        return QuantileTarget(
            plan.model, summary, quantile_tree(plan.model.levels), widths=numbers.widths,
            width_ends=numbers.width_ends, ends=numbers.ends, flip=numbers.flip, width_known=numbers.width_known,
        )  # fmt: skip

    def interval(
        self, plan: Plan, published: Published, level: float, *, effect: float | None = None, noise: float | None = None
    ) -> Interval:
        return quantile_interval(plan, published, level)

    def expected_error(self, plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
        # of the ranks, as shares of the records: selection and sampling
        selecting, levels = np.array(self.rank_errors(plan)), np.array(plan.model.levels)
        squares = levels * (1.0 - levels) / plan.n
        return Expectation(float(np.sqrt(np.mean(selecting**2 + squares))), float(np.sqrt(np.mean(squares))), 0.0)

    def own_sampler(self) -> type[RankSelection]:
        from .run import RankSelection  # which only a draw needs

        return RankSelection

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        size = len(plan.model.levels)
        if "width_known" in plan.parameters:
            counted = {"known": 1} | ({"missing": 1} if plan.model.nobody else {})
            ends = {"lower": size, "upper": size} if "width_ends" in plan.parameters else {}
            return counted | {"quantiles": size} | ends
        return {"quantiles": size, "lower": size, "upper": size} if "width_ends" in plan.parameters else {}

    def missing_of(self, plan: Plan, stages: Mapping[str, Any]) -> NoisyCount | None:
        if not (plan.model.skips and stages):
            return None
        known, missing = float(stages["known"][0]), stages.get("missing")
        value = plan.n - known if missing is None else float(missing[0])
        return NoisyCount(value, lambda level: -_known_scale(plan) * math.log(1.0 - level) + 0.5, float(plan.n))

    def without_estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        if not (plan.model.skips and stages):
            return None
        few = float(stages["known"][0]) < max(LEAST_KNOWN * math.sqrt(2.0) * _known_scale(plan), FEWEST_KNOWN)
        return np.full(len(plan.model.levels), few)

    def inter_quartile_range(
        self, plan: Plan, values: Sequence[float], stages: Mapping[str, Any] | None
    ) -> Spread | None:
        return inter_quartile_range(plan, values, stages)

    def why_no_ends(self, plan: Plan) -> str:
        """Return why a release by this plan has no intervals, where it has none; from public numbers alone."""
        return why_no_ends(plan)

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        return np.array(stages["quantiles"], dtype=np.float64)

    def rank_errors(self, plan: Plan) -> list[float]:
        """Of each quantile, the expected error of its rank as a share of the records, if they lie evenly about it."""
        levels, weights = plan.model.levels, [float(_weight(width)) for width in QuantileNumbers.of(plan).widths]
        variances = selection.rank_variances(quantile_tree(levels), tuple(weights), len(levels))
        return [math.sqrt(variance) / plan.n for variance in variances]

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import selection_case

        return selection_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import audit_cases

        return audit_cases()


SKIPPED = "a record with a missing cell is in no rank; the number of known cells is released with exact discrete Laplace noise, and ranks follow it"

KNOWN_SHARE = 0.1
"""Of the sum of all ranges, for the number of known cells where missing ones are skipped: its noise is then a fifth of that in the
rank of a single quantile without an interval, and moves the rank of a quantile q by |q − ½| of itself."""

LEAST_KNOWN, FEWEST_KNOWN = 3.0, 2.0
"""A number of known cells below so many deviations of its noise, or below two, gives no estimate."""


def _known_scale(plan: Plan) -> float:
    """Return the scale of the noise in the number of known cells."""
    return 1.0 / float(_weight(QuantileNumbers.of(plan).width_known))


def _promise(numbers: QuantileNumbers, budget: Promise, records_per_person: int) -> Promise:
    """One selection keeps its range; several add up, as a pure ε or, where that is not asked for, as Rényi curves.
    Permute and flip keeps a pure ε and nothing more."""
    parts = [part * records_per_person for part in numbers.ranges]
    counted = [_weight(numbers.width_known) * records_per_person] * (numbers.counts if numbers.width_known else 0)
    if len(parts) == 1 and not numbers.flip and not counted:
        return BoundedRange(fraction_up(parts[0]))
    if numbers.flip or budget.is_pure:
        return PureDP(fraction_up(sum([*parts, *counted], Fraction(0))))
    curves = [*map(BoundedRangeCurve, map(fraction_up, parts)), *map(PureCurve, map(fraction_up, counted))]
    return compose(*map(RenyiDP, curves))


def _weight(width: int) -> Fraction:
    """η: what one record is worth, of a width of so many lattice steps for one unit of rank."""
    return Fraction(width * UNITS, 2**BITS)


def _numbers(request: Request, model: ColumnQuantiles, share: float, *, flip: bool) -> QuantileNumbers:
    """Return what runs if intervals have this share of the budget."""
    levels, counts = depth_of(quantile_tree(model.levels)), 1 + model.nobody
    widths = _widths(request, _parts(levels, share, len(model.levels)), flip=flip)
    counted: dict[str, Any] = {}
    if model.skips:
        widths, known = _widths_of_known(request, widths, levels, share, counts, flip=flip)
        counted = {"width_known": known, "counts": counts}
    if not share:
        return QuantileNumbers(widths, flip, **counted)
    ranks = selection.end_ranks(model, request.n, _weight(widths[-1]), flip=flip)
    return QuantileNumbers(widths[:levels], flip, widths[-1], tuple(ranks), **counted)


def _widths_of_known(
    request: Request, widths: tuple[int, ...], levels: int, share: float, counts: int, *, flip: bool
) -> tuple[tuple[int, ...], int]:
    """Return the widths that leave `KNOWN_SHARE` for the number of known cells, and its own.

    Selections alone spend the sum of their ranges. Under a Rényi budget a pure count of half a range costs as much as the range, so
    all are scaled down alike until the budget is kept.
    """
    total = sum(2 * _weight(width) for width in widths) if share == 0.0 else Fraction(0)
    if share:
        total = sum((2 * _weight(width) for width in widths[:levels]), Fraction(0))
        total += 2 * _weight(widths[-1]) * (len(widths) - levels)
    known = int(total * Fraction(KNOWN_SHARE) / counts * 2**BITS / UNITS)
    scaled = tuple(int(width * (1.0 - KNOWN_SHARE)) for width in widths)
    ends = (0,) * (2 * (len(widths) - levels))
    while True:
        numbers = QuantileNumbers(scaled[:levels], flip, scaled[-1] if share else 0, ends, known, counts)
        if _promise(numbers, request.budget, request.records_per_person).implies(request.exact_budget):
            return scaled, known
        scaled, known = tuple(int(width * SCALED_DOWN) for width in scaled), int(known * SCALED_DOWN)


SCALED_DOWN = 1.0 - 2.0**-10
"""By how much widths are lowered at a time."""


def _widths(request: Request, parts: tuple[float, ...], *, flip: bool) -> tuple[int, ...]:
    """Return the largest widths that the budget allows: of every level, then of every interval."""
    total = _largest_total(request.budget, parts, request.records_per_person, flip)
    return tuple(int(Fraction(total * part / 2.0) * 2**BITS / UNITS) for part in parts)


def _parts(levels: int, share: float, intervals: int) -> tuple[float, ...]:
    """Return what every level, and every interval if there are any, has of the sum of all ranges."""
    return ((1.0 - share) / levels,) * levels + ((share / intervals,) * intervals if share else ())


def _share(request: Request, model: ColumnQuantiles, flip: bool) -> float:
    if model.interval is None:
        return 0.0
    return share_of_intervals(request.budget, model, model.interval, request.n, request.records_per_person, flip=flip)


@lru_cache(maxsize=256)
def share_of_intervals(
    budget: Promise, model: ColumnQuantiles, interval: float, n: int, records_per_person: int, *, flip: bool
) -> float:
    """Return the share of the budget for intervals, chosen from public numbers alone.

    As few ends as possible lack the room to be told from the declared bound. Among the shares that reach this, the
    expected width in ranks decides: the distance of the released quantile from its rank, which grows with the share,
    and the margin of the ends, which falls. The smallest share within `WIDER` of the narrowest width is taken. If every
    end lacks room at every share, intervals get nothing: they would hold most of the range (proof.md).
    """
    root, count, alpha = quantile_tree(model.levels), len(model.levels), 1.0 - interval
    depth = depth_of(root)
    # The total depends little on the share, and Rényi curves are slow to convert: one total serves all shares.
    total = _largest_total(budget, _parts(depth, SHARES[-1] / 2.0, count), records_per_person, flip)

    def lacking_and_width(share: float) -> tuple[int, float]:
        parts = _parts(depth, share, count)
        variances = selection.rank_variances(root, (total * parts[0] / 2.0,) * depth, count)
        weight = total * parts[-1] / 2.0
        room = selection.least_room(model.steps, weight)
        lacking, margins = selection.expected_margins(model.levels, n, weight, alpha, room, flip=flip)
        return lacking, float(np.mean(margins + np.sqrt(np.array(variances) / 2.0)))

    found = [lacking_and_width(share) for share in SHARES]
    least, narrowest = min(found)
    if least == 2 * count:
        return 0.0
    return next(
        share for share, (lacking, width) in zip(SHARES, found, strict=True)
        if lacking == least and width <= WIDER * narrowest
    )  # fmt: skip


@lru_cache(maxsize=256)
def _largest_total(budget: Promise, parts: tuple[float, ...], records_per_person: int, flip: bool) -> float:
    """Σ of the ranges, for one record, with which the budget is kept."""
    if len(parts) == 1 and budget.is_pure:
        return budget.allows(BoundedRange) / records_per_person
    if flip or budget.is_pure:
        return budget.allows(PureDP) / records_per_person * (1.0 - RANGE_MARGIN)

    def keeps(total: float) -> bool:
        ranges = [total * part * records_per_person for part in parts]
        if len(ranges) == 1:
            return BoundedRange(ranges[0]).implies(budget)
        return RenyiDP(add_curves((BoundedRangeCurve(part), 1) for part in ranges)).implies(budget)

    return largest_range(keeps, budget, "a selection") * (1.0 - RANGE_MARGIN)


def _flips(request: Request, model: ColumnQuantiles) -> bool:
    """Whether permute and flip is used: where a pure ε is asked for, or hardly more could be spent on something weaker.

    It is up to twice as near where places are few, and the same on a fine lattice; but it keeps a pure ε only.
    """
    if model.steps >= MOST_FLIPPED or not isinstance(request.budget, PureDP | ApproxDP):
        return False

    def spent(flip: bool) -> float:
        parts = _parts(depth_of(quantile_tree(model.levels)), _share(request, model, flip), len(model.levels))
        return _largest_total(request.budget, parts, request.records_per_person, flip)

    return spent(False) <= FORGONE * spent(True)


def _checked(request: Request) -> ColumnQuantiles:
    if not isinstance(request.model, ColumnQuantiles):
        raise InvalidModel(
            f"ExponentialQuantiles selects quantiles of one column, but a {type(request.model).__name__} was given. "
            "Use models.ColumnQuantiles(levels, lower, upper)."
        )
    if request.model.by:
        raise InvalidModel("ExponentialQuantiles selects from one group. Use GroupQuantiles() for quantiles by group.")
    check_selects(request)
    if request.draws != 1:
        raise PromiseRefused("Quantiles are released once: further draws would only share the budget. Use draws=1.")
    if (request.model.steps + 1) * request.n >= 2**61:
        raise PromiseRefused(
            f"{request.n:,} records on {request.model.steps:,} lattice steps are more than whole numbers of 64 bits "
            "hold. Declare a coarser step."
        )
    return request.model
