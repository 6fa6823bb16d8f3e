"""How many records, or how much budget, for a wanted precision? And how does the error go with either of them?

The smallest n and ε for which the best mechanism is expected to reach it, by bisection over plans; the points of a figure; and the
same errors simulated. All from public numbers, before any record is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from onedraw.defaults import DELTA
from onedraw.errors import PromiseRefused, WrongCall
from onedraw.methods.expectation import Expectation
from onedraw.plain_text import known
from onedraw.privacy import ApproxDP, Promise, PureDP, epsilon_delta
from onedraw.privacy.numbers import geometric, smallest

from .expected_errors import expected_error, simulated_error
from .options import NETWORKS
from .question import Asked, Planned
from .regression import Regression

FEWEST, START, MOST = 10, 1000.0, 10**9
"""Records; the search begins where plans are cheap."""

OUT_OF_REACH = 10.0
"""An error this many times below that of the sample alone, at the most records there may be, is not searched for."""

LEAST_EPSILON, LARGEST_EPSILON = 0.01, 50.0
PRECISION = 0.05
"""The answer is at most this much, relatively, above the smallest one."""

PUBLIC_SEED = 20261115  # simulations of public numbers: the seed protects nothing and makes plans reproducible
FACTORS = tuple(10.0 ** (step / 4) for step in range(-4, 5))
"""Sizes of a figure, a tenth to ten times as large as asked."""

Step = Callable[[str], None]
"""Told what is computed next, for a bar."""


def smallest_n(question: Regression, budget: Promise, error: float, *, mechanism: str = "auto") -> int:
    """The fewest records for which the expected error per coefficient is at most ``error``; rounded up to two digits."""
    found = _smallest(
        lambda size: _expected(question, budget, math.ceil(size), mechanism), error,
        start=START, least=FEWEST, most=MOST, left=math.sqrt(START / MOST),
    )  # fmt: skip
    if found is None:
        raise PromiseRefused(
            f"Even {MOST:,} records are not expected to bring the error of a {question.kind} regression down to {error:g} "
            f"under {budget}. Ask for less precision, or for a larger budget."
        )
    digits = 10 ** max(0, math.floor(math.log10(found)) - 1)
    return int(math.ceil(found / digits) * digits)


def smallest_epsilon(
    question: Regression, error: float, *, n: int, delta: float = DELTA, mechanism: str = "auto"
) -> float:
    """The smallest ε (with this δ; 0 is pure) for which the expected error per coefficient is at most ``error``."""
    found = _smallest(
        lambda epsilon: _expected(question, epsilon_delta(epsilon, delta), n, mechanism), error,
        start=1.0, least=LEAST_EPSILON, most=LARGEST_EPSILON,
    )  # fmt: skip
    if found is None:
        raise PromiseRefused(
            f"No ε up to {LARGEST_EPSILON:g} is expected to bring the error down to {error:g} with n = {n:,}: the sample itself "
            "is too small. Ask for less precision, or collect more records."
        )
    return float(f"{found:.3g}")


def _smallest(
    expected: Callable[[float], Expectation], error: float, *, start: float, least: float, most: float, left: float = 1.0
) -> float | None:  # fmt: skip
    """The least size with an expected error of at most ``error``, sought from ``start`` on, since cheap plans are near it; None if
    ``most`` is too small, where ``left`` of the sampling error at the start remains."""
    if isinstance(error, bool) or not isinstance(error, int | float) or not 0.0 < error < math.inf:
        raise WrongCall(f"error must be the wanted root mean squared error per coefficient, above 0, got {error!r}.")
    at = cache(expected)
    if OUT_OF_REACH * error < left * at(start).sampling:
        return None
    sizes = {"start": start, "least": least, "most": most, "precision": PRECISION, "factor": 4.0}
    return smallest(lambda size: at(size).private <= error, **sizes, middle=geometric)


def _expected(question: Regression, budget: Promise, n: int, mechanism: str) -> Expectation:
    """Of the best plan; where there is none, or its error is not known, a private error of ∞ and no sampling error."""
    try:
        found = question.choices(budget, n=n, mechanism=mechanism).eligible[0].expected
    except PromiseRefused:
        return Expectation(math.inf, 0.0)
    return Expectation(math.inf, 0.0) if math.isnan(found.private) else found


# ── what `onedraw plan` adds to a plan ───────────────────────────────────────────────────────────────────────


def check_predictable(asked: Asked, *, for_error: float | None, figure: bool, simulate: int) -> None:
    """Refuse, before anything is computed, what has no answer."""
    if asked.model in NETWORKS and (for_error is not None or figure or simulate):
        raise WrongCall(
            "The error of a network's weights cannot be predicted: single weights mean nothing. Leave out --for-error, "
            "--figure and --simulate."
        )
    if asked.target is None and simulate:
        raise WrongCall("--simulate is for mechanisms with a choice; a covariance has one. Leave it out.")
    if for_error is None:
        return
    if not 1e-60 < for_error < 1e60:
        raise WrongCall(
            f"--for-error is the wanted root mean squared error, a number between 1e-60 and 1e60, got {for_error:g}."
        )
    if not asked.is_regression:
        raise WrongCall(
            f"--for-error is answered for regressions; for a {asked.model} look at the figure: --figure plan.png."
        )


def simulated(planned: Planned, data_sets: int, step: Step) -> list[float | None]:
    """Errors of the real mechanisms on data simulated from the design. Seeded and public: nothing here is a release."""
    question, found = planned.asked.question, []
    sizes = question.sizes if isinstance(question, Regression) else {}
    unit = 1.0 if planned.asked.measure is None else planned.asked.measure.unit
    for choice in planned.choices.eligible:
        step(choice.named)
        generator = np.random.default_rng(PUBLIC_SEED)
        try:
            error = simulated_error(choice.plan, data_sets=data_sets, generator=generator, **sizes).private
        except WrongCall:
            error = math.nan
        found.append(known(error * unit))
    return found


def predicted(planned: Planned) -> list[float | None]:
    """Return the errors that are expected in the design which `simulated` simulates: columns fill their ranges."""
    question = planned.asked.question
    sizes = question.sizes if isinstance(question, Regression) else {}
    unit = 1.0 if planned.asked.measure is None else planned.asked.measure.unit
    return [known(unit * expected_error(choice.plan, **sizes).private) for choice in planned.choices.eligible]


def smallest_sizes(planned: Planned, error: float, *, mechanism: str, step: Step) -> dict[str, Any]:
    """The smallest n for the budget and the smallest ε for the records, or the reason there is none."""
    question, budget = planned.asked.question, planned.budget
    assert isinstance(question, Regression)
    found: dict[str, Any] = {"error": error, "smallest_rows": None, "smallest_epsilon": None, "reasons": []}
    step("smallest n")
    try:
        found["smallest_rows"] = smallest_n(question, budget, error, mechanism=mechanism)
    except PromiseRefused as refused:
        found["reasons"].append(str(refused))
    step("smallest ε")
    if not isinstance(budget, ApproxDP | PureDP):
        found["reasons"].append("The smallest ε is sought for (ε, δ) budgets; leave out --order for it.")
        return found
    delta = budget.stated_delta if isinstance(budget, ApproxDP) else 0.0
    try:
        found["smallest_epsilon"] = smallest_epsilon(question, error, n=planned.n, delta=delta, mechanism=mechanism)
    except PromiseRefused as refused:
        found["reasons"].append(str(refused))
    return found


def expected_over(planned: Planned, over: str, *, step: Step, **options: Any) -> list[dict[str, Any]]:
    """Expected errors at other sizes of n, or ("epsilon") of the budget, for every mechanism eligible there."""
    points = []
    for factor in FACTORS:
        step("")
        n, budget = planned.n, planned.budget
        if over == "rows":
            n = max(1, round(n * factor))
        elif isinstance(budget, ApproxDP):
            budget = ApproxDP(budget.stated_epsilon * factor, budget.stated_delta)
        elif isinstance(budget, PureDP):
            budget = PureDP(budget.stated_epsilon * factor)
        else:
            raise WrongCall("--over epsilon varies the ε of an (ε, δ) budget; leave out --order, or use --over rows.")
        try:
            found = planned.asked.planned(budget, n=n, draws=planned.plan.draws, **options).choices.eligible
        except PromiseRefused:
            continue
        at = n if over == "rows" else budget.stated_epsilon  # type: ignore[attr-defined]  # of those that are scaled
        errors: dict[str, float | None] = {}
        for choice in found:  # by the name of the line in the figure: of a fit two, between which the designs lie
            errors |= (
                {f"{choice.named}, {design.name} design": design.expected.private for design in reversed(choice.designs)}
                if choice.designs else {choice.named: known(choice.expected.private)}
            )  # fmt: skip
        points.append({"at": at, "expected_rmse": errors, "rmse_without_privacy": known(found[0].expected.sampling)})
    return points
