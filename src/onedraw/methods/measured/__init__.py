"""Another method in privately measured coordinates."""

from .mechanism import Measured

__all__ = ["Measured"]
