"""Models, tables and programs that the tests of averaged steps share."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import onedraw as od
from onedraw.mechanisms import calibrate
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit.result import StepsResult
from onedraw.methods.fit.run import Stages
from onedraw.models import CountRegression, Gaussian, Logistic, OrdinaryLeastSquares, Quantile
from onedraw.plans import Plan
from onedraw.samplers.noise import Noise

BUDGET = od.ApproxDP(1.0, 1e-6)
KINDS = ("number", "label", "count", "quantile")
TRUTH = np.array([0.6, -0.4, 0.2])


def model_of(
    kind: str, *, columns: int = 2, intercept: bool = True, norm: float | None = None, bounds: Any = (-1, 1),
    bound: float = 4.0, largest: int = 8, level: float = 0.5,
) -> Any:  # fmt: skip
    """Return a model of a kind of response; `bound` is the response's."""
    rows: dict[str, Any] = {"features": columns, "intercept": intercept, "prior": Gaussian(scale=1.0)}
    rows |= {"bounds": bounds, "scaled": True} if norm is None else {"data_norm": norm}
    match kind:
        case "number":
            return OrdinaryLeastSquares(**rows, response_bound=bound)
        case "label":
            return Logistic(**rows)
        case "count":
            return CountRegression(**rows, largest=largest)
    return Quantile(**rows, level=level, response_bound=bound)


@cache
def plan_of(kind: str, n: int = 8000, budget: Any = BUDGET, *, records: int = 1, **options: Any) -> Plan:
    """Calibrate averaged steps for a kind of response."""
    plan: Plan = calibrate(AveragedSteps(), model_of(kind, **options), budget, n=n, records_per_person=records)
    return plan


def table_of(kind: str, n: int, seed: int = 0, *, tails: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Simulate records that follow the model; `tails` are the degrees of freedom of the errors of numbers."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    u = X @ TRUTH[:2] + TRUTH[2]
    if kind == "label":
        return X, (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-u))).astype(int)
    if kind == "count":
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
