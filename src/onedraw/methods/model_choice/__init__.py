"""One of several settings, selected by loss."""

from .mechanism import ExponentialChoice

__all__ = ["ExponentialChoice"]
