"""One charge, one draw: what stands in the ledger before the draw, and what may be done about it after a crash.

An entry of the ledger goes through reserved (the spend stands), then settled (with the digest of what left). Everything
that leaves does so after its settlement, which happens once; so an entry that is not settled has let nothing out, and the
draw may be made, or made again, without a second charge; but for padded work, of which each attempt spends its γ₂ (samplers/padding.md). `in_memory` and `on_disk` are the two ways out;
on disk the certificate is whole and synced before it is settled, and whatever is whole is never drawn again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onedraw.errors import CannotWrite, CertificateRejected, LedgerError, OnedrawError, Unfinished, WrongCall
from onedraw.ledger import Event, Kind, Ledger, Reservation
from onedraw.ledger.events import canonical

from .certificate import Certificate, read_certificate
from .files import Claim, check_writable, exists_already

Drawn = tuple[Certificate, dict[str, Any]]
Draw = Callable[[Reservation | None], Drawn]


@dataclass(frozen=True)
class Payment:
    """One entry of the ledger: ``spend`` is what `Ledger.reserve` is to be told. Without a ledger nothing is paid."""

    entry: str
    ledger: Ledger | None = None
    spend: Mapping[str, Any] = field(default_factory=dict)
    resumed: bool = False
    plan_digest: str = ""
    """Digest of the plan with its sentences, which named it before format 4 of the ledger."""

    def charge(self, *, may_be_new: bool = True, draws: bool = True) -> Reservation | None:
        """Reserve; of an entry that is resumed, find the reservation and refuse if anything about it is different. Before padded
        work that ``draws``, note that it begins: the reservation pays for the first attempt alone."""
        if self.ledger is None:
            return None
        event = self.reserved_event() if self.resumed else None
        if event is None:
            if not may_be_new:
                raise LedgerError(
                    f"There is no entry {self.entry!r} in {self.ledger.place}, so there is nothing to resume. Nothing was "
                    "spent. Look for open entries with `onedraw ledger show`, or release without resume."
                )
            reservation = self.ledger.reserve(**self.spend, entry=self.entry)
        else:
            self.check_same(event)
            reservation = Reservation(event.entry, event.dataset, event.hash, event.sequence)
        if draws and self.spend["timing"]:
            self.ledger.begin(reservation)
        return reservation

    def check_same(self, event: Event) -> None:
        """Refuse a reservation that paid for anything else than this release."""
        spend, stored = self.spend, event.payload
        question = {"plan": self.plan_digest} if "plan" in stored else {"fingerprint": spend["fingerprint"]}
        asked = {**question, "promise": spend["promise"].to_dict(), "gamma": float(spend["gamma"]),
                 "timing": spend["timing"], "part": spend["part"], "seeded": spend["seeded"], "label": spend["label"]}  # fmt: skip
        if "delta" in stored:  # a reservation of ledger format 4
            asked["delta"] = spend["delta"]
        different = ["dataset"] if event.dataset != spend["dataset"] else []
        different += [name for name, value in asked.items() if canonical(stored.get(name)) != canonical(value)]
        different = ["question" if name in question else name for name in different]
        if different:
            raise LedgerError(
                f"The entry {self.entry!r} paid for another release: {', '.join(different)} differ. One charge pays for one "
                "draw for one question. Nothing was drawn. Repeat the first call as it was, or release without resume."
            )

    def reserved_event(self) -> Event | None:
        """The reservation under this entry, if it stands in the ledger."""
        assert self.ledger is not None
        events = self.ledger.events()
        return next((event for event in events if event.entry == self.entry and event.kind == Kind.RESERVED), None)

    def check_open(self) -> None:
        """Before a draw is made under an entry that is resumed: nothing has left under it."""
        if self.ledger is not None and self.ledger.certificate_digest(self.entry) is not None:
            raise LedgerError(
                f"The entry {self.entry!r} is settled: its release has left, and one charge pays for one release. Nothing "
                "was drawn. Look for the file it was written to, or release without resume, which is charged anew."
            )

    def settle(self, reservation: Reservation | None, certificate: Certificate) -> None:
        """Once: an entry that is resumed may be settled already, with the certificate that was found."""
        digest = certificate.digest
        if self.ledger is None or reservation is None:
            return
        if not self.resumed or self.ledger.certificate_digest(self.entry) != digest:
            self.ledger.settle(reservation, digest)


def in_memory(payment: Payment, draw: Draw) -> Drawn:
    """Reserve, draw, settle: the draw lives as long as this program."""
    if payment.resumed:
        payment.check_open()
    reservation = payment.charge(may_be_new=not payment.resumed)
    try:
        certificate, diagnostics = draw(reservation)
        payment.settle(reservation, certificate)
    except BaseException as error:
        if reservation is not None:
            error.add_note(
                f"The ledger was charged under the entry {reservation.entry}, and nothing has left. The same call with "
                f"resume={reservation.entry!r} draws without a second charge."
            )
        raise
    return certificate, diagnostics


def on_disk(payment: Payment, draw: Draw, target: Path, *, room: int, how: str) -> Drawn:
    """Claim the place, reserve, draw, write, settle, publish; or, resumed, whatever of this is still to be done."""
    check_writable(target, overwrite=True)
    how = how.replace("ENTRY", payment.entry) if how else f"the same call with resume={payment.entry!r}"
    with (
        closing(Claim.take(target, payment.entry, how=how, resume=payment.resumed)) as claim,
        _kept(claim, payment, how) as progress,
    ):
        found, there = written(claim) if payment.resumed else (None, False)
        if found is None:
            if os.path.lexists(target):
                raise exists_already(target)
            if payment.resumed:
                payment.check_open()
            claim.hold(room)
        new = not payment.resumed or (claim.taken_up and found is None)
        reservation = payment.charge(may_be_new=new, draws=found is None)
        progress.append("charged")
        certificate, diagnostics = (found, {}) if found is not None else draw(reservation)
        if found is None:
            try:
                claim.write(certificate.to_json())
            except OSError as error:  # although room was held; the draw leaves with the error, so it is settled first
                payment.settle(reservation, certificate)
                claim.give_up()
                raise Unfinished(
                    f"The release could not be written to {target}: {error.strerror}. It was paid for, so it is handed over "
                    "here instead: keep the certificate, it exists nowhere else.",
                    entry=claim.entry,
                    certificate=certificate,
                ) from error
        payment.settle(reservation, certificate)
        claim.publish(there=there)
    return certificate, diagnostics


def written(claim: Claim) -> tuple[Certificate | None, bool]:
    """Return the certificate an interrupted release left, whole, under its name or as a draft; and whether it has its name.

    A file that cannot be read is no reason to draw again: the draw that was paid for may be in it.
    """
    for path in (claim.target, claim.draft):
        try:
            certificate = read_certificate(path)
        except (CertificateRejected, WrongCall) as error:  # not there, or torn: nothing of it has left
            if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError):
                raise CannotWrite(
                    f"{path} cannot be read ({error.__cause__.strerror}), and it may hold the draw that was paid for. Nothing "
                    "was drawn again. Make the file readable, then give the same command."
                ) from error
            continue
        if certificate.ledger is not None and certificate.ledger.entry == claim.entry:
            return certificate, path == claim.target
    return None, False


@contextmanager
def _kept(claim: Claim, payment: Payment, how: str) -> Iterator[list[str]]:
    """Whatever goes wrong: before the charge leave nothing behind, after it everything that finishing needs."""
    progress: list[str] = []
    try:
        yield progress
    except Unfinished:
        raise
    except BaseException as error:
        if not progress and not _perhaps_charged(payment):
            if not claim.taken_up:
                claim.give_up()
            raise
        if isinstance(error, Exception) and progress:
            raise Unfinished(
                f"The ledger was charged for this release, but it is not finished: {in_words(error)} "
                f"Nothing has left unpaid and nothing is lost. Finish it, without a second charge, with: {how}",
                entry=claim.entry,
                certificate=None,
            ) from error
        error.add_note(
            f"The ledger was or may have been charged. Finish this release, without a second charge, with: {how}"
        )
        raise


def _perhaps_charged(payment: Payment) -> bool:
    """Whether the entry stands in the ledger, or nobody knows: a connection can break while a spend is written."""
    if payment.ledger is None or payment.resumed:
        return False
    try:
        return payment.reserved_event() is not None
    except OnedrawError:
        return True


def in_words(error: Exception) -> str:
    """What happened, in a sentence; of errors that are not this library's only the kind, for they may quote a record."""
    if isinstance(error, OnedrawError):
        return f"{str(error).partition('. ')[0].rstrip('.')}."
    return f"{error.strerror}." if isinstance(error, OSError) else f"{type(error).__name__}."
