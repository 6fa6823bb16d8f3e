"""What a fit asks of the records after their moments (`moment_sums`), each a sum of whole numbers, cut in the same way.

| statistic | a record's share | its norm, in steps |
| --- | --- | --- |
| NewtonSums | a·φ'·z finely, a·φ''·zzᵀ coarsely | L·r, M·r² |
| Outer("information") | a·ψ·zzᵀ | ψ_max·r² |
| Outer("variability") | a²·φ'²·zzᵀ | L²·r² |

Matrices come as their lower triangles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .compute import jnp
from .fit_losses import FitLoss
from .fit_published import symmetric
from .measured import Layout, cut, mallows
from .moment_sums import gram

LIMB, LIMB_BELOW = 2.0**20, 2.0**50
"""Steps to one of the two limbs of a gradient: within a block both add up exactly in float64, and n of them in int64."""


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
        return jnp.concatenate([high.sum(axis=0), low.sum(axis=0), gram(curved, weight, coarse)])

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
        return gram(cut(z * size[:, None], jnp.sqrt(self.largest) * row_bound), weight, steps)


def responses(y: Any, frame: Any) -> Any:
    """Responses as the loss sees them; ``frame`` is (centre, unit, class), the class negative unless one is set against the
    rest."""
    return jnp.where(frame[2] < 0.0, (y - frame[0]) / frame[1], jnp.where(y == frame[2], 1.0, -1.0))
