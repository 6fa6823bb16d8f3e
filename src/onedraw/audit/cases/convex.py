"""Gibbs posteriors of a linear predictor, written down again: π(θ)·exp(−w Σ φ(θᵀx_i, y_i)).

Where all rows are multiples of one row x, the records speak of u = θᵀx alone: given u, the draw has the prior's law
under both data sets. So the pair's profile is that of u, in one dimension whatever d is, and exactly. Under the prior u
is normal with mean xᵀm and variance xᵀΛ⁻¹x; for an isotropic prior cut to a ball its density has the mass of the slice as
another factor.

Sources of the formulas: Minami, Arai, Sato, Nakagawa (NIPS 2016) and its supplement; the losses are the usual ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from onedraw.errors import PromiseRefused, WrongCall
from onedraw.mechanisms import Gibbs, Plan, calibrate
from onedraw.models import (
    ConvexLoss,
    Gaussian,
    Hinge,
    HuberisedHinge,
    HuberRegression,
    LeastSquares,
    Logistic,
    Quantile,
)
from onedraw.privacy import Promise

from .case import Array, Case, DensityCase, LogDensity, Pair

Loss = Callable[[Array, float], Array]

FAR_OUT = 60.0
"""A density is followed until it has fallen by e^−60."""


@dataclass(frozen=True)
class PredictorCase(DensityCase):
    """Records along one row: a law of u = θᵀx."""

    @cached_property
    def row(self) -> Array:
        """x, the encoded row that all records are multiples of."""
        rows = np.asarray(rows_of(self.pairs[0].first), dtype=np.float64)[:1]
        return np.asarray(encoded(self.plan.model, rows)[0])

    @property
    def weight(self) -> float:
        numbers = self.plan.parameters
        return numbers["weight"] if "weight" in numbers else numbers["r"]

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
        """Where either density is within e^−60 of its top; all of it on a ball, or if a pure promise looks everywhere."""
        radius = self.plan.model.prior.radius
        if radius is not None:
            end = radius * float(np.linalg.norm(self.row))
            return ((-end, end),)
        mean, variance = self._prior
        half = 12.0 * math.sqrt(variance) + self._furthest(pair, factor)
        if self.promise.pure_epsilon < math.inf:
            return ((mean - half, mean + half),)
        grid = np.linspace(mean - half, mean + half, 20_001)
        near = np.zeros(grid.shape, dtype=bool)
        for records in (pair.first, pair.second):
            values = self._of_predictor(records, factor)(grid)
            near |= values > values.max() - FAR_OUT
        inside = grid[near]
        step = grid[1] - grid[0]
        return ((float(inside[0] - step), float(inside[-1] + step)),)

    @cached_property
    def _prior(self) -> tuple[float, float]:
        """Mean and variance of u."""
        model, d = self.plan.model, len(self.row)
        variance = float(self.row @ (self.row / model.prior.precision(d)))
        return float(self.row @ model.prior.location(d)), variance * self.plan.parameters.get("prior_factor", 1.0)

    def _furthest(self, pair: Pair, factor: float) -> float:
        """How far n records of slope L can move u: n·w·L·(variance of u per unit of predictor)."""
        slope = self.plan.parameters.get("lipschitz", 0.0) / float(np.linalg.norm(self.row))
        return factor * self.weight * self.plan.n * slope * self._prior[1]

    def _of_predictor(self, records: Any, factor: float) -> LogDensity:
        (mean, variance), phi = self._prior, self.loss
        scales, responses, counts = self._grouped(records)
        weight = factor * self.weight
        prior = self._log_slice

        def density(u: Array) -> Array:
            total = prior(u) - (u - mean) ** 2 / (2.0 * variance)
            for scale, response, count in zip(scales, responses, counts, strict=True):
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

    def _grouped(self, records: Any) -> tuple[Array, Array, Array]:
        """Each different record once: its multiple of the row, its response, how often it stands there."""
        rows = encoded(self.plan.model, np.asarray(rows_of(records), dtype=np.float64))
        scales = rows @ self.row / float(self.row @ self.row)
        if not np.allclose(rows, np.outer(scales, self.row), atol=1e-12):
            raise WrongCall(
                "The rows of a pair must be multiples of one row, or their law is not one of a single number."
            )
        responses = signed(self.plan.model, responses_of(records), len(rows))
        unique, counts = np.unique(np.stack([scales, responses], axis=1), axis=0, return_counts=True)
        return unique[:, 0], unique[:, 1], counts.astype(np.float64)


@dataclass(frozen=True)
class PlaneCase(DensityCase):
    """Two parameters and any rows: a law on the plane."""

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        model = self.plan.model
        rows = encoded(model, np.asarray(rows_of(records), dtype=np.float64))
        responses = signed(model, responses_of(records), len(rows))
        unique, counts = np.unique(np.column_stack([rows, responses]), axis=0, return_counts=True)
        weight, phi = factor * self.plan.parameters["weight"], loss_of(model)
        precision, mean = model.prior.precision(2), model.prior.location(2)

        def density(thetas: Array) -> Array:
            total = -0.5 * ((thetas - mean) ** 2) @ precision
            for record, count in zip(unique, counts, strict=True):
                total = total - weight * count * phi(thetas @ record[:2], record[2])
            return np.asarray(total)

        return density

    def integrand(self, records: Any, factor: float) -> LogDensity:
        return self.logdensity(records, factor)

    def domain(self, pair: Pair, factor: float) -> Any:
        half = 12.0 * float(self.plan.model.prior.precision(2).min()) ** -0.5
        low, high = np.array([-half, -half]), np.array([half, half])
        for _ in range(3):  # narrow the box to where there is something to see
            axes = [np.linspace(low[k], high[k], 161) for k in range(2)]
            points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
            near = np.zeros(len(points), dtype=bool)
            for records in (pair.first, pair.second):
                values = self.logdensity(records, factor)(points)
                near |= values > values.max() - FAR_OUT
            step = np.array([axis[1] - axis[0] for axis in axes])
            low, high = points[near].min(axis=0) - step, points[near].max(axis=0) + step
        return tuple((float(a), float(b)) for a, b in zip(low, high, strict=True))


# ── reading records, and the losses, as the papers have them ───────────────────────────────────────────────


def rows_of(records: Any) -> Any:
    return records[0] if isinstance(records, tuple) else records


def responses_of(records: Any) -> Any:
    return records[1] if isinstance(records, tuple) else None


def encoded(model: Any, rows: Array) -> Array:
    """Rows with the intercept's 1; on [−1, 1] where the model scales them. They lie within the bounds already."""
    features = model.features
    if getattr(features, "scaled", False):
        lower, upper = (np.array(end if isinstance(end, tuple) else (end,) * features.count) for end in features.box)
        middle = (lower + upper) / 2 if features.intercept else 0.0
        half = (upper - lower) / 2 if features.intercept else np.maximum(np.abs(lower), np.abs(upper))
        rows = (rows - middle) / half
    return np.column_stack([rows, np.ones(len(rows))]) if features.intercept else rows


def signed(model: Any, responses: Any, n: int) -> Array:
    """±1 for classes, numbers otherwise, 0 where there are none."""
    if responses is None:
        return np.zeros(n)
    if hasattr(model, "classes"):
        positive = 1 if model.classes is None else model.classes[1]
        return np.array([1.0 if label == positive else -1.0 for label in responses])
    return np.asarray(responses, dtype=np.float64)


def loss_of(model: Any) -> Loss:
    """φ(u, y), from the definition."""
    match model:
        case Logistic(loss="logistic"):
            return lambda u, y: np.logaddexp(0.0, -y * u)
        case Logistic(loss="exp-linear", exponent=1.0):
            return lambda u, y: np.where(y * u >= 0, 0.5 * np.exp(-np.maximum(y * u, 0.0)), 0.5 - 0.5 * y * u)
        case Hinge():
            return lambda u, y: np.maximum(0.0, 1.0 - y * u)
        case HuberisedHinge(width=h):
            return lambda u, y: _parabola(1.0 - y * u, h)
        case HuberRegression(threshold=tau):
            return lambda u, y: np.where(np.abs(y - u) <= tau, (y - u) ** 2 / 2, tau * np.abs(y - u) - tau**2 / 2)
        case Quantile(level=q, smoothing=None):
            return lambda u, y: np.where(y >= u, q * (y - u), (1.0 - q) * (u - y))
        case LeastSquares():
            return lambda u, y: (y - u) ** 2 / 2
        case ConvexLoss(name="linear"):
            return lambda u, y: u
    raise WrongCall(
        f"The audit has no formula for the loss of {type(model).__name__}, so its draws cannot be attacked from densities. "
        "It knows Logistic, Hinge, HuberisedHinge, HuberRegression, Quantile, LeastSquares; use onedraw.audit with your own."
    )


def _parabola(short: Array, h: float) -> Array:
    return np.where(short <= 0, 0.0, np.where(short < h, short**2 / (2 * h), short - h / 2))


def linear_loss(theta: Any, x: Any, y: Any) -> Any:
    """θᵀx: convex, as Lipschitz as its row is long, and without curvature: what every Lipschitz rule is attained by."""
    return theta @ x


def linear_model(radius: float | None = None, *, smooth: bool = True) -> ConvexLoss:
    """One feature in [−1, 1], prior N(0, 1): the loss that attains every Lipschitz rule."""
    return ConvexLoss(
        linear_loss, 1, features=1, data_norm=1.0, lipschitz=1.0, smoothness=1e-9 if smooth else None, name="linear",
        sensitivity=None if radius is None else 2.0 * radius, prior=Gaussian(scale=1.0, radius=radius),
    )  # fmt: skip


# ── pairs ──────────────────────────────────────────────────────────────────────────────────────────────────


def longest_row(model: Any, *, unbounded: float = 40.0) -> Array:
    """An admissible row of the largest norm the model declares; of norm ``unbounded`` where it declares none."""
    features = model.features
    if features.data_norm is not None:
        return np.full(features.count, features.data_norm / math.sqrt(features.count)) * (1.0 - 1e-12)
    if features.box is None:
        return np.full(features.count, unbounded / math.sqrt(features.count))
    lower, upper = (np.array(end if isinstance(end, tuple) else (end,) * features.count) for end in features.box)
    return np.where(np.abs(upper) >= np.abs(lower), upper, lower)


def opposite_responses(model: Any) -> tuple[Any, Any]:
    """The two responses whose losses pull furthest apart."""
    if hasattr(model, "classes"):
        return (1, 0) if model.classes is None else (model.classes[1], model.classes[0])
    reach = 1.0 if model.response is None else model.response.interval[1]
    return reach, -reach


def flips(model: Any, n: int) -> tuple[Pair, ...]:
    """One record's response flipped, all rows the longest one; the others half and half, or agreeing with one side.

    Where all others agree, the posterior lies where their losses are flat and adds no curvature to the prior's.
    """
    row = longest_row(model)
    if isinstance(model, ConvexLoss):
        others = np.array([row if index % 2 else -row for index in range(n - 1)]).reshape(n - 1, len(row))
        return (Pair("one row turned round", np.vstack([others, row]), np.vstack([others, -row])),)
    yes, no = opposite_responses(model)
    X = np.tile(row, (n, 1))
    crowds = {"balanced": [no if index % 2 else yes for index in range(n - 1)], "agreeing": [yes] * (n - 1)}
    chosen = crowds.items() if n > 1 else [("none", [])]
    return tuple(
        Pair(f"one response flipped, others {name}", (X, [*others, yes]), (X, [*others, no])) for name, others in chosen
    )


# ── the cases ──────────────────────────────────────────────────────────────────────────────────────────────

LINEAR = "where the posterior is, the losses are linear, and it is two Gaussians at the distance the rule allows"
TAIL = "the posteriors are as far apart as the rule allows, but its (ε, δ) comes from a tail bound that gives some away"
CUT = "the ball cuts the tails off the two Gaussians"
HALF = "G = 2L counts two records far on the wrong side at once; along one row the two slopes of a margin loss add up to one"
RANGE = "the log-ratio of the two losses runs over its whole range on the ball"
UNKNOWN = "the pair is the worst one along a single row"

RULES = ("gdp", "theorem7", "corollary8", "rdp")
ON_A_BALL = ("theorem10", "bounded")


def predictor_case(plan: Plan, *, linear: bool = False, label: str = "") -> PredictorCase:
    """The case of any plan for a convex loss of a linear predictor; ``linear``: as good as linear where the posterior is."""
    model, rule = plan.model, getattr(plan.mechanism, "rule", "rdp")
    d = model.dimension
    if model.prior.radius is not None and (
        len(set(model.prior.precision(d))) > 1 or np.any(model.prior.location(d) != 0)
    ):
        raise WrongCall(
            "On a ball the audit follows one row only under a prior around 0 with one scale for all coordinates, and this one "
            "is another. Audit the model's own density with onedraw.audit in up to two dimensions."
        )
    loss_of(model)
    attained = rule == "bounded" or (linear and rule in ("gdp", "rdp"))
    margin = HALF if hasattr(model, "classes") else UNKNOWN
    reason = {"theorem10": CUT, "bounded": RANGE}.get(rule, (LINEAR if attained else TAIL) if linear else margin)
    return PredictorCase(plan, flips(model, plan.n), reason, attained, label)


def linear_cases(budget: Promise, *, n: int = 4) -> list[Case]:
    """Every Lipschitz rule on the loss that attains them."""
    return rule_cases(linear_model, (None, 3.0), budget, n=n, rules=(*RULES, *ON_A_BALL), linear=True)


def logistic_cases(budget: Promise, *, n: int = 4) -> list[Case]:
    """Along one row."""

    def model(radius: float | None) -> Logistic:
        return Logistic(1, bounds=(-1, 1), intercept=False, prior=Gaussian(scale=1.0, radius=radius))

    return rule_cases(model, (None, 2.0), budget, n=n, rules=(*RULES, *ON_A_BALL), linear=False)


def hinge_cases(budget: Promise, *, n: int = 1) -> list[Case]:
    """Rows of norm 0.1: the posterior hardly sees the kink, and the loss is as good as linear."""

    def model(radius: float | None) -> Hinge:
        return Hinge(1, data_norm=0.1, intercept=False, prior=Gaussian(scale=1.0, radius=radius))

    return rule_cases(model, (None, 5.0), budget, n=n, rules=(*RULES, *ON_A_BALL), linear=True)


def huber_cases(budget: Promise, *, n: int = 3) -> list[Case]:
    """Responses at ±20, far beyond the threshold: every residual is on the linear part."""

    def model(radius: float | None) -> HuberRegression:
        prior = Gaussian(scale=1.0, radius=radius)
        return HuberRegression(1, threshold=1.0, response_bound=20.0, data_norm=1.0, intercept=False, prior=prior)

    return rule_cases(model, (None, 5.0), budget, n=n, rules=(*RULES, *ON_A_BALL), linear=True)


def least_squares_cases(budget: Promise, *, n: int = 4) -> list[Case]:
    prior = Gaussian(scale=1.0, radius=1.0)
    model = LeastSquares(1, response_bound=1.0, data_norm=1.0, intercept=False, prior=prior)
    return rule_cases(lambda _: model, (1.0, 1.0), budget, n=n, rules=("gdp", "bounded"), linear=False)


def rule_cases(
    model_of: Callable[[float | None], Any], radii: tuple[float | None, float], budget: Promise, *, n: int,
    rules: tuple[str, ...], linear: bool,
) -> list[Case]:  # fmt: skip
    """One case for each rule that keeps the budget, with the second radius for the rules that need a ball."""
    cases: list[Case] = []
    for rule in rules:
        plan = eligible(Gibbs(rule), model_of(radii[rule in ON_A_BALL]), budget, n=n)
        if plan is not None:
            cases.append(predictor_case(plan, linear=linear))
    return cases


def eligible(mechanism: Any, model: Any, budget: Promise, *, n: int) -> Plan | None:
    """The plan, or None where the mechanism cannot keep this budget."""
    try:
        return calibrate(mechanism, model, budget, n=n)
    except PromiseRefused:
        return None
