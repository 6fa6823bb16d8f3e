"""How a draw is made, and how exact it is.

A sampler knows nothing of what is being estimated: it is given a law and a source of randomness, and says before it runs how
exactly it draws (`sampler`). The files:

- `exact` (closed-form laws) with `ball` (a Gaussian, also cut to a ball);
- `perfect` (Gibbs posteriors on a ball, by rejection), `langevin` and `proximal` (chains for them) with `proximal_chain`,
  `preconditioner`, `chains` and `variates`;
- `hamiltonian` (HMC and NUTS, never proven) with `laplace` (where they start, in which coordinates), `blackjax_kernels` (the one
  place that meets BlackJAX), and `coupling`, `coupling_bound` (how L-lag couplings on data simulated by `simulated` estimate
  what is missing);
- `selection` (one of many candidates, of settings, or by ranks: exact on whole numbers);
- `private_path` (a private chain, step by step);
- `noisy_sums` (plain noise on exact sums), `fit` (a perturbed mode in its stages) and `moments` (means and second moments, for
  their own sake or before another sampler) with `noise` (the one place that meets OpenDP);
- `many_fits` (many simulated data sets at once); `choice` (the default); `padding` (work that is the same whatever the records are);
- `randomness` (operating-system entropy into ChaCha20, or a seed; what a fork does to it), `numpy_chacha` (the one place that
  meets randomgen), `chacha` (a ChaCha20 key type for JAX).

A new sampler is a file with a `Sampler` in it, and two lines here. Names are looked up on first use, so that importing this
room loads neither JAX nor randomgen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand
from onedraw.samplers import randomness as randomness  # watches for forks from now on

if TYPE_CHECKING:
    from onedraw.samplers.chacha import CHACHA20 as CHACHA20
    from onedraw.samplers.chacha import chacha_key as chacha_key
    from onedraw.samplers.chacha import secure_key as secure_key
    from onedraw.samplers.chacha import seeded_key as seeded_key
    from onedraw.samplers.choice import check_sampler as check_sampler
    from onedraw.samplers.choice import default_sampler as default_sampler
    from onedraw.samplers.coupling import curator_coupling as curator_coupling
    from onedraw.samplers.exact import Exact as Exact
    from onedraw.samplers.fit import Fit as Fit
    from onedraw.samplers.hamiltonian import HMC as HMC
    from onedraw.samplers.hamiltonian import NUTS as NUTS
    from onedraw.samplers.langevin import Langevin as Langevin
    from onedraw.samplers.langevin import LastIterateLangevin as LastIterateLangevin
    from onedraw.samplers.many_fits import fit_many as fit_many
    from onedraw.samplers.many_fits import fits as fits
    from onedraw.samplers.moments import Measure as Measure
    from onedraw.samplers.moments import MeasuredFirst as MeasuredFirst
    from onedraw.samplers.noisy_sums import NoisySums as NoisySums
    from onedraw.samplers.perfect import Perfect as Perfect
    from onedraw.samplers.private_path import PrivatePath as PrivatePath
    from onedraw.samplers.proximal import Proximal as Proximal
    from onedraw.samplers.randomness import OPERATING_SYSTEM as OPERATING_SYSTEM
    from onedraw.samplers.randomness import SEEDED as SEEDED
    from onedraw.samplers.randomness import Randomness as Randomness
    from onedraw.samplers.randomness import secure_generator as secure_generator
    from onedraw.samplers.randomness import seeded_generator as seeded_generator
    from onedraw.samplers.sampler import Sample as Sample
    from onedraw.samplers.sampler import Sampler as Sampler
    from onedraw.samplers.sampler import sampler_from_dict as sampler_from_dict
    from onedraw.samplers.selection import LossSelection as LossSelection
    from onedraw.samplers.selection import RankSelection as RankSelection
    from onedraw.samplers.selection import Selection as Selection

SAMPLERS = {
    "Exact": "exact",
    "Fit": "fit",
    "HMC": "hamiltonian",
    "Langevin": "langevin",
    "LastIterateLangevin": "langevin",
    "LossSelection": "selection",
    "Measure": "moments",
    "MeasuredFirst": "moments",
    "NUTS": "hamiltonian",
    "NoisySums": "noisy_sums",
    "Perfect": "perfect",
    "PrivatePath": "private_path",
    "Proximal": "proximal",
    "RankSelection": "selection",
    "Selection": "selection",
}
"""By name: the file that is read when a plan, a certificate or a caller asks for one."""

_OTHERS = {
    "CHACHA20": "chacha",
    "OPERATING_SYSTEM": "randomness",
    "Randomness": "randomness",
    "SEEDED": "randomness",
    "Sample": "sampler",
    "Sampler": "sampler",
    "chacha_key": "chacha",
    "check_sampler": "choice",
    "curator_coupling": "coupling",
    "default_sampler": "choice",
    "fit_many": "many_fits",
    "fits": "many_fits",
    "sampler_from_dict": "sampler",
    "secure_generator": "randomness",
    "secure_key": "chacha",
    "seeded_generator": "randomness",
    "seeded_key": "chacha",
}

__all__ = sorted(SAMPLERS | _OTHERS)
__getattr__, __dir__ = names_on_demand(__name__, SAMPLERS | _OTHERS)
