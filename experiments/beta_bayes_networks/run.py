"""Studies of the network figures of Jewson, Ghalebikesabi, Holmes (NeurIPS 2023): Figures 3, 9 and 10 (middle and bottom).

What is computed stands in networks.py (draws), training.py (DP-SGD), tables.py (data) and chains.py (are chains long enough);
claims, and what was found, in README.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from experiments.beta_bayes_networks import chains, networks
from experiments.beta_bayes_networks.tables import FILES, POSITIVE, SIMULATED
from experiments.figures import lines
from experiments.study import Study, Table, grid, mean, named
from scipy import stats

PAPER = "Jewson, Ghalebikesabi, Holmes (NeurIPS 2023)"
ROWS = {SIMULATED: [50, 100, 200, 500, 1000], "uci": [10, 20, 50, 100, 200, 500, 1000]}
FEATURES = [2, 4, 8, 16, 32]
ALL = {
    "boston": 456, "kin8nm": 7373, "naval": 10741, "wine": 1440, "abalone": 3760, "adult": 29305, "banknote": 1235, "vertebral": 279,
}  # fmt: skip
"""What a split leaves to train with."""

LABELS = {
    "published": "βD-Bayes as published", "jewson": "βD-Bayes, w = 1", "optimal": "βD-Bayes, optimal", "posterior": "posterior draw, ε = ∞",
    "dp-sgd": "DP-SGD", "dp-sgd add/remove": "DP-SGD, add/remove", "dp-sgd plain": "DP-SGD, plain steps", "sgd": "SGD, ε = ∞",
    "epsilon": "ε", "features": "number of features d",
}  # fmt: skip
SCORES = {"regression": "test log RMSE", "classification": "test ROC-AUC"}


def cells(task: str, data: str, rows: list[int], features: list[int] | None = None, spreads: tuple[float, ...] = (1.0,)) -> list[dict[str, Any]]:  # fmt: skip
    return grid(task=[task], data=[data], n=rows, features=features or [2], spread=list(spreads))


def figure_cells(task: str) -> list[dict[str, Any]]:
    """Simulated data of both spreads, and every table of the task: n up to 1,000, and all there is."""
    found = cells(task, SIMULATED, ROWS[SIMULATED], spreads=(1.0, 3.0))
    for data in FILES:
        if (data in POSITIVE) == (task == "classification"):
            found += cells(task, data, [*(n for n in ROWS["uci"] if n < ALL[data]), ALL[data]], features=[0])
    return found


def settings() -> list[tuple[int, float]]:
    """Every (n, ε) that DP-SGD is trained at."""
    every = [one for task in SCORES for one in (*figure_cells(task), *cells(task, SIMULATED, [1000]))]
    return sorted({(one["n"], epsilon) for one in every for epsilon in networks.epsilons(one["data"])})


# ── what separates the methods ───────────────────────────────────────────────────────────────────────────────────

PAIRS = [
    ("published", "dp-sgd add/remove"), ("published", "dp-sgd"), ("optimal", "published"), ("optimal", "jewson"), ("optimal", "dp-sgd"),
    ("jewson", "dp-sgd add/remove"), ("jewson", "dp-sgd"), ("dp-sgd", "dp-sgd plain"), ("optimal", "posterior"), ("dp-sgd", "sgd"),
]  # fmt: skip


def gain(group: Table, better: str, worse: str) -> tuple[float, float]:
    """How much better one method is, paired by seed: log RMSE that it saves, or AUC that it adds."""
    own, other = (group.where(method=method)["score"] for method in (better, worse))
    return mean(other - own if group["task"][0] == "regression" else own - other)


def quantities(table: Table) -> dict[str, Any]:
    """Gains of every pair in every setting, scores, and the true ε of what is published."""
    found: dict[str, Any] = {}
    for values, group in table.groups("data", "spread", "features", "n", "epsilon"):
        where = shortened(values)
        methods = set(group.values("method"))
        found |= {named(f"gain of {a} over {b}", **where): gain(group, a, b) for a, b in PAIRS if {a, b} <= methods}
        found |= {named(f"score of {one}", **where): mean(group.where(method=one)["score"]) for one in sorted(methods)}
    for values, group in table.groups("data", "spread", "features", "n"):
        found |= at_less(group, shortened(values))
    for values, group in table.groups("method", "n", "epsilon"):
        if values["method"] in ("published", "dp-sgd add/remove"):
            found[named("true ε", **values)] = float(group["true_epsilon"].max())
    return found


def at_less(group: Table, where: dict[str, Any]) -> dict[str, Any]:
    """The optimal rule at ε = 5 against what is published at a nominal 1, which is 7.69 in truth: less ε, and what score?"""
    ours, theirs = (
        group.where(method="optimal", epsilon=5.0)["score"],
        group.where(method="published", epsilon=1.0)["score"],
    )
    return {named("gain of optimal at 5 over published at 1", **where): mean(theirs - ours)} if len(theirs) else {}


def feature_quantities(table: Table) -> dict[str, Any]:
    """The same by task, and by how much the gain over DP-SGD as published grows with the number of features."""
    found: dict[str, Any] = {}
    for task, ours in (("regression", "published"), ("classification", "jewson")):
        shown = table.where(task=task)
        found |= (
            {name if name.startswith("true") else f"{task}: {name}": one for name, one in quantities(shown).items()}
            if shown.rows
            else {}
        )
        for values, group in shown.where(features=FEATURES[-1]).groups("epsilon"):
            few = shown.where(features=FEATURES[0], **values)
            if few.rows:
                (most, error), (least, other) = (gain(one, ours, "dp-sgd add/remove") for one in (group, few))
                name = named(f"{task}: growth of the gain from {FEATURES[0]} to {FEATURES[-1]} features", **values)
                found[name] = (most - least, (error**2 + other**2) ** 0.5)
    return found


def shortened(values: dict[str, Any]) -> dict[str, Any]:
    """Spread and number of features only where they are not the usual ones."""
    usual = {"spread": 1.0, "features": 2 if values["data"] == SIMULATED else 0}
    return {name: value for name, value in values.items() if usual.get(name) != value}


# ── figures and findings ─────────────────────────────────────────────────────────────────────────────────────────

SHOWN = ["published", "jewson", "optimal", "posterior", "dp-sgd", "dp-sgd add/remove", "sgd"]


def figures(table: Table) -> dict[str, Any]:
    """A figure for each data set against n, a panel for each ε."""
    return {
        f"{values['data']}" + ("" if values["spread"] == 1.0 else f"-spread-{values['spread']:g}"): panels(group, "n")
        for values, group in table.groups("data", "spread")
    }


def feature_figures(table: Table) -> dict[str, Any]:
    return {str(values["task"]): panels(group, "features") for values, group in table.groups("task")}


def panels(group: Table, x: str) -> Any:
    """A line for each method. Data sets differ by more than methods do, so error bars are of differences to the twin of each seed."""
    kept = [method in SHOWN for method in group["method"]]
    shown = Table({name: group[name][kept] for name in group} | {"score": paired(group, x)[kept]})
    labels = LABELS | {"score": SCORES[str(group["task"][0])]}
    return lines(shown, x=x, y="score", by="method", panel="epsilon", labels=labels)


def paired(group: Table, x: str) -> Any:
    """Scores, the plain posterior's mean in place of its own score of each seed: means stay what they are."""
    twin: dict[tuple[Any, ...], float] = {}
    for values, part in group.where(method="posterior").groups(x, "epsilon"):
        own = dict(zip(part["seed"].tolist(), part["score"].tolist(), strict=True))
        twin |= {(*values.values(), seed): score - mean(part["score"])[0] for seed, score in own.items()}
    keys = zip(group[x].tolist(), group["epsilon"].tolist(), group["seed"].tolist(), strict=True)
    return group["score"] - np.array([twin[key] for key in keys])


def findings(table: Table) -> list[str]:
    told = [sentence for pair in PAIRS[:7] for sentence in compared(table, *pair)]
    spent = [
        f"{values['epsilon']:g} → {group['true_epsilon'].max():.3g}"
        for values, group in table.where(method="published").groups("epsilon")
    ]
    if not spent:
        return told
    less = [value[0] for name, value in quantities(table).items() if name.startswith("gain of optimal at 5")]
    return [
        *told, f"True ε of what is published, by the nominal one: {', '.join(spent)}.",
        f"The optimal rule at ε = 5 against what is published at a nominal ε of 1, truly 7.69: log RMSE lower by {sum(less) / len(less):.3f} "
        f"on average, in {sum(one > 0.0 for one in less)} of {len(less)} settings of data and n.",
    ]  # fmt: skip


def feature_findings(table: Table) -> list[str]:
    """The same by task: scores of the two are no numbers of one kind."""
    return [f"{values['task']}: {told}" for values, group in table.groups("task") for told in findings(group)]


def compared(table: Table, better: str, worse: str) -> list[str]:
    """In how many settings one method is ahead by its mean, for small n and for large."""
    ahead: dict[str, list[bool]] = {"n ≤ 100": [], "100 < n < 1000": [], "n ≥ 1000": []}
    for values, group in table.groups("data", "spread", "features", "n", "epsilon"):
        if {better, worse} <= set(group.values("method")):
            size = "n ≤ 100" if values["n"] <= 100 else "100 < n < 1000" if values["n"] < 1000 else "n ≥ 1000"
            ahead[size].append(gain(group, better, worse)[0] > 0.0)
    counts = [f"{sum(won)} of {len(won)} ({size})" for size, won in ahead.items() if won]
    return (
        [f"{LABELS[better]} is ahead of {LABELS[worse]} in {', '.join(counts)} settings of data, n and ε."]
        if counts
        else []
    )


# ── chains ───────────────────────────────────────────────────────────────────────────────────────────────────────


def chain_cell(task: str, data: str, n: int, features: int, method: str, epsilon: float) -> dict[str, Any]:
    return {"task": task, "data": data, "n": n, "features": features, "method": method, "epsilon": epsilon}


def chain_quantities(table: Table) -> dict[str, Any]:
    """The least p-value of Kolmogorov and Smirnov's test, times the number of tests: of each cell, and of all."""
    found, least = {}, 1.0
    for values, group in table.groups("task", "data", "n", "method", "epsilon"):
        ours, long = (group.where(length=length) for length in ("ours", "long"))
        names = [name for name in table if name == "score" or name.startswith("prediction")]
        worst = min(stats.ks_2samp(ours[name], long[name]).pvalue for name in names)
        found[named("p", **values)] = min(1.0, worst * len(names))
        least = min(least, found[named("p", **values)])
        (short, error), (other, second) = mean(ours["score"]), mean(long["score"])
        found[named("difference of scores", **values)] = (short - other, (error**2 + second**2) ** 0.5)
    cells_found = sum(name.startswith("p ") for name in found)
    return found | {"least p of all chains": min(1.0, least * cells_found)}


def chain_findings(table: Table) -> list[str]:
    return [
        f"{values['data']}, n = {values['n']}, {values['method']} at ε = {values['epsilon']:g}: mean score "
        f"{group.where(length='ours')['score'].mean():.4f} by chains of the figures' length, "
        f"{group.where(length='long')['score'].mean():.4f} by chains {chains.FACTOR} times as long."
        for values, group in table.groups("data", "n", "method", "epsilon")
    ]


# ── studies ──────────────────────────────────────────────────────────────────────────────────────────────────────

CHAIN_CELLS = [
    chain_cell("regression", SIMULATED, 100, 2, "optimal", 5.0),
    chain_cell("regression", SIMULATED, 1000, 2, "published", 5.0),
    chain_cell("regression", "kin8nm", 1000, 0, "optimal", 5.0),
    chain_cell("regression", "boston", ALL["boston"], 0, "posterior", 5.0),
    chain_cell("classification", SIMULATED, 1000, 8, "optimal", 5.0),
    chain_cell("classification", "abalone", 1000, 0, "jewson", 5.0),
    chain_cell("regression", "naval", ALL["naval"], 0, "posterior", 5.0),
    chain_cell("classification", "adult", ALL["adult"], 0, "jewson", 5.0),
]
NETWORK: dict[str, Any] = {
    "run": networks.run,
    "seeds": 10,
    "quick_seeds": 3,
    "batch": 2,
    "quantities": quantities,
    "findings": findings,
}

STUDIES = (
    Study(
        name="network-regression", claim="DP-SGD is ahead for small n, βD-Bayes as n grows", paper=f"{PAPER}, Figure 3",
        cells=figure_cells("regression"), quick=[*cells("regression", SIMULATED, [1000]), *cells("regression", "boston", [ALL["boston"]], [0])],
        figures=figures, data=tuple(FILES[data] for data in FILES if data not in POSITIVE), **NETWORK,
    ),
    Study(
        name="network-classification", claim="βD-Bayes has the larger ROC-AUC for ε > 0.2, on tables as n grows", paper=f"{PAPER}, Figure 9",
        cells=figure_cells("classification"), quick=cells("classification", "banknote", [200, 1000], [0]),
        figures=figures, data=tuple(FILES[data] for data in POSITIVE), **NETWORK,
    ),
    Study(
        name="network-features", claim="βD-Bayes is ahead of DP-SGD, the more so the more features", paper=f"{PAPER}, Figure 10, middle and bottom",
        cells=[cell for task in SCORES for cell in cells(task, SIMULATED, [1000], FEATURES)],
        quick=cells("regression", SIMULATED, [1000], [8]), figures=feature_figures, **(NETWORK | {"quantities": feature_quantities, "findings": feature_findings}),
    ),
    Study(
        name="network-chains", claim="Where the chains of the network figures are long enough, and where not", paper="our own check", run=chains.run,
        cells=CHAIN_CELLS, quick=CHAIN_CELLS[:1], seeds=48, quick_seeds=32, batch=16, quantities=chain_quantities, findings=chain_findings,
        data=tuple(FILES[data] for data in ("kin8nm", "boston", "abalone", "naval", "adult")),
    ),
)  # fmt: skip
