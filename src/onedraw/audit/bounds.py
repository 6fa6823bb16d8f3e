"""From an attack's error counts to a lower bound on ε at a stated confidence.

An attack guesses which of two neighbouring data sets made a draw. If (ε, δ) holds, its two error rates cannot both be
small: 1 − δ ≤ FPR·e^ε + FNR and the same with the roles exchanged (Kairouz, Oh, Viswanath, arXiv:1311.0776). Upper
confidence limits of the two rates (Clopper and Pearson 1934, exact for every n) turn that into a lower bound on ε.

Rates are per class: FPR is false positives over the rounds with the first data set, FNR is misses over the rounds with
the neighbour. Dividing by all rounds, as published code does (errata 6c), "proves" ε ≥ log 3 of a coin flip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from onedraw.arrays import Array, Integers
from onedraw.errors import TooFewRounds, WrongCall
from onedraw.privacy.numbers import epsilon_argument, positive_integer, probability, real, strictly_above_one, text

_SLACK = 1e-12
"""Relative error granted to SciPy's inverse of the incomplete beta function; limits move up by it."""


def epsilon_lower_bound(
    fp: int, fn: int, rounds0: int, rounds1: int, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """The largest ε that these error counts show to be too small to be promised at δ, or 0.

    ``fp`` of ``rounds0`` draws from the first data set were taken for the neighbour's, ``fn`` of ``rounds1`` draws from
    the neighbour for the first one's. **Guarantee.** If the guesses were fixed before these rounds, the bound exceeds
    the true ε with probability at most 1 − confidence.
    """
    limits = rate_limits(fp, fn, rounds0, rounds1, alpha=1.0 - confidence_of(confidence))
    return float(epsilon_from_rates(*limits, probability("δ", delta)))


def gaussian_mu_lower_bound(fp: int, fn: int, rounds0: int, rounds1: int, confidence: float = 0.95) -> float:
    """The largest μ these counts show to be too small: μ ≥ Φ⁻¹(1 − FPR) − Φ⁻¹(FNR) (arXiv:1905.02383), or 0."""
    return mu_from_rates(*rate_limits(fp, fn, rounds0, rounds1, alpha=1.0 - confidence_of(confidence)))


def renyi_lower_bound(fp: int, fn: int, rounds0: int, rounds1: int, order: float, confidence: float = 0.95) -> float:
    """The largest bound on D_λ, in either direction, that these counts show to be too small, or 0.

    A guess is a function of the draw, so the divergence of its two laws is at most that of the draws.
    """
    return renyi_from_rates(*rate_limits(fp, fn, rounds0, rounds1, alpha=1.0 - confidence_of(confidence)), order)


def clopper_pearson_upper(k: ArrayLike, n: ArrayLike, alpha: float) -> Any:
    """The upper limit of a probability after k successes in n trials: too small with probability at most ``alpha``."""
    successes, trials = np.asarray(k, dtype=float), np.asarray(n, dtype=float)
    if np.any(successes < 0) or np.any(successes > trials) or np.any(trials < 1):
        raise WrongCall("a count of successes must lie between 0 and the number of trials, which is at least 1")
    remaining = np.maximum(trials - successes, 1.0)
    limit = np.where(successes == trials, 1.0, special.betainccinv(successes + 1.0, remaining, alpha))
    rounded = np.minimum(1.0, limit * (1.0 + _SLACK))
    return float(rounded) if rounded.ndim == 0 else rounded


def rate_limits(fp: Any, fn: Any, rounds0: int, rounds1: int, *, alpha: float) -> tuple[Any, Any]:
    """Upper limits of both error rates, each at α/2, so that both hold together with probability 1 − α."""
    return clopper_pearson_upper(fp, rounds0, alpha / 2.0), clopper_pearson_upper(fn, rounds1, alpha / 2.0)


def epsilon_from_rates(false_positive: ArrayLike, false_negative: ArrayLike, delta: float) -> Any:
    """max(0, log((1−δ−FPR)/FNR), log((1−δ−FNR)/FPR)); a non-positive numerator gives 0."""
    fpr, fnr = np.asarray(false_positive, dtype=float), np.asarray(false_negative, dtype=float)

    def one_side(first: Array, second: Array) -> Array:
        numerator = 1.0 - delta - first
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(numerator > 0.0, np.log(numerator / second), 0.0)

    found = np.maximum(0.0, np.maximum(one_side(fpr, fnr), one_side(fnr, fpr)))
    return float(found) if found.ndim == 0 else found


def mu_from_rates(false_positive: float, false_negative: float) -> float:
    """max(0, Φ⁻¹(1 − FPR) − Φ⁻¹(FNR))."""
    if false_positive >= 1.0 or false_negative >= 1.0:
        return 0.0
    return max(0.0, float(-special.ndtri(false_positive) - special.ndtri(false_negative)))


def renyi_from_rates(false_positive: float, false_negative: float, order: float) -> float:
    """The smallest D_λ of two coins whose error rates are at most these, the larger of both directions."""
    order = strictly_above_one("the order", order)
    power = 1.0 - false_negative  # probability of the event under the neighbour, at least this
    if not power > false_positive:
        return 0.0
    coins = (power, false_positive), (1.0 - false_positive, false_negative)
    return max(_coin_divergence(*coin, order) for coin in coins)


def _coin_divergence(first: float, second: float, order: float) -> float:
    """D_λ of a coin with probability ``first`` from one with probability ``second`` < ``first``."""
    if second <= 0.0:
        return math.inf
    terms = [order * math.log(first) + (1.0 - order) * math.log(second)]
    if first < 1.0:
        terms.append(order * math.log1p(-first) + (1.0 - order) * math.log1p(-second))
    return max(0.0, float(special.logsumexp(terms)) / (order - 1.0))


@dataclass(frozen=True)
class SweepBound:
    """The best of several thresholds, each paid for."""

    epsilon_lower_bound: float
    threshold: float
    fp: int
    fn: int
    rounds0: int
    rounds1: int
    thresholds: int
    delta: float
    confidence: float

    @property
    def alpha(self) -> float:
        """What both limits at one threshold may fail with: (1 − confidence)/T."""
        return (1.0 - self.confidence) / self.thresholds


def sweep_lower_bound(
    scores0: ArrayLike, scores1: ArrayLike, thresholds: ArrayLike, delta: float = 0.0, confidence: float = 0.95
) -> SweepBound:
    """The best bound over T thresholds, each limit at α/(2T): all 2T limits hold together, by the union bound.

    Scores are large where the attack believes in the neighbour (``scores1``); above the threshold it says so. The
    thresholds must not be read from these scores: fix them beforehand or on held-out rounds.
    """
    first, second = np.ravel(scores0), np.ravel(scores1)
    levels = np.unique(np.asarray(thresholds, dtype=float))
    if len(levels) == 0 or len(first) == 0 or len(second) == 0:
        raise WrongCall("a sweep needs at least one threshold and one score of each data set")
    alpha = 1.0 - confidence_of(confidence)
    fp, fn = _errors(first, second, levels)
    limits = rate_limits(fp, fn, len(first), len(second), alpha=alpha / len(levels))
    found = np.atleast_1d(epsilon_from_rates(*limits, probability("δ", delta)))
    best = int(np.argmax(found))
    return SweepBound(
        float(found[best]), float(levels[best]), int(fp[best]), int(fn[best]), len(first), len(second), len(levels),
        float(delta), float(confidence),
    )  # fmt: skip


def rounds_needed(epsilon: float, delta: float = 0.0, confidence: float = 0.95) -> int:
    """Rounds per data set with which an attack that never errs would show this ε at this δ and confidence."""
    epsilon, delta = epsilon_argument(epsilon), probability("δ", delta)
    alpha = 1.0 - confidence_of(confidence)
    largest_rate = (1.0 - delta) / (1.0 + math.exp(min(epsilon, 700.0)))
    needed = math.log(alpha / 2.0) / math.log1p(-largest_rate)
    return math.floor(needed * (1.0 + 1e-9)) + 1


def check_rounds(rounds: int, epsilon: float, delta: float = 0.0, confidence: float = 0.95) -> None:
    """Refuse an audit that could show nothing above ``epsilon``, whatever the mechanism did."""
    rounds = positive_integer("rounds", rounds)
    needed = rounds_needed(epsilon, delta, confidence)
    if rounds < needed:
        raise TooFewRounds(
            f"{rounds} counted rounds per data set cannot show more than ε = {text(epsilon)} at δ = {text(delta)} with "
            f"confidence {text(confidence)}, not even for a mechanism that publishes its records: such an audit passes "
            f"everything. At least {needed} are needed. Ask for more rounds, or for less confidence.",
            rounds=rounds,
            needed=needed,
        )


def confidence_of(value: Any) -> float:
    """A confidence strictly between 0 and 1."""
    number = real("confidence", value)
    if not 0.0 < number < 1.0:
        raise WrongCall(
            f"confidence must lie strictly between 0 and 1, not {number!r}: it is the probability with which a lower bound "
            "holds. Choose one such as 0.95."
        )
    return number


def best_threshold(scores0: Array, scores1: Array, *, delta: float, confidence: float, candidates: int = 512) -> float:
    """Of thresholds between held-out scores the one whose bound is largest; no bound itself: it chose what it saw."""
    pooled = np.unique(np.concatenate([scores0, scores1]))
    middles = (pooled[:-1] + pooled[1:]) / 2.0 if len(pooled) > 1 else pooled
    # between two neighbouring floats there is no middle: the lower one separates as well
    middles = np.where(middles >= pooled[1:], pooled[:-1], middles) if len(pooled) > 1 else middles
    if len(middles) > candidates:
        # half of them even, a quarter crowding towards each end, where ratios are largest
        last = len(middles) - 1
        crowded = np.geomspace(1, last + 1, candidates // 4) - 1.0
        places = np.concatenate([np.linspace(0, last, candidates // 2), crowded, last - crowded])
        middles = middles[np.unique(np.clip(np.round(places), 0, last).astype(np.int64))]
    fp, fn = _errors(scores0, scores1, middles)
    limits = rate_limits(fp, fn, len(scores0), len(scores1), alpha=1.0 - confidence)
    found = np.atleast_1d(epsilon_from_rates(*limits, delta))
    # where no threshold shows anything, the one that errs least
    errors = fp / len(scores0) + fn / len(scores1)
    return float(middles[np.lexsort((errors, -found))[0]])


def _errors(scores0: Array, scores1: Array, levels: Array) -> tuple[Integers, Integers]:
    """False positives and misses at each threshold."""
    above = len(scores0) - np.searchsorted(np.sort(scores0), levels, side="right")
    return above, np.searchsorted(np.sort(scores1), levels, side="right")


def score_roc(scores0: Array, scores1: Array, points: int = 101) -> tuple[tuple[float, float], ...]:
    """(FPR, FNR) at thresholds spread over the scores: what the attack did, without confidence."""
    pooled = np.sort(np.concatenate([scores0, scores1]))
    levels = np.unique(pooled[np.linspace(0, len(pooled) - 1, points).astype(int)])
    fp, fn = _errors(scores0, scores1, levels)
    return ((1.0, 0.0), *zip((fp / len(scores0)).tolist(), (fn / len(scores1)).tolist(), strict=True))
