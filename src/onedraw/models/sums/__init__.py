"""Sums of records as whole numbers on public lattices: the same integers in any order and on any machine."""
