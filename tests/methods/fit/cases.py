"""Models, tables and programs that the tests of averaged steps share."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import onedraw as od
from onedraw.methods import calibrate
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit.result import StepsResult
from onedraw.methods.fit.run import Stages
from onedraw.models import (
    CountRegression,
    Gaussian,
    HuberisedHinge,
    Logistic,
    OrdinaryLeastSquares,
    Quantile,
    Softmax,
)
from onedraw.plans import Plan
from onedraw.samplers.noise import Noise

BUDGET = od.ApproxDP(1.0, 1e-6)
KINDS = ("number", "label", "count", "quantile")
MORE = ("robust number", "robust count", "margin", "classes")
"""Kinds with weights of rows by a fixed length, and several classes."""
LABELS = ("label", "margin", "classes")
CLASSES = ("a", "b", "c")
TRUTH = np.array([0.6, -0.4, 0.2])


def model_of(
    kind: str, *, columns: int = 2, intercept: bool = True, norm: float | None = None, bounds: Any = (-1, 1),
    bound: float = 4.0, largest: int = 8, level: float = 0.5,
) -> Any:  # fmt: skip
    """Return a model of a kind of response, which "robust" may precede; `bound` is the response's."""
    rows: dict[str, Any] = {"features": columns, "intercept": intercept, "prior": Gaussian(scale=1.0)}
    rows |= {"bounds": bounds, "scaled": True} if norm is None else {"data_norm": norm}
    match kind.removeprefix("robust "):
        case "margin":
            return HuberisedHinge(**rows, width=0.5)
        case "classes":
            return Softmax(**rows, classes=CLASSES)
        case "number":
            return OrdinaryLeastSquares(**rows, response_bound=bound)
        case "label":
            return Logistic(**rows)
        case "count":
            return CountRegression(**rows, largest=largest)
    return Quantile(**rows, level=level, response_bound=bound)


@cache
def plan_of(
    kind: str, n: int = 8000, budget: Any = BUDGET, *, records: int = 1, prior: bool = False, **options: Any
) -> Plan:
    """Calibrate averaged steps for a kind of response."""
    steps = AveragedSteps(robust=kind.startswith("robust"), prior=prior)
    plan: Plan = calibrate(steps, model_of(kind, **options), budget, n=n, records_per_person=records)
    return plan


def table_of(kind: str, n: int, seed: int = 0, *, tails: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Simulate records that follow the model; `tails` are the degrees of freedom of the errors of numbers."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    u = X @ TRUTH[:2] + TRUTH[2]
    if kind == "classes":
        odds = np.exp(np.column_stack([u, -u, X[:, 1]])).cumsum(axis=1)
        return X, np.array(CLASSES)[(odds < rng.uniform(size=(n, 1)) * odds[:, -1:]).sum(axis=1)]
    if kind in LABELS:
        return X, (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-u))).astype(int)
    if kind.endswith("count"):
        return X, rng.poisson(np.exp(u)).astype(float)
    errors = rng.standard_normal(n) if tails is None else rng.standard_t(tails, n)
    return X, u + 0.5 * errors


def run(plan: Plan, table: Any, seed: int = 1, noise: Any = None) -> StepsResult:
    """Run the program on a table with seeded noise, and return its result."""
    source = Noise(np.random.default_rng(seed), pure=False) if noise is None else noise
    published = Stages(plan.target(plan.model.summarise(table)), source).run()
    result = plan.mechanism.result(plan, published.to_dict())  # type: ignore[attr-defined]
    assert isinstance(result, StepsResult)
    return result
