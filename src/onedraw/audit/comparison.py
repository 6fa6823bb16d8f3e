"""A profile against a promise: where it is exceeded beyond the error bound, and how much of it a pair uses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scipy import optimize, special

from onedraw.audit.results import Violation
from onedraw.privacy.promises import ZCDP, ApproxDP, BoundedRange, GaussianDP, Promise, PureDP, RenyiDP
from onedraw.privacy.tradeoff import epsilon_grid

if TYPE_CHECKING:
    from onedraw.audit.profiles import Profile

_GRID = 65
"""Values of ε at which δ is compared."""

_QUESTIONS = {1: 65, 2: 4}
"""At how many of them cells may be halved to decide, by dimension: in the plane that is dear."""

_ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0, 64.0)


def violation(profile: Profile, promise: Promise) -> Violation | None:
    """The first place where the profile's low end exceeds the promise: log-ratio, range, δ(ε), Rényi; or None."""
    ratio, spread = profile.largest_log_ratio_bracket[0], profile.log_ratio_range_bracket[0]
    if ratio > _granted(promise.pure_epsilon):
        return Violation(promise, "log-ratio", None, promise.pure_epsilon, ratio)
    if spread > _granted(promise.range_epsilon):
        return Violation(promise, "range", None, promise.range_epsilon, spread)
    found = _delta_violation(profile, promise)
    if found or promise.renyi is None or isinstance(promise, PureDP | BoundedRange | ApproxDP | GaussianDP):
        return found  # of the last ones δ(ε) has said it all
    for order in _orders(promise.renyi.limit):
        bound, low = promise.renyi.at_order(order), profile.renyi_bracket(order)[0]
        if low > _granted(bound):
            return Violation(promise, "renyi", order, bound, low)
    return None


def _delta_violation(profile: Profile, promise: Promise) -> Violation | None:
    """The ε at which the low end of δ exceeds the promise most; cells are halved only where that may decide."""
    grid = [(epsilon, promise.delta(epsilon)) for epsilon in map(float, epsilon_grid(promise, _GRID))]
    seen = [(*point, *profile.delta_bracket(point[0], refine=False)) for point in grid]
    if profile.dimension and not any(low > promised for _, promised, low, _ in seen):
        open_questions = [point for point in seen if point[3] > point[1]]
        open_questions.sort(key=lambda point: -point[3] / max(point[1], 1e-300))
        asked = open_questions[: _QUESTIONS[profile.dimension]]
        seen = [(*point[:2], *profile.delta_bracket(point[0])) for point in asked]
    found = [Violation(promise, "delta", *point[:3]) for point in seen if point[2] > point[1]]
    return max(found, key=lambda one: one.factor, default=None)


def share(
    profile: Profile, promise: Promise, *, delta: float | None = None, orders: Sequence[float] | None = None
) -> float:
    """What the pair attains over what is promised, from below, in the promise's own currency; above 1: broken.

    The log-ratio and its range over ε (pure, bounded range), ε(δ) at the stated δ, the μ that δ(ε) asks for, Rényi
    divergences at ``orders``; for other promises ε(δ) at ``delta``. Without them: over all orders, and over all powers
    of ten.
    """
    if promise.pure_epsilon < math.inf:
        by_ratio = profile.largest_log_ratio_bracket[0] / promise.pure_epsilon
        return max(0.0, by_ratio, profile.log_ratio_range_bracket[0] / promise.range_epsilon)
    match promise:
        case GaussianDP(mu=mu):
            levels = [multiple * mu for multiple in (0.0, 1.0, 2.0, 3.0)]
            return max(gaussian_mu(profile.delta_bracket(level)[0], level) for level in levels) / mu
        case RenyiDP() | ZCDP():
            assert promise.renyi is not None
            chosen = _orders(promise.renyi.limit) if orders is None else orders
            return max(profile.renyi_bracket(order)[0] / promise.renyi.at_order(order) for order in chosen)
    if isinstance(promise, ApproxDP):
        delta = promise.stated_delta
    deltas = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6) if delta is None else (delta,)
    promised = [(promise.epsilon(delta), delta) for delta in deltas]
    return max(
        (profile.epsilon_bracket(delta)[0] / epsilon for epsilon, delta in promised if epsilon < math.inf), default=0.0
    )


def excess(profile: Profile, promise: Promise, *, delta: float, orders: Sequence[float]) -> float:
    """Above 1 exactly where `share` is; for (ε, δ) the quotient of δ at ε, which is quicker to find than that of ε."""
    if delta > 0.0 and not isinstance(promise, GaussianDP | RenyiDP | ZCDP):
        return profile.delta_bracket(promise.epsilon(delta))[0] / delta
    return share(profile, promise, delta=delta, orders=orders)


def gaussian_mu(delta: float, epsilon: float) -> float:
    """The μ whose exact profile Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) is δ at ε; 0 where δ is not told from 0."""
    if delta < 1e-11:
        return 0.0

    def more(mu: float) -> float:
        tail = math.exp(epsilon) * special.ndtr(-mu / 2 - epsilon / mu)
        return float(special.ndtr(mu / 2 - epsilon / mu) - tail) - delta

    return float(optimize.brentq(more, 1e-9, 100.0, xtol=1e-14)) if more(100.0) > 0 else 100.0


def _orders(limit: float) -> list[float]:
    """Orders at which a Rényi promise is checked: all below its limit, some of them close to it."""
    close = [] if limit == math.inf else [1.0 + (limit - 1.0) * share for share in (0.25, 0.5, 0.75, 0.95)]
    return sorted({order for order in (*_ORDERS, *close) if order < limit})


def _granted(promised: float) -> float:
    """What a promise grants, and a little rounding more."""
    return promised * (1.0 + 1e-12) + 1e-12
