"""How exact a draw is: what a sampler says before it runs, and what a release pays for it (architecture.md).

Strongest first: ``Exact``, ``LastIterate`` (the law actually sampled carries its own promise),
``WithinTV(γ)`` (proven total variation distance), ``Estimated`` (evidence), ``Assumed`` (a named
assumption). A draw that is only nearly exact turns (ε, δ) into (ε, δ + (1+e^ε)γ) (mathematics.md §1; errata 12).
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

from onedraw.errors import InvalidBudget, PromiseRefused
from onedraw.privacy import conversions
from onedraw.privacy.promises import ApproxDP, Promise
from onedraw.privacy.rounding import sum_up, text
from onedraw.privacy.stored import Stored
from onedraw.privacy.validation import positive, probability


class Exactness(Stored, key="kind", noun="exactness", refuses=InvalidBudget):
    """The relation between the law a theorem is about and the law a sampler draws from."""

    @property
    @abc.abstractmethod
    def sentence(self) -> str:
        """The words for a certificate."""


@dataclass(frozen=True)
class Exact(Exactness, tag="exact"):
    """A draw from the very law the theorem is about; ``numeric`` names the number model it is exact in."""

    numeric: str = ""

    @property
    def sentence(self) -> str:
        return f"exact draw ({self.numeric})" if self.numeric else "exact draw"


@dataclass(frozen=True)
class WithinTV(Exactness, tag="within-tv"):
    """The law drawn from is proven to be within total variation ``gamma``, for every data set."""

    gamma: float

    def __post_init__(self) -> None:
        self._set(gamma=probability("γ", self.gamma))

    @property
    def sentence(self) -> str:
        return f"proven to be within total variation {text(self.gamma)} of an exact draw"


@dataclass(frozen=True)
class LastIterate(Exactness, tag="last-iterate"):
    """The last iterate of a noisy algorithm: its own law is proven to keep ``promise``."""

    promise: Promise

    @property
    def sentence(self) -> str:
        return f"last iterate, itself proven to keep {self.promise}"


@dataclass(frozen=True)
class AsRun(Exactness, tag="as-run"):
    """The theorem is about the program itself, its rounding and early stopping included: what ran keeps ``promise``."""

    promise: Promise

    @property
    def sentence(self) -> str:
        return f"the program that ran is itself proven to keep {self.promise}"


@dataclass(frozen=True)
class Estimated(Exactness, tag="estimated"):
    """Estimated to be within total variation ``gamma`` for every data set: evidence, not proof.

    Never pure: even where the estimate is right, a promise pays for γ as it does for `WithinTV`.
    """

    gamma: float
    evidence: str

    def __post_init__(self) -> None:
        self._set(gamma=probability("γ", self.gamma))

    @property
    def sentence(self) -> str:
        return (
            f"estimated, not proven, to be within total variation {text(self.gamma)} of an exact draw ({self.evidence})"
        )


@dataclass(frozen=True)
class Assumed(Exactness, tag="assumed"):
    """Taken to be exact on the strength of a statement the caller accepted in so many words."""

    statement: str

    @property
    def sentence(self) -> str:
        return f"assumed, not proven: {self.statement}"


def with_total_variation(promise: Promise, gamma: float, epsilon: float | None = None) -> ApproxDP:
    """The (ε, δ) kept by a law within total variation γ of one that keeps ``promise``, for every data set.

    ``epsilon`` says at which ε; it may be left out for PureDP, BoundedRange and ApproxDP, which have their
    own.
    """
    gamma = probability("γ", gamma)
    if epsilon is None:
        epsilon = promise.stated_epsilon if isinstance(promise, ApproxDP) else promise.pure_epsilon
        if epsilon == math.inf:
            raise InvalidBudget(
                f"{promise} holds at every ε with its own δ, and what γ costs depends on ε: pass epsilon=…"
            )
    epsilon = positive("ε", epsilon)
    delta = sum_up([promise.delta(epsilon), conversions.total_variation_delta(epsilon, gamma)])
    if not delta < 1.0:
        raise PromiseRefused(
            f"a draw within total variation {text(gamma)} promises nothing at ε = {text(epsilon)}: δ would "
            f"be {delta:.3g}. Run the sampler longer, so that γ is smaller."
        )
    return ApproxDP(epsilon, delta)
