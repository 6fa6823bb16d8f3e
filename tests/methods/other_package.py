"""A mechanism as another package would bring it: the mean of a number column by geometric noise on one exact sum.

It uses public names alone, and nothing in onedraw knows it. `Careless` makes the mistake that an audit is for: its promise is for half
of what one record can move.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from onedraw import audit, privacy
from onedraw.audit.cases.case import Case, Pair
from onedraw.methods import Mechanism, Plan, Request
from onedraw.methods.expectation import Expectation
from onedraw.methods.intervals import Interval, Published
from onedraw.models import NumberTable
from onedraw.plans import fixed_in_advance
from onedraw.privacy import PureDP
from onedraw.privacy.numbers import fraction_up
from onedraw.private import Private
from onedraw.samplers import Sample, Sampler
from onedraw.samplers.padding import Padding, constant_work

STEPS = 2**30
"""Of a place in [−1, 1], as `NumberTable` adds them up."""


@dataclass(frozen=True, repr=False)
class SumTarget(Private):
    """The exact sum of places. As private as the records."""

    plan: Plan
    total: int


@dataclass(frozen=True)
class GeometricMean(Mechanism):
    """The mean of numbers in a public range."""

    title: ClassVar[str] = "Geometric noise on one sum"
    noun: ClassVar[str] = "estimate"
    whole_sums: ClassVar[bool] = True
    requires: ClassVar[str] = "geometric-mean"
    reach: ClassVar[int] = 2 * STEPS
    """How far one replaced record moves the sum: from one end of the range to the other."""

    def calibrate(self, request: Request) -> Plan:
        moved = request.records_per_person * self.reach
        return self.plan(
            request, {"scale": fraction_up(Fraction(moved) / Fraction(request.exact_budget.allows(PureDP)))}
        )

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        assert isinstance(request.model, NumberTable)
        scale = parameters["scale"]
        promise = PureDP(fraction_up(Fraction(request.records_per_person * self.reach) / Fraction(scale)))
        assumptions = fixed_in_advance(request, "the range")
        return Plan.of(self, request, {"scale": scale}, promise, "Ghosh, Roughgarden, Sundararajan", assumptions)

    def target(self, plan: Plan, summary: Any) -> SumTarget:
        return SumTarget(plan, int(summary.total[0]))

    def own_sampler(self) -> type[GeometricNoise]:
        return GeometricNoise

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        return {"noisy sum": 1}

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        place = (1.0 + float(stages["noisy sum"][0]) / (plan.n * STEPS)) / 2.0
        return np.array([plan.model.lower + plan.model.width * min(max(place, 0.0), 1.0)])

    def heading(self, plan: Plan) -> str:
        return f"geometric noise of {plan.parameters['scale'] / STEPS:.3g} half ranges on one exact sum"

    def errors(self, plan: Plan) -> tuple[float, float]:
        """Return (sampling, noise): the first is at most this, whatever the records are."""
        noise = math.sqrt(2.0) * plan.parameters["scale"] * plan.model.width / (2.0 * plan.n * STEPS)
        return plan.model.width / (2.0 * math.sqrt(plan.n)), noise

    def interval(
        self, plan: Plan, published: Published, level: float, *, effect: float | None = None, noise: float | None = None
    ) -> Interval:
        sampling, added = self.errors(plan)
        tail = (1.0 - level) / 2.0  # half of what may be missed goes to each of the two errors
        reach = NormalDist().inv_cdf(1.0 - tail / 2.0) * sampling - math.log(tail) * added / math.sqrt(2.0)
        centre = published.draws[0]
        return Interval(centre, centre - reach, centre + reach, np.array([sampling]), np.array([added]))

    def expected_error(self, plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
        sampling, added = self.errors(plan)
        return Expectation(math.hypot(sampling, added), sampling, 0.0)

    def audit_case(self, plan: Plan) -> GeometricCase:
        lower, upper = plan.model.lower, plan.model.upper
        same = [lower] * (plan.n - 1)
        pair = Pair("one end to the other", np.array([*same, lower]), np.array([*same, upper]))
        return GeometricCase(plan, (pair,), "the record goes from one end of the range to the other")


@dataclass(frozen=True)
class Careless(GeometricMean):
    """The same with a promise for half of what one record moves."""

    reach: ClassVar[int] = STEPS


@dataclass(frozen=True)
class GeometricNoise(Sampler):
    """The plan's own algorithm."""

    randomness: ClassVar[str] = "numpy"
    why: ClassVar[str] = "noise on one exact sum"

    def exactness(self, plan: Plan) -> privacy.Exact:
        self.check_own(plan, "adds geometric noise")
        return privacy.Exact()

    def padding(self, plan: Plan) -> Padding:
        return constant_work(1)

    def run(self, target: SumTarget, randomness: Any, *, size: int = 1) -> Sample:
        plan, stages = target.plan, []
        for _ in range(size):
            first, second = np.floor(plan.parameters["scale"] * randomness.standard_exponential(2))
            stages.append({"noisy sum": [float(target.total + int(first) - int(second))]})
        return Sample(np.array([plan.mechanism.estimate(plan, one) for one in stages]), {}, stages[0])


class GeometricCase(Case):
    """The noisy sum is at most the smaller of the two sums, or it is larger: these two outcomes say everything."""

    noises: ClassVar[tuple[str, ...]] = ("scale",)

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        table = self.plan.model
        first, second = (
            sum(round(STEPS * (2.0 * (value - table.lower) / table.width - 1.0)) for value in data) for data in pair
        )
        scale, least = self.numbers(factor)["scale"], min(first, second)
        below = [math.exp(-(total - least) / scale) / (1.0 + math.exp(-1.0 / scale)) for total in (first, second)]
        return audit.finite_profile(*(np.array([mass, 1.0 - mass]) for mass in below))
