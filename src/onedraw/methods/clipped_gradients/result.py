"""The estimate that follows from what clipped gradients published. All of it is free.

It is a point: clipping biases the coefficients, and nothing published says by how much. So there are no standard errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onedraw.arrays import Array

from .coordinates import Coordinates, Problem, coefficients_of_encoded_rows, coordinates_of
from .temperature import FIRST_CAUTION, Line, choose_temperature, line_of, score_deviation, temperatures_for

PARTS = ("known", "level", "square", "mean", "spread", "slopes", "intercepts", "center", "temperature")


@dataclass(frozen=True, eq=False)
class Published:
    """The numbers as they leave: means over the n records, averages of iterates, and sums of derivatives."""

    level: Array
    square: Array | None
    mean: Array | None
    spread: Array | None
    slopes: Array
    """Column by column, class by class within each."""
    intercepts: Array
    center: Array | None
    """In units of the scores' standard deviation."""
    temperature: Array
    known: Array | None = None
    """The number of records with all cells, where the others contribute nothing; means are then over that many."""

    def to_dict(self) -> dict[str, list[float]]:
        found = {name: getattr(self, name) for name in PARTS}
        return {name: np.asarray(value).ravel().tolist() for name, value in found.items() if value is not None}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Published:
        found: dict[str, Any] = {name: stored.get(name) for name in PARTS}
        found |= {name: np.asarray(one, dtype=np.float64) for name, one in found.items() if one is not None}
        return cls(**found)


@dataclass(frozen=True, eq=False)
class Start:
    """The level as the steps use it: its scores, and the unit of residuals."""

    scores: Array
    unit: float

    @classmethod
    def of(cls, problem: Problem, level: Array, square: Array | None = None) -> Start:
        """Return the start that a published mean response gives, and the unit that this and a mean square give."""
        response, sizes, n = problem.response, problem.sizes, problem.n
        shares = response.shrink(level, sizes.level_noise / n)
        return cls(response.link(shares), response.unit(shares, square, sizes.square_noise / n))


@dataclass(frozen=True, eq=False)
class ClippedResult:
    """A predictor in encoded coordinates."""

    problem: Problem
    published: Published

    def __post_init__(self) -> None:
        object.__setattr__(self, "problem", self.problem.with_known(self.published.known))

    @cached_property
    def start(self) -> Start:
        return Start.of(self.problem, self.published.level, self.published.square)

    @cached_property
    def where(self) -> Coordinates:
        return coordinates_of(self.problem, self.published.mean, self.published.spread)

    @cached_property
    def slopes(self) -> Array:
        """Slopes of measured columns before the temperature, (columns, outputs)."""
        return self.published.slopes.reshape(self.problem.layout.columns, -1)

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of the scores at temperature 1, as far as published numbers say."""
        return score_deviation(self.where, self.slopes)

    @cached_property
    def temperatures(self) -> Array:
        """Temperatures at which the derivative is published."""
        return temperatures_for(self.deviation, self.problem.response.kind)

    @cached_property
    def line(self) -> Line:
        """What the temperature moves along."""
        return line_of(
            self.problem, self.start.scores, self.published.intercepts, self.published.center, self.deviation
        )

    @cached_property
    def temperature(self) -> float:
        """How far the predictor goes from the level towards what the steps found."""
        sizes = self.problem.sizes
        raised = (sizes.caution or FIRST_CAUTION) * sizes.temperature_noise
        return choose_temperature(self.temperatures, self.published.temperature, raised)

    @cached_property
    def estimate(self) -> Array:
        """Coefficients of encoded rows, intercept last, class by class."""
        return self.at(self.temperature)

    def at(self, temperature: float) -> Array:
        """Return the coefficients at another temperature."""
        intercepts = self.line.level + temperature * self.line.shift
        return coefficients_of_encoded_rows(self.problem, self.where, temperature * self.slopes, intercepts)
