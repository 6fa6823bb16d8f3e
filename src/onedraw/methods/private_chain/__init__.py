"""Markov chains whose every decision is private."""

from .barker_path import BarkerPath
from .mechanism import PrivateChain

__all__ = ["BarkerPath", "PrivateChain"]
