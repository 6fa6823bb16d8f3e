"""Options that several commands share, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
SchemaFile = Annotated[
    Path, typer.Option("--schema", help="The schema: what is public about the columns (YAML or JSON).")
]
TableName = Annotated[
    str | None, typer.Option("--table", help="Where the records are in a database: the table, or schema.table.")
]
Books = Annotated[str, typer.Option("--ledger", help="The ledger to charge: a SQLite file or a postgresql:// URL.")]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="How much of the encoded records a fit may hold in memory, such as '2 GB' (256 MB by default); more is kept in a private file.",
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", help="Reproducible and therefore NOT PRIVATE; charged all the same.")
]
HeldOut = Annotated[
    str,
    typer.Argument(
        help="Held-out private records, the target among them: CSV, Parquet or Arrow; with --table, a database."
    ),
]
HeldOutDataset = Annotated[str | None, typer.Option("--dataset", help="The held-out dataset's name in the ledger.")]
Target = Annotated[
    str | None, typer.Option("--target", help="The column the question is about; a covariance has none.")
]
ColumnList = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="A,B,…",
        help="Of a covariance: which columns; all numbers and counts of the schema by default.",
    ),
]
Question = Annotated[
    str,
    typer.Option(
        "--model",
        help="What to release: logistic, softmax, svc, linear, huber, quantile, poisson, negative-binomial, "
        "network-classifier, network-regressor; or "
        "of one column: proportion, histogram, count, mean, sum, variance, rate, duration, median, quantiles; or covariance: means, "
        "deviations and correlations of several.",
    ),
]
Epsilon = Annotated[float, typer.Option("--epsilon", help="The budget's ε.")]
Delta = Annotated[float, typer.Option("--delta", help="The budget's δ; 0 means pure.")]
Order = Annotated[
    float | None,
    typer.Option("--order", help="Read --epsilon as a Rényi budget at this order λ instead of (ε, δ)."),
]
Mechanism = Annotated[
    str,
    typer.Option(
        "--mechanism",
        help="auto (for regressions a fit, else the smallest expected error of the proven ones), or a name.",
    ),
]
Prior = Annotated[
    str | None, typer.Option("--prior", help="Of one column: the public prior's numbers, comma-separated.")
]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="COLUMN[,COLUMN]", help="Of one column: within the groups of one or two categories."),
]
Level = Annotated[str | None, typer.Option("--level", help="Of a count: the level that is counted.")]
Between = Annotated[
    str | None,
    typer.Option(
        "--between",
        metavar="LOW,HIGH",
        help="Of a count or proportion of a number: who is counted, the ends too; inf is an open end.",
    ),
]
Draws = Annotated[
    str,
    typer.Option(
        "--draws",
        metavar="auto|J",
        help="How many draws share the budget; auto: one fit or draw. 4 or 8 of a named mechanism give an interval.",
    ),
]

Quantiles = Annotated[str | None, typer.Option(
    "--quantiles", help="Of one column: which quantiles, such as 0.25,0.5,0.75 (the default).")]  # fmt: skip
Interval = Annotated[bool, typer.Option(
    "--interval/--no-interval", help="Of quantiles: whether part of the budget goes to intervals, or all of it to them.")]  # fmt: skip

REGRESSION = "Regressions"
PriorScale = Annotated[float | None, typer.Option(
    "--prior-scale", help="The prior's standard deviation, for columns scaled to [-1, 1].", rich_help_panel=REGRESSION)]  # fmt: skip
Radius = Annotated[float | None, typer.Option(
    "--radius", help="Of the ball that some mechanisms keep the coefficients in.", rich_help_panel=REGRESSION)]  # fmt: skip
ResponseBound = Annotated[str | None, typer.Option(
    "--response-bound", metavar="LOW,HIGH", rich_help_panel=REGRESSION,
    help="Responses are clamped to it (one number Y: to -Y,Y). Default: the target's declared range.")]  # fmt: skip
VarianceFloor = Annotated[float | None, typer.Option(
    "--variance-floor", help="Least residual variance; offers the β-divergence posterior.", rich_help_panel=REGRESSION)]  # fmt: skip
Threshold = Annotated[float | None, typer.Option(
    "--threshold", help="Huber's: residuals beyond it count linearly.", rich_help_panel=REGRESSION)]  # fmt: skip
Quantile = Annotated[float | None, typer.Option(
    "--quantile", help="Which quantile; 0.5, the median, by default.", rich_help_panel=REGRESSION)]  # fmt: skip
Dispersion = Annotated[float | None, typer.Option(
    "--dispersion", help="Of negative-binomial: counts of mean m have the variance m + m²/dispersion.", rich_help_panel=REGRESSION)]  # fmt: skip
Robust = Annotated[bool | None, typer.Option(
    "--robust", help="Standard errors of a fit that hold where the model does not, at some cost of width.", rich_help_panel=REGRESSION)]  # fmt: skip
Hidden = Annotated[int | None, typer.Option(
    "--hidden", help="Hidden units of a network; 10 by default.", rich_help_panel=REGRESSION)]  # fmt: skip
Effect = Annotated[float | None, typer.Option(
    "--effect", rich_help_panel=REGRESSION,
    help="Expected standard deviation of the linear predictor; bears on accuracy only.")]  # fmt: skip
Noise = Annotated[float | None, typer.Option(
    "--noise", rich_help_panel=REGRESSION,
    help="Expected standard deviation of a response about it; bears on accuracy only.")]  # fmt: skip
Accept = Annotated[list[str] | None, typer.Option(
    "--accept", rich_help_panel=REGRESSION,
    help="Take a sampler short of a proof by name: estimated, assumed. The first line will say so.")]  # fmt: skip


def budget_from(epsilon: float, delta: float, order: float | None) -> Any:
    from onedraw.privacy import ApproxDP, PureDP, RenyiDP

    if order is not None:
        return RenyiDP.at(order, epsilon)
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def numbers_from(text: str | None, option: str, example: str) -> list[float] | None:
    from onedraw.errors import WrongCall

    if text is None:
        return None
    try:
        return [float(piece) for piece in text.split(",")]
    except ValueError:
        raise WrongCall(f"{option} takes numbers separated by commas such as {example}, got {text!r}.") from None


def response_range_from(text: str | None) -> tuple[float, float] | None:
    """LOW,HIGH, or one number Y for −Y,Y."""
    from onedraw.errors import WrongCall

    given = numbers_from(text, "--response-bound", "0,100")
    if given is None:
        return None
    if len(given) > 2:
        raise WrongCall(f"--response-bound takes LOW,HIGH or one number, got {len(given)} numbers.")
    return (-given[0], given[0]) if len(given) == 1 else (given[0], given[1])


def names_from(text: str | None) -> tuple[str, ...]:
    """Column names separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


def draws_from(text: str) -> int | None:
    """A number, or None for "auto"."""
    from onedraw.errors import WrongCall

    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise WrongCall(f"--draws takes auto or a whole number of at least 1, got {text!r}.")
    return int(text)
