"""Compared with what: the other methods of the literature, with honest promises.

Each is a mechanism like those of `onedraw.mechanisms` (the same `calibrate` and `release`, a certificate that verifies), with its
theorem, its source and a line on when anybody should still use it. A method whose published promise is false is here twice:
corrected, and ``as_published=True``, which is never proven and says so first. Nothing here is chosen by `auto` or `onedraw plan`.

A new one is a file of this room with a `Mechanism` in it (and its `Sampler`, where the method is an algorithm of its own), its
name below, and its entry point in pyproject.toml, by which a stored certificate finds it.
"""

from __future__ import annotations

from onedraw.on_demand import names_on_demand

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

__all__ = __dir__()
