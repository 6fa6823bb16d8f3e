"""Measuring the moments of the records' columns, for their own sake.

`Measure` publishes means and squares, then products of standardised columns. The records are read through one exact sum each; the
noises and the radius are the plan's, and a noise of 0 leaves its part out. Nothing here knows what the numbers promise (`stages`,
`mechanism`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import privacy
from onedraw.arrays import Array, Integers
from onedraw.methods.noisy_moments import count_known, known_records
from onedraw.models.moments.columns import SQUARE, MomentsProblem, MomentsTarget
from onedraw.models.moments.measured import PowerSums, StandardMoments
from onedraw.models.moments.result import MomentsResult
from onedraw.models.sums.exact_sums import deviation, gram_steps
from onedraw.plans import Plan
from onedraw.samplers.noise import Noise, NoisySampler
from onedraw.samplers.padding import Padding, constant_work
from onedraw.samplers.sampler import Sample

Sum = Callable[..., Integers]


@dataclass(frozen=True)
class Measure(NoisySampler):
    """The plan's own algorithm; it has no options."""

    why: ClassVar[str] = "means and squares, then standardised products"

    def exactness(self, plan: Plan) -> privacy.AsRun:
        return privacy.AsRun(plan.guarantee.promise)

    def padding(self, plan: Plan) -> Padding:
        """A pass for each stage that the plan has, whatever the records are."""
        stages = ("known", "moments", "fourth")
        return constant_work(1 + sum(plan.parameters.get(f"{stage}_noise", 0.0) > 0.0 for stage in stages))

    def run(self, target: MomentsTarget, randomness: Generator, *, size: int = 1) -> Sample:
        """What follows from the moments, and the moments."""
        stages = measure_all(target.records.sum, target.problem, Noise(randomness, pure=target.problem.pure))
        values = MomentsResult.of(with_known(target.problem, stages), stages).encoded.values
        return Sample(values[np.newaxis], {}, {name: part.tolist() for name, part in stages.items()})


def with_known(problem: MomentsProblem, stages: Mapping[str, Any]) -> MomentsProblem:
    """Return the problem about so many records as the published number of complete ones says; itself if all contribute."""
    if "known" not in stages:
        return problem
    spread = deviation(problem.numbers["known_noise"], 1, pure=problem.pure)
    return replace(problem, n=known_records(np.asarray(stages["known"]), problem.n, spread), rows=problem.n)


def measure_all(total: Sum, problem: MomentsProblem, noise: Noise) -> dict[str, Array]:
    """Means and squares, then products and fourth moments of columns standardised by what was published of them."""
    known = count_known(total, noise, problem.numbers.get("known_noise", 0.0))
    counted = {} if known is None else {"known": known}
    problem = with_known(problem, counted)
    columns, numbers = problem.columns, problem.numbers
    steps = gram_steps(1.0, problem.all_rows)
    each = np.concatenate([np.ones(columns.count), np.full(columns.numbers, 1.0 / SQUARE)])
    sums = noise.vector(total(PowerSums(columns.layout), steps), steps**2, numbers["sums_noise"], each) / problem.n
    found = counted | {"mean": sums[: columns.count], "squares": sums[columns.count :]}
    centre, unit = problem.units(found["mean"], found["squares"])
    for power, stage in ((1, "moments"), (2, "fourth")):
        if numbers[f"{stage}_noise"]:
            radius = numbers[f"{stage}_radius"]
            steps = gram_steps(radius**2, problem.all_rows)
            seconds = total(StandardMoments(columns.layout, power), steps, centre, 1.0 / np.sqrt(unit), radius)
            found[stage] = noise.triangle(seconds, steps**2, numbers[f"{stage}_noise"])
    return {name: values for name, values in found.items() if len(values)}
