"""Noise on exact sums: counts, sums, means, shares, tables and variances."""
