"""A record's cost under every candidate, in whole numbers: the statistic that `candidate_scores` asks of the records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.models.compute import jnp
from onedraw.models.sums.exact_sums import Compiled


@dataclass(frozen=True)
class InPrecision:
    """(X, y) in the loss's precision; what overflows there becomes infinite, and its cost is cut off like any other."""

    precision: str
    columns: tuple[str, ...] = ()

    def of_block(self, X: Any, y: Any, weight: Any) -> tuple[Any, Any]:
        with np.errstate(over="ignore"):
            return tuple(jnp.asarray(np.asarray(values).astype(self.precision)) for values in (X, y))  # type: ignore[return-value]

    def placed(self, weight: Any) -> Any:
        return jnp.asarray(weight)


@dataclass(frozen=True)
class Costs(Compiled):
    """Σ ⌊W·(ℓ − low)/Δ⌉, cut to [0, W], for each candidate; ``together`` of them at a time."""

    loss: Any
    together: int

    def bound(self, thetas: Any, width: Any) -> float:
        return float(width)

    def blocks_a_call(self, values: int) -> int:
        return 1  # a block under many candidates fills a call

    def of_block(self, X: Any, y: Any, weight: Any, thetas: Any, width: Any) -> Any:
        groups = range(0, len(thetas), self.together)
        costs = [super(Costs, self).of_block(X, y, weight, thetas[g : g + self.together], width) for g in groups]
        return np.concatenate(costs)

    def block(self, X: Any, y: Any, weight: Any, thetas: Any, width: Any) -> Any:
        low, high = self.loss.interval
        share = (self.loss.values(thetas, X, y) - low) / (high - low)
        share = jnp.where(share >= 0.0, jnp.minimum(share, 1.0), 0.0)  # NaN too counts as the lowest cost
        # W is at most 2^17, so its product with a share in [0, 1] is rounded to a whole number in [0, W].
        return (jnp.rint(share * width) * weight).sum(axis=1)
