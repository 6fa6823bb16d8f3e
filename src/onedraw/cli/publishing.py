"""`onedraw release` and `onedraw verify`: let one draw out through the door, and check what it says afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .flags import (
    AsJson,
    Delta,
    Draws,
    Epsilon,
    Mechanism,
    Order,
    Prior,
    Question,
    SchemaFile,
    Target,
    budget_from,
    mechanisms_from,
    prior_from,
)  # fmt: skip
from .show import show_json, show_lines, show_table


def release(
    data: Annotated[Path, typer.Argument(help="The private records: CSV, Parquet or Arrow.")],
    schema: SchemaFile,
    target: Target,
    model: Question,
    epsilon: Epsilon,
    ledger: Annotated[str, typer.Option("--ledger", help="The books to charge: a SQLite file or a postgresql:// URL.")],
    out: Annotated[Path, typer.Option("--out", help="Where to write the release; must not exist.")],
    dataset: Annotated[str | None, typer.Option("--dataset", help="The dataset's name in the ledger.")] = None,
    delta: Delta = 1e-6,
    order: Order = None,
    mechanism: Mechanism = "auto",
    prior: Prior = None,
    draws: Draws = 1,
    rows: Annotated[int | None, typer.Option("--rows", help="n, if you want it checked against the file's.")] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Reproducible and therefore NOT PRIVATE; charged all the same."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Release one private draw: charge the ledger, draw, write the certificate."""
    import onedraw.release as door
    from onedraw.data import Schema, read
    from onedraw.ledger import Ledger
    from onedraw.planning import choices, model_for

    door.check_writable(out)
    declared, books, budget = Schema.load(schema), Ledger.open(ledger), budget_from(epsilon, delta, order)
    records = read(data, declared, target=target)
    n = records.n if rows is None else rows
    family = model_for(declared, target, question=model, n=n, budget=budget, prior=prior_from(prior))
    plan = choices(
        family,
        budget,
        n=n,
        draws=draws,
        records_per_person=declared.records_per_person,
        mechanisms=mechanisms_from(mechanism),
    ).best
    result = door.release(plan, records, ledger=books, dataset=dataset, random_state=seed, label=f"{model} of {target}")
    result.save(out)
    certificate = result.certificate
    if as_json:
        show_json(certificate.model_dump(mode="json") | {"out": str(out)})
        return
    show_lines(certificate.sentence)
    show_table(
        f"{certificate.draw.quantity} of {target}", ["parameter", "released"],
        [[name, f"{value:.6g}"] for name, value in zip(certificate.draw.names, result.draws[0], strict=True)],
    )  # fmt: skip
    if model == "average":
        lower, upper = family.lower, family.upper
        value = lower + result.draw * (upper - lower)
        show_lines(f"The proportion is of the range {lower:g} … {upper:g}: in the column's units {value:.6g}.")
    show_lines(f"Written to {out}. Check it with: onedraw verify {out} --ledger {ledger}")


def verify(
    release_file: Annotated[Path, typer.Argument(help="A release file.")],
    ledger: Annotated[str | None, typer.Option("--ledger", help="Also check the digest the ledger holds.")] = None,
    as_json: AsJson = False,
) -> None:
    """Derive the promise again from the certificate's numbers, without the data."""
    import onedraw.release as door
    from onedraw.ledger import Ledger

    result = door.verify(release_file, ledger=None if ledger is None else Ledger.open(ledger))
    if as_json:
        show_json({"answer": result.answer, "sentence": result.sentence, "checks": list(result.checks)})
        return
    show_lines(result.sentence, *(f"  ✓ {check}" for check in result.checks))
    show_lines(
        "Consistent: the numbers imply the promise. Add --ledger to learn whether this is the certificate that was issued."
        if result.answer == "consistent"
        else "Authentic: consistent, and the ledger holds this certificate's digest."
    )
