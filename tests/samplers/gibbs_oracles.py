"""Distribution functions by quadrature, and the Kolmogorov–Smirnov test at α = 1e-6, for the samplers of this room."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstest

Array = NDArray[np.float64]
Potential = Callable[[Array], Array]
"""U at points (..., d)."""

ALPHA = 1e-6


def follows(values: Array, cdf: Callable[[Array], Array]) -> bool:
    """Whether values may be independent draws from a law with this distribution function."""
    return bool(kstest(cdf(values), "uniform").pvalue >= ALPHA)


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
