"""`onedraw evaluate`: how good a released model is on held-out records, as a release of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from onedraw.plain_text import known

from .options import AsJson, Delta, Epsilon, HeldOut, Report, Spending, with_options
from .show import show_json, show_lines, show_table, waiting


@with_options
def evaluate(
    release_file: Annotated[Path, typer.Argument(help="A release file of a regression or classification.")],
    data: HeldOut,
    epsilon: Epsilon,
    spending: Spending,
    delta: Delta = 0.0,
    bins: Annotated[int | None, typer.Option("--bins", help="Bins of the score of two classes; planned from n and ε by default.")] = None,
    largest_error: Annotated[float | None, typer.Option("--largest-error", help="Of numbers: errors beyond it count as it. A smaller one gives less noise.")] = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Accuracy, ROC curve and calibration of a released classifier, or RMSE and R², on held-out records, with intervals.

    The held-out records are private too: the ledger is charged first. Use records that were not used for fitting.
    """
    from onedraw.data.records import in_database
    from onedraw.estimators import evaluate as evaluate_model
    from onedraw.release import Release

    spending.check_places(report)
    charged, source = spending.charged(data), in_database(data, spending.table)
    with waiting("counting"):
        found = evaluate_model(
            Release.load(release_file), source, epsilon=epsilon, delta=delta, bins=bins, largest_error=largest_error, **charged
        )  # fmt: skip
    if report is not None:
        from onedraw.report import write_report

        write_report(found.release, report, ledger=charged["ledger"])
    if as_json:
        certificate = found.certificate.model_dump(mode="json")
        show_json(certificate | {"out": str(spending.out), "scores": written(found.scores)})
        return
    show(found)
    spending.say_written(found.certificate, charged, report)


def show(found: Any) -> None:
    scores = found.scores
    show_lines(found.certificate.sentence)
    if (missing := found.release.missing) is not None:
        show_lines(missing.words("records have no known class or response, and contribute nothing"))
    show_table(
        "the model on held-out records", ["figure", "released", f"{100 * scores.level:g} % interval", "std err"],
        [[name, f"{one.value:.4g}", f"{one.low:.4g} to {one.high:.4g}", f"{one.error:.2g}"] for name, one in scores.figures.items()],
    )  # fmt: skip
    if scores.confusion is not None:
        show_table(
            f"records by true and predicted class, each within ±{scores.confusion_error:.0f}", ["", *(f"predicted {label}" for label in scores.classes)],
            [[f"true {label}", *(f"{count:,.0f}" for count in row)] for label, row in zip(scores.classes, scores.confusion, strict=True)],
        )  # fmt: skip


def written(scores: Any) -> dict[str, Any]:
    """As JSON: figures, confusion matrix, curves; null where the counts say nothing."""
    figures = {name: vars(one) for name, one in scores.figures.items()}
    document: dict[str, Any] = {"level": scores.level, "figures": figures}
    if scores.confusion is not None:
        document |= {"classes": list(scores.classes), "confusion": scores.confusion.tolist()}
    for name in ("roc", "calibration"):
        curve = getattr(scores, name)
        if curve is not None:
            document[name] = {key: [*map(known, part.tolist())] for key, part in vars(curve).items()}
    return document
