"""How wide an interval about a released quantile is: one rung of a public ladder, selected once for both ends.

The released number v is public when its interval is asked for, so all that is left to learn is a width w, and a factor of √2
is near enough: the ladder W₀ > W₁ > … > 0 from the whole range down, each rung 1/√2 of the one before, has about fifty rungs
where the lattice has ten million places. With two public ranks, low below nq and high above,

    f(w) = min(#{x ≤ v + w} − high, low − #{x < v − w}),        which grows with w,

says by how many records both ends lie beyond them. Rung j has the cost η·d(j) − j·ln θ with θ = 3/5, d(j) the distance of 0 from
[f(W(j+1)), f(W(j))]: 0 for the narrowest rung that is wide enough. Replacing a record moves f, and so d, by at most 1.

**Coverage**, for every law of independent records. Let ξ be its q-quantile. #{x < ξ} ≤ N ≤ #{x ≤ ξ} for some N ~ Binomial(n, q).
An interval that misses ξ above has #{x ≤ v + w} ≤ N, one that misses it below #{x < v − w} ≥ N: its rung has f ≤ −t, with
t = min(high − N, N − low). If t > 0 that rung is narrower than the narrowest one wide enough, j*, and is selected with at
most exp(−ηt)·θ^(j − j*) times the probability of j*; by permute and flip, where the best rung always shows heads too, with
at most half of exp(−ηt)·θ^(j − j*). Over all j > j* the powers add up to θ/(1 − θ) = 3/2:

    P(miss) ≤ P(t ≤ 0) + A·E exp(−ηt)·[t > 0],        A = 3/2, or 3/4 by permute and flip.

The penalty for narrow rungs is what replaces the logarithm of the number of places. A larger one would let wide rungs win where a
factor of √2 holds few records, in a long tail. n, q and η are public, and so are the
ranks: nq ∓ c, with the smallest c that keeps the level. Where nq ∓ c lies outside the records that end is the declared bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray
from scipy import special

from onedraw.models.tables.place_counts import PlaceCounts

NO_END = -1
"""Where no rank in the records is safe enough: the end is the declared bound, and costs nothing in coverage."""

TAIL = 12.0
"""Standard deviations beyond which a binomial is left out, and counted as a miss: 1e-30."""

PENALTY = math.ceil(math.log(5.0 / 3.0) * 2**40)
"""−ln θ: what a rung costs for being narrower than the one before, on the lattice 2^−40."""

NARROWER = 1.5
"""θ/(1 − θ): what all narrower rungs together weigh."""


def ladder(steps: int) -> NDArray[np.int64]:
    """Widths in lattice places, from the whole range down to none, by factors of √2; each once."""
    count = 2 * steps.bit_length() + 1
    rungs = np.ceil(steps * 2.0 ** (-np.arange(count) / 2.0)).astype(np.int64)
    return np.append(np.unique(rungs)[::-1], 0)


def shortfall(places: PlaceCounts, place: int, low: int, high: int) -> NDArray[np.int64]:
    """d of every rung; ``low`` and ``high`` are ranks counted from below and from above, or NO_END."""
    rungs = ladder(places.steps)
    under, up_to = np.split(places.below(np.concatenate([place - rungs, place + rungs + 1])), 2)
    above, below = places.n - high - up_to, under - low
    missing = np.maximum(above if high != NO_END else below, below if low != NO_END else above)
    found: NDArray[np.int64] = np.maximum(0, np.maximum(missing, np.append(-missing[1:], 0)))
    return found


def end_ranks(model: Any, n: int, weight: SupportsFloat, *, flip: bool) -> list[int]:
    """The ranks of all lower ends, then of all upper ones (counted from the top)."""
    pairs = [_ranks(n, level, float(weight), 1.0 - model.interval, flip) for level in model.levels]
    return [low for low, _ in pairs] + [high for _, high in pairs]


def misses(model: Any, n: int, weight: SupportsFloat, ranks: Sequence[int], *, flip: bool) -> float:
    """The largest probability, over the quantiles, with which an interval of these ranks misses."""
    size = len(model.levels)
    pairs = zip(model.levels, ranks[:size], ranks[size:], strict=True)
    return max(_miss(n, level, float(weight), low, high, flip) for level, low, high in pairs)


def _miss(n: int, level: float, weight: float, low: int, high: int, flip: bool) -> float:
    if low == high == NO_END:
        return 0.0
    spread = TAIL * math.sqrt(n * level * (1.0 - level)) + 1.0
    counts = np.arange(max(0, math.floor(n * level - spread)), min(n, math.ceil(n * level + spread)) + 1)
    chosen = special.gammaln(n + 1.0) - special.gammaln(counts + 1.0) - special.gammaln(n - counts + 1.0)
    masses = np.exp(chosen + special.xlogy(counts, level) + special.xlog1py(n - counts, -level))
    room = np.minimum(
        n - high - counts if high != NO_END else np.inf, counts - low if low != NO_END else np.inf
    )  # t of the theorem
    missed = np.where(room <= 0, 1.0, NARROWER * (0.5 if flip else 1.0) * np.exp(-weight * np.maximum(room, 0.0)))
    return float(masses @ missed) + max(0.0, 1.0 - float(masses.sum()))


def _ranks(n: int, level: float, weight: float, alpha: float, flip: bool) -> tuple[int, int]:
    """nq ∓ c for the smallest whole c that keeps the level."""

    def at(margin: int) -> tuple[int, int]:
        return max(math.floor(n * level) - margin, NO_END), max(math.floor(n * (1.0 - level)) - margin, NO_END)

    low, high = -1, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _miss(n, level, weight, *at(middle), flip) <= alpha else (middle, high)
    return at(high)
