"""The one door: claim the place, reserve, draw, write, settle, publish.

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
import platform
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.data import Measure, Records, Schema
from onedraw.data.local import Local
from onedraw.errors import CountMismatch, ExactnessRefused, PromiseRefused, WrongCall
from onedraw.ledger import Ledger, Reservation
from onedraw.models import BetaTarget, ColumnQuantiles, ConjugateModel
from onedraw.models.row_model import RowModel
from onedraw.models.tables.scores import ModelChoice
from onedraw.models.tables.table import Table
from onedraw.plain_text import acting, texts_in
from onedraw.plans import Plan
from onedraw.privacy import (
    AsRun,
    Assumed,
    Assumption,
    Estimated,
    Exact,
    Exactness,
    LastIterate,
    Promise,
    Provenance,
    WithinTV,
    certify,
    with_total_variation,
)
from onedraw.samplers import OPERATING_SYSTEM, SEEDED

from .certificate import (
    AssumptionStatement,
    Certificate,
    DataStatement,
    DrawStatement,
    EngineStatement,
    LedgerEntry,
    MeasureStatement,
    MechanismStatement,
    PromiseStatement,
    round_up,
    write_sentence,
)
from .lattice import snap, spacing_for
from .passes import check_passes
from .payment import Drawn, Payment, in_memory, on_disk
from .released import Release

ACCEPTABLE = ("estimated", "assumed")

LARGEST_VALUE = 1e200
"""Released numbers are cut here, so that every lattice holds them: no prior gives such a number a chance."""

COUNTED = ConjugateModel | Table | ColumnQuantiles | ModelChoice
"""Models whose records are counted and added up without compiled code."""

LONGEST_NUMBER = len(repr(-sys.float_info.max))

INTEGER_SUMS = "float64; records summed exactly, as integers on a public lattice; draw rounded to the lattice below"
FLOATING_SUMS = "float64 throughout, also in sums over records; draw rounded to the lattice below"
REAL_SUMS = (
    "arithmetic is real: a chain adds up floating-point numbers, and their rounding is far below the noise of the draw"
)


def promise_of(plan: Plan, exactness: Exactness, *, accept: Collection[str] | str = ()) -> Promise:
    """The promise of what will really run: the plan's theorem combined with the sampler's exactness.

    | exactness | promise |
    | --- | --- |
    | Exact | the theorem's |
    | WithinTV(γ) | (ε, δ + (1+e^ε)·γ·draws), never pure |
    | LastIterate, AsRun | its own |
    | Estimated(γ) | as within γ, under the assumption that the estimate is right, only if ``accept`` names it |
    | Assumed | the theorem's, under the assumption that the draw is exact, only if ``accept`` names it |

    Refused unless it implies the plan's budget.
    """
    accepted = accepted_words(accept)
    promise = plan.guarantee.promise
    if isinstance(exactness, Estimated | Assumed) and exactness.tag not in accepted:
        raise ExactnessRefused(
            f"This sampler's draw is not proven to follow the law of the theorem: {exactness.sentence}. "
            f'Nothing was drawn. Use a proven sampler, or take the risk by name with accept="{exactness.tag}".'
        )
    match exactness:
        case Exact() | Assumed():
            pass
        case LastIterate(promise=own) | AsRun(promise=own):
            promise = own
        case WithinTV(gamma=gamma) | Estimated(gamma=gamma):
            if not plan.budget.total_variation():
                raise ExactnessRefused(
                    f"The budget is {plan.budget}, but the sampler is only within total variation {gamma:.3g} of the law "
                    "its theorem is about, and only a δ can pay for that. Use an exact or last-iterate sampler, or a "
                    f"budget ApproxDP(epsilon, delta) with δ above (1 + e^ε)·{gamma * plan.draws:.3g}, and gamma= that much."
                )
            promise = with_total_variation(promise, gamma * plan.draws, epsilon=plan.budget.number)
        case _:
            raise ExactnessRefused(f"The exactness {exactness!r} is unknown, so no promise can rest on it.")
    if not promise.implies(plan.budget):
        raise PromiseRefused(
            f"The plan and this sampler together promise {promise}, which does not imply the budget {plan.budget}. "
            "Calibrate again with a larger gamma= reserve, or use a more exact sampler."
        )
    return promise


def accepted_words(accept: Collection[str] | str) -> frozenset[str]:
    words = frozenset([accept] if isinstance(accept, str) else accept)
    if unknown := words - set(ACCEPTABLE):
        raise WrongCall(
            f"accept takes {' and '.join(map(repr, ACCEPTABLE))}, got {', '.join(map(repr, sorted(unknown)))}."
        )
    return words


def release(
    plan: Plan, data: Any, *, sampler: Any = None, ledger: Ledger | None = None, dataset: str | None = None,
    accept: Collection[str] | str = (), lattice: float | None = None, random_state: int | None = None,
    part: str | None = None, label: str = "", notes: tuple[Assumption, ...] = (),
    out: str | os.PathLike[str] | None = None, resume: str | None = None, how_to_resume: str = "",
) -> Release:  # fmt: skip
    """Draw once (or ``plan.draws`` times) from the calibrated posterior and let the result out with a certificate.

    **Guarantee.** The returned draw has the promise on its certificate, which implies ``plan.budget``; the ledger
    was charged with it before ``data`` was read; nothing else in the certificate depends on ``data``. With ``out``
    the certificate is on disk before the charge is settled, and stands there, whole, when this returns.

    | situation | what happens |
    | --- | --- |
    | ``data`` has another n than the plan | `CountMismatch`, nothing spent |
    | the budget left is too small | `BudgetSpent`, nothing drawn |
    | ``random_state`` given | charged like any other, marked "not private" |
    | ``ledger=None`` | allowed from Python only; the first line says so |
    | ``notes`` given | they stand among the assumptions; those that are assumed also in the first line |
    | ``out`` exists, is claimed by another release, or has no space | `CannotWrite`, nothing spent |
    | a crash after the charge | the spend stands, nothing left; the same call with ``resume=entry`` finishes it |
    | ``resume`` of another plan, promise, dataset, part, label or seed | `LedgerError`, nothing drawn |
    | ``resume`` of an entry that is settled | the certificate that left, if it is at ``out``; otherwise `LedgerError` |

    ``how_to_resume`` stands beside an unfinished ``out`` for people, with ENTRY in place of the entry.
    """
    from onedraw import samplers

    accepted = accepted_words(accept)
    if sampler is None:
        sampler, why = samplers.default_sampler(plan, accept=accepted)
    else:
        why = "named by the caller"
    samplers.check_sampler(plan, sampler)
    exactness = sampler.exactness(plan)
    promise = promise_of(plan, exactness, accept=accept)
    spacing = spacing_for(plan.model.prior_scale, lattice)
    plan.model.check(data)
    check_count(plan, data)
    check_passes(plan, sampler, data)
    if isinstance(data, Records):
        check_unit(plan, data.schema)
        check_file(plan, data)
    words = _Words(
        plan,
        sampler.to_dict(),
        why,
        exactness,
        promise,
        spacing,
        seeded=random_state is not None,
        data=describe(plan, data, notes),
    )
    opinion = certify(promise, epsilon=words.epsilon, delta=words.delta)
    randomness = source_of_randomness(sampler, random_state)

    def draw(reservation: Reservation | None) -> Drawn:
        target = plan.target(plan.model.summarise(data))
        sample = sampler.run(target, randomness, size=plan.draws)
        draws = published(target, sample.draws, plan, spacing)
        written = words.certificate(draws, sample.stages, opinion=opinion, reservation=reservation)
        return written, sample.diagnostics

    payment = payment_for(ledger, dataset, data, words, label=label, part=part, resume=resume)
    room = words.most_bytes(opinion, payment)  # a certificate that cannot be written fails here, before the charge
    if out is None:
        return Release(*in_memory(payment, draw))
    return Release(*on_disk(payment, draw, Path(out), room=room, how=how_to_resume))


def published(target: Any, draws: NDArray[np.float64], plan: Plan, spacing: float) -> NDArray[np.float64]:
    """Draws as they leave: in the model's own units, on the lattice, a sampled variance not below its floor."""
    model = plan.model
    if isinstance(target, BetaTarget):  # drawn from in unconstrained coordinates
        draws = np.clip(model.constrain(draws), -LARGEST_VALUE, LARGEST_VALUE)
    values = snap(draws, spacing).reshape(plan.draws, -1)
    likelihood: Any = getattr(model, "likelihood", None)
    if getattr(likelihood, "samples_variance", False) and model.parameter_names[-1] == "variance":
        # rounding to nearest could carry a variance below the floor that the sensitivity rests on
        values[:, -1] = np.maximum(values[:, -1], math.ceil(Fraction(likelihood.floor) / Fraction(spacing)) * spacing)
    return values


def source_of_randomness(sampler: Any, random_state: int | None) -> Any:
    """Fresh entropy of the kind the sampler runs on: a NumPy generator or a JAX key, ChaCha20 both."""
    from onedraw import samplers

    if sampler.randomness == "jax":
        return samplers.secure_key() if random_state is None else samplers.seeded_key(random_state)
    return samplers.secure_generator() if random_state is None else samplers.seeded_generator(random_state)


def check_count(plan: Plan, data: Any) -> None:
    found = plan.model.count(data)
    if found != plan.n:
        raise CountMismatch(
            f"The plan was calibrated for n = {plan.n:,} records, the data have {found:,}. n is public and part of the "
            "promise; a plan for another n promises something else. Calibrate again with the right n. Nothing was spent.",
            expected=plan.n,
            found=found,
        )


def check_unit(plan: Plan, schema: Schema) -> None:
    """The records a person may have must be the same in the schema that enforces it and in the plan that pays for it."""
    enforced, planned = schema.records_per_person, plan.guarantee.unit.records_per_person
    if schema.person is not None and enforced != planned:
        raise WrongCall(
            f"The schema lets one person have up to {enforced} records, the plan pays for {planned}. The promise would be "
            f"about another unit than the data have. Calibrate with records_per_person={enforced}."
        )


def check_file(plan: Plan, data: Records) -> None:
    """Notice a damaged file before the charge, of a short one; in a long one the draw meets it, and can be resumed."""
    if data.target is None or not isinstance(plan.model, COUNTED):
        return data.check_whole()
    data.check_whole([data.target, *getattr(plan.model, "by", ())])


@cache
def _software() -> Mapping[str, str]:
    """Looked up once: parsing what is installed takes longer than summing a million records."""
    return {name: version(name) for name in ("onedraw", "numpy", "scipy")} | {"python": platform.python_version()}


def describe(plan: Plan, data: Any, notes: tuple[Assumption, ...] = ()) -> DataStatement:
    written = [AssumptionStatement(statement=note.statement, provenance=note.provenance.value) for note in notes]
    if not isinstance(data, Records):
        return DataStatement(notes=written, measure=measure_of(data), engine=engine_of(plan, data))
    return DataStatement(
        target=data.target,
        schema_digest=data.schema.digest,
        inferred_from=data.schema.inferred_from,
        person=data.schema.person,
        notes=written,
        declared=data.schema.to_dict() if isinstance(plan.model, RowModel) else None,
        measure=measure_of(data),
        engine=engine_of(plan, data),
    )


def engine_of(plan: Plan, data: Any) -> EngineStatement | None:
    """Public: who added up, in how many parts by n and cores, on which device, and a digest of the arithmetic on public numbers."""
    known = data.engine.described(data) if isinstance(data, Records) else None
    if known is None and isinstance(plan.model, COUNTED):
        return None
    from onedraw.models.compute import computed_on  # loads JAX, which a count on one machine does without
    from onedraw.models.sums.exact_sums import arithmetic_digest

    if known is None:
        return EngineStatement(name=Local().name, version=_software()["onedraw"], parts=1, **computed_on())
    return EngineStatement(**known, digest=arithmetic_digest(), **computed_on())


def measure_of(data: Any) -> MeasureStatement | None:
    """What the records, or the responses of a pair (X, y), say they are measured in."""
    holder = data[1] if isinstance(data, tuple) and len(data) == 2 else data
    measure = getattr(holder, "measure", None)
    return MeasureStatement(centre=measure.centre, unit=measure.unit) if isinstance(measure, Measure) else None


def payment_for(
    ledger: Ledger | None, dataset: str | None, data: Any, words: _Words, *, label: str, part: str | None, resume: str | None
) -> Payment:  # fmt: skip
    """What is to be charged, and under which entry: to the name the caller gave the dataset; without a ledger, to none."""
    if ledger is None:
        if resume is not None:
            raise WrongCall("resume= names an entry of a ledger, but no ledger was given. Pass ledger=… as before.")
        return Payment()
    name = dataset or (data.schema.dataset if isinstance(data, Records) else None)
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
    check_account(ledger, name, words.plan, part=part)
    promise, gamma = spend_of(words.plan, words.exactness, words.promise)
    spend = {
        "dataset": ledger.account(name).dataset,
        "promise": promise,
        "gamma": gamma,
        "part": part,
        "seeded": words.seeded,
        "label": label,
        "plan_digest": words.plan.digest,
    }
    return Payment(ledger, spend) if resume is None else Payment(ledger, spend, resume, resumed=True)


def spend_of(plan: Plan, exactness: Exactness, promise: Promise) -> tuple[Promise, float]:
    """What is booked for a release: its promise, or the exact draw's and how far the sampler may be from it."""
    gamma = exactness.gamma * plan.draws if isinstance(exactness, WithinTV | Estimated) else 0.0
    return (plan.guarantee.promise if gamma else promise), gamma


def check_account(ledger: Ledger, name: str, plan: Plan, *, part: str | None) -> None:
    """The books and the plan must speak of the same person, and of the same part of the dataset."""
    account = ledger.account(name)
    size = (account.sizes or {}).get(part) if part is not None else None
    if size is not None and size != plan.n:
        raise CountMismatch(
            f"The part {part!r} of {name!r} has {size:,} records in the ledger, the plan was made for n = {plan.n:,}. "
            "The size of a part is public and fixed. Calibrate for the part's n.",
            expected=size,
            found=plan.n,
        )
    booked, planned = account.unit.records_per_person, plan.guarantee.unit.records_per_person
    if booked != planned:
        raise WrongCall(
            f"In the ledger the unit of {name!r} is a person with up to {booked} record(s), in the plan one with up to "
            f"{planned}. Promises about different units do not add up. Calibrate with records_per_person={booked}, or "
            "open the dataset's budget for the plan's unit."
        )


@dataclass(frozen=True)
class _Words:
    """Everything the certificate will say, fixed before the records are read."""

    plan: Plan
    sampler: dict[str, Any]
    sampler_choice: str
    exactness: Exactness
    promise: Promise
    spacing: float
    seeded: bool
    data: DataStatement
    prepared_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def __post_init__(self) -> None:
        """Whatever is declared can be shown: found now, not when a paid draw is to be read."""
        for text in texts_in(
            [self.plan.to_dict(), self.sampler, self.sampler_choice, self.data.model_dump(mode="json")]
        ):
            if found := acting(text):
                raise WrongCall(
                    f"{text!r} would stand in the certificate, but {', '.join(map(ascii, found))} in it would act on a "
                    "terminal or a report instead of being shown. Use printable characters in names, labels and notes."
                )

    @property
    def delta(self) -> float:
        return self.plan.budget.quoted_delta

    @property
    def epsilon(self) -> float:
        return round_up(self.promise.epsilon(self.delta))

    def assumptions(self) -> list[Assumption]:
        guarantee = self.plan.guarantee
        extra = []
        if isinstance(self.exactness, Estimated | Assumed):
            extra.append(Assumption(self.exactness.sentence, Provenance.ASSUMED))
        if not isinstance(self.exactness, Exact) or self.exactness.numeric:  # anything but whole numbers
            extra.append(
                Assumption(f"variates are real numbers, rounded to lattice {self.spacing!r}", Provenance.ASSUMED)
            )
        if not self.plan.sums_exactly:
            extra.append(Assumption(REAL_SUMS, Provenance.ASSUMED))
        if self.data.inferred_from:
            extra.append(
                Assumption(f"schema inferred from {self.data.inferred_from}: must be public", Provenance.DECLARED)
            )
        if self.data.person:
            extra.append(
                Assumption(
                    f"records beyond a person's limit (column {self.data.person!r}) count as missing; neighbours replace a "
                    "person by somebody who is not in the file already",
                    Provenance.ENFORCED,
                )
            )
        if (measure := self.data.measure) is not None:
            extra.append(
                Assumption(
                    f"responses are measured from {measure.centre!r} in units of {measure.unit!r}, public numbers",
                    Provenance.ENFORCED,
                )
            )
        noted = [Assumption(note.statement, Provenance(note.provenance)) for note in self.data.notes]
        return [*guarantee.assumptions, *extra, *noted]

    def most_bytes(self, opinion: str, payment: Payment) -> int:
        """A public upper size of the certificate's file: all its words, and the longest numbers."""
        zeros = np.zeros((self.plan.draws, len(self.plan.model.parameter_names)))
        sizes = self.plan.stage_sizes
        stages = {name: [0.0] * size for name, size in sizes.items()} or None
        text = self.certificate(zeros, stages, opinion=opinion, reservation=payment.to_be()).to_json()
        return len(text.encode("utf-8")) + LONGEST_NUMBER * (zeros.size + sum(sizes.values()))

    def certificate(
        self, draws: NDArray[np.float64], stages: dict[str, list[float]] | None = None, *, opinion: str,
        reservation: Reservation | None,
    ) -> Certificate:  # fmt: skip
        plan, guarantee = self.plan, self.plan.guarantee
        return Certificate(
            sentence=write_sentence(
                budget=plan.budget, promise=self.promise, epsilon=self.epsilon, delta=self.delta, exactness=self.exactness, n=plan.n,
                draws=plan.draws, noun=plan.mechanism.noun, mechanism=plan.heading, proven=plan.mechanism.proven, unit=guarantee.unit.records_per_person,
                seeded=self.seeded, recorded=reservation is not None,
                warnings=[note.statement for note in self.data.notes if note.provenance == Provenance.ASSUMED],
            ),
            promise=PromiseStatement(
                epsilon=self.epsilon, delta=self.delta, native=self.promise.to_dict(), budget=plan.budget.to_dict()
            ),
            neighbours=guarantee.neighbours.value,
            unit=guarantee.unit.sentence,
            n=plan.n,
            mechanism=MechanismStatement(
                name=type(plan.mechanism).__name__, theorem=guarantee.theorem, parameters=dict(plan.parameters)
            ),
            plan=plan.to_dict(),
            plan_digest=plan.digest,
            sampler=self.sampler,
            sampler_choice=self.sampler_choice,
            exactness=self.exactness.to_dict(),
            exactness_cost=self.exactness.sentence,
            assumptions=[AssumptionStatement(statement=a.statement, provenance=a.provenance.value) for a in self.assumptions()],
            randomness=SEEDED if self.seeded else OPERATING_SYSTEM,
            numeric_model=INTEGER_SUMS if plan.sums_exactly else FLOATING_SUMS,
            lattice=self.spacing,
            second_opinion=opinion,
            data=self.data,
            prepared_at=self.prepared_at,
            software=dict(_software()),
            ledger=None if reservation is None else LedgerEntry(
                dataset=reservation.dataset, entry=reservation.entry, head=reservation.head
            ),
            draw=DrawStatement(
                quantity=plan.model.quantity, names=list(plan.model.parameter_names), values=draws.tolist(),
                stages=stages,
            ),
        )  # fmt: skip
