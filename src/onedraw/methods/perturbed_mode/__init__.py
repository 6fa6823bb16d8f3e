"""Modes of a loss with a random linear term."""

from .mechanism import PerturbedMode

__all__ = ["PerturbedMode"]
