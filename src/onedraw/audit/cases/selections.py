"""Selections on a lattice of whole numbers, written down again: by softmax, or permute and flip."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array

from .case import Case

BITS = 40
NODES, MASSES = np.polynomial.legendre.leggauss(16)
PANELS = np.linspace(-48.0, 0.0, 65)


class SelectionCase(Case):
    """Selections on a lattice of whole numbers: the fault multiplies every width, by permute and flip or by softmax."""

    def numbers(self, factor: float = 1.0) -> dict[str, float]:
        widths = [name for name in self.planned if name.startswith("width")]
        return {**self.planned, **{name: float(math.floor(self.planned[name] * factor)) for name in widths}}

    @property
    def flip(self) -> bool:
        return "flip" in self.plan.parameters

    def eta(self, width: str, factor: float, units: float) -> float:
        """What one unit of the score costs."""
        return self.numbers(factor)[width] * units / 2.0**BITS


def selection_law(weights: Array, lengths: Any, *, flip: bool) -> Array:
    """Of runs of so many places with these log-weights: exp(weight) of each place, normalised; or permute and flip.

    There a place with heads is the first of them to arrive, at a uniform time t: P = ∫ p·Π(1 − p_i·t) dt over the
    others, with t = e^y integrated by Gauss and Legendre over panels of y.
    """
    if not flip:
        return np.asarray(special.softmax(np.log(lengths) + weights))
    log_p = weights - weights.max()
    p, counts = np.exp(log_p), np.asarray(lengths, dtype=np.float64)
    half = np.diff(PANELS) / 2.0
    y = (PANELS[:-1] + half)[:, None] + half[:, None] * NODES
    log_mass = (np.log(half[:, None] * MASSES) + y).reshape(-1)
    missed = np.log1p(-p[:, None] * np.exp(y.reshape(-1)))  # (runs, nodes)
    together = counts @ missed + log_mass
    return np.asarray(np.exp(np.log(counts) + log_p + special.logsumexp(together - missed, axis=1)))
