"""A first schema from the names of the columns and what a person declares of them: no value is read.

    sketch = Sketch.of(open_table("visits.csv"), {"age": {"kind": "number", "lower": 0, "upper": 120}})
    print(sketch.to_yaml())

What is not declared yet stands there as a comment: a column without a kind, and what a declared kind still needs. A file whose
format stores types (Parquet, Arrow, PostgreSQL) says the kind of some columns itself, whatever its records are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import yaml

from onedraw.data.declarations import Column, perhaps
from onedraw.data.schema import Schema, listed
from onedraw.data.tables import Table
from onedraw.errors import FileMismatch, WrongCall
from onedraw.plain_text import acting

KINDS = ("number", "count", "binary", "category", "date")

_DECLARED = {get_args(kind.model_fields["kind"].annotation)[0]: kind for kind in get_args(Column)}
_WORDS = {
    "lower": "lower and upper, the public bounds", "first": "first and last, the public days between which dates lie",
    "cap": "cap, the largest count that is to matter", "levels": "levels, all values there can be", "missing": "missing, what a missing cell becomes",
}  # fmt: skip


class NamesAlone(Table):
    """Names that a person gave: no source is opened."""

    what = "The list of names"

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names


@dataclass(frozen=True)
class Sketch:
    """A schema that may not be complete: names in the file's order, and what is declared of some of them."""

    names: tuple[str, ...]
    declared: Mapping[str, Mapping[str, Any]]
    about: Mapping[str, Any] = field(default_factory=dict)
    """What stands before the columns: dataset, person, max_records, private_bounds."""

    @classmethod
    def of(
        cls, table: Table, declared: Mapping[str, Mapping[str, Any]], about: Mapping[str, Any] | None = None
    ) -> Sketch:
        """Check declarations against the names of a table's columns; types that the table stores say the kind of the others."""
        about = dict(about or {})
        named = [*declared, *([about["person"]] if about.get("person") else [])]
        times = Counter(table.names)
        if absent := [name for name in named if not times[name]]:
            raise FileMismatch(
                f"{table.what} has no column {listed(absent)}{perhaps(absent[0], set(table.names))}. Correct the name; case matters."
            )
        if twice := [name for name in named if times[name] > 1]:
            raise FileMismatch(
                f"{table.what} has {listed(twice)} more than once, so it is not clear which is meant. Rename the others."
            )
        stored = {
            name: {"kind": kind}
            for name, kind in table.kinds().items()
            if times[name] == 1 and name != about.get("person")
        }
        return cls(tuple(dict.fromkeys(table.names)), {**stored, **declared}, about)

    @property
    def complete(self) -> bool:
        """Whether nothing has to be added before records are read under it."""
        return bool(self.declared) and not any(map(self.lacking, self.declared))

    def lacking(self, name: str) -> list[str]:
        """Return what the declaration of a column still needs, in words."""
        given = self.declared[name]
        fields = _DECLARED[given["kind"]].model_fields
        needed = [
            key
            for key, one in fields.items()
            if one.is_required() and key not in ("kind", "upper", "last") and key not in given
        ]
        return [_WORDS[key] for key in needed]

    def to_schema(self) -> Schema:
        """The checked schema; `InvalidSchema` says what is still to be added."""
        return Schema.from_dict(
            {**self.about, "columns": {name: self.declared[name] for name in self.names if name in self.declared}}
        )

    def to_yaml(self) -> str:
        """The schema as YAML, with comments where something is left to declare."""
        lines = [yaml.safe_dump(dict(self.about), sort_keys=False, allow_unicode=True).rstrip()] if self.about else []
        lines.append("columns:")
        for name in self.names:
            if name == self.about.get("person"):
                continue
            if acting(name):
                lines.append("  # a column is left out: control characters stand in its name")
                continue
            key = _flow(name)
            if name not in self.declared:
                lines.append(f"  # {key}: {{kind: ...}}  # to declare: one of {', '.join(KINDS)}; or leave it out")
                continue
            lacking = self.lacking(name)
            note = f"  # to add: {'; '.join(lacking)}" if lacking else ""
            lines.append(f"  {key}: {_flow(dict(self.declared[name]))}{note}")
        text = "\n".join(lines) + "\n"
        if self.complete:
            self.to_schema()  # what is written can be read
        return text


def _flow(value: Any) -> str:
    """A value on one line of YAML."""
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=True, width=2**20)
    return text.removesuffix("\n...\n").strip()


# ── what is typed ────────────────────────────────────────────────────────────────────────────────────────────


def declaration(kind: str, written: str, names: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """Read ``NAME`` or ``NAME=FACTS`` of a kind: 0:120, a cap, levels as a|b|c, or first:last and a format."""
    name, given, facts = written, "", ""
    if written not in names and "=" in written:
        name, given, facts = written.rpartition("=")
    declared: dict[str, Any] = {"kind": kind}
    if not given:
        return name, declared
    parts = facts.split(":", 2)
    match kind:
        case "number" if len(parts) == 2:
            declared |= {"lower": _number(parts[0], written), "upper": _number(parts[1], written)}
        case "count" if facts.isdecimal():
            declared |= {"cap": int(facts)}
        case "binary" | "category" if facts:
            declared |= {"levels": [level.strip() for level in facts.split("|")]}
        case "date" if len(parts) >= 2:
            declared |= {"first": parts[0], "last": parts[1]} | ({"format": parts[2]} if len(parts) == 3 else {})
        case _:
            raise WrongCall(
                f"--{kind} {written!r} cannot be read. Write {_EXAMPLES[kind]}, or the column's name alone."
            )
    return name, declared


_EXAMPLES = {
    "number": "--number age=0:120", "count": "--count visits=20", "binary": "--binary 'healed=no|yes'",
    "category": "--category 'ward=medicine|surgery|other'", "date": "--date admitted=2020-01-01:2025-12-31, and :%d.%m.%Y after it for another format",
}  # fmt: skip


def _number(text: str, written: str) -> float | int:
    try:
        value = float(text)
    except ValueError:
        raise WrongCall(
            f"--number {written!r} cannot be read: {text!r} is no number. Write {_EXAMPLES['number']}."
        ) from None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
