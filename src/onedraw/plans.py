"""A plan: everything public about a release, fixed before any record is read.

`calibrate` takes no data, so nothing can be tuned on the records by accident, and a plan can be published
first. A plan is a frozen value. It says which law will be drawn from (`target`), what that promises
(`guarantee`) and how exact the sampler has to be (`requires`); its numbers are in `parameters`. The theorems
are in `mechanisms`, which also reads a stored plan back (`plan_from_dict`) for whoever checks a certificate.
"""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, Self

from onedraw.errors import (
    CertificateRejected,
    CountMismatch,
    InvalidBudget,
    InvalidModel,
    OnedrawError,
    PromiseRefused,
    WrongCall,
)
from onedraw.models import ConjugateModel, Model
from onedraw.privacy import ApproxDP, Assumption, Guarantee, Neighbours, Promise, Provenance, PureDP, Unit
from onedraw.privacy.numbers import at_most_stated, positive_integer, probability, text
from onedraw.privacy.stored import Stored

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


class Posterior(Protocol):
    """A whole law of the released quantity that follows from published numbers alone: any number of draws, for
    nothing."""

    @property
    def mean(self) -> Any:
        """(parameters,), in the model's own coordinates, like all that follows."""

    @property
    def errors(self) -> tuple[Any, Any]:
        """(sampling, privacy): its standard deviation without the noise, and what the noise adds."""

    @property
    def too_narrow(self) -> str:
        """Why its intervals are not to be relied on, in words; empty where they are."""

    def draw(self, size: int, generator: Any) -> Any:
        """(size, parameters)."""

    def interval(self, level: float, change: Any = None) -> Any:
        """(parameters, 2): quantiles; of ``change @ parameters`` where that is given."""


class Mechanism(Stored, key="name", noun="mechanism", refuses=CertificateRejected):
    """A theorem that makes a draw private. A frozen value; its fields are its options."""

    title: ClassVar[str]
    noun: ClassVar[str] = "draw"
    """What a certificate's first line calls it: this draw, this fit, this estimate."""
    requires: ClassVar[str] = "exact"
    """The least exactness a sampler must have; the release decides what less would cost."""
    whole_sums: ClassVar[bool] = False
    """Whether records enter by sums of whole numbers alone, whatever the model."""
    no_interval: ClassVar[str] = ""
    """Why its releases have no intervals, as the rest of a sentence; empty where draws decide or a fit says it."""
    as_published: bool = False
    """Of a mechanism with such an option: a published calibration where it is not true. A plan that keeps its promise anyway is made
    without it."""

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of ``to_dict``. What no file of `mechanisms` defines is looked for under the entry points
        "onedraw.mechanisms" of the installed packages: `onedraw.baselines`, and those of other people."""
        name = stored.get("name") if isinstance(stored, Mapping) else None
        if isinstance(name, str) and name not in cls.members():
            for found in entry_points(group="onedraw.mechanisms", name=name):
                found.load()
        return super().from_dict(stored)

    @abc.abstractmethod
    def calibrate(self, request: Request) -> Plan:
        """The plan with the most weight on the records that the budget allows."""

    @abc.abstractmethod
    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        """The plan with given calibrated numbers; refused if its promise does not imply the budget."""

    @abc.abstractmethod
    def target(self, plan: Plan, summary: Any) -> Any:
        """The `Target` to draw from, given the records' summary."""

    @property
    def by_person(self) -> bool:
        """Whether something is added up by person, so that records must say whose they are."""
        return False

    @property
    def proven(self) -> bool:
        """Whether the promise follows from a theorem that is true; if not, a release must say so first."""
        return not self.as_published

    def default_gamma(self, model: Any, budget: Promise) -> float:
        """The reserve kept back when the caller names none: 0 where the draw is exact or pays for itself."""
        return 0.0

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        """How many numbers each stage publishes; empty where a draw is all there is."""
        return {}

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        """Of a release in stages: the estimate that follows from what was published, for encoded rows."""
        raise NotImplementedError(f"{self.title} does not publish in stages")

    def posterior(self, plan: Plan, stages: Mapping[str, Any]) -> Posterior | None:
        """Of a release in stages: the posterior that follows from what was published; None where a mechanism gives
        none."""
        return None

    def note(self, plan: Plan, stages: Mapping[str, Any]) -> str:
        """Return what to know about the numbers, from published ones alone; empty if there is nothing to say."""
        return ""

    def heading(self, plan: Plan) -> str:
        """What a certificate calls the draw; the plan's numbers may be part of it."""
        return self.title

    def sums_exactly(self, plan: Plan) -> bool:
        """Whether all that is asked of the records is sums of whole numbers, which no rounding can change."""
        return self.whole_sums or isinstance(plan.model, ConjugateModel)

    def draw_shares(self, plan: Plan) -> list[float] | None:
        """How much each draw counts in the mean of all; None: alike."""
        return None

    def own_sampler(self) -> Any:
        """Return the sampler class of a mechanism that brings its own; None where a sampler says what it carries out."""
        return None

    def closed_form(self, model: Any) -> bool:
        """Whether `target` gives a closed-form law, drawn exactly, or one that an algorithm or a chain draws from."""
        return False


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
        cls, mechanism: Mechanism, request: Request, numbers: Mapping[str, float], promise: Promise, theorem: str,
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


def calibrate(
    mechanism: Mechanism,
    model: Model,
    budget: Promise,
    *,
    n: int,
    draws: int = 1,
    gamma: float | None = None,
    records_per_person: int = 1,
) -> Plan:
    """The plan that gives the records the most weight under ``budget``. There is no data argument.

    **Guarantee.** ``plan.guarantee.promise`` holds for all ``draws`` together, for a person with up to
    ``records_per_person`` records, and implies ``budget`` with the reserve ``gamma`` taken off its δ.

    | argument | meaning |
    | --- | --- |
    | budget | a promise; which kinds are possible depends on mechanism and model |
    | n | the public number of records, at least 1 |
    | gamma | total variation kept back for a sampler that is not exact; None: what the mechanism needs for its own |
    """
    given: object = mechanism
    if not isinstance(given, Mechanism):
        name = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
        raise WrongCall(
            f"calibrate needs a mechanism such as Diffused(), brackets included, not {name}. The mechanism is the "
            "theorem that makes the draw private."
        )
    reserve = mechanism.default_gamma(model, budget) if gamma is None else gamma
    return within_decimal(mechanism.calibrate(Request(model, budget, n, draws, reserve, records_per_person)))


def within_decimal(plan: Plan) -> Plan:
    """Return a plan whose ε is at most the decimal by which that of its budget is written, or the plan itself.

    The float 0.2 is a little more than 1/5, so five promises of it are more than 1. A plan that would promise all of it is made for the
    largest float below, about 2^−53 less: charges then add up as the decimals do. Where a mechanism's numbers follow from the
    budget itself there is no such plan.
    """
    budget = plan.budget
    if not isinstance(budget, PureDP | ApproxDP) or plan.guarantee.promise.pure_epsilon != budget.stated_epsilon:
        return plan
    least = at_most_stated(budget.stated_epsilon)
    if least == budget.stated_epsilon:
        return plan
    less = PureDP(least) if isinstance(budget, PureDP) else ApproxDP(least, budget.stated_delta)
    try:
        made = plan.mechanism.calibrate(replace(plan.request, budget=less))
        found: Plan = made.mechanism.plan(plan.request, dict(made.parameters))
    except OnedrawError:
        return plan
    return found
