"""Figures of studies, drawn alike: lines of means with their standard errors, a panel for each value of a column.

matplotlib is the extra `figures`; it is asked for before anything is computed. PNG and SVG come out the same from the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.study import Table, mean
from onedraw.errors import check_extra

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "onedraw",
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9.0,
}
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
WIDEST = 4
"""Panels in a row."""

FEW = 4
"""Lines whose legend leaves room for them in a panel."""


def check_figures() -> None:
    check_extra("figures", "matplotlib", "onedraw reproduce")


def new_figure(panels: int = 1, *, width: float = 3.2, height: float = 2.8) -> tuple[Any, list[Any]]:
    """A figure without a screen, and its axes in reading order."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = min(panels, WIDEST)
    rows = math.ceil(panels / columns)
    with rc_context(STYLE):
        figure = Figure(figsize=(width * columns + 0.6, height * rows), layout="constrained")
        axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in axes[panels:]:
        unused.set_visible(False)
    return figure, axes[:panels]


def lines(
    table: Table, *, x: str, y: str, by: str, panel: str | None = None, log: str = "x", labels: Mapping[str, str] | None = None
) -> Any:  # fmt: skip
    """Mean of ``y`` with its standard error against ``x``, a line for each value of ``by``; ``log`` names axes: "x", "y", "xy"."""
    words = labels or {}
    names = table.values(panel) if panel else [None]
    figure, axes = new_figure(len(names))
    for axis, name in zip(axes, names, strict=True):
        shown = table.where(**{panel: name}) if panel else table
        for number, value in enumerate(table.values(by)):
            line = shown.where(**{by: value})
            places = sorted(line.values(x))
            found = [mean(line.where(**{x: place})[y]) for place in places]
            if places:
                axis.errorbar(
                    places, [one[0] for one in found], yerr=[one[1] for one in found], label=words.get(str(value), str(value)),
                    marker=MARKS[number % len(MARKS)], markersize=3.5, linewidth=1.2, capsize=2, color=f"C{number}",
                )  # fmt: skip
        for letter in log:
            getattr(axis, f"set_{letter}scale")("log")
        axis.set(xlabel=words.get(x, x), ylabel=words.get(y, y))
        if panel:
            axis.set_title(
                f"{words.get(panel, panel)} = {name:g}"
                if isinstance(name, float)
                else f"{words.get(panel, panel)} = {name}",
                fontsize=9,
            )
    legend(figure, axes)
    return figure


def legend(figure: Any, axes: list[Any]) -> None:
    """Of all panels: in the first one, or below them all where it would cover the lines."""
    shown = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if len(shown) <= FEW:
        axes[0].legend(shown.values(), shown, frameon=False, fontsize=8)
    else:
        width, height = figure.get_size_inches()
        columns = max(1, int(width / (0.07 * max(map(len, shown)) + 0.6)))
        figure.set_size_inches(width, height + 0.18 * math.ceil(len(shown) / columns))
        figure.legend(shown.values(), shown, frameon=False, fontsize=8, loc="outside lower center", ncols=columns)


def save(figures: Mapping[str, Any], folder: Path) -> list[str]:
    """Each as PNG and SVG; their names."""
    from matplotlib import rc_context

    for name, figure in figures.items():
        with rc_context(STYLE):
            figure.savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None})
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return list(figures)
