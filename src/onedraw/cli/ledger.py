"""`onedraw ledger`: open a budget, see what is spent on what and what is left, check the chain."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import typer

from onedraw.plain_text import known, shown_place

from .options import AsJson, Delta, Epsilon
from .show import answer, number, show_json, show_lines, show_table

group = typer.Typer(
    help="The ledger: a budget for each dataset, every spend, and a chain that shows changes.", no_args_is_help=True
)

Place = Annotated[str, typer.Argument(metavar="LEDGER", help="A SQLite file, or a postgresql:// URL.")]
Dataset = Annotated[str, typer.Option("--dataset", help="The dataset's name: your choice, never derived from a file.")]


@group.command("init")
def init(
    place: Place,
    dataset: Dataset,
    epsilon: Epsilon,
    delta: Delta = 0.0,
    records: Annotated[int, typer.Option("--max-records", help="Records one person may have (as in the schema).")] = 1,
    note: Annotated[str, typer.Option("--note", help="A sentence for the record.")] = "",
    as_json: AsJson = False,
) -> None:
    """Open a budget for a dataset, creating the ledger file if there is none."""
    from onedraw.ledger import Ledger
    from onedraw.privacy import Unit, epsilon_delta

    ledger, budget = Ledger.open(place, create=True), epsilon_delta(epsilon, delta)
    ledger.init(dataset, budget, unit=Unit(records), note=note)
    order = ledger.account(dataset).order
    filters = "" if order is None else (
        " Releases are charged to it one after another, each chosen after seeing the last if you like; what would exceed it is "
        f"refused before a record is read. (Proven filters add them up, one at Rényi order {number(order)}, fixed now.)"
    )  # fmt: skip
    answer(as_json, {"ledger": shown_place(place), "dataset": dataset, "budget": budget.to_dict(), "order": order,
                   "head": ledger.head()},
         f"Opened {dataset} with {budget} in {shown_place(place)}.{filters}")  # fmt: skip


@group.command("declare")
def declare(
    place: Place,
    promises: Annotated[Path, typer.Argument(
        help="A JSON list of promises, as `onedraw plan --json` prints them; or of {promise, gamma, times}.",
    )],
    dataset: Dataset,
    delta: Annotated[float | None, typer.Option(
        "--delta", help="The δ at which the list is read as one (ε, δ) beside other spends.",
    )] = None,
    part: Annotated[str | None, typer.Option("--part", help="The part that the releases are from.")] = None,
    label: Annotated[str, typer.Option("--label", help="A sentence for the record.")] = "",
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Spend a list of releases before the first of them: what is fixed beforehand is composed more tightly."""
    from onedraw.ledger import Ledger

    listed = _promises(promises)
    ledger = Ledger.open(place)
    event = ledger.declare(dataset, [one for one, _ in listed], gammas=[gamma for _, gamma in listed], delta=delta,
                           part=part, label=label)  # fmt: skip
    left = ledger.remaining(dataset, part=part)
    answer(as_json, {"ledger": shown_place(place), "dataset": dataset, "entry": event.entry, "promises": len(listed),
                   "remaining_epsilon": left.epsilon, "kept_by": left.kept_by, "head": ledger.head()},
         f"{len(listed)} promises declared for {dataset} and spent; releases that make them are charged to this list. "
         f"Left for others: ε = {number(left.epsilon)} ({left.kept_by}).")  # fmt: skip


def _promises(path: Path) -> list[tuple[Any, float]]:
    """Each promise of the file with its γ, as often as it says."""
    from onedraw.errors import WrongCall
    from onedraw.privacy import Promise

    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        items = [item if "promise" in item else {"promise": item} for item in listed]
        found = [
            (Promise.from_dict(item["promise"]), float(item.get("gamma", 0.0)))
            for item in items
            for _ in range(int(item.get("times", 1)))
        ]
        unknown = sorted({name for item in items for name in item} - {"promise", "gamma", "times"})
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise WrongCall(
            f"{path} is not a list of promises ({type(error).__name__}). Write JSON such as "
            '[{"promise": {"kind": "PureDP", "epsilon": 0.1}, "times": 20}].'
        ) from error
    if unknown or not found:
        raise WrongCall(f"{path} holds {', '.join(unknown) or 'no promise'}; an item has promise, gamma and times.")
    return found


@group.command("top-up")
def top_up(
    place: Place,
    dataset: Dataset,
    epsilon: Epsilon,
    delta: Delta = 0.0,
    by: Annotated[str | None, typer.Option("--by", help="Who decides so, for the record.")] = None,
    note: Annotated[str | None, typer.Option("--note", help="Why, for the record.")] = None,
    as_json: AsJson = False,
) -> None:
    """Give a dataset a new, larger budget. The old one and every spend stay in the ledger."""
    from onedraw.ledger import Ledger
    from onedraw.privacy import epsilon_delta

    budget = epsilon_delta(epsilon, delta)
    event = Ledger.open(place).top_up(dataset, budget, by=by, note=note)
    # The head is this event's hash: reading the ledger once more could fail, although the event stands.
    answer(as_json, {"ledger": shown_place(place), "dataset": dataset, "budget": budget.to_dict(), "head": event.hash},
         f"{dataset} now has {budget}.")  # fmt: skip


@group.command("close")
def close(place: Place, dataset: Dataset, as_json: AsJson = False) -> None:
    """Close a dataset: no further release may be charged to it."""
    from onedraw.ledger import Ledger

    event = Ledger.open(place).close_dataset(dataset)
    answer(as_json, {"ledger": shown_place(place), "dataset": dataset, "closed": True, "head": event.hash},
         f"{dataset} is closed.")  # fmt: skip


@group.command("show")
def show(
    place: Place,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Only this dataset.")] = None,
    last: Annotated[int, typer.Option("--last", min=0, help="How many events per dataset; --json has all.")] = 50,
    as_json: AsJson = False,
) -> None:
    """What was spent, on what, and what is left."""
    from onedraw.ledger import Ledger

    ledger = Ledger.open(place)
    names = [dataset] if dataset else list(ledger.datasets())
    summaries = {name: _summary(ledger, name) for name in names}
    accounts = {name: ledger.account(name).dataset for name in names}
    history: dict[str, list[Any]] = {of: [] for of in accounts.values()}
    restored: list[Any] = []
    for event in ledger.events():  # read once
        history.get(event.dataset, restored if event.kind == "restored" else []).append(event)
    events = {name: history[of] for name, of in accounts.items()}
    if as_json:
        show_json({"ledger": shown_place(place), "head": ledger.head(), "datasets": {
            name: summaries[name] | {"events": [_event(event, summaries[name]["delta"]) for event in events[name]]}
            for name in names
        }, "restored": [_event(event, 0.0) for event in restored]})  # fmt: skip
        return
    show_table("Budgets", ["dataset", "ε spent", "ε left", "ε budget", "δ", "releases"], [
        [name, _figure(s["spent_epsilon"]), number(s["remaining_epsilon"]), number(s["budget_epsilon"]), number(s["delta"]),
         str(s["releases"])]
        for name, s in summaries.items()
    ])  # fmt: skip
    for event in restored:
        shown = _event(event, 0.0)
        show_lines(f"Restored {shown['when']}, event {shown['sequence']}: {shown['what']}.")
    for name in names:
        show_lines("", *_totals(name, summaries[name]))
        earlier = max(0, len(events[name]) - last)
        rows = [_event(event, summaries[name]["delta"]) for event in events[name][earlier:]]
        show_table(name, ["when", "event", "what"], [[e["when"], e["kind"], e["what"]] for e in rows])
        if earlier:
            show_lines(f"{earlier} earlier events are not shown; --last {len(events[name])} shows all.")
        show_lines(*_unfinished(events[name]))


TRIED_AGAIN = " but γ₂, for the work of another attempt"


def _unfinished(events: list[Any], most: int = 10) -> list[str]:
    """Charges under which nothing has left yet, and how each is finished; the newest of many."""
    settled = {event.entry for event in events if event.kind == "settled"}
    begun = {event.payload["of"] for event in events if event.kind == "attempted"}
    found = [event for event in events if event.kind == "reserved" and event.entry not in settled]
    lines = [
        f"Paid for and not finished, unless it is running now: {event.payload['label'] or 'a release'}. Give its command "
        f"again with --resume {event.entry}, which charges nothing more{TRIED_AGAIN if padded(event, begun) else ''}."
        for event in found[-most:]
    ]
    return [
        *lines,
        *([f"{len(found) - most} earlier ones are not finished either; --json has all."] if found[most:] else []),
    ]


def padded(event: Any, begun: Collection[str]) -> bool:
    """Return whether finishing a reservation draws padded work again, which is charged; before format 4 a first draw was not noted."""
    return bool(event.payload.get("timing")) and (event.entry in begun or "plan" in event.payload)


def _totals(name: str, summary: dict[str, Any]) -> list[str]:
    """Which of the two kinds of total keeps the budget; both where only the list's does."""
    order = "" if summary["order"] is None else f"; Rényi order {number(summary['order'])}, fixed with the budget"
    lines = [f"{name}: total {summary['kept_by']}{order}."]
    if summary["kept_by"].startswith("adaptive"):
        lines.append("  Adaptive: each release may be chosen after seeing the ones before.")
    if summary["listed_epsilon"] is not None:
        lines.append(
            f"  As a list fixed before the first draw ε = {number(summary['listed_epsilon'])}; by a proven filter ε = "
            f"{_figure(summary['spent_epsilon'])}. Nothing more can be spent."
        )
    if summary["declared_open"]:
        lines.append(f"  {summary['declared_open']} declared promises are still to be drawn.")
    return lines


@group.command("verify")
def verify(
    place: Place,
    head: Annotated[list[str] | None, typer.Option(
        "--head", help="A head written down before: a history without it was rolled back. Repeatable.",
    )] = None,
    releases: Annotated[list[Path] | None, typer.Option(
        "--release", help="A release charged to this ledger, which must hold it. Repeatable.",
    )] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Recompute the whole chain; a changed, missing or inserted event is an error.

    An older copy of the ledger is a whole chain too. The mark beside a SQLite ledger shows that it was put back; for
    PostgreSQL, a head or a release from outside does.
    """
    from onedraw.errors import LedgerError, WrongCall
    from onedraw.ledger import Ledger
    from onedraw.release.certificate import read_certificate

    ledger, heads = Ledger.open(place), list(head or [])
    certificates = [(path, read_certificate(path)) for path in releases or []]
    for path, certificate in certificates:
        if certificate.ledger is None:
            raise WrongCall(f"{path} was not charged to any ledger, so it cannot show whether this ledger is whole.")
        heads.append(certificate.ledger.head)
    result = ledger.verify(head=heads)
    for path, certificate in certificates:
        entry = certificate.ledger.entry if certificate.ledger else ""
        held = ledger.certificate_digest(entry)
        if held != certificate.digest:
            what = "its spend, but not yet the certificate" if held is None else "another certificate in its place"
            raise LedgerError(
                f"The ledger holds {what}: {path} is not the release that was settled under entry {entry}. Events were cut "
                "off after the spend, or the file was changed. Compare with a backup before anything more is released."
            )
    verdict = " and every budget is kept" if result.ok else f", but: {'; '.join(result.findings)}"
    remarks = [*result.remarks, *([f"{len(heads)} head(s) from outside stand in it"] if heads else [])]
    verdict = "; ".join([f"the chain verifies{verdict}", *remarks, *filter(None, [result.mark])])
    answer(as_json, {"ledger": shown_place(place), "ok": result.ok, "events": result.events, "head": result.head,
                   "findings": list(result.findings), "remarks": list(result.remarks), "mark": result.mark, "releases": [str(path) for path, _ in certificates]},
         f"{shown_place(place)}: {result.events} events, {verdict}. Head {result.head}.")  # fmt: skip
    if not result.ok:
        raise typer.Exit(3)


@group.command("move")
def move(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The SQLite file.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Where it is to be; must not exist.")],
    as_json: AsJson = False,
) -> None:
    """Move a SQLite ledger with its journal and its mark, also to another disk.

    If it was interrupted, give the same command again. OLD.mark stays and says where the ledger is.
    """
    from onedraw.ledger import Ledger

    end = Ledger.move(old, new)
    answer(as_json, {"ledger": new, "moved_from": old, "events": end.sequence, "head": end.hash},
         f"The ledger is at {new}: {end.sequence} events, head {end.hash}. Nothing is spent under {old} any longer.")  # fmt: skip


@group.command("restore")
def restore(
    place: Annotated[str, typer.Argument(metavar="LEDGER", help="The SQLite file to accept as the ledger.")],
    backup: Annotated[str | None, typer.Option("--backup", help="First copy this file to LEDGER, which must not exist.")] = None,
    head: Annotated[list[str] | None, typer.Option(
        "--head", help="A head of the latest certificate or written down; must be in it. Repeatable.",
    )] = None,
    accept_lost_spends: Annotated[bool, typer.Option(
        "--accept-lost-spends", help="Accept it although spends may be missing from it.",
    )] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Accept a copy or a restored backup as the ledger. Spends made after the copy may be missing from it.

    It is accepted if it holds every --head given and the event that the mark has seen, or with --accept-lost-spends.
    The ledger's history says that it was restored.
    """
    from onedraw.ledger import Ledger
    from onedraw.ledger.mark import count_of_events

    done = Ledger.restore(place, backup=backup, head=head or (), accept_lost_spends=accept_lost_spends)
    lost = ("No mark was found, so it is not known whether events are lost." if done.lost is None
            else f"At least {count_of_events(done.lost)} lost." if done.lost else "It holds every event that its mark has seen.")  # fmt: skip
    answer(as_json, {"ledger": place, "events": done.events, "head": done.head, "lost": done.lost, "changed": done.changed},
         f"{place} is the ledger: {done.events} events, head {done.head}. {lost}" if done.changed else
         f"{place} agrees with its mark: {done.events} events, head {done.head}. Nothing was changed.")  # fmt: skip


def _summary(ledger: Any, name: str) -> dict[str, Any]:
    left, account = ledger.remaining(name), ledger.account(name)
    return {
        "budget": left.budget.to_dict(), "budget_epsilon": left.budget.epsilon(left.delta), "delta": left.delta,
        "spent_epsilon": known(left.spent_epsilon), "remaining_epsilon": left.epsilon, "kept_by": left.kept_by,
        "order": account.order, "listed_epsilon": known(left.listed_epsilon),
        "declared_open": sum(len(one.open) for one in account.declared.values()), "releases": account.reservations,
    }  # fmt: skip


def _figure(value: float | None) -> str:
    return "∞" if value is None else number(value)


def _event(event: Any, delta: float) -> dict[str, Any]:
    payload = event.payload
    return {
        "sequence": event.sequence, "when": payload.get("time", ""), "kind": event.kind, "entry": event.entry,
        "what": _describe(event.kind, payload, delta), "payload": payload,
    }  # fmt: skip


def _describe(kind: str, payload: dict[str, Any], delta: float) -> str:
    from onedraw.privacy import Promise

    part = f"part {payload['part']}" if payload.get("part") else ""
    names = {"purpose": "for", "by": "by", "request": "request", "note": "note:"}
    said = [f"{words} {payload[name]}" for name, words in names.items() if payload.get(name)]
    match kind:
        case "dataset-opened" | "top-up":
            return "; ".join([f"budget {Promise.from_dict(payload['budget'])}", *said])
        case "reserved":
            seeded = "SEEDED, not private" if payload["seeded"] else ""
            alone = f"by itself ε = {number(_alone(json.dumps(payload['promise']), delta))} at δ = {number(delta)}"
            padded = "" if payload.get("timing") is None else f"with padded work (γ₂ = {number(payload['timing'])})"
            return "; ".join(filter(None, [payload["label"], part, seeded, alone, padded, *said]))
        case "attempted" if not payload["timing"]:
            return f"first draw of entry {payload['of']} begins, paid by its reservation"
        case "attempted":
            return f"another attempt at entry {payload['of']}; padded work, γ₂ = {number(payload['timing'])}"
        case "declared":
            read = f", read at δ = {number(payload['delta'])}" if payload["delta"] is not None else ""
            return "; ".join(filter(None, [payload["label"], part, f"{len(payload['items'])} promises{read}"]))
        case "settled":
            return f"certificate {payload['certificate'][:16]}…"
        case "parts-declared":
            return f"{payload['partition']}: {len(payload['sizes'])} parts"
        case "restored":
            mark = payload["mark"]
            return f"a copy was accepted; the mark had seen {'nothing' if mark is None else 'event ' + str(mark['sequence'])}"
        case _:
            return ""


@lru_cache(maxsize=4096)
def _alone(promise: str, delta: float) -> float:
    from onedraw.privacy import Promise

    return Promise.from_dict(json.loads(promise)).epsilon(delta)
