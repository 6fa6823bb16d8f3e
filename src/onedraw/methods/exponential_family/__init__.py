"""Posterior draws in exponential families and GLMs (Geumlek, Song, Chaudhuri)."""

from .mechanism import Concentrated, Diffused, Direct

__all__ = ["Concentrated", "Diffused", "Direct"]
