"""Options that several commands share, spelled once.

A command that takes a dataclass has its fields as options (`with_options`): `plan` and `release` take `Asking`, what is asked for how
much, and the `Options` of the question itself, whose words and defaults are planning's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from onedraw.defaults import DELTA
from onedraw.errors import WrongCall
from onedraw.planning.options import MODELS, Options, RegressionOptions

if TYPE_CHECKING:
    from onedraw.planning import Asked, Planned
    from onedraw.privacy import Promise

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
SchemaFile = Annotated[
    Path, typer.Option("--schema", help="The schema: what is public about the columns (YAML or JSON).")
]
TableName = Annotated[
    str | None, typer.Option("--table", help="Where the records are in a database: the table, or schema.table.")
]
LedgerPlace = Annotated[
    str, typer.Option("--ledger", help="The ledger to charge: a SQLite file or a postgresql:// URL.")
]
Epsilon = Annotated[float, typer.Option("--epsilon", help="The budget's ε.")]
Delta = Annotated[float, typer.Option("--delta", help="The budget's δ; 0 means pure.")]
Out = Annotated[
    Path, typer.Option("--out", help="Where to write the release; must not exist. Taken before the charge.")
]
Report = Annotated[
    Path | None, typer.Option("--report", help="Also write a report for people (.html); must not exist.")
]
Seed = Annotated[
    int | None, typer.Option("--seed", help="Reproducible and therefore NOT PRIVATE; charged all the same.")
]
Resume = Annotated[
    str | None,
    typer.Option(
        "--resume",
        help="Finish an interrupted release, with its other options as they were: the ledger's entry that paid for it.",
    ),
]
HeldOut = Annotated[
    str,
    typer.Argument(
        help="Held-out private records, the target among them: CSV, Parquet or Arrow; with --table, a database."
    ),
]
HeldOutDataset = Annotated[str | None, typer.Option("--dataset", help="The held-out dataset's name in the ledger.")]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What is asked of a schema, and for how much."""

    schema: SchemaFile
    model: Annotated[str, typer.Option("--model", help=MODELS)]
    epsilon: Epsilon
    target: Annotated[
        str | None, typer.Option("--target", help="The column the question is about; a covariance has none.")
    ] = None
    delta: Delta = DELTA
    order: Annotated[
        float | None,
        typer.Option("--order", help="Read --epsilon as a Rényi budget at this order λ instead of (ε, δ)."),
    ] = None
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism",
            help="auto (for regressions a fit, else the smallest expected error of the proven ones), or a name.",
        ),
    ] = "auto"
    draws: Annotated[
        str,
        typer.Option(
            "--draws",
            metavar="auto|J",
            help="How many draws share the budget; auto: one fit or draw. 4 or 8 of a named mechanism give an interval.",
        ),
    ] = "auto"
    accept: Annotated[list[str] | None, typer.Option(
        "--accept", help="Take a sampler short of a proof by name: estimated, assumed. The first line will say so.")] = None  # fmt: skip

    @property
    def budget(self) -> Promise:
        from onedraw.privacy import RenyiDP

        return budget_from(self.epsilon, self.delta) if self.order is None else RenyiDP.at(self.order, self.epsilon)

    @property
    def how(self) -> dict[str, Any]:
        """Which mechanism, named or accepted."""
        return {"mechanism": self.mechanism, "accept": tuple(self.accept or ())}

    def asked(self, options: Options) -> Asked:
        """The question, checked against the schema alone."""
        from onedraw.data import Schema
        from onedraw.planning import ask

        return ask(Schema.load(self.schema), self.target, self.model, options)

    def planned(self, asked: Asked, n: int, *, compare: bool = False) -> Planned:
        if self.draws != "auto" and (not self.draws.isdecimal() or int(self.draws) < 1):
            raise WrongCall(f"--draws takes auto or a whole number of at least 1, got {self.draws!r}.")
        draws = None if self.draws == "auto" else int(self.draws)
        return asked.planned(self.budget, n=n, draws=draws, compare=compare, **self.how)


def budget_from(epsilon: float, delta: float) -> Promise:
    from onedraw.privacy import epsilon_delta

    return epsilon_delta(epsilon, delta)


# ── a dataclass as options ───────────────────────────────────────────────────────────────────────────────────


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command, each of its parameters that is a dataclass spelled out as options and read back."""
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: one.annotation for name, one in parameters.items() if is_dataclass(one.annotation)}
    spelled: list[inspect.Parameter] = []
    for name, one in parameters.items():
        group = groups.get(name)
        spelled += [one.replace(kind=one.KEYWORD_ONLY)] if group is None else map(_parameter(group), fields(group))

    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: _read(one, given.pop(one.name)) for one in fields(group)})
        command(**given)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(spelled)  # type: ignore[attr-defined]
    return run


def _parameter(group: type) -> Callable[[Field[Any]], inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)

    def parameter(one: Field[Any]) -> inspect.Parameter:
        default = inspect.Parameter.empty if one.default is MISSING else None if one.default == () else one.default
        annotation = _option(one, hints[one.name]) if "words" in one.metadata else hints[one.name]
        return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    return parameter


def _option(one: Field[Any], hint: Any) -> Any:
    """A list comes as text with commas."""
    about, kind = one.metadata, str | None if one.metadata["list_of"] else hint
    panel = "Regressions" if one.name in RegressionOptions.__dataclass_fields__ else None
    flag = about["flag"] or f"--{one.name.replace('_', '-')}"
    return Annotated[kind, typer.Option(flag, help=about["words"], metavar=about["metavar"], rich_help_panel=panel)]


def _read(one: Field[Any], text: Any) -> Any:
    example = one.metadata.get("list_of", "")
    if not example or text is None:
        return one.default if text is None and example else text
    pieces = tuple(piece.strip() for piece in text.split(","))
    if not example[0].isdigit():
        return pieces
    try:
        return tuple(map(float, pieces))
    except ValueError:
        raise WrongCall(
            f"--{one.name.replace('_', '-')} takes numbers separated by commas such as {example}, got {text!r}."
        ) from None
