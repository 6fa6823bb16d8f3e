"""What the outputs on two neighbouring data sets give away, exactly: by summation, or by quadrature in d ≤ 2.

A ``Profile`` answers for a pair of laws P (on D) and Q (on D'): the largest log-ratio, δ(ε) = sup over events of
P(E) − e^ε Q(E), the trade-off curve, Rényi divergences, each the worse of both directions and each with a bracket
[low, high]. The low end of a quadrature comes from the masses of cells: merging outcomes can only hide information, so
up to the error of those masses it is a true lower bound, whatever happens inside a cell. A theorem whose pair has a low
end above its promise is false.

Limits: densities are to be written in logarithms (a log density that underflows to −∞ in a tail is not mistaken for
zero there, because tails of mass below 1e-12 are not believed); a mode much narrower than everything around it, and
more than one of them far apart, may be missed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from onedraw.arrays import Array
from onedraw.audit import comparison
from onedraw.audit.densities import LogDensity, Pair, sides_of
from onedraw.audit.divergences import Found, OneWay
from onedraw.audit.quadrature import Cells, integrate
from onedraw.audit.results import Violation, json_object, promise_of
from onedraw.errors import WrongCall
from onedraw.privacy.numbers import epsilon_argument, narrowed, positive, probability, strictly_above_one
from onedraw.privacy.promises import Promise

Bracket = tuple[float, float]

_EVALUATIONS = {1: 1_500_000, 2: 3_000_000}
_VARIATION = {1: 1e-6, 2: 5e-5}


def exact_profile(
    logdensity: LogDensity, logdensity_neighbour: LogDensity,
    domain: Sequence[tuple[float, float]] | tuple[float, float], *, tolerance: float = 1e-9,
) -> Profile:  # fmt: skip
    """The profile of two unnormalised log densities, (N, d) → (N,), on a box of (lo, hi) pairs, d ≤ 2.

    Ends may be infinite; on a line a density may be infinite at an end, in the plane not. ``tolerance`` is aimed at,
    within a fixed number of evaluations; what was reached is in every bracket and in ``error``.
    """
    tolerance = positive("tolerance", tolerance)
    pair = Pair(logdensity, logdensity_neighbour, sides_of(domain)).located()
    dimension = len(pair.sides)
    cells, integrator = integrate(
        pair, tolerance=tolerance / 100.0, variation=_VARIATION[dimension], evaluations=_EVALUATIONS[dimension]
    )
    errors = cells.errors.sum(axis=0) / cells.masses.sum(axis=0)
    if not max(errors) <= 1e-3:
        raise WrongCall(
            f"the integral of a density was found only to within a relative {max(errors):.1g}: it may not be finite here, "
            "or be too narrow or rough. Check that the density can be normalised, or give a smaller domain."
        )
    integrator, cells = integrator.normalised(cells)
    return Profile(OneWay(cells, integrator), tolerance)


def finite_profile(probabilities: ArrayLike, probabilities_neighbour: ArrayLike, *, log: bool = False) -> Profile:
    """The profile of two probability vectors over the same outcomes, by summation.

    Fractions are summed exactly. With ``log=True`` the numbers are logarithms, unnormalised if need be.
    """
    first, second = ((_normalised if log else _logs)(values) for values in (probabilities, probabilities_neighbour))
    if first.shape != second.shape:
        raise WrongCall(
            f"two laws are over the same outcomes, but vectors of {len(first)} and {len(second)} were given"
        )
    logs = np.stack([first, second], axis=1)
    logs = logs[np.any(logs > -math.inf, axis=1)]  # without outcomes that neither law has
    masses, ratio, zeros = np.exp(logs), logs[:, 0] - logs[:, 1], np.zeros((len(logs), 1))
    rounding = 2.0**-48 * (1.0 + np.abs(np.where(np.isfinite(logs), logs, 0.0)))
    axis = np.zeros(len(logs), dtype=np.int64)
    cells = Cells(zeros, zeros, masses[:, :, None], ratio[:, None], ratio, ratio, masses * rounding, axis)
    return Profile(OneWay(cells, None), 1e-12)


def _normalised(values: ArrayLike) -> Array:
    logs = np.asarray(values, dtype=float)
    if logs.ndim != 1 or not np.all(logs < math.inf) or not np.any(logs > -math.inf):
        raise WrongCall("log-probabilities are one vector of numbers below +∞, at least one of them above −∞")
    return np.asarray(logs - special.logsumexp(logs))


def _logs(values: Any) -> Array:
    """Logarithms of a probability vector; rational numbers keep every digit."""
    entries = list(values)
    if entries and all(isinstance(entry, Fraction | int) and not isinstance(entry, bool) for entry in entries):
        if any(entry < 0 for entry in entries) or sum(entries) != 1:
            raise WrongCall("rational probabilities are not negative and add up to exactly 1")
        exact = [Fraction(entry) for entry in entries]
        return np.array([math.log(p.numerator) - math.log(p.denominator) if p else -math.inf for p in exact])
    vector = np.asarray(entries, dtype=float)
    if vector.ndim != 1 or len(vector) == 0 or not np.all(vector >= 0.0) or not abs(math.fsum(vector) - 1.0) < 1e-9:
        raise WrongCall(
            "a probability vector has entries of at least 0 that add up to 1 (to within 1e-9). "
            "For unnormalised weights pass their logarithms with log=True."
        )
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(vector) - math.log(math.fsum(vector)))


@dataclass(frozen=True, eq=False)
class Profile:
    """What one pair of laws gives away; every answer is the worse of both directions."""

    way: OneWay = field(repr=False)
    tolerance: float

    @cached_property
    def ways(self) -> tuple[OneWay, OneWay]:
        return self.way, self.way.reversed()

    @property
    def dimension(self) -> int:
        """Of the box that was integrated over; 0 of a sum."""
        return 0 if self.way.integrator is None else self.way.integrator.dimension

    # ── the log-ratio ──

    @property
    def largest_log_ratio(self) -> float:
        """sup |log p/q|; ∞ where it grows without end."""
        return self._largest.value

    @property
    def largest_log_ratio_bracket(self) -> Bracket:
        """(low, high): the low end is attained somewhere, the high end extrapolates towards the ends of the domain."""
        return self._largest.low, self._largest.high

    @property
    def _largest(self) -> Found:
        return worse(way.largest_log_ratio for way in self.ways)

    @property
    def log_ratio_range(self) -> float:
        """sup minus inf of the log-ratio: what BoundedRange is about."""
        return sum(way.largest_log_ratio.value for way in self.ways)

    @property
    def log_ratio_range_bracket(self) -> Bracket:
        first, second = (way.largest_log_ratio for way in self.ways)
        return first.low + second.low, first.high + second.high

    # ── δ and ε ──

    def delta(self, epsilon: float) -> float:
        """δ(ε) = max over both directions of ∫(p − e^ε q)₊."""
        return self._delta(epsilon_argument(epsilon))[1]

    def delta_bracket(self, epsilon: float, *, refine: bool = True) -> Bracket:
        """[low, high] around δ(ε); without ``refine`` wider and cheaper."""
        low, _, high = self._delta(epsilon_argument(epsilon), refine=refine)
        return low, high

    def epsilon(self, delta: float) -> float:
        """The smallest ε with δ(ε) ≤ δ; at δ = 0 the largest log-ratio."""
        delta = probability("δ", delta)
        return self.largest_log_ratio if delta == 0.0 else self._invert(delta, 1)

    def epsilon_bracket(self, delta: float) -> Bracket:
        delta = probability("δ", delta)
        if delta == 0.0:
            return self.largest_log_ratio_bracket
        return self._invert(delta, 0), self._invert(delta, 2)

    @property
    def accuracy(self) -> float:
        """The success of the Bayes-optimal guess at equal priors: (1 + total variation)/2."""
        return (1.0 + self.delta(0.0)) / 2.0

    @cached_property
    def error(self) -> float:
        """A bound on the error of δ(ε) at ε = 0 and, up to the variation inside cells, at every ε."""
        low, _, high = self._delta(0.0)
        return high - low

    def _delta(self, epsilon: float, *, refine: bool = True) -> Found:
        both = [way.delta(epsilon) for way in self.ways]
        if refine and self.dimension:
            floor = worse(both).low  # a direction that cannot reach the other one needs no closer look
            for index, way in enumerate(self.ways):
                if both[index].high > floor:
                    both[index] = way.delta(epsilon, tolerance=self.tolerance)
        return worse(both)

    def _invert(self, delta: float, which: int) -> float:
        """The smallest ε at which the low end (0), the value (1) or the high end (2) of δ(ε) is at most δ."""
        plane = self.dimension == 2
        refine = not (plane and which == 1)  # in the plane halving is dear, and nodes alone are close

        def holds(epsilon: float) -> bool:
            return self._delta(epsilon, refine=refine)[which] <= delta

        # the cheap brackets first: they enclose what refinement would say
        start = _first_true(lambda e: self._delta(e, refine=False)[0] <= delta, 0.0, steps=34)
        if start == math.inf:
            return math.inf
        end = _first_true(lambda e: self._delta(e, refine=False)[2] <= delta, start, steps=20)
        begin = max(0.0, start - 1e-9 * (1.0 + start))
        if holds(begin):
            return begin
        if end == math.inf:  # a δ below the error bound
            match which:
                case 0:
                    return begin
                case 1:
                    return _first_true(holds, begin, steps=34)
            return self.largest_log_ratio_bracket[1]
        end += 1e-9 * (1.0 + end)
        steps = math.ceil(math.log2(max((end - begin) / 1e-10, 2.0)))
        true, false = narrowed(holds, true=end, false=begin, steps=min(14, steps) if plane and refine else steps)
        return false if which == 0 else true

    # ── the trade-off curve and Rényi divergences ──

    def tradeoff(self, alphas: ArrayLike) -> Array:
        """The least type II error at each type I error, the smaller of both directions (Neyman and Pearson)."""
        levels = np.atleast_1d(np.asarray(alphas, dtype=float))
        if np.any((levels < 0.0) | (levels > 1.0) | np.isnan(levels)):
            raise WrongCall("a type I error lies in [0, 1]")
        return np.asarray(np.min([np.interp(levels, *way.curve) for way in self.ways], axis=0))

    def renyi(self, order: float) -> float:
        """max of D_λ(P‖Q) and D_λ(Q‖P); ∞ where the integral diverges."""
        return self._renyi(order).value

    def renyi_bracket(self, order: float) -> Bracket:
        found = self._renyi(order)
        return found.low, found.high

    def _renyi(self, order: float) -> Found:
        order = strictly_above_one("the order", order)
        return worse(way.renyi(order) for way in self.ways)

    # ── against a promise ──

    def breaks(self, promise: Promise) -> Violation | None:
        """The first place where this pair exceeds the promise by more than the error bound; None if nowhere."""
        return comparison.violation(self, promise_of(promise))

    def gap(self, promise: Promise) -> float:
        """What was promised over what this pair attains, in the promise's own currency: 1 is tight, below 1 broken."""
        attained = comparison.share(self, promise_of(promise))
        return 1.0 / attained if attained > 0.0 else math.inf

    @cached_property
    def gaussian_mu(self) -> float:
        """The smallest μ for which δ(ε) of this pair lies below that of GaussianDP(μ), over a grid of ε; from below."""
        top = self.largest_log_ratio if self.largest_log_ratio < math.inf else self._invert(1e-9, 1)
        refine = self.dimension == 1
        grid = map(float, np.linspace(0.0, min(top, 60.0), 41))
        lows = [(self._delta(epsilon, refine=refine)[0], epsilon) for epsilon in grid]
        believed = [(low, epsilon) for low, epsilon in lows if low > max(1e-12, 10.0 * self.tolerance)]
        return max((comparison.gaussian_mu(low, epsilon) for low, epsilon in believed), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """The numbers of the profile, for JSON; null is unbounded."""
        epsilons = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
        return json_object({
            "method": f"quadrature in d = {self.dimension}" if self.dimension else "summation",
            "largest_log_ratio": self.largest_log_ratio, "largest_log_ratio_bracket": self.largest_log_ratio_bracket,
            "log_ratio_range": self.log_ratio_range, "accuracy": self.accuracy,
            "error": self.error,
            "delta": {f"{epsilon:g}": self._delta(epsilon, refine=False)[1] for epsilon in epsilons},
        })  # fmt: skip


def worse(both: Iterable[Found]) -> Found:
    """Of both directions, each end by itself."""
    low, value, high = (max(parts) for parts in zip(*both, strict=True))
    return Found(low, min(max(value, low), high), high)


def _first_true(holds: Callable[[float], bool], begin: float, *, steps: int) -> float:
    """The smallest argument from ``begin`` on at which a monotone condition holds; ∞ if not below 700."""
    if holds(begin):
        return begin
    end = max(1.0, 2.0 * begin)
    while not holds(end):
        begin, end = end, 2.0 * end
        if end > 1400.0:
            return math.inf
    return narrowed(holds, true=end, false=begin, steps=steps)[0]
