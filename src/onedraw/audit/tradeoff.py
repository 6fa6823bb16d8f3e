"""A promise as a trade-off curve: the least miss rate of any attack at each false alarm rate.

(ε, δ(ε)) for every ε is equivalent to the curve f(α) = sup over ε of max(0, 1 − δ(ε) − e^ε α, e^{−ε}(1 − δ(ε) − α))
(Dong, Roth, Su, arXiv:1905.02383, Proposition 2.12). An attack whose two rates lie below f breaks the promise, whichever
of its names it was made under. Here the supremum is over a finite grid of ε: the curve returned never lies above the
true one, so what lies below it does break the promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onedraw.errors import WrongCall
from onedraw.privacy.promises import Promise

Array = NDArray[np.float64]

_GRID = 257
_SMALLEST_DELTA = 1e-12


@dataclass(frozen=True, eq=False)
class PromiseCurve:
    """δ(ε) of a promise on a grid of ε, and the trade-off curve these pairs imply."""

    promise: Promise
    epsilons: Array
    deltas: Array

    def __call__(self, alphas: ArrayLike) -> Array:
        """The least type II error at each type I error α, from below."""
        alpha = np.atleast_1d(np.asarray(alphas, dtype=float))[:, None]
        scale = np.exp(np.minimum(self.epsilons, 700.0))[None, :]
        kept = 1.0 - self.deltas[None, :]
        found = np.maximum(kept - scale * alpha, (kept - alpha) / scale)
        return np.asarray(np.maximum(0.0, found.max(axis=1)))

    def excess(self, false_positive: float, false_negative: float) -> tuple[float, float, float]:
        """(ε, δ promised there, δ these two rates show there), at the ε where they differ most in ratio."""
        shown = shown_delta(self.epsilons, false_positive, false_negative)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(shown > 0.0, shown / self.deltas, 0.0)
        best = int(np.argmax(np.where(shown > self.deltas, ratio, shown - self.deltas - 1.0)))
        return float(self.epsilons[best]), float(self.deltas[best]), float(shown[best])


def shown_delta(epsilons: Array, false_positive: float, false_negative: float) -> Array:
    """The δ that two error rates rule anything smaller than, at each ε: both directions of 1 − δ ≤ FPR·e^ε + FNR."""
    scale = np.exp(np.minimum(epsilons, 700.0))
    first, second = 1.0 - false_negative - scale * false_positive, 1.0 - false_positive - scale * false_negative
    return np.asarray(np.maximum(0.0, np.maximum(first, second)))


def promise_tradeoff(promise: Promise, alphas: ArrayLike) -> Array:
    """f(α) of a promise: what no attack may beat."""
    return promise_curve(promise)(alphas)


@lru_cache(maxsize=64)
def promise_curve(promise: Promise) -> PromiseCurve:
    """The curve of a promise, computed once."""
    epsilons = epsilon_grid(promise)
    deltas = np.array([promise.delta(float(epsilon)) for epsilon in epsilons])
    return PromiseCurve(promise, epsilons, deltas)


def epsilon_grid(promise: Promise, points: int = _GRID) -> Array:
    """Values of ε from 0 to where nothing is left to promise, with the corners of the promise among them."""
    corners = [promise.pure_epsilon, promise.range_epsilon, float(getattr(promise, "stated_epsilon", math.inf))]
    finite = [corner for corner in corners if corner < math.inf]
    end = max([*finite, _last_epsilon(promise)])
    return np.unique(np.concatenate([np.linspace(0.0, end, points), finite]))


def _last_epsilon(promise: Promise) -> float:
    for delta in (_SMALLEST_DELTA, 1e-9, 1e-6, 1e-3, 0.1):
        epsilon = promise.epsilon(delta)
        if epsilon < math.inf:
            return min(epsilon, 700.0)
    return 40.0


def promise_of(value: Any) -> Promise:
    """A promise, or a clear word that one is missing."""
    if isinstance(value, Promise):
        return value
    came = "none" if value is None else f"a {type(value).__name__}"
    raise WrongCall(
        f"an audit needs the promise it is to test, but {came} came: without one nothing can be broken. "
        "Pass a promise, such as onedraw.PureDP(1.0) or plan.guarantee.promise."
    )
