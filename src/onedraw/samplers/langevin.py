"""Langevin steps, θ ← Π(θ − h∇U(θ) + √(2h) ξ): as an algorithm with a promise of its own, and as Proposition 13 has it.

`LastIterateLangevin` claims nothing about the posterior. Its last iterate, after finitely many steps of finite size
from a public start, is itself GaussianDP (`privacy.last_iterate`), no less private than
an exact draw for h ≤ 2/(M + m); how near it is to the posterior is a matter of accuracy alone.

`Langevin` runs until it is within total variation γ of the posterior by Proposition 13 of Minami et al. (NIPS 2016),
which is Corollary 1 of Dalalyan (arXiv:1412.7392): with B = 4·log(1/γ) + d·log(M/m),

    h = 2mγ²/(dM²B),        T = dM²B²/(4m²γ²)        (m², errata 13),

from N(θ*, I/M). It is kept to show what the theorem costs: T is far beyond reach for any γ worth having.

Chains are compiled: a fixed number of steps, the same whatever the records are. Where sums over the records are whole numbers,

    θ ← Π(θ − h(w·Σ∇ℓ + Λ(θ − a)) + √(2h) ξ),        Σ∇ℓ in steps of a public lattice (`onedraw.models.sums.gradient_sums`),

and the records are not in memory (a cluster, a file that is larger), each step is one pass, `records.sum`: the same integers,
the same noise, the same arithmetic on them, and so the same path.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from onedraw import privacy
from onedraw.arrays import Array
from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.models.compute import check_arithmetic, jax, jit, jnp
from onedraw.models.convex.gibbs_target import GibbsTarget, PathTarget, gradient
from onedraw.models.sums.gradient_sums import GradientSums, steps_of
from onedraw.plans import Plan
from onedraw.privacy.last_iterate import last_iterate_mu, path_mu, rounded_difference
from onedraw.privacy.numbers import root_up, text
from onedraw.samplers.chains import (
    AHEAD,
    PublicNumbers,
    advanced,
    arguments_for,
    chains_at_once,
    checked_gamma,
    closed_form,
    mapped,
    numbers_of_plan,
    numbers_of_target,
    smooth,
    whole_number,
)
from onedraw.samplers.padding import Padding, constant_work
from onedraw.samplers.preconditioner import identity_preconditioner, minimum
from onedraw.samplers.sampler import NUMBERS_A_SECOND, Sample, Sampler
from onedraw.samplers.variates import check_delta, check_gamma, normal

MOST_STEPS = 10**8

START_SHARE = 1e-3
"""The part of γ that pays for a start around a point near θ* instead of θ* itself."""

STEP_SECONDS = 1e-5
"""Of one step, however few records there are."""

NO_STEPS = " After no steps the start itself would be released, a constant without information. Use T ≥ 1."


@dataclass(frozen=True)
class LastIterateLangevin(Sampler):
    """``steps`` full-batch steps of ``step_size`` from the prior's location; the last iterate is the draw."""

    compiling: ClassVar[float] = 3.0

    steps: int
    step_size: float

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, NO_STEPS)
        if isinstance(self.step_size, bool) or not isinstance(self.step_size, float | int):
            raise WrongCall(f"step_size must be a number in (0, 2/M), but a {type(self.step_size).__name__} was given.")
        object.__setattr__(self, "step_size", float(self.step_size))
        path_mu(step_size=self.step_size, steps=self.steps, weight=1.0, gradient_difference=1.0)

    @classmethod
    def chosen(cls, plan: Plan, accept: Collection[str]) -> tuple[Sampler, str]:
        steps, step_size = int(plan.parameters["steps"]), plan.parameters["step_size"]
        return cls(steps, step_size), f"the plan's own algorithm: {steps:,} noisy gradient steps"

    def exactness(self, plan: Plan) -> privacy.LastIterate:
        """The smaller of the bounds for the last iterate and for the whole path, for all draws and a person's records."""
        numbers = plan.parameters
        if plan.closed_form or not {"weight", "gradient_difference"} <= set(numbers):
            raise closed_form("LastIterateLangevin")
        if plan.mechanism.own_sampler() is LastIterateLangevin and (self.steps, self.step_size) != (
            numbers["steps"],
            numbers["step_size"],
        ):
            raise ExactnessRefused(
                f"The plan is for {int(numbers['steps']):,} steps of {text(numbers['step_size'])}; this sampler makes "
                f"{self.steps:,} of {text(self.step_size)}. Weight and time were calibrated together. Use the plan's numbers, or "
                "leave the sampler out."
            )
        people = plan.guarantee.unit.records_per_person
        together: Any = privacy.GaussianDP(self.mu(numbers))
        if people > 1:
            together = privacy.group(together, people)
        if plan.draws > 1:  # independent: μ√J
            together = privacy.GaussianDP(root_up(Fraction(together.mu) ** 2 * plan.draws))
        variates = self.steps * len(plan.model.parameter_names) * plan.draws
        check_delta(plan, together, variates, randomness=self.randomness)
        return privacy.LastIterate(together)

    def mu(self, numbers: Mapping[str, float]) -> float:
        """μ of one draw for one record, from a plan's parameters; of a path alone where gradients are rounded."""
        rounding = numbers.get("rounding", 0.0)
        public: dict[str, Any] = {"step_size": self.step_size, "steps": self.steps, "weight": numbers["weight"]}
        difference = rounded_difference(numbers["gradient_difference"], rounding)
        path = path_mu(**public, gradient_difference=difference)
        if rounding or "smoothness" not in numbers or "strong_convexity" not in numbers:
            return path
        public |= {"strong_convexity": numbers["strong_convexity"], "smoothness": numbers["smoothness"]}
        return min(path, last_iterate_mu(**public, gradient_difference=difference))

    def passes(self, plan: Plan) -> int:
        return self.steps * plan.draws

    def padding(self, plan: Plan) -> Padding:
        """As many steps whatever the records are."""
        return constant_work(self.passes(plan))

    def seconds(self, plan: Plan) -> float:
        size = plan.n * len(plan.model.parameter_names)
        return float(plan.draws * self.steps * (STEP_SECONDS + 2.0 * size / NUMBERS_A_SECOND))

    def seconds_each(self, plan: Plan) -> float:
        return 8e-6 + 2.5e-8 * self.steps * (plan.n + 4)

    def run(self, target: Any, randomness: Any, *, size: int = 1) -> Sample:
        """``size`` independent chains from the prior's location, which is public and lies in the ball if there is one; nothing
        but the last iterates is kept."""
        if isinstance(target, PathTarget) and target.lattice is not None:
            draws = on_lattice(target, randomness, steps=self.steps, step_size=self.step_size, size=size)
        else:
            starts = jnp.broadcast_to(jnp.asarray(target.location), (size, target.dimension))
            draws = last_iterates(target, randomness, starts, steps=self.steps, step_size=self.step_size)
        return Sample(draws, {"steps": self.steps})


@dataclass(frozen=True)
class Langevin(Sampler):
    """Within total variation ``gamma`` by Proposition 13, on R^d; refused where it takes more than ``most_steps``."""

    gamma: float
    most_steps: int = MOST_STEPS

    def __post_init__(self) -> None:
        checked_gamma(self.gamma)
        whole_number("steps", self.most_steps, NO_STEPS)

    def exactness(self, plan: Plan) -> privacy.Exactness:
        """WithinTV(γ), if the steps it takes are within the limit."""
        numbers = numbers_of_plan(plan, sampler="Langevin")
        check_gamma(self.gamma, (self._path(numbers)[1] + 1) * numbers.dimension)
        return privacy.WithinTV(self.gamma)

    def passes(self, plan: Plan) -> int:
        return self._path(numbers_of_plan(plan, sampler="Langevin"))[1] * plan.draws

    def run(self, target: Any, randomness: Any, *, size: int = 1) -> Sample:
        """``size`` independent chains, each from N(x̂, I/M), within total variation START_SHARE·γ of N(θ*, I/M).

        Two such laws are within √M‖x̂ − θ*‖/√(2π) of each other, and ‖x̂ − θ*‖ ≤ ‖∇U(x̂)‖/m; a step brings laws no
        further apart. So ‖∇U(x̂)‖²/(2m) ≤ π·m·share²/M will do.
        """
        step_size, steps = self._path(numbers_of_target(target))
        strong, smoothness, share = target.strong_convexity, target.smoothness, START_SHARE * self.gamma
        tolerance = np.pi * strong * share**2 / smoothness
        nearest, noticed = minimum(
            identity_preconditioner(target), target, strong_convexity=strong, smoothness=smoothness, tolerance=tolerance
        )
        start_key, chain_key = jax.random.split(randomness)
        starts = nearest + normal(start_key, (size, target.dimension)) / np.sqrt(smoothness)
        draws = last_iterates(target, chain_key, starts, steps=steps, step_size=step_size)
        return Sample(draws, {"steps": steps, **noticed})

    def _path(self, numbers: PublicNumbers) -> tuple[float, int]:
        smoothness = smooth(numbers, sampler="Langevin")
        if numbers.radius is not None:
            raise ExactnessRefused(
                "Proposition 13 is about Langevin steps on all of R^d, and this posterior is restricted to a ball: no γ is "
                "known. Use Proximal(gamma=…), which is proven on balls."
            )
        step_size, steps = proposition_13(
            self.gamma * (1.0 - START_SHARE),
            dimension=numbers.dimension,
            strong_convexity=numbers.strong_convexity,
            smoothness=smoothness,
        )
        if steps > self.most_steps:
            raise ExactnessRefused(
                f"Proposition 13 needs {steps:.3g} steps to be within total variation {text(self.gamma)} of the posterior; "
                f"the limit is {self.most_steps:.3g}. Its number of steps grows like (M/m)²/γ², and M like n. Use "
                "LastIterateLangevin, whose promise needs no convergence, or Proximal(gamma=…).",
                steps=steps,
            )
        return step_size, steps


def proposition_13(gamma: float, *, dimension: int, strong_convexity: float, smoothness: float) -> tuple[float, int]:
    """(h, T) of Proposition 13. It needs d ≥ 2; in d = 1 an independent second coordinate is imagined."""
    gamma = checked_gamma(gamma)
    if not (dimension >= 1 and 0.0 < strong_convexity <= smoothness < math.inf):
        raise WrongCall(
            f"Proposition 13 needs a dimension of at least 1 and 0 < m ≤ M < ∞, but d = {dimension}, m = "
            f"{text(strong_convexity)}, M = {text(smoothness)} were given."
        )
    d = max(2, dimension)
    bits = 4.0 * math.log(1.0 / gamma) + d * math.log(smoothness / strong_convexity)
    step_size = 2.0 * (strong_convexity / smoothness) * (gamma / smoothness) * (gamma / (d * bits))
    steps = d * (smoothness / strong_convexity * bits / (2.0 * gamma)) ** 2
    return step_size, math.ceil(steps * (1.0 + 1e-12))


# ── chains ───────────────────────────────────────────────────────────────────────────────────────────────────────


def last_iterates(target: GibbsTarget, key: Any, starts: Any, *, steps: int, step_size: float) -> Array:
    """Of chains from these starts, each with a key of its own."""
    radius = np.inf if target.radius is None else target.radius
    keys = jax.random.split(key, len(starts))
    at_once = chains_at_once(len(starts), target.encoded.n)
    return np.asarray(_chains(target.kernel, at_once, keys, starts, steps, step_size, radius, arguments_for(target)))


@jit(0, 1)
def _chains(
    kernel: Any, at_once: int, keys: Any, starts: Any, steps: Any, step_size: Any, radius: Any, arguments: Any
) -> Any:
    deviation = jnp.sqrt(2.0 * step_size)

    def step(theta: Any, noise: Any) -> Any:
        moved = theta - step_size * gradient(kernel, theta, *arguments) + deviation * noise
        return moved * jnp.minimum(1.0, radius / jnp.sqrt(moved @ moved))

    def chain(key_and_start: Any) -> Any:
        key, start = key_and_start
        return _stepped(key, start, steps, step)

    return mapped(chain, (keys, starts), at_once)


def _stepped(key: Any, start: Any, steps: Any, step: Any) -> Any:
    """``steps`` times θ ← step(θ, noise), inside compiled code."""
    return advanced(start, steps, draw=lambda number: normal(jax.random.fold_in(key, number), start.shape), step=step)


# ── paths whose sums are whole numbers ───────────────────────────────────────────────────────────────────────────


def on_lattice(target: PathTarget, key: Any, *, steps: int, step_size: float, size: int) -> Array:
    """``size`` paths from the prior's location, each with a key of its own."""
    check_arithmetic()
    keys = jax.random.split(key, size)
    radius = np.inf if target.radius is None else target.radius
    assert target.lattice is not None
    public = (target.weight, target.precision, target.location, steps_of(target.lattice), step_size, radius)
    numbers = tuple(jnp.asarray(number) for number in public)
    if target.segments is None:
        return np.array([_by_passes(target, one, numbers, steps) for one in keys])
    at_once, start = chains_at_once(size, target.encoded.n), jnp.asarray(target.location)
    return np.asarray(_compiled(target.gradient_sums, at_once, keys, start, steps, numbers, target.segments))


def _by_passes(target: PathTarget, key: Any, numbers: tuple[Any, ...], steps: int) -> Array:
    theta, noise = np.asarray(target.location), np.zeros((0, 0))
    for number in range(steps):
        if number % AHEAD == 0:
            noise = _noise(target.dimension, key, number)
        total = target.rows.sum(target.gradient_sums, theta)
        theta = np.asarray(_moved(theta, total.astype(np.float64), noise[number % AHEAD], *numbers))
    return theta


@jit(0)
def _noise(dimension: int, key: Any, first: Any) -> Any:
    """That of `AHEAD` steps from the one numbered ``first``."""
    numbers = first + jnp.arange(AHEAD)
    return jax.vmap(lambda number: normal(jax.random.fold_in(key, number), (dimension,)))(numbers)


@jit()
def _moved(
    theta: Any,
    total: Any,
    noise: Any,
    weight: Any,
    precision: Any,
    location: Any,
    units: Any,
    step_size: Any,
    radius: Any,
) -> Any:
    gradient = weight * (total * units) + precision * (theta - location)
    moved = theta - step_size * gradient + jnp.sqrt(2.0 * step_size) * noise
    return moved * jnp.minimum(1.0, radius / jnp.sqrt(moved @ moved))


@jit(0, 1)
def _compiled(sums: GradientSums, at_once: int, keys: Any, start: Any, steps: Any, numbers: Any, records: Any) -> Any:
    def total(theta: Any) -> Any:
        """Each segment's sum is exact as it is; several are added as integers, and rounded once."""
        first, *more = (sums.of_rows(rows, y, theta) for rows, y in records)
        if not more:
            return first
        return sum((part.astype(jnp.int64) for part in more), start=first.astype(jnp.int64)).astype(jnp.float64)

    def path(key: Any) -> Any:
        return _stepped(key, start, steps, lambda theta, noise: _moved(theta, total(theta), noise, *numbers))

    return mapped(path, keys, at_once)
