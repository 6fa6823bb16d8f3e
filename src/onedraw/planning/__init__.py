"""Which model, which mechanism, how good will it be? Answered from public numbers only, before any record is read."""

from .choice import Choice, Choices, choices
from .expectation import Expectation, expected_error
from .questions import QUESTIONS, model_for

__all__ = ["QUESTIONS", "Choice", "Choices", "Expectation", "choices", "expected_error", "model_for"]
