"""Columns with public bounds, and nothing else: the model of a release that describes them (means, deviations, correlations).

Rows are read like a regression's, without a response; see `features` for what a cell that is not a number becomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onedraw.models.features import Features, declared_features
from onedraw.models.model import Bound, count, register_model, set_fields
from onedraw.models.responses import Response
from onedraw.models.row_model import RowModel
from onedraw.privacy import Provenance

Array = NDArray[np.float64]

MOST_COLUMNS = 500
"""Beyond, d(d+1)/2 numbers of noise have little to say at any n that fits on a machine, and the release file is huge."""


@register_model
@dataclass(frozen=True, repr=False)
class Columns(RowModel):
    """d columns, each in its declared range ``bounds=(lo, hi)``, numbers or one for each column.

    What is released of them: d means, d standard deviations and d(d−1)/2 correlations.
    """

    features: Features
    prior: None

    quantity: ClassVar[str] = "moments"
    kind, title, form = "covariance", "Means and correlations", "folded"
    meaning = (
        "The mean and the standard deviation of each column, its values clamped to the declared range, in the column's own "
        "units; a level of a category counts as 0 or 1."
    )

    def __init__(self, features: Any, *, bounds: Any = None, feature_names: Any = None) -> None:
        count("features", features, least=1, most=MOST_COLUMNS)
        set_fields(
            self,
            features=declared_features(
                "Columns", features, data_norm=None, bounds=bounds, intercept=True, feature_names=feature_names, scaled=True
            ),
            prior=None,
        )  # fmt: skip

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
    def prior_scale(self) -> float:
        """Half of a range, in which all of them are measured."""
        return 1.0

    @property
    def response(self) -> Response | None:
        return None

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
        return {name: found[name] for name in ("features", "bounds", "feature_names")}
