"""Gibbs posteriors of a linear predictor, π(θ)·exp(−w Σ φ(θᵀx_i, y_i)), written down again.

Where all rows are multiples of one row x, the records speak of u = θᵀx alone: given u, the draw has the prior's law
under both data sets. So the pair's profile is that of u, in one dimension whatever d is, and exactly. Under the prior u
is normal with mean xᵀm and variance xᵀΛ⁻¹x; for an isotropic prior cut to a ball its density has the mass of the slice
as another factor.

Sources of the formulas: Minami, Arai, Sato, Nakagawa (NIPS 2016) and its supplement; the losses are the usual ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array, Mask
from onedraw.models import ConvexLoss, Gaussian
from onedraw.plans import Plan

from .case import DensityCase, LogDensity, Pair, no_formula
from .losses import Loss, along, centred, flips, loss_of, of_classes, records_of

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


def predictor_case(plan: Plan, *, rule: str = "rdp", linear: bool = False, label: str = "") -> PredictorCase:
    """Return the case of any plan for a convex loss.

    Parameters
    ----------
    rule : str
        The rule of Minami et al. by which the plan's weight was calibrated.
    linear : bool
        Whether the loss is as good as linear where the posterior is.
    """
    model = plan.model
    if model.prior.radius is not None and not centred(model.prior, model.dimension):
        raise no_formula("rows on a ball under a prior around 0 with one scale, not for this prior of", model)
    loss_of(model)
    attained = rule == "bounded" or (linear and rule in ("gdp", "rdp"))
    margin = HALF if of_classes(model) else UNKNOWN
    reason = {"theorem10": CUT, "bounded": RANGE}.get(rule, (LINEAR if attained else TAIL) if linear else margin)
    return PredictorCase(plan, flips(model, plan.n), reason, attained, label)
