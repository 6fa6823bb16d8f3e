"""A chain that chooses among many proposals: K points and the state, all of one ball, one of them selected exactly.

    z uniform in the ball of radius r about θ;   θ_1 … θ_K uniform in the ball of radius r about z: public;
    the next state is θ_k with probability ∝ π(θ_k)·exp(−w Σ ℓ(θ_k, x_i)),  k = 0 … K, θ_0 = θ

H. Tjelmeland (2004), B. Calderhead (PNAS 2014). Given z all K + 1 points are exchangeable, so the posterior is left invariant; given
the layout a step is an exponential mechanism, BoundedRange(2wGr). More proposals save steps, not privacy.
Theorem, proof, and when anybody should still use it: multi_proposal.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.errors import WrongCall
from onedraw.methods.private_chain.barker_path import LATTICE_BITS, Barker, lattice_unit, outside, prior_cost
from onedraw.methods.private_chain.kernel import ChainRecords, Kernel, PublicStep, Secret, two_sources
from onedraw.methods.private_chain.mechanism import PrivateChain
from onedraw.models.compute import jax
from onedraw.models.public_directions import PublicDirections, deviation
from onedraw.models.sums.loss_changes import BITS, LossChanges
from onedraw.plans import Plan, Request
from onedraw.privacy import BoundedRangeCurve, RenyiDP
from onedraw.privacy.numbers import fraction_up, positive, positive_integer, up

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

PROPOSALS, MOST_PROPOSALS = 7, 255

FURTHEST = 2**59
"""Of the prior's costs: beyond, a point has no chance that any arithmetic would show. The records' costs are within ±(2^60 + 2n), a fourth
of their room, so that all are spread over less than the 2^62 that a selection takes: no record can make it refuse."""

THEOREM = (
    "T selections among the points of a public layout (Tjelmeland 2004; Calderhead 2014): each an exponential mechanism whose "
    "log-ratios range over s = 2wGr, D_α ≤ αs²/8 (arXiv:2004.07223), and T adaptive steps add up (arXiv:1702.07476)"
)


@dataclass(frozen=True)
class ManyChanges(LossChanges):
    """Σ C(θ_k) − C(base) for each of several points, every record's change cut as in `LossChanges`."""

    def bound(self, theta: Any, proposals: Any, scale: Any, slope: Any, row_bound: Any) -> float:
        return max(LossChanges.bound(self, theta, one, scale, slope, row_bound) for one in np.atleast_2d(proposals))

    def block(
        self, X: Any, y: Any, weight: Any, theta: Any, proposals: Any, scale: Any, slope: Any, row_bound: Any
    ) -> Any:
        def change(proposal: Any) -> Any:
            return LossChanges.block(self, X, y, weight, theta, proposal, scale, slope, row_bound)[0]

        return jax.vmap(change)(proposals)


@dataclass(frozen=True)
class OneOfMany(Kernel):
    """``walk`` has the step length 2r and the sums of costs; ``proposals`` is K."""

    title: ClassVar[str] = "multi-proposal chain"
    theorem: ClassVar[str] = THEOREM
    whole_sums: ClassVar[bool] = True
    enforced: ClassVar[tuple[str, ...]] = (
        two_sources("layouts", "selections"),
        "a record's losses, less its loss at the middle of the layout, are whole numbers, cut to what its Lipschitz bound allows",
    )

    walk: Barker
    proposals: int = PROPOSALS

    @property
    def outcomes(self) -> int:  # type: ignore[override]  # of this many proposals
        return self.proposals + 1

    def check(self, request: Request) -> None:
        self.walk.check(request)

    def check_room(self, model: Any, numbers: Mapping[str, float], n: int) -> None:
        self.walk.check_room(model, numbers, n)

    def check_steps(self, model: Any, numbers: Mapping[str, float], n: int) -> None:
        self.walk.check_steps(model, numbers, n)

    def numbers(self, model: Any, weight: float, n: int) -> dict[str, float]:
        found = self.walk.numbers(model, weight, n)
        return {**found, "ball": found["step_length"] / 2.0, "proposals": float(self.proposals)}

    def promise(self, model: Any, numbers: Mapping[str, float], n: int, *, records_per_person: int = 1) -> RenyiDP:
        """Each of two points is at most r from the middle, as far as rounding goes; so is a record's change of either."""
        loss, weight, ball = self.walk.loss(model), Fraction(numbers["weight"]), Fraction(numbers["ball"])
        off = Fraction(deviation(loss.dimension + 2) + 2.0 ** (1 - LATTICE_BITS) * loss.dimension**0.5)
        reach = 4 * weight * Fraction(loss.lipschitz) * ball * (1 + off) + Fraction(8, 2**BITS)
        return RenyiDP(BoundedRangeCurve(fraction_up(reach * records_per_person)))

    def relaxations(self, model: Any, numbers: Mapping[str, float], n: int, steps: int) -> float:
        """nwλτ, τ = T·r²·K/((d + 2)(K + 1))."""
        rate, count = n * numbers["weight"] * numbers["curvature"], self.proposals
        time = steps * numbers["ball"] ** 2 * count / ((self.walk.loss(model).dimension + 2.0) * (count + 1.0))
        return float(rate * time)

    def start(self, public: PublicStep) -> Array:
        return self.walk.start(public)

    def layout(self, state: Array, public: PublicStep) -> tuple[Array, Array]:
        """(z, the K + 1 points, the state first), on the lattice. The first d of d + 2 coordinates of a point of a sphere are a
        uniform point of a ball; a move and its opposite are equally likely."""
        unit, size = lattice_unit(public.numbers), len(state)
        moves = public.directions(self.proposals + 1)[:, :size] * public.numbers["ball"]
        moves = np.rint(moves / unit) * unit
        middle = state + moves[0]
        return middle, np.concatenate([state[None], middle + moves[1:]])

    def step(self, state: Array, records: ChainRecords, public: PublicStep, secret: Secret) -> tuple[Array, int]:
        middle, points = self.layout(state, public)
        inside = [index for index, point in enumerate(points) if not outside(point, public.model)]
        chosen = inside[secret.select(self.costs(middle, points[inside], records, public), BITS)]
        return points[chosen], chosen

    def moved(self, state: Array, decision: int, public: PublicStep) -> Array:
        return np.asarray(self.layout(state, public)[1][decision])

    def costs(self, middle: Array, points: Array, records: ChainRecords, public: PublicStep) -> Integers:
        """Whole numbers that only differences count of. The middle is brought into the prior's ball, where the loss has its
        bound: no point of the ball is further from it then."""
        loss, model, radius = self.walk.loss(public.model), public.model, public.model.prior.radius
        if radius is not None:
            middle = middle * min(1.0, radius / max(float(np.linalg.norm(middle)), 1e-300))
        scale = public.numbers["weight"] * 2.0**BITS
        asked = (middle, points, scale, up(scale * loss.slope), loss.row_bound)
        changes = records.sum(ManyChanges(loss.loss, loss.rows), *asked)
        prior = [prior_cost(model, point) - prior_cost(model, points[0]) for point in points]
        return np.asarray(changes + np.array([max(min(one, FURTHEST), -FURTHEST) for one in prior]), dtype=np.int64)


@dataclass(frozen=True)
class MultiProposal(PrivateChain):
    """A path of selections among ``proposals`` public points and the state. ``length`` is k of 2r = k/(nwλD), planned where
    None."""

    title: ClassVar[str] = "multi-proposal chain"

    length: Annotated[float | None, partial(positive, "the length")] = None
    proposals: Annotated[int, partial(positive_integer, "proposals")] = PROPOSALS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.proposals > MOST_PROPOSALS:
            raise WrongCall(
                f"proposals is at most {MOST_PROPOSALS}, but {self.proposals} was given: more save no privacy."
            )

    @property
    def kernel(self) -> OneOfMany:
        return OneOfMany(Barker(self.length, None, self.effect, self.noise), self.proposals)

    def public(self, plan: Plan, seed: bytes) -> PublicStep:
        """Directions in two dimensions more than there are coefficients."""
        source = PublicDirections(seed, len(plan.model.parameter_names) + 2)
        return PublicStep(plan.model, plan.parameters, plan.n, source)

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.noisy_chains import layout_case

        return layout_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.noisy_chains import layout_cases

        return {"baselines": layout_cases}
