"""Small posteriors with potentials written a second time, distribution functions by quadrature, and a Kolmogorov–Smirnov test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.stats import kstest

from onedraw.models import BetaTarget, BinaryRegression, Gaussian, Network
from onedraw.models.convex.classification import Logistic
from onedraw.models.convex.gibbs_target import GibbsTarget
from onedraw.models.convex.regression import HuberRegression

Array = NDArray[np.float64]
Potential = Callable[[Array], Array]
"""U at points (..., d)."""

ALPHA = 1e-6


def follows(values: Array, cdf: Callable[[Array], Array]) -> bool:
    """Whether values may be independent draws from a law with this distribution function."""
    return bool(kstest(cdf(values), "uniform").pvalue >= ALPHA)


def int64(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def chi_squared_p(counts: Array, probabilities: Array) -> float:
    """Pearson's p-value of counts; cells too rare for the χ² law are put together."""
    expected = probabilities * counts.sum()
    rare = expected < 10
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    statistic = ((observed - expected) ** 2 / np.maximum(expected, 1e-12)).sum()
    return float(special.chdtrc(len(expected) - 1, statistic))


def cdf_on_line(potential: Potential, lower: float, upper: float) -> Callable[[Array], Array]:
    """The distribution function of ∝ exp(−U) on [lower, upper]."""
    points = np.linspace(lower, upper, 20_001)
    values = -potential(points[:, None])
    return _cdf(points, np.exp(values - values.max()))


def cdf_of_coordinate(potential: Potential, coordinate: int, reach: float, *, ball: bool) -> Callable[[Array], Array]:
    """That of one coordinate of ∝ exp(−U) on the disc of radius ``reach``, or on a square that holds all the mass."""
    points = np.linspace(-reach, reach, 2001)[1:-1]
    nodes, weights = np.polynomial.legendre.leggauss(160)
    half = np.sqrt(reach**2 - points**2) if ball else np.full(points.shape, reach)
    pairs = np.stack([np.broadcast_to(points[:, None], (points.size, nodes.size)), half[:, None] * nodes], axis=-1)
    values = -potential(pairs if coordinate == 0 else pairs[..., ::-1])
    return _cdf(points, half * (np.exp(values - values.max()) @ weights))


def cdf_of_norm(potential: Potential, radius: float) -> Callable[[Array], Array]:
    """That of ‖θ‖ for ∝ exp(−U) on the disc of this radius."""
    norms = np.linspace(0.0, radius, 4001)[1:]
    angles = 2.0 * np.pi * np.arange(256) / 256
    values = -potential(norms[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1))
    return _cdf(np.append(0.0, norms), np.append(0.0, norms * np.exp(values - values.max()).sum(axis=1)))


def _cdf(points: Array, density: Array) -> Callable[[Array], Array]:
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(points))])
    return lambda values: np.interp(values, points, mass / mass[-1])


# ── Gibbs posteriors, an independent potential in NumPy beside each ─────────────────────────────────────────────


@dataclass(frozen=True)
class Case:
    """A target, and U written down again: points (..., d) to values (...)."""

    target: GibbsTarget
    potential: Callable[[Array], Array]


def gibbs_target(model: Any, X: Array, y: Array, weight: float) -> GibbsTarget:
    """What a plan of this weight would hand to a sampler."""
    dimension, prior = model.dimension, model.prior
    return GibbsTarget(
        model,
        model.summarise((X, y)),
        weight,
        prior.precision(dimension),
        prior.location(dimension),
        prior.radius,
        prior.strong_convexity,
        prior.smoothness + len(X) * weight * model.bounds["smoothness"].value,
    )


def rows(n: int, dimension: int) -> Array:
    """Rows of norm 1, correlated."""
    X = np.random.default_rng(11).standard_normal((n, dimension)) @ (np.eye(dimension) + 0.5)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def logistic(
    dimension: int, *, weight: float, radius: float | None = None, scale: float = 1.0, pull: bool = False
) -> Case:
    """Eight records; with ``pull`` their labels agree with one direction, so that the posterior leans against a ball."""
    X = rows(8, dimension)
    y = np.where(X @ np.ones(dimension) >= 0.0, 1.0, -1.0) if pull else np.tile([1.0, -1.0, 1.0, 1.0], 2)
    model = Logistic(dimension, data_norm=1.0, intercept=False, prior=Gaussian(scale=scale, radius=radius))

    def potential(theta: Array) -> Array:
        return weight * np.logaddexp(0.0, -y * (theta @ X.T)).sum(axis=-1) + 0.5 * (theta**2).sum(axis=-1) / scale**2

    return Case(gibbs_target(model, X, (y > 0).astype(int), weight), potential)


def huber(dimension: int, *, weight: float, threshold: float, radius: float | None = None, n: int = 8) -> Case:
    """Residuals on both sides of the threshold; with a huge one U is a quadratic."""
    X = rows(n, dimension)
    y = 1.5 * np.sin(1.0 + np.arange(n))
    model = HuberRegression(
        dimension, threshold=threshold, response_bound=2.0, data_norm=1.0, intercept=False,
        prior=Gaussian(scale=1.0, radius=radius),
    )  # fmt: skip

    def potential(theta: Array) -> Array:
        residual = np.abs(theta @ X.T - y)
        bent = np.minimum(residual, threshold)
        return weight * (bent * (residual - 0.5 * bent)).sum(axis=-1) + 0.5 * (theta**2).sum(axis=-1)

    return Case(gibbs_target(model, X, y, weight), potential)


def passes(draws: Array, case: Case) -> bool:
    """Whether draws may come from the posterior, by quadrature, in one or two dimensions."""
    dimension, radius = case.target.dimension, case.target.radius
    reach = radius or 7.0
    if dimension == 1:
        return follows(draws[:, 0], cdf_on_line(case.potential, -reach, reach))
    marginals = [cdf_of_coordinate(case.potential, i, reach, ball=radius is not None) for i in (0, 1)]
    if not all(follows(draws[:, i], cdf) for i, cdf in enumerate(marginals)):
        return False
    return radius is None or follows(np.linalg.norm(draws, axis=1), cdf_of_norm(case.potential, radius))


# ── β-posteriors for the Hamiltonian samplers, with potentials written down again in NumPy ──────────────────────


BETA, WEIGHT = 1.5, 2.0


def logistic_records() -> tuple[Array, Array]:
    """Sixty records, the six clearest of them with the wrong label: how much they count depends on β."""
    generator = np.random.default_rng(3)
    X = generator.standard_normal((60, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    u = X @ np.array([3.0, -1.5])
    y = (generator.random(60) < 1.0 / (1.0 + np.exp(-u))).astype(float)
    wrong = np.argsort(-np.abs(u))[:6]
    y[wrong] = 1.0 - y[wrong]
    return X, y


def logistic_target(*, beta: float = BETA, radius: float | None = None) -> BetaTarget:
    """d = 2, no intercept."""
    model = BinaryRegression(2, intercept=False, prior=Gaussian(scale=2.0, radius=radius))
    return BetaTarget(model, model.summarise(logistic_records()), WEIGHT, beta)


def logistic_potential(theta: Array) -> Array:
    """U of `logistic_target` at points (..., 2), from the formula of the paper."""
    total = 0.125 * (theta**2).sum(axis=-1)
    for row, response in zip(*logistic_records(), strict=True):  # one at a time: there may be a million points
        p = 1.0 / (1.0 + np.exp(-(2.0 * response - 1.0) * (theta @ row)))
        total += WEIGHT * ((p**BETA + (1.0 - p) ** BETA) / BETA - p ** (BETA - 1.0) / (BETA - 1.0))
    return total


def network_target(n: int = 60) -> tuple[BetaTarget, Array]:
    """One hidden layer of three units; (target, encoded rows to predict at)."""
    generator = np.random.default_rng(5)
    X = generator.uniform(-2.0, 2.0, (n, 2))
    y = (X[:, 0] * X[:, 1] + 0.5 * generator.standard_normal(n) > 0.0).astype(float)
    model = Network(2, hidden=3)
    grid = np.array([[a, b] for a in (-1.5, 0.0, 1.5) for b in (-1.5, 1.5)])
    return BetaTarget(model, model.summarise((X, y)), 1.0, 2.0), model.features.enforce(grid)


def predictions(target: BetaTarget, draws: Array, rows: Array) -> Array:
    """Class probabilities (draws, rows): what is identifiable of a network."""
    u: Any = np.asarray(target.kernel.function.many(draws, rows))
    return 1.0 / (1.0 + np.exp(-u))
