"""Is a private evaluation near, and do its intervals cover?

    python benchmarks/evaluation.py    # a minute or two; writes benchmarks/results/evaluation.md

Private fits (DPLogisticRegression, ε = 1) are evaluated at ε = 0.5 on 5,000 held-out records, again and again with fresh ones. The
truth is the figure on 400,000 records of the same population.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from scipy import special
from sklearn.metrics import mean_squared_error, r2_score, roc_auc_score

import onedraw as od

RESULT = Path(__file__).parent / "results" / "evaluation.md"
POPULATIONS = {
    "balanced": ([1.4, -0.9, 0.4, 0.0], -0.3),
    "a quarter positive": ([1.1, -0.7, 0.0, 0.4], -1.4),
    "strong": ([2.6, -1.8, 0.9, 0.0], -0.5),
    "rare: one in twelve": ([1.1, -0.7, 0.4, 0.0], -3.2),
}
RUNS, FITS, N = 200, 4, 5_000


def drawn(generator, n, weights, shift):
    X = np.clip(generator.normal(size=(n, 4)), -4, 4)
    return X, (generator.random(n) < special.expit(X @ np.array(weights) + shift)).astype(int)


def classifiers(generator):
    lines = [
        "| population | true AUC | within 0.02 | 95 % interval covers AUC | accuracy | median width of AUC's |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, population in POPULATIONS.items():
        near, covered, right, widths, truths = [], [], [], [], []
        for _ in range(FITS):
            model = od.DPLogisticRegression(1.0, bounds=(-4, 4), classes=[0, 1]).fit(*drawn(generator, N, *population))
            X, y = drawn(generator, 400_000, *population)
            score = model.predict_proba(X)[:, 1]
            truths.append(roc_auc_score(y, score))
            correct = float(np.mean((score >= 0.5) == y))
            for _ in range(RUNS // FITS):
                found = od.evaluate(model, *drawn(generator, N, *population), epsilon=0.5)
                near.append(abs(found.auc.value - truths[-1]) <= 0.02)
                covered.append(found.auc.low <= truths[-1] <= found.auc.high)
                right.append(found.accuracy.low <= correct <= found.accuracy.high)
                widths.append(found.auc.high - found.auc.low)
        shares = " | ".join(f"{100 * np.mean(part):.0f} %" for part in (near, covered, right))
        lines.append(f"| {name} | {np.mean(truths):.3f} | {shares} | {np.median(widths):.3f} |")
        print(lines[-1], flush=True)
    return lines


def regressors(generator):
    lines = ["| largest error declared | true RMSE, R² | RMSE off by (median) | covers RMSE | R² off by | covers R² |", "| --- | --- | ---: | ---: | ---: | ---: |"]  # fmt: skip

    def sample(n):
        X = np.clip(generator.normal(size=(n, 2)), -4, 4)
        return X, X @ np.array([1.0, 2.0]) + generator.normal(size=n)

    model = od.DPLinearRegression(1.0, bounds=(-4, 4), response_bound=(-12, 12)).fit(*sample(N))
    X, y = sample(400_000)
    rmse, fit = float(np.sqrt(mean_squared_error(y, model.predict(X)))), r2_score(y, model.predict(X))
    for largest in (None, 6.0):
        found = [
            od.evaluate(model, *sample(N), epsilon=0.5, bounds=(-12, 12), largest_error=largest) for _ in range(RUNS)
        ]
        off = [
            np.median([abs(getattr(one, name).value - truth) for one in found])
            for name, truth in (("rmse", rmse), ("r2", fit))
        ]
        covers = [100 * np.mean([getattr(one, name).low <= truth <= getattr(one, name).high for one in found]) for name, truth in (("rmse", rmse), ("r2", fit))]  # fmt: skip
        lines.append(
            f"| {largest or 'none (24)'} | {rmse:.2f}, {fit:.2f} | {off[0]:.3f} | {covers[0]:.0f} % | {off[1]:.3f} | {covers[1]:.0f} % |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    generator, start = np.random.default_rng(20261115), time.time()
    text = [
        "# Private evaluation", "",
        f"Written by `benchmarks/evaluation.py`: {RUNS} evaluations each at pure ε = 0.5 on {N:,} fresh held-out records, of private fits at ε = 1.", "",
        *classifiers(generator), "", "Responses declared between −12 and 12:", "", *regressors(generator), "",
        "A regressor's intervals use the largest sampling error that any law has, so they are on the wide side; declaring how large an error can "
        "matter narrows them.", "", f"{time.time() - start:.0f} s.", "",
    ]  # fmt: skip
    RESULT.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
