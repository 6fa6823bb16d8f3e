"""Every chain of the literature leaves the exact law as it is (penalty.py, dp_hmc.py, multi_proposal.py).

There are 20,000 chains from exact draws of N(0, 1), 30 steps, the variance after.

No mixing is needed: a kernel that leaves the law invariant leaves it so at once, one that does not moves it. α ≈ 1e-6 at |z| < 5.
"""

import numpy as np
import pytest

from tests.baselines.chain_cases import CentredLayout, ReusedGradient, layout, leapfrog, penalty, variance_z

FEWER, LONGER = {"chains": 1_000, "steps": 10}, {"chains": 20_000, "steps": 30}
LOUD = {"step_size": 0.8, "gradient_noise": 4.0, "longest": 99.0}
"""Noise so large that a gradient kept after a rejection shows."""

KERNELS = {
    "penalty": penalty,
    "DP-HMC, penalty test": leapfrog,
    "DP-HMC, Barker's test": lambda heavy=1.0: leapfrog(heavy, test="barker"),
    "one of 1": lambda heavy=1.0: layout(heavy, proposals=1),
    "one of 5": layout,
}


def seed():
    found = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {found}")
    return found


@pytest.mark.statistical
@pytest.mark.parametrize("name", KERNELS)
def test_few_chains_stay_where_they_are(name):
    assert abs(variance_z(KERNELS[name](), **FEWER, seed=seed())) < 5


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", KERNELS)
def test_the_exact_law_is_left_invariant_and_a_weight_ten_percent_too_large_is_seen(name):
    honest, heavy = (variance_z(KERNELS[name](factor), **LONGER, seed=seed()) for factor in (1.0, 1.1))
    print(f"z = {honest:.2f}, weight × 1.1: {heavy:.2f}")
    assert abs(honest) < 5
    assert heavy < -5


@pytest.mark.slow
@pytest.mark.statistical
def test_proposals_around_the_state_instead_of_the_middle_are_seen():
    z = variance_z(layout(kind=CentredLayout), **LONGER, seed=seed())
    print(f"z = {z:.2f}")
    assert z < -15


@pytest.mark.slow
@pytest.mark.statistical
def test_a_gradient_that_is_kept_after_a_rejection_is_seen_and_fresh_ones_are_not():
    honest = leapfrog(test="barker", leapfrogs=1)
    assert abs(variance_z(honest, **LONGER, seed=seed(), numbers=LOUD)) < 5
    kept = leapfrog(kind=ReusedGradient, test="barker", leapfrogs=1)
    z = variance_z(kept, **LONGER, seed=seed(), numbers=LOUD)
    print(f"z = {z:.2f}")
    assert z > 10
