"""What a call to the ledger may say, and the words in which it is refused. Nothing here touches the chain.

**Names that could be taken for one another.** A budget belongs to a name, so a second name is a second budget. Refused where a dataset, a partition or a part is begun (names that stand in older ledgers stay usable):

* what Unicode's NFKC would write otherwise: full-width and mathematical letters, ligatures, ², ½, no-break spaces;
* characters that show nothing (`plain_text.is_invisible`), and two spaces in a row;
* Latin, Greek, Cyrillic or Armenian letters mixed in one word;
* a name equal to one that stands beside it but for case, for the letters of those four scripts that are drawn alike,
  for 0 and O, for 1, l, I and |, or for the kind of hyphen.

Not refused, because no short rule tells them apart: pairs such as rn and m, look-alikes within or between other scripts,
accents that are easily overlooked, and names that mean the same (patients-26, patients_2026). The full table is Unicode's
UTS 39, "confusables".
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from onedraw.errors import BudgetSpent, InvalidBudget, LedgerError
from onedraw.plain_text import acting, is_invisible
from onedraw.privacy import Promise
from onedraw.privacy.filters import Spend, filters_of

from .accounts import Account, Accounts, Entry
from .events import Reservation
from .history import WORK_ALONE

LONGEST_TEXT = 500


def name_of(what: str, value: str) -> str:
    """A name as it is stored: NFC, so that two encodings of the same letters are one name. See also `new_name`."""
    if not isinstance(value, str):
        raise LedgerError(f"A {what} is called by a name such as 'patients-2026', not by a {type(value).__name__}.")
    name = unicodedata.normalize("NFC", value)
    if not name or name != name.strip() or not name.isprintable() or len(name) > LONGEST_TEXT:
        raise LedgerError(
            f"{value!r} cannot be the name of a {what}: it must be 1 to {LONGEST_TEXT} printable characters "
            "without space at either end, so that no two budgets look the same."
        )
    return name


def new_name(what: str, value: str, beside: Iterable[str] = ()) -> str:
    """A name that begins something in the ledger; refused where it could be taken for another (see above)."""
    name = name_of(what, value)
    fault = unclear(name)
    if fault:
        raise LedgerError(f"{value!a} cannot be the name of a {what}: {fault}. Two budgets could look the same.")
    drawn = name.translate(_TABLE)
    for other in beside:
        shown = other.translate(_TABLE)
        if drawn == shown or drawn.casefold() == shown.casefold() or name.casefold() == other.casefold():
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


def remarks(**said: str | None) -> dict[str, str | None]:
    """Return remarks as they are stored; null where nothing was said."""
    return {name: None if value is None else line(name, value) for name, value in said.items()}


def checked_budget(budget: Promise) -> Promise:
    if not isinstance(budget, Promise) or next(filters_of(budget), None) is None:
        raise InvalidBudget(
            f"A dataset's budget is one that a proven filter keeps while later promises are chosen in view of earlier draws, "
            f"and {budget} is none. Choose ApproxDP(3, 1e-5), PureDP, GaussianDP or ZCDP; of Rényi DP name one order, "
            "RenyiDP.at(order, epsilon)."
        )
    return checked_promise(budget)


def checked_promise(promise: Promise) -> Promise:
    if not isinstance(promise, Promise):
        raise InvalidBudget(f"What is spent is a promise such as PureDP(0.5), not a {type(promise).__name__}.")
    if Promise.from_dict(promise.to_dict()) != promise:
        raise InvalidBudget(f"{promise!r} does not survive being written down, so the ledger could not be read again.")
    return promise


def checked_share(
    value: float, what: str = "gamma is a total variation distance", instead: str = "pass 0 for an exact draw"
) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < 1.0:
        raise InvalidBudget(f"{what} in [0, 1), not {value!r}: {instead}.")
    return float(value)


def checked_items(promises: Sequence[Promise], gammas: Sequence[float]) -> list[tuple[Promise, float]]:
    if not promises or isinstance(promises, Promise):
        raise InvalidBudget("A declaration is a list of promises, as in [PureDP(0.1)] * 20, but none was given.")
    distances = [checked_share(gamma) for gamma in gammas] or [0.0] * len(promises)
    if len(distances) != len(promises):
        raise InvalidBudget(
            f"{len(promises)} promises were given with {len(distances)} gammas. Pass one for each, or none."
        )
    if sum(distances) >= 1.0:
        raise InvalidBudget("The total variation distances add up to 1 or more, so nothing is promised at all.")
    return list(zip(map(checked_promise, promises), distances, strict=True))


def checked_sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    if not sizes or any(type(size) is not int or size < 1 for size in sizes.values()):
        raise LedgerError(
            "Parts are declared with their public sizes, whole numbers of at least 1, as in sizes={'north': 1200, 'south': "
            "800}. Count them from the public key, not from the private records."
        )
    checked: dict[str, int] = {}
    for part, size in sizes.items():
        if name_of("part", part) in checked:
            raise LedgerError(
                "Two parts have the same name once their spelling is normalised (NFC). Give each its own name."
            )
        checked[new_name("part", part, beside=checked)] = size
    return checked


def account_of(accounts: Accounts, dataset: str) -> Account:
    name = name_of("dataset", dataset)
    if name not in accounts.by_name:
        known = ", ".join(map(repr, accounts.by_name)) or "none yet"
        raise LedgerError(
            f"This ledger has no dataset called {name!r} (it has: {known}), and without a budget nothing can be spent. Check "
            "the name, or open it with init / `onedraw ledger init`."
        )
    return accounts.by_name[name]


def open_account(accounts: Accounts, dataset: str) -> Account:
    account = account_of(accounts, dataset)
    if account.closed:
        raise LedgerError(
            f"The dataset {account.dataset!r} is closed: nothing more may be spent on it. New releases need a dataset of "
            "their own, with a budget set by whoever answers for the data."
        )
    return account


def open_entry(accounts: Accounts, reservation: Reservation) -> Entry:
    """The reservation as it stands in the ledger, with nothing out under it yet."""
    entry = accounts.entries.get(reservation.entry)
    if entry is None or (entry.dataset, entry.hash) != (reservation.dataset, reservation.head):
        raise LedgerError(
            f"The reservation {reservation.entry!r} does not stand in this ledger: a release without its spend must "
            "not exist. Settle in the ledger it was made in."
        )
    if entry.certificate is not None:
        raise LedgerError(
            f"The reservation {reservation.entry!r} is settled already. It pays for one release; reserve again."
        )
    return entry


def checked_part(account: Account, part: str | None) -> str | None:
    if part is None:
        return None
    name = name_of("part", part)
    if name not in account.sizes:
        known = ", ".join(map(repr, account.sizes)) or "none declared"
        raise LedgerError(
            f"The dataset {account.dataset!r} has no part called {name!r} (it has: {known}). Declare it first, with public "
            "membership and size: declare_parts."
        )
    return name


def check_may_be_cut(account: Account, partition: str) -> None:
    if account.partition is not None:
        raise LedgerError(
            f"The dataset {account.dataset!r} is already cut by {account.partition!r}, and parts of two partitions overlap. "
            f"Charge releases by {partition!r} to the whole dataset."
        )
    if account.unit.records_per_person > 1:
        raise LedgerError(
            f"In the dataset {account.dataset!r} a person may have {account.unit.records_per_person} records, in several parts, "
            "whose spends then add up. Charge releases to the whole dataset."
        )


def refuse(account: Account, asked: Spend, *, part: str | None) -> NoReturn:
    """Say why there is no room, with public numbers only; computed after the writer's lock is given back."""
    delta, total = account.budget.quoted_delta, account.total(part)
    spent, alone, left = total.epsilon(), asked.composed.epsilon(delta), account.room(part)
    where = repr(account.dataset) if part is None else f"{account.dataset!r}, part {part!r}"
    at = f" at δ = {delta:g}" if delta else ""
    # Four digits, rounded down: a message must not promise room that is not there.
    unit = 10.0 ** (math.floor(math.log10(left)) - 3) if left > 0 else 1.0
    why = (
        f"At most ε = {math.floor(left / unit) * unit:.4g} is left for a pure release; ask for less, declare a list of "
        "releases before the first of them (ledger declare), or ask the privacy officer to raise the budget (onedraw ledger top-up)."
    )
    if asked.gamma and (alone == math.inf or asked.promise == WORK_ALONE):
        why = (
            "γ takes (1 + e^ε)γ of δ beside what the promise takes, and together that is more than the budget has. Plan for a "
            "smaller δ, which leaves some for γ; or leave out what γ pays for (padded work, a sampler that is not exact)."
        )
    if not total.kept_by and total.composes_within_budget():
        why = (
            "What stands in this ledger keeps the budget only if all of it was fixed before the first draw, so nothing can be "
            "added. Ask the privacy officer to raise the budget (onedraw ledger top-up)."
        )
    raise BudgetSpent(
        f"The budget of {where} does not cover this release: it is {account.budget}, spent is ε = "
        f"{spent:.6g}{at}, asked is {asked.promise}{f' with γ = {asked.gamma:g}' if asked.gamma else ''} (ε = "
        f"{alone:.6g}{at}). Nothing was drawn and nothing was written. {why}",
        dataset=account.dataset, part=part, budget=account.budget, delta=delta,
        spent=spent, asked=alone, remaining=left,
    )  # fmt: skip


def overspent(account: Account, when: str) -> list[str]:
    over = [total for total in account.totals() if not total.kept_by and not total.composes_within_budget()]
    if not over:
        return []
    delta = account.budget.quoted_delta
    spent = max(total.listed.epsilon(delta) for total in over)
    return [
        f"dataset {account.dataset!r} is over its budget {when}: {account.budget} was set, ε = {spent:.6g} "
        f"at δ = {delta:g} is spent according to this version's accountant"
    ]


def only_if_fixed(account: Account) -> str:
    """Of one that is neither over its budget nor kept within it by a filter."""
    delta = account.budget.quoted_delta
    return (
        f"dataset {account.dataset!r} keeps its budget only if every promise was fixed before the first draw: as a "
        f"list ε = {account.spent().epsilon(delta):.6g}, by a proven filter ε = {account.total().epsilon():.6g} "
        f"at δ = {delta:g}. Nothing more can be spent on it"
    )


# ── names that look alike ──

_WORDS = re.compile(r"[\W\d_]+")
_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN")

# From UTS 39: letters drawn like a Latin one (or like l, which stands for 1, I and | too).
_DRAWN_LIKE = {
    "а": "a", "ɑ": "a", "α": "a", "с": "c", "ԁ": "d", "е": "e", "һ": "h", "հ": "h", "і": "i", "ι": "i", "ı": "i",
    "ј": "j", "к": "k", "κ": "k", "ӏ": "l", "ո": "n", "п": "n", "о": "o", "ο": "o", "օ": "o", "σ": "o", "р": "p", "ρ": "p",
    "ԛ": "q", "գ": "q", "г": "r", "ѕ": "s", "ս": "u", "υ": "u", "ν": "v", "ѵ": "v", "ԝ": "w", "ա": "w", "х": "x", "χ": "x",
    "у": "y", "ү": "y", "γ": "y", "А": "A", "Α": "A", "В": "B", "Β": "B", "С": "C", "Ϲ": "C", "Е": "E", "Ε": "E",
    "Ζ": "Z", "Н": "H", "Η": "H", "І": "l", "Ι": "l", "Ӏ": "l", "Ј": "J", "К": "K", "Κ": "K", "М": "M", "Μ": "M", "Ν": "N",
    "О": "O", "Ο": "O", "Օ": "O", "Р": "P", "Ρ": "P", "Ԛ": "Q", "Ѕ": "S", "Տ": "S", "Т": "T", "Τ": "T", "Ս": "U", "Ѵ": "V",
    "Ԝ": "W", "Х": "X", "Χ": "X", "У": "Y", "Υ": "Y", "Ү": "Y",
    "0": "O", "1": "l", "I": "l", "|": "l",
    **dict.fromkeys("‐‑‒–—−", "-"),
}  # fmt: skip
_TABLE = str.maketrans(_DRAWN_LIKE)


def unclear(name: str) -> str | None:
    """What is wrong with a name by itself, or None."""
    plain = unicodedata.normalize("NFKC", name)
    if plain != name:
        return f"it has characters that stand for others; write {plain!a}"
    if any(map(is_invisible, name)) or "  " in name:
        return "it has characters that cannot be seen; leave them out"
    for word in _WORDS.split(name):
        letters = [unicodedata.name(letter, "") for letter in word if letter.isalpha()]
        if sum(any(letter.startswith(script) for letter in letters) for script in _SCRIPTS) > 1:
            return "it mixes letters of different scripts in one word; keep to one"
    return None
