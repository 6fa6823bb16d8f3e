"""Reading a certificate strictly. It is somebody else's document: whatever fails while it is read is a rejection, never a crash."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from onedraw.errors import CertificateRejected, WrongCall
from onedraw.mechanisms import plan_from_dict
from onedraw.plain_text import acting, escaped, texts_in
from onedraw.plans import Plan

from .certificate import Certificate


def read_certificate(path: str | os.PathLike[str]) -> Certificate:
    """Parse a release file; anything that is not exactly a certificate is rejected with the first reason."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongCall(
            f"{path} could not be read as a release file: {error}. Pass the JSON that release wrote."
        ) from error
    try:
        document = json.loads(
            text, object_pairs_hook=_without_repeats, parse_constant=_no_constant, parse_float=_a_double
        )
        certificate = Certificate.model_validate(document)
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


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("a field stands twice")
    return dict(pairs)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _a_double(digits: str) -> float:
    """The number that stands there and no other: digits that a double drops were never issued."""
    value = float(digits)
    if not math.isfinite(value) or Decimal(digits) != Decimal(repr(value)):
        raise ValueError("a number has more digits than a double holds, or is too large for one")
    return value


def rebuild_plan(certificate: Certificate) -> Plan:
    with rejecting("its plan is not one a mechanism could have made"):
        plan = plan_from_dict(certificate.plan)
    if plan.digest != certificate.plan_digest:
        raise reject("its plan is not the one whose digest it states")
    return plan


def check_texts(document: Any) -> None:
    """No text of it acts on the terminal, report or table where it is read."""
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
