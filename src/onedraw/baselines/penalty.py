"""The penalty algorithm: Metropolis–Hastings on a log-ratio with Gaussian noise, corrected by half the noise's variance.

    θ' = θ + R·e,  e public and uniform;     λ̃ = λ + σξ;     accept with probability min(1, exp(λ̃ − σ²/2))

S. Yıldırım, B. Ermiş, Stat. Comput. 29:947 (2019), after D. Ceperley, M. Dewing (1999). Noise and decision are whole numbers here:
a discrete Gaussian on the lattice of λ, σ²/2 on it too, and an exact coin, so that the posterior of the rounded losses is left
invariant as it stands. Historical: `BarkerPath` is the same walk without noise and with two thirds of the privacy loss.
Theorem, proof, and when anybody should still use it: penalty.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.errors import UnsupportedBudget, WrongCall
from onedraw.methods.private_chain.barker_path import Barker, outside
from onedraw.methods.private_chain.kernel import ChainRecords, Kernel, PublicStep, Secret
from onedraw.methods.private_chain.mechanism import PrivateChain
from onedraw.methods.stages import discrete_mu
from onedraw.models.sums.loss_changes import BITS
from onedraw.plans import Request
from onedraw.privacy import AveragedDirectionsCurve, GaussianDP, Promise, RenyiDP
from onedraw.privacy.numbers import fraction_up, positive

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases
    from onedraw.plans import Plan

FINEST = 2.0**-15
"""σ is a multiple of it, so that σ²/2 is one of 2^−32, the lattice of λ."""

BEST = 78027 * FINEST
"""σ = 2.3812, where σ²·2Φ(−σ/2) is largest: the least ρ for a relaxation time."""

LEAST_NOISE, LARGEST_NOISE = 2.0**-6, 2.0**10
"""Of σ: below, the discrete law is not booked for; above, no move would ever be made."""

DIRECTIONS = ("averaged", "worst")

SOURCE = "the penalty algorithm (Yıldırım, Ermiş 2019) shows T log-ratios with Gaussian noise σ; "
THEOREMS = {
    "averaged": SOURCE
    + "averaged over uniform public directions D_α ≤ log ₁F₁(½; d/2; α(α−1)s²/(2σ²))/(α−1) each, which add up",
    "worst": SOURCE + "each is GaussianDP(s/σ), together GaussianDP((s/σ)√T) (arXiv:1905.02383)",
}


def acceptance(log_ratio: Any, noise: float) -> Any:
    """a(λ) = Φ(λ/σ − σ/2) + e^λ·Φ(−λ/σ − σ/2); it has a(λ) = e^λ·a(−λ)."""
    scaled = np.asarray(log_ratio, dtype=np.float64) / noise
    return special.ndtr(scaled - noise / 2.0) + np.exp(log_ratio + special.log_ndtr(-scaled - noise / 2.0))


def on_lattice(noise: float, name: str = "the noise σ") -> float:
    """σ rounded to a multiple of 2^−15."""
    found = round(positive(name, noise) / FINEST) * FINEST
    if not LEAST_NOISE <= found <= LARGEST_NOISE:
        raise WrongCall(
            f"{name} lies in [{LEAST_NOISE:g}, {LARGEST_NOISE:g}], but {noise:.6g} was given. Try {BEST:.5g}."
        )
    return found


def accepts_with_penalty(cost: int, noise: float, secret: Secret) -> bool:
    """Whether a move of log-ratio −cost·2^−b is accepted: noise on the log-ratio, less σ²/2, then an exact coin."""
    noisy = cost + int(secret.noise(np.array([noise * 2.0**BITS]))[0])
    behind = noisy + int(Fraction(noise) ** 2 * 2 ** (BITS - 1))
    return behind <= 0 or secret.coin(behind, BITS)


@dataclass(frozen=True)
class PenaltyTest(Kernel):
    """``walk`` proposes and adds up; the decision is by ``noise`` σ. ``directions``: what the promise counts."""

    title: ClassVar[str] = "penalty algorithm"
    whole_sums: ClassVar[bool] = True
    noisy: ClassVar[bool] = True
    enforced: ClassVar[tuple[str, ...]] = (
        *Barker.enforced,
        "noise on a log-ratio is a discrete Gaussian on its lattice, fresh at every step, and σ²/2 lies on the lattice too",
    )

    walk: Barker
    noise: float = BEST
    directions: str = "averaged"

    @property
    def theorem(self) -> str:  # type: ignore[override]  # of the directions that are counted
        return THEOREMS[self.directions]

    def check(self, request: Request) -> None:
        self.walk.check_model(request.model)
        if self.directions == "averaged":
            self.walk.check_budget(request.budget)
        elif not request.budget.allows(GaussianDP):
            raise UnsupportedBudget(
                f"The penalty algorithm cannot keep {request.budget}: Gaussian noise always leaves some δ. Use ApproxDP, GaussianDP "
                "or ZCDP."
            )

    def check_room(self, model: Any, numbers: Mapping[str, float], n: int) -> None:
        self.walk.check_room(model, numbers, n)

    def check_steps(self, model: Any, numbers: Mapping[str, float], n: int) -> None:
        self.walk.check_steps(model, numbers, n)

    def numbers(self, model: Any, weight: float, n: int) -> dict[str, float]:
        return {**self.walk.numbers(model, weight, n), "noise": self.noise}

    def promise(self, model: Any, numbers: Mapping[str, float], n: int, *, records_per_person: int = 1) -> Promise:
        curve = self.walk.promise(model, numbers, n, records_per_person=records_per_person).curve
        assert isinstance(curve, AveragedDirectionsCurve)
        if self.directions == "averaged":
            return RenyiDP(
                AveragedDirectionsCurve(
                    curve.dimension, curve.reach, rows=curve.rows, noise=self.noise, rounding=curve.rounding
                )
            )
        worst = Fraction(curve.reach) + Fraction(curve.rounding)
        return GaussianDP(discrete_mu(fraction_up(worst / Fraction(self.noise))))

    def relaxations(self, model: Any, numbers: Mapping[str, float], n: int, steps: int) -> float:
        """nwλτ, τ = T·a(0)·R²/(2d): Barker's, whose a(0) is ½, times 2a(0)."""
        return self.walk.relaxations(model, numbers, n, steps) * 4.0 * float(special.ndtr(-self.noise / 2.0))

    def start(self, public: PublicStep) -> Array:
        return self.walk.start(public)

    def step(self, state: Array, records: ChainRecords, public: PublicStep, secret: Secret) -> tuple[Array, int]:
        proposal = self.walk.proposal(state, public)
        if outside(proposal, public.model):
            return state, 0
        taken = accepts_with_penalty(self.walk.cost(state, proposal, records, public), self.noise, secret)
        return (proposal, 1) if taken else (state, 0)

    def moved(self, state: Array, decision: int, public: PublicStep) -> Array:
        return self.walk.moved(state, decision, public)


@dataclass(frozen=True)
class Penalty(PrivateChain):
    """A path of noisy Metropolis decisions along public directions. ``test_noise`` is σ; ``directions="worst"`` counts every
    step along its worst direction, in Gaussian DP, as the paper does; ``length`` is k of the step R = k/(nwλD), planned where None."""

    title: ClassVar[str] = "penalty algorithm"

    length: Annotated[float | None, partial(positive, "the length")] = None
    test_noise: Annotated[float, partial(on_lattice, name="test_noise")] = BEST
    directions: str = "averaged"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.directions not in DIRECTIONS:
            raise WrongCall(f"directions is 'averaged' or 'worst', not {self.directions!r}.")

    @property
    def kernel(self) -> PenaltyTest:
        return PenaltyTest(Barker(self.length, None, self.effect, self.noise), self.test_noise, self.directions)

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.noisy_chains import penalty_case

        return penalty_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.noisy_chains import penalty_cases

        return {"baselines": penalty_cases}
