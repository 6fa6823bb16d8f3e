"""Means, variances and correlations of columns."""
