"""How much privacy each dataset may spend, and what was spent on what.

`Ledger` is append-only. A release *reserves* its promise before any record is read and is *settled* with its
certificate's digest afterwards; a reservation is a spend for ever, so a crash can waste budget but never hide
a spend (docs/design.md, joint 3). What fits is decided under the writer's lock, on the whole history, by the
proven filters of `onedraw.privacy.filters`: what is spent next may be chosen in view of the draws before.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, final

from onedraw.errors import CannotWrite, LedgerError
from onedraw.privacy import Composed, Promise, Unit
from onedraw.privacy.filters import Filter, Spend, chosen_order

from . import checks
from .accounts import ONLY_IF_FIXED, Account, Accounts, as_one, distance
from .answers import Remaining, Verification
from .database import BEFORE_ALL, Storage, Writer
from .events import FORMAT, START, Event, Kind, Position, Reservation, Row, broken, check_format, new_event, read_chain
from .history import WORK_ALONE
from .relocation import Restored, move_ledger, restore_ledger
from .storage import storage_at


@final
class Ledger:
    """An open ledger. Open one with `Ledger.open`; one object may serve many threads, forked children and pickled
    copies (what a forked child may draw is another matter: see `onedraw.samplers.randomness`).

    Copying returns the same ledger: a clone with a life of its own would spend unrecorded. Pickling keeps
    only the place (for PostgreSQL with the password in its URL, if it has one) and connects anew.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.place = storage.name
        """Where the ledger is, as messages say it: never with a password."""
        # The history as far as this process has read it. Replaced, never changed, so threads may share it.
        self._accounts = Accounts()

    @classmethod
    def open(cls, place: str | os.PathLike[str], create: bool = False) -> Ledger:
        """Open the ledger in a file or at a ``postgresql://`` URL; ``create=True`` begins a new one.

        | situation | what happens |
        | --- | --- |
        | nothing there | `LedgerError`, unless ``create`` |
        | something else there (any other file, another SQLite database) | `LedgerError`, it is not touched |
        | a ledger of a newer format | `LedgerError` |
        | a new ledger in a place that cannot be written | `CannotWrite` |
        | a file with several names, or mounted by itself; a copy; a history that is not the mark's | `LedgerError` (mark.py) |
        | a SQLite ledger that was begun before format 4 | gets its mark, where it can be written |
        | an old ledger in a place that cannot be written | opened for reading; every write is `CannotWrite` |
        """
        storage = storage_at(place)
        if not storage.check(create=create):
            content = {"format": FORMAT}
            storage.create(new_event(START, Kind.BOOK_OPENED, entry=uuid.uuid4().hex, dataset="", content=content))
        first = next(read_chain(storage.rows(1, 1)), None)
        if first is None or first.kind != Kind.BOOK_OPENED:
            raise broken(1, "it is missing" if first is None else "a ledger is opened by its first event")
        check_format(first.payload.get("format"))
        ledger = cls(storage)
        if storage.lacks_mark():
            with suppress(CannotWrite), ledger._turn():
                pass  # a turn begins the mark
        return ledger

    @staticmethod
    def move(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> Position:
        """Move a SQLite ledger with its journal and its mark; return where its history ends.

        **Guarantee.** At every moment, also after a crash, at most one of the two files can be spent from. If a call
        was interrupted, the same call finishes it.
        """
        return move_ledger(old, new)

    @staticmethod
    def restore(
        place: str | os.PathLike[str], *, backup: str | os.PathLike[str] | None = None, head: str | Iterable[str] = (),
        accept_lost_spends: bool = False,
    ) -> Restored:  # fmt: skip
        """Accept the SQLite file at ``place`` as the ledger although its mark does not, or put ``backup`` there first.

        **Guarantee.** Without ``accept_lost_spends`` the file is accepted only if it holds every ``head`` (one or
        several, as certificates state them) and the event that the mark has seen. The chain says that it was restored.
        """
        heads = [head] if isinstance(head, str) else head
        return restore_ledger(place, backup=backup, heads=heads, accept_lost_spends=accept_lost_spends)

    # ── spending ──

    def init(self, dataset: str, budget: Promise, *, unit: Unit | None = None, note: str = "") -> Event:
        """Open an account. The budget belongs to the *name*: subsets and folds are charged to the same one.

        With an (ε, δ) budget the Rényi order of its filter is fixed here, once: see `account(dataset).order`.
        """
        unit = Unit() if unit is None else unit
        content = _budget(budget) | {"unit": unit.to_dict(), "note": checks.line("note", note)}
        with self._turn() as turn:
            name = checks.name_of("dataset", dataset)
            if name in turn.accounts.by_name:
                raise LedgerError(
                    f"The dataset {name!r} has a budget in this ledger already ({turn.accounts.by_name[name].budget}). A second "
                    "one would forget what was spent. Raise it (onedraw ledger top-up), or give the new dataset its own name."
                )
            name = checks.new_name("dataset", name, beside=turn.accounts.by_name)
            return turn.append(Kind.DATASET_OPENED, name, content)

    def top_up(self, dataset: str, budget: Promise, *, by: str | None = None, note: str | None = None) -> Event:
        """Replace the budget by one that is no stronger: everything accepted before stays within it.

        What is proven afterwards is the new budget, provided that it was not chosen in view of the draws. ``by`` and ``note`` say
        who decided so, and why.
        """
        said = checks.remarks(by=by, note=note)
        with self._turn() as turn:
            account = checks.open_account(turn.accounts, dataset)
            content = _budget(budget) | said
            if not account.budget.implies(budget):
                raise LedgerError(
                    f"The budget of {account.dataset!r}, {account.budget}, is not proven to imply {budget}, and a budget can "
                    "only grow. Give a larger one of the same kind, or close the dataset to stop spending."
                )
            return turn.append(Kind.TOP_UP, account.dataset, content)

    def close_dataset(self, dataset: str) -> Event:
        """Nothing may be reserved from this dataset any more; what is under way may still be settled."""
        with self._turn() as turn:
            return turn.append(Kind.CLOSED, checks.open_account(turn.accounts, dataset).dataset, {})

    def declare_parts(
        self, dataset: str, partition: str, sizes: Mapping[str, int], *, public_membership: bool = True
    ) -> Event:
        """Say that a public key cuts the dataset into parts of public sizes; each then spends for itself.

        **Guarantee.** The total is the maximum over the parts of compose(whole, part): see `accounts` for the
        proof and for why private membership, several records per person and a second partition are refused.
        """
        content = {"partition": checks.new_name("partition", partition), "sizes": checks.checked_sizes(sizes)}
        if public_membership is not True:
            raise LedgerError(
                f"The partition {partition!r} is cut by something that is not public: replacing a record could move it from "
                "one part to another, and their spends add up. Charge these releases to the whole dataset."
            )
        with self._turn() as turn:
            account = checks.open_account(turn.accounts, dataset)
            checks.check_may_be_cut(account, partition)
            return turn.append(Kind.PARTS_DECLARED, account.dataset, content)

    def reserve(
        self, dataset: str, promise: Promise, *, gamma: float = 0.0, timing: float | None = None,
        delta: float | None = None, part: str | None = None, seeded: bool = False, label: str = "", fingerprint: str = "",
        entry: str | None = None, request: str | None = None, by: str | None = None, note: str | None = None,
        purpose: str | None = None,
    ) -> Reservation:  # fmt: skip
        """Spend: write the promise into the ledger before any record is read, or raise `BudgetSpent`.

        **Guarantee.** When this returns the event is on disk, and everything ever reserved from the dataset,
        settled or not, seeded or not, is proven to imply its budget, even though promises were chosen in view of
        the draws before them. Processes may reserve at the same time: one at a time decides. ``gamma`` is the total
        variation allowance of an inexact draw, an entry of its own (privacy/promises.md); ``timing`` is that of padded work (γ₂,
        samplers/padding.md), None where running time is not covered, and counts like it. ``delta`` is the δ at which a sum of
        (ε, δ) reads the promise; None: its pure ε, or the δ at which it is quoted. A promise that stands in a
        declaration of the same part (`declare`) and was not drawn yet is paid for by it. ``entry`` is a new random name
        that the caller noted down beforehand. ``fingerprint`` names the question: a release under this entry must have the same
        (`Planned.fingerprint`). ``request`` is the digest of an approved request; ``by``, ``note`` and ``purpose`` are remarks.
        """
        promise, gamma = checks.checked_promise(promise), checks.checked_share(gamma)
        timing = None if timing is None else checks.checked_share(timing)
        delta = (
            None if delta is None else checks.checked_share(delta, "A release is stated with a δ", "its certificate's")
        )
        together = distance(gamma, timing)
        content = {
            "promise": promise.to_dict(),
            "gamma": gamma,
            "timing": timing,
            "delta": delta,
            "seeded": bool(seeded),
            "label": checks.line("label", label),
            "fingerprint": checks.line("fingerprint", fingerprint),
            **checks.remarks(request=request, by=by, note=note, purpose=purpose),
        }
        with self._turn() as turn:
            account = checks.open_account(turn.accounts, dataset)
            part = checks.checked_part(account, part)
            if entry in turn.accounts.entries:
                raise LedgerError(f"The entry {entry!r} is reserved already. One reservation pays for one release.")
            if account.has_room_for(promise, gamma=together, part=part, delta=delta):
                event = turn.append(Kind.RESERVED, account.dataset, {**content, "part": part}, entry=entry)
                return Reservation(event.entry, account.dataset, event.hash, event.sequence)
        checks.refuse(account, Spend(promise, together, delta), part=part)

    def begin(self, reservation: Reservation) -> Event | None:
        """Note that a padded draw begins; the reservation has paid for the first, each further one spends its γ₂ again.

        An attempt that was interrupted let nothing out but its work, so its draw costs nothing (samplers/padding.md). Raises
        `BudgetSpent` if there is no room for another one. Returns None, and notes nothing, if the work is not padded.
        """
        with self._turn() as turn:
            entry = checks.open_entry(turn.accounts, reservation)
            if not entry.timing:
                return None
            timing, account = (
                0.0 if entry.begun is False else entry.timing,
                checks.account_of(turn.accounts, entry.dataset),
            )
            if timing:
                account = checks.open_account(turn.accounts, entry.dataset)
            if not timing or account.attempted(timing, part=entry.part).within_budget(entry.part):
                return turn.append(Kind.ATTEMPTED, entry.dataset, {"of": reservation.entry, "timing": timing})
        checks.refuse(account, Spend(WORK_ALONE, timing), part=entry.part)

    def declare(
        self, dataset: str, promises: Sequence[Promise], *, gammas: Sequence[float] = (), delta: float | None = None,
        part: str | None = None, label: str = "",
    ) -> Event:  # fmt: skip
        """Spend a list of promises at once, before the first of its draws; `reserve` then takes them from the list.

        **Guarantee.** What is fixed beforehand may be composed by the tighter accountant: the list counts as one
        promise, in sums of (ε, δ) as its ε at ``delta``, in sums of μ² and at the Rényi order as the sum of its
        items. As the first and only spend it may use the whole budget. Promises that are never drawn stay spent.
        """
        items = checks.checked_items(promises, gammas)
        if delta is not None:
            delta = checks.checked_share(delta, "A declared list is read at a δ", "a part of the budget's, or None")
        content = {
            "items": [{"promise": promise.to_dict(), "gamma": gamma} for promise, gamma in items],
            "delta": delta,
            "label": checks.line("label", label),
        }
        spends = tuple(Spend(promise, gamma) for promise, gamma in items)
        with self._turn() as turn:
            account = checks.open_account(turn.accounts, dataset)
            part = checks.checked_part(account, part)
            if account.declaring("", spends, delta=delta, part=part).within_budget(part):
                return turn.append(Kind.DECLARED, account.dataset, {**content, "part": part})
        checks.refuse(account, as_one(spends, delta), part=part)

    def settle(self, reservation: Reservation, certificate_digest: str) -> Event:
        """Close a reservation with the digest of the certificate that left under it; once only."""
        digest = checks.line("certificate_digest", certificate_digest)
        if not digest:
            raise LedgerError(
                "A release is settled with its certificate's digest, which is empty. Pass certificate.digest."
            )
        # The draw would be lost if a settlement failed that stands in the chain already.
        with self._turn(must_be_marked=False) as turn:
            entry = checks.open_entry(turn.accounts, reservation)
            return turn.append(Kind.SETTLED, entry.dataset, {"certificate": digest}, entry=reservation.entry)

    # ── reading ──

    def spent(self, dataset: str, *, part: str | None = None) -> Composed:
        """Everything reserved, composed as a list. With parts: for the one named, or for the one with the largest ε.

        Its ε is that of promises fixed before the first draw; what keeps the budget is in `remaining`.
        """
        account = self.account(dataset)
        return account.spent(checks.checked_part(account, part))

    def remaining(self, dataset: str, *, part: str | None = None) -> Remaining:
        """What is left of the budget, rounded down; 0 in a closed dataset."""
        account = self.account(dataset)
        part = checks.checked_part(account, part)
        total = account.total(part)
        delta = account.budget.quoted_delta
        kept, listed = total.kept_by, None
        words = f"adaptive: proven filter, {kept}" if isinstance(kept, Filter) else kept
        if not words:
            words = ONLY_IF_FIXED if total.composes_within_budget() else "not kept"
            listed = total.listed.epsilon(delta)
        left = 0.0 if account.closed else account.room(part)
        return Remaining(left, delta, total.epsilon(), account.budget, words, listed)

    def account(self, dataset: str) -> Account:
        """The dataset's page: budget, unit, parts, number of reservations, whether it is closed."""
        return checks.account_of(self._current(), dataset)

    def datasets(self) -> tuple[str, ...]:
        """The names that have a budget here, in the order they were opened."""
        return tuple(self._current().by_name)

    def events(self, dataset: str | None = None) -> tuple[Event, ...]:
        """The history, or one dataset's lines of it; the chain is checked on the way."""
        events = tuple(read_chain(self._storage.rows(BEFORE_ALL)))
        if dataset is None:
            return events
        name = self.account(dataset).dataset
        return tuple(event for event in events if event.dataset == name)

    def certificate_digest(self, entry: str) -> str | None:
        """The digest an entry was settled with; None if it is not settled, or not in this ledger."""
        found = self._current().entries.get(entry)
        return None if found is None else found.certificate

    def head(self) -> str:
        """The hash that stands for the whole history; written down elsewhere, it also betrays a shorter one."""
        return self._current().position.hash

    def verify(self, *, head: str | Iterable[str] | None = None) -> Verification:
        """Read everything again from the first event; `LedgerError` names the first event that does not hold.

        Checked: every hash and link, that each event can follow those before it (no settlement without its
        reservation, no spend from a dataset that was closed or never opened), and that every budget was kept, at
        each top-up and at the end; the last is reported in ``findings`` and ``remarks``. A
        history from which the newest events were cut off is still a chain: give ``head``, one or several, as
        certificates state them or as written down elsewhere, to find that out.
        """
        known = [head] if isinstance(head, str) else list(head or ())
        accounts, heads, findings, remarks = Accounts(), {START.hash}, [], []
        for event in read_chain(
            self._storage.stored_rows()
        ):  # where the chain breaks says more than that its mark differs
            account = accounts.by_name.get(event.dataset)
            if event.kind == Kind.TOP_UP and account is not None:
                findings += checks.overspent(account, f"before the top-up in event {event.sequence}")
            accounts.absorb(event)
            heads.add(event.hash)
        if accounts.position == START:
            raise broken(1, "it is missing")
        self._storage.rows(accounts.position.sequence)  # compares the ledger with its mark
        for missing in (one for one in known if one not in heads):
            raise LedgerError(
                f"The history holds together but does not contain the head {missing}: its newest events were cut off, or it "
                "is not the ledger that head was taken from. Compare with a backup before anything more is released."
            )
        for account in accounts.by_name.values():
            over = checks.overspent(account, "today")
            findings += over
            remarks += [] if over or account.within_budget() else [checks.only_if_fixed(account)]
        end = accounts.position
        mark = self._storage.agreement()
        return Verification(not findings, end.sequence, end.hash, tuple(findings), tuple(remarks), mark)

    # ── one ledger, however it is copied ──

    def __copy__(self, *memo: Any) -> Ledger:
        return self

    __deepcopy__ = __sklearn_clone__ = __copy__

    def __reduce__(self) -> tuple[type[Ledger], tuple[Storage]]:
        return Ledger, (self._storage,)

    def __repr__(self) -> str:
        return f"Ledger.open({self.place!r})"

    # ── keeping up ──

    def _current(self, rows_from: Callable[[int], list[Row]] | None = None) -> Accounts:
        """The accounts with what was appended since; a process reads and checks each event once."""
        known = self._accounts
        rows = (rows_from or self._storage.rows)(known.position.sequence)
        if known.position != START:
            if not rows or (rows[0][0], rows[0][-1]) != (known.position.sequence, known.position.hash):
                raise broken(known.position.sequence, "it is no longer the event this process has seen there")
            rows = rows[1:]
        if rows:
            self._accounts = known = known.after(read_chain(rows, known.position))
        return known

    @contextmanager
    def _turn(self, *, must_be_marked: bool = True) -> Iterator[_Turn]:
        """Hold the lock of the only writer. An event that the block appends is on disk when the block ends.

        The history is read before the lock is taken, so that others do not wait for it; under the lock only what is new.
        """
        with self._storage.writing(lambda writer: self._current(writer.rows), must_be_marked=must_be_marked) as writer:
            turn = _Turn(self._current(writer.rows), writer)
            if self._storage.keeps_mark and not turn.accounts.marked:
                turn = _Turn(turn.accounts.after([turn.append(Kind.MARKED, "", {})]), writer)
            yield turn


@dataclass(frozen=True)
class _Turn:
    """One writer's view: the accounts as they are, and the right to append to the chain."""

    accounts: Accounts
    writer: Writer

    def append(self, kind: Kind, dataset: str, content: Mapping[str, Any], *, entry: str | None = None) -> Event:
        entry = entry or uuid.uuid4().hex
        event = new_event(self.accounts.position, kind, entry=entry, dataset=dataset, content=content)
        self.accounts.after([event])  # what cannot be read back is never written
        self.writer.append(event)
        return event


def _budget(budget: Promise) -> dict[str, Any]:
    return {"budget": checks.checked_budget(budget).to_dict(), "order": chosen_order(budget)}
