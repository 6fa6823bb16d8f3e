"""The finite mechanism: pick one of many public candidates, exactly; nothing converges and nothing is assumed.

Draw K candidates from a public law q and select θ_k with probability ∝ (π(θ_k)/q(θ_k))·exp(−w Σ ℓ(x_i, θ_k)). The
candidates do not depend on the records, so this *is* the exponential mechanism on a finite set (McSherry, Talwar,
FOCS 2007), whatever K; as K grows it tends to a draw from the posterior. In several rounds each looks around the
picks before it (mathematics.md §6, mathematics-2.md C).

A record's weighted loss is a whole number in [0, W_j] on a public lattice 2^−b, cut there if need be, and the
selection is exact on whole numbers: round j is BoundedRange(2·W_j·2^−b) given its candidates, and all rounds together
are PureDP(Σ 2·W_j·2^−b), in the arithmetic that really runs. Layout of the rounds: candidate_plan.py. What they
promise under other budgets: candidate_promise.py. Statement, preconditions and limits: candidates.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.models import NormalInverseGamma
from onedraw.models.candidates.scores import LARGEST_WIDTH
from onedraw.plans import Mechanism, Plan, Request, fixed_in_advance
from onedraw.privacy import Assumption, Guarantee, Neighbours, Promise, Provenance
from onedraw.privacy.rounding import fraction_up, text

from .beta_divergence import BetaDivergence
from .candidate_loss import Scoring, scoring
from .candidate_plan import Geometry, Layout, lay_out, shares
from .candidate_prior import candidate_prior
from .candidate_promise import check_budget, counts_epsilons, largest_range, promise_of_rounds
from .candidate_target import CandidateTarget
from .gibbs import Gibbs

PUBLISHED = {
    "mean": "the weighted mean of the picks",
    "corrected": "the weighted mean of the picks, corrected for the prior's repeated pull",
    "picks": "all picks",
}

FINEST = 40
"""b at most: the exact selection works on lattices from 1 to 2^−40."""

LEAST_WIDTH = 8
"""W_j at least: below, a loss rounded to the lattice is no longer the loss."""

MOST_CANDIDATES = 2**24

AT_THE_FLOOR = 0.05
"""1 − floor/σ² in the reference design, at most: there log σ² is no smooth function of its coordinate."""

THEOREM = (
    "the exponential mechanism on public candidates (McSherry and Talwar, FOCS 2007): each round selects exactly, by whole "
    "numbers of which one record moves each by at most W; adaptive rounds add up, as a pure ε or as the Rényi curves of "
    "bounded ranges, which hold for every layout of candidates"
)


@dataclass(frozen=True)
class Candidates(Mechanism):
    """Exact selection from public candidates, in one round or several; pure ε, and more under a budget with a δ or ρ.

    ``of`` says which loss selects: `BetaDivergence`, or ``Gibbs(rule="bounded")`` for a convex margin loss on a ball.
    ``count`` (candidates in a round) and ``rounds`` are planned where None. ``publish="mean"`` releases the weighted
    mean of the picks; ``"corrected"`` undoes the pull of the prior that several rounds repeat, which is better for large
    effects and worse for those the design expects; ``"picks"`` releases all of them, one draw for each round (calibrate
    with ``draws`` = rounds). All three cost the same.
    """

    title: ClassVar[str] = "selection from public candidates"
    requires: ClassVar[str] = "candidates"
    """The plan *is* an algorithm: its only sampler is `Selection`."""

    of: Mechanism = field(default_factory=BetaDivergence)
    count: int | None = None
    rounds: int | None = None
    publish: str = "mean"

    def __post_init__(self) -> None:
        of = self.of
        if not isinstance(of, BetaDivergence) and not (isinstance(of, Gibbs) and of.rule == "bounded"):
            raise WrongCall(
                "Candidates selects by a bounded loss: of=BetaDivergence(), or of=Gibbs(rule='bounded') for a convex loss "
                f"on a ball; a {type(of).__name__} came."
            )
        if not of.proven:
            raise WrongCall("Candidates keeps its promise exactly; a calibration as published, not proven, cannot.")
        for name, most in (("count", MOST_CANDIDATES), ("rounds", 40)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 1 <= value <= most):
                raise WrongCall(
                    f"{name} must be a whole number from 1 to {most:,}, but {value!r} came: without candidates there is "
                    f"nothing to pick from. Leave {name} out to have it planned."
                )
        if self.publish not in PUBLISHED:
            raise WrongCall(f"publish is 'mean', 'corrected' or 'picks', but {self.publish!r} came.")

    def closed_form(self, model: Any) -> bool:
        return False

    def heading(self, plan: Plan) -> str:
        rounds, count = int(plan.parameters["rounds"]), int(plan.parameters["candidates"])
        if rounds == 1:
            return f"{self.title}, one round of {count:,}"
        return f"{self.title}, {rounds} rounds of {count:,}: {PUBLISHED[self.publish]}"

    # ── calibration ────────────────────────────────────────────────────────────────────────────────────────

    def calibrate(self, request: Request) -> Plan:
        fixed = self.rounds
        if self.publish == "picks":
            fixed = request.draws if fixed is None else fixed
            if fixed != request.draws:
                raise WrongCall(
                    f"publish='picks' releases one draw for each round, so draws must be the number of rounds, {fixed}; "
                    f"{request.draws} came."
                )
        loss, layout = self._laid_out(request, fixed)
        widths, bits = _widths(loss, layout, request.budget)
        return self._plan(request, loss, layout, widths, bits, _derived(request, loss))

    def _laid_out(self, request: Request, fixed: int | None) -> tuple[Scoring, Layout]:
        """Loss and rounds. Under a budget with a δ or ρ more rounds allow a larger weight, which may need more rounds."""
        rounds = fixed or 1
        while True:
            loss = scoring(self.of, request, self._range(request, rounds))
            geometry = _geometry(request.model, loss)
            layout = lay_out(geometry, n=request.n, weight=loss.weight, candidates=self.count, rounds=fixed)
            if fixed is not None or layout.rounds == rounds:
                return loss, layout
            # A weight that was too small to need so many rounds is kept: the promise is for the larger number.
            fixed, rounds = (rounds, rounds) if layout.rounds < rounds else (None, layout.rounds)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        layout, widths, bits = _stated(parameters)
        if self.count not in (None, layout.candidates) or self.rounds not in (None, layout.rounds):
            raise PromiseRefused("The rounds and candidates stated are not those the mechanism was made with.")
        if self.publish == "picks" and layout.rounds != request.draws:
            raise PromiseRefused("All picks are published, so there must be as many draws as rounds.")
        loss = scoring(self.of, request, self._range(request, layout.rounds), stated=parameters)
        if (widths, bits) != _widths(loss, layout, request.budget):
            raise PromiseRefused("The widths and the lattice stated are not those that follow from the weight.")
        geometry = _geometry(request.model, loss)
        planned = lay_out(geometry, n=request.n, weight=loss.weight, candidates=self.count, rounds=layout.rounds)
        if not math.isclose(planned.candidates, layout.candidates, rel_tol=1e-6, abs_tol=1.0):
            raise PromiseRefused("The number of candidates stated is not the one planned.")
        derived = _derived(request, loss)
        for name, value in derived.items():
            if not math.isclose(parameters.get(name, math.nan), value, rel_tol=1e-6, abs_tol=1e-12):
                raise PromiseRefused(f"The {name} stated is not that of the model's reference design.")
        return self._plan(request, loss, layout, widths, bits, {name: parameters[name] for name in derived})

    def target(self, plan: Plan, summary: Any) -> CandidateTarget:
        """The rounds for these records."""
        numbers, model = plan.parameters, plan.model
        layout, widths, bits = _stated(numbers)
        loss = scoring(self.of, plan.request, self._range(plan.request, layout.rounds), stated=numbers)
        return CandidateTarget(
            loss=loss.loss, encoded=summary, geometry=_geometry(model, loss), prior=candidate_prior(model),
            widths=widths, bits=bits, candidates=layout.candidates, published=self.publish,
        )  # fmt: skip

    # ── the promise, and the plan ──────────────────────────────────────────────────────────────────────────

    def _repetitions(self, request: Request) -> int:
        """How often all rounds are gone through: all picks together are one draw of everything."""
        return 1 if self.publish == "picks" else request.draws

    def _range(self, request: Request, rounds: int) -> Fraction:
        """2wΔ of all rounds together, for one record and one repetition."""
        check_budget(request.budget)
        if request.gamma:
            raise UnsupportedBudget("Candidates selects exactly and needs no reserve; leave out gamma.")
        return largest_range(
            request.budget,
            rounds,
            records_per_person=request.records_per_person,
            repetitions=self._repetitions(request),
        )

    def _plan(
        self, request: Request, loss: Scoring, layout: Layout, widths: tuple[int, ...], bits: int,
        derived: Mapping[str, float],
    ) -> Plan:  # fmt: skip
        spent = [2 * Fraction(width, 2**bits) for width in widths]
        promise = promise_of_rounds(
            spent, request.budget, records_per_person=request.records_per_person, repetitions=self._repetitions(request)
        )
        if not promise.implies(request.budget):
            raise PromiseRefused(
                f"Rounds of these widths promise {promise}, which does not imply {request.budget}. Leave them to "
                "calibrate, or use a larger budget."
            )
        numbers = {
            **loss.numbers,
            "rounds": float(layout.rounds),
            "candidates": float(layout.candidates),
            "bits": float(bits),
            **{f"width_{number}": float(width) for number, width in enumerate(widths, 1)},
            **{f"epsilon_{number}": fraction_up(part) for number, part in enumerate(spent, 1)},
            **derived,
        }
        guarantee = Guarantee(promise, Neighbours.REPLACE_ONE, request.unit, THEOREM, _assumptions(request, bits))
        return Plan(self, request, tuple(numbers.items()), guarantee)


def _assumptions(request: Request, bits: int) -> tuple[Assumption, ...]:
    enforced = Provenance.ENFORCED
    return (
        *fixed_in_advance(request, "prior, loss, weight"),
        Assumption(
            f"a record's cost under a candidate is a whole number between 0 and the round's width, on the lattice 2^-{bits}: "
            "it is cut there, so the promise does not rest on the loss or on its floating-point value",
            enforced,
        ),
        Assumption("candidates depend on public numbers and on earlier picks only", enforced),
    )


def _geometry(model: Any, loss: Scoring) -> Geometry:
    """Prior and design, in the model's unconstrained coordinates."""
    prior = candidate_prior(model)
    scales = prior.scales
    width = loss.predictor_deviation(scales) / prior.noise(loss.residual)
    return Geometry(prior.location, scales, loss.information, loss.variability, width)


def _derived(request: Request, loss: Scoring) -> dict[str, float]:
    """What the design says of the plan: the error to expect of the coefficients and of log σ², and the least curvature."""
    model, geometry = request.model, _geometry(request.model, loss)
    errors = geometry.expected_errors(request.n, loss.weight)
    found = {"scaled_curvature": float(geometry.curvatures[0])}
    if isinstance(model.prior, NormalInverseGamma):  # type: ignore[attr-defined]  # checked by `scoring`
        slope = 1.0 - model.likelihood.floor / loss.residual**2  # type: ignore[attr-defined]  # dlog σ²/dη
        if slope > AT_THE_FLOOR:
            found["expected_log_variance_error"] = float(errors[-1]) * slope
        errors = errors[:-1]
    return {"expected_error": float(np.linalg.norm(errors)), **found}


def _widths(loss: Scoring, layout: Layout, budget: Promise) -> tuple[tuple[int, ...], int]:
    """W_j for each round and the finest lattice on which they fit; rounded down."""
    parts = [loss.half_range * share for share in shares(layout.rounds)]
    bits = 0
    while bits < FINEST and max(parts) * 2 ** (bits + 1) <= LARGEST_WIDTH:
        bits += 1
    widths = [min(LARGEST_WIDTH, math.floor(part * 2**bits)) for part in parts]
    if counts_epsilons(budget):  # what rounding left over goes to the last round; of another budget it is not a sum
        left = math.floor(sum(parts) * 2**bits) - sum(widths)
        widths[-1] = min(LARGEST_WIDTH, widths[-1] + left)
    if min(widths) < LEAST_WIDTH:
        raise PromiseRefused(
            f"The lightest of {layout.rounds} round(s) may spend a weighted loss of {text(float(min(parts)))} on a record, less "
            f"than {LEAST_WIDTH} steps of the lattice 2^-{bits}, the finest on which the heaviest one fits: rounding would "
            "drown the records. Use a larger budget, fewer draws or a narrower prior, which needs fewer rounds."
        )
    return tuple(widths), bits


def _stated(parameters: Mapping[str, float]) -> tuple[Layout, tuple[int, ...], int]:
    """Layout, widths and lattice of a stored plan; whole numbers in their ranges, or refused."""

    def whole(name: str, least: int, most: int) -> int:
        value = parameters.get(name, math.nan)
        if not (least <= value <= most and value == int(value)):
            raise PromiseRefused(f"The plan's {name} is not a whole number between {least} and {most:,}.")
        return int(value)

    layout = Layout(whole("rounds", 1, 40), whole("candidates", 1, MOST_CANDIDATES))
    widths = tuple(whole(f"width_{number}", 1, LARGEST_WIDTH) for number in range(1, layout.rounds + 1))
    return layout, widths, whole("bits", 0, FINEST)
