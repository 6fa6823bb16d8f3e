"""A plan read back from JSON: for whoever checks a certificate. A release holds its plan and never reads one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onedraw.errors import CertificateRejected
from onedraw.methods.base import Mechanism
from onedraw.models import Model
from onedraw.plans import Plan, Request, without_words
from onedraw.privacy import Promise

ASKED = ("n", "draws", "gamma", "records_per_person")
NAMES = {"mechanism", "model", "budget", *ASKED, "parameters", "requires", "guarantee"}


def plan_from_dict(stored: Mapping[str, Any]) -> Plan:
    """Derive a plan again from its calibrated numbers; every stated figure must be the one that follows.

    The sentences of its guarantee are today's: those that are stored may be in another wording.
    """
    if not isinstance(stored, Mapping) or set(stored) != NAMES or not isinstance(stored["guarantee"], Mapping):
        raise CertificateRejected(f"A plan has exactly the fields {', '.join(sorted(NAMES))}.")
    numbers = stored["parameters"]
    if not isinstance(numbers, Mapping) or not all(type(value) is float for value in numbers.values()):
        raise CertificateRejected("A plan's parameters are floating-point numbers by name.")
    model, budget = Model.from_dict(stored["model"]), Promise.from_dict(stored["budget"])
    request = Request(model, budget, **{name: stored[name] for name in ASKED})
    plan = Mechanism.from_dict(stored["mechanism"]).plan(request, dict(numbers))
    given = without_words(stored)
    for name, derived in plan.without_words().items():
        if given[name] != derived:
            raise CertificateRejected(
                f"The plan's {name} is not what follows from its mechanism, model and calibrated numbers. It "
                "was edited or damaged; do not rely on it."
            )
    return plan
