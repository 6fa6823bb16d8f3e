"""Quantiles, selected by rank: of a column, and within groups whose members are private."""

from .groups import GroupQuantiles
from .mechanism import ExponentialQuantiles

__all__ = ["ExponentialQuantiles", "GroupQuantiles"]
