"""What the events add up to: one account per dataset, read off the chain; the totals are `privacy.compose`'s.

An account keeps promises, never sums of ε. Whether something still fits is one question, asked of the whole
history: does the composition of everything reserved so far, and the new promise, imply the budget? A
reservation counts from the moment it is written, settled or not.

**Parts.** Let a public key assign every record position to one part, whatever the record says. Neighbours
differ in the value of one record, hence inside one part p; what was released from another part alone sees the
same records on both sides and, given the outputs before it, has the same law. For this pair only the releases
from the whole dataset and from p count, so the dataset's total is the *maximum over p* of compose(whole, p):
parallel composition (McSherry 2009, there for add/remove-one). The proof needs

* membership that does not depend on the values: with parts cut by a private column, replacing a record can
  take it out of one part and into another, two parts change, and the sum of both counts: refused;
* one record per person: a person with records in two parts changes both: refused for units above 1;
* one partition per dataset: parts of two partitions overlap, so neither maximum alone is a bound. A second
  declaration is refused; what is released from parts of another cut is charged to the whole dataset.

**Order.** Mechanisms may be chosen in view of earlier draws. May their *promises*? Yes where the total that
fits is a sum of ε, of ρ, of μ², or of one Rényi order named by the budget: these are privacy filters
(arXiv:1605.08294, 2008.11193, 2203.05481, 2210.17520). Not proven where an (ε, δ) budget is kept only by
whichever Rényi order happens to be best, and false in general where it is kept only by a PLD
(arXiv:2602.15815): there the sequence of promises must not depend on the draws. A budget set as PureDP,
GaussianDP, ZCDP or RenyiDP.at is free of this condition.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from onedraw.errors import LedgerError, OnedrawError
from onedraw.privacy import ApproxDP, Composed, Promise, PureDP, Unit, compose, promise_from_dict

from .events import FIELDS, FORMAT, START, Event, Kind, Position, broken, canonical

# Where a budget names no δ (zCDP, Gaussian DP, a Rényi pair), ε is quoted at this public one.
QUOTED_DELTA = 1e-6


@dataclass(frozen=True)
class Spends:
    """A bag of promises with their total-variation allowances; equal ones are counted, not repeated."""

    promises: Counter[Promise] = field(default_factory=Counter)
    gammas: Counter[float] = field(default_factory=Counter)

    def plus(self, promise: Promise, gamma: float) -> Spends:
        allowance = Counter({gamma: 1}) if gamma > 0 else Counter[float]()
        return Spends(self.promises + Counter([promise]), self.gammas + allowance)

    def together(self, other: Spends) -> Spends:
        return Spends(self.promises + other.promises, self.gammas + other.gammas)

    def composed(self) -> Composed:
        return compose(*self.promises.elements(), gammas=tuple(self.gammas.elements()))


@dataclass(frozen=True)
class Account:
    """One dataset's page: its budget, who is protected, and everything reserved against it."""

    dataset: str
    budget: Promise
    unit: Unit
    note: str = ""
    closed: bool = False
    partition: str | None = None
    sizes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    reservations: int = 0
    settlements: int = 0
    whole: Spends = field(default_factory=Spends, repr=False)
    parts: Mapping[str, Spends] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @property
    def delta(self) -> float:
        """The δ at which ε is quoted: the budget's own, 0 for a pure one, 1e-6 where it names none."""
        if isinstance(self.budget, ApproxDP):
            return self.budget.stated_delta
        return 0.0 if isinstance(self.budget, PureDP) else QUOTED_DELTA

    def charged(self, promise: Promise, *, gamma: float, part: str | None) -> Account:
        """The account after one more reservation."""
        count = self.reservations + 1
        if part is None:
            return replace(self, whole=self.whole.plus(promise, gamma), reservations=count)
        spends = self.parts.get(part, Spends()).plus(promise, gamma)
        return replace(self, parts=MappingProxyType({**self.parts, part: spends}), reservations=count)

    def totals(self, part: str | None = None) -> list[Spends]:
        """What counts against the budget: for one part, or the distinct totals of all parts."""
        if part is not None:
            return [self.whole.together(self.parts.get(part, Spends()))]
        distinct: list[Spends] = []
        for spends in self.parts.values():
            total = self.whole.together(spends)
            if total not in distinct:
                distinct.append(total)
        return distinct or [self.whole]

    def spent(self, part: str | None = None) -> Composed:
        """The composition for one part or, where there are several, for the part with the largest ε."""
        totals = [spends.composed() for spends in self.totals(part)]
        return totals[0] if len(totals) == 1 else max(totals, key=lambda total: total.epsilon(self.delta))

    def within_budget(self, part: str | None = None) -> bool:
        return all(self._fits(spends) for spends in self.totals(part))

    def has_room_for(self, promise: Promise, *, gamma: float = 0.0, part: str | None = None) -> bool:
        """Whether everything reserved and this promise together are proven to imply the budget."""
        return self.charged(promise, gamma=gamma, part=part).within_budget(part)

    def _fits(self, spends: Spends) -> bool:
        if not spends.promises:
            return True
        # compose refuses a Σγ of 1 or more, where nothing is promised at all.
        return math.fsum(spends.gammas.elements()) < 1.0 and spends.composed().implies(self.budget)

    def room(self, part: str | None = None) -> float:
        """The ε of a PureDP release that is sure to be accepted, rounded down; 0 when nothing is."""
        if isinstance(self.budget, PureDP | ApproxDP):
            left = Fraction(self.budget.stated_epsilon) - _fraction(self.spent(part).epsilon(self.delta))
            return self._shrunk(_round_down(left), part)
        return self._bisected(part)

    def _shrunk(self, candidate: float, part: str | None) -> float:
        """The candidate, less as much as the accountant's own rounding asks for."""
        for loss in (0.0, *(math.ldexp(1.0, power) for power in (-48, -32, -16, *range(-10, 0)))):
            smaller = candidate * (1.0 - loss)
            if smaller > 0 and self.has_room_for(PureDP(smaller), part=part):
                return smaller
        return 0.0

    def _bisected(self, part: str | None) -> float:
        """For budgets that are not an ε: the largest PureDP the accountant accepts, to nine digits."""
        accepted, refused = 0.0, 2.0**10
        while refused - accepted > 1e-9 * refused and refused > 1e-12:
            middle = math.sqrt(accepted * refused) if accepted > 0 else refused / 16
            if self.has_room_for(PureDP(middle), part=part):
                accepted = middle
            else:
                refused = middle
        return accepted


def _fraction(value: float) -> Fraction:
    return Fraction(value) if math.isfinite(value) else Fraction(2) ** 1100


def _round_down(value: Fraction) -> float:
    if value <= 0:
        return 0.0
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0.0)


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
            raise _Impossible("books are opened by their first event and only by it")
        if event.kind == Kind.BOOK_OPENED:
            return
        if event.kind == Kind.DATASET_OPENED:
            if event.dataset in self.accounts:
                raise _Impossible(f"the dataset {event.dataset!r} is opened a second time")
            budget, unit = stored_promise(content["budget"]), Unit.from_dict(content["unit"])
            self.accounts[event.dataset] = Account(event.dataset, budget, unit, _string(content["note"]))
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
            account = replace(account, budget=stored_promise(content["budget"]))
        elif event.kind == Kind.CLOSED:
            account = replace(account, closed=True)
        elif event.kind == Kind.PARTS_DECLARED:
            account = _with_parts(account, _string(content["partition"]), content["sizes"])
        else:
            account = self._reserve(event, content, account)
        self.accounts[event.dataset] = account

    def _reserve(self, event: Event, content: dict[str, Any], account: Account) -> Account:
        part, gamma = content["part"], content["gamma"]
        if part is not None and part not in account.sizes:
            raise _Impossible(f"the part {part!r} was never declared")
        if type(gamma) is not float or not 0.0 <= gamma < 1.0 or type(content["seeded"]) is not bool:
            raise _Impossible("γ must be a number in [0, 1) and the seeded mark true or false")
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
    if set(content) != FIELDS[event.kind] or canonical(content) != event.text:
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


def stored_promise(stored: Any) -> Promise:
    """A promise as the books hold it; equal ones are read once."""
    return _read_promise(canonical(stored))


@lru_cache(maxsize=4096)
def _read_promise(text: str) -> Promise:
    return promise_from_dict(json.loads(text))


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _Impossible("a text was expected in its payload")
    return value
