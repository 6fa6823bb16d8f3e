"""What the events add up to: one account per dataset, read off the chain; what fits is for `privacy.filters` to say.

An account keeps promises, never sums of ε. Whether something still fits is one question, asked of the whole
history: does one proven filter keep everything reserved so far, and the new promise? A reservation counts from
the moment it is written, settled or not.

**Order.** An analyst may look at a draw before deciding what to spend next. Totals read off the best Rényi order or
off a privacy-loss distribution (`privacy.compose`) do not allow for that; filters do. They are what is enforced.
`compose` is asked in two places only: for a *declared* list, whose promises stand in the books before the first of
its draws, and for a history that is one list and nothing else (a single release, or one declaration). The latter
needs no filter: it was chosen before any draw, so whether a filter keeps it is settled before any draw too; if none
does, nothing is accepted after it, and the whole interaction is that list.

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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from onedraw.errors import LedgerError, OnedrawError
from onedraw.privacy import Composed, Promise, PureDP, Unit, compose, search
from onedraw.privacy.filters import NOTHING, Charge, Filter, Spend, Sums, add, chosen_order, filters_of
from onedraw.privacy.rounding import fraction_down

from .events import EARLIER_FIELDS, FIELDS, FORMAT, START, Event, Kind, Position, broken, canonical


class History:
    """Spends, newest first: a new one shares all older ones, so a book of any length grows by one step per event."""

    __slots__ = ("_known", "count", "older", "spend")

    def __init__(self, spend: Spend, older: History | None) -> None:
        self.spend, self.older = spend, older
        self.count: int = 1 if older is None else older.count + 1
        self._known: dict[Filter, Charge] | None = None

    def __iter__(self) -> Iterator[Spend]:
        step: History | None = self
        while step is not None:
            yield step.spend
            step = step.older

    def total(self, by: Filter) -> Charge:
        """Every charge added up, from the newest step that has been asked before."""
        steps: list[History] = []
        step: History | None = self
        while step is not None and (step._known is None or by not in step._known):
            steps.append(step)
            step = step.older
        total = NOTHING if step is None or step._known is None else step._known[by]
        for later in reversed(steps):
            total = add(total, by.charge(later.spend))
        self._known = {**(self._known or {}), by: total}
        return total


@dataclass(frozen=True)
class Declared:
    """A list of promises that stood in the books before the first of its draws; ``open`` are still to be drawn."""

    part: str | None
    open: tuple[Spend, ...]

    def without(self, item: Spend) -> Declared:
        place = self.open.index(item)
        return replace(self, open=self.open[:place] + self.open[place + 1 :])


@dataclass(frozen=True)
class Total:
    """What counts against a budget for one part: the releases from the whole dataset, and those from the part."""

    account: Account
    histories: tuple[History, ...]

    @property
    def spends(self) -> Iterator[Spend]:
        return (spend for history in self.histories for spend in history)

    @property
    def count(self) -> int:
        return sum(history.count for history in self.histories)

    @cached_property
    def composed(self) -> Composed:
        """The accountant of fixed lists; not a total for promises chosen in view of draws."""
        spends = list(self.spends)
        return compose(*(spend.promise for spend in spends), gammas=(spend.gamma for spend in spends))

    def charge(self, by: Filter) -> Charge:
        total = NOTHING
        for history in self.histories:
            total = add(total, history.total(by))
        return total

    def keeper(self) -> Filter | None:
        """A proven filter that keeps the whole history."""
        return next((one for one in self.account.filters if one.keeps(self.charge(one))), None)

    def kept_as_one_list(self) -> bool:
        return self.count == 1 and self.composes_within_budget()

    def kept(self) -> bool:
        return not self.histories or self.keeper() is not None or self.kept_as_one_list()

    def composes_within_budget(self) -> bool:
        """Whether the list as it stands keeps the budget: enough only if it was fixed before the first draw."""
        # compose refuses a Σγ of 1 or more, where nothing is promised at all.
        return math.fsum(spend.distance for spend in self.spends) < 1.0 and self.composed.implies(self.account.budget)

    def epsilon(self) -> float:
        """The smallest ε that a proven filter gives, at the account's δ; a single list has its own."""
        delta = self.account.delta
        found = [one.epsilon(self.charge(one), delta) for one in self.account.filters]
        if self.kept_as_one_list():
            found.append(self.composed.epsilon(delta))
        return min(found, default=math.inf) if self.histories else 0.0

    def kept_by(self) -> str:
        """Which of the two kinds of total keeps the budget, in words."""
        keeper = self.keeper()
        if not self.histories or keeper is not None:
            return (
                f"adaptive: proven filter, {keeper or self.account.filters[0]}" if self.account.filters else NO_FILTER
            )
        if self.kept_as_one_list():
            return "pre-declared: one list, fixed before its first draw"
        return ONLY_IF_FIXED if self.composes_within_budget() else "not kept"


NO_FILTER = "no proven filter for this kind of budget"
ONLY_IF_FIXED = "not adaptive: kept only if every promise was fixed before the first draw"


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
    sizes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    reservations: int = 0
    settlements: int = 0
    whole: History | None = field(default=None, repr=False)
    parts: Mapping[str, History] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    declared: Mapping[str, Declared] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @property
    def delta(self) -> float:
        """The δ at which ε is quoted."""
        return self.budget.quoted_delta

    @property
    def filters(self) -> tuple[Filter, ...]:
        return _filters_of(self.budget, self.order)

    def charged(self, promise: Promise, *, gamma: float, part: str | None) -> Account:
        """The account after one more reservation: one that was declared is paid for already."""
        spend, count = Spend(promise, gamma), self.reservations + 1
        entry = self.declaration_with(spend, part) if self.declared else None
        if entry is None:
            return replace(self, reservations=count, **self._longer(spend, part))
        rest = {**self.declared, entry: self.declared[entry].without(spend)}
        return replace(self, reservations=count, declared=MappingProxyType(rest))

    def _longer(self, spend: Spend, part: str | None) -> dict[str, Any]:
        """The history that grows by this spend, as fields."""
        if part is None:
            return {"whole": History(spend, self.whole)}
        return {"parts": MappingProxyType({**self.parts, part: History(spend, self.parts.get(part))})}

    def declaring(self, entry: str, items: tuple[Spend, ...], *, delta: float | None, part: str | None) -> Account:
        """The account after a declaration: the whole list is spent at once, as one promise."""
        listed = MappingProxyType({**self.declared, entry: Declared(part, items)})
        return replace(self, declared=listed, **self._longer(as_one(items, delta), part))

    def declaration_with(self, spend: Spend, part: str | None) -> str | None:
        """The oldest declaration in which this promise is still to be drawn."""
        return next((entry for entry, one in self.declared.items() if one.part == part and spend in one.open), None)

    def totals(self, part: str | None = None) -> list[Total]:
        """What counts against the budget: for one part, or for each part that has spent."""
        scopes: list[History | None] = [self.parts.get(part)] if part is not None else [*self.parts.values()] or [None]
        return [Total(self, tuple(one for one in (self.whole, scope) if one is not None)) for scope in scopes]

    def total(self, part: str | None = None) -> Total:
        """The total for one part or, where there are several, for the one with the largest ε."""
        totals = self.totals(part)
        return totals[0] if len(totals) == 1 else max(totals, key=Total.epsilon)

    def spent(self, part: str | None = None) -> Composed:
        """Everything reserved, composed as a list; with parts, for the one with the largest ε."""
        return self.total(part).composed

    def within_budget(self, part: str | None = None) -> bool:
        """Whether a proven filter, or a single list, keeps the budget in every part."""
        return all(total.kept() for total in self.totals(part))

    def has_room_for(self, promise: Promise, *, gamma: float = 0.0, part: str | None = None) -> bool:
        """Whether everything reserved and this promise together are proven to imply the budget."""
        return self.charged(promise, gamma=gamma, part=part).within_budget(part)

    def room(self, part: str | None = None) -> float:
        """The ε of a PureDP release that is sure to be accepted, rounded down; 0 when nothing is.

        Asked of each filter: a part must have room in every total, by whichever filter keeps it.
        """
        best = 0.0
        for one in self.filters:
            totals = [total.charge(one) for total in self.totals(part)]
            if isinstance(one, Sums) and all(one.keeps(total) for total in totals):
                candidate = min(max(0.0, fraction_down(Fraction(one.capacity[0] - total[0]))) for total in totals)
            else:
                candidate = _largest(one, totals, above=best)
            best = max(best, candidate)
        return best if best > 0 and self.has_room_for(PureDP(best), part=part) else 0.0


def as_one(items: tuple[Spend, ...], delta: float | None) -> Spend:
    """A declared list as one promise, read at ``delta``."""
    return Spend(compose(*(item.promise for item in items), gammas=(item.distance for item in items)), delta=delta)


def _largest(by: Filter, totals: list[Charge], *, above: float) -> float:
    """The largest PureDP one filter accepts on top of every total, to nine digits; 0 if none above ``above``."""

    def fits(epsilon: float) -> bool:
        charge = by.charge(Spend(PureDP(epsilon)))
        return all(by.keeps(add(total, charge)) for total in totals)

    if above > 0 and not fits(above):
        return 0.0
    # One step in a hundred thousand million is little beside any budget.
    return (
        search.largest(
            fits, start=64.0, least=2.0**-42, most=2.0**10, precision=1e-9, factor=16.0, middle=search.geometric
        )
        or 0.0
    )


@lru_cache(maxsize=1024)
def _filters_of(budget: Promise, order: float | None) -> tuple[Filter, ...]:
    return filters_of(budget, order)


@dataclass(frozen=True, slots=True)
class Entry:
    """A reservation as the books know it: where it stands, and its certificate's digest once settled."""

    dataset: str
    sequence: int
    hash: str
    certificate: str | None = None


class Book:
    """The state after some prefix of the chain. Only `absorb` changes it, so a copy is a snapshot."""

    def __init__(self) -> None:
        self.position: Position = START
        self.accounts: dict[str, Account] = {}
        self.entries: dict[str, Entry] = {}

    def after(self, events: Iterable[Event]) -> Book:
        """The book some events later; this one stays as it is."""
        later = Book()
        later.position, later.accounts, later.entries = self.position, dict(self.accounts), dict(self.entries)
        for event in events:
            later.absorb(event)
        return later

    def absorb(self, event: Event) -> None:
        """Take in the next event, refusing one that cannot follow what stands before it."""
        try:
            content = _content(event)
            self._apply(event, content)
        except _Impossible as error:
            raise broken(event.sequence, str(error)) from None
        except (OnedrawError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise broken(event.sequence, f"its payload cannot be read as {event.kind!r} ({error})") from error
        self.position = Position(event.sequence, event.hash)

    def _apply(self, event: Event, content: dict[str, Any]) -> None:
        if (event.kind == Kind.BOOK_OPENED) != (event.sequence == 1):
            raise _Impossible("a ledger is opened by its first event and only by it")
        if event.kind == Kind.BOOK_OPENED:
            return
        if event.kind == Kind.DATASET_OPENED:
            if event.dataset in self.accounts:
                raise _Impossible(f"the dataset {event.dataset!r} is opened a second time")
            budget, unit = stored_promise(content["budget"]), Unit.from_dict(content["unit"])
            self.accounts[event.dataset] = Account(
                event.dataset, budget, unit, _string(content["note"]), order=_order(content, budget)
            )
        elif event.kind == Kind.SETTLED:
            self._settle(event, _string(content["certificate"]))
        else:
            self._change_account(event, content)

    def _change_account(self, event: Event, content: dict[str, Any]) -> None:
        account = self.accounts.get(event.dataset)
        if account is None:
            raise _Impossible(f"the dataset {event.dataset!r} was never opened")
        if account.closed:
            raise _Impossible(f"the dataset {event.dataset!r} was closed before")
        if event.kind == Kind.TOP_UP:
            budget = stored_promise(content["budget"])
            account = replace(account, budget=budget, order=_order(content, budget))
        elif event.kind == Kind.CLOSED:
            account = replace(account, closed=True)
        elif event.kind == Kind.PARTS_DECLARED:
            account = _with_parts(account, _string(content["partition"]), content["sizes"])
        elif event.kind == Kind.DECLARED:
            account = _with_declaration(account, event.entry, content)
        else:
            account = self._reserve(event, content, account)
        self.accounts[event.dataset] = account

    def _reserve(self, event: Event, content: dict[str, Any], account: Account) -> Account:
        part, gamma = _known_part(account, content["part"]), _gamma(content["gamma"])
        if type(content["seeded"]) is not bool:
            raise _Impossible("the seeded mark must be true or false")
        if event.entry in self.entries:
            raise _Impossible("its entry was reserved before")
        self.entries[event.entry] = Entry(event.dataset, event.sequence, event.hash)
        return account.charged(stored_promise(content["promise"]), gamma=gamma, part=part)

    def _settle(self, event: Event, certificate: str) -> None:
        entry = self.entries.get(event.entry)
        if entry is None or entry.dataset != event.dataset:
            raise _Impossible("it settles what was never reserved")
        if entry.certificate is not None:
            raise _Impossible("it settles an entry a second time")
        self.entries[event.entry] = replace(entry, certificate=certificate)
        account = self.accounts[event.dataset]
        self.accounts[event.dataset] = replace(account, settlements=account.settlements + 1)


class _Impossible(Exception):
    """An event that cannot follow the events before it."""


def _content(event: Event) -> dict[str, Any]:
    content = event.payload
    if event.kind not in FIELDS:
        raise _Impossible(f"its kind {event.kind!r} is unknown")
    if event.kind == Kind.BOOK_OPENED:
        check_format(content["format"])  # before its fields: a newer format may have others
    forms = (FIELDS[event.kind], EARLIER_FIELDS.get(event.kind))
    if frozenset(content) not in forms or canonical(content) != event.text:
        raise _Impossible(f"its payload does not have the form of {event.kind!r}")
    return content


def check_format(found: Any) -> None:
    """Refuse books that a newer version of the library has laid out."""
    if type(found) is not int or found < 1:
        raise LedgerError(f"the ledger states the format {found!r}, which no version has written")
    if found > FORMAT:
        raise LedgerError(
            f"The ledger has format {found}, this version of onedraw reads up to {FORMAT}. Reading it in "
            "part could overlook spends, so it is not opened. Upgrade onedraw."
        )


def _with_parts(account: Account, partition: str, sizes: Any) -> Account:
    if account.partition is not None:
        raise _Impossible(f"the dataset {account.dataset!r} had its parts declared before")
    if not sizes or any(type(size) is not int or size < 1 for size in sizes.values()):
        raise _Impossible("the sizes of parts must be whole numbers of at least 1")
    return replace(account, partition=partition, sizes=MappingProxyType(dict(sizes)))


def _with_declaration(account: Account, entry: str, content: dict[str, Any]) -> Account:
    delta, part, items = content["delta"], _known_part(account, content["part"]), content["items"]
    if delta is not None and (type(delta) is not float or not 0.0 <= delta < 1.0):
        raise _Impossible("the δ of a declared list must be null or a number in [0, 1)")
    if not items or any(set(item) != {"promise", "gamma"} for item in items):
        raise _Impossible("a declared list must hold promises, each with its γ")
    spends = tuple(Spend(stored_promise(item["promise"]), _gamma(item["gamma"])) for item in items)
    return account.declaring(entry, spends, delta=delta, part=part)


def _known_part(account: Account, part: Any) -> str | None:
    if part is not None and part not in account.sizes:
        raise _Impossible(f"the part {part!r} was never declared")
    return None if part is None else _string(part)


def _gamma(value: Any) -> float:
    if type(value) is not float or not 0.0 <= value < 1.0:
        raise _Impossible("γ must be a number in [0, 1)")
    return value


def _order(content: dict[str, Any], budget: Promise) -> float | None:
    """The Rényi order that was fixed with the budget; books of format 1 fixed none, so the rule of today is applied."""
    if "order" not in content:
        return chosen_order(budget)
    order = content["order"]
    if order is not None and (type(order) is not float or not 1.0 < order < math.inf):
        raise _Impossible("the Rényi order of a budget must be null or a number above 1")
    return order


def stored_promise(stored: Any) -> Promise:
    """A promise as the books hold it; equal ones are read once."""
    return _read_promise(canonical(stored))


@lru_cache(maxsize=4096)
def _read_promise(text: str) -> Promise:
    return Promise.from_dict(json.loads(text))


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _Impossible("a text was expected in its payload")
    return value
