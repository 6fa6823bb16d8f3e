"""A sampler as a line of a certificate: written by ``to_dict``, read back here so that `verify` can ask it again."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from onedraw.errors import CertificateRejected

# name → the file it lives in; looked up when asked for, so that an exact release loads no JAX
_KNOWN = {
    "Exact": "exact",
    "Fit": "fit",
    "HMC": "hamiltonian",
    "LastIterateLangevin": "langevin",
    "Langevin": "langevin",
    "MeasuredFirst": "measured_first",
    "Measure": "moments",
    "NUTS": "hamiltonian",
    "NoisySums": "noisy_sums",
    "LossSelection": "loss_selection",
    "Proximal": "proximal",
    "RankSelection": "rank_selection",
    "Selection": "selection",
}


def sampler_from_dict(stored: Mapping[str, Any]) -> Any:
    """The inverse of ``sampler.to_dict()``; an unknown sampler or option is an error."""
    name = stored.get("name") if isinstance(stored, Mapping) else None
    if not isinstance(name, str) or name not in _KNOWN:
        raise CertificateRejected(f"No sampler is called {name!r}; the known ones are {', '.join(sorted(_KNOWN))}.")
    options = {option: value for option, value in stored.items() if option != "name"}
    try:
        return getattr(import_module(f"onedraw.samplers.{_KNOWN[name]}"), name)(**options)
    except TypeError:
        raise CertificateRejected(f"The options stated for the sampler {name} are not those it has.") from None
