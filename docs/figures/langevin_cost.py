"""Steps by route against the number of records, for docs/what-langevin-costs.md: the figure and the page's table.

    python docs/figures/langevin_cost.py        # writes docs/assets/langevin-cost.png and prints the table

Logistic regression with one feature in [−1, 1] and an intercept, prior N(0, 3²), weight w = 0.05, γ = 1e-6. All numbers come
from public bounds through the library's own functions; there is no data and no chance in them.
"""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import onedraw as od
from onedraw.models.convex.draw_cost import iterations_of
from onedraw.samplers.chains import numbers_of_plan
from onedraw.samplers.choice import LEFT_OF_START, STEP
from onedraw.samplers.langevin import proposition_13
from onedraw.samplers.proximal import geometry_of

WEIGHT, GAMMA, SCALE, RADIUS = 0.05, 1e-6, 3.0, 3.0
RECORDS = tuple(10**power for power in range(2, 7))
BUDGET = od.ApproxDP(2.0, 1e-5)
ASSET = Path(__file__).parents[1] / "assets" / "langevin-cost.png"

YEAR = 365.25 * 86400 * 1e6
"""Microseconds in a year."""


def plan_for(n: int, *, scale: float = SCALE, radius: float | None = None) -> od.Plan:
    model = od.models.Logistic(1, bounds=(-1, 1), prior=od.Gaussian(scale=scale, radius=radius))
    return od.calibrate(od.Gibbs("gdp", weight=WEIGHT), model, BUDGET, n=n)


def by_proposition_13(n: int, gamma: float = GAMMA, *, scale: float = SCALE) -> int:
    numbers = numbers_of_plan(plan_for(n, scale=scale), sampler="Langevin")
    assert numbers.smoothness is not None
    return proposition_13(
        gamma, dimension=numbers.dimension, strong_convexity=numbers.strong_convexity, smoothness=numbers.smoothness
    )[1]


def by_proximal(n: int, gamma: float = GAMMA) -> int:
    return iterations_of(gamma, geometry_of(numbers_of_plan(plan_for(n), sampler="Proximal")))


def by_proximal_on_a_ball(n: int, gamma: float = GAMMA) -> int:
    return iterations_of(gamma, geometry_of(numbers_of_plan(plan_for(n, radius=RADIUS), sampler="Proximal")))


def by_last_iterate(n: int) -> int:
    """Steps after which 1 % of the start is left: the default sampler's, before its limit on work."""
    numbers = plan_for(n).parameters
    step_size = STEP / numbers["smoothness"]
    return math.ceil(math.log(1.0 / LEFT_OF_START) / (step_size * numbers["strong_convexity"]))


ROUTES = {
    "Proposition 13": by_proposition_13,
    "proximal sampler": by_proximal,
    "last-iterate Langevin": by_last_iterate,
    "proximal, preconditioned, on a ball": by_proximal_on_a_ball,
}


def table() -> str:
    """The page's table, in Markdown."""
    head = [f"| n | {' | '.join(ROUTES)} |", "| ---: |" + " ---: |" * len(ROUTES)]
    return "\n".join(
        head + [f"| {n:,} | {' | '.join(written(route(n)) for route in ROUTES.values())} |" for n in RECORDS]
    )


def written(steps: int, *, digits: int = 2) -> str:
    """Whole, or as a power of ten where nobody would count."""
    if steps < 10**9:
        return f"{steps:,}"
    mantissa, exponent = f"{steps:.{digits}e}".split("e+")
    return f"{mantissa} · 10{exponent.translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


# name → dashes, grey, and where its label stands: at this n, above (1) or below (−1) the line
STYLE = {
    "Proposition 13": ("-", "0.0", 10**4, 1),
    "proximal sampler": ("--", "0.0", 10**4, 1),
    "last-iterate Langevin": ("-.", "0.35", 10**5, -1),
    "proximal, preconditioned, on a ball": (":", "0.0", 10**4, -1),
}


def draw(path: Path) -> None:
    """Four labelled lines, told apart by dashes and place, not by colour."""
    with plt.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
        axes.set(xscale="log", yscale="log", xlim=(1e2, 1e6), ylim=(1e0, 1e28), xlabel="number of records n")
        axes.set_title("Steps by route (w = 0.05, d = 2, γ = 10⁻⁶)", loc="left", fontsize=11)
        axes.set_yticks([10.0**power for power in range(0, 29, 4)])
        axes.minorticks_off()
        axes.grid(axis="y", color="0.9", linewidth=0.6)
        for name, (dashes, grey, where, side) in STYLE.items():
            axes.plot(RECORDS, [float(ROUTES[name](n)) for n in RECORDS], linestyle=dashes, color=grey, linewidth=1.8)
            note(axes, name, (where, ROUTES[name](where)), (0, 9 * side), grey=grey)
        known = by_proposition_13(1000)
        axes.plot(1e3, float(known), "o", color="0.0", markersize=5)
        note(axes, f"{written(known)} steps at n = 1,000", (1000, known), (62, -12), grey="0.0")
        axes.axhline(YEAR, color="0.6", linewidth=0.8)
        note(axes, "a year, at one microsecond a step", (1e5, YEAR), (0, 5), grey="0.4")
        figure.savefig(path, dpi=150, metadata={"Software": None})
        plt.close(figure)


def note(axes: plt.Axes, text: str, point: tuple[float, float], offset: tuple[float, float], *, grey: str) -> None:
    """Words centred at an offset from a point, in points."""
    place = (float(point[0]), float(point[1]))
    side = "bottom" if offset[1] > 0 else "top"
    axes.annotate(
        text, place, offset, textcoords="offset points", color=grey, ha="center", va=side,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
    )  # fmt: skip


if __name__ == "__main__":
    ASSET.parent.mkdir(exist_ok=True)
    draw(ASSET)
    print(table())
