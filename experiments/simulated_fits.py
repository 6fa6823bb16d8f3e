"""Thousands of regularised fits on simulated data sets at once: what output and objective perturbation would publish.
For studies.

    estimates = simulated_fits(plan, X, y, seeds)         # X (m, n, columns), y (m, n), a seed each: (m, parameters)
    minima = simulated_minima(plan, X, y)                 # the same without any noise: the non-private twin, ε = ∞

One compiled program finds each minimum by the damped Newton steps of `models.fit.sums`, in plain double precision: the
same minima as a release's to its tolerance, without exact sums. On a processor fits of a chunk follow one another, as
many chunks at a time as there are cores, because a fit then stops when it has arrived; on an accelerator all fits of a
chunk share every step (`jax.vmap`). Not private: seeds are given, nothing is accounted for or certified, and records
leave through `release` alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.baselines.objective_perturbation import ObjectivePerturbation
from onedraw.baselines.output_perturbation import OutputPerturbation
from onedraw.baselines.regularised_fit import MOST_PASSES, RegularisedFit
from onedraw.errors import WrongCall
from onedraw.models.compute import accelerated, check_arithmetic, jax, jit, jnp
from onedraw.models.fit.sums import DOUBTED, FIRST, OVERSHOT, TRUSTED
from onedraw.plans import Plan
from onedraw.samplers.choice import own_sampler

CHUNK, LARGEST_CHUNK = 32, 2**26
"""Fits of a call on a processor, and numbers of one on an accelerator."""

ENOUGH = 4.0
"""A minimum is taken at so many times the certified gradient, which plain sums may miss by their rounding."""


def simulated_fits(plan: Plan, X: Any, y: Any, seeds: Sequence[int]) -> Array:
    """(m, parameters): what m releases with these seeds would publish, but for the lattice. Simulation only, never
    private."""
    sampler: Any = own_sampler(plan)
    generators = [np.random.default_rng(seed) for seed in seeds]
    if sampler is None or not isinstance(plan.mechanism, OutputPerturbation | ObjectivePerturbation):
        raise WrongCall(
            f"simulated_fits repeats output and objective perturbation; a {type(plan.mechanism).__name__} was given. "
            "Use experiments.many_fits."
        )
    tilted = isinstance(plan.mechanism, ObjectivePerturbation)
    tilts = np.array([sampler().tilt(plan, generator) for generator in generators]) if tilted else None
    found = simulated_minima(plan, X, y, tilts)
    return np.array([sampler().published(plan, *one) for one in zip(found, generators, strict=True)])


def simulated_minima(plan: Plan, X: Any, y: Any, tilts: Array | None = None) -> Array:
    """(m, parameters): the minima alone, each with its own tilt b if there are any."""
    rows, responses = np.asarray(X), np.asarray(y)
    if rows.ndim != 3 or not len(rows) or rows.shape[1] != plan.n or responses.shape != rows.shape[:2]:
        raise WrongCall(
            f"Simulated fits need X of shape (m, n, columns) and y of shape (m, n), n = {plan.n:,} as planned; "
            f"X {rows.shape} and y {responses.shape} were given."
        )
    mechanism: Any = plan.mechanism
    fit: RegularisedFit = mechanism.fit(plan.request).stronger(plan.parameters.get("ridge", 0.0))
    if tilts is None:
        tilts = np.zeros((len(rows), fit.width))
    size = max(1, LARGEST_CHUNK // (plan.n * fit.width)) if accelerated() else CHUNK
    solve = partial(_chunk, plan, fit, plan.parameters["tolerance"], size)
    parts = [
        (rows[at : at + size], responses[at : at + size], tilts[at : at + size]) for at in range(0, len(rows), size)
    ]
    check_arithmetic()
    if accelerated():
        return np.concatenate([solve(*part) for part in parts])
    with ThreadPoolExecutor(os.cpu_count()) as cores:  # compiled code lets go of Python's lock
        return np.concatenate(list(cores.map(lambda part: solve(*part), parts)))


def _chunk(plan: Plan, fit: RegularisedFit, tolerance: float, size: int, X: Array, y: Array, tilts: Array) -> Array:
    """The minima of up to ``size`` data sets, filled up to that number: one shape is compiled once."""
    encoded = [plan.model.summarise(one) for one in zip(X, y, strict=True)]
    missing = size - len(encoded)
    z, responses = (
        np.concatenate([np.stack(parts), np.zeros((missing, *parts[0].shape))])
        for parts in ([one.X / fit.row_unit for one in encoded], [one.y / fit.unit for one in encoded])
    )
    precision, centre = fit.penalty
    q = np.concatenate([tilts, np.zeros((missing, fit.width))]) * (fit.step / fit.worth) - precision * centre
    certified = tolerance * fit.step / fit.worth
    most = fit.n * fit.loss.curvature_bound + float(precision.max())
    found, gradients = _minima(fit.loss, not accelerated(), z, responses, q, precision, certified / 2.0, most)
    theta = np.array(found)[: len(encoded)] * fit.step
    for late in np.flatnonzero(np.asarray(gradients)[: len(encoded)] > ENOUGH * certified):  # straight losses, rarely
        target = plan.target(encoded[late])
        theta[late], _ = fit.minimum(target, tolerance, tilts[late])
    return theta


@jit(0, 1)
def _minima(loss: Any, one_by_one: bool, z: Any, y: Any, q: Any, precision: Any, certified: Any, most: Any) -> Any:
    solve = partial(_newton, loss, precision, certified, most)
    return jax.lax.map(solve, (z, y, q)) if one_by_one else jax.vmap(solve)((z, y, q))


def _newton(loss: Any, precision: Any, certified: Any, most: Any, data: Any) -> Any:
    """(η, the norm of its gradient): as in `models.fit.sums._Search.newton`, for one data set."""
    z, y, q = data

    def derivatives(theta: Any) -> Any:
        u = z @ theta
        gradient = loss.kernel.slope(u, y) @ z + precision * theta + q
        return gradient, (z * loss.curvature(u, y)[:, None]).T @ z + jnp.diag(precision)

    def goes_on(state: Any) -> Any:
        return (jnp.linalg.norm(state[1]) > certified) & (state[4] < MOST_PASSES)

    def step(state: Any) -> Any:
        theta, gradient, hessian, added, passes = state
        move = jnp.linalg.solve(hessian + added * jnp.eye(len(theta)), gradient)
        ahead, bent = derivatives(theta - move)
        before, after = gradient @ move, ahead @ move
        overshot = after < -OVERSHOT * before
        less = jnp.where(added > 1e-9 * most, added / TRUSTED, 0.0)
        trusted = jnp.where(after >= -OVERSHOT / 2.0 * before, less, added)
        doubted = jnp.maximum(DOUBTED * added, 1e-6 * most)
        kept = [
            jnp.where(overshot, old, new) for old, new in ((theta, theta - move), (gradient, ahead), (hessian, bent))
        ]
        return (*kept, jnp.where(overshot, doubted, trusted), passes + 1)

    start = jnp.zeros_like(q)
    found, gradient, *_ = jax.lax.while_loop(goes_on, step, (start, *derivatives(start), FIRST * most, 0))
    return found, jnp.linalg.norm(gradient)
