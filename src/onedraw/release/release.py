"""The one way out: claim the place, reserve, draw, write, settle, publish.

The order is the safety. Everything public is decided first (the sampler's exactness, the promise of what will run,
the lattice, the words of the certificate, room for the file); then the ledger is charged; only then are the records
read. The certificate is on disk before the charge is settled, and gets its name afterwards. So a crash can neither
hide a spend nor lose what was paid for: an entry that is not settled has let nothing out, and ``resume`` finishes it.
What the sampler noticed on the way (timings, tries, acceptance rates) depends on the records: it stays on
`Release.diagnostics`, for the curator alone, and is never written out.

**Why a second draw under one charge is allowed, and when.** A draw leaves only after its entry was settled, with its
digest, and an entry is settled once: under whatever interruptions, at most one draw of an entry is let out, and it is
a fresh one. A certificate that is whole on disk is never drawn again, for to choose among draws is to publish more
than one of them.
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Collection
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from onedraw.data import Records
from onedraw.errors import CountMismatch, PromiseRefused, WrongCall
from onedraw.ledger import Account, Ledger, Reservation
from onedraw.ledger.events import GENESIS
from onedraw.models import BetaTarget, ConvexModel, Table
from onedraw.models.compute import arithmetic
from onedraw.models.row_model import RowModel
from onedraw.plain_text import round_up
from onedraw.plans import Plan, digest_of
from onedraw.privacy import Assumption, certify
from onedraw.samplers.lattice import on_lattice, snap, spacing_for
from onedraw.samplers.padding import PADDED, Padding
from onedraw.samplers.sampler import Sample, Sampler

from .certificate import Certificate, DrawStatement, LedgerEntry
from .fingerprint import dataset_name
from .payment import Drawn, Payment, in_memory, on_disk
from .released import Release
from .statement import (
    COUNTED,
    Statement,
    accepted_words,
    check_unit,
    describe,
    promise_of,
    reads_here,
    spend_of,
    stated_delta,
)
from .timing import NOT_COVERED, check_payable, padding_of, timing_statement

LARGEST_VALUE = 1e200
"""Released numbers are cut here, so that every lattice holds them: no prior gives such a number a chance."""


def release(
    plan: Plan, data: Any, *, sampler: Sampler | None = None, ledger: Ledger | None = None, dataset: str | None = None,
    accept: Collection[str] | str = (), lattice: float | None = None, random_state: int | None = None,
    timing: str | None = None, part: str | None = None, label: str = "", notes: tuple[Assumption, ...] = (),
    out: str | os.PathLike[str] | None = None, resume: str | None = None, how_to_resume: str = "", by: str | None = None,
    purpose: str | None = None,
) -> Release:  # fmt: skip
    """Draw once (or ``plan.draws`` times) from the calibrated posterior and let the result out with a certificate.

    **Guarantee.** The returned draw has the promise on its certificate, which implies ``plan.budget``; the ledger
    was charged with it before ``data`` was read; nothing else in the certificate depends on ``data``. With ``out``
    the certificate is on disk before the charge is settled, and stands there, whole, when this returns.

    | situation | what happens |
    | --- | --- |
    | ``data`` has another n than the plan | `CountMismatch`, nothing spent |
    | the budget left is too small | `BudgetSpent`, nothing drawn |
    | ``lattice`` finer than double precision can answer for | `WrongCall`, nothing spent |
    | ``random_state`` given | charged like any other, marked "not private" |
    | ``ledger=None`` | allowed from Python only; the first line says so |
    | ``timing="padded"`` | the same draw after a public amount of work, which the certificate's second line covers; refused where a sampler cannot |
    | ``notes`` given | they stand among the assumptions; those that are assumed also in the first line |
    | ``out`` exists, is claimed by another release, or has no space | `CannotWrite`, nothing spent |
    | a crash after the charge | the spend stands, nothing left; the same call with ``resume=entry`` finishes it |
    | ``resume`` of another question (`fingerprint_of`), promise, dataset, part, label, timing or seed | `LedgerError`, nothing drawn |
    | ``resume`` of an entry that is settled | the certificate that left, if it is at ``out``; otherwise `LedgerError` |

    ``how_to_resume`` stands beside an unfinished ``out`` for people, with ENTRY in place of the entry. The ledger keeps ``by``,
    who asks for the release, and its ``purpose``.
    """
    from onedraw import samplers

    why, accepted = "named by the caller", accepted_words(accept)
    if sampler is None:
        sampler, why = samplers.default_sampler(plan, accept=accepted)
        sampler.check_installed()
    else:
        samplers.check_sampler(plan, sampler)
    exactness = sampler.exactness(plan)
    promise = promise_of(plan, exactness, accept=accept)
    padding = None if timing is None else padding_of(plan, sampler, timing)
    spacing = spacing_for(plan, sampler, lattice)
    check_data(plan, sampler, data, padding)
    epsilon = round_up(promise.epsilon(plan.budget.quoted_delta))
    named = dataset_name(dataset, data.schema.dataset if isinstance(data, Records) else None)
    in_numpy = sampler.adds_in_numpy(plan) and reads_here(data)
    words = Statement(
        plan, sampler, why, exactness, promise, spacing, seeded=random_state is not None, epsilon=epsilon,
        data=describe(plan, data, notes, named, in_numpy=in_numpy), prepared_at=datetime.now(UTC).isoformat(timespec="seconds"),
        timing=NOT_COVERED if padding is None else timing_statement(plan, padding, epsilon=epsilon),
    )  # fmt: skip
    opinion = certify(promise, epsilon=words.epsilon, delta=plan.budget.quoted_delta)
    randomness = source_of_randomness(sampler, random_state)

    payment = payment_for(ledger, words, label=label, part=part, resume=resume, by=by, purpose=purpose)
    entry = None
    if payment.ledger is not None:
        entry = LedgerEntry(dataset=payment.spend["dataset"], entry=payment.entry, head=GENESIS)
    prepared, room = words.prepared(opinion, entry)  # what cannot be written fails before the charge

    def draw(reservation: Reservation | None) -> Drawn:
        with arithmetic(in_numpy=in_numpy):
            target = plan.target(plan.model.summarise(data))
            if padding is None:
                sample = sampler.run(target, randomness, size=plan.draws)
            else:
                sample = sampler.run_padded(target, randomness, padding, size=plan.draws)
        return published(target, sample, plan, prepared, reservation), sample.diagnostics

    paid = in_memory(payment, draw) if out is None else on_disk(payment, draw, Path(out), room=room, how=how_to_resume)
    made = Release(*paid)
    vars(made)["plan"] = plan  # in place of one derived again from the certificate
    return made


def published(
    target: Any, sample: Sample, plan: Plan, prepared: Certificate, reservation: Reservation | None
) -> Certificate:
    """Draws as they leave: in the model's own units, on the lattice, a sampled variance not below its floor; in the certificate
    that was prepared for them, under the entry that paid for them."""
    model, spacing, entry = plan.model, prepared.lattice, prepared.ledger
    if isinstance(target, BetaTarget):  # drawn from in unconstrained coordinates
        values = snap(np.clip(model.constrain(sample.draws), -LARGEST_VALUE, LARGEST_VALUE), spacing)
    else:
        values = on_lattice(sample, spacing)
    values = values.reshape(plan.draws, -1)
    if model.least_variance is not None:  # rounding to nearest could carry a variance below it
        least = math.ceil(Fraction(model.least_variance) / Fraction(spacing)) * spacing
        values[:, -1] = np.maximum(values[:, -1], least)
    if entry is not None and reservation is not None:
        entry = entry.model_copy(update={"head": reservation.head})
    draw = DrawStatement(**dict(prepared.draw) | {"values": values.tolist(), "stages": sample.stages})
    return prepared.model_copy(update={"draw": draw, "ledger": entry})


def source_of_randomness(sampler: Sampler, random_state: int | None) -> Any:
    """Fresh entropy of the kind the sampler runs on: a NumPy generator or a JAX key, ChaCha20 both."""
    from onedraw import samplers

    if sampler.randomness == "jax":
        return samplers.secure_key() if random_state is None else samplers.seeded_key(random_state)
    return samplers.secure_generator() if random_state is None else samplers.seeded_generator(random_state)


def payment_for(
    ledger: Ledger | None, words: Statement, *, label: str, part: str | None, resume: str | None, by: str | None, purpose: str | None
) -> Payment:  # fmt: skip
    """What is to be charged, and under which entry: to the name the caller gave the dataset; without a ledger, to none."""
    if ledger is None:
        if resume is not None:
            raise WrongCall("resume= names an entry of a ledger, but no ledger was given. Pass ledger=… as before.")
        return Payment(uuid.uuid4().hex)
    name = words.data.dataset
    if not name:
        raise WrongCall(
            "A ledger was given but no dataset name. The name is what a budget belongs to, and it is never derived from "
            "the file or its contents. Pass dataset=…, or write dataset: into the schema."
        )
    if not words.plan.mechanism.proven:
        raise PromiseRefused(
            f"{words.plan.heading} as published is not proven, so what it spends is not known and cannot be booked: the "
            "ledger would understate it. Use a proven rule, or release without a ledger, where the first line says both."
        )
    account = ledger.account(name)
    check_account(account, words.plan, part=part)
    promise, gamma = spend_of(words.plan, words.exactness, words.promise)
    timing = None if words.timing is None else words.timing.gamma
    if timing:
        check_payable(timing, account.budget)
    spend = {
        "dataset": account.dataset, "promise": promise, "gamma": gamma, "timing": timing,
        "delta": stated_delta(words.plan, promise, gamma), "part": part, "seeded": words.seeded, "label": label,
        "fingerprint": words.fingerprint, "by": by, "purpose": purpose,
    }  # fmt: skip
    entry, in_full = resume or uuid.uuid4().hex, digest_of(words.plan.to_dict())
    return Payment(entry, ledger, spend, resumed=resume is not None, plan_digest=in_full)


def check_account(account: Account, plan: Plan, *, part: str | None) -> None:
    """The ledger and the plan must speak of the same person, and of the same part of the dataset."""
    name = account.dataset
    size = (account.sizes or {}).get(part) if part is not None else None
    if size is not None and size != plan.n:
        raise CountMismatch(
            f"The part {part!r} of {name!r} has {size:,} records in the ledger, the plan was made for n = {plan.n:,}. "
            "The size of a part is public and fixed. Calibrate for the part's n.",
            expected=size,
            found=plan.n,
        )
    recorded, planned = account.unit.records_per_person, plan.guarantee.unit.records_per_person
    if recorded != planned:
        raise WrongCall(
            f"In the ledger the unit of {name!r} is a person with up to {recorded} record(s), in the plan one with up to "
            f"{planned}. Promises about different units do not add up. Calibrate with records_per_person={recorded}, or "
            "open the dataset's budget for the plan's unit."
        )


# ── before anything is spent, by public numbers alone ────────────────────────────────────────────────────────


MOST_HELD = 2**31
"""Bytes of encoded rows that a chain holds in memory, with a copy or two beside; of a source that is not in memory already."""

MOST_READ = 2**46
"""Bytes that all passes of one release read: some hours on one machine."""


def check_data(plan: Plan, sampler: Sampler, data: Any, padding: Padding | None) -> None:
    """The records are as many as planned, of the planned unit, in a file that is whole, and not read too often."""
    plan.model.check(data)
    found = plan.model.count(data)
    if found != plan.n:
        note = data.count_note if isinstance(data, Records) else ""
        raise CountMismatch(
            f"The plan was calibrated for n = {plan.n:,} records, the data have {found:,}. n is public and part of the "
            "promise; a plan for another n promises something else. Calibrate again with the right n. Nothing was spent."
            f"{' ' if note else ''}{note}",
            expected=plan.n,
            found=found,
        )
    check_passes(plan, sampler, data, padding)
    if plan.mechanism.by_person and not (isinstance(data, Records) and data.schema.person is not None):
        raise WrongCall(
            "The plan adds up scores by person for its standard errors, and these data do not say whose a record is. Read them "
            "with a schema that has person: and max_records:, or plan with persons=False. Nothing was spent."
        )
    if isinstance(data, Records):
        check_unit(plan, data.schema)
        # a damaged file is noticed now, if it is short; in a long one the draw meets it, and can be resumed
        whole = data.target is None or not isinstance(plan.model, COUNTED)
        by = plan.model.by if isinstance(plan.model, Table) else ()
        data.check_whole(None if whole else [str(data.target), *by])


def check_passes(plan: Plan, sampler: Sampler, data: Any, padding: Padding | None = None) -> None:
    """How often a draw reads the records, and how much: refused where it would be too often. n, the width of a row and the
    steps are public. Sums of whole numbers are made where the records are; a chain on a posterior holds the rows in memory."""
    passes = sampler.passes(plan) if padding is None else padding.passes
    row = 8 * (plan.model.features.width + 1 if isinstance(plan.model, RowModel) else 1)
    engine = data.engine if isinstance(data, Records) else None
    chain = not plan.mechanism.sums_exactly(plan) and not plan.closed_form
    why = ""
    if engine is not None and chain and engine.most_passes is not None:
        why = f"needs all records in the memory of one machine, and on {engine.name} they stay where they are"
    elif engine is not None and chain and plan.n * row > MOST_HELD:
        held = f"{plan.n:,} encoded rows take {_gib(plan.n * row)}"
        why = f"needs all records in memory, and {held}, more than the {_gib(MOST_HELD)} that are held there"
    elif engine is not None and engine.most_passes is not None and passes > engine.most_passes:
        slow = f"on {engine.name}, where a pass takes a third of a second or more"
        why = f"reads all records up to {passes:,} times; {slow}, not more than {engine.most_passes:,} are made"
    elif passes > 1 and passes * plan.n * row > MOST_READ:
        read = f"{_gib(passes * plan.n * row)} in all and more than the {_gib(MOST_READ)}"
        why = f"reads all records up to {passes:,} times, {read} that are read for one release, some hours' work"
    if not why:
        return
    remedy = "Use fewer steps or fewer draws."
    if padding is not None and passes > sampler.passes(plan):  # idle ones, most of them
        remedy = f'Leave out timing="{PADDED}", or use NoisyGradient(), whose work is constant anyway.'
    elif isinstance(plan.model, ConvexModel) and plan.model.fit_loss is not None:
        remedy = 'Ask for a fit, which takes about 20 passes: mechanism="fit", or --mechanism fit.'
    elif plan.mechanism.needs_chain and not plan.mechanism.sums_exactly(plan):
        remedy = "Use Candidates(of=BetaDivergence()), which selects by sums and takes a few passes, or fewer steps."
    raise WrongCall(f"{plan.heading[:1].upper()}{plan.heading[1:]} {why}. Nothing was spent. {remedy}")


def _gib(size: float) -> str:
    return f"{size / 2**30:,.3g} GiB"
