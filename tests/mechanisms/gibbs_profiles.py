"""Exact privacy profiles of concrete pairs of Gibbs posteriors, by quadrature in one and two dimensions."""

from __future__ import annotations

import math

import numpy as np


class Pair:
    """Two log densities on the same grid: their normalised masses and log-ratio."""

    def __init__(self, first, second, cell):
        self.first = self._normalised(first, cell)
        self.second = self._normalised(second, cell)
        self.log_ratio = self._log(first, cell) - self._log(second, cell)

    @staticmethod
    def _log(values, cell):
        top = values.max()
        return values - (top + math.log(np.exp(values - top).sum() * cell))

    def _normalised(self, values, cell):
        return np.exp(self._log(values, cell)) * cell

    def delta(self, epsilon):
        """The larger of the two hockey-stick divergences at ε."""
        factor = math.exp(epsilon)
        return max(
            float(np.maximum(p - factor * q, 0.0).sum())
            for p, q in ((self.first, self.second), (self.second, self.first))
        )

    @property
    def supremum(self):
        return float(np.abs(self.log_ratio).max())

    @property
    def range(self):
        return float(self.log_ratio.max() - self.log_ratio.min())


def gibbs_pair(loss, records, neighbour, *, weight, precision, radius=None, dimension=1, width=None, points=None):
    """The pair of posteriors ∝ exp(−w Σ loss(θ, record) − precision·‖θ‖²/2), on R^d (cut far out) or a ball."""
    points = points or (20_001 if dimension == 1 else 401)
    half = radius or width
    axis = np.linspace(-half, half, points)
    theta = np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    if radius is not None:
        theta = theta[(theta**2).sum(axis=1) <= radius**2 * (1 + 1e-12)]
    prior = -0.5 * precision * (theta**2).sum(axis=1)
    potentials = [prior - weight * sum(loss(theta, record) for record in data) for data in (records, neighbour)]
    return Pair(*potentials, cell=(axis[1] - axis[0]) ** dimension)


def hinge(theta, record):
    z, y = record
    return np.maximum(0.0, 1.0 - y * (theta @ z))


def logistic(theta, record):
    z, y = record
    return np.logaddexp(0.0, -y * (theta @ z))


def linear(theta, record):
    z, y = record
    return -y * (theta @ z)


def huber(threshold):
    def loss(theta, record):
        z, y = record
        residual = np.abs(y - theta @ z)
        return np.where(residual <= threshold, residual**2 / 2, threshold * (residual - threshold / 2))

    return loss


def squares(theta, record):
    z, y = record
    return (y - theta @ z) ** 2 / 2
