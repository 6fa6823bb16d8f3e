"""Means, variances and correlations of declared columns as a release of their own, with errors.

Three stages, each adaptive on what was published before, with noise on exact sums:

    sums      Σ (x, b·x²), b = φ^{5/2}/2: squares cost nothing beside the means     moves by S at most, the diagonal
    moments   Σ z̄z̄ᵀ, z the columns standardised by what was published, shortened to R    √2·R² (Frobenius), R² (trace)
    fourth    Σ z̄²z̄²ᵀ, squares shortened to U: for the errors of the others             √2·U², U²

Together GaussianDP(√Σ ratio²) or PureDP(Σ ratio). Proofs: proof.md; why these numbers: `models.moments.columns`;
what follows from them: `models.moments.result`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import special

from onedraw.errors import PromiseRefused, UnsupportedBudget
from onedraw.methods.calibration import MARGIN
from onedraw.methods.fits import COMPLETE, CompleteCases
from onedraw.methods.intervals import Interval, Published
from onedraw.methods.noisy_moments import KNOWN_SHARE
from onedraw.methods.stages import MARGIN as WHOLE_MARGIN
from onedraw.methods.stages import (
    Categories,
    Numbers,
    Spending,
    Stage,
    apart,
    check_lattice,
    largest_total,
    stage_ratios,
    together,
    ways,
)
from onedraw.models import Columns
from onedraw.models.moments import columns as constant
from onedraw.models.moments.columns import MomentsProblem, MomentsTarget
from onedraw.models.moments.measured import Layout, MomentColumns
from onedraw.models.moments.result import MomentsResult
from onedraw.models.sums import exact_sums
from onedraw.models.sums.exact_sums import deviation, matrix_deviation
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import Assumption, GaussianDP, Promise, Provenance, PureDP
from onedraw.privacy.numbers import up

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

    from .run import Measure


@dataclass(frozen=True)
class MomentsNumbers(Numbers):
    """What runs: noises as standard deviations, or under a pure promise the scales of its laws; 0 for no such stage."""

    sums_noise: float
    moments_noise: float
    moments_radius: float
    fourth_noise: float
    fourth_radius: float
    known_noise: float = 0.0
    """Of the number of records with all cells, where the others contribute nothing."""

    @classmethod
    def from_dict(cls, stored: Mapping[str, float], what: str) -> Self:
        return super().from_dict({"known_noise": 0.0, **stored}, what)

    def to_dict(self) -> dict[str, float]:
        found = super().to_dict()
        return found if self.known_noise else {name: value for name, value in found.items() if name != "known_noise"}

    @property
    def complete(self) -> bool:
        """Every stage that runs has its noise and radius, and the first and the last one run."""
        moments = bool(self.moments_noise) == bool(self.moments_radius)
        return bool(moments and self.sums_noise and self.fourth_noise and self.fourth_radius)

    def stages(self, columns: MomentColumns, *, pure: bool) -> list[Stage]:
        """Sensitivity over noise of what runs, for one record."""
        radii = ((self.moments_radius**2, self.moments_noise), (self.fourth_radius**2, self.fourth_noise))
        found = [Stage(apart(square, pure=pure), noise, columns.entries, square) for square, noise in radii]
        first = (
            Stage(1.0, self.known_noise, 1, columns=True),
            Stage(up(columns.spread), self.sums_noise, columns.powers),
        )
        return [stage for stage in (*first, *found) if stage.noise]

    def promise(self, columns: MomentColumns, records: int, *, pure: bool) -> Promise:
        """Of a person's records; noise on whole numbers is booked as such."""
        return together(stage_ratios(self.stages(columns, pure=pure), records, pure=pure), pure=pure)


@dataclass(frozen=True)
class Moments(CompleteCases):
    """Means, standard deviations and the correlation matrix of declared columns for one spend.

    ``categories`` are the (start, stop) of 0/1 columns that code one category: at most one of them is 1. ``pure``
    spends a budget (ε, δ) as pure ε; None where none of its noises is larger.
    """

    title: ClassVar[str] = "private moments"
    noun: ClassVar[str] = "estimate"
    whole_sums: ClassVar[bool] = True
    publishes_moments: ClassVar[bool] = True
    requires: ClassVar[str] = "moments"
    """The plan *is* an algorithm: only `methods.moments.run` carries it out."""

    categories: Categories = ()
    pure: bool | None = None

    def heading(self, plan: Plan) -> str:
        if plan.model.features.count == 1:
            return "private mean and variance, with errors"
        return "private means, variances and correlations, with errors"

    def calibrate(self, request: Request) -> Plan:
        columns = self.columns(request)
        found = {pure: total for pure in ways(request, self.pure) if (total := _total(request, pure)) is not None}
        if not found:
            raise PromiseRefused(
                f"No noise keeps {request.budget} with n = {request.n:,} and {request.records_per_person} record(s) "
                "per person. Use a larger budget."
            )
        spending = [Spending(total, pure) for pure, total in found.items()]
        best = spending[0] if len(spending) == 1 or no_larger(columns, *spending) else spending[1]
        numbers = numbers_for(columns, best, request.n, request.records_per_person, skips=request.model.skips)
        return self._plan(request, columns, numbers, best.pure)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        numbers, pure = MomentsNumbers.from_dict(parameters, "A release of moments"), parameters.get("pure")
        if pure not in (0.0, 1.0):
            raise PromiseRefused("A release of moments is pure or not; what is stated is neither.")
        return self._plan(request, self.columns(request), numbers, bool(pure))

    def target(self, plan: Plan, summary: Any) -> MomentsTarget:
        return MomentsTarget(self.problem(plan), summary)

    def moments_of(self, plan: Plan, published: Published) -> MomentsResult:
        assert published.stages is not None
        return self.result(plan, published.stages).in_units(*plan.model.range_units())

    def interval(
        self, plan: Plan, published: Published, level: float, *, effect: float | None = None, noise: float | None = None
    ) -> Interval:
        found = self.moments_of(plan, published)
        low, high = found.conf_int(level).T
        return Interval(found.values, low, high, *found.errors)

    def own_sampler(self) -> type[Measure]:
        from .run import Measure  # which only a draw needs

        return Measure

    def problem(self, plan: Plan) -> MomentsProblem:
        """Everything public, from the plan alone."""
        return MomentsProblem(plan.n, self.columns(plan.request), plan.parameters, pure=bool(plan.parameters["pure"]))

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        columns = self.columns(plan.request)
        moments = columns.entries if plan.parameters["moments_noise"] else 0
        sizes = {
            "known": int("known_noise" in plan.parameters),
            "mean": columns.count,
            "squares": columns.numbers,
            "moments": moments,
            "fourth": columns.entries,
        }
        return {name: size for name, size in sizes.items() if size}

    def result(self, plan: Plan, stages: Mapping[str, Any]) -> MomentsResult:
        """All that follows from what was published, for encoded rows."""
        from .run import with_known  # which only what was published needs

        return MomentsResult.of(with_known(self.problem(plan), stages), stages).encoded

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        return self.result(plan, stages).values

    def columns(self, request: Request) -> MomentColumns:
        """The columns of a request; what has no moments to measure is refused."""
        if not isinstance(request.model, Columns):
            raise UnsupportedBudget(
                f"Moments are of columns with bounds, not of a {type(request.model).__name__}. Pass "
                "models.Columns(features, bounds=(lo, hi))."
            )
        if request.draws != 1:
            raise UnsupportedBudget("Moments are published once: they have errors of their own. Leave out draws.")
        return MomentColumns(Layout(request.model.features.count, self.categories))

    def _plan(self, request: Request, columns: MomentColumns, numbers: MomentsNumbers, pure: bool) -> Plan:
        check_lattice([] if pure else numbers.stages(columns, pure=False), request.n, request.budget)
        theorem = "Gaussian noise on exact sums of bounded rows (methods/moments/proof.md)"
        if pure:
            theorem = (
                "noise of density ∝ e^{−‖v‖/s} on exact sums of bounded rows, of the law of matrices on their products "
                "(methods/moments/proof.md)"
            )
        found = (
            *fixed_in_advance(request, "the columns, their bounds"),
            Assumption("rows are clamped to their bounds and shortened to R and U", Provenance.ENFORCED),
            Assumption(exact_sums.in_words(request.n), Provenance.ENFORCED),
            *([Assumption(COMPLETE, Provenance.ENFORCED)] if request.model.skips else []),
        )
        promise = numbers.promise(columns, request.records_per_person, pure=pure)
        return Plan.of(self, request, {**numbers.to_dict(), "pure": float(pure)}, promise, theorem, found)

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import moments_case

        return moments_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import audit_cases

        return audit_cases()


def _total(request: Request, pure: bool) -> float | None:
    """The ε or μ that the budget allows; None if there is none."""
    budget = request.exact_budget
    if not pure:
        mu = largest_total(lambda mu: GaussianDP(mu).implies(budget))
        left = 0.0 if mu is None else mu - 2.0 * float(WHOLE_MARGIN)  # four stages' margins: at most √4 of one
        return left if left > 0.0 else None
    return budget.allows(PureDP) * (1.0 - MARGIN) or None


def shares_of(columns: MomentColumns, *, pure: bool) -> tuple[float, float, float]:
    """(sums, moments, fourth)."""
    return (constant.ALONE if columns.count == 1 else constant.SHARES)[pure]


PURE_KNOWN_SHARE = 0.1
"""Of a pure ε, for the number of records with all cells: its noise falls with the share itself, not with its root (`KNOWN_SHARE`)."""


def numbers_for(
    columns: MomentColumns, spending: Spending, n: int, records: int, *, skips: bool = False
) -> MomentsNumbers:
    """Noises and radii for a total, from public numbers alone."""
    known = (PURE_KNOWN_SHARE if spending.pure else KNOWN_SHARE) if skips else 0.0
    sums, moments, fourth = (share * (1.0 - known) for share in shares_of(columns, pure=spending.pure))

    def of(share: float, least: float, noise: float, *, correlations: bool) -> tuple[float, float]:
        """(noise, radius): the radius grows from ``least`` until the noise per record is ``noise``."""
        if not share:
            return 0.0, 0.0
        one = spending.noise(share, apart(records, pure=spending.pure))
        deviation = matrix_deviation(one, columns.count, pure=spending.pure)
        square = max(least * columns.count, noise * n / deviation)
        if correlations:
            square = max(square, narrowest(columns.count, deviation / n, n, least))
        return one * square * (1.0 + 1e-12), math.sqrt(square)

    return MomentsNumbers(
        spending.noise(sums, records * columns.spread) * (1.0 + 1e-12),
        *of(moments, constant.REACH, constant.QUIET / math.sqrt(n), correlations=True),
        *of(fourth, constant.FOURTH_REACH, constant.FOURTH_NOISE, correlations=False),
        spending.noise(known, float(records)) * (1.0 + 1e-12) if known else 0.0,
    )


def narrowest(columns: int, noise: float, n: int, least: float) -> float:
    """Return the R², at least ``least`` for each column, for which correlations of normal columns have narrow intervals.

    ``noise`` is that of a second moment for R² = 1. The half width is what shortening takes of a column's variance,
    which may go together either way, and 1.96 standard errors: of sampling, of the product, of what was lost.
    """
    squares = least * columns * 2.0 ** (np.arange(33) / 8.0)
    lost = special.chdtrc(columns + 2, squares) - squares / columns * special.chdtrc(columns, squares)
    errors = np.sqrt(1.0 / n + (noise * squares) ** 2 * (0.5 + 1.0 / columns))
    return float(squares[np.argmin(lost + 1.96 * errors)])


def no_larger(columns: MomentColumns, pure: Spending, gaussian: Spending) -> bool:
    """Whether pure noise is nowhere larger than Gaussian noise at the same budget: a stronger promise for nothing."""

    def noises(spending: Spending) -> list[float]:
        sums, *matrices = shares_of(columns, pure=spending.pure)
        found = [spending.noise(share, apart(1.0, pure=spending.pure)) for share in matrices if share]
        first = deviation(spending.noise(sums, 1.0), columns.powers, pure=spending.pure)
        return [first, *(matrix_deviation(noise, columns.count, pure=spending.pure) for noise in found)]

    return all(one <= other for one, other in zip(noises(pure), noises(gaussian), strict=True))
