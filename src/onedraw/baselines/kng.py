"""KNG: one of many public candidates is picked by how small the norm of the records' gradient is there.

Reimherr and Awan (arXiv:1905.09436), on a finite set: K candidates θ_k from the prior ν are drawn, and one is selected with
probability ∝ exp(−ε·N(θ_k)/(2Δ)), N(θ) = ‖Σ∇ℓ(θ, x_i) + ∇(−log π)(θ)‖, Δ = 2L what one record can move it by: the exponential
mechanism (McSherry and Talwar, FOCS 2007), in whole numbers throughout (`gradient_norms`). The error that privacy adds falls like
d/(nε), that of a draw like √(d/(nε)). It is no posterior draw. Statement, coverage and limits: kng.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy import special

from onedraw.arrays import Array, Integers
from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods import calibration
from onedraw.methods.base import Mechanism
from onedraw.methods.calibration import check_effect
from onedraw.methods.candidates.layout import FEWEST, MOST_ALONE, MOST_PAIRS, allowed
from onedraw.methods.candidates.loss import candidate_prior
from onedraw.methods.candidates.mechanism import FINEST, MOST_CANDIDATES, largest_range, promise_of_rounds
from onedraw.methods.convex_bounds import assumptions, bounds_of
from onedraw.models.convex.linear_model import LinearModel
from onedraw.models.design import EFFECT, NOISE, smallest_curvature
from onedraw.plans import Plan, Request
from onedraw.privacy import Assumption, Provenance
from onedraw.privacy.numbers import fraction_up, positive
from onedraw.private import Private

from .gradient_norms import LARGEST_STEPS, LEAST_STEPS, GradientNorms

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases
    from onedraw.methods.candidates.run import Selection

MOST_DIMENSIONS = 3
"""Candidates from the prior cover no more: their number grows like the power d of n."""

COVERED = 0.5
"""The coverage radius is at most this share of the error that is expected without it; half of that is planned for."""

AROUND = 4.0
"""Candidates within a coverage radius of the prior's centre."""

THEOREM = (
    "the exponential mechanism on public candidates by the norm of the gradient (McSherry and Talwar, FOCS 2007; KNG, "
    "arXiv:1905.09436): one record moves every whole score by at most 2V"
)


@dataclass(frozen=True)
class KNG(Mechanism):
    """Gradient-norm selection for up to three coefficients, in one round.

    ``count`` is the number of candidates (None: planned from public numbers). ``effect`` and ``noise`` declare the standard deviations of
    the predictor and of a response about it, as for `NoisyGradient`; wrong ones cost accuracy, never privacy.
    """

    title: ClassVar[str] = "gradient-norm selection"
    noun: ClassVar[str] = "estimate"
    whole_sums: ClassVar[bool] = True
    requires: ClassVar[str] = "candidates"
    """The plan *is* an algorithm, that of `methods.candidates.run`."""
    publish: ClassVar[str] = "mean"
    """The pick of its one round."""

    count: int | None = None
    effect: Annotated[float | None, partial(positive, "the effect")] = None
    noise: Annotated[float | None, partial(positive, "the noise")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count is not None and (type(self.count) is not int or not 1 <= self.count <= MOST_CANDIDATES):
            raise WrongCall(
                f"count must be a whole number from 1 to {MOST_CANDIDATES:,}, not {self.count!r}. Leave it out to have it planned."
            )
        check_effect(self.effect, "count=…")

    def heading(self, plan: Plan) -> str:
        return (
            f"{self.title}, not a posterior draw: one round of {int(plan.parameters['candidates']):,} public candidates"
        )

    def calibrate(self, request: Request) -> Plan:
        lipschitz, curvature = self._checked(request), self._curvature(request)
        largest, bits = _lattice(self._range(request))
        coverage = Coverage(request.model, request.n, lipschitz, curvature, largest, bits)
        count = coverage.planned(self.count)
        return self._plan(request, coverage, count, coverage.derived(count))

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        lipschitz, known = self._checked(request), self._curvature(request)
        curvature = parameters.get("curvature", math.nan)
        if not math.isclose(curvature, known, rel_tol=1e-6):
            raise PromiseRefused("The curvature stated is not that of the model's reference design at its effect.")
        largest = calibration.whole_number(parameters, "width", LEAST_STEPS, LARGEST_STEPS)
        bits = calibration.whole_number(parameters, "bits", 0, FINEST)
        count = calibration.whole_number(parameters, "candidates", 1, MOST_CANDIDATES)
        coverage = Coverage(request.model, request.n, lipschitz, curvature, largest, bits)
        if (largest, bits) != _lattice(self._range(request)):
            raise PromiseRefused("The steps and the lattice stated are not those that follow from the budget.")
        if not math.isclose(coverage.planned(self.count), count, rel_tol=1e-6, abs_tol=1.0):
            raise PromiseRefused("The number of candidates stated is not the one planned.")
        derived = coverage.derived(count)
        for name, value in derived.items():
            if not math.isclose(parameters.get(name, math.nan), value, rel_tol=1e-6):
                raise PromiseRefused(f"The {name} stated is not that of these candidates and the reference design.")
        plan = self._plan(request, coverage, count, {name: parameters[name] for name in derived})
        if dict(parameters) != dict(plan.parameters):
            raise PromiseRefused("The numbers stated are not those that follow from the model and the budget.")
        return plan

    def target(self, plan: Plan, summary: Any) -> NormTarget:
        numbers = plan.parameters
        norms = GradientNorms(plan.model, numbers["lipschitz"], int(numbers["width"]))
        return NormTarget(norms, summary, int(numbers["bits"]), int(numbers["candidates"]))

    def own_sampler(self) -> type[Selection]:
        from onedraw.methods.candidates.run import Selection  # which only a draw needs

        return Selection

    def _range(self, request: Request) -> Fraction:
        """4V·2^−b for one record and one draw."""
        calibration.check_selects(request)
        return largest_range(request.budget, 1, **_times(request))

    def _curvature(self, request: Request) -> float:
        found = smallest_curvature(request.model, self.effect or EFFECT, self.noise or NOISE)
        return calibration.known_curvature(request.model, found)

    def _checked(self, request: Request) -> float:
        """L; a model whose gradient's norm has no bound, or no meaning far from its minimum, is refused."""
        model = request.model
        if not isinstance(model, LinearModel):
            raise UnsupportedBudget(
                f"{type(model).__name__} has no convex loss of one linear predictor. Of a loss that redescends, as a β-divergence does, the "
                "gradient vanishes far away and the selection would go there. Use Logistic(loss='exp-linear')."
            )
        if model.dimension > MOST_DIMENSIONS:
            raise UnsupportedBudget(
                f"KNG has {model.dimension} coefficients to cover, and public candidates cover at most {MOST_DIMENSIONS}. Use fewer "
                "columns."
            )
        lipschitz = bounds_of(model).lipschitz
        assert lipschitz is not None  # of a loss of one predictor it is known wherever that of a difference is
        return lipschitz

    def _plan(self, request: Request, coverage: Coverage, count: int, derived: Mapping[str, float]) -> Plan:
        spent = Fraction(4 * coverage.largest, 2**coverage.bits)
        numbers = {
            "lipschitz": coverage.lipschitz, "width": float(coverage.largest), "bits": float(coverage.bits), "rounds": 1.0,
            "candidates": float(count), "epsilon_1": fraction_up(spent), "curvature": coverage.curvature, **derived,
        }  # fmt: skip
        claims = (
            "a record's gradient under a candidate is a vector of whole numbers of norm at most V, the width: it is 0 otherwise, so the "
            "promise does not rest on the loss or on its floating-point value",
            "candidates depend on public numbers only",
        )
        found = (*assumptions(request), *(Assumption(claim, Provenance.ENFORCED) for claim in claims))
        return Plan.of(
            self, request, numbers, promise_of_rounds([spent], request.budget, **_times(request)), THEOREM, found
        )

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.gradient_norms import norm_case

        return norm_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.gradient_norms import norm_cases

        return {"baselines": norm_cases}


def _times(request: Request) -> dict[str, int]:
    return {"records_per_person": request.records_per_person, "repetitions": request.draws}


def _lattice(largest: Fraction) -> tuple[int, int]:
    """(V, b): V = ⌊range·2^{b−2}⌋ on the finest lattice that it fits on."""
    bits = 0
    while bits < FINEST and largest * 2 ** (bits + 1) / 4 <= LARGEST_STEPS:
        bits += 1
    steps = min(LARGEST_STEPS, math.floor(largest * 2**bits / 4))
    if steps < LEAST_STEPS:
        raise PromiseRefused(
            f"A range of {float(largest):.3g} leaves a record {steps} steps of the finest lattice, fewer than {LEAST_STEPS}: rounding would "
            "drown the records. Use a larger budget or fewer draws."
        )
    return steps, bits


def private_error(dimension: int, scale: float, count_curvature: float) -> float:
    """√E‖ζ‖²/(nλ): ζ has a density ∝ exp(−‖ζ‖/scale), so that ‖ζ‖ is Gamma(d, scale); scale = 2Δ/ε."""
    return math.sqrt(dimension * (dimension + 1)) * scale / count_curvature


@dataclass(frozen=True)
class Coverage:
    """How near to one another candidates from the prior lie, and how near they should: public numbers of a reference design."""

    model: Any
    n: int
    lipschitz: float
    curvature: float
    largest: int
    bits: int

    @property
    def private_error(self) -> float:
        scale = math.ldexp(self.lipschitz / self.largest, self.bits)
        return private_error(self.model.dimension, scale, self.n * self.curvature)

    @property
    def error(self) -> float:
        """√E‖θ̃ − θ₀‖² were candidates everywhere: sampling, about d/(nλ), and privacy."""
        return math.sqrt(self.model.dimension / (self.n * self.curvature) + self.private_error**2)

    def radius(self, count: int) -> float:
        """Within which `AROUND` candidates are expected at the prior's centre."""
        return math.exp((math.log(AROUND / count) - self._log_share) / self.model.dimension)

    @property
    def _log_share(self) -> float:
        """log of the share of candidates in a small ball of radius 1 about the centre: density times volume."""
        prior, size = candidate_prior(self.model), int(self.model.dimension)
        volume = 0.5 * size * math.log(math.pi) - float(special.gammaln(0.5 * size + 1.0))
        return float(prior.log_drawn(prior.location[None, :])[0]) + volume

    def derived(self, count: int) -> dict[str, float]:
        """What a plan says of them."""
        return {"coverage_radius": self.radius(count), "private_error": self.private_error}

    def needed(self, share: float) -> float:
        """Candidates with which the coverage radius is this share of the error."""
        log_count = math.log(AROUND) - self._log_share - self.model.dimension * math.log(share * self.error)
        return math.exp(min(log_count, 600.0))

    def planned(self, count: int | None) -> int:
        """As many as half the allowed radius takes, or can be scored; refused where the allowed one is not reached."""
        most = min(MOST_ALONE, MOST_PAIRS / self.n)
        found = count or max(FEWEST, math.ceil(min(self.needed(0.5 * COVERED), most)))
        if not self.radius(found) <= COVERED * self.error:
            raise PromiseRefused(
                f"{found:,} candidates lie {self.radius(found):.3g} apart about the prior's centre, more than half of the error of "
                f"{self.error:.3g} that is expected without that: the pick would be the least bad of a few. Use a narrower prior, "
                f"count={math.ceil(self.needed(COVERED)):,} or more, or PerturbedMode(), which needs no candidates."
            )
        return found


@dataclass(frozen=True, eq=False, repr=False)
class NormTarget(Private):
    """One data set's selection problem, in one round. As private as the records: never printed or written."""

    norms: GradientNorms
    encoded: Any
    bits: int
    candidates: int
    rounds: ClassVar[int] = 1

    def propose(self, number: int, picks: list[Array], generator: Generator) -> tuple[Array, Integers]:
        """Candidates from the prior, which is their own base measure: no public costs."""
        prior = candidate_prior(self.norms.model)
        thetas = allowed(prior, self.candidates, lambda: prior.draw(generator, self.candidates))
        return thetas, np.zeros(len(thetas), dtype=np.int64)

    def costs(self, number: int, thetas: Array) -> Integers:
        """All that the records are asked: whole norms, which one of them moves by at most 2V."""
        return self.norms.scores(thetas, self.encoded)

    def publish(self, picks: list[Array]) -> list[Array]:
        return picks

    def probabilities(self, thetas: Array) -> Array:
        """The law of the pick, given its candidates: for audits."""
        return np.asarray(special.softmax(-np.ldexp(self.costs(0, thetas).astype(np.float64), -self.bits)))
