"""Mean and covariance of a draw before it is made: where it is pulled, what the sample adds, what privacy adds.

The asymptotic law of a draw, with the prior kept (proof.md). For records of the reference design with truth θ₀, n of them, weight w, prior
precision P and location θ_π, one draw is nearly normal:

    mean m with n·w·E∇ℓ(m) + P(m − θ_π) = 0,    from the sample n·w²·A⁻¹KA⁻¹,    from the draw A⁻¹,    A = n·w·H + P,

H = E∇²ℓ and K = Cov ∇ℓ at m, both averaged over the draw's own spread (the Gaussian that is nearest to the posterior,
rather than Laplace's at its mode: a flat posterior sees more of the loss than its mode does). A noisy-gradient path
follows the same potential for a finite time τ from θ_π: its mean, its spread Σ' = 2I − AΣ − ΣA and the sample's share
D' = −AD − wI are carried along the path. Rounds of candidates are weighted means of draws of smaller weights.

Expectations over rows are sums over public points whose second moments are exact; those over responses are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array, Mask
from onedraw.methods.draws.losses import Weighted, loss_of
from onedraw.models import Gaussian
from onedraw.models.convex.losses import HuberisedHingeLoss, LogisticLoss
from onedraw.models.convex.number_losses import ResidualLoss, SquaredLoss
from onedraw.models.design import POINTS_SEED, Design, mean_curvature, public_points
from onedraw.models.likelihood.likelihood_model import Linear
from onedraw.models.likelihood.reference_design import ReferenceDesign
from onedraw.plans import Plan

TRUTHS, POINTS = 4, 400
"""Parameters and rows that expectations are taken over."""

SPREAD_NODES, SPREAD_MASS = np.array([-math.sqrt(3.0), 0.0, math.sqrt(3.0)]), np.array([1.0, 4.0, 1.0]) / 6.0
"""A normal law by its first five moments."""

ITERATIONS, TOLERANCE = 60, 1e-4
PATH_STEPS = 24
TRIES = 64
"""Draws outside a ball are drawn again this often before they are put onto its surface."""


@dataclass(frozen=True, eq=False)
class Moments:
    """What is expected of one draw, for each of several truths: arrays (truths, d) and (truths, d, d)."""

    truth: Array
    mean: Array
    sampling: Array
    """Covariance of the draw's mean from one sample to the next."""
    drawing: Array
    """Covariance of one draw for one sample."""
    plain: Array
    """Covariance of the usual estimate without privacy."""
    information: Array
    """H of one record at the truth, for the mechanism's own loss."""
    variability: Array
    """K there."""
    varying: Mask
    """Which coefficients something is to be learnt about."""
    radius: float | None = None

    @property
    def bias(self) -> Array:
        return self.mean - self.truth

    def errors(self, draws: int, by: Any = 1.0) -> tuple[float, float, float]:
        """(of the mean of ``draws`` draws, of the plain estimate, of the bias alone): root mean squares per coefficient, each
        of them times ``by``."""
        squared = (np.broadcast_to(by, self.truth.shape[1:]) ** 2)[self.varying]
        total = self._variances(self.sampling + self.drawing / draws, squared)
        bias = float((self.bias[:, self.varying] ** 2 * squared).mean())
        squares = bias + total
        if self.radius is not None:  # by simulation, each draw inside the ball
            generator, found = np.random.default_rng(POINTS_SEED), []
            for truth, mean, sampling, drawing in zip(self.truth, self.mean, self.sampling, self.drawing, strict=True):
                centres = mean + generator.standard_normal((256, len(mean))) @ _root(sampling).T
                inside = [_on_ball(centres, _root(drawing), self.radius, generator) for _ in range(draws)]
                found.append(((np.mean(inside, axis=0) - truth)[:, self.varying] ** 2 * squared).mean())
            squares = float(np.mean(found))
        return math.sqrt(squares), math.sqrt(self._variances(self.plain, squared)), math.sqrt(bias)

    def _variances(self, covariances: Array, squared: Array) -> float:
        return float((np.diagonal(covariances, axis1=1, axis2=2)[:, self.varying] * squared).mean())


def design_of(plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Design:
    """The design of a plan's model, at the sizes given, or those its mechanism declares, or the usual ones."""
    mechanism = getattr(plan.mechanism, "of", plan.mechanism)
    effect, noise = effect or getattr(mechanism, "effect", None), noise or getattr(mechanism, "noise", None)
    return Design.of(plan.model, effect=effect, noise=noise)


@lru_cache(maxsize=256)
def moments_of(plan: Plan, design: Design) -> Moments | None:
    """The moments of one of the plan's draws; None where nothing is known of its loss. Ranking asks for them repeatedly."""
    loss = loss_of(plan, design)
    if loss is None or not isinstance(plan.model.prior, Gaussian):
        return _linear_moments(plan, design)
    average = _Average(design, loss)
    truth, information, variability, plain = average.target()
    mean, sampling, drawing = average.of(plan, truth)
    radius = plan.model.prior.radius
    return Moments(truth, mean, sampling, drawing, plain / plan.n, information, variability, design.varying, radius)


def estimands(plan: Plan, design: Design, truths: Array) -> Array:
    """What the plan's loss estimates at each of the design's parameters: themselves, for a consistent loss."""
    loss = loss_of(plan, design)
    return truths if loss is None else _Average(design, loss, truths).target()[0]


def _root(matrix: Array) -> Array:
    """The symmetric root: it does not turn with the signs of eigenvectors, which a last digit or another machine decides."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _on_ball(centres: Array, root: Array, radius: float, generator: np.random.Generator) -> Array:
    draws = centres + generator.standard_normal(centres.shape) @ root.T
    for _ in range(TRIES):
        outside = np.linalg.norm(draws, axis=1) > radius
        if not outside.any():
            return draws
        draws[outside] = centres[outside] + generator.standard_normal((outside.sum(), centres.shape[1])) @ root.T
    lengths = np.linalg.norm(draws, axis=1, keepdims=True)
    return np.asarray(draws * np.minimum(1.0, radius / lengths))


# ── averages over the design ─────────────────────────────────────────────────────────────────────────────────

Found = tuple[Array, Array, Array]


class _Average:
    """Expectations over the design's rows and responses, for several truths side by side."""

    def __init__(self, design: Design, loss: Any, truths: Array | None = None) -> None:
        self.design, self.loss = design, loss
        self.rows, self.truths = public_points(design, POINTS, TRUTHS)
        if truths is not None:
            self.truths = truths
        scores = (self.truths @ self.rows.T)[:, :, None]
        # responses: nodes (truths, rows, nodes) and their probabilities
        if design.numeric:
            self.responses = np.clip(scores + design.noise * _NORMAL, -design.limit, design.limit)
            self.masses = np.broadcast_to(_NORMAL_MASS, self.responses.shape)
        else:
            self.responses = np.broadcast_to(np.array([1.0, -1.0]), (*scores.shape[:2], 2))
            self.masses = special.expit(self.responses * scores)

    def derivatives(self, thetas: Array, spreads: Array | None, loss: Any = None) -> Found:
        """E∇ℓ, H and Cov ∇ℓ at each θ, slopes and curvatures averaged over θ ~ N(θ, spread)."""
        loss = self.loss if loss is None else loss
        scores = (thetas @ self.rows.T)[:, :, None]
        if spreads is None:
            slopes, curvatures = loss.slope(scores, self.responses), loss.curvature(scores, self.responses)
        else:
            deviations = np.sqrt(((self.rows @ spreads) * self.rows).sum(axis=2))[:, :, None]
            near = [scores + node * deviations for node in SPREAD_NODES]
            slopes = sum(m * loss.slope(u, self.responses) for m, u in zip(SPREAD_MASS, near, strict=True))
            curvatures = sum(m * loss.curvature(u, self.responses) for m, u in zip(SPREAD_MASS, near, strict=True))
        count = len(self.rows)
        gradient = (self.masses * slopes).sum(axis=2) @ self.rows / count
        hessian = _moments((self.masses * curvatures).sum(axis=2), self.rows)
        squares = _moments((self.masses * slopes**2).sum(axis=2), self.rows)
        return gradient, hessian, squares - gradient[:, :, None] * gradient[:, None, :]

    def target(self) -> tuple[Array, Array, Array, Array]:
        """The parameters to be estimated, H and K there, and n times the covariance of the usual estimate."""
        usual = LogisticLoss() if not self.design.numeric else SquaredLoss()
        plain = self.loss.of if isinstance(self.loss, Weighted) else self.loss
        probe = np.array([0.7, 1.9])  # an even loss of a residual estimates the mean
        even = not isinstance(plain, ResidualLoss) or np.allclose(plain.slope(probe, 0.0), -plain.slope(-probe, 0.0))
        consistent = even and not isinstance(plain, HuberisedHingeLoss)
        truth = self.truths if consistent else self._minimum()
        _, information, variability = self.derivatives(truth, None)
        _, hessian, squares = self.derivatives(truth, None, usual if consistent else self.loss)
        inverse = np.linalg.pinv(hessian, rcond=1e-10, hermitian=True)
        return truth, information, variability, inverse @ squares @ inverse

    def _minimum(self) -> Array:
        """Newton steps, damped by the curvature at the start: these losses are flat in places."""
        theta = self.truths.copy()
        damping: Array | None = None
        for _ in range(ITERATIONS):
            gradient, hessian, _ = self.derivatives(theta, None)
            damping = 0.5 * hessian if damping is None else damping
            theta = theta - _solve(hessian + damping + 1e-9 * np.eye(theta.shape[1]), gradient)
        return theta

    def of(self, plan: Plan, truth: Array) -> Found:
        """Mean, covariance from the sample and covariance from the draw, by what the plan's mechanism does."""
        n, weight, prior = plan.n, plan.parameters["weight"], plan.model.prior
        precision, location = prior.precision(truth.shape[1]), prior.location(truth.shape[1])
        if (time := plan.mechanism.diffusion_time(plan)) is not None:
            return self.path(n, weight, precision, location, time=time, truth=truth)
        if (parts := plan.mechanism.pick_shares(plan)) is not None:
            return self.rounds(n, weight, precision, location, parts=parts)
        return self.posterior(n, weight, precision, location)

    def posterior(self, n: int, weight: float, precision: Array, location: Array) -> Found:
        """An exact draw of this weight: the nearest Gaussian, by damped Newton steps from the truth."""
        theta = self.truths.copy()
        spread: Array | None = None
        for _ in range(ITERATIONS):
            gradient, hessian, variability = self.derivatives(theta, spread)
            curvature = _positive(n * weight * hessian + np.diag(precision))
            force = n * weight * gradient + precision * (theta - location)
            step = _solve(curvature, force)
            spread = np.asarray(np.linalg.inv(curvature))
            theta = theta - step
            if np.abs(step).max() < TOLERANCE * np.sqrt(spread.max()):
                break
        assert spread is not None
        return theta, n * weight**2 * spread @ variability @ spread, spread

    def rounds(self, n: int, weight: float, precision: Array, location: Array, *, parts: Sequence[float]) -> Found:
        """The mean of picks, weighted by these parts; every pick has the whole prior."""
        mean = np.zeros_like(self.truths)
        drawing = sampling = np.zeros((*self.truths.shape, self.truths.shape[1]))
        for part in parts:
            centre, _, spread = self.posterior(n, part * weight, precision, location)
            mean, drawing = mean + part * centre, drawing + part**2 * spread
            sampling = sampling + part**2 * weight * spread  # D, the sample's share
        _, _, variability = self.derivatives(mean, drawing)
        return mean, n * sampling @ variability @ sampling, drawing

    def path(self, n: int, weight: float, precision: Array, location: Array, *, time: float, truth: Array) -> Found:
        """A noisy-gradient path of this time from the prior's location."""
        theta = np.broadcast_to(location, truth.shape).copy()
        identity = np.eye(truth.shape[1])
        spread = np.zeros((len(theta), *identity.shape))
        share = np.zeros_like(spread)
        duration = time / PATH_STEPS
        for _ in range(PATH_STEPS):
            gradient, hessian, variability = self.derivatives(theta, spread)
            values, vectors = np.linalg.eigh(_positive(n * weight * hessian + np.diag(precision)))
            kept, moved = np.exp(-values * duration), -np.expm1(-values * duration) / values
            keep, move = (_rebuilt(vectors, part) for part in (kept, moved))
            force = n * weight * gradient + precision * (theta - location)
            theta = theta - (move @ force[:, :, None])[:, :, 0]
            share = keep @ share - weight * move
            spread = keep @ spread @ keep + _rebuilt(vectors, -np.expm1(-2.0 * values * duration) / values)
        return theta, n * share @ variability @ np.swapaxes(share, 1, 2), spread


_NORMAL, _NORMAL_MASS = np.polynomial.hermite_e.hermegauss(15)
_NORMAL_MASS = _NORMAL_MASS / _NORMAL_MASS.sum()


def _moments(weights: Array, rows: Array) -> Array:
    """Σ_q weights[m, q]·x_q x_qᵀ / count."""
    return np.asarray(np.swapaxes(rows * weights[:, :, None], 1, 2) @ rows / len(rows))


def _solve(matrices: Array, vectors: Array) -> Array:
    return np.asarray(np.linalg.solve(matrices, vectors[:, :, None])[:, :, 0])


def _rebuilt(vectors: Array, values: Array) -> Array:
    return np.asarray((vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2))


def _positive(matrices: Array) -> Array:
    """A β-loss is not convex: directions in which its average bends down are taken as nearly flat."""
    values, vectors = np.linalg.eigh(matrices)
    floor = 1e-3 * np.abs(values).max(axis=1, keepdims=True)
    return _rebuilt(vectors, np.maximum(values, floor))


def _linear_moments(plan: Plan, design: Design) -> Moments | None:
    """The same with H and K as they are at the design's average truth: for several classes, and sampled variances."""
    found = _average_information(plan, design)
    if found is None:
        return None
    information, variability = found
    size = len(information)
    truth = design.parameters(np.random.default_rng(POINTS_SEED), TRUTHS)
    if truth.shape[1] != size:
        return None
    n, weight, prior = plan.n, plan.parameters["weight"], plan.model.prior
    precision = prior.precision(size) if isinstance(prior, Gaussian) else np.full(size, prior.scale**-2.0)
    curvature = n * weight * information + np.diag(precision)
    share = drawing = np.asarray(np.linalg.inv(curvature))
    if (time := plan.mechanism.diffusion_time(plan)) is not None:
        values, vectors = np.linalg.eigh(curvature)
        left = np.exp(-values * time)
        share, drawing = ((vectors * (gone / values)) @ vectors.T for gone in (1.0 - left, 1.0 - left**2))
    mean = truth @ (n * weight * share @ information).T
    drawing = design.identified(design.identified(drawing).T)
    sampling = n * weight**2 * share @ variability @ share
    inverse = np.linalg.pinv(information, rcond=1e-10, hermitian=True)
    several = TRUTHS, size, size
    return Moments(
        truth, mean, np.broadcast_to(sampling, several), np.broadcast_to(drawing, several),
        np.broadcast_to(inverse @ variability @ inverse / n, several), np.broadcast_to(information, several),
        np.broadcast_to(variability, several), np.tile(design.varying, design.classes), getattr(plan.model.prior, "radius", None),
    )  # fmt: skip


def _average_information(plan: Plan, design: Design) -> tuple[Array, Array] | None:
    """H and K of one record, for all coefficients."""
    model, features = plan.model, plan.model.features
    if not isinstance(getattr(model, "predictor_function", None), Linear) or not features.bounded:
        return None
    if "beta" in plan.parameters:
        found = ReferenceDesign(model, design.effect, design.noise).moments(plan.parameters["beta"])
        if found is None:
            return None
        information, variability = (part[: features.width, : features.width] for part in found)
    else:
        known = Design(features).second_moments(lambda shares: mean_curvature(model.kernel, design.effect**2 * shares))
        if known is None:
            return None
        information = variability = known
    if design.classes == 1:
        return information, variability
    contrast = np.eye(design.classes) - 1.0 / design.classes
    across, varying = np.kron(contrast, information), np.kron(contrast, variability)
    return np.asarray(across, dtype=np.float64), np.asarray(varying, dtype=np.float64)
