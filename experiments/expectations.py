"""What a study must come out at: `expected.json`, read, checked, and told in a summary.

    {"logistic-rmse": {                                          # beside run.py: study → quantity → what is expected
      "error rule=jewson n=100": {"value": 1.40, "within": 0.33, "at_seeds": 40, "source": "reference", "quick": true},
      "gain at n=1000": {"at_most": 0.75, "source": "ours"}}}

Exactly one of "value" (then "within" is its tolerance), "at_most" and "at_least" ("within" is let pass beyond, by default 0).
"errors": 3 adds three standard errors of what was found to the tolerance: where few data sets leave the number itself uncertain.
With fewer seeds than a study has, or its quick cells alone, an expectation is checked if it says "quick": true, and "within"
grows by √(at_seeds/seeds) if it says "at_seeds". A quantity that a whole run does not compute fails; nor may NaN pass.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.study import Quantity, Study

SOURCES = ("paper", "reference", "ours")
KINDS = ("value", "at_most", "at_least")
OTHERS = {"within", "source", "quick", "at_seeds", "errors"}


@dataclass(frozen=True)
class Expectation:
    """One line of expected.json."""

    quantity: str
    kind: str
    limit: float
    within: float
    source: str
    quick: bool
    at_seeds: int | None
    errors: float = 0.0

    @classmethod
    def read(cls, quantity: str, stated: Mapping[str, Any]) -> Expectation:
        kinds = [kind for kind in KINDS if kind in stated]
        unknown = set(stated) - OTHERS - set(KINDS)
        if (
            len(kinds) != 1
            or unknown
            or stated.get("source") not in SOURCES
            or (kinds == ["value"]) > ("within" in stated)
        ):
            raise ValueError(
                f"expected.json, {quantity!r}: exactly one of {', '.join(KINDS)}, a tolerance (within) beside value, and a source "
                f"among {', '.join(SOURCES)} are needed; {dict(stated)} was read."
            )
        kind = kinds[0]
        return cls(
            quantity, kind, float(stated[kind]), float(stated.get("within", 0.0)), stated["source"],
            bool(stated.get("quick", False)), stated.get("at_seeds"), float(stated.get("errors", 0.0)),
        )  # fmt: skip

    def tolerance(self, seeds: int, error: float = 0.0) -> float:
        """With fewer seeds than it was stated for it is wider, and by so many standard errors of what was found."""
        return self.within * math.sqrt(max(1.0, (self.at_seeds or seeds) / seeds)) + self.errors * error

    def holds(self, found: float, seeds: int, error: float = 0.0) -> bool:
        tolerance = self.tolerance(seeds, error)
        if self.kind == "value":
            return abs(found - self.limit) <= tolerance
        return found <= self.limit + tolerance if self.kind == "at_most" else found >= self.limit - tolerance

    def words(self, seeds: int, error: float = 0.0) -> str:
        tolerance = self.tolerance(seeds, error)
        sign = {"value": "", "at_most": "≤ ", "at_least": "≥ "}[self.kind]
        return f"{sign}{self.limit:g}" + (f" ± {tolerance:.2g}" if tolerance else "")


@dataclass(frozen=True)
class Checked:
    """An expectation, what was found, and the verdict: passed, failed, or not checked in a reduced run."""

    expectation: Expectation
    expected: str
    found: float | None
    error: float | None
    verdict: str

    def document(self) -> dict[str, Any]:
        shown = {name: getattr(self, name) for name in ("expected", "found", "error", "verdict")}
        return {"quantity": self.expectation.quantity, "source": self.expectation.source, **shown}


def expectations(study: Study, folder: Path) -> list[Expectation]:
    """What the folder's expected.json says of a study; every study has something to meet."""
    stated = json.loads((folder / "expected.json").read_text(encoding="utf-8"))[study.name]
    return [Expectation.read(quantity, one) for quantity, one in stated.items()]


def check(stated: list[Expectation], quantities: Mapping[str, Quantity], *, seeds: int, reduced: bool) -> list[Checked]:
    """Every expectation against what was computed; ``reduced``: quick cells, or fewer seeds than the study has."""
    return [_checked(one, quantities.get(one.quantity), seeds, reduced) for one in stated]


def _checked(one: Expectation, quantity: Quantity | None, seeds: int, reduced: bool) -> Checked:
    found, error = quantity if isinstance(quantity, tuple) else (quantity, None)
    value = None if found is None or math.isnan(found) else float(found)
    known = 0.0 if not error or math.isnan(error) else float(error)
    if reduced and (quantity is None or not one.quick):
        verdict = "not checked"
    else:
        verdict = "passed" if value is not None and one.holds(value, seeds, known) else "failed"
    return Checked(one, one.words(seeds, known), value, known or None, verdict)


def summary(document: Mapping[str, Any]) -> str:
    """A run's result as Markdown."""
    rows = [
        f"| {one['quantity']} | {one['expected']} | {_found(one)} | {one['source']} | {one['verdict']} |"
        for one in document["expectations"]
    ]
    figures = [f"![{name}]({name}.svg)" for name in document["figures"]]
    pieces = [
        f"# {document['study']}", f"**{document['claim']}** ({document['paper']})", document["times"],
        "\n".join(f"- {finding}" for finding in document["findings"]),
        "\n".join(["| quantity | expected | found | source | |", "| --- | --- | --- | --- | --- |", *rows]),
        "\n\n".join(figures),
    ]  # fmt: skip
    return "\n\n".join(piece for piece in pieces if piece) + "\n"


def _found(one: Mapping[str, Any]) -> str:
    if one["found"] is None:
        return ""
    return f"{one['found']:.4g}" + (f" ({one['error']:.2g})" if one["error"] else "")
