"""How much the records' losses change from one θ to another, as a sum of whole numbers: what a private decision rests
on.

A record's weighted loss is C(θ) = ⌊2^b·w·ℓ(θ, z) + ½⌋, a whole number: the loss is rounded and not its change, so that
the sum of changes is a difference of one function of θ at two places. The change from θ to θ' is cut to

    ±(⌈2^b·w·c·‖(θ' − θ)x‖⌉ + 1),        c the Lipschitz constant of the loss in its linear predictor(s),

which real arithmetic never exceeds. Whatever happened on the way to ℓ, one record moves the sum by no more: *enforced*.
So is a change that is no number, which counts as none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.data.sums import check_room
from onedraw.errors import InvalidModel
from onedraw.models.compute import jnp

from .exact_sums import BLOCK_BITS, Compiled

BITS = 32
"""b: costs lie on the lattice 2^−32."""


@dataclass(frozen=True)
class LossChanges(Compiled):
    """Σ C(θ') − C(θ). ``loss`` is hashable and has ``losses(theta, X, y)``; ``rows`` of coefficients, several for
    classes."""

    loss: Any
    rows: int = 1

    def bound(self, theta: Any, proposal: Any, scale: Any, slope: Any, row_bound: Any) -> float:
        """By Cauchy and Schwarz: ``slope`` is 2^b·w·c, ``row_bound`` the largest norm of a row."""
        return float(slope) * float(np.linalg.norm(np.asarray(proposal) - np.asarray(theta))) * float(row_bound) + 2.0

    def check(self, n: int, length: float, slope: float, row_bound: float) -> None:
        """Refuse moves of this length where n changes, or those of a block, could leave their whole numbers."""
        asked = (np.zeros(1), np.array([length]), 0.0, slope, row_bound)
        check_room(n, self, *asked)
        if not self.bound(*asked) <= 2.0**BLOCK_BITS:
            raise InvalidModel(
                f"One record's loss may change by {self.bound(*asked) * 2.0**-BITS:.3g} in a step, and whole numbers "
                f"of 2^−{BITS} "
                f"hold at most {2.0 ** (BLOCK_BITS - BITS):g}. Use shorter steps, a smaller weight or more records."
            )

    def block(
        self, X: Any, y: Any, weight: Any, theta: Any, proposal: Any, scale: Any, slope: Any, row_bound: Any
    ) -> Any:
        moved = X @ (proposal - theta).reshape(self.rows, -1).T
        largest = jnp.ceil(slope * jnp.sqrt((moved * moved).sum(axis=1))) + 1.0
        change = self._costs(proposal, X, y, scale) - self._costs(theta, X, y, scale)
        change = jnp.where(jnp.isnan(change), 0.0, jnp.clip(change, -largest, largest))
        return (change * weight).sum(keepdims=True)

    def _costs(self, theta: Any, X: Any, y: Any, scale: Any) -> Any:
        return jnp.floor(scale * self.loss.losses(theta, X, y) + 0.5)
