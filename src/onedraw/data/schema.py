"""The schema: everything about the records that is public, declared before a record is read.

Bounds, levels, caps and the value that stands for a missing cell decide how far one record can move a result;
they are inputs of the theorem, so they come from the user and never from the private file. A schema that does
not say enough is refused with the line to add. Files are YAML or JSON:

    dataset: patients-2026        # name in the ledger
    person: patient_id            # optional: the column that says whose record it is …
    max_records: 3                # … and how many records of one person count
    columns:
      age:     {kind: number, lower: 0, upper: 120, missing: 50}
      sex:     {kind: category, levels: [female, male, other], missing: other}
      smoker:  {kind: binary, missing: no}
      visits:  {kind: count, cap: 20, missing: 0}

Of a binary column `levels` may be given, the one coded 0 first; otherwise no/false/0 and yes/true/1 are read. Of a
number or count `step` may be given, how much more of it people speak of (10 years): reports give odds and rates for it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    field_serializer,
    field_validator,
    model_validator,
)

from onedraw.data.cells import BINARY_WORDS, BLANKS, label_of
from onedraw.errors import CannotWrite, InvalidSchema
from onedraw.plain_text import acting

LARGEST_CAP = 10**9  # sums of a column then stay inside int64 up to nine billion records

_UNDECLARED = {  # what is missing: why it matters, what to do
    "bounds": (
        "without declared bounds one record could move the result arbitrarily far, and no promise exists",
        "Add `lower:` and `upper:`, chosen from what the quantity can be, not from the private file",
    ),
    "cap": (
        "without a declared cap one record could move the result arbitrarily far, and no promise exists",
        "Add `cap:`, the largest count that is to matter, chosen without looking at the private file",
    ),
    "levels": (
        "levels taken from the records would tell which values occur among them",
        "Add `levels:`, all the values the column may take",
    ),
    "missing": (
        "no record may make the program fail, so every unreadable cell needs a declared value",
        "Add `missing:`, the declared value that a missing or unreadable cell becomes",
    ),
    "columns": ("without columns nothing can be read", "Add `columns:` with at least one column"),
}
_EXPECTED = {
    "finite_number": "a finite number, since no promise follows from an infinite bound",
    "float_type": "a number",
    "int_type": "a whole number",
    "string_type": "a text",
    "string_too_short": "a text that is not empty",
    "tuple_type": "a list of levels",
    "mapping_type": "a mapping from column names to declarations",
    "dict_type": "a mapping from column names to declarations",
    "model_attributes_type": "a declaration such as {kind: number, lower: 0, upper: 1, missing: 0}",
}


def _as_label(level: Any) -> Any:
    if isinstance(level, bool):
        return "true" if level else "false"
    if isinstance(level, (int, float)):
        return label_of(level) or level
    return level.strip(BLANKS) if isinstance(level, str) else level


def _plain(text: str) -> str:
    if found := acting(text):
        raise ValueError(
            f"{text!r} holds {', '.join(map(ascii, found))}, which would act on a terminal, a report or a table instead of "
            "being shown there. Use printable characters"
        )
    return text


def _as_tuple(levels: Any) -> Any:
    return tuple(levels) if isinstance(levels, list) else levels


Text = Annotated[str, Field(min_length=1), AfterValidator(_plain)]
Label = Annotated[
    str,
    BeforeValidator(_as_label),
    AfterValidator(_plain),
    WithJsonSchema({"type": ["string", "number", "boolean"], "minLength": 1}),
]
Levels = Annotated[tuple[Label, ...], BeforeValidator(_as_tuple)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Declared(BaseModel):
    """A frozen value that refuses unknown keys and explains itself in our words, not the validator's."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InvalidSchema(_explain(type(self), error)) from None


class Number(_Declared):
    """A bounded real number; values outside [lower, upper] are moved to the nearest bound."""

    kind: Literal["number"] = "number"
    lower: Finite
    upper: Finite
    missing: Finite
    step: Finite | None = None

    @model_validator(mode="after")
    def _check(self) -> Number:
        _check_step(self.step)
        if not self.lower < self.upper:
            raise ValueError(
                f"expected lower < upper, got lower = {self.lower:g} and upper = {self.upper:g}: no value "
                "lies strictly between them, so the column would say nothing. Exchange or widen the bounds"
            )
        if not math.isfinite(self.upper - self.lower):
            raise ValueError("the width upper − lower is not a finite number. Narrow the bounds")
        if not self.lower <= self.missing <= self.upper:
            raise ValueError(
                f"`missing: {self.missing:g}` lies outside [{self.lower:g}, {self.upper:g}], where no record "
                "can be. Choose a value inside the bounds"
            )
        return self


class Category(_Declared):
    """One of a declared list of levels, coded 0, 1, … in the order declared."""

    kind: Literal["category"] = "category"
    levels: Levels
    missing: Label

    @property
    def labels(self) -> tuple[str, ...]:
        return self.levels

    @model_validator(mode="after")
    def _check(self) -> Category:
        if len(self.levels) < 2:
            raise ValueError(
                f"expected at least two levels, got {len(self.levels)}: a column of one value says nothing. "
                "Declare all the values the column may take"
            )
        _check_levels(self.levels, self.missing)
        return self


class Binary(_Declared):
    """One of two levels, coded 0 and 1; without `levels`, no/false/0 and yes/true/1 in any case."""

    kind: Literal["binary"] = "binary"
    levels: Levels | None = None
    missing: Label

    @property
    def labels(self) -> tuple[str, ...]:
        return self.levels or BINARY_WORDS

    @model_validator(mode="after")
    def _check(self) -> Binary:
        if self.levels is not None and len(self.levels) != 2:
            raise ValueError(
                f"a binary column has two levels, got {len(self.levels)}. Declare the level coded 0 and then "
                "the level coded 1, or use `kind: category`"
            )
        if self.levels is not None:
            _check_levels(self.levels, self.missing)
        elif label_of(self.missing.lower()) not in ("0", "1", *BINARY_WORDS):
            raise ValueError(
                f"`missing: {self.missing}` is neither no nor yes, and no levels are declared. Choose one of "
                "them, or declare `levels:`"
            )
        return self


class Count(_Declared):
    """A whole number from 0 to a cap; larger counts become the cap, fractions the nearest whole number."""

    kind: Literal["count"] = "count"
    cap: int
    missing: int
    step: Finite | None = None

    @model_validator(mode="after")
    def _check(self) -> Count:
        _check_step(self.step)
        if not 1 <= self.cap <= LARGEST_CAP:
            raise ValueError(
                f"expected a cap from 1 to {LARGEST_CAP:,}, got {self.cap}: below, every record is 0; above, "
                "sums are not exact. Choose the largest count that is to matter, or use `kind: number`"
            )
        if not 0 <= self.missing <= self.cap:
            raise ValueError(
                f"`missing: {self.missing}` lies outside 0 … {self.cap}, where no record can be. "
                "Choose a count from 0 to the cap"
            )
        return self


Column = Number | Category | Binary | Count
_KINDS: dict[str, type[_Declared]] = {
    "number": Number,
    "category": Category,
    "binary": Binary,
    "count": Count,
}


def _check_step(step: float | None) -> None:
    if step is not None and not 0.0 < step < math.inf:
        raise ValueError(f"`step: {step:g}` is not above 0. Write how much more of the column people speak of")


def _check_levels(levels: tuple[str, ...], missing: str) -> None:
    seen: dict[str, str] = {}
    for level in levels:
        label = label_of(level)
        if label is None:
            raise ValueError(f"{level!r} cannot be a level, because a cell that says so is read as missing. Remove it")
        if label in seen:
            raise ValueError(
                f"the levels {seen[label]!r} and {level!r} are read as the same value (numbers are compared "
                "as numbers, true as 1 and false as 0, since a data frame may hold them so). Keep one of "
                "them, or make them different words"
            )
        seen[label] = level
    if label_of(missing) not in seen:
        raise ValueError(
            f"`missing: {missing}` is not among the declared levels, where no record can be. "
            "Choose one of the levels, or declare a level for it"
        )


class Schema(_Declared):
    """The declared columns, the unit, and the name under which releases are booked."""

    dataset: Text | None = None
    person: Text | None = None
    max_records: int | None = None
    inferred_from: Text | None = None
    columns: Mapping[Annotated[str, AfterValidator(_plain)], Annotated[Column, Field(discriminator="kind")]]

    formats: ClassVar[tuple[str, ...]] = (".yaml", ".yml", ".json")

    @field_validator("columns", mode="after")
    @classmethod
    def _freeze(cls, columns: Mapping[str, Column]) -> Mapping[str, Column]:
        if not columns:
            raise ValueError("no column is declared: {}. {}".format(*_UNDECLARED["columns"]))
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
        if self.person in self.columns:
            raise ValueError(
                f"{self.person!r} is both the person column and a data column; an identifier says nothing "
                "about the population. Remove it from `columns:`"
            )
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
                "`columns:`; check the path, or write one with `onedraw schema infer` from public data."
            ) from None
        return cls.from_dict(_parse_json(text) if path.suffix == ".json" else _parse_yaml(text))

    @classmethod
    def from_dict(cls, declared: Mapping[str, Any]) -> Schema:
        """Check a schema given as plain dictionaries, as in the files."""
        if not isinstance(declared, Mapping):
            raise InvalidSchema(
                f"Expected a schema, a mapping with `columns:`, got {_kind_of(declared)}. {_UNDECLARED['columns'][1]}."
            )
        if "columns" not in declared:  # perhaps records: their keys are not quoted
            raise InvalidSchema("`columns:` is not declared; {}. {}.".format(*_UNDECLARED["columns"]))
        return cls(**_with_text_keys(declared, depth=3))

    # The ways out

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)

    def to_yaml(self) -> str:
        """The schema as a YAML file, with the notice of an inferred schema as its first line."""
        import yaml

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
            if name.lower() in _KINDS:
                definition["required"] = ["kind", *definition["required"]]
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

    def column(self, name: str) -> Column:
        """The declaration of one column, by name."""
        if name not in self.columns:
            raise InvalidSchema(
                f"The column {name!r} is not declared in the schema, which has {_listed(self.columns)}; "
                "without a declaration its bounds are unknown. Add it to "
                f"`columns:`{_perhaps(name, self.columns)}."
            )
        return self.columns[name]


# Reading files


def _parse_json(text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        _refuse_repeats(keys)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=once)
    except InvalidSchema:
        raise
    except (ValueError, RecursionError) as error:  # JSONDecodeError is a ValueError
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidSchema(f"The schema is not valid JSON{where}. Correct the file, or write it as YAML.") from None


def _parse_yaml(text: str) -> Any:
    import yaml

    from onedraw.data.plain_yaml import NotPlain, PlainLoader, RepeatedKey

    try:
        return yaml.load(text, Loader=PlainLoader)  # a SafeLoader: plain values only
    except RepeatedKey as error:
        _refuse_repeats([error.key, error.key])
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        remedy = error.remedy if isinstance(error, NotPlain) else "Correct the indentation or the quotes there"
        raise InvalidSchema(f"The schema is not valid YAML{where}. {remedy}.") from None


def _refuse_repeats(keys: list[str]) -> None:
    for key, times in Counter(keys).items():
        if times > 1:
            raise InvalidSchema(
                f"The key {key!r} is given twice in one place of the schema, so it is not clear which of the "
                "two is meant. Remove one."
            )


def _with_text_keys(declared: Any, *, depth: int) -> Any:
    """A schema is three mappings deep (columns, a column, its facts); what lies deeper is refused, not walked through."""
    if depth == 0 or not isinstance(declared, Mapping):
        return declared
    return {str(key): _with_text_keys(value, depth=depth - 1) for key, value in declared.items()}


# Explaining what is wrong


def _explain(model: type[_Declared], error: ValidationError) -> str:
    """All that is wrong, a line each; the declaration's name is put before those about a column."""
    sentences = (_sentence(model, problem) for problem in error.errors(include_url=False))
    return "\n".join(dict.fromkeys(sentence[:1].upper() + sentence[1:] for sentence in sentences))


def _sentence(model: type[_Declared], problem: Any) -> str:
    place = [part for part in problem["loc"] if isinstance(part, str)]
    kind, given, key = problem["type"], problem["input"], place[-1] if place else ""
    subject = f"Column {place[1]!r}: " if model is Schema and place[0:1] == ["columns"] and place[1:] else ""
    if kind == "value_error":
        sentence = str(problem["ctx"]["error"]).removesuffix(".")
        return f"{subject}{sentence[:1].lower() if subject else sentence[:1]}{sentence[1:]}."
    if kind == "missing":
        thing = "bounds" if key in ("lower", "upper") else key
        name = "one or both bounds are" if thing == "bounds" else f"`{key}:` is"
        return "{}{} not declared; {}. {}.".format(subject, name, *_UNDECLARED[thing])
    if kind == "extra_forbidden":
        known = list(model.model_fields)
        return (
            f"{subject}the key {key!r} is unknown here (known: {', '.join(known)}); a misspelt bound must "
            f"not be overlooked. Remove or correct it{_perhaps(key, known)}."
        )
    if kind.startswith("union_tag"):
        came = "nothing" if kind == "union_tag_not_found" else _words_for(given["kind"])
        return f"{subject}expected `kind:` number, category, binary or count, got {came}. Say which it is."
    where = "" if subject and key == place[1] else f"`{key}:` "
    expected = _EXPECTED.get(kind, "another kind of value")
    return f"{subject}{where}expected {expected}, got {_words_for(given)}. Correct it in the schema."


def _words_for(value: Any) -> str:
    if value is None or isinstance(value, (list, tuple, Mapping)):
        return _kind_of(value)
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def _kind_of(value: Any) -> str:
    """Without the value: what is no schema may be a file of records."""
    if value is None:
        return "nothing"
    if isinstance(value, (list, tuple, Mapping)):
        return "a list" if not isinstance(value, Mapping) else "a mapping"
    return "a text" if isinstance(value, str) else "a number"


def _listed(names: Mapping[str, Any], limit: int = 8) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:limit])
    return shown if len(names) <= limit else f"{shown}, … ({len(names)} columns)"


def _perhaps(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (perhaps {close[0]!r} is meant)" if close else ""
