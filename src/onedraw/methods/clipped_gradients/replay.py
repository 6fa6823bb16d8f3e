"""The program of clipped gradients, run beside the formulas (see `audit.cases.staged`).

`replay_clipped` runs the program on two neighboring tables while it records every sum and every noise. It follows the
iterates from the recorded answers, and computes each sum a second time, in plain NumPy, from the table of
methods/clipped_gradients/proof.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from onedraw import models
from onedraw.arrays import Array, Integers
from onedraw.audit.cases.declared import Declared, neighbours
from onedraw.audit.cases.losses import encoded_rows
from onedraw.audit.cases.staged import Recorded, categories_of, coded_columns
from onedraw.methods.clipped_gradients.coordinates import Coordinates, coordinates_of
from onedraw.methods.clipped_gradients.result import ClippedResult, Published, Start
from onedraw.methods.clipped_gradients.run import Stages
from onedraw.methods.clipped_gradients.steps import descend
from onedraw.plans import Plan
from onedraw.samplers.noise import Noise

ROUNDING = 4.0
"""A recorded sum may be off by this many steps of the lattice of rows for each record, times what rows and coefficients make of one."""


class Sum(NamedTuple):
    """One noised sum as methods/clipped_gradients/proof.md declares it."""

    name: str
    noise: float
    value: Array
    tolerance: float


@dataclass(frozen=True)
class DeclaredGradients(Declared):
    """Every sum of clipped gradients on one table."""

    @property
    def columns(self) -> Array:
        """Return v: numbers, rows of a ball, and for each category the unit vector of a record's level, or 0."""
        rows, encoded = np.array(self.rows), np.array(encoded_rows(self.plan.model, self.records[0]))
        for start, stop in categories_of(self.plan):
            part = encoded[:, start:stop]
            level, largest = part.argmax(axis=1), part.max(axis=1)
            rows[:, start:stop] = np.where(largest > 0.0, 1.0, 0.0)[:, None] * np.eye(stop - start)[level]
        return rows

    @property
    def numbers(self) -> Integers:
        """Return which columns are numbers."""
        return np.flatnonzero(~coded_columns(self.plan))

    @property
    def response(self) -> Array:
        """Return responses as (records, outputs): 0 or 1, unit vectors of classes, or in [-1, 1]."""
        model: Any = self.plan.model
        y = np.asarray(model.summarise(self.records).y, dtype=np.float64)
        match model:
            case models.Softmax():
                return np.asarray(np.eye(len(model.classes))[y.astype(int)])
            case models.Logistic():
                return np.asarray(y[:, None] > 0.0, dtype=np.float64)
            case models.CountRegression(largest=largest):
                return np.asarray(y[:, None] / largest)
        return np.asarray(np.clip(y[:, None] / model.response_bound, -1.0, 1.0))

    def residuals(self, scores: Array) -> Array:
        """Return raw residuals at scores (records, outputs)."""
        model: Any = self.plan.model
        match model:
            case models.Softmax():
                expected = special.softmax(scores, axis=1)
            case models.Logistic():
                expected = special.expit(scores)
            case models.CountRegression(largest=largest):
                expected = np.minimum(np.exp(scores), largest) / largest
            case _:
                expected = scores
        return np.asarray(expected - self.response)

    def gradients(self, where: Coordinates, start: Start, slopes: Array, intercepts: Array) -> tuple[Array, Array]:
        """Return Σ of shortened gradients of slopes and of shortened residuals."""
        numbers = self.plan.parameters
        z = (self.columns - where.center) / where.scale
        raw = self.residuals(z @ slopes + intercepts)
        size, length = np.linalg.norm(raw, axis=1), np.linalg.norm(z, axis=1)
        least = np.maximum(length * size / start.unit, 1e-300)
        shortened = raw / start.unit * np.minimum(1.0, numbers["slope_bound"] / least)[:, None]
        own = raw * np.minimum(1.0, numbers["intercept_bound"] / np.maximum(size, 1e-300))[:, None]
        return (z.T @ shortened).ravel(), np.asarray(own.sum(axis=0))

    def of_center(self, found: ClippedResult) -> Array:
        """Return Σ of scores beyond the level's, in units of their standard deviation and cut."""
        bound = self.plan.parameters["center_bound"]
        moved = found.published.intercepts - found.start.scores
        scores = ((self.columns - found.where.center) / found.where.scale) @ found.slopes + moved
        return np.asarray(np.clip(scores / found.deviation, -bound, bound).sum(axis=0))

    def of_temperature(self, found: ClippedResult) -> Array:
        """Return Σ of the first derivative in the temperature, and of its increases."""
        bound, level = self.plan.parameters["temperature_bound"], found.line.level
        z = (self.columns - found.where.center) / found.where.scale
        slopes = z @ found.slopes + found.line.shift
        scale = found.start.unit * found.deviation
        each = [
            np.clip((self.residuals(level + t * slopes) * slopes).sum(axis=1) / scale, -bound, bound)
            for t in found.temperatures
        ]
        return np.asarray(np.diff(np.maximum.accumulate(each, axis=0), axis=0, prepend=0.0).sum(axis=1))


def replay_clipped(
    plan: Plan, tables: Any = None, *, program: Callable[..., Any] = Stages, noise: Any = Noise, seed: int = 20176
) -> list[str]:
    """Return where the program departs from its plan on these neighboring tables (or on synthetic ones)."""
    found: list[str] = []
    for records in neighbours(plan) if tables is None else tables:
        recorded, encoded = Recorded(noise(np.random.default_rng(seed), pure=False)), plan.model.summarise(records)
        program(plan.mechanism.target(plan, encoded), recorded).run()
        found += _departures(plan, DeclaredGradients(plan, records), recorded)
    return list(dict.fromkeys(found))


def _departures(plan: Plan, declared: DeclaredGradients, recorded: Recorded) -> list[str]:
    sizes, steps = plan.mechanism.stage_sizes(plan), int(plan.parameters["steps"])
    expected = [sizes[name] for name in ("level", "square", "mean", "spread") if name in sizes]
    expected += [sizes["slopes"], sizes["intercepts"]] * steps
    expected += [sizes[name] for name in ("center", "temperature") if name in sizes]
    if [len(seen) for seen, *_ in recorded.sums] != expected or recorded.reals:
        return ["other parts ran than the plan's"]
    found = []
    for part, (seen, _, size, _) in zip(declared_sums(plan, declared, recorded), recorded.sums, strict=True):
        if size != part.noise:
            found.append(f"the {part.name} got noise of another size than the plan's")
        if np.abs(seen - part.value).max() > part.tolerance:
            found.append(f"the {part.name} is not the sum that the plan declares")
    return found


def declared_sums(plan: Plan, declared: DeclaredGradients, recorded: Recorded) -> list[Sum]:
    """Return every noised sum in its order, at the coordinates and coefficients that earlier answers give."""
    numbers, problem, answers = plan.parameters, plan.mechanism.problem(plan), iter(recorded.answers)
    found, rows, n = [], len(declared.rows), plan.n

    def add(name: str, value: Array, size: float = 1.0) -> Array:
        found.append(Sum(name, numbers[f"{name}_noise"], value, rows * ROUNDING * size / problem.lattice.row))
        return next(answers)

    level = add("level", declared.response.sum(axis=0)) / n
    square = add("square", (declared.response**2).sum(axis=0)) / n if numbers.get("square_noise") else None
    mean, spread = _declared_scales(declared, add, n) if numbers["mean_noise"] else (None, None)
    where, start = coordinates_of(problem, mean, spread), Start.of(problem, level, square)
    longest = 1.0 + float(np.linalg.norm((declared.columns - where.center) / where.scale, axis=1).max())

    def gradient(slopes: Array, intercepts: Array) -> tuple[Array, Array]:
        of_slopes, own = declared.gradients(where, start, slopes, intercepts)
        size = (1.0 + float(np.abs(slopes).sum(axis=0).max())) / start.unit
        return add("slope", of_slopes, size * longest).reshape(slopes.shape), add("intercept", own, size)

    path = descend(problem, start.scores, start.unit, gradient)
    published = Published(level, square, mean, spread, path.slopes.ravel(), path.intercepts, None, np.zeros(0))
    result = ClippedResult(problem, published)
    size = longest * (1.0 + float(np.abs(path.slopes).sum())) / (start.unit * result.deviation)
    if numbers.get("center_noise"):
        result = ClippedResult(problem, replace(published, center=add("center", declared.of_center(result), size) / n))
    add("temperature", declared.of_temperature(result), size)
    return found


def _declared_scales(
    declared: DeclaredGradients, add: Callable[[str, Array], Array], n: int
) -> tuple[Array, Array | None]:
    """Declare means and mean deviations; return the recorded ones."""
    columns = declared.columns
    mean = add("mean", columns.sum(axis=0)) / n
    if not declared.plan.parameters["spread_noise"]:
        return mean, None
    middle = np.clip(mean[declared.numbers], -1.0, 1.0)
    deviations = np.minimum(np.abs(columns[:, declared.numbers] - middle), 1.0)
    return mean, add("spread", deviations.sum(axis=0)) / n
