"""The literature's other methods under attack: the list. They are no part of `every_case`, which is about our own
mechanisms, and are asked for by the word "baselines".

A new one is a line in `BUILDERS`, the functions that make cases from a budget, and one in `CASES`, by which any plan
of it, that of a release file for example, is attacked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from onedraw.baselines.ada_ops import AdaOPS
from onedraw.baselines.ada_ssp import AdaSSP
from onedraw.baselines.dp_hmc import DPHMC
from onedraw.baselines.dp_sgd import DPSGD
from onedraw.baselines.dp_sgld import DPSGLD
from onedraw.baselines.kng import KNG
from onedraw.baselines.minami import Minami
from onedraw.baselines.multi_proposal import MultiProposal
from onedraw.baselines.noise_aware import NoiseAware
from onedraw.baselines.objective_perturbation import ObjectivePerturbation
from onedraw.baselines.output_perturbation import OutputPerturbation
from onedraw.baselines.penalty import Penalty
from onedraw.baselines.sufficient_statistics import SufficientStatistics
from onedraw.baselines.wang_ops import OnePosteriorSample
from onedraw.plans import Plan
from onedraw.privacy import Promise

from . import adaptive, family_sums, gradient_norms, noisy_chains, published_draws, regularised, tilted, training
from .case import Case

BUILDERS: tuple[Callable[[Promise], list[Case]], ...] = (
    regularised.output_cases,
    tilted.objective_cases,
    training.training_cases,
    training.subsampled_cases,
    partial(family_sums.family_sums_cases, SufficientStatistics),
    partial(family_sums.family_sums_cases, NoiseAware),
    family_sums.product_sums_cases,
    adaptive.ada_ssp_cases,
    adaptive.ada_ops_cases,
    published_draws.minami_cases,
    published_draws.sample_cases,
    noisy_chains.chain_cases,
    gradient_norms.norm_cases,
)

CASES: Mapping[type, Callable[[Plan], Case]] = {
    DPSGD: training.training_case,
    DPSGLD: training.subsampled_case,
    OutputPerturbation: regularised.output_case,
    ObjectivePerturbation: tilted.objective_case,
    SufficientStatistics: family_sums.family_sums_case,
    NoiseAware: family_sums.noise_aware_case,
    AdaSSP: adaptive.ada_ssp_case,
    AdaOPS: adaptive.ada_ops_case,
    Minami: published_draws.minami_case,
    OnePosteriorSample: published_draws.sample_case,
    Penalty: noisy_chains.penalty_case,
    DPHMC: noisy_chains.leapfrog_case,
    MultiProposal: noisy_chains.layout_case,
    KNG: gradient_norms.norm_case,
}
