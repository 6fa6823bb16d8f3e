"""What error to expect of a release, from public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Expectation:
    """Root mean squared errors per parameter: of the private draw (or the mean of several), and without privacy.

    Averaged over the prior, for regressions over the reference design. ``bias`` is the part of ``private`` that no
    repetition would average out: the prior's pull, and the start of a path. Not a number where nothing is known.
    """

    private: float
    sampling: float
    bias: float = math.nan

    def times(self, unit: float) -> Expectation:
        """The same errors in another unit."""
        return Expectation(self.private * unit, self.sampling * unit, self.bias * unit)


UNKNOWN = Expectation(math.nan, math.nan)
