"""The audit's cases: every mechanism asked for its own, by the word for a model; and the case of any plan.

`cases` calibrates every mechanism that has cases for a model (`Mechanism.audit_cases`) under a budget, on small models whose worst
pairs are known; `case_for` asks the mechanism of a plan, that of a release file for example (`Mechanism.audit_case`). Both read no
data, and know no mechanism by name: those of other packages are found by their entry points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any

from onedraw.audit.cases.case import Case, no_formula, pure
from onedraw.audit.cases.investigation import RandomisedResponse
from onedraw.errors import PromiseRefused, WrongCall
from onedraw.plans import Plan
from onedraw.privacy import Promise

from .base import Mechanism, calibrate

YARDSTICK = "randomised-response"

LITERATURE = "baselines"
"""The word for the cases of `onedraw.baselines`, which are no part of `every_case`."""


def mechanisms() -> list[type[Mechanism]]:
    """Return every mechanism of the installed packages, by module and in the order in which a module defines them.

    One that derives from another mechanism and has no cases of its own is left out: they would be those of the other.
    """
    for point in entry_points(group="onedraw.mechanisms"):
        point.load()
    known = Mechanism.members().values()
    own = [kind for kind in known if _owner(kind) is kind or _owner(kind) not in known]
    return sorted(own, key=lambda kind: kind.__module__)


def _owner(kind: type[Mechanism]) -> type:
    """Return the class that defines the cases of a mechanism."""
    return next(base for base in kind.__mro__ if "audit_cases" in vars(base))


def builders() -> Mapping[str, list[Callable[[Promise], list[Any]]]]:
    """Return the functions that make cases under a budget, by the word for their model, in the order of the words."""
    found: dict[str, list[Callable[[Promise], list[Any]]]] = {}
    for kind in mechanisms():
        for word, build in kind.audit_cases().items():
            found.setdefault(word, []).append(build)
    return dict(sorted(found.items()))


def model_words() -> list[str]:
    """Return the words for models that the audit has cases for."""
    return [word for word in builders() if word != LITERATURE]


def cases(model: str, budget: Promise, *, mechanism: str | None = None) -> list[Any]:
    """Return the cases of a model under a budget.

    Parameters
    ----------
    model : str
        One of `model_words`, or the word for the yardstick or for the literature's methods.
    mechanism : str, optional
        Keep the cases whose mechanism's name begins so.
    """
    if model == YARDSTICK:
        return [RandomisedResponse(pure(budget).stated_epsilon)]
    known = builders()
    if model not in known:
        words = ", ".join([*model_words(), YARDSTICK, LITERATURE])
        raise WrongCall(f"The audit knows no model {model!r}. Choose one of: {words}.")
    found: list[Any] = []
    refused: PromiseRefused | None = None
    for build in known[model]:
        try:
            found += build(budget)
        except PromiseRefused as error:
            refused = error
    chosen = [case for case in found if mechanism is None or case.key.startswith(mechanism)]
    if found and not chosen:
        names = ", ".join(dict.fromkeys(case.key for case in found))
        raise WrongCall(f"No mechanism of {model} is called {mechanism!r}. Under this budget there are: {names}.")
    if not chosen:
        raise refused or PromiseRefused(f"No mechanism for {model} keeps {budget}, so there is nothing to attack.")
    return chosen


def every_case(budget: Promise) -> list[Any]:
    """Return the cases of all models, the yardstick's first, without the literature's methods."""
    return [case for model in (YARDSTICK, *model_words()) for case in cases(model, budget)]


def case_for(plan: Plan) -> Case:
    """Return the case of a plan, on the worst pair that is known for it; raise `WrongCall` if there is none."""
    case: Case | None = plan.mechanism.audit_case(plan)
    if case is None:
        raise no_formula(f"the mechanisms that bring their own, not {type(plan.mechanism).__name__} of", plan.model)
    return case


def eligible(mechanism: Any, model: Any, budget: Promise, *, n: int) -> list[Plan]:
    """Return the plan as a list of one; an empty list if the mechanism cannot keep this budget."""
    try:
        return [calibrate(mechanism, model, budget, n=n)]
    except PromiseRefused:
        return []


def cases_of(
    build: Callable[..., Case], asked: Iterable[tuple[str, Any, Any]], budget: Promise, *, n: int
) -> list[Case]:
    """Return the cases of those of (label, mechanism, model) that keep the budget."""
    plans = [(label, plan) for label, mechanism, model in asked for plan in eligible(mechanism, model, budget, n=n)]
    return [build(plan, label=label) for label, plan in plans]
