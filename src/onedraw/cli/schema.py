"""`onedraw schema`: write a schema from PUBLIC data, or check one before any private file is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, TableName
from .show import show_json, show_lines, show_remark, show_table

group = typer.Typer(help="Say what is public about the columns.", no_args_is_help=True)


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
