"""Carrying out a perturbed mode: moments, mode and information, in this order, each with the noise its plan says.

The records are read through exact sums alone (`FitTarget.sum`). The minimum is found until the certified gradient is
below the plan's tolerance, for every data set (`models.fit.sums.minimum`); how many passes that took is for the curator alone. Padded, it
is followed by idle passes up to a number that suffices for every data set (samplers/padding.md).
Statement and proof: privacy/perturbed_mode.md §3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import gammainccinv

from onedraw import privacy
from onedraw.arrays import Array
from onedraw.data.sums import check_room
from onedraw.methods.noisy_moments import measure
from onedraw.models.fit.losses import measured_of
from onedraw.models.fit.problem import Coordinates, FitProblem, FitTarget, Published, coordinates
from onedraw.models.fit.result import FitResult
from onedraw.models.fit.sums import NewtonSums, Objective, Outer, minimum, most_descent, predictor_rounding
from onedraw.models.moments.measured import SecondMoments
from onedraw.models.sums.exact_sums import gram_steps
from onedraw.plans import Plan
from onedraw.samplers.noise import Noise, NoisySampler
from onedraw.samplers.padding import PASSES, TRIES_GAMMA, Padding, no_padding, public_passes
from onedraw.samplers.sampler import Sample

MOST_PASSES = 100
"""Of Newton's method, before the gradient method takes over."""


@dataclass(frozen=True)
class Fit(NoisySampler):
    """The plan's own algorithm; it has no options."""

    why: ClassVar[str] = "moments, perturbed mode and information"

    def exactness(self, plan: Plan) -> privacy.AsRun:
        """Of what runs; more records than the sums have room for are refused, before anything is spent."""
        problem: FitProblem = plan.mechanism.problem(plan)
        n, loss, numbers = problem.n, problem.loss, problem.numbers
        row_bound, radius = numbers["row_bound"], numbers["moment_radius"]
        if numbers["moments_noise"]:
            check_room(n, SecondMoments(problem.layout, True), gram_steps(radius**2, n), None, radius)
        check_room(n, NewtonSums(loss), gram_steps(loss.curvature_bound * row_bound**2, n), row_bound, None)
        for of in measured_of(robust=problem.robust):
            statistic = Outer(loss, of)
            check_room(n, statistic, gram_steps(statistic.largest * row_bound**2, n), row_bound, None)
        return privacy.AsRun(plan.guarantee.promise)

    def padding(self, plan: Plan) -> Padding:
        """A pass for each stage, and of the search for the mode as many as ever suffice."""
        problem: FitProblem = plan.mechanism.problem(plan)
        stages = ("mean_noise", "moments_noise", "information_noise", "variability_noise")
        passes = 1 + sum(problem.numbers[stage] > 0.0 for stage in stages) + most_search(problem)
        return Padding({PASSES: passes}, TRIES_GAMMA)

    def run(self, target: FitTarget, randomness: Generator, *, size: int = 1) -> Sample:
        """The estimate, and the stages it follows from."""
        return _fitted(Stages(target, Noise(randomness, pure=True)))

    def run_padded(self, target: FitTarget, randomness: Generator, padding: Padding, *, size: int = 1) -> Sample:
        """The same estimate."""
        stages = Stages(target, Noise(randomness, pure=True), least_passes=most_search(target.problem))
        return _fitted(stages)


def _fitted(stages: Stages) -> Sample:
    published = stages.run()
    estimate = FitResult.of(stages.target.problem, published).estimate
    noticed = {"passes": stages.passes, "work": {PASSES: stages.passes}}
    return Sample(estimate[np.newaxis], noticed, published.to_dict())


def most_search(problem: FitProblem) -> int:
    """Passes that find the mode of every data set, unless the tilt is longer than it is with probability 1 − `TRIES_GAMMA`."""
    if problem.prior is not None:
        raise no_padding("Fit", "with a prior of its own no public number bounds how far away the mode may be")
    numbers, loss = problem.numbers, problem.loss
    ridge, row = numbers["ridge"], numbers["row_bound"]
    length = float(gammainccinv(problem.size, TRIES_GAMMA))
    start = problem.n * loss.slope_bound * row + numbers["mode_noise"] * length
    most = problem.n * loss.curvature_bound * row**2 + ridge
    passes = MOST_PASSES + most_descent(ridge, most, start, numbers["tolerance"] / 2.0)
    return public_passes("Fit", "its search for the mode", passes, "fewer records need fewer")


@dataclass
class Stages:
    """The three stages on one data set; ``passes`` counts how often the records were read."""

    target: FitTarget
    noise: Noise
    minimum: Callable[..., tuple[Array, int]] = minimum
    """How θ̂ is found: `models.fit.sums.minimum` unless fits are simulated together, which look for theirs side by side."""
    least_passes: int = 0
    """Of the search for θ̂: those that it does not need are idle."""
    passes: int = field(default=0, init=False)

    def run(self) -> Published:
        problem, numbers = self.target.problem, self.target.problem.numbers
        mean, moments = measure(self.target.records.sum, problem.n, problem.moment_columns, numbers, self.noise)
        where = coordinates(problem, Published(np.zeros(0), mean, moments))
        records = self.target.measured(where)  # in measured coordinates: what stages two and three add up
        self.passes += 1 + (mean is not None) + (moments is not None)
        tilt = self.noise.real(problem.size, numbers["mode_noise"])
        objective = self._objective(where, tilt)
        found, passes = self.minimum(records, problem.loss, objective)
        while passes < self.least_passes:
            records.sum(NewtonSums(problem.loss), objective.coarse, objective.row_bound, found)
            passes += 1  # counted as they are made
        self.passes += passes
        found = found * min(1.0, objective.reach / max(float(np.linalg.norm(found)), 1e-300))  # post-processing
        closing = self.noise.real(problem.size, numbers["closing_noise"])
        mode = self.noise.rounded(found + closing, numbers["closing_noise"])
        if not numbers["information_noise"]:
            return Published(mode, mean, moments)
        of_information, of_variability = measured_of(robust=problem.robust)
        information = self._outer(of_information, records, mode, numbers["information_noise"])
        if not numbers["variability_noise"]:
            return Published(mode, mean, moments, information)
        variability = self._outer(of_variability, records, mode, numbers["variability_noise"])
        return Published(mode, mean, moments, information, variability)

    def _objective(self, where: Coordinates, tilt: Array) -> Objective:
        """Of stage two. Half the tolerance is certified: the other half covers the rounding of the sums, which the plan's numbers leave room
        for, and a fifth of it the rounding of predictors of modes up to ``reach``."""
        problem = self.target.problem
        row_bound = problem.numbers["row_bound"]
        bent = problem.loss.curvature_bound * row_bound**2
        Q, q = problem.penalty(where)
        least, *_, most = np.linalg.eigvalsh(Q) if len(Q) > 1 else np.repeat(Q, 2)
        coarse, certified = gram_steps(bent, problem.n), float(problem.numbers["tolerance"] / 2.0)
        most_bent = problem.n * bent + most
        rounding = predictor_rounding(problem.layout.width) * (problem.n * bent + most * math.sqrt(len(Q)))
        reach = problem.numbers["tolerance"] / (5.0 * rounding)
        return Objective(Q, q + tilt, coarse, row_bound, certified, least, most_bent, MOST_PASSES, reach)

    def _outer(self, of: Any, records: Any, mode: Array, noise: float) -> Array:
        """A matrix of stage three, with its noise."""
        problem = self.target.problem
        statistic, row_bound = Outer(problem.loss, of), problem.numbers["row_bound"]
        steps = gram_steps(statistic.largest * row_bound**2, problem.n)
        self.passes += 1
        return self.noise.triangle(records.sum(statistic, steps, row_bound, mode), steps**2, noise)
