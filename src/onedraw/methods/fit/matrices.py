"""Noisy symmetric matrices: how they are drawn towards what is expected, and kept from promising too much."""

from __future__ import annotations

import numpy as np

from onedraw.arrays import Array

HALF = 0.5
"""Share of what is expected to which a hidden direction is raised at most."""

ROOM = 2.0
"""Deviations of its noise by which a direction must fall short of that share to be taken for one with less. At none no direction
would be raised whose noise is below that share, and a tenth of the intervals of tables for deriving would be lost that hold."""


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
    """Return a noisy matrix, raised along directions in which noise could hide that it is half of what is expected.

    Directions are those in which ``expected`` is the identity. A direction is raised if `ROOM` deviations of its noise would reach half
    of what is expected: to one deviation, since a smaller value cannot be told from that one, and to half of what is expected at most.
    Any other direction is left as it is, because noise does not explain how small the matrix is there: most of what was expected is
    missing, and a raised value would promise information that the records do not have.
    """
    to_unit, from_unit = _unit_roots(expected)
    values, axes = np.linalg.eigh(to_unit @ matrix @ to_unit)
    turned = to_unit @ axes
    deviations = noise * np.einsum("ij,ij->j", turned, turned)
    raised = np.maximum(values, np.minimum(deviations, HALF))
    values = np.where(values + ROOM * deviations >= HALF, raised, values)
    return np.asarray(from_unit @ (axes * values) @ axes.T @ from_unit)


def raise_to(matrix: Array, least: Array) -> Array:
    """Return the matrix, raised so that it is along no direction smaller than ``least``, which is positive definite."""
    to_unit, from_unit = _unit_roots(least)
    return np.asarray(from_unit @ raise_eigenvalues(to_unit @ matrix @ to_unit, 1.0) @ from_unit)


def _unit_roots(matrix: Array) -> tuple[Array, Array]:
    """Return the symmetric roots of a positive matrix's inverse and of the matrix."""
    values, axes = np.linalg.eigh(matrix)
    return np.asarray((axes / np.sqrt(values)) @ axes.T), np.asarray((axes * np.sqrt(values)) @ axes.T)
