"""Convex losses of bounded rows: what a Gibbs posterior, a noisy gradient and a fit are made of.

A new loss derives from `MarginLoss`, `ResidualLoss` or `LinearLoss`; `array_module` computes with the library of its argument.
"""

from onedraw.models.convex.losses import LinearLoss, MarginLoss, array_module
from onedraw.models.convex.number_losses import ResidualLoss

__all__ = ["LinearLoss", "MarginLoss", "ResidualLoss", "array_module"]
