"""Barker's test along random public directions: a path of T exact private bits, for losses with a kink too.

    θ' = θ + R·e_t, e_t public and uniform;   accept with probability exactly 1/(1 + exp(C·2^−b)),
    C = Σ_i [⌊2^b·w·ℓ(θ', z_i)⌉ − ⌊2^b·w·ℓ(θ, z_i)⌉] + ⌊−2^b·log π(θ')⌉ − ⌊−2^b·log π(θ)⌉

The bit is the exponential mechanism on two points (Barker 1965; private MCMC by it, with noise added: Heikkilä et al.,
arXiv:1901.10275), and averaged over the direction it costs d times less than along the worst one
(privacy/averaged_directions.md). Everything that decides is a whole number, θ included: it moves on a public lattice,
so that a step back is exactly a step forward and the chain leaves π·exp(−wΣℓ) of the rounded losses unchanged, exactly.
Seed and bits are published, and with them the whole path. Statement, calibration and limits: proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import PromiseRefused, UnsupportedBudget
from onedraw.methods.calibration import known_curvature
from onedraw.methods.convex_bounds import pure_offer
from onedraw.methods.draws.expected import expected_error_of_draws
from onedraw.methods.expectation import UNKNOWN, Expectation
from onedraw.methods.private_chain.kernel import ChainRecords, Kernel, PublicStep, Secret, two_sources
from onedraw.methods.private_chain.mechanism import PrivateChain
from onedraw.methods.private_chain.path_loss import PathLoss, path_loss
from onedraw.models.design import EFFECT, Design
from onedraw.models.public_directions import deviation
from onedraw.models.sums.loss_changes import BITS, LossChanges
from onedraw.plans import Plan, Request
from onedraw.privacy import ZCDP, Promise, RenyiDP
from onedraw.privacy.averaged_directions import AveragedDirectionsCurve
from onedraw.privacy.numbers import fraction_up, positive, up

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

LENGTH = 2.0
"""k: R = k/(nwλD). Longer steps cannot travel from the start to ‖θ‖ = D, shorter ones take more passes."""

LARGEST_REACH = 0.04
"""s of one decision, where k is planned: less curvature than this allows for gets shorter steps, not fewer of them."""

LONGEST_STEP = 1.0
"""R in widths of the posterior. At 1 a stationary path accepts 0.8 of the moves that short steps do, at 4 one in fifteen; the
formula for relaxation times takes all of them for granted."""

LATTICE_BITS = 30
"""θ moves in steps of 2^−30 of R, about: with a million of them every state is a float without rounding."""

THEOREM = (
    "Barker's test is the exponential mechanism on two points: D_α ≤ αs_e²/8 along a direction e (arXiv:2004.07223); "
    "averaged "
    "over a uniform public e at most log ₁F₁(½; d/2; α(α−1)s²/8)/(α−1), and T adaptive steps add up (arXiv:1702.07476)"
)


@dataclass(frozen=True)
class Barker(Kernel):
    """θ → θ + R·e or not, decided by Barker's test; ``length`` is k of R = k/(nwλD), None: 2, less where s would be
    large or R longer than the posterior is wide."""

    title: ClassVar[str] = "Barker's test"
    theorem: ClassVar[str] = THEOREM
    whole_sums: ClassVar[bool] = True
    constant_work: ClassVar[bool] = True
    enforced: ClassVar[tuple[str, ...]] = (
        two_sources("directions", "decisions"),
        "a record's change of loss is a whole number, cut to what its Lipschitz bound along the direction allows: "
        "rounding counted",
    )

    length: float | None = None
    beta: float | None = None
    effect: float | None = None
    noise: float | None = None

    def check(self, request: Request) -> None:
        self.check_budget(request.budget)
        self.check_model(request.model)

    def check_budget(self, budget: Promise) -> None:
        if budget.is_pure or not ZCDP(1e-290).implies(budget):
            offer = f" {pure_offer(budget)}" if budget.is_pure else ""
            raise UnsupportedBudget(
                f"A path of T decisions cannot keep {budget} well: along the worst direction its ε is that of all T "
                f"steps, and no μ follows. Use ApproxDP(epsilon, delta).{offer}"
            )

    def check_model(self, model: Any) -> None:
        known_curvature(model, self.loss(model).curvature)

    def numbers(self, model: Any, weight: float, n: int) -> dict[str, float]:
        loss = self.loss(model)
        assert loss.curvature is not None  # checked
        scale = n * loss.curvature * declared_norm(model, self.effect, self.noise)
        length = (self.length or min(LENGTH, LARGEST_REACH * scale / (2.0 * loss.lipschitz))) / (weight * scale)
        if self.length is None:
            length = min(length, LONGEST_STEP * posterior_width(model, n * weight * loss.curvature))
        return {
            "weight": weight, "step_length": length, "lipschitz": loss.lipschitz, "curvature": loss.curvature,
            "reach": fraction_up(2 * Fraction(weight) * Fraction(loss.lipschitz) * Fraction(length)),
        }  # fmt: skip

    def check_steps(self, model: Any, numbers: Mapping[str, float], n: int) -> None:
        """Refuse steps longer than the posterior is wide: nearly all of them would be declined."""
        width = posterior_width(model, n * numbers["weight"] * numbers["curvature"])
        if numbers["step_length"] > LONGEST_STEP * width * (1.0 + 1e-6):
            raise PromiseRefused(
                f"Steps of length {numbers['step_length']:.3g} are longer than the posterior is wide ({width:.3g} at weight "
                f"{numbers['weight']:.3g}): the path would move more rarely than its relaxation times count on, or never. Leave out "
                "length=, which is then planned."
            )

    def promise(self, model: Any, numbers: Mapping[str, float], n: int, *, records_per_person: int = 1) -> RenyiDP:
        """Lemma 1's curve. A person's k records move λ k times as far; so does what rounding adds."""
        loss, weight, length = self.loss(model), Fraction(numbers["weight"]), Fraction(numbers["step_length"])
        reach = 2 * weight * Fraction(loss.lipschitz) * length * records_per_person
        off = Fraction(deviation(loss.dimension) + 2.0**-LATTICE_BITS * math.sqrt(loss.dimension))
        rounding = reach * off + records_per_person * Fraction(4, 2**BITS)
        return RenyiDP(
            AveragedDirectionsCurve(loss.width, fraction_up(reach), rows=loss.rows, rounding=fraction_up(rounding))
        )

    def relaxations(self, model: Any, numbers: Mapping[str, float], n: int, steps: int) -> float:
        """nwλτ, τ = TR²/(4d) the time of the Langevin diffusion that short steps follow."""
        rate = n * numbers["weight"] * numbers["curvature"]
        return float(rate * steps * numbers["step_length"] ** 2 / (4.0 * self.loss(model).dimension))

    def start(self, public: PublicStep) -> Array:
        """The prior's mean, on the lattice."""
        unit = lattice_unit(public.numbers)
        return np.asarray(np.rint(public.model.prior.location(public.model.dimension) / unit) * unit)

    def proposal(self, state: Array, public: PublicStep) -> Array:
        """θ + R·e, its move rounded to the lattice; sums of lattice points this small are exact."""
        unit = lattice_unit(public.numbers)
        return np.asarray(state + np.rint(public.direction() * (public.numbers["step_length"] / unit)) * unit)

    def step(self, state: Array, records: ChainRecords, public: PublicStep, secret: Secret) -> tuple[Array, int]:
        proposal = self.proposal(state, public)
        # outside the prior's ball it is refused for everybody to see, but a pass is made at every step
        taken = secret.accepts(self.cost(state, proposal, records, public), BITS) and not outside(
            proposal, public.model
        )
        return (proposal, 1) if taken else (state, 0)

    def moved(self, state: Array, decision: int, public: PublicStep) -> Array:
        proposal = self.proposal(state, public)
        return proposal if decision else state

    def cost(self, state: Array, proposal: Array, records: ChainRecords, public: PublicStep) -> int:
        """C: whole numbers, of which each record's is bounded along this direction."""
        loss, weight = self.loss(public.model), public.numbers["weight"]
        scale = weight * 2.0**BITS
        asked = (state, proposal, scale, up(scale * loss.slope), loss.row_bound)
        change = int(records.sum(LossChanges(loss.loss, loss.rows), *asked)[0])
        return change + prior_cost(public.model, proposal) - prior_cost(public.model, state)

    def check_room(self, model: Any, numbers: Mapping[str, float], n: int) -> None:
        loss, scale = self.loss(model), numbers["weight"] * 2.0**BITS
        furthest, unit = float(np.abs(model.prior.location(model.dimension)).max()), lattice_unit(numbers)
        if not furthest / unit < 2.0**52:
            raise PromiseRefused(
                f"The prior's mean lies {furthest / unit:.3g} lattice steps away from 0, more than the 2^52 that are "
                "exact for steps of "
                f"length {numbers['step_length']:.3g}. Measure the coefficients from their prior mean."
            )
        LossChanges(loss.loss, loss.rows).check(n, 2.0 * numbers["step_length"], up(scale * loss.slope), loss.row_bound)

    def loss(self, model: Any) -> PathLoss:
        """What is publicly known of the model's loss."""
        return _known_loss(model, self.beta, self.effect, self.noise)


@dataclass(frozen=True)
class BarkerPath(PrivateChain):
    """T private decisions along public directions, for (ε, δ) and Rényi budgets: hinge, pinball and other losses of
    linear predictors with a Lipschitz bound, or with ``beta`` the β-divergence of two classes. ``length`` is k of the
    step R = k/(nwλD), planned where None."""

    title: ClassVar[str] = "path of private decisions"

    length: Annotated[float | None, partial(positive, "the length")] = None
    beta: Annotated[float | None, partial(positive, "the beta")] = None

    def diffusion_time(self, plan: Plan) -> float:
        """Return τ = TR²/(4d), of the Langevin diffusion that short steps follow."""
        numbers = plan.parameters
        return numbers["relaxations"] / (plan.n * numbers["weight"] * numbers["curvature"])

    def expected_error(self, plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
        """Return that of the diffusion which the last state follows, where the design knows its loss: one linear predictor, no kink."""
        known = self.beta is None and self.publish == "last"
        if not (known and "smoothness" in plan.model.bounds and plan.model.row_blocks == 1):
            return UNKNOWN
        return expected_error_of_draws(plan, effect=effect, noise=noise)

    @property
    def kernel(self) -> Barker:
        return Barker(self.length, self.beta, self.effect, self.noise)

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import step_case

        return step_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import audit_cases

        return audit_cases()


def outside(theta: Array, model: Any) -> bool:
    """Whether it lies outside the prior's ball, where there is one."""
    radius = model.prior.radius
    return radius is not None and not float((theta * theta).sum()) <= radius * radius


def declared_norm(model: Any, effect: float | None, noise: float | None) -> float:
    """D: the norm of coefficients whose predictor has the standard deviation ``effect`` in the public design."""
    size = effect or (noise if model.predicts == "number" else None) or EFFECT
    return size * math.sqrt(max(model.features.count, 1) / Design(model.features).squared_length)


def posterior_width(model: Any, curvature: float) -> float:
    """Return the standard deviation of a coordinate when the losses add `curvature` to the prior's mean precision, or that of the
    prior's ball where it is smaller: from public numbers alone."""
    size, radius = model.dimension, model.prior.radius
    width = 1.0 / math.sqrt(curvature + float(model.prior.precision(size).mean()))
    return width if radius is None else min(width, radius / math.sqrt(size + 2))


def lattice_unit(numbers: Mapping[str, float]) -> float:
    """The spacing of θ's lattice: a power of two."""
    return math.ldexp(1.0, math.frexp(numbers["step_length"])[1] - 1 - LATTICE_BITS)


def prior_cost(model: Any, theta: Array) -> int:
    """⌊−2^b·log π(θ)⌉ without its constant, a whole number of any size: exact up to the rounding of a float."""
    away = theta - model.prior.location(model.dimension)
    half = 0.5 * float((model.prior.precision(model.dimension) * away * away).sum())
    return int(Fraction(half) * 2**BITS)


@lru_cache(maxsize=64)
def _known_loss(model: Any, beta: float | None, effect: float | None, noise: float | None) -> PathLoss:
    return path_loss(model, beta=beta, effect=effect, noise=noise)
