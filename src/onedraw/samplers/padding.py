"""Work that is the same whatever the records are: pad, never cap. Theorem and proofs: padding.md beside this file.

How long a draw takes is something that it gives away. A sampler whose work depends on the records may be asked to *pad* it
(``release(…, timing="padded")``): it draws as ever, then goes on with idle work of the same kind until a public number is
reached. The draw is what it would have been. Where the number did not suffice it runs on; that happens with probability
at most γ₂ on every data set, so the draw together with its work is (ε, δ + (1 + e^ε)γ₂)-DP (`pair_delta`).

Where every try succeeds with probability at least p, whatever came before, k successes take more than B tries with a
probability of at most

    P(NegBin(k, p) > B) = P(Binomial(B, p) < k),        and `tries_for` is the least such B for a γ₂.

One quota for a whole chain is far smaller than a limit on each step: 2976 for 790 steps at p = e^{−9/8} and γ₂ = 1e-12, where 88
a step would be needed.

**What is counted** is work: passes over the records, and the tries or proposals named beside them. How long one of them takes,
and the drawing of random numbers, are not: constant work is not constant time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scipy import special

from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.privacy.conversions import total_variation_delta
from onedraw.privacy.numbers import up

PADDED = "padded"
"""The word a caller asks for it by."""

TRIES_GAMMA = 1e-12
"""γ₂ of one chain whose tries read the records."""

PICK_GAMMA = 2.0**-64
"""γ₂ of one selection, whose proposals read nothing."""

PASSES = "passes over the records"

MOST_IDLE = 10**6
"""Passes of one search that are made for their number alone, whatever κ asks for: minutes for ten thousand records. Beyond, a program
would look as if it hung, when a few dozen passes find the same."""

AT_BALL = "tries to hit the ball"
"""They read no record; how many there are depends on where the records have put a Gaussian."""

DEFINITELY = 1e-9
"""By how much a tail probability is rounded up: far more than the incomplete beta function is off by (1e-15 for up to 10¹¹ tries)."""


@dataclass(frozen=True)
class Padding:
    """What is done whatever the records are, by name, in all draws together; more with probability ``gamma`` at most."""

    work: Mapping[str, int]
    gamma: float = 0.0

    @property
    def passes(self) -> int:
        return self.work[PASSES]

    def __post_init__(self) -> None:
        if PASSES not in self.work or not 0.0 <= self.gamma < 0.5:
            raise WrongCall(f"A padding says how many {PASSES} are made, and misses it with a probability below ½.")


def constant_work(passes: int, **more: int) -> Padding:
    """Of an algorithm that always takes as many steps: there is nothing to pad."""
    return Padding({PASSES: passes, **more})


def no_padding(name: str, why: str = "no number of tries is proven to suffice for every data set") -> ExactnessRefused:
    """The refusal of a sampler whose work stays as it is."""
    return ExactnessRefused(
        f'{name}() cannot pad its work: {why}. Nothing was spent. Leave out timing="padded", or use a mechanism whose work can '
        "be made public: PerturbedMode (a fit), Candidates, NoisyGradient, BarkerPath, Moments, or Gibbs on a ball by Perfect() or Proximal(gamma=…)."
    )


def public_passes(name: str, search: str, passes: int, remedy: str) -> int:
    """Passes of a search that suffice for every data set, if they are not too many to be made on all of them."""
    if passes > MOST_IDLE:
        raise no_padding(
            name,
            f"{search} would take {passes:,} passes whatever the records are, and {MOST_IDLE:,} are the most; {remedy}",
        )
    return passes


# ── how much suffices ────────────────────────────────────────────────────────────────────────────────────────────


def shortfall(successes: int, acceptance: float, tries: int) -> float:
    """P(Binomial(tries, acceptance) < successes), rounded up: that so many tries are not enough."""
    if tries < successes:
        return 1.0
    # not `bdtr`: it forms 1 − p, which costs 2e-8 of a tail of 10⁷ tries, and counts in 32 bits
    tail = special.betaincc(float(successes), tries - successes + 1.0, acceptance)
    return min(1.0, up(float(tail), relative=DEFINITELY))


def tries_for(successes: int, acceptance: float, gamma: float) -> int:
    """The least B with `shortfall` at most ``gamma``; each try succeeds with probability ``acceptance`` at least, whatever came before."""
    if not (successes >= 1 and 0.0 < acceptance <= 1.0 and 0.0 < gamma < 1.0):
        raise WrongCall(
            f"A quota needs at least 1 success, an acceptance in (0, 1] and a γ₂ in (0, 1); {successes}, {acceptance!r} and "
            f"{gamma!r} were given."
        )
    low, high = successes, successes
    while shortfall(successes, acceptance, high) > gamma:
        low, high = high + 1, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if shortfall(successes, acceptance, middle) <= gamma else (middle + 1, high)
    return low


def pair_delta(epsilon: float, delta: float, gamma: float) -> float:
    """δ of a draw together with its work, at the draw's ε: δ + (1 + e^ε)γ₂, rounded up."""
    return min(1.0, up(delta + total_variation_delta(epsilon, gamma))) if gamma else delta
