"""Mean and second moments of the columns with noise, before anything else is asked of the records.

Several methods begin with them: a fit, clipped gradients, and draws in measured coordinates. What they promise is that of the
stage they are part of (`stages`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onedraw.arrays import Array, Integers
from onedraw.models.moments.measured import ColumnSums, MomentColumns, SecondMoments
from onedraw.models.sums.exact_sums import MEAN_BITS, Counted, gram_steps
from onedraw.samplers.noise import Noise

MEAN_STEPS = 2.0**MEAN_BITS
"""Whole steps of a number in [−1, 1] whose sum over the records gets noise."""


def measure(
    total: Callable[..., Integers], n: int, columns: MomentColumns, numbers: Mapping[str, float], noise: Noise
) -> tuple[Array | None, Array | None]:
    """Stage one, of a fit or before another sampler's draw: (mean, Σ x̄x̄ᵀ about it as a lower triangle) with their noise; None for
    what the plan leaves out.

    ``total(statistic, *public)`` is an exact sum over the n records; ``numbers`` are ``mean_noise``, ``moments_noise`` and
    ``moment_radius``.
    """
    mean = measure_mean(total, n, columns, numbers["mean_noise"], noise)
    if not numbers["moments_noise"]:
        return mean, None
    return mean, measure_moments(total, n, columns, columns.centre(mean), numbers, noise)


KNOWN_STEPS = 2.0**MEAN_BITS
"""Whole steps of a record that is counted."""

KNOWN_SHARE = 0.02
"""Of μ² (or ε), for the number of records with all cells, where the others contribute nothing. All else is divided by it, and no estimate
depends on it to first order: it scales steps and coordinates. At n·μ = 250 its noise is then 3 % of it."""

LEAST_KNOWN, FEWEST_KNOWN = 3.0, 10.0
"""A number of records that is below so many deviations of its noise, or below ten, gives no estimate."""


def count_known(total: Callable[..., Integers], noise: Noise, scale: float) -> Array | None:
    """Return the number of records with all cells, with noise of this ``scale``; None if it is 0."""
    return noise.vector(total(Counted(), KNOWN_STEPS), KNOWN_STEPS, scale) if scale else None


def known_records(count: Array | None, n: int, deviation: float) -> int:
    """Return by how many records sums are divided: the noisy number, kept between what is too few for an estimate and the public n."""
    if count is None:
        return n
    return round(min(max(float(count[0]), least_known(deviation)), float(n)))


def least_known(deviation: float) -> float:
    """Return the noisy number of records below which no estimate is given."""
    return max(LEAST_KNOWN * deviation, FEWEST_KNOWN)


def measure_mean(
    total: Callable[..., Integers], n: float, columns: MomentColumns, scale: float, noise: Noise
) -> Array | None:
    """Return the mean of the columns with noise of this ``scale`` on their sum; None if it is 0."""
    if not scale:
        return None
    sums = total(ColumnSums(columns.layout, columns.response), MEAN_STEPS)
    return noise.vector(sums, MEAN_STEPS, scale) / n


def measure_moments(
    total: Callable[..., Integers],
    n: int,
    columns: MomentColumns,
    centre: Array,
    numbers: Mapping[str, float],
    noise: Noise,
) -> Array:
    """Return second moments about a published point, with their noise, as a lower triangle."""
    radius = numbers["moment_radius"]
    steps = gram_steps(radius**2, n)
    sums = total(SecondMoments(columns.layout, columns.response), steps, centre, radius)
    return noise.triangle(sums, steps**2, numbers["moments_noise"])
