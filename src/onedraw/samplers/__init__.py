"""How a draw is made, and how exact it is.

A sampler knows nothing of privacy: it is given a law and a source of randomness, and says before it runs how
exactly it draws. The files: `exact` (closed-form laws) with `gaussian` and `ball` (a Gaussian cut to a ball);
`langevin` and `proximal` (chains for Gibbs posteriors: what they promise, without JAX) with `langevin_chain`,
`proximal_chain`, `frame` and `columns` (the chains themselves, compiled); `hamiltonian` (HMC and NUTS, never proven)
with `meetings` and `coupling` (how L-lag couplings on data simulated by `simulated` estimate what is missing),
`hamiltonian_chain` and `coupling_chain` (compiled), `mode` and `landscape` (where they start, in which coordinates),
`blackjax_kernels` (the one place that meets BlackJAX) and `fits` (many data sets at once); `selection` (one of many candidates, exact
on whole numbers); `noisy_sums` (plain noise on exact sums); `fit` (a perturbed mode in its stages), `fit_many` (the same on many
simulated data sets) and `moments` (means and second moments) with `fit_noise` and `opendp_noise` (the one place that meets OpenDP);
`measured_first` (the moments of the columns, then another sampler); `choice` (the default); `stored` (samplers on certificates); `randomness` (operating-system entropy
into ChaCha20, or a seed), `forks` (what a forked child cannot do), `numpy_chacha` (the one place that meets randomgen), `chacha` (a ChaCha20 key type for JAX).

Every sampler is a frozen value with `exactness(plan)`, `run(target, randomness, size=…)`, `draw`, `to_dict` and a
``randomness`` that says what it is run with: "numpy" (a Generator) or "jax" (a key).

Names are looked up on first use, so that importing this room loads neither JAX nor randomgen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand
from onedraw.samplers import forks as forks  # watches for forks from now on

if TYPE_CHECKING:
    from onedraw.samplers.chacha import CHACHA20, chacha_key, secure_key, seeded_key
    from onedraw.samplers.choice import check_sampler, default_sampler
    from onedraw.samplers.coupling import curator_coupling
    from onedraw.samplers.exact import Exact
    from onedraw.samplers.fit import Fit
    from onedraw.samplers.hamiltonian import HMC, NUTS
    from onedraw.samplers.langevin import Langevin, LastIterateLangevin
    from onedraw.samplers.loss_selection import LossSelection
    from onedraw.samplers.many_draws import fits
    from onedraw.samplers.many_fits import fit_many
    from onedraw.samplers.measured_first import MeasuredFirst
    from onedraw.samplers.moments import Measure
    from onedraw.samplers.noisy_sums import NoisySums
    from onedraw.samplers.proximal import Proximal
    from onedraw.samplers.randomness import (
        OPERATING_SYSTEM,
        SEEDED,
        Randomness,
        secure_generator,
        seeded_generator,
    )
    from onedraw.samplers.rank_selection import RankSelection
    from onedraw.samplers.sample import Sample
    from onedraw.samplers.selection import Selection
    from onedraw.samplers.stored import sampler_from_dict

__all__ = [
    "CHACHA20",
    "HMC",
    "NUTS",
    "OPERATING_SYSTEM",
    "SEEDED",
    "Exact",
    "Fit",
    "Langevin",
    "LastIterateLangevin",
    "LossSelection",
    "Measure",
    "MeasuredFirst",
    "NoisySums",
    "Proximal",
    "Randomness",
    "RankSelection",
    "Sample",
    "Selection",
    "chacha_key",
    "check_sampler",
    "curator_coupling",
    "default_sampler",
    "fit_many",
    "fits",
    "sampler_from_dict",
    "secure_generator",
    "secure_key",
    "seeded_generator",
    "seeded_key",
]

_HOME = {
    "Exact": "exact",
    "Fit": "fit",
    "HMC": "hamiltonian",
    "NUTS": "hamiltonian",
    "NoisySums": "noisy_sums",
    "curator_coupling": "coupling",
    "fit_many": "many_fits",
    "fits": "many_draws",
    "Langevin": "langevin",
    "LastIterateLangevin": "langevin",
    "MeasuredFirst": "measured_first",
    "Measure": "moments",
    "LossSelection": "loss_selection",
    "Proximal": "proximal",
    "RankSelection": "rank_selection",
    "Sample": "sample",
    "Selection": "selection",
    "check_sampler": "choice",
    "default_sampler": "choice",
    "sampler_from_dict": "stored",
    "OPERATING_SYSTEM": "randomness",
    "SEEDED": "randomness",
    "Randomness": "randomness",
    "secure_generator": "randomness",
    "seeded_generator": "randomness",
    "CHACHA20": "chacha",
    "chacha_key": "chacha",
    "secure_key": "chacha",
    "seeded_key": "chacha",
}


__getattr__ = names_on_demand(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
