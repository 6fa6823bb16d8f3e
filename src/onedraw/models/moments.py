"""Which columns the moments are of, how far two rows can be apart, and where second moments are centred: all public.

Stage one of a fit and a release of its own (mathematics-3 §1): the mean over the box first, then second moments about it,
of rows shortened to a radius. `moment_sums` says what a record adds, `samplers.moments` carries it out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .measured import Layout

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MomentColumns:
    """The columns of a layout, and last a response in [−1, 1] where it is measured with them."""

    layout: Layout
    response: bool = False

    @property
    def count(self) -> int:
        return self.layout.columns + self.response

    @property
    def numbers(self) -> int:
        """Columns in [−1, 1]; in a ball none is one by itself."""
        return 0 if self.layout.ball is not None else self.layout.numbers + self.response

    @property
    def entries(self) -> int:
        """Numbers in the lower triangle of their second moments."""
        return self.count * (self.count + 1) // 2

    @property
    def spread(self) -> float:
        """S: the largest distance of two rows, the response included; the mean's sensitivity."""
        return math.sqrt(self.layout.squared_spread + 4.0 * self.response)

    def centre(self, published_mean: Array | None) -> Array:
        """The point that second moments are about: the published mean cut to where means can be, or the public middle."""
        middle = np.append(self.layout.middle, 0.0) if self.response else self.layout.middle
        if published_mean is None:
            return middle
        lower, upper = -np.ones(len(middle)), np.ones(len(middle))
        for start, stop in self.layout.categories:
            lower[start:stop] = 0.0
        return np.clip(published_mean, lower, upper)
