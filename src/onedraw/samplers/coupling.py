"""How many steps Hamiltonian Monte Carlo needs, estimated before any record is read: L-lag couplings.

Biswas, Jacob and Vanetti, "Estimating convergence of Markov chains with L-lag couplings" (NeurIPS 2019); the coupling of
HMC mixed with a random walk is that of Heng and Jacob (Biometrika 106, 2019). Pairs of the very chain that will be
released from are run on data simulated from the plan's public reference design (`simulated`), a data set for each pair,
with a fixed public seed. When they meet says how far the chain still moves after t steps (`coupling_bound`); the fewest steps
whose figure is below the one asked for are taken. Nothing in it depends on a record: the certificate may quote it, as
estimated on simulated data, and the plan's reserve pays for it as for a proven distance. It is evidence for data like the
design's, no proof for the records at hand.

Each chain of a pair moves exactly as `hamiltonian` moves one. A step shares everything random between the two: the factor on
the step size, momentum and uniform of the trajectory (BlackJAX's coupled HMC, which contracts distances on a nearly normal
law), then noise and uniform of the random walk, by the reflection-maximal coupling of Bou-Rabee, Eberle and Zimmer (Annals of
Applied Probability 30, 2020), which proposes the same point to both as often as any coupling can. Where both accept it they are
one, exactly and for good.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.models import Encoded
from onedraw.models.compute import jax, jit, jnp
from onedraw.models.design import simulated_records
from onedraw.plans import Plan
from onedraw.samplers import blackjax_kernels as kernels
from onedraw.samplers.chains import advanced, check_potential, whole_number
from onedraw.samplers.coupling_bound import MeetingTimes, late_within, named
from onedraw.samplers.hamiltonian import (
    HMC,
    WALK,
    HMCSettings,
    chosen,
    drawn,
    hamiltonian_step,
    jitter,
    log_density_in,
    log_uniform,
    started,
)
from onedraw.samplers.laplace import LaplaceApproximation, laplace_approximations, stacked

LEAST_RESERVE = 1e-4
"""The least total variation estimated without being asked for by number: 50,000 pairs of chains, about an hour."""

LAG = 20
MOST_STEPS = 1000
PUBLIC_SEED = 20_240_302  # simulated data and chains on them: the seed protects nothing and makes plans reproducible

AT_ONCE = 2**14
"""Records of simulated data advanced side by side: more of them no longer fit in a core's cache."""

_FOUND: dict[tuple[Any, ...], tuple[int, ...]] = {}


def coupled(
    plan: Plan,
    *,
    tv: float | None = None,
    lag: int = LAG,
    replications: int | None = None,
    confidence: float = 0.95,
    leapfrog: int | None = None,
    step_size: float | None = None,
    walk: float | None = None,
    most_steps: int = MOST_STEPS,
) -> HMC:
    """HMC with as many steps as make the estimated total variation at most ``tv``, for one plan and no other.

    | option | meaning |
    | --- | --- |
    | ``tv`` | for each draw; None: what the plan keeps back for it, ``plan.gamma / plan.draws`` |
    | ``lag`` | steps the first chain of a pair is ahead |
    | ``replications`` | pairs, each on a data set of its own; None: 5/tv |
    | ``confidence`` | that pairs are late no more often than the figure says |
    | ``leapfrog``, ``step_size``, ``walk`` | the chain's, as in `HMC`; None: from the dimension |
    | ``most_steps`` | pairs that have not met by then are a refusal |

    Computed once for each plan and kept while the process lives; ``sampler.to_dict()`` keeps it longer.
    """
    check_potential(plan, "HMC")
    if tv is None:
        tv = reserve_for_each_draw(plan)
    if isinstance(tv, bool) or not isinstance(tv, float | int) or not 1e-6 <= tv <= 0.5:
        raise WrongCall(f"tv must be a total variation from 1e-6 to 0.5, but {tv!r} was given. 0.01 is usual.")
    pairs = int(np.ceil(5.0 / tv)) if replications is None else replications
    for name, value in (("lag", lag), ("replications", pairs), ("most_steps", most_steps)):
        whole_number(name, value)
    chosen_walk = WALK / plan.model.dimension**0.5 if walk is None else walk
    chain = HMC(1, leapfrog=leapfrog, step_size=step_size, walk=chosen_walk)
    if chain.walk == 0.0:
        raise WrongCall("Without a random walk two chains come near each other but never meet. Leave walk out.")
    late = late_within(tv, pairs, confidence)
    if late is None:
        raise ExactnessRefused(
            f"{pairs:,} pairs of chains are too few to estimate a total variation of {tv:g} with confidence {confidence:g}: "
            "even where all of them meet, more could be late. Leave out replications= for 5/tv pairs."
        )
    which = (named(plan.digest, chain, lag), pairs, most_steps)
    if which not in _FOUND:
        _FOUND[which] = counts(_simulated_meeting_times(plan, chain, lag=lag, pairs=pairs, most_steps=most_steps))
    found = MeetingTimes(_FOUND[which], lag, float(confidence), which[0], late)
    return replace(chain, steps=found.steps, meeting_times=found)


def reserve_for_each_draw(plan: Plan) -> float:
    """The total variation the plan keeps back for one draw; refused where couplings could not find so little."""
    kept = float(np.nextafter(plan.gamma / plan.draws, 0.0))
    if kept >= LEAST_RESERVE:
        return min(kept, 0.5)
    raise ExactnessRefused(
        f"The plan keeps back a total variation of {max(kept, 0.0):.3g} for each draw, and couplings cannot show one below "
        f"{LEAST_RESERVE:g}. Calibrate with a budget ApproxDP(epsilon, delta) and a reserve gamma=0.01, say, for each draw, "
        "which costs (1 + e^ε) times as much of δ; or use Candidates(of=BetaDivergence()), which is exact; or take NUTS by "
        'name with accept="assumed".'
    )


def _simulated(plan: Plan, generator: np.random.Generator) -> Encoded:
    """Records of the public reference design for the plan's model, at the sizes that its mechanism declares."""
    effect, noise = (getattr(plan.mechanism, size, None) for size in ("effect", "noise"))
    found = simulated_records(plan.model, plan.n, generator, effect=effect, noise=noise)
    if found is None:
        raise ExactnessRefused(
            f"No data can be simulated for {type(plan.model).__name__} from the public design: its features or its likelihood "
            "are not among those the design knows, so nothing can be estimated before the release. Use a sampler that is "
            'taken by assumption, NUTS() with accept="assumed", or a model with a likelihood of onedraw.models.likelihoods.'
        )
    return found


def _simulated_meeting_times(plan: Plan, chain: HMC, *, lag: int, pairs: int, most_steps: int) -> Any:
    """Coupled steps until each pair met, on simulated data; refused where one does not meet."""
    from onedraw.samplers.chacha import seeded_key

    generator, key = np.random.default_rng(PUBLIC_SEED), seeded_key(PUBLIC_SEED)
    at_once = max(1, min(128, pairs, AT_ONCE // plan.n))
    found: list[Any] = []
    for batch in range(-(-pairs // at_once)):
        targets = [plan.target(_simulated(plan, generator)) for _ in range(at_once)]
        arguments = stacked(targets)
        keys = jax.random.split(jax.random.fold_in(key, batch), at_once)
        settings = HMCSettings(*chain.settings(targets[0].dimension))
        laplace = laplace_approximations(targets, arguments)
        found.append(np.asarray(meeting_times(targets[0].kernel, keys, laplace, settings, lag, most_steps, arguments)))
        if (found[-1] > most_steps).any():
            raise ExactnessRefused(
                f"On data simulated from the public design some pairs of chains did not meet within {most_steps:,} steps, so "
                "no number of steps can be recommended. Nothing was drawn. Use a smaller step_size=, more most_steps=, "
                'Candidates(of=BetaDivergence()), which needs no chain, or NUTS(warmup=…) with accept="assumed".'
            )
    return np.concatenate(found)[:pairs]


def counts(times: Any) -> tuple[int, ...]:
    return tuple(np.bincount(np.asarray(times), minlength=2)[1:].tolist())


# ── pairs of chains ──────────────────────────────────────────────────────────────────────────────────────────────


@jit(0)
def meeting_times(
    kernel: Any, keys: Any, laplace: LaplaceApproximation, settings: HMCSettings, lag: Any, most_steps: Any,
    arguments: Any,
) -> Any:  # fmt: skip
    """For each of several stacked targets the coupled steps until a pair met; most_steps + 1 if it did not."""

    def one(key: Any, laplace: LaplaceApproximation, own: Any) -> Any:
        return meeting_time(key, log_density_in(kernel, laplace, own), laplace.mode.shape[0], settings, lag, most_steps)

    return jax.vmap(one)(keys, laplace, arguments)


def meeting_time(key: Any, log_density: Any, dimension: int, settings: HMCSettings, lag: Any, most_steps: Any) -> Any:
    """τ − L: the first chain runs ``lag`` steps alone, then both together until they are one."""
    first_key, second_key, alone, together = jax.random.split(key, 4)

    def draw(number: Any) -> Any:
        return drawn(jax.random.fold_in(alone, number), dimension, walks=True)

    def lead(state: Any, given: Any) -> Any:
        return hamiltonian_step(given, state, log_density, settings)[0]

    def apart(carried: Any) -> Any:
        _, _, met, steps = carried
        return ~met & (steps < most_steps)

    def step(carried: Any) -> Any:
        first, second, _, steps = carried
        pair = coupled_step(jax.random.fold_in(together, steps), first, second, log_density, settings)
        return *pair, steps + 1

    first = advanced(started(first_key, log_density, dimension), lag, draw=draw, step=lead)
    second = started(second_key, log_density, dimension)
    _, _, met, steps = jax.lax.while_loop(apart, step, (first, second, False, 0))
    return jnp.where(met, steps, most_steps + 1)


def coupled_step(key: Any, first: Any, second: Any, log_density: Any, settings: HMCSettings) -> Any:
    """(first, second, met) after one step each, `hamiltonian_step` for either of them alone."""
    jitter_key, hmc_key, walk_key = jax.random.split(key, 3)
    step_size = settings.step_size * jitter(jitter_key)
    first, second = kernels.coupled_hmc_step(
        hmc_key, first, second, log_density, step_size=step_size, leapfrog=settings.leapfrog
    )
    return _walked_together(walk_key, first, second, log_density, settings.walk)


def _walked_together(key: Any, first: Any, second: Any, log_density: Any, walk: Any) -> Any:
    """Maximally coupled proposals, one uniform for both acceptances."""
    noise_key, same_key, chance_key = jax.random.split(key, 3)
    noise = jax.random.normal(noise_key, first.position.shape)
    apart = (first.position - second.position) / walk
    # the same point with probability min(1, φ(noise + apart)/φ(noise)), else the noise mirrored along their difference
    same = log_uniform(same_key) <= -(noise @ apart) - 0.5 * (apart @ apart)
    along = apart / jnp.maximum(jnp.sqrt(apart @ apart), 1e-300)
    mirrored = second.position + walk * (noise - 2.0 * (along @ noise) * along)
    to_first = kernels.state_at(first.position + walk * noise, log_density)
    to_second = chosen(same, to_first, kernels.state_at(mirrored, log_density))
    chance = log_uniform(chance_key)
    moves_first = chance <= to_first.logdensity - first.logdensity
    moves_second = chance <= to_second.logdensity - second.logdensity
    first, second = chosen(moves_first, to_first, first), chosen(moves_second, to_second, second)
    return first, second, jnp.all(first.position == second.position)
