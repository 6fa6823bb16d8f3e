"""`onedraw schema`: write a schema from the names of the columns or from PUBLIC data, or check one before a private file is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from onedraw.errors import WrongCall

from .options import ENVIRONMENT, AsJson, Spending, TableName
from .show import show_json, show_lines, show_remark, show_table, waiting

group = typer.Typer(help="Say what is public about the columns.", no_args_is_help=True)


def _listed(kind: str, words: str) -> Any:
    return typer.Option(
        f"--{kind}", help=words, metavar="COLUMN[=…]", rich_help_panel="Columns, each option as often as needed"
    )


@group.command("new")
def new(
    data_file: Annotated[str, typer.Argument(help="The file whose columns are declared: CSV, Parquet or Arrow; with --table, a database.")],
    header: Annotated[bool, typer.Option("--header", help="The first line of a CSV file has the names of its columns, and is no record.")] = False,
    names: Annotated[str | None, typer.Option("--names", metavar="A,B,…", help="The names of the columns; the file is not opened.")] = None,
    number: Annotated[list[str] | None, _listed("number", "Numbers with public bounds, age=0:120.")] = None,
    count: Annotated[list[str] | None, _listed("count", "Whole numbers up to a cap, visits=20.")] = None,
    binary: Annotated[list[str] | None, _listed("binary", "No or yes, or two levels, healed=no|yes.")] = None,
    category: Annotated[list[str] | None, _listed("category", "Levels, ward=medicine|surgery|other.")] = None,
    date: Annotated[list[str] | None, _listed("date", "Dates, admitted=2020-01-01:2025-12-31, and a format, :%d.%m.%Y.")] = None,
    person: Annotated[str | None, typer.Option("--person", help="The column that says whose a record is.")] = None,
    max_records: Annotated[int | None, typer.Option("--max-records", help="How many records of one person count.")] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="The dataset's name in the ledger.")] = None,
    table: TableName = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the schema; must not exist. [default: standard output]")] = None,
    private_bounds: Annotated[float | None, typer.Option("--private-bounds", metavar="ε", help="Estimate the bounds of number columns without any, by one release that is charged ε.", rich_help_panel="Private bounds")] = None,
    delta: Annotated[float, typer.Option("--delta", help="The δ of that release; 0 means pure.", rich_help_panel="Private bounds")] = 0.0,
    ledger: Annotated[str | None, typer.Option("--ledger", help="The ledger to charge: a SQLite file or a postgresql:// URL.", envvar=ENVIRONMENT["--ledger"], rich_help_panel="Private bounds")] = None,
    release: Annotated[Path | None, typer.Option("--release", help="Where to write the certificate of that release; must not exist.", rich_help_panel="Private bounds")] = None,
    resume: Annotated[str | None, typer.Option("--resume", metavar="ENTRY", help="Finish such a release that was interrupted, with all other options as they were.", rich_help_panel="Private bounds")] = None,
    requested_by: Annotated[str | None, typer.Option("--requested-by", help="Who asks for it; the ledger keeps it.", rich_help_panel="Private bounds")] = None,
    purpose: Annotated[str | None, typer.Option("--purpose", help="What it is for; the ledger keeps it.", rich_help_panel="Private bounds")] = None,
) -> None:  # fmt: skip
    """Write a schema from the names of the columns and what you declare of them. No value is read.

    What is left to declare stands there as a comment. With --private-bounds the bounds of the number columns that have none are
    estimated from the records, by one release that the ledger is charged for first.
    """
    from onedraw.data.new_schema import NamesAlone, Sketch, declaration
    from onedraw.data.records import in_database, open_table
    from onedraw.errors import CannotWrite

    if out is not None and out.exists():
        raise CannotWrite(
            f"The schema cannot be written to {out.name}: it exists already. Choose another name or place."
        )
    text = data_file.lower().endswith((".csv", ".csv.gz"))
    if text and not header and names is None:
        raise WrongCall(
            f"The first line of {data_file} has the names of its columns, or it is a record, and then it must not be shown. Nothing was "
            "read. Pass --header if it has the names; if it has not, pass --names A,B,… and write them into the file as its first line."
        )
    source = in_database(data_file, table)
    opened = NamesAlone(tuple(name.strip() for name in names.split(","))) if names is not None else open_table(source)
    given = {"number": number, "count": count, "binary": binary, "category": category, "date": date}
    declared = dict(declaration(kind, one, opened.names) for kind, several in given.items() for one in several or ())
    if len(declared) < sum(len(several or ()) for several in given.values()):
        raise WrongCall("A column is declared twice. Give each one kind.")
    about = {"dataset": dataset, "person": person, "max_records": max_records}
    about = {key: value for key, value in about.items() if value is not None}
    sketch = Sketch.of(opened, declared, about)
    if private_bounds is not None:
        if names is not None:
            raise WrongCall(
                "--private-bounds reads the records, and --names does not open the file. Pass --header, once the names stand in its first line."
            )
        if ledger is None or release is None or dataset is None:
            raise WrongCall(
                "--private-bounds is a release. Pass --ledger, --dataset and --release FILE for its certificate."
            )
        sketch = _with_bounds(sketch, Spending(
            ledger=ledger, out=release, table=table, dataset=dataset, resume=resume, requested_by=requested_by, purpose=purpose
        ), data_file, source, private_bounds, delta)  # fmt: skip
    elif any((ledger and release, release, resume)):
        raise WrongCall(
            "--release and --resume belong to --private-bounds ε, without which nothing is released. Add it, or leave them out."
        )
    if out is None:
        print(sketch.to_yaml(), end="")
    else:
        with out.open("x", encoding="utf-8") as file:
            file.write(sketch.to_yaml())
        show_remark(
            f"written to {out}" + ("" if sketch.complete else "; what is left to declare stands there as comments")
        )
    if names is not None and text:
        show_remark("onedraw reads the first line of a CSV file as the names of its columns: write these names there.")


def _with_bounds(sketch: Any, spending: Spending, data: str, source: Any, epsilon: float, delta: float) -> Any:
    """The sketch with the bounds of one charged release, for number columns that have none."""
    from dataclasses import replace

    from onedraw.planning import private_bounds

    wanted = [name for name, one in sketch.declared.items() if one["kind"] == "number" and "lower" not in one]
    if not wanted:
        raise WrongCall(
            "Every number column has bounds already, so there are none to estimate. Leave out --private-bounds, or name columns as --number NAME."
        )
    spending.check_places()
    charged = spending.charged(data)
    del charged["dataset"]
    with waiting("counting magnitudes"):
        found = private_bounds(
            source, wanted, epsilon=epsilon, delta=delta, dataset=sketch.about["dataset"], person=sketch.about.get("person"),
            max_records=sketch.about.get("max_records"), **charged,
        )  # fmt: skip
    for name, one in found.bounds.items():
        show_remark(
            f"{name}: {one.lower:.12g} to {one.upper:.12g}; expected to clip {100 * one.clipped:.1f} % of the known records (with 95 % "
            f"confidence at most {100 * one.clipped_at_most:.1f} %); about {100 * one.missing:.1f} % of the cells are missing"
        )
    declared = {name: found.declarations().get(name, one) for name, one in sketch.declared.items()}
    return replace(sketch, declared=declared, about={**sketch.about, "private_bounds": found.source})


@group.command("infer")
def infer(
    public_file: Annotated[Path, typer.Argument(help="A PUBLIC file: its values become public bounds and levels.")],
    as_json: AsJson = False,
) -> None:
    """Write a schema from a PUBLIC file to standard output. Never point this at the private records.

    The schema is marked "inferred from …: must be public", and every certificate made with it repeats that.
    """
    from onedraw.data import infer

    found = infer(public_file)
    if as_json:
        show_json(found.schema.to_dict() | {"left_out": dict(found.left_out)})
        return
    print(found.schema.to_yaml(), end="")
    for name, reason in found.left_out.items():
        show_remark(f"left out: {name}: {reason}")


@group.command("check")
def check(
    schema_file: Annotated[Path, typer.Argument(help="The schema to check.")],
    data_file: Annotated[str | None, typer.Argument(
        help="Also check that this file, or --table of this database, has the schema's columns.",
    )] = None,
    table: TableName = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Check a schema, and optionally that a file has its columns (the header is looked at, no record is)."""
    from onedraw.data import Schema, read

    schema = Schema.load(schema_file)
    rows = None if data_file is None else read(data_file, schema, table=table).n
    if as_json:
        show_json({"ok": True, "schema": schema.to_dict(), "digest": schema.digest, "rows": rows})
        return
    lines: list[list[str]] = []
    for name, column in schema.columns.items():
        declared = column.model_dump(mode="json", exclude_none=True, exclude={"kind"})
        facts = (f"{key} {' | '.join(value) if isinstance(value, list) else value}" for key, value in declared.items())
        lines.append([name, column.kind, ", ".join(facts)])
    show_table("Declared columns", ["column", "kind", "public facts"], lines)
    if schema.notice:
        show_lines(f"The schema was {schema.notice}.")
    if rows is not None:
        show_lines(f"{table or data_file} has these columns and {rows:,} records.")
