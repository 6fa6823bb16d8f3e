"""What the best possible attacker could do: a promise as a trade-off curve and as three figures.

The attacker knows every record but one, knows that this one is A or B, sees the release and guesses. A guess has two
errors: a false alarm (says B, it is A; rate α) and a miss (says A, it is B). A promise with profile δ(ε) keeps every
guess above

    f(α) = sup_ε max(0, 1 − δ(ε) − e^ε α, e^{−ε}(1 − δ(ε) − α))

(Dong, Roth and Su, arXiv:1905.02383, Proposition 2.12 and its converse). The supremum is taken over a finite grid of ε
and δ(ε) is rounded up, so the curve lies below the true one: the attacker is never made to look weaker than he may be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from onedraw.privacy.promises import Promise

GRID = 96
COARSE = 12
LARGEST_EXPONENT = 700.0
COMMON = 0.01
"""The odds are bounded for findings that come up with at least this probability; rarer ones are what δ is about."""


@dataclass(frozen=True)
class Attacker:
    """Everything a reader may want to know of the attacker, from the promise alone."""

    promise: Promise
    stated_delta: float = 0.0

    @cached_property
    def profile(self) -> tuple[tuple[float, float], ...]:
        """Pairs (ε, δ(ε)), denser near 0, up to where δ is out of sight."""
        top = self._largest_epsilon
        return tuple(
            (epsilon, self.promise.delta(epsilon)) for epsilon in (top * (k / GRID) ** 2 for k in range(GRID + 1))
        )

    @property
    def _largest_epsilon(self) -> float:
        for delta in (0.0, 1e-9, self.stated_delta):
            epsilon = self.promise.epsilon(delta)
            if epsilon < LARGEST_EXPONENT:
                return epsilon
        return LARGEST_EXPONENT

    def misses(self, false_alarms: float) -> float:
        """f(α): the smallest rate of misses at this rate of false alarms."""
        found = 0.0
        for epsilon, delta in self.profile:
            steep = 1.0 - delta - math.exp(epsilon) * false_alarms
            flat = math.exp(-epsilon) * (1.0 - delta - false_alarms)
            found = max(found, steep, flat)
        return found

    def caught(self, false_alarms: float) -> float:
        """1 − f(α): how often B is recognised, at most."""
        return 1.0 - self.misses(false_alarms)

    @cached_property
    def right_guesses(self) -> float:
        """The largest share of right guesses when A and B are equally likely beforehand: 1 − α at f(α) = α.

        Every ε gives a bound; a coarse grid and a finer one around its best find nearly the least, in a quarter of the profile.
        """
        top = self._largest_epsilon
        coarse = [top * (k / COARSE) ** 2 for k in range(COARSE + 1)]
        wrong = [self._wrong_guesses(epsilon) for epsilon in coarse]
        best = wrong.index(max(wrong))
        low, high = coarse[max(best - 1, 0)], coarse[min(best + 1, COARSE)]
        fine = (low + (high - low) * k / COARSE for k in range(1, COARSE))
        return 1.0 - max(*wrong, *map(self._wrong_guesses, fine))

    def _wrong_guesses(self, epsilon: float) -> float:
        """At least this share is wrong, by the promise at this ε."""
        return (1.0 - self.promise.delta(epsilon)) / (1.0 + math.exp(epsilon))

    @property
    def always(self) -> bool:
        """Whether the odds are bounded whatever comes out (δ = 0)."""
        return self.promise.epsilon(0.0) < LARGEST_EXPONENT

    @cached_property
    def odds_factor(self) -> float:
        """By how much a finding can raise the odds of B against A: for a pure promise always, otherwise for every
        finding of probability at least `COMMON`, where it is `COMMON`/f(1 − `COMMON`) since f is its own inverse."""
        if self.always:
            return math.exp(self.promise.epsilon(0.0))
        floor = self.misses(1.0 - COMMON)
        return COMMON / floor if floor > 0 else math.inf

    def curve(self, points: int = 101) -> Sequence[tuple[float, float]]:
        """(α, f(α)) for drawing, denser near 0 where it bends."""
        alphas = [(k / (points - 1)) ** 2 for k in range(points)]
        return [(alpha, self.misses(alpha)) for alpha in alphas]
