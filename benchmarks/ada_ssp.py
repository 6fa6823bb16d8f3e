"""AdaSSP and our fit of a linear regression at ε = 0.1 and 1, δ = 1e-6: simulated designs, and two public tables with
declared bounds.

    python benchmarks/ada_ssp.py               # into benchmarks/results/baselines.json; a minute
    python benchmarks/baselines.py --render    # then the page

Errors are root mean squared residuals over the table, the median of 20 releases with fixed seeds: none is private.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import onedraw as od
from onedraw import baselines, methods, models

ROOT = Path(__file__).resolve().parents[1]
RESULT, DATA = ROOT / "benchmarks" / "results" / "baselines.json", ROOT.parent / "shared" / "data"
WIDE = od.Gaussian(scale=3.0)

BOSTON = {
    "CRIM": (0, 100), "ZN": (0, 100), "INDUS": (0, 30), "CHAS": (0, 1), "NOX": (0.3, 1), "RM": (3, 9), "AGE": (0, 100),
    "DIS": (1, 13),    "RAD": (1, 24), "TAX": (150, 750), "PTRATIO": (12, 22), "B": (0, 400), "LSTAT": (0, 40), "MEDV": (0, 50),
}  # fmt: skip
WINE = {
    "fixed_acidity": (4, 16), "volatile_acidity": (0, 2), "citric_acid": (0, 1), "residual_sugar": (0, 16),
    "chlorides": (0, 0.7),    "free_sulfur_dioxide": (0, 80), "total_sulfur_dioxide": (0, 300), "density": (0.98, 1.01),
    "pH": (2.5, 4.5), "sulphates": (0, 2),    "alcohol": (8, 15), "quality": (0, 10),
}  # fmt: skip
"""Declared from what the columns are; the last one is the response."""

REPEATS = 20


class Design(NamedTuple):
    """Rows, responses about the middle of their range, bounds, the response's bound."""

    X: Any
    y: Any
    bounds: tuple[Any, Any]
    response_bound: float


def public_table(name: str, columns: Mapping[str, tuple[float, float]]) -> Design:
    values = np.genfromtxt(DATA / f"{name}.csv", delimiter=",", skip_header=1)
    lower, upper = (np.array(end, dtype=float) for end in zip(*columns.values(), strict=True))
    middle = (lower[-1] + upper[-1]) / 2.0
    return Design(
        values[:, :-1], values[:, -1] - middle, (lower[:-1].tolist(), upper[:-1].tolist()), upper[-1] - middle
    )


def simulated(n: int, spread: float) -> Design:
    """Five columns that fill ``spread`` of their declared range, about a place off its middle."""
    generator = np.random.default_rng(n)
    X = 0.2 * (1.0 - spread) + spread * generator.uniform(-1.0, 1.0, (n, 5))
    y = (
        (X - X.mean(axis=0)) @ np.array([1.0, -0.5, 0.3, 0.0, 0.2]) * (0.4 / spread)
        + 0.1
        + 0.2 * generator.standard_normal(n)
    )
    return Design(X, y, ([-1.0] * 5, [1.0] * 5), 2.0)


DESIGNS: dict[str, Callable[[], Design]] = {
    "simulated, columns fill their range, n = 2,000": lambda: simulated(2000, 1.0),
    "simulated, columns fill their range, n = 20,000": lambda: simulated(20_000, 1.0),
    "simulated, columns fill a tenth of it, n = 2,000": lambda: simulated(2000, 0.1),
    "simulated, columns fill a tenth of it, n = 20,000": lambda: simulated(20_000, 0.1),
    "boston_housing, n = 506": lambda: public_table("boston_housing", BOSTON),
    "wine_quality_red, n = 1,599": lambda: public_table("wine_quality_red", WINE),
}


def ada_ssp() -> list[dict[str, Any]]:
    found = []
    for name, make in DESIGNS.items():
        design = make()
        for epsilon in (0.1, 1.0):
            line = {"design": name, "epsilon": epsilon, **compared(design, epsilon)}
            print(line, flush=True)
            found.append(line)
    return found


def compared(design: Design, epsilon: float) -> dict[str, float]:
    """Root mean squared residuals over the table: of a constant, of least squares, and the medians of 20 releases
    each."""
    X, y, (lower, upper), bound = design
    declared: dict[str, Any] = {
        "features": X.shape[1],
        "bounds": (lower, upper),
        "scaled": True,
        "response_bound": bound,
    }
    tried = {
        "ada_ssp": (baselines.AdaSSP(), models.LeastSquares(**declared, prior=od.Gaussian(scale=1.0, radius=1e3))),
        "fit": (methods.PerturbedMode(), models.LogCoshRegression(**declared, prior=WIDE)),
    }
    half, middle = (np.array(upper) - lower) / 2.0, (np.array(upper) + lower) / 2.0
    rows = np.column_stack([(np.clip(X, lower, upper) - middle) / half, np.ones(len(X))])

    def residual(theta: Any) -> float:
        return float(np.sqrt(np.mean((np.clip(rows @ theta, -bound, bound) - y) ** 2)))

    found = {"constant": float(y.std()), "least_squares": residual(np.linalg.lstsq(rows, y, rcond=None)[0])}
    for name, (mechanism, model) in tried.items():
        plan = od.calibrate(mechanism, model, od.ApproxDP(epsilon, 1e-6), n=len(y))
        draws = [od.release(plan, (X, y), random_state=seed).draw for seed in range(REPEATS)]
        found[name] = float(np.median([residual(draw) for draw in draws]))
    return found


def main() -> None:
    results = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    results["ada_ssp"] = ada_ssp()
    RESULT.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
