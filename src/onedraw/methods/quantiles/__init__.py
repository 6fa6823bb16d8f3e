"""Quantiles, selected by rank."""

from .mechanism import ExponentialQuantiles

__all__ = ["ExponentialQuantiles"]
