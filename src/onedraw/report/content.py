"""What the page says: every statement of the report, taken from the certificate and from public books.

`content` gathers it as plain values; `page.html` only lays them out. Nothing here reads a record or a diagnostic.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from onedraw.errors import CertificateRejected
from onedraw.ledger import Ledger
from onedraw.models import Model, Table
from onedraw.privacy import ApproxDP, Attacker, Promise, PureDP
from onedraw.privacy.attacker import COMMON
from onedraw.release import Certificate, verify
from onedraw.release.verification import rebuild_plan
from onedraw.samplers import SEEDED

from . import pictures
from .audited import AuditFinding
from .coefficients import CoefficientTable
from .correlations import correlations, words_of
from .evaluated import evaluation_words
from .formatting import lattice_words, shortened, shown, shown_down, shown_up, small
from .glossary import WORDS
from .results import results_of

STANDING = {
    "exact": "Exact",
    "last-iterate": "Proven",
    "as-run": "Proven",
    "within-tv": "Accounted for",
    "estimated": "Estimated, not proven",
    "assumed": "Assumed, not proven",
}

UNPROVEN = ("estimated", "assumed")

PROVENANCE = {
    "proved": "follows from a proof",
    "enforced": "the program makes it so",
    "declared": "the data holder answers for it",
    "assumed": "taken for true, not proven",
    "inferred": "read off a public file",
}


@dataclass(frozen=True)
class Warned:
    """Something that must be read before the promise is believed."""

    title: str
    text: str
    grave: bool = True


def content(
    certificate: Certificate, *, ledger: Ledger | None = None, interval: Any = None, audit: Any = None,
    plan_table: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Everything `page.html` needs, by name."""
    plan = rebuild_plan(certificate)
    promise = Promise.from_dict(certificate.promise.native)
    finding = None if audit is None else AuditFinding.read(audit)
    table = None if interval is None or isinstance(interval, str) else CoefficientTable.read(interval)
    reason = interval if isinstance(interval, str) else ""
    verified, unverified = verification(certificate, ledger)
    attacker = Attacker(promise, certificate.promise.delta)
    proven = plan.mechanism.proven and certificate.exactness["kind"] not in UNPROVEN
    return {
        "certificate": certificate,
        "kind": plan.model.title,
        "title": title_of(certificate, plan.model),
        "warnings": warnings_of(certificate, plan, finding=finding, promise=promise, unverified=unverified),
        "seeded": certificate.randomness == SEEDED,
        "proven": proven,
        "standing": STANDING[certificate.exactness["kind"]] if plan.mechanism.proven else "Not proven, as published",
        "verified": verified,
        "may_publish": certificate.may_publish("this report and release.json").split("?", 1),
        "epsilon": shown_up(certificate.promise.epsilon),
        "delta": small(certificate.promise.delta),
        "results": results_of(certificate, plan, table, why_none=reason),
        "evaluation": evaluation_words(certificate, plan),
        "correlations": words_of(correlations(certificate, plan)),
        "attacker": attacker_words(attacker, plan),
        "assumptions": assumptions_of(certificate),
        "budget": None if ledger is None or certificate.ledger is None else budget_of(ledger, certificate.ledger.dataset),
        "made": how_made(certificate, plan),
        "made_besides": made_besides(certificate, plan, promise),
        "numbers": [(name.replace("_", " "), shown(value)) for name, value in certificate.mechanism.parameters.items()],
        "model": json.dumps(certificate.plan.get("model"), indent=2, ensure_ascii=False),
        "audit": None if finding is None else audit_words(finding, promise),
        "expected": None if plan_table is None else expected_of(plan_table, replaced=table is not None),
        "words": WORDS,
        "json": certificate.to_json(),
    }  # fmt: skip


# ── first things first ───────────────────────────────────────────────────────────────────────────────────────


def verification(certificate: Certificate, ledger: Ledger | None) -> tuple[str | None, str]:
    """The answer of `verify`, or why there is none. A certificate that should hold and does not gets no report.

    An unproven draw may come from a sampler this library does not know; then nothing can be derived again, and the page
    says so first.
    """
    books = ledger if certificate.ledger is not None else None
    try:
        return verify(certificate, ledger=books).answer, ""
    except CertificateRejected as error:
        if certificate.exactness.get("kind") not in UNPROVEN:
            raise
        return None, str(error)


def warnings_of(
    certificate: Certificate, plan: Any, *, finding: AuditFinding | None, promise: Promise, unverified: str
) -> list[Warned]:
    """What takes something away from the promise, gravest first."""
    kind, found = certificate.exactness["kind"], []
    if certificate.randomness == SEEDED:
        found.append(Warned("Not private: drawn from a fixed seed", "Whoever knows the seed can repeat the draw, so nothing "
                            "below protects anybody. For trials only; do not publish it."))  # fmt: skip
    if finding is not None and finding.contradicts(promise):
        found.append(Warned("An audit contradicts the promise", f"{finding_words(finding)} The audit found more than is promised. Do not "
                            "publish; report it."))  # fmt: skip
    if not plan.mechanism.proven:
        found.append(Warned("Not proven, as published", "The promise follows a published calibration whose proof does not cover this case. "
                            "It may not hold."))  # fmt: skip
    if kind in UNPROVEN:
        found.append(Warned(STANDING[kind], f"The draw is not proven to follow the law that the theorem is about: "
                            f"{certificate.exactness_cost}. Everything below holds only if that is true."))  # fmt: skip
    if unverified:
        found.append(
            Warned("Not verified", f"The promise could not be derived again from the certificate. {unverified}")
        )
    found += [
        Warned("Not covered by the promise", f"{note.statement[:1].upper()}{note.statement[1:]}.")
        for note in certificate.data.notes
        if note.provenance == "assumed"
    ]
    if certificate.ledger is None:
        found.append(Warned("Not recorded in any ledger", "No ledger counts this release, so other releases of the same records "
                            "may add to it unnoticed.", grave=False))  # fmt: skip
    if certificate.data.inferred_from:
        found.append(Warned("The schema was inferred", f"Its ranges and levels were read off {certificate.data.inferred_from}, which must "
                            "be public. If it is not, the promise does not hold.", grave=False))  # fmt: skip
    return found


def title_of(certificate: Certificate, model: Model) -> str:
    target, by = certificate.data.target, model.by if isinstance(model, Table) else ()
    grouped = f" by {' and '.join(by)}" if by else ""
    return f"{model.title} of {target}{grouped}" if target else f"{model.title}{grouped}"


# ── the attacker ─────────────────────────────────────────────────────────────────────────────────────────────


def attacker_words(attacker: Attacker, plan: Any) -> dict[str, Any]:
    right = attacker.right_guesses
    per_hundred = math.ceil(round(100 * right, 6))
    unit = plan.guarantee.unit.records_per_person
    return {
        "right": f"{math.ceil(round(1000 * right, 5)) / 10:g}",
        "hundred": pictures.hundred(min(per_hundred, 100)),
        "who": "one person's record" if unit == 1 else f"one person's records (up to {unit})",
        "odds": "any number" if attacker.odds_factor == math.inf else shown_up(attacker.odds_factor, 3),
        "always": attacker.always,
        "common": f"{100 * COMMON:g}",
        "caught": f"{math.ceil(round(1000 * attacker.caught(0.01), 5)) / 10:g}",
        "curve": pictures.tradeoff(attacker),
        "table": [
            (f"{100 * alpha:g} %", f"{100 * attacker.misses(alpha):.1f} %", f"{100 * attacker.caught(alpha):.1f} %")
            for alpha in (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75)
        ],
    }


def finding_words(finding: AuditFinding) -> str:
    attack = f" ({finding.attack})" if finding.attack else ""
    rounds = f" in {finding.rounds:,} rounds" if finding.rounds else ""
    unbounded = math.isinf(finding.epsilon_lower_bound)
    shows = "no ε holds" if unbounded else f"ε is at least {shown(finding.epsilon_lower_bound)}"
    return (
        f"An attack on the mechanism{attack}, with neighbouring data sets of its own choice{rounds}, shows that {shows} at "
        f"δ = {small(finding.delta)}, with {100 * finding.confidence:g} % confidence."
    )


def audit_words(finding: AuditFinding, promise: Promise) -> dict[str, Any]:
    allowed = promise.epsilon(finding.delta)
    return {
        "sentence": f"{finding_words(finding)} The promise allows {shown_up(allowed) if math.isfinite(allowed) else 'any ε'} there.",
        "broken": finding.contradicts(promise),
    }  # fmt: skip


# ── what it rests on, the books, how it was made ─────────────────────────────────────────────────────────────


def assumptions_of(certificate: Certificate) -> list[dict[str, str]]:
    return assumption_words(certificate.assumptions)


def assumption_words(assumptions: Iterable[Any]) -> list[dict[str, str]]:
    """Those that somebody must answer for first, the proven ones last."""
    order = list(PROVENANCE)
    weakest_first = {"assumed": 0, "inferred": 1, "declared": 2, "enforced": 3, "proved": 4}
    listed = sorted(assumptions, key=lambda found: weakest_first.get(found.provenance, 0))
    return [
        {
            "statement": shortened(found.statement[:1].upper() + found.statement[1:]),
            "provenance": found.provenance,
            "known": found.provenance if found.provenance in order else "assumed",
            "means": PROVENANCE.get(found.provenance, "of unknown standing"),
        }
        for found in listed
    ]


def budget_of(ledger: Ledger, dataset: str) -> dict[str, Any]:
    """Only what the books say in total: no label, no other release by name."""
    account, left = ledger.account(dataset), ledger.remaining(dataset)
    total = budget_epsilon(account.budget, left.delta)
    spent = left.spent_epsilon if left.listed_epsilon is None else max(total, left.listed_epsilon)  # nothing is left
    return {
        "dataset": dataset,
        "budget": str(account.budget),
        "total": shown(total),
        "spent": shown_up(spent),
        "left": shown_down(left.epsilon),
        "delta": small(left.delta),
        "releases": account.reservations,
        "closed": account.closed,
        "bar": pictures.budget_bar(spent, total),
        "head": ledger.head(),
    }


def budget_epsilon(budget: Promise, delta: float) -> float:
    return budget.stated_epsilon if isinstance(budget, PureDP | ApproxDP) else budget.epsilon(delta)


def how_made(certificate: Certificate, plan: Any) -> list[tuple[str, str]]:
    """What everybody may ask."""
    facts = [
        ("Model", f"{type(plan.model).__name__}: {certificate.draw.quantity}"),
        ("Mechanism", f"{type(plan.mechanism).__name__}: {plan.heading}"),
        ("Theorem", certificate.mechanism.theorem),
        ("Budget it was made for", str(plan.budget)),
        ("Neighbours", certificate.neighbours),
        ("Randomness", certificate.randomness),
        ("Prepared at", certificate.prepared_at),
        ("Software", ", ".join(f"{name} {version}" for name, version in certificate.software.items())),
        *engine_words(certificate.data.engine),
    ]
    return [(name, shortened(value)) for name, value in facts]


def engine_words(engine: Any) -> list[tuple[str, str]]:
    """Where compiled code read the records; of certificates that do not say, nothing."""
    if engine is None:
        return []
    parts = f" {engine.version}, {engine.parts} parts" if engine.digest else ""
    device = f", on {engine.device} ({engine.platform}), JAX {engine.jax}" if engine.device else ""
    return [("Computed in", f"{engine.name}{parts}{device}")]


def made_besides(certificate: Certificate, plan: Any, promise: Promise) -> list[tuple[str, str]]:
    """What a reviewer asks besides, in that order; folded away."""
    facts = [
        ("Promise, in its native form", str(promise)),
        ("Draws", f"{plan.draws}"),
        ("Sampler", sampler_words(certificate.sampler)),
        ("Why this sampler", certificate.sampler_choice),
        ("Exactness", certificate.exactness_cost),
        ("Arithmetic", certificate.numeric_model),
        ("Lattice of the draw", f"multiples of {lattice_words(certificate.lattice)}"),
        ("Second opinion", certificate.second_opinion),
        ("Schema", certificate.data.schema_digest or ""),
        ("Column of persons", certificate.data.person or ""),
        ("Plan digest", certificate.plan_digest),
        ("Ledger entry", certificate.ledger.entry if certificate.ledger else ""),
        ("Certificate digest", certificate.digest),
    ]
    return [(name, shortened(value)) for name, value in facts if value]


def sampler_words(sampler: dict[str, Any]) -> str:
    options = ", ".join(f"{name.replace('_', ' ')} {shown(value)}" for name, value in sampler.items() if name != "name")
    return f"{sampler.get('name', '?')}" + (f" ({options})" if options else "")


def expected_words(error: float) -> str:
    return shown(error) if math.isfinite(error) else "unknown"


def expected_of(choices: Any, *, replaced: bool = False) -> dict[str, Any]:
    """The plan's table: every mechanism that could have been used, best first, and why the others could not.

    A fit's plan speaks of several designs instead; where the release has standard errors they replace it, and it is left out.
    """
    designs = () if replaced else choices.eligible[0].designs
    return {
        "designs": [
            (design.words, expected_words(design.expected.private), expected_words(design.expected.sampling))
            for design in designs
        ],
        "beyond": choices.beyond if designs else "",
        "rows": []
        if choices.eligible[0].designs
        else [
            (choice.plan.heading, expected_words(choice.expected.private), expected_words(choice.expected.sampling))
            for choice in choices.eligible
        ],
        "refused": sorted((str(name), str(reason)) for name, reason in dict(choices.refused).items()),
        "why": str(getattr(choices, "why", "") or ""),
    }
