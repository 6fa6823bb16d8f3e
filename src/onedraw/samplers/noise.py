"""Noise for released numbers: on whole numbers for sums, on real vectors for a mode. The one file that meets OpenDP.

`measurement` is noise on a vector of whole numbers with OpenDP's own statement of what it promises beside it. A discrete
Gaussian of deviation σ on the integers is sampled exactly (Canonne, Kamath, Steinke, arXiv:2004.00010; OpenDP's
sampler works in exact arithmetic on operating-system entropy). With σ of at least 2²⁰ steps its law is so near to that of
a continuous Gaussian rounded to the nearest integer that GaussianDP is claimed of it, with a margin that is booked
(methods/discrete_noise.md).

`Noise` is that of a fit or of moments: Gaussian, or of density ∝ e^{−‖v‖/scale}. Sums with fresh entropy get OpenDP's exact
discrete Gaussian; a seeded run, and a machine without OpenDP in a study, get a Gaussian rounded to the same lattice. The pure
laws of vectors and of matrices are those of `models.sums.exact_sums`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw.arrays import Array, Integers
from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.models.sums.exact_sums import drawn, drawn_matrices, triangle_scale
from onedraw.plans import Plan
from onedraw.samplers.padding import Padding, constant_work
from onedraw.samplers.randomness import BOTH, OPERATING_SYSTEM, is_secure
from onedraw.samplers.sampler import Sampler

NOISE_BITS = 16
"""Real noise on sums is published to this many bits of its scale: 2³⁰ times coarser than the floats it is drawn in."""

TABULATED = 2.0**12
"""A discrete Gaussian below this deviation is drawn from a table; above, a rounded one is the same to all digits."""

LEAST_STEPS = 2.0**20
"""The smallest deviation, in lattice steps, for which the discrete law is taken for the rounded continuous one."""


@dataclass(frozen=True)
class NoiseMeasurement:
    """One of OpenDP's measurements on a vector of 64-bit whole numbers: discrete Laplace, or discrete Gaussian."""

    law: str
    built: Any

    def confirms(self, sensitivity: float, *, epsilon: float | None = None, rho: float | None = None) -> bool:
        """Whether OpenDP's map, for vectors this far apart (L1 or L2), gives at most this ε or ρ."""
        stated = epsilon if self.law == "laplace" else rho
        distance = int(sensitivity) if self.law == "laplace" else sensitivity
        return stated is not None and distance == sensitivity and float(self.built.map(distance)) <= stated

    def check(
        self, promise: Any, sensitivity: float, *, epsilon: float | None = None, rho: float | None = None
    ) -> None:
        """Refuse what it does not confirm: ``promise`` is what was to be released with this noise."""
        if not self.confirms(sensitivity, epsilon=epsilon, rho=rho):
            raise ExactnessRefused(
                f"OpenDP's measurement does not confirm {promise} for this noise, so nothing is released. Please report it: "
                "one of the two libraries is wrong."
            )

    def release(self, sums: Sequence[int] | Integers) -> list[int]:
        """The sums with fresh noise, from the operating system's entropy."""
        return [int(value) for value in self.built([int(value) for value in sums])]


@lru_cache(maxsize=64)
def measurement(law: str, size: int, scale: float) -> NoiseMeasurement:
    """Discrete "laplace" or "gaussian" noise of this scale on ``size`` whole numbers; OpenDP checks that the map holds."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"), size=size)
    if law == "gaussian":
        return NoiseMeasurement(law, make_gaussian(domain, l2_distance(T="f64"), scale=scale))
    return NoiseMeasurement(law, make_laplace(domain, l1_distance(T="i64"), scale=scale))


def with_noise(law: str, sums: Sequence[int], scale: float, generator: Any) -> list[int]:
    """Whole sums with whole noise: OpenDP's, or that of a seeded generator."""
    if generator is None:
        return measurement(law, len(sums), scale).release(sums)
    noise = (laplace_steps if law == "laplace" else _gaussian)(scale, len(sums), generator)
    return [value + int(added) for value, added in zip(sums, noise, strict=True)]


def laplace_steps(scale: float, size: int, generator: Any) -> Integers:
    """⌊E⌋ is geometric for an exponential E, and the difference of two is discrete Laplace."""
    first, second = np.floor(scale * generator.standard_exponential((2, size)))
    return np.asarray(first - second, dtype=np.int64)


def _gaussian(scale: float, size: int, generator: Any) -> Integers:
    if scale >= TABULATED:
        return np.asarray(np.rint(scale * generator.standard_normal(size)), dtype=np.int64)
    reach = math.ceil(12.0 * scale) + 1
    places = np.arange(-reach, reach + 1)
    mass = np.exp(-0.5 * (places / scale) ** 2)
    return np.asarray(generator.choice(places, size=size, p=mass / mass.sum()), dtype=np.int64)


@dataclass(frozen=True)
class NoisySampler(Sampler):
    """Of plans whose sums get `Noise`."""

    randomness: ClassVar[str] = "numpy"

    def entropy(self, plan: Plan) -> str:
        """Pure laws are drawn from the generator, the discrete Gaussian is OpenDP's."""
        return OPERATING_SYSTEM if plan.mechanism.problem(plan).pure else BOTH


@dataclass(frozen=True)
class GaussianSampler(NoisySampler):
    """A sampler whose noise is Gaussian alone, and whose passes over the records are a public number."""

    def entropy(self, plan: Plan) -> str:
        """Return the source of all noise: discrete Gaussians alone, which OpenDP draws."""
        return OPERATING_SYSTEM

    def padding(self, plan: Plan) -> Padding:
        """Return the work, which is constant anyway."""
        return constant_work(self.passes(plan))


@dataclass(eq=False)
class Noise:
    """``generator`` is a NumPy generator; ``pure`` says which law."""

    generator: Generator
    _: KW_ONLY
    pure: bool

    def vector(self, sums: Integers, steps: float, noise: float, each: Array | None = None) -> Array:
        """Sums in whole steps, with noise of this size in their own unit; ``each`` multiplies that of single entries."""
        sizes = np.ones(len(sums)) if each is None else each
        if self.pure:
            return _added(sums, steps * self.real(len(sums), noise) * sizes, steps * noise) / steps
        return self._each(sums, noise * steps * sizes) / steps

    def triangle(self, sums: Integers, steps: float, noise: float) -> Array:
        """A symmetric matrix by its lower triangle: off the diagonal an entry counts twice, so its noise is √½ as large. Under a
        pure promise the noise is the law of matrices."""
        size = (math.isqrt(8 * len(sums) + 1) - 1) // 2
        if not self.pure:
            return self.vector(sums, steps, noise, triangle_scale(size))
        drawn = drawn_matrices(self.generator, noise, size, 1, pure=True)[0]
        return _added(sums, steps * drawn[np.tril_indices(size)], steps * noise) / steps

    def real(self, size: int, noise: float) -> Array:
        """A real vector of this law."""
        return drawn(self.generator, noise, (size,), pure=self.pure)

    def rounded(self, values: Array, noise: float) -> Array:
        """On multiples of a power of two a thousand times finer than the noise: what is published has no other digits."""
        spacing = 2.0 ** (math.floor(math.log2(noise)) - 10)
        return np.asarray(np.rint(values / spacing) * spacing + 0.0)

    def alone(self, deviations: Array) -> Integers:
        """Discrete Gaussian numbers, each of its deviation in steps, to be added to whole sums: exact to the last bit.

        From 2⁵³ on a float would round them, and a sum's own last bits would show through.
        """
        return self._each(np.zeros(len(deviations), dtype=np.int64), deviations)

    def _each(self, sums: Integers, deviations: Array) -> Integers:
        """With discrete Gaussian noise of its own deviation, in steps, on each, all of one at a time: OpenDP's exact one where the
        entropy is fresh."""
        noisy = np.empty(len(sums), dtype=np.int64)
        for deviation in np.unique(deviations).tolist():
            here = deviations == deviation
            if not is_secure(self.generator):
                noisy[here] = _added(sums[here], deviation * self.generator.standard_normal(here.sum()), 1.0)
            elif LEAST_STEPS <= deviation < 2.0**60:
                noisy[here] = measurement("gaussian", int(here.sum()), deviation).release(sums[here])
            else:
                raise WrongCall(
                    f"Noise of {deviation:.3g} lattice steps is outside 2^20 … 2^60, where the discrete Gaussian stands for the "
                    "continuous one. Use a finer or coarser lattice."
                )
        return noisy


def _added(sums: Integers, noise: Array, scale: float) -> Array:
    """Add real noise of this scale to whole sums, exactly: in whole numbers, which a float from 2⁵³ on would round.

    The result is rounded to `NOISE_BITS` bits of the scale, so that no digit of a sum shows where the noise has none.
    """
    unit = 1 << max(0, math.floor(math.log2(scale)) - NOISE_BITS)
    exact = (int(value) + int(added) for value, added in zip(sums, np.rint(noise).tolist(), strict=True))
    return np.array([float((value + unit // 2) // unit * unit) for value in exact])
