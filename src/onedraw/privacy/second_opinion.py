"""The second opinion: no certified ε may lie below that of a pair of laws which some mechanism that keeps the promise
produces.

| promise | dominating pair | occurring pair |
| --- | --- | --- |
| GaussianDP(μ) | N(0,1), N(μ,1) | the same |
| PureDP(ε) | randomised response | the same |
| BoundedRange(ε) | the envelope of generalised randomised responses | one of them |
| ApproxDP(ε, δ) | revealed with probability δ, otherwise randomised response | the same |
| CornerDP(terms) | none | N(0,1), N(μ,1), μ² the largest square |
| ZCDP(ρ) | none | N(0,1), N(√(2ρ),1) |
| RenyiDP(AveragedDirectionsCurve) | none | `DirectionPair` |
| RenyiDP(curve) | none, unless it bounds the log-ratio | those above, for their own curves |

A composition of such pairs occurs too, so their privacy-loss distribution, every rounding downwards
(`pld.lower_profile`), is a lower bound: a figure below it is wrong, whatever its derivation, and nothing is released.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from onedraw.errors import SecondOpinion

from . import pld
from .averaged_directions import AveragedDirectionsCurve
from .curves import BoundedRangeCurve, LinearCurve, PureCurve, RepeatedCurve
from .numbers import down, epsilon_argument, fraction_down, probability, text
from .pld import GaussianPair, TwoPointPair, randomised_response
from .promises import ZCDP, ApproxDP, BoundedRange, GaussianDP, Promise, RenyiDP
from .retired import CornerDP


@dataclass(frozen=True)
class DirectionPair:
    """A decision along a uniform direction e, of log-odds ±s·e₁/2: a linear loss, opposite records, all others in
    balance."""

    dimension: int
    range: float

    @property
    def spread(self) -> float:
        return self.range / (2.0 * math.sqrt(self.dimension))

    @property
    def reach(self) -> float:
        return self.range / 2.0

    def rounded_down(self, interval: float) -> Any:
        """The loss is ±s|e₁|/2, e₁² ~ Beta(½, (d−1)/2): both signs go down to the next multiple, the upper one is made
        less likely."""
        cells = np.arange(math.ceil(self.reach / interval) + 1)
        edges = np.minimum(cells * interval / self.reach, 1.0)
        others = (self.dimension - 1) / 2.0
        below = special.betainc(0.5, others, edges**2) if others else np.where(edges >= 1.0, 1.0, 0.0)
        masses: dict[int, float] = defaultdict(float)
        for cell, share in zip(cells[:-1].tolist(), np.diff(below).tolist(), strict=True):
            upper = share * float(special.expit(cell * interval))
            masses[cell] += upper
            masses[-cell - 1] += share - upper
        return pld.distribution(dict(masses), 0.0, interval, pessimistic=False)


Occurring = GaussianPair | TwoPointPair | DirectionPair


def occurring_pair(promise: Promise, *, share: float = 0.5) -> Occurring | None:
    """A pair produced by some mechanism that keeps the promise; None where none is known.

    ``share`` places a generalised randomised response: its upper loss is that share of the range.
    """
    match promise:
        case GaussianDP(mu=mu):
            return GaussianPair(mu)
        case ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
            return randomised_response(epsilon, delta)
        case BoundedRange(stated_epsilon=epsilon) | RenyiDP(curve=BoundedRangeCurve(epsilon=epsilon)):
            return TwoPointPair(share * epsilon, share * epsilon - epsilon)
        case ZCDP(rho=rho) | RenyiDP(curve=LinearCurve(rho=rho)):
            return GaussianPair(down(math.sqrt(2.0 * rho)))
        case CornerDP(terms=terms) if terms[0].square:
            return GaussianPair(down(math.sqrt(terms[0].square)))
        case RenyiDP(curve=AveragedDirectionsCurve(dimension=d, reach=reach, rows=1, noise=None)):
            return DirectionPair(d, reach)
        case RenyiDP(curve=curve):
            return randomised_response(curve.epsilon) if isinstance(curve, PureCurve) else None
    return randomised_response(promise.pure_epsilon) if promise.pure_epsilon < math.inf else None


MAX_GRID_LOSS = 1e5
"""Largest privacy loss of all pairs together that is put on a grid; 1e5 takes some seconds, 1e6 minutes."""

SHARES = (0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 0.97)
"""Where the upper loss of a generalised randomised response is tried, as shares of its range: the worst single one
counts, not the envelope, which is only an upper bound."""


def certify(promise: Promise, *, epsilon: float, delta: float) -> str:
    """A sentence for the certificate, or ``SecondOpinion`` if the figure is below the optimistic estimate."""
    epsilon = epsilon_argument(epsilon)
    estimate = pld_optimistic_epsilon(promise, delta)
    if estimate is None and epsilon > MAX_GRID_LOSS / 10.0:
        return "skipped: a privacy-loss accountant's grid does not hold losses this large"
    if estimate is None:
        return (
            "skipped: no pair of laws that really occurs is known for this promise, so a privacy-loss "
            "accountant has nothing to compare with"
        )
    if epsilon < estimate:
        raise SecondOpinion(
            f"ε = {text(epsilon)} at δ = {text(delta)}, about to be certified, is too small: by its privacy-loss "
            "distribution a "
            f"mechanism that keeps this promise has at least {estimate:.6g} there. Nothing is released; please "
            "report it.",
            epsilon=epsilon, delta=delta, estimate=estimate,
        )  # fmt: skip
    return f"confirmed by a privacy-loss accountant: its optimistic estimate is ε = {estimate:.6g} at δ = {text(delta)}"


def pld_optimistic_epsilon(promise: Promise, delta: float) -> float | None:
    """A lower bound on ε at this δ for the worst mechanism that keeps ``promise``; None if no pair is known, or no grid
    holds its losses.

    The total variation distance of a composition is left out, which can only lower the bound.
    """
    delta = probability("δ", delta)
    counted = [_single(part, times) for part, times in promise.counted]
    said = [part.curve if isinstance(part, RenyiDP) else part for part, _ in counted]
    found: list[float] = []
    for share in SHARES if any(isinstance(one, BoundedRange | BoundedRangeCurve) for one in said) else SHARES[:1]:
        pairs = [(occurring_pair(part, share=share), times) for part, times in counted]
        known = tuple((pair, times) for pair, times in pairs if pair is not None)
        if len(known) < len(pairs):
            return None
        if (estimate := _lower_epsilon(known, delta)) is None:
            return None
        found.append(estimate)
    return max(found)


def _single(part: Promise, times: int) -> tuple[Promise, int]:
    """Steps of a repeated curve one by one: their composition occurs."""
    match part:
        case RenyiDP(curve=RepeatedCurve(curve=curve, times=steps), below=below):
            return RenyiDP(curve, below), times * steps
    return part, times


def _lower_epsilon(parts: tuple[tuple[Occurring, int], ...], delta: float) -> float | None:
    """ε of pairs that occur, rounded down; without a grid where there is a formula, None where no grid is large enough."""
    if not parts:
        return 0.0
    if delta == 0.0:  # only the largest loss counts
        if not all(
            isinstance(pair, DirectionPair) or (isinstance(pair, TwoPointPair) and not pair.leak) for pair, _ in parts
        ):
            return math.inf
        losses = [(pair.upper if isinstance(pair, TwoPointPair) else down(pair.reach), times) for pair, times in parts]
        return fraction_down(sum((Fraction(loss) * times for loss, times in losses), Fraction(0)))
    (pair, times), *others = parts
    if not isinstance(pair, TwoPointPair) or times > 1 or others:
        if sum(pair.reach * times for pair, times in parts) > MAX_GRID_LOSS:
            return None
        return pld.lower_profile(parts).epsilon(delta, largest=pld.largest_loss(parts))
    if delta <= pair.leak:
        return math.inf if delta < pair.leak else down(pair.upper)
    # δ(ε) = leak + (1 − leak)·p·(1 − e^{ε − upper}), solved for ε
    missed = (delta - pair.leak) / ((1.0 - pair.leak) * pair.upper_mass)
    return max(0.0, down(pair.upper + math.log1p(-missed))) if missed < 1.0 else 0.0
