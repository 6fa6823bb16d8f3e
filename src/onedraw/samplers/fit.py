"""Carrying out a perturbed mode: moments, mode and information, in this order, each with the noise its plan says.

The records are read through exact sums alone (`FitTarget.sum`). Newton's method runs until the certified gradient is
below the plan's tolerance; where it has not arrived after 100 passes, accelerated gradient steps with public constants
arrive for every data set (Nesterov 2004, §2.2): no failure depends on the records, and how many passes were made is for
the curator alone. Statement and proof: mathematics-3 §2, "What runs".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onedraw import privacy
from onedraw.models.fit_published import Coordinates, Published
from onedraw.models.fit_result import FitResult
from onedraw.models.fit_target import FitProblem, FitTarget
from onedraw.samplers.fit_noise import Noise
from onedraw.samplers.moments import measure
from onedraw.samplers.sample import Sample

Array = NDArray[np.float64]

MOST_PASSES = 100
SHORTEST = 2.0**-10
"""The shortest damped Newton step that is tried before the gradient method takes over."""

DECREASE = 0.1
"""A Newton step of length s must shorten the gradient by this share of s: along it ‖g‖ falls at rate ‖g‖."""


@dataclass(frozen=True)
class Fit:
    """The plan's own algorithm; it has no options."""

    randomness: ClassVar[str] = "numpy"

    def exactness(self, plan: Any) -> privacy.AsRun:
        return privacy.AsRun(plan.guarantee.promise)

    def run(self, target: FitTarget, randomness: Any, *, size: int = 1) -> Sample:
        """The estimate, and the stages it follows from."""
        stages = Stages(target, Noise(randomness, pure=target.problem.pure))
        published = stages.run()
        estimate = FitResult.of(target.problem, published).estimate
        return Sample(estimate[np.newaxis], {"passes": stages.passes}, published.to_dict())

    def to_dict(self) -> dict[str, Any]:
        return {"name": "Fit"}


@dataclass
class Stages:
    """The three stages on one data set; ``passes`` counts how often the records were read."""

    target: FitTarget
    noise: Noise
    passes: int = field(default=0, init=False)

    @property
    def problem(self) -> FitProblem:
        return self.target.problem

    def run(self) -> Published:
        numbers = self.problem.numbers
        mean, moments = measure(self._sum, self.problem.n, self.problem.moment_columns, numbers, self.noise)
        where = self.problem.coordinates(Published(np.zeros(0), mean, moments))
        records = self._measured(where)
        mode = self._published_mode(where, records)
        if not numbers["information_noise"]:
            return Published(mode, mean, moments)
        of = "curvature" if self.problem.robust else "information"
        information = self._outer(of, records, mode, numbers["information_noise"])
        if not numbers["variability_noise"]:
            return Published(mode, mean, moments, information)
        variability = self._outer("variability", records, mode, numbers["variability_noise"])
        return Published(mode, mean, moments, information, variability)

    def _sum(self, statistic: Any, *public: Any) -> Any:
        self.passes += 1
        return self.target.sum(statistic, *public)

    def _measured(self, where: Coordinates) -> Any:
        """The records in measured coordinates: what stages two and three add up."""
        self.passes += 1
        return self.target.measured(where)

    # ── stage two ──────────────────────────────────────────────────────────────────────────────────────────

    def _published_mode(self, where: Coordinates, records: Any) -> Array:
        numbers, size = self.problem.numbers, self.problem.size
        tilt = self.noise.real(size, numbers["mode_noise"])
        mode = self._minimum(where, records, tilt) + self.noise.real(size, numbers["closing_noise"])
        return self.noise.rounded(mode, numbers["closing_noise"])

    def _minimum(self, where: Coordinates, records: Any, tilt: Array) -> Array:
        """θ̂ with a certified gradient of at most the tolerance, from the public start 0."""
        Q, q = self.problem.penalty(where)
        theta, began = np.zeros(len(tilt)), self.passes
        gradient, hessian = self._derivatives(records, Q, q + tilt, theta)
        while (size := float(np.linalg.norm(gradient))) > self._certified:
            step, moved = np.linalg.solve(hessian, gradient), None
            length = 1.0
            while length >= SHORTEST and self.passes - began < MOST_PASSES:
                there = theta - length * step
                gradient, curved = self._derivatives(records, Q, q + tilt, there)
                if float(np.linalg.norm(gradient)) <= (1.0 - DECREASE * length) * size:
                    moved = there
                    break
                length /= 2.0
            if moved is None:
                return self._descended(records, Q, q + tilt, theta)
            theta, hessian = moved, curved
        return theta

    def _descended(self, records: Any, Q: Array, q: Array, theta: Array) -> Array:
        """Accelerated gradient steps with the public constants of the problem, until the certified gradient is small."""
        numbers, loss = self.problem.numbers, self.problem.loss
        least = float(np.linalg.eigvalsh(Q)[0])
        most = self.problem.n * loss.curvature_bound * numbers["row_bound"] ** 2 + float(np.linalg.eigvalsh(Q)[-1])
        momentum = (math.sqrt(most) - math.sqrt(least)) / (math.sqrt(most) + math.sqrt(least))
        ahead = theta
        while True:
            gradient, _ = self._derivatives(records, Q, q, ahead)
            if float(np.linalg.norm(gradient)) <= self._certified:
                return ahead
            moved = ahead - gradient / most
            ahead, theta = moved + momentum * (moved - theta), moved

    @property
    def _certified(self) -> float:
        """Half the tolerance: the other half covers the rounding of the sums, which the plan's numbers leave room for."""
        return self.problem.numbers["tolerance"] / 2.0

    def _derivatives(self, records: Any, Q: Array, q: Array, theta: Array) -> tuple[Array, Array]:
        from onedraw.models.fit_statistics import NewtonSums
        from onedraw.models.moment_sums import gram_bits

        loss, row_bound = self.problem.loss, self.problem.numbers["row_bound"]
        coarse = 2.0 ** gram_bits(loss.curvature_bound * row_bound**2)
        statistic = NewtonSums(loss)
        self.passes += 1
        total = records.sum(statistic, coarse, row_bound, theta)
        gradient, hessian = statistic.split(total, coarse, self.problem.size)
        return gradient + Q @ theta + q, hessian + Q

    # ── stage three ────────────────────────────────────────────────────────────────────────────────────────

    def _outer(self, of: Any, records: Any, mode: Array, noise: float) -> Array:
        from onedraw.models.fit_statistics import Outer
        from onedraw.models.moment_sums import gram_bits

        statistic, row_bound = Outer(self.problem.loss, of), self.problem.numbers["row_bound"]
        steps = 2.0 ** gram_bits(statistic.largest * row_bound**2)
        self.passes += 1
        return self.noise.triangle(records.sum(statistic, steps, row_bound, mode), steps**2, noise)
