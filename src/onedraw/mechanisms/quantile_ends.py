"""At which ranks the ends of an interval are selected, so that it covers whatever the column is like.

Records are independent draws from some law on the lattice, ξ its q-quantile. Let N = #{x ≤ ξ}, which is at least
Binomial(n, q). A lower end above ξ has all N of them below it, so its rank distance from the wanted rank r is at least N − r;
some place has distance 0, and there are at most K + 1 places, none of which is selected with more than exp(−η·distance):

    P(lower end > ξ) ≤ E min(1, (K + 1)·exp(−η·(N − r)⁺)),        the larger r, the larger this is.

r is the largest whole number with at most half of what the level leaves. Upper ends are the mirror image. No density, no
normal law: it holds for ties, spikes and skew alike, and n and K are public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, SupportsFloat

import numpy as np
from scipy import special

NO_END = -1
"""Where no rank in the records is safe enough: the end is the declared bound, and costs nothing in coverage."""

TAIL = 12.0
"""Standard deviations beyond which a binomial is left out, and counted as a miss: 1e-30."""


def end_ranks(model: Any, n: int, weight: SupportsFloat) -> list[int]:
    """The ranks of all lower ends, then of all upper ones (counted from the top)."""
    alpha = 1.0 - model.interval
    half = [_largest_rank(n, level, model.steps, float(weight), alpha / 2.0) for level in model.levels]
    mirrored = [_largest_rank(n, 1.0 - level, model.steps, float(weight), alpha / 2.0) for level in model.levels]
    return half + mirrored


def misses(model: Any, n: int, weight: SupportsFloat, ranks: Sequence[int]) -> float:
    """The largest probability, over the quantiles, with which an interval of these ranks misses."""
    size = len(model.levels)
    pairs = zip(model.levels, ranks[:size], ranks[size:], strict=True)
    return max(
        _miss(n, level, model.steps, float(weight), low) + _miss(n, 1.0 - level, model.steps, float(weight), high)
        for level, low, high in pairs
    )


def _miss(n: int, level: float, steps: int, weight: float, rank: int) -> float:
    if rank == NO_END:
        return 0.0
    spread = TAIL * math.sqrt(n * level * (1.0 - level)) + 1.0
    counts = np.arange(max(0, math.floor(n * level - spread)), min(n, math.ceil(n * level + spread)) + 1)
    chosen = special.gammaln(n + 1.0) - special.gammaln(counts + 1.0) - special.gammaln(n - counts + 1.0)
    masses = np.exp(chosen + special.xlogy(counts, level) + special.xlog1py(n - counts, -level))
    ahead = np.minimum(0.0, math.log(steps + 1.0) - weight * np.maximum(counts - rank, 0))
    return float(masses @ np.exp(ahead)) + max(0.0, 1.0 - float(masses.sum()))


def _largest_rank(n: int, level: float, steps: int, weight: float, alpha: float) -> int:
    low, high = NO_END, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _miss(n, level, steps, weight, middle) <= alpha else (low, middle)
    return low
