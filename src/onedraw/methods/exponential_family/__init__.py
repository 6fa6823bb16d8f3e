"""Posterior draws in exponential families and GLMs (Geumlek, Song, Chaudhuri)."""
