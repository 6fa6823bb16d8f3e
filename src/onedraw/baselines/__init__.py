"""Compared with what: the other methods of the literature, with honest promises.

Each is a mechanism like those of `onedraw.methods` (the same `calibrate` and `release`, a certificate that verifies), with its
theorem, its source and a line on when anybody should still use it. A method whose published promise is false is here twice:
corrected, and ``as_published=True``, which is never proven and says so first. Nothing here is chosen by `auto` or `onedraw plan`.

A new one is a file of this package with a `Mechanism` in it (and its `Sampler`, where the method is an algorithm of its own), its
name below, and its entry point in pyproject.toml, by which a stored certificate finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from .ada_ops import AdaOPS
    from .ada_ssp import AdaSSP
    from .dp_hmc import DPHMC
    from .dp_sgd import DPSGD, Training
    from .dp_sgld import DPSGLD, SubsampledLangevin
    from .kng import KNG
    from .minami import Minami
    from .multi_proposal import MultiProposal
    from .noise_aware import NoiseAware
    from .objective_perturbation import ObjectivePerturbation
    from .output_perturbation import OutputPerturbation
    from .penalty import Penalty
    from .sufficient_statistics import SufficientStatistics
    from .wang_ops import OnePosteriorSample

__all__ = [
    "DPHMC", "DPSGD", "DPSGLD", "KNG", "AdaOPS", "AdaSSP", "Minami", "MultiProposal", "NoiseAware",
    "ObjectivePerturbation", "OnePosteriorSample", "OutputPerturbation", "Penalty", "SubsampledLangevin",
    "SufficientStatistics", "Training",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(__name__, {
        "ada_ops": ("AdaOPS",),
        "ada_ssp": ("AdaSSP",),
        "dp_hmc": ("DPHMC",),
        "dp_sgd": ("DPSGD", "Training"),
        "dp_sgld": ("DPSGLD", "SubsampledLangevin"),
        "kng": ("KNG",),
        "minami": ("Minami",),
        "multi_proposal": ("MultiProposal",),
        "noise_aware": ("NoiseAware",),
        "objective_perturbation": ("ObjectivePerturbation",),
        "output_perturbation": ("OutputPerturbation",),
        "penalty": ("Penalty",),
        "sufficient_statistics": ("SufficientStatistics",),
        "wang_ops": ("OnePosteriorSample",),
    })  # fmt: skip
