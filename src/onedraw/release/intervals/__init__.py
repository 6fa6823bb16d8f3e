"""What released numbers say of their own uncertainty: post-processing of what was published, it costs nothing.

| published | file | what it rests on |
| --- | --- | --- |
| several draws of a regression | `replicated` | their spread, calibrated by the law of a draw (`moments`) on public designs (`models.design`) |
| one draw of a conjugate posterior | `replicated` | the draw's law, inverted by the family (`models.conjugate.family`) |
| sums with plain noise | `tables` | the noise's law (`noise_law`) |
| squares about a released mean | `variances` | the noise's law, and the most variable distribution that the numbers allow |
| quantiles | `quantiles` | ends released with them |
| counts of scores | `evaluations` | a parametric bootstrap |
"""

from __future__ import annotations

from typing import NamedTuple, Self

from onedraw.arrays import Array


class Interval(NamedTuple):
    """Of each released number: its interval, and standard errors from the sample of people and from the release; NaN where what was
    published does not vouch for one. ``start`` is how far the start of a noisy-gradient path may still shift it."""

    centre: Array
    low: Array
    high: Array
    sampling: Array
    privacy: Array
    start: Array | float = 0.0

    def in_units(self, scale: Array, shift: Array) -> Self:
        """The same of ``scale·number + shift``."""
        return self._replace(
            **{name: shift + scale * getattr(self, name) for name in ("centre", "low", "high")},
            **{name: scale * getattr(self, name) for name in ("sampling", "privacy", "start")},
        )
