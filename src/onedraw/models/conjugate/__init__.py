"""Conjugate models: a record is clamped, added exactly, and the sum has a closed-form posterior law."""
