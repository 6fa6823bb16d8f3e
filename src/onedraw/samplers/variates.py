"""Uniform and normal variates whose tails double precision carries: for chains that a theorem is about.

`jax.random.uniform` takes 2⁵² equally likely values, and `jax.random.normal` is their quantile: it never leaves ±8.3, and
beyond ±7.5 its values lie more than a thousandth apart. A promise whose δ, or whose γ, is smaller than such a tail is then
false: a single step certified at δ = 1e-30 shows a record with probability 2e-16.

Here the leading bit of u is drawn by its own law, P(u < 2^{−k}) = 2^{−k}, and 52 bits follow it: u is a real uniform number cut
after 53 significant bits, wherever it lies above 2^{−75}. A normal variate is a sign and the quantile of u/2, so both its tails
are as fine: neighbouring values are about 2^{−50} apart. What is left out is the mass below 2^{−75} (`floating_point`).
"""

from __future__ import annotations

from typing import Any

from jax.scipy.special import ndtri

from onedraw.models.compute import jax, jnp


def variates(key: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The same variates as uniform numbers in [2^{−76}, 1) and as standard normal ones: each is to be used as one of them.

    From one call, since most of a short step's time goes to the cipher.
    """
    following, leading = jax.random.bits(key, (2, *shape), "uint64")  # 52 bits that follow, 11 more that lead, a sign
    more = jnp.minimum(jax.lax.clz(following << 52), jnp.uint64(11))
    zeros = jax.lax.clz(leading) + jnp.where(leading == 0, more, jnp.uint64(0))
    uniform = jax.lax.bitcast_convert_type(((jnp.uint64(1022) - zeros) << 52) | (following >> 12), jnp.float64)
    size = -ndtri(0.5 * uniform)
    return uniform, jnp.where(following & 1, size, -size)


def normal(key: Any, shape: tuple[int, ...]) -> Any:
    """Standard normal numbers."""
    return variates(key, shape)[1]
