"""What a reader of a release has to weigh: how strong the protection is, and what was checked.

Everything is read from structured fields of the certificate, never from its sentences. A flag has a tone and words, because a
tone alone (a color) is not seen by everybody. No flag says that a release may be published: that is for the data owner.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from onedraw.plain_text import shown_up, small
from onedraw.privacy import Attacker, Promise

from .certificate import STANDING, UNPROVEN, Certificate

PLAIN_GUESSES, MOST_AMBER_GUESSES = 75, 90
"""Right guesses in 100: up to the first no remark, up to the second amber, beyond it red."""

AMBER_FAILURES, RED_FAILURES = 0.1, 1.0
"""δ·n, the expected number of records whose ε may fail: amber and red from these values on."""


class Tone(StrEnum):
    """How a flag is to be taken. Only a fact that was checked is green."""

    CHECKED = "checked"
    PLAIN = "plain"
    AMBER = "amber"
    RED = "red"

    @property
    def icon(self) -> str:
        """The sign that stands beside the words."""
        return {Tone.CHECKED: "✓", Tone.PLAIN: "·", Tone.AMBER: "!", Tone.RED: "✕"}[self]


@dataclass(frozen=True)
class Flag:
    """One fact about a release, and how it is to be taken."""

    tone: Tone
    words: str


def guesses_in_hundred(promise: Promise, delta: float) -> int:
    """Return the most right guesses in 100 between two values that are equally likely beforehand, rounded up."""
    return min(100, math.ceil(round(100.0 * Attacker(promise, delta).right_guesses, 6)))


def strength_flags(promise: Promise, delta: float, n: int) -> list[Flag]:
    """Return the flags of a promise alone: the attacker's success, and δ·n where it is not small."""
    right, failures = guesses_in_hundred(promise, delta), delta * n
    success = f"at most {right} of 100 guesses right"
    if right <= PLAIN_GUESSES:
        flags = [Flag(Tone.PLAIN, success[0].upper() + success[1:])]
    elif right <= MOST_AMBER_GUESSES:
        flags = [Flag(Tone.AMBER, f"Limited protection: {success}")]
    else:
        flags = [Flag(Tone.RED, f"Weak protection: {success}")]
    if failures >= AMBER_FAILURES:
        red = failures >= RED_FAILURES
        flags.append(Flag(Tone.RED if red else Tone.AMBER, f"Large δ: δ × n = {shown_up(failures, 2)}"))
    return flags


def is_proven(certificate: Certificate) -> bool:
    """Return whether theorem and draw are both proven, by the fields that say so."""
    return certificate.mechanism.proven and certificate.exactness.get("kind") not in UNPROVEN


def flags_of(certificate: Certificate, *, verified: str | None, intervals: Sequence[bool]) -> list[Flag]:
    """Return everything to be weighed: ``verified`` is the answer of `verify`, ``intervals`` says which numbers have one."""
    proven, ledger = is_proven(certificate), certificate.ledger
    standing = STANDING.get(str(certificate.exactness.get("kind")), "Not proven")
    if not certificate.mechanism.proven:
        standing = "Not proven, as published"
    if certificate.seeded:
        flags = [Flag(Tone.RED, "Not private: seeded")]
    else:
        promise = Promise.from_dict(certificate.promise.native)
        flags = strength_flags(promise, certificate.promise.delta, certificate.n)
    flags.append(Flag(Tone.RED if not proven else Tone.CHECKED if verified else Tone.PLAIN, standing))
    if ledger is None:
        flags.append(Flag(Tone.AMBER, "Not in a ledger"))
    else:
        checked = Tone.CHECKED if verified == "authentic" else Tone.PLAIN
        flags.append(Flag(checked, f"In the ledger of {ledger.dataset}"))
    if verified == "authentic":
        flags.append(Flag(Tone.CHECKED, "Verified against the ledger"))
    elif verified:
        flags.append(Flag(Tone.CHECKED, "Numbers derived again"))
    else:
        flags.append(Flag(Tone.RED, "Not verified"))
    if not any(intervals):
        flags.append(Flag(Tone.AMBER, "No interval"))
    elif not all(intervals):
        flags.append(Flag(Tone.AMBER, "Some numbers without an interval"))
    return flags


def coverage(certificate: Certificate, files: str) -> str:
    """Return what the guarantee covers, in words; whether that is enough is not for a program to say."""
    if certificate.seeded:
        return (
            "Not private: this release comes from a fixed seed, so the guarantee covers nothing. It is for trials. "
            "Do not publish it."
        )
    stated = certificate.promise
    right = guesses_in_hundred(Promise.from_dict(stated.native), stated.delta)
    delta = f" with δ = {small(stated.delta)}" if stated.delta else ""
    covered = f"The guarantee covers {files}."
    if not is_proven(certificate):
        covered = f"The guarantee covers {files} only if what is not proven holds."
    elif any(note.provenance == "assumed" for note in certificate.data.notes):
        covered = f"The guarantee covers {files}, but not how the records were used before: see the first line."
    return (
        f"{covered} Whether ε = {shown_up(stated.epsilon)}{delta} ({right} of 100 guesses) is acceptable is for the data owner to "
        "decide. Do not publish the records, the ledger or the output of --check."
    )


def cautions(certificate: Certificate) -> list[str]:
    """Return one line for each amber or red flag of the promise's strength, for a terminal."""
    stated = certificate.promise
    flags = strength_flags(Promise.from_dict(stated.native), stated.delta, certificate.n)
    return [f"Caution: {flag.words}." for flag in flags if flag.tone in (Tone.AMBER, Tone.RED)]
