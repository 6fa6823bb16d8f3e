"""`onedraw choose`: which of several released models does best on held-out records, as a release that tells the winner alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Delta, Epsilon, HeldOut, Spending, with_options
from .show import show_json, show_lines, waiting


@with_options
def choose(
    release_files: Annotated[list[Path], typer.Argument(help="Two or more release files of one question, such as fits with different settings.")],
    data: HeldOut,
    epsilon: Epsilon,
    spending: Spending,
    delta: Delta = 0.0,
    largest_error: Annotated[float | None, typer.Option("--largest-error", help="Of numbers: errors beyond it count as it. A smaller one makes a sharper choice.")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """The best of several released models on held-out records, chosen for one charge, however many there are.

    No score leaves, and not by how much it won. Use records that were not used for fitting any of them.
    """
    from onedraw.data.records import in_database
    from onedraw.errors import WrongCall
    from onedraw.estimators import choose as choose_model
    from onedraw.release import Release

    spending.check_places()
    settings = {str(file): Release.load(file) for file in release_files}
    if len(settings) < max(len(release_files), 2):
        raise WrongCall(
            "A choice is among two or more different release files. Name each once, then the held-out records."
        )
    targets = {str(one.certificate.data.target) for one in settings.values()}
    if len(targets) > 1:
        asked = ", ".join(sorted(targets))
        raise WrongCall(f"These releases answer different questions: {asked}. Choose among models of one target.")
    charged, source = spending.charged(data), in_database(data, spending.table)
    with waiting("choosing"):
        found = choose_model(settings, source, epsilon=epsilon, delta=delta, largest_error=largest_error, **charged)
    if as_json:
        show_json(found.certificate.model_dump(mode="json") | {"out": str(spending.out), "chosen": found.name})
        return
    show_lines(found.certificate.sentence, f"Chosen among {len(settings)}: {found.name}")
    spending.say_written(found.certificate, charged)
