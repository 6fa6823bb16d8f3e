"""What a release will promise and say, fixed before a record is read.

`promise_of` combines the plan's theorem with the sampler's exactness; `Statement` holds everything that the certificate will
say besides the draw. `verify` writes the same statement again from a certificate's own numbers.
"""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from onedraw import privacy
from onedraw.data import Date, Measure, Records, Schema
from onedraw.data.sums import Local
from onedraw.errors import ExactnessRefused, PromiseRefused, WrongCall
from onedraw.models import ColumnQuantiles, ConjugateModel
from onedraw.models.compute import arithmetic, computed_on
from onedraw.models.row_model import RowModel
from onedraw.models.tables.scores import ModelChoice
from onedraw.models.tables.table import Table
from onedraw.plain_text import acting, round_up, texts_in
from onedraw.plans import Plan
from onedraw.privacy import ApproxDP, Assumption, Attacker, Exactness, Promise, Provenance, PureDP, with_total_variation
from onedraw.privacy.conversions import total_variation_delta
from onedraw.samplers import SEEDED
from onedraw.samplers.choice import read_sampler
from onedraw.samplers.sampler import Sampler

from . import certificate as parts
from .certificate import NEVER_PRIVATE, NOT_PROVEN, NOT_RECORDED, STANDING, UNPROVEN, WORDING, Certificate
from .fingerprint import fingerprint_of
from .timing import derived_timing

COUNTED = ConjugateModel | Table | ColumnQuantiles | ModelChoice
"""Models whose records are counted and added up without compiled code."""

LONGEST_NUMBER = len(repr(-sys.float_info.max))

INTEGER_SUMS = "float64; records summed exactly, as integers on a public lattice; draw rounded to the lattice below"
FLOATING_SUMS = "float64 throughout, also in sums over records; draw rounded to the lattice below"
REAL_SUMS = (
    "arithmetic is real: a chain adds up floating-point numbers, and their rounding is far below the noise of the draw"
)

REAL_LOSSES = "arithmetic is real: losses are added up as floating-point numbers, and their rounding is far below the noise of the draw"


def promise_of(plan: Plan, exactness: Exactness, *, accept: Collection[str] | str = ()) -> Promise:
    """The promise of what will really run: the plan's theorem combined with the sampler's exactness.

    | exactness | promise |
    | --- | --- |
    | Exact | the theorem's |
    | WithinTV(γ) | (ε, δ + (1+e^ε)·γ·draws), never pure |
    | LastIterate, AsRun, Accounted | its own |
    | Estimated(γ) | as within γ, under the assumption that the estimate is right, only if ``accept`` names it |
    | Assumed | the theorem's, under the assumption that the draw is exact, only if ``accept`` names it |

    Refused unless it implies the plan's budget.
    """
    accepted = accepted_words(accept)
    promise = plan.guarantee.promise
    if exactness.tag in UNPROVEN and exactness.tag not in accepted:
        raise ExactnessRefused(
            f"This sampler's draw is not proven to follow the law of the theorem: {exactness.sentence}. "
            f'Nothing was drawn. Use a proven sampler, or take the risk by name with accept="{exactness.tag}".'
        )
    match exactness:
        case privacy.Exact() | privacy.Assumed():
            pass
        case privacy.LastIterate(promise=own) | privacy.AsRun(promise=own) | privacy.Accounted(promise=own):
            promise = own
        case privacy.WithinTV(gamma=gamma) | privacy.Estimated(gamma=gamma):
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
    if unknown := words - set(UNPROVEN):
        raise WrongCall(
            f"accept takes {' and '.join(map(repr, UNPROVEN))}, got {', '.join(map(repr, sorted(unknown)))}."
        )
    return words


def spend_of(plan: Plan, exactness: Exactness, promise: Promise) -> tuple[Promise, float]:
    """What is booked for a release: its promise, or the exact draw's and how far the sampler may be from it."""
    gamma = exactness.gamma * plan.draws if isinstance(exactness, privacy.WithinTV | privacy.Estimated) else 0.0
    return (plan.guarantee.promise if gamma else promise), gamma


def stated_delta(plan: Plan, promise: Promise, gamma: float) -> float | None:
    """Return the δ at which the ledger's sum of (ε, δ) reads a booked promise, so that it counts the stated ε.

    None where the stated ε is the pure one and needs no δ. Many small decisions have a pure ε too, but a much larger one than what
    they state at δ. What ``gamma`` costs is charged beside it and therefore left out here.
    """
    budget, quoted = plan.budget, plan.budget.quoted_delta
    if isinstance(budget, ApproxDP):
        needless = promise.pure_epsilon <= budget.stated_epsilon
    else:
        needless = isinstance(promise, PureDP) or promise.pure_epsilon <= promise.epsilon(quoted)
    if needless or not quoted:
        return None
    cost = total_variation_delta(plan.budget.number, gamma) if gamma else 0.0
    left = math.nextafter(quoted - cost, 0.0) if cost else quoted
    return left if left > 0.0 else None


def check_unit(plan: Plan, schema: Schema) -> None:
    """The records a person may have must be the same in the schema that enforces it and in the plan that pays for it."""
    enforced, planned = schema.records_per_person, plan.guarantee.unit.records_per_person
    if schema.person is not None and enforced != planned:
        raise WrongCall(
            f"The schema lets one person have up to {enforced} records, the plan pays for {planned}. The promise would be "
            f"about another unit than the data have. Calibrate with records_per_person={enforced}."
        )


@dataclass(frozen=True)
class Statement:
    """Everything the certificate will say, fixed before the records are read."""

    plan: Plan
    sampler: Sampler
    sampler_choice: str
    exactness: Exactness
    promise: Promise
    spacing: float
    seeded: bool
    data: parts.DataStatement
    epsilon: float
    """As stated: `verify` writes the sentences with the figure it finds, once that is known to follow from the promise."""
    prepared_at: str
    timing: parts.TimingStatement | None
    """None in certificates from before running time was spoken of."""

    def __post_init__(self) -> None:
        """Whatever is declared can be shown: found now, not when a paid draw is to be read."""
        declared = [self.plan.to_dict(), self.sampler.to_dict(), self.sampler_choice, self.data.model_dump(mode="json")]
        for text in texts_in(declared):
            if found := acting(text):
                raise WrongCall(
                    f"{text!r} would stand in the certificate, but {', '.join(map(ascii, found))} in it would act on a "
                    "terminal or a report instead of being shown, or show nothing. Use visible characters in names, labels and notes."
                )

    def assumptions(self) -> list[Assumption]:
        """The theorem's, then what this sampler and these records add, then what the caller noted."""
        exactness, data = self.exactness, self.data
        extra: list[tuple[str, Provenance]] = []
        if exactness.tag in UNPROVEN:
            extra.append((exactness.sentence, Provenance.ASSUMED))
        real = not isinstance(exactness, privacy.Exact) or exactness.numeric
        if real and not self.sampler.whole_numbers(self.plan):
            extra.append((f"variates are real numbers, rounded to lattice {self.spacing!r}", Provenance.ASSUMED))
        if not self.plan.mechanism.sums_exactly(self.plan):
            extra.append((REAL_LOSSES if isinstance(exactness, privacy.Exact) else REAL_SUMS, Provenance.ASSUMED))
        if data.inferred_from:
            extra.append((f"schema inferred from {data.inferred_from}: must be public", Provenance.DECLARED))
        if data.person:
            beyond = f"records beyond a person's limit (column {data.person!r}) count as missing"
            absent = "neighbors replace a person by somebody who is not in the file already"
            extra.append((f"{beyond}; {absent}", Provenance.ENFORCED))
        if measure := data.measure:
            measured = f"responses are measured from {measure.centre!r} in units of {measure.unit!r}, public numbers"
            extra.append((measured, Provenance.ENFORCED))
        if bounds := data.private_bounds:
            extra.append((bounds_words(bounds), Provenance.DECLARED))
        extra += [(date_words(name, one), Provenance.ENFORCED) for name, one in (data.dates or {}).items()]
        extra += [(note.statement, Provenance(note.provenance)) for note in data.notes]
        return [*self.plan.guarantee.assumptions, *(Assumption(*each) for each in extra)]

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_of(self.plan, self.data)

    def sentence(self, *, recorded: bool) -> str:
        """The first line: how exact, what is promised, by what, what that means for a person, and whether a ledger counts it."""
        plan, unit, proven = self.plan, self.plan.guarantee.unit.records_per_person, self.plan.mechanism.proven
        noun, kind = plan.mechanism.noun, self.exactness.tag
        what = f"this {noun} is" if plan.draws == 1 else f"these {plan.draws} {noun}s together are"
        person = self.data.person is not None
        who = f"one person's up to {unit} records" if unit > 1 else "one person's record" if person else "one record"
        quoted = plan.budget.quoted_delta
        delta = f", δ = {round_up(quoted, 5):.6g}" if quoted > 0 else ""
        native = "" if isinstance(plan.budget, PureDP | ApproxDP) else f", and more precisely keeps {plan.budget}"
        certain = proven and kind not in UNPROVEN
        how = STANDING[kind].upper() if kind in UNPROVEN else STANDING[kind].removesuffix(" for")
        how = how if proven or kind in UNPROVEN else "Claimed"
        warnings = [note.statement for note in self.data.notes if note.provenance == Provenance.ASSUMED]
        return (
            (NEVER_PRIVATE if self.seeded else "")
            + ("" if proven else NOT_PROVEN)
            + f"{how}: {what} (ε = {round_up(self.epsilon, 5):.6g}{delta})-differentially private when {who} among "
            f"n = {plan.n:,} {'is' if unit == 1 else 'are'} replaced (n is public), by {plan.heading}{native}."
            + ("" if self.seeded else meaning(self.promise, quoted, person=person or unit > 1, certain=certain))
            + ("" if recorded else NOT_RECORDED)
            + "".join(f" {warning[:1].upper()}{warning[1:]}." for warning in warnings)
        )

    def prepared(self, opinion: str, ledger: parts.LedgerEntry | None) -> tuple[Certificate, int]:
        """The certificate with zeros for what will be drawn, and a public upper size of its file: all its words, and the
        longest numbers."""
        zeros = np.zeros((self.plan.draws, len(self.plan.model.parameter_names)))
        sizes = self.plan.mechanism.stage_sizes(self.plan)
        stages = {name: [0.0] * size for name, size in sizes.items()} or None
        written = self.certificate(zeros.tolist(), stages, opinion=opinion, ledger=ledger)
        numbers = zeros.size + sum(sizes.values())
        return written, len(written.to_json().encode("utf-8")) + LONGEST_NUMBER * numbers

    def certificate(
        self, draws: list[list[float]], stages: dict[str, list[float]] | None = None, *, opinion: str,
        ledger: parts.LedgerEntry | None,
    ) -> Certificate:  # fmt: skip
        plan, guarantee = self.plan, self.plan.guarantee
        return Certificate(
            sentence=self.sentence(recorded=ledger is not None),
            promise=parts.PromiseStatement(
                epsilon=self.epsilon, delta=plan.budget.quoted_delta, native=self.promise.to_dict(),
                budget=plan.budget.to_dict(),
            ),
            wording=WORDING,
            timing=self.timing,
            neighbors=guarantee.neighbours.value,
            unit=guarantee.unit.words(person=self.data.person is not None),
            n=plan.n,
            mechanism=parts.MechanismStatement(
                name=type(plan.mechanism).__name__, proven=plan.mechanism.proven, theorem=guarantee.theorem,
                parameters=dict(plan.parameters),
            ),
            plan=plan.to_dict(),
            fingerprint=self.fingerprint,
            sampler=self.sampler.to_dict(),
            sampler_choice=self.sampler_choice,
            exactness=self.exactness.to_dict(),
            assumptions=[parts.AssumptionStatement(**one.to_dict()) for one in self.assumptions()],
            seeded=self.seeded,
            randomness=SEEDED if self.seeded else self.sampler.entropy(plan),
            numeric_model=INTEGER_SUMS if plan.mechanism.sums_exactly(plan) else FLOATING_SUMS,
            lattice=self.spacing,
            second_opinion=opinion,
            data=self.data,
            prepared_at=self.prepared_at,
            software=dict(_software()),
            ledger=ledger,
            draw=parts.DrawStatement(
                quantity=plan.model.quantity, names=list(plan.model.parameter_names), values=draws, stages=stages
            ),
        )  # fmt: skip


@lru_cache(maxsize=64)
def meaning(promise: Promise, delta: float, *, person: bool, certain: bool) -> str:
    """Say how often the best guess about a record can be right, or about a person's records if the schema names persons."""
    right = math.ceil(round(100.0 * Attacker(promise, delta).right_guesses, 6))
    known, others = ("a person's records", "everybody else's records") if person else ("a record", "every other record")
    return (
        f" If two values of {known} are equally likely beforehand, someone who knows {others} guesses right at most "
        f"{right} times in 100 (a coin: 50){'' if certain else ', if what is not proven holds'}."
    )


def dates_of(schema: Schema) -> dict[str, dict[str, str]] | None:
    """Return what is declared of each column of dates; None where there is none."""
    return {name: column.stated for name, column in schema.columns.items() if isinstance(column, Date)} or None


def bounds_source(schema: Schema) -> parts.PrivateBoundsStatement | None:
    """Return which charged release the bounds of a schema come from; None where all were declared."""
    found = schema.private_bounds
    return None if found is None else parts.PrivateBoundsStatement(
        entry=found.entry, columns=list(found.columns), epsilon=found.epsilon, delta=found.delta
    )  # fmt: skip


def bounds_words(found: parts.PrivateBoundsStatement) -> str:
    """Say where bounds come from that were estimated from the records."""
    delta = f", δ = {found.delta:.6g}" if found.delta else ""
    return (
        f"the bounds of {', '.join(map(repr, found.columns))} come from a private release on these records (ε = {found.epsilon:.6g}{delta}), "
        f"entry {found.entry} of the ledger; its charge is not part of this promise and stands beside it"
    )


def date_words(name: str, stated: Mapping[str, str]) -> str:
    """Say how the dates of a column were read."""
    used = f"its {stated['part']} is used" if "part" in stated else "it is used as days since the first of them"
    return (
        f"dates of {name!r} lie from {stated['first']} to {stated['last']}, are read by the format {stated['format']!r} and on clocks of "
        f"{stated['zone']}; {used}"
    )


def describe(
    plan: Plan, data: Any, notes: tuple[Assumption, ...] = (), dataset: str | None = None, *, in_numpy: bool = False
) -> parts.DataStatement:
    """Say what is declared of the records, in which units the responses of a pair (X, y) are measured, and what adds up.

    Parameters
    ----------
    in_numpy : bool
        Whether NumPy makes the sums over the records and not JAX.
    """
    declared: dict[str, Any] = {}
    if isinstance(data, Records):
        schema = data.schema
        declared = {"target": data.target, "schema_digest": schema.digest, "inferred_from": schema.inferred_from,
                    "person": schema.person, "dates": dates_of(schema),
                    "private_bounds": bounds_source(schema), "declared": schema.to_dict() if isinstance(plan.model, RowModel) else None}  # fmt: skip
    holder = data[1] if isinstance(data, tuple) and len(data) == 2 else data
    measure = getattr(holder, "measure", None)
    if isinstance(measure, Measure):
        declared["measure"] = parts.MeasureStatement(centre=measure.centre, unit=measure.unit)
    written = [parts.AssumptionStatement(**note.to_dict()) for note in notes]
    # Public: who added up, in how many parts by n and cores, on which device, and a digest of the arithmetic on public numbers.
    engine, known = None, data.engine.described(data) if isinstance(data, Records) else None
    if known is not None:
        from onedraw.models.sums.exact_sums import arithmetic_digest

        engine = parts.EngineStatement(**known, digest=arithmetic_digest(), **computed_on())
    elif not isinstance(plan.model, COUNTED):
        engine = parts.EngineStatement(
            name=Local().name, version=_software()["onedraw"], parts=1, **_computed_on(in_numpy)
        )
    return parts.DataStatement(dataset=dataset, notes=written, engine=engine, **declared)


def reads_here(data: Any) -> bool:
    """Return whether this process alone reads the records."""
    return not isinstance(data, Records) or data.engine.described(data) is None


def _computed_on(in_numpy: bool) -> dict[str, Any]:
    with arithmetic(in_numpy=in_numpy):
        return computed_on()


def statement_of(certificate: Certificate, plan: Plan) -> Statement:
    """Return what a certificate says besides the draw, derived again from its numbers."""
    sampler = read_sampler(plan, certificate.sampler)
    return Statement(
        plan, sampler, certificate.sampler_choice, sampler.exactness(plan), Promise.from_dict(certificate.promise.native),
        certificate.lattice, seeded=certificate.seeded, data=certificate.data, epsilon=certificate.promise.epsilon,
        prepared_at=certificate.prepared_at, timing=derived_timing(certificate, plan),
    )  # fmt: skip


def rewrite(certificate: Certificate, plan: Plan) -> Certificate:
    """Return the certificate as this version writes it, its sentences derived from its numbers."""
    draw = certificate.draw
    return statement_of(certificate, plan).certificate(
        draw.values, draw.stages, opinion=certificate.second_opinion, ledger=certificate.ledger
    )


def sentence_of(certificate: Certificate, plan: Plan) -> str:
    """Return the first line; of a certificate in another wording, the one that its numbers give."""
    return certificate.sentence if certificate.wording == WORDING else rewrite(certificate, plan).sentence


@cache
def _software() -> Mapping[str, str]:
    """Looked up once: parsing what is installed takes longer than summing a million records."""
    return {name: version(name) for name in ("onedraw", "numpy", "scipy")} | {"python": platform.python_version()}
