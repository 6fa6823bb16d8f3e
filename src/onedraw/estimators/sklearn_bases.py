"""scikit-learn's base classes, with types for mypy.

scikit-learn has no types, and mypy accepts any argument and any attribute of a class with an untyped base. Other type
checkers and editors read scikit-learn's source instead.
"""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import NDArray
from sklearn.utils import Tags

MYPY = False
"""True to mypy alone, by its name."""

if MYPY:

    class BaseEstimator:
        n_features_in_: int
        feature_names_in_: NDArray[Any]

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __repr__(self, N_CHAR_MAX: int = 700) -> str: ...
        def _html_repr(self) -> str: ...
        def __sklearn_tags__(self) -> Tags: ...

    class ClassifierMixin:
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
        def __sklearn_tags__(self) -> Tags: ...

    class RegressorMixin:
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
        def __sklearn_tags__(self) -> Tags: ...
else:
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import ClassifierMixin as ClassifierMixin
    from sklearn.base import RegressorMixin as RegressorMixin
