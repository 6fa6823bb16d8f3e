"""Studies of Jewson, Ghalebikesabi, Holmes (NeurIPS 2023) on logistic regression: Figures 1, 2, 4–8, 10 (top) and 11.

What is computed stands in shapes.py, logistic.py and attack.py; what is shown in results.py; claims, and what was found, in README.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.beta_bayes_logistic import attack, logistic, results, shapes
from experiments.beta_bayes_logistic.data_sets import FILES
from experiments.beta_bayes_logistic.methods import PRIVATE, TWINS
from experiments.study import Study, grid

PAPER = "Jewson, Ghalebikesabi, Holmes (NeurIPS 2023)"
EPSILONS = [0.2, 1.0, 2.0, 7.0, 10.0, 20.0]
COUNTS = [100, 300, 1000, 3000, 10_000]
WIDTHS = [2, 4, 8, 16, 32]
BETAS = [1.0, 1.1, 1.25, 1.5, 2.0]
SIZES = {"abalone": [100, 1000, 0], "adult": [100, 1000, 10_000, 0], "banknote": [100, 500, 0], "vertebral": [100, 0]}
"""Training rows; 0 is all of them."""

TABLE_EPSILONS = [0.2, 0.5, 1.0, 5.0]


def with_twins(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """Every private method at every ε, and those without a promise once."""
    plain = {name: value for name, value in values.items() if name != "epsilon"}
    return grid(method=list(PRIVATE), **values) + grid(method=list(TWINS), **plain)


STUDIES = (
    Study(
        name="beta-bayes-losses", claim="A β-divergence loss is nearer to the likelihood than a weighted one of the same ε, and bounded",
        paper=f"{PAPER}, Figure 1", run=shapes.curves, cells=grid(kind=["classification", "regression"]),
        quick=grid(kind=["classification", "regression"]), quantities=results.shape_quantities, figures=results.shape_figures,
        findings=results.shape_findings,
    ),
    Study(
        name="beta-bayes-influence", claim="One observation moves a β-divergence posterior by a bounded amount, less the farther it lies",
        paper=f"{PAPER}, Figure 5", run=shapes.influence, cells=grid(beta=BETAS), quick=grid(beta=[1.0, 1.25]), seeds=3,
        quantities=results.influence_quantities, figures=results.influence_figures, findings=results.influence_findings,
    ),
    Study(
        name="beta-bayes-logistic",
        claim="As n grows β-divergence draws estimate the parameter best, then Minami's, then output perturbation",
        paper=f"{PAPER}, Figures 2, 6, 7 and 8, simulated", run=logistic.run, cells=with_twins(n=COUNTS, d=[2], epsilon=EPSILONS),
        quick=with_twins(n=[1000], d=[2], epsilon=[1.0, 10.0]), seeds=10, quick_seeds=5,
        quantities=results.error_quantities, figures=results.error_figures, findings=results.error_findings,
    ),
    Study(
        name="beta-bayes-tables", claim="On four UCI tables β-divergence draws predict best as n grows, close to what has no promise",
        paper=f"{PAPER}, Figures 2, 6, 7 and 8, UCI", run=logistic.run_table,
        cells=[cell for table, counts in SIZES.items() for cell in with_twins(table=[table], n=counts, epsilon=TABLE_EPSILONS)],
        quick=with_twins(table=["banknote"], n=[0], epsilon=[1.0]), seeds=10, quick_seeds=5, data=tuple(FILES.values()),
        quantities=results.table_quantities, figures=results.table_figures, findings=results.table_findings,
    ),
    Study(
        name="beta-bayes-features", claim="With more features every method errs more; β-divergence draws stay the best",
        paper=f"{PAPER}, Figure 10, top", run=logistic.run, cells=with_twins(n=[1000], d=WIDTHS, epsilon=EPSILONS),
        quick=with_twins(n=[1000], d=[8], epsilon=[2.0]), seeds=10, quick_seeds=5,
        quantities=results.feature_quantities, figures=results.feature_figures, findings=results.feature_findings,
    ),
    Study(
        name="beta-bayes-attack", claim="At the same success of the best attack β-divergence draws have the smallest error",
        paper=f"{PAPER}, Figures 4 and 11", run=attack.run,
        cells=[*grid(method=list(PRIVATE), epsilon=EPSILONS), {"method": attack.COIN, "epsilon": 1.0}],
        quick=[*grid(method=list(PRIVATE), epsilon=[2.0, 20.0]), {"method": attack.COIN, "epsilon": 1.0}], seeds=10, quick_seeds=5,
        quantities=results.attack_quantities, figures=results.attack_figures, findings=results.attack_findings,
    ),
)  # fmt: skip
