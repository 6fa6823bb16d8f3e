"""Carry out `ExponentialChoice`: one of several settings, selected exactly by loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw.samplers.sampler import Sample
from onedraw.samplers.selection import WholeNumbers, flip_run, select_run


@dataclass(frozen=True)
class LossSelection(WholeNumbers):
    """The sampler of `ExponentialChoice`, and of nothing else: a choice among settings, by `flip_run` or `select`."""

    why: ClassVar[str] = "exact selection by loss"
    each: ClassVar[float] = 2e-4
    of: ClassVar[str] = "chooses among the settings of an ExponentialChoice() plan"

    def run(self, target: Any, randomness: Generator, *, size: int = 1) -> Sample:
        """The places of ``size`` choices, one row each."""
        alone, choose = np.ones(len(target.costs), dtype=np.int64), flip_run if target.flip else select_run
        chosen = [choose(target.costs, alone, randomness, bits=target.bits)[0] for _ in range(size)]
        return Sample(np.array(chosen, dtype=np.float64).reshape(size, 1))
