"""A user's NumPyro program as a model with a likelihood."""
