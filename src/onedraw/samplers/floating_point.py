"""How small a δ, or a γ, double precision can carry; below it a promise would be known to be false.

A theorem speaks of real variates. A variate in double precision is a real one cut after some fifty bits, except for a tail
of mass at most t = `LEFT_OUT`, which it never reaches: 2^{−75} for the chains' own variates (`variates`), 2^{−64} for NumPy's
exponential ones and less for its normal ones (ziggurat), rounded up. So what N of them make is, but for rounding, within total
variation N·t of what the theorem is about, and a promise (ε, δ) needs

    (1 + e^ε)·N·t ≤ δ,          a sampler within γ        N·t ≤ γ,

like any other law that is not quite the one promised (`privacy.total_variation`). The factor e^ε is real: a normal variate
that ends at z shows a record that moves it by μ with the probability of a tail beyond z − μ. Rounding itself is the
certificate's assumption that variates are real numbers. A promise that needs no stated δ rests on that assumption alone; what is
made of whole numbers (`selection`) needs neither.
"""

from __future__ import annotations

from typing import Any

from onedraw.errors import ExactnessRefused
from onedraw.privacy import ApproxDP, Promise
from onedraw.privacy.conversions import total_variation_delta

LEFT_OUT = {"jax": 2.0**-74, "numpy": 2.0**-62}
"""By a sampler's ``randomness``."""

TRIES = 4
"""Of a rejection: more than twice the expected number, whatever the records are."""


def check_delta(plan: Any, promise: Promise, variates: int, *, randomness: str) -> None:
    """Refuse a stated δ that ``variates`` numbers in all draws together cannot keep, where ``promise`` has need of it."""
    budget = plan.budget
    if not isinstance(budget, ApproxDP) or promise.pure_epsilon <= budget.stated_epsilon:
        return
    least = total_variation_delta(budget.stated_epsilon, variates * LEFT_OUT[randomness])
    if budget.stated_delta < least:
        raise ExactnessRefused(
            f"δ = {budget.stated_delta:.3g} at ε = {budget.stated_epsilon:.3g} is less than {variates:,} variates in double "
            f"precision can carry: their tails end where up to {least:.3g} is left. The promise would be false. Use a larger "
            "δ or a smaller ε; or Candidates(), which is made of whole numbers and needs no δ at all."
        )


def check_gamma(gamma: float, variates: int) -> None:
    """Refuse a total variation for one draw that a chain of so many variates cannot come within."""
    least = variates * LEFT_OUT["jax"]
    if gamma < least:
        raise ExactnessRefused(
            f"gamma = {gamma:.3g} is less than {variates:,} variates in double precision can come within: their tails end "
            f"where up to {least:.3g} is left. The promise would be false. Use a budget with a larger δ or a "
            "smaller ε; or Candidates(), which is made of whole numbers and needs no δ at all."
        )
