"""The worst pair of neighbouring data sets: random restarts, then moves of one coordinate of one record.

A lower bound on the worst case, which is what an audit needs: any pair found is a witness. The score is the caller's,
the exact largest log-ratio of ``exact_profile`` for instance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onedraw.audit.domains import Domain, records_of
from onedraw.errors import WrongCall
from onedraw.privacy.numbers import positive_integer

Array = NDArray[np.float64]
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
    """n records, the one that is replaced and its replacement."""

    rows: Array
    replacement: Array
    place: int


def worst_pair(
    score: Score, domain: Domain, n: int, *, generator: np.random.Generator, evaluations: int = 200,
    start: tuple[ArrayLike, ArrayLike] | None = None,
) -> WorstPair:  # fmt: skip
    """The pair with the largest score among ``evaluations`` tried, all of its records in ``domain``."""
    positive_integer("n", n)
    positive_integer("evaluations", evaluations)
    tried = 0

    def value(candidate: _Candidate) -> float:
        nonlocal tried
        tried += 1
        found = float(score(*_datasets(candidate, domain)))
        return -math.inf if math.isnan(found) else found

    pool: list[tuple[float, int, _Candidate]] = []
    if start is not None:
        first = _given(start, domain, n)
        pool.append((value(first), 0, first))
    while tried < max(1, round(_RESTARTS * evaluations)):
        candidate = _random(domain, n, generator)
        pool.append((value(candidate), tried, candidate))
    pool.sort(key=lambda entry: (-entry[0], entry[1]))
    chains = [(best, candidate) for best, _, candidate in pool[:_CHAINS]]
    sizes = [0.5] * len(chains)
    while tried < evaluations and chains[0][0] < math.inf:
        # the best chain gets every second move, so that a few bad starts cost little
        place = 0 if tried % 2 else int(generator.integers(len(chains)))
        best, candidate = chains[place]
        moved = _moved(candidate, domain, generator, size=sizes[place])
        found = value(moved)
        if found > best:
            chains[place], sizes[place] = (found, moved), min(1.0, sizes[place] * 1.5)
        else:
            if found == best:
                chains[place] = (found, moved)
            sizes[place] = max(1e-3, sizes[place] * 0.9)
        order = sorted(range(len(chains)), key=lambda i: -chains[i][0])
        chains, sizes = [chains[i] for i in order], [sizes[i] for i in order]
    best, candidate = chains[0]
    return WorstPair(*_datasets(candidate, domain), best)


def _datasets(candidate: _Candidate, domain: Domain) -> tuple[Array, Array]:
    neighbour = candidate.rows.copy()
    neighbour[candidate.place] = candidate.replacement
    return domain.dataset(candidate.rows), domain.dataset(neighbour)


def _random(domain: Domain, n: int, generator: np.random.Generator) -> _Candidate:
    """Random records; now and then all alike, for sums are extreme when all records are."""
    rows = domain.sample(n, generator)
    if generator.random() < 0.5:
        rows[:] = rows[0]
    return _Candidate(rows, domain.sample(1, generator)[0], int(generator.integers(n)))


def _moved(candidate: _Candidate, domain: Domain, generator: np.random.Generator, *, size: float) -> _Candidate:
    rows, replacement, index = candidate.rows.copy(), candidate.replacement, candidate.place
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
