"""A plan read back from JSON: for whoever checks a certificate. A release holds its plan and never reads one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from onedraw.errors import CertificateRejected
from onedraw.models import model_from_dict
from onedraw.plans import Mechanism, Plan, Request
from onedraw.privacy import Promise

MechanismClass = TypeVar("MechanismClass", bound="type[Mechanism]")

_MECHANISMS: dict[str, type[Mechanism]] = {}


def register_mechanism(mechanism_class: MechanismClass) -> MechanismClass:
    """Class decorator: makes a mechanism known to `plan_from_dict`."""
    _MECHANISMS[mechanism_class.__name__] = mechanism_class
    return mechanism_class


def plan_from_dict(stored: Mapping[str, Any]) -> Plan:
    """Derive a plan again from its calibrated numbers; every stated figure must be the one that follows."""
    names = {
        "mechanism",
        "model",
        "budget",
        "n",
        "draws",
        "gamma",
        "records_per_person",
        "parameters",
        "requires",
        "guarantee",
    }
    if not isinstance(stored, Mapping) or set(stored) != names:
        raise CertificateRejected(f"A plan has exactly the fields {', '.join(sorted(names))}.")
    request = Request(
        model_from_dict(stored["model"]),
        Promise.from_dict(stored["budget"]),
        n=stored["n"],
        draws=stored["draws"],
        gamma=stored["gamma"],
        records_per_person=stored["records_per_person"],
    )
    plan = mechanism_from_dict(stored["mechanism"]).plan(request, _numbers(stored["parameters"]))
    for name, derived in plan.to_dict().items():
        if stored[name] != derived:
            raise CertificateRejected(
                f"The plan's {name} is not what follows from its mechanism, model and calibrated numbers. It "
                "was edited or damaged; do not rely on it."
            )
    return plan


def mechanism_from_dict(stored: Any) -> Mechanism:
    name = stored.get("name") if isinstance(stored, Mapping) else None
    if not isinstance(name, str) or name not in _MECHANISMS:
        raise CertificateRejected(
            f"No mechanism is called {name!r}; the known ones are {', '.join(sorted(_MECHANISMS))}."
        )
    try:
        return _MECHANISMS[name](**{option: value for option, value in stored.items() if option != "name"})
    except TypeError:
        raise CertificateRejected(f"The options stated for {name} are not those it has.") from None


def _numbers(stored: Any) -> dict[str, float]:
    if not isinstance(stored, Mapping) or not all(type(value) is float for value in stored.values()):
        raise CertificateRejected("A plan's parameters are floating-point numbers by name.")
    return dict(stored)
