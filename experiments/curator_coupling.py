"""How far a chain is from the posterior of the private records themselves: couplings that a curator may look at, and nobody else.

What a release rests on are couplings on simulated data (`onedraw.samplers.coupling`), which read no record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.errors import WrongCall
from onedraw.models.compute import jax, jit
from onedraw.plans import Potential
from onedraw.private import Private
from onedraw.samplers.chacha import secure_key
from onedraw.samplers.coupling import LAG, MOST_STEPS, counts, meeting_time
from onedraw.samplers.coupling_bound import MeetingTimes
from onedraw.samplers.hamiltonian import HMC, HMCSettings, log_density_in
from onedraw.samplers.laplace import LaplaceApproximation, arguments_of, laplace_approximation


@dataclass(frozen=True, repr=False)
class CuratorCoupling(Private):
    """Couplings on private records: for the curator alone.

    When chains meet depends on the records. Neither these figures nor a decision taken on them (another sampler, more
    steps, no release) may be published, logged or turned into an exit code; no release, certificate or ledger entry
    holds them, and there is no way to write them out. Choose steps with `HMC.coupled`, which reads no record.
    """

    meeting_times: MeetingTimes
    unmet: int

    def total_variation(self, steps: int) -> float:
        """The estimate after so many steps; infinite where a pair never met."""
        return self.meeting_times.estimate(steps) if not self.unmet else float("inf")

    def __reduce__(self) -> Any:
        raise WrongCall("A coupling on private records is for the curator's eyes and is not written out.")


def curator_coupling(
    target: Potential, sampler: HMC, *, pairs: int = 200, lag: int = LAG, most_steps: int = MOST_STEPS, key: Any = None
) -> CuratorCoupling:
    """How far a coupled chain is from the posterior of these very records. The result is as private as they are."""
    if not isinstance(sampler, HMC) or not sampler.walk > 0.0:
        raise WrongCall("Only HMC with a random walk has a coupling whose chains meet: use HMC.coupled(plan).")
    keys = jax.random.split(secure_key() if key is None else key, pairs)
    settings, laplace = HMCSettings(*sampler.settings(target.dimension)), laplace_approximation(target)
    found = meeting_times(target.kernel, keys, laplace, settings, lag, most_steps, arguments_of(target))
    times = np.asarray(found)
    unmet = int((times > most_steps).sum())
    return CuratorCoupling(MeetingTimes(counts(times), lag, 0.95, "private records"), unmet)


@jit(0)
def meeting_times(
    kernel: Any, keys: Any, laplace: LaplaceApproximation, settings: HMCSettings, lag: Any, most_steps: Any,
    arguments: Any,
) -> Any:  # fmt: skip
    """The coupled steps until each of several pairs met; most_steps + 1 if it did not."""
    log_density = log_density_in(kernel, laplace, arguments)
    size = laplace.mode.shape[0]
    return jax.vmap(lambda key: meeting_time(key, log_density, size, settings, lag, most_steps))(keys)
