"""Which theorem makes a draw private. `calibrate` turns a model, a budget and n into a plan, without data."""

from onedraw.plans import Mechanism, Plan, Request, calibrate

from .added_noise import AddedNoise
from .barker_path import BarkerPath
from .beta_divergence import BetaDivergence
from .candidates import Candidates
from .centered_noise import CenteredNoise
from .exponential_choice import ExponentialChoice
from .exponential_family import Concentrated, Diffused, Direct, Scaling, posterior_promise
from .exponential_quantiles import ExponentialQuantiles
from .fits import FitMechanism
from .gibbs import Gibbs
from .measured_first import Measured
from .moments import Moments
from .noisy_gradient import NoisyGradient
from .perturbed_mode import PerturbedMode
from .private_chain import PrivateChain
from .stored_plans import plan_from_dict

__all__ = [
    "AddedNoise", "BarkerPath", "BetaDivergence", "Candidates", "CenteredNoise", "Concentrated", "Diffused", "Direct",
    "ExponentialChoice", "ExponentialQuantiles", "FitMechanism", "Gibbs", "Measured", "Mechanism", "Moments",
    "NoisyGradient",
    "PerturbedMode", "Plan", "PrivateChain", "Request", "Scaling", "calibrate", "plan_from_dict", "posterior_promise",
]  # fmt: skip
