"""The tables of all ways in docs/choosing-a-mechanism.md name what the code offers, each with a reason whose evidence exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from onedraw.methods import Mechanism
from onedraw.planning import KINDS, Regression
from onedraw.planning.variants import _by_name_alone, variants_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "choosing-a-mechanism.md").read_text(encoding="utf-8")
EVIDENCE = ("paper", "budget", "measured")

OPTIONS = {
    "softmax": {"classes": ("a", "b", "c")}, "linear": {"response_bound": 1.0, "variance_floor": 0.01}, "quantile": {"response_bound": 1.0},
    "poisson": {"largest": 10}, "negative-binomial": {"dispersion": 2.0}, "network-regressor": {"response_bound": 1.0},
}  # fmt: skip


def rows_after(heading: str) -> list[list[str]]:
    """Return the cells of the first table whose header begins with this."""
    lines = PAGE[PAGE.index(f"| {heading} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


WAYS = rows_after("name")


def offered() -> dict[str, set[str]]:
    """Return the kinds of regression that each name answers."""
    found: dict[str, set[str]] = {}
    for kind in KINDS:
        question = Regression(kind, 3, bounds=([-1] * 3, [1] * 3), **OPTIONS.get(kind, {}))
        for variant in (*variants_of(question), *_by_name_alone(question)):
            found.setdefault(variant.name, set()).add(kind)
    return found


def test_the_table_has_every_name_with_the_regressions_it_answers() -> None:
    assert {name.strip("`"): set(kinds.split(", ")) for name, kinds, *_ in WAYS} == offered()


def test_the_table_has_every_mechanism() -> None:
    named = [name for cell, *_ in rows_after("mechanism") for name in re.findall(r"`(\w+)`", cell)]
    ours = {name for name, kind in Mechanism.members().items() if kind.__module__.startswith("onedraw.methods.")}
    assert sorted(named) == sorted(ours)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[0])
def test_every_way_has_a_reason_whose_evidence_exists(way: list[str]) -> None:
    name, _, who, why = way
    assert who, name
    assert why.startswith(EVIDENCE), f"{name}: begin with one of {EVIDENCE}"
    assert all((DOCS / path).exists() for path in re.findall(r"\]\(([^)#]+)", why)), why
    assert why.startswith("paper") or "](" in why or why == "budget: pure ε", f"{name}: link what was measured"
