"""Exact selection: one of K candidates with probability exactly ∝ exp(−c_k·2^−b), c_k whole numbers.

The exponential mechanism is pure only if its probabilities are. The usual program, the largest of score plus
Gumbel noise, is not: a noise of 53 random bits never exceeds 40, so a candidate further behind is never chosen, while
a neighbouring data set may put it within reach (methods/candidates/proof.md; Mironov, CCS 2012, for the same fault in Laplace
noise). Here every comparison is made on whole numbers, with as many random bits as it takes (C. Canonne, G. Kamath,
T. Steinke, arXiv:2004.00010, sample discrete Gaussians in this spirit).

Rejection from a dyadic envelope. With γ_k = (c_k − min c)·2^−b, r a rational just above ln 2 and j_k = ⌊γ_k/r⌋,

    exp(−γ_k) ≤ 2^−j_k,        so propose k with probability ∝ 2^−j_k, accept with probability 2^j_k·exp(−γ_k).

The proposal needs one uniform whole number. The acceptance compares the bits of a uniform number with lower and upper
bounds of 2^j·exp(−γ), both whole numbers at a stated precision, and asks for more bits and more precision until they
decide. The expected number of proposals is about 2 for scattered costs, and never above K (the best candidate is always accepted).

**What is not hidden**: how long a selection takes; it depends on the costs, unless proposals are padded (padding.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import errors, privacy
from onedraw.arrays import Integers
from onedraw.plans import Plan
from onedraw.samplers.padding import PICK_GAMMA, tries_for
from onedraw.samplers.sampler import Sampler

Costs = Integers

STEP_NUMERATOR, STEP_DENOMINATOR = 89, 128
"""r = 89/128 = 0.6953 > ln 2: a candidate r further behind may have half the envelope."""

LAST_BUCKET = 192
"""Candidates further behind share one envelope, 2^−192: they are proposed too, only hardly ever."""

LEAST_ACCEPTED = 0.329925
PROPOSALS = tries_for(1, LEAST_ACCEPTED, PICK_GAMMA)
"""Of a padded pick: 111, for at least so many proposals are accepted whatever the costs are (padding.md)."""

FIRST_PRECISION, LARGEST_COST = 64, 2**62

PAIRS_A_SECOND, COUNTS_A_SECOND = 8e7, 1e6
"""Records times candidates; of a likelihood of counts, whose loss is a sum over a hundred of them."""


@dataclass(frozen=True)
class WholeNumbers(Sampler):
    """What the three samplers that select share: exact in whole numbers, no assumption about real arithmetic is left."""

    randomness: ClassVar[str] = "numpy"
    compiling: ClassVar[float] = 0.0
    of: ClassVar[str]
    """What it selects, for a refusal."""

    def exactness(self, plan: Plan) -> privacy.Exact:
        self.check_own(plan, self.of)
        return privacy.Exact()


# ── exact selection ──────────────────────────────────────────────────────────────────────────────────────────────


def select(costs: Costs, generator: Generator, *, bits: int) -> int:
    """An index k with probability exactly ∝ exp(−costs[k]·2^−bits).

    ``costs`` are int64, of either sign, spread over less than 2^62; only differences count.
    """
    return select_run(costs, np.ones(costs.shape, dtype=np.int64), generator, bits=bits)[0]


def select_run(costs: Costs, lengths: Costs, generator: Generator, *, bits: int) -> tuple[int, int]:
    """Of runs of ``lengths[k]`` candidates each, all of cost ``costs[k]``: which run, and which candidate of it.

    The same law as `select` on all candidates one by one; lengths are at least 1 and add up to less than 2^62.
    """
    envelope = Envelope(costs, lengths, bits)
    while True:
        if (found := envelope.proposal(generator)) is not None:
            return found


class Envelope:
    """The dyadic envelope of such runs."""

    def __init__(self, costs: Costs, lengths: Costs, bits: int) -> None:
        self.behind, self.lengths, self.bits = _behind(costs), lengths, bits
        self.order, self.up_to, _, self.counts = _sorted_runs(self.behind, lengths, bits)
        self.masses = [count << (LAST_BUCKET - bucket) for bucket, count in enumerate(self.counts)]
        self.total = sum(self.masses)

    def proposal(self, generator: Generator) -> tuple[int, int] | None:
        """One proposal: the run and the candidate of it where it is accepted."""
        place, first = uniform_below(self.total, generator), 0
        for bucket, mass in enumerate(self.masses):
            if place < mass:
                break
            place, first = place - mass, first + self.counts[bucket]
        candidate = first + (place >> (LAST_BUCKET - bucket))
        at = int(np.searchsorted(self.up_to, candidate, side="right"))
        index = int(self.order[at])
        if accepts(int(self.behind[index]), self.bits, bucket, generator):
            return index, candidate - int(self.up_to[at] - self.lengths[index])
        return None


def flip_run(costs: Costs, lengths: Costs, generator: Generator, *, bits: int) -> tuple[int, int]:
    """Permute and flip (McKenna and Sheldon, NeurIPS 2020): every candidate has a coin that shows heads with probability
    exp(−γ), γ its distance behind the best, and one of those with heads is taken, all alike. Exactly.

    Never further behind than `select_run` on average, and as private where what is promised is a pure ε. A coin is two:
    j fair ones, which all have to show heads, and one of probability 2^j·exp(−γ), tossed only for who is looked at. How
    many candidates of a bucket pass the fair ones is a binomial, drawn for the bucket as a whole.
    """
    behind = _behind(costs)
    order, up_to, ends, counts = _sorted_runs(behind, lengths, bits)
    passed = [_thinned(count, bucket, generator) for bucket, count in enumerate(counts)]
    seen: set[int] = set()
    while True:  # the best candidate passes and is accepted for sure, so this ends
        place, bucket = uniform_below(sum(passed), generator), 0
        while place >= passed[bucket]:
            place, bucket = place - passed[bucket], bucket + 1
        candidate = ends[bucket] - counts[bucket] + uniform_below(counts[bucket], generator)
        if candidate in seen:  # who passed is a set that nobody chose: any of those not looked at yet is as likely
            continue
        at = int(np.searchsorted(up_to, candidate, side="right"))
        index = int(order[at])
        if accepts(int(behind[index]), bits, bucket, generator):
            return index, candidate - int(up_to[at] - lengths[index])
        seen.add(candidate)
        passed[bucket] -= 1


def _sorted_runs(behind: Costs, lengths: Costs, bits: int) -> tuple[Costs, Costs, list[int], list[int]]:
    """(order, up_to, ends, counts): the runs by bucket, how many candidates there are up to each run, up to each bucket's end, and
    in each bucket."""
    if not 0 <= bits <= 40:
        raise errors.WrongCall(f"The lattice of a selection is 2^−b with b between 0 and 40, but b = {bits} was given.")
    # j = ⌊γ/r⌋. γ ≥ 192·r is the last bucket and cut off first: the quotient of anything below fits in 64 bits for b ≤ 40.
    near = np.minimum(behind, -((-LAST_BUCKET * STEP_NUMERATOR << bits) // STEP_DENOMINATOR))
    buckets = np.minimum(near * STEP_DENOMINATOR // (STEP_NUMERATOR << bits), LAST_BUCKET)
    order = np.argsort(buckets, kind="stable")
    up_to = np.cumsum(lengths[order])
    last = np.searchsorted(buckets[order], np.arange(LAST_BUCKET + 1), side="right")
    ends = np.concatenate([[0], up_to])[last].tolist()
    return order, up_to, ends, [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _thinned(count: int, halvings: int, generator: Generator) -> int:
    """How many of ``count`` pass so many fair coins each: a binomial of probability 2^−halvings, exactly.

    While half of one or more are expected to pass, heads are counted, and tossed again. Then somebody is *named* with
    probability 2^−halvings each, nobody otherwise; the others pass as they do, s of them with the named one, who is kept with
    probability 1/s: any set A of passers then has |A| ways to come about, each kept once in |A|, and all else is nobody. Who
    passes among the others is settled in the same way, from the last one named back to the first.
    """
    while halvings and 2 * count > 1 << halvings:
        count, halvings = random_bits(count, generator).bit_count(), halvings - 1
    if not halvings:
        return count
    named = 0
    while named < count and random_bits(halvings, generator) < count - named:
        named += 1
    passed = 0
    for _ in range(named):
        passed = passed + 1 if uniform_below(passed + 1, generator) == 0 else 0
    return passed


def _behind(costs: Costs) -> Costs:
    if costs.ndim != 1 or costs.size == 0 or costs.dtype != np.int64:
        raise errors.WrongCall(
            f"A selection needs one whole number (int64) for each of at least one candidate; an array of shape "
            f"{costs.shape} and type {costs.dtype} was given."
        )
    if int(costs.max()) - int(costs.min()) >= LARGEST_COST:
        raise errors.WrongCall("The costs of a selection spread over 2^62 or more. Use a coarser lattice.")
    return np.asarray(costs - costs.min())


def uniform_below(bound: int, generator: Generator) -> int:
    """A whole number in [0, bound), exactly uniform: random bits, taken again where they lie outside."""
    length = bound.bit_length()
    while True:
        value = random_bits(length, generator)
        if value < bound:
            return value


def random_bits(count: int, generator: Generator) -> int:
    """``count`` independent fair bits as a whole number."""
    length = (count + 7) // 8
    return int.from_bytes(generator.bytes(length), "little") & ((1 << count) - 1)


def accepts(behind: int, bits: int, shift: int, generator: Generator) -> bool:
    """True with probability exactly 2^shift·exp(−behind·2^−bits), which must be at most 1: lazy comparison."""
    precision = FIRST_PRECISION
    uniform = random_bits(precision, generator)
    while True:
        low, high = exponential_bounds(behind, bits, precision + shift)
        # The uniform number lies in [uniform, uniform + 1]·2^−precision, the probability in [low, high] there.
        if uniform + 1 <= low:
            return True
        if uniform >= high:
            return False
        uniform = (uniform << precision) | random_bits(precision, generator)
        precision *= 2


def exponential_bounds(numerator: int, bits: int, precision: int) -> tuple[int, int]:
    """Whole numbers with low ≤ 2^precision·exp(−numerator·2^−bits) ≤ high, a few units apart.

    exp(−g) = exp(−g/2^s)^(2^s) with g/2^s ≤ ½: the alternating series there, whose error is at most its first term
    left out, then s squarings, every one rounded outward.
    """
    if numerator == 0:
        return 1 << precision, 1 << precision
    halvings = max(0, numerator.bit_length() - bits + 1)
    working = precision + halvings + 16  # a squaring at most doubles the relative error
    scale = bits + halvings
    low, high = _series(numerator, scale, working)
    for _ in range(halvings):
        low, high = (low * low) >> working, -((-high * high) >> working)
    return low >> (working - precision), -((-high) >> (working - precision))


def _series(numerator: int, scale: int, working: int) -> tuple[int, int]:
    """Bounds of 2^working·exp(−g) for g = numerator·2^−scale ≤ ½."""
    low = high = term_low = term_high = 1 << working
    order = 0
    while term_high > 1:
        order += 1
        term_low = (term_low * numerator >> scale) // order
        term_high = -((-term_high * numerator >> scale) // order)
        if order % 2:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
    # Terms alternate and fall, so what is left out is smaller than the last term, of either sign.
    return low - term_high, high + term_high
