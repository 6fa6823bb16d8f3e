"""Measuring the moments of the records' columns: the mean, then the second moments about what was published of it.

A stage before a fit or before a posterior (`measure`), or a release of its own (`Measure`). The records are read through
one exact sum each; the noises and the radius are the plan's, and a noise of 0 leaves its part out. Nothing here knows what
the numbers promise (`mechanisms.stages`, `mechanisms.moments`).

    mean, moments = measure(target.sum, n, columns, numbers, noise)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onedraw import privacy
from onedraw.models.moments.result import MomentsResult
from onedraw.models.moments.stage import SQUARE, MomentColumns, MomentsProblem, MomentsTarget
from onedraw.models.sums.sum_lattice import MEAN_BITS, gram_steps
from onedraw.samplers.fit_noise import Noise
from onedraw.samplers.sample import Sample

Array = NDArray[np.float64]
Sum = Callable[..., NDArray[np.int64]]

MEAN_STEPS = 2.0**MEAN_BITS


def measure(total: Sum, n: int, columns: MomentColumns, numbers: Mapping[str, float], noise: Noise) -> tuple[Array | None, Array | None]:  # fmt: skip
    """(mean, Σ x̄x̄ᵀ as a lower triangle) with their noise; None for what the plan leaves out.

    ``total(statistic, *public)`` is an exact sum over the n records; ``numbers`` are ``mean_noise``, ``moments_noise`` and
    ``moment_radius``.
    """
    mean = published_mean(total, columns, numbers["mean_noise"], noise) / n if numbers["mean_noise"] else None
    if not numbers["moments_noise"]:
        return mean, None
    centre, radius = columns.centre(mean), numbers["moment_radius"]
    return mean, published_moments(total, n, columns, centre, radius, numbers["moments_noise"], noise)


def published_mean(total: Sum, columns: MomentColumns, deviation: float, noise: Noise) -> Array:
    """Σ x with its noise."""
    from onedraw.models.moments.sums import ColumnSums

    return noise.vector(total(ColumnSums(columns.layout, columns.response), MEAN_STEPS), MEAN_STEPS, deviation)


def published_moments(total: Sum, n: int, columns: MomentColumns, centre: Any, radius: float, deviation: float, noise: Noise) -> Array:  # fmt: skip
    """Σ x̄x̄ᵀ about the centre with its noise."""
    from onedraw.models.moments.sums import SecondMoments

    steps = gram_steps(radius**2, n)
    sums = total(SecondMoments(columns.layout, columns.response), steps, centre, radius)
    return noise.triangle(sums, steps**2, deviation)


# ── moments for their own sake ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Measure:
    """The plan's own algorithm; it has no options."""

    randomness: ClassVar[str] = "numpy"

    def exactness(self, plan: Any) -> privacy.AsRun:
        return privacy.AsRun(plan.guarantee.promise)

    def run(self, target: MomentsTarget, randomness: Any, *, size: int = 1) -> Sample:
        """What follows from the moments, and the moments."""
        stages = measure_all(target.sum, target.problem, Noise(randomness, pure=target.problem.pure))
        values = MomentsResult.of(target.problem, stages).encoded.values
        return Sample(values[np.newaxis], {}, {name: part.tolist() for name, part in stages.items()})

    def to_dict(self) -> dict[str, Any]:
        return {"name": "Measure"}


def measure_all(total: Sum, problem: MomentsProblem, noise: Noise) -> dict[str, Array]:
    """Means and squares, then products and fourth moments of columns standardised by what was published of them."""
    from onedraw.models.moments.sums import PowerSums, StandardMoments

    columns, numbers = problem.columns, problem.numbers
    steps = gram_steps(1.0, problem.n)
    each = np.concatenate([np.ones(columns.count), np.full(columns.numbers, 1.0 / SQUARE)])
    sums = noise.vector(total(PowerSums(columns.layout), steps), steps**2, numbers["sums_noise"], each) / problem.n
    found = {"mean": sums[: columns.count], "squares": sums[columns.count :]}
    centre, unit = problem.units(found["mean"], found["squares"])
    for power, stage in ((1, "moments"), (2, "fourth")):
        if numbers[f"{stage}_noise"]:
            radius = numbers[f"{stage}_radius"]
            steps = gram_steps(radius**2, problem.n)
            seconds = total(StandardMoments(columns.layout, power), steps, centre, 1.0 / np.sqrt(unit), radius)
            found[stage] = noise.triangle(seconds, steps**2, numbers[f"{stage}_noise"])
    return {name: values for name, values in found.items() if len(values)}
