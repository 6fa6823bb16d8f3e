"""Options that several commands share, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
SchemaFile = Annotated[
    Path, typer.Option("--schema", help="The schema: what is public about the columns (YAML or JSON).")
]
Target = Annotated[str, typer.Option("--target", help="The column the question is about.")]
Question = Annotated[
    str,
    typer.Option("--model", help="What to release: proportion, histogram, mean, average, rate or duration."),
]
Epsilon = Annotated[float, typer.Option("--epsilon", help="The budget's ε.")]
Delta = Annotated[float, typer.Option("--delta", help="The budget's δ.")]
Order = Annotated[
    float | None,
    typer.Option("--order", help="Read --epsilon as a Rényi budget at this order λ instead of (ε, δ)."),
]
Mechanism = Annotated[
    str, typer.Option("--mechanism", help="auto (smallest expected error), direct, diffused or concentrated.")
]
Prior = Annotated[str | None, typer.Option("--prior", help="The public prior's numbers, comma-separated.")]
Draws = Annotated[int, typer.Option("--draws", help="How many draws share the budget.")]


def budget_from(epsilon: float, delta: float, order: float | None) -> Any:
    from onedraw.privacy import ApproxDP, RenyiDP

    return ApproxDP(epsilon, delta) if order is None else RenyiDP.at(order, epsilon)


def mechanisms_from(name: str) -> Any:
    """The mechanisms a name stands for: all of them for "auto"."""
    from onedraw.errors import WrongCall
    from onedraw.planning.choice import CANDIDATES

    known = {type(mechanism).__name__.lower(): (mechanism,) for mechanism in CANDIDATES} | {"auto": CANDIDATES}
    if name not in known:
        raise WrongCall(f"No mechanism is called {name!r}. Choose one of: {', '.join(known)}.")
    return known[name]


def prior_from(text: str | None) -> list[float] | None:
    from onedraw.errors import WrongCall

    if text is None:
        return None
    try:
        return [float(piece) for piece in text.split(",")]
    except ValueError:
        raise WrongCall(f"--prior takes numbers separated by commas such as 1,1, got {text!r}.") from None
