"""The law of added noise, alone and with a normal sampling error beside it: what intervals of plain-noise releases rest on.

A sum of Laplace variates with different scales is a signed mixture of them (partial fractions of its characteristic
function), and a Laplace variate plus a normal one has a closed form, so every tail below is a closed form. Variates of equal
scale are moved a thousandth apart; of more than two Laplace variates the smaller ones count as normal ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.plans import Plan
from onedraw.privacy.numbers import crossing

APART = 1e-3
"""Relative distance of two Laplace scales below which the partial fractions would lose digits."""

NARROW = 1e-5
"""Laplace noise of less than this part of a normal error counts as normal: the closed form would lose its digits."""


@dataclass(frozen=True)
class NoiseLaw:
    """Noise on one published sum, the weights not yet divided out: on whole numbers, of a named law and a scale in steps."""

    law: str
    scale: float
    rounded: bool
    """Whether it is a Gaussian of a finer lattice, rounded to whole steps."""

    def at_most(self, steps: Any) -> Array:
        """P(Z ≤ step), exact, for whole or real steps."""
        whole = np.floor(np.asarray(steps, dtype=np.float64))
        if self.law == "laplace":
            q = math.exp(-1.0 / self.scale)
            tail = np.exp(-np.maximum(np.abs(whole), np.abs(whole + 1.0)) / self.scale) / (1.0 + q)
            below = np.exp(-np.abs(whole) / self.scale) / (1.0 + q)
            return np.where(whole >= 0, 1.0 - tail, below)
        if self.rounded:
            return np.asarray(special.ndtr((whole + 0.5) / self.scale))
        sums = _gaussian_sums(self.scale)
        reach = (len(sums) - 1) // 2
        return np.asarray(sums[np.clip(whole + reach, 0, 2 * reach).astype(int)] * (whole >= -reach))

    def reach(self, level: float) -> float:
        """The smallest whole q with P(|Z| ≤ q) ≥ level."""
        guess = self.quantile(level, [1.0], 0.0)
        q = max(0.0, math.floor(guess) - 2.0)
        step = max(1.0, 2.0 ** math.floor(math.log2(max(guess, 1.0)) - 40))
        while float(self.at_most(q) - self.at_most(-q - 1.0)) < level:
            q += step
        return q

    def beyond(self, x: Any, factors: Sequence[float], sampling: float) -> Any:
        """P(Σ factor·Z + N(0, sampling²) > x), Z independent variates of this law; one x or an array of them."""
        kept, normal = self._parts(factors, sampling)
        if not kept:
            return special.ndtr(-np.asarray(x) / normal) if normal else np.where(np.asarray(x) < 0, 1.0, 0.0)
        return _tail(x, kept, normal)

    def quantile(self, level: float, factors: Sequence[float], sampling: float) -> float:
        """q with P(|Σ factor·Z + N(0, sampling²)| ≤ q) = level, Z independent variates of this law."""
        kept, normal = self._parts(factors, sampling)
        tail = (1.0 - level) / 2.0
        if not kept:
            return -float(special.ndtri(tail)) * normal
        spread = math.hypot(normal, *(math.sqrt(2.0) * scale for scale in kept))
        high = spread * max(4.0, -2.0 * math.log(tail))
        return crossing(lambda x: float(_tail(x, kept, normal)) - tail, 0.0, high, precision=1e-12 * high)

    def _parts(self, factors: Sequence[float], sampling: float) -> tuple[list[float], float]:
        """The scales of the Laplace variates that are kept as such, and the deviation of all else, which counts as normal."""
        scales = sorted((self.scale * abs(factor) for factor in factors if factor), reverse=True)
        if self.law == "gaussian" or not scales:
            return [], math.hypot(sampling, *scales)
        if scales[0] < NARROW * sampling:
            return [], math.hypot(sampling, *(math.sqrt(2.0) * scale for scale in scales))
        normal = math.hypot(sampling, *(math.sqrt(2.0) * scale for scale in scales[2:]))
        return [scales[0], *(min(scale, scales[0] * (1.0 - APART)) for scale in scales[1:2])], normal

    def deviation(self, factors: Sequence[float]) -> float:
        """Of Σ factor·Z."""
        each = math.sqrt(2.0) * self.scale if self.law == "laplace" else self.scale
        return each * math.hypot(*factors)


def law_of(plan: Plan) -> NoiseLaw:
    """Of an `AddedNoise` plan."""
    scale, refinement = plan.parameters["scale"], plan.parameters["refinement"]
    return NoiseLaw(plan.mechanism.law, scale / refinement, refinement > 1 or scale > 2.0**12)


def _tail(x: Any, scales: Sequence[float], normal: float) -> Any:
    """P(Σ Laplace(scale) + N(0, normal²) > x)."""
    total = 0.0
    for scale in scales:
        if normal < 1e-9 * scale:
            half = 0.5 * np.exp(-np.abs(x) / scale)
            tail = np.where(np.asarray(x) >= 0, half, 1.0 - half)
        else:
            ratio, z = normal / scale, x / normal
            first = np.exp(ratio**2 / 2.0 - x / scale + special.log_ndtr(z - ratio))
            second = np.exp(ratio**2 / 2.0 + x / scale + special.log_ndtr(-z - ratio))
            tail = special.ndtr(-z) + 0.5 * (first - second)
        total = total + math.prod(scale**2 / (scale**2 - other**2) for other in scales if other != scale) * tail
    return total


@lru_cache(maxsize=16)
def _gaussian_sums(scale: float) -> Array:
    """Cumulated masses of the discrete Gaussian on −reach, …, reach."""
    reach = math.ceil(12.0 * scale) + 1
    mass = np.exp(-0.5 * (np.arange(-reach, reach + 1) / scale) ** 2)
    return np.asarray(np.cumsum(mass) / mass.sum())
