"""Exact draws from closed-form laws: Beta, Dirichlet, Gamma, Normal, any Gaussian, and a Gaussian cut to a ball.

A posterior's parameters depend on the records, so nothing here may fail, or be NaN, for any of them: an error
would itself be a release. The usual recipe, gamma variates divided by their sum, does fail: with parameters
near 0.001 every variate underflows and 0/0 follows. Here all work is on logarithms, by the boost of Marsaglia
and Tsang (ACM TOMS 26, 2000, §6): for every a > 0, with G ~ Gamma(a + 1) and E ~ Exp(1),

    Gamma(a)  =  G · U^(1/a)          so that          log Gamma(a)  =  log G − E/a,

used for all a alike, small and large, and normalised by log-sum-exp.

**Guarantee.** For all finite parameters in their range the draw is never NaN nor infinite, and it is the
law's own draw as far as float64 can tell:

| parameters | what comes |
| --- | --- |
| a Beta or Dirichlet with parameters down to 5e-324 | in [0, 1], summing to 1; 0.0 below the smallest float |
| a Beta nearer to 1 than float64 can tell | 1.0 (a Dirichlet's other coordinate keeps the distance) |
| a Gamma below the smallest or above the largest float | 0.0, or the largest float |
| parameters of 1e9 and beyond | a relative error near 1e-14, beside the law's own spread of 1/√a |

**What stays assumed.** Real numbers are modelled by float64 and the basic variates are NumPy's (ziggurat
normals and exponentials, whose tails end where less than 2^-60 of the mass is left; Marsaglia–Tsang gammas).
A draw's low bits can betray its parameters (Mironov, CCS 2012): the release rounds to a lattice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from onedraw import errors, privacy
from onedraw.models.conjugate import distributions
from onedraw.samplers.floating_point import TRIES, check_delta
from onedraw.samplers.gaussian import ball_gaussian_draws, gaussian_draws
from onedraw.samplers.sample import Sample

Array = NDArray[np.float64]
AnyLaw = distributions.Law | distributions.GaussianLaw

NUMERIC_MODEL = "real-number sampler in double precision"

_LARGEST = np.finfo(np.float64).max
# A gamma or exponential variate of NumPy's is exactly 0 once in about 2^60; its logarithm must stay finite.
_SMALLEST = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Exact:
    """Draws from a closed-form law itself; there is nothing to tune and nothing to diagnose."""

    randomness: ClassVar[str] = "numpy"

    def exactness(self, plan: Any) -> privacy.Exactness:
        """Exact wherever the plan's law has a closed form: decided by the plan, never by the records."""
        if not getattr(plan, "closed_form", True):
            raise errors.ExactnessRefused(
                f"Exact() draws from closed-form laws, and a posterior of {type(plan.model).__name__} has none. Use "
                "LastIterateLangevin, whose last iterate has a promise of its own, or Proximal(gamma=…); without a "
                "sampler the release chooses one."
            )
        variates = plan.draws * _variates(plan.model)
        check_delta(plan, plan.guarantee.promise, variates, randomness=self.randomness)
        return privacy.Exact(numeric=NUMERIC_MODEL)

    def to_dict(self) -> dict[str, object]:
        return {"name": "Exact"}

    def draw(self, law: AnyLaw, generator: Generator, *, size: int | None = None) -> Array:
        """One draw, or ``size`` independent draws along a first axis.

        A draw has the law's own shape: () for Beta and Gamma, (K,) for Dirichlet, (d,) for Normal and Gaussian.
        """
        draws, _ = _draws(law, generator, size=1 if size is None else size)
        return draws[0, ...] if size is None else draws

    def run(self, law: AnyLaw, generator: Generator, *, size: int = 1) -> Sample:
        """``size`` draws, one row each, with the tries that rejection took."""
        draws, diagnostics = _draws(law, generator, size=size)
        return Sample(draws.reshape(size, -1), diagnostics)


def _variates(model: Any) -> int:
    """Of one draw: two for each number, or tries at a ball, of which e(d+1)/2 are expected."""
    count = len(model.parameter_names)
    return 2 * count if getattr(model, "radius", None) is None else TRIES * (count + 2) ** 2


def _draws(law: AnyLaw, generator: Generator, *, size: int) -> tuple[Array, dict[str, Any]]:
    match law:
        case distributions.Beta(a=a, b=b):
            return _on_simplex(_positive(a, b), generator, size=size)[:, 0], {}
        case distributions.Dirichlet(alpha=alpha):
            return _on_simplex(_positive(*alpha), generator, size=size), {}
        case distributions.Gamma(shape=shape, rate=rate):
            return _gamma(_positive(shape), _positive(rate), generator, size=size)[:, 0], {}
        case distributions.Normal(mean=mean, variance=variance):
            return _normal(_finite(*mean), _positive(variance), generator, size=size), {}
        case distributions.Gaussian():
            return gaussian_draws(law, generator, size=size), {}
        case distributions.BallGaussian():
            draws, tries = ball_gaussian_draws(law, generator, size=size)
            return draws, {"tries": tries}
    raise errors.WrongCall(
        f"Exact() draws from a Beta, Dirichlet, Gamma, Normal or Gaussian law; {type(law).__name__} was given. No "
        "closed form is known for it, so the draw would not be exact. Use a sampler for log densities."
    )


def _on_simplex(alpha: Array, generator: Generator, *, size: int) -> Array:
    """Dirichlet draws: normalised gamma variates, on logarithms throughout."""
    logarithms, exponentials = _boosted(alpha, generator, size=size)
    # The logarithms are taken times `scale`: E/α overflows for α below 1e-306, but the coordinate with the
    # largest α stays finite, so the maximum is finite and each difference from it a number or −∞, never NaN.
    scale = np.minimum(1.0, alpha.max())
    with np.errstate(over="ignore", under="ignore"):
        scaled = scale * logarithms - exponentials / (alpha / scale)
        weights = np.exp((scaled - scaled.max(axis=1, keepdims=True)) / scale)
        draws: Array = weights / weights.sum(axis=1, keepdims=True)
    return draws


def _gamma(shape: Array, rate: Array, generator: Generator, *, size: int) -> Array:
    logarithms, exponentials = _boosted(shape, generator, size=size)
    with np.errstate(over="ignore", under="ignore"):
        # The rate comes off before exp: a variate that underflows may be ordinary once divided by the rate.
        draws: Array = np.exp(logarithms - exponentials / shape - np.log(rate))
    return np.minimum(draws, _LARGEST)


def _boosted(shape: Array, generator: Generator, *, size: int) -> tuple[Array, Array]:
    """log G and E, each of shape (size, len(shape)), with log Gamma(shape) = log G − E/shape."""
    full = (size, shape.size)
    variates = generator.standard_gamma(shape + 1.0, full)
    return np.log(np.maximum(variates, _SMALLEST)), generator.standard_exponential(full)


def _normal(mean: Array, variance: Array, generator: Generator, *, size: int) -> Array:
    draws: Array = mean + np.sqrt(variance) * generator.standard_normal((size, mean.size))
    return draws


def _positive(*parameters: float) -> Array:
    values = _finite(*parameters)
    if not (values > 0.0).all():
        raise errors.InvalidModel(_BROKEN)
    return values


def _finite(*parameters: float) -> Array:
    values = np.array(parameters, dtype=np.float64)
    if values.size == 0 or not np.isfinite(values).all():
        raise errors.InvalidModel(_BROKEN)
    return values


# Fails closed, and says no number: the parameters of a posterior are as private as its records.
_BROKEN = (
    "A Beta, Dirichlet or Gamma law has positive finite parameters and a Normal law a finite mean and a "
    "positive variance; this law does not. No model with a normalizable prior gives such a posterior, "
    "whatever the records, so the law was made otherwise. Check the model's prior and bounds."
)
