"""Noise for released whole numbers: the one file that meets OpenDP.

`measurement` is noise on a vector of whole numbers with OpenDP's own statement of what it promises beside it.

A discrete Gaussian of deviation σ on the integers, sampled exactly (Canonne, Kamath, Steinke, arXiv:2004.00010; OpenDP's
sampler works in exact arithmetic on operating-system entropy). With σ of at least 2²⁰ steps its law is so near to that of
a continuous Gaussian rounded to the nearest integer that GaussianDP is claimed of it, with a margin that is booked
(mechanisms/discrete_noise.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.errors import WrongCall

LEAST_STEPS = 2.0**20
"""The smallest deviation, in lattice steps, for which the discrete law is taken for the rounded continuous one."""


def discrete_gaussian(sums: NDArray[np.int64], deviation: float) -> NDArray[np.int64]:
    """Whole numbers with exact discrete Gaussian noise of this deviation, in steps."""
    if not LEAST_STEPS <= deviation < 2.0**60:
        raise WrongCall(
            f"Noise of {deviation:.3g} lattice steps is outside 2^20 … 2^60, where the discrete Gaussian stands for the "
            "continuous one. Use a finer or coarser lattice."
        )
    return np.asarray(_measurement(len(sums), deviation)([int(value) for value in sums]), dtype=np.int64)


@dataclass(frozen=True)
class Measured:
    """One of OpenDP's measurements on a vector of 64-bit whole numbers: discrete Laplace, or discrete Gaussian."""

    law: str
    built: Any

    def confirms(self, sensitivity: float, *, epsilon: float | None = None, rho: float | None = None) -> bool:
        """Whether OpenDP's map, for vectors this far apart (L1 or L2), gives at most this ε or ρ."""
        stated = epsilon if self.law == "laplace" else rho
        distance = int(sensitivity) if self.law == "laplace" else sensitivity
        return stated is not None and distance == sensitivity and float(self.built.map(distance)) <= stated

    def release(self, sums: Sequence[int]) -> list[int]:
        """The sums with fresh noise, from the operating system's entropy."""
        return [int(value) for value in self.built([int(value) for value in sums])]


@lru_cache(maxsize=64)
def measurement(law: str, size: int, scale: float) -> Measured:
    """Discrete "laplace" or "gaussian" noise of this scale on ``size`` whole numbers."""
    if law == "gaussian":
        return Measured(law, _measurement(size, scale))
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return Measured(
        law, make_laplace(vector_domain(atom_domain(T="i64"), size=size), l1_distance(T="i64"), scale=scale)
    )


@lru_cache(maxsize=64)
def _measurement(size: int, deviation: float) -> Any:
    """Built once per size and scale; OpenDP checks that the map holds."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_gaussian(vector_domain(atom_domain(T="i64"), size=size), l2_distance(T="f64"), scale=deviation)
