"""The program of averaged steps, run beside the formulas (see `audit.cases.staged`).

`replay_steps` runs the program on two neighboring tables while it records every sum and every noise. It follows the
iterates from the recorded answers, and computes each sum a second time, in plain NumPy (`DeclaredSteps`), from the table of
methods/fit/proof.md. So a step that is left out, an unshortened score or a sum at other coefficients is seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from onedraw import models
from onedraw.arrays import Array, Integers
from onedraw.audit.cases.declared import Declared, neighbours
from onedraw.audit.cases.staged import Recorded, lower_triangle, shortened
from onedraw.methods.fit.coordinates import First, Where, centre_of, first_of, where_of
from onedraw.methods.fit.effects import stretch_of
from onedraw.methods.fit.run import Stages
from onedraw.methods.fit.sizes import choose_factor
from onedraw.methods.fit.steps import walk
from onedraw.plans import Plan
from onedraw.samplers.noise import Noise

EARLY, FULL, COUNTS = 12, 30, 3
"""Steps with half the bound and with the full one, and counts that choose it, as methods/fit/proof.md has them."""

FAR = 2.0
"""Times the bound, beyond which scores are counted."""

WINDOW, LARGEST_INFORMATION = 0.5, 4.0
"""Half-width in which the density at a quantile is counted, and the largest information of a count."""


@dataclass(frozen=True)
class DeclaredSteps(Declared):
    """Every sum of averaged steps on one table."""

    @property
    def response(self) -> Array:
        """Return responses in [−1, 1]: numbers over their bound, labels, counts with 0 and the largest at the ends."""
        model: Any = self.plan.model
        y = np.asarray(model.summarise(self.records).y, dtype=np.float64)
        match model:
            case models.CountRegression(largest=largest):
                return np.asarray(y * 2.0 / largest - 1.0)
            case models.Logistic() | models.HuberisedHinge() | models.Softmax():
                return y
        return np.asarray(np.clip(y / model.response_scale, -1.0, 1.0))

    @property
    def columns(self) -> Array:
        """Return the measured columns, the response last unless it is one of several classes."""
        return self.rows if self.classes else np.column_stack([self.rows, self.response])

    @property
    def classes(self) -> int:
        """Return how many classes there are where there are several; otherwise 0."""
        return len(self.plan.model.classes) if isinstance(self.plan.model, models.Softmax) else 0

    @property
    def robust(self) -> bool:
        return bool(self.plan.mechanism.robust)

    @property
    def level(self) -> Array:
        """Return what each record adds to the level: its response, or the unit vector of its class."""
        return np.eye(self.classes)[self.response.astype(int)] if self.classes else self.response[:, None]

    def design(self, first: First) -> Array:
        """Return rows of first coordinates and residuals."""
        z = (self.rows - first.mean[: self.rows.shape[1]]) @ first.root
        if self.classes:
            return np.asarray(z)
        return np.column_stack([z, (self.response - first.centre - z @ first.slopes) / first.unit])

    def coordinates(self, where: Where) -> Array:
        """Return the rows that steps read."""
        z = (self.rows - where.mean) @ where.root
        return np.column_stack([z, np.ones(len(z))]) if self.plan.model.features.intercept else z

    def scores(self, where: Where, theta: Array, bound: float = math.inf, stretched: Array | float = 1.0) -> Array:
        """Return R·z·ψ of every record, R = ``stretched``, weighted where rows are so that no response could make it longer than
        ``bound``."""
        z = self.coordinates(where)
        along = z * stretched if isinstance(stretched, float) else z @ stretched
        if self.classes:
            psi = np.eye(self.classes)[self.response.astype(int)] - self.chances(z, theta)
            psi = (self.weights(along, z, theta, bound)[:, None] * psi) @ contrasts_of(self.classes)
            return np.asarray((psi[:, :, None] * along[:, None, :]).reshape(len(z), -1))
        weights = self.weights(along, z, theta, bound)
        return np.asarray(along * (weights * self.limited(self.psi(where, z @ theta) / where.score_scale))[:, None])

    def psi(self, where: Where, u: Array) -> Array:
        """Return ψ before it is divided by its scale and limited."""
        match self.plan.model:
            case models.CountRegression(largest=largest):
                return np.asarray((self.response + 1.0) * largest / 2.0 - rates(u, largest))
            case models.Quantile(level=level):
                return np.where((self.response - where.centre) / where.unit > u, level, level - 1.0)
            case models.Logistic():
                return np.asarray(self.response * special.expit(-self.response * u))
            case models.HuberisedHinge(width=width):
                return np.asarray(self.response * np.clip((1.0 - self.response * u) / width, 0.0, 1.0))
        return np.asarray((self.response - where.centre) / where.unit - u)

    @property
    def limit(self) -> float:
        """Return where ψ of a robust line ends; infinity of others."""
        ends: dict[type, float] = {models.OrdinaryLeastSquares: 1.0, models.CountRegression: 3.0}
        return ends.get(type(self.plan.model), math.inf) if self.robust else math.inf

    def limited(self, psi: Array) -> Array:
        return psi if self.limit == math.inf else np.asarray(self.limit * np.tanh(psi / self.limit))

    def chances(self, z: Array, theta: Array) -> Array:
        """Return the chances of several classes."""
        contrasts = z @ theta.reshape(self.classes - 1, -1).T
        return np.asarray(special.softmax(contrasts @ contrasts_of(self.classes).T, axis=1))

    def weights(self, along: Array, z: Array, theta: Array, bound: float) -> Array:
        """Return how much of a record counts, by its stretched row ``along``; 1 where ψ has no largest size."""
        match self.plan.model:
            case models.Softmax():
                chances = self.chances(z, theta)
                longest = [np.linalg.norm(np.eye(self.classes)[k] - chances, axis=1) for k in range(self.classes)]
                most: Any = np.max(longest, axis=0)
            case models.Logistic():
                most = np.maximum(special.expit(z @ theta), special.expit(-(z @ theta)))
            case models.HuberisedHinge():
                most = 1.0
            case models.Quantile(level=level) if self.robust:
                most = max(level, 1.0 - level)
            case _ if self.robust:
                most = self.limit
            case _:
                return np.ones(len(z))
        return np.asarray(np.minimum(1.0, bound / np.maximum(lengths(along) * most, 1e-300)))

    def of_persons(self, where: Where, theta: Array, longest: float, stretched: Array) -> Array:
        """Return what is squared for the covariance: every record's scores, or the sums of every person's."""
        scores = self.scores(where, theta, longest, stretched)
        if not self.classes:
            scores = np.asarray(np.linalg.solve(stretched, scores.T).T, dtype=np.float64)
        if not self.plan.mechanism.by_person:
            return scores
        whose, sums = owners_in(len(scores)), shortened(scores, longest)
        return np.array([sums[whose == owner].sum(axis=0) for owner in np.unique(whose[whose >= 0])])

    def informing(self, where: Where, theta: Array, bound: float, stretched: Array) -> Array:
        """Return √w·z of every record."""
        z, model = self.coordinates(where), self.plan.model
        u, weights = z @ theta, self.weights(z @ stretched, z, theta, bound)
        match model:
            case models.CountRegression(largest=largest):
                w = np.exp(np.minimum(u, math.log(8.0 * largest))) / where.score_scale
            case models.Quantile():
                near = np.abs((self.response - where.centre) / where.unit - u) <= WINDOW
                w = np.where(near, 0.5 / WINDOW, 0.0)
            case models.HuberisedHinge(width=width):
                w = (np.abs(1.0 - self.response * u - width / 2.0) < width / 2.0) / width
            case models.OrdinaryLeastSquares():
                w = np.ones(len(z))
            case _:
                w = special.expit(u) * special.expit(-u)
        if self.limit < math.inf:
            w = w / np.cosh(np.clip(self.psi(where, u) / where.score_scale / self.limit, -300.0, 300.0)) ** 2
        return np.asarray(z * np.sqrt(np.minimum(w * weights, LARGEST_INFORMATION))[:, None])

    def information_of_classes(self, where: Where, theta: Array, bound: float, radius: float) -> Array:
        """Return Σ a·(W ⊗ zzᵀ), each record's share shortened to radius²."""
        z, contrasts = self.coordinates(where), contrasts_of(self.classes)
        chances, weights = self.chances(z, theta), self.weights(z, z, theta, bound)
        total: Any = 0.0
        for row, p, weight in zip(z, chances, weights, strict=True):
            share = np.kron(contrasts.T @ (np.diag(p) - np.outer(p, p)) @ contrasts, weight * np.outer(row, row))
            total = total + share * min(1.0, radius**2 / max(float(np.linalg.norm(share)), 1e-300))
        return np.asarray(total[np.tril_indices(len(total))])


def contrasts_of(classes: int) -> Array:
    """Return orthonormal contrasts: each class in turn against the mean of those before it."""
    found = np.array([[1.0] * j + [-float(j)] + [0.0] * (classes - 1 - j) for j in range(1, classes)])
    return np.asarray((found / np.linalg.norm(found, axis=1, keepdims=True)).T)


def owners_in(rows: int) -> Integers:
    """Return whose the records of a synthetic table are: of seven persons here and there, and of nobody."""
    places = np.arange(rows)
    person, somebody = (places * 5) % 7, places % 8 < 7
    first = [int(np.flatnonzero(somebody & (person == one))[0]) for one in range(7)]
    return np.where(somebody, np.array(first)[person], -1)


def rates(u: Array, largest: int) -> Array:
    """Return e^u, and from eight times the largest count on the tangent there."""
    beyond = np.maximum(u - math.log(8.0 * largest), 0.0)
    return np.asarray(np.exp(u - beyond) * (1.0 + beyond))


def lengths(rows: Array) -> Array:
    return np.asarray(np.linalg.norm(rows, axis=1))


class Declares(NamedTuple):
    """One noised sum as methods/fit/proof.md declares it."""

    name: str
    noise: float
    compute: Callable[[], Array]
    largest: float
    """The largest norm of a vector that is added up, or of a row whose square is."""
    squares: bool


def replay_steps(
    plan: Plan, tables: Any = None, *, program: Callable[..., Any] = Stages, noise: Any = Noise, seed: int = 20176
) -> list[str]:
    """Return where the program departs from its plan on these neighboring tables (or on synthetic ones)."""
    found: list[str] = []
    for records in neighbours(plan) if tables is None else tables:
        recorded, encoded = Recorded(noise(np.random.default_rng(seed), pure=False)), plan.model.summarise(records)
        program(replace(plan.mechanism.target(plan, encoded), whose=owners_in(encoded.n)), recorded).run()
        found += _departures(plan, DeclaredSteps(plan, records), recorded)
    return list(dict.fromkeys(found))


def _departures(plan: Plan, declared: DeclaredSteps, recorded: Recorded) -> list[str]:
    times = {"early": EARLY, "step": FULL}  # one number of the tail is published at a time
    sizes: list[int] = []
    for part, size in plan.mechanism.stage_sizes(plan).items():
        sizes += [1] * COUNTS if part == "tail" else [size] * times.get(part, 1)
    if [len(seen) for seen, *_ in recorded.sums] != sizes or recorded.reals:
        return ["other parts ran than the plan's"]
    found, rows = [], len(declared.rows)
    expected = declared_sums(plan, declared, recorded)
    for part, (seen, steps, size, _) in zip(expected, recorded.sums, strict=True):
        if size != part.noise:
            found.append(f"the {part.name} got noise of another size than the plan's")
        cell = 1.0 / math.sqrt(steps) if part.squares else 1.0 / steps
        allowed = 3.0 * (part.largest + cell) * cell if part.squares else 3.0 * cell
        computed = part.compute()
        if np.abs(seen - computed).max() > rows * allowed:
            found.append(f"the {part.name} is not the sum that the plan declares")
    return found


def declared_sums(plan: Plan, declared: DeclaredSteps, recorded: Recorded) -> list[Declares]:
    """Return every noised sum in its order, at the coordinates and coefficients that earlier answers give."""
    problem = plan.mechanism.problem(plan)
    numbers, answers = problem.numbers, iter(recorded.answers)
    found: list[Declares] = []

    def add(name: str, compute: Callable[[], Array], largest: float, squares: bool) -> Array | None:
        """Declare a part that runs, and return its recorded answer."""
        if not numbers[f"{name}_noise"]:
            return None
        found.append(Declares(name, numbers[f"{name}_noise"], compute, largest, squares))
        return next(answers)

    def squares(name: str, rows: Callable[[], Array], radius: float) -> Array | None:
        return add(name, lambda: lower_triangle(shortened(rows(), radius)), radius, True)

    level = add("level", lambda: np.asarray(declared.level.sum(axis=0)), 1.0, False)
    level = None if level is None else level / problem.n
    mean = add("mean", lambda: np.asarray(declared.columns.sum(axis=0)), 1.0, False)
    mean = None if mean is None else mean / problem.n
    centre = centre_of(problem, mean, level)
    moments = squares("moments", lambda: declared.columns - centre, numbers["moment_radius"])
    assert moments is not None
    first = first_of(problem, centre, moments, level)
    design = squares("design", lambda: declared.design(first), numbers["design_radius"])
    where = where_of(problem, first, design)
    counts: list[Array] = []

    stretch = stretch_of(problem, where)
    stretched = np.eye(problem.layout.width) if stretch is None else stretch.matrix

    def scores(theta: Array, bound: float = math.inf) -> Array:
        return declared.scores(where, theta, bound, stretched)

    def longer(theta: Array, bound: float) -> Callable[[], Array]:
        return lambda: np.array([np.sum(lengths(scores(theta)) > bound)])

    def ask(factor: float) -> float:
        answer = add("tail", longer(where.start, factor * numbers["step_bound"]), 1.0, False)
        assert answer is not None
        counts.append(answer)
        return float(answer[0])

    if numbers["tail_noise"]:
        choose_factor(ask, numbers["tail_target"])
        problem = problem.with_bound(np.concatenate(counts))
        numbers = problem.numbers
    names = iter(["early"] * EARLY + ["step"] * FULL)

    def gradient(theta: Array, bound: float, noise: float) -> Array:
        name = next(names)
        most = numbers[f"{name}_bound"]
        answer = add(name, lambda: np.asarray(shortened(scores(theta, most), most).sum(axis=0)), most, False)
        assert answer is not None
        return answer if stretch is None else np.asarray(np.linalg.solve(stretched, answer))

    theta = walk(problem, where, gradient).step
    add("count", longer(theta, FAR * numbers["step_bound"]), 1.0, False)
    bound = numbers["step_bound"]
    if declared.classes:
        radius = numbers["information_radius"]
        shares = lambda: declared.information_of_classes(where, theta, bound, radius)  # noqa: E731
        add("information", shares, radius, True)
    else:
        squares(
            "information", lambda: declared.informing(where, theta, bound, stretched), numbers["information_radius"]
        )
    squares("covariance", lambda: declared.of_persons(where, theta, bound, stretched), numbers["covariance_radius"])
    return found
