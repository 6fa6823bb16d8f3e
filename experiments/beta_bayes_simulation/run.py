"""Studies of the simulated logistic regression of Jewson et al. (NeurIPS 2023): three methods, our rule, and the attack.

What is computed stands in simulate.py and attack.py; claims, and what was found, in README.md.
"""

from __future__ import annotations

import math
from typing import Any

from experiments.beta_bayes_simulation import attack, simulate
from experiments.figures import lines
from experiments.study import Study, Table, grid, mean, means, named

PAPER = "Jewson, Ghalebikesabi, Holmes (NeurIPS 2023)"
EPSILONS = [0.2, 1.0, 2.0, 7.0, 10.0, 20.0]
METHODS = {
    "jewson": "βD-Bayes, w = 1",
    "optimal": "βD-Bayes, optimal",
    "minami": "Minami, Corollary 8",
    "minami-corrected": "Minami, corrected",
    "output": "output perturbation, λ = 1/(9n)",
    "output-corrected": "output perturbation, corrected",
}
LABELS = METHODS | {"epsilon": "ε promised", "log_rmse": "E log RMSE of one draw"}
GAINS = [0.2, 1.0, 2.0, 10.0]


# ── the errors of three published methods and of our rule ──────────────────────────────────────────────────────────


def errors(table: Table) -> dict[str, Any]:
    """Each mean, and what separates the methods."""
    found = means(table, "log_rmse", by=("method", "n", "epsilon"))
    for better, worse in (("jewson", "minami"), ("minami", "output"), ("optimal", "jewson")):
        found |= {
            named(f"{better} minus {worse}", **values): difference(group, better, worse)
            for values, group in table.groups("n", "epsilon")
            if group.where(method=better).rows and group.where(method=worse).rows
        }
    return found


def difference(group: Table, better: str, worse: str) -> tuple[float, float]:
    """Of the two methods' log RMSE on the same data sets: mean and standard error."""
    return mean(group.where(method=better)["log_rmse"] - group.where(method=worse)["log_rmse"])


def error_figures(table: Table) -> dict[str, Any]:
    return {"log-rmse": lines(table, x="epsilon", y="log_rmse", by="method", panel="n", labels=LABELS)}


def error_findings(table: Table) -> list[str]:
    orders = (
        ("jewson", "minami"), ("minami", "output"), ("optimal", "jewson"), ("jewson", "minami-corrected"),
        ("minami-corrected", "output-corrected"), ("optimal", "minami-corrected"),
    )  # fmt: skip
    return [sentence for better, worse in orders for sentence in compared(table, better, worse)]


def compared(table: Table, better: str, worse: str) -> list[str]:
    """At which n and ε one method has the smaller error, by its mean."""
    found = []
    for values, group in table.groups("n"):
        both = group.where(method=better).rows and group.where(method=worse).rows
        at = (
            [(one["epsilon"], difference(part, better, worse)[0]) for one, part in group.groups("epsilon")]
            if both
            else []
        )
        won = [f"{epsilon:g}" for epsilon, value in at if value < 0.0]
        if at:
            found.append(f"n = {values['n']}: {METHODS[better]} is below {METHODS[worse]} at {len(won)} of {len(at)} ε ({', '.join(won) or 'none'}).")  # fmt: skip
    return found


# ── what our rule gains ────────────────────────────────────────────────────────────────────────────────────────────


def gains(table: Table) -> dict[str, Any]:
    """RMSE of rule="optimal" over that of rule="jewson"."""
    return {
        named("optimal over jewson", **values): ratio(group)
        for values, group in table.groups("epsilon")
        if len(group.values("method")) == 2
    }


def ratio(group: Table) -> float:
    squares = (group.where(method=method)["square"].mean() for method in ("optimal", "jewson"))
    return math.sqrt(next(squares) / next(squares))


def gain_figures(table: Table) -> dict[str, Any]:
    return {
        "square": lines(
            table, x="epsilon", y="square", by="method", log="xy", labels=LABELS | {"square": "E‖θ̃ − θ₀‖²/d"}
        )
    }


def gain_findings(table: Table) -> list[str]:
    told = [f"{ratio(group):.2f} at ε = {values['epsilon']:g}" for values, group in table.groups("epsilon")]
    return [f"RMSE of the optimal rule over that of w = 1, n = 1000: {', '.join(told)}."]


# ── the attack ─────────────────────────────────────────────────────────────────────────────────────────────────────


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
        name="beta-bayes-simulation",
        claim="β-divergence draws are more accurate than Minami's, and those than output perturbation",
        paper=f"{PAPER}, Figure 2 (simulated), d = 2",
        run=simulate.run,
        cells=grid(method=list(METHODS), n=[100, 1000], epsilon=EPSILONS, spread=[9.0]),
        quick=grid(method=list(METHODS), n=[100], epsilon=[0.2, 2.0, 20.0], spread=[9.0]),
        seeds=40,
        quick_seeds=8,
        quantities=errors,
        figures=error_figures,
        findings=error_findings,
    ),
    Study(
        name="optimal-beta-gain",
        claim="A free weight, and β at its best for it, is more accurate than w = 1 with the β that ε asks for",
        paper=f"{PAPER}, Theorem 1; our rule 'optimal'",
        run=simulate.run,
        cells=grid(method=["jewson", "optimal"], n=[1000], epsilon=GAINS, spread=[3.0]),
        quick=grid(method=["jewson", "optimal"], n=[1000], epsilon=[0.2], spread=[3.0]),
        seeds=40,
        quick_seeds=8,
        quantities=gains,
        figures=gain_figures,
        findings=gain_findings,
    ),
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
