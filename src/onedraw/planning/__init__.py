"""Which model, which mechanism, how good will it be? Answered from public numbers only, before any record is read.

Names are looked up on first use: a question about one column loads nothing that regressions need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from .choice import Choice, Choices, Question, choices, rank_plans
    from .column_questions import (
        ColumnQuestion,
        CovarianceQuestion,
        QuantileQuestion,
        chosen_columns,
        model_for,
        table_for,
    )
    from .expected_errors import expected_error, simulated_error
    from .options import KINDS, QUESTIONS, Options
    from .question import Asked, Planned, ask, plan
    from .regression import Regression
    from .remedies import calibrate
    from .sample_size import smallest_epsilon, smallest_n
    from .unknown_bounds import FoundBounds, private_bounds

__all__ = [
    "KINDS", "QUESTIONS", "Asked", "Choice", "Choices", "ColumnQuestion", "CovarianceQuestion", "FoundBounds", "Options", "Planned",
    "QuantileQuestion", "Question", "Regression", "ask", "calibrate", "choices", "chosen_columns", "expected_error", "model_for", "plan",
    "private_bounds", "rank_plans", "simulated_error", "smallest_epsilon", "smallest_n", "table_for",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(__name__, {
        "choice": ("Choice", "Choices", "Question", "choices", "rank_plans"),
        "column_questions": ("ColumnQuestion", "CovarianceQuestion", "QuantileQuestion", "chosen_columns", "model_for", "table_for"),
        "expected_errors": ("expected_error", "simulated_error"),
        "options": ("KINDS", "QUESTIONS", "Options"),
        "question": ("Asked", "Planned", "ask", "plan"),
        "regression": ("Regression",),
        "remedies": ("calibrate",),
        "sample_size": ("smallest_epsilon", "smallest_n"),
        "unknown_bounds": ("FoundBounds", "private_bounds"),
    })  # fmt: skip
