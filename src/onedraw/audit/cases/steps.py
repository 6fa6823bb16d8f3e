"""Averaged steps, attacked (see `staged`): every part on its own worst pair, and the program replayed.

Two opposite vectors of norm B differ by 2B, two orthogonal rows of norm R by √2·R² in their squares: each part attains
its share of the promise, so all of it is attained. Where scores are added up by person, two orthogonal sums do.

`replay_steps` runs the program on two neighboring tables while it records every sum and every noise. It follows the
iterates from the recorded answers, and computes each sum a second time, in plain NumPy, from the table of
methods/fit/proof.md. So a step that is left out, an unshortened score or a sum at other coefficients is seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onedraw import models
from onedraw.arrays import Array
from onedraw.methods import Plan
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit.coordinates import centre_of, first_of, where_of
from onedraw.methods.fit.effects import stretch_of
from onedraw.methods.fit.run import Stages
from onedraw.methods.fit.sizes import choose_factor
from onedraw.methods.fit.steps import walk
from onedraw.privacy import Promise
from onedraw.samplers.noise import Noise

from . import staged
from .case import Case, cases_of
from .declared_steps import DeclaredSteps, lengths, owners_in
from .fits import neighbours
from .staged import EACH_STAGE, Moves, Recorded, lower_triangle, shortened

EARLY, FULL, COUNTS = 12, 30, 3
"""Steps with half the bound and with the full one, and counts that choose it, as methods/fit/proof.md has them."""

FAR = 2.0
"""Times the bound, beyond which scores are counted."""

ATTAINED = "every part is moved as far as its table says: opposite ends of the box, opposite scores, orthogonal rows"


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


@dataclass(frozen=True)
class StepsCase(staged.StagedCase):
    """Averaged steps with the moments before and what standard errors are made of after them."""

    noises: ClassVar[tuple[str, ...]] = tuple(
        f"{part}_noise"
        for part in (
            "level",
            "mean",
            "moments",
            "design",
            "tail",
            "early",
            "step",
            "count",
            "information",
            "covariance",
        )
    )

    @property
    def pure(self) -> bool:
        return False

    @property
    def planned(self) -> dict[str, float]:
        return {**self.plan.mechanism.problem(self.plan).numbers, **dict(self.ran)}

    def replayed(self) -> tuple[str, ...]:
        return tuple(replay_steps(self.plan))

    def moves(self, numbers: Mapping[str, float]) -> Moves:
        model = self.plan.model
        classes = len(model.classes) if isinstance(model, models.Softmax) else 0
        mean = staged.opposite_ends(self.plan, responses=not classes)
        size = (int(model.features.count) + bool(model.features.intercept)) * max(1, classes - 1)

        def squares(radius: str, rows: int) -> tuple[float, int, int | None]:
            return staged.matrix(numbers[radius] ** 2, rows, pure=False)

        return {
            "level": (math.sqrt(2.0), classes, None) if classes else (2.0, 1, None),
            "mean": mean,
            "moments": squares("moment_radius", mean[1]),
            "design": squares("design_radius", mean[1]),
            # counts and steps have noises of their own: together they move as far as √times one of them
            "tail": (math.sqrt(COUNTS), 1, None),
            "early": (math.sqrt(EARLY) * 2.0 * numbers["early_bound"], size, None),
            "step": (math.sqrt(FULL) * 2.0 * numbers["step_bound"], size, None),
            "count": (1.0, 1, None),
            "information": squares("information_radius", size),
            "covariance": squares("covariance_radius", size),
        }


def steps_case(plan: Plan, *, label: str = "") -> StepsCase:
    """Return the case of any plan of averaged steps."""
    return StepsCase(plan, EACH_STAGE, ATTAINED, True, label)


ROWS: dict[str, Any] = {"features": 3, "bounds": (-1, 1), "scaled": True, "prior": models.Gaussian(scale=1.0)}

MODELS: dict[str, Any] = {
    "logistic": models.Logistic(**ROWS),
    "least-squares": models.OrdinaryLeastSquares(**ROWS, response_bound=2.0),
    "quantile": models.Quantile(**ROWS, level=0.8, response_bound=2.0),
    "counts": models.CountRegression(**ROWS, largest=5),
    "hinge": models.HuberisedHinge(**ROWS, width=0.5),
    "classes": models.Softmax(**ROWS, classes=("a", "b", "c")),
}


BY_PERSON = "least-squares"
"""The model that is also attacked with scores added up by person: sums of vectors are alike in all."""


def steps_of(name: str, budget: Promise) -> list[Case]:
    """Return the cases of a model under a budget that has a δ or is Gaussian."""
    found = [(AveragedSteps(), "")]
    if name == BY_PERSON:
        found += [(AveragedSteps(persons=True), "by person"), (AveragedSteps(effects=(0,)), "an effect of interest")]
        found += [(AveragedSteps(robust=True), "a robust line"), (AveragedSteps(prior=True), "a declared prior")]
    return cases_of(steps_case, [(label, mechanism, MODELS[name]) for mechanism, label in found], budget, n=10_000)
