"""Uniform and normal variates whose tails double precision carries, and how small a δ or γ it then can keep.

`jax.random.uniform` takes 2⁵² equally likely values, and `jax.random.normal` is their quantile: it never leaves ±8.3, and
beyond ±7.5 its values lie more than a thousandth apart. A promise whose δ, or whose γ, is smaller than such a tail is then
false: a single step certified at δ = 1e-30 shows a record with probability 2e-16.

Here the leading bit of u is drawn by its own law, P(u < 2^{−k}) = 2^{−k}, and 52 bits follow it: u is a real uniform number cut
after 53 significant bits, wherever it lies above 2^{−75}. A normal variate is a sign and the quantile of u/2, so both its tails
are as fine: neighbouring values are about 2^{−50} apart. What is left out is the mass below 2^{−75}.

**Below it a promise would be known to be false.** A theorem speaks of real variates. One in double precision is a real one
cut after some fifty bits, except for a tail of mass at most t = `LEFT_OUT`, which it never reaches: 2^{−75} for these variates,
2^{−64} for NumPy's exponential ones and less for its normal ones (ziggurat), rounded up. So what N of them make is, but for
rounding, within total variation N·t of what the theorem is about, and a promise (ε, δ) needs

    (1 + e^ε)·N·t ≤ δ,          a sampler within γ        N·t ≤ γ,

like any other law that is not quite the one promised (`privacy.promise`). The factor e^ε is real: a normal variate
that ends at z shows a record that moves it by μ with the probability of a tail beyond z − μ. Rounding itself is the
certificate's assumption that variates are real numbers. A promise that needs no stated δ rests on that assumption alone; what is
made of whole numbers (`selection`) needs neither.
"""

from __future__ import annotations

from typing import Any

from onedraw.errors import ExactnessRefused
from onedraw.models.compute import jax, jnp
from onedraw.plans import Plan
from onedraw.privacy import ApproxDP, Promise
from onedraw.privacy.conversions import total_variation_delta

LEFT_OUT = {"jax": 2.0**-74, "numpy": 2.0**-62}
"""By a sampler's ``randomness``."""

TRIES = 4
"""Of a rejection: more than twice the expected number, whatever the records are."""


def variates(key: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The same variates as uniform numbers in [2^{−76}, 1) and as standard normal ones: each is to be used as one of them.

    From one call, since most of a short step's time goes to the cipher.
    """
    following, leading = jax.random.bits(key, (2, *shape), "uint64")  # 52 bits that follow, 11 more that lead, a sign
    more = jnp.minimum(jax.lax.clz(following << 52), jnp.uint64(11))
    zeros = jax.lax.clz(leading) + jnp.where(leading == 0, more, jnp.uint64(0))
    uniform = jax.lax.bitcast_convert_type(((jnp.uint64(1022) - zeros) << 52) | (following >> 12), jnp.float64)
    size = -jax.scipy.special.ndtri(0.5 * uniform)
    return uniform, jnp.where(following & 1, size, -size)


def normal(key: Any, shape: tuple[int, ...]) -> Any:
    """Standard normal numbers."""
    return variates(key, shape)[1]


def check_delta(plan: Plan, promise: Promise, variates: int, *, randomness: str) -> None:
    """Refuse a stated δ that ``variates`` numbers in all draws together cannot keep, where ``promise`` has need of it."""
    budget = plan.budget
    if not isinstance(budget, ApproxDP) or promise.pure_epsilon <= budget.stated_epsilon:
        return
    least = total_variation_delta(budget.stated_epsilon, variates * LEFT_OUT[randomness])
    if budget.stated_delta < least:
        raise _too_little(f"δ = {budget.stated_delta:.3g} at ε = {budget.stated_epsilon:.3g}", variates, least)


def check_gamma(gamma: float, variates: int) -> None:
    """Refuse a total variation for one draw that a chain of so many variates cannot come within."""
    least = variates * LEFT_OUT["jax"]
    if gamma < least:
        raise _too_little(f"gamma = {gamma:.3g}", variates, least)


def _too_little(stated: str, variates: int, least: float) -> ExactnessRefused:
    return ExactnessRefused(
        f"{stated} is less than {variates:,} variates in double precision can carry: their tails end where up to {least:.3g} is "
        "left. Use a budget with a larger δ or a smaller ε; or Candidates(), which is made of whole numbers and needs no δ."
    )
