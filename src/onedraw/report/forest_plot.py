"""The released numbers as a figure of matplotlib's, for notebooks and papers: estimates with their intervals beside zero.

The same rows as in the report, and like there across whole declared ranges where the columns' units differ too much for one axis.
"""

from __future__ import annotations

import math
from typing import Any

from onedraw.errors import check_extra
from onedraw.models.row_model import RowModel
from onedraw.release import Estimates, Release

from .results import is_intercept, on_one_axis, rows_of

INK, SAMPLING, PRIVACY = "#17212c", "#0072B2", "#7fb2d6"
ROW_INCHES = 0.32


def forest(release: Release, found: Estimates, *, ax: Any = None) -> Any:
    """The axes drawn on: ``ax``, or new ones. Thick bars are sampling alone, thin ones the whole interval."""
    certificate, plan, table = release.certificate, release.plan, found if found.given else None
    rows = rows_of(certificate, plan, table)
    kept = [row for row in rows if not is_intercept(row.name)] or rows
    drawn, across = on_one_axis(kept, "coefficients", certificate.draw.names, plan.model)
    axes = ax
    if axes is None:
        check_extra("figures", "matplotlib", "A plot")
        from matplotlib import pyplot

        axes = pyplot.subplots(figsize=(7.0, 1.0 + ROW_INCHES * len(drawn)), layout="constrained")[1]
    for place, row in enumerate(reversed(drawn)):
        for ends, colour, width in ((row.interval, PRIVACY, 2.0), (row.sampling, SAMPLING, 5.0)):
            if ends is not None:
                axes.plot(ends, (place, place), color=colour, linewidth=width, solid_capstyle="butt")
        if math.isfinite(row.value):
            hollow = "white" if row.interval is None else INK
            axes.plot([row.value], [place], "o", color=INK, markersize=5, markerfacecolor=hollow)
    axes.set_yticks(range(len(drawn)), [row.name for row in reversed(drawn)])
    axes.set_ylim(-0.6, len(drawn) - 0.4)
    if isinstance(plan.model, RowModel):
        axes.axvline(0.0, color=INK, linewidth=0.8)
        axes.set_xlabel("effect across the declared range" if across else "coefficient, per unit of the column")
    level = "" if table is None else f", {100 * table.level:g} % intervals"
    target = f" of {certificate.data.target}" if certificate.data.target else ""
    axes.set_title(f"{plan.model.title}{target}{level}", loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
