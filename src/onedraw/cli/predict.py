"""`onedraw predict`: score new records with a released model. Reads the certificate and the new file; nothing private."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated, Any

import typer

from onedraw.plain_text import for_spreadsheet, known

from .options import AsJson, TableName
from .show import show_json, show_lines, show_remark


def predict(
    release_file: Annotated[Path, typer.Argument(help="A release file of a regression or classification.")],
    data: Annotated[str, typer.Argument(
        help="New records: CSV, Parquet or Arrow, or with --table a database. The target need not be in it.",
    )],
    table: TableName = None,
    schema: Annotated[Path | None, typer.Option(
        "--schema", help="The release's schema, where the certificate does not carry it.",
    )] = None,
    interval: Annotated[float | None, typer.Option(
        "--interval", metavar="LEVEL", help="Also an interval at this level, such as 0.95, of each probability or mean.",
    )] = None,
    out: Annotated[Path | None, typer.Option(
        "--out", help="Where to write the scores (.csv); must not exist. Default: print them.",
    )] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Probabilities, classes or values for new records, by the mean of the released draws. Spends nothing.

    In the CSV a class that a spreadsheet would compute, such as +ve, has an apostrophe before it; --json has it as declared.
    """
    from onedraw.data import Schema
    from onedraw.data.records import in_database
    from onedraw.release import check_writable, load
    from onedraw.release.certificate import UNPROVEN
    from onedraw.release.files import write_whole

    if out is not None:
        check_writable(out)
    release = load(release_file)
    certificate = release.certificate
    declared = None if schema is None else Schema.load(schema)
    found = release.predict(in_database(data, table), schema=declared, interval=interval)
    text = as_csv(found)
    if out is not None:
        write_whole(out, text, "file of scores")
    if as_json:
        show_json({
            "release": str(release_file), "sentence": release.sentence, "records": len(found.values),
            "out": None if out is None else str(out), "classes": list(found.classes), "columns": list(found.columns),
            "labels": found.labels, "values": ends(found.values), "level": found.level, "low": ends(found.low),
            "high": ends(found.high), "why_no_interval": found.remark, "note": found.note,
        })  # fmt: skip
    elif out is None:
        print(text, end="")
    else:
        show_lines(f"{len(found.values):,} records scored, written to {out}. No private record was read.")
    for remark in filter(None, () if as_json else (found.remark, found.note)):
        show_remark(remark)
    if not as_json and certificate.exactness.get("kind") in UNPROVEN:
        show_remark(release.sentence)


def as_csv(found: Any) -> str:
    """One line for each record, in the file's order: the class if there is one, then the numbers, then the ends of their
    intervals, empty where there is none.

    A label that a spreadsheet would compute (it begins with =, +, - or @ and is no number) has an apostrophe before it.
    """
    import numpy as np

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    labels = found.labels
    head = [*map(for_spreadsheet, found.columns)]
    numbers = found.values
    if found.level is not None:
        head += [for_spreadsheet(f"{column} {end}") for column in found.columns for end in ("low", "high")]
        numbers = np.column_stack([numbers, np.dstack([found.low, found.high]).reshape(len(numbers), -1)])
    writer.writerow([*(["class"] if labels or found.classes else []), *head])
    for index, values in enumerate(numbers):
        written = ("" if np.isnan(value) else f"{value:.6g}" for value in values)
        writer.writerow([*(map(for_spreadsheet, labels[index : index + 1])), *written])
    return text.getvalue()


def ends(values: Any) -> list[list[float | None]] | None:
    """A number that is not given is null."""
    return None if values is None else [[*map(known, row)] for row in values.tolist()]
