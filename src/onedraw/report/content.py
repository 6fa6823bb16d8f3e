"""What the pages say: of a release, from its certificate and the public ledger; of a plan, from public numbers alone.

`content` and `plan_content` gather it as plain values; `page.html` and `plan.html` only lay them out. Nothing here reads a record or
a diagnostic.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from onedraw.errors import CertificateRejected, WrongCall
from onedraw.ledger import Ledger
from onedraw.methods import Plan
from onedraw.models import Table
from onedraw.plain_text import SUPERSCRIPTS, shortened, shown, shown_up, small
from onedraw.privacy import ApproxDP, Attacker, Exactness, Promise, PureDP
from onedraw.privacy.filters import filters_of
from onedraw.privacy.tradeoff import COMMON
from onedraw.release import Certificate, Estimates, Release, Verification, verify
from onedraw.release.certificate import STANDING, UNPROVEN
from onedraw.release.fingerprint import dataset_name
from onedraw.release.review import Flag, Tone, flags_of, is_proven, strength_flags

from . import pictures
from .expected import declared_columns, expected_of
from .results import results_of
from .tables import correlation_words, correlations, evaluation_words

PROVENANCE = {
    "assumed": "taken for true, not proven",
    "inferred": "read off a public file",
    "declared": "the data holder answers for it",
    "enforced": "the program makes it so",
    "proved": "follows from a proof",
}
"""What an assumption rests on, the weakest first."""

WORDS = (
    ("epsilon", "ε (epsilon)", "How much one record may change what comes out: the smaller, the more private."),
    ("delta", "δ (delta)", "The small chance with which ε may be exceeded; 0 where it never is."),
    ("neighbours", "Neighbours", "Two data sets that differ in one record only: the promise is that nobody can tell them apart well."),
    ("unit", "Unit", "Whose data the promise is about: one record, or all records of one person up to a declared number."),
    ("ledger", "Ledger", "The account book of a data set: its budget, and what every release has spent of it."),
    ("certificate", "Certificate", "The released file: the numbers, what was promised about them, and everything needed to check it."),
    ("proven", "Exact, proven, accounted", "How the promise is known to hold: the draw follows its law exactly, a theorem covers what "
     "ran, or the distance to the exact law is part of what was charged."),
    ("fit", "Fit", "An estimate of a model's coefficients, made private by noise in the equations it solves."),
    ("draw", "Draw", "Numbers picked at random from those that the records make likely; the chance in it is what protects."),
    ("standard-error", "Standard error", "How far an estimate typically is from the truth: chance in the sample and noise for privacy "
     "together."),
    ("refused-interval", "Refused interval", "No interval is given because it could not keep what it says; the estimate stands."),
)  # fmt: skip
"""The words a report uses: (anchor, word, what it means), the same as on the documentation's glossary page."""

MOST_NAMES = 60
"""Numbers listed by name on the page of a plan, at most."""


@dataclass(frozen=True)
class AuditFinding:
    """Attacked ``rounds`` times on neighbours of the attacker's choice: at ``delta``, ε is at least this, with this
    confidence. ``broken``: the audit itself says that more was found than is promised."""

    epsilon_lower_bound: float
    delta: float
    confidence: float
    rounds: int = 0
    attack: str = ""
    broken: bool = False

    def __post_init__(self) -> None:
        if not (self.epsilon_lower_bound >= 0 and 0 <= self.delta < 1 and 0 < self.confidence < 1):
            raise WrongCall("An audit finding needs a lower bound of at least 0, δ in [0, 1) and confidence in (0, 1).")

    @classmethod
    def read(cls, found: Any) -> AuditFinding:
        """From anything that says the same by the same names, such as a result or a report of `onedraw.audit`."""
        if isinstance(found, cls):
            return found
        try:
            tried = (str(getattr(one, "method", "")) for one in (found, *getattr(found, "findings", ())))
            return cls(
                float(found.epsilon_lower_bound), float(found.delta), float(found.confidence),
                rounds=getattr(found, "rounds0", 0) + getattr(found, "rounds1", 0),
                attack=", ".join(dict.fromkeys(filter(None, tried))),
                broken=getattr(found, "passed", True) is False,
            )  # fmt: skip
        except (AttributeError, TypeError) as error:
            raise WrongCall(
                "audit= takes a finding with epsilon_lower_bound, delta and confidence, but a "
                f"{type(found).__name__} was given. Pass onedraw.report.AuditFinding(...)."
            ) from error

    def __str__(self) -> str:
        attack = f" ({self.attack})" if self.attack else ""
        rounds = f" in {self.rounds:,} rounds" if self.rounds else ""
        least = self.epsilon_lower_bound
        shows = "no ε holds" if math.isinf(least) else f"ε is at least {shown(least)}"
        return (
            f"An attack on the mechanism{attack}, with neighbouring data sets of its own choice{rounds}, shows that {shows} at "
            f"δ = {small(self.delta)}, with {100 * self.confidence:g} % confidence."
        )

    def words(self, promise: Promise) -> dict[str, Any]:
        """Beside what the promise allows at the same δ."""
        allowed = promise.epsilon(self.delta)
        at_most = shown_up(allowed) if math.isfinite(allowed) else "any ε"
        return {"sentence": f"{self} The promise allows {at_most} there.", "broken": self.contradicts(promise)}

    def contradicts(self, promise: Promise) -> bool:
        """Whether the promise allows less than was found."""
        return self.broken or self.epsilon_lower_bound > promise.epsilon(self.delta)


@dataclass(frozen=True)
class Warned:
    """Something that must be read before the promise is believed."""

    title: str
    text: str
    grave: bool = True


def content(
    release: Release, *, ledger: Ledger | None = None, interval: Estimates | str | None = None, audit: Any = None,
    plan_table: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Everything `page.html` needs, by name."""
    verified, unverified = verification(release, ledger)
    certificate, plan = release.certificate if verified is None else verified.certificate, release.plan
    promise = Promise.from_dict(certificate.promise.native)
    finding = None if audit is None else AuditFinding.read(audit)
    summary, reason = given_interval(interval)
    table = summary if summary is not None and summary.given else None
    attacker = Attacker(promise, certificate.promise.delta)
    answer = None if verified is None else verified.answer
    results = results_of(certificate, plan, table, why_none=reason, fitted=summary)
    evaluation = evaluation_words(release)
    rows = [{"interval": figure[2]} for figure in evaluation["figures"]] if evaluation else results["rows"]
    target, by = certificate.data.target, plan.model.by if isinstance(plan.model, Table) else ()
    return {
        "certificate": certificate,
        "kind": plan.model.title,
        "title": plan.model.title + (f" of {target}" if target else "") + (f" by {' and '.join(by)}" if by else ""),
        "warnings": warnings_of(certificate, plan, finding=finding, promise=promise, unverified=unverified),
        "seeded": certificate.seeded,
        "proven": is_proven(certificate),
        "flags": flags_of(certificate, verified=answer, intervals=[bool(row["interval"]) for row in rows]),
        "verified": answer,
        "coverage": certificate.coverage("this report and release.json"),
        "epsilon": shown_up(certificate.promise.epsilon),
        "delta": small(certificate.promise.delta),
        "results": results,
        "evaluation": evaluation,
        "correlations": correlation_words(correlations(certificate, plan)),
        "attacker": attacker_words(attacker, plan),
        "assumptions": assumption_words(certificate.assumptions),
        "budget": None if ledger is None or certificate.ledger is None else budget_of(ledger, certificate.ledger.dataset),
        "made": how_made(certificate, plan),
        "made_besides": made_besides(certificate, plan, promise, digest=release.certificate.digest),
        "numbers": [(name.replace("_", " "), shown(value)) for name, value in certificate.mechanism.parameters.items()],
        "model": json.dumps(certificate.plan.get("model"), indent=2, ensure_ascii=False),
        "audit": None if finding is None else finding.words(promise),
        "expected": None if plan_table is None else expected_of(plan_table, replaced=table is not None),
        "words": WORDS,
        "json": release.certificate.to_json(),
    }  # fmt: skip


def given_interval(interval: Estimates | str | None) -> tuple[Estimates | None, str]:
    """Return the summary that was given, if any, and why there is no interval."""
    if isinstance(interval, Estimates):
        return interval, interval.reason
    if interval is not None and not isinstance(interval, str):
        raise WrongCall(
            f"interval= takes a release's summary(), or why there is none, got a {type(interval).__name__}."
        )
    return None, interval or ""


def verification(release: Release, ledger: Ledger | None) -> tuple[Verification | None, str]:
    """What `verify` finds, with the certificate in this version's words, or why it finds nothing. A certificate that should hold and does not gets no report.

    An unproven draw may come from a sampler this library does not know; then nothing can be derived again, and the page
    says so first.
    """
    certificate = release.certificate
    try:
        return verify(release, ledger=ledger if certificate.ledger is not None else None), ""
    except CertificateRejected as error:
        if certificate.exactness.get("kind") not in UNPROVEN:
            raise
        return None, str(error)


def warnings_of(
    certificate: Certificate, plan: Plan, *, finding: AuditFinding | None, promise: Promise, unverified: str
) -> list[Warned]:
    """What takes something away from the promise, gravest first."""
    kind, data, exactness = certificate.exactness["kind"], certificate.data, Exactness.from_dict(certificate.exactness)
    contradicted = finding is not None and finding.contradicts(promise)
    uncovered = [note.statement for note in data.notes if note.provenance == "assumed"]
    warnings = [
        (certificate.seeded, Warned("Not private: drawn from a fixed seed", "Whoever knows the seed can repeat the "
         "draw, so nothing below protects anybody. For trials only; do not publish it.")),
        (contradicted, Warned("An audit contradicts the promise", f"{finding} The audit found more than is promised. Do not publish; "
         "report it.")),
        (not plan.mechanism.proven, Warned("Not proven, as published", "The promise follows a published calibration whose proof does "
         "not cover this case. It may not hold.")),
        (kind in UNPROVEN, Warned(STANDING[kind], "The draw is not proven to follow the law that the theorem is about: "
         f"{exactness.sentence}. Everything below holds only if that is true.")),
        (bool(unverified), Warned("Not verified", f"The promise could not be derived again from the certificate. {unverified}")),
        *((True, Warned("Not covered by the promise", f"{said[:1].upper()}{said[1:]}.")) for said in uncovered),
        (certificate.ledger is None, Warned("Not recorded in any ledger", "No ledger counts this release, so other releases of the "
         "same records may add to it unnoticed.", grave=False)),
        (bool(data.inferred_from), Warned("The schema was inferred", f"Its ranges and levels were read off {data.inferred_from}, "
         "which must be public. If it is not, the promise does not hold.", grave=False)),
        *((True, Warned("Some bounds were estimated from the records", f"Those of {', '.join(bounds.columns)} come from a private "
         f"release at ε = {bounds.epsilon:.6g}, entry {bounds.entry[:12]}… of the ledger. Its charge stands beside this one.",
         grave=False)) for bounds in [data.private_bounds] if bounds is not None),
    ]  # fmt: skip
    return [warning for holds, warning in warnings if holds]


def attacker_words(attacker: Attacker, plan: Plan) -> dict[str, Any]:
    right = attacker.right_guesses
    unit = plan.guarantee.unit.records_per_person
    return {
        "right": f"{math.ceil(round(1000 * right, 5)) / 10:g}",
        "hundred": pictures.hundred(min(math.ceil(round(100 * right, 6)), 100)),
        "who": "that one" if unit == 1 else f"one person's records (up to {unit})",
        "own": "a given record" if unit == 1 else "a given person's records",
        "others": "another" if unit == 1 else "somebody else's",
        "odds": "any number" if attacker.odds_factor == math.inf else shown_up(attacker.odds_factor, 3),
        "always": attacker.always,
        "common": f"{100 * COMMON:g}",
        "caught": f"{math.ceil(round(1000 * (1.0 - attacker.misses(0.01)), 5)) / 10:g}",
        "curve": pictures.tradeoff(attacker),
        "table": [
            (f"{100 * alpha:g} %", f"{100 * misses:.1f} %", f"{100 * (1.0 - misses):.1f} %")
            for alpha in (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75)
            for misses in (attacker.misses(alpha),)
        ],
    }


def assumption_words(assumptions: Iterable[Any]) -> list[dict[str, str]]:
    """Those that somebody must answer for first, the proven ones last."""
    order = list(PROVENANCE)
    known = [(found, found.provenance if found.provenance in PROVENANCE else "assumed") for found in assumptions]
    return [
        {
            "statement": shortened(found.statement[:1].upper() + found.statement[1:]),
            "provenance": found.provenance,
            "known": standing,
            "means": PROVENANCE.get(found.provenance, "of unknown standing"),
        }
        for found, standing in sorted(known, key=lambda pair: order.index(pair[1]))
    ]


def budget_of(ledger: Ledger, dataset: str) -> dict[str, Any]:
    """Only what the ledger says in total: no label, no other release by name."""
    account, left = ledger.account(dataset), ledger.remaining(dataset)
    budget = account.budget
    total = budget.stated_epsilon if isinstance(budget, PureDP | ApproxDP) else budget.epsilon(left.delta)
    spent = left.spent_epsilon if left.listed_epsilon is None else max(total, left.listed_epsilon)  # nothing is left
    summed = float(next(filters_of(budget)).allowance.delta)  # 0 for a budget without δ
    least = float(f"{left.epsilon:.4g}")
    if least > left.epsilon:  # what is left must not be overstated
        least -= 10.0 ** (math.floor(math.log10(left.epsilon)) - 3)
    return {
        "dataset": dataset, "budget": str(budget), "total": shown(total), "spent": shown_up(spent), "left": f"{least:.4g}",
        "delta": small(left.delta), "half_delta": small(summed) if summed else "", "releases": account.reservations, "closed": account.closed,
        "bar": pictures.budget_bar(spent, total), "head": ledger.head(),
    }  # fmt: skip


def how_made(certificate: Certificate, plan: Plan) -> list[tuple[str, str]]:
    """What everybody may ask."""
    facts = [
        ("Model", f"{type(plan.model).__name__}: {certificate.draw.quantity}"),
        ("Mechanism", f"{type(plan.mechanism).__name__}: {plan.heading}"),
        ("Theorem", certificate.mechanism.theorem),
        ("Budget it was made for", str(plan.budget)),
        ("Neighbours", certificate.neighbors),
        ("Randomness", certificate.randomness),
        *([("Running time", certificate.timing.sentence)] if certificate.timing else []),
        ("Prepared at", certificate.prepared_at),
        ("Software", ", ".join(f"{name} {version}" for name, version in certificate.software.items())),
    ]
    engine = certificate.data.engine
    if engine is not None:  # where compiled code read the records, in certificates that say so
        parts = f" {engine.version}, {engine.parts} parts" if engine.digest else ""
        library = f"JAX {engine.jax}" if engine.jax else "NumPy"
        device = f", on {engine.device} ({engine.platform}), {library}" if engine.device else ""
        facts.append(("Computed in", f"{engine.name}{parts}{device}"))
    return [(name, shortened(value)) for name, value in facts]


def made_besides(certificate: Certificate, plan: Plan, promise: Promise, *, digest: str) -> list[tuple[str, str]]:
    """What a reviewer asks besides, in that order; folded away. ``digest`` is that of the certificate as issued."""
    sampler = dict(certificate.sampler)
    name = sampler.pop("name", "?")
    options = ", ".join(f"{option.replace('_', ' ')} {shown(value)}" for option, value in sampler.items())
    mantissa, exponent = math.frexp(certificate.lattice)
    power = f"2{str(exponent - 1).translate(SUPERSCRIPTS)}, about {shown(certificate.lattice)}"
    facts = [
        ("Promise, in its native form", str(promise)),
        ("Draws", f"{plan.draws}"),
        ("Sampler", f"{name} ({options})" if options else f"{name}"),
        ("Why this sampler", certificate.sampler_choice),
        ("Exactness", Exactness.from_dict(certificate.exactness).sentence),
        ("Arithmetic", certificate.numeric_model),
        ("Lattice of the draw", f"multiples of {power if mantissa == 0.5 else repr(certificate.lattice)}"),
        ("Second opinion", certificate.second_opinion),
        ("Formula", certificate.data.formula),
        ("Schema", certificate.data.schema_digest or ""),
        ("Column of persons", certificate.data.person or ""),
        ("Fingerprint of the question", certificate.fingerprint),
        ("Ledger entry", certificate.ledger.entry if certificate.ledger else ""),
        ("Certificate digest", digest),
    ]
    return [(name, shortened(value)) for name, value in facts if value]


# ── the page of a plan ───────────────────────────────────────────────────────────────────────────────────────


def plan_content(planned: Any) -> dict[str, Any]:
    """Everything `plan.html` needs, by name."""
    plan, schema = planned.plan, planned.asked.schema
    budget: Promise = planned.budget
    delta, names = budget.quoted_delta, list(plan.model.parameter_names)
    return {
        "title": planned.asked.title[:1].upper() + planned.asked.title[1:],
        "flags": [
            Flag(Tone.CHECKED, "No record was read"),
            Flag(Tone.PLAIN, "Nothing is spent yet"),
            *strength_flags(plan.guarantee.promise, delta, planned.n),
        ],
        "budget": str(budget),
        "epsilon": shown_up(budget.epsilon(delta)),
        "delta": small(delta),
        "n": f"{planned.n:,}",
        "unit": plan.guarantee.unit.words(person=schema.person is not None),
        "replaced": f"one person's up to {plan.guarantee.unit.records_per_person} record(s)"
        if schema.person
        else "one record",
        "dataset": dataset_name(planned.dataset, schema.dataset),
        "quantity": plan.model.quantity,
        "names": names[:MOST_NAMES],
        "more": max(0, len(names) - MOST_NAMES),
        "besides": sum(plan.mechanism.stage_sizes(plan).values()),
        "method": planned.choices.why,
        "estimand": f"{planned.estimand}. {planned.estimand_note}" if planned.estimand else "",
        "formula": "" if schema.formula is None else str(schema.formula),
        "why_no_interval": planned.why_no_interval,
        "attacker": attacker_words(Attacker(plan.guarantee.promise, delta), plan),
        "assumptions": assumption_words(plan.guarantee.assumptions),
        "expected": expected_of(planned.choices),
        "columns": declared_columns(planned),
        "inferred": schema.notice,
        "person": schema.person,
        "fingerprint": planned.fingerprint,
    }
