"""Squares about a released center: what one record can move, and what follows from exact sums."""

import itertools

import numpy as np
import pytest

from onedraw.models import Grouped, NumberTable
from onedraw.models.tables.centered_squares import (
    FAR_NOISE,
    NEAR,
    NEAR_NOISE,
    REACH,
    centers_of,
    square_noise,
    square_parts,
    squares_of,
)
from onedraw.models.tables.table import STEPS

TABLE = NumberTable(0.0, 10.0, show="variance")
CENTERS = [0, 1, STEPS // 10, STEPS // 3, STEPS // 2, STEPS - 1, STEPS]


@pytest.mark.parametrize("center", CENTERS)
def test_no_replaced_record_moves_the_three_sums_further_than_stated(center):
    drawn = np.random.default_rng(3).integers(0, STEPS + 1, 60)
    root = np.sqrt(NEAR) * max(center, STEPS - center)
    edges = np.clip([0, center, STEPS, center + root, center - root], 0, STEPS)
    places = np.rint(np.concatenate([drawn, edges]))
    parts = np.array(square_parts(places, np.full(len(places), float(center)))).T
    moved = max(np.abs(one - other).sum() for one, other in itertools.combinations(parts, 2))
    assert 0.999 * REACH < moved <= REACH


@pytest.mark.parametrize("center", CENTERS)
def test_parts_never_fall_as_a_record_moves_away(center):
    """Near, far and fourth, one lattice step apart at a time and across the edge of what is near."""
    away = max(center, STEPS - center)
    sign = 1 if center <= STEPS // 2 else -1
    for start in (0, away // 2, int(np.sqrt(NEAR) * away) - 500, away - 1000):
        distances = np.arange(max(start, 0), min(start + 1000, away) + 1)
        first, second, fourth = square_parts(center + sign * distances, np.full(len(distances), float(center)))
        near, far = (first + 4 * second) / 5, (first - second) / 5
        for part in (near, far, fourth):
            assert (np.diff(part) >= -1e-6).all()
            assert part.min() >= 0.0
            assert part.max() <= STEPS + 1e-6


def test_exact_sums_give_the_mean_square_and_the_variance():
    values = np.random.default_rng(5).gamma(1.5, 1.0, 500).clip(0, 10)
    summary = TABLE.summarise(values)
    first = np.array([summary.total[0]], dtype=float)
    sums = summary.squares(centers_of(first, np.array([500.0]))).reshape(1, 3)
    (found,) = squares_of(first, sums, np.array([500.0]), 1.0)
    assert found.variance(found.square) * 100.0 == pytest.approx(values.var(ddof=1), rel=1e-6)
    z = (values - values.mean()) ** 2 / (100.0 * found.farthest)
    assert found.near == pytest.approx(np.minimum(z / NEAR, 1.0).mean(), abs=1e-6)
    assert found.far == pytest.approx((np.maximum(z - NEAR, 0.0) / (1.0 - NEAR)).mean(), abs=1e-6)
    assert found.fourth == pytest.approx((np.minimum(z / NEAR, 1.0) ** 2).mean(), abs=1e-6)


def test_groups_of_public_size_are_summed_about_their_own_centers():
    table = NumberTable(0, 10, show="variance", by=("sex",), groups=(("F", "M"),), sizes=(40, 60))
    values, codes = np.random.default_rng(6).uniform(0, 10, 100), np.repeat([0, 1], [40, 60])
    found = table.summarise(Grouped(values, (codes,))).squares([STEPS // 5, STEPS // 2]).reshape(2, 3)
    for group, center in ((0, STEPS // 5), (1, STEPS // 2)):
        alone = TABLE.summarise(values[codes == group]).squares([center])
        assert found[group].tolist() == alone.tolist()


def test_noise_of_the_parts_and_of_the_square_follow_from_one_basis():
    basis = np.array([[1.0, 4.0], [1.0, -1.0]])  # near and far to the first two sums
    assert np.linalg.inv(basis) == pytest.approx(np.array([NEAR_NOISE, FAR_NOISE]))
    assert square_noise(1.0) == pytest.approx([0.2, 4.0 / 40.0 - 7.0 / 40.0])
    assert square_noise(0.0) == pytest.approx([NEAR * part for part in NEAR_NOISE])


def test_odd_cells_are_read_as_in_the_first_sum():
    odd = np.array([np.nan, np.inf, -np.inf, 1e308, -5.0, 3.0])
    plain = np.array([5.0, 5.0, 5.0, 10.0, 0.0, 3.0])
    for center in CENTERS:
        assert TABLE.summarise(odd).squares([center]).tolist() == TABLE.summarise(plain).squares([center]).tolist()
