"""The finite mechanism: pick one of many public candidates, exactly; nothing converges and nothing is assumed.

Draw K candidates from a public law q and select θ_k with probability ∝ (π(θ_k)/q(θ_k))·exp(−w Σ ℓ(x_i, θ_k)). The
candidates do not depend on the records, so this *is* the exponential mechanism on a finite set (McSherry, Talwar,
FOCS 2007), whatever K; as K grows it tends to a draw from the posterior. In several rounds each looks around the
picks before it ("Rounds" in proof.md).

A record's weighted loss is a whole number in [0, W_j] on a public lattice 2^−b, cut there if need be, and the
selection is exact on whole numbers: round j is BoundedRange(2·W_j·2^−b) given its candidates, and all rounds together
are PureDP(Σ 2·W_j·2^−b), in the arithmetic that really runs. The rounds: layout.py.
Loss and prior: loss.py. Statement, preconditions and limits: proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onedraw.errors import PromiseRefused, WrongCall
from onedraw.methods import calibration
from onedraw.methods.base import Mechanism
from onedraw.methods.beta_divergence.mechanism import BetaDivergence
from onedraw.methods.candidates.layout import MOST_ROUNDS, CandidateTarget, Geometry, Layout, lay_out, shares
from onedraw.methods.candidates.loss import Scoring, candidate_prior, scoring
from onedraw.methods.gibbs.mechanism import Gibbs
from onedraw.models import NormalInverseGamma
from onedraw.models.candidates import LARGEST_WIDTH
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import Assumption, BoundedRangeCurve, Promise, Provenance, PureDP, RenyiDP, compose
from onedraw.privacy.curves import add_curves
from onedraw.privacy.numbers import fraction_down, fraction_up, text

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

    from .run import Selection

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
    "the exponential mechanism on public candidates (McSherry and Talwar, FOCS 2007): each round selects exactly, by "
    "whole numbers of which one record moves each by at most W; adaptive rounds add up, as a pure ε or as the Rényi "
    "curves of bounded ranges, which hold for every layout of candidates"
)


@dataclass(frozen=True)
class Candidates(Mechanism):
    """Exact selection from public candidates, in one round or several; pure ε, and more under a budget with a δ or ρ.

    ``of`` says which loss selects: `BetaDivergence`, or ``Gibbs(rule="bounded")`` for a convex margin loss on a ball.
    ``count`` (candidates in a round) and ``rounds`` are planned where None. ``publish="mean"`` releases the weighted
    mean of the picks; ``"corrected"`` undoes the pull of the prior that several rounds repeat, which is better for
    large effects and worse for those the design expects; ``"picks"`` releases all of them, one draw for each round
    (calibrate with ``draws`` = rounds). All three cost the same.
    """

    title: ClassVar[str] = "selection from public candidates"
    whole_sums: ClassVar[bool] = True
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
                "Candidates selects by a bounded loss: of=BetaDivergence(), or of=Gibbs(rule='bounded') for a convex "
                f"loss on a ball; not by {type(of).__name__}."
            )
        if not of.proven:
            raise WrongCall("Candidates keeps its promise exactly; a calibration as published, not proven, cannot.")
        for name, most in (("count", MOST_CANDIDATES), ("rounds", MOST_ROUNDS)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 1 <= value <= most):
                raise WrongCall(
                    f"{name} must be a whole number from 1 to {most:,}, not {value!r}: without candidates there is "
                    f"nothing to pick from. Leave {name} out to have it planned."
                )
        if self.publish not in PUBLISHED:
            raise WrongCall(f"publish is 'mean', 'corrected' or 'picks', not {self.publish!r}.")

    def heading(self, plan: Plan) -> str:
        rounds, count = int(plan.parameters["rounds"]), int(plan.parameters["candidates"])
        if rounds == 1:
            return f"{self.title}, one round of {count:,}"
        return f"{self.title}, {rounds} rounds of {count:,}: {PUBLISHED[self.publish]}"

    def calibrate(self, request: Request) -> Plan:
        fixed = self.rounds
        if self.publish == "picks":
            fixed = request.draws if fixed is None else fixed
            if fixed != request.draws:
                raise WrongCall(
                    f"publish='picks' releases one draw for each round, so draws must be the number of rounds, "
                    f"{fixed}, not {request.draws}."
                )
        loss, layout = self._laid_out(request, fixed)
        widths, bits = _widths(loss, layout, request.budget)
        return self._plan(request, loss, layout, widths, bits, _derived(request, loss))

    def _laid_out(self, request: Request, fixed: int | None) -> tuple[Scoring, Layout]:
        """Loss and rounds. Under a budget with a δ or ρ more rounds allow a larger weight, which may need more."""
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

    def pick_shares(self, plan: Plan) -> list[float]:
        return [float(share) for share in shares(int(plan.parameters["rounds"]))]

    @property
    def publishes_picks(self) -> bool:  # type: ignore[override]
        return self.publish == "picks"

    def own_sampler(self) -> type[Selection]:
        from .run import Selection  # which only a draw needs

        return Selection

    def draw_shares(self, plan: Plan) -> list[float] | None:
        """Picks count like their rounds, which are public."""
        return [float(share) for share in shares(plan.draws)] if self.publish == "picks" else None

    def _times(self, request: Request) -> dict[str, int]:
        """Records of a person, and how often all rounds are gone through: all picks are one draw of everything."""
        repetitions = 1 if self.publish == "picks" else request.draws
        return {"records_per_person": request.records_per_person, "repetitions": repetitions}

    def _range(self, request: Request, rounds: int) -> Fraction:
        """2wΔ of all rounds together, for one record and one repetition."""
        calibration.check_selects(request)
        return largest_range(request.budget, rounds, **self._times(request))

    def _plan(
        self, request: Request, loss: Scoring, layout: Layout, widths: tuple[int, ...], bits: int,
        derived: Mapping[str, float],
    ) -> Plan:  # fmt: skip
        spent = [2 * Fraction(width, 2**bits) for width in widths]
        promise = promise_of_rounds(spent, request.budget, **self._times(request))
        numbers = {
            **loss.numbers,
            **{"rounds": float(layout.rounds), "candidates": float(layout.candidates), "bits": float(bits)},
            **{f"width_{number}": float(width) for number, width in enumerate(widths, 1)},
            **{f"epsilon_{number}": fraction_up(part) for number, part in enumerate(spent, 1)},
            **derived,
        }
        cut = (
            "a record's cost under a candidate is a whole number between 0 and the round's width, on the lattice "
            f"2^-{bits}: it is cut there, so the promise does not rest on the loss or on its floating-point value"
        )
        claims = (cut, "candidates depend on public numbers and on earlier picks only")
        enforced = [Assumption(claim, Provenance.ENFORCED) for claim in claims]
        found = (*fixed_in_advance(request, "prior, loss, weight"), *enforced)
        return Plan.of(self, request, numbers, promise, THEOREM, found)

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import candidate_case

        return candidate_case(plan)

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import audit_cases

        return audit_cases()


def _geometry(model: Any, loss: Scoring) -> Geometry:
    """Prior and design, in the model's unconstrained coordinates."""
    prior = candidate_prior(model)
    width = loss.predictor_deviation(prior.scales) / prior.noise(loss.residual)
    return Geometry(prior.location, prior.scales, loss.information, loss.variability, width)


def _derived(request: Request, loss: Scoring) -> dict[str, float]:
    """What the design says of the plan: the error to expect of coefficients and of log σ², and the least curvature."""
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
    if budget.is_pure:  # what rounding left over goes to the last round; of another budget it is not a sum
        left = math.floor(sum(parts) * 2**bits) - sum(widths)
        widths[-1] = min(LARGEST_WIDTH, widths[-1] + left)
    if min(widths) < LEAST_WIDTH:
        raise PromiseRefused(
            f"The lightest of {layout.rounds} round(s) may spend {text(float(min(parts)))} on a record, less than "
            f"{LEAST_WIDTH} steps of the lattice 2^-{bits}, the finest on which the heaviest fits: rounding would drown "
            "the records. Use a larger budget, fewer draws or a narrower prior, which needs fewer rounds."
        )
    return tuple(widths), bits


def _stated(parameters: Mapping[str, float]) -> tuple[Layout, tuple[int, ...], int]:
    """Layout, widths and lattice of a stored plan; whole numbers in their ranges, or refused."""
    whole = partial(calibration.whole_number, parameters)
    layout = Layout(whole("rounds", 1, MOST_ROUNDS), whole("candidates", 1, MOST_CANDIDATES))
    widths = tuple(whole(f"width_{number}", 1, LARGEST_WIDTH) for number in range(1, layout.rounds + 1))
    return layout, widths, whole("bits", 0, FINEST)


def promise_of_rounds(
    ranges: Sequence[Fraction], budget: Promise, *, records_per_person: int = 1, repetitions: int = 1
) -> Promise:
    """What rounds of these conditional ranges ε_j, for one record, promise in the currency of the budget.

    | budget | promise |
    | --- | --- |
    | PureDP, ApproxDP with δ = 0 | PureDP(Σ ε_j) |
    | BoundedRange(ε) | PureDP(Σ ε_j), Σ ε_j ≤ ε/2: a log-ratio between −ε/2 and ε/2 has the range ε |
    | ZCDP, RenyiDP, ApproxDP | RenyiDP of each curve, composed; for one round that implies ZCDP(ε²/8) |

    Candidates are public, so what is bounded for every layout is bounded on average: log-ratios and Rényi divergences.
    The *range* is not: where the interval of log-ratios lies depends on the candidates, and over all of them it may be
    twice as long. Later rounds see earlier picks; pure ε and Rényi curves add up under adaptive choice, with all ε_j
    fixed beforehand. A person with k records moves every cost k times as far; repetitions add up like rounds.
    """
    if budget.is_pure:
        return PureDP(fraction_up(sum(ranges, Fraction(0)) * records_per_person * repetitions))
    parts = [RenyiDP(curve) for curve in _curves(ranges, records_per_person)]
    return parts[0] if len(parts) * repetitions == 1 else compose(*parts * repetitions)


def _curves(ranges: Sequence[Fraction], records_per_person: int) -> list[BoundedRangeCurve]:
    return [BoundedRangeCurve(fraction_up(part * records_per_person)) for part in ranges]


@lru_cache(maxsize=256)
def largest_range(budget: Promise, rounds: int, *, records_per_person: int = 1, repetitions: int = 1) -> Fraction:
    """Σ ε_j of all rounds, for one record and one repetition: the largest with which the budget is kept."""
    if budget.is_pure:
        return Fraction(budget.allows(PureDP)) / (records_per_person * repetitions)
    parts = shares(rounds)

    def keeps(total: float) -> bool:
        """By the sum of the curves alone, which is quick: a privacy-loss distribution of the parts finds no more."""
        curves = _curves([Fraction(total) * part for part in parts], records_per_person)
        return RenyiDP(add_curves((curve, repetitions) for curve in curves)).implies(budget)

    found = calibration.largest_range(keeps, budget, f"{rounds} round(s) of candidates")
    return Fraction(fraction_down(Fraction(found) * (1 - Fraction(calibration.RANGE_MARGIN))))
