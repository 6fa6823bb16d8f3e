"""Hamiltonian Monte Carlo and NUTS on a posterior: fast, and never proven.

A chain starts from the Laplace approximation at the mode and runs in the coordinates of `laplace`, in which a posterior of
many records is nearly N(0, I): step size and length of a trajectory then depend on the dimension alone, and little or
no warm-up is needed. That start and coordinates come from the records is no matter, since nothing is proven anyway:

- `NUTS` (Hoffman and Gelman, JMLR 2014) and plain `HMC` (Neal 2011) are `Assumed` to have converged;
- `HMC.coupled` is `Estimated`: L-lag couplings of the very chain, on data simulated from the public reference design,
  choose how many steps it makes (`coupling`).

A release accepts neither unless the caller names it. The kernels are BlackJAX's (`blackjax_kernels`).

Chains are compiled, with a fixed number of steps whatever the records are. Everything about the records, step sizes and lengths
are arguments; one compilation serves all targets of a loss and size. What is random of many steps is drawn ahead (`chains`);
what BlackJAX draws from a trajectory's key it draws in its step. How often proposals were accepted depends on the records: it
stays with the curator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onedraw import privacy
from onedraw.errors import WrongCall
from onedraw.models.compute import jax, jit, jnp
from onedraw.plans import Plan, Potential
from onedraw.privacy.numbers import text
from onedraw.samplers import blackjax_kernels as kernels
from onedraw.samplers.chains import advanced, chains_at_once, check_potential, mapped, whole_number
from onedraw.samplers.coupling_bound import MeetingTimes
from onedraw.samplers.laplace import LaplaceApproximation, arguments_of, laplace_approximation, potential
from onedraw.samplers.sampler import Sample, Sampler

STEP_SIZE = 0.7
"""Times d^{−1/4}: nine of ten proposals are accepted on N(0, I), in any dimension."""

TRAJECTORY = math.pi / 2.0
"""A quarter turn forgets the start entirely on N(0, I)."""

WALK = 0.2
"""Over √d: the random walk of a coupled chain, far shorter than the posterior is wide."""

MOST_DOUBLINGS = 10
"""Of a NUTS trajectory: at most 1023 leapfrog steps."""

MOST_STEPS = 10**9

JITTER = 0.2
"""Each trajectory's step size is the chain's times a factor in 1 ± this: no direction resonates."""


def default_step_size(dimension: int) -> float:
    return float(STEP_SIZE / dimension**0.25)


@dataclass(frozen=True)
class HMC(Sampler):
    """``steps`` Hamiltonian steps of ``leapfrog`` leapfrogs, each of ``step_size`` times a random factor near 1.

    ``step_size`` is in units of the posterior's own spread; None: 0.7·d^{−1/4}. ``leapfrog`` None: a quarter turn. With
    ``walk`` a random-walk Metropolis step of that standard deviation follows each Hamiltonian step, as two coupled
    chains need it to meet. ``meeting_times`` are what couplings on simulated data found: see `HMC.coupled`.
    """

    needs: ClassVar[tuple[str, str]] = ("chains", "blackjax")

    steps: int
    leapfrog: int | None = None
    step_size: float | None = None
    walk: float = 0.0
    meeting_times: MeetingTimes | Any = None

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, most=MOST_STEPS)
        if self.leapfrog is not None:
            whole_number("leapfrog", self.leapfrog, most=MOST_STEPS)
        object.__setattr__(self, "step_size", _step_size(self.step_size))
        if isinstance(self.walk, bool) or not isinstance(self.walk, float | int) or not 0.0 <= self.walk <= 10.0:
            raise WrongCall(
                f"walk must be a standard deviation from 0 (none) to 10, but {self.walk!r} was given. It is in units of the "
                "posterior's own spread; 0.1 is enough."
            )
        object.__setattr__(self, "walk", float(self.walk))
        if isinstance(self.meeting_times, Mapping):
            object.__setattr__(self, "meeting_times", MeetingTimes.from_dict(self.meeting_times))
        elif not isinstance(self.meeting_times, MeetingTimes | None):
            raise WrongCall(f"meeting_times are made by HMC.coupled(plan), got a {type(self.meeting_times).__name__}.")

    @classmethod
    def coupled(cls, plan: Plan, **options: Any) -> HMC:
        """The chain for a plan with as many steps as couplings on simulated data ask for: see `coupling.coupled`."""
        from onedraw.samplers.coupling import coupled

        return coupled(plan, **options)

    def exactness(self, plan: Plan) -> privacy.Exactness:
        """Assumed; Estimated where couplings were run for this plan and these settings."""
        check_potential(plan, "HMC")
        if self.meeting_times is not None:
            return self.meeting_times.exactness(plan, self)
        walk = f", a random-walk step of {text(self.walk)} after each" if self.walk else ""
        return privacy.Assumed(
            f"{self.steps:,} steps of Hamiltonian Monte Carlo ({_shown(self.leapfrog, 'leapfrogs')}, "
            f"{_shown(self.step_size, 'step size')}{walk}) from a Laplace approximation draw from the posterior"
        )

    def settings(self, dimension: int) -> tuple[float, int, float]:
        """(step size, leapfrogs, walk) for a dimension."""
        step_size = self.step_size or default_step_size(dimension)
        return step_size, self.leapfrog or max(1, math.ceil(TRAJECTORY / step_size)), self.walk

    def passes(self, plan: Plan) -> int:
        return self.steps * self.settings(len(plan.model.parameter_names))[1] * plan.draws

    def run(self, target: Potential, randomness: Any, *, size: int = 1) -> Sample:
        """``size`` independent chains; nothing but their ends is kept."""
        arguments = arguments_of(target)
        settings, at_once = HMCSettings(*self.settings(target.dimension)), chains_at_once(size, target.encoded.n)
        keys, laplace = jax.random.split(randomness, size), laplace_approximation(target, arguments)
        walks = self.walk > 0.0
        draws, accepted = _hmc_chains(target.kernel, walks, at_once, keys, laplace, settings, self.steps, arguments)
        return Sample(np.asarray(draws), {"acceptance": float(accepted.mean())})


@dataclass(frozen=True)
class NUTS(Sampler):
    """``steps`` steps of the No-U-Turn sampler after ``warmup`` steps that adapt the step size.

    In the coordinates it runs in, generalised linear models need no warm-up; a network does: a few hundred.
    """

    needs: ClassVar[tuple[str, str]] = ("chains", "blackjax")

    steps: int = 100
    warmup: int = 0
    step_size: float | None = None
    doublings: int = MOST_DOUBLINGS

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, most=MOST_STEPS)
        whole_number("warmup", self.warmup, least=0, most=MOST_STEPS)
        whole_number("doublings", self.doublings)
        if self.doublings > 15:
            raise WrongCall(f"doublings is at most 15, 32,767 leapfrog steps, but {self.doublings} was given.")
        object.__setattr__(self, "step_size", _step_size(self.step_size))

    def exactness(self, plan: Plan) -> privacy.Exactness:
        """Assumed, whatever the model."""
        check_potential(plan, "NUTS")
        return privacy.Assumed(
            f"{self.steps:,} steps of NUTS ({_shown(self.step_size, 'step size')}, at most {self.doublings} doublings, "
            f"{self.warmup:,} steps of warm-up) from a Laplace approximation draw from the posterior"
        )

    def passes(self, plan: Plan) -> int:
        """A step that never turns doubles to the end."""
        return int((self.steps + self.warmup) * 2**self.doublings * plan.draws)

    def run(self, target: Potential, randomness: Any, *, size: int = 1) -> Sample:
        """``size`` independent chains; nothing but their ends is kept."""
        arguments = arguments_of(target)
        static = (target.kernel, self.doublings, self.warmup > 0, chains_at_once(size, target.encoded.n))
        keys, laplace = jax.random.split(randomness, size), laplace_approximation(target, arguments)
        step_size = self.step_size or default_step_size(target.dimension)
        draws, accepted, adapted = _nuts_chains(*static, keys, laplace, step_size, self.warmup, self.steps, arguments)
        return Sample(np.asarray(draws), {"acceptance": float(accepted.mean()), "step_size": float(adapted.mean())})


def _shown(value: float | None, name: str) -> str:
    return f"default {name}" if value is None else f"{name} {text(value)}"


def _step_size(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, float | int) or not 1e-6 <= value <= 2.0:
        raise WrongCall(
            f"step_size must be a number from 1e-6 to 2 (beyond 2 leapfrog steps are unstable on a standard normal law), "
            f"but {value!r} was given. Leave it out for 0.7·d^(−1/4)."
        )
    return float(value)


# ── chains ───────────────────────────────────────────────────────────────────────────────────────────────────────


class HMCSettings(NamedTuple):
    """The numbers of a Hamiltonian step."""

    step_size: Any
    leapfrog: Any
    walk: Any


def log_density_in(kernel: Any, laplace: LaplaceApproximation, arguments: tuple[Any, ...]) -> Any:
    """z ↦ −U(mode + root·z)."""
    return lambda z: -potential(kernel, laplace.theta(z), arguments)


def started(key: Any, log_density: Any, dimension: int) -> Any:
    """A state drawn from the Laplace approximation; at the mode where that lies outside the prior's ball."""
    point = jax.random.normal(key, (dimension,))
    return kernels.state_at(jnp.where(jnp.isfinite(log_density(point)), point, 0.0), log_density)


class Drawn(NamedTuple):
    """What is random of a step: the step size's factor, the trajectory's key, and the walk's noise and log-uniform."""

    factor: Any
    trajectory: Any
    noise: Any = None
    chance: Any = None


def drawn(key: Any, dimension: int, *, walks: bool) -> Drawn:
    jitter_key, hmc_key, walk_key = jax.random.split(key, 3)
    factor = jitter(jitter_key)
    if not walks:
        return Drawn(factor, hmc_key)
    noise_key, chance_key = jax.random.split(walk_key)
    return Drawn(factor, hmc_key, jax.random.normal(noise_key, (dimension,)), log_uniform(chance_key))


def hamiltonian_step(given: Drawn, state: Any, log_density: Any, settings: HMCSettings) -> Any:
    """(state, acceptance probability): one jittered trajectory, then the random walk if noise for it was drawn."""
    step_size = settings.step_size * given.factor
    state, accepted = kernels.hmc_step(
        given.trajectory, state, log_density, step_size=step_size, leapfrog=settings.leapfrog
    )
    if given.noise is None:
        return state, accepted
    walked = kernels.state_at(state.position + settings.walk * given.noise, log_density)
    return chosen(given.chance <= walked.logdensity - state.logdensity, walked, state), accepted


def log_uniform(key: Any) -> Any:
    return jnp.log(jax.random.uniform(key, minval=np.finfo(np.float64).tiny))


def jitter(key: Any) -> Any:
    return jax.random.uniform(key, minval=1.0 - JITTER, maxval=1.0 + JITTER)


def chosen(condition: Any, first: Any, second: Any) -> Any:
    return jax.tree.map(lambda one, other: jnp.where(condition, one, other), first, second)


def _ended(laplace: LaplaceApproximation, state: Any) -> Any:
    """θ where the chain ended. No record may make it anything but a number."""
    theta = laplace.theta(state.position)
    return jnp.where(jnp.isfinite(theta).all(), theta, laplace.mode)


def hmc_chain(
    kernel: Any, walks: bool, key: Any, laplace: LaplaceApproximation, settings: HMCSettings, steps: Any, arguments: Any
) -> Any:
    log_density = log_density_in(kernel, laplace, arguments)
    first, rest = jax.random.split(key)
    dimension = laplace.mode.shape[0]

    def draw(number: Any) -> Drawn:
        return drawn(jax.random.fold_in(rest, number), dimension, walks=walks)

    def step(carried: Any, given: Drawn) -> Any:
        state, total = carried
        state, accepted = hamiltonian_step(given, state, log_density, settings)
        return state, total + accepted

    state, total = advanced((started(first, log_density, dimension), 0.0), steps, draw=draw, step=step)
    return _ended(laplace, state), total / steps


@jit(0, 1, 2)
def _hmc_chains(
    kernel: Any, walks: bool, at_once: int, keys: Any, laplace: LaplaceApproximation, settings: HMCSettings, steps: Any,
    arguments: Any,
) -> Any:  # fmt: skip
    return mapped(lambda key: hmc_chain(kernel, walks, key, laplace, settings, steps, arguments), keys, at_once)


@jit(0, 1, 2, 3)
def _nuts_chains(
    kernel: Any, doublings: int, adapts: bool, at_once: int, keys: Any, laplace: LaplaceApproximation, step_size: Any,
    warmup: Any, steps: Any, arguments: Any,
) -> Any:  # fmt: skip
    log_density = log_density_in(kernel, laplace, arguments)

    def chain(key: Any) -> Any:
        first, warm, rest = jax.random.split(key, 3)
        state, size = started(first, log_density, laplace.mode.shape[0]), jnp.asarray(step_size, dtype=float)
        if adapts:
            state, size = _warmed_up(warm, state, log_density, size, doublings=doublings, warmup=warmup)

        def draw(number: Any) -> Any:
            jitter_key, nuts_key = jax.random.split(jax.random.fold_in(rest, number))
            return jitter(jitter_key), nuts_key

        def step(carried: Any, given: Any) -> Any:
            (state, total), (factor, nuts_key) = carried, given
            state, accepted = kernels.nuts_step(
                nuts_key, state, log_density, step_size=size * factor, doublings=doublings
            )
            return state, total + accepted

        state, total = advanced((state, 0.0), steps, draw=draw, step=step)
        return _ended(laplace, state), total / steps, size

    return mapped(chain, keys, at_once)


def _warmed_up(key: Any, state: Any, log_density: Any, step_size: Any, *, doublings: int, warmup: Any) -> Any:
    """(state, step size) after dual averaging for a public number of steps."""
    start, update, end = kernels.dual_averaging()

    def step(carried: Any, nuts_key: Any) -> Any:
        state, adaptation = carried
        size = jnp.exp(adaptation.log_step_size)
        state, accepted = kernels.nuts_step(nuts_key, state, log_density, step_size=size, doublings=doublings)
        return state, update(adaptation, jnp.nan_to_num(accepted))

    first = (state, start(step_size))
    state, adaptation = advanced(first, warmup, draw=lambda number: jax.random.fold_in(key, number), step=step)
    return state, jnp.clip(end(adaptation), 1e-6, 2.0)
