"""Measuring the moments of the records' columns: for their own sake, or before a fit or another sampler's draw.

`fit.measure` publishes the mean, then the second moments about what was published of it; `Measure` means and squares, then
products of standardised columns. The records are read through one exact sum each; the noises and the radius are the plan's, and
a noise of 0 leaves its part out. Nothing here knows what the numbers promise (`mechanisms.stages`, `mechanisms.moments`).

`MeasuredFirst` carries out `Measured`: the columns' moments, the records in the coordinates that follow, then the inner plan's
own sampler on them. Everything published before the draw is public to it; what one record becomes depends on that record and on
published numbers alone. The draw is published in measured coordinates, on a public lattice, and mapped back to the columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import privacy
from onedraw.arrays import Array, Integers
from onedraw.models.fit.problem import Published
from onedraw.models.likelihood.beta_target import BetaTarget
from onedraw.models.moments.columns import SQUARE, MomentsProblem, MomentsTarget
from onedraw.models.moments.measured import PowerSums, StandardMoments
from onedraw.models.moments.measured_model import MeasuredTarget
from onedraw.models.moments.result import MomentsResult
from onedraw.models.sums.exact_sums import gram_steps
from onedraw.plans import Plan
from onedraw.samplers.fit import measure
from onedraw.samplers.noise import Noise, NoisySampler
from onedraw.samplers.padding import PASSES, Padding, constant_work
from onedraw.samplers.randomness import KEY_BYTES
from onedraw.samplers.sampler import Sample, Sampler

Sum = Callable[..., Integers]

LARGEST = 1e200
"""Draws are cut here before they are rounded: no prior gives such a number a chance."""

LATTICE_BITS = 20
"""The draw is rounded to about a millionth of its prior's deviation, as every draw that leaves is."""


@dataclass(frozen=True)
class Measure(NoisySampler):
    """The plan's own algorithm; it has no options."""

    carries_out: ClassVar[str] = "moments"
    why: ClassVar[str] = "means and squares, then standardised products"

    def exactness(self, plan: Plan) -> privacy.AsRun:
        return privacy.AsRun(plan.guarantee.promise)

    def padding(self, plan: Plan) -> Padding:
        """A pass for each stage that the plan has, whatever the records are."""
        return constant_work(1 + sum(plan.parameters[f"{stage}_noise"] > 0.0 for stage in ("moments", "fourth")))

    def run(self, target: MomentsTarget, randomness: Generator, *, size: int = 1) -> Sample:
        """What follows from the moments, and the moments."""
        stages = measure_all(target.records.sum, target.problem, Noise(randomness, pure=target.problem.pure))
        values = MomentsResult.of(target.problem, stages).encoded.values
        return Sample(values[np.newaxis], {}, {name: part.tolist() for name, part in stages.items()})


def measure_all(total: Sum, problem: MomentsProblem, noise: Noise) -> dict[str, Array]:
    """Means and squares, then products and fourth moments of columns standardised by what was published of them."""
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


@dataclass(frozen=True)
class MeasuredFirst(NoisySampler):
    """``of`` is the sampler of the inner plan."""

    carries_out: ClassVar[str] = "measured"

    of: Sampler

    @classmethod
    def chosen(cls, plan: Plan, accept: Collection[str]) -> tuple[Sampler, str]:
        from onedraw.samplers.choice import default_sampler  # which chooses this one

        within, why = default_sampler(plan.mechanism.inner(plan), accept=accept)
        return cls(within), f"the columns' moments, then {why}"

    def exactness(self, plan: Plan) -> privacy.Exactness:
        """The inner sampler's; where its own law carries a promise, that one together with the moments'."""
        from onedraw.samplers.choice import check_sampler  # which chooses this one

        self.check_own(plan, "measures the columns that a plan of Measured(of=…) names")
        inner = plan.mechanism.inner(plan)
        check_sampler(inner, self.of)
        found: privacy.Exactness = self.of.exactness(inner)
        if isinstance(found, privacy.LastIterate | privacy.AsRun):
            return type(found)(plan.mechanism.promise_with(plan, found.promise))
        if isinstance(found, privacy.Exact) and not found.numeric:  # the moments' noise is not made of whole numbers
            return privacy.Exact("after moments with noise of real variates")
        return found

    def passes(self, plan: Plan) -> int:
        """Two for the moments, and the inner sampler's."""
        return 2 + self.of.passes(plan.mechanism.inner(plan))

    def padding(self, plan: Plan) -> Padding:
        """The inner sampler's, after a pass for each stage of moments."""
        inner, measuring = self.of.padding(plan.mechanism.inner(plan)), ("mean_noise", "moments_noise")
        before = sum(plan.parameters[noise] > 0.0 for noise in measuring)
        return replace(inner, work=dict(inner.work) | {PASSES: before + inner.passes})

    def seconds(self, plan: Plan) -> float:
        return self.of.seconds(plan.mechanism.inner(plan))

    def run(self, target: MeasuredTarget, randomness: Generator, *, size: int = 1) -> Sample:
        """The draws for encoded rows, and the stages they follow from."""
        return self._run(target, randomness, partial(self.of.run, size=size), size)

    def run_padded(self, target: MeasuredTarget, randomness: Generator, padding: Padding, *, size: int = 1) -> Sample:
        return self._run(target, randomness, partial(self.of.run_padded, padding=padding, size=size), size)

    def _run(
        self, target: MeasuredTarget, randomness: Generator, drawn: Callable[[Any, Any], Sample], size: int
    ) -> Sample:
        published = design(target, Noise(randomness, pure=target.problem.pure))
        law = target.within(target.problem.coordinates(published))
        source: Any = randomness
        if self.of.randomness == "jax":  # a key of 256 bits from the generator: as unknown to anybody as its own
            from onedraw.samplers.chacha import chacha_key

            source = chacha_key(randomness.bytes(KEY_BYTES))
        inner = drawn(law, source)
        draws = inner.draws.reshape(size, -1)
        if isinstance(law, BetaTarget):  # drawn from in unconstrained coordinates
            draws = np.clip(law.model.constrain(draws), -LARGEST, LARGEST)
        spacing = math.ldexp(1.0, math.floor(math.log2(target.model.prior_scale)) - LATTICE_BITS)
        draws = np.rint(draws / spacing) * spacing + 0.0
        found = {"mean": published.mean, "moments": published.moments, "draws": draws.ravel()}
        return Sample(
            target.problem.encoded_draws(published, draws),
            inner.diagnostics,
            {name: value.tolist() for name, value in found.items() if value is not None},
        )


def design(target: MeasuredTarget, noise: Noise) -> Published:
    """Mean and second moments of the columns as they leave, where the plan measures them."""
    problem = target.problem
    mean, moments = measure(target.records.sum, problem.n, problem.moment_columns, problem.numbers, noise)
    return Published(np.zeros(0), mean, moments)
