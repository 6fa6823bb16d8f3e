"""Patients whose law is known, and what is declared about them."""

import numpy as np

FEATURES = """\
  age: {kind: number, lower: 0, upper: 100, missing: 50}
  ward: {kind: category, levels: [a, b, c], missing: a}
  smoker: {kind: binary, levels: [no, yes], missing: no}
"""
TARGETS = {
    "ill": "{kind: binary, levels: [no, yes], missing: no}",
    "grade": "{kind: category, levels: [low, mid, high], missing: low}",
    "visits": "{kind: count, cap: 12, missing: 0}",
    "cost": "{kind: number, lower: 0, upper: 20000, missing: 5000}",
}
TRUTH = {"age": 60.0, "ward=b": 1600.0, "ward=c": -1000.0, "smoker=yes": 2000.0, "intercept": 1000.0}
"""Of the mean cost, in the units of the columns."""


def write_patients(path, n, seed=1, rare=None):
    """``rare`` is the share of those on ward c; by default a third."""
    generator = np.random.default_rng(seed)
    age, ward, smoker = generator.uniform(0, 100, n), generator.integers(0, 3, n), generator.random(n) < 0.4
    if rare is not None:
        ward = np.where(generator.random(n) < rare, 2, generator.integers(0, 2, n))
    mean = 1000 + 60 * age + 1600 * (ward == 1) - 1000 * (ward == 2) + 2000 * smoker
    cost = np.clip(mean + 1000 * generator.standard_normal(n), 0, 20000)
    ill = generator.random(n) < 1 / (1 + np.exp(-(mean - 5000) / 1500))
    visits = generator.poisson(mean / 2500)
    rows = [
        f"{'yes' if ill[i] else 'no'},{'low' if cost[i] < 4000 else 'mid' if cost[i] < 7000 else 'high'},{cost[i]:.1f},"
        f"{age[i]:.1f},{'abc'[ward[i]]},{'yes' if smoker[i] else 'no'},{visits[i]}"
        for i in range(n)
    ]
    path.write_text("\n".join(["ill,grade,cost,age,ward,smoker,visits", *rows]) + "\n")
