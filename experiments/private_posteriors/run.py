"""The study of private posteriors: Foulds et al. (UAI 2016) beside Bernstein and Sheldon (NeurIPS 2018, 2019).

What is computed stands in simulate.py; claims, and what was found, in README.md.
"""

from __future__ import annotations

from typing import Any

from experiments.figures import lines
from experiments.private_posteriors import simulate
from experiments.study import Quantity, Study, Table, grid, means

EPSILONS = [0.1, 1.0]
METHODS = {"aware": "noise-aware", "naive": "naive (Foulds et al.)"}
BY = ("model", "parameter", "epsilon")


def quantities(table: Table) -> dict[str, Quantity]:
    """Coverage and mean width of both, for each model, parameter and ε."""
    columns = [column for method in METHODS for column in (method, f"{method}_width")]
    return {name: value for column in columns for name, value in means(table, column, by=BY).items()}


def figures(table: Table) -> dict[str, Any]:
    labels = {"epsilon": "ε promised", "covered": "coverage of 90 % intervals", **METHODS}
    long: dict[str, list[Any]] = {name: [] for name in ("model", "epsilon", "method", "covered")}
    for method in METHODS:
        long["model"] += [f"{m}: {p}" for m, p in zip(table["model"], table["parameter"], strict=True)]
        long["epsilon"] += table["epsilon"].tolist()
        long["method"] += [method] * table.rows
        long["covered"] += table[method].tolist()
    return {"coverage": lines(Table(long), x="epsilon", y="covered", by="method", panel="model", labels=labels)}


def findings(table: Table) -> list[str]:
    found = []
    for at, group in table.groups(*BY):
        aware, naive = (100.0 * float(group[method].mean()) for method in METHODS)
        wider = float(group["aware_width"].mean() / group["naive_width"].mean())
        found.append(
            f"{at['model']}, {at['parameter']}, ε = {at['epsilon']:g}: noise-aware intervals cover {aware:.1f} %, "
            f"naive ones {naive:.1f} %; the "
            f"former are {wider:.2g} times as wide."
        )
    return found


STUDIES = (
    Study(
        name="private-posteriors",
        claim="Posteriors that count the noise on their sums are calibrated; those that take noisy sums for true ones are not",
        paper="Foulds et al. (UAI 2016); Bernstein, Sheldon (NeurIPS 2018 and 2019)",
        run=simulate.run,
        cells=grid(model=list(simulate.MODELS), epsilon=EPSILONS),
        quick=grid(model=["bernoulli", "poisson", "linear"], epsilon=EPSILONS),
        seeds=2000,
        quick_seeds=200,
        batch=500,
        quantities=quantities,
        figures=figures,
        findings=findings,
    ),
)
