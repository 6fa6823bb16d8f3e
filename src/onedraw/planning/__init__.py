"""Which model, which mechanism, how good will it be? Answered from public numbers only, before any record is read.

Names are looked up on first use: a question about one column loads nothing that regressions need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from .choice import Choice as Choice
    from .choice import Choices as Choices
    from .choice import Question as Question
    from .choice import choices as choices
    from .choice import choose as choose
    from .column_questions import ColumnQuestion as ColumnQuestion
    from .column_questions import CovarianceQuestion as CovarianceQuestion
    from .column_questions import QuantileQuestion as QuantileQuestion
    from .column_questions import chosen_columns as chosen_columns
    from .column_questions import model_for as model_for
    from .column_questions import table_for as table_for
    from .expected_errors import Expectation as Expectation
    from .expected_errors import expected_error as expected_error
    from .expected_errors import simulated_error as simulated_error
    from .options import KINDS as KINDS
    from .options import QUESTIONS as QUESTIONS
    from .options import Options as Options
    from .question import Asked as Asked
    from .question import Planned as Planned
    from .question import ask as ask
    from .question import plan as plan
    from .regression import Regression as Regression
    from .sample_size import smallest_epsilon as smallest_epsilon
    from .sample_size import smallest_n as smallest_n

_NAMES = {
    "choice": ("Choice", "Choices", "Question", "choices", "choose"),
    "column_questions": (
        "ColumnQuestion", "CovarianceQuestion", "QuantileQuestion", "chosen_columns", "model_for", "table_for",
    ),
    "expected_errors": ("Expectation", "expected_error", "simulated_error"),
    "options": ("KINDS", "QUESTIONS", "Options"),
    "question": ("Asked", "Planned", "ask", "plan"),
    "regression": ("Regression",),
    "sample_size": ("smallest_epsilon", "smallest_n"),
}  # fmt: skip
_HOME = {name: file for file, names in _NAMES.items() for name in names}


__getattr__ = names_on_demand(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
