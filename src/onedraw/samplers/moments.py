"""Measuring the moments of the records' columns: the mean, then the second moments about what was published of it.

A stage before a fit, before a posterior, or alone. The records are read through one exact sum each; the noises and the
radius are the plan's, and a noise of 0 leaves its part out. Nothing here knows what the numbers promise
(`mechanisms.moments_stage`).

    mean, moments = measure(target.sum, columns, numbers, noise)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.models.moments import MomentColumns
from onedraw.samplers.fit_noise import Noise

Array = NDArray[np.float64]
Sum = Callable[..., NDArray[np.int64]]

MEAN_STEPS = 2.0**30


def measure(total: Sum, n: int, columns: MomentColumns, numbers: Mapping[str, float], noise: Noise) -> tuple[Array | None, Array | None]:  # fmt: skip
    """(mean, Σ x̄x̄ᵀ as a lower triangle) with their noise; None for what the plan leaves out.

    ``total(statistic, *public)`` is an exact sum over the n records; ``numbers`` are ``mean_noise``, ``moments_noise`` and
    ``moment_radius``.
    """
    mean = published_mean(total, columns, numbers["mean_noise"], noise) / n if numbers["mean_noise"] else None
    if not numbers["moments_noise"]:
        return mean, None
    centre, radius = columns.centre(mean), numbers["moment_radius"]
    return mean, published_moments(total, columns, centre, radius, numbers["moments_noise"], noise)


def published_mean(total: Sum, columns: MomentColumns, deviation: float, noise: Noise) -> Array:
    """Σ x with its noise."""
    from onedraw.models.moment_sums import ColumnSums

    return noise.vector(total(ColumnSums(columns.layout, columns.response), MEAN_STEPS), MEAN_STEPS, deviation)


def published_moments(total: Sum, columns: MomentColumns, centre: Any, radius: float, deviation: float, noise: Noise) -> Array:  # fmt: skip
    """Σ x̄x̄ᵀ about the centre with its noise."""
    from onedraw.models.moment_sums import SecondMoments, gram_bits

    steps = 2.0 ** gram_bits(radius**2)
    sums = total(SecondMoments(columns.layout, columns.response), steps, centre, radius)
    return noise.triangle(sums, steps**2, deviation)
