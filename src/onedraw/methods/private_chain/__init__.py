"""Markov chains whose every decision is private."""

from .barker_path import Barker, BarkerPath
from .kernel import Kernel
from .mechanism import PrivateChain

__all__ = ["Barker", "BarkerPath", "Kernel", "PrivateChain"]
