"""Faults of the literature, shown by the audit: what is published, on a concrete pair, against what it promises.

Each function writes the published procedure down as a test double, computes what it gives away, and returns both numbers.
Rows refer to docs/errata-of-the-literature.md, where MAS (Minami et al., NIPS 2016) and JGH (Jewson et al., NeurIPS 2023) are
named. Nothing here is used by a mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special

from onedraw import audit
from onedraw.privacy import ApproxDP, BoundedRange, Promise, PureDP

from .case import Array
from .divergence import gaussian_loss


@dataclass(frozen=True)
class Fault:
    """What was promised, what was found, where it is published."""

    row: str
    source: str
    promised: str
    found: str
    promise: Promise
    value: float
    """The figure found: ε, or δ where ``promise`` fixes ε."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "row": self.row,
            "source": self.source,
            "promised": self.promised,
            "found": self.found,
            "value": self.value,
        }


def faults() -> tuple[Fault, ...]:
    """All of them, with the numbers of the errata."""
    return output_perturbation(), gaussian_calibration(), corollary8(), attack_rates()


# ── errata 2 ───────────────────────────────────────────────────────────────────────────────────────────────


def output_perturbation(
    *, n: int = 10, dimension: int = 20, penalty: float = 10.0, epsilon: float = 1.0, positive: int | None = None
) -> Fault:
    """Ridge logistic regression plus Laplace noise of scale 2/(nλε) in each coordinate, as published.

    The published step from ‖·‖₂ to ‖·‖₁ goes the wrong way. On n rows of ones with one label flipped both minimisers are
    t·(1, …, 1), so each of the p coordinates gives away as much as the first, and the losses of a product add up.
    """
    labels = np.where(np.arange(n) < (n if positive is None else positive), 1.0, -1.0)
    flipped = labels.copy()
    flipped[0] = -flipped[0]
    scale = 2.0 / (n * penalty * epsilon)
    first, second = (minimiser(y, dimension=dimension, penalty=penalty) for y in (labels, flipped))
    margin = 40.0 * scale
    domain = ((min(first, second) - margin, max(first, second) + margin),)
    one = audit.exact_profile(laplace(first, scale), laplace(second, scale), domain)
    loss = dimension * one.largest_log_ratio
    return Fault(
        "2", "output perturbation (JGH Theorem 4, λ = 10)", f"ε = {epsilon:g}", f"ε = {loss:.3g}", PureDP(epsilon), loss
    )  # fmt: skip


def minimiser(labels: Array, *, dimension: int, penalty: float) -> float:
    """t with θ = t·1 the minimiser of mean log(1 + e^{−y·p·t}) + (λ/2)·p·t²: rows of ones make all coordinates equal."""

    def slope(t: float) -> float:
        return float(-np.mean(labels * special.expit(-labels * dimension * t)) + penalty * t)

    return float(optimize.brentq(slope, -1.0 / penalty, 1.0 / penalty, xtol=1e-15))


def laplace(centre: float, scale: float) -> Any:
    return lambda points: -np.abs(np.asarray(points).reshape(-1) - centre) / scale


# ── errata 3 ───────────────────────────────────────────────────────────────────────────────────────────────


def gaussian_calibration(
    *, epsilon: float = 1.0, variance: float = 0.01, prior_variance: float = 9.0, n: int = 10
) -> Fault:
    """β from the *prior's* variance in place of the variance's floor, w = 1, as in the published code.

    One parameter θ ~ N(0, 9), responses N(θ, s²) with s² at its floor; n − 1 responses agree and one moves across.
    """
    beta = published_beta(epsilon, prior_variance)

    def posterior(responses: Sequence[float]) -> Any:
        values, counts = np.unique(responses, return_counts=True)

        def density(points: Array) -> Array:
            theta = np.asarray(points, dtype=np.float64).reshape(-1)
            total = -0.5 * theta**2 / prior_variance
            for value, count in zip(values, counts, strict=True):
                total = total - count * gaussian_loss(value - theta, np.full(len(theta), variance), beta)
            return total

        return density

    first, second = posterior([1.0] * n), posterior([1.0] * (n - 1) + [-1.0])
    profile = audit.exact_profile(first, second, ((-30.0, 30.0),))
    return Fault(
        "3", "calibration of Gaussian models (JGH, published code)", f"ε = {epsilon:g}",
        f"ε = {profile.largest_log_ratio:.3g}", BoundedRange(epsilon), profile.largest_log_ratio,
    )  # fmt: skip


def published_beta(epsilon: float, variance: float) -> float:
    """The smallest β with 2Δ = 2(2πv)^{−(β−1)/2}/(β−1) ≤ ε, v the variance that is believed to be the least."""

    def excess(power: float) -> float:
        return float(2.0 * (2.0 * math.pi * variance) ** (-power / 2.0) / power - epsilon)

    return 1.0 + float(optimize.brentq(excess, 1e-6, 100.0, xtol=1e-14))


# ── errata 16 ──────────────────────────────────────────────────────────────────────────────────────────────


def corollary8(*, epsilon: float = 20.0, delta: float = 1e-5, norm: float = 0.1) -> Fault:
    """w = (ε/2L)√(m/(1 + 2 log 1/δ)) for the hinge of one record, rows of norm 0.1, prior N(0, 1)."""
    weight = epsilon / (2.0 * norm) * math.sqrt(1.0 / (1.0 + 2.0 * math.log(1.0 / delta)))

    def posterior(label: float) -> Any:
        def density(points: Array) -> Array:
            theta = np.asarray(points, dtype=np.float64).reshape(-1)
            return -0.5 * theta**2 - weight * np.maximum(0.0, 1.0 - label * norm * theta)

        return density

    profile = audit.exact_profile(posterior(1.0), posterior(-1.0), ((-20.0, 20.0),))
    found = profile.delta(epsilon)
    return Fault(
        "16", "MAS Corollary 8, for the hinge", f"δ = {delta:g} at ε = {epsilon:g}", f"δ = {found:.3g}",
        ApproxDP(epsilon, delta), found,
    )  # fmt: skip


# ── errata 6c ──────────────────────────────────────────────────────────────────────────────────────────────


def attack_rates(*, rounds: int = 1000, confidence: float = 0.95, seed: int = 6) -> Fault:
    """Error counts divided by *all* rounds, as in the published attack, on a mechanism that ignores its records."""
    generator = np.random.default_rng(seed)
    draws, truth = generator.normal(size=rounds), generator.integers(2, size=rounds)
    guesses = (draws > 0.0).astype(int)
    false_positive, false_negative = int(np.sum(guesses[truth == 0] == 1)), int(np.sum(guesses[truth == 1] == 0))
    published = audit.epsilon_lower_bound(false_positive, false_negative, rounds, rounds, 0.0, confidence)
    per_class = audit.epsilon_lower_bound(
        false_positive, false_negative, int(np.sum(truth == 0)), int(np.sum(truth == 1)), 0.0, confidence
    )
    return Fault(
        "6c", "rates of the published attack (JGH, published code)", "ε = 0: the draw does not depend on the records",
        f'"ε ≥ {published:.3g}"; with rates per class ε ≥ {per_class:.3g}', PureDP(1e-9), published,
    )  # fmt: skip
