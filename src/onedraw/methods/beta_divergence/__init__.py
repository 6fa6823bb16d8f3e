"""Posteriors of the β-divergence (Jewson, Ghalebikesabi, Holmes)."""

from .mechanism import BetaDivergence

__all__ = ["BetaDivergence"]
