"""The minimum of a tilted convex loss over records in measured coordinates, to a certified gradient: one compiled program.

Newton steps, halved until they shorten the gradient; where those have not arrived after 100 passes, accelerated gradient
steps with public constants, which arrive for every data set (Nesterov 2004, §2.2): no failure depends on the records.
Gradients are exact sums (`exact_sums`), so what is certified holds in any order of the records. Pure functions: the same
for one data set and, mapped, for many.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from .compute import jax, jnp
from .exact_sums import Blocks, check_room, total
from .fit_statistics import NewtonSums

SHORTEST = 2.0**-10
"""The shortest damped Newton step that is tried before the gradient method takes over."""

DECREASE = 0.1
"""A Newton step of length s must shorten the gradient by this share of s: along it ‖g‖ falls at rate ‖g‖."""


class Objective(NamedTuple):
    """What is public of it: ½θᵀQθ + qᵀθ beside the loss (the tilt is in q), the lattice, and when to stop."""

    Q: Any
    q: Any
    coarse: Any
    row_bound: Any
    certified: Any
    """The norm of the gradient to reach."""
    least: Any
    most: Any
    """Between which all eigenvalues of the Hessian lie, whatever the records."""
    most_passes: Any


class _Newton(NamedTuple):
    theta: Any
    gradient: Any
    step: Any
    length: Any
    passes: Any


def minimum(loss: Any, arrays: tuple[Any, ...], objective: Objective) -> tuple[Any, Any]:
    """(θ̂, passes over the records), from the public start 0: to be compiled."""
    newton = _newton(loss, arrays, objective)
    theta, passes = _descent(loss, arrays, objective, newton)
    return theta, passes


def _derivatives(loss: Any, arrays: tuple[Any, ...], objective: Objective, theta: Any) -> tuple[Any, Any]:
    statistic = NewtonSums(loss)
    summed = total(statistic, arrays, objective.coarse, objective.row_bound, theta)
    gradient, hessian = statistic.split(summed, objective.coarse, theta.size)
    return gradient + objective.Q @ theta + objective.q, hessian + objective.Q


def _newton(loss: Any, arrays: tuple[Any, ...], objective: Objective) -> _Newton:
    """As far as damped Newton steps lead."""

    def goes_on(state: _Newton) -> Any:
        above = jnp.linalg.norm(state.gradient) > objective.certified
        return above & (state.length >= SHORTEST) & (state.passes < objective.most_passes)

    def tried(state: _Newton) -> _Newton:
        there = state.theta - state.length * state.step
        gradient, hessian = _derivatives(loss, arrays, objective, there)
        enough = (1.0 - DECREASE * state.length) * jnp.linalg.norm(state.gradient)
        accepted = _Newton(there, gradient, jnp.linalg.solve(hessian, gradient), jnp.ones(()), state.passes + 1)
        halved = state._replace(length=state.length / 2.0, passes=state.passes + 1)
        shorter = jnp.linalg.norm(gradient) <= enough
        return _Newton(*(jnp.where(shorter, *both) for both in zip(accepted, halved, strict=True)))

    # the first "step" has length 0 from a gradient without bound, and is accepted: it evaluates the start
    start, unknown = jnp.zeros_like(objective.q), jnp.full_like(objective.q, jnp.inf)
    began = _Newton(start, unknown, start, jnp.ones(()), jnp.zeros((), int))
    return _Newton(*jax.lax.while_loop(goes_on, tried, began))


def _descent(loss: Any, arrays: tuple[Any, ...], objective: Objective, newton: _Newton) -> tuple[Any, Any]:
    """Accelerated gradient steps from where Newton's ended, none if that was small enough."""
    low, high = jnp.sqrt(objective.least), jnp.sqrt(objective.most)
    momentum = (high - low) / (high + low)

    def stepped(state: tuple[Any, ...]) -> tuple[Any, ...]:
        theta, ahead, gradient, passes = state
        moved = ahead - gradient / objective.most
        ahead = moved + momentum * (moved - theta)
        return moved, ahead, _derivatives(loss, arrays, objective, ahead)[0], passes + 1

    def goes_on(state: tuple[Any, ...]) -> Any:
        return jnp.linalg.norm(state[2]) > objective.certified

    _, ahead, _, passes = jax.lax.while_loop(
        goes_on, stepped, (newton.theta, newton.theta, newton.gradient, newton.passes)
    )
    return ahead, passes


_found = partial(jax.jit, static_argnums=0)(minimum)


@dataclass(frozen=True, eq=False)
class MeasuredBlocks(Blocks):
    """Records in measured coordinates, over which a loss can be minimised."""

    def minimum(self, loss: Any, objective: Objective) -> tuple[Any, Any]:
        """(θ̂, passes over the records)."""
        check_room(self.n, NewtonSums(loss), objective.coarse, objective.row_bound, None)
        theta, passes = _found(loss, self.arrays, objective)
        return theta, passes
