"""Which model, which mechanism, how good will it be? Answered from public numbers only, before any record is read.

Names are looked up on first use: a question about one column loads nothing that regressions need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from .asking import Planned, plan
    from .choice import Choice, Choices, choices, choose
    from .column_choice import column_choices
    from .covariance import chosen_columns, covariance_choices, moments_of_schema
    from .evaluations import Scores, scores_of
    from .expected_errors import Expectation, expected_error, simulated_error
    from .questions import QUESTIONS, model_for, table_for
    from .regression import KINDS, Regression, Variant
    from .sample_size import smallest_epsilon, smallest_n

__all__ = [
    "KINDS",
    "QUESTIONS",
    "Choice",
    "Choices",
    "Expectation",
    "Planned",
    "Regression",
    "Scores",
    "Variant",
    "choices",
    "choose",
    "chosen_columns",
    "column_choices",
    "covariance_choices",
    "expected_error",
    "model_for",
    "moments_of_schema",
    "plan",
    "scores_of",
    "simulated_error",
    "smallest_epsilon",
    "smallest_n",
    "table_for",
]

_HOME = {
    **dict.fromkeys(("Choice", "Choices", "choices", "choose"), "choice"),
    **dict.fromkeys(("Expectation", "expected_error", "simulated_error"), "expected_errors"),
    **dict.fromkeys(("smallest_epsilon", "smallest_n"), "sample_size"),
    **dict.fromkeys(("QUESTIONS", "model_for", "table_for"), "questions"),
    **dict.fromkeys(("KINDS", "Regression", "Variant"), "regression"),
    **dict.fromkeys(("chosen_columns", "covariance_choices", "moments_of_schema"), "covariance"),
    **dict.fromkeys(("Planned", "plan"), "asking"),
    **dict.fromkeys(("Scores", "scores_of"), "evaluations"),
    "column_choices": "column_choice",
}


__getattr__ = names_on_demand(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
