"""Quotas: how many tries suffice for every data set, what a draw together with its work promises, and what work gives away without."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from onedraw import errors
from onedraw.privacy import PureDP, compose
from onedraw.privacy.filters import Spend, Sums
from onedraw.privacy.numbers import fraction_up
from onedraw.samplers.padding import PASSES, Padding, constant_work, pair_delta, shortfall, tries_for

PROXIMAL = math.exp(-9.0 / 8.0)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("steps", "acceptance", "gamma", "tries"),
    [
        (790, PROXIMAL, 1e-12, 2976),
        (790, PROXIMAL, 1e-9, 2891),
        (100, PROXIMAL, 1e-12, 530),
        (100, PROXIMAL, 1e-9, 491),
        (790, math.exp(-1.0), 1e-12, 2611),
        (1, 0.329925, 2.0**-64, 111),
        (1, math.cosh(2.83 / 2.0) ** -6, 1e-12, 2950),
        (1, math.cosh(2.83 / 2.0) ** -3, 1e-12, 273),
        (1, PROXIMAL, 1e-12 / 790, 88),
    ],
)
def test_quotas_are_those_of_the_reference(steps: int, acceptance: float, gamma: float, tries: int) -> None:
    assert tries_for(steps, acceptance, gamma) == tries


@pytest.mark.oracle
@pytest.mark.parametrize(("successes", "acceptance"), [(1, 0.25), (3, 0.5), (7, 0.125), (12, 0.75)])
def test_a_shortfall_is_never_below_the_sum_of_binomial_terms(successes: int, acceptance: float) -> None:
    p = Fraction(acceptance)
    for tries in range(successes, successes + 40, 3):
        exact = sum(math.comb(tries, k) * p**k * (1 - p) ** (tries - k) for k in range(successes))
        assert Fraction(shortfall(successes, acceptance, tries)) >= exact
        assert shortfall(successes, acceptance, tries) <= fraction_up(exact) * (1.0 + 1e-8)
        assert shortfall(successes, acceptance, successes - 1) == 1.0


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("successes", "acceptance", "tries"), [(1, 1e-6, 27_631_008), (3, 1e-6, 35_000_000), (3, 1e-9, 35 * 10**9)]
)
def test_nor_is_it_of_very_many_tries(successes: int, acceptance: float, tries: int) -> None:
    """Where 1 − p in double precision would cost more digits than are rounded up by, and 32 bits do not hold the number of tries."""
    with localcontext(prec=60):
        p = Decimal(acceptance)
        exact = sum(math.comb(tries, k) * p**k * (1 - p) ** (tries - k) for k in range(successes))
        assert exact <= Decimal(shortfall(successes, acceptance, tries)) <= exact * Decimal("1.00000001")


def test_one_try_fewer_would_not_suffice() -> None:
    for steps, gamma in ((1, 2.0**-64), (10, 1e-9), (790, 1e-12)):
        tries = tries_for(steps, PROXIMAL, gamma)
        assert shortfall(steps, PROXIMAL, tries) <= gamma < shortfall(steps, PROXIMAL, tries - 1)


def test_tries_that_succeed_more_often_after_some_pasts_never_need_more_than_the_quota_says() -> None:
    """The domination that one quota for a chain rests on: by summation over all pasts, not by simulation."""
    generator, least, steps = np.random.default_rng(1), 0.4, 4
    for _ in range(20):
        chances = least + (1.0 - least) * generator.random(
            (12, steps)
        )  # by the number of tries and of successes so far
        still = np.zeros(steps + 1)
        still[0] = 1.0
        for tries in range(12):
            moved = still[:steps] * chances[tries]
            still = np.append(still[:steps] - moved, still[steps]) + np.append(0.0, moved)
            assert still[:steps].sum() <= shortfall(steps, least, tries + 1) + 1e-15


@pytest.mark.parametrize("wrong", [(0, 0.5, 0.1), (1, 0.0, 0.1), (1, 1.5, 0.1), (1, 0.5, 0.0), (1, math.nan, 0.1)])
def test_a_quota_without_a_bound_is_refused(wrong: tuple[int, float, float]) -> None:
    with pytest.raises(errors.WrongCall, match="quota"):
        tries_for(*wrong)


def test_a_padding_counts_passes_over_the_records() -> None:
    assert constant_work(7).passes == 7
    assert Padding({PASSES: 3, "tries": 2}, 1e-9).gamma == 1e-9
    for wrong in ({}, {"tries": 2}):
        with pytest.raises(errors.WrongCall, match="passes"):
            Padding(wrong)
    with pytest.raises(errors.WrongCall, match="probability"):
        Padding({PASSES: 1}, 0.7)


# ── the pair, and what is given away without padding ─────────────────────────────────────────────────────────────


def pair_of(draw: np.ndarray, late: np.ndarray) -> np.ndarray:
    """The law of (draw, whether more than B was needed): P(draw) and P(late | draw)."""
    return np.stack([draw * (1.0 - late), draw * late])


@pytest.mark.oracle
def test_the_pair_of_draw_and_work_keeps_what_the_theorem_says_and_the_bound_is_reached() -> None:
    """δ(ε) of the pair by summation, over many laws of being late whose total is γ₂, and at the worst of them."""
    epsilon, gamma = 0.7, 0.01
    law = np.array([math.exp(epsilon), 1.0]) / (1.0 + math.exp(epsilon))
    other, worst = law[::-1], 0.0
    generator = np.random.default_rng(2)
    for trial in range(3000):
        late = generator.random((2, 2))
        if trial == 0:  # on D late where the draw tells D apart anyway, on D' never
            late = np.array([[1.0, 0.0], [0.0, 0.0]])
        late[0] *= min(1.0, gamma / max(late[0] @ law, 1e-300))
        late[1] *= min(1.0, gamma / max(late[1] @ other, 1e-300))
        one, two = pair_of(law, np.minimum(late[0], 1.0)), pair_of(other, np.minimum(late[1], 1.0))
        worst = max(worst, float(np.maximum(one - math.exp(epsilon) * two, 0.0).sum()))
    assert 0.9 * gamma < worst <= pair_delta(epsilon, 0.0, gamma)
    assert pair_delta(1.0, 1e-6, 0.0) == 1e-6
    assert pair_delta(1.0, 1e-6, 1e-12) == pytest.approx(1e-6 + (1.0 + math.e) * 1e-12, rel=1e-12)
    assert pair_delta(800.0, 0.0, 1e-12) == 1.0


@pytest.mark.oracle
def test_each_attempt_at_a_padded_draw_costs_its_own_share_and_one_would_not_pay_for_four() -> None:
    """δ(ε) of what is seen of three interrupted attempts and of the draw with its work, by summation over many laws of being late."""
    epsilon, gamma, attempts = 0.7, 0.01, 4
    law = np.array([math.exp(epsilon), 1.0]) / (1.0 + math.exp(epsilon))
    generator, worst = np.random.default_rng(3), 0.0

    def seen(draw: np.ndarray, before: np.ndarray, late: np.ndarray) -> np.ndarray:
        joint = pair_of(draw, late)
        for chance in before:  # was this attempt late? independent of all others
            joint = np.multiply.outer(np.array([1.0 - chance, chance]), joint)
        return joint

    for trial in range(2000):
        sides = []
        for draw in (law, law[::-1]):
            late = np.minimum(1.0, generator.random(2) * gamma / draw)
            late *= min(1.0, gamma / (late @ draw))
            sides.append([draw, gamma * generator.random(attempts - 1), late])
        if trial == 0:  # late as often as allowed on D, never on D'
            sides = [
                [law, np.full(attempts - 1, gamma), np.array([gamma / law[0], 0.0])],
                [law[::-1], np.zeros(attempts - 1), np.zeros(2)],
            ]
        one, two = (seen(*side) for side in sides)
        worst = max(worst, float(np.maximum(one - math.exp(epsilon) * two, 0.0).sum()))
    assert pair_delta(epsilon, 0.0, gamma) < worst <= pair_delta(epsilon, 0.0, attempts * gamma)
    assert compose(PureDP(epsilon), gammas=[gamma] * attempts).delta(epsilon) >= worst  # as one list
    by_sums = (
        Sums(Fraction(1)).charge(Spend(*each))[1] for each in [(PureDP(epsilon), gamma), *[(compose(), gamma)] * 3]
    )
    assert sum(by_sums) >= worst  # and as a ledger's filter adds them up


@pytest.mark.oracle
def test_stopping_by_a_lower_envelope_hides_the_time_and_not_the_pair() -> None:
    """Stop at the first proposal under a public lower bound, return the first accepted: P(first atom, time t) by summation.

    Two atoms under an envelope of ½ each, so that a try is atom k and accepted with probability π_k, and stops with ¼ of it.
    """

    def joint(kept: tuple[float, float], time: int) -> float:
        """P(the first accepted is atom 1, the stop comes at ``time``)."""
        stop, nothing = 0.25, 1.0 - sum(kept)
        total = nothing ** (time - 1) * stop  # accepted, and stopping at once
        for at in range(1, time):  # accepted before, above the lower bound; some other try stops
            total += nothing ** (at - 1) * (kept[0] - stop) * (1.0 - 2.0 * stop) ** (time - at - 1) * 2.0 * stop
        return total

    ratios = [joint((0.3, 0.4), t) / joint((0.25, 0.4), t) for t in (1, 5, 10, 20)]
    assert [f"{ratio:.3g}" for ratio in ratios] == ["1", "2.35", "12.5", "439"]
    for kept in ((0.25, 0.4), (0.3, 0.4)):  # the time by itself has one law, whatever the records are
        whole = [joint(kept, t) + joint(kept[::-1], t) for t in (1, 2, 7)]
        assert whole == pytest.approx([0.5, 0.25, 0.5**7])
