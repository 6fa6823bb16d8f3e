"""What every plan says the caller answers for: public numbers fixed without looking, n, and the unit (base.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onedraw.methods import Mechanism, Request
from onedraw.models import Model
from onedraw.privacy import Promise, Provenance

KEPT = Path(__file__).resolve().parents[1] / "golden" / "kept"
ASKED = ("n", "draws", "gamma", "records_per_person")


def kept_plans():
    """One kept release for each mechanism and what it is made of; that all are kept is a test of the golden files."""
    found = {}
    for path in sorted(KEPT.glob("*.json")):
        plan = json.loads(path.read_text(encoding="utf-8")).get("certificate", {}).get("plan")
        if plan is not None:
            inner = [plan["mechanism"].get(part) or {} for part in ("of", "within", "inner")]
            names = [one["name"] for one in (plan["mechanism"], *inner) if "name" in one]
            found.setdefault(" of ".join(names), plan)
    return found


PLANS = kept_plans()


def declared(stored):
    """What the plan derived again from a kept one says the caller answers for."""
    request = Request(
        Model.from_dict(stored["model"]), Promise.from_dict(stored["budget"]), **{one: stored[one] for one in ASKED}
    )
    plan = Mechanism.from_dict(stored["mechanism"]).plan(request, dict(stored["parameters"]))
    return [one.statement for one in plan.guarantee.assumptions if one.provenance == Provenance.DECLARED]


@pytest.mark.contract
@pytest.mark.parametrize("name", PLANS)
def test_plan_lists_what_the_caller_declares(name):
    said = declared(PLANS[name])
    assert any("n were fixed without looking at the records; n is public" in one for one in said)
    assert any(one.startswith("the unit of protection is ") for one in said)


@pytest.mark.finding("newcomer S8", commit="8a7c0fb")
def test_fit_lists_what_the_caller_declares():
    said = " ".join(declared(PLANS["PerturbedMode"]))
    assert "bounds and levels" in said
    assert "n is public" in said
