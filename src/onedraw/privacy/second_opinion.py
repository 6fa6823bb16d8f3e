"""A second opinion: no figure is certified below what another accountant finds for a pair that really occurs.

Our own figures are upper bounds. A privacy-loss distribution rounded *down* (``pld.lower_profile``), of a
pair that some mechanism keeping the promise really produces, is a lower bound. A figure below it is wrong,
whatever the derivation. For BoundedRange the pair is the worst single generalised randomised response, not
the envelope, which is only an upper bound. Where no such pair is known the check is skipped, and that is
said.
"""

from __future__ import annotations

import math
from fractions import Fraction

from onedraw.errors import SecondOpinion
from onedraw.privacy.composition import Composed
from onedraw.privacy.curves import BoundedRangeCurve
from onedraw.privacy.numbers import down, epsilon_argument, fraction_down, probability, text
from onedraw.privacy.pld import GaussianPair, Pair, TwoPointPair, occurring_pair
from onedraw.privacy.promises import Promise

SHARES = (0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 0.97)
"""Where the upper loss of a generalised randomised response is tried, as shares of its range."""


def pld_optimistic_epsilon(promise: Promise, delta: float) -> float | None:
    """A lower bound on ε at this δ for the worst mechanism that keeps ``promise``; None if no pair is known.

    The total variation distance of a composition is left out, which can only lower the bound.
    """
    delta = probability("δ", delta)
    parts = promise.counted if isinstance(promise, Composed) else ((promise, 1),)
    ranges = any(isinstance(getattr(part.renyi, "curve", None), BoundedRangeCurve) for part, _ in parts)
    shares = SHARES if ranges else SHARES[:1]
    found: list[float] = []
    for share in shares:
        pairs = [(occurring_pair(part, share=share), times) for part, times in parts]
        known = tuple((pair, times) for pair, times in pairs if pair is not None)
        if len(known) < len(pairs):
            return None
        found.append(_lower_epsilon(known, delta))
    return max(found)


def certify(promise: Promise, *, epsilon: float, delta: float) -> str:
    """A sentence for the certificate, or ``SecondOpinion`` if the figure is below the optimistic estimate."""
    epsilon = epsilon_argument(epsilon)
    estimate = pld_optimistic_epsilon(promise, delta)
    if estimate is None:
        return (
            "skipped: no pair of laws that really occurs is known for this promise, so a privacy-loss "
            "accountant has nothing to compare with"
        )
    if epsilon < estimate:
        raise SecondOpinion(
            f"ε = {text(epsilon)} at δ = {text(delta)}, about to be certified, is too small: by its privacy-loss distribution a "
            f"mechanism that keeps this promise has at least {estimate:.6g} there. Nothing is released; please report it.",
            epsilon=epsilon, delta=delta, estimate=estimate,
        )  # fmt: skip
    return f"confirmed by a privacy-loss accountant: its optimistic estimate is ε = {estimate:.6g} at δ = {text(delta)}"


def _lower_epsilon(parts: tuple[tuple[GaussianPair | TwoPointPair, int], ...], delta: float) -> float:
    if not parts:
        return 0.0
    if delta == 0.0:  # only the largest loss counts: exact, and needs no grid
        points = [(pair, times) for pair, times in parts if isinstance(pair, TwoPointPair) and not pair.leak]
        total = sum((Fraction(pair.upper) * times for pair, times in points), Fraction(0))
        return fraction_down(total) if len(points) == len(parts) else math.inf
    (first, times), *others = parts
    if isinstance(first, TwoPointPair) and times == 1 and not others:
        return _two_point_epsilon(first, delta)
    from onedraw.privacy import pld

    pairs: tuple[tuple[Pair, int], ...] = parts
    return pld.lower_profile(pairs).epsilon(delta, largest=pld.largest_loss(pairs))


def _two_point_epsilon(pair: TwoPointPair, delta: float) -> float:
    """Of one pair of two losses: δ(ε) = leak + (1 − leak)·p·(1 − e^{ε − upper}), solved for ε and rounded down; no grid."""
    if delta <= pair.leak:
        return math.inf if delta < pair.leak else down(pair.upper)
    missed = (delta - pair.leak) / ((1.0 - pair.leak) * pair.upper_mass)
    return max(0.0, down(pair.upper + math.log1p(-missed))) if missed < 1.0 else 0.0
