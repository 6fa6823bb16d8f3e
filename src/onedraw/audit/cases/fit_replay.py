"""Replaying a fit: the program that runs, stage by stage, against what its plan declares, in plain NumPy.

The theorem is about weighted sums, a minimum found to a tolerance, and noises of stated sizes. `replay_fit` runs the program
on two neighbouring tables while it writes down every sum that was handed to the noise and every noise that came back, and
computes each of them a second time from the formulas of mathematics-3: Σv, Σx̄x̄ᵀ, the gradient of the perturbed objective at
what was found, Σaψzzᵀ, Σa²E[φ'²|x]zzᵀ. `audit_noise` asks whether the noise has the size that it was asked for.
A fault that no profile can show is seen here: rows shortened where weights are declared change no promise, only the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special, stats

from onedraw.models import CountRegression, HuberRegression, LogCoshRegression, Logistic, Quantile
from onedraw.models.fit.published import Coordinates, Published
from onedraw.plans import Plan
from onedraw.samplers.fit import Stages
from onedraw.samplers.fit_noise import Noise

from .case import Array
from .convex import encoded, rows_of
from .fit_laws import fit_of, slope_of

LEVEL = 1e-6
"""Chance that an honest noise is accused."""

ROWS = 24
"""Records of the tables replayed, whatever n the plan is for: nothing in a stage depends on how many there are."""


@dataclass
class Recorded:
    """A noise that remembers what it was asked for: (sum, steps, size) of each sum, and real vectors with their size."""

    noise: Any
    sums: list[tuple[Array, float, float]] = field(default_factory=list)
    reals: list[tuple[Array, float]] = field(default_factory=list)
    before_rounding: Array | None = None

    def vector(self, sums: Any, steps: float, noise: float) -> Array:
        self.sums.append((np.asarray(sums) / steps, steps, noise))
        return np.asarray(self.noise.vector(sums, steps, noise))

    def triangle(self, sums: Any, steps: float, noise: float) -> Array:
        self.sums.append((np.asarray(sums) / steps, steps, noise))
        return np.asarray(self.noise.triangle(sums, steps, noise))

    def real(self, size: int, noise: float) -> Array:
        drawn = np.asarray(self.noise.real(size, noise))
        self.reals.append((drawn, noise))
        return drawn

    def rounded(self, values: Array, noise: float) -> Array:
        self.before_rounding = np.array(values)
        return np.asarray(self.noise.rounded(values, noise))


# ── what the plan declares, in NumPy ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Declared:
    """Every sum of a fit on one table, from its plan and what was published."""

    plan: Plan
    records: Any

    @property
    def rows(self) -> Array:
        """v: numbers in [−1, 1], categories as columns of norm at most 1, or rows in a unit ball."""
        model, count = self.plan.model, self.plan.model.features.count
        rows = encoded(model, np.asarray(rows_of(self.records), dtype=np.float64))[:, :count]
        if model.features.data_norm is not None:
            return _shortened(rows / model.features.data_norm, 1.0)
        for start, stop in self.plan.mechanism.categories:  # type: ignore[attr-defined]
            rows[:, start:stop] = _shortened((np.clip(rows[:, start:stop], -1.0, 1.0) + 1.0) / 2.0, 1.0)
        return np.asarray(np.clip(rows, -1.0, 1.0))

    @property
    def responses(self) -> Array:
        """As the model encodes them; numbers over their bound."""
        model: Any = self.plan.model
        return np.asarray(model.summarise(self.records).y / model.response_scale, dtype=np.float64)

    def with_responses(self) -> Array:
        if not isinstance(self.plan.model, LogCoshRegression | Quantile):
            return self.rows
        return np.asarray(np.column_stack([self.rows, np.clip(self.responses, -1.0, 1.0)]))

    def mean(self) -> Array:
        return np.asarray(self.with_responses().sum(axis=0))

    def moments(self, centre: Array) -> Array:
        return _outer(_shortened(self.with_responses() - centre, self.plan.parameters["moment_radius"]))

    def measured(self, where: Coordinates) -> tuple[Array, Array]:
        """z and the weights a(z)."""
        z = (self.rows - where.mean) @ where.root
        if self.plan.model.features.intercept:
            z = np.column_stack([z, np.ones(len(z))])
        z = where.stretch * z
        return z, np.minimum(1.0, self.plan.parameters["row_bound"] ** 2 / np.maximum((z**2).sum(axis=1), 1e-300))

    def derivatives(self, predictor: Array, where: Coordinates) -> tuple[Array, Array]:
        """φ' and φ'' of every record."""
        model, loss, y = self.plan.model, slope_of(self.plan.model), self.responses
        match model:
            case LogCoshRegression() | HuberRegression():
                error = predictor - (y - where.centre) / where.unit
                return loss.slope(error), loss.curvature(error)
            case Quantile(level=level):
                turn = 1.0 if level >= 0.5 else -1.0
                error = turn * (predictor - (y - where.centre) / where.unit)
                return turn * loss.slope(error), loss.curvature(error)
            case CountRegression(largest=largest):
                return loss.slope(predictor) + largest - y, loss.curvature(predictor)
        return y * loss.slope(y * predictor), loss.curvature(y * predictor)

    def pulls(self, theta: Array, where: Coordinates) -> Array:
        """a·φ'·z of every record; of several classes the pull on every contrast of them, one after the other."""
        z, a = self.measured(where)
        if self.plan.model.row_blocks == 1:
            return np.asarray(z * (a * self.derivatives(z @ theta, where)[0])[:, None])
        on_scores = class_pulls(self._scores(theta, z), self.responses.astype(int))
        return np.asarray([np.kron(pull @ self._contrasts, row) for pull, row in zip(on_scores, z * a[:, None], strict=True)])  # fmt: skip

    @property
    def _contrasts(self) -> Array:
        """Each class against the mean of those before it."""
        classes = self.plan.model.row_blocks
        return np.column_stack([np.r_[np.ones(j), -j, np.zeros(classes - 1 - j)] / math.sqrt(j * (j + 1)) for j in range(1, classes)])  # fmt: skip

    def _scores(self, theta: Array, z: Array) -> Array:
        return np.asarray(z @ theta.reshape(-1, z.shape[1]).T @ self._contrasts.T)

    def gradient(self, theta: Array, where: Coordinates) -> Array:
        """Of the weighted loss with its ridge and prior."""
        quadratic, linear = fit_of(self.plan).problem(self.plan).penalty(where)
        return np.asarray(self.pulls(theta, where).sum(axis=0) + quadratic @ theta + linear)

    def information(self, theta: Array, where: Coordinates) -> Array:
        """Σaψzzᵀ: the curvature, or its expectation where the model says how often each label comes."""
        z, a = self.measured(where)
        robust = fit_of(self.plan).robust
        if self.plan.model.row_blocks > 1:
            bends = class_bends(self._scores(theta, z))
            total = sum(np.kron(self._contrasts.T @ bend @ self._contrasts, weight * np.outer(row, row)) for bend, weight, row in zip(bends, a, z, strict=True))  # fmt: skip
            return np.asarray(total)[np.tril_indices(len(theta))]
        u, loss = z @ theta, slope_of(self.plan.model)
        if isinstance(self.plan.model, Logistic) and not robust:
            psi = special.expit(u) * loss.curvature(u) + special.expit(-u) * loss.curvature(-u)
        else:
            _, psi = self.derivatives(u, where)
        return _outer(z * np.sqrt(a * psi)[:, None])

    def variability(self, theta: Array, where: Coordinates) -> Array:
        """Σa²E[φ'²|x]zzᵀ where the model says how often each response comes, otherwise that of the pulls as they are."""
        loss = slope_of(self.plan.model)
        if fit_of(self.plan).robust or loss.variability is None:
            return _outer(self.pulls(theta, where))
        z, a = self.measured(where)
        u = z @ theta
        if isinstance(self.plan.model, CountRegression):
            expected = capped_variance(np.exp(u), self.plan.model.largest)
        else:
            expected = special.expit(u) * loss.slope(u) ** 2 + special.expit(-u) * loss.slope(-u) ** 2
        return _outer(z * (a * np.sqrt(expected))[:, None])


def capped_variance(rates: Array, largest: int) -> Array:
    """Of min(Poisson(λ), Y), from its probabilities."""
    values = np.arange(largest + 1)
    chances = stats.poisson.pmf(values, rates[:, None])
    chances[:, -1] = stats.poisson.sf(largest - 1, rates)
    return np.asarray(chances @ values**2 - (chances @ values) ** 2)


def class_pulls(scores: Array, labels: Any) -> Array:
    """The gradient of each record's loss in its scores."""
    return np.asarray(special.softmax(scores, axis=1) - np.eye(scores.shape[1])[labels])


def class_bends(scores: Array) -> Array:
    """The Hessian of each record's loss in its scores, whatever its label."""
    return np.asarray([np.diag(p) - np.outer(p, p) for p in special.softmax(scores, axis=1)])


def _shortened(rows: Array, radius: float) -> Array:
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1.0, radius / np.maximum(size, 1e-300)))


def _outer(rows: Array) -> Array:
    """The lower triangle of Σ rowᵀrow."""
    return np.asarray((rows.T @ rows)[np.tril_indices(rows.shape[1])])


# ── the replay ─────────────────────────────────────────────────────────────────────────────────────────────


def replay_fit(
    plan: Plan, tables: Any = None, *, program: Callable[..., Any] = Stages, noise: Any = Noise, seed: int = 20176
) -> list[str]:
    """Where the program departs from its plan on these neighbouring tables (or on synthetic ones); empty if nowhere."""
    found: list[str] = []
    for records in neighbours(plan) if tables is None else tables:
        problem = fit_of(plan).problem(plan)
        recorded = Recorded(noise(np.random.default_rng(seed), pure=problem.pure))
        stages = program(fit_of(plan).target(plan, plan.model.summarise(records)), recorded)
        found += _departures(plan, Declared(plan, records), recorded, stages.run())
    return list(dict.fromkeys(found))


def _departures(plan: Plan, declared: Declared, recorded: Recorded, published: Published) -> list[str]:
    problem, numbers = fit_of(plan).problem(plan), plan.parameters
    where = problem.coordinates(published)
    rows, row = len(declared.rows), numbers["row_bound"]
    loss = slope_of(plan.model)
    sums: dict[str, tuple[Callable[[], Array], float]] = {
        "mean": (declared.mean, 1.0),
        "moments": (lambda: declared.moments(problem.moment_columns.centre(published.mean)), numbers["moment_radius"]),
        "information": (lambda: declared.information(published.mode, where), math.sqrt(max(loss.most, loss.information)) * row),
        "variability": (lambda: declared.variability(published.mode, where), loss.steepest * row),
    }  # fmt: skip
    return departures_of_sums(sums, numbers, recorded, rows) + _departures_of_the_mode(plan, declared, recorded, where)


def departures_of_sums(
    sums: Mapping[str, tuple[Callable[[], Array], float]], numbers: Mapping[str, float], recorded: Recorded, rows: int
) -> list[str]:
    """How the recorded sums differ from the declared ones, each given with the largest entry of a row in it."""
    ran = [name for name in sums if numbers[f"{name}_noise"]]
    found = [] if len(ran) == len(recorded.sums) else ["other stages ran than the plan's"]
    for name, (seen, steps, size) in zip(ran, recorded.sums, strict=False):
        compute, largest = sums[name]
        cell = 1.0 / steps if name == "mean" else 1.0 / math.sqrt(steps)
        if size != numbers[f"{name}_noise"]:
            found.append(f"the {name} got noise of another size than the plan's")
        if np.abs(seen - compute()).max() > rows * 3.0 * (largest + cell) * cell:
            found.append(f"the {name} is not the sum that the plan declares")
    return found


def _departures_of_the_mode(plan: Plan, declared: Declared, recorded: Recorded, where: Coordinates) -> list[str]:
    numbers = plan.parameters
    if len(recorded.reals) != 2 or recorded.before_rounding is None:
        return ["the mode was not made with one random tilt and one closing noise"]
    (tilt, tilt_size), (closing, closing_size) = recorded.reals
    found = []
    if tilt_size != numbers["mode_noise"]:
        found.append("the mode got noise of another size than the plan's")
    if closing_size != numbers["closing_noise"]:
        found.append("the closing noise has another size than the plan's")
    residual = declared.gradient(recorded.before_rounding - closing, where) + tilt
    if np.linalg.norm(residual) > numbers["tolerance"]:
        found.append("the mode is not the minimum of the declared objective, to its tolerance")
    return found


def audit_noise(noise: Any, *, size: int = 4, draws: int = 2000, scale: float = 3.0) -> list[str]:
    """Whether real vectors and noisy sums of a `Noise` have the size they were asked for, at a level of 1e-6."""
    steps, entries = 2.0**22, size * (size + 1) // 2
    down, across = np.tril_indices(size)
    weights = np.where(down == across, 1.0, math.sqrt(2.0))
    made = {
        "a real vector": [noise.real(size, scale) for _ in range(draws)],
        "a noisy sum": [noise.vector(np.zeros(size, dtype=np.int64), steps, scale) for _ in range(draws)],
        "a noisy matrix": [weights * noise.triangle(np.zeros(entries, dtype=np.int64), steps, scale) for _ in range(draws)],
    }  # fmt: skip
    found = []
    for name, vectors in made.items():
        lengths = np.linalg.norm(np.array(vectors), axis=1) / scale
        chance = _chance_of_less(lengths, size, noise.pure, of_matrix=name == "a noisy matrix")
        if min(chance, 1.0 - chance) < LEVEL / 6.0:
            found.append(f"{name} has noise that is too {'small' if chance < 0.5 else 'large'}")
    return found


def _chance_of_less(lengths: Array, size: int, pure: bool, *, of_matrix: bool) -> float:
    """How likely honest noise of scale 1 is to be shorter than these draws together; of pure noise on a matrix by the central limit
    theorem for its mean square, 2D²(2D+1)(p+1)/((D+1)(D+2)), D = p(p+1)/2."""
    draws, entries = len(lengths), size * (size + 1) // 2
    if pure and of_matrix:
        expected = 2.0 * entries**2 * (2 * entries + 1) * (size + 1) / ((entries + 1) * (entries + 2))
        squares = lengths**2
        return float(stats.norm.cdf((squares.mean() - expected) * math.sqrt(draws) / squares.std()))
    numbers = draws * (entries if of_matrix else size)
    return float(stats.gamma.cdf(lengths.sum(), numbers) if pure else stats.chi2.cdf((lengths**2).sum(), numbers))


def neighbours(plan: Plan) -> tuple[Any, Any]:
    """Two synthetic tables of ROWS records that differ in the last one; some rows at the corners of their box."""
    generator, model = np.random.default_rng(7), plan.model
    features = model.features
    if features.data_norm is not None:
        lower, upper = (np.full(features.count, side * features.data_norm) for side in (-1.0, 1.0))
    else:
        lower, upper = (np.array(end if isinstance(end, tuple) else (end,) * features.count) for end in features.box)
    shares = generator.uniform(size=(ROWS, features.count))
    shares[: ROWS // 3] = np.round(shares[: ROWS // 3])
    shares[:, :] = np.where(_coded(plan)[None, :], np.round(shares), shares)
    rows = lower + shares * (upper - lower)
    labels = list(range(ROWS))
    first = (rows, [_response(model, index) for index in labels])
    other = rows.copy()
    other[-1] = lower + upper - rows[-1]
    return first, (other, [*first[1][:-1], _response(model, ROWS)])


def _coded(plan: Plan) -> Any:
    coded = np.zeros(plan.model.features.count, dtype=bool)
    for start, stop in plan.mechanism.categories:  # type: ignore[attr-defined]
        coded[start:stop] = True
    return coded


def _response(model: Any, index: int) -> Any:
    """Responses of every kind, in turn."""
    if hasattr(model, "classes"):
        classes = (0, 1) if model.classes is None else model.classes
        return classes[index % len(classes)]
    if isinstance(model, CountRegression):
        return index % (model.largest + 1)
    return (getattr(model, "response_bound", None) or 1.0) * math.sin(1.0 + index)
