"""Priors: Gaussian, on all of R^d or restricted to a ball around the origin; and one whose variance is a parameter.

The prior is what makes a Gibbs posterior private: −log π is m_π-strongly convex, m_π the smallest eigenvalue of
the precision, and every rule of Minami, Arai, Sato (NIPS 2016) divides by it. A flat coordinate has m_π = 0 and
no promise. Restricting the law to a convex set keeps it m_π-strongly log-concave, so the ball costs nothing and
bounds the linear predictor (the unknown constant of their Theorem 10 is not needed).

The precision is *defined* as the float64 vector returned by `precision`: it is what the sampler uses, so its
smallest and largest entries are m_π and M_π exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidModel
from onedraw.privacy.stored import Stored

from .model import number, within

FLAT = "A flat coordinate has strong convexity m_π = 0: no promise follows for any weight, and the posterior may not exist."

_moderate = partial(within, low=1e-75, high=1e75, remedy="Choose other units.")
"""Squares and reciprocals of a scale in this range stay far from the limits of floating-point numbers."""


class Prior(Stored, key="prior", noun="prior", refuses=InvalidModel):
    """What is believed of the parameters before any record is read."""


@dataclass(frozen=True)
class Gaussian(Prior):
    """Independent normal coordinates: one ``scale`` (standard deviation) for all, or ``scales``, one each.

    ``mean`` is one number for every coordinate, or one each. With ``radius`` the law is restricted to
    ‖θ‖ ≤ radius, the intercept included, and its mean must lie inside.
    """

    scale: float | None = None
    scales: tuple[float, ...] | None = None
    mean: float | tuple[float, ...] = 0.0
    radius: float | None = None

    def __post_init__(self) -> None:
        if (self.scale is None) == (self.scales is None):
            raise InvalidModel(
                "A Gaussian prior needs a scale for all coordinates or scales, one for each: exactly one of the two. "
                f"{FLAT} Pass scale=1.0, say."
            )
        several = isinstance(self.mean, list | tuple | np.ndarray)
        self._set(
            scale=None if self.scale is None else _scale("scale", self.scale),
            scales=None if self.scales is None else _each("scales", self.scales, _scale),
            mean=_each("mean", self.mean, number) if several else number("mean", self.mean),
            radius=None if self.radius is None else _moderate("radius", self.radius),
        )

    @property
    def strong_convexity(self) -> float:
        """m_π, the smallest precision."""
        return float(self.precision(None).min())

    @property
    def smoothness(self) -> float:
        """M_π, the largest precision."""
        return float(self.precision(None).max())

    def precision(self, dimension: int | None) -> Array:
        """The diagonal of the precision matrix; None: as it was declared, whatever the dimension."""
        scales = self._of_each("scales", dimension)
        return 1.0 / (scales * scales)

    def location(self, dimension: int) -> Array:
        """The mean (of the unrestricted law)."""
        return self._of_each("mean", dimension)

    def deviation(self, dimension: int) -> float:
        """The smallest standard deviation of a coordinate; on a small ball that of the uniform law there."""
        least = float(self._of_each("scales", dimension).min())
        return least if self.radius is None else min(least, self.radius / math.sqrt(dimension + 2))

    def reach(self, dimension: int) -> float:
        """Bound the size of a coordinate: 16 standard deviations from the mean, or the ball."""
        farthest = float((np.abs(self.location(dimension)) + 16.0 * self._of_each("scales", dimension)).max())
        return farthest if self.radius is None else min(farthest, self.radius)

    def _of_each(self, name: str, dimension: int | None) -> Array:
        """One number for each parameter."""
        given: Any = self.mean if name == "mean" else self.scale if self.scales is None else self.scales
        if not isinstance(given, tuple):
            return np.full(dimension or 1, given)
        if dimension not in (None, len(given)):
            raise InvalidModel(
                f"The model has {dimension} parameters (the intercept, if there is one, is the last), but the prior's {name} has "
                f"{len(given)} entries. Give one for each, or one number for all."
            )
        return np.array(given)

    def check(self, dimension: int) -> None:
        """Refuse a prior that does not fit a parameter of this dimension, or whose ball leaves its mean out."""
        self._of_each("scales", dimension)
        location = self._of_each("mean", dimension)
        if self.radius is None:
            return
        squared = sum(Fraction(value) ** 2 for value in location.tolist())
        if squared > Fraction(self.radius) ** 2:
            raise InvalidModel(
                f"The ball of radius {self.radius!r} around the origin does not contain the prior's mean, whose norm is "
                f"{math.sqrt(float(squared)):.6g}. The posterior would sit on the ball's edge whatever the records say. "
                "Enlarge the radius or move the mean inside."
            )


@dataclass(frozen=True)
class NormalInverseGamma(Prior):
    """θ | σ² ~ N(0, scale²·σ²·I), or N(0, scale²·I) if not ``conjugate``; σ² ~ InvGamma(shape, rate) on σ² ≥ floor.

    Jewson et al. (arXiv:2307.05194), appendix: θ | σ² ~ N(0, 9σ²I), σ² ~ InvGamma(1, 1) truncated to σ² ≥ 0.01 for linear
    regression; N(0, 1) weights independent of σ² for networks. The floor is the model's, not the prior's: it is what the
    density's bound rests on.
    """

    scale: float = 3.0
    shape: float = 1.0
    rate: float = 1.0
    conjugate: bool = True

    def __post_init__(self) -> None:
        for name in ("scale", "shape", "rate"):
            self._set(**{name: within(name, getattr(self, name), 1e-6, 1e6, "Rescale the response.")})
        if not isinstance(self.conjugate, bool):
            raise InvalidModel(f"conjugate must be True or False, got a {type(self.conjugate).__name__}.")


def _scale(name: str, value: Any) -> float:
    if isinstance(value, float | int) and not isinstance(value, bool) and not (0.0 < value < math.inf):
        raise InvalidModel(
            f"{name} must be a standard deviation above 0 and below infinity, got {value!r}: the prior is improper. {FLAT} Choose "
            "how large a coefficient may plausibly be, for example 1.0."
        )
    return _moderate(name, value)


def _each(name: str, values: Any, check: Callable[[str, Any], float]) -> tuple[float, ...]:
    if not isinstance(values, list | tuple | np.ndarray) or len(values) == 0:
        raise InvalidModel(f"{name} must be a list of numbers, one for each parameter, got a {type(values).__name__}.")
    return tuple(check(name, value) for value in values)
