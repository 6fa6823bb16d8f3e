"""Carry out `Measured`: the columns' moments, then the inner plan's own sampler on the records in the coordinates that follow.

Everything published before the draw is public to it. What one record becomes depends on that record and on published numbers
alone. The draw is published in measured coordinates, on a public lattice, and mapped back to the columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from onedraw import privacy
from onedraw.methods.noisy_moments import measure
from onedraw.models.fit.problem import Published
from onedraw.models.moments.measured_model import MeasuredTarget
from onedraw.plans import Plan
from onedraw.samplers.noise import Noise, NoisySampler
from onedraw.samplers.padding import PASSES, Padding
from onedraw.samplers.randomness import KEY_BYTES
from onedraw.samplers.sampler import Sample, Sampler

LATTICE_BITS = 20
"""The draw is rounded to about a millionth of its prior's deviation, as every draw that leaves is."""


@dataclass(frozen=True)
class MeasuredFirst(NoisySampler):
    """``of`` is the sampler of the inner plan."""

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
        published = design(target, Noise(randomness, pure=False))
        law = target.within(target.problem.coordinates(published))
        source: Any = randomness
        if self.of.randomness == "jax":  # a key of 256 bits from the generator: as unknown to anybody as its own
            from onedraw.samplers.chacha import chacha_key

            source = chacha_key(randomness.bytes(KEY_BYTES))
        inner = drawn(law, source)
        draws = inner.draws.reshape(size, -1)
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
