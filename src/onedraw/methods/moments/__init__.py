"""Means, variances and correlations of columns."""

from .mechanism import Moments

__all__ = ["Moments"]
