"""Markov chains whose every decision is private."""
