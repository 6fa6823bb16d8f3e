"""What is booked for whole-number noise in place of a Gaussian's: more than the continuous law's μ, and enough."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special

import onedraw as od
from onedraw import models
from onedraw.errors import PromiseRefused
from onedraw.mechanisms import Measured, Moments, NoisyGradient, PerturbedMode, calibrate
from onedraw.mechanisms.discrete_noise import GRAM_BITS, LARGEST_KAPPA, MARGIN, UNLIKE, Stage, booked, check_lattice
from onedraw.models.exact_sums import BLOCK
from onedraw.models.moment_sums import gram_bits
from onedraw.models.moments import SQUARE
from onedraw.samplers.moments import MEAN_STEPS

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
def test_a_discrete_gaussian_is_as_near_to_the_rounded_one_as_is_booked(deviation):
    x = np.arange(0.0, 37.2 * deviation)
    discrete = -0.5 * (x / deviation) ** 2 - math.log(deviation * math.sqrt(2.0 * math.pi))
    rounded = special.log_ndtr(-(x - 0.5) / deviation) + np.log(
        -np.expm1(special.log_ndtr(-(x + 0.5) / deviation) - special.log_ndtr(-(x - 0.5) / deviation))
    )
    apart = np.abs(discrete - rounded).max()
    assert 0.9 * UNLIKE / deviation**2 < apart <= 1.01 * UNLIKE / deviation**2


def test_the_margin_is_more_than_the_lattice_needs():
    assert 2.6 * LARGEST_KAPPA < MARGIN
    assert Fraction(booked(0.25)) >= Fraction(0.25) + MARGIN


def test_a_lattice_is_as_fine_as_the_check_takes_it_for():
    for square in np.geomspace(1e-6, 1e6, 200):
        share = square * 4.0 ** gram_bits(square)
        assert 2.0 ** GRAM_BITS[0] <= share <= 2.0 ** GRAM_BITS[1]
    assert MEAN_STEPS == 2.0**30
    assert BLOCK == 2**16
    assert 1.0 / SQUARE >= 0.6 <= math.sqrt(0.5)


def test_fits_moments_and_measured_coordinates_book_more_than_the_continuous_law():
    plans = {
        "fit": calibrate(PerturbedMode(intervals=True, pure=False), LOGISTIC, BUDGET, n=5000),
        "moments": calibrate(Moments(pure=False), models.Columns(3, bounds=(-1, 1)), BUDGET, n=5000),
        "measured": calibrate(Measured(NoisyGradient(), share=0.2), LOGISTIC, BUDGET, n=5000),
    }
    root = math.sqrt(2.0)
    numbers = {name: plan.parameters for name, plan in plans.items()}
    continuous = {
        "fit": [
            math.sqrt(12.0) / numbers["fit"]["mean_noise"],
            root * numbers["fit"]["moment_radius"] ** 2 / numbers["fit"]["moments_noise"],
            root * 0.25 * numbers["fit"]["row_bound"] ** 2 / numbers["fit"]["information_noise"],
            root * 0.25 * numbers["fit"]["row_bound"] ** 2 / numbers["fit"]["variability_noise"],
        ],
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
    squares = [Fraction(square) for _, square, _ in plans["fit"].guarantee.promise.terms]
    closing = 2.0 * numbers["fit"]["tolerance"] / numbers["fit"]["ridge"] / numbers["fit"]["closing_noise"]
    mode = (0.5 * numbers["fit"]["row_bound"] / numbers["fit"]["mode_noise"]) ** 2
    plain = sum(ratio**2 for ratio in continuous["fit"]) + closing**2 + mode
    assert 2.0**-45 < float(min(squares) - Fraction(plain)) < 2.0**-36


def test_noise_that_a_lattice_cannot_carry_is_refused_before_anything_is_spent():
    check_lattice([Stage(1.0, 10.0, 10)], BUDGET)
    for noise, words in ((1e-9, "too small"), (1e9, "too large")):
        with pytest.raises(PromiseRefused, match=words):
            check_lattice([Stage(1.0, noise, 10)], BUDGET)
    for budget in (od.ApproxDP(1e-8, 1e-12), od.GaussianDP(1e-9)):
        mechanism = PerturbedMode(measured=True, pure=False) if isinstance(budget, od.ApproxDP) else Measured(share=0.2)
        with pytest.raises(PromiseRefused):
            calibrate(mechanism, LOGISTIC, budget, n=5000)
