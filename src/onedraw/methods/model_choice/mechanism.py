"""A private choice among declared settings: the exponential mechanism on held-out losses, exactly.

Candidate k is chosen with probability ∝ exp(−η·L_k), L_k the sum of its losses in [0, 1] over the held-out records;
under a pure budget by permute and flip, which is never worse. Replacing a record moves every L_k by at most 1, so the
log-ratio has range 2η (McSherry and Talwar, FOCS 2007; McKenna and Sheldon, NeurIPS 2020, with the proof in
methods/quantiles/proof.md): one charge, however many candidates. The expected loss is within 2·ln(K)/ε records' worth of
the best candidate's.

The candidates must not depend on these records: fits that were released from *other* records, or public models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onedraw.arrays import Integers
from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.methods.base import Mechanism
from onedraw.methods.calibration import RANGE_MARGIN, check_selects, largest_range, whole_number
from onedraw.models.sums.clamped_sums import Summary
from onedraw.models.tables.scores import LOSS_STEPS, ModelChoice
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import ApproxDP, Assumption, BoundedRange, Provenance, PureDP
from onedraw.privacy.numbers import fraction_up
from onedraw.private import Private

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

    from .run import LossSelection

BITS = 40
LARGEST_COST = 2**61
LARGEST_WIDTH = 2**40

THEOREM = (
    "the exponential mechanism on held-out losses (McSherry and Talwar, FOCS 2007), for a pure ε by permute and flip "
    "(McKenna and Sheldon, NeurIPS 2020): replacing a record moves every candidate's loss by at most 1"
)

LOSSES = "a record's loss under each candidate is cut to [0, 1] and rounded to a lattice by itself"


@dataclass(frozen=True, eq=False, repr=False)
class ChoiceTarget(Private):
    """One data set's costs. As private as the records: never printed or written."""

    costs: Integers
    flip: bool
    bits: int = BITS


@dataclass(frozen=True)
class ExponentialChoice(Mechanism):
    """Exact selection by loss; it has no options."""

    title: ClassVar[str] = "exponential mechanism on held-out losses"
    whole_sums: ClassVar[bool] = True
    requires: ClassVar[str] = "losses"

    def heading(self, plan: Plan) -> str:
        flip = " by permute and flip" if "flip" in plan.parameters else ""
        return f"{self.title}{flip}, {len(plan.model.names)} settings"

    def calibrate(self, request: Request) -> Plan:
        _check(request)
        budget, flip = request.budget, isinstance(request.budget, PureDP | ApproxDP)
        if isinstance(budget, PureDP | BoundedRange | ApproxDP):
            most = float(budget.stated_epsilon)
        else:
            most = largest_range(lambda one: BoundedRange(one).implies(budget), budget, "the choice", least=2.0**-40)
            most *= 1.0 - RANGE_MARGIN
        width = int(Fraction(most / request.records_per_person) / 2 * 2**BITS / LOSS_STEPS)
        return self.plan(request, {"width": float(width)} | ({"flip": 1.0} if flip else {}))

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        _check(request)
        width, flip = whole_number(parameters, "width", 1, LARGEST_WIDTH), parameters.get("flip")
        if flip not in (None, 1.0):
            raise PromiseRefused("The plan's flip is stated as 1 or not at all.")
        spent = 2 * Fraction(width * LOSS_STEPS, 2**BITS)
        person = fraction_up(spent * request.records_per_person)
        numbers = {"width": float(width), **({} if flip is None else {"flip": 1.0}), "epsilon": fraction_up(spent)}
        promise = BoundedRange(person) if flip is None else PureDP(person)
        found = (
            *fixed_in_advance(request, "settings, loss, their names"),
            Assumption(LOSSES, Provenance.ENFORCED),
            Assumption("the choice is exact, on whole numbers", Provenance.ENFORCED),
        )
        return Plan.of(self, request, numbers, promise, THEOREM, found)

    def target(self, plan: Plan, summary: Summary) -> ChoiceTarget:
        width = int(plan.parameters["width"])
        losses = np.array(summary.total, dtype=np.int64)
        behind = np.minimum(losses - losses.min(), LARGEST_COST // width)
        return ChoiceTarget(behind * width, "flip" in plan.parameters)

    def own_sampler(self) -> type[LossSelection]:
        from .run import LossSelection  # which only a draw needs

        return LossSelection

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import choice_case

        return choice_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import audit_cases

        return audit_cases()


def _check(request: Request) -> None:
    if not isinstance(request.model, ModelChoice):
        raise InvalidModel(f"ExponentialChoice is for models.ModelChoice, not for a {type(request.model).__name__}.")
    check_selects(request)
    if request.draws != 1:
        raise PromiseRefused("A choice is made once. Use draws=1.")
    if request.n * LOSS_STEPS >= 2**62:
        raise PromiseRefused(
            f"Losses of {request.n:,} records do not fit into 64-bit whole numbers. Use fewer held-out records."
        )
