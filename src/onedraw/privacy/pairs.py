"""Pairs of laws that stand for a promise: the worst pair it allows, and pairs that really occur under it.

A *dominating* pair (Zhu, Dong, Wang, arXiv:2106.08567) is at least as easy to tell apart as any two
neighbouring releases; products of dominating pairs dominate adaptive compositions (proved there), so it
gives upper bounds. A pair that *really occurs* is produced by some mechanism that keeps the promise; it
gives lower bounds, against which a certified figure is checked.

| promise | dominating pair | occurring pair |
| --- | --- | --- |
| GaussianDP(μ) | N(0,1), N(μ,1) | the same |
| PureDP(ε) | randomised response | the same |
| BoundedRange(ε) | the envelope of generalised randomised responses | one of them |
| ApproxDP(ε, δ) | revealed with probability δ, otherwise randomised response | the same |
| CornerDP(terms) | none | N(0,1), N(μ,1), μ² the largest square |
| ZCDP(ρ) | none | N(0,1), N(√(2ρ),1) |
| RenyiDP(curve) | none, unless it bounds the log-ratio | those above, for their own curves |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from onedraw.privacy.corners import CornerDP
from onedraw.privacy.curves import BoundedRangeCurve, Curve, LinearCurve, PureCurve
from onedraw.privacy.promises import ZCDP, ApproxDP, BoundedRange, GaussianDP, Promise, RenyiDP
from onedraw.privacy.rounding import down


@dataclass(frozen=True)
class GaussianPair:
    """N(0, 1) against N(μ, 1)."""

    mu: float

    @property
    def spread(self) -> float:
        """The scale of the privacy loss, by which a grid is chosen."""
        return self.mu


@dataclass(frozen=True)
class TwoPointPair:
    """Loss ``upper`` > 0 or ``lower`` < 0, and with probability ``leak`` everything is revealed.

    Randomised response has lower = −upper; generalised randomised response of range ε has lower = upper − ε.
    """

    upper: float
    lower: float
    leak: float = 0.0

    @property
    def upper_mass(self) -> float:
        """The probability p of the upper loss, from p·e^{−upper} + (1−p)·e^{−lower} = 1."""
        return math.expm1(self.lower) / math.expm1(self.lower - self.upper)

    @property
    def spread(self) -> float:
        return (self.upper - self.lower) / 2.0


@dataclass(frozen=True)
class RangeEnvelope:
    """The largest profile over all generalised randomised responses of range ε.

    It is δ(x) = c(1 − e^{(x−ε)/2})² on [−ε, ε], c = 1/(1 − e^{−ε}) (see
    ``conversions.bounded_range_delta``): the loss has density (c/2)e^{(x−ε)/2} there. No single mechanism
    need attain it, so it is an upper bound only.
    """

    epsilon: float

    @property
    def spread(self) -> float:
        return self.epsilon


Pair = GaussianPair | TwoPointPair | RangeEnvelope


def randomised_response(epsilon: float, leak: float = 0.0) -> TwoPointPair:
    """The worst pair under PureDP(ε), and with a leak under ApproxDP(ε, leak) (arXiv:1311.0776)."""
    return TwoPointPair(epsilon, -epsilon, leak)


def dominating_pair(promise: Promise) -> Pair | None:
    """A pair at least as easy to tell apart as any the promise allows; None where none is known."""
    match promise:
        case GaussianDP(mu=mu):
            return GaussianPair(mu)
        case BoundedRange(stated_epsilon=epsilon):
            return RangeEnvelope(epsilon)
        case ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
            return randomised_response(epsilon, delta)
    return randomised_response(promise.pure_epsilon) if promise.pure_epsilon < math.inf else None


def occurring_pair(promise: Promise, *, share: float = 0.5) -> GaussianPair | TwoPointPair | None:
    """A pair produced by some mechanism that keeps the promise; None where none is known.

    ``share`` places a generalised randomised response: its upper loss is that share of the range.
    """
    match promise:
        case GaussianDP(mu=mu):
            return GaussianPair(mu)
        case ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
            return randomised_response(epsilon, delta)
        case BoundedRange(stated_epsilon=epsilon):
            return TwoPointPair(share * epsilon, share * epsilon - epsilon)
        case ZCDP(rho=rho):
            return GaussianPair(down(math.sqrt(2.0 * rho)))
        case CornerDP(terms=terms) if terms[0].square:
            return GaussianPair(down(math.sqrt(terms[0].square)))
        case RenyiDP(curve=curve):
            return _occurring_under(curve, share)
    return randomised_response(promise.pure_epsilon) if promise.pure_epsilon < math.inf else None


def _occurring_under(curve: Curve, share: float) -> GaussianPair | TwoPointPair | None:
    match curve:
        case LinearCurve(rho=rho):
            return GaussianPair(down(math.sqrt(2.0 * rho)))
        case PureCurve(epsilon=epsilon):
            return randomised_response(epsilon)
        case BoundedRangeCurve(epsilon=epsilon):
            return TwoPointPair(share * epsilon, share * epsilon - epsilon)
    return None
