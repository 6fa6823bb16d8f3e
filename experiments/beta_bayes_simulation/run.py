"""Studies of the simulated logistic regression of Jewson et al. (NeurIPS 2023): what is computed stands in attack.py."""

from __future__ import annotations

from typing import Any

from experiments.beta_bayes_simulation import attack
from experiments.figures import lines
from experiments.study import Study, Table, grid, means

PAPER = "Jewson, Ghalebikesabi, Holmes (NeurIPS 2023)"
EPSILONS = [0.2, 1.0, 2.0, 7.0, 10.0, 20.0]


def attacked(table: Table) -> dict[str, Any]:
    by = ("rule", "epsilon")
    return {
        name: value[0] for column in ("accuracy", "log_ratio") for name, value in means(table, column, by=by).items()
    }


def attack_figures(table: Table) -> dict[str, Any]:
    labels = {"epsilon": "ε promised", "accuracy": "accuracy of the best attacker"}
    return {"accuracy": lines(table, x="epsilon", y="accuracy", by="rule", labels=labels)}


def attack_findings(table: Table) -> list[str]:
    most = max(table["log_ratio"] / table["epsilon"])
    return [
        f"On this pair a draw loses at most {most:.3f} of its ε: the pair is symmetric, so no attack on it can show more than half.",
    ]


STUDIES = (
    Study(
        name="membership-attack",
        claim="The best membership attack on a β-divergence draw stays far below what ε would allow",
        paper=f"{PAPER}, Section 5 and Figure 4",
        run=attack.run,
        cells=grid(rule=["jewson", "optimal"], epsilon=EPSILONS),
        quick=grid(rule=["jewson"], epsilon=EPSILONS),
        quantities=attacked,
        figures=attack_figures,
        findings=attack_findings,
    ),
)
