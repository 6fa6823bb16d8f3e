"""Which model, which mechanism, how good will it be? Answered from public numbers only, before any record is read."""

from .choice import Choice, Choices, choices, choose
from .covariance import chosen_columns, covariance_choices, moments_of_schema
from .expectation import Expectation, expected_error, simulated_error
from .intervals import Interval, interval, interval_multiplier
from .precision import smallest_epsilon, smallest_n
from .questions import QUESTIONS, model_for
from .regression import KINDS, Regression, Variant
from .released import release_interval

__all__ = [
    "KINDS",
    "QUESTIONS",
    "Choice",
    "Choices",
    "Expectation",
    "Interval",
    "Regression",
    "Variant",
    "choices",
    "choose",
    "chosen_columns",
    "covariance_choices",
    "expected_error",
    "interval",
    "interval_multiplier",
    "model_for",
    "moments_of_schema",
    "release_interval",
    "simulated_error",
    "smallest_epsilon",
    "smallest_n",
]
