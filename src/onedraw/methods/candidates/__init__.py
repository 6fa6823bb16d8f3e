"""Selection among public candidates in place of a posterior draw."""

from .mechanism import Candidates

__all__ = ["Candidates"]
