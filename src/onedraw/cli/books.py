"""`onedraw ledger`: open a budget, see what is spent on what and what is left, check the chain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from onedraw.ledger.places import shown_place

from .flags import AsJson
from .show import number, show_json, show_lines, show_table

group = typer.Typer(help="The books: budgets per dataset, every spend, a verifiable chain.", no_args_is_help=True)

Book = Annotated[str, typer.Argument(help="A SQLite file, or a postgresql:// URL.")]
Dataset = Annotated[
    str, typer.Option("--dataset", help="The dataset's name, chosen by you, never derived from a file.")
]
Epsilon = Annotated[float, typer.Option("--epsilon", help="The budget's ε.")]
Delta = Annotated[float, typer.Option("--delta", help="The budget's δ; 0 means pure.")]


def budget(epsilon: float, delta: float) -> Any:
    from onedraw.privacy import ApproxDP, PureDP

    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


@group.command("init")
def init(
    book: Book,
    dataset: Dataset,
    epsilon: Epsilon,
    delta: Delta = 0.0,
    max_records: Annotated[
        int, typer.Option("--max-records", help="Records one person may have (as in the schema).")
    ] = 1,
    note: Annotated[str, typer.Option("--note", help="A sentence for the record.")] = "",
    as_json: AsJson = False,
) -> None:
    """Open a budget for a dataset, creating the ledger file if there is none."""
    from onedraw.ledger import Ledger
    from onedraw.privacy import Unit

    ledger = Ledger.open(book, create=True)
    ledger.init(dataset, budget(epsilon, delta), unit=Unit(max_records), note=note)
    _say(as_json, {"ledger": shown_place(book), "dataset": dataset, "budget": budget(epsilon, delta).to_dict(), "head": ledger.head()},
         f"Opened {dataset} with {budget(epsilon, delta)} in {shown_place(book)}.")  # fmt: skip


@group.command("top-up")
def top_up(book: Book, dataset: Dataset, epsilon: Epsilon, delta: Delta = 0.0, as_json: AsJson = False) -> None:
    """Give a dataset a new, larger budget. The old one and every spend stay in the books."""
    from onedraw.ledger import Ledger

    ledger = Ledger.open(book)
    ledger.top_up(dataset, budget(epsilon, delta))
    _say(as_json, {"ledger": shown_place(book), "dataset": dataset, "budget": budget(epsilon, delta).to_dict(), "head": ledger.head()},
         f"{dataset} now has {budget(epsilon, delta)}.")  # fmt: skip


@group.command("close")
def close(book: Book, dataset: Dataset, as_json: AsJson = False) -> None:
    """Close a dataset: no further release may be charged to it."""
    from onedraw.ledger import Ledger

    ledger = Ledger.open(book)
    ledger.close_dataset(dataset)
    _say(
        as_json,
        {"ledger": shown_place(book), "dataset": dataset, "closed": True, "head": ledger.head()},
        f"{dataset} is closed.",
    )


@group.command("show")
def show(
    book: Book,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Only this dataset.")] = None,
    as_json: AsJson = False,
) -> None:
    """What was spent, on what, and what is left."""
    from onedraw.ledger import Ledger

    ledger = Ledger.open(book)
    names = [dataset] if dataset else list(ledger.datasets())
    summaries = {name: _summary(ledger, name) for name in names}
    events = {name: [_event(event, summaries[name]["delta"]) for event in ledger.events(name)] for name in names}
    if as_json:
        show_json({"ledger": shown_place(book), "head": ledger.head(),
                   "datasets": {name: summaries[name] | {"events": events[name]} for name in names}})  # fmt: skip
        return
    show_table("Budgets", ["dataset", "ε spent", "ε left", "ε budget", "δ", "releases"], [
        [name, number(s["spent_epsilon"]), number(s["remaining_epsilon"]), number(s["budget_epsilon"]), number(s["delta"]),
         str(s["releases"])]
        for name, s in summaries.items()
    ])  # fmt: skip
    for name in names:
        show_table(f"\n{name}", ["when", "event", "what"], [[e["when"], e["kind"], e["what"]] for e in events[name]])


@group.command("verify")
def verify(
    book: Book,
    head: Annotated[
        list[str] | None,
        typer.Option("--head", help="A head written down before: a history without it was rolled back. Repeatable."),
    ] = None,
    releases: Annotated[
        list[Path] | None,
        typer.Option("--release", help="A release charged to these books: they must hold it. Repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the whole chain; a changed, missing or inserted event is an error.

    An older copy of the books is a whole chain too: only a head or a release from outside shows that it was put back.
    """
    from onedraw.ledger import Ledger

    ledger, certificates = Ledger.open(book), _certificates(releases or [])
    result = ledger.verify(head=[*(head or []), *(entry.head for _, entry, _ in certificates)])
    for path, entry, digest in certificates:
        _check_held(ledger, path, entry, digest)
    verdict = (
        "the chain verifies and every budget is kept"
        if result.ok
        else "the chain verifies, but: " + "; ".join(result.findings)
    )
    outside = len(head or []) + len(certificates)
    verdict += f"; {outside} head(s) from outside stand in it" if outside else ""
    _say(as_json, {"ledger": shown_place(book), "ok": result.ok, "events": result.events, "head": result.head,
                   "findings": list(result.findings), "releases": [str(path) for path, _, _ in certificates]},
         f"{shown_place(book)}: {result.events} events, {verdict}. Head {result.head}.")  # fmt: skip
    if not result.ok:
        raise typer.Exit(3)


def _certificates(releases: list[Path]) -> list[tuple[Path, Any, str]]:
    """Each release file with its entry in the books and its digest."""
    from onedraw.errors import WrongCall
    from onedraw.release.verification import read_certificate

    found = [(path, read_certificate(path)) for path in releases]
    for path, certificate in found:
        if certificate.ledger is None:
            raise WrongCall(f"{path} was not charged to any ledger, so it cannot show whether these books are whole.")
    return [(path, certificate.ledger, certificate.digest) for path, certificate in found]


def _check_held(ledger: Any, path: Path, entry: Any, digest: str) -> None:
    from onedraw.errors import LedgerError

    held = ledger.certificate_digest(entry.entry)
    if held != digest:
        what = "its spend, but not yet the certificate" if held is None else "another certificate in its place"
        raise LedgerError(
            f"The books hold {what}: {path} is not the release that was settled under entry {entry.entry}. Events were "
            "cut off after the spend, or the file was changed. Compare with a backup before anything more is released."
        )


def _summary(ledger: Any, name: str) -> dict[str, Any]:
    left = ledger.remaining(name)
    return {
        "budget": left.budget.to_dict(),
        "budget_epsilon": left.budget.epsilon(left.delta),
        "delta": left.delta,
        "spent_epsilon": left.spent_epsilon,
        "remaining_epsilon": left.epsilon,
        "releases": sum(event.kind == "reserved" for event in ledger.events(name)),
    }


def _event(event: Any, delta: float) -> dict[str, Any]:
    payload = event.payload
    return {
        "sequence": event.sequence, "when": payload.get("time", ""), "kind": event.kind, "entry": event.entry,
        "what": _describe(event.kind, payload, delta), "payload": payload,
    }  # fmt: skip


def _describe(kind: str, payload: dict[str, Any], delta: float) -> str:
    from onedraw.privacy import promise_from_dict

    match kind:
        case "dataset-opened" | "top-up":
            return f"budget {promise_from_dict(payload['budget'])}"
        case "reserved":
            marks = [payload["label"], f"part {payload['part']}" if payload["part"] else "",
                     "SEEDED, not private" if payload["seeded"] else ""]  # fmt: skip
            alone = (
                f"by itself ε = {number(promise_from_dict(payload['promise']).epsilon(delta))} at δ = {number(delta)}"
            )
            return "; ".join([*filter(None, marks), alone])
        case "settled":
            return f"certificate {payload['certificate'][:16]}…"
        case "parts-declared":
            return f"{payload['partition']}: {len(payload['sizes'])} parts"
        case _:
            return ""


def _say(as_json: bool, document: dict[str, Any], sentence: str) -> None:
    if as_json:
        show_json(document)
    else:
        show_lines(sentence)
