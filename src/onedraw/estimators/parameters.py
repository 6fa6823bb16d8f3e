"""What is said of a parameter that an estimator does not have."""

from __future__ import annotations

import difflib
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, Self

SHRINKS = ("C", "alpha", "penalty", "l1_ratio")
COMPUTES = ("solver", "max_iter", "tol", "n_jobs", "warm_start", "verbose", "dual")
"""Parameters of scikit-learn's estimators that regularize, and that say how to compute."""


class _OfConstructor:
    """Signature of a class: that of its ``__init__``."""

    def __get__(self, instance: object, owner: type) -> Signature:
        constructor = signature(owner.__init__)  # type: ignore[misc]  # the class itself is asked, not an instance
        return constructor.replace(parameters=list(constructor.parameters.values())[1:])


class KnownParameters:
    """Base of estimators that name themselves, and a remedy, if they are given a parameter they do not have."""

    __signature__ = _OfConstructor()

    if not TYPE_CHECKING:  # type checkers read the parameters of __init__

        def __new__(cls, *arguments: Any, **parameters: Any) -> Self:
            known = list(signature(cls).parameters)
            if unknown := [name for name in parameters if name not in known]:
                raise TypeError(unknown_parameter(cls.__name__, unknown[0], known))
            return super().__new__(cls)


def unknown_parameter(estimator: str, name: str, known: list[str]) -> str:
    """Return what to say of a parameter that an estimator does not have, but scikit-learn's may have."""
    close = difflib.get_close_matches(name, known, n=1)
    if name in SHRINKS and "prior_scale" in known:
        remedy = "Regularize with prior_scale=…: a smaller scale shrinks more."
    elif name == "class_weight":
        remedy = "Leave it out: a record that counts more would be protected less."
    elif name in COMPUTES:
        remedy = "Leave it out: the computation has no such setting."
    else:
        remedy = f"Perhaps {close[0]}?" if close else f"It takes {', '.join(known)}."
    return f"{estimator} has no parameter {name!r}. {remedy}"
