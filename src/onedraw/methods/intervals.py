"""What released numbers say of their own uncertainty: post-processing of what was published, it costs nothing.

| published | file | what it rests on |
| --- | --- | --- |
| several draws of a regression | `draws/replicated` | their spread, calibrated by the law of a draw (`draws/law`) on public designs (`models.design`) |
| one draw of a conjugate posterior | `draws/replicated` | the draw's law, inverted by the family (`models.conjugate.family`) |
| sums with plain noise | `added_noise/intervals` | the noise's law (`noise_law`) |
| squares about a released mean | `added_noise/variance_intervals` | the noise's law, and the most variable distribution that the numbers allow |
| quantiles | `quantiles/intervals` | ends released with them |
| counts of scores | `release.evaluations` | a parametric bootstrap |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from onedraw.arrays import Array
from onedraw.plain_text import readable


@dataclass(frozen=True, eq=False)
class Published:
    """What left, and the units in which people read it.

    Parameters
    ----------
    draws : array
        A row for each draw, in the model's own coordinates.
    stages : mapping, optional
        Everything that was published by a method that publishes in stages.
    lattice : float
        Step that draws were rounded to.
    change, scale, shift : array
        ``scale·(change @ draw) + shift`` is a draw in the units of the columns.
    """

    draws: Array
    stages: Mapping[str, Any] | None
    lattice: float
    change: Array
    scale: Array
    shift: Array
    names: tuple[str, ...]
    """Of the published numbers."""


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


class Spread(NamedTuple):
    """The inter-quartile range; the ends are None where no intervals were released."""

    value: float
    low: float | None = None
    high: float | None = None
    level: float | None = None

    def __str__(self) -> str:
        if self.low is None or self.high is None or self.level is None:
            return f"Inter-quartile range {readable(self.value)}."
        return (
            f"Inter-quartile range {readable(self.value)}, between {readable(self.low)} and {readable(self.high)}: an interval of "
            f"{100 * self.level:g} %, from those of both quartiles."
        )
