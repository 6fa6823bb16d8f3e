"""Intervals for proportions, histograms, means, rates and durations: one draw is enough, its law is known.

A conjugate posterior's draw θ̃ depends on the records through one sum T whose law at a given truth is known under the
model, so F(θ̃; truth) = E_T P(draw ≤ θ̃ | T) is a closed form up to one sum, and the truths with α/2 ≤ F ≤ 1 − α/2 are an
interval of level 1 − α: no replicates, no regime. It covers sampling and privacy noise together.

| model | law of the sum T |
| --- | --- |
| Beta–Bernoulli, each level of a Dirichlet | binomial (of statistics in [0, 1] the most variable there is with its mean) |
| Gamma–Poisson | Poisson, clamped records by their first two moments |
| Gamma–Exponential | normal with the first two moments of clamped durations |
| Gaussian mean | normal; the records' standard deviation as declared, or the largest their range and the mean allow |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from onedraw.errors import PromiseRefused
from onedraw.models import BetaBernoulli, DirichletCategorical, GammaExponential, GammaPoisson, GaussianMean
from onedraw.plans import Plan

from .tables import binomial

Array = NDArray[np.float64]
Found = tuple[Array, Array, Array, Array, Array]

_NORMAL, _MASS = np.polynomial.hermite_e.hermegauss(41)
_MASS = _MASS / _MASS.sum()


def conjugate_interval(draws: Array, plan: Plan, level: float, *, noise: float | None = None) -> Found:
    """Centre, low, high, and the standard errors from the sample and from the draw, per coordinate."""
    if plan.draws != 1:
        raise PromiseRefused(
            "The closed form is about one draw, which is as precise as several that share the budget. Calibrate with "
            "draws=1."
        )
    match plan.model:
        case BetaBernoulli() | DirichletCategorical():
            return _proportions(draws[0], plan, level)
        case GammaPoisson() | GammaExponential():
            return _gamma(draws[0], plan, level)
        case GaussianMean():
            return _mean(draws[0], plan, level, noise)
        case _:
            raise PromiseRefused(f"No interval is known for {type(plan.model).__name__}.")


def _scaling(plan: Plan) -> tuple[float, float]:
    """(weight of a record, what the prior is divided by)."""
    numbers = plan.parameters
    return numbers.get("r", numbers.get("weight", 1.0)), numbers.get("prior_factor", 1.0)


def _inverted(covered: Callable[[float, float], float], value: float, level: float, ends: tuple[float, float]) -> Any:
    """The truths at which F(value) is (1 + level)/2 and (1 − level)/2; F decreases in the truth."""
    low, high = ends
    found = []
    for wanted in ((1.0 + level) / 2.0, (1.0 - level) / 2.0):
        if covered(low, value) <= wanted:
            found.append(low)
        elif covered(high, value) >= wanted:
            found.append(high)
        else:
            root = optimize.brentq(lambda truth, wanted=wanted: covered(truth, value) - wanted, low, high, xtol=1e-12)
            found.append(float(root))
    return found[0], found[1]


# ── proportions ──────────────────────────────────────────────────────────────────────────────────────────────


def _proportions(draw: Array, plan: Plan, level: float) -> Found:
    prior = plan.model.prior
    single = isinstance(plan.model, BetaBernoulli)
    strengths = [prior[0]] if single else list(prior)
    total = float(sum(prior))
    parts = [_proportion(float(value), plan, level, a, total - a) for value, a in zip(draw, strengths, strict=True)]
    low, high, sampling, privacy = (np.array(column) for column in zip(*parts, strict=True))
    return draw, low, high, sampling, privacy


def _proportion(value: float, plan: Plan, level: float, a: float, b: float) -> tuple[float, float, float, float]:
    (r, m), n = _scaling(plan), plan.n

    def covered(truth: float, value: float) -> float:
        counts, masses = binomial(n, truth)
        return float(masses @ special.betainc(a / m + r * counts, b / m + r * (n - counts), value))

    low, high = _inverted(covered, value, level, (0.0, 1.0))
    variance = value * (1.0 - value)
    return low, high, math.sqrt(variance / n), math.sqrt(variance / (r * n + (a + b) / m + 1.0))


# ── rates and durations ──────────────────────────────────────────────────────────────────────────────────────


def _gamma(draw: Array, plan: Plan, level: float) -> Found:
    model, (r, m), n = plan.model, _scaling(plan), plan.n
    a, b = (float(part) / m for part in model.prior)
    poisson = isinstance(model, GammaPoisson)
    value = float(draw[0])

    def covered(truth: float, value: float) -> float:
        mean, variance = (_clamped_count if poisson else _clamped_duration)(truth, model.cap)
        sums = np.clip(n * mean + math.sqrt(n * variance) * _NORMAL, 0.0, n * model.cap)
        if poisson:
            return float(_MASS @ special.gammainc(a + r * sums, (b + r * n) * value))
        return float(_MASS @ special.gammainc(a + r * n, (b + r * sums) * value))

    largest = model.cap if poisson else 1e3 / model.cap
    least = 1e-9 * largest
    low, high = _inverted(covered, value, level, (least, largest))
    low = 0.0 if low == least else low
    sampling = math.sqrt(value / n) if poisson else value / math.sqrt(n)
    shape = a + r * n * min(value, model.cap) if poisson else a + r * n
    return draw, np.array([low]), np.array([high]), np.array([sampling]), np.array([value / math.sqrt(shape)])


def _clamped_count(rate: float, cap: float) -> tuple[float, float]:
    counts = np.arange(1, int(cap) + 1)
    tail = special.gammainc(counts, rate)  # P(X ≥ k), k = 1 … cap
    mean = float(tail.sum())
    return mean, max(float(((2 * counts - 1) * tail).sum()) - mean**2, 0.0)


def _clamped_duration(rate: float, cap: float) -> tuple[float, float]:
    kept = math.exp(-rate * cap)
    mean = -math.expm1(-rate * cap) / rate
    return mean, max(2.0 * (mean - cap * kept) / rate - mean**2, 0.0)


# ── means ────────────────────────────────────────────────────────────────────────────────────────────────────


def _mean(draw: Array, plan: Plan, level: float, noise: float | None) -> Found:
    """Per coordinate. Within ±B about the centre no records with mean c + t have a variance above B² − t²."""
    model, (r, m), n = plan.model, _scaling(plan), plan.n
    prior_records = model.prior_count / m
    records = prior_records + r * n
    centres = np.broadcast_to(np.asarray(model.centre, dtype=np.float64), draw.shape)
    pulls = np.broadcast_to(np.asarray(model.prior_mean, dtype=np.float64), draw.shape)
    privacy = math.sqrt(model.variance / records)
    z = float(special.ndtri(0.5 + level / 2.0))
    unbiased = ((draw - centres) * records - prior_records * pulls) / (r * n)
    own = privacy * records / (r * n)
    if noise is not None:
        sampling = np.full(draw.shape, noise / math.sqrt(n))
        half = z * np.hypot(sampling, own)
        low, high = unbiased - half, unbiased + half
    else:
        # |x̂ − t| ≤ z√(own² + (B² − t²)/n) is a quadratic inequality in t
        square = z**2 / n
        middle = unbiased / (1.0 + square)
        inside = middle**2 - (unbiased**2 - z**2 * own**2 - square * model.bound**2) / (1.0 + square)
        half = np.sqrt(np.maximum(inside, 0.0))
        low, high = middle - half, middle + half
        sampling = np.sqrt(np.maximum(model.bound**2 - np.clip(unbiased, -model.bound, model.bound) ** 2, 0.0) / n)
    return draw, centres + low, centres + high, sampling, np.full(draw.shape, own)
