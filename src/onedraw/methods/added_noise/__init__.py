"""Noise on exact sums: counts, sums, means, shares, tables and variances."""

from .centered import CenteredNoise
from .mechanism import AddedNoise

__all__ = ["AddedNoise", "CenteredNoise"]
