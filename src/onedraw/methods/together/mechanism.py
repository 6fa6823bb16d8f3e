"""Several mechanisms on the same records for one budget: their promises add up, as pure ε or as ρ. Statement and proof: proof.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onedraw.errors import InvalidModel, PromiseRefused, UnsupportedBudget
from onedraw.methods.base import Mechanism, check_contributions
from onedraw.methods.expectation import UNKNOWN, Expectation
from onedraw.methods.intervals import Interval, Published
from onedraw.models.several import Several
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import ZCDP, Promise, Provenance, PureDP
from onedraw.privacy.numbers import fraction_down, fraction_up
from onedraw.private import Private

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

    from .run import AllParts

LESS = 1 - Fraction(1, 2**30)
"""Of a budget, what is divided: the rest is for roundings of the parts' own promises."""

THEOREM = (
    "composition of parts that draw independently: ρ of zCDP adds up (Bun and Steinke, TCC 2016), and so does pure ε"
)


@dataclass(frozen=True, repr=False)
class TargetOfSeveral(Private):
    """What each part draws from. As private as the records."""

    plan: Plan
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Together(Mechanism):
    """One mechanism for each part of `Several`. ``weights`` are the public shares of the budget, by default all alike."""

    title: ClassVar[str] = "several mechanisms together"
    noun: ClassVar[str] = "description"
    whole_sums: ClassVar[bool] = True
    requires: ClassVar[str] = "parts"

    of: tuple[Mechanism, ...] = ()
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = tuple(float(weight) for weight in self.weights) or (1.0,) * len(self.of)
        if len(weights) != len(self.of) or not all(0.0 < weight < 1e9 for weight in weights):
            raise InvalidModel("Together(of, weights) has a positive weight for each mechanism.")
        self._set(of=tuple(self.of), weights=weights)

    def heading(self, plan: Plan) -> str:
        kinds = list(
            dict.fromkeys(
                part.heading if part.mechanism.title == "Added noise" else part.mechanism.title
                for part in parts_of(plan)
            )
        )
        return f"{len(plan.model.parts)} statistics together: {', '.join(kinds)}"

    def calibrate(self, request: Request) -> Plan:
        self._check(request)
        budget = request.exact_budget
        found, refused = [], []
        for kind in (PureDP, ZCDP):
            allowed = budget.allows(kind)
            if not allowed or (kind is ZCDP and budget.is_pure):
                continue
            try:
                found.append(self._planned(request, kind, Fraction(allowed) * LESS))
            except PromiseRefused as error:
                refused.append(error)
        if not found:
            raise next(iter(refused), None) or UnsupportedBudget(
                f"Several statistics together keep PureDP, ZCDP or ApproxDP, not {request.budget}. Use one of these."
            )
        return min(found, key=table_noise)

    def _planned(self, request: Request, kind: type[Promise], allowed: Fraction) -> Plan:
        """Return the plan whose parts keep their shares of a pure ε or of ρ."""
        total = sum(map(Fraction, self.weights), Fraction(0))
        budgets = [fraction_down(allowed * Fraction(weight) / total) for weight in self.weights]
        parts = [
            mechanism.calibrate(_request(request, model, kind(share)))  # type: ignore[call-arg]  # both take one number
            for mechanism, model, share in zip(self.of, _several(request).parts, budgets, strict=True)
        ]
        numbers = {"pure": float(kind is PureDP)}
        for k, (part, share) in enumerate(zip(parts, budgets, strict=True)):
            numbers |= {f"{k} budget": share} | {f"{k} {name}": value for name, value in part.parameters.items()}
        return replace(self, of=tuple(part.mechanism for part in parts)).plan(request, numbers)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        self._check(request)
        if parameters.get("pure") not in (0.0, 1.0):
            raise PromiseRefused("A plan of several mechanisms says whether ε or ρ adds up, as pure 1 or 0.")
        parts = _parts(self, request, tuple(parameters.items()))
        promises = [part.guarantee.promise for part in parts]
        if parameters["pure"]:
            promise: Promise = PureDP(fraction_up(sum((Fraction(one.pure_epsilon) for one in promises), Fraction(0))))
        else:
            promise = ZCDP(fraction_up(sum((Fraction(one.zcdp_rho) for one in promises), Fraction(0))))
        numbers = {"pure": float(parameters["pure"])}
        for k, part in enumerate(parts):
            numbers |= {f"{k} budget": parameters[f"{k} budget"]} | {
                f"{k} {name}": value for name, value in part.parameters.items()
            }
        own = {
            assumption
            for part in parts
            for assumption in part.guarantee.assumptions
            if assumption.provenance != Provenance.DECLARED
        }
        assumptions = (*fixed_in_advance(request, "columns, ranges, levels, groups, weights"), *sorted(own, key=str))
        return Plan.of(self, request, numbers, promise, THEOREM, assumptions)

    def _check(self, request: Request) -> None:
        if not isinstance(request.model, Several) or len(request.model.parts) != len(self.of):
            raise InvalidModel("Together has one mechanism for each part of models.Several.")
        for mechanism, part in zip(self.of, request.model.parts, strict=True):
            check_contributions(mechanism, part)
        if request.draws != 1:
            raise UnsupportedBudget(
                "A description is released once: further draws would only share the budget. Use draws=1."
            )
        if request.gamma:
            raise UnsupportedBudget("All parts are exact and need no reserve; leave out gamma.")

    def target(self, plan: Plan, summary: Any) -> TargetOfSeveral:
        found = zip(parts_of(plan), summary.parts, strict=True)
        return TargetOfSeveral(plan, tuple(part.target(own) for part, own in found))

    def own_sampler(self) -> type[AllParts]:
        from .run import AllParts  # which only a draw needs

        return AllParts

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        return {
            f"{k} {stage}": size
            for k, part in enumerate(parts_of(plan))
            for stage, size in part.mechanism.stage_sizes(part).items()
        }

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        found = enumerate(parts_of(plan))
        return np.concatenate([np.ravel(part.mechanism.estimate(part, stages_of(stages, k))) for k, part in found])

    def interval(
        self, plan: Plan, published: Published, level: float, *, effect: float | None = None, noise: float | None = None
    ) -> Interval:
        found = [part.mechanism.interval(part, own, level) for part, own in self.published_parts(plan, published)]
        return Interval(*(np.concatenate([getattr(one, name) for one in found]) for name in Interval._fields[:5]))

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import together_case

        return together_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import audit_cases

        return audit_cases()

    def what_adds_up(self, plan: Plan) -> str:
        """Return which number of the parts adds up: ε, or ρ of zCDP."""
        return "ε" if plan.parameters["pure"] else "ρ"

    def part_plans(self, plan: Plan) -> tuple[Plan, ...]:
        """Return the plan of each part."""
        return parts_of(plan)

    def published_parts(self, plan: Plan, published: Published) -> list[tuple[Plan, Published]]:
        """Return the plan of each part with what it published."""
        found, start = [], 0
        for k, part in enumerate(parts_of(plan)):
            names = part.model.parameter_names
            size = len(names)
            own = published.draws[:, start : start + size]
            units = np.eye(size), np.ones(size), np.zeros(size)
            found.append((part, Published(own, stages_of(published.stages or {}, k), published.lattice, *units, names)))
            start += size
        return found

    def expected_error(self, plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
        return UNKNOWN


def stages_of(stages: Mapping[str, Any], k: int) -> dict[str, Any]:
    """Return the stages of one part, under its own names."""
    start = f"{k} "
    return {name.removeprefix(start): values for name, values in stages.items() if name.startswith(start)}


def table_noise(plan: Plan) -> float:
    """Return the mean expected noise of the tables, in units of what they show; smaller is better."""
    noises = [
        part.mechanism.expected_noise(part) / part.model.prior_scale
        for part in parts_of(plan)
        if hasattr(part.mechanism, "expected_noise")
    ]
    if noises:
        return float(np.mean(noises))
    return float(np.mean([part.mechanism.expected_error(part).private for part in parts_of(plan)]))


def parts_of(plan: Plan) -> tuple[Plan, ...]:
    """Return the plan of each part."""
    return _parts(plan.mechanism, plan.request, plan.numbers)


@lru_cache(maxsize=32)
def _parts(mechanism: Together, request: Request, numbers: tuple[tuple[str, float], ...]) -> tuple[Plan, ...]:
    stated = dict(numbers)
    kind = PureDP if stated.get("pure") else ZCDP
    found = []
    for k, (own, model) in enumerate(zip(mechanism.of, _several(request).parts, strict=True)):
        if not stated.get(f"{k} budget", 0.0) > 0.0:
            raise PromiseRefused(f"The plan states no budget of its part {k}.")
        found.append(own.plan(_request(request, model, kind(stated[f"{k} budget"])), stages_of(stated, k)))
    return tuple(found)


def _request(request: Request, model: Any, budget: Promise) -> Request:
    return Request(model, budget, request.n, 1, 0.0, request.records_per_person)


def _several(request: Request) -> Several:
    assert isinstance(request.model, Several)  # as `Together.plan` has checked
    return request.model
