"""`onedraw plan`: what a release would promise and how good it would be, before any record is read."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .flags import (
    AsJson,
    Delta,
    Draws,
    Epsilon,
    Order,
    Prior,
    Question,
    SchemaFile,
    Target,
    budget_from,
    prior_from,
)
from .show import number, show_json, show_lines, show_table


def plan(
    schema: SchemaFile,
    target: Target,
    model: Question,
    epsilon: Epsilon,
    rows: Annotated[int, typer.Option("--rows", help="n, the public number of records.")],
    delta: Delta = 1e-6,
    order: Order = None,
    prior: Prior = None,
    draws: Draws = 1,
    as_json: AsJson = False,
) -> None:
    """The promise and the expected error of every eligible mechanism. Reads the schema, never the data."""
    from onedraw.data import Schema
    from onedraw.planning import choices, model_for

    declared, budget = Schema.load(schema), budget_from(epsilon, delta, order)
    family = model_for(declared, target, question=model, n=rows, budget=budget, prior=prior_from(prior))
    found = choices(family, budget, n=rows, draws=draws, records_per_person=declared.records_per_person)
    eligible: list[dict[str, Any]] = [{
        "mechanism": type(choice.plan.mechanism).__name__.lower(), "parameters": dict(choice.plan.parameters),
        "promise": choice.plan.guarantee.promise.to_dict(), "expected_rmse": choice.expected.private,
        "rmse_without_privacy": choice.expected.sampling, "plan_digest": choice.plan.digest,
    } for choice in found.eligible]  # fmt: skip
    if as_json:
        show_json(
            {
                "budget": budget.to_dict(),
                "n": rows,
                "model": family.to_dict(),
                "eligible": eligible,
                "refused": found.refused,
            }
        )
        return
    show_table(
        f"{model} of {target}: {budget}, n = {rows:,}",
        ["mechanism", "expected error", "without privacy", "calibrated"],
        [[row["mechanism"], number(row["expected_rmse"]), number(row["rmse_without_privacy"]), _numbers(row["parameters"])]
         for row in eligible],
    )  # fmt: skip
    show_lines(*(f"{name}: not eligible. {reason}" for name, reason in found.refused.items()))
    show_lines("Errors are root mean squared, averaged over the prior; no record was read.")


def _numbers(parameters: dict[str, Any]) -> str:
    shown = {name: value for name, value in parameters.items() if isinstance(value, float)}
    return ", ".join(f"{name} = {number(value)}" for name, value in shown.items())
