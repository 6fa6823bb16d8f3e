"""Public directions that anyone can draw again, bit for bit: the proposals of private chains.

A seed of 256 bits, published with a release, gives blocks of random bits by SHAKE-128 (FIPS 202) of seed and block
number; those become unit vectors by operations that IEEE 754 rounds correctly (+, −, ×, ÷, √), one element at a time
and in a fixed order. No logarithm, no cosine of a library, no sum whose order a processor chooses: every machine finds
the same numbers.

**Uniform on the sphere, without a loop.** In 2m coordinates the squared lengths of m pairs are the m spacings of m − 1
sorted uniform numbers (a uniform point of the simplex), and each pair points at a uniform angle. One more coordinate is
cos φ·√(1 − M²), M the largest of 2m − 1 uniform numbers: its square is Beta(½, ½)·Beta(1, m − ½) = Beta(½, m). The
pairs share the rest.

**How far from uniform.** What is drawn lies within ``deviation(d)`` of a vector that is exactly uniform, always and not
only usually: uniform numbers are multiples of 2^−53, which moves a squared length by at most 2^−52 and a length by at
most 2^−26; angles, square roots and products lose less than 2^−47. A vector and its opposite are equally likely,
exactly.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from onedraw.arrays import Array

SEED_BYTES = 32
TOGETHER = 2**16
"""Random numbers made from one block number, about; its count of directions follows from the dimension alone."""

_COSINE = [1.0 / math.factorial(2 * k) * (-1) ** k for k in range(10)]
_SINE = [1.0 / math.factorial(2 * k + 1) * (-1) ** k for k in range(10)]
"""Taylor's series: up to π/4 what is left out is below 2^−66."""


def deviation(dimension: int) -> float:
    """How far a direction may lie from one that is uniform: √m·2^−25, at least twice what the lengths' roots can
    lose."""
    return math.sqrt((dimension + 1) // 2) * 2.0**-25


@dataclass
class PublicDirections:
    """Unit vectors and uniform numbers, one after another; the same from the same seed."""

    seed: bytes
    dimension: int
    _next: int = field(default=0, init=False)
    _held: Array = field(default_factory=lambda: np.zeros((0, 0)), init=False, repr=False)

    def direction(self) -> Array:
        """The next one, (d,)."""
        place = self._next % self.in_block
        if place == 0:
            self._held = directions(self.seed, self.dimension, self._next // self.in_block, self.in_block)
        self._next += 1
        return np.asarray(self._held[place])

    def directions(self, count: int) -> Array:
        """The next ``count``, (count, d)."""
        return np.stack([self.direction() for _ in range(count)])

    @property
    def in_block(self) -> int:
        return max(1, TOGETHER // numbers_each(self.dimension))


def directions(seed: bytes, dimension: int, block: int, count: int) -> Array:
    """(count, d): the unit vectors of one block."""
    words = random_words(seed, block, count * numbers_each(dimension)).reshape(count, -1)
    if dimension == 1:
        return np.where(words & np.uint64(1), -1.0, 1.0)
    pairs, single = divmod(dimension, 2)
    left, alone = np.ones((count, 1)), np.zeros((count, 0))
    if single:
        alone = _alone(words[:, : 2 * pairs])
        left, words = 1.0 - alone * alone, words[:, 2 * pairs :]
    zero = np.zeros((count, 1))  # points cut [0, 1] into as many pieces as there are pairs
    cuts = np.concatenate([zero, np.sort(uniform(words[:, pairs:]), axis=1), zero + 1.0], axis=1)
    lengths = np.sqrt(np.diff(cuts, axis=1) * left)
    across, along = cosine_and_sine(words[:, :pairs])
    return np.concatenate([across * lengths, along * lengths, alone], axis=1)


def numbers_each(dimension: int) -> int:
    """Random words that one direction takes: an angle for each pair, a cut between pairs, and 2m for a coordinate that
    has no pair."""
    pairs, single = divmod(dimension, 2)
    return max(1, 2 * pairs - 1 + 2 * pairs * single)


def random_words(seed: bytes, block: int, count: int) -> NDArray[np.uint64]:
    """64 random bits each."""
    stream = hashlib.shake_128(b"onedraw public directions" + seed + block.to_bytes(8, "little"))
    return np.frombuffer(stream.digest(8 * count), dtype="<u8").astype(np.uint64)


def uniform(words: NDArray[np.uint64]) -> Array:
    """In [0, 1), multiples of 2^−53."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def cosine_and_sine(words: NDArray[np.uint64]) -> tuple[Array, Array]:
    """Of a uniform angle: one within an eighth of the circle, and three bits that say which."""
    angle = uniform(words) * (math.pi / 4.0)
    square = angle * angle
    cosine, sine = _series(_COSINE, square), angle * _series(_SINE, square)
    swapped, left, down = ((words >> np.uint64(bit)) & np.uint64(1) == 1 for bit in range(3))
    across, along = np.where(swapped, sine, cosine), np.where(swapped, cosine, sine)
    return np.where(left, -across, across), np.where(down, -along, along)


def _alone(words: NDArray[np.uint64]) -> Array:
    """The coordinate that has no pair, (count, 1)."""
    largest = uniform(words[:, 1:]).max(axis=1, keepdims=True)
    return np.asarray(cosine_and_sine(words[:, :1])[0] * np.sqrt(1.0 - largest * largest))


def _series(coefficients: list[float], square: Array) -> Array:
    total = np.full_like(square, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * square + coefficient
    return total
