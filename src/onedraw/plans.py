"""A plan: everything public about a release, fixed before any record is read.

A plan is made without data, so nothing can be tuned on the records by accident, and a plan can be published
first. A plan is a frozen value. It says which law will be drawn from (`target`), what that promises
(`guarantee`) and how exact the sampler has to be (`requires`); its numbers are in `parameters`. Mechanisms and their theorems
are in `methods`, which makes plans (`calibrate`) and reads stored ones back (`plan_from_dict`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol

from onedraw.errors import (
    CountMismatch,
    InvalidBudget,
    InvalidModel,
    PromiseRefused,
)
from onedraw.models import Model
from onedraw.privacy import Assumption, Guarantee, Neighbours, Promise, Provenance, Unit
from onedraw.privacy.numbers import positive_integer, probability, text

__all__ = ["Plan", "Potential", "Request", "Target", "fixed_in_advance"]

MOST_RECORDS, MOST_DRAWS = 10**15, 10**4
"""Beyond these a float64 no longer counts, and draws of one budget say nothing."""

LARGEST_LOSS = 1e12
"""An ε, μ or ρ above it is no budget: e^ε has left every number there is long before."""


def record_count(n: Any) -> int:
    """n, the public number of records."""
    if isinstance(n, int) and n < 1:
        raise InvalidBudget(
            f"n must be at least 1, not {n}. n is the public number of records and part of the "
            "promise; with none there is nothing to release. Pass the number of rows of the data."
        )
    return positive_integer("n", n, most=MOST_RECORDS)


@dataclass(frozen=True)
class Request:
    """What is asked of a mechanism: public numbers, checked."""

    model: Model
    budget: Promise
    n: int
    draws: int = 1
    gamma: float = 0.0
    records_per_person: int = 1

    exact_budget: Promise = field(init=False, repr=False, compare=False)
    """What exact draws must keep, so that the reserve γ (for all of them) is left: δ − (1+e^ε)γ."""

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            raise InvalidModel(
                f"calibrate needs a model of onedraw.models, not a {type(self.model).__name__}. A "
                "promise rests on the bounds only a model can state."
            )
        if not isinstance(self.budget, Promise):
            raise InvalidBudget(
                f"The budget must be a promise such as ApproxDP(1.0, 1e-6), not a {type(self.budget).__name__}."
            )
        if self.budget.number > LARGEST_LOSS:
            raise InvalidBudget(
                f"The budget {self.budget} promises nothing: a release may as well be the records "
                "themselves. Choose an ε of a few units at most."
            )
        object.__setattr__(self, "n", record_count(self.n))
        for name, most in (("draws", MOST_DRAWS), ("records_per_person", MOST_RECORDS)):
            object.__setattr__(self, name, positive_integer(name, getattr(self, name), most=most))
        object.__setattr__(self, "gamma", probability("gamma", self.gamma))
        if self.gamma and not self.budget.total_variation():
            raise InvalidBudget(
                f"A reserve of gamma = {text(self.gamma)} is kept back from δ, but the budget, "
                f"{self.budget}, has none. Use ApproxDP(epsilon, delta), or gamma=0 and an exact sampler."
            )
        left = self.budget.less(self.gamma)
        if left is None:
            raise InvalidBudget(
                f"The reserve gamma = {text(self.gamma)} costs (1 + e^ε)·gamma, which leaves nothing of δ = "
                f"{text(self.budget.quoted_delta)}. Use a smaller gamma."
            )
        object.__setattr__(self, "exact_budget", left)


def fixed_in_advance(request: Request, what: str) -> tuple[Assumption, ...]:
    """What every promise takes for granted and the caller answers for: what was public before, and the unit."""
    unseen = "fixed without looking at the records"
    own = [f"{fn} and everything it refers to were {unseen}" for fn in request.model.own_functions]
    unit = f"the unit of protection is {Unit(request.records_per_person).sentence}"
    claims = (f"{what} and n were {unseen}; n is public", *own, unit)
    return tuple(Assumption(claim, Provenance.DECLARED) for claim in claims)


class Target(Protocol):
    """What a plan draws from, given the records, and as private as they are: a law in closed form, a potential, or the
    problem that the plan's own algorithm solves. Its ``repr`` shows no record."""


class Potential(Target, Protocol):
    """A target whose density is ∝ exp(−U(θ)), for chains: U(θ) = a compiled function of (θ, *arguments)."""

    @property
    def model(self) -> Any: ...
    @property
    def encoded(self) -> Any: ...
    @property
    def weight(self) -> float: ...
    @property
    def dimension(self) -> int: ...
    @property
    def kernel(self) -> Any:
        """The static argument of compiled functions: the loss alone."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What follows θ in the compiled functions, as JAX arrays."""


@dataclass(frozen=True)
class Plan:
    """A calibrated mechanism for n records: made by `calibrate`, carried out by `release`."""

    mechanism: Any
    """A `Mechanism`, and as its own sampler, intervals and audit know it: they ask for more than all have in common."""
    request: Request
    numbers: tuple[tuple[str, float], ...]
    guarantee: Guarantee

    model: Any = field(init=False, repr=False, compare=False)
    """Like what follows, the request's own."""
    budget: Promise = field(init=False, repr=False, compare=False)
    n: int = field(init=False, repr=False, compare=False)
    draws: int = field(init=False, repr=False, compare=False)
    """How many draws the promise is about, together."""
    gamma: float = field(init=False, repr=False, compare=False)
    """The reserve kept back for a sampler that is not exact: total variation, for all draws together."""
    requires: str = field(init=False, repr=False, compare=False)
    """The least exactness a sampler must have: the mechanism's own."""

    @classmethod
    def of(
        cls, mechanism: Any, request: Request, numbers: Mapping[str, float], promise: Promise, theorem: str,
        assumptions: tuple[Assumption, ...],
    ) -> Plan:  # fmt: skip
        """From numbers by name and what they promise, of records that may be replaced by others, n being public."""
        guarantee = Guarantee(promise, Neighbours.REPLACE_ONE, Unit(request.records_per_person), theorem, assumptions)
        return cls(mechanism, request, tuple(numbers.items()), guarantee)

    def __post_init__(self) -> None:
        for name in ("model", "budget", "n", "draws", "gamma"):
            object.__setattr__(self, name, getattr(self.request, name))
        object.__setattr__(self, "requires", self.mechanism.requires)
        if not self.guarantee.promise.implies(self.request.exact_budget):
            raise PromiseRefused(
                f"{self.mechanism.title} with these numbers promises {self.guarantee.promise}, which is not "
                f"proven to imply the budget {self.request.budget}. Leave them to `calibrate`, or use a larger budget."
            )

    @property
    def heading(self) -> str:
        """What a certificate calls the draw."""
        return str(self.mechanism.heading(self))

    @property
    def closed_form(self) -> bool:
        """Whether `target` gives a closed-form law, which only an exact sampler draws, or a potential."""
        return bool(self.mechanism.closed_form(self.model))

    @property
    def parameters(self) -> Mapping[str, float]:
        """The mechanism's public numbers by name."""
        return MappingProxyType(dict(self.numbers))

    def for_one_draw(self) -> Plan:
        """Return the plan with the same numbers for one draw and one record per person, from whose promise this one's follows."""
        if self.draws == 1 and self.request.records_per_person == 1:
            return self
        request = replace(self.request, draws=1, records_per_person=1)
        single: Plan = self.mechanism.plan(request, dict(self.parameters))
        return single

    def target(self, summary: Any) -> Any:
        """The `Target` the theorem is about, for these records. As private as they are."""
        if summary.n != self.n:
            raise CountMismatch(
                f"The plan was calibrated for n = {self.n:,} records, the summary has {summary.n:,}. n is "
                "public and part of the promise. Calibrate again with the right n.",
                expected=self.n,
                found=summary.n,
            )
        return self.mechanism.target(self, summary)

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; `plan_from_dict` reads it back."""
        return {
            "mechanism": self.mechanism.to_dict(),
            "model": self.model.to_dict(),
            "budget": self.budget.to_dict(),
            "n": self.n,
            "draws": self.draws,
            "gamma": self.gamma,
            "records_per_person": self.request.records_per_person,
            "parameters": dict(self.numbers),
            "requires": self.requires,
            "guarantee": self.guarantee.to_dict(),
        }

    def without_words(self) -> dict[str, Any]:
        """Return the plan's document without the sentences of its guarantee: what a new wording does not change."""
        return without_words(self.to_dict())

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, sentences left out."""
        return digest_of(self.without_words())


def without_words(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan's document without theorem and assumptions, which are sentences for people."""
    guarantee = plan["guarantee"]
    kept = {name: value for name, value in guarantee.items() if name not in ("theorem", "assumptions")}
    return {**plan, "guarantee": kept}


def digest_of(document: Mapping[str, Any]) -> str:
    """SHA-256 of a document's canonical JSON: one way to name a plan and the certificate made with it."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
