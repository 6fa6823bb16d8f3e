"""How many steps Hamiltonian Monte Carlo needs, estimated before any record is read: L-lag couplings.

Biswas, Jacob and Vanetti, "Estimating convergence of Markov chains with L-lag couplings" (NeurIPS 2019); the coupling of
HMC mixed with a random walk is that of Heng and Jacob (Biometrika 106, 2019). Pairs of the very chain that will be
released from are run on data simulated from the plan's public reference design (`simulated`), a data set for each pair,
with a fixed public seed. When they meet says how far the chain still moves after t steps (`meetings`); the fewest steps
whose figure is below the one asked for are taken. Nothing in it depends on a record: the certificate may quote it, as
estimated on simulated data, and the plan's reserve pays for it as for a proven distance. It is evidence for data like the
design's, no proof for the records at hand.

Couplings on the private records themselves (`curator_coupling`) depend on them and stay with the curator.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.samplers.coupling_bound import Meetings, late_within, named
from onedraw.samplers.hamiltonian import HMC, WALK, check_potential

LEAST_RESERVE = 1e-4
"""The least total variation estimated without being asked for by number: 50,000 pairs of chains, about an hour."""

LAG = 20
MOST_STEPS = 1000
PUBLIC_SEED = 20_240_302  # simulated data and chains on them: the seed protects nothing and makes plans reproducible

AT_ONCE = 2**14
"""Records of simulated data advanced side by side: more of them no longer fit in a core's cache."""

_FOUND: dict[tuple[Any, ...], tuple[int, ...]] = {}


def coupled(
    plan: Any, *, tv: float | None = None, lag: int = LAG, replications: int | None = None, confidence: float = 0.95,
    leapfrog: int | None = None, step_size: float | None = None, walk: float | None = None,
    most_steps: int = MOST_STEPS,
) -> HMC:  # fmt: skip
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
        raise WrongCall(f"tv must be a total variation from 1e-6 to 0.5, but {tv!r} came. 0.01 is usual.")
    pairs = int(np.ceil(5.0 / tv)) if replications is None else replications
    for name, value in (("lag", lag), ("replications", pairs), ("most_steps", most_steps)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise WrongCall(f"{name} must be a whole number of at least 1, but {value!r} came.")
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
    which = (named(plan, chain, lag), pairs, most_steps)
    if which not in _FOUND:
        _FOUND[which] = _counts(_simulated_meetings(plan, chain, lag=lag, pairs=pairs, most_steps=most_steps))
    meetings = Meetings(_FOUND[which], lag, float(confidence), which[0], late)
    return replace(chain, steps=meetings.steps, meetings=meetings)


def reserve_for_each_draw(plan: Any) -> float:
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


def _simulated_meetings(plan: Any, chain: HMC, *, lag: int, pairs: int, most_steps: int) -> Any:
    """Coupled steps until each pair met, on simulated data; refused where one does not meet."""
    from onedraw.models.compute import jax
    from onedraw.samplers import coupling_chain
    from onedraw.samplers.chacha import seeded_key
    from onedraw.samplers.hamiltonian_chain import Settings
    from onedraw.samplers.laplace import laplace_frames
    from onedraw.samplers.potential import stacked
    from onedraw.samplers.simulated import simulated_records

    generator, key = np.random.default_rng(PUBLIC_SEED), seeded_key(PUBLIC_SEED)
    at_once = max(1, min(128, pairs, AT_ONCE // plan.n))
    found: list[Any] = []
    for batch in range(-(-pairs // at_once)):
        targets = [plan.target(simulated_records(plan, generator)) for _ in range(at_once)]
        arguments = stacked(targets)
        keys = jax.random.split(jax.random.fold_in(key, batch), at_once)
        times = coupling_chain.meeting_times(
            targets[0].kernel, keys, laplace_frames(targets, arguments),
            Settings(*chain.settings(targets[0].dimension)), lag, most_steps, arguments,
        )  # fmt: skip
        found.append(np.asarray(times))
        if (found[-1] > most_steps).any():
            raise _never_met(most_steps)
    return np.concatenate(found)[:pairs]


def _never_met(most_steps: int) -> ExactnessRefused:
    return ExactnessRefused(
        f"On data simulated from the public design some pairs of chains did not meet within {most_steps:,} steps, so no "
        "number of steps can be recommended. Nothing was drawn. Use a smaller step_size=, more most_steps=, "
        'Candidates(of=BetaDivergence()), which needs no chain, or NUTS(warmup=…) with accept="assumed".'
    )


def _counts(times: Any) -> tuple[int, ...]:
    return tuple(np.bincount(np.asarray(times), minlength=2)[1:].tolist())


@dataclass(frozen=True)
class CuratorCoupling:
    """Couplings on private records: for the curator alone.

    When chains meet depends on the records. Neither these figures nor a decision taken on them (another sampler, more
    steps, no release) may be published, logged or turned into an exit code; no release, certificate or ledger entry
    holds them, and there is no way to write them out. Choose steps with `HMC.coupled`, which reads no record.
    """

    meetings: Meetings = field(repr=False)
    unmet: int = field(repr=False)

    def total_variation(self, steps: int) -> float:
        """The estimate after so many steps; infinite where a pair never met."""
        return self.meetings.estimate(steps) if not self.unmet else float("inf")

    def __repr__(self) -> str:
        return "CuratorCoupling(<private>)"

    def __reduce__(self) -> Any:
        raise WrongCall("A coupling on private records is for the curator's eyes and is not written out.")


def curator_coupling(
    target: Any, sampler: HMC, *, pairs: int = 200, lag: int = LAG, most_steps: int = MOST_STEPS, key: Any = None
) -> CuratorCoupling:  # fmt: skip
    """How far a coupled chain is from the posterior of these very records. The result is as private as they are."""
    from onedraw.models.compute import jax
    from onedraw.samplers import coupling_chain
    from onedraw.samplers.chacha import secure_key
    from onedraw.samplers.hamiltonian_chain import Settings
    from onedraw.samplers.laplace import laplace_frame
    from onedraw.samplers.potential import arguments_of

    if not isinstance(sampler, HMC) or not sampler.walk > 0.0:
        raise WrongCall("Only HMC with a random walk has a coupling whose chains meet: use HMC.coupled(plan).")
    keys = jax.random.split(secure_key() if key is None else key, pairs)
    times = np.asarray(
        coupling_chain.meeting_times_on_one(
            target.kernel, keys, laplace_frame(target), Settings(*sampler.settings(target.dimension)), lag, most_steps,
            arguments_of(target),
        )
    )  # fmt: skip
    unmet = int((times > most_steps).sum())
    return CuratorCoupling(Meetings(_counts(times), lag, 0.95, "private records"), unmet)
