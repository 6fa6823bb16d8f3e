"""Variance of a draw against ε for both rules, for docs/choosing-beta.md: the figure and the page's tables.

    python docs/figures/choosing_beta.py        # writes docs/assets/choosing-beta.png and prints the tables

Left: two classes, u ~ N(0, 1). Right: a real response with noise of standard deviation 1, its variance unknown but at least
s² = 0.01. Both show n times the asymptotic variance of a coefficient under the public reference design; the library's own
functions compute it, and there is no data and no chance in it.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import optimize

import onedraw as od
from onedraw.models.likelihood.reference_design import ReferenceDesign

ASSET = Path(__file__).parents[1] / "assets" / "choosing-beta.png"
FLOOR = 0.01
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
RATIOS = (1, 2, 3, 10, 100)
"""σ over its floor s."""

TWO_CLASSES = od.models.BinaryRegression(1, intercept=False)
REAL = od.models.GaussianRegression(1, variance_floor=FLOOR, intercept=False)


@cache
def choice(rule: str, model: od.models.Model, epsilon: float, noise: float | None = None) -> tuple[float, float, float]:
    """(β, weight, n times the variance of a draw) by a rule; the variance is infinite where the rule finds no β."""
    try:
        plan = od.calibrate(od.BetaDivergence(rule, noise=noise), model, od.PureDP(epsilon), n=1000)
    except od.errors.PromiseRefused:
        return math.nan, math.nan, math.inf
    beta, weight = plan.parameters["beta"], plan.parameters["weight"]
    return beta, weight, ReferenceDesign(model, 1.0, noise).trace(beta, weight)


def ratio(epsilon: float) -> float:
    """Variance of the paper's rule over that of the best β, two classes."""
    return choice("jewson", TWO_CLASSES, epsilon)[2] / choice("optimal", TWO_CLASSES, epsilon)[2]


def without_privacy(model: od.models.Model) -> float:
    """n times the variance of a maximum likelihood estimate under the same design: the limit β → 1, H = K."""
    found = ReferenceDesign(model, 1.0, None).moments(1.0 + 1e-9)
    assert found is not None
    return 1.0 / float(found[0][0, 0])


def least_epsilon() -> float:
    """The smallest ε for which w = 1 is possible at all with this floor: 2e·ln M."""
    return 2.0 * math.e * math.log(1.0 / math.sqrt(2.0 * math.pi * FLOOR))


def shown(value: float) -> str:
    """Three figures that matter, no more."""
    if not math.isfinite(value):
        return "none"
    return f"{value:.3g}" if value < 1000 else f"{float(f'{value:.3g}'):,.0f}"


def rules_table() -> str:
    """ε, what each rule chooses, and what it costs; two classes."""
    lines = [
        "| ε | best β | its weight | n · variance | β of the paper's rule | n · variance | ratio |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for epsilon in EPSILONS:
        best, paper = choice("optimal", TWO_CLASSES, epsilon), choice("jewson", TWO_CLASSES, epsilon)
        lines.append(
            f"| {epsilon:g} | {best[0]:.2f} | {shown(best[1])} | {shown(best[2])} | {paper[0]:.4g} | {shown(paper[2])} | "
            f"{shown(ratio(epsilon))} |"
        )
    return "\n".join(lines)


def normal_optimum(ratio: float) -> float:
    """β with the least private variance of a normal model as ε → 0, σ/s = ``ratio``: ln(σ/s) + 3/(2β) = 1/(β − 1)."""
    return float(
        optimize.brentq(lambda beta: math.log(ratio) + 1.5 / beta - 1.0 / (beta - 1.0), 1.0 + 1e-9, 3.0 + 1e-9)
    )


def floors_table() -> str:
    """σ/s, the β with the least private variance, and what a draw costs at ε = 1 with the noise declared or not."""
    lines = [
        "| noise over its floor, σ/s | best β as ε → 0 | n · variance at ε = 1 | times that of a known variance |",
        "| ---: | ---: | ---: | ---: |",
    ]
    known = od.models.GaussianRegression(1, variance=1.0, intercept=False)
    least = choice("optimal", known, 1.0)[2]
    for times in RATIOS:
        floored = od.models.GaussianRegression(1, variance_floor=1.0 / times**2, intercept=False)
        variance = choice("optimal", floored, 1.0)[2]
        lines.append(
            f"| {times} | {normal_optimum(float(times)):.2f} | {shown(variance)} | {shown(variance / least)} |"
        )
    return "\n".join(lines)


def noise_declared(sigma: float) -> tuple[float, float, float]:
    """(β with the default noise 1, β with the noise declared, how much less variance that gives) at ε = 1."""
    blind, seeing = choice("optimal", REAL, 1.0), choice("optimal", REAL, 1.0, sigma)
    true = ReferenceDesign(REAL, 1.0, sigma)
    return blind[0], seeing[0], true.trace(*blind[:2]) / true.trace(*seeing[:2])


def effect_declared(effect: float) -> tuple[float, float, float]:
    """(β with the default effect 1, β with the effect declared, how much less variance that gives) at ε = 1."""
    blind = choice("optimal", TWO_CLASSES, 1.0)
    plan = od.calibrate(od.BetaDivergence(effect=effect), TWO_CLASSES, od.PureDP(1.0), n=1000)
    seeing = plan.parameters["beta"], plan.parameters["weight"]
    true = ReferenceDesign(TWO_CLASSES, effect)
    return blind[0], seeing[0], true.trace(*blind[:2]) / true.trace(*seeing)


# ── the figure ───────────────────────────────────────────────────────────────────────────────────────────────


def draw(path: Path) -> None:
    """Two panels, one scale; lines told apart by dashes and labels, not by colour."""
    grid = np.sort(np.append(np.geomspace(0.1, 25.0, 48), 1.001 * least_epsilon()))
    with plt.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 4.3), layout="constrained", sharey=True)
        for axes, model, title in (
            (left, TWO_CLASSES, "Two classes"),
            (right, REAL, "Real response, σ = 1, floor s = 0.1"),
        ):
            frame(axes, title)
            for rule, dashes in (("optimal", "-"), ("jewson", "--")):
                axes.plot(grid, [choice(rule, model, float(e))[2] for e in grid], dashes, color="0.0", linewidth=1.8)
            axes.axhline(without_privacy(model), color="0.55", linewidth=0.9)
        left.set_ylabel("n · variance of a coefficient")
        label_two_classes(left)
        label_real(right)
        figure.savefig(path, dpi=150, metadata={"Software": None})
        plt.close(figure)


def frame(axes: plt.Axes, title: str) -> None:
    axes.set(xscale="log", yscale="log", xlim=(0.08, 30.0), ylim=(0.7, 1e4), xlabel="ε")
    axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5, 10, 20], labels=["0.1", "0.2", "0.5", "1", "2", "5", "10", "20"])
    axes.set_yticks([1, 10, 100, 1000, 10_000], labels=["1", "10", "100", "1,000", "10,000"])
    axes.minorticks_off()
    axes.grid(axis="y", color="0.9", linewidth=0.6)
    axes.set_title(title, loc="left", fontsize=11)


def label_two_classes(axes: plt.Axes) -> None:
    for epsilon in (0.1, 0.2):
        best, paper = (choice(rule, TWO_CLASSES, epsilon)[2] for rule in ("optimal", "jewson"))
        axes.plot([epsilon, epsilon], [best, paper], color="0.45", linewidth=0.9, marker="_", markersize=5)
        note(axes, f"{ratio(epsilon):.1f}×", (epsilon, paper), (7, 5), ha="left")
    note(axes, "the paper's rule,\nw = 1, β = 1 + 2/ε", (0.34, 2300.0), (0, 0), ha="left")
    note(axes, "best β,\nweight from ε", (0.13, 24.0), (0, 0), ha="left")
    note(axes, "maximum likelihood, not private", (0.09, without_privacy(TWO_CLASSES)), (0, -9), ha="left", grey="0.4")


def label_real(axes: plt.Axes) -> None:
    limit = least_epsilon()
    axes.axvline(limit, color="0.45", linewidth=0.9, linestyle=":")
    note(axes, f"with w = 1\nno β at all\nbelow ε = {limit:.2f}", (limit, 3000.0), (-6, 0), ha="right")
    note(axes, "the paper's\nrule", (limit, 9.0), (5, 0), ha="left")
    note(axes, "best β,\nweight from ε", (0.13, 24.0), (0, 0), ha="left")
    note(axes, "maximum likelihood, not private", (0.09, without_privacy(REAL)), (0, 9), ha="left", grey="0.4")


def note(
    axes: plt.Axes, text: str, point: tuple[float, float], offset: tuple[float, float], *, ha: str, grey: str = "0.0"
) -> None:
    axes.annotate(
        text, (float(point[0]), float(point[1])), offset, textcoords="offset points", color=grey, ha=ha, va="center",
        fontsize=9, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
    )  # fmt: skip


if __name__ == "__main__":
    ASSET.parent.mkdir(exist_ok=True)
    draw(ASSET)
    print(rules_table(), floors_table(), sep="\n\n")
    print(f"\nleast ε with w = 1: {least_epsilon():.2f}")
    print(f"noise 0.3, 0.12 and 3 declared: {[noise_declared(sigma) for sigma in (0.3, 0.12, 3.0)]}")
    print(f"effect 3 and 5 declared: {effect_declared(3.0)}, {effect_declared(5.0)}")
