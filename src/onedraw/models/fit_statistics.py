"""What a fit asks of the records, each a sum of whole numbers (`exact_sums`): the only way it reads them.

| statistic | a record's share | its norm, in steps |
| --- | --- | --- |
| ColumnSums | v, and the response | the box |
| SecondMoments | x̄x̄ᵀ, x̄ the row about m, shortened to R | R² (Frobenius) |
| NewtonSums | a·φ'·z finely, a·φ''·zzᵀ coarsely | L·r, M·r² |
| Outer("information") | a·ψ·zzᵀ | ψ_max·r² |
| Outer("variability") | a²·φ'²·zzᵀ | L²·r² |

Vectors are cut towards zero onto their lattice, which never lengthens them, *before* the product: a share is exactly
kkᵀ for a whole-number vector k of bounded norm, so the bound on its Frobenius norm is exact, and two such shares differ
by at most √2 times it. Matrices come as their lower triangles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .compute import jnp
from .exact_sums import BLOCK
from .fit_losses import FitLoss
from .fit_published import symmetric
from .measured import Layout, cut, mallows

LIMB, LIMB_BELOW = 2.0**20, 2.0**50
"""Steps to one of the two limbs of a gradient: within a block both add up exactly in float64, and n of them in int64."""

EXACT_BITS = 53
"""Whole numbers up to 2⁵³ are exact in float64."""


def gram_bits(squared_norm: float, records: int = BLOCK) -> int:
    """How fine a lattice may be for the products of vectors of this norm to add up exactly within a block."""
    room = EXACT_BITS - 1 - np.ceil(np.log2(max(records, 2))) - np.ceil(np.log2(max(squared_norm, 2.0**-40)))
    return int(room // 2)


def _gram(rows: Any, weight: Any, steps: Any) -> Any:
    """The lower triangle of Σ kkᵀ, k the rows cut towards zero onto multiples of 1/steps."""
    whole = jnp.trunc(rows * steps) * weight[:, None]
    down, across = np.tril_indices(rows.shape[1])
    return (whole.T @ whole)[down, across]


@dataclass(frozen=True)
class ColumnSums:
    """Σ v, and with ``response`` Σ y of responses in [−1, 1]; in steps of 1/steps."""

    layout: Layout
    response: bool

    def bound(self, steps: Any) -> float:
        return float(steps)

    def block(self, X: Any, y: Any, weight: Any, steps: Any) -> Any:
        rows = with_response(self.layout.rows(X), y, self.response)
        return (jnp.trunc(rows * steps) * weight[:, None]).sum(axis=0)


@dataclass(frozen=True)
class SecondMoments:
    """Σ x̄x̄ᵀ about a mean, rows shortened to ``radius``."""

    layout: Layout
    response: bool

    def bound(self, steps: Any, mean: Any, radius: Any) -> float:
        return float((radius * steps) ** 2)

    def block(self, X: Any, y: Any, weight: Any, steps: Any, mean: Any, radius: Any) -> Any:
        rows = with_response(self.layout.rows(X), y, self.response) - mean
        return _gram(cut(rows, radius), weight, steps)


@dataclass(frozen=True)
class NewtonSums:
    """Σ a·φ'·z in two limbs, steps of 2⁻²⁰ and of 2⁻⁵⁰ for what those leave, then Σ a·φ''·zzᵀ in steps of 1/coarse²."""

    layout: Layout
    loss: FitLoss

    def bound(self, coarse: Any, mean: Any, root: Any, stretch: Any, row_bound: Any, frame: Any, theta: Any) -> float:
        slopes = max(LIMB * self.loss.slope_bound * row_bound, 2.0 * LIMB_BELOW / LIMB)
        return float(max(slopes, coarse**2 * self.loss.curvature_bound * row_bound**2))

    def block(
        self, X: Any, y: Any, weight: Any, coarse: Any, mean: Any, root: Any, stretch: Any, row_bound: Any, frame: Any, theta: Any,
    ) -> Any:  # fmt: skip
        z = self.layout.measured(X, mean, root, stretch)
        a, u, response = mallows(z, row_bound), z @ theta, responses(y, frame)
        slopes = z * (a * self.loss.slope(u, response) * weight)[:, None]
        high = jnp.rint(slopes * LIMB)
        low = jnp.rint((slopes - high / LIMB) * LIMB_BELOW)
        curved = z * jnp.sqrt(a * self.loss.curvature(u, response))[:, None]
        return jnp.concatenate([high.sum(axis=0), low.sum(axis=0), _gram(curved, weight, coarse)])

    def split(self, total: Any, coarse: float) -> tuple[Any, Any]:
        """Gradient and Hessian of the sum, as floating-point numbers rounded once."""
        p = self.layout.width
        gradient = total[:p] / LIMB + total[p : 2 * p] / LIMB_BELOW
        return gradient, symmetric(total[2 * p :] / coarse**2, p)


@dataclass(frozen=True)
class Outer:
    """Σ a·ψ·zzᵀ ("information": the expected curvature; "curvature": the curvature itself) or Σ a²·φ'²·zzᵀ."""

    layout: Layout
    loss: FitLoss
    of: Literal["information", "curvature", "variability"]

    @property
    def largest(self) -> float:
        """The largest norm of a row's vector for r = 1, squared."""
        return {
            "information": self.loss.information_bound,
            "curvature": self.loss.curvature_bound,
            "variability": self.loss.slope_bound**2,
        }[self.of]

    def bound(self, steps: Any, mean: Any, root: Any, stretch: Any, row_bound: Any, frame: Any, theta: Any) -> float:
        return float(steps**2 * self.largest * row_bound**2)

    def block(
        self, X: Any, y: Any, weight: Any, steps: Any, mean: Any, root: Any, stretch: Any, row_bound: Any, frame: Any, theta: Any,
    ) -> Any:  # fmt: skip
        z = self.layout.measured(X, mean, root, stretch)
        a, u, response = mallows(z, row_bound), z @ theta, responses(y, frame)
        if self.of == "variability":
            size = a * self.loss.slope(u, response)
        else:
            of_record = self.loss.information if self.of == "information" else self.loss.curvature
            size = jnp.sqrt(a * of_record(u, response))
        # rounding in a, ψ and z may exceed the bound by its last digits; the cut is what enforces it
        return _gram(cut(z * size[:, None], jnp.sqrt(self.largest) * row_bound), weight, steps)


def responses(y: Any, frame: Any) -> Any:
    """Responses as the loss sees them; ``frame`` is (centre, unit, class), the class negative unless one is set against the
    rest."""
    return jnp.where(frame[2] < 0.0, (y - frame[0]) / frame[1], jnp.where(y == frame[2], 1.0, -1.0))


def with_response(rows: Any, y: Any, response: bool) -> Any:
    return jnp.concatenate([rows, jnp.clip(y, -1.0, 1.0)[:, None]], axis=1) if response else rows
