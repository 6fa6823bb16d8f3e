"""The noise of a fit: on whole numbers for sums, on real vectors for the mode; Gaussian, or of density ∝ e^{−‖v‖/scale}.

Sums with fresh entropy get OpenDP's exact discrete Gaussian; a seeded run, and a machine without OpenDP in a study, get a
Gaussian rounded to the same lattice. The pure laws of vectors and of matrices are those of `models.noise_law`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.models.sums.noise_law import drawn, drawn_matrices, triangle_scale

Array = NDArray[np.float64]


class Noise:
    """``generator`` is a NumPy generator; ``pure`` says which law."""

    def __init__(self, generator: Any, *, pure: bool) -> None:
        self.generator, self.pure = generator, pure
        self.secure = type(generator.bit_generator).__name__ == "SecureChaCha"

    def vector(self, sums: NDArray[np.int64], steps: float, noise: float, each: Array | None = None) -> Array:
        """Sums in whole steps, with noise of this size in their own unit; ``each`` multiplies that of single entries."""
        sizes = np.ones(len(sums)) if each is None else each
        if self.pure:
            return self._on_lattice(sums + steps * self.real(len(sums), noise) * sizes) / steps
        total = np.empty(len(sums))
        for size in np.unique(sizes):
            total[sizes == size] = self._whole(sums[sizes == size], noise * steps * float(size))
        return total / steps

    def triangle(self, sums: NDArray[np.int64], steps: float, noise: float) -> Array:
        """A symmetric matrix by its lower triangle: off the diagonal an entry counts twice, so its noise is √½ as large. Under a
        pure promise the noise is the law of matrices."""
        size = _size(len(sums))
        if not self.pure:
            return self.vector(sums, steps, noise, triangle_scale(size))
        drawn = drawn_matrices(self.generator, noise, size, 1, pure=True)[0]
        return self._on_lattice(sums + steps * drawn[np.tril_indices(size)]) / steps

    def real(self, size: int, noise: float) -> Array:
        """A real vector of this law."""
        return drawn(self.generator, noise, (size,), pure=self.pure)

    def rounded(self, values: Array, noise: float) -> Array:
        """On multiples of a power of two a thousand times finer than the noise: what is published has no other digits."""
        spacing = 2.0 ** (math.floor(math.log2(noise)) - 10)
        return np.asarray(np.rint(values / spacing) * spacing + 0.0)

    def _whole(self, sums: NDArray[np.int64], deviation: float) -> Array:
        if self.secure:
            from onedraw.samplers.opendp_noise import discrete_gaussian

            return discrete_gaussian(sums, deviation).astype(np.float64)
        return self._on_lattice(sums + deviation * self.generator.standard_normal(len(sums)))

    @staticmethod
    def _on_lattice(values: Array) -> Array:
        return np.asarray(np.rint(values) + 0.0)


def _size(entries: int) -> int:
    return (math.isqrt(8 * entries + 1) - 1) // 2
