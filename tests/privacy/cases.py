"""Exact privacy profiles of two neighbouring perturbed modes, by quadrature: the oracle of perturbed_mode.md.

θ* = argmin Σ a(z)φ + (Λ/2)‖θ‖² + bᵀθ. What the records in common contribute to the gradient is taken as w = Aθ + w₀, A ⪰ ΛI:
more than real records could do (any number of them, anywhere), so an attack on it is an attack on the theorem itself.
In the coordinate w the density of θ* is N(g(w); 0, σ²I)·det(I + HA⁻¹), g = w + Σ aφ'z and H = Σ aφ''zzᵀ over the
person's own records: no root has to be found. Nothing here is shared with the code under test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

# ── losses: slope and curvature in u = zᵀθ (labels ±1 are folded into z, numbers y are shifts) ──


def exp_linear(u):
    slope = -0.5 * np.exp(-np.maximum(u, 0.0))
    return slope, np.where(u >= 0.0, -slope, 0.0)


def logistic(u):
    q = special.expit(-u)
    return -q, q * (1.0 - q)


def huberised_hinge(u, width=0.5):
    """Slope −1 below 1 − width, 0 above 1, straight between."""
    slope = -np.clip((1.0 - u) / width, 0.0, 1.0)
    return slope, np.where((u > 1.0 - width) & (u < 1.0), 1.0 / width, 0.0)


def huber(u):
    return np.clip(u, -1.0, 1.0), (np.abs(u) < 1.0).astype(float)


def log_cosh(u):
    slope = np.tanh(u)
    return slope, 1.0 - slope**2


def quantile(u, level=0.8, width=0.2):
    """Slopes in [−τ, 1−τ], straight over ``width``."""
    slope = np.clip(u / width + 0.5, 0.0, 1.0) - level
    return slope, np.where(np.abs(u) < width / 2.0, 1.0 / width, 0.0)


def counts(u, count=0, largest=3):
    """Slope E min(Poisson(e^u), Y) − y."""
    rate = np.exp(np.clip(u, -700.0, 30.0))
    below = np.arange(largest)
    probabilities = np.exp(below * np.log(rate)[..., None] - rate[..., None] - special.gammaln(below + 1.0))
    mean = largest - (probabilities * (largest - below)).sum(axis=-1)
    return mean - count, rate * probabilities.sum(axis=-1)


@dataclass(frozen=True)
class Record:
    """One row, its loss and a shift: slope and curvature are taken at u = zᵀθ − y."""

    row: tuple[float, ...]
    loss: Callable[..., Any]
    response: float = 0.0
    radius: float = math.inf

    @property
    def weight(self):
        """Mallows: min(1, r²/‖z‖²)."""
        return min(1.0, self.radius**2 / max(float(np.dot(self.row, self.row)), 1e-300))

    def pull(self, theta):
        """Its gradient (…, d) and Hessian (…, d, d)."""
        row = np.asarray(self.row)
        slope, curvature = self.loss(theta @ row - self.response)
        outer = np.multiply.outer(row, row)
        return self.weight * slope[..., None] * row, self.weight * curvature[..., None, None] * outer


@dataclass(frozen=True)
class Profile:
    """The privacy loss under D with its masses: hockey-stick divergences at every real ε, in one direction."""

    loss: np.ndarray
    mass: np.ndarray

    def delta(self, epsilon, gaussian=0.0):
        """δ(ε), composed with a Gaussian stage of μ = ``gaussian`` that sees its own worst pair."""
        if gaussian:
            return float(self.mass @ gaussian_profile(gaussian, epsilon - self.loss))
        return float(self.mass @ np.maximum(-np.expm1(np.minimum(epsilon - self.loss, 0.0)), 0.0))

    def curve(self, epsilons):
        """δ at many ε at once, by sums over the losses above each."""
        order = np.argsort(self.loss)[::-1]
        loss, mass = self.loss[order], self.mass[order]
        above = np.concatenate([[0.0], np.cumsum(mass)])
        against = np.concatenate([[0.0], np.cumsum(mass * np.exp(-loss))])
        place = np.searchsorted(-loss, -np.asarray(epsilons))
        return above[place] - np.exp(epsilons) * against[place]

    @property
    def largest(self):
        return float(self.loss[self.mass > 0.0].max())


def gaussian_profile(mu, epsilon):
    """δ_G(μ; ε) for arrays of real ε, plainly."""
    epsilon = np.asarray(epsilon, dtype=float)
    second = np.exp(np.minimum(epsilon, 700.0) + special.log_ndtr(-epsilon / mu - mu / 2.0))
    return np.maximum(special.ndtr(-epsilon / mu + mu / 2.0) - second, 0.0)


def profiles(first, second, *, common, centre=None, sigma=None, eta=None, points=None, reach=8.5):
    """Both directions for two lists of records, b ~ N(0, σ²I) or of density ∝ e^{−η‖b‖}; w = A(θ − centre)."""
    common = np.atleast_2d(np.asarray(common, dtype=float))
    dimension = len(common)
    points = points or (20_001 if dimension == 1 else 301)
    centre = np.zeros(dimension) if centre is None else np.asarray(centre, dtype=float)
    half = (reach * sigma if sigma else 40.0 / eta) + max(_pull(first), _pull(second))
    axis = np.linspace(-half, half, points)
    w = np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    inverse = np.linalg.inv(common)
    theta = centre + w @ inverse
    logs = [_density(records, w, theta, inverse, sigma, eta) for records in (first, second)]
    return _both(*logs, cell=(axis[1] - axis[0]) ** dimension)


def softmax_pull(u, label):
    """Gradient (n, 3) and Hessian (n, 3, 3) of log Σe^u − u_y."""
    p = special.softmax(u, axis=1)
    return p - np.eye(3)[label], np.einsum("nk,kl->nkl", p, np.eye(3)) - p[:, :, None] * p[:, None, :]


def class_profiles(first, second, *, pull, common, centre, sigma=None, eta=None, points=301, reach=8.5):
    """Three classes, one column: Θ ∈ R³, whose part along (1, 1, 1) no record moves. A person's records are (z, class, scores).

    ``scores`` (3,) are added to a record's own: the limit of a second column, tiny in the rows and huge in the centre.
    """
    basis = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]).T / np.sqrt([2.0, 6.0])
    half = (reach * sigma if sigma else 40.0 / eta) + 2.0 * max(sum(abs(z) for z, *_ in one) for one in (first, second))
    axis = np.linspace(-half, half, points)
    w = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    inverse = np.linalg.inv(common)
    theta = np.asarray(centre) + w @ inverse
    logs = []
    for records in (first, second):
        gradient, hessian = w.copy(), np.zeros((len(w), 2, 2))
        for row, label, *scores in records:
            slopes, bend = pull(theta @ basis.T * row + (scores[0] if scores else 0.0), label)
            gradient += row * slopes @ basis
            hessian += row**2 * np.einsum("ki,nkl,lj->nij", basis, bend, basis)
        norm = np.sqrt((gradient**2).sum(axis=1))
        law = _gaussian(gradient, sigma) if sigma else -eta * norm + 2.0 * math.log(eta) - math.log(2.0 * math.pi)
        logs.append(law + _volume(hessian, inverse))
    return _both(*logs, cell=(axis[1] - axis[0]) ** 2)


def _both(first, second, *, cell):
    ratio = first - second
    return [Profile(ratio, np.exp(first) * cell), Profile(-ratio, np.exp(second) * cell)]


def _pull(records):
    """More than the records can move the gradient; slopes here are at most 3."""
    return 3.0 * sum(np.linalg.norm(record.row) * record.weight for record in records)


def _density(records, w, theta, inverse, sigma, eta):
    dimension = w.shape[1]
    gradient, hessian = w.copy(), np.zeros((len(w), dimension, dimension))
    for record in records:
        pull, bend = record.pull(theta)
        gradient += pull
        hessian += bend
    volume = _volume(hessian, inverse)
    if sigma:
        return _gaussian(gradient, sigma) + volume
    area = 2.0 if dimension == 1 else 2.0 * math.pi
    norm = np.sqrt((gradient**2).sum(axis=1))
    return -eta * norm + dimension * math.log(eta) - math.log(area * math.gamma(dimension)) + volume


def _volume(hessian, inverse):
    """log det(I + HA⁻¹) in one or two dimensions."""
    trace = np.einsum("nij,ji->n", hessian, inverse)
    if len(inverse) == 1:
        return np.log1p(trace)
    determinant = hessian[:, 0, 0] * hessian[:, 1, 1] - hessian[:, 0, 1] * hessian[:, 1, 0]
    return np.log1p(trace + determinant * np.linalg.det(inverse))


def _gaussian(gradient, sigma):
    dimension = gradient.shape[1]
    return -(gradient**2).sum(axis=1) / (2.0 * sigma**2) - dimension / 2.0 * math.log(2.0 * math.pi * sigma**2)


def worst(found, epsilon, gaussian=0.0):
    """The larger of the two directions."""
    return max(profile.delta(epsilon, gaussian) for profile in found)


def opposed(loss, *, radius=1.0, angle=0.02, depth=12.0, flip=True):
    """Two rows almost equal (the label flipped for classification), and a centre so far out that both pull with full slope."""
    row, other = ((math.cos(angle), side * math.sin(angle)) for side in (1.0, -1.0))
    sign = -1.0 if flip else 1.0
    first = Record(tuple(radius * x for x in row), loss)
    second = Record(tuple(sign * radius * x for x in other), loss)
    return first, second, (0.0, -depth / (radius * math.sin(angle)))
