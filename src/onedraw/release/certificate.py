"""What a released draw says of itself, as a document: its parts, and how it is read.

A certificate is one JSON document: the draw, the promise, and every number the promise was derived from, so that
`verify` can derive it again without the data. Nothing in it depends on the records except the draw: the words, the
plan, the lattice and the time are all fixed before the records are read. Its first line is a sentence a privacy
officer can read aloud: it begins with how exact the draw is and ends in how often the best guess about a record can be right.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from onedraw.errors import CertificateRejected, WrongCall
from onedraw.methods import plan_from_dict
from onedraw.plain_text import acting, escaped, shown_as_html, texts_in
from onedraw.plans import Plan, digest_of

FORMAT: Final = "onedraw certificate 2"

WORDING: Final = 1
"""Version of the sentences that `Statement` writes. Raise it with every change of a sentence that an issued certificate can hold:
`verify` compares the sentences of this wording only."""

PROSE = (
    "wording", "sentence", "timing.sentence", "unit", "mechanism.theorem", "plan.guarantee.theorem", "plan.guarantee.assumptions",
    "exactness.numeric", "exactness.evidence", "exactness.statement", "assumptions", "randomness", "numeric_model",
    "draw.quantity",
)  # fmt: skip
"""Fields written for people. No decision reads them; each says again what a structured field holds."""

NEVER_PRIVATE = "SEEDED: REPRODUCIBLE, NOT PRIVATE. "
NOT_PROVEN = "NOT PROVEN, as published: "
NOT_RECORDED = " Not recorded in any ledger."

STANDING = {
    "exact": "Exact",
    "last-iterate": "Proven",
    "as-run": "Proven",
    "accounted": "Accounted for",
    "within-tv": "Accounted for",
    "estimated": "Estimated, not proven",
    "assumed": "Assumed, not proven",
}
"""By the kind of exactness: how the promise is known to hold."""

UNPROVEN = ("estimated", "assumed")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    optional: ClassVar[tuple[str, ...]] = ()
    """Fields that are not written where there is nothing to write: certificates from before they existed keep their digests."""

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        left_out = {name for name in self.optional if written[name] is None or written[name] == []}
        return {name: value for name, value in written.items() if name not in left_out}


class PromiseStatement(_Part):
    """The promise, in the words everyone reads (ε, δ) and in its native form."""

    epsilon: float = Field(ge=0)
    """0 where δ alone covers what a record can change."""
    delta: float = Field(ge=0, lt=1)
    native: dict[str, Any]
    budget: dict[str, Any]


class MechanismStatement(_Part):
    name: str
    proven: bool
    """False for a published calibration whose proof does not hold."""
    theorem: str
    parameters: dict[str, Any]


class AssumptionStatement(_Part):
    statement: str
    provenance: str


class MeasureStatement(_Part):
    """The draw is about (response − centre)/unit: public numbers, which whoever reads it out gives back."""

    centre: float
    unit: float = Field(gt=0)


class EngineStatement(_Part):
    """Where compiled code read the records, and on which device: the integers, and so the draw, are the same on every engine. Absent
    where one process counted without compiled code."""

    optional = ("digest", "platform", "device", "jax")

    name: str
    version: str
    parts: int = Field(ge=1)
    """By n and the number of cores: public."""
    digest: str | None = None
    """Of public numbers passed through the arithmetic that was used; workers that computed another were refused."""
    platform: str | None = None
    device: str | None = None
    jax: str | None = None
    """What kind of device computed, its maker's name for it, and the version of JAX, if JAX did and not NumPy; of several workers all
    computed alike."""


class PrivateBoundsStatement(_Part):
    """The charged release that the bounds of some columns come from, by its entry in the ledger."""

    entry: str
    columns: list[str]
    epsilon: float
    delta: float


class DataStatement(_Part):
    """What the caller declared about the records; no value in it comes from them."""

    optional = ("dataset", "notes", "declared", "measure", "engine", "dates", "private_bounds")

    dataset: str | None = None
    """Name of the data set, as the ledger has it."""
    target: str | None = None
    schema_digest: str | None = None
    inferred_from: str | None = None
    person: str | None = None
    notes: list[AssumptionStatement] = []
    """What the caller says, or what was noticed, about how the records came to be used; ASSUMED ones are warnings."""
    declared: dict[str, Any] | None = None
    """The schema itself, where new records are to be read as those were: for a regression."""
    measure: MeasureStatement | None = None
    engine: EngineStatement | None = None
    private_bounds: PrivateBoundsStatement | None = None
    dates: dict[str, dict[str, str]] | None = None
    """First day, last day, format and zone of each column of dates, and the part that is used of it."""

    @property
    def formula(self) -> str:
        """The formula of the regression, as a text; empty without one."""
        from onedraw.data.formula import Formula

        declared = (self.declared or {}).get("formula")
        return str(Formula(**declared)) if declared else ""


class TimingStatement(_Part):
    """What is said of running time. Of a padded draw: its public work, and how rarely it takes more (samplers/padding.md)."""

    optional = ("work", "gamma", "delta")

    sentence: str
    work: dict[str, int] | None = None
    """None where it is not padded."""
    gamma: float | None = Field(default=None, ge=0, lt=0.5)
    delta: float | None = Field(default=None, ge=0, le=1)
    """Of the draw together with its work, at the promise's ε."""


class LedgerEntry(_Part):
    """Where the spend stands in the ledger: the hash of the chain when it was reserved."""

    dataset: str
    entry: str
    head: str


class DrawStatement(_Part):
    optional = ("stages",)

    quantity: str
    names: list[str]
    values: list[list[float]]
    stages: dict[str, list[float]] | None = None
    """Of a release in stages, everything published, by stage; ``values`` follow from it."""


class Certificate(_Part):
    """The whole document. `Certificate.sentence` is its first line, `Certificate.timing` has the second."""

    optional = ("timing",)

    format: Literal["onedraw certificate 2"] = FORMAT
    wording: int = Field(ge=0)
    """Version of its sentences. A reader with another `WORDING` compares the numbers alone."""
    sentence: str
    promise: PromiseStatement
    timing: TimingStatement | None
    neighbors: str
    unit: str
    n: int = Field(ge=1)
    mechanism: MechanismStatement
    plan: dict[str, Any]
    fingerprint: str
    """Digest of the question (`fingerprint_of`): the plan page and the reservation in the ledger state the same."""
    sampler: dict[str, Any]
    sampler_choice: str
    exactness: dict[str, Any]
    assumptions: list[AssumptionStatement]
    seeded: bool
    """True for a draw from a fixed seed, which protects nobody."""
    randomness: str
    numeric_model: str
    lattice: float = Field(gt=0)
    second_opinion: str
    data: DataStatement
    prepared_at: str
    software: dict[str, str]
    ledger: LedgerEntry | None
    draw: DrawStatement

    @property
    def _first_line(self) -> str:
        """The sentence; of another wording, which nothing compares with the numbers, how to get the one that they give."""
        if self.wording == WORDING:
            return self.sentence
        return f"Its sentences are in wording {self.wording} and not compared with its numbers: verify() derives them."

    def __repr__(self) -> str:
        return f"<Certificate. {self._first_line}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        figures = [
            ("ε, δ", f"{self.promise.epsilon:.6g}, {self.promise.delta:.6g}"),
            ("mechanism", self.mechanism.name),
            ("released", f"{len(self.draw.values)} draw(s) of {len(self.draw.names)} number(s)"),
            ("ledger", f"{self.ledger.dataset}, entry {self.ledger.entry[:12]}…" if self.ledger else "none"),
        ]
        return shown_as_html(self._first_line, ("", ""), figures, more="to_json() has the whole certificate.")

    def coverage(self, files: str = "this file") -> str:
        """Say what the guarantee covers, how strong it is, and what must not be published."""
        from .review import coverage

        return coverage(self, files)

    def to_json(self) -> str:
        return json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON: what the ledger keeps when the release is settled."""
        return digest_of(self.model_dump(mode="json"))


# ── reading it strictly: it is somebody else's document, and whatever fails is a rejection, never a crash ────────────


def read_certificate(path: str | os.PathLike[str]) -> Certificate:
    """Parse a release file; anything that is not exactly a certificate is rejected with the first reason."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongCall(
            f"{path} could not be read as a release file: {error}. Pass the JSON that release wrote."
        ) from error
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_a_double, parse_float=_a_double)
        certificate = certificate_from(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise CertificateRejected(f"{path} is not a certificate of this format: {where}: {first['msg']}.") from error
    except (ValueError, RecursionError) as error:
        raise CertificateRejected(f"{path} is not a certificate: its JSON does not parse ({error}).") from error
    check_texts(document)
    for where in differences(document, certificate.model_dump(mode="json")):
        raise reject(f"{escaped(where)} does not stand there as it would have been written")
    return certificate


def certificate_from(document: Any) -> Certificate:
    """Return the certificate of a parsed document, of this format or of the one before."""
    from .earlier import FIRST_FORMAT, FirstCertificate

    first = isinstance(document, dict) and document.get("format") == FIRST_FORMAT
    return (FirstCertificate if first else Certificate).model_validate(document)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) != len(pairs):
        raise ValueError("a field stands twice")
    return found


def _a_double(digits: str) -> float:
    """The number that stands there and no other: digits that a double drops were never issued."""
    value = float(digits)
    if not math.isfinite(value) or Decimal(digits) != Decimal(repr(value)):
        raise ValueError(f"{digits[:40]} has more digits than a double holds, is too large for one, or no number")
    return value


def rebuild_plan(certificate: Certificate) -> Plan:
    with rejecting("its plan is not one a mechanism could have made"):
        return plan_from_dict(certificate.plan)


def check_texts(document: Any) -> None:
    """Refuse a text that acts on the terminal, report or table where it is read, or that holds what nobody sees."""
    for text in texts_in(document):
        if acting(text):
            raise reject("a text in it holds line ends, escape sequences or other characters that cannot be shown")


def reject(what: str) -> CertificateRejected:
    return CertificateRejected(
        f"The certificate does not hold: {what.rstrip('.')}. It was edited, damaged, or written by a faulty program. "
        "Do not rely on it; ask the data holder for the original."
    )


@contextmanager
def rejecting(what: str) -> Iterator[None]:
    """Whatever a stranger's numbers break is the numbers' fault: fail closed, in words."""
    try:
        yield
    except CertificateRejected:
        raise
    except Exception as error:
        raise reject(f"{what} ({error})") from error


def is_under(where: str, places: Iterable[str]) -> bool:
    """Return whether a path of a document is one of ``places`` or lies below one."""
    return any(where == place or where.startswith(f"{place}.") for place in places)


def differences(written: Any, rebuilt: Any, where: str = "") -> Iterator[str]:
    """Paths at which two JSON documents differ; derived floats may differ by rounding between machines (1e-9)."""
    if isinstance(written, dict) and isinstance(rebuilt, dict):
        for name in written.keys() | rebuilt.keys():
            path = f"{where}.{name}" if where else name
            if name not in written or name not in rebuilt:
                yield path
            else:
                yield from differences(written[name], rebuilt[name], path)
    elif isinstance(written, list) and isinstance(rebuilt, list) and len(written) == len(rebuilt):
        for index, (left, right) in enumerate(zip(written, rebuilt, strict=True)):
            yield from differences(left, right, f"{where}.{index}")
    elif isinstance(written, float) and isinstance(rebuilt, float):
        if not math.isclose(written, rebuilt, rel_tol=1e-9):
            yield where
    elif written != rebuilt or type(written) is not type(rebuilt):
        yield where
