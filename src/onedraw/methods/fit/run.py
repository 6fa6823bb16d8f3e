"""Carrying out averaged steps: every part in its order, each with the noise its plan says.

The records are read through exact sums alone. How many passes are made is public: one for each part and each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import privacy
from onedraw.arrays import Array
from onedraw.data.person_sums import ByPerson, passes_by_person, sum_by_person
from onedraw.data.sums import check_room
from onedraw.methods.noisy_moments import MEAN_STEPS, count_known, measure_mean, measure_moments
from onedraw.models.moments.measured import SecondMoments
from onedraw.models.sums.exact_sums import MOST_NUMPY_VALUES, SummedTarget, gram_steps, vector_steps
from onedraw.plans import Plan
from onedraw.samplers.noise import GaussianSampler, Noise
from onedraw.samplers.padding import PASSES
from onedraw.samplers.sampler import Sample

from .class_scores import ClassScore
from .coordinates import StepsProblem, Where, centre_of, first_of, where_of
from .effects import Stretch, stretch_of
from .published import StepsPublished
from .result import FAR, StepsResult
from .sizes import EARLY_STEPS, STEPS, TAIL_COUNTS, StepNumbers, choose_factor
from .steps import walk
from .sums import (  # fmt: skip
    ClassInformation,
    ClassShares,
    ClippedScores,
    DesignMoments,
    Information,
    LongScores,
    PersonCovariance,
    RecordScores,
    Responses,
    ResponseSum,
    ScoreCovariance,
    StepRows,
)

if TYPE_CHECKING:
    from .mechanism import AveragedSteps as AveragedSteps


@dataclass(frozen=True, eq=False, repr=False)
class StepsTarget(SummedTarget):
    """A fit with its records, which are read by exact sums alone."""

    problem: StepsProblem
    encoded: Any
    whose: Any = None
    """Each record's owner (`persons.owners_of`), where the source does not say it."""

    @property
    def owners(self) -> Any:
        return self.encoded.source.owners(self.encoded.rows.columns) if self.whose is None else self.whose

    @cached_property
    def records(self) -> Any:
        score = self.problem.score
        return self.encoded.records.read_as(Responses(score.scale, score.shift))


@dataclass(frozen=True)
class FitBySteps(GaussianSampler):
    """The plan's own algorithm; it has no options."""

    why: ClassVar[str] = "moments, averaged noisy Newton steps and what standard errors are made of"

    def exactness(self, plan: Plan) -> privacy.AsRun:
        """Return the plan's promise; more records than the sums have room for are refused before anything is spent."""
        problem: StepsProblem = plan.mechanism.problem(plan)
        n, sizes = problem.n, problem.sizes
        check_room(
            n,
            SecondMoments(problem.layout, problem.score.in_moments),
            gram_steps(sizes.moment_radius**2, n),
            None,
            sizes.moment_radius,
        )
        check_room(n, ClippedScores(problem.score), vector_steps(sizes.step_bound, n), sizes.step_bound, None, None)
        radius = sizes.covariance_radius
        check_room(n, ScoreCovariance(problem.score), gram_steps(radius**2, n), radius, None, None, None)
        return privacy.AsRun(plan.guarantee.promise)

    def passes(self, plan: Plan) -> int:
        """Return the passes over the records, the same for every data set."""
        return passes_of(plan.mechanism.problem(plan))

    def adds_in_numpy(self, plan: Plan) -> bool:
        """Return whether the records are few enough for NumPy."""
        return bool(plan.n * plan.mechanism.problem(plan).layout.width <= MOST_NUMPY_VALUES)

    def run(self, target: StepsTarget, randomness: Generator, *, size: int = 1) -> Sample:
        published = Stages(target, Noise(randomness, pure=False)).run()
        estimate = StepsResult.of(target.problem, published).estimate
        passes = passes_of(target.problem)
        return Sample(estimate[np.newaxis], {"passes": passes, "work": {PASSES: passes}}, published.to_dict())


def passes_of(problem: StepsProblem) -> int:
    """Return the passes over the records that a fit takes."""
    sizes = problem.sizes
    noises = (
        sizes.known_noise, sizes.level_noise, sizes.mean_noise, sizes.moments_noise, sizes.design_noise,
        sizes.count_noise, sizes.information_noise, sizes.covariance_noise,
    )  # fmt: skip
    by_person = passes_by_person(problem.n, problem.size) - 1 if problem.persons and sizes.covariance_noise else 0
    tail = TAIL_COUNTS * (sizes.tail_noise > 0.0)
    return sum(noise > 0.0 for noise in noises) + tail + EARLY_STEPS + STEPS + by_person


@dataclass
class Stages:
    """All parts on one data set."""

    target: StepsTarget
    noise: Noise

    def run(self) -> StepsPublished:
        """Return everything that is published."""
        records = self.target.records
        known = count_known(records.sum, self.noise, self.target.problem.sizes.known_noise)
        problem = self.target.problem.with_known(known)
        score, sizes = problem.score, problem.sizes
        columns, level = problem.moment_columns, None
        if sizes.level_noise:
            summed = records.sum(ClassShares(score.level_size) if score.level_size > 1 else ResponseSum(), MEAN_STEPS)
            level = self.noise.vector(summed, MEAN_STEPS, sizes.level_noise) / problem.n
        mean = measure_mean(records.sum, problem.n, columns, sizes.mean_noise, self.noise)
        centre = centre_of(problem, mean, level)
        moments = measure_moments(records.sum, problem.all_rows, columns, centre, problem.numbers, self.noise)
        first, design = first_of(problem, centre, moments, level), None
        if sizes.design_noise:
            steps = gram_steps(sizes.design_radius**2, problem.all_rows)
            public = (first.mean[: columns.layout.columns], first.root, first.slopes, first.centre, first.unit)
            summed = records.sum(DesignMoments(problem.layout, columns.response), steps, *public, sizes.design_radius)
            design = self.noise.triangle(summed, steps**2, sizes.design_noise)
        where = where_of(problem, first, design)
        rows = records.read_as(
            StepRows(problem.layout, problem.score), where.mean, where.root, where.centre, where.unit
        )
        self._rows, self._where = rows, where
        self._stretched, self._stretch = rows, stretch_of(problem, where)
        if self._stretch is not None:
            root, factor = self._stretch.rows(where)
            self._stretched = records.read_as(
                StepRows(problem.layout, problem.score), where.mean, root, where.centre, where.unit, factor
            )
        tail = self._tail() if sizes.tail_noise else None
        problem = problem.with_bound(tail)
        sizes = problem.sizes
        path = walk(problem, where, self._gradient)
        count = None
        if sizes.count_noise:
            count = self._longer(path.step, FAR * sizes.step_bound, sizes.count_noise)
        information = None
        if sizes.information_noise:
            information = self._matrix(
                ClassInformation(score) if isinstance(score, ClassScore) else Information(score),
                path.step,
                sizes.information_radius,
                sizes.step_bound,
                sizes.information_noise,
            )
        covariance = self._covariance(path.step, sizes) if sizes.covariance_noise else None
        return StepsPublished(
            level, mean, moments, design, tail, path.early, path.step, count, information, covariance, known
        )

    def _tail(self) -> Array:
        """Return the noisy counts of long scores at the start that choose the bound."""
        sizes, where, found = self.target.problem.sizes, self._where, list[float]()
        assert where is not None

        def count(factor: float) -> float:
            found.append(float(self._longer(where.start, factor * sizes.step_bound, sizes.tail_noise)[0]))
            return found[-1]

        choose_factor(count, sizes.tail_target)
        return np.array(found)

    def _longer(self, theta: Array, bound: float, noise: float) -> Array:
        """Return the noisy number of scores that are longer than the bound."""
        problem, where = self.target.problem, self._where
        assert where is not None
        fine = vector_steps(1.0, problem.all_rows)
        summed = self._stretched.sum(
            LongScores(problem.score), fine, bound, self._in_stretched(theta), where.score_scale
        )
        return self.noise.vector(summed, fine, noise)

    _rows: Any = field(default=None, init=False, repr=False)
    _stretched: Any = field(default=None, init=False, repr=False)
    """The same rows along the effects of interest (effects.py); those themselves if none are named."""
    _stretch: Stretch | None = field(default=None, init=False, repr=False)
    _where: Where | None = field(default=None, init=False, repr=False)

    def _gradient(self, theta: Array, bound: float, noise: float) -> Array:
        problem, where = self.target.problem, self._where
        assert where is not None
        fine = vector_steps(bound, problem.all_rows)
        summed = self._stretched.sum(
            ClippedScores(problem.score), fine, bound, self._in_stretched(theta), where.score_scale
        )
        answer = self.noise.vector(summed, fine, noise)
        return answer if self._stretch is None else self._stretch.back(answer)

    def _in_stretched(self, theta: Array) -> Array:
        """Return the coefficients of stretched rows that give the same predictors."""
        return theta if self._stretch is None else self._stretch.coefficients(theta)

    @property
    def _matrix_of_stretch(self) -> Array | None:
        """Return R, by whose rows classes are weighted."""
        return None if self._stretch is None else self._stretch.matrix

    def _matrix(self, statistic: Any, theta: Array, radius: float, bound: float, noise: float) -> Array:
        where = self._where
        assert where is not None
        steps = gram_steps(radius**2, self.target.problem.all_rows)
        summed = self._rows.sum(statistic, steps, radius, theta, where.score_scale, bound, self._matrix_of_stretch)
        return self.noise.triangle(summed, steps**2, noise)

    def _covariance(self, theta: Array, sizes: StepNumbers) -> Array:
        """Return the noisy squares of scores: each record's, or the sums of each person's."""
        problem, where = self.target.problem, self._where
        radius, noise = sizes.covariance_radius, sizes.covariance_noise
        if not problem.persons:
            return self._matrix(ScoreCovariance(problem.score), theta, radius, sizes.step_bound, noise)
        assert where is not None
        fine, steps = vector_steps(sizes.step_bound, problem.all_rows), gram_steps(radius**2, problem.all_rows)
        public = (fine, sizes.step_bound, theta, where.score_scale, self._matrix_of_stretch)
        scores = ByPerson(RecordScores(problem.score), public, problem.size)
        summed = sum_by_person(self._rows, self.target.owners, scores, PersonCovariance(), steps, radius, fine)
        return self.noise.triangle(summed, steps**2, noise)
