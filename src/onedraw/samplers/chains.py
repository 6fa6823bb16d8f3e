"""What compiled chains share: the public numbers they rest on, how they read the records, and randomness drawn ahead of the steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.models.compute import accelerated, jax, jnp
from onedraw.models.convex.losses import LinearLoss
from onedraw.plans import Plan

AHEAD = 64
"""Steps for which what is random is drawn at once."""

AT_ONCE = 2**16
"""Records times chains advanced side by side; more chains than that go one group after the other."""


# ── public numbers ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class PublicNumbers:
    """Of the potential U = w Σ ℓ(θ, x_i) − log π(θ); None: not known, or not finite.

    Read off a plan before the records, or off a target: both agree, because a target's numbers come from its plan.
    """

    dimension: int
    strong_convexity: float
    smoothness: float | None
    radius: float | None = None
    curvature_ratio: float | None = None


def numbers_of_plan(plan: Plan, *, sampler: str) -> PublicNumbers:
    """Refused where the plan has no convex potential, or is an algorithm of its own."""
    check_potential(plan, sampler)
    numbers = plan.parameters
    if "strong_convexity" not in numbers:
        raise closed_form(sampler)
    return PublicNumbers(
        dimension=len(plan.model.parameter_names),
        strong_convexity=numbers["strong_convexity"],
        smoothness=numbers.get("smoothness"),
        radius=numbers.get("radius"),
        curvature_ratio=numbers.get("curvature_ratio"),
    )


def numbers_of_target(target: Any) -> PublicNumbers:
    ratio = target.model.bounds.get("curvature_ratio")
    return PublicNumbers(
        dimension=target.dimension,
        strong_convexity=target.strong_convexity,
        smoothness=target.smoothness if math.isfinite(target.smoothness) else None,
        radius=target.radius,
        curvature_ratio=None if ratio is None else float(ratio.value),
    )


def check_potential(plan: Plan, sampler: str) -> None:
    """Refuse a plan whose law has no potential to follow: a closed form, or an algorithm of its own."""
    if plan.closed_form:
        raise ExactnessRefused(
            f"This plan's law has a closed form; {sampler} would only come near it. Use Exact(), or leave the sampler out."
        )
    if plan.requires != "exact":
        raise ExactnessRefused(
            f"This plan is an algorithm of its own ({plan.requires}) and not a posterior, so {sampler} would draw something its "
            "promise is not about. Leave out sampler=."
        )


def closed_form(sampler: str) -> ExactnessRefused:
    return ExactnessRefused(
        f"{sampler} follows the potential of a convex loss, and this plan's law has a closed form or no known convexity. "
        "Use Exact(), which draws from it as it is."
    )


def smooth(numbers: PublicNumbers, *, sampler: str) -> float:
    """M, or a refusal that names the way out."""
    if numbers.smoothness is None:
        raise ExactnessRefused(
            f"{sampler} needs a smooth loss, and this one has a kink: no step size is known to be small enough. Use the "
            "smoothed version, HuberisedHinge(width=…) or Quantile(smoothing=…); its bounds, and so its weight, are the "
            "same."
        )
    return numbers.smoothness


def checked_gamma(gamma: Any) -> float:
    """A total variation a sampler may be asked to come within."""
    if isinstance(gamma, bool) or not isinstance(gamma, float | int) or not 0.0 < gamma < 0.5:
        raise WrongCall(
            f"gamma must be a number in (0, 0.5), but {gamma!r} was given. It is the total variation the draw may be off by "
            "and costs (1 + e^ε)·gamma of δ; 0 would take infinitely long. Use 1e-9, say."
        )
    return float(gamma)


def whole_number(name: str, value: Any, why: str = "", *, least: int = 1, most: float = math.inf) -> int:
    """A count a chain may be asked for."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise WrongCall(f"{name} must be a whole number of at least {least}, but {value!r} was given.{why}")
    return value


# ── records ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Columns:
    """An (n, d) matrix that keeps its transpose: the layout in which XLA's matrix–vector products are fastest on a CPU.

    A loss of a linear predictor uses its rows as ``X @ theta`` and ``slopes @ X`` only. With each column contiguous both
    products run over long vectors, about a third faster than over short rows (measured at n = 10⁵, d = 20), and the loss
    need not know.
    """

    __array_priority__ = 1000  # NumPy leaves the product to this class

    def __init__(self, transposed: Any) -> None:
        self.transposed = transposed

    def __matmul__(self, theta: Any) -> Any:
        return theta @ self.transposed

    def __rmatmul__(self, slopes: Any) -> Any:
        return self.transposed @ slopes


@cache
def _known_to_jax() -> None:
    jax.tree_util.register_pytree_node(
        Columns, lambda rows: ((rows.transposed,), None), lambda _, children: Columns(*children)
    )


def by_column(rows: Any) -> Columns:
    """NumPy's rows, as an argument of compiled code."""
    _known_to_jax()
    return Columns(np.ascontiguousarray(rows.T))


def arguments_for(target: Any) -> tuple[Any, ...]:
    """``target.arguments`` for potentials and gradients inside a chain; not for Hessians."""
    if not isinstance(target.kernel, LinearLoss):
        return tuple(target.arguments)
    values = (by_column(target.encoded.X), target.encoded.y, target.weight, target.precision, target.location)
    return tuple(jax.tree.map(jnp.asarray, values))


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────


def chains_at_once(size: int, records: int) -> int:
    """In groups of one size, as near as may be."""
    most = max(1, AT_ONCE // max(1, records))
    return max(1, -(-size // max(1, -(-size // most))))


def mapped(chain: Callable[[Any], Any], keys: Any, at_once: int) -> Any:
    """Every chain's end, ``at_once`` of them side by side, inside compiled code."""
    size = len(jax.tree.leaves(keys)[0])
    missing = -size % at_once  # the last group is filled up: a smaller one would be compiled a second time
    filled = jax.tree.map(lambda given: jnp.concatenate([given, given[:missing]]), keys)
    # One chain alone stays matrix–vector products, which are faster than products with a one-column matrix.
    ends = jax.lax.map(chain, filled, batch_size=at_once if at_once > 1 else None)
    return jax.tree.map(lambda end: end[:size], ends)


def advanced(
    start: Any, steps: Any, *, draw: Callable[[Any], Any], step: Callable[[Any, Any], Any], ahead: int = AHEAD
) -> Any:
    """The state after ``steps`` of them: ``step(state, draw(number))`` for the numbers 0, 1, …, drawn ``ahead`` of them.

    One step at a time the cipher's twenty short rounds took longer than a step's arithmetic on an accelerator (200 µs on an
    H200), and on a processor its vector units idle. The numbers are those of drawing at each step: a key is folded from the
    step's number, whoever else's are folded with it.
    """
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
        0,
        (steps + ahead - 1) // ahead,
        lambda block, state: some(block * ahead, jnp.minimum(ahead, steps - block * ahead), state),
        start,
    )
