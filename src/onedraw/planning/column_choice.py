"""Which mechanism for one column: plain noise, or a draw from a posterior? Whichever is expected to be off by less.

A draw from a posterior spreads as wide as the sample itself leaves the parameter open, so its error is at least √2 times the
error without privacy, up to a term of order 1/n that a prior's pull can win. Where the noise alone is below 0.9 times that
error, plain noise is therefore better than any of them, and none is calibrated; elsewhere all are compared. Priors, if any,
belong to posteriors: noise has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.mechanisms import AddedNoise, calibrate
from onedraw.mechanisms.added_noise import expected_noise
from onedraw.models import Table
from onedraw.models.tables.table import LAWS
from onedraw.privacy import Promise

from .choice import CANDIDATES, Choice, Choices, choices
from .expected_errors import Expectation, expected_error

POSTERIORS = {type(mechanism).__name__.lower(): mechanism for mechanism in CANDIDATES}

SURELY_BETTER = 0.9
"""Noise below this share of the sampling error beats every posterior draw, for 20 records and more."""

FEWEST = 20


def column_choices(
    table: Table | None,
    posterior: Callable[[], Any] | None,
    budget: Promise,
    *,
    n: int,
    draws: int = 1,
    records_per_person: int = 1,
    mechanism: str = "auto",
    compare: bool = False,
) -> Choices:
    """The plans that answer a question about one column, best first; `PromiseRefused` if there is none.

    ``table`` is released with noise, ``posterior()`` makes the model that is drawn from; None where there is none.
    ``mechanism`` is "auto", "laplace", "gaussian", or the name of a posterior mechanism. ``compare`` calibrates all of them
    even where the answer is clear. A caller who gives a prior wants a posterior: pass no table then. Nothing here depends on a record.
    """
    known = [*(LAWS if table is not None else ()), *(POSTERIORS if posterior is not None else ())]
    if mechanism != "auto" and mechanism not in known:
        raise InvalidModel(
            f"No mechanism for this question is called {mechanism!r}. Choose auto or one of: {', '.join(known)}."
        )
    options: dict[str, Any] = {"n": n, "draws": draws, "records_per_person": records_per_person}
    if mechanism in LAWS:
        assert table is not None
        return _said(Choices((_noise(table, budget, mechanism, **options),), {}), mechanism, budget, n)
    if mechanism in POSTERIORS:
        assert posterior is not None
        return _said(choices(posterior(), budget, mechanisms=(POSTERIORS[mechanism],), **options), mechanism, budget, n)
    return _best(table, posterior, budget, compare, options)


def _best(
    table: Table | None, posterior: Callable[[], Any] | None, budget: Promise, compare: bool, options: dict[str, Any]
) -> Choices:
    """All that are eligible, ranked; plain noise alone where nothing can be better than it."""
    n = options["n"]
    refused: dict[str, PromiseRefused | InvalidModel] = {}
    noisy: list[Choice] = []
    try:
        noisy = [] if table is None else [_noise(table, budget, None, **options)]
    except PromiseRefused as error:
        refused["noise"] = error
    if noisy and posterior is not None and not compare:
        noise, sampling = expected_noise(noisy[0].plan), noisy[0].expected.sampling
        if n >= FEWEST and noise < SURELY_BETTER * sampling:
            return _said(Choices(tuple(noisy), {}), "surely", budget, n)
    others = Choices((), {})
    if posterior is not None:
        try:
            others = choices(posterior(), budget, **options)
        except (PromiseRefused, InvalidModel) as error:
            refused["a posterior draw"] = error
    if not noisy and not others.eligible:
        raise next(iter(refused.values()))
    if noisy and others.eligible:  # the same error without privacy for both
        sampling = others.eligible[0].expected.sampling
        private = math.hypot(sampling, expected_noise(noisy[0].plan))
        noisy = [replace(noisy[0], expected=Expectation(private, sampling, 0.0))]
    ranked = sorted([*noisy, *others.eligible], key=lambda choice: choice.expected.private)
    reasons = {name: str(reason) for name, reason in refused.items()} | others.refused
    return _said(Choices(tuple(ranked), reasons), "auto", budget, n)


def _noise(table: Table, budget: Promise, law: str | None, *, n: int, draws: int, records_per_person: int) -> Choice:
    plan = calibrate(AddedNoise(law), table, budget, n=n, draws=draws, records_per_person=records_per_person)
    return Choice(plan, expected_error(plan), str(plan.mechanism.law))  # type: ignore[attr-defined]


def _said(found: Choices, how: str, budget: Promise, n: int) -> Choices:
    """What was taken and why, in a sentence or two."""
    best = found.eligible[0]
    name = best.name or type(best.plan.mechanism).__name__.lower()
    error = f"expected error {best.expected.private:.3g}"
    if best.expected.sampling:
        error += f" ({best.expected.sampling:.3g} without privacy)"
    rivals = [choice for choice in found.eligible[1:] if bool(choice.name) != bool(best.name)]
    if how == "surely":
        why = f"{name} noise: {error}. A draw from a posterior would be off by at least {1.4 * best.expected.sampling:.3g}."
    elif how != "auto":
        why = f"{name}: named by the caller; {error}."
    elif rivals:
        kind = "the best draw from a posterior" if best.name else f"{rivals[0].name} noise"
        why = f"{name}{' noise' if best.name else ''}: {error}, against {rivals[0].expected.private:.3g} of {kind}."
    else:
        what, many = "noise" if best.name else "sampling", len(found.eligible)
        why = f"{name} {what}: {error}{f', the smallest of {many} that can keep {budget}' if many > 1 else ''}."
    return replace(found, why=f"{why} Decided from public numbers, before any record was read.")
