"""Gibbs posteriors of convex losses (Minami, Arai, Sato), and noisy gradients towards them."""

from .mechanism import Gibbs
from .noisy_gradient import NoisyGradient

__all__ = ["Gibbs", "NoisyGradient"]
