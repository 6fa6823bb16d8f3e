"""A choice among settings, made exactly: `flip_run` or `select` on whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import errors, privacy
from onedraw.samplers.sample import Sample
from onedraw.samplers.selection import flip_run, select


@dataclass(frozen=True)
class LossSelection:
    """The sampler of `ExponentialChoice`, and of nothing else."""

    randomness: ClassVar[str] = "numpy"

    def exactness(self, plan: Any) -> privacy.Exactness:
        """Exact, in whole numbers."""
        if getattr(plan, "requires", "exact") != "losses":
            raise errors.ExactnessRefused(
                "LossSelection() chooses among the settings of an ExponentialChoice() plan, and this plan has none. Leave the sampler out."
            )
        return privacy.Exact()

    def to_dict(self) -> dict[str, object]:
        return {"name": "LossSelection"}

    def run(self, target: Any, generator: Generator, *, size: int = 1) -> Sample:
        """The places of ``size`` choices, one row each."""
        alone = np.ones(len(target.costs), dtype=np.int64)
        chosen = [
            flip_run(target.costs, alone, generator, bits=target.bits)[0] if target.flip
            else select(target.costs, generator, bits=target.bits)
            for _ in range(size)
        ]  # fmt: skip
        return Sample(np.array(chosen, dtype=np.float64).reshape(size, 1))
