"""A variance in two stages on one budget: the mean with noise, then squares about it with noise.

    mean      Σ v, v ∈ [−1, 1] the place of a record in its range: one replaced record moves it by 2
    squares   a near and a far part of (x − m)² and a fourth power, m the released mean: 5 + 1/3 (`models.tables`)

Each stage has discrete Laplace noise, and what one record adds to the second follows from the record and from what was
published before. So the whole promises the sum of both, pure ε. Proof and choice of numbers: centered.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.errors import PromiseRefused, UnsupportedBudget
from onedraw.methods.added_noise.mechanism import (
    LARGEST_SCALE,
    LARGEST_SUM,
    NOISE,
    PUBLIC_GROUPS,
    RECORDS,
    SKIPPED,
    THEOREMS,
    check_table,
    whole_numbers,
)
from onedraw.methods.base import Mechanism, NoisyCount
from onedraw.methods.expectation import Expectation
from onedraw.methods.intervals import Interval, Published
from onedraw.methods.noise_law import NoiseLaw
from onedraw.models import NumberTable
from onedraw.models.tables.centered_squares import BLOCK, LARGEST, REACH, Squares, centers_of, square_error, squares_of
from onedraw.models.tables.table import STEPS
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import Assumption, Provenance, PureDP
from onedraw.privacy.numbers import fraction_down, fraction_up, sum_up
from onedraw.private import Private

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

    from .run import CenteredSums

MEAN_REACH = 2 * STEPS
"""How far one replaced record moves the sum of places, in steps."""

MEAN_SHARE = 2.0
"""The mean's share of ε is the cube root of this over n·ε, …"""

LEAST_SHARE, LARGEST_SHARE = 0.05, 0.5
"""… within these."""

LEAST_RECORDS = 300.0
"""Where n·ε is less, intervals are no narrower than those of `AddedNoise` (centered.md)."""


@dataclass(frozen=True, repr=False)
class CenteredTarget(Private):
    """Exact sums of places, and how to sum squares about centers. As private as the records."""

    plan: Plan
    places: tuple[int, ...]
    """Of all groups; then the numbers of known cells, where missing ones are skipped, and of missing ones, where both do not add up to n."""
    squares: Callable[[Sequence[int]], Integers]


@dataclass(frozen=True)
class CenteredNoise(Mechanism):
    """Noise on a mean, then on squares about it: the variance of one column, or within groups of public size."""

    title: ClassVar[str] = "Noise on squares about a released mean"
    noun: ClassVar[str] = "estimate"
    whole_sums: ClassVar[bool] = True
    requires: ClassVar[str] = "centered-noise"
    skips: ClassVar[bool] = True

    @staticmethod
    def is_worthwhile(request: Request) -> bool:
        """Return whether intervals are expected to be narrower than those of `AddedNoise`, from public numbers."""
        allowed, table = request.exact_budget.allows(PureDP), request.model
        known = isinstance(table, NumberTable) and table.centers and request.draws == 1
        return known and smallest_group(request) * allowed / request.records_per_person >= LEAST_RECORDS

    def heading(self, plan: Plan) -> str:
        return "discrete Laplace noise on the exact sum and on exact sums of squares about the released mean"

    def calibrate(self, request: Request) -> Plan:
        self.table(request)
        allowed, k = request.exact_budget.allows(PureDP), request.records_per_person
        if not allowed:
            raise UnsupportedBudget(
                f"Laplace noise, which squares about a released mean have, cannot keep {request.budget}."
            )
        share = mean_share(smallest_group(request) * allowed / k)
        reach = k * reaches_of(request.model)["mean"]
        mean_scale = fraction_up(Fraction(reach) / (Fraction(allowed) * Fraction(share)))
        left = fraction_down(Fraction(allowed) - Fraction(_epsilon(reach, mean_scale)))
        scale = fraction_up(Fraction(k * REACH) / Fraction(left))
        return self.plan(request, {"mean_scale": mean_scale, "squares_scale": scale})

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        table = self.table(request)
        mean_scale, scale = (parameters.get(name, math.nan) for name in ("mean_scale", "squares_scale"))
        if not (mean_scale > 0 and scale > 0):
            raise PromiseRefused("Noise on squares about a mean has two scales above 0, one for each stage.")
        if max(mean_scale, scale) > LARGEST_SCALE or request.n * LARGEST > LARGEST_SUM:
            raise PromiseRefused(
                f"The sums of n = {request.n:,} records, or their noise, do not fit into 64-bit whole numbers here. "
                "Use a larger budget, or fewer records."
            )
        k, scales = request.records_per_person, {"mean": mean_scale, "squares": scale}
        parts = {f"{stage}_epsilon": _epsilon(k * reach, scales[stage]) for stage, reach in reaches_of(table).items()}
        numbers = {"mean_scale": mean_scale, "squares_scale": scale, **parts}
        enforced = (Assumption(claim, Provenance.ENFORCED) for claim in (RECORDS, NOISE))
        groups = [Assumption(PUBLIC_GROUPS, Provenance.DECLARED)] if table.sizes is not None else []
        groups += [Assumption(SKIPPED, Provenance.ENFORCED)] if table.skips else []
        assumed = (*fixed_in_advance(request, "range, levels and groups"), *enforced, *groups)
        theorem = f"{THEOREMS['laplace']}; two stages, the second about the mean of the first (methods/added_noise/centered.md)"
        return Plan.of(self, request, numbers, PureDP(sum_up(parts.values())), theorem, assumed)

    def table(self, request: Request) -> NumberTable:
        """The table of a request; what has no squares about released means is refused."""
        table = request.model
        if not (isinstance(table, NumberTable) and table.centers):
            raise UnsupportedBudget(
                "Noise on squares about a released mean is for the variance of numbers, of one column or within groups of "
                f"public size, and this {type(table).__name__} is none."
            )
        check_table(table, request)
        return table

    def target(self, plan: Plan, summary: Any) -> CenteredTarget:
        sums = np.array(summary.total, dtype=object).reshape(plan.model.cells, -1)
        first = np.concatenate([sums[:, 0], *sums.T[2:]])
        return CenteredTarget(plan, tuple(int(value) for value in first), summary.squares)

    def interval(
        self, plan: Plan, published: Published, level: float, *, effect: float | None = None, noise: float | None = None
    ) -> Interval:
        from .variance_intervals import variance_interval  # which only intervals need

        return Interval(published.draws[0], *variance_interval(plan, published.stages or {}, level))

    def expected_error(self, plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
        added, sampling = self.expected_noise(plan), plan.model.sampling_error(plan.n)
        return Expectation(math.hypot(added, sampling), sampling, 0.0)

    def own_sampler(self) -> type[CenteredSums]:
        from .run import CenteredSums  # which only a draw needs

        return CenteredSums

    def reaches(self, plan: Plan) -> dict[str, int]:
        """How far one replaced record moves the sums of each stage, in L1."""
        return reaches_of(plan.model)

    def centers(self, plan: Plan, first: Sequence[int]) -> list[int]:
        """Return the centers of the second stage, from what the first published."""
        sums, sizes = _first(plan, np.array(first, dtype=np.float64))
        return centers_of(sums, sizes)

    def missing_of(self, plan: Plan, stages: Mapping[str, Any]) -> NoisyCount | None:
        if not (plan.model.skips and stages):
            return None
        cells, first = plan.model.cells, whole_numbers(stages, "mean") / STEPS
        value = plan.n - float(first[cells : 2 * cells].sum())
        if not plan.model.total_is_public:
            value = float(first[2 * cells :].sum())
        law = NoiseLaw("laplace", plan.parameters["mean_scale"], True)
        factors = [1.0 / STEPS] * cells
        return NoisyCount(value, lambda level: law.quantile(level, factors, 0.0) + 0.5, float(plan.n))

    def without_estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Array | None:
        if not (plan.model.skips and stages):
            return None
        from .intervals import FEWEST_KNOWN, LEAST_KNOWN  # which only intervals need

        cells, first = plan.model.cells, whole_numbers(stages, "mean") / STEPS
        noise = math.sqrt(2.0) * plan.parameters["mean_scale"] / STEPS
        return np.asarray(first[cells : 2 * cells] < max(LEAST_KNOWN * noise, FEWEST_KNOWN))

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        table = plan.model
        return {"mean": table.cells * (table.block - 1), "squares": table.cells * BLOCK}

    def squares(self, plan: Plan, stages: Mapping[str, Any]) -> list[Squares]:
        """Return what was published of each group."""
        sums = whole_numbers(stages, "squares").reshape(-1, BLOCK)
        first, sizes = _first(plan, whole_numbers(stages, "mean"))
        return squares_of(first, sums, sizes, plan.parameters["mean_scale"], counted=plan.model.skips)

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Array:
        square = plan.model.width**2
        return np.array([square * group.variance(group.square) for group in self.squares(plan, stages)])

    def expected_noise(self, plan: Plan) -> float:
        """Return the standard error that the noise gives a typical variance, from public numbers."""
        numbers, records = plan.parameters, max(plan.n / plan.model.cells, 1.0)
        return float(plan.model.width**2 * square_error(numbers["mean_scale"], numbers["squares_scale"], records))

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import noise_case

        return noise_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import centered_audit_cases

        return centered_audit_cases()


def reaches_of(table: Any) -> dict[str, int]:
    """Return how far one replaced record moves the sums of each stage, in L1: a cell that becomes missing moves its place to the middle of the
    range and the number of known cells by one, and where missing ones are counted too their number."""
    more = 0 if table.total_is_public else STEPS
    return {"mean": MEAN_REACH + more, "squares": REACH}


def _first(plan: Plan, published: Array) -> tuple[Array, Array]:
    """Return the noisy sum of places and the number of records of each group: public, or what was published of known cells."""
    cells, sizes = plan.model.cells, plan.model.group_sizes(plan.n)
    if plan.model.skips:
        sizes = np.clip(published[cells : 2 * cells] / STEPS, 1.0, np.maximum(sizes, 1.0))
    return published[:cells], sizes


def mean_share(units: float) -> float:
    """Return the mean's share of ε for n·ε = ``units``: its error enters squared, so it gets less the more there is."""
    return min(max(math.pow(MEAN_SHARE / units, 1.0 / 3.0), LEAST_SHARE), LARGEST_SHARE)


def smallest_group(request: Request) -> float:
    """Return the public number of records in the smallest group."""
    table: Any = request.model
    return max(float(np.min(table.group_sizes(request.n))), 1.0)


def _epsilon(reach: int, scale: float) -> float:
    """ε of one stage, rounded up."""
    return fraction_up(Fraction(reach) / Fraction(scale))
