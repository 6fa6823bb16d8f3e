"""Fits in stages, attacked (see `staged`): the mode's worst pair are opposite rows, other records add a constant pull.

**The replay.** The theorem is about weighted sums, a minimum found to a tolerance, and noises of stated sizes.
`replay_fit` runs the program on two neighbouring tables while it writes down every sum that was handed to the noise and
every noise that came back, and computes each of them a second time, in plain NumPy, from the formulas of privacy/perturbed_mode.md §2:
Σv, Σx̄x̄ᵀ, the gradient of the perturbed objective at what was found, Σaψzzᵀ, Σa²E[φ'²|x]zzᵀ. A fault that no profile can
show is seen here: rows shortened where weights are declared change no promise, only the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import special, stats

from onedraw import models
from onedraw.arrays import Array
from onedraw.methods import PerturbedMode, Plan
from onedraw.methods.perturbed_mode.run import Stages
from onedraw.models.fit.problem import Coordinates, coordinates
from onedraw.privacy import Promise
from onedraw.samplers.noise import Noise as Drawn

from . import staged
from .case import Case, Pair, eligible
from .laws import Law, Noise, Own, mode
from .losses import encoded_rows, of_classes, slope_of
from .staged import Moves, Recorded, Sums, categories_of, lower_triangle, shortened, tables


def measures_response(model: Any) -> bool:
    """Whether numbers to be predicted are among the columns whose moments are measured."""
    return isinstance(model, models.LogCoshRegression | models.Quantile)


@dataclass(frozen=True)
class Declared:
    """Every sum of a fit on one table, from its plan and what was published."""

    plan: Plan
    records: Any

    @property
    def rows(self) -> Array:
        """v: numbers in [−1, 1], categories as columns of norm at most 1, or rows in a unit ball."""
        model, count = self.plan.model, self.plan.model.features.count
        rows = np.array(encoded_rows(model, self.records[0])[:, :count])
        if model.features.data_norm is not None:
            return shortened(rows / model.features.data_norm, 1.0)
        for start, stop in categories_of(self.plan):
            rows[:, start:stop] = shortened((np.clip(rows[:, start:stop], -1.0, 1.0) + 1.0) / 2.0, 1.0)
        return np.asarray(np.clip(rows, -1.0, 1.0))

    @property
    def responses(self) -> Array:
        """As the model encodes them; numbers over their bound."""
        model: Any = self.plan.model
        return np.asarray(model.summarise(self.records).y / model.response_scale, dtype=np.float64)

    def sums(self, columns: Any, published: Any) -> Sums:
        """Σv and Σx̄x̄ᵀ, each with the largest entry of a row in it; computed where they ran."""
        v, radius = self.rows, self.plan.parameters["moment_radius"]
        if measures_response(self.plan.model):
            v = np.column_stack([v, np.clip(self.responses, -1.0, 1.0)])
        return {
            "mean": (lambda: np.asarray(v.sum(axis=0)), 1.0),
            "moments": (lambda: lower_triangle(shortened(v - columns.centre(published.mean), radius)), radius),
        }

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
            case models.LogCoshRegression() | models.HuberRegression():
                error = predictor - (y - where.centre) / where.unit
                return loss.slope(error), loss.curvature(error)
            case models.Quantile(level=level):
                turn = 1.0 if level >= 0.5 else -1.0
                error = turn * (predictor - (y - where.centre) / where.unit)
                return turn * loss.slope(error), loss.curvature(error)
            case models.CountRegression(largest=largest):
                return loss.slope(predictor) + largest - y, loss.curvature(predictor)
        return y * loss.slope(y * predictor), loss.curvature(y * predictor)

    def pulls(self, theta: Array, where: Coordinates) -> Array:
        """a·φ'·z of every record; of several classes the pull on every contrast of them, one after the other."""
        z, a = self.measured(where)
        if self.plan.model.row_blocks == 1:
            return np.asarray(z * (a * self.derivatives(z @ theta, where)[0])[:, None])
        # the gradient of each record's loss in its scores
        on_scores = self._chances(theta, z) - np.eye(self.plan.model.row_blocks)[self.responses.astype(int)]
        pulled = zip(on_scores @ self._contrasts, z * a[:, None], strict=True)
        return np.asarray([np.kron(pull, row) for pull, row in pulled])

    @property
    def _contrasts(self) -> Array:
        """Each class against the mean of those before it."""
        classes = self.plan.model.row_blocks
        columns = [np.r_[np.ones(j), -j, np.zeros(classes - 1 - j)] / math.sqrt(j * (j + 1)) for j in range(1, classes)]
        return np.column_stack(columns)

    def _chances(self, theta: Array, z: Array) -> Array:
        """Of every class, for every record."""
        return np.asarray(special.softmax(z @ theta.reshape(-1, z.shape[1]).T @ self._contrasts.T, axis=1))

    def gradient(self, theta: Array, where: Coordinates) -> Array:
        """Of the weighted loss with its ridge and prior."""
        quadratic, linear = self.plan.mechanism.problem(self.plan).penalty(where)
        return np.asarray(self.pulls(theta, where).sum(axis=0) + quadratic @ theta + linear)

    def information(self, theta: Array, where: Coordinates) -> Array:
        """Σaψzzᵀ: the curvature, or its expectation where the model says how often each label comes."""
        z, a = self.measured(where)
        if self.plan.model.row_blocks > 1:
            total = np.zeros((len(theta), len(theta)))
            for p, weight, row in zip(self._chances(theta, z), a, z, strict=True):
                bend = np.diag(p) - np.outer(p, p)  # the Hessian of a record's loss in its scores, whatever its label
                total += np.kron(self._contrasts.T @ bend @ self._contrasts, weight * np.outer(row, row))
            return np.asarray(total[np.tril_indices(len(theta))])
        u, loss = z @ theta, slope_of(self.plan.model)
        if isinstance(self.plan.model, models.Logistic) and not self.plan.mechanism.robust:
            psi = special.expit(u) * loss.curvature(u) + special.expit(-u) * loss.curvature(-u)
        else:
            _, psi = self.derivatives(u, where)
        return lower_triangle(z * np.sqrt(a * psi)[:, None])

    def variability(self, theta: Array, where: Coordinates) -> Array:
        """Σa²E[φ'²|x]zzᵀ where the model says how often each response comes, otherwise of the pulls as they are."""
        loss = slope_of(self.plan.model)
        if self.plan.mechanism.robust or loss.variability is None:
            return lower_triangle(self.pulls(theta, where))
        z, a = self.measured(where)
        u = z @ theta
        if isinstance(self.plan.model, models.CountRegression):
            rates, values = np.exp(u), np.arange(self.plan.model.largest + 1)  # of min(Poisson(λ), Y)
            chances = stats.poisson.pmf(values, rates[:, None])
            chances[:, -1] = stats.poisson.sf(values[-1] - 1, rates)
            expected = chances @ values**2 - (chances @ values) ** 2
        else:
            expected = special.expit(u) * loss.slope(u) ** 2 + special.expit(-u) * loss.slope(-u) ** 2
        return lower_triangle(z * (a * np.sqrt(expected))[:, None])


def replay_fit(
    plan: Plan, tables: Any = None, *, program: Callable[..., Any] = Stages, noise: Any = Drawn, seed: int = 20176
) -> list[str]:
    """Where the program departs from its plan on these neighbouring tables (or on synthetic ones); empty if nowhere."""
    found: list[str] = []
    problem, numbers, loss = plan.mechanism.problem(plan), plan.parameters, slope_of(plan.model)
    for records in neighbours(plan) if tables is None else tables:
        recorded = Recorded(noise(np.random.default_rng(seed), pure=True))
        published = program(plan.mechanism.target(plan, plan.model.summarise(records)), recorded).run()
        declared, where = Declared(plan, records), coordinates(problem, published)
        bend = math.sqrt(max(loss.most, loss.information)) * numbers["row_bound"]
        sums: Sums = {
            **declared.sums(problem.moment_columns, published),
            "information": (partial(declared.information, published.mode, where), bend),
            "variability": (partial(declared.variability, published.mode, where), loss.steepest * numbers["row_bound"]),
        }
        found += staged.departures_of_sums(sums, numbers, recorded, len(declared.rows))
        found += _departures_of_the_mode(plan, declared, recorded, where)
    return list(dict.fromkeys(found))


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


def neighbours(plan: Plan) -> tuple[Any, Any]:
    """Two synthetic tables that differ in the last record."""
    first, second = tables(plan, np.random.default_rng(7))
    responses = [_response(plan.model, index) for index in range(len(first) + 1)]
    return (first, responses[:-1]), (second, [*responses[:-2], responses[-1]])


def _response(model: Any, index: int) -> Any:
    """Responses of every kind, in turn."""
    if of_classes(model):
        classes = (0, 1) if model.classes is None else model.classes
        return classes[index % len(classes)]
    if isinstance(model, models.CountRegression):
        return index % (model.largest + 1)
    reach = model.response.interval[1]
    return (reach if reach < 1e3 else 1.0) * math.sin(1.0 + index)


# ── the cases ──

STAGES = ("mean", "moments", "mode", "information", "variability", "closing")

LONGEST = "opposite rows, both where slopes are steepest: their pull, and nothing else, is left of the promise"
HELD = "the theorem pays for the volume of all classes; the law is that of one direction, the others being held fast"
BENT = "volume costs κ everywhere in the theorem, in the law only where a record bends"
STEEP = "a record of this loss bends where it is steepest: volume and the longest pull meet in one place"


@dataclass(frozen=True)
class FitCase(staged.StagedCase):
    """A perturbed mode with its sums before and after."""

    stages: tuple[str, ...] = STAGES
    """Those looked at; the promise is always that of all."""

    noises: ClassVar[tuple[str, ...]] = tuple(f"{stage}_noise" for stage in STAGES)

    @property
    def pure(self) -> bool:
        return True

    def replayed(self) -> tuple[str, ...]:
        return tuple(replay_fit(self.plan))

    def others(self, pair: Pair, numbers: Mapping[str, float]) -> list[Law]:
        if "mode" not in self.stages:
            return []
        noise, loss = Noise(numbers["mode_noise"], self._mode_size, True), slope_of(self.plan.model)
        return [mode(loss, pair.first, pair.second, row=numbers["row_bound"], ridge=numbers["ridge"], noise=noise)]

    def moves(self, numbers: Mapping[str, float]) -> Moves:
        loss, model, robust = slope_of(self.plan.model), self.plan.model, self.plan.mechanism.robust
        mean = staged.opposite_ends(self.plan, responses=measures_response(model))
        size, row = self._mode_size, numbers["row_bound"]
        curvature = loss.most if robust else loss.information
        square = loss.steepest**2 if robust or loss.variability is None else loss.variability
        if model.row_blocks > 1:
            curvature = 1.0 - 1.0 / model.row_blocks  # the trace of diag p − ppᵀ
        found: Moves = {
            "mean": mean,
            "moments": staged.matrix(numbers["moment_radius"] ** 2, mean[1], pure=True),
            "information": staged.matrix(curvature * row**2, size, pure=True),
            "variability": staged.matrix(square * row**2, size, pure=True),
            "closing": (2.0 * numbers["tolerance"] / numbers["ridge"], size, None),
        }
        return {stage: found[stage] for stage in found if stage in self.stages}

    @property
    def _mode_size(self) -> int:
        """Numbers in the mode: a vector of coefficients, or K − 1 of them for K classes."""
        features, classes = self.plan.model.features, int(self.plan.model.row_blocks)
        return max(1, classes - 1) * (int(features.count) + bool(features.intercept))


def fit_case(plan: Plan, *, label: str = "", attained: bool = False, reason: str = BENT) -> FitCase:
    """The case of any plan in stages."""
    slope_of(plan.model)
    bent = Pair("opposite rows, one bends at 10 deviations of the noise", Own(1, 10.0), Own(-1))
    return FitCase(plan, (Pair("opposite rows, both steep", Own(1), Own(-1)), bent), reason, attained, label)


def strong_ridge(plan: Plan, times: float = 1e4) -> Plan:
    """The same plan with so strong a ridge that volume costs nothing, and a gradient as much larger: a mode found as precisely."""
    larger = {name: times * plan.parameters[name] for name in ("ridge", "tolerance")}
    stronger: Plan = plan.mechanism.plan(plan.request, {**plan.parameters, **larger})
    return stronger


def fit_cases(model: Any, budget: Promise, *, label: str = "") -> list[Case]:
    """The fit with all its stages."""
    mechanism, steep = PerturbedMode(measured=True, intervals=True), bool(slope_of(model).kinks)
    reason = STEEP if steep else BENT if model.row_blocks == 1 else HELD
    return [
        fit_case(plan, label=f"{label}all stages", attained=steep, reason=reason)
        for plan in eligible(mechanism, model, budget, n=10_000)
    ]


def bare_modes(model: Any, budget: Promise, *, label: str = "") -> list[Case]:
    """The mode alone, with a ridge that makes volume free: the longest pull is all of its promise."""
    plans = eligible(PerturbedMode(measured=False, intervals=False), model, budget, n=10_000)
    strong = [strong_ridge(plan) for plan in plans]
    return [fit_case(plan, label=f"{label}mode, strong ridge", attained=True, reason=LONGEST) for plan in strong]


ROWS: dict[str, Any] = {"features": 3, "bounds": (-1, 1), "scaled": True, "prior": models.Gaussian(scale=1.0)}

MODELS: dict[str, tuple[tuple[str, Any], ...]] = {
    "logistic": (("exp-linear loss, ", models.Logistic(**ROWS, loss="exp-linear")), ("", models.Logistic(**ROWS))),
    "hinge": (("", models.HuberisedHinge(**ROWS, width=0.5)),),
    "log-cosh": (("", models.LogCoshRegression(**ROWS, response_bound=2.0)),),
    "quantile": (("", models.Quantile(**ROWS, level=0.8, response_bound=2.0)),),
    "counts": (("", models.CountRegression(**ROWS, largest=5)),),
    "classes": (("3 classes, ", models.Softmax(**ROWS, classes=tuple("abc"))),),
}
"""Model → (label, model) of its fits."""


def fits_of(name: str, budget: Promise) -> list[Case]:
    labelled = MODELS[name]
    bare = bare_modes(labelled[0][1], budget, label=labelled[0][0]) if name == "logistic" else []
    return [*bare, *(case for label, model in labelled for case in fit_cases(model, budget, label=label))]
