"""Exact selection: the law, its tails, and the whole-number bounds it rests on."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from onedraw import errors
from onedraw.samplers.selection import (
    LAST_BUCKET,
    LEAST_ACCEPTED,
    PROPOSALS,
    STEP_DENOMINATOR,
    STEP_NUMERATOR,
    Envelope,
    accepts,
    exponential_bounds,
    select,
    uniform_below,
)
from tests.samplers.cases import ALPHA, chi_squared_p, int64

TIMES = 8000


class Script:
    """A source of bits that plays a given list of whole numbers, then zeros."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def bytes(self, length):
        number = self.numbers.pop(0) if self.numbers else 0
        return number.to_bytes(length, "little")


@pytest.mark.parametrize("bits", [0, 7, 32])
def test_candidates_are_chosen_with_exactly_their_probabilities(bits, test_seed):
    generator = np.random.default_rng(test_seed)
    costs = (np.array([0.0, 0.4, 0.69, 0.7, 1.0, 2.0, 3.5, 5.0]) * 2.0**bits).round().astype(np.int64) + 12345
    probabilities = special.softmax(-costs / 2.0**bits)
    counts = np.bincount([select(costs, generator, bits=bits) for _ in range(TIMES)], minlength=len(costs))
    assert chi_squared_p(counts, probabilities) > ALPHA
    planted = special.softmax(-1.3 * costs / 2.0**bits)  # a weight 30 % too large
    assert chi_squared_p(counts, planted) < ALPHA


def test_many_equal_candidates_are_equally_likely(test_seed):
    generator = np.random.default_rng(test_seed)
    costs = np.repeat(int64(0, 40), [50, 50])  # the second half has e^−40·50 = 2e-16 of the mass
    counts = np.bincount([select(costs, generator, bits=0) for _ in range(TIMES)], minlength=100)
    assert counts[50:].sum() == 0
    assert chi_squared_p(counts[:50], np.full(50, 0.02)) > ALPHA


@settings(max_examples=200, deadline=None)
@given(bits=st.integers(0, 40), size=st.integers(1, 54), precision=st.sampled_from([8, 64, 200]), data=st.data())
def test_the_bounds_of_an_exponential_hold_and_are_close(bits, size, precision, data):
    numerator = data.draw(st.integers(0, min(2**size, 2000 * 2**bits)))
    low, high = exponential_bounds(numerator, bits, precision)
    with localcontext() as context:
        context.prec = 1200
        exact = (-Decimal(numerator) / 2**bits).exp() * 2**precision
    assert low <= exact <= high
    assert high - low <= 4


def test_an_acceptance_asks_for_more_bits_until_it_is_decided():
    low, high = exponential_bounds(3, 1, 64)  # e^−1.5
    assert high > low
    below, above = Script(low, 0), Script(low, 2**64 - 1)
    assert accepts(3, 1, 0, below) is True
    assert accepts(3, 1, 0, above) is False
    assert below.numbers + above.numbers == [], "the first 64 bits cannot decide"


def test_a_candidate_far_behind_can_still_be_chosen():
    """e^−300 is far below what 53 random bits of Gumbel noise can reach; with the right bits it is picked."""
    costs = int64(0, 300)
    place = 1 << LAST_BUCKET  # the first place after those of candidate 0: the last bucket
    chosen = select(costs, Script(place, *[0] * 20), bits=0)
    assert chosen == 1
    gumbel = np.random.default_rng(0).gumbel(size=(200_000, 2)) - costs
    assert (gumbel.argmax(axis=1) == 0).all()


def test_a_uniform_number_below_a_bound_is_uniform(test_seed):
    generator = np.random.default_rng(test_seed)
    counts = np.bincount([uniform_below(6, generator) for _ in range(6000)], minlength=6)
    assert chi_squared_p(counts, np.full(6, 1 / 6)) > ALPHA
    assert len(counts) == 6


@pytest.mark.parametrize(
    ("costs", "bits"),
    [(np.array([], dtype=np.int64), 8), (np.array([0.5]), 8), (int64(-(2**62), 2**62), 8), (int64(0), 41)],
)
def test_what_is_no_selection_is_refused(costs, bits):
    with pytest.raises(errors.WrongCall):
        select(costs, np.random.default_rng(0), bits=bits)


def share_accepted(costs, lengths, bits):
    """Of proposals from the envelope of these runs, in fifty digits."""
    envelope = Envelope(costs, lengths, bits)
    with localcontext() as context:
        context.prec = 80
        behind = [Decimal(int(value)) / 2**bits for value in envelope.behind]
        mass = sum((-value).exp() * int(length) for value, length in zip(behind, lengths, strict=True))
        return float(mass * 2**LAST_BUCKET / envelope.total)


@pytest.mark.oracle
def test_a_third_of_proposals_is_accepted_whatever_the_costs_are(test_seed):
    generator, step = np.random.default_rng(test_seed), STEP_NUMERATOR / STEP_DENOMINATOR
    shares = []
    for _ in range(300):
        count, bits = int(generator.integers(1, 40)), int(generator.integers(0, 20))
        ends = np.ceil(generator.integers(1, 250, count) * step * 2**bits) - 1  # as far behind as a bucket goes
        costs = np.append(0, np.maximum(ends, 0)).astype(np.int64)
        shares.append(share_accepted(costs, 2 ** generator.integers(0, 56, count + 1), bits))
    for bucket in range(60):  # nearly all candidates at the end of one bucket: the fewest that can be accepted
        worst = int64(0, int(np.ceil((bucket + 1) * step * 2**20)) - 1)
        shares.append(share_accepted(worst, int64(1, 2**61), 20))
    assert LEAST_ACCEPTED < min(shares) < 0.45
    with localcontext() as context:
        context.prec = 50
        bound = Decimal(2) ** 191 * (-Decimal(LAST_BUCKET * STEP_NUMERATOR) / STEP_DENOMINATOR).exp()
    assert Decimal(LEAST_ACCEPTED) < bound * (1 - Decimal(2) ** -130)
    assert f"{bound:.6f}" == "0.329925"
    assert PROPOSALS == 111
