"""What every model can say about itself, before any record is read.

A model is a frozen value: loss or likelihood, prior, and the public bounds of one record. It encodes records
(`summarise`) and states what is known of every one of them (`bounds`). Which promise a draw from its posterior
has is not its business: see `onedraw.methods`.

It answers for itself: what its numbers are called, mean and are measured in (`title`, `meaning`, `unit`, `column_units`),
how they are drawn (`form`, `public_range`), and what it predicts. Nobody else switches on the name of a model.

`Model` is what releases and mechanisms need of any model. `ConjugateModel` adds exact sums and closed-form posteriors;
`row_model` is about records with features. A model that can be used is final.
"""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import inspect
import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidModel
from onedraw.privacy import Provenance
from onedraw.privacy.stored import Stored

ODDS, RATES = ("Odds", "the odds are"), ("Rate", "the expected count is")
"""What the exponential of a coefficient multiplies: the head of a report's column, and the words of its note."""


CANNOT_SKIP = (
    "{} has to know how many records contribute, and a column is declared with `missing: skip` (the default): how many cells are "
    "missing is private. Declare what a missing cell becomes, such as `missing: 55` or a declared level."
)
"""What is said where a missing cell cannot be skipped."""

COUNT_FOR_NOBODY = (
    "Records beyond a person's limit count for nobody, so missing and known cells do not add up to n. Pass nobody=True."
)


@dataclass(frozen=True)
class Bound:
    """Something known for every record and data set: the number, why it holds, and who says so."""

    value: float | tuple[float, ...]
    provenance: Provenance
    why: str


def described(fn: Any, called: str) -> str:
    """A caller's function as a certificate names it."""
    digest = source_digest(fn)
    source = "" if digest is None else f" (SHA-256 of its source {digest[:16]}…)"
    return f"the function {called!r}{source}"


def source_digest(fn: Any) -> str | None:
    """SHA-256 of a function's source text, comments and all; None where there is none to be had.

    It covers neither closures nor functions that fn calls: it tells versions of a model apart, and proves nothing.
    """
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(fn)))
    except (OSError, TypeError):
        return None
    return hashlib.sha256(source.encode()).hexdigest()


@dataclass(frozen=True)
class OwnFunctions:
    """Functions of users by name. A certificate stores the name of one, and a digest of its source: to derive a plan again
    elsewhere the same function has to be registered there. ``noun`` and ``signature`` are for people."""

    noun: str
    signature: str
    known: dict[str, Any] = field(default_factory=dict)

    def register(self, name: str, fn: Any) -> Any:
        """Make it known by name, so that plans and certificates that use it can be derived again."""
        if self.known.get(name, fn) != fn:
            raise InvalidModel(f"Another {self.noun} is registered as {name!r} already. Choose another name.")
        self.known[name] = fn
        return fn

    def find(self, fn: Any, name: str | None) -> tuple[Any, str]:
        """(function, what it is called), of a function, a registered name, or what was stored of one."""
        if isinstance(fn, Mapping):
            fn = fn.get("own function")
        if isinstance(fn, str):
            if fn not in self.known:
                raise InvalidModel(
                    f"The {self.noun} {fn!r} is a user's own function and not known here, so nothing that rests on it can be "
                    f"derived again. Register it first: register_{self.noun.split()[0].lower()}({fn!r}, …)."
                )
            return self.known[fn], fn
        if not callable(fn):
            raise InvalidModel(f"fn must be a JAX function {self.signature}, but a {type(fn).__name__} was given.")
        return fn, str(name or getattr(fn, "__name__", f"the {self.noun}"))


class Model(Stored, key="model", noun="model", refuses=InvalidModel):
    """Loss or likelihood, prior and the public bounds of one record.

    **Guarantee.** `summarise` never fails on the value of a record; `check` and `count` look at none.
    """

    quantity: ClassVar[str]

    # What people are told about its numbers: plain attributes where they are the same for all values of a class

    kind: ClassVar[str] = ""
    """The word of ``--model`` that asks for it; empty where there is none."""
    form: ClassVar[str] = "coefficients"
    """How several numbers are laid out: "coefficients", "shares", "bars", "groups", "quantiles", or "folded" away."""
    predicts: ClassVar[str] = ""
    """What it says of a new record: "probabilities" of classes, a "margin", a "number", a "count", or nothing."""
    factor: ClassVar[tuple[str, str] | None] = None
    """What the exponential of a coefficient multiplies: `ODDS`, `RATES`, or nothing."""
    least_variance: ClassVar[float | None] = None
    """The floor of a variance that is drawn last, which the sensitivity rests on; None where none is drawn."""
    significant_bits: ClassVar[int | None] = None
    """Bits to which a draw is published where its floating-point error is relative to its size; None for all on the lattice."""

    @property
    def title(self) -> str:
        """What a report calls it."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__)

    @property
    def meaning(self) -> str:
        """What one of its numbers is, in a sentence."""
        return "The released numbers, by name."

    def unit(self, name: str) -> str:
        """Of the number called so: "share" of a whole, number of "records", or empty, in the units of the columns."""
        return ""

    @property
    def public_range(self) -> tuple[float, float] | None:
        """Where a single released number lies whatever the records are; None where nothing is declared of it."""
        return None

    def column_units(self, centre: float = 0.0, scale: float = 1.0) -> tuple[Array, Array, Array]:
        """(change, scale, shift) with ``scale·(change @ draw) + shift`` the draw as people read it, in the columns' own
        units; responses were measured from ``centre`` in units of ``scale``."""
        size = len(self.parameter_names)
        return np.eye(size), np.ones(size), np.zeros(size)

    def in_readable_units(self, draws: Array, centre: float = 0.0, scale: float = 1.0) -> Array:
        """Return draws, one row each, in the units of the columns."""
        change, scales, shift = self.column_units(centre, scale)
        return np.asarray(scales * (draws @ change.T) + shift)

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        """(term, label) of each released number: of several classes the column and the class."""
        return tuple((name, "") for name in self.parameter_names)

    def interval_meaning(self, level: str, *, crossed: bool) -> str:
        """What intervals of these numbers cover, where that is their own matter; ``crossed``: they stand in a cross table."""
        return ""

    @property
    def skips(self) -> bool:
        """Whether a record with a missing cell contributes nothing to it."""
        return False

    def check_skips(self, columns: Iterable[Any]) -> None:
        """Refuse declared columns whose missing cells are skipped where a record has to contribute: its codes would be misread."""
        if any(column.skips for column in columns) and not self.skips:
            raise InvalidModel(CANNOT_SKIP.format(type(self).__name__))

    # What every promise rests on

    @property
    @abc.abstractmethod
    def parameter_names(self) -> tuple[str, ...]:
        """One name for each released number."""

    @property
    @abc.abstractmethod
    def prior_scale(self) -> float:
        """The prior standard deviation of the released quantity; the smallest one if there are several."""

    def float_error(self, n: int, parameters: Mapping[str, float]) -> float:
        """Bound the error of double precision in one drawn number of a plan, by public numbers: a few roundings of a value
        within 16 prior standard deviations."""
        return 2.0**-46 * self.prior_scale

    @property
    @abc.abstractmethod
    def _bounds(self) -> dict[str, Bound]: ...

    @property
    def bounds(self) -> Mapping[str, Bound]:
        """What is known for every record and data set, each with its provenance."""
        return MappingProxyType(self._bounds)

    @property
    def own_functions(self) -> tuple[str, ...]:
        """The functions of the caller's it is made of, in words (`described`): nobody can know what they refer to."""
        return ()

    @classmethod
    def example(cls) -> Self:
        """Make a small public instance. The tests check on it everything that the class states of every record."""
        raise NotImplementedError(f"{cls.__name__} has no example() for the tests of its bounds. Add one to the class.")

    @abc.abstractmethod
    def check(self, data: Any) -> None:
        """Refuse data whose *public* description does not fit the model; no record is looked at."""

    def count(self, data: Any) -> int:
        """n, the public number of records."""
        return len(data)

    @abc.abstractmethod
    def summarise(self, data: Any) -> Any:
        """The records as the mechanism's target needs them, with their number ``n``; checks `data` first."""


class ColumnModel(Model):
    """A model of one column, or of ``dim`` alike."""

    kinds: ClassVar[tuple[str, ...]]
    """The kinds of schema column it can be about."""

    def check(self, data: Any) -> None:
        from .batches import check_shape, schema_columns

        columns = schema_columns(data)
        check_shape(data, columns, dim=getattr(self, "dim", 1))
        self.check_skips(columns or ())
        for column in columns or ():
            if column.role not in self.kinds:
                raise InvalidModel(
                    f"{type(self).__name__} needs a column declared as {' or '.join(self.kinds)}, but the one given is declared as "
                    f"{column.kind}. Its records would mean something else. Choose another model or target."
                )
            self._check_column(column)

    def _check_column(self, column: Any) -> None:  # most accept any column of their kinds
        """Further public checks of a column of the right kind."""


"""The inverse of ``model.to_dict()``; an unknown model or field, or a missing one, is an error."""


def check_fields(model: Any) -> None:
    """Put every field through the check in its metadata (`POSITIVE`, …); None stays where it is the default."""
    for one in dataclasses.fields(model):
        value = getattr(model, one.name)
        if "check" in one.metadata and not (value is None and one.default is None):
            object.__setattr__(model, one.name, one.metadata["check"](one.name, value))


def number(name: str, value: Any) -> float:
    """A finite real number."""
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidModel(f"{name} must be a real number, got a {type(value).__name__}. Pass a float.") from None
    if not math.isfinite(result):
        raise InvalidModel(f"{name} must be finite, got {result!r}: no bound on a record follows from it.")
    return result


def positive_number(name: str, value: Any) -> float:
    """A finite number above zero, and not so extreme that its reciprocal overflows."""
    result = number(name, value)
    if not 1e-290 < result < 1e290:
        raise InvalidModel(f"{name} must lie between 1e-290 and 1e290, got {result!r}. Choose a positive number.")
    return result


def within(name: str, value: Any, low: float, high: float, remedy: str) -> float:
    """A positive number from ``low`` to ``high``; ``remedy`` says why, and what to do otherwise."""
    result = positive_number(name, value)
    if not low <= result <= high:
        raise InvalidModel(f"{name} must lie between {low:g} and {high:g}, got {result!r}. {remedy}")
    return result


def declared_range(lower: Any, upper: Any) -> tuple[float, float]:
    """Ends between which numbers have a place that double precision can tell."""
    lower, upper = number("lower", lower), number("upper", upper)
    if not lower < upper:
        raise InvalidModel(f"lower must be below upper, but the range [{lower!r}, {upper!r}] was given.")
    if not 1e-290 < upper - lower < 1e290:
        raise InvalidModel(
            f"The range [{lower!r}, {upper!r}] must be between 1e-290 and 1e290 wide, or floats cannot divide it. Use other units."
        )
    return lower, upper


def declared_missing(missing: Any, lower: float, upper: float, *, default: float) -> Any:
    """What counts for a record that is no number: inside the range, like every record; or "skip"."""
    if isinstance(missing, str) and missing == "skip":
        return missing
    value = default if missing is None else number("missing", missing)
    if not lower <= value <= upper:
        raise InvalidModel(f"missing must lie in [{lower!r}, {upper!r}] like every record, but {value!r} was given.")
    return value


def check_covers(model: Any, column: Any) -> None:
    """Refuse a declared column that reaches beyond the model's own range."""
    low, high = column.ends
    if not (model.lower <= low and high <= model.upper):
        raise InvalidModel(
            f"The target is declared on [{low!r}, {high!r}], the model on [{model.lower!r}, {model.upper!r}]: records would be "
            f"clamped once more. Pass lower={low!r}, upper={high!r}."
        )


def different_names(what: str, given: Any, *, most: float = math.inf) -> tuple[str, ...]:
    """At least two names, each once."""
    names = tuple(str(name) for name in given)
    if not 2 <= len(names) <= most or len(set(names)) < len(names):
        many = "at least two" if most == math.inf else f"2 to {most:,}"
        raise InvalidModel(f"{what} must be {many} different names, but {len(set(names))} were given.")
    return names


POSITIVE = {"check": positive_number}
"""Metadata of a field that is a positive number; see `check_fields`."""


def prior_numbers(family: str, values: Any, *, length: int | None = None) -> tuple[float, ...]:
    """The parameters of a Beta, Dirichlet or Gamma prior: a proper law needs every one above zero."""
    try:
        given = tuple(number(f"a parameter of the {family} prior", value) for value in values)
    except TypeError:
        raise InvalidModel(f"The {family} prior is a sequence of numbers, got a {type(values).__name__}.") from None
    if length is not None and len(given) != length:
        raise InvalidModel(f"The {family} prior has {length} parameters, got {len(given)}.")
    if not all(value > 0 for value in given):
        raise InvalidModel(
            f"The prior {family}{given} is not normalizable: every parameter must be above 0. Without a "
            "proper prior the divergence between neighbouring posteriors is infinite, so no draw is "
            "private. Pass positive parameters, for example 1."
        )
    return tuple(positive_number(f"a parameter of the {family} prior", value) for value in given)


MOST_PARTS = 10**6
"""Features, hidden units, classes: a model with more cannot be held, and is not begun."""


def count(name: str, value: Any, *, least: int = 0, most: float = math.inf) -> int:
    """A whole number from ``least`` to ``most``; 3.0 counts as 3."""
    result = number(name, value)
    if result != int(result) or result < least:
        raise InvalidModel(f"{name} must be a whole number of at least {least}, got {result!r}.")
    if result > most:
        raise InvalidModel(f"{name} must be at most {most:,}, got {result:g}.")
    return int(result)
