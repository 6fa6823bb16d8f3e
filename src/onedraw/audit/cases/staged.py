"""Plans in stages, attacked: each stage on its own worst pair, all of them together, and the program replayed.

The promise covers stages that are chosen in view of those before, whatever pair each of them meets; so the audit gives
every stage its own worst pair: rows at opposite ends of the box for means, orthogonal ones of the largest norm for
moments. No single pair of tables does all this at once. What is shown is how much of the *theorem* is attained: above
the promise, theorem or numbers are wrong.

A replay runs the program on two neighbouring tables with a noise that writes down every sum it was handed, and computes
each of them a second time, in plain NumPy. What fits, draws in measured coordinates and released moments share of both
is here.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from onedraw.arrays import Array, Mask
from onedraw.plans import Plan

from .case import Pair
from .laws import Law, LawCase, independent

EACH_STAGE = (Pair("each stage on its own worst pair", None, None),)

ROWS = 24
"""Records of the tables replayed, whatever n the plan is for: nothing in a stage depends on how many there are."""

Sums = dict[str, tuple[Callable[[], Array], float]]
"""Of each stage the sum that the plan declares, and the largest entry of a row in it."""

Moves = dict[str, tuple[float, int, int | None]]
"""Of each stage: how far the worst pair moves its sum, how many numbers it has, and of a matrix how many rows."""


@dataclass(frozen=True)
class StagedCase(LawCase):
    """A plan in stages; ``ran`` are numbers of the program that differ from the plan's: the planted faults."""

    ran: tuple[tuple[str, float], ...] = ()

    without_draws: ClassVar[str] = "its program is replayed instead, stage by stage, from --effort quick on"

    def running(self, **times: float) -> Self:
        """The same promise of a program whose numbers are these multiples of the plan's."""
        return replace(self, ran=tuple((name, factor * self.planned[name]) for name, factor in times.items()))

    @property
    def planned(self) -> dict[str, float]:
        return {**self.plan.parameters, **dict(self.ran)}

    @abc.abstractmethod
    def moves(self, numbers: Mapping[str, float]) -> Moves:
        """How far the worst pair of each stage moves what is added up in it."""

    def others(self, pair: Pair, numbers: Mapping[str, float]) -> list[Law]:
        """The laws of stages that are no sums."""
        return []

    def law(self, pair: Pair, factor: float = 1.0) -> Law:
        """All stages, with noise of their own."""
        numbers = self.numbers(factor)
        found = [
            (distance / numbers[f"{stage}_noise"], entries, rows)
            for stage, (distance, entries, rows) in self.moves(numbers).items()
            if numbers.get(f"{stage}_noise")
        ]
        laws = [*(independent(found, pure=self.pure) if found else ()), *self.others(pair, numbers)]
        return Law.together(laws)


def apart(dimension: int, *, pure: bool) -> float:
    """‖xxᵀ − yyᵀ‖ for unit vectors: √2 if they are orthogonal, which takes two dimensions; under a pure promise the
    trace of what is added and taken away counts, which is 1."""
    return math.sqrt(2.0) if dimension > 1 and not pure else 1.0


def matrix(largest: float, rows: int, *, pure: bool) -> tuple[float, int, int]:
    """How far two rows of this squared norm move a sum of squares."""
    return apart(rows, pure=pure) * largest, rows * (rows + 1) // 2, rows


def opposite_ends(plan: Plan, *, responses: bool = False) -> tuple[float, int, None]:
    """The longest distance of two rows: 2 for each number, √2 for each category, 2 for a ball."""
    features, categories = plan.model.features, categories_of(plan)
    coded = sum(stop - start for start, stop in categories)
    squared = 4.0 if features.data_norm is not None else 4.0 * (features.count - coded) + 2.0 * len(categories)
    return math.sqrt(squared + 4.0 * responses), features.count + responses, None


def categories_of(plan: Plan) -> tuple[tuple[int, int], ...]:
    return tuple(plan.mechanism.categories)


def coded_columns(plan: Plan) -> Mask:
    """Which columns code a category."""
    coded = np.zeros(plan.model.features.count, dtype=bool)
    for start, stop in categories_of(plan):
        coded[start:stop] = True
    return coded


# ── replays ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Recorded:
    """A noise that remembers what it was asked for: (sum, steps, size, shares) of each sum, and real vectors with their
    size; with ``answer`` it gives that for the vectors instead."""

    noise: Any
    answer: Array | None = None
    sums: list[tuple[Array, float, float, Any]] = field(default_factory=list)
    reals: list[tuple[Array, float]] = field(default_factory=list)
    before_rounding: Array | None = None
    answers: list[Array] = field(default_factory=list)
    """The noisy sums, in the same order."""

    def vector(self, sums: Any, steps: float, noise: float, each: Any = None) -> Array:
        self.sums.append((np.asarray(sums) / steps, steps, noise, each))
        given = self.noise.vector(sums, steps, noise, each)
        self.answers.append(np.asarray(given if self.answer is None else self.answer))
        return self.answers[-1]

    def triangle(self, sums: Any, steps: float, noise: float) -> Array:
        self.sums.append((np.asarray(sums) / steps, steps, noise, None))
        self.answers.append(np.asarray(self.noise.triangle(sums, steps, noise)))
        return self.answers[-1]

    def real(self, size: int, noise: float) -> Array:
        drawn = np.asarray(self.noise.real(size, noise))
        self.reals.append((drawn, noise))
        return drawn

    def rounded(self, values: Array, noise: float) -> Array:
        self.before_rounding = np.array(values)
        return np.asarray(self.noise.rounded(values, noise))


def departures_of_sums(sums: Sums, numbers: Mapping[str, float], recorded: Recorded, rows: int) -> list[str]:
    """How the recorded sums differ from the declared ones, each given with the largest entry of a row in it."""
    ran = [name for name in sums if numbers[f"{name}_noise"]]
    found = [] if len(ran) == len(recorded.sums) else ["other stages ran than the plan's"]
    for name, (seen, steps, size, _) in zip(ran, recorded.sums, strict=False):
        compute, largest = sums[name]
        cell = 1.0 / steps if name == "mean" else 1.0 / math.sqrt(steps)
        if size != numbers[f"{name}_noise"]:
            found.append(f"the {name} got noise of another size than the plan's")
        if np.abs(seen - compute()).max() > rows * 3.0 * (largest + cell) * cell:
            found.append(f"the {name} is not the sum that the plan declares")
    return found


def tables(plan: Plan, generator: np.random.Generator, *, rows: int = ROWS) -> tuple[Array, Array]:
    """Two synthetic tables that differ in the last record, some records at the corners of their box."""
    features = plan.model.features
    if features.data_norm is not None:
        lower, upper = (np.full(features.count, side * features.data_norm) for side in (-1.0, 1.0))
    else:
        lower, upper = (np.array(end) for end in features.ends)
    shares = generator.uniform(size=(rows + 1, features.count))
    shares[::2] = np.round(shares[::2])
    shares = np.where(coded_columns(plan), np.round(shares), shares)
    if generator.uniform() < 0.5:
        shares[-1] = 1.0 - shares[-2]
    table = lower + shares * (upper - lower)
    return table[:-1], np.concatenate([table[:-2], table[-1:]])


def shortened(rows: Array, radius: float) -> Array:
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1.0, radius / np.maximum(size, 1e-300)))


def lower_triangle(rows: Array) -> Array:
    """Of Σ rowᵀrow."""
    return np.asarray((rows.T @ rows)[np.tril_indices(rows.shape[1])])
