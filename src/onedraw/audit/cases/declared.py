"""Sums of a regression on one table, a second time and in plain NumPy: what replays hold a program's sums against."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from onedraw import models
from onedraw.arrays import Array
from onedraw.models.fit.problem import Coordinates
from onedraw.plans import Plan

from .losses import encoded_rows, of_classes, slope_of
from .staged import Sums, categories_of, lower_triangle, shortened, tables

ROWS: dict[str, Any] = {"features": 3, "bounds": (-1, 1), "scaled": True, "prior": models.Gaussian(scale=1.0)}
"""What the small regressions have in common that are attacked."""


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
