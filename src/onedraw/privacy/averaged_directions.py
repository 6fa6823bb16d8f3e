"""What one decision along a random public direction promises: d times less than along the worst direction.

A chain at θ proposes θ + R·e, e uniform on the unit sphere of R^d and public, and decides by λ, which one record moves
by at most s_e = wcR(|e·x| + |e·x'|): a loss φ(θᵀx) of Lipschitz constant c, ‖x‖ ≤ r. Along the worst e that is s =
w·2cr·R. Averaged over e, for every order α > 1 (proof: averaged_directions.md),

    D_α ≤ log ₁F₁(½; d/2; α(α−1)κs²)/(α−1)  ≤  −½·log(1 − 2α(α−1)κs²/d)/(α−1),

κ = 1/8 for a decision whose log-ratios range over s_e (Barker's test, a selection), κ = 1/(2σ²) where λ itself is
published with Gaussian noise of deviation σ. To first order D_α = ακs²/d. A loss of K' rows of coefficients, of
Lipschitz constant c in all its K' predictors together, has ₁F₁(K'/2; dK'/2; ·). Arithmetic that may add ρ to s_e is
counted by (s_e + ρ)² ≤ (1 + t)s_e² + (1 + 1/t)ρ², which holds for every t > 0.

**Not for** directions that depend on the records (a gradient, a preconditioner, momenta updated by gradients), nor for
pure ε: there the worst direction counts, as `BoundedRangeCurve(s)` or GaussianDP(s/σ) say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated

import numpy as np

from onedraw.arrays import Array

from .curves import Curve
from .numbers import SLACK, fraction_up, not_negative, positive, positive_integer, text

LARGEST_ARGUMENT = 200.0
"""Of ₁F₁, whose series then takes 400 terms; beyond it, at orders that decide nothing, the worst direction counts."""


@dataclass(frozen=True)
class AveragedDirectionsCurve(Curve, tag="averaged-directions"):
    """One decision along a uniform public direction.

    | field | meaning |
    | --- | --- |
    | dimension | d, of one row of coefficients |
    | reach | s: how far one record moves λ along the worst direction |
    | rows | K': rows of coefficients, 1 but for several classes |
    | noise | σ of Gaussian noise on λ; None: a decision with log-ratios in an interval of length s_e |
    | rounding | ρ: what arithmetic may add to s_e |
    """

    dimension: Annotated[int, partial(positive_integer, "the dimension")]
    reach: Annotated[float, partial(positive, "the reach s")]
    rows: Annotated[int, partial(positive_integer, "rows")] = 1
    noise: Annotated[float | None, partial(positive, "the noise σ")] = None
    rounding: Annotated[float, partial(not_negative, "the rounding ρ")] = 0.0

    @property
    def limit(self) -> float:
        """The worst direction's ε; Gaussian noise has none."""
        return fraction_up(self._worst) if self.noise is None else math.inf

    @property
    def slope(self) -> float:
        """The worst direction's ρ: what large orders tend to."""
        return fraction_up(self._kappa * self._worst**2)

    def values(self, orders: Array) -> Array:
        worst, reach, rounding = up_all(self.slope * orders), Fraction(self.reach), Fraction(self.rounding)
        t = Fraction(
            math.sqrt(self.dimension) * (self.rounding / self.reach)
        )  # adds about least; every t above 0 is valid
        stretched, added = (1 + t) * reach**2, (1 + 1 / t) * rounding**2 if t else Fraction(0)
        argument = up_all(orders * (orders - 1.0) * fraction_up(self._kappa * stretched))
        within = argument <= LARGEST_ARGUMENT
        averaged = np.full(orders.shape, math.inf)
        a, b = self.rows / 2.0, self.dimension * self.rows / 2.0
        averaged[within] = log_confluent(a, b, argument[within]) / (orders[within] - 1.0)
        averaged += orders * fraction_up(self._kappa * added)
        return np.minimum(worst, up_all(averaged))

    @property
    def _kappa(self) -> Fraction:
        return Fraction(1, 8) if self.noise is None else 1 / (2 * Fraction(self.noise) ** 2)

    @property
    def _worst(self) -> Fraction:
        return Fraction(self.reach) + Fraction(self.rounding)

    def __str__(self) -> str:
        what = "a decision" if self.noise is None else f"λ with noise {text(self.noise)}"
        where = f"{self.dimension}" if self.rows == 1 else f"{self.rows} × {self.dimension}"
        return f"{what} along a uniform direction of {where} coordinates, reach {text(self.reach)}"


def log_confluent(a: float, b: float, arguments: Array) -> Array:
    """log ₁F₁(a; b; z) for 0 < a ≤ b and 0 ≤ z ≤ 200, rounded up: its series, whose terms are all positive.

    Once a term's ratio to the one before is below ½, all that follows is less than that term: it is added once more.
    """
    term = np.ones_like(arguments)
    total = np.zeros_like(arguments)  # without the leading 1, so that small arguments keep their digits
    order = 0
    largest = float(arguments.max(initial=0.0))
    while order < 4 or (a + order) / (b + order) * largest / (order + 1) >= 0.5 or np.any(term > 2.0**-60 * total):
        term = term * ((a + order) / (b + order) * arguments / (order + 1))
        total = total + term
        order += 1
    # every step rounds a term five times and the sum once
    return up_all(np.log1p((total + term) * (1.0 + 8.0 * (order + 2) * 2.0**-53)))


def up_all(values: Array) -> Array:
    """Moved up by the error of a few operations."""
    return np.asarray(np.nextafter(values * (1.0 + SLACK), math.inf))
