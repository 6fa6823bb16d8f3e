"""Private decisions: exact chances, with tests that would see a weight a tenth too large; the law a step leaves as it
is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import onedraw as od
from onedraw.errors import ExactnessRefused
from onedraw.methods.private_chain.barker_path import Barker
from onedraw.methods.private_chain.kernel import PublicStep
from onedraw.methods.private_chain.run import PrivatePath, Secret, barker_accepts, public_seed
from onedraw.models.public_directions import PublicDirections
from onedraw.models.sums.loss_changes import BITS
from onedraw.samplers import secure_generator, seeded_generator
from onedraw.samplers.selection import select

CHANCES = {-1.0: 0.2689414214, 0.5: 0.6224593312, 2.0: 0.8807970780}


def deviations(count: int, chance: float, found: int) -> float:
    return (found - count * chance) / math.sqrt(count * chance * (1.0 - chance))


@pytest.mark.statistical
@pytest.mark.parametrize(("log_ratio", "bits"), [(1.0, 26_130), (2.0, 13_596)])
def test_bits_have_barkers_chances_and_a_weight_a_tenth_larger_is_rejected(log_ratio: float, bits: int) -> None:
    """α ≈ 1e-6 at |z| < 5; the fault lies at z ≈ 7."""
    generator = seeded_generator(16)
    cost = -round(log_ratio * 2**BITS)
    taken = sum(barker_accepts(cost, BITS, generator) for _ in range(bits))
    chance, heavier = (1.0 / (1.0 + math.exp(-factor * log_ratio)) for factor in (1.0, 1.1))
    assert abs(deviations(bits, chance, taken)) < 5.0
    heavy = sum(barker_accepts(round(1.1 * cost), BITS, generator) for _ in range(bits))
    assert abs(deviations(bits, heavier, heavy)) < 5.0
    assert abs(deviations(bits, chance, heavy)) > 4.0
    assert abs(bits * (heavier - chance)) / math.sqrt(bits * chance * (1 - chance)) == pytest.approx(7.0, abs=0.1)


class Fixed:
    """A generator whose next bytes are given."""

    def __init__(self, uniform: int, then: int = 0) -> None:
        self.values = [uniform, then, then, then]

    def bytes(self, length: int) -> bytes:
        return (self.values.pop(0) % 2 ** (8 * length)).to_bytes(length, "little")


@pytest.mark.oracle
@pytest.mark.parametrize("log_ratio", CHANCES)
def test_a_bit_changes_where_the_uniform_number_crosses_the_chance(log_ratio: float) -> None:
    """To the last of 64 bits, either sign; the chances are those of the reference."""
    import mpmath

    cost = -round(log_ratio * 2**BITS)
    with mpmath.workdps(60):
        smaller = 1 / (1 + mpmath.exp(mpmath.mpf(abs(cost)) / 2**BITS))
        edge = int(mpmath.floor(smaller * 2**64))
        rest = int(mpmath.floor((smaller * 2**64 - edge) * 2**64))
    chance = float(smaller) if cost > 0 else 1.0 - float(smaller)
    assert f"{chance:.10f}" == f"{CHANCES[log_ratio]:.10f}"
    assert barker_accepts(cost, BITS, Fixed(edge - 1)) is (cost > 0)
    assert barker_accepts(cost, BITS, Fixed(edge + 1)) is (cost <= 0)
    assert barker_accepts(cost, BITS, Fixed(edge, rest - 1000)) is (cost > 0)  # undecided at first: more bits
    assert barker_accepts(cost, BITS, Fixed(edge, rest + 1000)) is (cost <= 0)


def test_hopeless_and_certain_proposals_are_decided_too() -> None:
    assert barker_accepts(2**61, BITS, Fixed(1)) is False
    assert barker_accepts(-(2**61), BITS, Fixed(1)) is True


@pytest.mark.statistical
def test_the_exact_selection_of_two_has_the_same_chance() -> None:
    """C = 65,536 on the lattice 2^−16: 0.2689414214."""
    generator = seeded_generator(2)
    costs = np.array([0, 65_536], dtype=np.int64)
    found = sum(select(costs, generator, bits=16) for _ in range(4_000))
    assert abs(deviations(4_000, 0.2689414214, found)) < 5.0


def test_public_seeds_come_from_the_operating_system_or_reproduce_a_seeded_run() -> None:
    secure = secure_generator()
    assert public_seed(secure) != public_seed(secure)
    assert public_seed(seeded_generator(1)) == public_seed(seeded_generator(1))
    assert len(public_seed(secure)) == 32
    assert "private" in repr(Secret(secure))


def test_a_public_seed_is_no_part_of_the_secret_stream(monkeypatch) -> None:
    secure = secure_generator()
    monkeypatch.setattr("onedraw.methods.private_chain.run.os.urandom", lambda count: b"7" * count)
    assert public_seed(secure) == b"7" * 32


def test_fresh_noise_is_whole_to_the_last_bit_beyond_the_floats() -> None:
    """Of deviation 2^56 half the numbers are odd. As floats few would be, and a sum would show its own last bits."""
    odd = Secret(secure_generator()).noise(np.full(400, 2.0**56)) % 2
    assert abs(deviations(400, 0.5, int(odd.sum()))) < 5.0


def test_it_carries_out_private_chains_alone() -> None:
    plan = od.calibrate(
        od.Gibbs("gdp"), od.models.Hinge(2, data_norm=1.0, prior=od.Gaussian(scale=1.0)), od.GaussianDP(0.3), n=50
    )
    with pytest.raises(ExactnessRefused, match="private chain"):
        PrivatePath().exactness(plan)


# ── the law of a step ──


@dataclass(frozen=True)
class NoRecords:
    """Nothing changes the loss: the prior alone is left."""

    def sum(self, statistic, *public):
        return np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class Heavier:
    """A planted fault: decisions by a cost a tenth too large."""

    secret: Secret
    factor: float

    def accepts(self, cost: int, bits: int) -> bool:
        return self.secret.accepts(round(self.factor * cost), bits)


def chains(dimension: int, starts: np.ndarray, length: float, steps: int, factor: float = 1.0) -> np.ndarray:
    model = od.models.Hinge(dimension, data_norm=1.0, intercept=False, prior=od.Gaussian(scale=1.0))
    kernel = Barker()
    secret = Heavier(Secret(seeded_generator(5)), factor)
    numbers = {"weight": 1.0, "step_length": length}
    public = PublicStep(model, numbers, 1, PublicDirections(bytes(32), dimension))
    ends = []
    for start in starts:
        state = start
        for _ in range(steps):
            state, _ = kernel.step(state, NoRecords(), public, secret)
        ends.append(state)
    return np.array(ends)


@pytest.mark.slow
@pytest.mark.statistical
def test_steps_leave_the_prior_as_it_is_and_a_heavier_cost_does_not() -> None:
    """20,000 chains from exact draws of N(0, 1), 30 steps: the variance stays; a tenth more cost makes it smaller."""
    starts = np.random.default_rng(1).standard_normal((20_000, 1))
    scores = []
    for factor in (1.0, 1.1):
        ends = chains(1, starts, 1.5, 30, factor)
        scores.append((ends.var() - 1.0) / math.sqrt(2.0 / len(ends)))
    print(scores)
    assert abs(scores[0]) < 5.0
    assert scores[1] < -5.0


@pytest.mark.slow
@pytest.mark.statistical
def test_short_steps_follow_the_diffusion_for_the_time_of_the_plan() -> None:
    """N(0, I), d = 6, R = 0.3, T = 200 from 3 on one axis: mean 1.417, variance 0.777."""
    starts = np.tile(np.eye(6)[0] * 3.0, (1_000, 1))
    ends = chains(6, starts, 0.3, 200)
    assert abs(ends[:, 0].mean() - 1.417) < 5.0 * math.sqrt(0.777 / len(ends))
    assert abs(ends[:, 1:].var() - (1.0 - math.exp(-2.0 * 200 * 0.09 / 24))) < 0.05
