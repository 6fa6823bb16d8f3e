"""What L-lag couplings found, as a value a certificate can hold: when pairs of chains met, and the figure it gives.

Two copies of a chain, the first ``lag`` = L steps ahead, are coupled until they are one, after τ − L coupled steps. Biswas,
Jacob and Vanetti (NeurIPS 2019, Theorem 2.5) bound the distance to the posterior after t steps by a sum of distances
between the chain's laws L steps apart, each at most the chance that a pair has not met:

    d_TV(t) ≤ Σ_j P(τ − L > t + jL) = E max(0, ⌈(τ − L − t)/L⌉).

No sample bounds that expectation, for nothing bounds τ. What a sample does bound is the first term, the distance to the
law L steps later: of N pairs, each on a data set of its own, `late` may be unmet after the steps chosen. Because `late`
is fixed before any pair is run, the steps are a one-sided tolerance limit (Wilks, 1941): the chance of being late is below
`limit`, that of Clopper and Pearson, with the stated confidence, whatever the law of τ, although the steps were chosen by
the same pairs. The other terms are 0 in the sample: steps are also so many that no pair is more than one lag behind. That
they are 0 in truth is not shown, nor that the private records are like the simulated ones: γ is called an estimate.
It follows from counts and steps, so that `verify` derives it again.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from typing import Any, Self

from scipy import special

from onedraw import privacy
from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.plans import Plan, digest_of
from onedraw.privacy.numbers import text
from onedraw.privacy.stored import Stored, check_names

_WRITTEN = re.compile(r"[1-9][0-9]{0,5}:[1-9][0-9]{0,8}( [1-9][0-9]{0,5}:[1-9][0-9]{0,8})*", re.ASCII)
FIELDS = ("counts", "lag", "confidence", "of", "late")


@dataclass(frozen=True)
class MeetingTimes(Stored, noun="coupling"):
    """``counts[k]`` pairs met after k + 1 coupled steps. ``of`` names plan, chain and lag they were found for.

    ``late`` pairs may be unmet after the steps chosen: decided before the pairs were run, by `late_within`.
    """

    counts: tuple[int, ...]
    lag: int
    confidence: float
    of: str
    late: int = 0

    def __post_init__(self) -> None:
        counts = self.counts
        whole = isinstance(counts, list | tuple) and all(type(count) is int and count >= 0 for count in counts)
        if not whole or not counts or counts[-1] == 0 or len(counts) > 10**6:
            raise WrongCall("The counts of meeting times are whole numbers, the last of them positive; these are not.")
        if type(self.lag) is not int or self.lag < 1:
            raise WrongCall("The lag of a coupling is a whole number of at least 1; this one is not.")
        if type(self.confidence) is not float or not 0.5 <= self.confidence < 1.0:
            raise WrongCall(f"confidence must lie in [0.5, 1), but {self.confidence!r} was given. 0.95 is usual.")
        if not isinstance(self.of, str):
            raise WrongCall("What a coupling was run for is named by a digest.")
        if type(self.late) is not int or not 0 <= self.late < sum(counts):
            raise WrongCall("The pairs that may be late are a whole number, less than all of them; this is not one.")
        object.__setattr__(self, "counts", tuple(counts))

    @property
    def replications(self) -> int:
        """Pairs of chains, each on a data set of its own."""
        return sum(self.counts)

    def estimate(self, steps: int) -> float:
        """The plain average of max(0, ⌈(τ − L − t)/L⌉)."""
        unmet = ((index + 1 - steps, count) for index, count in enumerate(self.counts) if count and index + 1 > steps)
        return sum(math.ceil(behind / self.lag) * count for behind, count in unmet) / self.replications

    @property
    def steps(self) -> int:
        """The fewest after which at most ``late`` pairs have not met, and none is more than one lag behind."""
        unmet, steps = 0, len(self.counts)
        while steps > 1 and unmet + self.counts[steps - 1] <= self.late:
            unmet += self.counts[steps - 1]
            steps -= 1
        return max(steps, len(self.counts) - self.lag)

    @property
    def limit(self) -> float:
        """The upper confidence limit of the chance that a pair has not met after `steps`."""
        return late_limit(self.late, self.replications, self.confidence)

    def exactness(self, plan: Plan, sampler: Any) -> privacy.Estimated:
        """The estimate for this sampler's steps; refused for another plan or another chain than it was found for."""
        if self.of not in (named(plan.digest, sampler, self.lag), named(digest_of(plan.to_dict()), sampler, self.lag)):
            raise ExactnessRefused(
                "These couplings were run for another plan or another chain, so their figure says nothing about this "
                "one. Use HMC.coupled(plan) with the plan that is to be released."
            )
        if sampler.steps < self.steps:
            raise ExactnessRefused(
                f"{sampler.steps:,} steps are too few: by the couplings on simulated data the draw could be anywhere. Use "
                "HMC.coupled(plan), which chooses the number of steps."
            )
        return privacy.Estimated(self.limit, self.evidence(sampler.steps))

    def evidence(self, steps: int) -> str:
        """The words for a certificate."""
        return (
            f"estimated on simulated data: L-lag couplings of this chain on {self.replications:,} data sets simulated from "
            f"the public design; {text(self.limit)} is the upper {self.confidence:.4g} confidence limit of the mean distance "
            f"between its law after {steps:,} steps and {self.lag:,} steps later, which is taken for the posterior, and the "
            "records for ones like the design's"
        )

    def to_dict(self) -> dict[str, Any]:
        """``counts`` are written "steps:pairs steps:pairs …", the steps that no pair met after left out."""
        counts = " ".join(f"{index + 1}:{count}" for index, count in enumerate(self.counts) if count)
        return {"counts": counts, "lag": self.lag, "confidence": self.confidence, "of": self.of, "late": self.late}

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Self:
        check_names(values, FIELDS, of="coupling", refuses=WrongCall)
        return cls(_read_counts(values["counts"]), values["lag"], values["confidence"], values["of"], values["late"])


def _read_counts(stored: Any) -> tuple[int, ...]:
    """The inverse of `MeetingTimes.to_dict`; strict."""
    pairs = [tuple(map(int, part.split(":"))) for part in stored.split(" ")] if _WRITTEN.fullmatch(str(stored)) else []
    if not pairs or [steps for steps, _ in pairs] != sorted({steps for steps, _ in pairs}):
        raise WrongCall("Stored meeting times are written 'steps:pairs steps:pairs …', in order; these are not.")
    counts = [0] * pairs[-1][0]
    for steps, count in pairs:
        counts[steps - 1] = count
    return tuple(counts)


def late_limit(late: int, pairs: int, confidence: float) -> float:
    """The chance p at which a sample of so many pairs has at most ``late`` late ones with probability 1 − confidence."""
    if late >= pairs:
        return 1.0
    chance = float(special.betaincinv(late + 1.0, float(pairs - late), confidence))
    exponent = (
        math.floor(math.log10(chance)) - 2
    )  # rounded up to three significant digits, so that machines agree on it
    return min(1.0, float(f"{math.ceil(chance / 10.0**exponent - 1e-6)}e{exponent}"))


def late_within(tv: float, pairs: int, confidence: float) -> int | None:
    """The most pairs that may be late with a limit of at most ``tv``; None if more pairs would be needed."""
    allowed = None
    for late in range(math.ceil(tv * pairs)):  # a limit is above the share
        if late_limit(late, pairs, confidence) > tv:
            break
        allowed = late
    return allowed


def named(plan: str, sampler: Any, lag: int) -> str:
    """Return the digest of everything a coupling depends on, but for the number of steps, which it chooses.

    ``plan`` is the plan's digest. Couplings run before certificates of format 2 were named by the plan with its sentences.
    """
    settings = {"leapfrog": sampler.leapfrog, "step_size": sampler.step_size, "walk": sampler.walk, "lag": lag}
    document = json.dumps({"plan": plan, **settings}, sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()
