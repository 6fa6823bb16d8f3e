"""What the events add up to: one account per dataset, read off the chain; what fits is for `privacy.filters` to say.

An account keeps promises, never sums of ε. Whether something still fits is one question, asked of the whole
history: does one proven filter keep everything reserved so far, and the new promise? A reservation counts from
the moment it is written, settled or not.

**Order.** An analyst may look at a draw before deciding what to spend next. Totals read off the best Rényi order or
off a privacy-loss distribution (`privacy.compose`) do not allow for that; filters do. They are what is enforced.
`compose` is asked in two places only: for a *declared* list, whose promises stand in the ledger before the first of
its draws, and for a history that is one list and nothing else (a single release, or one declaration). The latter
needs no filter: it was chosen before any draw, so whether a filter keeps it is settled before any draw too; if none
does, nothing is accepted after it, and the whole interaction is that list. Attempts to draw it again after a crash belong to it: they
show their work alone, and their γ₂ are added to its γ (samplers/padding.md).

**Parts.** Let a public key assign every record position to one part, whatever the record says. Neighbours
differ in the value of one record, hence inside one part p; what was released from another part alone sees the
same records on both sides and, given the outputs before it, has the same law. For this pair only the releases
from the whole dataset and from p count, so the dataset's total is the *maximum over p* of (whole, p) together:
parallel composition (McSherry 2009, there for add/remove-one). The proof needs

* membership that does not depend on the values: with parts cut by a private column, replacing a record can
  take it out of one part and into another, two parts change, and the sum of both counts: refused;
* one record per person: a person with records in two parts changes both: refused for units above 1;
* one partition per dataset: parts of two partitions overlap, so neither maximum alone is a bound. A second
  declaration is refused; what is released from parts of another cut is charged to the whole dataset.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import chain
from types import MappingProxyType
from typing import Any

from onedraw.errors import OnedrawError
from onedraw.privacy import Composed, Promise, PureDP, Unit, compose, numbers
from onedraw.privacy.filters import NOTHING, Charge, Filter, Spend, Sums, add, chosen_order, filters_of
from onedraw.privacy.numbers import fraction_down, sum_up

from .events import EARLIER_FIELDS, FIELDS, START, Event, Kind, Position, broken, canonical, check_format
from .history import WORK_ALONE, History
from .layers import Layers


@dataclass(frozen=True)
class Declared:
    """A list of promises that stood in the ledger before the first of its draws; ``open`` are still to be drawn."""

    part: str | None
    open: tuple[Spend, ...]


@dataclass(frozen=True)
class Total:
    """What counts against a budget for one part: the releases from the whole dataset, and those from the part."""

    account: Account
    histories: tuple[History, ...]
    count: int
    """Releases and lists."""

    @cached_property
    def listed(self) -> Promise:
        """What a fixed list promises, one alone its own; not a total for promises chosen in view of draws."""
        spends = list(chain(*self.histories))
        if len(spends) == 1 and not spends[0].gamma:
            return spends[0].promise
        return compose(*(spend.promise for spend in spends), gammas=[spend.gamma for spend in spends])

    def charge(self, by: Filter) -> Charge:
        total = NOTHING
        for history in self.histories:
            total = add(total, history.total(by))
        return total

    @cached_property
    def kept_by(self) -> Filter | str:
        """What is proven to keep the budget: a filter or, in words, that the whole history is one list; empty where nothing is."""
        filters = filters_of(self.account.budget, self.account.order)
        keeper = next((one for one in filters if one.keeps(self.charge(one))), None)
        if keeper is not None or not self.histories:
            return keeper or NO_FILTER
        listed = self.count == 1 and self.composes_within_budget()
        return "pre-declared: one list, fixed before its first draw" if listed else ""

    def composes_within_budget(self) -> bool:
        """Whether the list as it stands keeps the budget: enough only if it was fixed before the first draw."""
        # compose refuses a Σγ of 1 or more, where nothing is promised at all.
        distances = (spend.distance for spend in chain(*self.histories))
        return math.fsum(distances) < 1.0 and self.listed.implies(self.account.budget)

    def epsilon(self) -> float:
        """The smallest ε that a proven filter gives, at the account's δ; a single list has its own, which no filter undercuts."""
        delta = self.account.budget.quoted_delta
        if self.count == 1 and self.composes_within_budget():
            return self.listed.epsilon(delta)
        filters = filters_of(self.account.budget, self.account.order)
        found = [one.epsilon(self.charge(one), delta) for one in filters]
        return min(found, default=math.inf) if self.histories else 0.0


ROOM: dict[str, Any] = {
    "start": 64.0, "least": 2.0**-42, "most": 2.0**10, "precision": 1e-9, "factor": 16.0, "middle": numbers.geometric,
}  # fmt: skip
"""Where room is looked for, and how closely: a quarter of 10⁻¹² is little beside any budget."""

NO_FILTER = "no proven filter for this kind of budget"
ONLY_IF_FIXED = "not adaptive: kept only if every promise was fixed before the first draw"


NONE: partial[MappingProxyType[str, Any]] = partial(MappingProxyType, {})


@dataclass(frozen=True)
class Account:
    """One dataset's page: its budget, who is protected, and everything reserved against it.

    ``order`` is the Rényi order of the (ε, δ) budget's filter, fixed when the budget was set.
    """

    dataset: str
    budget: Promise
    unit: Unit
    note: str = ""
    closed: bool = False
    order: float | None = None
    partition: str | None = None
    sizes: Mapping[str, int] = field(default_factory=NONE)
    reservations: int = 0
    settlements: int = 0
    whole: History | None = field(default=None, repr=False)
    parts: Mapping[str, History] = field(default_factory=NONE, repr=False)
    declared: Mapping[str, Declared] = field(default_factory=NONE, repr=False)

    def charged(self, promise: Promise, *, gamma: float, part: str | None, delta: float | None = None) -> Account:
        """The account after one more reservation: one that was declared is paid for already."""
        spend, count = Spend(promise, gamma), self.reservations + 1
        for entry, one in self.declared.items():  # the oldest declaration in which it is still to be drawn
            place = next((at for at, promised in enumerate(one.open) if pays_for(promised, spend)), None)
            if one.part == part and place is not None:
                rest = replace(one, open=one.open[:place] + one.open[place + 1 :])
                return replace(self, reservations=count, declared=MappingProxyType({**self.declared, entry: rest}))
        return replace(self, reservations=count, **self._longer(replace(spend, delta=delta), part))

    def attempted(self, timing: float, *, part: str | None) -> Account:
        """The account after another attempt at a reservation."""
        return replace(self, **self._longer(Spend(WORK_ALONE, timing), part))

    def _longer(self, spend: Spend, part: str | None) -> dict[str, Any]:
        """The history that grows by this spend, as fields."""
        if part is None:
            return {"whole": History(spend, self.whole)}
        return {"parts": MappingProxyType({**self.parts, part: History(spend, self.parts.get(part))})}

    def declaring(self, entry: str, items: tuple[Spend, ...], *, delta: float | None, part: str | None) -> Account:
        """The account after a declaration: the whole list is spent at once, as one promise."""
        listed = MappingProxyType({**self.declared, entry: Declared(part, items)})
        return replace(self, declared=listed, **self._longer(as_one(items, delta), part))

    def totals(self, part: str | None = None) -> list[Total]:
        """What counts against the budget: for one part, or for each part that has spent."""
        scopes: list[History | None] = [self.parts.get(part)] if part is not None else [*self.parts.values()] or [None]
        found = [tuple(one for one in (self.whole, scope) if one is not None) for scope in scopes]
        return [Total(self, histories, sum(one.count for one in histories)) for histories in found]

    def total(self, part: str | None = None) -> Total:
        """The total for one part or, where there are several, for the one with the largest ε."""
        totals = self.totals(part)
        return totals[0] if len(totals) == 1 else max(totals, key=Total.epsilon)

    def spent(self, part: str | None = None) -> Composed:
        """Everything reserved, composed as a list; with parts, for the one with the largest ε."""
        return compose(self.total(part).listed)

    def within_budget(self, part: str | None = None) -> bool:
        """Whether a proven filter, or a single list, keeps the budget in every part."""
        return all(total.kept_by for total in self.totals(part))

    def has_room_for(
        self, promise: Promise, *, gamma: float = 0.0, part: str | None = None, delta: float | None = None
    ) -> bool:
        """Whether everything reserved and this promise together are proven to imply the budget."""
        return self.charged(promise, gamma=gamma, part=part, delta=delta).within_budget(part)

    def room(self, part: str | None = None) -> float:
        """The ε of a PureDP release that is sure to be accepted, rounded down; 0 when nothing is.

        Asked of each filter: a part must have room in every total, by whichever filter keeps it.
        """
        best = 0.0
        for one in filters_of(self.budget, self.order):
            charges = [total.charge(one) for total in self.totals(part)]
            if not all(map(one.keeps, charges)):
                continue  # nor does it keep any more

            def fits(epsilon: float, one: Filter = one, charges: list[Charge] = charges) -> bool:
                return all(one.keeps(add(total, one.charge(Spend(PureDP(epsilon))))) for total in charges)

            if isinstance(one, Sums):
                best = max(best, min(fraction_down(Fraction(one.limit - total[0])) for total in charges))
            elif not best or fits(best):
                best = max(best, numbers.largest(fits, **ROOM) or 0.0)
        return best if best > 0 and self.has_room_for(PureDP(best), part=part) else 0.0


def pays_for(declared: Spend, spend: Spend) -> bool:
    """Whether a declared promise is this one, or the decimal that this one was calibrated to."""
    if declared == spend:
        return True
    one, other = declared.promise, spend.promise
    if not (isinstance(one, PureDP) and isinstance(other, PureDP)) or declared.gamma != spend.gamma:
        return False
    return other.stated_epsilon == numbers.at_most_stated(one.stated_epsilon)


def as_one(items: tuple[Spend, ...], delta: float | None) -> Spend:
    """A declared list as one promise, read at ``delta``."""
    return Spend(compose(*(item.promise for item in items), gammas=(item.distance for item in items)), delta=delta)


@dataclass(frozen=True, slots=True)
class Entry:
    """A reservation as the ledger knows it: where it stands, and its certificate's digest once settled."""

    dataset: str
    part: str | None
    hash: str
    certificate: str | None = None
    timing: float = 0.0
    """γ₂ of a padded draw."""
    begun: bool | None = False
    """Whether a padded draw, which the reservation has paid, was begun under it; None in formats that did not note it."""


@dataclass(eq=False)
class Accounts:
    """Every account after some prefix of the chain. Only `absorb` changes it, so a branch is a snapshot.

    ``marked``: the chain says that a mark is kept beside the ledger (mark.py).
    """

    position: Position = START
    by_name: Layers[Account] = field(default_factory=Layers)
    entries: Layers[Entry] = field(default_factory=Layers)
    marked: bool = False

    def after(self, events: Iterable[Event]) -> Accounts:
        """The accounts some events later; these stay as they are."""
        later = Accounts(self.position, self.by_name.branch(), self.entries.branch(), self.marked)
        for event in events:
            later.absorb(event)
        return later

    def absorb(self, event: Event) -> None:
        """Take in the next event, refusing one that cannot follow what stands before it."""
        try:
            content = _content(event)
            if event.kind == Kind.SETTLED:
                certificate, entry = content["certificate"], self.entries.get(event.entry)
                if entry is None or entry.dataset != event.dataset:
                    raise _Impossible("it settles what was never reserved")
                _require(entry.certificate is None, "it settles an entry a second time")
                self.entries[event.entry] = replace(entry, certificate=certificate)
                account = self.by_name[event.dataset]
                self.by_name[event.dataset] = replace(account, settlements=account.settlements + 1)
            elif event.is_about_ledger:
                _require(not event.dataset, "it is about the ledger but names a dataset")
                self.marked = self.marked or event.begins_mark
            else:
                self.by_name[event.dataset] = self._changed(event, content)
        except _Impossible as error:
            raise broken(event.sequence, str(error)) from None
        except (OnedrawError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise broken(event.sequence, f"its payload cannot be read as {event.kind!r} ({error})") from error
        self.position = Position(event.sequence, event.hash)

    def _changed(self, event: Event, content: dict[str, Any]) -> Account:
        """The event's account as it is afterwards."""
        account = self.by_name.get(event.dataset)
        if event.kind == Kind.DATASET_OPENED:
            _require(account is None, f"the dataset {event.dataset!r} is opened a second time")
            unit, note = Unit.from_dict(content["unit"]), content["note"]
            _require(isinstance(note, str), "a text was expected in its payload")
            return Account(event.dataset, unit=unit, note=note, **_budget(content))
        if account is None:
            raise _Impossible(f"the dataset {event.dataset!r} was never opened")
        paid = event.kind == Kind.ATTEMPTED and content["timing"] == 0.0  # by a reservation from before it was closed
        _require(paid or not account.closed, f"the dataset {event.dataset!r} was closed before")
        part = content.get("part")
        _require(part is None or part in account.sizes, f"the part {part!r} was never declared")
        match event.kind:
            case Kind.TOP_UP:
                return replace(account, **_budget(content))
            case Kind.CLOSED:
                return replace(account, closed=True)
            case Kind.PARTS_DECLARED:
                sizes = content["sizes"]
                _require(account.partition is None, f"the dataset {event.dataset!r} had its parts declared before")
                whole = sizes and all(type(size) is int and size >= 1 for size in sizes.values())
                _require(whole, "the sizes of parts must be whole numbers of at least 1")
                return replace(account, partition=content["partition"], sizes=MappingProxyType(dict(sizes)))
            case Kind.DECLARED:
                delta, items = content["delta"], content["items"]
                known = delta is None or (type(delta) is float and 0.0 <= delta < 1.0)
                _require(known, "the δ of a declared list must be null or a number in [0, 1)")
                listed = items and all(set(item) == {"promise", "gamma"} for item in items)
                _require(listed, "a declared list must hold promises, each with its γ")
                return account.declaring(event.entry, tuple(map(_spend, items)), delta=delta, part=part)
            case Kind.ATTEMPTED:
                of = self.entries.get(content["of"])
                if of is None or of.dataset != event.dataset or of.certificate is not None:
                    raise _Impossible("it is an attempt at what was never reserved, or has left")
                timing = _share(content["timing"])
                _require(timing or of.begun is not True, "it begins a draw again and pays nothing")
                self.entries[content["of"]] = replace(of, begun=True)
                return account.attempted(timing, part=of.part) if timing else account
        spend = _spend(content)
        _require(type(content["seeded"]) is bool, "the seeded mark must be true or false")
        _require(event.entry not in self.entries, "its entry was reserved before")
        timing, begun = content.get("timing") or 0.0, None if "plan" in content else False
        self.entries[event.entry] = Entry(event.dataset, part, event.hash, timing=timing, begun=begun)
        stated = content.get("delta")  # not before format 4
        _require(stated is None or (type(stated) is float and 0.0 <= stated < 1.0), "the δ must be null or in [0, 1)")
        return account.charged(spend.promise, gamma=spend.gamma, part=part, delta=stated)


TEXTS = frozenset({"certificate", "fingerprint", "of", "partition"})  # of what an event says
REMARKS = frozenset({"request", "by", "note", "purpose"})  # texts, or null


class _Impossible(Exception):
    """An event that cannot follow the events before it."""


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise _Impossible(otherwise)


def _content(event: Event) -> dict[str, Any]:
    content = event.payload
    _require(event.kind in FIELDS, f"its kind {event.kind!r} is unknown")
    first = event.kind == Kind.BOOK_OPENED
    _require(first == (event.sequence == 1), "a ledger is opened by its first event and only by it")
    if first:
        check_format(content["format"])  # before its fields: a newer format may have others
    known = frozenset(content) in (FIELDS[event.kind], *EARLIER_FIELDS.get(event.kind, ()))
    _require(known and canonical(content) == event.text, f"its payload does not have the form of {event.kind!r}")
    texts = [content[name] for name in TEXTS & content.keys()]
    texts += [content[name] for name in REMARKS & content.keys() if content[name] is not None]
    _require(all(isinstance(text, str) for text in texts), "a text was expected in its payload")
    return content


def _budget(content: dict[str, Any]) -> dict[str, Any]:
    """The budget and the Rényi order that was fixed with it; format 1 fixed none, so the rule of today is applied."""
    budget = _promise(canonical(content["budget"]))
    order = content["order"] if "order" in content else chosen_order(budget)
    known = order is None or (type(order) is float and 1.0 < order < math.inf)
    _require(known, "the Rényi order of a budget must be null or a number above 1")
    return {"budget": budget, "order": order}


def _spend(content: dict[str, Any]) -> Spend:
    stated = content.get("timing")  # of a reservation alone, and not before format 3
    timing = None if stated is None else _share(stated)
    return Spend(_promise(canonical(content["promise"])), distance(_share(content["gamma"]), timing))


def distance(gamma: float, timing: float | None) -> float:
    """How far a release may be from what it promises: its draw, and its work where that is padded."""
    return sum_up([gamma, timing]) if timing else gamma


def _share(value: Any) -> float:
    _require(type(value) is float and 0.0 <= value < 1.0, "γ must be a number in [0, 1)")
    return float(value)


@lru_cache(maxsize=4096)
def _promise(text: str) -> Promise:
    """A promise as the ledger holds it; equal ones are read once."""
    return Promise.from_dict(json.loads(text))
