"""Modes of a loss with a random linear term."""
