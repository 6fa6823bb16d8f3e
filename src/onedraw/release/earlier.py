"""Certificates of format 1, which onedraw reads and no longer writes.

They have no fingerprint, no data set and no version of their wording, and state whether the theorem holds and whether a seed was
used in words alone. `FirstCertificate` writes itself as it was read, so the digest that a ledger holds is still its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from onedraw.plans import digest_of
from onedraw.samplers import SEEDED

from .certificate import NEVER_PRIVATE, NOT_PROVEN, Certificate, TimingStatement, reject

FIRST_FORMAT: Final = "onedraw certificate 1"

SINCE = ("wording", "fingerprint", "seeded")
"""Fields that format 1 does not have."""


class FirstCertificate(Certificate):
    """Certificate of format 1. Its sentences are not compared: their wording has no version."""

    format: Literal["onedraw certificate 1"] = FIRST_FORMAT  # type: ignore[assignment]
    timing: TimingStatement | None = None
    plan_digest: str
    exactness_cost: str

    @model_validator(mode="before")
    @classmethod
    def _with_todays_fields(cls, document: Any) -> Any:
        """Add what format 2 states in fields of their own; a mark in either place counts, so an edit removes none."""
        if not isinstance(document, Mapping) or "neighbours" not in document or document.keys() & {*SINCE, "neighbors"}:
            return document
        sentence, mechanism = str(document.get("sentence")), document.get("mechanism")
        renamed = {"neighbors" if name == "neighbours" else name: value for name, value in document.items()}
        seeded = document.get("randomness") == SEEDED or sentence.startswith(NEVER_PRIVATE)
        added: dict[str, Any] = {"wording": 0, "fingerprint": "", "seeded": seeded}
        if isinstance(mechanism, Mapping) and "proven" not in mechanism:
            added["mechanism"] = {**mechanism, "proven": NOT_PROVEN not in sentence}
        return renamed | added

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        mechanism = {name: value for name, value in written["mechanism"].items() if name != "proven"}
        kept = {name: value for name, value in written.items() if name not in SINCE and (name != "timing" or value)}
        renamed = {"neighbours" if name == "neighbors" else name: value for name, value in kept.items()}
        return renamed | {"mechanism": mechanism}


def check_first(certificate: Certificate) -> None:
    """Refuse a certificate of format 1 whose plan is not the one whose digest it states."""
    if isinstance(certificate, FirstCertificate) and digest_of(certificate.plan) != certificate.plan_digest:
        raise reject("its plan is not the one whose digest it states")
