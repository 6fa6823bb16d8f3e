"""Options that several commands share, spelled once.

A command that takes a dataclass has its fields as options (`with_options`). `plan` and `release` take `Asking`, what is asked for how
much, and the `Options` of the question itself, whose words and defaults are planning's; `release`, `evaluate` and `choose` take
`Spending`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from onedraw.defaults import DELTA
from onedraw.errors import WrongCall
from onedraw.plain_text import shown_place
from onedraw.planning.options import MODELS, Options, RegressionOptions

from .show import COMMAND, show_lines

if TYPE_CHECKING:
    from onedraw.planning import Asked, Planned

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
TABLE = "Where the records are in a database: the table, or schema.table."
TableName = Annotated[str | None, typer.Option("--table", help=TABLE)]
Epsilon = Annotated[float, typer.Option("--epsilon", help="The budget's ε.")]
Delta = Annotated[float, typer.Option("--delta", help="The budget's δ; 0 means pure.")]
Report = Annotated[Path | None, typer.Option("--report", help="Also a report for people (.html); must not exist.")]
HeldOut = Annotated[str, typer.Argument(
    help="Held-out private records, the target among them: CSV, Parquet or Arrow; with --table, a database.",
)]  # fmt: skip


ENVIRONMENT = {"--schema": "ONEDRAW_SCHEMA", "--ledger": "ONEDRAW_LEDGER"}
"""Variables that stand for an option that several commands need."""


def said(words: str, default: Any = MISSING, metavar: str | None = None, envvar: str | None = None) -> Any:
    return field(default=default, metadata={"words": words, "metavar": metavar, "envvar": envvar})


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What is asked of a schema, and for how much."""

    schema: Path = said("The schema: what is public about the columns (YAML or JSON).", envvar=ENVIRONMENT["--schema"])
    model: str = said(MODELS)
    epsilon: float = said("The budget's ε.")
    target: str | None = said("The column the question is about; a covariance has none, a formula names its own.", None)
    delta: float = said("The budget's δ; 0 means pure.", DELTA)
    order: float | None = said("Read --epsilon as a Rényi budget at this order λ instead of (ε, δ).", None)
    mechanism: str = said(
        "auto (for regressions a fit, else the smallest expected error of the proven ones), or a name.", "auto"
    )
    draws: str = said(
        "How many draws share the budget; auto: one fit or draw. 4 or 8 of a named mechanism give an interval.", "auto", "auto|J"
    )  # fmt: skip
    accept: list[str] | None = said(
        "Take a sampler short of a proof by name: estimated, assumed. The first line will say so.", None
    )

    def asked(self, options: Options) -> Asked:
        """The question, checked against the schema alone."""
        from onedraw.data import Schema
        from onedraw.planning import ask

        return ask(Schema.load(self.schema), self.target, self.model, options)

    def planned(self, asked: Asked, n: int, *, compare: bool = False, dataset: str | None = None) -> Planned:
        from onedraw.privacy import RenyiDP, epsilon_delta

        if self.draws != "auto" and (not self.draws.isdecimal() or int(self.draws) < 1):
            raise WrongCall(f"--draws takes auto or a whole number of at least 1, got {self.draws!r}.")
        draws = None if self.draws == "auto" else int(self.draws)
        approximate, order = epsilon_delta(self.epsilon, self.delta), self.order
        budget = approximate if order is None else RenyiDP.at(order, self.epsilon)
        return asked.planned(
            budget,
            n=n,
            draws=draws,
            compare=compare,
            mechanism=self.mechanism,
            accept=self.accept or (),
            dataset=dataset,
        )


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Which ledger is charged, for which records, and where the release is written."""

    ledger: str = said("The ledger to charge: a SQLite file or a postgresql:// URL.", envvar=ENVIRONMENT["--ledger"])
    out: Path = said("Where to write the release; must not exist. Taken before the charge.")
    table: str | None = said(TABLE, None)
    dataset: str | None = said("The dataset's name in the ledger.", None)
    seed: int | None = said("Reproducible and therefore NOT PRIVATE; charged all the same.", None)
    resume: str | None = said(
        "Finish an interrupted release, with its other options as they were: the ledger's entry that paid for it.", None
    )

    requested_by: str | None = said("Who asks for this release; the ledger keeps it.", None)
    purpose: str | None = said("What the release is for; the ledger keeps it.", None)

    def check_places(self, report: Path | None = None) -> None:
        """Refuse what cannot be written before anything is read or spent."""
        from onedraw.errors import CannotWrite
        from onedraw.release import check_writable
        from onedraw.release.files import check_unclaimed

        check_writable(self.out, overwrite=self.resume is not None)
        if self.resume is None:
            check_unclaimed(self.out)
        if report is not None:
            from onedraw.report.page import check_place

            check_place(report, overwrite=False)
            if report.resolve() == self.out.resolve():
                raise CannotWrite(f"--out and --report are both {self.out}. Choose another name for the report.")

    def charged(self, data: str, schema: Path | None = None) -> dict[str, Any]:
        """What a release is given: the ledger, opened; and this command, to be given again for the ledger's ENTRY if it is
        interrupted, places written as they may be shown, without passwords."""
        from onedraw.ledger import Ledger

        ledger, words = Ledger.open(self.ledger), sys.argv[1:]
        words = with_unnamed(words, schema=None if schema is None else str(schema), ledger=self.ledger)
        for place, printed in ((data, shown_place(data)), (self.ledger, ledger.place)):
            words = [word.replace(place, printed) for word in words]
        for index in [index for index, word in enumerate(words) if word.startswith("--resume")]:
            del words[index : index + (1 if "=" in words[index] else 2)]
        return {
            "ledger": ledger, "dataset": self.dataset, "random_state": self.seed, "out": self.out, "resume": self.resume,
            "by": self.requested_by, "purpose": self.purpose, "how_to_resume": f"{shlex.join(['onedraw', *words])} --resume ENTRY",
        }  # fmt: skip

    def say_written(self, certificate: Any, charged: dict[str, Any], report: Path | None = None) -> None:
        """Print the last lines of every release: where it is, how to check it, and what the guarantee covers."""
        from onedraw.release.review import cautions

        files, place = str(self.out) if report is None else f"{self.out} and {report}", charged["ledger"].place
        check = f"onedraw verify {self.out} --ledger {place}"
        show_lines(
            f"Written to {files}. Check it with:",
            f"{COMMAND}{check}",
            *cautions(certificate),
            certificate.coverage(files),
        )


def with_unnamed(words: list[str], **options: str | None) -> list[str]:
    """Return a command with the options that were not typed, because variables named them."""
    given = {word.partition("=")[0] for word in words}
    unnamed = {f"--{name}": value for name, value in options.items() if value is not None}
    return [*words, *(word for flag, value in unnamed.items() if flag not in given for word in (flag, value))]


# ── a dataclass as options ───────────────────────────────────────────────────────────────────────────────────


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command, each of its parameters that is a dataclass spelled out as options and read back."""
    parameters = signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: one.annotation for name, one in parameters.items() if is_dataclass(one.annotation)}
    spelled: list[Parameter] = []
    for name, one in parameters.items():
        spelled += _spelled(groups[name]) if name in groups else [one.replace(kind=one.KEYWORD_ONLY)]

    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: _read(one, given.pop(one.name)) for one in fields(group)})
        command(**given)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = Signature(spelled)  # type: ignore[attr-defined]
    return run


def _spelled(group: Any) -> Iterator[Parameter]:
    """Each field as an option; a list comes as text with commas."""
    hints = get_type_hints(group)
    for one in fields(group):
        about, listed = one.metadata, one.metadata.get("list_of")
        of_regressions = one.name in RegressionOptions.__dataclass_fields__ or one.name in ("formula", "columns")
        panel = "Regressions" if of_regressions else None
        flag = about.get("flag") or f"--{one.name.replace('_', '-')}"
        option = typer.Option(
            flag, help=about["words"], metavar=about["metavar"], rich_help_panel=panel, envvar=about.get("envvar")
        )
        default = Parameter.empty if one.default is MISSING else None if listed else one.default
        kind: Any = str | None if listed else hints[one.name]
        yield Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


def _read(one: Field[Any], text: Any) -> Any:
    example = one.metadata.get("list_of")
    if not example or text is None:
        return one.default if example else text
    pieces = tuple(piece.strip() for piece in text.split(","))
    if not example[0].isdigit():
        return pieces
    try:
        return tuple(map(float, pieces))
    except ValueError:
        name = one.name.replace("_", "-")
        raise WrongCall(f"--{name} takes numbers separated by commas such as {example}, got {text!r}.") from None
