"""Examining a case: the exact profile of its pairs beside the promise, and the smallest fault that is caught.

The *gap* is what is promised over what is attained, in the promise's own currency (ε, range, μ, Rényi divergence at the
plan's order): 1 is attained. The planted fault multiplies the weight by a factor; the smallest factor at which the audit
says "broken" is found by false position and confirmed by the profile's own verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special

from onedraw.audit.results import AttackResult, AuditReport, PairFinding, Violation
from onedraw.privacy import ZCDP, ApproxDP, BoundedRange, GaussianDP, Promise, PureDP, RenyiDP
from onedraw.privacy.corners import CornerDP

from .case import Pair
from .catalogue import key, promised_at

LARGEST_FACTOR = 64.0
PRECISION = 0.002
"""How far above the smallest caught factor the reported one may lie, relatively."""

PURE_ORDERS = (2.0, 8.0)


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
    """The smallest factor on the weight that the exact audit catches; None where none up to 64 is, or none was sought."""
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
        return _with_nulls({
            "name": case.name, "model": case.model, "mechanism": case.mechanism, "key": key(case),
            "promise": case.promise.to_dict(), "promise_text": in_words(case.promise), "delta": self.delta,
            "promised_epsilon": self.promised_epsilon, "exact_epsilon": self.exact_epsilon, "gap": self.gap,
            "attained": case.attained, "reason": case.reason, "pair": self.pair.name, "smallest_caught_factor": self.factor,
            "attacked_epsilon": self.attacked_epsilon, "confidence": self.confidence,
            "attacks": [attack.to_dict() for attack in self.attacks], "left_out": list(self.left_out),
            "departures": None if self.departures is None else list(self.departures),
            "passed": self.passed, "violation": None if self.report.violation is None else self.report.violation.to_dict(),
        })  # fmt: skip


# ── the exact part ─────────────────────────────────────────────────────────────────────────────────────────


def examine(case: Any, *, thorough: bool = True, confidence: float = 0.95) -> Examination:
    """Promise against the exact profile of every pair; the pair that comes closest is kept."""
    profiles = [(pair, case.profile(pair)) for pair in case.pairs]
    shares = [share(profile, case) for _, profile in profiles]
    delta, best = promised_at(case), max(shares)
    closest = [one for one, attained in zip(profiles, shares, strict=True) if attained >= best * (1.0 - 1e-6)]
    shown = [epsilon_from_below(profile, delta) for _, profile in closest]
    pair, profile = closest[int(np.argmax(shown))]
    open_pair = max(profiles, key=lambda one: one[1].delta_bracket(0.0)[0])[0]
    broken = profile.breaks(case.promise) if thorough or best > 1.0 else None
    gap = 1.0 / best if best > 0 else math.inf
    return Examination(case, pair, profile, gap, delta, max(shown), open_pair, confidence, broken)


def share(profile: Any, case: Any) -> float:
    """What the pair attains over what is promised, from below, in the promise's own currency; above 1: broken."""
    promise: Promise = case.promise
    if promise.pure_epsilon < math.inf:
        by_ratio = profile.largest_log_ratio_bracket[0] / promise.pure_epsilon
        return float(max(0.0, by_ratio, profile.log_ratio_range_bracket[0] / promise.range_epsilon))
    if isinstance(promise, ApproxDP):
        return epsilon_from_below(profile, promise.stated_delta) / promise.stated_epsilon
    if isinstance(promise, GaussianDP):
        levels = [multiple * promise.mu for multiple in (0.0, 1.0, 2.0, 3.0)]
        return max(gaussian_mu(profile.delta_bracket(level)[0], level) for level in levels) / promise.mu
    if isinstance(promise, CornerDP):
        return epsilon_from_below(profile, promised_at(case)) / promise.epsilon(promised_at(case))
    assert promise.renyi is not None
    order = None if case.plan is None else case.plan.parameters.get("order")
    orders = PURE_ORDERS if order is None else (order, 1.0 + (order - 1.0) / 2.0)
    return float(max(profile.renyi_bracket(one)[0] / promise.renyi.at_order(one) for one in orders))


def excess(profile: Any, case: Any) -> float:
    """Above 1 exactly where `share` is; for (ε, δ) the quotient of δ at ε, which is quicker to find than that of ε."""
    promise: Promise = case.promise
    delta = promised_at(case)
    if isinstance(promise, ApproxDP | CornerDP) and delta > 0.0:
        return float(profile.delta_bracket(promise.epsilon(delta))[0]) / delta
    return share(profile, case)


def epsilon_from_below(profile: Any, delta: float) -> float:
    """An ε at which the pair's δ is still above the given one, to 1e-4 the largest; at δ = 0 the largest log-ratio."""
    if delta == 0.0:
        return max(0.0, float(profile.largest_log_ratio_bracket[0]))
    low, high = 0.0, 1.0
    if profile.delta_bracket(0.0)[0] <= delta:
        return 0.0
    while profile.delta_bracket(high)[0] > delta:
        low, high = high, 2.0 * high
        if high > 1024.0:
            return low
    while high - low > 1e-4 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if profile.delta_bracket(middle)[0] > delta else (low, middle)
    return low


def gaussian_mu(delta: float, epsilon: float) -> float:
    """The μ whose exact profile Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) is δ at ε; 0 where δ is not told from 0."""
    if delta < 1e-11:
        return 0.0

    def excess(mu: float) -> float:
        return (
            float(special.ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * special.ndtr(-mu / 2 - epsilon / mu))
            - delta
        )

    return float(optimize.brentq(excess, 1e-9, 100.0, xtol=1e-14)) if excess(100.0) > 0 else 100.0


def smallest_caught_factor(case: Any, pair: Pair, *, gap: float = 1.0, confirm: bool = True) -> float | None:
    """The smallest factor on the weight at which the exact audit says "broken", found to 0.2 % and confirmed there.

    What is attained grows with the weight. The logarithm of the excess is nearly linear in that of the factor, so false
    position is quick; every other step is a bisection, for promises of which it is not. ``gap`` is where to begin.
    """

    def height(logarithm: float) -> float:
        return math.log(max(excess(case.profile(pair, math.exp(logarithm)), case), 1e-12))

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
    """A promise for a table: its kind and its number, to four digits."""
    match promise:
        case GaussianDP(mu=mu):
            return f"Gaussian DP, μ = {mu:.4g}"
        case ZCDP(rho=rho):
            return f"zCDP, ρ = {rho:.4g}"
        case BoundedRange(stated_epsilon=epsilon):
            return f"bounded range, ε = {epsilon:.4g}"
        case PureDP(stated_epsilon=epsilon):
            return f"pure, ε = {epsilon:.4g}"
        case ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
            return f"ε = {epsilon:.4g}, δ = {delta:.3g}"
        case CornerDP(terms=terms):
            corners = sum(corner.times for corner in terms)
            return f"{corners} corners, μ = {math.sqrt(terms[0].square):.4g}, κ = {max(c.shift for c in terms):.4g}"
        case RenyiDP(limit=limit):
            return f"Rényi DP below order {limit:.4g}"
    return str(promise)


def _with_nulls(document: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: null stands for an unbounded number."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in document.items()
    }
