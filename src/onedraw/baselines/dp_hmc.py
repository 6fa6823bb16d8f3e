"""DP-HMC: Hamiltonian trajectories along noisy gradients, and a private test of where they end.

    p ~ N(0, I) public; L leapfrogs of size η along ∇U + σ_g·ξ, ξ fresh at each of L + 1 positions;
    λ = U(θ) − U(θ') + ½‖p‖² − ½‖p'‖², never beyond ‖θ' − θ‖ ≤ R;  then the penalty test, or Barker's

O. Räisä, A. Koskela, A. Honkela, arXiv:2106.09376. Gradients and losses are sums of whole numbers, noise on them a discrete
Gaussian, decisions exact. Directions depend on the records, so every step is counted at its worst. Historical: no regime is known in which
it wins. Theorem, proof, and when anybody should still use it: dp_hmc.md.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy import special

from onedraw.arrays import Array, Integers
from onedraw.errors import ExactnessRefused, PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods.convex_bounds import bounds_of
from onedraw.methods.private_chain.barker_path import Barker, outside, prior_cost
from onedraw.methods.private_chain.kernel import ChainRecords, Kernel, PublicStep, Secret, two_sources
from onedraw.methods.private_chain.mechanism import ChainTarget, PrivateChain
from onedraw.methods.stages import LARGEST_KAPPA, MOST_STEPS, UNLIKE, discrete_mu
from onedraw.models.compute import jnp
from onedraw.models.public_directions import PublicDirections
from onedraw.models.sums.gradient_sums import GradientSums, LatticeRows, RowLattice, rounding, row_lattice, steps_of
from onedraw.models.sums.loss_changes import BITS, LossChanges
from onedraw.plans import Plan, Request
from onedraw.privacy import ZCDP, GaussianDP, Promise
from onedraw.privacy.numbers import fraction_up, positive, positive_integer, root_up, up
from onedraw.samplers.numpy_chacha import SeededChaCha

from .penalty import BEST, accepts_with_penalty, on_lattice

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

TESTS = ("penalty", "barker")

BARKER_KICK = 1.6
"""κ, the deviation that noisy gradients give to λ: within 3 % of the least cost of a relaxation time in any dimension."""

FURTHER = 1.0
"""R = t(√d + 1): the norm of d normal numbers is seldom larger."""

LEAPFROGS, MOST_LEAPFROGS = 10, 1000

SLACK = 1 + Fraction(1, 2**30)
"""On R and on noise: what double precision may be off in a norm, or in a deviation."""

SOURCE = "DP-HMC (arXiv:2106.09376): T·(L+1) gradients with Gaussian noise, each GaussianDP(wG/σ_g), and T "
THEOREMS = {
    "penalty": SOURCE + "log-ratios with noise σ: GaussianDP(μ), μ² = T·[(L+1)(wG/σ_g)² + (s/σ)²] (arXiv:1905.02383)",
    "barker": SOURCE + "Barker tests of range s: ZCDP(T·[(L+1)(wG/σ_g)²/2 + s²/8]) (arXiv:1605.02065, 2004.07223)",
}


class PublicMomenta(PublicDirections):
    """Standard normal vectors in the place of directions, from the public seed: NumPy's, on ChaCha20 under a key of its own."""

    def __init__(self, seed: bytes, dimension: int) -> None:
        super().__init__(seed, dimension)
        key = hashlib.sha256(b"onedraw public momenta" + seed).digest()
        self._normal = Generator(SeededChaCha(key=int.from_bytes(key, "little")))

    def direction(self) -> Array:
        return self._normal.standard_normal(self.dimension)


@dataclass(frozen=True, eq=False, repr=False)
class GradientRecords(ChainRecords):
    """The records for gradients too, on the lattice of these."""

    kernel: Any = None
    lattice: RowLattice | None = None

    @cached_property
    def _rows(self) -> Any:
        assert self.lattice is not None
        return self.encoded.records.read_as(LatticeRows(self.lattice))

    def gradient(self, theta: Array) -> Integers:
        """Σ∇ℓ(θ, x_i) in whole steps of the lattice."""
        assert self.lattice is not None
        return np.asarray(self._rows.sum(GradientSums(self.kernel, self.lattice), theta))


@dataclass(frozen=True)
class ClippedChanges(LossChanges):
    """As published: every record's change cut to ±b‖θ' − θ‖, ``slope`` being b. What is left is no difference of potentials."""

    def bound(self, theta: Any, proposal: Any, scale: Any, slope: Any, row_bound: Any) -> float:
        return LossChanges.bound(self, theta, proposal, scale, slope, 1.0)

    def block(
        self, X: Any, y: Any, weight: Any, theta: Any, proposal: Any, scale: Any, slope: Any, row_bound: Any
    ) -> Any:
        largest = jnp.ceil(slope * jnp.sqrt(((proposal - theta) ** 2).sum()))
        change = self._costs(proposal, X, y, scale) - self._costs(theta, X, y, scale)
        change = jnp.where(jnp.isnan(change), 0.0, jnp.clip(change, -largest, largest))
        return (change * weight).sum(keepdims=True)


@dataclass(frozen=True)
class NoisyLeapfrog(Kernel):
    """``walk`` plans the length and adds up losses; ``kick`` is κ; ``clip`` the published bound b on a record's ratio."""

    title: ClassVar[str] = "DP-HMC"
    outcomes: ClassVar[int] = 0
    whole_sums: ClassVar[bool] = True
    noisy: ClassVar[bool] = True
    enforced: ClassVar[tuple[str, ...]] = (
        two_sources("momenta", "noise and decisions"),
        "gradients and changes of loss are sums of whole numbers, noise on gradients is fresh at every position: rounding counted",
        "a trajectory that ends further away than the longest move counted is rejected",
    )

    walk: Barker
    leapfrogs: int = LEAPFROGS
    test: str = "penalty"
    kick: float | None = None
    test_noise: float | None = None
    clip: float | None = None

    @property
    def theorem(self) -> str:  # type: ignore[override]  # of the test that is made
        return THEOREMS[self.test]

    @property
    def invariant(self) -> str:  # type: ignore[override]  # lost where ratios are clipped
        return "exact" if self.clip is None else "unknown"

    @property
    def passes(self) -> int:  # type: ignore[override]  # gradients at every position, and the losses at both ends
        return self.leapfrogs + 2

    def check(self, request: Request) -> None:
        self.walk.check_model(request.model)
        kind, budget = (GaussianDP, request.budget) if self.test == "penalty" else (ZCDP, request.budget)
        if not kind(1e-290).implies(budget):
            raise UnsupportedBudget(
                f"DP-HMC with the {self.test} test cannot keep {budget}: Gaussian noise always leaves some δ. Use ApproxDP, or "
                f"{kind.__name__}."
            )
        if row_lattice(request.model, request.n) is None:
            raise UnsupportedBudget(
                f"The gradient of {type(request.model).__name__} has no lattice of whole numbers, as a loss of one's own has none. "
                "Use Logistic, Softmax, HuberRegression or another loss of linear predictors."
            )

    def check_room(self, model: Any, numbers: Mapping[str, float], n: int) -> None:
        self.walk.check_room(model, {**numbers, "step_length": numbers["longest"]}, n)
        if self.clip is not None:
            steepest, loss = up(numbers["weight"] * 2.0**BITS * self.clip), self.walk.loss(model)
            ClippedChanges(loss.loss, loss.rows).check(n, numbers["longest"], steepest, loss.row_bound)
        steps = self.deviations(model, numbers, n)
        # drawn alone and then added: a fourth of the room, so that noise never ends at the largest whole number
        if not (float(steps.max()) < MOST_STEPS / 4 and UNLIKE * len(steps) / float(steps.min()) ** 2 <= LARGEST_KAPPA):
            raise ExactnessRefused(
                f"Noise of {steps.min():.3g} to {steps.max():.3g} lattice steps on a gradient is outside what whole numbers are "
                "booked for. Use another kick=…, weight=… or leapfrogs=…."
            )

    # ── public numbers ──

    def numbers(self, model: Any, weight: float, n: int) -> dict[str, float]:
        """Trajectories of time t = k/(nwλD), no longer than 1/√(nwλ), nor than a quarter of a turn in the prior's narrowest direction:
        further they would turn back, and leapfrogs of twice the width leave it for ever."""
        found = self.walk.numbers(model, weight, n)
        rate, size = n * weight * found["curvature"], self.walk.loss(model).dimension
        narrowest = 1.0 / math.sqrt(rate + float(model.prior.precision(model.dimension).max()))
        time = min(found["step_length"], 1.0 / math.sqrt(rate), math.pi / 2.0 * narrowest)
        longest = time * (math.sqrt(size) + FURTHER)
        kick, test_noise = self.levels(size)
        deviation = kick * self.leapfrogs / (time * math.sqrt(size * (self.leapfrogs - 0.5)))
        return {
            "weight": weight, "leapfrogs": float(self.leapfrogs), "step_size": time / self.leapfrogs, "longest": longest,
            "gradient_noise": deviation, "gradient_difference": bounds_of(model).gradient_difference,
            "rounding": rounding(model, n), "curvature": found["curvature"], "lipschitz": found["lipschitz"],
            "reach": fraction_up(2 * Fraction(weight) * Fraction(self._slope(model)) * Fraction(longest)),
            **({"test_noise": test_noise} if self.test == "penalty" else {}),
        }  # fmt: skip

    def levels(self, size: int) -> tuple[float, float]:
        """(κ, σ) that cost least where both together are the best noise of a penalty test: (L+1)/σ_g² goes as 1/κ², the
        test's part as q/σ², q = R²/(dt²)."""
        share = math.sqrt((math.sqrt(size) + FURTHER) ** 2 / size)
        kick = BEST / math.sqrt(1.0 + share) if self.test == "penalty" else BARKER_KICK
        return self.kick or kick, self.test_noise or on_lattice(kick * math.sqrt(share))

    def promise(self, model: Any, numbers: Mapping[str, float], n: int, *, records_per_person: int = 1) -> Promise:
        """Of L + 1 noisy gradients and a test."""
        weight, many = Fraction(numbers["weight"]), records_per_person
        # the model's own bounds: those stated in a certificate may differ in their last digits
        apart = Fraction(bounds_of(model).gradient_difference) + Fraction(rounding(model, n))
        gradient = fraction_up(weight * apart * many * SLACK / Fraction(numbers["gradient_noise"]))
        moved = 2 * weight * Fraction(self._slope(model)) * Fraction(numbers["longest"]) * SLACK + Fraction(4, 2**BITS)
        if self.test == "penalty":
            test = fraction_up(moved * many / Fraction(numbers["test_noise"]))
            return GaussianDP(step_mu(self.leapfrogs, discrete_mu(gradient), discrete_mu(test)))
        return ZCDP(fraction_up((self.leapfrogs + 1) * Fraction(gradient) ** 2 / 2 + (moved * many) ** 2 / 8))

    def relaxations(self, model: Any, numbers: Mapping[str, float], n: int, steps: int) -> float:
        """nwλ·T·A·t²/2: A the share of trajectories that are accepted where they are short, and not cut off by R."""
        size, time = self.walk.loss(model).dimension, numbers["step_size"] * self.leapfrogs
        near = float(special.chdtr(size, (math.sqrt(size) + FURTHER) ** 2))
        rate = n * numbers["weight"] * numbers["curvature"]
        return rate * steps * near * self.accepted(size) * time**2 / 2.0

    def accepted(self, size: int) -> float:
        """A: λ is N(−κ²/2, κ²) for short trajectories."""
        kick, noise = self.levels(size)
        if self.test == "penalty":
            return 2.0 * float(special.ndtr(-0.5 * math.hypot(kick, noise)))
        places, masses = np.polynomial.hermite_e.hermegauss(80)
        return float(masses @ special.expit(kick * places - kick**2 / 2.0) / masses.sum())

    def deviations(self, model: Any, numbers: Mapping[str, float], n: int) -> Array:
        """Of the noise on a gradient's sums, in whole steps of each entry."""
        lattice = row_lattice(model, n)
        assert lattice is not None  # checked
        return np.asarray(numbers["gradient_noise"] / (numbers["weight"] * steps_of(lattice)))

    def _slope(self, model: Any) -> float:
        """By how much one record's loss changes for a move of length 1, at most."""
        return self.walk.loss(model).lipschitz if self.clip is None else self.clip

    # ── a step ──

    def start(self, public: PublicStep) -> Array:
        return np.asarray(public.model.prior.location(public.model.dimension), dtype=np.float64)

    def step(self, state: Array, records: ChainRecords, public: PublicStep, secret: Secret) -> tuple[Array, int]:
        momentum = public.direction()
        proposal, last = self.trajectory(state, momentum, records, public, secret)
        if not float(np.linalg.norm(proposal - state)) <= public.numbers["longest"] or outside(proposal, public.model):
            return state, 0
        cost = self.cost(state, proposal, records, public) + kinetic_cost(last) - kinetic_cost(momentum)
        taken = self.decide(cost, public, secret)
        return (proposal, 1) if taken else (state, 0)

    def decide(self, cost: int, public: PublicStep, secret: Secret) -> bool:
        if self.test == "barker":
            return secret.accepts(cost, BITS)
        return accepts_with_penalty(cost, public.numbers["test_noise"], secret)

    def trajectory(
        self, state: Array, momentum: Array, records: Any, public: PublicStep, secret: Secret
    ) -> tuple[Array, Array]:
        """(θ', p'): L leapfrogs. A position's two half kicks have the same noise, and no noise is kept for another step."""
        size = public.numbers["step_size"]
        kick = self.gradient(state, records, public, secret)
        for _ in range(self.leapfrogs):
            momentum = momentum - size / 2.0 * kick
            state = state + size * momentum
            kick = self.gradient(state, records, public, secret)
            momentum = momentum - size / 2.0 * kick
        return state, momentum

    def gradient(self, theta: Array, records: Any, public: PublicStep, secret: Secret) -> Array:
        """∇U(θ) with noise on its whole sums; the prior's part is public."""
        model, numbers = public.model, public.numbers
        lattice = row_lattice(model, public.n)
        assert lattice is not None  # checked
        total = records.gradient(theta) + secret.noise(self.deviations(model, numbers, public.n))
        away = theta - model.prior.location(model.dimension)
        return np.asarray(
            numbers["weight"] * (total * steps_of(lattice)) + model.prior.precision(model.dimension) * away
        )

    def cost(self, state: Array, proposal: Array, records: ChainRecords, public: PublicStep) -> int:
        """2^b·(U(θ') − U(θ)), a whole number."""
        if self.clip is None:
            return self.walk.cost(state, proposal, records, public)
        loss, model, scale = self.walk.loss(public.model), public.model, public.numbers["weight"] * 2.0**BITS
        asked = (state, proposal, scale, up(scale * self.clip), loss.row_bound)
        change = int(records.sum(ClippedChanges(loss.loss, loss.rows), *asked)[0])
        return change + prior_cost(model, proposal) - prior_cost(model, state)


@dataclass(frozen=True)
class DPHMC(PrivateChain):
    """A path of Hamiltonian trajectories along noisy gradients, each tested privately. ``kick`` κ and ``test_noise`` σ are
    public numbers (None: those that cost least); ``length`` is k of the trajectory's time k/(nwλD), planned
    where None.

    ``clip_ratios`` cuts a record's log-ratio to ±b‖θ' − θ‖ as published, for which no stationary law is known: only with
    ``as_published=True``, and then never proven.
    """

    title: ClassVar[str] = "DP-HMC"

    leapfrogs: Annotated[int, partial(positive_integer, "leapfrogs")] = LEAPFROGS
    test: str = "penalty"
    kick: Annotated[float | None, partial(positive, "kick")] = None
    test_noise: Annotated[float | None, partial(on_lattice, name="test_noise")] = None
    length: Annotated[float | None, partial(positive, "length")] = None
    clip_ratios: Annotated[float | None, partial(positive, "clip_ratios")] = None
    as_published: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.leapfrogs > MOST_LEAPFROGS:
            raise WrongCall(
                f"leapfrogs is at most {MOST_LEAPFROGS}, each a pass over all records, not {self.leapfrogs}."
            )
        if self.test not in TESTS or (self.test == "barker" and self.test_noise is not None):
            raise WrongCall("test is 'penalty', with test_noise=… or without, or 'barker', which needs no noise.")
        self._check_published()

    def _check_published(self) -> None:
        if self.clip_ratios is not None and self.as_published is not True:
            raise PromiseRefused(
                f"A record's log-ratio cut to {self.clip_ratios:g}·‖θ' − θ‖ is no difference of potentials: no stationary law is known, "
                "neither the posterior nor another. Leave out clip_ratios, the proven bound never cuts; or pass as_published=True."
            )
        if self.as_published not in (True, False) or (self.as_published and self.clip_ratios is None):
            raise WrongCall(
                "as_published=True is the published cut of ratios and needs its bound. Pass clip_ratios=… too."
            )

    @property
    def kernel(self) -> NoisyLeapfrog:
        walk = Barker(self.length, None, self.effect, self.noise)
        return NoisyLeapfrog(walk, self.leapfrogs, self.test, self.kick, self.test_noise, self.clip_ratios)

    def target(self, plan: Plan, summary: Any) -> ChainTarget:
        lattice = row_lattice(plan.model, plan.n)
        return ChainTarget(plan, self.kernel, GradientRecords(summary, plan.model.kernel, lattice))

    def public(self, plan: Plan, seed: bytes) -> PublicStep:
        """Momenta in the place of directions."""
        return PublicStep(plan.model, plan.parameters, plan.n, PublicMomenta(seed, len(plan.model.parameter_names)))

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.noisy_chains import leapfrog_case

        return leapfrog_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.noisy_chains import leapfrog_cases

        return {"baselines": leapfrog_cases}


def step_mu(leapfrogs: int, gradient: float, test: float) -> float:
    """μ of one step: √((L+1)μ_g² + μ_test²), rounded up."""
    return root_up((leapfrogs + 1) * Fraction(gradient) ** 2 + Fraction(test) ** 2)


def kinetic_cost(momentum: Array) -> int:
    """⌊2^b·½‖p‖²⌉."""
    energy: int = math.floor(Fraction(0.5 * float(momentum @ momentum)) * 2**BITS + Fraction(1, 2))
    return energy
