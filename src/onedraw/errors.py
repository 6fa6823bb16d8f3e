"""Everything that can go wrong, as one tree.

A message says what was expected, what was given, why it matters and what to do. No message ever contains a value
read from a record: an error is a release too; nor one that acts on a terminal or a log. Exit codes are the command line's (2 wrong call, 3 refused
promise, 4 spent budget, 5 paid for but not finished).

    OnedrawError
    ├── WrongCall                 2  the call cannot mean anything, whatever the data
    │   ├── InvalidBudget            ε, δ, μ, ρ, an order or n out of range
    │   ├── InvalidModel             a prior that is not normalizable, a missing or impossible bound
    │   ├── InvalidSchema            a schema that does not say enough, or contradicts itself
    │   ├── FileMismatch             a file whose columns or format are not those of the schema
    │   ├── CountMismatch            n is not the plan's n
    │   ├── TooFewRounds             an audit that could not fail, whatever the mechanism did
    │   ├── MissingExtra             a library that only some users need, and that is not installed here
    │   ├── LedgerError              not a ledger, an unknown or closed dataset, a broken chain
    │   └── CannotWrite              the output exists, or its place cannot be written
    ├── PromiseRefused            3  no theorem gives what was asked, so nothing is released
    │   ├── UnsupportedBudget        this kind of promise does not exist for this mechanism
    │   ├── OrderTooHigh             a Rényi order at or above λ*
    │   ├── ExactnessRefused         the sampler is not exact enough for the plan
    │   ├── SecondOpinion            another accountant puts the true figure above ours
    │   └── CertificateRejected      a certificate whose numbers do not imply its promise
    ├── BudgetSpent               4  the ledger has no room for this release
    └── Unfinished                5  paid for, but not where it was to be written; the message says how to get it
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, ClassVar

from onedraw.plain_text import escaped

__all__ = [
    "BudgetSpent",
    "CannotWrite",
    "CertificateRejected",
    "CountMismatch",
    "ExactnessRefused",
    "FileMismatch",
    "InvalidBudget",
    "InvalidModel",
    "InvalidSchema",
    "LedgerError",
    "MissingExtra",
    "OnedrawError",
    "OrderTooHigh",
    "PromiseRefused",
    "SecondOpinion",
    "TooFewRounds",
    "Unfinished",
    "UnsupportedBudget",
    "WrongCall",
    "check_extra",
]


class OnedrawError(Exception):
    """Base of every error this library raises on purpose; fields are kept as attributes."""

    exit_code: ClassVar[int] = 2

    def __init__(self, *lines: str, **fields: Any) -> None:
        """Keep the lines of the message apart: each is escaped by itself, so that none can forge the end of another."""
        super().__init__(*map(escaped, lines))
        self.fields = fields
        for name, value in fields.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return "\n".join(self.args)


class WrongCall(OnedrawError, ValueError):
    """The call cannot mean anything, whatever the data are."""


class InvalidBudget(WrongCall):
    """ε, δ, μ, ρ, an order or a record count out of its range."""


class InvalidModel(WrongCall):
    """A prior that is not normalizable, or a bound that is missing or impossible."""


class InvalidSchema(WrongCall):
    """A schema that does not say enough, or contradicts itself."""


class FileMismatch(WrongCall):
    """A file whose columns or format are not those the schema declares; found before any record is read."""


class CountMismatch(WrongCall):
    """The data do not have the n the plan was made for (n is public, so the message may say both)."""


class TooFewRounds(WrongCall):
    """An audit too short to show anything at the asked confidence. Fields: ``rounds``, ``needed``."""


class MissingExtra(WrongCall):
    """What was asked for needs a library that only some users need, and that is not installed. Field: ``extra``."""


class LedgerError(WrongCall):
    """Not a ledger, an unknown or closed dataset, or a chain that does not verify."""


class CannotWrite(WrongCall):
    """The output exists already, or its place cannot be written."""


class PromiseRefused(OnedrawError):
    """No theorem gives what was asked for, so nothing is released and nothing is spent."""

    exit_code = 3


class UnsupportedBudget(PromiseRefused):
    """This kind of promise does not exist for this mechanism and model."""


class OrderTooHigh(PromiseRefused):
    """A Rényi order at or above λ*, where the divergence is infinite. Field: ``limit`` (λ*)."""


class ExactnessRefused(PromiseRefused):
    """The sampler is not exact enough for the plan, and the caller did not accept that by name."""


class SecondOpinion(PromiseRefused):
    """Another accountant's optimistic estimate lies above the figure we were about to certify."""


class CertificateRejected(PromiseRefused):
    """A certificate whose numbers do not imply the promise it states."""


class BudgetSpent(OnedrawError):
    """The ledger has no room left for this release; nothing was drawn and nothing was written."""

    exit_code = 4


class Unfinished(OnedrawError):
    """The ledger was charged, but the release is not where it was to be. Fields: ``entry``, to resume it by, and
    ``certificate``: None, or the draw itself where it could be written nowhere, settled and handed over here."""

    exit_code = 5


def check_extra(extra: str, library: str, what: str) -> None:
    """Refuse ``what`` where the ``library`` of an extra is not installed: before anything is computed or spent on it."""
    if find_spec(library) is None:
        raise MissingExtra(
            f"{what} needs {library}, which is not installed here. Install it: pip install 'onedraw[{extra}]'.",
            extra=extra,
        )
