"""Gaussian priors, on all of R^d or restricted to a ball around the origin.

The prior is what makes a Gibbs posterior private: −log π is m_π-strongly convex, m_π the smallest eigenvalue of
the precision, and every rule of Minami, Arai, Sato (NIPS 2016) divides by it. A flat coordinate has m_π = 0 and
no promise. Restricting the law to a convex set keeps it m_π-strongly log-concave, so the ball costs nothing and
bounds the linear predictor (the unknown constant of their Theorem 10 is not needed).

The precision is *defined* as the float64 vector returned by `precision`: it is what the sampler uses, so its
smallest and largest entries are m_π and M_π exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.errors import InvalidModel
from onedraw.privacy.stored import Stored

from .model import number, positive_number

FLAT = "A flat coordinate has strong convexity m_π = 0: no promise follows for any weight, and the posterior may not exist."

LEAST_SCALE, LARGEST_SCALE = 1e-75, 1e75
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
        scale = None if self.scale is None else _positive_scale("scale", self.scale)
        scales = (
            None
            if self.scales is None
            else tuple(_positive_scale("scales", s) for s in _sequence("scales", self.scales))
        )
        several = isinstance(self.mean, list | tuple | np.ndarray)
        mean = tuple(number("mean", m) for m in _sequence("mean", self.mean)) if several else number("mean", self.mean)
        radius = None if self.radius is None else positive_number("radius", self.radius)
        if radius is not None and not LEAST_SCALE < radius < LARGEST_SCALE:
            raise InvalidModel(f"radius must lie between {LEAST_SCALE:g} and {LARGEST_SCALE:g}, but {radius!r} came.")
        self._set(scale=scale, scales=scales, mean=mean, radius=radius)

    @property
    def strong_convexity(self) -> float:
        """m_π, the smallest precision."""
        return min(_precision(scale) for scale in self.scales or (self._scale,))

    @property
    def smoothness(self) -> float:
        """M_π, the largest precision."""
        return max(_precision(scale) for scale in self.scales or (self._scale,))

    def precision(self, dimension: int) -> NDArray[np.float64]:
        """The diagonal of the precision matrix."""
        return np.array([_precision(scale) for scale in _each("scales", self._scale, dimension)])

    def location(self, dimension: int) -> NDArray[np.float64]:
        """The mean (of the unrestricted law)."""
        return np.array(_each("mean", self.mean, dimension))

    def deviation(self, dimension: int) -> float:
        """The smallest standard deviation of a coordinate; on a small ball that of the uniform law there."""
        least = min(_each("scales", self._scale, dimension))
        return least if self.radius is None else min(least, self.radius / math.sqrt(dimension + 2))

    @property
    def _scale(self) -> Any:
        return self.scale if self.scales is None else self.scales

    def check(self, dimension: int) -> None:
        """Refuse a prior that does not fit a parameter of this dimension, or whose ball leaves its mean out."""
        self.precision(dimension)
        location = self.location(dimension)
        if self.radius is None:
            return
        squared = sum(Fraction(value) ** 2 for value in location.tolist())
        if squared > Fraction(self.radius) ** 2:
            raise InvalidModel(
                f"The ball of radius {self.radius!r} around the origin does not contain the prior's mean, whose norm is "
                f"{math.sqrt(float(squared)):.6g}. The posterior would sit on the ball's edge whatever the records say. "
                "Enlarge the radius or move the mean inside."
            )


def _precision(scale: float) -> float:
    return 1.0 / (scale * scale)


def _each(name: str, given: float | tuple[float, ...], dimension: int) -> tuple[float, ...]:
    """One number for each parameter."""
    if not isinstance(given, tuple):
        return (given,) * dimension
    if len(given) != dimension:
        raise InvalidModel(
            f"The model has {dimension} parameters (the intercept, if there is one, is the last), but the prior's "
            f"{name} has {len(given)} entries. Give one for each, or one number for all."
        )
    return given


def _positive_scale(name: str, value: Any) -> float:
    if isinstance(value, float | int) and not isinstance(value, bool) and not (0.0 < value < math.inf):
        raise InvalidModel(
            f"{name} must be a standard deviation above 0 and below infinity, but {value!r} came: the prior is improper. "
            f"{FLAT} Choose how large a coefficient may plausibly be, for example 1.0."
        )
    result = positive_number(name, value)
    if not LEAST_SCALE < result < LARGEST_SCALE:
        raise InvalidModel(f"{name} must lie between {LEAST_SCALE:g} and {LARGEST_SCALE:g}, but {result!r} came.")
    return result


def _sequence(name: str, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, list | tuple | np.ndarray) or len(values) == 0:
        raise InvalidModel(
            f"{name} must be a list of numbers, one for each parameter, but a {type(values).__name__} came."
        )
    return tuple(values)
