"""Several releases together: ``compose`` keeps the bundle of descriptions of promises.md.

There is no single tightest description of a composition, so none is chosen: ``epsilon`` and ``delta`` take
the minimum over every route that applies.

- the sum of log-ratios, exact, where every part bounds its log-ratio (pure, bounded range);
- √Σμ², where every part is Gaussian (then exact) or pure (then an upper bound);
- the sum of each part's best Rényi curve;
- the privacy-loss distribution of the dominating pairs (``pld``), asked only where no exact route exists.

All of them hold when later *mechanisms* are chosen in view of earlier draws. When the later *promises* are chosen so
too the list is not fixed, and this is not its accountant: see ``filters``. A part that is only (ε, δ) is,
outside an event of probability δ, no worse than PureDP(ε): that is what its dominating pair says
(arXiv:1311.0776).

``group`` and ``ungroup`` go from one record to one person: what a promise for one record is worth for k of them.

γ is an entry of its own: the exact promises are composed to (ε, δ) first, then (ε, δ + (1+e^ε) Σγ) once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from onedraw.errors import InvalidBudget, PromiseRefused

from . import conversions, numbers, pld
from .curves import add_curves
from .numbers import down, fraction_down, fraction_up, positive_integer, probability, sum_up, up, weighted_sum_up
from .pld import GaussianPair, Pair, dominating_pair
from .promises import ZCDP, ApproxDP, BoundedRange, GaussianDP, Promise, PureDP, RenyiDP
from .stored import check_names


def compose(*promises: Promise, gammas: Iterable[float] = ()) -> Composed:
    """Everything promised by these releases together; ``gammas`` are total variation distances to pay for.

    Nested compositions are flattened and equal parts put side by side: the order of the arguments does not
    matter.
    """
    parts: Counter[Promise] = Counter()
    distances = [probability("γ", gamma) for gamma in gammas]
    for promise in promises:
        if isinstance(promise, Composed):
            parts.update(promise.parts)
            distances.append(promise.gamma)
        else:
            parts[promise] += 1
    gamma = sum_up(distances)
    if gamma >= 1.0:
        raise InvalidBudget(f"the total variation distances add up to {gamma!r}; from 1 on nothing is promised")
    return Composed(tuple(sorted(parts.elements(), key=lambda promise: (promise.tag, repr(promise)))), gamma)


@dataclass(frozen=True)
class Composed(Promise):
    """All of ``parts``, on the same records, the whole within total variation ``gamma`` of keeping them.

    | what | then |
    | --- | --- |
    | no parts, γ = 0 | nothing was released: ε = δ = 0, and every promise is implied |
    | γ > 0 | only (ε, δ) promises are implied |
    | a part with δ > 0 | no promise of δ = 0 is implied |
    """

    parts: tuple[Promise, ...]
    gamma: float = 0.0

    def __post_init__(self) -> None:
        self._set(parts=tuple(self.parts))
        for part in self.parts:
            if not isinstance(part, Promise) or isinstance(part, Composed):
                raise InvalidBudget(
                    f"a composition is made of single promises, not a {type(part).__name__}. "
                    "Use compose(…), which flattens compositions."
                )
        self._set(gamma=probability("γ", self.gamma))

    @cached_property
    def counted(self) -> tuple[tuple[Promise, int], ...]:
        """The parts with their multiplicities, so that 400 equal ones cost no more than one."""
        return tuple(Counter(self.parts).items())

    # ── what the composition is worth in each currency; with γ > 0 only in (ε, δ) ──

    @property
    def pure_epsilon(self) -> float:
        return math.inf if self.gamma else weighted_sum_up((part.pure_epsilon, n) for part, n in self.counted)

    @property
    def range_epsilon(self) -> float:
        # Ranges do not add under adaptive choice: where a later range sits may depend on an earlier output.
        if len(self.parts) == 1 and not self.gamma:
            return self.parts[0].range_epsilon
        return super().range_epsilon

    @property
    def gaussian_mu(self) -> float:
        found = conversions.compose_gaussian((part.gaussian_mu, times) for part, times in self.counted)
        return math.inf if self.gamma else found

    @property
    def zcdp_rho(self) -> float:
        return math.inf if self.gamma else weighted_sum_up((part.zcdp_rho, n) for part, n in self.counted)

    @property
    def renyi(self) -> RenyiDP | None:
        found = [(part.renyi, times) for part, times in self.counted]
        known = [(renyi, times) for renyi, times in found if renyi is not None]
        if self.gamma or not known or len(known) < len(found):
            return None
        below = min(renyi.below for renyi, _ in known)
        return RenyiDP(add_curves((renyi.curve, times) for renyi, times in known), below)

    def divergence(self, order: float) -> float:
        return math.inf if self.gamma else weighted_sum_up((part.divergence(order), n) for part, n in self.counted)

    @cached_property
    def failure(self) -> float:  # type: ignore[override]  # a constant of all others
        return min(weighted_sum_up((part.failure, times) for part, times in self.counted if part.failure), 1.0)

    @cached_property
    def outside_failure(self) -> Composed:
        if not self.gamma and all(part.outside_failure is part for part, _ in self.counted):
            return self
        outside: Counter[Promise] = Counter()
        for part, times in self.counted:
            outside[part.outside_failure] += times
        return Composed(tuple(outside.elements()))

    def implies(self, other: Promise) -> bool:
        return super().implies(other) or not (self.parts or self.gamma)  # nothing was released

    def _follows_from(self, stronger: Promise) -> bool:
        """Part by part: each part given must imply a part of its own here; what is left over here is free.

        Or all that is given, taken together, implies a single part.
        """
        given = stronger if isinstance(stronger, Composed) else Composed((stronger,))
        within = given.gamma <= self.gamma
        together = Composed(given.parts) if within else given
        if any(together.implies(part) for part, _ in self.counted):
            return True
        if not within:
            return False
        wanted = Counter(self.parts)
        unmatched = Counter(given.parts) - wanted
        free = list((wanted - Counter(given.parts)).elements())
        for part in unmatched.elements():
            match = next((candidate for candidate in free if part.implies(candidate)), None)
            if match is None:
                return False
            free.remove(match)
        return True

    # ── (ε, δ): first γ, then the (ε, δ) parts, then the bundle ──

    def _delta(self, epsilon: float) -> float:
        """With γ the smallest over ε' ≤ ε: what holds at a smaller ε holds at ε. One valley, found by scan and zooms."""
        best = self._delta_at(self._routes, epsilon)
        if not self.gamma:
            return best
        corner = min(epsilon, self.outside_failure.pure_epsilon)  # where the exact δ of pure parts reaches zero
        low, high = 0.0, min(epsilon, 700.0)
        best = min(best, self._delta_at(self._routes, corner), self._delta_at(self._routes, high))
        for _ in range(8):
            grid = np.linspace(low, high, 9).tolist()
            values = [self._delta_at(self._routes, smaller) for smaller in grid]
            index = values.index(min(values))
            best, low, high = min(best, values[index]), grid[max(index - 1, 0)], grid[min(index + 1, 8)]
        return best

    def _keeps(self, epsilon: float, delta: float) -> bool:
        """Cheap routes first: most budgets are kept, or not, without a privacy-loss distribution."""
        return any(
            self._delta_at(routes, epsilon) <= delta or self._epsilon(delta, routes) <= epsilon
            for routes in (replace(self._routes, pairs=None), self._routes)
        )

    def _epsilon(self, delta: float, routes: Routes | None = None) -> float:
        """An ε with exact ε(δ − (1+e^ε)γ) ≤ ε: iteration from below, with a growing step so that it ends."""
        routes = routes or self._routes
        if not self.gamma:
            return routes.epsilon(delta)
        epsilon = 0.0
        for attempt in range(200):
            rest = down(delta - conversions.total_variation_delta(epsilon, self.gamma))
            if rest < 0.0:
                return math.inf
            needed = routes.epsilon(rest)
            if needed <= epsilon:
                return epsilon
            epsilon = up(needed, relative=1e-12 * 1.1**attempt)
        return math.inf

    def _delta_at(self, routes: Routes, epsilon: float) -> float:
        """(ε, δ + (1+e^ε)γ) at exactly this ε; a smaller ε may give a smaller δ."""
        return min(1.0, sum_up([routes.delta(epsilon), conversions.total_variation_delta(epsilon, self.gamma)]))

    @cached_property
    def _routes(self) -> Routes:
        """Single promises that each hold for the whole composition, and the pairs, both outside the failure."""
        whole = self.outside_failure
        bundle: list[Promise] = list(whole.parts)
        if len(bundle) != 1:
            bundle = [PureDP(whole.pure_epsilon)] if 0.0 < whole.pure_epsilon < math.inf else []
            bundle += [GaussianDP(whole.gaussian_mu)] if 0.0 < whole.gaussian_mu < math.inf else []
            bundle += [whole.renyi] if whole.renyi is not None else []
        return Routes(tuple(bundle), _pairs(whole.counted), self.failure, nothing=not self.parts)

    # ── as text ──

    def to_dict(self) -> dict[str, Any]:
        runs = [(part, len(list(equal))) for part, equal in groupby(self.parts)]
        parts = [{"promise": part.to_dict(), "times": times} for part, times in runs]
        return super().to_dict() | {"parts": parts}

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Composed:
        parts: list[Promise] = []
        for run in values.get("parts", ()):
            check_names(run, ("promise", "times"), of="part of a composition", refuses=InvalidBudget)
            parts.extend([Promise.from_dict(run["promise"])] * positive_integer("times", run["times"]))
        return super()._from_values(values | {"parts": parts} if "parts" in values else values)

    def __str__(self) -> str:
        pieces = [f"{times} × [{part}]" if times > 1 else f"[{part}]" for part, times in self.counted]
        distance = f", within total variation {numbers.text(self.gamma)}" if self.gamma else ""
        return (" and ".join(pieces) or "nothing released") + distance


@dataclass(frozen=True)
class Routes:
    """Ways to (ε, δ): promises that each hold for the whole, and pairs for its privacy-loss distribution.

    Both hold outside an event of probability ``failure``; of ``nothing`` released there is nothing to tell.
    """

    bundle: tuple[Promise, ...]
    pairs: tuple[tuple[Pair, int], ...] | None
    failure: float
    nothing: bool

    def epsilon(self, delta: float) -> float:
        if self.nothing or delta < self.failure:
            return 0.0 if self.nothing else math.inf
        if self.failure:
            delta = max(0.0, down((delta - self.failure) / (1.0 - self.failure)))
        best = min((promise.epsilon(delta) for promise in self.bundle), default=math.inf)
        if self.pairs is None or delta == 0.0 or best == 0.0 or not pld.representable(self.pairs):
            return best
        return min(best, pld.upper_profile(self.pairs).epsilon(delta, largest=pld.largest_loss(self.pairs)))

    def delta(self, epsilon: float) -> float:
        best = 0.0 if self.nothing else min((promise.delta(epsilon) for promise in self.bundle), default=1.0)
        if self.pairs is not None and best != 0.0 and pld.representable(self.pairs):
            best = min(best, pld.upper_profile(self.pairs).delta(epsilon))
        if not self.failure or not best:
            return max(best, self.failure)
        return min(1.0, up(self.failure + (1.0 - self.failure) * best))


def _pairs(core: tuple[tuple[Promise, int], ...]) -> tuple[tuple[Pair, int], ...] | None:
    """The dominating pairs, all Gaussians as one; None if one is unknown or an exact route exists."""
    if all(isinstance(part, GaussianDP) for part, _ in core) or (len(core) == 1 and core[0][1] == 1):
        return None
    pairs: list[tuple[Pair, int]] = []
    for part, times in core:
        pair = dominating_pair(part)
        if pair is None:
            return None
        if not isinstance(pair, GaussianPair):
            pairs.append((pair, times))
    gaussians = [(part.mu, times) for part, times in core if isinstance(part, GaussianDP)]
    if gaussians:
        pairs.append((GaussianPair(conversions.compose_gaussian(gaussians)), 1))
    return tuple(pairs)


# ── from one record to one person ──

_POWER = {PureDP: 1, BoundedRange: 1, GaussianDP: 1, ZCDP: 2}
"""By which power of k the one number of a promise grows."""

_REFUSED = (
    "{promise} says nothing about {size} records at once: group privacy of a Rényi curve or a composition "
    "does not follow from its numbers. Declare one record per person, or use a PureDP, GaussianDP, ZCDP or "
    "(ε, δ) budget."
)


def group(promise: Promise, records: int) -> Promise:
    """The promise for data sets that differ in at most ``records`` records, rounded up.

    Pure and BoundedRange kε; Gaussian kμ; ZCDP k²ρ; (ε, δ) becomes (kε, δ(e^{kε} − 1)/(e^ε − 1)); a
    composition part by part. Refused for RenyiDP: no bound at the same order follows from a curve.
    """
    size = positive_integer("records", records)
    if size == 1:
        return promise
    match promise:
        case PureDP() | BoundedRange() | GaussianDP() | ZCDP():
            return type(promise)(fraction_up(Fraction(promise.number) * size ** _POWER[type(promise)]))
        case ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
            grouped = conversions.group_approx_delta(epsilon, delta, size)
            if not grouped < 1.0:
                raise PromiseRefused(
                    f"{promise} for one record leaves no promise for {size}: δ grows to {grouped:.3g}. "
                    "Use a smaller δ, a smaller ε, or fewer records per person."
                )
            return ApproxDP(fraction_up(Fraction(epsilon) * size), grouped)
        case Composed(parts=parts, gamma=gamma):
            return Composed(tuple(group(part, size) for part in parts), gamma)
    raise PromiseRefused(_REFUSED.format(promise=promise, size=size))


def ungroup(budget: Promise, records: int) -> Promise:
    """The largest promise for one record whose ``group(…, records)`` implies the budget, rounded down."""
    size = positive_integer("records", records)
    if size == 1:
        return budget
    match budget:
        case PureDP() | BoundedRange() | GaussianDP() | ZCDP():
            return type(budget)(fraction_down(Fraction(budget.number) / size ** _POWER[type(budget)]))
        case ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
            single = fraction_down(Fraction(epsilon) / size)

            def keeps(one: float) -> bool:
                return conversions.group_approx_delta(single, one, size) <= delta

            return ApproxDP(single, delta if keeps(delta) else numbers.narrowed(keeps, true=0.0, false=delta)[0])
    raise PromiseRefused(_REFUSED.format(promise=budget, size=size))
