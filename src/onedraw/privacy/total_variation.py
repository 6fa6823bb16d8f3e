"""A draw that is only nearly exact: (ε, δ) becomes (ε, δ + (1+e^ε)γ) (mathematics.md §1; errata 12)."""

from __future__ import annotations

import math

from onedraw.errors import InvalidBudget, PromiseRefused
from onedraw.privacy import conversions
from onedraw.privacy.promises import ApproxDP, Promise
from onedraw.privacy.rounding import sum_up, text
from onedraw.privacy.validation import positive, probability


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
