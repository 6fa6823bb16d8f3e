"""Gibbs posteriors of a linear predictor, π(θ)·exp(−w Σ φ(θᵀx_i, y_i)), and noisy gradients, written down again.

Where all rows are multiples of one row x, the records speak of u = θᵀx alone: given u, the draw has the prior's law
under both data sets. So the pair's profile is that of u, in one dimension whatever d is, and exactly. Under the prior u
is normal with mean xᵀm and variance xᵀΛ⁻¹x; for an isotropic prior cut to a ball its density has the mass of the slice
as another factor.

Sources of the formulas: Minami, Arai, Sato, Nakagawa (NIPS 2016) and its supplement; the losses are the usual ones.

**A noisy-gradient draw**: θ ← θ − h(wΣφ'(θx_i, y_i)x_i + Λθ) + √(2h)ξ, T times from a public start.
For a linear loss every iterate is Gaussian and its moments follow a recursion (an AR(1) process: the case that attains
the last iterate's bound of arXiv:2403.00278). For any other loss of one parameter the density is carried from step to
step on a grid, and the two laws are compared cell by cell, which can only hide differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array, Mask
from onedraw.errors import WrongCall
from onedraw.methods import Gibbs, NoisyGradient, Plan
from onedraw.models import ConvexLoss, Gaussian, Hinge, HuberRegression, LeastSquares, Logistic
from onedraw.privacy import Promise

from .case import Case, DensityCase, FiniteCase, LogDensity, NormalCase, Pair, cases_of, no_formula
from .losses import Loss, along, centred, flips, loss_of, of_classes, records_of, slope_of

FAR_OUT = 60.0
"""A density is followed until it has fallen by e^−60."""


class PredictorCase(DensityCase):
    """Records along one row: a law of u = θᵀx."""

    @cached_property
    def row(self) -> Array:
        """x, the encoded row that all records are multiples of."""
        return np.asarray(records_of(self.plan.model, self.pairs[0].first)[0][0])

    @property
    def loss(self) -> Loss:
        """φ(u, y)."""
        return loss_of(self.plan.model)

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        return lambda draws: self._of_predictor(records, factor)(draws.reshape(len(draws), -1) @ self.row)

    def integrand(self, records: Any, factor: float) -> LogDensity:
        density = self._of_predictor(records, factor)
        return lambda points: density(np.asarray(points, dtype=np.float64).reshape(-1))

    def domain(self, pair: Pair, factor: float) -> Any:
        """Where either density is within e^−60 of its top; all of it on a ball, or where a promise is pure."""
        radius = self.plan.model.prior.radius
        if radius is not None:
            end = radius * float(np.linalg.norm(self.row))
            return ((-end, end),)
        mean, variance = self._prior
        # n records of slope L move u by at most n·w·L·(variance of u per unit of predictor)
        slope = self.plan.parameters.get("lipschitz", 0.0) / float(np.linalg.norm(self.row))
        half = 12.0 * math.sqrt(variance) + self.weight(factor) * self.plan.n * slope * variance
        if self.promise.pure_epsilon < math.inf:
            return ((mean - half, mean + half),)
        grid = np.linspace(mean - half, mean + half, 20_001)
        inside = grid[near_a_top(self._of_predictor(records, factor)(grid) for records in pair)]
        step = grid[1] - grid[0]
        return ((float(inside[0] - step), float(inside[-1] + step)),)

    @cached_property
    def _prior(self) -> tuple[float, float]:
        """Mean and variance of u."""
        model, d = self.plan.model, len(self.row)
        variance = float(self.row @ (self.row / model.prior.precision(d)))
        return float(self.row @ model.prior.location(d)), variance * self.plan.parameters.get("prior_factor", 1.0)

    def _of_predictor(self, records: Any, factor: float) -> LogDensity:
        (mean, variance), phi, weight = self._prior, self.loss, self.weight(factor)
        found = along(self.plan.model, records, self.row)

        def density(u: Array) -> Array:
            total = self._log_slice(u) - (u - mean) ** 2 / (2.0 * variance)
            for scale, response, count in found:
                total = total - weight * count * phi(scale * u, response)
            return total

        return density

    def _log_slice(self, u: Array) -> Array:
        """The log mass of the ball's slice at u under an isotropic prior; 0 without a ball."""
        radius, d = self.plan.model.prior.radius, len(self.row)
        if radius is None:
            return np.zeros_like(u)
        length = float(np.linalg.norm(self.row))
        left = np.maximum(radius**2 - (u / length) ** 2, 0.0)
        if d == 1:
            return np.where((u / length) ** 2 <= radius**2 * (1 + 1e-12), 0.0, -np.inf)
        with np.errstate(divide="ignore"):
            precision = float(self.plan.model.prior.precision(d)[0])
            return np.asarray(np.log(special.gammainc((d - 1) / 2, left * precision / 2)))


def near_a_top(values: Iterable[Array]) -> Mask:
    """Where one of several log densities is within e^−60 of its top."""
    return np.asarray(np.any([one > one.max() - FAR_OUT for one in values], axis=0))


def linear_model(radius: float | None = None, *, smooth: bool = True) -> ConvexLoss:
    """One feature in [−1, 1], prior N(0, 1), loss θᵀx: convex, as Lipschitz as its row is long, and without curvature:
    what every Lipschitz rule is attained by."""
    return ConvexLoss(
        lambda theta, x, y: theta @ x, 1, features=1, data_norm=1.0, lipschitz=1.0, smoothness=1e-9 if smooth else None,
        name="linear", sensitivity=None if radius is None else 2.0 * radius, prior=Gaussian(scale=1.0, radius=radius),
    )  # fmt: skip


LINEAR = "where the posterior is, the losses are linear, and it is two Gaussians at the distance the rule allows"
TAIL = "the posteriors are as far apart as the rule allows, but its (ε, δ) comes from a tail bound that gives some away"
CUT = "the ball cuts the tails off the two Gaussians"
HALF = "G = 2L counts two records on the wrong side at once; along one row two slopes of a margin loss add up to one"
RANGE = "the log-ratio of the two losses runs over its whole range on the ball"
UNKNOWN = "the pair is the worst one along a single row"

RULES = ("gdp", "theorem7", "corollary8", "rdp")
ON_A_BALL = ("theorem10", "bounded")


def predictor_case(plan: Plan, *, linear: bool = False, label: str = "") -> PredictorCase:
    """The case of any plan for a convex loss; ``linear``: as good as linear where the posterior is."""
    model, rule = plan.model, plan.mechanism.rule if isinstance(plan.mechanism, Gibbs) else "rdp"
    if model.prior.radius is not None and not centred(model.prior, model.dimension):
        raise no_formula("rows on a ball under a prior around 0 with one scale, not for this prior of", model)
    loss_of(model)
    attained = rule == "bounded" or (linear and rule in ("gdp", "rdp"))
    margin = HALF if of_classes(model) else UNKNOWN
    reason = {"theorem10": CUT, "bounded": RANGE}.get(rule, (LINEAR if attained else TAIL) if linear else margin)
    return PredictorCase(plan, flips(model, plan.n), reason, attained, label)


def _of_one_feature(model: Any, **options: Any) -> Callable[[float | None], Any]:
    return lambda radius: model(features=1, intercept=False, prior=Gaussian(scale=1.0, radius=radius), **options)


SETTINGS: dict[str, tuple[Callable[[float | None], Any], float, int, bool]] = {
    "linear": (linear_model, 3.0, 4, True),
    "logistic": (_of_one_feature(Logistic, bounds=(-1, 1)), 2.0, 4, False),
    # rows of norm 0.1: the posterior hardly sees the kink, and the loss is as good as linear
    "hinge": (_of_one_feature(Hinge, data_norm=0.1), 5.0, 1, True),
    # responses at ±20, far beyond the threshold: every residual is on the linear part
    "huber": (_of_one_feature(HuberRegression, threshold=1.0, response_bound=20.0, data_norm=1.0), 5.0, 3, True),
    "least-squares": (_of_one_feature(LeastSquares, response_bound=1.0, data_norm=1.0), 1.0, 4, False),
}
"""Model → how it is made with a radius, the radius of rules on a ball, n, and whether it is as good as linear: then the
Lipschitz rules are attained."""


def rule_cases(name: str, budget: Promise) -> list[Case]:
    """One case for each rule that keeps the budget."""
    model_of, radius, n, linear = SETTINGS[name]
    always = name == "least-squares"  # whose slope is bounded on a ball alone
    rules = ("gdp", "bounded") if always else (*RULES, *ON_A_BALL)
    asked = [("", Gibbs(rule), model_of(radius if always or rule in ON_A_BALL else None)) for rule in rules]
    return cases_of(partial(predictor_case, linear=linear), asked, budget, n=n)


# ── noisy gradients ──

MOST_CELLS = 3001
MOST_STEPS = 5000


class LinearPathCase(NormalCase):
    """The last iterate for the linear loss: N(m_T, v_T)."""

    def moments(self, records: Any, factor: float) -> tuple[float, float]:
        numbers = self.numbers(factor)
        step, pull = numbers["step_size"], numbers["weight"] * float(np.sum(records))
        precision = float(self.plan.model.prior.precision(1)[0])
        mean, variance = 0.0, 0.0
        for _ in range(int(numbers["steps"])):
            mean = mean - step * (precision * mean + pull)
            variance = (1.0 - step * precision) ** 2 * variance + 2.0 * step
        return mean, variance


class GridPathCase(FiniteCase):
    """The last iterate of a margin loss along one row: if the prior has one scale, t = θᵀx/‖x‖ moves by itself."""

    @property
    def spread(self) -> float:
        return 1.0 / math.sqrt(self.plan.model.prior.precision(1)[0])

    @property
    def cells(self) -> int:
        """A third of a step's noise wide, or less: sums of Gaussians over such cells are exact to all digits."""
        noise = math.sqrt(2.0 * self.plan.parameters["step_size"])
        return int(max(801, 2 * math.ceil(36.0 * self.spread / noise) + 1))

    def law(self, records: Any, factor: float = 1.0) -> Array:
        numbers, model = self.numbers(factor), self.plan.model
        step, weight = numbers["step_size"], numbers["weight"]
        pull = weight * self.plan.n * numbers["lipschitz"] * self.spread**2
        grid = np.linspace(-1.0, 1.0, self.cells) * min(9.0 * self.spread + pull, 12.0 * self.spread)
        rows, responses = records_of(model, records)
        margins, counts = np.unique(np.linalg.norm(rows, axis=1) * responses, return_counts=True)
        slope = slope_of(model).slope

        def moved(place: Array) -> Array:
            gradient = place / self.spread**2
            for margin, count in zip(margins, counts, strict=True):
                gradient = gradient + weight * count * margin * slope(margin * place)
            return place - step * gradient

        edges = np.append(grid, 2.0 * grid[-1] - grid[-2]) - (grid[1] - grid[0]) / 2
        law = np.diff(special.ndtr((edges - moved(np.zeros(1))) / math.sqrt(2.0 * step)))  # from the public start, 0
        kernel = np.exp(-((grid[None, :] - moved(grid)[:, None]) ** 2) / (4.0 * step))
        kernel /= kernel.sum(axis=1, keepdims=True)
        for _ in range(int(numbers["steps"]) - 1):
            law = law @ kernel
        return np.asarray(law / law.sum())


def path_case(plan: Plan, *, label: str = "") -> Case:
    """The case of any noisy-gradient plan along one row."""
    model = plan.model
    if isinstance(model, ConvexLoss) and model.name == "linear" and model.dimension == 1:
        reason = "the iterates of a linear loss are an AR(1) process, for which the bound on the last one is attained"
        return LinearPathCase(plan, flips(model, plan.n), reason, True, label)
    if not of_classes(model) or model.row_blocks > 1:
        raise no_formula("noisy gradients of margin losses and of the linear loss, not of", model)
    slope_of(model)
    steps = plan.parameters["steps"]
    if model.prior.radius is not None or not centred(model.prior, model.dimension):
        raise no_formula("noisy gradients under a prior around 0 with one scale on all of R^d, not this one of", model)
    case = GridPathCase(plan, flips(model, plan.n), HALF, False, label)
    if steps > MOST_STEPS or case.cells > MOST_CELLS:
        raise WrongCall(
            f"This path takes {steps:,.0f} steps of a size that needs {case.cells:,} cells, more than the audit follows "
            f"({MOST_STEPS:,} steps, {MOST_CELLS:,} cells). Attack its draws with onedraw.audit.blackbox_lower_bound."
        )
    return case


def linear_path_cases(budget: Promise) -> list[Case]:
    return cases_of(path_case, [("", NoisyGradient(time=1.0), linear_model())], budget, n=4)


def logistic_path_cases(budget: Promise) -> list[Case]:
    model = Logistic(1, bounds=(-1, 1), intercept=False, prior=Gaussian(scale=1.0))
    return cases_of(path_case, [("", NoisyGradient(), model)], budget, n=50)
