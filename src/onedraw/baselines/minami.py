"""Minami et al.'s Gibbs posterior by their Corollary 8: a name under which a reader of the literature finds it.

    w = (ε/2L)·√(m/(1 + 2 log 1/δ)),        m the prior's precision, L the Lipschitz constant of the loss

K. Minami, H. Arai, I. Sato, H. Nakagawa, "Differential privacy without sensitivity" (NIPS 2016); the baseline "Minami"
of J. Jewson, S. Ghalebikesabi, C. Holmes (NeurIPS 2023). It is ``Gibbs(rule="corollary8")``; statement and
counterexample: minami.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from onedraw.errors import WrongCall
from onedraw.methods import Gibbs
from onedraw.plans import Plan, Request

from .over_gibbs import OverGibbs

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases


@dataclass(frozen=True)
class Minami(OverGibbs):
    """One draw with the weight of Corollary 8. ``doubled=True`` takes 2L for L, as the text of Jewson et al. has it
    (2√d for features in [0, 1]; √d is right, and what their code uses). ``as_published=True`` keeps the corollary where
    it is false, from ε ≈ 9 on."""

    title: ClassVar[str] = "Minami et al.'s Gibbs posterior"

    doubled: bool = False
    as_published: bool = False

    def __post_init__(self) -> None:
        for name in ("doubled", "as_published"):
            if getattr(self, name) not in (True, False):
                raise WrongCall(f"{name} is True or False, not {getattr(self, name)!r}.")

    @property
    def rule(self) -> Gibbs:
        return Gibbs("corollary8", as_published=self.as_published)

    def weight(self, request: Request) -> float:
        """As printed; the calibration then refuses it where it is not true, unless it is wanted as published."""
        printed = Gibbs("corollary8", as_published=True).calibrate(request).parameters["weight"]
        return printed / 2.0 if self.doubled else printed

    def calibrate(self, request: Request) -> Plan:
        """A plan within the corollary's range is proven, whatever was asked for."""
        found = replace(self.rule, weight=self.weight(request)).calibrate(request)
        return replace(self, as_published=not found.mechanism.proven)._named(found)

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.published_draws import minami_case

        return minami_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.published_draws import minami_cases

        return {"baselines": minami_cases}
