"""The worst pair of neighbouring data sets: random restarts, then moves of one coordinate of one record.

Where records may lie is a `Domain`: intervals, finite sets, balls, and products of them; declared, never read from
data. A data set is an array of n records, (n,) for a domain of plain numbers and (n, d) for one of vectors.

A lower bound on the worst case, which is what an audit needs: any pair found is a witness. The score is the caller's,
the exact largest log-ratio of ``exact_profile`` for instance.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onedraw.arrays import Array, Mask
from onedraw.errors import WrongCall
from onedraw.privacy.numbers import positive_integer


def records_of(dataset: Any) -> NDArray[Any]:
    """A data set as rows, one per record: an array, or a tuple of arrays such as (X, y)."""
    columns = [np.asarray(part) for part in (dataset if isinstance(dataset, tuple) else (dataset,))]
    lengths = {len(column) if column.ndim else 0 for column in columns}
    if len(lengths) != 1 or 0 in lengths:
        raise WrongCall(
            "a data set is an array of records along its first axis, or a tuple of such arrays of the same length"
        )
    return np.concatenate([column.reshape(len(column), -1) for column in columns], axis=1)


class Domain(abc.ABC):
    """A set of records that can be drawn from, moved in and tested for membership."""

    dimension: int
    """How many numbers a record has."""

    scalar: bool
    """Whether a record is a plain number, so that a data set is (n,)."""

    def _store(self, **values: Any) -> None:
        """Sets what a frozen value computes of itself when it is made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @abc.abstractmethod
    def inside(self, records: Array) -> Mask:
        """Whether each row lies in the domain (up to rounding)."""

    @abc.abstractmethod
    def sample(self, count: int, generator: np.random.Generator) -> Array:
        """Rows spread over the domain, its extreme points among them: worst cases like to sit there."""

    @abc.abstractmethod
    def move(self, record: Array, generator: np.random.Generator, *, size: float) -> Array:
        """A nearby row, in one coordinate; ``size`` in (0, 1] is the step relative to the domain."""

    def rows(self, dataset: Any) -> Array:
        """A data set as (n, d)."""
        return records_of(dataset).astype(float)

    def dataset(self, rows: Array) -> Array:
        """Rows as the data set a mechanism expects."""
        return rows[:, 0].copy() if self.scalar else rows.copy()

    def check(self, dataset: Any, name: str) -> None:
        """Refuse a data set that is not made of records of this domain; says how many, never which."""
        rows = self.rows(dataset)
        if rows.shape[1] != self.dimension:
            raise WrongCall(
                f"{name} has records of {rows.shape[1]} numbers, but the declared domain has {self.dimension}. "
                "A promise is about the records that were declared: pass such records, or declare another domain."
            )
        outside = int(np.sum(~self.inside(rows)))
        if outside:
            raise WrongCall(
                f"{name} has {outside} of {len(rows)} records outside the declared domain. A promise says nothing about "
                "them, so an attack on them proves nothing. Clamp the records, or declare the domain they come from."
            )


@dataclass(frozen=True)
class Box(Domain):
    """lo ≤ record ≤ hi, coordinate by coordinate; plain numbers make a domain of plain numbers."""

    lo: Any
    hi: Any
    ends: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lo, hi = np.asarray(self.lo, dtype=float), np.asarray(self.hi, dtype=float)
        if lo.shape != hi.shape or lo.ndim > 1 or not (np.all(np.isfinite(lo)) and np.all(np.isfinite(hi))):
            raise WrongCall("a Box has two finite ends of the same shape: numbers, or one number per coordinate")
        if np.any(lo > hi):
            raise WrongCall("a Box has its lower end below its upper end in every coordinate")
        plain = [tuple(end.tolist()) if end.ndim else float(end) for end in (lo, hi)]
        self._store(
            lo=plain[0], hi=plain[1], scalar=lo.ndim == 0, dimension=lo.size, ends=np.stack([lo, hi]).reshape(2, -1)
        )

    def inside(self, records: Array) -> Mask:
        lo, hi = self.ends
        slack = 1e-12 * np.maximum(1.0, np.maximum(np.abs(lo), np.abs(hi)))
        return np.asarray(np.all((records >= lo - slack) & (records <= hi + slack), axis=1))

    def sample(self, count: int, generator: np.random.Generator) -> Array:
        lo, hi = self.ends
        share = generator.random((count, self.dimension))
        corner = generator.random((count, self.dimension)) < 0.5
        share = np.where(corner, np.round(share), share)
        return np.asarray(lo + (hi - lo) * share)

    def move(self, record: Array, generator: np.random.Generator, *, size: float) -> Array:
        lo, hi = self.ends
        place = int(generator.integers(self.dimension))
        moved = record.copy()
        choice = generator.random()
        if choice < 0.25:
            moved[place] = (lo if choice < 0.125 else hi)[place]
        else:
            moved[place] += generator.normal() * size * (hi - lo)[place]
        return np.asarray(np.clip(moved, lo, hi))


@dataclass(frozen=True)
class Ball(Domain):
    """‖record‖₂ ≤ radius; without a dimension, the plain numbers in [−radius, radius]."""

    radius: float
    dimension: int
    scalar: bool

    def __init__(self, radius: float, dimension: int | None = None) -> None:
        if not (np.isfinite(radius) and radius > 0.0) or (dimension is not None and dimension < 1):
            raise WrongCall("a Ball has a finite radius above 0 and a dimension of at least 1")
        self._store(radius=float(radius), dimension=dimension or 1, scalar=dimension is None)

    def inside(self, records: Array) -> Mask:
        return np.asarray(np.linalg.norm(records, axis=1) <= self.radius * (1.0 + 1e-12))

    def sample(self, count: int, generator: np.random.Generator) -> Array:
        normals = generator.normal(size=(count, self.dimension))
        directions = normals / np.linalg.norm(normals, axis=1, keepdims=True)
        lengths = self.radius * generator.random((count, 1)) ** (1.0 / self.dimension)
        surface = generator.random((count, 1)) < 0.5
        return np.asarray(directions * np.where(surface, self.radius, lengths))

    def move(self, record: Array, generator: np.random.Generator, *, size: float) -> Array:
        if generator.random() < 0.25:  # to the surface: there, or opposite
            length = np.linalg.norm(record)
            sign = 1.0 if generator.random() < 0.5 else -1.0
            return np.asarray(record * (sign * self.radius / length)) if length > 0.0 else self.sample(1, generator)[0]
        moved = record.copy()
        moved[int(generator.integers(self.dimension))] += generator.normal() * size * 2.0 * self.radius
        return np.asarray(moved * min(1.0, self.radius / max(float(np.linalg.norm(moved)), 1e-300)))


@dataclass(frozen=True)
class Finite(Domain):
    """One of the listed records: numbers, or rows of numbers."""

    values: Any
    listed: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=float)
        if values.ndim not in (1, 2) or len(values) == 0 or not np.all(np.isfinite(values)):
            raise WrongCall("a Finite domain is a list of finite numbers, or of rows of finite numbers")
        plain = tuple(values.tolist()) if values.ndim == 1 else tuple(map(tuple, values.tolist()))
        listed = values.reshape(len(values), -1)
        self._store(values=plain, scalar=values.ndim == 1, dimension=listed.shape[1], listed=listed)

    def inside(self, records: Array) -> Mask:
        return np.asarray(np.any(np.all(records[:, None, :] == self.listed[None, :, :], axis=2), axis=1))

    def sample(self, count: int, generator: np.random.Generator) -> Array:
        return np.asarray(self.listed[generator.integers(len(self.values), size=count)])

    def move(self, record: Array, generator: np.random.Generator, *, size: float) -> Array:
        return np.asarray(self.sample(1, generator)[0])


@dataclass(frozen=True)
class Product(Domain):
    """A record made of parts, each in its own domain: features in a ball and a label of ±1, say."""

    parts: tuple[Domain, ...]

    def __init__(self, *parts: Domain) -> None:
        if not parts or not all(isinstance(part, Domain) for part in parts):
            raise WrongCall("a Product is made of domains: Product(Ball(1.0, 3), Finite([-1, 1]))")
        self._store(parts=parts, scalar=False, dimension=sum(part.dimension for part in parts))

    def _pieces(self, records: Array) -> list[Array]:
        edges = np.cumsum([part.dimension for part in self.parts])[:-1]
        return np.split(records, edges, axis=-1)

    def inside(self, records: Array) -> Mask:
        pieces = zip(self.parts, self._pieces(records), strict=True)
        return np.asarray(np.all([part.inside(piece) for part, piece in pieces], axis=0))

    def sample(self, count: int, generator: np.random.Generator) -> Array:
        return np.asarray(np.concatenate([part.sample(count, generator) for part in self.parts], axis=1))

    def move(self, record: Array, generator: np.random.Generator, *, size: float) -> Array:
        pieces = self._pieces(record)
        place = int(generator.integers(len(self.parts)))
        pieces[place] = self.parts[place].move(pieces[place], generator, size=size)
        return np.concatenate(pieces)


# ── the search ──

Score = Callable[[Array, Array], float]

_RESTARTS = 0.3
"""The share of the evaluations spent on random pairs before the best ones are improved."""

_CHAINS = 3
"""How many of the best random pairs are improved."""


class WorstPair(NamedTuple):
    """Two data sets that differ in one record, and their score."""

    dataset: Array
    neighbour: Array
    value: float


class _Candidate(NamedTuple):
    """n records, the one that is replaced and its replacement; the score, and how far the next move goes."""

    rows: Array
    replacement: Array
    place: int
    value: float = -math.inf
    size: float = 0.5


def worst_pair(
    score: Score, domain: Domain, n: int, *, generator: np.random.Generator, evaluations: int = 200,
    start: tuple[ArrayLike, ArrayLike] | None = None,
) -> WorstPair:  # fmt: skip
    """The pair with the largest score among ``evaluations`` tried, all of its records in ``domain``."""
    positive_integer("n", n)
    positive_integer("evaluations", evaluations)
    tried = 0

    def scored(candidate: _Candidate) -> _Candidate:
        nonlocal tried
        tried += 1
        found = float(score(*_datasets(candidate, domain)))
        return candidate._replace(value=-math.inf if math.isnan(found) else found)

    chains = [] if start is None else [scored(_given(start, domain, n))]
    while tried < max(1, round(_RESTARTS * evaluations)):
        rows = domain.sample(n, generator)
        if generator.random() < 0.5:  # all alike, for sums are extreme when all records are
            rows[:] = rows[0]
        chains.append(scored(_Candidate(rows, domain.sample(1, generator)[0], int(generator.integers(n)))))
    chains = sorted(chains, key=lambda one: -one.value)[:_CHAINS]
    while tried < evaluations and chains[0].value < math.inf:
        # the best chain gets every second move, so that a few bad starts cost little
        place = 0 if tried % 2 else int(generator.integers(len(chains)))
        best = chains[place]
        moved = scored(_moved(best, domain, generator))
        size = min(1.0, best.size * 1.5) if moved.value > best.value else max(1e-3, best.size * 0.9)
        chains[place] = (moved if moved.value >= best.value else best)._replace(size=size)
        chains.sort(key=lambda one: -one.value)
    return WorstPair(*_datasets(chains[0], domain), chains[0].value)


def _datasets(candidate: _Candidate, domain: Domain) -> tuple[Array, Array]:
    neighbour = candidate.rows.copy()
    neighbour[candidate.place] = candidate.replacement
    return domain.dataset(candidate.rows), domain.dataset(neighbour)


def _moved(candidate: _Candidate, domain: Domain, generator: np.random.Generator) -> _Candidate:
    rows, replacement, index, _, size = candidate._replace(rows=candidate.rows.copy())
    kind = generator.random()
    if kind < 0.35:
        replacement = domain.move(replacement, generator, size=size)
    elif kind < 0.65:
        rows[index] = domain.move(rows[index], generator, size=size)
    elif kind < 0.85:
        place = int(generator.integers(len(rows)))
        rows[place] = domain.move(rows[place], generator, size=size)
    elif kind < 0.92:
        rows[:] = rows[int(generator.integers(len(rows)))] if generator.random() < 0.5 else replacement
        rows[index] = candidate.rows[index]
    elif kind < 0.96:
        index = int(generator.integers(len(rows)))
    else:
        rows[index] = domain.sample(1, generator)[0]
    return _Candidate(rows, replacement, index)


def _given(start: tuple[ArrayLike, ArrayLike], domain: Domain, n: int) -> _Candidate:
    index = differing_record(*start, n=n)
    for name, dataset in zip(("the first data set", "its neighbour"), start, strict=True):
        domain.check(dataset, name)
    return _Candidate(domain.rows(start[0]).copy(), domain.rows(start[1])[index].copy(), index)


def differing_record(dataset: Any, neighbour: Any, *, n: int | None = None) -> int:
    """The index of the one record in which two data sets differ (0 if they are equal); anything else is refused."""
    first, second = records_of(dataset), records_of(neighbour)
    if first.shape != second.shape:
        raise WrongCall(
            "two neighbouring data sets have the same number of records of the same size (replace-one, n is public), but "
            f"{len(first)} records of {first.shape[1]} and {len(second)} of {second.shape[1]} numbers were given"
        )
    if n is not None and len(first) != n:
        raise WrongCall(f"the data sets were to have n = {n} records, but {len(first)} were given")
    unequal = (first != second) & ~((first != first) & (second != second))  # NaN equals NaN here
    places = np.flatnonzero(unequal.any(axis=1))
    if len(places) > 1:
        raise WrongCall(
            f"two neighbouring data sets differ in one record, but these differ in {len(places)}: a promise about one "
            "record does not cover that. Pass pairs that differ in one place."
        )
    return int(places[0]) if len(places) else 0
