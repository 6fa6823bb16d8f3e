"""Private chains: T steps, each a private decision, all of them public together with what was proposed.

A `Kernel` (kernel.py) is one step of a Markov chain as a frozen value: what it promises and how far it goes follow
from public numbers, and `step` alone sees the records. `PrivateChain` is what all of them share: the calibration (the
largest weight with which c relaxation times keep the budget), the composition of T steps, the heading of a certificate,
and the path recomputed from what was published. Everything a chain shows is counted, so that any function of its path
may be published; publishing the last state alone has no better bound, since such steps do not contract.

**A new chain** is a `Kernel` and a mechanism that names it; a mechanism from another package needs nothing else, its
sampler is `PrivatePath`, which carries out every plan that requires "private-chain":

    @dataclass(frozen=True)
    class MyPath(PrivateChain):
        noise: float = 2.0                           # its own options, after the common ones
        @property
        def kernel(self) -> MyKernel: ...
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods.base import Mechanism
from onedraw.methods.calibration import largest, whole_number
from onedraw.methods.convex_bounds import assumptions
from onedraw.methods.expectation import UNKNOWN, Expectation
from onedraw.methods.private_chain.kernel import ChainRecords, Kernel, PublicStep
from onedraw.methods.private_chain.published_path import decisions_in_word, packed, seed_of, seed_words, unpacked
from onedraw.models.public_directions import SEED_BYTES, PublicDirections
from onedraw.plans import Plan, Request
from onedraw.privacy import ZCDP, Assumption, GaussianDP, Promise, Provenance, PureDP, RenyiDP, add_curves
from onedraw.privacy.numbers import fraction_up, narrowed, positive, root_up
from onedraw.private import Private

if TYPE_CHECKING:
    from .run import PrivatePath

RELAXATIONS, MOST_RELAXATIONS = 3.0, 20.0
"""c: e^{−c} of the start is left. Beyond the second nothing of it is, and the rest of the budget stays unspent."""

MOST_STEPS = 1_000_000
LARGEST_WEIGHT = 4.0
"""From here on the path's own spread is small beside the sampling error, and time is the better use of budget."""

MOST_WEIGHT = 2.0**16
"""Of a caller's own: far beyond, a loss's last digits exceed what its cut allows for, and the path has another law."""

PUBLISHED = {"last": "", "mean": ": mean of its second half"}


@dataclass(frozen=True)
class PrivateChain(Mechanism):
    """A path of private decisions. ``weight`` is planned where None, for ``relaxations`` relaxation times (None: 3,
    more where the weight has reached its largest useful value); ``publish`` is "last" or "mean", the mean of the second
    half: both cost the same. ``effect`` and ``noise`` declare the standard deviations of predictor and response that
    the plan expects."""

    title: ClassVar[str] = "private chain"
    noun: ClassVar[str] = "estimate"
    requires: ClassVar[str] = "private-chain"

    weight: Annotated[float | None, partial(positive, "the weight")] = None
    relaxations: Annotated[float | None, partial(positive, "the relaxations")] = None
    publish: str = "last"
    effect: Annotated[float | None, partial(positive, "the effect")] = None
    noise: Annotated[float | None, partial(positive, "the noise")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weight is not None and self.weight > MOST_WEIGHT:
            raise WrongCall(
                f"weight is at most {MOST_WEIGHT:g}, not {self.weight:g}: beyond, rounded losses no longer add up. Leave it "
                "out to have it planned."
            )
        if self.relaxations is not None and (self.relaxations > MOST_RELAXATIONS or self.weight is not None):
            raise WrongCall(
                f"relaxations is at most {MOST_RELAXATIONS:g} and decides the weight, as weight decides the "
                "relaxation times: pass one of the two."
            )
        if self.publish not in PUBLISHED:
            raise WrongCall(f"publish is 'last' or 'mean', not {self.publish!r}.")

    @property
    @abc.abstractmethod
    def kernel(self) -> Kernel:
        """One step, with this mechanism's options."""

    def heading(self, plan: Plan) -> str:
        steps, times = int(plan.parameters["steps"]), plan.parameters["relaxations"]
        law = "" if self.kernel.invariant == "exact" else ", stationary law unknown"
        return (
            f"{self.kernel.title}, path of {steps:,} private decisions, {times:.3g} relaxation times{law}, not a "
            "posterior draw" + PUBLISHED[self.publish]
        )

    def sums_exactly(self, plan: Plan) -> bool:
        return self.kernel.whole_sums

    # ── calibration ──

    def calibrate(self, request: Request) -> Plan:
        self._check(request)
        weight, steps = self._choose(request)
        return self._plan(request, self.kernel.numbers(request.model, weight, request.n), steps)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        self._check(request)
        weight = parameters.get("weight", math.nan)
        if not 0.0 < weight <= MOST_WEIGHT or self.weight not in (None, weight):
            raise PromiseRefused("The weight stated is not the one the mechanism was made with.")
        steps = whole_number(parameters, "steps", 1, MOST_STEPS)
        planned = self.kernel.numbers(request.model, weight, request.n)
        for name, value in planned.items():  # the public design tunes; its last digits may differ between machines
            if not math.isclose(parameters.get(name, math.nan), value, rel_tol=1e-6):
                raise PromiseRefused(f"The {name} stated is not the one that follows from the weight and the model.")
        return self._plan(request, {name: parameters[name] for name in planned}, steps)

    def target(self, plan: Plan, summary: Any) -> ChainTarget:
        """The chain for these records."""
        return ChainTarget(plan, self.kernel, ChainRecords(summary))

    def why_no_interval(self, plan: Plan) -> str:
        return "a path of private decisions is not claimed to have converged, alone or with others; a fit has standard errors"

    def expected_error(self, plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
        return UNKNOWN

    def own_sampler(self) -> type[PrivatePath]:
        from .run import PrivatePath  # which only a draw needs

        return PrivatePath

    def check_room(self, plan: Plan) -> None:
        """Refuse more records than sums have room for, before anything is spent."""
        self.kernel.check_room(plan.model, plan.parameters, plan.n)

    def _check(self, request: Request) -> None:
        if request.gamma:
            raise UnsupportedBudget(
                "A private chain pays for every step as it runs and needs no reserve; leave out gamma."
            )
        self.kernel.check(request)

    def _choose(self, request: Request) -> tuple[float, int]:
        """(weight, steps): the largest weight for c relaxation times; at the largest useful one, more relaxation
        times."""

        def keeps(weight: float, steps: int) -> bool:
            numbers = self.kernel.numbers(request.model, weight, request.n)
            return self._promise(request, numbers, steps).implies(request.exact_budget)

        lasting = self.relaxations or RELAXATIONS
        if self.weight is None:
            share = largest(
                lambda share: keeps(weight := share * LARGEST_WEIGHT, self._steps(request, weight, lasting))
            )
            if share is None:
                raise self._refused(request)
            if share < 1.0 or self.relaxations is not None:
                weight = share * LARGEST_WEIGHT
                return weight, self._within(request, weight, self._steps(request, weight, lasting))
        weight = self.weight or LARGEST_WEIGHT
        most = self._steps(request, weight, MOST_RELAXATIONS)
        steps = int(
            narrowed(lambda steps: keeps(weight, int(steps)), true=0.0, false=most + 1.0, middle=_whole_middle)[0]
        )
        if not steps:
            raise self._refused(request)
        return weight, self._within(request, weight, steps)

    def _steps(self, request: Request, weight: float, relaxations: float) -> int:
        """The fewest that last so long."""
        numbers = self.kernel.numbers(request.model, weight, request.n)
        return max(1, math.ceil(relaxations / self.kernel.relaxations(request.model, numbers, request.n, 1) - 1e-9))

    def _within(self, request: Request, weight: float, steps: int) -> int:
        if steps > MOST_STEPS:
            lighter, same = (self._steps(request, part * weight, RELAXATIONS) for part in (0.5, 1.0))
            remedy = (
                "Pass a smaller weight=… or relaxations=…, or longer steps"
                if lighter < same
                else "Use a larger budget or n"
            )
            raise PromiseRefused(
                f"A path of weight {weight:.6g} needs {steps:,} steps, more than {MOST_STEPS:,}, each a pass over "
                f"all records. {remedy}, or use NoisyGradient() for a smooth loss."
            )
        return steps

    def _refused(self, request: Request) -> PromiseRefused:
        return PromiseRefused(
            f"No path, however light, keeps {request.budget} for {self.relaxations or RELAXATIONS:g} relaxation "
            "times with "
            f"{request.draws} draw(s) and {request.records_per_person} record(s) per person. Use a larger budget or "
            "n, fewer draws, fewer relaxations or tighter bounds."
        )

    def _promise(self, request: Request, numbers: Mapping[str, float], steps: int) -> Promise:
        """Of all steps of all draws."""
        model, n, person = request.model, request.n, request.records_per_person
        one = self.kernel.promise(model, numbers, n, records_per_person=person)
        return repeated(one, steps * request.draws)

    def _plan(self, request: Request, numbers: Mapping[str, float], steps: int) -> Plan:
        self.kernel.check_steps(request.model, numbers, request.n)
        lasting = self.kernel.relaxations(request.model, numbers, request.n, steps)
        stated = {**numbers, "steps": float(steps), "relaxations": lasting}
        claims = (
            "start, weight, proposals and the number of steps are public; every step uses all records",
            *self.kernel.enforced,
        )
        found = (*assumptions(request), *(Assumption(claim, Provenance.ENFORCED) for claim in claims))
        return Plan.of(self, request, stated, self._promise(request, numbers, steps), self.kernel.theorem, found)

    # ── what is published ──

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        if not self.kernel.outcomes:
            return {}
        words = math.ceil(int(plan.parameters["steps"]) / decisions_in_word(self.kernel.outcomes))
        return {"seed": plan.draws * SEED_BYTES // 4, "decisions": plan.draws * words}

    def path(self, plan: Plan, stages: Mapping[str, Any], draw: int = 0) -> Array:
        """(steps + 1, d): every state of one draw's path, from seed and decisions, bit for bit as it was walked."""
        seeds = np.array(stages["seed"]).reshape(plan.draws, -1)
        words = np.array(stages["decisions"]).reshape(plan.draws, -1)
        public = self.public(plan, seed_of(seeds[draw]))
        states = [self.kernel.start(public)]
        for decision in unpacked(words[draw], int(plan.parameters["steps"]), self.kernel.outcomes):
            states.append(self.kernel.moved(states[-1], decision, public))
        return np.array(states)

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Array:
        """What was published, recomputed from seed and decisions."""
        return np.array([self.published(self.path(plan, stages, draw)) for draw in range(plan.draws)])

    def published(self, path: Array) -> Array:
        """The last state, or the mean of the second half; added up in the path's order."""
        if self.publish == "last":
            return np.asarray(path[-1])
        half = path[len(path) // 2 :]
        return np.asarray(np.cumsum(half, axis=0)[-1] / len(half))

    def public(self, plan: Plan, seed: bytes) -> PublicStep:
        source = PublicDirections(seed, len(plan.model.parameter_names))
        return PublicStep(plan.model, plan.parameters, plan.n, source)


@dataclass(frozen=True, eq=False, repr=False)
class ChainTarget(Private):
    """A chain with its records; what `PrivatePath` carries out."""

    plan: Plan
    kernel: Kernel
    records: ChainRecords

    @property
    def steps(self) -> int:
        return int(self.plan.parameters["steps"])

    def public(self, seed: bytes) -> PublicStep:
        found: PublicStep = self.plan.mechanism.public(self.plan, seed)
        return found

    def published(self, path: Array) -> Array:
        return np.asarray(self.plan.mechanism.published(path))

    def stages(self, seeds: list[bytes], decisions: list[list[int]]) -> dict[str, list[float]] | None:
        """What a certificate holds of all draws; None where the path does not follow from decisions."""
        if not self.kernel.outcomes:
            return None
        words = [word for one in decisions for word in packed(one, self.kernel.outcomes)]
        return {"seed": [word for seed in seeds for word in seed_words(seed)], "decisions": words}


def repeated(promise: Promise, times: int) -> Promise:
    """``times`` adaptive steps that each keep ``promise``, in its own currency: ε, ρ, μ² and Rényi curves add up."""
    match promise:
        case GaussianDP(mu=mu):
            return GaussianDP(root_up(Fraction(mu) ** 2 * times))
        case ZCDP(rho=rho):
            return ZCDP(fraction_up(Fraction(rho) * times))
        case PureDP():
            return PureDP(fraction_up(Fraction(promise.stated_epsilon) * times))
        case RenyiDP(curve=curve, below=below):
            return RenyiDP(add_curves([(curve, times)]), below)
    raise WrongCall(
        f"A step that promises {promise} is not one that adds up in closed form. Use RenyiDP, ZCDP or GaussianDP."
    )


def _whole_middle(low: float, high: float) -> float:
    return (low + high) // 2.0
