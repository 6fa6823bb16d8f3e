"""What a call to the ledger may say, and the words in which it is refused. Nothing here touches the books."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from onedraw.errors import InvalidBudget, LedgerError
from onedraw.plain_text import acting
from onedraw.privacy import ZCDP, ApproxDP, GaussianDP, Promise, PureDP, RenyiDP
from onedraw.privacy.filters import filters_of

from .accounts import Account, Book
from .lookalikes import look_alike, unclear

BUDGET_KINDS = (PureDP, ApproxDP, GaussianDP, ZCDP, RenyiDP)
LONGEST_TEXT = 500


def name_of(what: str, value: str) -> str:
    """A name as it is stored: NFC, so that two encodings of the same letters are one name. See also `new_name`."""
    if not isinstance(value, str):
        raise LedgerError(
            f"A {what} is called by a name, but a {type(value).__name__} came. Pass a text such as 'patients-2026'."
        )
    name = unicodedata.normalize("NFC", value)
    if not name or name != name.strip() or not name.isprintable() or len(name) > LONGEST_TEXT:
        raise LedgerError(
            f"{value!r} cannot be the name of a {what}: it must be 1 to {LONGEST_TEXT} printable characters "
            "without space at either end, so that no two budgets look the same."
        )
    return name


def new_name(what: str, value: str, beside: Iterable[str] = ()) -> str:
    """A name that begins something in the books; refused where it could be taken for another (see `lookalikes`)."""
    name = name_of(what, value)
    fault = unclear(name)
    if fault:
        raise LedgerError(f"{value!a} cannot be the name of a {what}: {fault}. Two budgets could look the same.")
    for other in beside:
        if look_alike(name, other):
            raise LedgerError(
                f"The {what} {name!a} would look like {other!a}, which this ledger holds already, and have a budget of "
                "its own. Use that name, or one that differs in more than case or look-alike letters."
            )
    return name


def line(what: str, value: str) -> str:
    """A short text that is stored as it is."""
    if not isinstance(value, str) or acting(value) or len(value) > LONGEST_TEXT:
        raise LedgerError(
            f"{what} must be a line of at most {LONGEST_TEXT} printable characters. It stays in the ledger "
            "for ever and is public: shorten it, and put nothing from the records into it."
        )
    return value


def checked_budget(budget: Promise) -> Promise:
    if not isinstance(budget, BUDGET_KINDS):
        kinds = ", ".join(kind.__name__ for kind in BUDGET_KINDS)
        raise InvalidBudget(
            f"A dataset's budget is one of {kinds}, but a {type(budget).__name__} came: a total can be "
            "compared only with these. Choose one, such as ApproxDP(3, 1e-5)."
        )
    if not filters_of(budget):
        raise InvalidBudget(
            f"The budget {budget} names a whole Rényi curve, for which no filter is proven: later promises may be chosen "
            "in view of earlier draws. Name one order, RenyiDP.at(order, epsilon), or ZCDP(rho)."
        )
    return checked_promise(budget)


def checked_promise(promise: Promise) -> Promise:
    if not isinstance(promise, Promise):
        raise InvalidBudget(f"What is spent is a promise such as PureDP(0.5), but a {type(promise).__name__} came.")
    if Promise.from_dict(promise.to_dict()) != promise:
        raise InvalidBudget(
            f"The promise {promise!r} does not survive being written down, so the ledger could not be read "
            "again. Give it a curve that is registered with its parameters."
        )
    return promise


def checked_gamma(gamma: float) -> float:
    if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0.0 <= gamma < 1.0:
        raise InvalidBudget(
            f"gamma is a total variation distance in [0, 1), but {gamma!r} came. Pass 0 for an exact draw."
        )
    return float(gamma)


def checked_delta(delta: float) -> float:
    if isinstance(delta, bool) or not isinstance(delta, int | float) or not 0.0 <= delta < 1.0:
        raise InvalidBudget(
            f"A declared list is read at a δ in [0, 1), but {delta!r} came. Pass a part of the budget's δ, or None."
        )
    return float(delta)


def checked_items(promises: Sequence[Promise], gammas: Sequence[float]) -> list[tuple[Promise, float]]:
    if not promises or isinstance(promises, Promise):
        raise InvalidBudget("A declaration is a list of promises, as in [PureDP(0.1)] * 20, but none came.")
    distances = list(gammas) or [0.0] * len(promises)
    if len(distances) != len(promises):
        raise InvalidBudget(f"{len(promises)} promises came with {len(distances)} gammas. Pass one for each, or none.")
    if sum(map(checked_gamma, distances)) >= 1.0:
        raise InvalidBudget("The total variation distances add up to 1 or more, so nothing is promised at all.")
    return [(checked_promise(one), checked_gamma(gamma)) for one, gamma in zip(promises, distances, strict=True)]


def checked_sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    if not sizes or any(type(size) is not int or size < 1 for size in sizes.values()):
        raise LedgerError(
            "Parts are declared with their public sizes, whole numbers of at least 1, as in "
            "sizes={'north': 1200, 'south': 800}. Count them from the public key, not from the private "
            "records."
        )
    checked = {new_name("part", part): size for part, size in sizes.items()}
    if len(checked) != len(sizes):
        raise LedgerError(
            "Two parts have the same name once their spelling is normalised (NFC). Give each its own name."
        )
    names = list(checked)
    for index, name in enumerate(names):
        new_name("part", name, beside=names[:index])
    return checked


def account_of(book: Book, dataset: str) -> Account:
    name = name_of("dataset", dataset)
    if name not in book.accounts:
        known = ", ".join(map(repr, book.accounts)) or "none yet"
        raise LedgerError(
            f"This ledger has no dataset called {name!r} (it has: {known}). Without a budget nothing can be "
            "spent. Check the name, or open it with init / `onedraw ledger init`."
        )
    return book.accounts[name]


def open_account(book: Book, dataset: str) -> Account:
    account = account_of(book, dataset)
    if account.closed:
        raise LedgerError(
            f"The dataset {account.dataset!r} is closed: nothing more may be spent on it, whatever was "
            "left. Closing is final; new releases need a dataset of their own, with a budget set by "
            "whoever answers for the data."
        )
    return account


def checked_part(account: Account, part: str | None) -> str | None:
    if part is None:
        return None
    name = name_of("part", part)
    if name not in account.sizes:
        known = ", ".join(map(repr, account.sizes)) or "none declared"
        raise LedgerError(
            f"The dataset {account.dataset!r} has no part called {name!r} (it has: {known}). A part must be "
            "declared, with public membership and size, before anything is charged to it alone: see "
            "declare_parts."
        )
    return name


def check_may_be_cut(account: Account, partition: str) -> None:
    if account.partition is not None:
        raise LedgerError(
            f"The dataset {account.dataset!r} is already cut by {account.partition!r}. Parts of two "
            f"partitions overlap, so their spends do not run in parallel. Charge releases by {partition!r} "
            "to the whole dataset."
        )
    if account.unit.records_per_person > 1:
        raise LedgerError(
            f"In the dataset {account.dataset!r} a person may have {account.unit.records_per_person} "
            "records, which may lie in different parts; a change of one person would then change several "
            "parts, and their spends add up. Charge releases to the whole dataset."
        )
