"""Examining a case: the exact profile of its pairs beside the promise, and the smallest fault that is caught.

The *gap* is what is promised over what is attained, in the promise's own currency (ε, range, μ, Rényi divergence at the
plan's order): 1 is attained. The planted fault multiplies the weight by a factor; the smallest factor at which the
audit says "broken" is found by false position and confirmed by the profile's own verdict.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.audit.comparison import excess, share
from onedraw.audit.results import AttackResult, AuditReport, PairFinding, Violation, json_object
from onedraw.privacy import Promise

from .case import Pair

LARGEST_FACTOR = 64.0
PRECISION = 0.002
"""How far above the smallest caught factor the reported one may lie, relatively."""


@dataclass(frozen=True)
class Examination:
    """What was found about one case."""

    case: Any
    pair: Pair
    """The pair that comes closest to the promise."""
    profile: Any
    gap: float
    delta: float
    exact_epsilon: float
    """ε at δ on that pair, from below."""
    open_pair: Pair
    """The pair whose draws are told apart most often: the one to attack with draws."""
    confidence: float = 0.95
    violation: Violation | None = None
    factor: float | None = None
    """The smallest factor on the weight that the exact audit catches; None where none up to 64, or none was sought."""
    attacks: tuple[AttackResult, ...] = ()
    left_out: tuple[str, ...] = ()
    departures: tuple[str, ...] | None = None
    """Where the program departs from its plan; None where it was not replayed."""

    @property
    def report(self) -> AuditReport:
        shown = next((one for one in (attack.breaks(self.case.promise) for attack in self.attacks) if one), None)
        finding = PairFinding(0, self.attacks, self.profile, self.violation or shown)
        return AuditReport(self.case.promise, (finding,), self.delta, self.confidence)

    @property
    def passed(self) -> bool:
        return self.report.passed and not self.departures

    @property
    def promised_epsilon(self) -> float:
        return float(self.case.promise.epsilon(self.delta))

    @property
    def attacked_epsilon(self) -> float | None:
        """The best lower bound from draws; None where no draws were made."""
        return max((attack.epsilon_lower_bound for attack in self.attacks), default=None)

    def to_dict(self) -> dict[str, Any]:
        case = self.case
        return json_object({
            "name": case.name, "model": case.model, "mechanism": case.mechanism, "key": case.key,
            "promise": case.promise.to_dict(), "promise_text": in_words(case.promise), "delta": self.delta,
            "promised_epsilon": self.promised_epsilon, "exact_epsilon": self.exact_epsilon, "gap": self.gap,
            "attained": case.attained, "reason": case.reason, "pair": self.pair.name,
            "smallest_caught_factor": self.factor, "attacked_epsilon": self.attacked_epsilon, "confidence": self.confidence,
            "attacks": [attack.to_dict() for attack in self.attacks], "left_out": list(self.left_out),
            "departures": None if self.departures is None else list(self.departures),
            "passed": self.passed, "violation": None if self.report.violation is None else self.report.violation.to_dict(),
        })  # fmt: skip


def examine(case: Any, *, thorough: bool = True, confidence: float = 0.95) -> Examination:
    """Promise against the exact profile of every pair; the pair that comes closest is kept."""
    profiles = [(pair, case.profile(pair)) for pair in case.pairs]
    delta, orders = case.delta, case.orders
    shares = [share(profile, case.promise, delta=delta, orders=orders) for _, profile in profiles]
    best = max(shares)
    closest = [one for one, attained in zip(profiles, shares, strict=True) if attained >= best * (1.0 - 1e-6)]
    shown = [max(0.0, profile.epsilon_bracket(delta)[0]) for _, profile in closest]
    pair, profile = closest[int(np.argmax(shown))]
    open_pair = max(profiles, key=lambda one: one[1].delta_bracket(0.0)[0])[0]
    broken = profile.breaks(case.promise) if thorough or best > 1.0 else None
    gap = 1.0 / best if best > 0 else math.inf
    return Examination(case, pair, profile, gap, delta, max(shown), open_pair, confidence, broken)


def smallest_caught_factor(case: Any, pair: Pair, *, gap: float = 1.0, confirm: bool = True) -> float | None:
    """The smallest factor on the weight at which the exact audit says "broken", found to 0.2 % and confirmed there.

    What is attained grows with the weight. The logarithm of the excess is nearly linear in that of the factor, so false
    position is quick; every other step is a bisection, for promises of which it is not. ``gap`` is where to begin.
    """

    def height(logarithm: float) -> float:
        profile = case.profile(pair, math.exp(logarithm))
        return math.log(max(excess(profile, case.promise, delta=case.delta, orders=case.orders), 1e-12))

    low, high, limit = 0.0, max(min(1.1 * math.log(gap), 3.0), 2.0 * PRECISION), math.log(LARGEST_FACTOR)
    at_low, at_high = height(low), height(high)
    if at_low > 0.0:
        return 1.0
    while at_high <= 0.0:
        if high >= limit:
            return None
        low, at_low, high = high, at_high, min(2.0 * high, limit)
        at_high = height(high)
    straight = True
    while high - low > PRECISION:
        step = (high - low) * (-at_low / (at_high - at_low) if straight else 0.5)
        middle = min(max(low + step + straight * PRECISION / 2, low + PRECISION / 4), high - PRECISION / 4)
        at_middle, straight = height(middle), not straight
        if at_middle > 0.0:
            high, at_high = middle, at_middle
        else:
            low, at_low = middle, at_middle
    factor = math.exp(high)
    while confirm and case.profile(pair, factor).breaks(case.promise) is None:
        factor *= 1.0 + PRECISION
        if factor > LARGEST_FACTOR:
            return None
    return factor


def in_words(promise: Promise) -> str:
    """A promise for a table: what it says of itself, its numbers to four digits."""
    return re.sub(r"\d+\.\d+(e[-+]?\d+)?", lambda number: f"{float(number[0]):.4g}", str(promise))
