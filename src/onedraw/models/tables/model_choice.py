"""Which of several declared settings does best: the sum of a bounded loss over held-out records, for each of them.

A record adds a loss in [0, 1] to every candidate's sum, on a public lattice, so sums are whole numbers; replacing it moves each of
them by at most 1. What the losses are (squared distance of a probability, squared error over the largest one) is decided by
`onedraw.choose`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onedraw.errors import InvalidModel
from onedraw.models.model import Bound, Model, register_model, set_fields
from onedraw.privacy import Provenance

LOSS_STEPS = 2**20
"""Lattice steps of a loss of 1."""

MOST_CANDIDATES = 1000


@dataclass(frozen=True, eq=False)
class Losses:
    """Held-out records as losses of every candidate; ``read`` is asked once, after the charge, for (n, candidates) numbers, or for
    the sum of every candidate's in whole steps, n known to be their number."""

    size: int
    read: Callable[[], NDArray[Any]]

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Losses(<{len(self)} private records>)"


@dataclass(frozen=True, eq=False)
class LossSums:
    """n and the exact sums. As private as the records: never printed or written."""

    n: int
    sums: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"LossSums(n={self.n}, sums=<private>)"


@register_model
@dataclass(frozen=True)
class ModelChoice(Model):
    """The candidate of ``names`` with the smallest loss, by its place 0, 1, …

    | a record's loss that is | counts as |
    | --- | --- |
    | below 0, above 1 | 0, 1 |
    | NaN, or of a prediction that failed | 1 |
    """

    quantity: ClassVar[str] = "choice among settings"

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.names)
        if not 2 <= len(names) <= MOST_CANDIDATES or len(set(names)) < len(names):
            raise InvalidModel(
                f"A choice is among 2 to {MOST_CANDIDATES:,} settings of different names; {len(set(names))} came."
            )
        set_fields(self, names=names)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return ("place of the chosen setting",)

    @property
    def prior_scale(self) -> float:
        """There is no prior: a place is a whole number."""
        return 2.0**20

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {"loss": Bound(1.0, Provenance.ENFORCED, "a record's loss is cut to [0, 1]")}

    def check(self, data: Any) -> None:
        if not isinstance(data, Losses):
            raise InvalidModel(
                f"ModelChoice is about the losses of held-out records, but a {type(data).__name__} came. Use onedraw.choose(models, X, "
                "y, epsilon=…)."
            )

    def count(self, data: Any) -> int:
        return len(data)

    def summarise(self, data: Any) -> LossSums:
        self.check(data)
        found = data.read()
        if found.ndim == 2:
            found = in_steps(found.reshape(data.size, len(self.names))).sum(axis=0)
        return LossSums(data.size, found)


def in_steps(losses: Any) -> NDArray[np.int64]:
    """Cut to [0, 1] and rounded to the lattice; what is no number counts as 1."""
    losses = np.asarray(losses, dtype=np.float64)
    steps = np.rint(np.clip(np.where(np.isnan(losses), 1.0, losses), 0.0, 1.0) * LOSS_STEPS)
    return np.asarray(steps, dtype=np.int64)
