"""The public lattice that released numbers are rounded to.

Floating-point samplers leave traces of their inputs in the low bits of a draw (Mironov, CCS 2012). Rounding to multiples of
one public power of two removes them. It is post-processing and costs no budget, but only on a lattice far coarser than the
sampler's own rounding. How much coarser, and why that suffices: lattice.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import WrongCall
from onedraw.models.row_model import RowModel
from onedraw.plain_text import shown
from onedraw.plans import Plan
from onedraw.samplers.sampler import Sample, Sampler

DEFAULT_BITS = 20
"""The default spacing is about a millionth of the prior's standard deviation, or of 1 for coefficients under a wider prior."""

MIN_ROUNDINGS = 2.0**20
"""Least spacing, in float errors of the draw: the privacy loss of a number then changes by less than 2⁻¹⁶ (lattice.md)."""

NEAR_TIE = 2.0**-40
"""Distance from the middle between two steps, relative to the steps, within which floats are not trusted to round."""

MAX_SPACING = 2.0**-4
"""Most that a default lattice is coarsened to, in prior standard deviations."""


def spacing_for(plan: Plan, sampler: Sampler, declared: float | None) -> float:
    """Return the lattice's spacing: the caller's, or the default for the model's prior; refuse one that is too fine."""
    least, scale = least_spacing(plan, sampler), plan.model.prior_scale
    if declared is None:
        # Rows are measured in their ranges, so coefficients are of order 1 however flat the prior is.
        of_interest = min(scale, 1.0) if isinstance(plan.model, RowModel) else scale
        return max(default_spacing(of_interest), _fit_for(scale, least))
    if not (math.isfinite(declared) and declared > 0 and math.frexp(declared)[0] == 0.5):
        raise WrongCall(
            f"lattice must be a power of two such as 2**-20, got {declared!r}: only then are the released numbers exact "
            "multiples of it in binary arithmetic. Pass lattice=2**-k, or leave it out for the default."
        )
    if declared < least:
        raise WrongCall(
            f"lattice={declared!r} is too fine: the draw is computed in double precision, and digits below "
            f"{shown(least)} could tell its records. Pass lattice=2**{math.frexp(least)[1] - 1} or coarser, or leave it out for "
            "the default."
        )
    return float(declared)


def default_spacing(prior_scale: float) -> float:
    """Return a millionth of the prior's standard deviation, as a power of two."""
    if not 0.0 < prior_scale < math.inf:
        raise WrongCall(
            f"The prior's standard deviation is {prior_scale!r} in floating point, so there is no lattice to round a draw "
            "to. Choose a less extreme prior."
        )
    return math.ldexp(1.0, math.floor(math.log2(prior_scale)) - DEFAULT_BITS)


def least_spacing(plan: Plan, sampler: Sampler) -> float:
    """Return the finest spacing this plan's draws may be published on, a power of two; 0 where any will do.

    What follows from published stages, or was decided in whole numbers, is post-processing whatever its digits are.
    """
    if plan.mechanism.stage_sizes(plan) or sampler.whole_numbers(plan):
        return 0.0
    least = MIN_ROUNDINGS * plan.model.float_error(plan.n, plan.parameters)
    return math.ldexp(1.0, math.ceil(math.log2(least))) if least > 0.0 else 0.0


def _fit_for(prior_scale: float, least: float) -> float:
    """Return ``least``, unless a draw on so coarse a lattice would say nothing."""
    if least > MAX_SPACING * prior_scale:
        raise WrongCall(
            f"Double precision cannot carry this draw: it would have to be rounded to multiples of {shown(least)}, and the "
            f"prior's standard deviation is {shown(prior_scale)}. Measure the quantity from a public point nearer to where the "
            "prior puts it, or choose a wider prior."
        )
    return least


def on_lattice(sample: Sample, spacing: float) -> Array:
    """Return draws as they are published: multiples of ``spacing``, with no digits that the sampler cannot answer for."""
    if sample.origin is not None:
        return snap_from(sample.origin, sample.draws, spacing)
    return snap(sample.draws, spacing, bits=sample.bits)


def snap(values: Array, spacing: float, *, bits: int | None = None) -> Array:
    """Round to the nearest multiple of ``spacing``, exactly, because it is a power of two; to ``bits`` significant bits if
    those are coarser."""
    array = np.asarray(values, dtype=np.float64)
    width: Array | float = spacing
    if bits is not None:
        width = np.maximum(spacing, np.ldexp(1.0, np.frexp(array)[1] - bits))
    with np.errstate(over="ignore"):  # so many steps that a double is a multiple already
        steps = array / width
    return np.where(np.isinf(steps), array, np.rint(steps) * width) + 0.0


def snap_from(origin: Sequence[Fraction | float], offsets: Array, spacing: float) -> Array:
    """Round origin + offset to the lattice as if in exact arithmetic: whole steps of the origin are added as whole numbers,
    and an offset near the middle between two steps is rounded by fractions."""
    unit = Fraction(spacing)
    published = np.empty(offsets.shape)
    for column, exact in enumerate(origin):
        whole, rest = divmod(Fraction(exact), unit)
        places = float(rest / unit) + offsets[:, column] / spacing
        steps = [int(step) for step in np.rint(places)]
        for row in np.flatnonzero(np.abs(np.abs(places - np.rint(places)) - 0.5) < NEAR_TIE * (1.0 + np.abs(places))):
            steps[row] = round((Fraction(exact) + Fraction(float(offsets[row, column]))) / unit) - int(whole)
        published[:, column] = [float((int(whole) + step) * unit) for step in steps]
    return published + 0.0
