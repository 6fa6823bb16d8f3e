"""A user's own density with a declared bound M: Δ = M^{β−1}(1/(β−1) + 1/β), enforced.

Nothing can be proved about a function one is handed. But the loss uses f ≤ M and ∫f^β ≤ M^{β−1} and nothing else, so
both are made true: a log-density above log M is cut there, an integral brought into [0, M^{β−1}], NaN is a density of
0. A wrong M costs accuracy, never privacy. (For location–scale families the proved bound is smaller: use those of
`likelihoods` where one fits. Log-normal and Beta densities are unbounded: model log y or logit y instead.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from onedraw.errors import InvalidModel
from onedraw.models.compute import jnp
from onedraw.models.convex.losses import Interval, array_module
from onedraw.models.model import Bound, described, number, positive_number
from onedraw.models.responses import Clamped
from onedraw.privacy import Provenance
from onedraw.privacy.numbers import fraction_up, up

from .density import LARGEST, Likelihood, check_beta

Functions = tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]

_DENSITIES: dict[str, Functions] = {}


def register_density(
    name: str, log_density: Callable[[Any, Any], Any], log_power_integral: Callable[[Any, Any], Any]
) -> str:
    """Make a density known by name: ``log_density(u, y)`` and ``log_power_integral(beta, u)``, both of one record's
    numbers, in JAX. Returns the name, for `OwnDensity`."""
    given = (log_density, log_power_integral)
    if _DENSITIES.get(name, given) != given:
        raise InvalidModel(f"Another density is registered as {name!r} already. Choose another name.")
    if not all(map(callable, given)):
        raise InvalidModel("log_density and log_power_integral must be JAX functions.")
    _DENSITIES[name] = given
    return name


@dataclass(frozen=True)
class OwnDensity(Likelihood):
    """The density registered as ``name``, at most ``bound``; responses are clamped to [lower, upper]."""

    name: str
    bound: float
    lower: float = -LARGEST
    upper: float = LARGEST

    def __post_init__(self) -> None:
        if self.name not in _DENSITIES:
            raise InvalidModel(
                f"No density is registered as {self.name!r}. Register it with register_density(name, log_density, "
                "log_power_integral) first."
            )
        bound = positive_number("bound", self.bound)
        self._set(bound=bound, lower=number("lower", self.lower), upper=number("upper", self.upper))
        if not (1e-30 <= self.bound <= 1e30 and -LARGEST <= self.lower <= self.upper <= LARGEST):
            raise InvalidModel("bound must lie between 1e-30 and 1e30, and lower ≤ upper within ±1e60.")
        from onedraw.models.one_row import checked_row  # it loads JAX

        for fn, called in zip(_DENSITIES[self.name], ("log_density(u, y)", "log_power_integral(beta, u)"), strict=True):
            checked_row(fn, f"{called} of {self.name!r}", "a function of two numbers", (), ())

    @property
    def own_functions(self) -> tuple[str, ...]:
        kinds = ("logarithm", "power integral")
        return tuple(
            described(fn, f"{self.name}: {kind}") for fn, kind in zip(_DENSITIES[self.name], kinds, strict=True)
        )

    @property
    def response(self) -> Clamped:
        return Clamped(self.lower, self.upper)

    @property
    def density_bound(self) -> Bound:
        return Bound(self.bound, Provenance.ENFORCED, "declared, and the density is cut there")

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        value = self._of_each(0, predictor, response)
        xp = array_module(value)
        return xp.minimum(xp.where(xp.isnan(value), -xp.inf, value), math.log(self.bound))

    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        value = self._of_each(1, beta, predictor)
        xp = array_module(value)
        return xp.minimum(xp.where(xp.isnan(value), -xp.inf, value), (beta - 1.0) * math.log(self.bound))

    def _of_each(self, which: int, *arguments: Any) -> Any:
        """The function, one number at a time: it never sees two records."""
        from onedraw.models.one_row import one_row

        return jnp.vectorize(one_row(_DENSITIES[self.name][which], self.name, (), ()))(*arguments)

    def loss_range(self, beta: float) -> Interval:
        power, value = self._power(beta), Fraction(check_beta(beta))
        return (-fraction_up(power / (value - 1)), fraction_up(power / value))

    def sensitivity(self, beta: float) -> Bound:
        lower, upper = self.loss_range(beta)
        total = fraction_up(Fraction(upper) - Fraction(lower))
        why = "M^{β−1}(1/(β−1) + 1/β): density and power integral are cut at their bounds"
        return Bound(total, Provenance.ENFORCED, why)

    def _power(self, beta: float) -> Fraction:
        """M^{β−1}, rounded up as far as the logarithms used above can be off."""
        exponent = (check_beta(beta) - 1.0) * math.log(self.bound)
        if exponent > 690.0:
            raise InvalidModel("M^{β−1} overflows. Choose a smaller beta, or rescale the response.")
        return Fraction(up(math.exp(exponent), relative=1e-12))
