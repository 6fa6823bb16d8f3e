"""The perturbed mode: the minimum of a weighted convex loss with one random linear term, in measured coordinates.

    θ* = argmin Σ a(z_i)·φ(z_iᵀθ, y_i) + (Λ/2)‖θ‖² + bᵀθ,        b ~ N(0, σ²I), or of density ∝ e^{−η‖b‖}

One budget, up to three stages: the mean and second moments of the columns, the mode, and the information at it, each
adaptive on what was published before. What is published is an estimate with its covariance, not a posterior draw.
Theorem, proof and what runs: perturbed_mode.md in `privacy`; which numbers: `fit_numbers`; why those:
`models.fit.constants`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple

from scipy import optimize, special

from onedraw.errors import PromiseRefused, UnsupportedBudget
from onedraw.models.convex.linear_model import ConvexModel
from onedraw.models.fit import constants as constant
from onedraw.models.fit.losses import robust_note, robust_words
from onedraw.models.fit.problem import FitProblem, FitTarget, Published
from onedraw.models.fit.result import FitResult
from onedraw.models.sums import exact_sums
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import ZCDP, ApproxDP, Assumption, GaussianDP, Promise, Provenance, PureDP, RenyiDP
from onedraw.privacy.corners import Corner, CornerDP
from onedraw.privacy.numbers import fraction_up, sum_up, up
from onedraw.privacy.perturbed_mode import Corners, relieved_base, relieved_slopes

from .fit_numbers import FitNumbers, Setting, least_ridge, least_tolerance, measuring, numbers_for, predicted_error
from .fits import FitMechanism, layout_of
from .stages import Categories, Stage, apart, check_lattice, largest_total, stage_ratios, ways

FIXED = "the columns, their bounds and levels, the response's bounds or classes"
"""What the caller fixes without looking at the records."""

MANY = 2**25
"""Records beyond which a ridge of next to no cost in κ is looked at too: rounding of gradients then matters less."""

MAX_KAPPA = 64.0
"""Most of ε that is looked at for the ridge: Λ = Mr²/(e^κ − 1) is then far below every rounding, and e^κ is still a number."""

MAX_RECORDS_PER_PERSON = 256
"""Beyond, the corners of a person's records are too many to add up, and their counts too large for floats."""


@dataclass(frozen=True)
class PerturbedMode(FitMechanism):
    """A fit with standard errors for one spend.

    ``intervals``: None measures the information where public numbers say that it will stand out of its noise, True
    always, False never. ``robust`` measures the curvature itself instead of the model's expected one. ``measured``:
    None measures the columns' moments where public numbers say that they will stand out, False takes the columns as
    declared. ``categories`` are the (start, stop) of 0/1 columns that code one category: at most one of them is 1.
    ``pure`` spends a budget (ε, δ) as pure ε; None where its predicted error is no larger. ``prior`` adds the model's
    Gaussian prior.
    """

    title: ClassVar[str] = "perturbed mode"
    interval_words: ClassVar[str] = (
        "They are computed from what the release itself measured. If the model is wrong, they are about the coefficients of that "
        "kind of model that fit best, as the fit weighs the records."
    )
    whole_sums: ClassVar[bool] = True
    requires: ClassVar[str] = "perturbed-mode"
    """The plan *is* an algorithm: only `samplers.Fit` carries it out."""

    intervals: bool | None = None
    robust: bool = False
    measured: bool | None = None
    categories: Categories = ()
    pure: bool | None = None
    prior: bool = False

    def heading(self, plan: Plan) -> str:
        return "noise in the equations it solves"

    def estimand(self, plan: Plan, target: str | None = None) -> str:
        return robust_words(self.problem(plan).loss, target)

    def estimand_note(self, plan: Plan) -> str:
        return robust_note(self.problem(plan).loss)

    def calibrate(self, request: Request) -> Plan:
        if request.records_per_person > MAX_RECORDS_PER_PERSON:
            raise PromiseRefused(
                f"A perturbed mode's promise for {request.records_per_person:,} records of one person would take minutes to compute. "
                f"Let a person have at most {MAX_RECORDS_PER_PERSON} (max_records: in the schema), or name another mechanism."
            )
        settings = [self.setting(request, pure=pure) for pure in ways(request, self.pure)]
        found = [best for setting in settings if (best := self._best(request, setting)) is not None]
        if not found:
            raise PromiseRefused(
                f"No perturbed mode, however strong its ridge, keeps {request.budget} with n = {request.n:,} and "
                f"{request.records_per_person} record(s) per person. Use a larger budget."
            )
        measured = all(other.numbers.moments_noise for other in found)
        # A pure promise is no gift if it costs the intervals, the mean of the columns, or accuracy: the predicted error
        # is in measured coordinates, off themselves by the edge beside a usual column's variance.
        best = min(
            found,
            key=lambda one: (
                not one.comfortable, not one.numbers.mean_noise,
                one.error * (1.0 + one.edge / constant.LEAST_SPREAD if measured else 1.0) ** 2,
            ),
        )  # fmt: skip
        return self._plan(request, best.setting, best.numbers)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        numbers, pure = FitNumbers.from_dict(parameters, "A perturbed mode"), parameters.get("pure")
        if pure not in (0.0, 1.0):
            raise PromiseRefused("A perturbed mode is pure or not; what is stated is neither.")
        setting, row = self.setting(request, pure=bool(pure)), numbers.row_bound
        certain = least_tolerance(setting, row, numbers.ridge)
        if numbers.tolerance < certain * (1.0 - 1e-9) or numbers.ridge < least_ridge(setting, row) * (1.0 - 1e-9):
            raise PromiseRefused(
                f"A gradient of {numbers.tolerance:.3g} at a ridge of {numbers.ridge:.3g} cannot be certified in double "
                f"precision; {certain:.3g} can. State the plan's own numbers."
            )
        return self._plan(request, setting, numbers)

    def setting(self, request: Request, *, pure: bool) -> Setting:
        """Layout, loss and n of a request; what cannot be fitted so is refused."""
        model, budget = request.model, request.budget
        loss = model.fit_loss if isinstance(model, ConvexModel) else None
        if loss is None:
            raise UnsupportedBudget(
                f"{type(model).__name__} has no loss that a perturbed mode can minimise: it must be convex, smooth and "
                "of bounded slope. Use Logistic, LogCoshRegression, Quantile, HuberisedHinge or CountRegression."
            )
        if isinstance(budget, GaussianDP | ZCDP) or not isinstance(budget, PureDP | ApproxDP | RenyiDP):
            raise UnsupportedBudget(
                f"A perturbed mode cannot keep {budget}: its loss is the largest of several Gaussian ones, which no "
                "single Gaussian bounds. Use a budget in ε and δ."
            )
        if request.draws != 1:
            raise UnsupportedBudget(
                "A perturbed mode is published once: its normal posterior gives as many draws as anybody wants, for "
                "nothing. Leave out draws, and call release.posterior(size)."
            )
        layout = layout_of(model, self.categories)
        records, intervals = request.records_per_person, self.intervals is not False
        return Setting(layout, loss, request.n, records, intervals, self.robust, pure)

    def _best(self, request: Request, setting: Setting) -> Option | None:
        """The numbers with the smallest predicted error, with stage one if it can be read off the noise."""
        for measured in (True, False) if self.measured is None else (self.measured,):
            found = _with_ridge(request.exact_budget, setting, measured)
            if found is None:
                continue
            error, numbers, edge = found
            response = setting.moment_columns.response
            largest = constant.LARGEST_EDGE_OF_NUMBERS if response else constant.LARGEST_EDGE
            if measured and self.measured is None and edge > largest:
                continue
            noise = exact_sums.matrix_deviation(numbers.information_noise, setting.width, pure=setting.pure)
            if setting.intervals and self.intervals is None and setting.shortage(noise) > 1.0:
                return self._best(request, replace(setting, intervals=False))  # its share is better spent elsewhere
            # A pure promise must leave four times the information that is needed: effects that are strong leave the
            # weakest direction a quarter of the usual.
            comfortable = setting.intervals and setting.shortage((4.0 if setting.pure else 1.0) * noise) <= 1.0
            return Option(setting, numbers, comfortable, error, edge)
        return None

    def _plan(self, request: Request, setting: Setting, numbers: FitNumbers) -> Plan:
        pure = setting.pure
        check_lattice([] if pure else stages_of(setting, numbers), request.n, request.budget)
        promise, corners = promise_of(setting, numbers)
        theorem = (
            "perturbed mode with pure noise: |‖g + v‖ − ‖g‖| ≤ 2Lr and one record's Hessian (perturbed_mode.md)"
            if pure
            else "perturbed mode: the privacy loss is at most the largest of its corners' (perturbed_mode.md)"
        )
        named = {**numbers.to_dict(), "pure": float(pure), "kappa": max(corner.shift for corner in corners.terms)}
        claims = [
            f"rows enter with weight min(1, r²/‖z‖²), r = {numbers.row_bound:.6g}",
            f"the mode is found to a gradient of norm at most {numbers.tolerance:.3g}, checked on exact sums",
            "a mode too far away to be checked in double precision is cut to a public ball",
            exact_sums.in_words(request.n),
            *(["columns of one category are at least 0 and of norm at most 1"] if self.categories else []),
        ]
        enforced = tuple(Assumption(claim, Provenance.ENFORCED) for claim in claims)
        declared = fixed_in_advance(request, FIXED)
        return Plan.of(self, request, named, promise, theorem, (*declared, *enforced))

    def target(self, plan: Plan, summary: Any) -> FitTarget:
        return FitTarget(self.problem(plan), summary)

    def problem(self, plan: Plan) -> FitProblem:
        """Everything public of the fit, from the plan alone."""
        numbers, pure = FitNumbers.from_dict(plan.parameters, "A perturbed mode"), bool(plan.parameters["pure"])
        setting = self.setting(plan.request, pure=pure)
        return FitProblem(
            plan.n, setting.layout, setting.loss, numbers.to_dict(), measuring(setting, numbers), pure, self.robust,
            plan.model.response_scale, plan.model.prior if self.prior else None,
        )  # fmt: skip

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        setting, numbers = self.setting(plan.request, pure=False), plan.parameters
        columns, entries = setting.moment_columns, setting.width * (setting.width + 1) // 2
        sizes = {"mean": columns.count, "moments": columns.entries, "mode": setting.width}
        sizes |= {"information": entries, "variability": entries}
        return {name: size for name, size in sizes.items() if numbers[f"{name}_noise"]}

    def result(self, plan: Plan, stages: Mapping[str, Any]) -> FitResult:
        """Estimate, covariance and all that follows from what was published, for encoded rows."""
        return FitResult.of(self.problem(plan), Published.from_dict(stages))

    def missing_records(self, plan: Plan) -> float:
        """How many times more records, or about how many times more ε, a plan without standard errors would need to
        have them; at most 1 where they were left out because nobody wanted them."""
        asked = replace(self, intervals=True).calibrate(plan.request).parameters
        setting = self.setting(plan.request, pure=bool(asked["pure"]))
        noise = exact_sums.matrix_deviation(asked["information_noise"], setting.width, pure=setting.pure)
        return setting.shortage(noise)

    def why_no_interval(self, plan: Plan) -> str | None:
        """Why the plan has no standard errors, by public numbers; None where it measures what they are made of."""
        if plan.parameters["information_noise"]:
            return None
        more = self.missing_records(plan)
        if more <= 1.0:
            return "standard errors were left out of the plan; ask for intervals"
        return (
            "standard errors would drown in the noise at this n and ε, so none are computed. Columns that vary as usual would have "
            f"them from about {float(f'{more * plan.n:.1e}'):,.0f} records on at this ε, or at about {more:.1f} times this ε"
        )


class Option(NamedTuple):
    """A way to spend the budget. ``comfortable``: its intervals need not be done without."""

    setting: Setting
    numbers: FitNumbers
    comfortable: bool
    error: float
    edge: float


@lru_cache(maxsize=256)  # a plan is asked for again where it is explained, released and derived anew
def _with_ridge(budget: Promise, setting: Setting, measured: bool) -> tuple[float, FitNumbers, float] | None:
    """The ridge with the smallest predicted error: a strong one biases, a weak one costs κ and so noise.

    One minimum between 0.9 of ε and a hundredth of it, or less where records are very many.
    """
    if isinstance(budget, ApproxDP):  # κ is a share of ε: the stated one; of a Rényi budget its ε at its own order
        epsilon = budget.stated_epsilon
    else:
        epsilon = budget.epsilon(0.0 if isinstance(budget, PureDP) else 1e-6)
    if setting.pure:
        budget = PureDP(epsilon)
    kappa = min(epsilon, MAX_KAPPA)

    def at(log_share: float, digits: float = 1e-4) -> tuple[float, FitNumbers | None, float]:
        """(predicted error, numbers, edge) if this share of ε pays for the ridge; an infinite error if none does."""
        chosen = partial(numbers_for, setting, kappa=math.exp(log_share) * kappa, measured=measured)
        total = largest_total(
            lambda total: _probably_keeps(promise_of(setting, chosen(total)[0])[0], budget), digits=digits
        )
        if total is None:
            return math.inf, None, math.inf
        numbers, edge = chosen(total)
        return predicted_error(setting, numbers), numbers, edge

    bounds = (math.log(0.01 if setting.n <= MANY else 1e-4), math.log(0.9))
    best = optimize.minimize_scalar(
        lambda log_share: at(log_share)[0], bounds=bounds, method="bounded", options={"xatol": 1e-3}
    )
    error, numbers, edge = at(float(best.x), 1e-9)
    return None if numbers is None else (error, numbers, edge)


# ── what a fit with these numbers promises ───────────────────────────────────────────────────────────────────────


def promise_of(setting: Setting, numbers: FitNumbers) -> tuple[Promise, Corners]:
    """The theorem, applied to what will run, and the corners of the mode's privacy loss that it rests on: of a loss
    that bends only where it is not steep those relieved of κ (Theorem 4), unless a pure promise is stronger without."""
    ratios = stage_ratios(stages_of(setting, numbers), setting.k, pure=setting.pure)
    ratios.append(up(2.0 * numbers.tolerance / numbers.ridge / numbers.closing_noise))  # of a real vector's noise
    mode = up(numbers.row_bound / numbers.mode_noise)
    possible = [setting.loss.corners(numbers.row_bound, numbers.ridge, setting.k)]
    if setting.loss.relief is not None and setting.k == 1:
        possible.append(_relieved_corners(setting, numbers, ratios))
    if setting.pure:
        epsilon, best = min(
            ((one.pure_promise(mode).stated_epsilon, one) for one in possible), key=lambda pair: pair[0]
        )
        return PureDP(sum_up([epsilon, *ratios])), best
    added = sum((Fraction(ratio) ** 2 for ratio in ratios), Fraction(0))
    terms = [(count, Fraction(square) + added, shift) for count, square, shift in possible[-1].promise(mode).terms]
    return CornerDP(tuple(Corner(count, fraction_up(square), shift) for count, square, shift in terms)), possible[-1]


def _relieved_corners(setting: Setting, numbers: FitNumbers, ratios: list[float]) -> Corners:
    """Those of Theorem 4. c may be chosen: the more the short corners pay, the less is left for all of them (κ₀). It is
    what makes the short ones as unlikely as the farthest: half of ε₂, or what lies between the two at FAR_OUT
    deviations; at most what leaves nothing."""
    loss, row = setting.loss, numbers.row_bound
    assert loss.relief is not None
    (m, least, low), mu = loss.relief, loss.slope_bound * row / numbers.mode_noise
    others, bend = sum(ratio**2 for ratio in ratios), up(m * row**2 / numbers.ridge)
    far, near = math.sqrt(others + 4.0 * mu**2), math.sqrt(others + mu**2)
    wanted = mu if setting.pure else (far - near) * (constant.FAR_OUT + far / 2.0)
    relief = up(min(wanted, (1.0 + least) * bend))
    return relieved_slopes(low, loss.slope_bound, relief, base=relieved_base(relief, bend=bend, least=least))


def stages_of(setting: Setting, numbers: FitNumbers) -> list[Stage]:
    """Every sum that gets noise on whole numbers, for one record: moments before the mode, information and variability
    after it, where they are measured."""
    noises, entries = (numbers.information_noise, numbers.variability_noise), setting.width * (setting.width + 1) // 2
    squares = [square * numbers.row_bound**2 for square in setting.squares]
    after = [
        Stage(apart(square, pure=setting.pure), noise, entries, square)
        for square, noise in zip(squares, noises, strict=True)
        if noise
    ]
    return [*numbers.stages(setting.moment_columns, pure=setting.pure), *after]


def _probably_keeps(promise: Promise, budget: Promise) -> bool:
    """The budget's test without outward rounding, for a search whose result is tested properly: quick, nearly right."""
    if not isinstance(budget, ApproxDP) or not isinstance(promise, CornerDP):
        return promise.implies(budget)
    total = 0.0
    for count, square, shift in promise.terms:
        epsilon, mu = budget.stated_epsilon - shift, math.sqrt(square)
        far = math.exp(epsilon + special.log_ndtr(-mu / 2.0 - epsilon / mu))  # at most 1, however large ε is
        total += count * float(special.ndtr(mu / 2.0 - epsilon / mu) - far)
    return total <= budget.stated_delta * (1.0 - 1e-7)
