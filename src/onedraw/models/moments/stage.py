"""Which columns the moments are of, how far two rows can be apart, and where second moments are centred: all public.

Stage one of a fit and a release of its own (mathematics-3 §1): the mean over the box first, then second moments about it,
of rows shortened to a radius. `moment_sums` says what a record adds, `samplers.moments` carries it out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.models.sums.noise_law import deviation, matrix_deviation

from . import constants as constant
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
    def powers(self) -> int:
        """Numbers in the sums of all columns and the squares of those in [−1, 1]."""
        return self.count + self.numbers

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


# ── moments for their own sake ───────────────────────────────────────────────────────────────────────────────────

SQUARE = math.nextafter(((1.0 + math.sqrt(5.0)) / 2.0) ** 2.5 / 2.0, 0.0) * (1.0 - 2.0**-50)
"""b = φ^{5/2}/2: (x, b·x²) moves by at most 2 when x moves in [−1, 1], as far as x alone (mechanisms/moments.md)."""

STAGES = ("mean", "squares", "moments", "fourth")


@dataclass(frozen=True)
class MomentsProblem:
    """All that is public of a release of moments before the records are read; ``numbers`` are those of its plan."""

    n: int
    columns: MomentColumns
    numbers: Mapping[str, float]
    pure: bool

    def deviation(self, stage: str) -> float:
        """Standard deviation of one entry's noise, per record: of a diagonal entry, or of a mean."""
        noise, columns = self.numbers[f"{stage}_noise"], self.columns
        of_sum = deviation(noise, columns.powers, pure=self.pure)
        return (of_sum if stage == "sums" else matrix_deviation(noise, columns.count, pure=self.pure)) / self.n

    @property
    def gives_correlations(self) -> bool:
        """Whether usual columns would stand out of the noise: public, known before the records are read."""
        return constant.GIVEN * self.deviation("moments") <= constant.LARGEST_GIVEN

    def variances(self, mean: Array, squares: Array) -> tuple[Array, Array]:
        """(variance, standard deviation of its noise) of each column, unbiased for the records clamped to their bounds.

        Of a number Q/n − m², with the square of the mean's own noise given back; of a 0/1 column m − m², for v² = v.
        """
        noise, places = self.deviation("sums"), self.columns.layout.number_places
        second, slope, own = mean.copy(), 1.0 - 2.0 * mean, np.zeros(len(mean))
        second[places], slope[places], own[places] = squares, -2.0 * mean[places], noise / SQUARE
        return second - mean**2 + noise**2, np.sqrt(own**2 + (slope * noise) ** 2 + 2.0 * noise**4)

    def units(self, mean: Array, squares: Array) -> tuple[Array, Array]:
        """(centre, variance) by which columns are standardised: a variance that is mostly noise is raised to CLEAR of it."""
        variance, noise = self.variances(mean, squares)
        return self.columns.centre(mean), np.maximum(variance, constant.CLEAR * noise)


@dataclass(frozen=True, eq=False)
class MomentsTarget:
    """A problem with its records. As private as they are: never printed or written."""

    problem: MomentsProblem
    encoded: Any

    def __repr__(self) -> str:
        return f"MomentsTarget(n={self.encoded.n}, columns={self.problem.columns.count}, records=<private>)"

    @cached_property
    def _records(self) -> Any:
        from onedraw.models.sums.exact_sums import Scaled

        return self.encoded.records.read_as(Scaled())

    def sum(self, statistic: Any, *public: Any) -> NDArray[np.int64]:
        """Σ over the records, in whole numbers: the only way they are read."""
        return np.asarray(self._records.sum(statistic, *public))
