"""A formula under a schema: the columns that its terms become, their names, their bounds, and how each record fills them.

`Formula` is what a schema and a certificate hold: the response, whether there is an intercept, and the factors of each term, as
formulaic found them in the text. It is read again from there without formulaic. `Design` is what it means under declared columns.

**Names and coding are formulaic's**: ``C(ward)[T.B]``, ``age:treated``, ``poly(age, 2, raw=True)[0]``. A
category has a column for each level but one where the terms before it span its constant, and for all of its levels otherwise
(`reduced_codings`), so that no column is a linear combination of the others whatever the records are. The response keeps its own
text as its name: ``log(wage)``.

What is claimed of a design is proved in formula.md.

**Bounds** of a column are those of its quantity (`onedraw.data.expressions`), so all that a plan rests on is a function of schema and
formula. A column that can take one value alone, or whose bound is infinite or beyond 1e60, is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from onedraw.arrays import Array
from onedraw.data.declarations import Binary, Column, Declared, Number, Text
from onedraw.data.expressions import LARGEST_BOUND, Levels, Quantity, Reader, Several, Value, Values, times
from onedraw.data.terms import Coded, Term
from onedraw.errors import InvalidSchema

MOST_COLUMNS = 2000
"""Columns that the terms may become."""

MOST_FACTORS = 6
"""Factors of one term."""


def _tuple(some: Any) -> Any:
    return tuple(some) if isinstance(some, list) else some


Factors = Annotated[tuple[Text, ...], BeforeValidator(_tuple)]


class Formula(Declared):
    """The response and the terms of a formula; ``response`` is None where only the terms are needed, as for new records."""

    response: Text | None = None
    intercept: bool = True
    terms: Annotated[tuple[Factors, ...], BeforeValidator(_tuple)]

    @classmethod
    def parse(cls, text: str) -> Formula:
        """Read the text of a formula."""
        from onedraw.data.formula_parser import parse

        response, intercept, terms = parse(text)
        return cls(response=response, intercept=intercept, terms=tuple(terms))

    def __str__(self) -> str:
        right = " + ".join(["1" if self.intercept else "0", *map(":".join, self.terms)])
        return f"~ {right}" if self.response is None else f"{self.response} ~ {right}"


@dataclass(frozen=True)
class Response:
    """What is explained: the declaration that its bounds give, the columns that it is made of, and its value on a record."""

    declared: Column
    columns: tuple[str, ...]
    quantity: Quantity | None
    """None for a column as it is declared."""
    codes: bool = False
    """Whether it is handed over as whole numbers: of a comparison of cells that are never missing."""


@dataclass(frozen=True, eq=False)
class Design:
    """A formula under declared columns."""

    formula: Formula
    names: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    terms: tuple[Term, ...]
    coded: tuple[Coded, ...]
    columns: tuple[str, ...]
    """The declared columns that the terms are made of, in the schema's order."""
    response: Response | None

    @classmethod
    def of(cls, formula: Formula, columns: Mapping[str, Any]) -> Design:
        """Read a formula; refuse what is not allowed, or has no finite bound."""
        return _Builder(formula, columns).design()

    @property
    def ends(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The bounds of each column."""
        return tuple(one.lower for one in self.quantities), tuple(one.upper for one in self.quantities)

    def rows(self, batch: Mapping[str, NDArray[Any]]) -> Array:
        """Return the columns of encoded records, NaN where a cell that they need is missing."""
        values = Values(batch)
        return np.stack([quantity.of(values) for quantity in self.quantities]).T  # what follows runs along columns

    def responses(self, batch: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Return the response of encoded records, as its declaration encodes it."""
        assert self.response is not None
        assert self.response.quantity is not None
        found = self.response.quantity.of(Values(batch))
        nobody = np.any([batch[name] == -np.inf for name in self.response.columns], axis=0)
        found = np.where(nobody, -np.inf, found)  # marks of records without a person stay
        return found.astype(np.int64) if self.response.codes else found


Coding = tuple[tuple[str, bool], ...]
"""Factors of a term, each with whether one level of it is left out."""

Named = tuple[str, Quantity]


class _Builder:
    def __init__(self, formula: Formula, columns: Mapping[str, Any]) -> None:
        self.formula, self.all, self.reader = formula, columns, Reader(columns)
        self.used: dict[str, set[str]] = {}
        """The columns that each factor names."""

    def design(self) -> Design:
        formula = self.formula
        if len(formula.terms) > MOST_COLUMNS:
            raise InvalidSchema(f"The formula has {len(formula.terms):,} terms. Write at most {MOST_COLUMNS:,}.")
        for term in formula.terms:
            if not 1 <= len(term) <= MOST_FACTORS or len(set(term)) < len(term):
                raise InvalidSchema(
                    f"The formula's term {':'.join(term)!r} has {len(term)} factors. Write 1 to {MOST_FACTORS} different ones."
                )
        if len(set(map(frozenset, formula.terms))) < len(formula.terms):
            raise InvalidSchema("The formula has a term twice. Write each once.")
        values = {factor: self._value(factor) for term in formula.terms for factor in term}
        columns: list[Named] = []
        terms, coded = [], []
        for term, codings in reduced_codings(formula, values):
            start = len(columns)
            for coding in codings:
                block = self._block(coding, values, MOST_COLUMNS - len(columns))
                if all(_excludes(values[factor]) for factor, _ in coding):
                    name, stop = ":".join(map(shown, term)), len(columns) + len(block)
                    coded.append(Coded(name, len(columns), stop, self._levels(coding, values)))
                columns += block
            terms.append(Term(":".join(map(shown, term)), start, len(columns)))
        names = [name for name, _ in columns]
        if len(set(names)) < len(names):
            repeated = next(name for name in names if names.count(name) > 1)
            raise InvalidSchema(
                f"Two columns of the formula are called {repeated!r}. Rename a level or a column in the schema."
            )
        used = set().union(*self.used.values())
        return Design(
            formula, tuple(names), tuple(quantity for _, quantity in columns), tuple(terms), tuple(coded),
            tuple(name for name in self.all if name in used), self._response(used),
        )  # fmt: skip

    def _value(self, factor: str) -> Value:
        found = self.reader.value(factor)
        if self.reader.used:
            self.used[factor], self.reader.used = set(self.reader.used), {}
        return found

    def _block(self, coding: Coding, values: Mapping[str, Value], room: int) -> list[Named]:
        """Return the columns of a coding, those of its first factor changing fastest."""
        factors = [columns_of(factor, values[factor], reduced=reduced) for factor, reduced in coding]
        if np.prod([float(len(columns)) for columns in factors]) > room:
            raise InvalidSchema(
                f"The formula's terms become more than {MOST_COLUMNS:,} columns. Leave out interactions of categories with many levels."
            )
        found = [_product(parts[::-1]) for parts in itertools.product(*reversed(factors))]
        for column, quantity in found:
            largest = max(-quantity.lower, quantity.upper)
            if quantity.is_constant:
                raise InvalidSchema(
                    f"The formula's {column!r} is {quantity.lower:g} whatever a record holds, by the declared ranges. Leave it out, or "
                    "correct the ranges in the schema."
                )
            if largest >= LARGEST_BOUND:
                raise InvalidSchema(
                    f"The formula's {column!r} may be as large as {largest:.3g} by the declared ranges. Narrow the ranges, or use log "
                    "or sqrt of the column."
                )
        return found

    def _levels(self, coding: Coding, values: Mapping[str, Value]) -> tuple[str, ...]:
        """Return the levels of a category that this coding alone names, its base first; else none."""
        if len(coding) != 1 or not coding[0][1]:
            return ()
        factor = coding[0][0]
        levels = values[factor]
        others = (self.used.get(other, set()) for other in values if other != factor)
        again = sum(factor in term for term in self.formula.terms) > 1
        if not isinstance(levels, Levels) or again or any(self.used.get(factor, set()) & other for other in others):
            return ()
        return levels.labels[levels.base], *(label for code, label in enumerate(levels.labels) if code != levels.base)

    def _response(self, explaining: set[str]) -> Response | None:
        text = self.formula.response
        if text is None:
            return None
        value = self._value(text)
        columns = tuple(name for name in self.all if name in self.used[text])
        if both := [name for name in columns if name in explaining]:
            raise InvalidSchema(
                f"The formula explains {both[0]!r} by itself: it stands on both sides of ~. Leave it out of the terms."
            )
        name = shown(text)
        if name in self.all and columns == (name,):
            return Response(self.all[name], columns, None)
        if not isinstance(value, Quantity):
            raise InvalidSchema(
                f"The formula's response {text!r} is no number and no comparison. Name a column, or write log(wage) or I(wage > 20)."
            )
        if value.is_constant or max(-value.lower, value.upper) >= LARGEST_BOUND:
            raise InvalidSchema(
                f"The formula's response {text!r} lies between {value.lower:g} and {value.upper:g} by the declared ranges, which says "
                "nothing. Correct the formula, or the ranges in the schema."
            )
        skips = any(
            getattr(self.all[one], "skips", False) for one in columns
        )  # a response is missing where one of its cells is
        if value.is_truth:
            return Response(Binary(missing="skip" if skips else "no"), columns, value, codes=not skips)
        missing: Any = "skip" if skips else value.lower
        return Response(Number(lower=value.lower, upper=value.upper, missing=missing), columns, value)


def shown(factor: str) -> str:
    """Return a factor as names of columns have it: a quoted column without its backticks, an expression without its braces."""
    quoted = factor[0] == factor[-1] == "`" and factor.count("`") == 2
    return factor[1:-1] if quoted or factor[0] == "{" else factor


def columns_of(factor: str, value: Value, *, reduced: bool) -> list[Named]:
    """Return the columns that one factor becomes."""
    name = shown(factor)
    match value:
        case Quantity():
            return [(name, value)]
        case Several():
            return [(f"{name}{suffix}", quantity) for suffix, quantity in value.parts]
    codes = [code for code in range(len(value.labels)) if not (reduced and code == value.base)]
    mark = "T." if reduced else ""
    return [(f"{name}[{mark}{value.labels[code]}]", value.is_level(code)) for code in codes]


def _product(parts: Sequence[Named]) -> Named:
    return ":".join(name for name, _ in parts), reduce(times, (quantity for _, quantity in parts))


def _excludes(value: Value) -> bool:
    """Whether at most one of a factor's columns differs from 0, and is then 1."""
    return isinstance(value, Levels) or (isinstance(value, Quantity) and value.is_indicator)


def reduced_codings(formula: Formula, values: Mapping[str, Value]) -> Iterator[tuple[tuple[str, ...], list[Coding]]]:
    """Yield each term with the codings of its factors that add columns which those before it do not span.

    A category spans its constant: all of its levels are the reduced coding and a constant. So a term spans one product for each way
    to take its categories reduced or as their constant. Products that terms before it spanned are left out, and those that remain are
    joined where (others) and (others):(reduced category) make (others):(whole category). This is formulaic's ``ensure_full_rank``.
    """
    spanned: set[frozenset[tuple[str, bool]]] = {frozenset()} if formula.intercept else set()
    for term in formula.terms:
        ways = [[(factor, True), None] if isinstance(values[factor], Levels) else [(factor, False)] for factor in term]
        spans = [tuple(one for one in way if one is not None) for way in itertools.product(*ways)]
        new = [coding for coding in spans if frozenset(coding) not in spanned]
        spanned.update(map(frozenset, new))
        yield term, _joined(new)


def _joined(codings: Sequence[Coding]) -> list[Coding]:
    found: list[Coding] = []
    for coding in sorted(codings, key=len):
        for place, shorter in enumerate(found):
            more = set(coding) - set(shorter)
            if len(coding) == len(shorter) + 1 and len(more) == 1 and (extra := more.pop())[1]:
                whole = tuple(
                    (factor, False) if (factor, reduced) == extra else (factor, reduced) for factor, reduced in coding
                )
                found = _joined([*found[:place], *found[place + 1 :], whole])
                break
        else:
            found.append(coding)
    return found
