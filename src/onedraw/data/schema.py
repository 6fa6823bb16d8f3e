"""The schema: everything about the records that is public, declared before a record is read.

Bounds, levels and caps decide how far one record can move a result;
they are inputs of the theorem, so they come from the user and never from the private file. A schema that does
not say enough is refused with the line to add. Files are YAML or JSON:

    dataset: patients-2026        # name in the ledger
    person: patient_id            # optional: the column that says whose record it is …
    max_records: 3                # … and how many records of one person count
    columns:
      age:     {kind: number, lower: 0, upper: 120}
      sex:     {kind: category, levels: [female, male, other], missing: level}
      smoker:  {kind: binary, missing: no}
      visits:  {kind: count, cap: 20}
      seen:    {kind: date, first: 2025-01-01, last: 2025-12-31, format: "%d.%m.%Y"}

A missing cell contributes nothing, and releases say how many there are, with noise: `missing: skip`, the default. It may become a
declared value instead (`missing: 50`), or of a category a level of its own, called "missing" (`missing: level`).

`formula` holds the terms of a regression (`data/formula.py`); questions add it to a schema of the columns that they read.

Of a binary column `levels` may be given, the one coded 0 first; otherwise no/false/0 and yes/true/1 are read. Of a
number or count `step` may be given, how much more of it people speak of (10 years): reports give odds and rates for it.

**What is written is what is meant.** YAML 1.1, which PyYAML follows, reads `no` as false, `012` as ten, `12:30` as 750, `2026-01-01`
as a date and `1e5` as a text. A list of levels must not change so: `PlainLoader` knows the scalars of JSON (null, true, false,
decimal numbers), and everything else is text. Keys are always text, and a key given twice is refused. So are aliases (nine lines of
them can stand for a billion values) and tags, which say that a text is something else than it looks.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, field_serializer, field_validator, model_validator

from onedraw.data.declarations import (
    UNDECLARED,
    Binary,
    Category,
    Column,
    Count,
    Date,
    Declared,
    Number,
    Text,
    kind_of,
    perhaps,
    plain,
)
from onedraw.data.formula import Design, Formula
from onedraw.errors import CannotWrite, InvalidSchema

__all__ = ["Binary", "Category", "Column", "Count", "Date", "Number", "Schema"]


class BoundsFromRelease(Declared):
    """The charged release that the bounds of some columns come from."""

    entry: Text
    """Of the ledger."""
    columns: Annotated[tuple[Text, ...], BeforeValidator(lambda some: tuple(some) if isinstance(some, list) else some)]
    epsilon: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0


class Schema(Declared):
    """The declared columns, the unit, and the name under which releases are booked."""

    dataset: Text | None = None
    person: Text | None = None
    max_records: int | None = None
    inferred_from: Text | None = None
    private_bounds: BoundsFromRelease | None = None
    columns: Mapping[Annotated[str, AfterValidator(plain)], Annotated[Column, Field(discriminator="kind")]]
    formula: Formula | None = None

    formats: ClassVar[tuple[str, ...]] = (".yaml", ".yml", ".json")

    @field_validator("columns", mode="after")
    @classmethod
    def _freeze(cls, columns: Mapping[str, Column]) -> Mapping[str, Column]:
        if not columns:
            raise ValueError("no column is declared: {}. {}".format(*UNDECLARED["columns"]))
        return MappingProxyType(dict(columns))

    @field_serializer("columns")
    def _thaw(self, columns: Mapping[str, Column]) -> dict[str, Any]:
        return {name: column.model_dump(mode="json", exclude_none=True) for name, column in columns.items()}

    @model_validator(mode="after")
    def _check(self) -> Schema:
        if "" in self.columns:
            raise ValueError("a column has an empty name. Name every column as the file's header does")
        if self.max_records is not None and self.person is None:
            raise ValueError(
                f"`max_records: {self.max_records}` needs `person:`: without a column that says whose a "
                "record is, the limit cannot be enforced. Add `person:`, or remove `max_records:` (one "
                "record, one person)"
            )
        if self.max_records is not None and self.max_records < 1:
            raise ValueError(f"expected max_records of 1 or more, got {self.max_records}. Choose at least 1")
        if self.private_bounds and (unknown := set(self.private_bounds.columns) - set(self.columns)):
            raise ValueError(
                f"`private_bounds:` names {listed(sorted(unknown))}, which `columns:` does not declare. Remove what is not declared"
            )
        if self.person in self.columns:
            raise ValueError(
                f"{self.person!r} is both the person column and a data column; an identifier says nothing "
                "about the population. Remove it from `columns:`"
            )
        assert self.design is None or self.design.formula is self.formula  # reading it refuses what is not allowed
        return self

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:  # read-only mappings cannot be pickled
        return Schema.from_dict, (self.to_dict(),)

    def __copy__(self) -> Schema:
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Schema:
        return self

    # The two ways in

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema from a YAML or JSON file."""
        path = Path(path)
        if path.is_file() and path.suffix not in cls.formats:
            raise InvalidSchema(
                f"{path.name} is not read as a schema: expected a name ending in {', '.join(cls.formats)}. The format is not "
                "guessed, lest a file of records be taken for a schema and quoted. Rename it, or pass the files in their order."
            )
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
            raise InvalidSchema(
                f"The schema {path.name} cannot be read: {reason}. Expected a YAML or JSON file with "
                "`columns:`; check the path, or write one with `onedraw schema new`."
            ) from None
        return cls.from_dict(_parsed(text, is_json=path.suffix == ".json"))

    @classmethod
    def from_dict(cls, declared: Mapping[str, Any]) -> Schema:
        """Check a schema given as plain dictionaries, as in the files."""
        if not isinstance(declared, Mapping):
            raise InvalidSchema(
                f"Expected a schema, a mapping with `columns:`, got {kind_of(declared)}. {UNDECLARED['columns'][1]}."
            )
        if "columns" not in declared:  # perhaps records: their keys are not quoted
            raise InvalidSchema("`columns:` is not declared; {}. {}.".format(*UNDECLARED["columns"]))
        return cls(**_with_text_keys(declared, depth=3))

    # The ways out

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)

    def to_yaml(self) -> str:
        """The schema as a YAML file, with the notice of an inferred schema as its first line."""
        declared = self.to_dict()
        readable = "\ufeff" not in json.dumps(declared, ensure_ascii=False)  # a byte order mark would be dropped
        text = yaml.safe_dump(declared, sort_keys=False, allow_unicode=readable, width=2**20)
        return f"# {self.notice}\n{text}" if self.notice else text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write YAML, or JSON where the name ends in .json; an existing file is not replaced."""
        path = Path(path)
        if path.suffix == ".json":
            text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"
        else:
            text = self.to_yaml()
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            reason = "it exists already" if isinstance(error, FileExistsError) else error.strerror
            raise CannotWrite(
                f"The schema cannot be written to {path.name}: {reason}. Choose another name or place."
            ) from None

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """A JSON Schema (draft 2020-12) of schema files, for editors and other programs."""
        described = cls.model_json_schema()
        for name, definition in described["$defs"].items():
            if name in ("Number", "Category", "Binary", "Count", "Date"):
                definition["required"] = ["kind", *definition.get("required", ())]
        described["properties"]["columns"]["minProperties"] = 1
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}

    # What others ask of it

    @property
    def digest(self) -> str:
        """SHA-256 of the schema's canonical JSON: names exactly these declarations."""
        canonical = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def notice(self) -> str | None:
        """What a certificate must repeat about where the bounds come from; None when they were declared."""
        return f"inferred from {self.inferred_from}: must be public" if self.inferred_from else None

    @property
    def records_per_person(self) -> int:
        """How many records of one person can count: k of the unit."""
        return self.max_records or 1

    @cached_property
    def design(self) -> Design | None:
        """What the formula means under these columns; None without a formula."""
        return None if self.formula is None else Design.of(self.formula, self.columns)

    @property
    def derived(self) -> str | None:
        """The response of the formula where it is computed from columns, as `log(wage)`; None for a column as it is."""
        response = None if self.design is None else self.design.response
        return (
            None
            if self.design is None or response is None or response.quantity is None
            else self.design.formula.response
        )

    def predictors(self, target: str | None) -> tuple[str, ...]:
        """Return the columns that explain a target: those of the formula, or all others."""
        return tuple(name for name in self.columns if name != target) if self.design is None else self.design.columns

    def read_for(self, target: str | None) -> tuple[str, ...]:
        """Return what is read of a record in a regression: the columns, and a response that is computed from them."""
        return (*self.columns, target) if target is not None and target == self.derived else tuple(self.columns)

    def choose(self, columns: Iterable[str], formula: Formula | None = None) -> Schema:
        """Return the schema of some of the columns, in this order, with a formula of them."""
        chosen = {name: self.column(name) for name in columns}
        return Schema(
            **{one: getattr(self, one) for one in ("dataset", "person", "max_records", "inferred_from")},
            columns=chosen,
            formula=formula,
        )

    def with_formula(self, formula: Formula | str) -> Schema:
        """Return the schema of the columns that a formula names, with the formula."""
        formula = Formula.parse(formula) if isinstance(formula, str) else formula
        design = Design.of(formula, self.columns)
        named = {*design.columns, *(() if design.response is None else design.response.columns)}
        return self.choose((name for name in self.columns if name in named), formula)

    def of_predictors(self, target: str | None) -> Schema:
        """Return the schema by which new records are read, whose target is not known."""
        terms = None if self.formula is None else self.formula.model_copy(update={"response": None})
        return Schema(columns={name: self.columns[name] for name in self.predictors(target)}, formula=terms)

    def column(self, name: str) -> Column:
        """The declaration of one column, by name; of the formula's response, as it follows from those of its columns."""
        if name == self.derived:
            assert self.design is not None
            assert self.design.response is not None
            return self.design.response.declared
        if name not in self.columns:
            raise InvalidSchema(
                f"The column {name!r} is not declared in the schema, which has {listed(list(self.columns), 8)}; without a declaration "
                f"its bounds are unknown. Add it to `columns:`{perhaps(name, self.columns)}."
            )
        return self.columns[name]


def listed(names: Sequence[Any], limit: int = 12) -> str:
    """Columns by name, as far as somebody reads on."""
    shown = ", ".join(map(repr, names[:limit]))
    return shown if len(names) <= limit else f"{shown}, … ({len(names)} columns)"


def _with_text_keys(declared: Any, *, depth: int) -> Any:
    """A schema is three mappings deep (columns, a column, its facts); what lies deeper is refused, not walked through."""
    if depth == 0 or not isinstance(declared, Mapping):
        return declared
    return {str(key): _with_text_keys(value, depth=depth - 1) for key, value in declared.items()}


# ── the text of a schema ───────────────────────────────────────────────────────────────────────────────────

_FLOAT = (
    r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
    r"|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
)


class NotPlain(yaml.MarkedYAMLError):
    """YAML that means something else than it says; ``remedy`` is what to write instead."""

    def __init__(self, remedy: str, mark: Any) -> None:
        super().__init__(problem_mark=mark)
        self.remedy = remedy


class PlainLoader(yaml.SafeLoader):
    """A safe loader with the scalars of JSON and no others."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own class attribute)

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise NotPlain("Aliases (*name) are not read: write the declaration out there", event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise NotPlain("Tags (!name) are not read: write the value plainly there", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain text", key.start_mark)
        return _once((str(key.value), self.construct_object(value, deep=deep)) for key, value in node.value)


for tag, pattern, first in (
    ("null", r"(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    ("float", _FLOAT, list("-+.0123456789")),
):
    PlainLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)


def _parsed(text: str, *, is_json: bool) -> Any:
    """The plain values of a schema's text."""
    try:
        if is_json:
            return json.loads(text, object_pairs_hook=_once)
        return yaml.load(text, Loader=PlainLoader)  # a SafeLoader
    except InvalidSchema:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # JSONDecodeError is a ValueError
        mark = getattr(error, "problem_mark", None)
        line = error.lineno if isinstance(error, json.JSONDecodeError) else mark and mark.line + 1
        remedy = "Correct the file, or write it as YAML" if is_json else "Correct the indentation or the quotes there"
        remedy = error.remedy if isinstance(error, NotPlain) else remedy
        where = f" at line {line}" if line else ""
        raise InvalidSchema(f"The schema is not valid {'JSON' if is_json else 'YAML'}{where}. {remedy}.") from None


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping in which every key is given once."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidSchema(
                f"The key {key!r} is given twice in one place of the schema, so it is not clear which of the two is meant. "
                "Remove one."
            )
        found[key] = value
    return found
