"""The error to expect of averaged steps, from public numbers, in a design of equally correlated columns.

A direction of the columns has variance λ. Measured coordinates stretch it by g, 1/g² being λ raised to the floors. With
information I and score variance K of a record:

    sampling variance   K/(nI²λ)        privacy   (σ/(nIλg))²       per direction, in the columns' units

σ follows from the bound of scores that tails of the usual kind would choose (`with_usual_bound`).

A column's coefficient is given an interval where the rule of `StepsResult.given` holds for the direction that says least
about it: the one in which the columns differ.

Effects of interest have less noise, and others more: `noise_factors`, for effects that are orthogonal.

Records are taken for independent of each other. The sampling variance of a person's k records is up to k times as large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from onedraw.arrays import Array

from .class_scores import ClassScore
from .coordinates import DESIGN_FLOOR, LARGEST_PRIOR, LEAST_VARIANCE, PLAUSIBLE, StepsProblem, least_told
from .effects import usual_limit
from .scores import NODES, WEIGHTS, Score
from .sizes import FACTORS, STEPS, stretch_for

EPSILON_FACTORS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0)
"""Multiples of ε that are tried until a column is given an interval."""


LOWERED = 1.0
"""Edges by which noise may bring the smallest of several equal eigenvalues down."""


@dataclass(frozen=True, eq=False)
class Directions:
    """The common direction of the columns and those across it: variance, raised variance and noise's edge, per record."""

    variance: Array
    raised: Array
    count: Array
    edge: float
    """Edge of the moments' noise in the coordinates in which directions are judged."""
    seen: Array
    """Second moments in those coordinates."""


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
    one = float(problem.layout.intercept)
    named, others = noise_factors(problem)
    m, problem = len(problem.effects), with_usual_bound(problem)
    problem = with_noise(problem, (m * named + (problem.size - m) * others) / problem.size)
    found = directions_of(problem, filled, correlation)
    sampling, privacy = variances_of(problem, found, effect, noise)
    share = np.append(found.count, one) / (found.count.sum() + one)
    return math.sqrt(float(share @ (sampling + privacy))), math.sqrt(float(share @ sampling)), 0.0


def expected_column_error(
    problem: StepsProblem, *, filled: float, correlation: float, effect: float, noise: float, named: bool = False,
    share: float | None = None,
) -> tuple[float, float, float]:  # fmt: skip
    """Return what to expect of one column's coefficient: error, error without privacy, and how many times this ε an interval
    would need; at most 1 if it is expected to have one, infinity if no larger ε is known to give one.

    Parameters
    ----------
    named : bool
        Whether the column is an effect of interest.
    share : float, optional
        Share of the records that have the level that a 0/1 column stands for.
    """
    factor, others = noise_factors(problem, share)
    problem = with_noise(with_usual_bound(problem), factor if named else others)
    found = directions_of(problem, filled, correlation)
    sampling, privacy = (part[:2] for part in variances_of(problem, found, effect, noise))
    share = found.count / found.count.sum()
    factors = (
        factor for factor in EPSILON_FACTORS if factor >= problem.shortage and is_given(problem, filled, correlation, effect, noise, factor)
    )  # fmt: skip
    error, plain = (math.sqrt(float(share @ part)) for part in (sampling + privacy, sampling))
    return error, plain, next(factors, math.inf)


def directions_of(problem: StepsProblem, filled: float, correlation: float, quieter: float = 1.0) -> Directions:
    """Return the directions of columns that fill this share of their ranges, with noise this many times smaller."""
    layout, sizes, n = problem.layout, problem.sizes, problem.n
    d = layout.columns
    spread = filled**2 / (3.0 if layout.ball is None else d)
    variance = spread * np.array([1.0 + (d - 1) * correlation, 1.0 - correlation])
    shortened = min(1.0, sizes.moment_radius**2 / (d * spread + 1.0 / 3.0))
    edge = sizes.moments_noise * math.sqrt(d + 1.0) / (n * quieter)
    seen = shortened * variance
    raised = np.maximum(seen, problem.score.constants.moment_floor * edge)
    if sizes.design_noise:
        edge = sizes.design_noise * math.sqrt(d + 1.0) / (n * quieter)
        seen = variance / raised
        raised = raised * np.maximum(seen, max(DESIGN_FLOOR * edge, LEAST_VARIANCE))
    return Directions(variance, raised, np.array([1.0, d - 1.0]), edge, seen)


def variances_of(problem: StepsProblem, found: Directions, effect: float, noise: float) -> tuple[Array, Array]:
    """Return the variances of a coefficient that sampling and privacy give, for each direction and the intercept."""
    layout, n = problem.layout, problem.n
    information, scores, unit = _record(problem.score, effect, noise)
    variance, raised = np.append(found.variance, 1.0), np.append(found.raised, 1.0)
    sampling = scores / (n * information**2 * variance)
    noisy = problem.sizes.step_noise / math.sqrt(STEPS)
    privacy = (noisy / (n * information * variance)) ** 2 * raised
    # where noise decides, the estimate stays near its start: errors do not exceed the effects themselves by much
    largest = np.append((effect / unit) ** 2 / (found.count @ found.variance) * np.ones(2), 1.0) * 4.0
    blocks = problem.score.blocks
    scale = (unit / (layout.ball or 1.0)) ** 2 * (
        blocks / (blocks + 1.0) if problem.score.of_classes else 1.0
    )  # of classes, from contrasts
    return scale * sampling, scale * np.minimum(privacy, largest)


def is_given(
    problem: StepsProblem, filled: float, correlation: float, effect: float, noise: float, quieter: float = 1.0
) -> bool:
    """Return whether a column's coefficient is expected to be given an interval, with noise this many times smaller."""
    found = directions_of(problem, filled, correlation, quieter)
    across = 1 if problem.layout.columns > 1 else 0
    if problem.score.continuous:
        columns = problem.layout.columns
        told = least_told(found.edge / math.sqrt(columns + 1.0), columns)
        return bool(found.seen[across] >= told + LOWERED * found.edge)
    information, scores, _ = _record(problem.score, effect, noise)
    along = float(found.variance[across] / found.raised[across])
    noisy = problem.sizes.step_noise / math.sqrt(STEPS) / quieter
    variance = (scores / along + noisy**2 / (problem.n * along**2)) / (problem.n * information**2)
    prior = PLAUSIBLE**-2.0
    return bool(prior / (1.0 / variance + prior) <= LARGEST_PRIOR)


def noise_factors(problem: StepsProblem, share: float | None = None) -> tuple[float, float]:
    """Return how many times their variance the noise of an effect of interest and of all others have (effects.py).

    Parameters
    ----------
    share : float, optional
        Share of the records with the effect's level; None for a number in the middle of its range.
    """
    if not 0 < len(problem.effects) < problem.layout.columns:
        return 1.0, 1.0
    part = len(problem.effects) / problem.size
    goal, loss = stretch_for(part)
    far = 1.0 if share is None else math.sqrt(max(1.0 - share, share) / min(1.0 - share, share))
    stretched = float(np.clip(loss * usual_limit(problem, far, loss), 1.0, goal))
    return (1.0 + part * (stretched - 1.0)) / stretched, loss


def with_noise(problem: StepsProblem, factor: float) -> StepsProblem:
    """Return the problem with steps whose noise has this many times its variance."""
    noise = math.sqrt(factor) * problem.sizes.step_noise
    return replace(problem, sizes=replace(problem.sizes, step_noise=noise))


def with_usual_bound(problem: StepsProblem) -> StepsProblem:
    """Return the problem with the bound of scores that a table with usual tails would choose."""
    sizes = problem.sizes
    if not sizes.tail_noise:
        return problem
    beta = problem.score.constants.usual_tail * max(math.log(problem.n / sizes.tail_target) - 0.5, 0.0) / 1.1
    wanted = beta * math.sqrt(problem.size) / sizes.step_bound
    return problem.at(next((factor for factor in FACTORS if factor >= wanted), 1.0))


def _record(score: Score, effect: float, noise: float) -> tuple[float, float, float]:
    """Return (information, variance of the score, unit of the response) of a record."""
    if score.kind == "number":
        return score.information, score.variance, noise
    if score.kind == "quantile":
        level = float(score.kernel.level)
        density = math.exp(-0.5 * float(special.ndtri(level)) ** 2) / math.sqrt(2.0 * math.pi)
        return density, level * (1.0 - level), noise
    if isinstance(score, ClassScore):
        mean = score.mean_information(effect)
        return mean, mean, 1.0
    if score.kind == "margin":  # as if its coefficients were log-odds
        u, positive = effect * NODES, special.expit(effect * NODES)
        found = (
            score.information,
            positive * score.slope(u, 1.0, 1.0) ** 2 + (1.0 - positive) * score.slope(u, -1.0, 1.0) ** 2,
        )
        return found[0], float(WEIGHTS @ found[1]), 1.0
    weights = score.kernel.curvature(effect * NODES, np.zeros_like(NODES))
    mean = float(WEIGHTS @ weights)
    return mean, mean, 1.0
