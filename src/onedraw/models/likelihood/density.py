"""Likelihoods with a bounded density, and their β-divergence loss: what one record can do, whatever it is.

    ℓ_β(y, θ) = −f(y; θ)^{β−1}/(β−1) + (1/β) ∫ f(·; θ)^β,   β > 1

Jewson, Ghalebikesabi, Holmes, "Differentially Private Statistical Inference through β-Divergence One Posterior
Sampling" (arXiv:2307.05194). Every likelihood here says how far two records' losses can be apart, Δ(β):

| likelihood | Δ(β) | why |
| --- | --- | --- |
| discrete, any predictor of any features | 1/(β−1) | f ≤ 1 and f(y)^β ≤ Σf^β ≤ 1, so ℓ lies in [1/β − 1/(β−1), 1/β] |
| location–scale g((y−μ)/σ)/σ, σ ≥ s; Gamma with rate ≤ 1/s | M^{β−1}/(β−1), M = sup g/s | ℓ = σ^{1−β}·ℓ_g, whose ends have opposite signs: both extremes are at σ = s |
| any other density ≤ M (declared) | M^{β−1}(1/(β−1) + 1/β) | ∫f^β ≤ M^{β−1} |

The integral term may depend on the record through its features, so the paper's Lemma 1 (it cancels) is not a proof;
the middle column holds without it. None of the three needs a bound on features, responses or parameters; the second
needs its floor, which the formulas here enforce on whatever variance or rate they are given.

**A user's own density** with a declared bound M (`OwnDensity`). Nothing can be proved about a function one is handed. But the loss
uses f ≤ M and ∫f^β ≤ M^{β−1} and nothing else, so both are made true: a log-density above log M is cut there, an integral brought
into [0, M^{β−1}], NaN is a density of 0. A wrong M costs accuracy, never privacy. (For location–scale families the proved bound is
smaller: use those where one fits. Log-normal and Beta densities are unbounded: model log y or logit y instead.)

A likelihood is a frozen value. ``predictor`` is the number u that the model computes for a record (K of them for
K classes); formulas accept NumPy and JAX values alike.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.errors import InvalidModel
from onedraw.models.compute import jax, jnp
from onedraw.models.convex.losses import Interval, array_module
from onedraw.models.model import Bound, OwnFunctions, described, number, positive_number
from onedraw.models.responses import Clamped, Response
from onedraw.privacy import Provenance
from onedraw.privacy.numbers import fraction_up, up
from onedraw.privacy.stored import Stored

LARGEST = 1e60
"""Responses and predictors are cut here: squares and ratios stay far from the limits of floating-point numbers."""

LEAST_BETA, LARGEST_BETA = 1.0 + 1e-6, 1e6
"""Nearer to 1 the loss is a difference of nearly equal numbers; beyond, it no longer sees the data."""


def check_beta(beta: Any) -> float:
    """β as a float, or an error: the loss is the negative log-likelihood in the limit β = 1, which is unbounded."""
    value = number("beta", beta)
    if not LEAST_BETA <= value <= LARGEST_BETA:
        raise InvalidModel(
            f"beta must be above 1 (at least 1 + 1e-6, at most {LARGEST_BETA:g}), got {value!r}: at 1 the loss is the negative "
            "log-likelihood, which one record can move without bound. Leave it out to have it chosen from public numbers."
        )
    return value


class Likelihood(Stored, key="likelihood", noun="likelihood", refuses=InvalidModel):
    """A density (or mass function) f(y; u) with a bound, its power integral, and its β-loss.

    **Guarantee.** For every β > 1 and any two records, whatever their features and responses, and every parameter,
    the two values of `beta_loss` differ by at most ``sensitivity(beta).value``, up to the rounding of one evaluation.
    """

    outputs: int = 1
    """How many numbers the predictor computes for a record."""

    samples_variance: ClassVar[bool] = False
    """Whether a variance is a parameter of its own, besides the predictor's."""

    own_functions: ClassVar[tuple[str, ...]] = ()
    """The caller's functions it is made of, in words."""

    @property
    @abc.abstractmethod
    def response(self) -> Response:
        """How a record's response is read, where the model says nothing else."""

    @abc.abstractmethod
    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        """log f(y; u)."""

    @abc.abstractmethod
    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        """log ∫ f(·; u)^β."""

    @abc.abstractmethod
    def loss_range(self, beta: float) -> Interval:
        """The ends between which every record's loss lies, for every parameter; rounded outward."""

    @abc.abstractmethod
    def sensitivity(self, beta: float) -> Bound:
        """Δ(β), rounded up, with who says so."""

    @property
    @abc.abstractmethod
    def density_bound(self) -> Bound:
        """M: f ≤ M."""

    def power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        """∫ f(·; u)^β."""
        integral = self.log_power_integral(beta, predictor, variance)
        return array_module(integral).exp(integral)

    def beta_loss(self, beta: Any, predictor: Any, response: Any, variance: Any = None) -> Any:
        """ℓ_β, elementwise."""
        log_density = self.log_density(predictor, response, variance)
        power = array_module(log_density).exp((beta - 1.0) * log_density)
        return self.power_integral(beta, predictor, variance) / beta - power / (beta - 1.0)

    def draw(self, predictor: Array, noise: float, generator: np.random.Generator) -> Array | None:
        """One encoded response for each predictor, residuals with the standard deviation ``noise`` where it is not known;
        None for a likelihood that cannot be drawn from here."""
        return None


# ── functions for NumPy and JAX alike ────────────────────────────────────────────────────────────────────────


def softplus(value: Any) -> Any:
    """log(1 + e^v), without overflow, with a derivative everywhere."""
    return np.logaddexp(0.0, value) if array_module(value) is np else jax.nn.softplus(value)


def log_sum(values: Any) -> Any:
    """log Σ e^v over the last axis."""
    return (special if array_module(values) is np else jax.nn).logsumexp(values, axis=-1)


def log_gamma(value: Any) -> Any:
    """log Γ."""
    return special.gammaln(value) if array_module(value) is np else jax.scipy.special.gammaln(value)


# ── a user's own density ─────────────────────────────────────────────────────────────────────────────────────────────


DENSITIES = OwnFunctions("density", "log_density(u, y) and log_power_integral(beta, u)")


def register_density(
    name: str, log_density: Callable[[Any, Any], Any], log_power_integral: Callable[[Any, Any], Any]
) -> str:
    """Make a density known by name: ``log_density(u, y)`` and ``log_power_integral(beta, u)``, both of one record's
    numbers, in JAX. Returns the name, for `OwnDensity`."""
    if not (callable(log_density) and callable(log_power_integral)):
        raise InvalidModel("log_density and log_power_integral must be JAX functions.")
    DENSITIES.register(name, (log_density, log_power_integral))
    return name


@dataclass(frozen=True)
class OwnDensity(Likelihood):
    """The density registered as ``name``, at most ``bound``; responses are clamped to [lower, upper]."""

    name: str
    bound: float
    lower: float = -LARGEST
    upper: float = LARGEST

    def __post_init__(self) -> None:
        if self.name not in DENSITIES.known:
            raise InvalidModel(
                f"No density is registered as {self.name!r}. Register it with register_density(name, log_density, "
                "log_power_integral) first."
            )
        bound = positive_number("bound", self.bound)
        self._set(bound=bound, lower=number("lower", self.lower), upper=number("upper", self.upper))
        if not (1e-30 <= self.bound <= 1e30 and -LARGEST <= self.lower <= self.upper <= LARGEST):
            raise InvalidModel("bound must lie between 1e-30 and 1e30, and lower ≤ upper within ±1e60.")
        from onedraw.models.one_row import checked_row  # it loads JAX

        for fn, called in zip(
            DENSITIES.known[self.name], ("log_density(u, y)", "log_power_integral(beta, u)"), strict=True
        ):
            checked_row(fn, f"{called} of {self.name!r}", "a function of two numbers", (), ())

    @property
    def own_functions(self) -> tuple[str, ...]:  # type: ignore[override]  # none of all others
        kinds = ("logarithm", "power integral")
        return tuple(
            described(fn, f"{self.name}: {kind}") for fn, kind in zip(DENSITIES.known[self.name], kinds, strict=True)
        )

    @property
    def response(self) -> Clamped:
        return Clamped(self.lower, self.upper)

    @property
    def density_bound(self) -> Bound:
        return Bound(self.bound, Provenance.ENFORCED, "declared, and the density is cut there")

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        return self._of_each(0, math.log(self.bound), predictor, response)

    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        return self._of_each(1, (beta - 1.0) * math.log(self.bound), beta, predictor)

    def _of_each(self, which: int, most: Any, *arguments: Any) -> Any:
        """The function, one number at a time, for it never sees two records; cut at ``most``, and NaN is a density of 0."""
        from onedraw.models.one_row import one_row

        value = jnp.vectorize(one_row(DENSITIES.known[self.name][which], self.name, (), ()))(*arguments)
        return jnp.minimum(jnp.where(jnp.isnan(value), -jnp.inf, value), most)

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
