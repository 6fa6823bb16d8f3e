"""Carry out `Together`: the algorithm of every part, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onedraw import privacy
from onedraw.errors import ExactnessRefused
from onedraw.plans import Plan
from onedraw.samplers.randomness import BOTH
from onedraw.samplers.sampler import Sample, Sampler

from .mechanism import parts_of


@dataclass(frozen=True)
class AllParts(Sampler):
    """The plan's own algorithm; it has no options."""

    randomness: ClassVar[str] = "numpy"
    why: ClassVar[str] = "that of every part, each with randomness of its own"
    compiling: ClassVar[float] = 0.0

    def exactness(self, plan: Plan) -> privacy.Exact:
        """Exact if every part is."""
        self.check_own(plan, "carries out the parts of a Together() plan")
        for part in parts_of(plan):
            found = part.mechanism.own_sampler()().exactness(part)
            if not isinstance(found, privacy.Exact) or found.numeric:
                raise ExactnessRefused(f"{part.heading} is not exact, and only exact parts are released together.")
        return privacy.Exact()

    def entropy(self, plan: Plan) -> str:
        return BOTH

    def passes(self, plan: Plan) -> int:
        return sum(part.mechanism.own_sampler()().passes(part) for part in parts_of(plan))

    def seconds_each(self, plan: Plan) -> float:
        return float(sum(part.mechanism.own_sampler()().seconds_each(part) for part in parts_of(plan)))

    def run(self, target: Any, randomness: Any, *, size: int = 1) -> Sample:
        """Return one release of every part."""
        plan = target.plan
        stages: dict[str, list[float]] = {}
        for k, (part, own) in enumerate(zip(parts_of(plan), target.parts, strict=True)):
            sample = part.mechanism.own_sampler()().run(own, randomness)
            stages |= {f"{k} {name}": values for name, values in (sample.stages or {}).items()}
        return Sample(np.asarray(plan.mechanism.estimate(plan, stages))[None, :], {}, stages)
