"""`onedraw plan`: what a release would promise and how good it would be, before any record is read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onedraw.plain_text import brief
from onedraw.planning.options import RANKS, Options

from .options import AsJson, Asking, with_options
from .show import number, progress, show_json, show_lines, show_table

if TYPE_CHECKING:
    from onedraw.planning import Choice, Planned
    from onedraw.planning.designs import ColumnError

COLOURS = ("#0072B2", "#C04F00", "#007A5A", "#A8508A", "#9A6700", "#3A87B7", "#000000")
"""Colours that colour-blind readers can tell apart (Okabe and Ito, darkened so that names can be read)."""
GREY = "#777777"
MOST_COLUMNS = 60
"""Columns of a table on the terminal, at most; --json and --report have all."""
LABELS = {"rows": "n, the number of records", "epsilon": "ε"}


@with_options
def plan(
    asking: Asking,
    rows: Annotated[int, typer.Option("--rows", help="n, the public number of records.")],
    options: Options,
    dataset: Annotated[str | None, typer.Option("--dataset", help="The data set's name in the ledger, if it is not the schema's.")] = None,
    simulate: Annotated[int, typer.Option("--simulate", metavar="SETS", min=0, help="Also run every mechanism on so many simulated data sets, to check the prediction.")] = 0,
    for_error: Annotated[float | None, typer.Option("--for-error", metavar="ERROR", help="Also the smallest n, and the smallest ε, that reach this error.")] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Also draw the expected error as a picture (.png, .svg or .pdf); must not exist.")] = None,
    over: Annotated[str, typer.Option("--over", help="What the figure varies: rows or epsilon.")] = "rows",
    report: Annotated[Path | None, typer.Option("--report", help="Also write the plan as a page for an officer to read and sign (.html); must not exist.")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """The promise and the expected error of every eligible mechanism. Reads the schema, never the data."""
    from onedraw.planning import sample_size

    check_places(figure, over, report)
    asked = asking.asked(options)
    sample_size.check_predictable(asked, for_error=for_error, figure=figure is not None, simulate=simulate)
    found = asking.planned(asked, rows, compare=True, dataset=dataset)
    document = found.to_dict()
    if simulate:
        with progress("simulating", total=len(document["eligible"])) as step:
            for row, error in zip(document["eligible"], sample_size.simulated(found, simulate, step), strict=True):
                row["simulated_rmse"] = error
        for row, error in zip(document["eligible"], sample_size.predicted(found), strict=True):
            row["predicted_for_simulation"] = error
    if for_error is not None:
        with progress("looking for the smallest n and ε", total=2) as step:
            document["for_error"] = sample_size.smallest_sizes(found, for_error, mechanism=asking.mechanism, step=step)
    if figure is not None:
        document["figure"] = drawn(found, figure, over, rows if over == "rows" else asking.epsilon, asking)
    if report is not None:
        document["report"] = str(found.report(report))
    if as_json:
        show_json(document)
    else:
        show(found, document)


def check_places(figure: Path | None, over: str, report: Path | None) -> None:
    """Refuse what cannot be drawn or written before anything is computed."""
    from onedraw.errors import CannotWrite, WrongCall, check_extra
    from onedraw.release import check_writable

    if over not in ("rows", "epsilon"):
        raise WrongCall(f"--over is what the figure varies, rows or epsilon; got {over!r}.")
    if figure is not None:
        if figure.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise CannotWrite(f"A figure is written as .png, .svg or .pdf, got {figure.name}. Choose another name.")
        check_extra("figures", "matplotlib", "--figure")
        check_writable(figure)
    if report is not None:
        from onedraw.report.page import check_place

        check_place(report, overwrite=False)


def drawn(planned: Planned, figure: Path, over: str, at: float, asking: Asking) -> dict[str, Any]:
    from onedraw.planning.sample_size import FACTORS, expected_over

    with progress("planning the figure", total=len(FACTORS)) as step:
        points = expected_over(planned, over, step=step, mechanism=asking.mechanism, accept=asking.accept or ())
    draw_plan(figure, points, over=over, at=at, title=f"{planned.asked.title}: {planned.budget}, n = {planned.n:,}")
    return {"file": str(figure), "over": over, "points": points}


def show(planned: Planned, document: dict[str, Any]) -> None:
    from onedraw.release.fingerprint import dataset_name

    eligible, simulated = document["eligible"], "simulated_rmse" in document["eligible"][0]
    head = ["mechanism", "expected error", *(["simulated"] if simulated else []), "without privacy"]
    if planned.asked.schema.formula is not None:
        show_lines(f"Formula: {planned.asked.schema.formula}")
    if planned.estimand:
        show_lines(f"Estimates {planned.estimand}. {planned.estimand_note}")
    show_table(
        f"{planned.asked.title}: {planned.budget}, n = {planned.n:,}", head,
        [[row["mechanism"], range_of(row, "expected_rmse"), *([simulated_words(row)] if simulated else []),
          range_of(row, "rmse_without_privacy")] for row in eligible],
    )  # fmt: skip
    if document["why"]:
        show_lines("", f"Method: {document['why']}")
    show_lines(*(f"Not used: {name}. {reason}" for name, reason in document["refused"].items()))
    if document["why_no_interval"]:
        show_lines(f"No interval: {document['why_no_interval']}.")
    for choice in planned.choices.eligible:
        show_designs(choice)
    if "for_error" in document:
        show_lines("", *smallest_words(document["for_error"], planned, designs=bool(eligible[0]["designs"])))
    places = {"Figure": document.get("figure", {}).get("file"), "Plan": document.get("report")}
    show_lines(*(f"{what} written to {place}." for what, place in places.items() if place))
    later = "; once a release is made its own standard errors count" if any(row["designs"] for row in eligible) else ""
    show_lines("", f"Errors are root mean squared per parameter, {errors_words(planned)}{later}. No record was read.")
    charged = dataset_name(planned.dataset, planned.asked.schema.dataset)
    unnamed = (
        "" if charged else " It names no data set: pass --dataset to have that of a release which is charged to one."
    )
    show_lines(f"Fingerprint: {planned.fingerprint}. The release states the same.{unnamed}")


def errors_words(planned: Planned) -> str:
    """What the errors are of."""
    if planned.asked.model in RANKS:
        return "of ranks, as shares of the records: 0.01 turns the median into the 0.49- or 0.51-quantile"
    if planned.asked.target is None:
        return "of a correlation, for columns that fill their ranges and do not go together"
    if planned.asked.is_regression:
        return "for columns scaled to [-1, 1]"
    return "averaged over what was thought likely beforehand"


def show_designs(choice: Choice) -> None:
    """Show the error that a fit may be expected to have in each column's units, in two designs that are told in words."""
    from onedraw.planning.designs import BEYOND

    if not choice.designs:
        return
    show_lines(*([choice.intervals] if choice.intervals else []))
    if len(choice.by_column) <= MOST_COLUMNS:
        plain, some = "typical, without privacy", bool(choice.intervals)
        show_table(
            f"{choice.named}: expected error of each column's coefficient, in its own units", ["column", "typical", "worst", plain],
            [[typical.name, column_error(typical, marked=some), column_error(worst, marked=some), brief(typical.sampling)] for typical, worst in choice.by_column],
        )  # fmt: skip
    show_lines(choice.designs_in_words, BEYOND)


def column_error(column: ColumnError, *, marked: bool) -> str:
    """Return an expected error; ``marked`` adds whether it would stand without an interval."""
    return f"{brief(column.private)}{', no interval' if marked and column.has_interval is False else ''}"


def smallest_words(found: dict[str, Any], planned: Planned, *, designs: bool) -> list[str]:
    design = ", in a typical design" if designs else ""
    head, lines = f"An error of {found['error']:g} is expected", []
    if found["smallest_rows"] is not None:
        lines.append(f"{head} from n = {found['smallest_rows']:,} records under {planned.budget}{design}.")
    if found["smallest_epsilon"] is not None:
        lines.append(f"{head} with n = {planned.n:,} records from ε = {found['smallest_epsilon']:g}{design}.")
    return [*lines, *found["reasons"]]


def range_of(row: dict[str, Any], key: str) -> str:
    """Return one figure, or of a fit one for each design."""
    errors = [f"{number(design[key])} {design['design']}" for design in row["designs"]]
    return ", ".join(errors) or figure_of(row[key])


def simulated_words(row: dict[str, Any]) -> str:
    """Return the simulated error; of a fit with what is predicted for the simulated design, in which columns fill their ranges."""
    beside = f" (predicted there: {figure_of(row['predicted_for_simulation'])})" if row["designs"] else ""
    return f"{figure_of(row['simulated_rmse'])}{beside}"


def figure_of(value: float | None) -> str:
    return "unknown" if value is None else number(value)


# ── the picture: one line for each mechanism, and what it would be without privacy; names beside the lines, no legend ──


def draw_plan(path: Path, points: Sequence[dict[str, Any]], *, over: str, at: float, title: str) -> None:
    """Write the figure; ``points`` as `onedraw plan --json` prints them, ``at`` the size that was asked for."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure = Figure(figsize=(8.0, 4.6), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    ends = [line(axes, *curve, colour) for curve, colour in zip(curves(points), cycle(COLOURS), strict=False)]
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
