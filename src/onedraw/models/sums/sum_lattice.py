"""How fine the lattice of a sum is: by public numbers alone, the largest share of a record and n.

A record's share of a sum of products kkᵀ, k a vector of whole numbers, counts in steps of 1/steps². Its largest entry takes at most
2^m steps,

    m = min(36, 61 − ⌈log₂ n⌉),

so that a block of 2¹⁶ records adds up exactly in float64 (below 2⁵³) and n of them in int64, with room for the noise. Up to
33 million records the first decides; then the lattice grows coarser with n, 30 bits at 2·10⁹. What that costs a promise is
checked by `mechanisms.stages`; what it costs the numbers is a rounding of 2^−(m/2) of a row's bound, 2⁻¹⁵ at
n = 10⁹, where the sampling error of a mean is 2⁻¹⁵ of its deviation.
"""

from __future__ import annotations

import math

BLOCK_BITS, SUM_BITS = 36, 61
"""What a block leaves a record, and all n of them together."""

MEAN_BITS = 30
"""A sum of columns in [−1, 1] counts in steps of 2^−30."""

MOST_RECORDS = 2**31
"""Beyond, sums of gradients in steps of 2^−50 do not fit into 64 bits."""


def share_bits(n: int) -> int:
    """m: a record's products take at most 2^m steps, and the largest ones more than 2^(m − 2)."""
    return min(BLOCK_BITS, SUM_BITS - (n - 1).bit_length())


def gram_bits(squared_norm: float, n: int) -> int:
    """Bits of the lattice of vectors of this norm, for the products of n of them to add up exactly."""
    return (share_bits(n) - math.ceil(math.log2(max(squared_norm, 2.0**-40)))) // 2


def gram_steps(squared_norm: float, n: int) -> float:
    """Steps to a unit of that lattice."""
    return float(2.0 ** gram_bits(squared_norm, n))


def in_words(n: int) -> str:
    """For a certificate."""
    return f"sums over records are whole numbers on a public lattice: a record's products count in up to 2^{share_bits(n)} steps"
