"""Several mechanisms on the same records, released together."""

from .mechanism import Together

__all__ = ["Together"]
