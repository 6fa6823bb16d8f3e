"""Plain noise on whole numbers: discrete Laplace or discrete Gaussian, on the exact sums of a table.

One replaced record moves the weighted sums by at most Δ₁ in L1 and Δ₂ in L2 (`models.tables`), a person's k records
by k times as much. Theorems and where the numbers come from: proof.md.

| law | promise | where |
| --- | --- | --- |
| discrete Laplace of scale b | ε = kΔ₁/b | every budget that a pure ε implies |
| discrete Gaussian of deviation σ | ρ = k²Δ₂²/2σ² (zCDP) | zCDP budgets, on the steps as they are |
| the same on a lattice 2^j times finer, then rounded | μ = kΔ₂/σ (Gaussian DP) | Gaussian, Rényi and (ε, δ) budgets |
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidModel, PromiseRefused, UnsupportedBudget
from onedraw.methods.base import Mechanism, NoisyCount
from onedraw.methods.comparisons import GroupTest, Scores, independence
from onedraw.methods.expectation import Expectation
from onedraw.methods.intervals import Interval, Published
from onedraw.methods.noise_law import law_of
from onedraw.methods.stages import FINE, TABLE_MARGIN, discrete_mu
from onedraw.models.sums.clamped_sums import Summary
from onedraw.models.tables.table import LAWS, Table
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import ZCDP, Assumption, GaussianDP, Promise, Provenance, PureDP
from onedraw.privacy.numbers import fraction_up, root_up, up
from onedraw.private import Private

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

    from .run import NoisySums

LARGEST_SUM = 2**61
"""What sums and noise must stay below, to fit into 64 bits with room."""

LARGEST_SCALE = 2.0**55


@dataclass(frozen=True, repr=False)
class NoiseTarget(Private):
    """Exact sums, and the plan of the noise they are to get. As private as the records."""

    sums: tuple[int, ...]
    plan: Plan


class Moving(Protocol):
    """How far one replaced record moves a vector of whole sums."""

    @property
    def largest(self) -> int:
        """The largest size of one record's entry."""

    @property
    def most_moved(self) -> int:
        """How many entries one replaced record can move."""

    def reach(self, law: str) -> int:
        """The distance: in L1 for Laplace noise, the square of L2 for Gaussian noise; rounded up."""


@dataclass(frozen=True)
class NoiseOnSums(Mechanism):
    """What mechanisms share that publish exact sums with noise: law, scale and promise. One stage is published, the
    noisy sums; whatever else is said follows from them. ``law`` is "laplace", "gaussian", or None for the one whose
    error is smaller."""

    noun: ClassVar[str] = "estimate"
    whole_sums: ClassVar[bool] = True
    requires: ClassVar[str] = "added-noise"
    fixed: ClassVar[str] = "the model, its bounds and prior"
    """What had to be declared before a record was read."""

    law: str | None = None

    def own_sampler(self) -> type[NoisySums]:
        from .run import NoisySums  # which only a draw needs

        return NoisySums

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.law is not None and self.law not in LAWS:
            raise InvalidModel(f"law is one of {', '.join(LAWS)}, or None for the better one, not {self.law!r}.")

    @abc.abstractmethod
    def sums(self, request: Request) -> Moving:
        """The sums that a request is about; what has none is refused."""

    def besides(self, request: Request) -> tuple[Assumption, ...]:
        """What the promise rests on besides exact sums, OpenDP's noise and what was declared."""
        return ()

    def expected_noise(self, plan: Plan) -> float:
        """Of which the better law has less."""
        return noise_deviation(plan)

    def calibrate(self, request: Request) -> Plan:
        sums, found, refused = self.sums(request), [], []
        for law in LAWS if self.law is None else (self.law,):
            try:
                found.append(replace(self, law=law).plan(request, least_noise(request, sums, law)))
            except PromiseRefused as error:
                refused.append(error)
        if not found:
            raise refused[0]
        return min(found, key=self.expected_noise)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        sums = self.sums(request)
        scale, refinement = parameters.get("scale", math.nan), parameters.get("refinement", math.nan)
        if self.law is None or not (scale > 0 and 1 <= refinement <= 2**40 and math.frexp(refinement)[0] == 0.5):
            raise PromiseRefused("Added noise has a law, a scale above 0 and a refinement that is a power of two.")
        if scale > LARGEST_SCALE or LARGEST_SUM / refinement < request.n * sums.largest:
            raise PromiseRefused(
                f"The sums of n = {request.n:,} records, or their noise, do not fit into 64-bit whole numbers here. "
                "Use a larger budget, or fewer records."
            )
        sensitivity, promise = _promise(request, sums, self.law, scale, refinement)
        numbers = {"scale": scale, "refinement": refinement, "sensitivity": sensitivity}
        stated: dict[type[Promise], str] = {PureDP: "epsilon", ZCDP: "rho", GaussianDP: "mu"}
        numbers[stated[type(promise)]] = promise.number
        enforced = (Assumption(claim, Provenance.ENFORCED) for claim in (RECORDS, NOISE))
        assumptions = (*fixed_in_advance(request, self.fixed), *enforced, *self.besides(request))
        return Plan.of(self, request, numbers, promise, THEOREMS[self.law], assumptions)


@dataclass(frozen=True)
class AddedNoise(NoiseOnSums):
    """Noise on the sums of a table."""

    title: ClassVar[str] = "Added noise"
    skips: ClassVar[bool] = True
    fixed: ClassVar[str] = "range, levels and groups"

    def heading(self, plan: Plan) -> str:
        return f"discrete {str(self.law).capitalize()} noise on exact sums"

    def sums(self, request: Request) -> Table:
        table = request.model
        if not isinstance(table, Table):
            raise UnsupportedBudget(
                f"Added noise is for tables of sums, and {type(table).__name__} is a model with a posterior. Use "
                "CategoryTable or NumberTable of onedraw.models, or Direct, Diffused or Concentrated."
            )
        check_table(table, request)
        return table

    def besides(self, request: Request) -> tuple[Assumption, ...]:
        table = self.sums(request)
        skipped = (Assumption(SKIPPED, Provenance.ENFORCED),) if table.skips else ()
        if table.moves_between_cells:
            return (Assumption(PRIVATE_GROUPS, Provenance.PROVED), *skipped)
        return (*((Assumption(PUBLIC_GROUPS, Provenance.DECLARED),) if table.sizes is not None else ()), *skipped)

    def missing_of(self, plan: Plan, stages: Mapping[str, Any]) -> NoisyCount | None:
        if not plan.model.skips or not stages:
            return None
        from .intervals import missing_cells  # which only intervals need

        return missing_cells(plan, stages)

    def known_of(self, plan: Plan, stages: Mapping[str, Any]) -> list[NoisyCount]:
        """Return the noisy number of known cells in each group, of a table that skips missing ones."""
        from .intervals import known_cells  # which only a description needs

        return known_cells(plan, stages)

    def without_estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Array | None:
        if not (plan.model.skips and plan.model.divides and stages):
            return None
        from .intervals import too_few_known  # which only intervals need

        return too_few_known(plan, stages)

    def expected_noise(self, plan: Plan) -> float:
        return expected_noise(plan)

    def interval(
        self, plan: Plan, published: Published, level: float, *, effect: float | None = None, noise: float | None = None
    ) -> Interval:
        from .intervals import table_interval  # which only intervals need

        return Interval(published.draws[0], *table_interval(plan, published.stages or {}, level, noise=noise))

    def scores(self, plan: Plan, published: Published) -> Scores | None:
        """Return the groups' means or shares of one level, with what their noise and sampling may be off by."""
        from .intervals import group_scores  # which only comparisons need

        return group_scores(plan, published.stages or {})

    def independence(self, plan: Plan, published: Published) -> GroupTest | None:
        from .intervals import cross_table

        found = cross_table(plan, published.stages or {})
        if found is None:
            return None
        known = (
            max(round(float(found.sum())), 0) if plan.model.skips else plan.n
        )  # which is private where missing cells are skipped
        return independence(found, known, law_of(plan))

    def level_scores(self, plan: Plan, published: Published, place: int) -> Scores | None:
        """Return by what groups are compared in one level of several, against all others."""
        from .intervals import group_scores

        return group_scores(plan, published.stages or {}, place)

    def deviations(self, plan: Plan, published: Published, level: float) -> tuple[Array, Array, Array]:
        """Return the groups' standard deviations, which a mean's second moment gives, with the ends of their intervals."""
        from .intervals import deviation_interval  # which only a description needs

        return deviation_interval(plan, published.stages or {}, level)

    def interval_about(self, plan: Plan, stages: Mapping[str, Any], level: float, *, of: str) -> tuple[Array, Array]:
        """Return (low, high) of counts and shares, about these "records" or the "population" they are a sample of."""
        from .intervals import table_interval  # which only intervals need

        return table_interval(plan, stages, level, of=of)[:2]

    def noisy_sums(self, plan: Plan, stages: Mapping[str, Any]) -> Array:
        """Return what was published, (groups, block), with the weights divided out."""
        return np.asarray(noisy_sums(plan, stages))

    def simulated_noise(self, plan: Plan, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
        """Return noise of the law that weighted sums get, in their steps, for a study of what follows from it."""
        from onedraw.samplers.noise import laplace_steps  # which only a draw needs

        if self.law == "gaussian":
            return generator.normal(0.0, noise_deviation(plan), shape)
        scale = plan.parameters["scale"] / plan.parameters["refinement"]
        return np.asarray(laplace_steps(scale, math.prod(shape), generator).reshape(shape), dtype=np.float64)

    def noise_quantile(self, plan: Plan, level: float, terms: int = 1) -> float:
        """Return q with P(|Z| ≤ q) = ``level``, Z the noise of so many sums of weight 1 together."""
        from onedraw.methods.noise_law import law_of  # which only statements about the noise need

        return law_of(plan).quantile(level, [1.0] * terms, 0.0)

    def expected_error(self, plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
        added, sampling = self.expected_noise(plan), plan.model.sampling_error(plan.n)
        return Expectation(math.hypot(added, sampling), sampling, 0.0)

    def target(self, plan: Plan, summary: Summary) -> NoiseTarget:
        table, law = plan.model, str(self.law)
        weights = (*(table.weights(law) * table.cells), *([1] * table.apart))
        return NoiseTarget(tuple(weight * value for weight, value in zip(weights, summary.total, strict=True)), plan)

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        return {"noisy sums": plan.model.cells * plan.model.block + plan.model.apart}

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        if not plan.model.skips:
            return plan.model.estimate(noisy_sums(plan, stages), plan.n)
        return plan.model.estimate(noisy_sums(plan, stages), plan.n, noisy_apart(plan, stages))

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import noise_case

        return noise_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import audit_cases

        return audit_cases()


def check_table(table: Table, request: Request) -> None:
    """Refuse several draws, and public sizes of groups that do not add up to n."""
    if request.draws != 1:
        raise UnsupportedBudget(
            f"{request.draws} draws of added noise would share one budget and be as many times noisier: their mean is "
            "no better than one. Use draws=1."
        )
    if table.sizes is not None and sum(table.sizes) != request.n:
        raise InvalidModel(
            f"sizes declares {sum(table.sizes):,} records in all groups together, but n = {request.n:,}. Declare both "
            "alike."
        )


def whole_numbers(stages: Mapping[str, Any], stage: str = "noisy sums") -> Any:
    """What was published; refused where it is not whole."""
    published = np.array(stages[stage], dtype=np.float64)
    if not all(float(value).is_integer() for value in published):
        raise PromiseRefused("Noisy sums are whole numbers: what lies between could tell the sum from its noise.")
    return published


def noisy_sums(plan: Plan, stages: Mapping[str, Any]) -> Any:
    """(groups, block): what was published, the weights divided out."""
    table, law = plan.model, plan.mechanism.law
    published = whole_numbers(stages)[: table.cells * table.block].reshape(table.cells, table.block)
    return published / np.array(table.weights(law), dtype=np.float64)


def noisy_apart(plan: Plan, stages: Mapping[str, Any]) -> float:
    """The noisy number of missing cells that is one for all groups; 0 where there is none."""
    return float(whole_numbers(stages)[-1]) if plan.model.apart else 0.0


def noise_deviation(plan: Plan) -> float:
    """The standard deviation of the noise on one weighted sum, in steps."""
    numbers, law = plan.parameters, plan.mechanism.law
    scale = numbers["scale"] / numbers["refinement"]
    gap = -math.expm1(-1.0 / scale)  # 1 − q for q = e^{−1/scale}
    return scale if law == "gaussian" else math.sqrt(2.0 * (1.0 - gap)) / gap


def expected_noise(plan: Plan) -> float:
    """The standard error that the noise gives a typical published number, from public numbers."""
    law = plan.mechanism.law
    spread = noise_deviation(plan) / np.array(plan.model.weights(law), dtype=np.float64)
    return float(plan.model.noise_error(spread, plan.n))


def least_noise(request: Request, sums: Moving, law: str) -> dict[str, float]:
    """The least noise that keeps the budget, and how much finer than the sums' steps it is drawn."""
    k, reach, budget = request.records_per_person, sums.reach(law), request.exact_budget
    square, kind = Fraction(k**2 * reach), PureDP if law == "laplace" else GaussianDP
    if isinstance(budget, ZCDP) and law == "gaussian":
        return {"scale": root_up(square / (2 * Fraction(budget.rho)) * (1 + Fraction(1, 2**40))), "refinement": 1.0}
    allowed = budget.allows(kind)
    if not allowed:
        others = "a δ above 0, zCDP or Gaussian DP, or Laplace noise" if kind is GaussianDP else "Gaussian noise"
        raise UnsupportedBudget(f"{law.capitalize()} noise cannot keep {budget}. Use {others}.")
    if law == "laplace":
        return {"scale": fraction_up(Fraction(k * reach) / Fraction(allowed)), "refinement": 1.0}
    mu = Fraction(allowed) * (1 - Fraction(1, 2**40)) - TABLE_MARGIN
    if mu <= 0:
        raise UnsupportedBudget(
            f"Gaussian noise is not calibrated for budgets as small as {budget}. Use Laplace noise."
        )
    scale = root_up(square / mu**2)
    refinement = 2.0 ** max(0, math.ceil(math.log2(_fine(sums) / scale)))
    return {"scale": scale * refinement, "refinement": refinement}


def _promise(request: Request, sums: Moving, law: str, scale: float, refinement: float) -> tuple[float, Promise]:
    """(sensitivity in refined steps, what noise of this scale promises): exact arithmetic, rounded up."""
    k, reach, finer = request.records_per_person, sums.reach(law), Fraction(refinement)
    if law == "laplace":
        distance = k * reach * finer
        return float(distance), PureDP(fraction_up(distance / Fraction(scale)))
    square = k**2 * reach * finer**2
    if isinstance(request.exact_budget, ZCDP):
        return root_up(square), ZCDP(up(fraction_up(square / (2 * Fraction(scale) ** 2))))
    mu = Fraction(root_up(square / Fraction(scale) ** 2))
    if scale < _fine(sums):
        raise PromiseRefused(
            f"A discrete Gaussian of {scale:.3g} steps is not fine enough to stand for a continuous one. Refine it more."
        )
    return root_up(square), GaussianDP(discrete_mu(mu, TABLE_MARGIN))


def _fine(sums: Moving) -> float:
    """The lattice steps in a deviation, at least: κ = 58q/σ² for the q entries that a record moves, as much as for the
    six of a table."""
    return FINE * math.sqrt(max(1.0, sums.most_moved / 6.0))


THEOREMS = {
    "laplace": "Dwork, McSherry, Nissim, Smith (TCC 2006), on whole numbers: Ghosh, Roughgarden, Sundararajan (STOC 2009)",
    "gaussian": "Canonne, Kamath, Steinke (NeurIPS 2020): the discrete Gaussian",
}

RECORDS = "every record becomes whole numbers in the declared range, and they are summed exactly"
NOISE = "noise is drawn by OpenDP, exactly, on the operating system's entropy"
PRIVATE_GROUPS = (
    "who belongs to which group is private: a replaced record may leave one cell and enter another, and the noise "
    "covers both; the numbers of records in the groups are released, not assumed"
)
SKIPPED = (
    "a record with a missing cell adds nothing but itself to the number of missing cells, which is released with noise"
)
PUBLIC_GROUPS = "who belongs to which group, and how many, is public: each group is a data set of its own"
