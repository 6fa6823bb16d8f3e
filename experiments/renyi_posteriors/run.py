"""Studies of Geumlek, Song, Chaudhuri (NIPS 2017), supplement A.5 and A.8: what is computed stands in bernoulli.py and glm.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from experiments.figures import lines
from experiments.renyi_posteriors import bernoulli, glm
from experiments.study import Study, Table, grid, mean, named

PAPER = "Geumlek, Song, Chaudhuri (NIPS 2017)"

# ── A.5: Beta–Bernoulli ──────────────────────────────────────────────────────────────────────────────────────────

METHODS = ["not private", "diffused", "concentrated", "OPS", "direct"]
SETTINGS = {
    "(a) the prior fits": ("informative", 1 / 3),
    "(b) in between": ("informative", 1 / 2),
    "(c) it misleads": ("informative", 2 / 3),
    "uniform": ("uniform", 0.2),
}
EPSILONS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]


def bernoulli_cells(epsilons: list[float]) -> list[dict[str, Any]]:
    return [
        {"method": method, "prior": prior, "truth": truth, "epsilon": epsilon}
        for prior, truth in SETTINGS.values()
        for method in METHODS
        for epsilon in epsilons
    ]


def loss(table: Table, setting: str, method: str, epsilon: float) -> float:
    prior, truth = SETTINGS[setting]
    return float(table.where(prior=prior, truth=truth, method=method, epsilon=epsilon)["loss"][0])


def bernoulli_quantities(table: Table) -> dict[str, float]:
    found = {}
    for setting in SETTINGS:
        for method in ("diffused", "concentrated"):
            gain = loss(table, setting, "OPS", 0.1) - loss(table, setting, method, 0.1)
            found[f"gain of {method} over OPS at ε = 0.1, {setting}"] = gain
    least = EPSILONS[0]
    for setting in ("(a) the prior fits", "uniform"):
        cost = loss(table, setting, "concentrated", least) - loss(table, setting, "not private", least)
        found[f"cost of concentrated at ε = {least:g}, {setting}"] = cost
    found["loss of concentrated at the least ε, uniform"] = loss(table, "uniform", "concentrated", least)
    found["direct draws that keep order 15"] = float(np.isfinite(table.where(method="direct")["loss"]).sum())
    return found


def bernoulli_figures(table: Table) -> dict[str, Any]:
    names = {settings: name for name, settings in SETTINGS.items()}
    where = [names[pair] for pair in zip(table["prior"].tolist(), table["truth"].tolist(), strict=True)]
    shown = Table({**{name: table[name] for name in table}, "setting": where})
    kept = shown["method"] != "direct"
    shown = Table({name: shown[name][kept] for name in shown})
    labels = {"epsilon": "ε at order 15", "loss": "−log p per held-out record"}
    return {"utility": lines(shown, x="epsilon", y="loss", by="method", panel="setting", labels=labels)}


def bernoulli_findings(table: Table) -> list[str]:
    fits, misleads = ([loss(table, s, m, 0.001) for m in ("diffused", "concentrated", "not private")]
                      for s in ("(a) the prior fits", "(c) it misleads"))  # fmt: skip
    return [
        "Both algorithms lose less than OPS at ε = 0.1 in all four settings; from ε ≈ 3 on OPS is better, for a Rényi promise of order "
        "15 never lets a draw use all records while a pure one at such an ε does.",
        f"Where the prior fits, the price of high privacy is small or negative ({fits[1]:.3f} concentrated against {fits[2]:.3f} not "
        f"private: its draw hardly moves from the prior's mean); where it misleads, large ({misleads[0]:.3f} diffused, "
        f"{misleads[1]:.3f} concentrated, {misleads[2]:.3f} not private).",
        "A direct draw keeps order 15 in no setting: λ* is 7 for the informative prior and 2 for the uniform one. The uniform prior "
        "scaled up concentrates at ½, where its loss comes to log 2 = 0.693, not at 0.2 as the paper's sentence has it.",
    ]


# ── A.8: logistic regression ─────────────────────────────────────────────────────────────────────────────────────

MAIN = 3.0
"""The prior's scale that figures and comparisons are about."""

ORDERS = [1.0, 10.0, 100.0]


def gain(table: Table, better: str, worse: str, column: str = "loss", **where: Any) -> tuple[float, float]:
    """How much less one method loses, paired by seed: mean and standard error."""
    shown = table.where(scale=MAIN, **where)
    return mean(shown.where(method=worse)[column] - shown.where(method=better)[column])


PAIRS = [("diffused", "concentrated"), ("diffused", "OPS"), ("concentrated", "OPS"), ("OPS, bounded range", "OPS")]


def glm_quantities(table: Table) -> dict[str, Any]:
    found = {}
    for values, group in table.where(scale=MAIN).groups("data", "order", "epsilon"):
        for better, worse in PAIRS:
            found[named(f"gain of {better} over {worse}", **values)] = gain(group, better, worse)
        found[named("error of diffused", **values)] = mean(group.where(method="diffused")["error"])
    return found


def glm_figures(table: Table) -> dict[str, Any]:
    figures = {}
    for column, words in (("error", "test error"), ("loss", "−log p per held-out record")):
        for order in table.values("order"):
            labels = {"epsilon": f"ε at order {order:g}", column: words}
            shown = table.where(scale=MAIN, order=order)
            figures[f"{column}-{order:g}"] = lines(
                shown, x="epsilon", y=column, by="method", panel="data", labels=labels
            )
    return figures


def glm_findings(table: Table) -> list[str]:
    found = glm_quantities(table)

    def count(better: str, worse: str, order: float) -> str:
        gains = [value for name, value in found.items() if name.startswith(f"gain of {better} over {worse} ") and f"order={order:g} " in name]  # fmt: skip
        return f"{sum(one[0] > 0.0 for one in gains)} of {len(gains)}"

    orders = table.values("order")
    return [
        "Diffused loses less than concentrated (settings of data and ε, by order): "
        + ", ".join(f"λ = {order:g}: {count('diffused', 'concentrated', order)}" for order in orders) + ". The paper's claim holds wherever a draw learns anything.",
        "Diffused loses less than OPS: " + ", ".join(f"λ = {order:g}: {count('diffused', 'OPS', order)}" for order in orders)
        + "; concentrated less than OPS: " + ", ".join(f"λ = {order:g}: {count('concentrated', 'OPS', order)}" for order in orders)
        + ". The claim that both beat OPS holds at λ = 1 up to ε = 1; at λ = 100 OPS, whose pure ε does not depend on the order, is better from "
        "ε ≈ 1 on.",
        "What OPS promises at order λ is min(ε, λε²/8), not ε: with that its draw may weigh the records √(8/(λε)) times as much, and "
        "at λ = 1 it comes near the concentrated one.",
    ]  # fmt: skip


STUDIES = (
    Study(
        name="beta-bernoulli", claim="Diffused and concentrated draws beat OPS at high privacy, the more so the better the prior",
        paper=f"{PAPER}, A.5, Figures 1 and 2", run=bernoulli.run, cells=bernoulli_cells(EPSILONS),
        quick=bernoulli_cells([0.001, 0.1]), quantities=bernoulli_quantities, figures=bernoulli_figures,
        findings=bernoulli_findings,
    ),
    Study(
        name="renyi-logistic", claim="Diffused draws are better than concentrated ones, and both better than OPS",
        paper=f"{PAPER}, A.8, Figures 3 and 4", run=glm.run,
        cells=grid(data=list(glm.FILES), order=ORDERS, scale=[1.0, MAIN]), quick=grid(data=["abalone"], order=[1.0, 100.0], scale=[MAIN]),
        seeds=10, quick_seeds=4, batch=2, quantities=glm_quantities, figures=glm_figures, findings=glm_findings,
        data=tuple(glm.FILES.values()),
    ),
)  # fmt: skip
