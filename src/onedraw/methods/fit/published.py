"""What averaged steps publish: every number that leaves, by the part that it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.arrays import Array

PARTS = ("known", "level", "mean", "moments", "design", "tail", "early", "step", "count", "information", "covariance")


@dataclass(frozen=True, eq=False)
class StepsPublished:
    """The numbers as they leave; matrices as lower triangles, row by row."""

    level: Array | None
    """Of the response, where the mean of all columns would drown."""
    mean: Array | None
    moments: Array
    design: Array | None
    tail: Array | None
    early: Array
    step: Array
    count: Array | None
    information: Array | None
    covariance: Array | None
    known: Array | None = None
    """The number of records with all cells, where the others contribute nothing."""

    def to_dict(self) -> dict[str, list[float]]:
        found = {name: getattr(self, name) for name in PARTS}
        return {name: np.asarray(value).tolist() for name, value in found.items() if value is not None}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> StepsPublished:
        found: dict[str, Any] = {name: stored.get(name) for name in PARTS}
        found |= {name: np.asarray(one, dtype=np.float64) for name, one in found.items() if one is not None}
        return cls(**found)
