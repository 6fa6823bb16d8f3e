"""The public grid released numbers are rounded to.

Floating-point samplers leave traces of their inputs in the low bits of a draw (Mironov, CCS 2012). Rounding to
multiples of one public power of two removes them; it is post-processing and costs no budget. The default spacing,
2^(⌊log₂ prior sd⌋ − 20), is about a millionth of the prior's spread: far below any private uncertainty.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from onedraw.errors import WrongCall

DEFAULT_BITS = 20


def spacing_for(prior_scale: float, declared: float | None) -> float:
    """The lattice's spacing: the caller's, if it is a power of two, or the default for this prior."""
    if declared is None:
        if not 0.0 < prior_scale < math.inf:
            raise WrongCall(
                f"The prior's standard deviation is {prior_scale!r} in floating point, so there is no lattice to round a draw "
                "to. Choose a less extreme prior."
            )
        return math.ldexp(1.0, math.floor(math.log2(prior_scale)) - DEFAULT_BITS)
    if not (math.isfinite(declared) and declared > 0 and math.frexp(declared)[0] == 0.5):
        raise WrongCall(
            f"lattice must be a power of two such as 2**-20, got {declared!r}. Only then are the released numbers exact "
            "multiples of it in binary arithmetic. Pass lattice=2**-k, or leave it out for the default."
        )
    return float(declared)


def snap(values: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """Round to the nearest multiple of ``spacing``; exact, because the spacing is a power of two."""
    array = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):  # so many steps that a double is a multiple already
        steps = array / spacing
    return np.where(np.isinf(steps), array, np.rint(steps) * spacing) + 0.0


def on_lattice(values: NDArray[np.float64], spacing: float) -> bool:
    """Whether every value is a finite multiple of ``spacing``."""
    array = np.asarray(values, dtype=np.float64)
    return bool(np.all(np.isfinite(array)) and np.all(snap(array, spacing) == array))
