"""The minimum of a ridge-regularised convex loss to a public, certified distance: what output and objective
perturbation share.

    F(θ) = Σ φ(x_iᵀθ, y_i) + ½(θ − c)ᵀP(θ − c) + bᵀθ,      P diagonal, at least m = nλ

Everything public of it is a `RegularisedFit`: which loss, how large one record's pull is, m, and how small a gradient
is certified. ‖∇F(θ̃)‖ ≤ t means ‖θ̃ − θ̂‖ ≤ t/m, whatever the records. The minimum is found by the program of our own
fits (`models.fit.sums.minimum`): gradients are exact sums of whole numbers, and every data set arrives.

Rows and responses are divided by powers of two first, which is exact, so that rows are no longer than 1 and residuals
count in about their threshold: the lattice of those sums is made for such numbers. Proofs: output_perturbation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from onedraw import privacy
from onedraw.arrays import Array
from onedraw.data.sums import check_room
from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods.base import Mechanism
from onedraw.models.compute import jnp
from onedraw.models.convex.linear_model import LinearModel
from onedraw.models.convex.losses import LinearLoss, MarginLoss
from onedraw.models.convex.number_losses import HuberLoss, LogCoshLoss, ResidualLoss, SmoothedPinballLoss, SquaredLoss
from onedraw.models.fit.losses import FitLoss
from onedraw.models.fit.sums import NewtonSums, Objective, minimum
from onedraw.models.sums.exact_sums import Compiled, SummedTarget, gram_steps
from onedraw.plans import Plan, Request
from onedraw.privacy.numbers import fraction_up, positive, root_up, up

CLOSE = 2.0**-20
"""The certified gradient, as a share of what one record can pull: what it adds to a sensitivity nobody notices."""

SLOPE, LATTICE, ARITHMETIC = 2.0**-45, 2.0**-50, 2.0**-50
"""Rounding of a slope, relatively; of an entry of one record's pull; of one product or sum of the search,
relatively."""

MOST_PASSES = 100
"""Of Newton's method, before the gradient method takes over."""


@dataclass(frozen=True)
class RegularisedFit:
    """All that is public of F before the records are read. ``pull`` is G: the largest difference of two records'
    gradients where a minimum can be; ``lipschitz`` the largest gradient of one."""

    n: int
    width: int
    kernel: LinearLoss
    responses: tuple[float, float]
    reach: float
    pull: float
    lipschitz: float
    precision: tuple[float, ...]
    centre: tuple[float, ...]

    @property
    def strong_convexity(self) -> float:
        """m, of F for every data set."""
        return min(self.precision)

    @property
    def curvature(self) -> float:
        """M: the largest second derivative of φ."""
        return self.kernel.curvatures(math.inf, self.responses)[1]

    def stronger(self, ridge: float) -> RegularisedFit:
        """With ½·ridge·‖θ‖² more."""
        if not ridge:
            return self
        moved = tuple(c * p / (p + ridge) for c, p in zip(self.centre, self.precision, strict=True))
        return replace(self, precision=tuple(p + ridge for p in self.precision), centre=moved)

    # ── in units that are powers of two: θ = step·η, F = worth·F̃(η), rows x·2^−e, responses y/unit ──────────────────

    @property
    def unit(self) -> float:
        """Of responses and predictors: the threshold of a loss of residuals, or a little less."""
        match self.kernel:
            case HuberLoss(threshold=size) | LogCoshLoss(threshold=size) | SmoothedPinballLoss(width=size):
                return power_below(size)
        return 1.0

    response_scale = unit

    @property
    def worth(self) -> float:
        """φ(unit·u, unit·y) = worth·φ̃(u, y)."""
        return self.unit if isinstance(self.kernel, SmoothedPinballLoss) else self.unit**2

    @property
    def row_unit(self) -> float:
        return 2.0 * power_below(self.reach)

    @property
    def step(self) -> float:
        return self.unit / self.row_unit

    @property
    def loss(self) -> FitLoss:
        """φ̃ with its constants: of it the search needs slopes, curvatures and their bounds alone."""
        kernel = self.kernel
        match kernel:
            case HuberLoss() | LogCoshLoss():
                kernel = replace(kernel, threshold=kernel.threshold / self.unit)
            case SmoothedPinballLoss():
                kernel = replace(kernel, width=kernel.width / self.unit)
        ends = (self.responses[0] / self.unit, self.responses[1] / self.unit)
        lower, upper = kernel.slopes(math.inf, ends)
        return FitLoss(kernel, max(-lower, upper), kernel.curvatures(math.inf, ends)[1], "labels")

    @property
    def penalty(self) -> tuple[Array, Array]:
        """(P̃, c̃): diagonal and centre in η."""
        precision = np.array(self.precision) * (self.step**2 / self.worth)
        return precision, np.array(self.centre) / self.step

    # ── how near the minimum ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def farthest(self) -> float:
        """How long η can be at a minimum: F̃ is no larger there than at the centre, and every record pulls by at most
        L."""
        precision, centre = self.penalty
        start, least, loss = float(np.linalg.norm(centre)), float(precision.min()), self.loss
        far = self.n * loss.slope_bound / least
        if not start and isinstance(loss.kernel, MarginLoss | ResidualLoss):  # losses that are never below 0
            ends = [float(loss.kernel.value(0.0, y / self.unit)) for y in self.responses]
            far = min(far, math.sqrt(2.0 * self.n * max(ends) / least))
        return up(start + far)

    def least_gradient(self, tilt: float = 0.0) -> float:
        """The smallest gradient (of F̃, in η) that double precision can certify: four times what it can be off. A tilt moves
        the minimum by at most ‖b‖/m, and is itself rounded."""
        loss, (precision, centre), p = self.loss, self.penalty, self.width
        tilted = tilt * (self.step / self.worth)
        away = self.farthest + tilted / float(precision.min())
        slope = loss.slope_bound * SLOPE + loss.curvature_bound * away * (p + 2) * ARITHMETIC
        sums = self.n * (slope + math.sqrt(p) * LATTICE)
        pull_back = float(precision.max()) * (away + float(np.linalg.norm(centre))) + tilted
        return 4.0 * (sums + pull_back * (p + 2) * ARITHMETIC)

    @property
    def tolerance(self) -> float:
        """t: the norm of ∇F that is reached, in θ. Half of it is certified by the search, a quarter is rounding's."""
        return self.tolerance_of(CLOSE)

    def tolerance_of(self, close: float, tilt: float = 0.0) -> float:
        """… for another share of one record's pull, where double precision can certify it; ``tilt`` is the longest b."""
        return up(max(close * self.pull, self.worth / self.step * self.least_gradient(tilt)))

    def distance(self, tolerance: float) -> float:
        """t/m: how far what is found may be from the minimum, rounded up."""
        return fraction_up(Fraction(tolerance) / Fraction(self.strong_convexity))

    def check(self) -> None:
        """Refuse, before anything is spent, what cannot be certified in double precision or summed in 64 bits."""
        loss, (precision, _) = self.loss, self.penalty
        flat = self.n * loss.curvature_bound * (self.width + 2) * ARITHMETIC
        if not (4.0 * flat <= float(precision.min()) and self.tolerance <= self.n * self.pull):
            raise PromiseRefused(
                f"A strong convexity of {self.strong_convexity:.3g} is too little beside n = {self.n:,} records for a "
                "minimum to be certified in double precision. Use a stronger regularisation."
            )
        check_room(self.n, NewtonSums(loss), *self._lattice, None)

    @property
    def _lattice(self) -> tuple[float, float]:
        return gram_steps(self.loss.curvature_bound, self.n), 1.0

    # ── the minimum ──────────────────────────────────────────────────────────────────────────────────────────────────

    def minimum(self, target: RegularisedTarget, tolerance: float, tilt: Array | None = None) -> tuple[Array, int]:
        """(θ̃, passes over the records): within `distance(tolerance)` of the minimum of F with bᵀθ, b = ``tilt``."""
        loss, (precision, centre) = self.loss, self.penalty
        certified = tolerance * self.step / self.worth / 2.0
        q = -precision * centre
        if tilt is not None:
            q = q + tilt * (self.step / self.worth)
        most = self.n * loss.curvature_bound + float(precision.max())
        objective = Objective(
            np.diag(precision), q, *self._lattice, certified, float(precision.min()), most, MOST_PASSES
        )
        found, passes = minimum(target.records.read_as(ShortRows(self.row_unit)), loss, objective)
        return found * self.step, passes


@dataclass(frozen=True)
class ShortRows(Compiled):
    """(X, y) → (z, a, y): rows over a power of two, one record a column, each with the weight 1."""

    unit: float

    def block(self, X: Any, y: Any, weight: Any) -> Any:
        return (X / self.unit).T, jnp.ones(X.shape[0]), y


@dataclass(frozen=True, eq=False, repr=False)
class RegularisedTarget(SummedTarget):
    """The same with its records, and the plan that says what is done with it."""

    plan: Any


class PerturbedFit(Mechanism):
    """What output and objective perturbation have in common: λ, and a published version that may be false. Fields are
    declared by each, in its own order."""

    noun: ClassVar[str] = "estimate"
    whole_sums: ClassVar[bool] = True

    regularisation: float | None

    def _check_regularisation(self) -> None:
        if self.regularisation is not None:
            self._set(regularisation=positive("the regularisation λ", self.regularisation))


def exactness_of(plan: Plan) -> privacy.Exactness:
    """The theorem is about the very program; of a promise that is false as published nothing is proven."""
    if plan.mechanism.proven:
        return privacy.AsRun(plan.guarantee.promise)
    return privacy.Exact("the published procedure, its minimum to a certified gradient")


def power_below(value: float) -> float:
    """The largest power of two that is not above."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


# ── from a model ─────────────────────────────────────────────────────────────────────────────────────────────────────


def regularised_fit(request: Request, regularisation: float | None, what: str) -> RegularisedFit:
    """F of a model: nλ = ``regularisation``·n about the prior's mean, or the prior's own precision. What cannot be
    minimised to a bounded gradient is refused."""
    model = request.model
    if not isinstance(model, LinearModel):
        raise UnsupportedBudget(
            f"{what} needs a convex loss of one linear predictor, which this model's is not. {_REMEDY}"
        )
    if request.draws != 1:
        raise UnsupportedBudget(f"{what} publishes one minimum; more of them would share its budget. Leave out draws.")
    p = model.dimension
    if regularisation is None:
        precision = tuple(model.prior.precision(p).tolist())
    else:
        precision = (regularisation * request.n,) * p
    centre = tuple(model.prior.location(p).tolist())
    kernel, pull, lipschitz = _kernel(model, request.n, min(precision), centre)
    fit = RegularisedFit(
        request.n, p, kernel, model.responses, model.features.reach, pull, lipschitz, precision, centre
    )
    slopes = kernel.slopes(math.inf, model.responses)
    if not (math.isfinite(max(-slopes[0], slopes[1])) and math.isfinite(fit.curvature)):
        raise UnsupportedBudget(f"{what} needs a smooth loss of bounded slope, which this model's is not. {_REMEDY}")
    _check_radius(model, fit)
    fit.check()
    return fit


_REMEDY = "Use Logistic, HuberisedHinge, HuberRegression, LogCoshRegression, Quantile(smoothing=…) or LeastSquares."


def _kernel(model: LinearModel, n: int, m: float, centre: tuple[float, ...]) -> tuple[LinearLoss, float, float]:
    """(φ, G, L). Squared residuals are Huber's from a threshold on that no residual at a minimum reaches: with |y| ≤ Y
    all minima lie in ‖θ‖ ≤ R, residuals there are at most Y + Rr̃, and both losses have the same minimum for every data
    set."""
    if not isinstance(model.kernel, SquaredLoss):
        lower, upper = model.slope_interval
        return model.kernel, model.gradient_difference, up(max(-lower, upper) * model.features.reach)
    radius, reach = least_squares_radius(model, n, m, centre), model.features.reach
    bound = max(map(abs, model.responses))
    threshold = up(bound + radius * reach)
    return HuberLoss(threshold), up((radius * reach + 2.0 * bound) * reach), up(threshold * reach)


def least_squares_radius(model: LinearModel, n: int, m: float, centre: tuple[float, ...]) -> float:
    """R: no minimum of ½Σ(y − xᵀθ)² + ½(θ − c)ᵀP(θ − c) is longer. From its equation vᵀPv + Σu² = Σu·y', v = θ − c, y'
    = y − xᵀc, and u·y' ≤ u² + y'²/4: m‖v‖² ≤ n(Y + ‖c‖r̃)²/4."""
    length = root_up(sum((Fraction(value) ** 2 for value in centre), Fraction(0)))
    bound = max(map(abs, model.responses)) + length * model.features.reach
    return up(length + 0.5 * bound * math.sqrt(n / m))


def _check_radius(model: LinearModel, fit: RegularisedFit) -> None:
    """A ball may be declared where every minimum lies inside it anyway; otherwise it would have to be searched with its
    edge."""
    if model.radius is None:
        return
    inside = fit.farthest * fit.step
    if isinstance(model.kernel, SquaredLoss):
        inside = min(inside, least_squares_radius(model, fit.n, fit.strong_convexity, fit.centre))
    if not inside <= model.radius:
        raise WrongCall(
            f"A minimum may be as far as {inside:.6g} from 0, outside the prior's ball of radius "
            f"{model.radius:.6g}, and is not searched for on its edge. Declare a radius of at least "
            f"{inside:.6g}, or a stronger regularisation."
        )
