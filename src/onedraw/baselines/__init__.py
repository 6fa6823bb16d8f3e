"""Compared with what: the other methods of the literature, with honest promises.

Each is a mechanism like those of `onedraw.mechanisms` (the same `calibrate` and `release`, a certificate that verifies), with its
theorem, its source and a line on when anybody should still use it. A method whose published promise is false is here twice:
corrected, and ``as_published=True``, which is never proven and says so first. Nothing here is chosen by `auto` or `onedraw plan`.

A new one is a file of this room with a `Mechanism` in it (and its `Sampler`, where the method is an algorithm of its own), its
name below, and its entry point in pyproject.toml, by which a stored certificate finds it.
"""

from __future__ import annotations

from onedraw.on_demand import names_on_demand

# name → the file it lives in
_NAMES: dict[str, str] = {
    "AdaOPS": "ada_ops",
    "AdaSSP": "ada_ssp",
    "DPHMC": "dp_hmc",
    "KNG": "kng",
    "Minami": "minami",
    "MultiProposal": "multi_proposal",
    "OnePosteriorSample": "wang_ops",
    "ObjectivePerturbation": "objective_perturbation",
    "OutputPerturbation": "output_perturbation",
    "Penalty": "penalty",
    **dict.fromkeys(("simulated_fits", "simulated_minima"), "simulation"),
    "NoiseAware": "noise_aware",
    "SufficientStatistics": "sufficient_statistics",
    **dict.fromkeys(("DPSGD", "Training", "sgd", "train_many"), "dp_sgd"),
    **dict.fromkeys(("DPSGLD", "SubsampledLangevin"), "dp_sgld"),
}

__all__ = sorted(_NAMES)

__getattr__, __dir__ = names_on_demand(__name__, _NAMES)
