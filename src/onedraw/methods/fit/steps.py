"""The recursion: damped Newton steps on noisy sums of shortened scores, and the averages of where they go.

    θ ← θ + P·(Σ shortened scores at θ + noise),        P = Ĥ/(a·Ĥ² + (doubt about Ĥ)²/a)

Ĥ is what published moments imply at θ. a damps: at least 2 to 2.5, so that steps contract while the true information is below
2a times Ĥ, and more where noise would carry iterates far. An iterate wanders by about q·(noise of one release/information)²·M/2a
in the predictor's variance: a is chosen so that this is at most `WANDER`².

**Where Ĥ is too small.** Steps contract while PH is below 2. Rows far out are shortened before their moments are measured, and H can be many
times Ĥ along a rare level. Each step therefore learns from the sums that were published before it (`Curvature`).

**What the average keeps of the early steps.** Those shorten more, and end elsewhere. A step moves θ by P·(H(θ* − θ) + noise), so
that over all M steps

    mean θ = θ* + H⁻¹·mean noise − ((PH)⁻¹ − 1)·(last θ − first θ)/M,        (PH)⁻¹ near a,

and adding (a − 1)·(last θ − first θ)/M takes the last term away. For scores that are not linear in θ this is done, with a at most
`LARGEST_CORRECTION`: where noise asks for a larger one, staying near the start is what keeps the error small.

**Steps that do not arrive.** Where H is a small part of Ĥ, PH is small and the average is still on its way. How far is left follows from
the published averages and the measured information (`way_left`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onedraw.arrays import Array

from .coordinates import Pull, StepsProblem, Where, pull_of
from .sizes import EARLY_STEPS, SKIPPED_STEPS, STEPS

WANDER = 0.7
"""Standard deviation of the predictor over iterates."""

LONGEST_STEP = 1.0
"""Of the linear predictor, in one step of a score that is not linear in it."""

FARTHEST = 2.0**40
"""Coefficients are kept within this, far beyond any that mean something, so that predictors are numbers."""

LARGEST_CORRECTION = 5.0
"""Damping up to which what the average keeps of the early steps is taken away."""

SEEN = 3.0
"""Deviations of its noise by which the change of a sum must exceed what Ĥ explains before Ĥ is raised."""

LEAST_RATE = 1e-3
"""Rate of contraction at least: steps this slow leave all of the way."""

LEAST_INFORMATION = 0.1
"""Eigenvalues of Ĥ are raised to this share of its mean."""

Gradient = Callable[[Array, float, float], Array]
"""(θ, bound, noise) → the noisy sum of shortened scores."""


@dataclass(frozen=True, eq=False)
class Path:
    """The averages of both series."""

    early: Array
    step: Array


def walk(problem: StepsProblem, where: Where, gradient: Gradient) -> Path:
    """Return the averages of the early steps and of the steps, from the published start."""
    sizes, pull = problem.sizes, pull_of(problem, where)
    curve = Curvature(np.zeros((problem.size, problem.size)), pull)
    theta, early = _series(problem, where, gradient, where.start, sizes.early_bound, sizes.early_noise, EARLY_STEPS, SKIPPED_STEPS, curve)  # fmt: skip
    _, step = _series(problem, where, gradient, theta, sizes.step_bound, sizes.step_noise, STEPS, 0, curve)
    return Path(early, step)


@dataclass
class Curvature:
    """What the steps themselves showed of information beyond Ĥ, to be added to it.

    Rows far out are shortened before their moments are measured, so Ĥ may be a fraction of H along a direction that few records
    decide, and steps of P would jump to and fro across the solution. Between two steps the published sums change by −H·s + noise, s the
    step. Where that is more than Ĥ explains by `SEEN` deviations, Ĥ is raised along s.
    """

    beyond: Array
    pull: Pull
    """The declared prior's, whose precision is known."""

    def learn(self, step: Array, change: Array, information: Array, noise: float) -> bool:
        """Raise the information along a step after which the noisy sums were smaller by ``change``; return whether it was."""
        along = information @ step
        expected, seen = float(step @ along), float(step @ change)
        more = seen - expected - SEEN * math.sqrt(2.0) * noise * float(np.linalg.norm(step))
        if not (more > 0.0 and expected > 0.0):
            return False
        self.beyond = self.beyond + more / expected**2 * np.outer(along, along)
        return True


def information_at(problem: StepsProblem, where: Where, theta: Array) -> tuple[Array, float]:
    """Return what published moments imply for the information of all records at θ, and its mean weight."""
    score, intercept = problem.score, problem.layout.intercept
    record = score.expected_information(theta, where.spread, intercept, where.score_scale)
    return problem.n * record, problem.n * score.mean_weight(record, where.spread, intercept)


def _series(
    problem: StepsProblem, where: Where, gradient: Gradient, theta: Array, bound: float, noise: float, steps: int, skipped: int,
    curve: Curvature,
) -> tuple[Array, Array]:  # fmt: skip
    damping = _damping(problem, noise, steps)
    average, first = np.zeros(problem.size), theta
    information, last = np.zeros((problem.size, problem.size)), None
    for number in range(steps):
        total = gradient(theta, bound, noise) + curve.pull.at(theta)
        if last is not None:
            curve.learn(theta - last[0], last[1] - total, information, noise)
        last = theta, total
        information, mean = _expected(problem, where, theta, curve)
        theta = _moved(problem, where, theta, _step(information, mean * where.doubt, damping) @ total)
        if number >= skipped:
            average += theta / (steps - skipped)
    if not problem.score.quadratic and skipped == 0:
        average = average + (min(damping, LARGEST_CORRECTION) - 1.0) * (theta - first) / steps
    return theta, average


def _damping(problem: StepsProblem, noise: float, steps: int) -> float:
    """Return a."""
    usual = problem.n * problem.score.information
    wander = problem.size * problem.loss * (noise / usual) ** 2 / (2.0 * WANDER**2)
    return min(max(problem.score.constants.damping, wander), steps / 2.0)


def way_left(problem: StepsProblem, where: Where, path: Path, information: Array) -> Array:
    """Return what lies between the average of the steps and the solution, if the measured information is right.

    Along an eigenvector of PH with value r every step leaves 1 − r of the way to the solution. So the averages of both series leave known
    shares of the whole way, and what lies between the averages gives the way itself. The early steps shorten more and their average is
    noisy, but along directions that contract fast, hardly anything is left and this hardly counts.
    """
    curve = Curvature(np.zeros((problem.size, problem.size)), pull_of(problem, where))
    expected, mean = _expected(problem, where, path.step, curve)
    damping = _damping(problem, problem.sizes.step_noise, STEPS)
    rates, axes = np.linalg.eig(_step(expected, mean * where.doubt, damping) @ (information + curve.pull.precision))
    shares = _shares_left(np.clip(rates.real, LEAST_RATE, 1.0), min(damping, LARGEST_CORRECTION))
    moved = np.linalg.pinv(axes) @ (path.step - path.early)  # which exists for every matrix
    return np.asarray((axes @ (shares * moved)).real)


def _shares_left(rates: Array, damping: float) -> Array:
    """Return what is left of the way after the average of the steps, over what lies between both averages."""
    left = (1.0 - rates) ** np.arange(EARLY_STEPS + STEPS + 1)[:, None]
    early, late = left[SKIPPED_STEPS:EARLY_STEPS].mean(axis=0), left[EARLY_STEPS:-1].mean(axis=0)
    late = np.maximum(late - (damping - 1.0) * (left[EARLY_STEPS] - left[-1]) / STEPS, 0.0)
    return np.asarray(late / (early - late + np.finfo(float).tiny))


def _moved(problem: StepsProblem, where: Where, theta: Array, move: Array) -> Array:
    """Return the coefficients after a move, which changes no predictor by much and leaves them numbers."""
    if not problem.score.linear:
        blocks = move.reshape(problem.score.blocks, -1)
        slopes, level = blocks[:, : len(where.spread)], blocks[:, len(where.spread) :]
        reach = math.sqrt(float(np.sum(where.spread * slopes**2)) + float(np.sum(level**2)))
        move = move * min(1.0, LONGEST_STEP / max(reach, 1e-12))
    theta = theta + move
    return np.asarray(theta * min(1.0, FARTHEST / max(float(np.linalg.norm(theta)), 1e-300)))


def _expected(problem: StepsProblem, where: Where, theta: Array, curve: Curvature) -> tuple[Array, float]:
    """Return the information that steps rest on, and its mean weight."""
    information, mean = information_at(problem, where, theta)
    values, axes = np.linalg.eigh(information)
    least = 0.0 if problem.score.linear else LEAST_INFORMATION * mean
    return np.asarray((axes * np.maximum(values, least)) @ axes.T) + curve.beyond + curve.pull.precision, mean


def _step(information: Array, doubt: Array, damping: float) -> Array:
    """Return P."""
    square = damping * information @ information + np.diag(doubt**2) / damping
    return np.asarray(np.linalg.solve(square, information))
