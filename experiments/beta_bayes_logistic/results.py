"""What the rows of these studies say: quantities that expected.json names, sentences, and figures.

A gain of one method over another is the mean difference on the same data sets, positive where the first is better: in log RMSE
(lower is better), AUC and share of correct signs (higher is better). An excess is how much worse a private method is than its twin.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from experiments.beta_bayes_logistic.attack import COIN
from experiments.beta_bayes_logistic.methods import POSTERIORS, PRIVATE, TWINS
from experiments.figures import legend, lines, new_figure
from experiments.study import Table, mean, means, named

METHODS = {
    "jewson": "βD-Bayes, w = 1", "optimal": "βD-Bayes, optimal", "corollary8": "Minami, Corollary 8", "gdp": "Minami, gdp",
    "output shrinking published": "output, λ = 1/(9n), published", "output shrinking": "output, λ = 1/(9n), proven",
    "output fixed published": "output, λ = 1/9, published", "output fixed": "output, λ = 1/9, proven",
    "posterior mean": "posterior mean, ε = ∞", "posterior draw": "posterior draw, ε = ∞",
    "minimum shrinking": "minimum, λ = 1/(9n), ε = ∞", "minimum fixed": "minimum, λ = 1/9, ε = ∞",
}  # fmt: skip
LABELS = METHODS | {
    "epsilon": "ε", "n": "records", "records": "records", "d": "parameters", "log_rmse": "log RMSE", "auc": "test AUC",
    "signs": "correct signs",
}  # fmt: skip
PAIRS = (
    ("jewson", "corollary8"), ("jewson", "gdp"), ("jewson", "output shrinking published"), ("jewson", "output fixed published"),
    ("corollary8", "output shrinking published"), ("gdp", "output shrinking"), ("optimal", "jewson"), ("optimal", "gdp"),
    ("optimal", "output fixed"),
)  # fmt: skip
WITH_TWINS = {
    "jewson": "posterior mean", "optimal": "posterior mean", "corollary8": "posterior mean",
    "output shrinking published": "minimum shrinking", "output fixed published": "minimum fixed",
}  # fmt: skip
"""As Figure 6 has them."""

HIGHEST = 3.0
"""Of log RMSE shown: output perturbation with λ = 1/(9n) is above it, as in the paper."""


def gain(group: Table, better: str, worse: str, column: str) -> tuple[float, float]:
    """On the same data sets."""
    first, second = (group.where(method=method)[column] for method in (better, worse))
    return mean(second - first if column == "log_rmse" else first - second)


def gains(table: Table, column: str, *, by: tuple[str, ...]) -> dict[str, Any]:
    return {
        named(f"{column} gain of {better} over {worse}", **values): gain(group, better, worse, column)
        for values, group in table.groups(*by)
        for better, worse in PAIRS
        if group.where(method=better).rows and group.where(method=worse).rows
    }


def excesses(table: Table, column: str, *, by: tuple[str, ...]) -> dict[str, Any]:
    """By how much a private method is worse than what has no promise."""
    return {
        named(f"{column} excess of {method} over {twin}", **values): gain(group, twin, method, column)
        for values, group in beside(table).groups(*by)
        for method, twin in WITH_TWINS.items()
        if group.where(method=method).rows and group.where(method=twin).rows
    }


def beside(table: Table) -> Table:
    """The rows without a promise once more at every ε, so that they stand in its panel."""
    promised = [epsilon for epsilon in table.values("epsilon") if math.isfinite(epsilon)]
    plain = table.where(epsilon=math.inf)
    parts = [part for epsilon in promised for part in (table.where(epsilon=epsilon), at(plain, epsilon))]
    return Table({name: np.concatenate([part[name] for part in parts]) for name in table})


def at(table: Table, epsilon: float) -> Table:
    return Table({**{name: table[name] for name in table}, "epsilon": np.full(table.rows, epsilon)})


def only(table: Table, methods: tuple[str, ...]) -> Table:
    chosen = np.isin(table["method"], methods)
    return Table({name: table[name][chosen] for name in table})


def won(table: Table, better: str, worse: str, column: str, *, by: str) -> str:
    """At which of the values one method is ahead, by its mean."""
    found = {values[by]: gain(group, better, worse, column)[0] for values, group in table.groups(by)}
    ahead = [f"{value:g}" for value, one in found.items() if one > 0.0]
    return f"{len(ahead)} of {len(found)} ({', '.join(ahead) or 'none'})"


# ── Figures 2, 6, 7 and 8 ────────────────────────────────────────────────────────────────────────────────────────


def error_quantities(table: Table) -> dict[str, Any]:
    by = ("n", "epsilon")
    found = means(table, "log_rmse", by=("method", *by))
    for column in ("log_rmse", "auc", "signs"):
        found |= gains(table, column, by=by)
    return found | excesses(table, "log_rmse", by=by) | growing(table)


def growing(table: Table) -> dict[str, Any]:
    """Whether βD-Bayes is the further ahead of Minami the larger ε is."""
    found = {}
    for values, group in only(table, ("jewson", "corollary8")).groups("n"):
        each = [gain(part, "jewson", "corollary8", "log_rmse")[0] for _, part in group.groups("epsilon")]
        found[named("gain over corollary8 at the largest ε less that at the smallest", **values)] = each[-1] - each[0]
    return found


def error_figures(table: Table) -> dict[str, Any]:
    private, pairs = (only(table, names) for names in (PRIVATE, (*WITH_TWINS, *TWINS)))
    return {
        "log-rmse": capped(lines(private, x="n", y="log_rmse", by="method", panel="epsilon", labels=LABELS)),
        "auc": lines(private, x="n", y="auc", by="method", panel="epsilon", labels=LABELS),
        "signs": lines(private, x="n", y="signs", by="method", panel="epsilon", labels=LABELS),
        "log-rmse-twins": capped(lines(beside(pairs), x="n", y="log_rmse", by="method", panel="epsilon", labels=LABELS)),
        "auc-twins": lines(beside(pairs), x="n", y="auc", by="method", panel="epsilon", labels=LABELS),
        "signs-twins": lines(beside(pairs), x="n", y="signs", by="method", panel="epsilon", labels=LABELS),
    }  # fmt: skip


def capped(figure: Any) -> Any:
    for axis in figure.axes:
        axis.set_ylim(top=min(axis.get_ylim()[1], HIGHEST))
    return figure


def error_findings(table: Table) -> list[str]:
    found = []
    for values, group in only(table, PRIVATE).groups("n"):
        orders = (
            ("jewson", "corollary8"),
            ("corollary8", "output shrinking published"),
            ("optimal", "jewson"),
            ("gdp", "corollary8"),
        )
        told = [
            f"{METHODS[better]} below {METHODS[worse]} at {won(group, better, worse, 'log_rmse', by='epsilon')}"
            for better, worse in orders
        ]
        found.append(f"n = {values['n']}, log RMSE, of the values of ε: {'; '.join(told)}.")
    return found


# ── UCI tables ───────────────────────────────────────────────────────────────────────────────────────────────────


def table_quantities(table: Table) -> dict[str, Any]:
    by = ("table", "n", "epsilon")
    return means(table, "auc", by=("method", *by)) | gains(table, "auc", by=by) | gains(table, "signs", by=by) | excesses(table, "auc", by=by)  # fmt: skip


def table_figures(table: Table) -> dict[str, Any]:
    found = {}
    for values, group in table.groups("table"):
        private, pairs = (only(group, names) for names in (PRIVATE, (*WITH_TWINS, *TWINS)))
        for column in ("auc", "signs"):
            shared: dict[str, Any] = {
                "x": "records",
                "y": column,
                "by": "method",
                "panel": "epsilon",
                "labels": LABELS,
            }
            found[f"{values['table']}-{column}"] = lines(private, **shared)
            found[f"{values['table']}-{column}-twins"] = lines(beside(pairs), **shared)
    return found


def table_findings(table: Table) -> list[str]:
    found = []
    for values, group in table.where(n=0).groups("table"):
        for epsilon in (one for one in group.values("epsilon") if math.isfinite(one)):
            told = [
                f"{METHODS[method]} {mean(group.where(method=method, epsilon=epsilon)['auc'])[0]:.3f}"
                for method in PRIVATE
            ]
            plain = mean(group.where(method="posterior mean")["auc"])[0]
            found.append(
                f"{values['table']}, all rows, ε = {epsilon:g}, AUC: {', '.join(told)}; without a promise {plain:.3f}."
            )
    return found


# ── Figure 10 ────────────────────────────────────────────────────────────────────────────────────────────────────


def feature_quantities(table: Table) -> dict[str, Any]:
    by = ("d", "epsilon")
    return means(table, "log_rmse", by=("method", *by)) | gains(table, "log_rmse", by=by)


def feature_figures(table: Table) -> dict[str, Any]:
    shown = only(beside(table), (*PRIVATE, "posterior mean"))
    return {"log-rmse": capped(lines(shown, x="d", y="log_rmse", by="method", panel="epsilon", labels=LABELS))}


def feature_findings(table: Table) -> list[str]:
    found = []
    for values, group in only(table, PRIVATE).groups("epsilon"):
        told = [
            f"{METHODS[better]} below {METHODS[worse]} at {won(group, better, worse, 'log_rmse', by='d')}"
            for better, worse in (("jewson", "corollary8"), ("optimal", "jewson"), ("jewson", "output fixed published"))
        ]
        found.append(f"ε = {values['epsilon']:g}, log RMSE, of the numbers of parameters: {'; '.join(told)}.")
    return found


# ── Figures 4 and 11 ─────────────────────────────────────────────────────────────────────────────────────────────


def attack_quantities(table: Table) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for column in ("accuracy", "per_class", "published"):
        found |= {name: value[0] for name, value in means(table, column, by=("method", "epsilon")).items()}
    promised = only(table, PRIVATE)
    return found | {
        "largest bound per class over what was promised": float((promised["per_class"] / promised["epsilon"]).max()),
        "largest limit over what was promised": float((promised["limit"] / promised["epsilon"]).max()),
        "log_rmse gain of jewson over output shrinking published at its accuracy": at_accuracy(table, "output shrinking published"),
        "log_rmse gain of jewson over corollary8 at its accuracy": at_accuracy(table, "corollary8"),
    }  # fmt: skip


def tradeoff(table: Table, method: str) -> tuple[Any, Any]:
    """Accuracy of the attack and log RMSE at each ε, the former rising."""
    points = [
        (group["accuracy"][0], mean(group["log_rmse"])[0]) for _, group in table.where(method=method).groups("epsilon")
    ]
    return tuple(np.array(sorted(points)).T)


def at_accuracy(table: Table, other: str) -> float:
    """The least gain of jewson where the attack on both succeeds as often, between the ε that were computed."""
    (own, errors), (theirs, worse) = tradeoff(table, "jewson"), tradeoff(table, other)
    common = np.linspace(max(own[0], theirs[0]), min(own[-1], theirs[-1]), 50)
    return float((np.interp(common, theirs, worse) - np.interp(common, own, errors)).min())


def attack_figures(table: Table) -> dict[str, Any]:
    columns = {
        "accuracy": "accuracy of the best attack",
        "per_class": "ε proven, per class",
        "published": "ε 'proven', as published",
    }
    figure, axes = new_figure(3)
    for axis, (column, title) in zip(axes, columns.items(), strict=True):
        for number, method in enumerate(PRIVATE):
            groups = [group for _, group in table.where(method=method).groups("epsilon")]
            errors = [mean(group["log_rmse"])[0] for group in groups]
            axis.plot(
                [group[column][0] for group in groups],
                errors,
                "o-",
                label=METHODS[method],
                markersize=3.5,
                linewidth=1.2,
                color=f"C{number}",
            )
        axis.set(xlabel=title, ylabel=LABELS["log_rmse"])
    coin = table.where(method=COIN)["published"]
    if len(coin):
        axes[2].axvline(coin[0], color="grey", linestyle=":", label="a coin flip")
    legend(figure, axes)
    return {"attack": capped(figure)}


def attack_findings(table: Table) -> list[str]:
    found = attack_quantities(table)
    told = [
        f"{METHODS[method]} {', '.join(f'{one:.3f}' for one in tradeoff(table, method)[0])}" for method in POSTERIORS
    ]
    return [
        f"Accuracy of the best attack as ε grows: {'; '.join(told)}.",
        f"As published a coin flip 'proves' ε ≥ {found[named('published', method=COIN, epsilon=1.0)]:.2f} after 10,000 rounds, per class 0. "
        f"The largest bound per class is {found['largest bound per class over what was promised']:.2f} of the ε that was promised.",
    ]  # fmt: skip


# ── Figures 1 and 5 ──────────────────────────────────────────────────────────────────────────────────────────────


def shape_quantities(table: Table) -> dict[str, float]:
    labels, residuals = (table.where(kind=kind) for kind in ("classification", "regression"))
    off = {
        method: np.abs(labels.where(method=method)["value"] - labels.where(method="Bayes")["value"])
        for method in ("Gibbs", "jewson", "optimal")
    }
    m = labels.where(method="Bayes")["x"]
    near, closer = (m != 0.0) & (np.abs(m) <= 10.0), off["jewson"] <= off["Gibbs"]
    regression = {method: residuals.where(method=method)["value"] for method in ("Gibbs", "jewson")}
    return {
        "beta of w=1 at epsilon=6": float(labels.where(method="jewson")["beta"][0]),
        "share of |m| <= 10 where jewson is nearer to Bayes than Gibbs": float(closer[near].mean()),
        "m from which Gibbs is nearer": float(m[(m > 0.0) & ~closer].min(initial=math.inf)),
        "largest loss of jewson over its bound": float(regression["jewson"].max() * (1 / 3) * (2 * math.pi) ** (1 / 6)),
        "loss of Gibbs at a residual of 20 over that at 10": float(regression["Gibbs"][-1] / regression["Gibbs"][40]),
        "largest distance of optimal from Bayes": float(off["optimal"].max()),
        "largest distance of jewson from Bayes": float(off["jewson"].max()),
    }


def shape_figures(table: Table) -> dict[str, Any]:
    figure, axes = new_figure(2)
    titles = {"classification": ("m(X, θ)", "f̃(y = 1), normalised"), "regression": ("|y − m(X, θ)|", "loss")}
    for axis, (kind, (x, y)) in zip(axes, titles.items(), strict=True):
        for values, line in table.where(kind=kind).groups("method"):
            axis.plot(line["x"], line["value"], label=METHODS.get(values["method"], values["method"]), linewidth=1.2)
        axis.set(xlabel=x, ylabel=y, title=kind)
    axes[0].set_xlim(-12.0, 12.0)
    axes[1].set(xlim=(0.0, 8.0), ylim=(0.0, 6.0))
    legend(figure, axes)
    return {"losses": figure}


def shape_findings(table: Table) -> list[str]:
    found = shape_quantities(table)
    return [
        f"At ε = 6 the label's weight under βD-Bayes (β = {found['beta of w=1 at epsilon=6']:.3f}) is nearer to the likelihood's than "
        f"under the Gibbs posterior with w = 0.09 for every |m| ≤ 10; not 'for any m': from |m| = "
        f"{found['m from which Gibbs is nearer']:.4g} on it is farther, because its log odds stay below ε/2 = 3.",
        f"The rule optimal stays within {found['largest distance of optimal from Bayes']:.3f} of the likelihood's, jewson within "
        f"{found['largest distance of jewson from Bayes']:.3f}.",
    ]


def influence_quantities(table: Table) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for values, group in table.groups("beta"):
        each = [one for _, one in group.groups("seed")]
        curve = np.mean([one["influence"] for one in each], axis=0)
        peak, distances = int(curve.argmax()), each[0]["distance"]
        found |= {
            named("distance of the largest influence", **values): float(distances[peak]),
            named("largest influence", **values): float(curve[peak]),
            named("influence at 20 over the largest", **values): float(curve[-1] / curve[peak]),
            named("largest influence over that at the centre", **values): float(curve[peak] / curve[0]),
            named("least step before the peak", **values): float(np.diff(curve[: peak + 1]).min()),
            named("least influence before the peak over that at the centre", **values): float(
                curve[:peak].min() / curve[0]
            ),
            named("largest step after the peak", **values): float(np.diff(curve[peak:]).max(initial=-math.inf)),
            named("influence at 20 over that of the integral", **values): float(curve[-1] / group["floor"].mean()),
        }
    return found


def influence_figures(table: Table) -> dict[str, Any]:
    figure, axes = new_figure(2)
    for axis, top in zip(axes, (None, 0.1), strict=True):
        for values, group in table.groups("beta"):
            curve = np.mean([one["influence"] for _, one in group.groups("seed")], axis=0)
            name = "KLD" if values["beta"] == 1.0 else f"β = {values['beta']:g}"
            axis.plot(group["distance"][: len(curve)], curve, label=name, linewidth=1.2)
        axis.set(xlabel="|y − μ|", ylabel="influence (Fisher–Rao)", ylim=(0.0, top))
    legend(figure, axes)
    return {"influence": figure}


def influence_findings(table: Table) -> list[str]:
    found = influence_quantities(table)
    told = [
        f"β = {beta:g}: largest at {found[named('distance of the largest influence', beta=beta)]:.1f}, and at 20 still "
        f"{found[named('influence at 20 over the largest', beta=beta)]:.1%} of it; before that it first falls to "
        f"{found[named('least influence before the peak over that at the centre', beta=beta)]:.1%} of what it is at the centre"
        for beta in table.values("beta")
        if beta != 1.0
    ]
    return [
        f"Under KLD the influence grows with every step. {'; '.join(told)}.",
        "It does not fall to 0, as the paper says: the integral in the loss counts for an observation however far it lies.",
    ]
