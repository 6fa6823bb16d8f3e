"""XᵀX and Xᵀy of a linear regression in whole numbers, and the least eigenvalue: what AdaSSP and AdaOPS ask of the
records.

Rows have norm at most B, the intercept's 1 counted in, responses |y| ≤ Y, both by public declarations. They are cut
towards zero onto lattices of powers of two, which lengthens neither, and their products are added up exactly. One
replaced record moves

| sum | by at most | because |
| --- | --- | --- |
| least eigenvalue λ₁ of XᵀX | B² | Weyl: x'x'ᵀ − xxᵀ has norm at most max(‖x‖², ‖x'‖²) |
| XᵀX | √2·B² (Frobenius) | ‖x‖⁴ + ‖x'‖⁴ − 2⟨x, x'⟩² |
| Xᵀy | 2BY | opposite rows, or opposite responses |
| both, in units of their noise | √J, `both_moved` | the two cannot be at their worst together: ada_ssp.md |

λ₁ is found in double precision from exact sums: how far that may be off is counted (`eigenvalue_reach`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.errors import UnsupportedBudget
from onedraw.methods.stages import Stage
from onedraw.models import LeastSquares
from onedraw.models.sums.exact_sums import gram_steps, share_bits, symmetric
from onedraw.models.sums.gradient_sums import SquareRows, SquareSums
from onedraw.plans import Request
from onedraw.privacy.numbers import up

from .regularised_fit import power_below

EIGENVALUE_ERROR = 2.0**-46
"""Of LAPACK's symmetric eigenvalues of p×p matrices, times p times the norm; what is stated of them is far less."""


@dataclass(frozen=True)
class RegressionSums:
    """All that is public of the sums of a request."""

    n: int
    width: int
    """p: coefficients, the intercept's included."""
    reach: float
    """B."""
    bound: float
    """Y."""

    @classmethod
    def of(cls, request: Request, what: str) -> RegressionSums:
        model = request.model
        if not isinstance(model, LeastSquares):
            raise UnsupportedBudget(
                f"{what} is about the sums of a linear regression, and {type(model).__name__} has others. Use "
                "models.LeastSquares(features, bounds=…, response_bound=…, prior=Gaussian(scale=…, radius=…))."
            )
        if request.draws != 1:
            raise UnsupportedBudget(f"{what} publishes one estimate; more would share its budget. Leave out draws.")
        return cls(request.n, model.dimension, model.features.reach, model.response_bound)

    @property
    def entries(self) -> int:
        """Numbers in the lower triangle of XᵀX."""
        return self.width * (self.width + 1) // 2

    @property
    def row_unit(self) -> float:
        return _unit(self.reach, self.n)

    @property
    def response_unit(self) -> float:
        return _unit(self.bound, self.n)

    def whole(self, summary: Any) -> tuple[Integers, Integers]:
        """(XᵀX as a lower triangle, Xᵀy), exact: in steps of row_unit², and of row_unit·response_unit."""
        units = (self.row_unit,) * self.width + (self.response_unit,)
        total = np.asarray(summary.records.read_as(SquareRows(units)).sum(SquareSums(share_bits(self.n))))
        return total[: self.entries], total[self.entries : self.entries + self.width]

    def matrices(self, squares: Any, products: Any) -> tuple[Array, Array]:
        """XᵀX and Xᵀy in their own unit, from sums in steps."""
        square = symmetric(np.asarray(squares, dtype=np.float64), self.width) * self.row_unit**2
        return square, np.asarray(products, dtype=np.float64) * (self.row_unit * self.response_unit)

    def whole_eigenvalue(self, square: Array) -> int:
        """The least eigenvalue of XᵀX, in steps of row_unit²."""
        least = float(np.linalg.eigvalsh(square)[0])
        return round(min(max(least, 0.0), self.n * self.reach**2) / self.row_unit**2)

    @property
    def eigenvalue_error(self) -> float:
        """How far it may be off, its rounding to the lattice included."""
        return up(EIGENVALUE_ERROR * self.width * self.n * self.reach**2 + 0.5 * self.row_unit**2)

    def eigenvalue_reach(self, records: int) -> float:
        """How far a person's records move what is computed of it."""
        return up(records * self.reach**2 + 2.0 * self.eigenvalue_error)

    def stages(self, eigenvalue: float, squares: float = 0.0, products: float = 0.0) -> list[Stage]:
        """For the lattice: noises on 1, p(p+1)/2 and p numbers; the last two are counted together."""
        both = self.entries + self.width
        found = [
            Stage(self.reach**2, eigenvalue, 1, self.reach**2),
            Stage(self.reach**2, squares, both, self.reach**2),
            Stage(self.reach * self.bound, products, both, self.reach * self.bound),
        ]
        return [stage for stage in found if stage.noise]


def _unit(bound: float, n: int) -> float:
    """The step of a lattice for numbers up to this bound, whose products n records add up exactly: a power of two."""
    most = 2.0 * power_below(bound)
    return most / gram_steps((bound / most) ** 2, n)


def both_moved(squares: float, products: float) -> float:
    """√J: how far one replaced record moves (XᵀX, Xᵀy), each in units of its noise, which are given beside B² and BY.

    J = max over t in [0, 1] of 2α(1 − t²) + 2β(1 + t), α = (B²/s)², β = (BY/v)², −t the cosine of the two rows.
    """
    alpha, beta = squares**-2.0, products**-2.0
    t = min(1.0, beta / (2.0 * alpha))
    return up(math.sqrt(2.0 * alpha * (1.0 - t * t) + 2.0 * beta * (1.0 + t)))
