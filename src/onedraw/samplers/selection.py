"""Exact selection: one of K candidates with probability exactly ∝ exp(−c_k·2^−b), c_k whole numbers.

The exponential mechanism is pure only if its probabilities are. The usual program, the largest of score plus
Gumbel noise, is not: a noise of 53 random bits never exceeds 40, so a candidate further behind is never chosen, while
a neighbouring data set may put it within reach (mathematics.md §6; Mironov, CCS 2012, for the same fault in Laplace
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

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import errors, privacy
from onedraw.arrays import Array, Integers
from onedraw.models.candidates import passes
from onedraw.models.likelihood import CountLikelihood
from onedraw.models.likelihood.likelihood_model import WithLikelihood
from onedraw.plans import Plan
from onedraw.samplers.padding import PASSES, PICK_GAMMA, Padding, tries_for
from onedraw.samplers.randomness import secure_generator
from onedraw.samplers.sampler import Sample, Sampler

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


@dataclass(frozen=True)
class Selection(WholeNumbers):
    """The sampler of `Candidates`, and of nothing else: rounds of public candidates, an exact pick from each."""

    carries_out: ClassVar[str] = "candidates"
    why: ClassVar[str] = "exact selection from public candidates"
    each: ClassVar[float] = 6e-5
    of: ClassVar[str] = "picks from the public candidates that a Candidates() plan lays out"

    def passes(self, plan: Plan) -> int:
        """One for so many candidates of a round."""
        once = int(plan.parameters["rounds"]) * passes(int(plan.parameters["candidates"]))
        return once if plan.mechanism.publish == "picks" else once * plan.draws

    def padding(self, plan: Plan) -> Padding:
        """Of every pick as many proposals as suffice but once in 2^64; scoring takes always as many passes."""
        together = plan.mechanism.publish == "picks"
        picks = int(plan.parameters["rounds"]) * (1 if together else plan.draws)
        return Padding({PASSES: self.passes(plan), "proposals": picks * PROPOSALS}, picks * PICK_GAMMA)

    def seconds(self, plan: Plan) -> float:
        model, pairs = plan.model, plan.n * plan.parameters["rounds"] * plan.parameters["candidates"]
        counts = isinstance(model, WithLikelihood) and isinstance(model.likelihood, CountLikelihood)
        return float(plan.draws * pairs / (COUNTS_A_SECOND if counts else PAIRS_A_SECOND))

    def run(self, target: Any, randomness: Generator, *, size: int = 1) -> Sample:
        """What the target publishes of its picks; ``target.rounds`` candidates are laid out and picked from in turn.

        Candidates of a round depend on public numbers and on the picks before it, never on the records.
        """
        return self._run(target, randomness, partial(select, generator=randomness, bits=target.bits), size)

    def run_padded(self, target: Any, randomness: Generator, padding: Padding, *, size: int = 1) -> Sample:
        """The same picks: idle proposals are made by a generator of their own."""
        made: list[int] = []
        pick = partial(_padded, generator=randomness, idle=secure_generator(), bits=target.bits, made=made)
        return replace(self._run(target, randomness, pick, size), diagnostics={"proposals": sum(made)})

    def _run(self, target: Any, randomness: Generator, pick: Callable[[Costs], int], size: int) -> Sample:
        rows: list[Array] = []
        while len(rows) < size:
            picks: list[Array] = []
            for number in range(target.rounds):
                candidates, public_costs = target.propose(number, picks, randomness)
                costs = target.costs(number, candidates) + public_costs
                picks.append(candidates[pick(costs)])
            rows.extend(target.publish(picks))
        return Sample(np.array(rows[:size]))


@dataclass(frozen=True)
class LossSelection(WholeNumbers):
    """The sampler of `ExponentialChoice`, and of nothing else: a choice among settings, by `flip_run` or `select`."""

    carries_out: ClassVar[str] = "losses"
    why: ClassVar[str] = "exact selection by loss"
    each: ClassVar[float] = 2e-4
    of: ClassVar[str] = "chooses among the settings of an ExponentialChoice() plan"

    def run(self, target: Any, randomness: Generator, *, size: int = 1) -> Sample:
        """The places of ``size`` choices, one row each."""
        alone, choose = np.ones(len(target.costs), dtype=np.int64), flip_run if target.flip else select_run
        chosen = [choose(target.costs, alone, randomness, bits=target.bits)[0] for _ in range(size)]
        return Sample(np.array(chosen, dtype=np.float64).reshape(size, 1))


@dataclass(frozen=True)
class RankSelection(WholeNumbers):
    """The sampler of `ExponentialQuantiles`, and of nothing else: level by level, then the widths of intervals.

    The order of the selections does not matter: a part's records are fixed by the cuts around it, which have been selected
    before it, and by nothing else.
    """

    carries_out: ClassVar[str] = "ranks"
    why: ClassVar[str] = "exact selection by rank"
    of: ClassVar[str] = "selects quantiles by the ranks that an ExponentialQuantiles() plan lays out"

    def seconds_each(self, plan: Plan) -> float:
        return 4e-4 + 3e-7 * plan.n

    def run(self, target: Any, randomness: Generator, *, size: int = 1) -> Sample:
        """``size`` rows of quantiles; the ends of intervals, where there are any, as a stage of the first."""
        rows = [_quantiles(target, randomness) for _ in range(size)]
        values = target.model.value(np.array(rows))
        if not target.ends:
            return Sample(values)
        lower, upper = _ends(target, rows[0], randomness)
        return Sample(values, stages={"quantiles": values[0].tolist(), "lower": lower, "upper": upper})


def _quantiles(target: Any, generator: Generator) -> list[int]:
    """The selected places, in the order of the levels."""
    found: dict[int, int] = {}

    def visit(node: Any, low: int, high: int) -> None:
        if not node.splits:
            found[node.index] = _chosen(target.values(node, low, high), target.bits, generator, flip=target.flip)
            return
        cut = _chosen(target.cuts(node, low, high), target.bits, generator)
        found[node.index] = target.place_of(cut)
        for child, ends in ((node.left, (low, cut)), (node.right, (cut, high))):
            if child is not None:
                visit(child, *ends)

    visit(target.root, *target.whole())
    return [found[index] for index in sorted(found)]


def _ends(target: Any, places: list[int], generator: Generator) -> tuple[list[float], list[float]]:
    """Lower ends, upper ends: of each quantile one width is selected, for both."""
    rungs = [
        _chosen(target.rungs(index, place), target.bits, generator, flip=target.flip) if target.has_end(index) else 0
        for index, place in enumerate(places)
    ]
    ends = [target.interval(index, place, rung) for index, (place, rung) in enumerate(zip(places, rungs, strict=True))]
    low, high = target.model.value(np.array(ends)).T.tolist()
    return low, high


def _chosen(runs: Any, bits: int, generator: Generator, *, flip: bool = False) -> int:
    run, offset = (flip_run if flip else select_run)(runs.costs, runs.lengths, generator, bits=bits)
    return int(runs.first[run]) + offset


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


def _padded(costs: Costs, *, generator: Generator, idle: Generator, bits: int, made: list[int]) -> int:
    """`select`, and idle proposals from the same envelope up to `PROPOSALS`; how many there were is appended to ``made``."""
    envelope, count, found = Envelope(costs, np.ones(costs.shape, dtype=np.int64), bits), 0, None
    while found is None:
        found, count = envelope.proposal(generator), count + 1
    while count < PROPOSALS:
        envelope.proposal(idle)
        count += 1
    made.append(count)
    return found[0]


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
