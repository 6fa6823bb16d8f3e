"""Deriving a promise again from a certificate, without the data.

`verify` rebuilds the plan from the certificate's own numbers (mechanism, model, n, draws and the calibrated
number), lets the theorem speak again, and compares every derived field with what is written. An edit after which
the stated promise is not implied by the numbers is refused. Whoever edits *all* numbers consistently writes another
consistent certificate: alone, the answer is therefore "consistent", never "authentic". With the ledger that was
charged, the digest stored at settlement catches those edits too, and what was reserved must be what is stated: whoever may
write into the ledger could settle a small spend with a large release's digest. What is said of running time has an answer of its
own: public work follows from the plan and is compared with it, that it was done does not.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np

from onedraw.data import Schema
from onedraw.ledger import Ledger
from onedraw.ledger.events import Kind
from onedraw.models.row_model import RowModel
from onedraw.plain_text import round_up
from onedraw.plans import Plan
from onedraw.privacy import Exactness, Promise
from onedraw.samplers import SEEDED
from onedraw.samplers.sampler import Sampler

from .certificate import UNPROVEN, Certificate, check_texts, differences, reject, rejecting
from .lattice import snap, spacing_for
from .released import Release
from .statement import Statement, check_unit, promise_of, spend_of
from .timing import check_timing

# Written by the program that released, not derived from the plan: an edit here changes no promise.
FREE_FIELDS = {"sampler_choice", "second_opinion", "prepared_at", "software", "ledger", "data"}


@dataclass(frozen=True)
class Verification:
    """``answer`` is "consistent" (the numbers imply the promise) or "authentic" (and the ledger holds this digest). ``timing`` says
    whether the statement about running time follows from the numbers."""

    answer: str
    sentence: str
    checks: tuple[str, ...]
    timing: str

    def __bool__(self) -> bool:
        return True  # a certificate that fails raises; there is no falsy verification


def verify(source: str | os.PathLike[str] | Certificate | Release, *, ledger: Ledger | None = None) -> Verification:
    """Re-derive the promise of a certificate, a release or its file; raise `CertificateRejected` if it does not hold."""
    if not isinstance(source, Release):
        source = Release(source) if isinstance(source, Certificate) else Release.load(source)
    certificate, plan = source.certificate, source.plan
    with rejecting("its numbers lead nowhere"):
        check_texts(certificate.model_dump(mode="json"))
        check_promise(certificate, plan)
        check_words(certificate, plan)
        check_draw(certificate, plan)
        check_schema(certificate, plan)
        timing = check_timing(certificate, plan)
    checks = [
        "the theorem it names gives this promise from its numbers",
        "the promise is no stronger than the theorem's, and keeps the budget",
        "every sentence and number that follows from others is as written",
        f"the released numbers are as many as planned, and rounded to multiples of {certificate.lattice:.3g} as stated",
    ]
    if ledger is None:
        return Verification("consistent", certificate.sentence, tuple(checks), timing)
    check_ledger(certificate, plan, ledger)
    checks.append("the ledger is unbroken, was charged for this promise and holds this certificate's fingerprint")
    return Verification("authentic", certificate.sentence, tuple(checks), timing)


def load(path: str | os.PathLike[str]) -> Release:
    """A release from its file, verified: numbers that do not imply its promise are a `CertificateRejected`."""
    found = Release.load(path)
    verify(found)
    return found


def check_promise(certificate: Certificate, plan: Plan) -> None:
    stated = certificate.promise
    native, budget = Promise.from_dict(stated.native), Promise.from_dict(stated.budget)
    exactness = Sampler.from_dict(certificate.sampler).exactness(plan)
    derived = promise_of(plan, exactness, accept=UNPROVEN)
    if exactness != Exactness.from_dict(certificate.exactness):
        raise reject(f"its sampler is {exactness.sentence}, not what it states")
    if budget != plan.budget:
        raise reject(f"it states the budget {budget}, its plan was made for {plan.budget}")
    if not derived.implies(native):
        raise reject(f"it states {native}, its numbers only give {derived}")
    if not native.implies(budget):
        raise reject(f"the stated {native} does not imply the budget {budget}")
    if not derived.epsilon(stated.delta) <= stated.epsilon:
        raise reject(f"it states ε = {stated.epsilon} at δ = {stated.delta}, its numbers give a larger ε")
    if not math.isclose(stated.epsilon, round_up(native.epsilon(stated.delta)), rel_tol=1e-9):
        raise reject(f"it states ε = {stated.epsilon} at δ = {stated.delta}, which is not what {native} gives")


def check_words(certificate: Certificate, plan: Plan) -> None:
    """Write the certificate again from its generating fields and compare everything that is derived."""
    words = Statement(
        plan, Sampler.from_dict(certificate.sampler), certificate.sampler_choice, Exactness.from_dict(certificate.exactness),
        Promise.from_dict(certificate.promise.native), certificate.lattice, seeded=certificate.randomness == SEEDED,
        data=certificate.data, epsilon=certificate.promise.epsilon, prepared_at=certificate.prepared_at,
        timing=certificate.timing,  # for `check_timing`
    )  # fmt: skip
    draw, opinion = certificate.draw, certificate.second_opinion
    again = words.certificate(draw.values, draw.stages, opinion=opinion, ledger=certificate.ledger)
    written, rebuilt = certificate.model_dump(mode="json"), again.model_dump(mode="json")
    for where in differences(written, rebuilt):
        if where.split(".")[0] not in FREE_FIELDS:
            raise reject(f"{where} is not what its plan gives")


def check_draw(certificate: Certificate, plan: Plan) -> None:
    """As many numbers as planned, on the lattice; in stages: every stage in its size, and the estimate follows from them."""
    draw, names = certificate.draw, plan.model.parameter_names
    if len(draw.values) != plan.draws or any(len(row) != len(names) for row in draw.values):
        raise reject(f"it should hold {plan.draws} draw(s) of {len(names)} parameter(s)")
    with rejecting("its lattice says more than its draw may"):
        spacing_for(plan, Sampler.from_dict(certificate.sampler), certificate.lattice)
    values = np.array(draw.values)
    if not (np.all(np.isfinite(values)) and np.all(snap(values, certificate.lattice) == values)):
        raise reject("its draw does not lie on its lattice")
    stages, sizes = draw.stages or {}, plan.mechanism.stage_sizes(plan)
    if {name: len(values) for name, values in stages.items()} != sizes:
        raise reject("the stages it holds are not those of its plan")
    if not sizes:
        return
    with rejecting("its estimate does not follow from its stages"):
        derived = snap(plan.mechanism.estimate(plan, stages), certificate.lattice).reshape(plan.draws, -1)
    if not np.allclose(draw.values, derived, rtol=1e-6, atol=2.0 * certificate.lattice):
        raise reject("its estimate is not what follows from its stages")


def check_schema(certificate: Certificate, plan: Plan) -> None:
    """The schema it carries, by which new records are read, is the one it names and the one its plan was made for."""
    data = certificate.data
    if data.declared is None:
        return
    with rejecting("its schema is not one"):
        schema = Schema.from_dict(data.declared)
    if next(differences(data.declared, schema.to_dict()), None) is not None or schema.digest != data.schema_digest:
        raise reject("its schema is not the one whose digest it states")
    if not isinstance(plan.model, RowModel):
        raise reject("it carries a schema, but its model has no columns to read by it")
    if (schema.person, schema.inferred_from) != (data.person, data.inferred_from):
        raise reject("what it says of persons, or of where its bounds come from, is not what its schema says")
    if data.target is not None:
        schema.column(data.target)
    with rejecting("its plan was not made for its schema"):
        plan.model.check_schema(schema, data.target)
        check_unit(plan, schema)


def check_ledger(certificate: Certificate, plan: Plan, ledger: Ledger) -> None:
    """The ledger holds this digest, under a reservation of exactly what is stated."""
    entry = certificate.ledger
    if entry is None:
        raise reject("it says it is not recorded in any ledger, so no ledger can confirm it")
    ledger.verify()
    if ledger.certificate_digest(entry.entry) != certificate.digest:
        raise reject(f"the ledger's entry {entry.entry} does not hold this certificate's digest")
    with rejecting("what was spent for it cannot be told"):
        native, exactness = Promise.from_dict(certificate.promise.native), Exactness.from_dict(certificate.exactness)
        promise, gamma = spend_of(plan, exactness, native)
    seeded, digest = certificate.randomness == SEEDED, certificate.plan_digest
    timing = None if certificate.timing is None else certificate.timing.gamma
    expected = {"promise": promise.to_dict(), "gamma": gamma, "timing": timing, "seeded": seeded, "plan": digest}
    reserved = next(event for event in ledger.events() if event.entry == entry.entry and event.kind == Kind.RESERVED)
    if (reserved.dataset, reserved.hash) != (entry.dataset, entry.head):
        raise reject(f"the ledger's entry {entry.entry} stands under another dataset or head than it states")
    for name, value in expected.items():
        if reserved.payload.get(name) != value:
            raise reject(f"the ledger's entry {entry.entry} was reserved with another {name} than it states")
    if ledger.account(entry.dataset).unit != plan.guarantee.unit:
        raise reject("the ledger protects another unit (records per person) than it states")
