"""Densities with a smallest scale: normal and Student noise around a predicted mean, and durations.

Their β-divergence loss has Δ = M^{β−1}/(β−1), M the density's peak at the smallest scale, which is enforced.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.errors import InvalidModel
from onedraw.models.convex.losses import Interval, array_module
from onedraw.models.model import Bound, within
from onedraw.models.responses import Clamped
from onedraw.privacy import Provenance
from onedraw.privacy.numbers import down, fraction_up, up

from .density import LARGEST, Likelihood, check_beta, log_gamma, softplus

UNBOUNDED = "Below 1 the density is unbounded at 0, and so is one record's loss: model log y with GaussianRegression."


class ScaledLikelihood(Likelihood):
    """A density σ^{−1} g(·/σ), σ ≥ s: ℓ_β = σ^{1−β}·ℓ_g with inf ℓ_g < 0 < sup ℓ_g, so that both extremes are at
    σ = s and Δ = M^{β−1}/(β−1) with M = sup g/s. (inf ℓ_g ≤ (sup g)^{β−1}(1/β − 1/(β−1)) because ∫g^β ≤ (sup g)^{β−1}.)
    """

    @abc.abstractmethod
    def _log_integral(self, beta: Any) -> Any:
        """log ∫ g^β."""

    @property
    @abc.abstractmethod
    def _peak(self) -> float:
        """sup g, rounded up."""

    @property
    @abc.abstractmethod
    def _least_scale(self) -> float:
        """s, rounded down."""

    @property
    def density_bound(self) -> Bound:
        why = "sup g/s: the density's peak at the smallest scale"
        return Bound(up(self._peak / self._least_scale), Provenance.PROVED, why)

    def sensitivity(self, beta: float) -> Bound:
        why = "M^{β−1}/(β−1), M = sup g/s: both extremes are at the smallest scale"
        return Bound(self._deepest(check_beta(beta)), Provenance.PROVED, why)

    def _deepest(self, beta: float) -> float:
        try:
            power = up(float(self.density_bound.value) ** (beta - 1.0))  # type: ignore[arg-type]  # one number here
        except OverflowError:
            power = math.inf
        if not power < 1e300:
            raise InvalidModel(
                f"With this floor the density reaches {self.density_bound.value:g}, and its power β − 1 = {beta - 1.0:g} "
                "overflows. Choose a smaller beta or a larger floor."
            )
        return fraction_up(Fraction(power) / (Fraction(beta) - 1))

    def loss_range(self, beta: float) -> Interval:
        deepest = self._deepest(check_beta(beta))
        integral = (
            math.exp(float(self._log_integral(np.float64(beta))) - (beta - 1.0) * math.log(self._least_scale)) / beta
        )
        return (down(integral - deepest, absolute=2.0**-44 * (integral + deepest)), up(integral))


class LocationNoise(ScaledLikelihood):
    """Noise around a predicted mean on the whole line; its squared scale is known, or sampled above a floor."""

    response = Clamped(-LARGEST, LARGEST)

    variance_floor: float | None
    variance: float | None

    @property
    def samples_variance(self) -> bool:  # type: ignore[override]
        return self.variance is None

    @property
    def floor(self) -> float:
        """The smallest squared scale there is: of a known variance itself."""
        return float(self.variance or self.variance_floor or 0.0)  # one of them is there, and positive

    @property
    def _least_scale(self) -> float:
        return down(math.sqrt(self.floor))

    def __post_init__(self) -> None:
        super().__post_init__()
        names = ("variance_floor", "variance")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if not given:
            raise InvalidModel(
                "The noise has no floor on its variance, so no density bound exists and β-divergence sampling cannot be private. Pass "
                "variance_floor=… (0.01 for a response of unit variance, say), or variance=… if it is known: public choices."
            )
        self._set(**{name: within(name, value, 1e-30, 1e30, "Rescale y.") for name, value in given.items()})
        if self.variance_floor and self.variance and self.variance < self.variance_floor:
            raise InvalidModel(
                f"The known variance {self.variance!r} is below its floor {self.variance_floor!r}. Leave the floor out, or "
                "lower it."
            )

    def _enforced(self, given: Any) -> Any:
        """The known variance, or the given one brought to the floor: the bound M must not rest on who calls."""
        if self.variance is not None:
            return self.variance
        if given is None:
            raise InvalidModel(f"{type(self).__name__} with a floor needs the variance as an argument.")
        return array_module(given).maximum(given, self.floor)

    def scale(self, noise: float | None = None) -> float:
        """σ of the reference design: the known one, or ``noise``, by default 1, at least the floor."""
        return math.sqrt(self.variance) if self.variance is not None else max(noise or 1.0, math.sqrt(self.floor))

    def draw(self, predictor: Array, noise: float, generator: np.random.Generator) -> Array:
        return np.asarray(predictor + self.scale(noise) * self._standard(generator, predictor.shape))

    @abc.abstractmethod
    def _standard(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Draws of g."""


@dataclass(frozen=True)
class GaussianNoise(LocationNoise):
    """y ~ N(u, σ²). Either σ² is known (``variance``), or it is a parameter with σ² ≥ ``variance_floor``.

    ∫f^β = (2πσ²)^{−(β−1)/2} β^{−1/2};  M = (2π·floor)^{−1/2}.
    """

    _peak = up(1.0 / math.sqrt(2.0 * math.pi))

    variance_floor: float | None = None
    variance: float | None = None

    def _standard(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return generator.standard_normal(shape)

    def _log_integral(self, beta: Any) -> Any:
        return -0.5 * (beta - 1.0) * math.log(2.0 * math.pi) - 0.5 * math.log(beta)

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        square = self._enforced(variance)
        away = array_module(predictor).clip(predictor, -LARGEST, LARGEST) - response
        return -0.5 * (away * away / square + array_module(square).log(2.0 * math.pi * square))

    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        square = self._enforced(variance)
        xp = array_module(square if array_module(predictor) is np else predictor)
        logs = -0.5 * ((beta - 1.0) * xp.log(2.0 * math.pi * square) + xp.log(beta))
        return logs + array_module(predictor).zeros_like(predictor)


@dataclass(frozen=True)
class StudentT(LocationNoise):
    """(y − u)/σ ~ t with ``df`` degrees of freedom ν. ``variance`` and ``variance_floor`` are those of σ², the squared
    scale (the variance proper is σ²ν/(ν−2), where it exists).

    ∫g^β = c^β √ν B(½, (β(ν+1)−1)/2), c = sup g = Γ((ν+1)/2)/(Γ(ν/2)√(νπ)) ≤ (2π)^{−1/2}.
    """

    df: Annotated[float, partial(within, "df", low=0.5, high=1e6, remedy="Use GaussianRegression for more.")]
    variance_floor: float | None = None
    variance: float | None = None

    def _standard(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return generator.standard_t(self.df, shape)

    @property
    def _log_peak(self) -> float:
        half = 0.5 * self.df
        return float(special.gammaln(half + 0.5) - special.gammaln(half)) - 0.5 * math.log(self.df * math.pi)

    @property
    def _peak(self) -> float:
        # lnΓ at up to 5e5 is off by some units in the last place of 6e6: 1e-9 covers it
        return min(up(math.exp(self._log_peak), relative=1e-8), up(1.0 / math.sqrt(2.0 * math.pi)))

    def _log_integral(self, beta: Any) -> Any:
        b = 0.5 * (beta * (self.df + 1.0) - 1.0)
        beta_function = 0.5 * math.log(math.pi) + log_gamma(b) - log_gamma(b + 0.5)
        return beta * self._log_peak + 0.5 * math.log(self.df) + beta_function

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        square = self._enforced(variance)
        away = array_module(predictor).clip(predictor, -LARGEST, LARGEST) - response
        ratio = away * away / (self.df * square)
        logs = 0.5 * ((self.df + 1.0) * array_module(ratio).log1p(ratio) + array_module(square).log(square))
        return self._log_peak - logs

    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        square = self._enforced(variance)
        logs = self._log_integral(beta) - 0.5 * (beta - 1.0) * array_module(square).log(square)
        return logs + array_module(predictor).zeros_like(predictor)


@dataclass(frozen=True)
class Gamma(ScaledLikelihood):
    """Durations y > 0 with known ``shape`` k ≥ 1 and a rate that never exceeds ``rate_cap``: mean k/rate_cap + e^u.

    Below shape 1 the density is unbounded at 0, and without a cap so is that of a short mean. With the rate λ,
    1/λ is the scale: M = rate_cap·(k−1)^{k−1}e^{1−k}/Γ(k), and ∫f^β = λ^{β−1} Γ(a)/(Γ(k)^β β^a), a = β(k−1) + 1.
    """

    response = Clamped(1.0 / LARGEST, LARGEST)

    rate_cap: Annotated[float, partial(within, "rate_cap", low=1e-30, high=1e30, remedy="Rescale the durations.")]
    shape: Annotated[float, partial(within, "shape", low=1.0, high=1e4, remedy=UNBOUNDED)] = 1.0

    @property
    def _peak(self) -> float:
        extra = self.shape - 1.0
        mode = extra * math.log(extra) - extra if extra > 0.0 else 0.0
        return up(math.exp(mode - float(special.gammaln(self.shape))), relative=1e-10)

    @property
    def _least_scale(self) -> float:
        return down(1.0 / self.rate_cap)

    def _log_integral(self, beta: Any) -> Any:
        a = beta * (self.shape - 1.0) + 1.0
        return log_gamma(a) - beta * float(special.gammaln(self.shape)) - a * array_module(a).log(beta)

    def draw(self, predictor: Array, noise: float, generator: np.random.Generator) -> Array:
        scale = 1.0 / self.rate_cap + np.exp(np.clip(predictor, -50.0, 50.0)) / self.shape
        return np.maximum(scale * generator.standard_gamma(self.shape, predictor.shape), 1.0 / LARGEST)

    def _log_rate(self, predictor: Any) -> Any:
        """λ = 1/(1/cap + e^u/k): smooth in u, and never above the cap."""
        cap = math.log(self.rate_cap)
        return cap - softplus(array_module(predictor).clip(predictor, -500.0, 500.0) - math.log(self.shape) + cap)

    def log_density(self, predictor: Any, response: Any, variance: Any = None) -> Any:
        log_rate = self._log_rate(predictor)
        xp = array_module(log_rate)
        scaled = log_rate + xp.log(response)
        logs = log_rate + (self.shape - 1.0) * scaled
        return logs - xp.exp(xp.minimum(scaled, 600.0)) - float(special.gammaln(self.shape))

    def log_power_integral(self, beta: Any, predictor: Any, variance: Any = None) -> Any:
        return self._log_integral(beta) + (beta - 1.0) * self._log_rate(predictor)


def Exponential(rate_cap: float) -> Gamma:
    """Durations with a memory of nothing: `Gamma` of shape 1, M = rate_cap."""
    return Gamma(rate_cap, 1.0)
