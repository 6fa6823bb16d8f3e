"""How a draw is made, and how exact it is.

A sampler knows nothing of what is being estimated: it is given a law and a source of randomness, and says before it runs how
exactly it draws (`sampler`). The files:

- `exact` (closed-form laws) with `ball` (a Gaussian, also cut to a ball);
- `perfect` (Gibbs posteriors on a ball, by rejection), `langevin` and `proximal` (chains for them) with `proximal_chain`,
  `preconditioner`, `chains` and `variates`;
- `hamiltonian` (HMC and NUTS, never proven) with `laplace` (where they start, in which coordinates), `blackjax_kernels` (the one
  place that meets BlackJAX), and `coupling`, `coupling_bound` (how L-lag couplings on data simulated by `simulated` estimate
  what is missing);
- `selection` (one of many candidates, exactly, in whole numbers) and `noise` (the one place that meets OpenDP), which methods run by;
- `choice` (the default); `padding` (work that is the same whatever the records are);
- `randomness` (operating-system entropy into ChaCha20, or a seed; what a fork does to it), `numpy_chacha` (the one place that
  meets randomgen), `chacha` (a ChaCha20 key type for JAX).

A method that is an algorithm of its own brings its sampler along (`run` in its folder). A new sampler of posteriors is a file with a
`Sampler` in it, and its name here. Names are looked up on first use, so that importing this
package loads neither JAX nor randomgen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand
from onedraw.samplers import randomness as randomness  # watches for forks from now on

if TYPE_CHECKING:
    from .chacha import CHACHA20, chacha_key, secure_key, seeded_key
    from .choice import check_sampler, default_sampler
    from .exact import Exact
    from .hamiltonian import HMC, NUTS
    from .langevin import Langevin, LastIterateLangevin
    from .perfect import Perfect
    from .proximal import Proximal
    from .randomness import OPERATING_SYSTEM, SEEDED, Randomness, secure_generator, seeded_generator
    from .sampler import Sample, Sampler
    from .variates import check_delta

__all__ = [
    "CHACHA20", "HMC", "NUTS", "OPERATING_SYSTEM", "SAMPLERS", "SEEDED", "Exact", "Langevin",
    "LastIterateLangevin", "Perfect",
    "Proximal", "Randomness", "Sample", "Sampler", "chacha_key", "check_delta", "check_sampler",
    "default_sampler", "randomness", "secure_generator", "secure_key", "seeded_generator", "seeded_key",
]  # fmt: skip

_SAMPLERS = {
    "exact": ("Exact",),
    "hamiltonian": ("HMC", "NUTS"),
    "langevin": ("Langevin", "LastIterateLangevin"),
    "perfect": ("Perfect",),
    "proximal": ("Proximal",),
}
"""By the file that is read when a plan, a certificate or a caller asks for one."""

_OTHERS = {
    "chacha": ("CHACHA20", "chacha_key", "secure_key", "seeded_key"),
    "choice": ("check_sampler", "default_sampler"),
    "randomness": ("OPERATING_SYSTEM", "SEEDED", "Randomness", "secure_generator", "seeded_generator"),
    "sampler": ("Sample", "Sampler"),
    "variates": ("check_delta",),
}

SAMPLERS = tuple(name for names in _SAMPLERS.values() for name in names)

if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(__name__, _SAMPLERS, _OTHERS)
