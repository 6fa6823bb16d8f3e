"""Noisy matrices: what noise hides is neither taken for less than it can tell nor for more than half of what is expected (matrices.py)."""

from __future__ import annotations

import numpy as np
import pytest

from onedraw.methods.fit.matrices import HALF, raise_hidden


def test_a_direction_is_raised_to_one_deviation_of_its_noise() -> None:
    expected, noise = np.diag([4.0, 1.0, 1.0]), 0.2
    kept = raise_hidden(np.diag([3.0, 0.01, -0.5]), expected, noise)
    assert np.diag(kept) == pytest.approx([3.0, noise, noise])
    assert kept - np.diag(np.diag(kept)) == pytest.approx(np.zeros((3, 3)), abs=1e-12)


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
    assert np.linalg.eigvalsh(raise_hidden(matrix, expected, 1.5 * least)).min() > least


def test_directions_are_those_of_what_is_expected() -> None:
    """In other units of the coefficients the same matrix is raised to the same."""
    generator = np.random.default_rng(1)
    matrix, expected = np.diag([2.0, -0.3, 0.4]), np.diag([2.0, 0.5, 1.0])
    turn = np.linalg.qr(generator.normal(size=(3, 3)))[0]
    turned = raise_hidden(turn @ matrix @ turn.T, turn @ expected @ turn.T, 0.1)
    assert turned == pytest.approx(turn @ raise_hidden(matrix, expected, 0.1) @ turn.T)
    doubled = raise_hidden(9.0 * matrix, 9.0 * expected, 0.9)
    assert doubled == pytest.approx(9.0 * raise_hidden(matrix, expected, 0.1))
