"""Quantiles, selected by rank."""
