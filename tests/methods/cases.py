"""What tests of several mechanisms share: exact privacy profiles of pairs of Gibbs posteriors, by quadrature in one and two
dimensions; and all of a small world, the law of every path of picks for every data set of a few records."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import strategies as st

import onedraw as od
from onedraw import models
from onedraw.methods.convex_bounds import Curvature

constants = st.builds(
    Curvature,
    st.floats(1e-3, 1e3),
    st.floats(1e-3, 1e3),
    strong_convexity=st.one_of(st.just(0.0), st.floats(1e-6, 10.0)),
    n=st.integers(1, 10**7),
    records_per_person=st.integers(1, 5),
    draws=st.integers(1, 9),
)
"""Bounds of a convex model, as calibration sees them."""

ROWS = {"features": 3, "bounds": (-1, 1), "scaled": True, "prior": od.Gaussian(scale=1.0)}
FITTED = {
    "exp-linear": models.Logistic(**ROWS, loss="exp-linear"),
    "logistic": models.Logistic(**ROWS),
    "hinge": models.HuberisedHinge(**ROWS, width=0.5),
    "log-cosh": models.LogCoshRegression(**ROWS, response_bound=2.0),
    "quantile": models.Quantile(**ROWS, level=0.2, response_bound=2.0),
    "counts": models.CountRegression(**ROWS, largest=5),
}
"""A model of each loss that fits and measured coordinates know."""


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


# ── candidates, enumerated ─────────────────────────────────────────────────────────────────────────────────

UNIVERSE = [(-1.0, 0), (-1.0, 1), (0.0, 1), (1.0, 0), (1.0, 1)]


def summary(model, records):
    return model.summarise((np.array([[x] for x, _ in records]), np.array([y for _, y in records])))


def log_laws(plan, seed, *, universe=UNIVERSE):
    """The logarithm of the probability of every path of picks, for every data set of the universe, given the
    candidates: those of a round are drawn from the same bits whatever the data."""
    laws = {}
    for records in itertools.product(universe, repeat=plan.n):
        target = plan.target(summary(plan.model, records))
        paths = [((), 0.0)]
        for number in range(target.rounds):
            longer = []
            for picks, log_probability in paths:
                generator = np.random.default_rng([seed, number, len(longer)])
                thetas, public = target.propose(number, list(picks), generator)
                exponents = -(target.costs(number, thetas) + public).astype(float) / 2**target.bits
                log_law = exponents - np.logaddexp.reduce(exponents)
                longer += [
                    ((*picks, theta), log_probability + value) for theta, value in zip(thetas, log_law, strict=True)
                ]
            paths = longer
        laws[records] = np.array([value for _, value in paths])
    return laws


def adjacent(laws):
    """All ordered pairs of laws whose data sets differ in one record."""
    return [
        (laws[one], laws[other])
        for one, other in itertools.permutations(laws, 2)
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1
    ]


def largest_loss(laws):
    """The largest privacy loss over all pairs of data sets that differ in one record."""
    return max(float((one - other).max()) for one, other in adjacent(laws))


def renyi_divergence(one, other, order):
    """D_α of two laws given by their logarithms."""
    return float(np.logaddexp.reduce(order * one - (order - 1.0) * other)) / (order - 1.0)


def hockey_stick(one, other, epsilon):
    """δ(ε) = Σ max(0, p − e^ε q)."""
    return float(np.maximum(np.exp(one) - np.exp(epsilon + other), 0.0).sum())
