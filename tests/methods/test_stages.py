"""What is charged for whole-number noise in place of a Gaussian's: more than the continuous law's μ, and enough."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special

import onedraw as od
from onedraw import methods, models
from onedraw.data.sums import BLOCK
from onedraw.errors import PromiseRefused
from onedraw.methods import Measured, Moments, NoisyGradient, PerturbedMode, calibrate
from onedraw.methods.noisy_moments import MEAN_STEPS
from onedraw.methods.perturbed_mode.run import Fit
from onedraw.methods.stages import LARGEST_KAPPA, MARGIN, UNLIKE, Stage, check_lattice, discrete_mu
from onedraw.models.moments.columns import SQUARE
from onedraw.models.moments.measured import Layout, SecondMoments
from onedraw.models.sums.exact_sums import gram_steps

ROWS = {"features": 3, "bounds": (-1, 1), "scaled": True, "prior": od.Gaussian(scale=1.0)}
LOGISTIC = models.Logistic(**ROWS, loss="exp-linear")
BUDGET = od.ApproxDP(1.0, 1e-6)


def tradeoff(mu, alpha):
    return special.ndtr(special.ndtri(1.0 - alpha) - mu)


@pytest.mark.parametrize("mu", [1e-3, 0.2, 3.0, 12.0])
def test_laws_within_a_factor_are_gaussian_dp_with_two_point_six_of_it_more(mu):
    """Every worst pair within e^{±κ}, by the tests that the lemma compares; 1.2 κ more would not be enough."""
    kappa = 1e-4
    seen = special.ndtr(np.linspace(-6.0, 6.0, 4001))  # errors α' under the changed law
    least = np.minimum(1.0 - np.exp(-kappa) * (1.0 - seen), np.exp(kappa) * seen)  # the largest α they allow
    beta = tradeoff(mu, least)
    found = np.maximum(np.exp(-kappa) * beta, 1.0 - np.exp(kappa) * (1.0 - beta))
    assert (found >= tradeoff(mu + 2.6 * kappa, seen) - 1e-15).all()
    assert (found < tradeoff(mu + 1.2 * kappa, seen)).any()


@pytest.mark.parametrize("deviation", [40.0, 300.0])
def test_a_discrete_gaussian_is_as_near_to_the_rounded_one_as_is_charged(deviation):
    x = np.arange(0.0, 37.2 * deviation)
    discrete = -0.5 * (x / deviation) ** 2 - math.log(deviation * math.sqrt(2.0 * math.pi))
    rounded = special.log_ndtr(-(x - 0.5) / deviation) + np.log(
        -np.expm1(special.log_ndtr(-(x + 0.5) / deviation) - special.log_ndtr(-(x - 0.5) / deviation))
    )
    apart = np.abs(discrete - rounded).max()
    assert 0.9 * UNLIKE / deviation**2 < apart <= 1.01 * UNLIKE / deviation**2


def test_the_margin_is_more_than_the_lattice_needs():
    assert 2.6 * LARGEST_KAPPA < MARGIN
    assert Fraction(discrete_mu(0.25)) >= Fraction(0.25) + MARGIN


COUNTS = [1, 5000, 2**25, 2**25 + 1, 10**8, 2**30, 10**9, 2**31 - 1]


@pytest.mark.parametrize("n", COUNTS)
def test_a_lattice_is_as_fine_as_the_check_takes_it_for_and_n_shares_have_room(n):
    products, columns = Stage(1.0, 1.0, 1).bits(n), Stage(1.0, 1.0, 1, columns=True).bits(n)
    for square in [*np.geomspace(1e-6, 1e6, 200), 0.25, 1.0, 4.0]:
        share = Fraction(square) * Fraction(gram_steps(square, n)) ** 2
        assert 2 ** products[0] < share <= 2 ** products[1]
        assert n * share < 2**62
        assert BLOCK * share < 2**53
    assert MEAN_STEPS == 2.0 ** columns[0] == 2.0 ** columns[1]
    assert n * MEAN_STEPS < 2**62


@pytest.mark.parametrize("n", [5000, 10**8, 10**9])
def test_no_row_moves_a_sum_of_products_by_more_than_the_margin_allows(n):
    """Rows at, just inside and just outside the radius, long ones and hostile ones, in exact arithmetic."""
    rng, d, radius = np.random.default_rng(5), 7, math.sqrt(2.9)
    rows = rng.standard_normal((4000, d))
    rows *= (radius / 2.0 / np.linalg.norm(rows, axis=1) * (1.0 + rng.integers(-4, 5, 4000) * 2.0**-52))[:, None]
    rows[:1000] *= 2.0 ** rng.uniform(0.0, 3.0, (1000, 1))
    steps = gram_steps(radius**2, n)
    rows[1000:1500] = np.rint(rows[1000:1500] * steps) / steps  # on the lattice: nothing is cut off
    rows = np.clip(rows, -1.0, 1.0)
    statistic = SecondMoments(Layout(d), False)
    down, across = np.tril_indices(d)
    shares = []
    for row in rows[::40]:
        found = statistic.of_block(row[None], np.zeros(1), np.ones(1), steps, np.zeros(d), radius)
        whole = [int(entry) for entry in np.asarray(found)]
        shares.append(sum((1 if i == j else 2) * k * k for i, j, k in zip(down, across, whole, strict=True)))
    largest = Fraction(max(shares)) / Fraction(radius * steps) ** 4
    assert float(largest) <= 1.0 + (2 * d + 4) * 2.0**-52
    assert float(largest) > 0.99  # the attack comes near


def test_n_copies_of_the_worst_record_are_summed_exactly_for_a_billion_records():
    """What an int64 holds of them is what exact arithmetic gives, with the noise a stage may have beside it."""
    n, square = 10**9, 2.9
    steps = gram_steps(square, n)
    share = int(np.trunc(np.sqrt(square) * steps)) ** 2
    assert share >= 2**28
    assert int(np.int64(share) * np.int64(n)) == share * n
    assert share * n + 2**60 < 2**63


def test_a_certificate_shows_the_bits_and_a_billion_records_of_fifty_columns_have_a_plan():
    wide = models.Logistic(**(ROWS | {"features": 50}), loss="exp-linear")
    for n, bits in ((5000, 36), (10**8, 34), (10**9, 31)):
        plan = calibrate(PerturbedMode(intervals=True), wide, od.PureDP(1.0), n=n)
        Fit().exactness(plan)  # the sums have room
        assert any(f"up to 2^{bits} steps" in one.statement for one in plan.guarantee.assumptions)
        assert methods.plan_from_dict(plan.to_dict()).guarantee == plan.guarantee
    for budget in (BUDGET, od.PureDP(1.0)):
        with pytest.raises(PromiseRefused, match="a public part"):
            calibrate(Moments(), models.Columns(3, bounds=(-1, 1)), budget, n=2**31)


def test_a_coarser_lattice_carries_less_before_it_is_refused():
    """0.78 a stage for a billion records of fifty columns, eight times as much for a tenth of them."""
    root = math.sqrt(2.0)
    for n, most in ((10**9, 0.78), (10**8, 8 * 0.78)):
        check_lattice([Stage(root, root / most, 1326)], n, BUDGET)
        with pytest.raises(PromiseRefused, match=r"too small. .*fewer columns or records"):
            check_lattice([Stage(root, root / (1.01 * most), 1326)], n, BUDGET)


def test_the_parts_of_a_stage_are_as_wide_as_the_check_takes_them_for():
    assert BLOCK == 2**16
    assert 1.0 / SQUARE >= 0.6 <= math.sqrt(0.5)


def test_moments_and_measured_coordinates_charge_more_than_the_continuous_law():
    plans = {
        "moments": calibrate(Moments(pure=False), models.Columns(3, bounds=(-1, 1)), BUDGET, n=5000),
        "measured": calibrate(Measured(NoisyGradient(), share=0.2), LOGISTIC, BUDGET, n=5000),
    }
    root = math.sqrt(2.0)
    numbers = {name: plan.parameters for name, plan in plans.items()}
    continuous = {
        "moments": [
            math.sqrt(12.0) / numbers["moments"]["sums_noise"],
            *(root * numbers["moments"][f"{one}_radius"] ** 2 / numbers["moments"][f"{one}_noise"] for one in ("moments", "fourth")),
        ],
        "measured": [
            math.sqrt(12.0) / numbers["measured"]["mean_noise"],
            root * numbers["measured"]["moment_radius"] ** 2 / numbers["measured"]["moments_noise"],
            numbers["measured"]["mu"],
        ],
    }  # fmt: skip
    for name in ("moments", "measured"):
        plain = math.sqrt(sum(ratio**2 for ratio in continuous[name]))
        more = plans[name].guarantee.promise.mu - plain
        assert 2.0**-42 < more < 2.0**-36, name


def test_noise_that_a_lattice_cannot_carry_is_refused_before_anything_is_spent():
    check_lattice([Stage(1.0, 10.0, 10)], 5000, BUDGET)
    for noise, words in ((1e-9, "too small"), (1e9, "too large")):
        with pytest.raises(PromiseRefused, match=words):
            check_lattice([Stage(1.0, noise, 10)], 5000, BUDGET)
    with pytest.raises(PromiseRefused):
        calibrate(Measured(share=0.2), LOGISTIC, od.GaussianDP(1e-9), n=5000)
