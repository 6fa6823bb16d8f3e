"""Methods, one folder each: how a method is calibrated, what runs, what its numbers say, and why it is private.

| folder | method | source |
| --- | --- | --- |
| `exponential_family` | draws from posteriors of exponential families and GLMs: `Direct`, `Diffused`, `Concentrated` | Geumlek, Song, Chaudhuri |
| `gibbs` | draws from Gibbs posteriors of convex losses, and noisy gradients towards them | Minami, Arai, Sato |
| `beta_divergence` | draws from posteriors of the β-divergence | Jewson, Ghalebikesabi, Holmes |
| `candidates` | selects among public candidates in place of a draw | McSherry, Talwar |
| `private_chain` | Markov chains whose every decision is private | |
| `measured` | measures the columns' moments before a draw | |
| `fit` | estimates regressions with intervals | |
| `clipped_gradients` | predicts classes, counts and numbers | |
| `perturbed_mode` | minimizes a loss with a random linear term | |
| `added_noise` | counts, sums, means, shares and tables with noise | |
| `moments` | means, variances and correlations together | |
| `quantiles` | quantiles, selected by rank | |
| `together` | several tables and quantiles of one data set | |
| `model_choice` | one of several settings, selected by loss | |

`draws` has what draws of a posterior say of their own uncertainty; the other files serve several methods.
"""

from typing import TYPE_CHECKING

from onedraw.methods.added_noise.centered import CenteredNoise
from onedraw.methods.added_noise.mechanism import AddedNoise
from onedraw.methods.base import Mechanism, calibrate
from onedraw.methods.beta_divergence.mechanism import BetaDivergence
from onedraw.methods.candidates.mechanism import Candidates
from onedraw.methods.exponential_family.mechanism import Concentrated, Diffused, Direct, Scaling, posterior_promise
from onedraw.methods.fits import FitMechanism
from onedraw.methods.gibbs.mechanism import Gibbs
from onedraw.methods.gibbs.noisy_gradient import NoisyGradient
from onedraw.methods.measured.mechanism import Measured
from onedraw.methods.model_choice.mechanism import ExponentialChoice
from onedraw.methods.moments.mechanism import Moments
from onedraw.methods.perturbed_mode.mechanism import PerturbedMode
from onedraw.methods.private_chain.barker_path import BarkerPath
from onedraw.methods.private_chain.mechanism import PrivateChain
from onedraw.methods.quantiles.groups import GroupQuantiles
from onedraw.methods.quantiles.mechanism import ExponentialQuantiles
from onedraw.methods.stored_plans import plan_from_dict
from onedraw.methods.together.mechanism import Together
from onedraw.on_demand import names_on_demand
from onedraw.plans import Plan, Request

if TYPE_CHECKING:
    from onedraw.methods.clipped_gradients import ClippedGradients
    from onedraw.methods.fit import AveragedSteps

__all__ = [
    "AddedNoise", "AveragedSteps", "BarkerPath", "BetaDivergence", "Candidates", "CenteredNoise", "ClippedGradients", "Concentrated",
    "Diffused", "Direct",
    "ExponentialChoice", "ExponentialQuantiles", "FitMechanism", "Gibbs", "GroupQuantiles", "Measured", "Mechanism", "Moments",
    "NoisyGradient",
    "PerturbedMode", "Plan", "PrivateChain", "Request", "Scaling", "Together", "calibrate", "plan_from_dict", "posterior_promise",
]  # fmt: skip

if not TYPE_CHECKING:  # what only regressions need is loaded by the first question about one
    __getattr__, _ = names_on_demand(__name__, {"clipped_gradients": ["ClippedGradients"], "fit": ["AveragedSteps"]})

    def __dir__() -> list[str]:
        return sorted(__all__)
