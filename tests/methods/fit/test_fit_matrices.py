"""Noisy matrices: what noise hides is neither taken for less than it can tell nor for more than half of what is expected (matrices.py)."""

from __future__ import annotations

import numpy as np
import pytest

from onedraw.methods.fit.matrices import HALF, ROOM, raise_hidden, raise_to


def test_a_direction_whose_noise_could_hide_half_is_raised_to_one_deviation() -> None:
    expected, noise = np.diag([4.0, 1.0, 1.0]), 0.3
    matrix = np.diag([3.0, 0.01, -0.05])  # 0.01 + ROOM·0.3 and −0.05 + ROOM·0.3 are above a half
    raised = raise_hidden(matrix, expected, noise)
    assert np.diag(raised) == pytest.approx([3.0, noise, noise])
    assert raised - np.diag(np.diag(raised)) == pytest.approx(np.zeros((3, 3)), abs=1e-12)


def test_a_direction_that_noise_shows_to_have_less_is_left_as_it_is() -> None:
    expected, matrix = np.diag([4.0, 1.0]), np.diag([3.0, 0.01])
    edge = (HALF - 0.01) / ROOM
    assert raise_hidden(matrix, expected, 0.99 * edge) == pytest.approx(matrix)
    assert np.diag(raise_hidden(matrix, expected, 1.01 * edge)) == pytest.approx([3.0, 1.01 * edge])


def test_a_direction_is_raised_to_half_of_what_is_expected_at_most() -> None:
    expected = np.diag([4.0, 0.1])
    kept = raise_hidden(np.diag([-1.0, 0.01]), expected, 100.0)
    assert np.diag(kept) == pytest.approx(HALF * np.diag(expected))


def test_a_matrix_that_stands_out_of_its_noise_is_left_as_it_is() -> None:
    generator = np.random.default_rng(0)
    root = generator.normal(size=(5, 8))
    matrix, expected = root @ root.T, 8.0 * np.eye(5)
    least = np.linalg.eigvalsh(matrix).min()
    assert raise_hidden(matrix, expected, 0.99 * least) == pytest.approx(matrix)
    noise = HALF * 8.0
    assert np.linalg.eigvalsh(raise_hidden(matrix, expected, noise)).min() == pytest.approx(noise)


def test_a_covariance_is_raised_to_the_information_and_nowhere_lowered() -> None:
    generator = np.random.default_rng(2)
    root = generator.normal(size=(4, 9))
    least = root @ root.T
    turn = np.linalg.qr(generator.normal(size=(4, 4)))[0]
    covariance = turn @ np.diag([0.01, 0.5, 4.0, 60.0]) @ turn.T
    raised = raise_to(covariance, least)
    for other in (covariance, least):
        assert np.linalg.eigvalsh(raised - other).min() > -1e-9
    assert raise_to(2.0 * least, least) == pytest.approx(2.0 * least)
    assert raise_to(0.5 * least, least) == pytest.approx(least)


def test_directions_are_those_of_what_is_expected() -> None:
    """In other units of the coefficients the same matrix is raised to the same."""
    generator = np.random.default_rng(1)
    matrix, expected = np.diag([2.0, -0.3, 0.4]), np.diag([2.0, 0.5, 1.0])
    turn = np.linalg.qr(generator.normal(size=(3, 3)))[0]
    turned = raise_hidden(turn @ matrix @ turn.T, turn @ expected @ turn.T, 0.1)
    assert turned == pytest.approx(turn @ raise_hidden(matrix, expected, 0.1) @ turn.T)
    doubled = raise_hidden(9.0 * matrix, 9.0 * expected, 0.9)
    assert doubled == pytest.approx(9.0 * raise_hidden(matrix, expected, 0.1))
