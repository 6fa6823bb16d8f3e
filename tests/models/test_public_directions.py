"""Public directions: uniform on the sphere, and the same everywhere."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from scipy import stats

from onedraw.models.public_directions import PublicDirections, cosine_and_sine, deviation, directions, random_words

SEED = bytes(range(32))


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 6, 31])
def test_they_have_length_one_and_both_signs(dimension: int) -> None:
    found = directions(SEED, dimension, 0, 4000)
    assert found.shape == (4000, dimension)
    assert np.abs(np.linalg.norm(found, axis=1) - 1.0).max() <= deviation(dimension)
    assert np.abs(found.mean(axis=0)).max() < 6.0 / math.sqrt(4000 * dimension)


@pytest.mark.statistical
@pytest.mark.parametrize("dimension", [2, 3, 5, 6])
def test_a_coordinate_along_any_axis_has_its_law_and_a_cube_has_another(dimension: int) -> None:
    """(e·u)² ~ Beta(½, (d−1)/2); α = 1e-6. Planted: directions of points in a cube, which favour its corners."""
    found = directions(SEED, dimension, 1, 60_000)
    axes = [np.eye(dimension)[0], np.eye(dimension)[-1], np.ones(dimension) / math.sqrt(dimension)]

    def rejected(vectors: np.ndarray, axis: np.ndarray) -> bool:
        law = stats.beta(0.5, (dimension - 1) / 2.0)
        return bool(stats.kstest((vectors @ axis) ** 2, law.cdf).pvalue < 1e-6)

    assert not any(rejected(found, axis) for axis in axes)
    cube = np.random.default_rng(1).uniform(-1.0, 1.0, (60_000, dimension))
    assert rejected(cube / np.linalg.norm(cube, axis=1, keepdims=True), axes[-1])


def test_cosine_and_sine_are_those_of_a_uniform_angle() -> None:
    words = random_words(SEED, 0, 10_000)
    across, along = cosine_and_sine(words)
    assert np.abs(across**2 + along**2 - 1.0).max() < 2.0**-50
    angles = np.arctan2(along, across) / (2.0 * np.pi) % 1.0
    assert stats.kstest(angles, "uniform").pvalue > 1e-6


def test_every_machine_draws_the_same_bits() -> None:
    """A test vector: whoever finds other bits could not recompute a path."""
    found = b"".join(directions(SEED, dimension, 3, 64).tobytes() for dimension in (1, 2, 3, 6, 9))
    assert hashlib.sha256(found).hexdigest() == "b54a2d2b10b34cdf5f33f59cae0f419c2beb83fcf4dfc6efebec14ab6f679af5"


def test_blocks_follow_one_another_and_seeds_differ() -> None:
    stream = PublicDirections(SEED, 3)
    drawn = stream.directions(stream.in_block + 2)
    assert np.array_equal(drawn[: stream.in_block], directions(SEED, 3, 0, stream.in_block))
    assert np.array_equal(drawn[stream.in_block :], directions(SEED, 3, 1, stream.in_block)[:2])
    assert not np.array_equal(drawn[0], PublicDirections(bytes(32), 3).direction())
