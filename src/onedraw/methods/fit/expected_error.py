"""The error to expect of averaged steps, from public numbers, in a design of equally correlated columns.

A direction of the columns has variance λ. Measured coordinates stretch it by g, 1/g² being λ raised to the floors. With
information I and score variance K of a record:

    sampling variance   K/(nI²λ)        privacy   (σ/(nIλg))²       per direction, in the columns' units

Records are taken for independent of each other. The sampling variance of a person's k records is up to k times as large.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from .coordinates import DESIGN_FLOOR, FLOOR, LEAST_VARIANCE, StepsProblem
from .scores import NODES, WEIGHTS, Score
from .sizes import STEPS


def expected_errors(
    problem: StepsProblem, *, filled: float, correlation: float, effect: float, noise: float
) -> tuple[float, float, float]:
    """Return root mean squared errors per coefficient: with privacy, without, and the part that is bias.

    Parameters
    ----------
    filled : float
        Share of their declared ranges that columns fill.
    effect, noise : float
        Standard deviations of the linear predictor and of a number about it, in units of the response.
    """
    layout, sizes, n = problem.layout, problem.sizes, problem.n
    d = layout.columns
    spread = filled**2 / (3.0 if layout.ball is None else d)
    variance = spread * np.array([1.0 + (d - 1) * correlation, 1.0 - correlation])
    count = np.array([1.0, d - 1.0])
    seen = min(1.0, sizes.moment_radius**2 / (d * spread + 1.0 / 3.0))
    edge = sizes.moments_noise * math.sqrt(d + 1.0) / n
    raised = np.maximum(seen * variance, FLOOR[problem.score.kind] * edge)
    if sizes.design_noise:
        again = sizes.design_noise * math.sqrt(d + 1.0) / n
        raised = raised * np.maximum(variance / raised, max(DESIGN_FLOOR * again, LEAST_VARIANCE))
    information, scores, unit = _record(problem.score, effect, noise)
    variance, raised = np.append(variance, 1.0), np.append(raised, 1.0)
    count = np.append(count, float(layout.intercept))
    sampling = scores / (n * information**2 * variance)
    noisy = sizes.step_noise / math.sqrt(STEPS)
    privacy = (noisy / (n * information * variance)) ** 2 * raised
    # where noise decides, the estimate stays near its start: errors do not exceed the effects themselves by much
    largest = np.append((effect / unit) ** 2 / (count[:-1] @ variance[:-1]) * np.ones(2), 1.0) * 4.0
    privacy = np.minimum(privacy, largest)
    share = unit**2 * count / count.sum() / (layout.ball or 1.0) ** 2
    return math.sqrt(float(share @ (sampling + privacy))), math.sqrt(float(share @ sampling)), 0.0


def _record(score: Score, effect: float, noise: float) -> tuple[float, float, float]:
    """Return (information, variance of the score, unit of the response) of a record."""
    if score.kind == "number":
        return 1.0, 1.0, noise
    if score.kind == "quantile":
        level = float(score.kernel.level)  # type: ignore[attr-defined]
        density = math.exp(-0.5 * float(special.ndtri(level)) ** 2) / math.sqrt(2.0 * math.pi)
        return density, level * (1.0 - level), noise
    weights = score.kernel.curvature(effect * NODES, np.zeros_like(NODES))
    mean = float(WEIGHTS @ weights)
    return mean, mean, 1.0
