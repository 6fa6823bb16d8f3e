"""`onedraw describe`: the first table of a paper, in one release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onedraw.defaults import DELTA

from .options import ENVIRONMENT, AsJson, Delta, Epsilon, Report, Spending, with_options
from .show import show_json, show_lines, show_table, waiting


@with_options
def describe(
    data: Annotated[str, typer.Argument(help="The private records: CSV, Parquet or Arrow; with --table, a postgresql:// URL or a SQLite file.")],
    epsilon: Epsilon,
    spending: Spending,
    schema: Annotated[Path, typer.Option("--schema", help="The schema: what is public about the columns (YAML or JSON).", envvar=ENVIRONMENT["--schema"])],
    delta: Delta = DELTA,
    by: Annotated[str | None, typer.Option("--by", metavar="COLUMN[,COLUMN…]", help="Within the groups of one to three categories, with differences.")] = None,
    columns: Annotated[str | None, typer.Option("--columns", metavar="A,B,…", help="Which columns. [default: all but those of --by]")] = None,
    report: Report = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Also the table as CSV, one row for each cell; must not exist.")] = None,
    latex: Annotated[Path | None, typer.Option("--latex", help="Also the table as a LaTeX tabular; must not exist.")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Describe all columns in one release: records, means, deviations, quartiles and shares, by group, with differences.

    One charge for the whole table. The budget is split by a public rule. Cells whose interval exceeds half of the declared
    range are marked too noisy.
    """
    from onedraw.data import Schema
    from onedraw.estimators import describe as describe_columns
    from onedraw.release import check_writable

    spending.check_places(report)
    for place in filter(None, (csv, latex)):
        check_writable(place)
    charged = spending.charged(data, schema)
    charged["requested_by"] = charged.pop("by")  # of a description, by= names the groups
    groups = () if by is None else tuple(name.strip() for name in by.split(","))
    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    with waiting("describing"):
        found = describe_columns(
            data, Schema.load(schema), epsilon=epsilon, delta=delta, by=groups, columns=chosen, table=spending.table, **charged
        )  # fmt: skip
    if report is not None:
        found.report(report, ledger=charged["ledger"])
    if csv is not None:
        found.to_csv(csv)
    if latex is not None:
        found.to_latex(latex)
    table = found.table
    if as_json:
        written = {"out": str(spending.out), "report": str(report) if report else None}
        rows = [{name: None if value == "" else value for name, value in row.items()} for row in table.rows()]
        show_json(
            found.certificate.model_dump(mode="json") | {"table": rows, "noisy_share": table.noisy_share} | written
        )
        return
    show_lines(found.certificate.sentence)
    show_table(
        " by ".join(["table 1", ", ".join(table.by)]) if table.by else "table 1",
        table.head,
        [row for _, row in table.words()],
    )
    show_lines(table.note)
    spending.say_written(found.certificate, charged, report)
