"""What L-lag couplings found, as a value a certificate can hold: when pairs of chains met, and the bound it gives.

Two copies of a chain, the first ``lag`` steps ahead, are coupled until they are one. With τ − L the number of steps
that takes, Biswas, Jacob and Vanetti (NeurIPS 2019, Theorem 2.5) bound the distance to the posterior after t steps:

    d_TV(t) ≤ E max(0, ⌈(τ − L − t)/L⌉).

The expectation is over pairs on independently simulated data sets and is estimated from the counts kept here: the share
of pairs that had not met after t steps, at its upper confidence limit (Clopper and Pearson), times the largest number of
lags any of them was behind. The figure follows from counts and steps, so that `verify` derives it again.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scipy import special

from onedraw import privacy
from onedraw.errors import ExactnessRefused, WrongCall

_WRITTEN = re.compile(r"[1-9][0-9]{0,5}:[1-9][0-9]{0,8}( [1-9][0-9]{0,5}:[1-9][0-9]{0,8})*", re.ASCII)
FIELDS = ("met", "lag", "confidence", "of")


@dataclass(frozen=True)
class Meetings:
    """``counts[k]`` pairs met after k + 1 coupled steps. ``of`` names plan, chain and lag they were found for."""

    counts: tuple[int, ...]
    lag: int
    confidence: float
    of: str

    def __post_init__(self) -> None:
        counts = self.counts
        whole = isinstance(counts, list | tuple) and all(type(count) is int and count >= 0 for count in counts)
        if not whole or not counts or counts[-1] == 0 or len(counts) > 10**6:
            raise WrongCall("The counts of meetings are whole numbers, the last of them positive; these are not.")
        if type(self.lag) is not int or self.lag < 1:
            raise WrongCall("The lag of a coupling is a whole number of at least 1; this one is not.")
        if type(self.confidence) is not float or not 0.5 <= self.confidence < 1.0:
            raise WrongCall(f"confidence must lie in [0.5, 1), but {self.confidence!r} came. 0.95 is usual.")
        if not isinstance(self.of, str):
            raise WrongCall("What a coupling was run for is named by a digest.")
        object.__setattr__(self, "counts", tuple(counts))

    @property
    def replications(self) -> int:
        """Pairs of chains, each on a data set of its own."""
        return sum(self.counts)

    def estimate(self, steps: int) -> float:
        """The plain average of max(0, ⌈(τ − L − t)/L⌉)."""
        behind = (math.ceil((met - steps) / self.lag) * count for met, count in self._after(steps))
        return sum(behind) / self.replications

    def upper(self, steps: int) -> float:
        """Its upper confidence limit, at most 1."""
        late = self._after(steps)
        unmet = sum(count for _, count in late)
        lags = max((math.ceil((met - steps) / self.lag) for met, _ in late), default=1)
        if unmet >= self.replications:
            return 1.0
        limit = float(special.betaincinv(unmet + 1.0, float(self.replications - unmet), self.confidence))
        return min(1.0, _three_digits(limit * lags))

    def steps_for(self, tv: float) -> int | None:
        """The fewest steps whose upper limit is at most ``tv``; None if more pairs would be needed."""
        return next((steps for steps in range(1, len(self.counts) + 1) if self.upper(steps) <= tv), None)

    def _after(self, steps: int) -> list[tuple[int, int]]:
        return [(index + 1, count) for index, count in enumerate(self.counts) if count and index + 1 > steps]

    def exactness(self, plan: Any, sampler: Any) -> privacy.Estimated:
        """The estimate for this sampler's steps; refused for another plan or another chain than it was found for."""
        if self.of != named(plan, sampler, self.lag):
            raise ExactnessRefused(
                "These couplings were run for another plan or another chain, so their figure says nothing about this "
                "one. Use HMC.coupled(plan) with the plan that is to be released."
            )
        gamma = self.upper(sampler.steps)
        if not gamma < 1.0:
            raise ExactnessRefused(
                f"{sampler.steps:,} steps are too few: by the couplings on simulated data the draw could be anywhere. Use "
                "HMC.coupled(plan), which chooses the number of steps."
            )
        return privacy.Estimated(gamma, self.evidence(sampler.steps))

    def evidence(self, steps: int) -> str:
        """The words for a certificate."""
        return (
            f"estimated on simulated data: {steps:,} steps, L-lag couplings of this chain with lag {self.lag:,} on "
            f"{self.replications:,} data sets simulated from the public design, upper {self.confidence:.4g} confidence limit"
        )

    def to_dict(self) -> dict[str, Any]:
        """``met`` is written "steps:pairs steps:pairs …", the steps that no pair met after left out."""
        met = " ".join(f"{index + 1}:{count}" for index, count in enumerate(self.counts) if count)
        return {"met": met, "lag": self.lag, "confidence": self.confidence, "of": self.of}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Meetings:
        if set(stored) != set(FIELDS):
            raise WrongCall(f"Stored meetings have exactly the fields {', '.join(FIELDS)}.")
        return cls(_read_counts(stored["met"]), stored["lag"], stored["confidence"], stored["of"])


def _read_counts(met: Any) -> tuple[int, ...]:
    """The inverse of `Meetings.to_dict`; strict."""
    pairs = [tuple(map(int, part.split(":"))) for part in met.split(" ")] if _WRITTEN.fullmatch(str(met)) else []
    if not pairs or [steps for steps, _ in pairs] != sorted({steps for steps, _ in pairs}):
        raise WrongCall("Stored meetings are written 'steps:pairs steps:pairs …', in order; these are not.")
    counts = [0] * pairs[-1][0]
    for steps, count in pairs:
        counts[steps - 1] = count
    return tuple(counts)


def named(plan: Any, sampler: Any, lag: int) -> str:
    """The digest of everything a coupling depends on, but for the number of steps, which it chooses."""
    settings = {"leapfrog": sampler.leapfrog, "step_size": sampler.step_size, "walk": sampler.walk, "lag": lag}
    document = json.dumps({"plan": plan.digest, **settings}, sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()


def _three_digits(value: float) -> float:
    """Rounded up to three significant digits, so that machines agree on it."""
    exponent = math.floor(math.log10(value)) - 2
    return float(f"{math.ceil(value / 10.0**exponent - 1e-6)}e{exponent}")
