"""Means and second moments of bounded columns: a release of their own, and the coordinates of a fit."""
