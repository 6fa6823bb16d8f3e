"""What is taken where a person names nothing: public, and written here only."""

from __future__ import annotations

__all__ = ["DELTA", "LEVEL"]

DELTA = 1e-6
"""The δ of a budget, and the δ at which ε is quoted for a promise that names none: a millionth, for tables of up to some hundred
thousand records. Who holds more should name a smaller one."""

LEVEL = 0.95
"""Of the intervals that a release is planned and shown with."""
