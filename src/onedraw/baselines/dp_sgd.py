"""DP-SGD: stochastic gradient descent on clipped gradients with Gaussian noise, accounted for replace-one and Poisson samples.

Abadi et al. (arXiv:1607.00133). Epochs, batch size, clip, learning rate and starting weights are public and chosen beforehand;
`calibrate` finds the noise multiplier σ. What T steps promise: `poisson_steps`; why the antipodal pair is the worst,
what is enforced, and when anybody should still use it: dp_sgd.md. The steps are in `sgd_steps`, Opacus in `opacus_training`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from onedraw import privacy
from onedraw.errors import ExactnessRefused, PromiseRefused, WrongCall
from onedraw.methods.base import Mechanism
from onedraw.models.row_model import Encoded
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import Assumption, Provenance
from onedraw.privacy.numbers import positive, positive_integer
from onedraw.private import Private
from onedraw.samplers.sampler import NUMBERS_A_SECOND, Sample, Sampler
from onedraw.samplers.variates import check_delta

from .opacus_training import check_opacus, lacking_for_opacus, record_gradients
from .poisson_steps import MOST_STEPS, THEOREM, PoissonSteps
from .sgd_steps import AT_ONCE, Numbers, Objective, Steps, by_jax, capacity, drawn_steps, objective_of, one_by_one

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

LARGEST = 1e6
"""Of a clip or a learning rate: a path of either cannot leave the floating-point numbers."""


@dataclass(frozen=True)
class DPSGD(Mechanism):
    """Training by noisy gradient steps on random batches; the noise is found from the budget.

    ``epochs`` passes over n records make ⌈epochs·n/batch_size⌉ steps. ``clip`` is the largest norm a record's gradient enters
    with, ``start`` the public seed of a network's starting weights (those of a linear predictor are 0). Defaults are those of
    Jewson et al. (arXiv:2307.05194) at ε = 1. Nothing may be tuned on the records; the prior is not used.
    """

    title: ClassVar[str] = "DP-SGD"
    noun: ClassVar[str] = "estimate"
    requires: ClassVar[str] = "dp-sgd"
    """The plan *is* an algorithm: only `Training` carries it out."""

    epochs: Annotated[int, partial(positive_integer, "epochs")] = 15
    batch_size: Annotated[int, partial(positive_integer, "batch_size")] = 100
    clip: Annotated[float, partial(_moderate, "clip")] = 1.0
    learning_rate: Annotated[float, partial(_moderate, "learning rate")] = 0.01
    start: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.start, bool) or not isinstance(self.start, int):
            raise WrongCall("start is the public seed of a network's starting weights, a whole number.")

    def heading(self, plan: Plan) -> str:
        return f"DP-SGD, {int(plan.parameters['steps']):,} steps"

    # ── from a budget to a noise multiplier, and back ──────────────────────────────────────────────────────

    def calibrate(self, request: Request) -> Plan:
        sampled = self._sampled(request)
        found = sampled.least_multiplier("fewer epochs or a smaller batch")
        return self._plan(sampled, found, sampled.stated(found))

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        sampled = self._sampled(request)
        multiplier, epsilon = (parameters.get(name, math.nan) for name in ("noise_multiplier", "epsilon"))
        sampled.check(multiplier, epsilon)
        plan = self._plan(sampled, multiplier, epsilon)
        if dict(parameters) != dict(plan.parameters):
            raise PromiseRefused("The steps and the rate stated are not those of these epochs, this batch size and n.")
        return plan

    def steps(self, n: int) -> int:
        """T: as many batches as ``epochs`` passes over n records hold."""
        return math.ceil(Fraction(self.epochs * n, self.batch_size))

    def _sampled(self, request: Request) -> PoissonSteps:
        """The steps; a model, a budget or a batch that cannot be trained with is refused."""
        objective_of(request.model)
        sampled = PoissonSteps(self.title, request, self.batch_size, self.steps(request.n))
        if sampled.all_steps > MOST_STEPS:
            raise WrongCall(
                f"{self.epochs:,} epochs in batches of {self.batch_size:,} are {sampled.all_steps:,} steps, "
                f"more than {MOST_STEPS:,}. Use fewer epochs or larger batches."
            )
        return sampled

    def _plan(self, sampled: PoissonSteps, multiplier: float, epsilon: float) -> Plan:
        request = sampled.request
        claims = (
            f"a record's gradient enters with norm at most {self.clip:g}; one that is no finite number counts as 0",
            sampled.coins,
            f"sums get noise of {multiplier:.6g} times that norm and are divided by {self.batch_size:,}, whoever is in them",
        )
        assumed = fixed_in_advance(request, "epochs, batch size, clip, learning rate, starting weights")
        assumptions = (*assumed, *(Assumption(claim, Provenance.ENFORCED) for claim in claims))
        numbers = {
            "noise_multiplier": multiplier, "epsilon": epsilon, "rate": sampled.rate, "steps": float(sampled.steps),
        }  # fmt: skip
        return Plan.of(self, request, numbers, sampled.promise(epsilon), THEOREM, assumptions)

    # ── what runs ──────────────────────────────────────────────────────────────────────────────────────────

    def target(self, plan: Plan, summary: Encoded) -> TrainingTarget:
        return TrainingTarget(plan, objective_of(plan.model), summary)

    def own_sampler(self) -> type[Training]:
        return Training

    def numbers(self, plan: Plan) -> Numbers:
        """Of a step. The noise is relative to one record's norm, and everything is divided by the public batch size."""
        return Numbers(self.clip, plan.parameters["noise_multiplier"] * self.clip, self.learning_rate / self.batch_size)

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.training import training_case

        return training_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.training import training_cases

        return {"baselines": training_cases}


def _moderate(name: str, given: float) -> float:
    value = positive(f"the {name}", given)
    if not 1.0 / LARGEST <= value <= LARGEST:
        raise WrongCall(f"The {name} lies in [{1.0 / LARGEST:g}, {LARGEST:g}], but {value:.6g} was given.")
    return value


@dataclass(frozen=True, eq=False, repr=False)
class TrainingTarget(Private):
    """The records a plan trains on, encoded: as private as they are."""

    plan: Plan
    objective: Objective
    encoded: Encoded

    def drawn(self, generator: Any, size: int) -> Steps:
        """Coins and noise of ``size`` trainings."""
        mechanism, steps = self.plan.mechanism, int(self.plan.parameters["steps"])
        assert isinstance(mechanism, DPSGD)
        return drawn_steps(
            generator, n=self.plan.n, batch_size=mechanism.batch_size, steps=steps * size, size=self.objective.size
        )


@dataclass(frozen=True)
class Training(Sampler):
    """The plan's own algorithm. ``engine="opacus"`` takes the gradients of records from Opacus, ``"jax"`` from compiled JAX: the
    same numbers to the last digits, with the same coins and noise."""

    randomness: ClassVar[str] = "numpy"
    ENGINES: ClassVar[tuple[str, ...]] = ("opacus", "jax")

    engine: str = "opacus"

    def __post_init__(self) -> None:
        if self.engine not in self.ENGINES:
            raise WrongCall(f"The engine of a training is 'opacus' or 'jax', but {self.engine!r} was given.")

    @classmethod
    def chosen(cls, plan: Plan, accept: Any) -> tuple[Sampler, str]:
        steps = f"the plan's own algorithm: {int(plan.parameters['steps']):,} steps"
        if lacking_for_opacus():
            return cls("jax"), f"{steps}, gradients by JAX, because Opacus is not installed; the law is the same"
        return cls(), f"{steps}, gradients by Opacus"

    def check_installed(self) -> None:
        if self.engine == "opacus":
            check_opacus()

    def exactness(self, plan: Plan) -> privacy.Accounted:
        if not isinstance(plan.mechanism, DPSGD):
            raise ExactnessRefused("Training() carries out DPSGD, and this plan is another. Leave out sampler=.")
        variates = int(plan.parameters["steps"]) * len(plan.model.parameter_names) * plan.draws
        check_delta(plan, plan.guarantee.promise, variates, randomness=self.randomness)
        return privacy.Accounted(plan.guarantee.promise)

    def passes(self, plan: Plan) -> int:
        assert isinstance(plan.mechanism, DPSGD)
        return plan.mechanism.epochs * plan.draws

    def seconds(self, plan: Plan) -> float:
        steps = plan.parameters["steps"] * plan.draws
        return float(steps * 1e-3 + self.passes(plan) * plan.n * len(plan.model.parameter_names) / NUMBERS_A_SECOND)

    def seconds_each(self, plan: Plan) -> float:
        """Measured on small models: coins and a step of a batch."""
        mechanism, width = plan.mechanism, len(plan.model.parameter_names)
        assert isinstance(mechanism, DPSGD)
        return float(plan.parameters["steps"] * (1e-6 + 1e-8 * plan.n + 1e-8 * mechanism.batch_size * width))

    def run(self, target: TrainingTarget, randomness: Any, *, size: int = 1) -> Sample:
        """``size`` trainings, each with coins and noise of its own; nothing but the last weights is kept."""
        mechanism, objective = target.plan.mechanism, target.objective
        assert isinstance(mechanism, DPSGD)
        X, y, start = target.encoded.X, target.encoded.y, objective.start(mechanism.start)
        numbers, at_once = mechanism.numbers(target.plan), trainings_at_once(target.plan)
        if self.engine == "jax":
            sizes = [min(at_once, size - first) for first in range(0, size, at_once)]
            parts = [
                by_jax(objective, X, y, start, target.drawn(randomness, count).split(count), numbers) for count in sizes
            ]
            return Sample(np.concatenate(parts))
        gradients = record_gradients(objective)
        return Sample(np.array([
            one_by_one(gradients, X, y, start, target.drawn(randomness, 1), numbers) for _ in range(size)
        ]))  # fmt: skip


def trainings_at_once(plan: Plan) -> int:
    """As many as hold about `AT_ONCE` numbers: coins and rows of all steps, gradients of one."""
    mechanism, steps = plan.mechanism, int(plan.parameters["steps"])
    assert isinstance(mechanism, DPSGD)
    width, places = len(plan.model.parameter_names), capacity(plan.n, mechanism.batch_size)
    each = steps * (2 * places + width) + 4 * places * width
    return max(1, AT_ONCE // each)
