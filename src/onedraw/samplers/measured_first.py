"""Carrying out `Measured`: the columns' moments with their noise, the records in the coordinates that follow, then the
inner plan's own sampler on them.

Everything published before the draw is public to it; what one record becomes depends on that record and on published
numbers alone. The draw is published in measured coordinates, on a public lattice, and mapped back to the columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onedraw import privacy
from onedraw.errors import ExactnessRefused
from onedraw.models.fit.published import Published
from onedraw.models.likelihood.beta_target import BetaTarget
from onedraw.models.moments.measured_model import MeasuredTarget
from onedraw.samplers.fit_noise import Noise
from onedraw.samplers.moments import measure
from onedraw.samplers.randomness import KEY_BYTES
from onedraw.samplers.sample import Sample
from onedraw.samplers.stored import sampler_from_dict

LARGEST = 1e200
"""Draws are cut here before they are rounded: no prior gives such a number a chance."""

LATTICE_BITS = 20
"""The draw is rounded to about a millionth of its prior's deviation, as every draw that leaves is."""


@dataclass(frozen=True)
class MeasuredFirst:
    """``of`` is the sampler of the inner plan."""

    randomness: ClassVar[str] = "numpy"

    of: Any

    def __post_init__(self) -> None:
        if isinstance(self.of, Mapping):
            object.__setattr__(self, "of", sampler_from_dict(self.of))

    def exactness(self, plan: Any) -> privacy.Exactness:
        """The inner sampler's; where its own law carries a promise, that one together with the moments'."""
        if getattr(plan, "requires", "exact") != "measured":
            raise ExactnessRefused(
                "MeasuredFirst() carries out a plan of Measured(of=…), and this is not one. Leave the sampler out to have "
                "one chosen."
            )
        from onedraw.samplers.choice import check_sampler  # which chooses this one

        inner = plan.mechanism.inner(plan)
        check_sampler(inner, self.of)
        found: privacy.Exactness = self.of.exactness(inner)
        if isinstance(found, privacy.LastIterate | privacy.AsRun):
            return type(found)(plan.mechanism.promise_with(plan, found.promise))
        if isinstance(found, privacy.Exact) and not found.numeric:  # the moments' noise is not made of whole numbers
            return privacy.Exact("after moments with noise of real variates")
        return found

    def passes(self, plan: Any) -> int:
        """Two for the moments, and the inner sampler's."""
        return 2 + int(self.of.passes(plan.mechanism.inner(plan)))

    def to_dict(self) -> dict[str, Any]:
        return {"name": "MeasuredFirst", "of": self.of.to_dict()}

    def run(self, target: MeasuredTarget, generator: Any, *, size: int = 1) -> Sample:
        """The draws for encoded rows, and the stages they follow from."""
        published = design(target, Noise(generator, pure=target.problem.pure))
        law = target.within(target.problem.coordinates(published))
        inner = self.of.run(law, self._randomness(generator), size=size)
        draws = inner.draws.reshape(size, -1)
        if isinstance(law, BetaTarget):  # drawn from in unconstrained coordinates
            draws = np.clip(target.plan.model.constrain(draws), -LARGEST, LARGEST)
        draws = _rounded(draws, target.plan.model.prior_scale)
        found = {"mean": published.mean, "moments": published.moments, "draws": draws.ravel()}
        return Sample(
            target.problem.encoded_draws(published, draws),
            inner.diagnostics,
            {name: value.tolist() for name, value in found.items() if value is not None},
        )

    def _randomness(self, generator: Any) -> Any:
        """The generator itself, or a JAX key of 256 bits from it: as unknown to anybody as its own."""
        if self.of.randomness == "numpy":
            return generator
        from onedraw.samplers.chacha import chacha_key

        return chacha_key(generator.bytes(KEY_BYTES))


def design(target: MeasuredTarget, noise: Noise) -> Published:
    """Mean and second moments of the columns as they leave, where the plan measures them."""
    problem = target.problem
    mean, moments = measure(target.sum, problem.n, problem.moment_columns, problem.numbers, noise)
    return Published(np.zeros(0), mean, moments)


def _rounded(draws: Any, scale: float) -> Any:
    spacing = math.ldexp(1.0, math.floor(math.log2(scale)) - LATTICE_BITS)
    return np.rint(draws / spacing) * spacing + 0.0
