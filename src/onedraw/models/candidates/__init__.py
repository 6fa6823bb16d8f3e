"""Scores of a finite list of parameters, for the mechanism that picks one of them."""
