"""Columns with public bounds, and nothing else: the model of a release that describes them (means, deviations, correlations).

Rows are read like a regression's, without a response; see `features` for what a cell that is not a number becomes. `MomentsProblem`
is what is public of such a release, and how columns are standardised by what was published first.

**The constants** and the public reasons for them: nothing here was computed from records. They were chosen in trials on eleven
simulated designs (even, narrow, skewed, off-centre, heavy-tailed, rare, nearly equal columns), n from 500 to 20,000, ε from 0.5 to
5: benchmarks/results/moments_coverage.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from onedraw.arrays import Array
from onedraw.models.features import Features, declared_features
from onedraw.models.model import Bound, count
from onedraw.models.row_model import RowModel
from onedraw.models.sums.exact_sums import SummedTarget, deviation, matrix_deviation
from onedraw.privacy import Provenance

from .measured import MomentColumns

SHARES = {False: (0.45, 0.40, 0.15), True: (0.40, 0.40, 0.20)}
"""Of μ² (of ε for a pure promise): means with squares, standardised products, fourth moments. The last are only for the
errors of the others, and matter where those are small; pure noise falls with the share itself, not with its root."""

ALONE = {False: (0.80, 0.0, 0.20), True: (0.75, 0.0, 0.25)}
"""… of one column, which has nothing to go together with."""

CLEAR = 3.0
"""A variance below so many deviations of its noise is raised to that before columns are standardised: otherwise noise alone
would stretch a column until its rows are cut."""

REACH = 4.0
"""The least R² for each column in its standard deviations: what skewed and heavy-tailed columns lose is measured (`lost`)."""

QUIET = 0.7
"""R² grows until the noise of a standardised second moment is so many times the sampling error 1/√n of a correlation, whose own
noise is then half of it: an interval an eighth wider buys rows that are hardly cut. It grows further where intervals of normal columns
would be narrower (`narrowest` in methods/moments/mechanism.py)."""

FOURTH_REACH = 9.0
"""U² for each column: squares of normal columns have Σ z⁴ = 3 on average."""

FOURTH_NOISE = 0.5
"""U² grows until the noise of a fourth moment is this, beside 3 for a normal column."""

GIVEN = 6.0
"""A correlation is given if the standardised second moment of both columns is at least so many deviations of its noise."""

LARGEST_GIVEN = 0.8
"""… and none if that many deviations are more than this share of a standardised column's usual second moment, 1: then only
luck would carry one beyond, and what luck has carried is biased."""

MOST_COLUMNS = 500
"""Beyond, d(d+1)/2 numbers of noise have little to say at any n that fits on a machine, and the release file is huge."""


@dataclass(frozen=True, repr=False)
class Columns(RowModel):
    """d columns, each in its declared range ``bounds=(lo, hi)``, numbers or one for each column.

    What is released of them: d means, d standard deviations and d(d−1)/2 correlations.
    """

    features: Features
    prior: None

    quantity: ClassVar[str] = "moments"
    kind, title, form = "covariance", "Means and correlations", "folded"
    response = None
    prior_scale = 1.0  # half of a range, in which all of them are measured
    meaning = (
        "The mean and the standard deviation of each column, its values clamped to the declared range, in the column's own "
        "units; a level of a category counts as 0 or 1."
    )

    def __init__(self, features: Any, *, bounds: Any = None, feature_names: Any = None, missing: Any = None) -> None:
        count("features", features, least=1, most=MOST_COLUMNS)
        self._set(features=declared_features(
                "Columns", features, data_norm=None, bounds=bounds, intercept=True, feature_names=feature_names, scaled=True, missing=missing,
            ),
            prior=None,
        )  # fmt: skip

    @classmethod
    def example(cls) -> Self:
        return cls(2, bounds=(-1.0, 1.0))

    @property
    def names(self) -> tuple[str, ...]:
        return self.features.column_names[: self.features.count]

    @property
    def parameter_names(self) -> tuple[str, ...]:
        names = self.names
        return (
            *(f"mean of {name}" for name in names),
            *(f"deviation of {name}" for name in names),
            *(f"correlation of {name} and {other}" for k, name in enumerate(names) for other in names[:k]),
        )

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {"range": Bound(1.0, Provenance.ENFORCED, f"rows are {self.features.enforced_by}")}

    def range_units(self) -> tuple[Array, Array]:
        """(scale, shift) of the columns: half of each range, and its middle."""
        lower, upper = (np.array(end) for end in self.features.ends)
        half = (upper - lower) / 2.0
        return half, lower + half

    def column_units(self, centre: float = 0.0, scale: float = 1.0) -> tuple[Array, Array, Array]:
        """Means and deviations in the columns' own units, correlations as they are."""
        half, middle = self.range_units()
        pairs = len(half) * (len(half) - 1) // 2
        scales = np.concatenate([half, half, np.ones(pairs)])
        return np.eye(len(scales)), scales, np.concatenate([middle, np.zeros(len(half) + pairs)])

    def in_column_units(self, draws: Any) -> Array:
        _, scale, shift = self.column_units()
        return scale * np.asarray(draws, dtype=np.float64) + shift

    def _values(self) -> dict[str, Any]:
        found = self.features.to_dict()
        return {name: found[name] for name in ("features", "bounds", "feature_names", "missing") if name in found}


SQUARE = math.nextafter(((1.0 + math.sqrt(5.0)) / 2.0) ** 2.5 / 2.0, 0.0) * (1.0 - 2.0**-50)
"""b = φ^{5/2}/2: (x, b·x²) moves by at most 2 when x moves in [−1, 1], as far as x alone (methods/moments/proof.md)."""

STAGES = ("mean", "squares", "moments", "fourth")


@dataclass(frozen=True)
class MomentsProblem:
    """All that is public of a release of moments before the records are read; ``numbers`` are those of its plan."""

    n: int
    columns: MomentColumns
    numbers: Mapping[str, float]
    pure: bool
    rows: int | None = None
    """The public number of records, where ``n`` is the noisy number of those with all cells: the others contribute nothing."""

    response_scale: ClassVar[float] = 1.0
    """There is no response."""

    def deviation(self, stage: str) -> float:
        """Standard deviation of one entry's noise, per record: of a diagonal entry, or of a mean."""
        noise, columns = self.numbers[f"{stage}_noise"], self.columns
        of_sum = deviation(noise, columns.powers, pure=self.pure)
        return (of_sum if stage == "sums" else matrix_deviation(noise, columns.count, pure=self.pure)) / self.n

    @property
    def all_rows(self) -> int:
        """The public number of records, by which the lattice of sums is chosen."""
        return self.n if self.rows is None else self.rows

    @property
    def known_error(self) -> float:
        """The standard deviation of the noise in n, as a share of n; 0 where it is public."""
        if self.rows is None:
            return 0.0
        return deviation(self.numbers["known_noise"], 1, pure=self.pure) / self.n

    @property
    def gives_correlations(self) -> bool:
        """Whether usual columns would stand out of the noise: public, known before the records are read."""
        return GIVEN * self.deviation("moments") <= LARGEST_GIVEN

    def variances(self, mean: Array, squares: Array) -> tuple[Array, Array]:
        """(variance, standard deviation of its noise) of each column, unbiased for the records clamped to their bounds.

        Of a number Q/n − m², with the square of the mean's own noise given back; of a 0/1 column m − m², for v² = v.
        """
        noise, places = self.deviation("sums"), self.columns.layout.number_places
        second, slope, own = mean.copy(), 1.0 - 2.0 * mean, np.zeros(len(mean))
        second[places], slope[places], own[places] = squares, -2.0 * mean[places], noise / SQUARE
        of_number = (second - 2.0 * mean**2) * self.known_error
        return second - mean**2 + noise**2, np.sqrt(own**2 + (slope * noise) ** 2 + 2.0 * noise**4 + of_number**2)

    def units(self, mean: Array, squares: Array) -> tuple[Array, Array]:
        """(centre, variance) by which columns are standardised: a variance that is mostly noise is raised to CLEAR of it."""
        variance, noise = self.variances(mean, squares)
        return self.columns.centre(mean), np.maximum(variance, CLEAR * noise)


@dataclass(frozen=True, eq=False, repr=False)
class MomentsTarget(SummedTarget):
    """A release of moments with its records."""

    problem: MomentsProblem
