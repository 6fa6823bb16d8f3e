"""The grid on which privacy losses are composed: as fine as the smallest part needs, and no finer."""

import math

import pytest

from onedraw.privacy.pld import GaussianPair, _upper_interval, randomised_response


def test_one_part_is_cut_into_4096_intervals():
    assert _upper_interval(((GaussianPair(0.5), 1),)) == GaussianPair(0.5).spread / 4096


def test_small_part_beside_a_large_one_is_cut_into_64_intervals():
    parts = ((randomised_response(1.0), 1), (randomised_response(0.01), 1))
    assert _upper_interval(parts) == pytest.approx(0.01 / 64)


def test_part_too_small_to_be_resolved_gets_a_65536th_for_each_kind():
    parts = ((randomised_response(1.0), 1), (randomised_response(1e-4), 1))
    finest = 2 * math.hypot(1.0, 1e-4) * 2.0**-16
    assert _upper_interval(parts) == pytest.approx(1e-4 / math.ceil(1e-4 / finest))


@pytest.mark.parametrize("times", [1, 7, 1000, 10**6])
def test_rounding_adds_less_than_a_ten_thousandth_of_the_variance(times):
    parts = ((GaussianPair(0.3), times), (randomised_response(0.02), 5))
    variance = sum(pair.spread**2 * count for pair, count in parts)
    assert (times + 5) * _upper_interval(parts) ** 2 / 4 < 1e-4 * variance
    assert math.sqrt(variance) / _upper_interval(parts) <= 2.0**18
