"""What is booked for whole-number noise in place of a Gaussian's: statement and proof in discrete_noise.md.

μ = sensitivity/noise of the continuous law   →   μ + a margin, where noise is many lattice steps wide
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from onedraw.errors import PromiseRefused
from onedraw.models.sums.sum_lattice import MEAN_BITS, MOST_RECORDS, share_bits
from onedraw.privacy.rounding import fraction_up, up

MARGIN, LARGEST_KAPPA = Fraction(1, 2**40), 2.0**-42
"""Added to a stage's ratio, if the discrete law is within e^{±κ} of the continuous one: 2.6κ is needed."""

FINE, TABLE_MARGIN = 2.0**21, Fraction(1, 2**30)
"""The lattice steps in a deviation of a table's noise, at least, and the margin for the six numbers that a record moves."""

UNLIKE = 58.0
"""κ = 58q/σ² for q numbers with noise of σ lattice steps."""

LEAST_PART = 0.6
"""Of a stage's noise, that of a single number: √½ off a diagonal, 1/b of a square (moments.md)."""

MOST_STEPS = 2.0**60
"""Beyond, sums and noise do not fit into 64-bit whole numbers."""


class Stage(NamedTuple):
    """What one record can move, the noise on it, how many numbers there are, and how fine their lattice is."""

    reach: float
    noise: float
    entries: int
    unit: float = 1.0
    """A record's largest share, …"""
    columns: bool = False
    """… of a sum of columns or, as usual, of products."""

    def bits(self, n: int) -> tuple[int, int]:
        """That share has 2 to the power of these lattice steps, at least and at most (`models.sum_lattice`)."""
        return (MEAN_BITS, MEAN_BITS) if self.columns else (share_bits(n) - 2, share_bits(n))

    @property
    def ratio(self) -> float:
        return up(self.reach / self.noise)


def booked(ratio: float | Fraction, margin: Fraction = MARGIN) -> float:
    """μ of discrete Gaussian noise, whose continuous one would have this."""
    return fraction_up(Fraction(ratio) + margin)


def check_lattice(stages: Iterable[Stage], n: int, budget: object) -> None:
    """Refuse, before anything is spent, noise that is too narrow for the lattice of n records, or too wide for whole numbers."""
    if n >= MOST_RECORDS:
        raise PromiseRefused(
            f"Sums of {n:,} records could exceed 64-bit whole numbers. Use fewer than {MOST_RECORDS:,} of them: a public part."
        )
    for stage in stages:
        deviation, (least, most) = stage.noise / stage.unit, stage.bits(n)
        narrow = not UNLIKE * stage.entries <= LARGEST_KAPPA * (deviation * LEAST_PART * 2.0**least) ** 2
        if narrow or not deviation * 2.0**most < MOST_STEPS:
            raise PromiseRefused(
                f"{budget} asks for noise that whole numbers of 64 bits cannot carry exactly for {n:,} records: it is too "
                f"{'small' if narrow else 'large'}. Use a budget nearer to ε = 1{', or fewer columns or records' if narrow else ''}."
            )
