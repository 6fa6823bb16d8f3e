"""Whether the noise of fits and moments has the size that it was asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

LEVEL = 1e-6
"""Chance that an honest noise is accused."""


def audit_noise(noise: Any, *, size: int = 4, draws: int = 2000, scale: float = 3.0) -> list[str]:
    """Whether real vectors and noisy sums of a `Noise` have the size they were asked for, at a level of 1e-6."""
    steps, entries = 2.0**22, size * (size + 1) // 2
    down, across = np.tril_indices(size)
    weights = np.where(down == across, 1.0, math.sqrt(2.0))
    made = {
        "a real vector": [noise.real(size, scale) for _ in range(draws)],
        "a noisy sum": [noise.vector(np.zeros(size, dtype=np.int64), steps, scale) for _ in range(draws)],
        "a noisy matrix": [weights * noise.triangle(np.zeros(entries, dtype=np.int64), steps, scale) for _ in range(draws)],
    }  # fmt: skip
    found = []
    for name, vectors in made.items():
        lengths = np.linalg.norm(np.array(vectors), axis=1) / scale
        chance = _chance_of_less(lengths, size, noise.pure, of_matrix=name == "a noisy matrix")
        if min(chance, 1.0 - chance) < LEVEL / 6.0:
            found.append(f"{name} has noise that is too {'small' if chance < 0.5 else 'large'}")
    return found


def _chance_of_less(lengths: NDArray[np.float64], size: int, pure: bool, *, of_matrix: bool) -> float:
    """How likely honest noise of scale 1 is to be shorter than these draws together; of pure noise on a matrix by the central limit
    theorem for its mean square, 2D²(2D+1)(p+1)/((D+1)(D+2)), D = p(p+1)/2."""
    draws, entries = len(lengths), size * (size + 1) // 2
    if pure and of_matrix:
        expected = 2.0 * entries**2 * (2 * entries + 1) * (size + 1) / ((entries + 1) * (entries + 2))
        squares = lengths**2
        return float(stats.norm.cdf((squares.mean() - expected) * math.sqrt(draws) / squares.std()))
    numbers = draws * (entries if of_matrix else size)
    return float(stats.gamma.cdf(lengths.sum(), numbers) if pure else stats.chi2.cdf((lengths**2).sum(), numbers))
