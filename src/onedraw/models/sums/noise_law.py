"""The law of a fit's noise: N(0, s²) for each number, or under a pure promise the density ∝ e^{−‖v‖/s} of all numbers together.

The second is a uniform direction with a norm of Gamma(numbers, s). A symmetric matrix is noised as the vector of its
diagonal and √2 times what is below it, whose length is the matrix's own; under a pure promise by c·(U − U'), c ~ Gamma(p(p+1) + 1, s) and
U, U' uniform among positive p×p matrices of trace at most 1. That hides T/s of a sum of positive matrices of trace at most T
(mechanisms/moments.md), with much less noise than its length would take: √p times less for many columns.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def deviation(noise: float, numbers: int, *, pure: bool) -> float:
    """The standard deviation of one of so many numbers: E‖v‖² = s²·numbers·(numbers + 1) is shared by them."""
    return noise * math.sqrt(numbers + 1.0) if pure else noise


def drawn(generator: Any, noise: float, shape: tuple[int, ...], *, pure: bool) -> Array:
    """Noise of this shape; the last axis is one vector."""
    direction = generator.standard_normal(shape)
    if not pure:
        return np.asarray(noise * direction)
    length = generator.gamma(shape[-1], noise, (*shape[:-1], 1))
    return np.asarray(direction * (length / np.linalg.norm(direction, axis=-1, keepdims=True)))


def mixed_variances(generator: Any, noise: float, numbers: int, rounds: int, *, pure: bool) -> Array:
    """Variances w such that N(0, wI), w drawn anew each time, is this noise: s² itself, or Gamma((numbers + 1)/2, 2s²). For
    ∫ w^{−d/2} e^{−‖v‖²/2w} · w^{(d−1)/2} e^{−w/2s²} dw ∝ e^{−‖v‖/s}."""
    if not pure:
        return np.full(rounds, noise**2)
    return np.asarray(generator.gamma((numbers + 1.0) / 2.0, 2.0 * noise**2, rounds))


def matrix_deviation(noise: float, size: int, *, pure: bool) -> float:
    """√2 times the standard deviation of an entry off the diagonal, and at least that of one on it (moments.md)."""
    if not pure:
        return noise
    numbers = size * (size + 1) // 2
    variance = 2.0 * (size + 1) * (2 * numbers + 1) / (numbers + 2) if size > 1 else 2.0
    return noise * math.sqrt(variance)


def drawn_matrices(generator: Any, noise: float, size: int, rounds: int, *, pure: bool) -> Array:
    """(rounds, size, size): symmetric matrices of noise."""
    if pure:
        width = generator.gamma(size * (size + 1) + 1, noise, (rounds, 1, 1))
        return np.asarray(width * (_of_small_trace(generator, size, rounds) - _of_small_trace(generator, size, rounds)))
    scale = triangle_scale(size)
    return symmetric(noise * scale * generator.standard_normal((rounds, len(scale))), size)


def _of_small_trace(generator: Any, size: int, rounds: int) -> Array:
    """Uniform among positive matrices of trace at most 1: ½GGᵀ of p×(p+1) normal numbers has density ∝ e^{−trace} among positive
    ones, and over its trace plus an exponential number it is uniform."""
    normal = generator.standard_normal((rounds, size, size + 1))
    products = 0.5 * normal @ np.swapaxes(normal, 1, 2)
    traces = np.trace(products, axis1=1, axis2=2) + generator.standard_exponential(rounds)
    return np.asarray(products / traces[:, None, None])


def symmetric(entries: Array, size: int) -> Array:
    """The matrix of a lower triangle, or the matrices of many."""
    matrix = np.zeros((*entries.shape[:-1], size, size))
    rows, columns = np.tril_indices(size)
    matrix[..., rows, columns] = matrix[..., columns, rows] = entries
    return matrix


@lru_cache(maxsize=32)
def triangle_scale(size: int) -> Array:
    """Noise of a lower triangle beside that of the vector: √½ off the diagonal, where an entry stands for two."""
    rows, columns = np.tril_indices(size)
    scale = np.where(rows == columns, 1.0, math.sqrt(0.5))
    scale.flags.writeable = False
    return scale
