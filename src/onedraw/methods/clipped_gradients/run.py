"""Carrying out clipped gradients: every part in its order, each with the noise its plan says.

The records are read through exact sums alone. How many passes are made is public: one for each part and each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import privacy
from onedraw.arrays import Array
from onedraw.data.sums import check_room
from onedraw.methods.noisy_moments import MEAN_STEPS, count_known
from onedraw.models.sums.exact_sums import SummedTarget, vector_steps
from onedraw.plans import Plan
from onedraw.samplers.noise import GaussianSampler, Noise
from onedraw.samplers.padding import PASSES
from onedraw.samplers.sampler import Sample

from .coordinates import Coordinates, Problem, code_table, columns_of, coordinates_of, gradient_of
from .result import ClippedResult, Published, Start
from .steps import descend
from .sums import CodedRows, Columns, Derivatives, Deviations, Gradients, Levels, Scores, Squares, StepRows

if TYPE_CHECKING:
    from .mechanism import ClippedGradients as ClippedGradients


@dataclass(frozen=True, eq=False, repr=False)
class ClippedTarget(SummedTarget):
    """A problem with its records, which are read by exact sums alone."""

    problem: Problem
    encoded: Any

    @cached_property
    def records(self) -> Any:
        problem = self.problem
        coded = CodedRows(problem.layout, tuple(problem.places.tolist()), problem.offsets, problem.response)
        return self.encoded.records.read_as(coded)


@dataclass(frozen=True)
class ClippedSteps(GaussianSampler):
    """The plan's own algorithm; it has no options."""

    why: ClassVar[str] = "the level, scales, averaged steps on clipped gradients, and a temperature"

    def exactness(self, plan: Plan) -> privacy.AsRun:
        """Return the plan's promise; more records than the sums have room for are refused before anything is spent."""
        problem: Problem = plan.mechanism.problem(plan)
        check_room(problem.n, Levels(problem.response), MEAN_STEPS)
        check_room(problem.n, Gradients(problem.response), *_bounds(problem, 1.0), None, None, None)
        bound = problem.sizes.temperature_bound
        check_room(problem.n, Derivatives(problem.response), bound, vector_steps(bound, problem.n))
        bound = problem.sizes.center_bound
        if bound:
            check_room(problem.n, Scores(problem.response), bound, vector_steps(bound, problem.n))
        return privacy.AsRun(plan.guarantee.promise)

    def passes(self, plan: Plan) -> int:
        """Return the passes over the records, the same for every data set."""
        return passes_of(plan.mechanism.problem(plan))

    def seconds(self, plan: Plan) -> float:
        """Return about how long it takes: the passes, and the exact noise of all numbers."""
        problem: Problem = plan.mechanism.problem(plan)
        read = problem.n * (len(problem.places) + len(problem.offsets)) * problem.response.outputs
        noises = (problem.setting.slopes + problem.response.outputs) * problem.sizes.count
        return passes_of(problem) * (1e-3 + 4e-9 * read) + 1e-5 * noises

    def run(self, target: ClippedTarget, randomness: Generator, *, size: int = 1) -> Sample:
        published = Stages(target, Noise(randomness, pure=False)).run()
        passes = passes_of(target.problem)
        estimate = ClippedResult(target.problem, published).estimate
        return Sample(estimate[np.newaxis], {"passes": passes, "work": {PASSES: passes}}, published.to_dict())


def passes_of(problem: Problem) -> int:
    """Return the passes over the records: codes, level, squares, mean, deviations, steps, mean score and temperature."""
    sizes = problem.sizes
    noises = sizes.known_noise, sizes.square_noise, sizes.mean_noise, sizes.spread_noise, sizes.center_noise
    return 3 + sum(noise > 0.0 for noise in noises) + sizes.count


def _bounds(problem: Problem, unit: float) -> tuple[float, float, float, float, float]:
    """Return how gradients are shortened and on which lattice, as `Gradients` takes it."""
    sizes, lattice = problem.sizes, problem.lattice
    residual = sizes.intercept_bound
    fine = vector_steps(residual, problem.all_rows)
    return sizes.slope_bound * lattice.row, lattice.residual, unit, residual, fine


@dataclass
class Stages:
    """All parts on one data set."""

    target: ClippedTarget
    noise: Noise
    problem: Problem = field(init=False)
    """With the published number of records that contribute."""

    def run(self) -> Published:
        """Return everything that is published."""
        records = self.target.records
        known = count_known(records.sum, self.noise, self.target.problem.sizes.known_noise)
        self.problem = problem = self.target.problem.with_known(known)
        sizes, n = problem.sizes, problem.n
        summed = records.sum(Levels(problem.response), MEAN_STEPS)
        level = self.noise.vector(summed, MEAN_STEPS, sizes.level_noise) / n
        square = None
        if sizes.square_noise:
            summed = records.sum(Squares(problem.response), MEAN_STEPS)
            square = self.noise.vector(summed, MEAN_STEPS, sizes.square_noise) / n
        mean, spread = self._scales(records)
        where, start = coordinates_of(problem, mean, spread), Start.of(problem, level, square)
        places = problem.places
        rows = records.read_as(
            StepRows(), where.center[places], where.scale[places], problem.lattice.row, where.squares
        )

        def gradient(slopes: Array, intercepts: Array) -> tuple[Array, Array]:
            return self._gradient(rows, where, start, slopes, intercepts)

        path = descend(problem, start.scores, start.unit, gradient)
        published = Published(
            level, square, mean, spread, path.slopes.ravel(), path.intercepts, None, np.zeros(0), known
        )
        if sizes.center_noise:
            published = replace(published, center=self._center(rows, ClippedResult(problem, published)))
        return replace(published, temperature=self._derivatives(rows, ClippedResult(problem, published)))

    def _scales(self, records: Any) -> tuple[Array | None, Array | None]:
        """Return the noisy means of columns and of their deviations; None for what the plan leaves out."""
        problem, sizes = self.problem, self.problem.sizes
        if not sizes.mean_noise:
            return None, None
        sums = columns_of(problem, records.sum(Columns(problem.codes), MEAN_STEPS))
        mean = self.noise.vector(sums, MEAN_STEPS, sizes.mean_noise) / problem.n
        if not sizes.spread_noise:
            return mean, None
        summed = records.sum(Deviations(), MEAN_STEPS, np.clip(mean[problem.places], -1.0, 1.0))
        return mean, self.noise.vector(summed, MEAN_STEPS, sizes.spread_noise) / problem.n

    def _weights(self, where: Coordinates, slopes: Array) -> tuple[Array, Array]:
        """Return slopes as sums take them: of the integers of numbers, and by code."""
        problem = self.problem
        return slopes[problem.places] / problem.lattice.row, code_table(problem, where, slopes)

    def _gradient(
        self, rows: Any, where: Coordinates, start: Start, slopes: Array, intercepts: Array
    ) -> tuple[Array, Array]:
        """Return the noisy sums of clipped gradients of slopes and of intercepts."""
        problem, sizes = self.problem, self.problem.sizes
        bounds = _bounds(problem, start.unit)
        summed = rows.sum(Gradients(problem.response), *bounds, *self._weights(where, slopes), intercepts)
        outputs, numbers = problem.response.outputs, len(problem.places)
        parts = np.split(summed.reshape(-1, outputs), np.cumsum([numbers, problem.codes, 1]))
        whole = gradient_of(problem, where, parts[0], parts[1], parts[2][0])
        steps = problem.lattice.row * problem.lattice.residual
        noisy = self.noise.vector(whole.ravel(), steps, sizes.slope_noise)
        own = self.noise.vector(parts[3][0], bounds[-1], sizes.intercept_noise)
        return noisy.reshape(whole.shape), own

    def _center(self, rows: Any, found: ClippedResult) -> Array:
        """Return the noisy mean score, in units of the scores' standard deviation."""
        problem, sizes = self.problem, self.problem.sizes
        fine = vector_steps(sizes.center_bound, problem.all_rows)
        public = sizes.center_bound, fine, found.deviation
        moved = found.published.intercepts - found.start.scores
        summed = rows.sum(Scores(problem.response), *public, *self._weights(found.where, found.slopes), moved)
        return self.noise.vector(summed, fine, sizes.center_noise) / problem.n

    def _derivatives(self, rows: Any, found: ClippedResult) -> Array:
        """Return the noisy derivative in the temperature at 0, and its increases."""
        problem, sizes = self.problem, self.problem.sizes
        bound = sizes.temperature_bound
        fine = vector_steps(bound, problem.all_rows)
        public = bound, fine, found.start.unit * found.deviation, found.temperatures
        weights = self._weights(found.where, found.slopes)
        summed = rows.sum(Derivatives(problem.response), *public, *weights, found.line.level, found.line.shift)
        return self.noise.vector(summed, fine, sizes.temperature_noise)
