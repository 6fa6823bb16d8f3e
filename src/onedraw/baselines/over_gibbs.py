"""What a paper's own name for a Gibbs posterior shares: our `Gibbs` with one of its rules and the paper's weight,
nothing else.

Law, samplers, reserve and promise are those of `methods.gibbs`; a baseline of this kind says which rule, and at
which weight.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from onedraw.methods import Gibbs
from onedraw.methods.base import Mechanism
from onedraw.methods.convex_bounds import gibbs_law, has_closed_form
from onedraw.plans import Plan, Request
from onedraw.privacy import Promise


class OverGibbs(Mechanism):
    """A posterior of `Gibbs` under another name."""

    source: ClassVar[str] = ""
    """What its theorem is called on a certificate, before ours."""

    @property
    @abc.abstractmethod
    def rule(self) -> Gibbs:
        """Without a weight."""

    @abc.abstractmethod
    def weight(self, request: Request) -> float:
        """The paper's."""

    def numbers(self, request: Request) -> dict[str, float]:
        """The paper's constants, beside ours."""
        return {}

    def calibrate(self, request: Request) -> Plan:
        return self._named(replace(self.rule, weight=self.weight(request)).calibrate(request))

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        return self._named(self.rule.plan(request, parameters))

    def _named(self, plan: Plan) -> Plan:
        guarantee = replace(plan.guarantee, theorem=self.source + plan.guarantee.theorem)
        numbers = tuple({**plan.parameters, **self.numbers(plan.request)}.items())
        return replace(plan, mechanism=self, numbers=numbers, guarantee=guarantee)

    def target(self, plan: Plan, summary: Any) -> Any:
        return gibbs_law(plan, summary, weight=plan.parameters["weight"])

    def default_gamma(self, model: Any, budget: Promise) -> float:
        return self.rule.default_gamma(model, budget)

    def closed_form(self, model: Any) -> bool:
        return has_closed_form(model)

    def sums_exactly(self, plan: Plan) -> bool:
        return self.closed_form(plan.model)
