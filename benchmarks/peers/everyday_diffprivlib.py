"""diffprivlib's own mean, count and histogram, and its Laplace, geometric and Gaussian mechanisms: errors on public tables.

    python -m venv build/peers/diffprivlib
    build/peers/diffprivlib/bin/pip install diffprivlib==0.6.6 "scikit-learn<1.7"
    build/peers/diffprivlib/bin/python benchmarks/peers/everyday_diffprivlib.py > benchmarks/results/peers_everyday.json

Root mean squared error of the noise alone, over 4,000 runs, for the statistics of benchmarks/everyday_statistics.py. Its tools
promise their ε for their own neighbours (`tools.histogram` for one record added or removed); here its mechanisms get the
replace-one sensitivity with n public, which is what everybody else in the table has.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from diffprivlib import tools
from diffprivlib.mechanisms import GaussianAnalytic, Geometric, Laplace

warnings.simplefilter("ignore")

SIZES, EPSILONS, DELTA, RUNS = (500, 4177, 100_000), (0.1, 0.5, 1.0, 2.0), 1e-6, 4000


def error(draw, truth, runs=RUNS):
    return float(np.sqrt(np.mean([(draw() - truth) ** 2 for _ in range(runs)])))


def errors_at(n, epsilon):
    count, cell = Geometric(epsilon=epsilon, sensitivity=1), Geometric(epsilon=epsilon, sensitivity=2)
    share = Laplace(epsilon=epsilon, sensitivity=1 / n)
    gauss = GaussianAnalytic(epsilon=epsilon, delta=DELTA, sensitivity=1 / n)
    column, counted = np.linspace(0.0, 1.0, n), n // 5
    runs = RUNS if n < 10_000 else 1000
    return {
        "count": error(lambda: count.randomise(counted), counted),
        "proportion": min(
            error(lambda: share.randomise(0.2), 0.2), error(lambda: count.randomise(counted) / n, counted / n)
        ),
        "mean": error(lambda: tools.mean(column, epsilon=epsilon, bounds=(0.0, 1.0)), 0.5, runs=runs),
        "histogram": error(lambda: cell.randomise(counted) / n, counted / n),
        "proportion, Gaussian": error(lambda: gauss.randomise(0.2), 0.2),
    }


def main() -> None:
    found = []
    for n in SIZES:
        for epsilon in EPSILONS:
            rows = errors_at(n, epsilon)
            found += [{"n": n, "epsilon": epsilon, "statistic": name, "rmse": value} for name, value in rows.items()]
            print(n, epsilon, rows, file=sys.stderr)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
