"""Models, tables and programs that the tests of clipped gradients share."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import onedraw as od
from onedraw.methods import calibrate
from onedraw.methods.clipped_gradients import ClippedGradients
from onedraw.methods.clipped_gradients.result import ClippedResult
from onedraw.methods.clipped_gradients.run import Stages
from onedraw.models import CountRegression, Gaussian, Logistic, OrdinaryLeastSquares, Softmax
from onedraw.plans import Plan
from onedraw.samplers.noise import Noise

BUDGET = od.ApproxDP(1.0, 1e-6)
KINDS = ("label", "classes", "count", "number")
COLUMNS = 5
CATEGORIES = ((2, 5),)
"""Two numbers, then a category of four levels."""


def model_of(kind: str, *, norm: float | None = None, columns: int = COLUMNS, classes: int = 3) -> Any:
    """Return a model of a kind of response, with rows of a norm or with bounds."""
    rows: dict[str, Any] = {"features": columns, "prior": Gaussian(scale=1.0)}
    rows |= {"bounds": (-1, 1), "scaled": True} if norm is None else {"data_norm": norm}
    match kind:
        case "classes":
            return Softmax(**rows, classes=tuple(range(classes)))
        case "count":
            return CountRegression(**rows, largest=8)
        case "number":
            return OrdinaryLeastSquares(**rows, response_bound=4.0)
    return Logistic(**rows)


@cache
def plan_of(
    kind: str, n: int = 4000, budget: Any = BUDGET, *, records: int = 1, categories: Any = CATEGORIES, **options: Any
) -> Plan:
    """Calibrate clipped gradients for a kind of response."""
    mechanism = ClippedGradients(categories=categories)
    plan: Plan = calibrate(mechanism, model_of(kind, **options), budget, n=n, records_per_person=records)
    return plan


def table_of(kind: str, n: int = 4000, seed: int = 0, *, effect: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Simulate records that follow the model: two numbers and a category; `effect` multiplies all slopes."""
    rng = np.random.default_rng(seed)
    X = np.full((n, COLUMNS), -1.0)
    X[:, :2] = rng.uniform(-1, 1, (n, 2))
    level = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    X[np.arange(n)[level > 0], 1 + level[level > 0]] = 1.0
    slopes = effect * np.array(
        [[1.5, -1.0, 0.5], [-1.0, 0.5, 1.0], [0.8, -0.4, 0.2], [-0.6, 0.3, 0.4], [0.2, 0.9, -0.5]]
    )
    u = X @ slopes + [0.3, -0.2, 0.1]
    if kind == "classes":
        return X, (u + rng.gumbel(size=u.shape)).argmax(axis=1)
    if kind == "label":
        return X, (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-2.0 * u[:, 0]))).astype(int)
    if kind == "count":
        return X, rng.poisson(np.exp(0.5 * u[:, 0])).astype(float)
    return X, u[:, 0] + 0.5 * rng.standard_normal(n)


def run(plan: Plan, table: Any, seed: int = 1, noise: Any = None) -> ClippedResult:
    """Run the program on a table with seeded noise, and return its result."""
    source = Noise(np.random.default_rng(seed), pure=False) if noise is None else noise
    published = Stages(plan.target(plan.model.summarise(table)), source).run()
    result = plan.mechanism.result(plan, published.to_dict())  # type: ignore[attr-defined]
    assert isinstance(result, ClippedResult)
    return result
