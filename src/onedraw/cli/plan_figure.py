"""The picture of a plan: expected error against n or ε, one line for each mechanism, and what it would be without
privacy. Colours that colour-blind readers can tell apart (Okabe and Ito, darkened so that names can be read), and names beside the lines instead of a legend."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

COLOURS = ("#0072B2", "#C04F00", "#007A5A", "#A8508A", "#9A6700", "#3A87B7", "#000000")
GREY = "#777777"
LABELS = {"rows": "n, the number of records", "epsilon": "ε"}


def draw_plan(path: Path, points: Sequence[dict[str, Any]], *, over: str, at: float, title: str) -> None:
    """Write the figure; ``points`` as `onedraw plan --json` prints them, ``at`` the size that was asked for."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure = Figure(figsize=(8.0, 4.6), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    ends = [
        line(axes, name, values, colour) for (name, values), colour in zip(curves(points), cycle(COLOURS), strict=False)
    ]
    plain = [(point["at"], point["rmse_without_privacy"]) for point in points if point["rmse_without_privacy"]]
    if plain:
        ends.append(line(axes, "without privacy", plain, GREY, style="--"))
    axes.set(xscale="log", yscale="log", xlabel=LABELS[over], ylabel="expected error per parameter (rms)")
    axes.axvline(at, color=GREY, linewidth=0.8, linestyle=":")
    axes.annotate("asked for", (at, 1.0), xycoords=("data", "axes fraction"), xytext=(4, -4), textcoords="offset points",
                  va="top", fontsize=8, color=GREY)  # fmt: skip
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(plainly))
        axis.set_minor_formatter(NullFormatter())
    name_lines(axes, ends)
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def curves(points: Sequence[dict[str, Any]]) -> list[tuple[str, list[tuple[float, float]]]]:
    """By mechanism, in the order of the last point's ranking."""
    names: dict[str, None] = {}
    for point in reversed(points):
        names.update(dict.fromkeys(point["expected_rmse"]))
    found = {
        name: [(point["at"], point["expected_rmse"][name]) for point in points if point["expected_rmse"].get(name)]
        for name in names
    }
    return [(name, values) for name, values in found.items() if values]


def line(axes: Any, name: str, values: list[tuple[float, float]], colour: str, style: str = "-") -> tuple[Any, ...]:
    across, errors = zip(*values, strict=True)
    marker = "o" if style == "-" else ""
    axes.plot(across, errors, color=colour, linestyle=style, linewidth=1.8, marker=marker, markersize=3)
    return name, across[-1], errors[-1], colour


def name_lines(axes: Any, ends: list[tuple[Any, ...]]) -> None:
    """Names at the right ends, moved apart as little as possible where they would overlap."""
    import numpy as np
    from scipy.optimize import isotonic_regression

    ends = sorted(ends, key=lambda end: end[2])
    low, high = np.log(axes.get_ylim())
    apart = 0.05 * (high - low) * np.arange(len(ends))
    heights = isotonic_regression(np.log([end[2] for end in ends]) - apart).x + apart
    right = max(end[1] for end in ends)
    for (name, _, _, colour), height in zip(ends, heights, strict=True):
        axes.annotate(name, (right, float(np.exp(height))), xytext=(8, 0), textcoords="offset points", va="center",
                      fontsize=8.5, color=colour, annotation_clip=False)  # fmt: skip


def plainly(value: float, _: int) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"
