"""A chain's steps, with what is random of them drawn for `AHEAD` steps at once, each from a key of its own.

One step at a time the cipher's twenty short rounds took longer than a step's arithmetic on an accelerator (200 µs on an H200),
and on a processor its vector units idle. The numbers are those of drawing at each step: a key is folded from the step's number,
whoever else's are folded with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onedraw.models.compute import accelerated, jax, jnp

AHEAD = 64


def advanced(start: Any, steps: Any, *, draw: Callable[[Any], Any], step: Callable[[Any, Any], Any], ahead: int = AHEAD) -> Any:  # fmt: skip
    """The state after ``steps`` of them: ``step(state, draw(number))`` for the numbers 0, 1, …"""
    numbers = jnp.arange(ahead)

    def some(first: Any, count: Any, state: Any) -> Any:
        """``count`` of at most ``ahead`` steps from the step numbered ``first``."""
        drawn = jax.vmap(draw)(first + numbers)

        def one(index: Any, state: Any) -> Any:
            return step(state, jax.tree.map(lambda values: values[index], drawn))

        return jax.lax.fori_loop(0, count, one, state)

    if accelerated():  # runs a loop of known length without asking back after each step
        many = jax.lax.fori_loop(0, steps // ahead, lambda block, state: some(block * ahead, ahead, state), start)
        return some(steps - steps % ahead, steps % ahead, many)
    return jax.lax.fori_loop(
        0, (steps + ahead - 1) // ahead,
        lambda block, state: some(block * ahead, jnp.minimum(ahead, steps - block * ahead), state), start,
    )  # fmt: skip
