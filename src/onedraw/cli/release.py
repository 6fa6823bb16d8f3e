"""`onedraw release` and `onedraw verify`: publish a draw with its certificate, and check what it says afterwards."""

from __future__ import annotations

import math
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onedraw.defaults import LEVEL
from onedraw.plain_text import known, readable
from onedraw.planning.options import Options

from .options import AsJson, Asking, Report, Spending, with_options
from .show import answer, show_json, show_lines, show_remark, show_table, waiting

if TYPE_CHECKING:
    from onedraw.planning import Planned
    from onedraw.release import Estimates

MANY = 60
"""More numbers than this are not printed: nobody reads them, and the file has them all."""


@with_options
def release(
    data: Annotated[str, typer.Argument(help="The private records: CSV, Parquet or Arrow; with --table, a postgresql:// URL or a SQLite file.")],
    asking: Asking,
    spending: Spending,
    options: Options,
    report: Report = None,
    rows: Annotated[int | None, typer.Option("--rows", help="n, if you want it checked against the file's.")] = None,
    memory: Annotated[str | None, typer.Option("--memory", metavar="SIZE", help="How much of the encoded records a fit may hold in memory, such as '2 GB' (256 MB by default); more is kept in a private file.")] = None,
    timing: Annotated[str | None, typer.Option("--timing", metavar="padded", help="padded: after a public amount of work, which the certificate's second line covers. How long that work takes is not covered.")] = None,
    check: Annotated[bool, typer.Option("--check", help="First show, on a terminal only, how many cells of each private column are not as declared.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Release a private estimate: charge the ledger, draw, write the certificate (and a report).

    The place is taken before the charge and the certificate is on disk before it is settled, so nothing paid for is lost:
    an interrupted release leaves OUT.unfinished, which holds the command with --resume that finishes it. Exit code 5: paid
    for but not finished; the message has that command, or the certificate is on standard output.
    """
    from onedraw.data import read
    from onedraw.data.curator import columns_of, find_screen, look
    from onedraw.release import release as release_draws
    from onedraw.release.estimates import estimates_of

    screen = find_screen() if check else None
    spending.check_places(report)
    asked, charged = asking.asked(options), spending.charged(data, asking.schema)
    records = read(data, asked.schema, target=asked.target, table=spending.table, memory=memory, measure=asked.measure)
    planned = asking.planned(asked, records.n if rows is None else rows)
    best = planned.choices.eligible[0]
    plan, seconds = best.plan, best.seconds
    parameters = len(plan.model.parameter_names)
    few = parameters > plan.n and not plan.mechanism.publishes_moments  # which have no prior
    if few:  # said of public numbers alone
        show_remark(f"n = {plan.n} records for {parameters} parameters: the result will say little about the records.")
    if screen is not None:
        look(columns_of(records), screen)
    about = "" if math.isnan(seconds) else f", about {max(1, math.ceil(seconds))} s by public numbers"
    with waiting(f"drawing{about}"):
        result = release_draws(plan, records, accept=asking.accept or (), timing=timing, label=asked.label, **charged)
    found = estimates_of(result.certificate, plan, LEVEL, reason=planned.why_no_interval)
    if report is not None:
        from onedraw.report import write_report

        write_report(result, report, ledger=charged["ledger"], interval=found, plan_table=planned.choices)
    if as_json:
        places = {"out": str(spending.out), "report": str(report) if report else None}
        show_json(document(result, planned, found) | places)
    else:
        show(result, planned, found)
        spending.say_written(result.certificate, charged, report)


def document(result: Any, planned: Planned, found: Estimates) -> dict[str, Any]:
    """The certificate, and what was computed from it."""
    joint = [row._asdict() | {"statistic": known(row.statistic), "p_value": known(row.p_value)} for row in found.joint]
    certificate: dict[str, Any] = result.certificate.model_dump(mode="json")
    return certificate | {
        "why": planned.choices.why, "estimates": found.to_dicts(), "categories": joint, "level": LEVEL,
        "why_no_interval": found.reason,
        **({"estimand": found.estimand, "dependence": found.dependence} if found.estimand else {}),
        **({"note": found.note} if found.estimand or found.note else {}),
    }  # fmt: skip


def show(result: Any, planned: Planned, found: Estimates) -> None:
    from onedraw.models import Network
    from onedraw.release.estimates import about_lines

    certificate, timing = result.certificate, result.certificate.timing
    show_lines(certificate.sentence, *([timing.sentence] if timing is not None and timing.work else []))
    described, whole = certificate.draw.quantity, certificate.data.target is None
    if len(found) > MANY or isinstance(result.plan.model, Network):
        use = "all of them are in the file" if whole else "score new records with onedraw predict"
        show_lines(f"{len(found)} {described}; {use}.")
    else:
        of = "the columns" if whole else certificate.data.target
        show_estimates(f"{found.estimand or f'{described} of {of}'}{units(result.plan.model)}", found)
    show_lines(*([f"Formula: {formula}"] if (formula := certificate.data.formula) else []))
    show_lines(*about_lines(**vars(found)), *map(str, found.joint))
    spread = result.plan.mechanism.inter_quartile_range(
        result.plan, certificate.draw.values[0], certificate.draw.stages
    )
    if spread is not None:
        show_lines(str(spread))
    if planned.choices.why:
        show_lines(f"Method: {planned.choices.why}")
    if not found.given and planned.choices.expectation:
        show_lines(planned.choices.expectation)
    if found.reason:
        show_lines(f"No interval: {found.reason.rstrip('.')}.")


def units(model: Any) -> str:
    """Return what the numbers of a model are: of shares and counts the level they are of, of others the columns' units."""
    if not model.unit(model.parameter_names[0]):
        return ", in the units of the columns"
    what = model.meaning.partition(". ")[0].rstrip(".")
    return f": {what[:1].lower()}{what[1:]}"


def show_estimates(title: str, found: Estimates) -> None:
    """As much as is known: estimate, interval, and of a fit standard error and p."""
    from onedraw.release.estimates import IN_DAYS, p_words

    given = any(math.isfinite(row.low) for row in found)
    tested = given and found.tested
    parts = bool(found.estimand) and any(math.isfinite(row.privacy_error) for row in found)
    shown = (True, True, given, tested, parts, tested)
    head = ["parameter", "released", f"{100 * LEVEL:g} % interval", "std err", "privacy part", "p"]
    rows = []
    for place, (name, row) in enumerate(zip(found.names, found, strict=True)):
        low, high = (found.written(place, end, readable) for end in (row.low, row.high))
        between = f"{low} to {high}" if row.given else "–"
        error = f"{row.std_err:.4g}" if math.isfinite(row.low) and math.isfinite(row.std_err) else "–"
        test = p_words(row.p_value) if math.isfinite(row.p_value) else "–"
        cells = [
            name,
            found.written(place, row.estimate, "{:.6g}".format),
            between,
            error,
            found.privacy_words(place),
            test,
        ]
        rows.append(list(compress(cells, shown)))
    show_table(title, list(compress(head, shown)), rows)
    if found.days:
        show_lines(IN_DAYS)
    if parts and any(found.least):
        show_lines(
            "The privacy part is known noise. After ≥ it may be larger: the records' variation along the column may itself be noise."
        )


def verify(
    release_file: Annotated[Path, typer.Argument(help="A release file.")],
    ledger: Annotated[str | None, typer.Option("--ledger", help="Also check the digest the ledger holds.")] = None,
    as_json: AsJson = False,
) -> None:
    """Derive the promise again from the certificate's numbers, without the data."""
    from onedraw.ledger import Ledger
    from onedraw.release import verify as verify_certificate

    result = verify_certificate(release_file, ledger=None if ledger is None else Ledger.open(ledger))
    consistent = result.answer == "consistent"
    meaning = (
        "Consistent: the numbers imply the promise. Add --ledger to learn whether this is the certificate that was issued."
        if consistent
        else "Authentic: the numbers imply the promise, and the ledger holds this very certificate."
    )
    unchecked = "; ".join(f"{name} ({words})" for name, words in result.unchecked.items())
    word = (
        "Not checked, the word of the person who released it" if consistent else "As issued, but implied by no number"
    )
    document = {
        "answer": result.answer, "sentence": result.sentence, "checks": list(result.checks), "timing": result.timing,
        "unchecked": dict(result.unchecked), "remarks": list(result.remarks),
    }  # fmt: skip
    checks = (f"  ✓ {check}" for check in result.checks)
    answer(
        as_json, document, result.sentence, *checks, result.timing, f"{word}: {unchecked}.", *result.remarks, meaning
    )
