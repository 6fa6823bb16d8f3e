"""Noisy symmetric matrices: how they are drawn towards what is expected, and kept from promising too much."""

from __future__ import annotations

import numpy as np

from onedraw.arrays import Array

HALF = 0.5
"""Share of what is expected to which a hidden direction is raised at most."""


def draw_towards(measured: Array, towards: Array, noise: float) -> Array:
    """Return a noisy matrix drawn towards another one, by as much of their difference as noise explains.

    Every eigenvalue of the difference keeps the share of James and Stein (1961), or more if it stands out of the noise's spectrum,
    which ends at noise·√(2p): √(d² − 2p·noise²) is then best (Donoho, Gavish, Johnstone 2018, for Frobenius's norm).
    """
    p = len(measured)
    values, axes = np.linalg.eigh(measured - towards)
    kept = max(0.0, 1.0 - noise**2 * p * (p + 1) / 2.0 / max(float((values**2).sum()), 1e-300))
    outside = np.sqrt(np.maximum(values**2 - 2.0 * p * noise**2, 0.0))
    return np.asarray(towards + (axes * np.sign(values) * np.maximum(kept * np.abs(values), outside)) @ axes.T)


def lower_eigenvalues(matrix: Array, by: float) -> Array:
    """Return the matrix with eigenvalues lower by this much, at most halved."""
    values, axes = np.linalg.eigh(matrix)
    return np.asarray((axes * np.maximum(values - by, values / 2.0)) @ axes.T)


def raise_eigenvalues(matrix: Array, least: float) -> Array:
    """Return the matrix with eigenvalues of at least this size."""
    values, axes = np.linalg.eigh(matrix)
    return np.asarray((axes * np.maximum(values, least)) @ axes.T)


def raise_hidden(matrix: Array, expected: Array, noise: float) -> Array:
    """Return a noisy matrix that is along no direction smaller than noise can tell, nor than half of another one if that is less.

    Directions are those in which the other matrix is the identity. Along each the matrix is raised to one deviation of its own noise:
    a smaller value cannot be told from that one, and the inverse of a small noisy number is mostly noise. Where noise exceeds half of
    what is expected, it hides how much smaller the truth is, and half is what it is raised to.
    """
    values, axes = np.linalg.eigh(expected)
    there, back = (axes / np.sqrt(values)) @ axes.T, (axes * np.sqrt(values)) @ axes.T
    values, axes = np.linalg.eigh(there @ matrix @ there)
    turned = there @ axes
    deviations = noise * np.einsum("ij,ij->j", turned, turned)
    return np.asarray(back @ (axes * np.maximum(values, np.minimum(deviations, HALF))) @ axes.T @ back)
