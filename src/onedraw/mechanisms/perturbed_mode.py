"""The perturbed mode: the minimum of a weighted convex loss with one random linear term, in privately measured coordinates.

    θ* = argmin Σ a(z_i)·φ(z_iᵀθ, y_i) + (Λ/2)‖θ‖² + bᵀθ,        b ~ N(0, σ²I), or of density ∝ e^{−η‖b‖}

One budget, up to three stages: the mean and second moments of the columns, the mode, and the information at it, each
adaptive on what was published before. What is published is an estimate with its covariance, not a posterior draw.
Theorem, proof and what runs: perturbed_mode.md in `privacy`; which numbers: `fit_numbers`; why those: `fit_constants`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, cast

from scipy import special

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.models.fit import constants as constant
from onedraw.models.fit.classes import ClassLoss
from onedraw.models.fit.losses import FitLoss, measured_of
from onedraw.models.fit.published import Published
from onedraw.models.fit.result import FitResult
from onedraw.models.fit.target import FitProblem, FitTarget
from onedraw.models.moments.measured import Layout
from onedraw.models.sums import noise_law, sum_lattice
from onedraw.plans import Mechanism, Plan, Request
from onedraw.privacy import (
    ZCDP,
    ApproxDP,
    Assumption,
    GaussianDP,
    Guarantee,
    Neighbours,
    Promise,
    Provenance,
    PureDP,
    RenyiDP,
)
from onedraw.privacy.corners import Corner, CornerDP
from onedraw.privacy.perturbed_mode import (
    Corners,
    count_slopes,
    relieved_base,
    relieved_slopes,
    ridge_for,
    slopes,
    volume_cost,
)
from onedraw.privacy.rounding import fraction_up, sum_up, up

from .discrete_noise import Stage, booked, check_lattice
from .fit_numbers import (
    FitNumbers,
    Setting,
    best_kappa,
    closing,
    measuring,
    predicted_error,
    roomy_row,
    row_bound,
    shares_of,
    shortage,
    stage_one,
    without_intervals,
    worth_measuring,
)
from .moments_stage import MomentsStage, Spending, apart
from .stored_plans import register_mechanism

MANY = 2**25
"""Records beyond which a ridge of next to no cost in κ is looked at too: it makes what rounding leaves of a gradient matter less."""

MARGIN = 1.0 - 2.0**-38
"""Taken off the total found, so that another machine, with other last digits, accepts it too."""


@register_mechanism
@dataclass(frozen=True)
class PerturbedMode(Mechanism):
    """A fit with standard errors for one spend.

    ``intervals``: None measures the information where public numbers say that it will stand out of its noise, True always,
    False never. ``robust`` measures the curvature itself instead of the model's expected one. ``measured``: None measures
    the columns' moments where public numbers say that they will stand out, False takes the columns as declared.
    ``categories`` are the (start, stop) of 0/1 columns that code one category: at most one of them is 1. ``pure`` spends a
    budget (ε, δ) as pure ε; None where its predicted error is no larger. ``prior`` adds the model's Gaussian prior.
    """

    title: ClassVar[str] = "perturbed mode"
    noun: ClassVar[str] = "fit"
    requires: ClassVar[str] = "perturbed-mode"
    """The plan *is* an algorithm: only `samplers.Fit` carries it out."""

    intervals: bool | None = None
    robust: bool = False
    measured: bool | None = None
    categories: tuple[tuple[int, int], ...] = ()
    pure: bool | None = None
    prior: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", tuple((int(start), int(stop)) for start, stop in self.categories))

    def heading(self, plan: Plan) -> str:
        return "noise in the equations it solves" + (
            ", with standard errors" if plan.parameters["information_noise"] else ""
        )

    def closed_form(self, model: Any) -> bool:
        return False

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "categories": [list(pair) for pair in self.categories]}

    # ── from a budget to numbers ───────────────────────────────────────────────────────────────────────────

    def calibrate(self, request: Request) -> Plan:
        setting = self.setting(request)
        found = [best for pure in self._ways(request) if (best := self._best(request, setting, pure)) is not None]
        if not found:
            raise PromiseRefused(
                f"No perturbed mode, however strong its ridge, keeps {request.budget} with n = {request.n:,} and "
                f"{request.records_per_person} record(s) per person. Use a larger budget."
            )
        best = min(found, key=lambda option: option.rank(all(other.numbers.measured for other in found)))
        return self._plan(request, best.numbers, best.pure)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        self.setting(request)
        numbers, pure = FitNumbers.from_dict(parameters), parameters.get("pure")
        if numbers is None or pure not in (0.0, 1.0):
            raise PromiseRefused(
                "A perturbed mode needs its noises, bounds, ridge and tolerance; those stated are not."
            )
        return self._plan(request, numbers, bool(pure))

    def target(self, plan: Plan, summary: Any) -> FitTarget:
        return FitTarget(self.problem(plan), summary)

    def problem(self, plan: Plan) -> FitProblem:
        """Everything public of the fit, from the plan alone."""
        setting, numbers = self.setting(plan.request), FitNumbers.from_dict(plan.parameters)
        assert numbers is not None
        pure = bool(plan.parameters["pure"])
        how = measuring(setting, numbers, pure)
        return FitProblem(
            plan.n, setting.layout, setting.loss, numbers.to_dict(), how, pure, self.robust,
            plan.model.response_scale, plan.model.prior if self.prior else None,
        )  # fmt: skip

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        setting, numbers = self.setting(plan.request), plan.parameters
        sizes = {
            "mean": setting.moment_columns.count if numbers["mean_noise"] else 0,
            "moments": setting.moment_columns.entries if numbers["moments_noise"] else 0,
            "mode": setting.width,
            "information": setting.entries if numbers["information_noise"] else 0,
            "variability": setting.entries if numbers["variability_noise"] else 0,
        }
        return {name: size for name, size in sizes.items() if size}

    def result(self, plan: Plan, stages: Mapping[str, Any]) -> FitResult:
        """Estimate, covariance and all that follows from what was published, for encoded rows."""
        return FitResult.of(self.problem(plan), Published.from_dict(stages))

    def missing_records(self, plan: Plan) -> float:
        """How many times more records, or about how many times more ε, a plan without standard errors would need to have them; at
        most 1 where they were left out because nobody wanted them."""
        asked = replace(self, intervals=True).calibrate(plan.request)
        setting = self.setting(plan.request)
        noise = noise_law.matrix_deviation(
            asked.parameters["information_noise"], setting.width, pure=bool(asked.parameters["pure"])
        )
        return shortage(setting, noise)

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        return self.result(plan, stages).estimate

    def setting(self, request: Request) -> Setting:
        """Layout, loss and n of a request; what cannot be fitted so is refused."""
        model, budget = cast(Any, request.model), request.budget
        loss: FitLoss | ClassLoss | None = getattr(model, "fit_loss", None)
        if loss is None:
            raise UnsupportedBudget(
                f"{type(model).__name__} has no loss that a perturbed mode can minimise: it must be convex, smooth and of "
                "bounded slope. Use Logistic, LogCoshRegression, Quantile, HuberisedHinge or CountRegression."
            )
        if isinstance(budget, GaussianDP | ZCDP) or not isinstance(budget, PureDP | ApproxDP | RenyiDP):
            raise UnsupportedBudget(
                f"A perturbed mode cannot keep {budget}: its loss is the largest of several Gaussian ones, which no single "
                "Gaussian bounds. Use a budget in ε and δ, or NoisyGradient(), which keeps this kind."
            )
        if request.draws != 1:
            raise UnsupportedBudget(
                "A perturbed mode is published once: its normal posterior gives as many draws as anybody wants, for nothing. "
                "Leave out draws, and call release.posterior(size)."
            )
        layout = layout_of(model, self.categories)
        return Setting(layout, loss, request.n, request.records_per_person, self.intervals is not False)

    def _ways(self, request: Request) -> tuple[bool, ...]:
        """Pure, Gaussian, or both to be compared."""
        budget = request.exact_budget
        if isinstance(budget, PureDP) or (isinstance(budget, ApproxDP) and budget.stated_delta == 0.0):
            return (True,)
        if isinstance(budget, RenyiDP):
            return (False,)
        return (True, False) if self.pure is None else (self.pure,)

    def _best(self, request: Request, setting: Setting, pure: bool) -> Option | None:
        """The numbers with the smallest predicted error, with stage one if it can be read off the noise."""
        options = (True, False) if self.measured is None else (self.measured,)
        for measured in options:
            found = self._with_ridge(request, setting, measured, pure)
            if found is None:
                continue
            error, numbers, edge, deviation = found
            largest = constant.LARGEST_EDGE_OF_NUMBERS if setting.response else constant.LARGEST_EDGE
            if measured and self.measured is None and edge > largest:
                continue
            worthwhile = setting.intervals and worth_measuring(setting, deviation)
            if setting.intervals and self.intervals is None and not worthwhile:
                return self._best(request, without_intervals(setting), pure)
            comfortable = setting.intervals and worth_measuring(setting, (4.0 if pure else 1.0) * deviation)
            return Option(numbers, pure, comfortable, error, edge)
        return None

    def _with_ridge(self, request: Request, setting: Setting, measured: bool, pure: bool) -> Any:
        """The ridge with the smallest predicted error: a strong one biases, a weak one costs κ and so noise."""

        def at(share: float, digits: float) -> Any:
            return self._numbers(request, setting, measured, pure, share, digits)

        best = best_kappa(
            lambda share: math.inf if (found := at(share, 1e-4)) is None else found[0],
            least=0.01 if setting.n <= MANY else 1e-4,
        )
        return at(best, 1e-9)

    def _numbers(
        self, request: Request, setting: Setting, measured: bool, pure: bool, share: float, digits: float
    ) -> Any:
        """(predicted error, numbers, edge, deviation of the information) if this share of ε pays for the ridge."""
        epsilon = nominal_epsilon(request.exact_budget)
        kappa = share * epsilon

        def numbers(total: float) -> tuple[FitNumbers, float, float]:
            return self._for_total(setting, Spending(total, pure), measured, kappa)

        budget = PureDP(epsilon) if pure else request.exact_budget
        total = largest_total(
            lambda total: probably_keeps(self._promise(setting, numbers(total)[0], pure), budget), digits=digits
        )
        if total is None:
            return None
        result, edge, deviation = numbers(total)
        spread = Spending(total, pure).deviation(result.mode_noise, setting.width)
        return (
            predicted_error(
                setting,
                ridge=result.ridge,
                deviation=spread,
                closing=Spending(total, pure).deviation(result.closing_noise, setting.width),
                measured=measured,
            ),
            result,
            edge,
            deviation,
        )

    def _for_total(self, setting: Setting, spending: Spending, measured: bool, kappa: float) -> tuple[FitNumbers, float, float]:  # fmt: skip
        moments, information, variability = shares_of(
            setting, measured=measured, pure=spending.pure, robust=self.robust
        )
        stage, edge = stage_one(setting, spending, moments) if measured else (MomentsStage(0.0, 0.0, 0.0), 0.0)
        if measured and edge < constant.AMPLE_EDGE:
            moments *= max(constant.LEAST_MOMENTS, edge / constant.AMPLE_EDGE)
            stage, edge = stage_one(setting, spending, moments)
        mode = 1.0 - moments - information - variability
        mode_mu = spending.total * (mode if spending.pure else math.sqrt(mode))
        row = row_bound(setting, mode_mu, measured=measured, pure=spending.pure) * (1.0 + 1e-12)
        row = roomy_row(setting, row, mode_mu, pure=spending.pure) if measured else row
        loss, k = setting.loss, setting.k
        ridge = ridge_of(setting, row, kappa)
        mode_noise = spending.noise(mode, row * math.sqrt(plain_corners(setting, row, ridge).widest))
        closing_mu = constant.CLOSING_MU * (spending.total if spending.pure else 1.0)
        tolerance, closing_noise = closing(
            setting, ridge=ridge, deviation=spending.deviation(mode_noise, setting.width), row=row, loss=loss,
            mu=closing_mu, most=constant.LARGEST_CLOSING * spending.total, pure=spending.pure,
        )  # fmt: skip
        noises = [0.0, 0.0]
        if setting.intervals:
            noises = [
                spending.matrix_noise(share, k * loss.largest(of, pure=spending.pure) * row**2) if share else 0.0
                for of, share in zip(measured_of(robust=self.robust), (information, variability), strict=True)
            ]
        numbers = FitNumbers(
            stage.mean_noise, stage.moments_noise, stage.moment_radius, row, ridge, mode_noise, tolerance, closing_noise, *noises
        )  # fmt: skip
        return numbers, edge, spending.matrix_deviation(noises[0], setting.width)

    # ── from numbers to a promise ──────────────────────────────────────────────────────────────────────────

    def _plan(self, request: Request, numbers: FitNumbers, pure: bool) -> Plan:
        setting = self.setting(request)
        before = numbers.moments.stages(setting.moment_columns, pure=pure)
        after = stages_after(setting, numbers, pure=pure, robust=self.robust)
        check_lattice([] if pure else before + after, request.n, request.budget)
        promise = self._promise(setting, numbers, pure)
        theorem = (
            "perturbed mode with pure noise: |‖g + v‖ − ‖g‖| ≤ 2Lr and one record's Hessian (perturbed_mode.md)"
            if pure
            else "perturbed mode: the privacy loss is at most the largest of its corners' (perturbed_mode.md)"
        )
        return Plan(
            self,
            request,
            tuple(
                {
                    **numbers.to_dict(),
                    "pure": float(pure),
                    "kappa": max(corner.shift for corner in self._corners(setting, numbers, pure).terms),
                }.items()
            ),
            Guarantee(promise, Neighbours.REPLACE_ONE, request.unit, theorem, self._assumptions(request, numbers)),
        )

    def _promise(self, setting: Setting, numbers: FitNumbers, pure: bool) -> Promise:
        return promise_of_numbers(setting, numbers, pure=pure, robust=self.robust)

    def _corners(self, setting: Setting, numbers: FitNumbers, pure: bool) -> Corners:
        return chosen_corners(setting, numbers, stage_ratios(setting, numbers, pure=pure, robust=self.robust), pure)

    def _assumptions(self, request: Request, numbers: FitNumbers) -> tuple[Assumption, ...]:
        enforced = Provenance.ENFORCED
        found = [
            Assumption(f"rows enter with weight min(1, r²/‖z‖²), r = {numbers.row_bound:.6g}", enforced),
            Assumption(
                f"the gradient at what is published has norm at most {numbers.tolerance:.3g}, checked on exact sums",
                enforced,
            ),
            Assumption(sum_lattice.in_words(request.n), enforced),
        ]
        if self.categories:
            found.append(Assumption("columns of one category are at least 0 and of norm at most 1", enforced))
        return tuple(found)


@dataclass(frozen=True)
class Option:
    """A way to spend the budget, pure or not. ``comfortable``: its intervals need not be done without. A pure promise must leave
    four times the information that is needed: effects that are strong leave the weakest direction a quarter of the usual."""

    numbers: FitNumbers
    pure: bool
    comfortable: bool
    error: float
    edge: float

    def rank(self, all_measured: bool) -> tuple[bool, bool, float]:
        """A pure promise is no gift if it costs the intervals, the mean of the columns, or accuracy: the predicted error is that in
        measured coordinates, which are off themselves by the edge beside the variance of a usual column."""
        coordinates = 1.0 + self.edge / constant.LEAST_SPREAD if all_measured else 1.0
        return not self.comfortable, not self.numbers.centred, self.error * coordinates**2


def layout_of(model: Any, categories: tuple[tuple[int, int], ...]) -> Layout:
    """The columns that are measured: scaled to public bounds, or rows of a public norm; ``categories`` are checked."""
    features, last = model.features, 0
    if features.data_norm is None and not features.scaled:
        raise UnsupportedBudget(
            "Columns are measured by their public ranges, so features must be scaled. Pass scaled=True to the model."
        )
    for start, stop in categories:
        if not last <= start < stop <= features.count:
            raise WrongCall("categories are (start, stop) of columns, in order and without overlap.")
        last = stop
    if categories and features.data_norm is not None:
        raise WrongCall("categories need columns with bounds, not rows with a norm. Pass bounds=(lo, hi).")
    return Layout(features.count, categories, features.intercept, features.data_norm)


def nominal_epsilon(budget: Promise) -> float:
    """The ε that κ is a share of: the stated one; of a Rényi budget its ε at its own order."""
    if isinstance(budget, ApproxDP):
        return budget.stated_epsilon
    return budget.epsilon(0.0) if isinstance(budget, PureDP) else budget.epsilon(1e-6)


# ── what a fit with these numbers promises ───────────────────────────────────────────────────────────────────────


def chosen_corners(setting: Setting, numbers: FitNumbers, ratios: list[float], pure: bool) -> Corners:
    """The corners of the mode's privacy loss that a promise rests on, for a person's records: of a loss that bends only where it
    is not steep those relieved of κ (Theorem 4), unless a pure promise is stronger without."""
    plain, relieved = (
        plain_corners(setting, numbers.row_bound, numbers.ridge),
        relieved_corners(setting, numbers, ratios, pure),
    )
    if relieved is None or not pure:
        return relieved or plain
    ratio = up(numbers.row_bound / numbers.mode_noise)
    return min(plain, relieved, key=lambda corners: corners.pure_promise(ratio).epsilon(0.0))


def relieved_corners(setting: Setting, numbers: FitNumbers, ratios: list[float], pure: bool) -> Corners | None:
    """Those of Theorem 4. c may be chosen: the more the short corners pay, the less is left for all of them (κ₀). It is what makes
    the short ones as unlikely as the farthest: half of ε₂, or what lies between the two at FAR_OUT deviations; at most what leaves nothing."""
    loss, row = setting.loss, numbers.row_bound
    if isinstance(loss, ClassLoss) or loss.relief is None or setting.k > 1:
        return None
    (m, least), mu = loss.relief, loss.slope_bound * row / numbers.mode_noise
    others, bend = sum(ratio**2 for ratio in ratios), up(m * row**2 / numbers.ridge)
    far, near = math.sqrt(others + 4.0 * mu**2), math.sqrt(others + mu**2)
    wanted = mu if pure else (far - near) * (constant.FAR_OUT + far / 2.0)
    relief = up(min(wanted, (1.0 + least) * bend))
    low = loss.slope_bound if loss.sides == "two-sided" else 0.0
    return relieved_slopes(low, loss.slope_bound, relief, base=relieved_base(relief, bend=bend, least=least))


def plain_corners(setting: Setting, row: float, ridge: float) -> Corners:
    """Those with κ at each, whatever the loss."""
    loss, k = setting.loss, setting.k
    if isinstance(loss, ClassLoss):
        return loss.corners(row, ridge, k)
    kappa = volume_cost(curvature=loss.curvature_bound, radius_squared=row**2, ridge=ridge)
    match loss.sides:
        case "counts":
            return count_slopes(loss.slope_bound, kappa, records=k)
        case "pinball":
            assert loss.level is not None
            return slopes(loss.level, 1.0 - loss.level, kappa, records=k)
        case "two-sided":
            return slopes(loss.slope_bound, loss.slope_bound, kappa, records=k)
        case _:
            return slopes(loss.slope_bound, 0.0, kappa, records=k)


def ridge_of(setting: Setting, row: float, kappa: float) -> float:
    """The ridge for which one record's volume costs at most κ."""
    loss, k = setting.loss, setting.k
    if isinstance(loss, ClassLoss):
        return loss.ridge_for(kappa / k, row)
    return ridge_for(kappa / k, curvature=loss.curvature_bound, radius_squared=row**2)


def stages_after(setting: Setting, numbers: FitNumbers, *, pure: bool, robust: bool) -> list[Stage]:
    """Information and variability, where they are measured, for one record."""
    noises = (numbers.information_noise, numbers.variability_noise)
    squares = [setting.loss.largest(of, pure=pure) * numbers.row_bound**2 for of in measured_of(robust=robust)]
    return [
        Stage(apart(square, pure=pure), noise, setting.entries, square)
        for square, noise in zip(squares, noises, strict=True)
        if noise
    ]


def stage_ratios(setting: Setting, numbers: FitNumbers, *, pure: bool, robust: bool) -> list[float]:
    """Sensitivity over noise of every stage but the mode, for a person's records, rounded up; those whose noise is drawn on
    whole numbers are booked as such. The closing noise is a real vector's."""
    after = [up(setting.k * stage.ratio) for stage in stages_after(setting, numbers, pure=pure, robust=robust)]
    closing_ratio = up(2.0 * numbers.tolerance / numbers.ridge / numbers.closing_noise)
    before = numbers.moments.ratios(setting.moment_columns, setting.k, pure=pure)
    return [*before, *(after if pure else map(booked, after)), closing_ratio]


def promise_of_numbers(setting: Setting, numbers: FitNumbers, *, pure: bool, robust: bool) -> Promise:
    """The theorem, applied to what will run."""
    ratios = stage_ratios(setting, numbers, pure=pure, robust=robust)
    corners = chosen_corners(setting, numbers, ratios, pure)
    if pure:
        mode = corners.pure_promise(up(numbers.row_bound / numbers.mode_noise))
        return PureDP(sum_up([mode.epsilon(0.0), *ratios]))
    added = sum((Fraction(ratio) ** 2 for ratio in ratios), Fraction(0))
    mode_promise = corners.promise(up(numbers.row_bound / numbers.mode_noise))
    return CornerDP(
        tuple(
            Corner(count, fraction_up(Fraction(square) + added), shift) for count, square, shift in mode_promise.terms
        )
    )


def largest_total(keeps: Callable[[float], bool], *, digits: float = 1e-9) -> float | None:
    """The largest μ or ε that keeps a budget, to nine digits or as many as are asked for; None if not even a tiny one does."""
    low, high = 1e-6, 100.0
    if not keeps(low):
        return None
    while high / low > 1.0 + digits:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low * MARGIN


def probably_keeps(promise: Promise, budget: Promise) -> bool:
    """The budget's test without outward rounding, for a search whose result is tested properly: quick and nearly right."""
    if not isinstance(budget, ApproxDP) or not isinstance(promise, CornerDP):
        return promise.implies(budget)
    total = 0.0
    for count, square, shift in promise.terms:
        epsilon, mu = budget.stated_epsilon - shift, math.sqrt(square)
        total += count * float(special.ndtr(mu / 2.0 - epsilon / mu) - math.exp(epsilon) * special.ndtr(-mu / 2.0 - epsilon / mu))  # fmt: skip
    return total <= budget.stated_delta * (1.0 - 1e-7)
