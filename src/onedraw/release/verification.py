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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onedraw.data import Schema
from onedraw.errors import CertificateRejected
from onedraw.ledger import Event, Kind, Ledger
from onedraw.models.row_model import RowModel
from onedraw.plain_text import round_up
from onedraw.plans import Plan, digest_of
from onedraw.privacy import Exactness, Promise
from onedraw.samplers.choice import read_sampler
from onedraw.samplers.lattice import snap, spacing_for

from .certificate import PROSE, UNPROVEN, WORDING, Certificate, check_texts, differences, is_under, reject, rejecting
from .earlier import FirstCertificate, check_first
from .released import Release
from .statement import bounds_source, check_unit, dates_of, promise_of, rewrite, spend_of
from .timing import check_timing

UNCHECKED = {
    "draw.values": "what was drawn, within the form above",
    "draw.stages": "what each stage published",
    "seeded": "whether a fixed seed was used",
    "lattice": "which lattice the draw was rounded to",
    "data.notes": "what the caller states about the records",
    "data.person": "which column names persons",
    "data.inferred_from": "which public file the ranges come from",
    "data.private_bounds": "which release the bounds come from",
    "data.dates": "how dates were read",
    "data.engine": "where the records were read",
    "sampler_choice": "why this sampler was taken",
    "second_opinion": "what another accountant said",
    "prepared_at": "when it was prepared",
    "software": "which versions prepared it",
    "ledger": "which entry of a ledger paid for it",
}
"""Fields that no other field implies, each with what it states: the word of the person who released it. A ledger confirms that
they are as issued, not that they are true."""


DERIVED = [name for name in Certificate.model_fields if name != "format"]


@dataclass(frozen=True)
class Verification:
    """Answer about a certificate that holds; one that does not raises `CertificateRejected`.

    ``answer`` is "consistent" (the numbers imply the promise) or "authentic" (and the ledger holds this digest). ``sentence`` is
    derived from the numbers. ``timing`` says whether the statement about running time follows from the numbers. ``unchecked``
    names each field that was not checked, with what it states. ``certificate`` is the certificate in this version's words.
    """

    answer: str
    sentence: str
    checks: tuple[str, ...]
    timing: str
    unchecked: Mapping[str, str]
    remarks: tuple[str, ...]
    certificate: Certificate = field(repr=False)

    def __bool__(self) -> bool:
        return True  # a certificate that fails raises; there is no falsy verification


def verify(source: str | os.PathLike[str] | Certificate | Release, *, ledger: Ledger | None = None) -> Verification:
    """Re-derive the promise of a certificate, a release or its file; raise `CertificateRejected` if it does not hold."""
    if not isinstance(source, Release):
        source = Release(source) if isinstance(source, Certificate) else Release.load(source)
    certificate, plan = source.certificate, source.plan
    with rejecting("its numbers lead nowhere"):
        check_texts(certificate.model_dump(mode="json"))
        check_first(certificate)
        check_promise(certificate, plan)
        timing = check_timing(certificate, plan)
        derived = check_words(certificate, plan)
        check_draw(certificate, plan)
        check_schema(certificate, plan)
    ours = certificate.wording == WORDING
    checks = [
        "the theorem it names gives this promise from its numbers",
        "the promise is no stronger than the theorem's, and keeps the budget",
        f"every {'sentence and number' if ours else 'number'} that follows from others is as written",
        f"the released numbers are as many as planned, and rounded to multiples of {certificate.lattice:.3g} as stated",
    ]
    remarks = [] if ours else [ANOTHER_WORDING]
    answer = "consistent"
    if ledger is not None:
        remarks += check_ledger(certificate, plan, ledger)
        answer = "authentic"
        checks.append(
            "the ledger is unbroken, was charged for this question and promise, and holds this certificate's digest"
        )
    return Verification(
        answer, derived.sentence, tuple(checks), timing, unchecked_of(certificate), tuple(remarks), derived
    )


ANOTHER_WORDING = (
    "Its sentences are in another wording than this version's and were not compared. Rely on the sentence printed here, which "
    "follows from its numbers."
)


def unchecked_of(certificate: Certificate) -> dict[str, str]:
    """Return the fields of this certificate that nothing derives, with what they state."""
    names = dict(UNCHECKED)
    if certificate.data.declared is not None:  # which `check_schema` compares with them
        for name in ("person", "inferred_from", "private_bounds", "dates"):
            del names[f"data.{name}"]
    if isinstance(certificate, FirstCertificate):  # which has no fingerprint
        names |= {"data.target": "which column the question is about", "data.schema_digest": "which schema was used"}
        names |= {"data.measure": "in which units the response is measured"}
    if certificate.wording != WORDING:
        names |= dict.fromkeys(PROSE, "a sentence in another wording") | {
            "exactness_cost": "a sentence in another wording"
        }
    written = certificate.model_dump(mode="json")
    return {name: words for name, words in names.items() if _at(written, name) is not None}


def _at(document: Any, path: str) -> Any:
    for step in path.split("."):
        document = document.get(step) if isinstance(document, dict) else None
    return document


def load(path: str | os.PathLike[str]) -> Release:
    """A release from its file, verified: numbers that do not imply its promise are a `CertificateRejected`."""
    found = Release.load(path)
    verify(found)
    return found


def check_promise(certificate: Certificate, plan: Plan) -> None:
    stated = certificate.promise
    native, budget = Promise.from_dict(stated.native), Promise.from_dict(stated.budget)
    exactness = read_sampler(plan, certificate.sampler).exactness(plan)
    derived = promise_of(plan, exactness, accept=UNPROVEN)
    if any(compared(certificate, differences(certificate.exactness, exactness.to_dict(), "exactness"))):
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


def compared(certificate: Certificate, places: Iterable[str]) -> Iterator[str]:
    """Leave out the places that hold sentences, unless the certificate is in this version's wording."""
    return (where for where in places if certificate.wording == WORDING or not is_under(where, PROSE))


def check_words(certificate: Certificate, plan: Plan) -> Certificate:
    """Write the certificate again from its generating fields and compare everything that is derived; return what was written."""
    derived = rewrite(certificate, plan)
    again = certificate.model_copy(update={name: getattr(derived, name) for name in DERIVED})
    written, rebuilt = certificate.model_dump(mode="json"), again.model_dump(mode="json")
    for where in compared(certificate, differences(written, rebuilt)):
        if not is_under(where, ("software",)):
            raise reject(f"{where} is not what its plan gives")
    if certificate.mechanism.proven != plan.mechanism.proven:
        raise reject("whether its theorem is proven is not what its plan gives")
    entry = certificate.ledger
    if (
        entry is not None
        and not isinstance(certificate, FirstCertificate)
        and certificate.data.dataset != entry.dataset
    ):
        raise reject("its data set is not the one that its ledger entry was charged to")
    return derived


def check_draw(certificate: Certificate, plan: Plan) -> None:
    """As many numbers as planned, on the lattice; in stages: every stage in its size, and the estimate follows from them."""
    draw, names = certificate.draw, plan.model.parameter_names
    if len(draw.values) != plan.draws or any(len(row) != len(names) for row in draw.values):
        raise reject(f"it should hold {plan.draws} draw(s) of {len(names)} parameter(s)")
    with rejecting("its lattice says more than its draw may"):
        spacing_for(plan, read_sampler(plan, certificate.sampler), certificate.lattice)
    values, bits = np.array(draw.values), plan.model.significant_bits
    if isinstance(certificate, FirstCertificate):  # drawn before bits were limited
        bits = None
    if not (np.all(np.isfinite(values)) and np.all(snap(values, certificate.lattice, bits=bits) == values)):
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
    if plan.mechanism.by_person and data.person is None:
        raise reject("its plan adds up scores by person, but it names no column of persons")
    if data.declared is None:
        return
    with rejecting("its schema is not one"):
        schema = Schema.from_dict(data.declared)
    if next(differences(data.declared, schema.to_dict()), None) is not None or schema.digest != data.schema_digest:
        raise reject("its schema is not the one whose digest it states")
    if not isinstance(plan.model, RowModel):
        raise reject("it carries a schema, but its model has no columns to read by it")
    stated = (data.person, data.inferred_from, data.private_bounds, data.dates)
    if (schema.person, schema.inferred_from, bounds_source(schema), dates_of(schema)) != stated:
        raise reject("what it says of persons, dates, or of where its bounds come from, is not what its schema says")
    if schema.formula is not None and data.target != schema.formula.response:
        raise reject("its formula explains another column than it states")
    if data.target is not None:
        schema.column(data.target)
    with rejecting("its plan was not made for its schema"):
        plan.model.check_schema(schema, data.target)
        check_unit(plan, schema)


def check_ledger(certificate: Certificate, plan: Plan, ledger: Ledger) -> list[str]:
    """Refuse unless the ledger keeps its budgets and holds this digest, under a reservation of exactly what is stated.

    Returns the remarks of the ledger about its budgets.
    """
    entry = certificate.ledger
    if entry is None:
        raise reject("it says it is not recorded in any ledger, so no ledger can confirm it")
    state = ledger.verify()
    if not state.ok:
        raise CertificateRejected(
            f"The ledger {ledger.place} cannot confirm this certificate: {'; '.join(state.findings)}. Somebody wrote into it "
            "beside onedraw, or an accountant changed. Ask the owner of the budget; `onedraw ledger verify` has every finding."
        )
    if ledger.certificate_digest(entry.entry) != certificate.digest:
        raise reject(f"the ledger's entry {entry.entry} does not hold this certificate's digest")
    with rejecting("what was spent for it cannot be told"):
        native, exactness = Promise.from_dict(certificate.promise.native), Exactness.from_dict(certificate.exactness)
        promise, gamma = spend_of(plan, exactness, native)
    timing = None if certificate.timing is None else certificate.timing.gamma
    expected = {"promise": promise.to_dict(), "gamma": gamma, "timing": timing, "seeded": certificate.seeded}
    reserved = next(event for event in ledger.events() if event.entry == entry.entry and event.kind == Kind.RESERVED)
    if (reserved.dataset, reserved.hash) != (entry.dataset, entry.head):
        raise reject(f"the ledger's entry {entry.entry} stands under another dataset or head than it states")
    expected |= _question(certificate, reserved)
    for name, value in expected.items():
        if reserved.payload.get(name) != value:
            raise reject(f"the ledger's entry {entry.entry} was reserved with another {name} than it states")
    if ledger.account(entry.dataset).unit != plan.guarantee.unit:
        raise reject("the ledger protects another unit (records per person) than it states")
    return list(state.remarks)


def _question(certificate: Certificate, reserved: Event) -> dict[str, str]:
    """Return what names the question in a reservation: before format 4 of the ledger, the digest of its plan."""
    if "plan" in reserved.payload:
        return {"plan": digest_of(certificate.plan)}
    if isinstance(certificate, FirstCertificate):
        raise reject("it is of format 1, and its reservation was made by a version that writes format 2")
    return {"fingerprint": certificate.fingerprint}
