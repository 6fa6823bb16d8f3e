"""Write the page of results from the cells of a whole run of the study.

onedraw reproduce feasibility
python -m experiments.feasibility.page [RESULTS.parquet]      # writes experiments/feasibility/results.md
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.feasibility.findings import KINDS, OURS, Slope, choose, list_slopes, state_losses
from experiments.feasibility.wages import WHOLE
from experiments.study import Table

CLONE = Path(__file__).resolve().parents[2]
RESULTS = CLONE / "build" / "experiments" / "feasibility" / "full" / "results.parquet"
PAGE = Path(__file__).parent / "results.md"

PAPER_COLUMNS = ("educ_years", "experience", "experience_sq", "experience_cu")
PUBLISHED = {
    ("noisy sums", 0.5): (0.97, 0.87, 0.60, 0.44), ("noisy sums", 1.0): (0.97, 0.94, 0.70, 0.46),
    ("noisy sums", 5.0): (1.00, 0.97, 0.94, 0.84), ("noisy sums", 10.0): (1.00, 1.00, 1.00, 0.93),
    ("noisy sums", 20.0): (1.00, 1.00, 1.00, 1.00), ("noisy sums, counted", 5.0): (0.93, 0.45, 0.01, 0.00),
}  # fmt: skip
"""Same sign and significance in their figures: the analytic Gaussian mechanism, δ = 1e-6, women, CPS 1994 to 1996."""

COLUMNS = (
    ("given", 2), ("relative bias", 2), ("distance", 2), ("overlap", 2), ("length", 2), ("sign", 2),
    ("significance", 2), ("same", 2), ("reached", 2), ("covers", 2), ("covers reached", 2), ("residual", 3),
)  # fmt: skip

HEAD = """\
# Feasibility: wage regressions on the CPS of 2024

Written by `python -m experiments.feasibility.page` from the cells of `onedraw reproduce feasibility`: δ = 1e-6 (pure: δ = 0),
{repetitions} repetitions a cell. Methods, columns and what differs from the paper: [README.md](README.md).

- given: share of the releases with an interval. sign, significance: share that agrees with least squares of the same rows;
  same: both. A release without an interval agrees in no significance.
- relative bias, distance: medians of (estimate − least squares) over least squares, and of its size in standard errors.
- overlap, length: medians of the overlap with the interval without privacy (1 if equal, below 0 if apart), and of the
  length over that interval's. Of the intervals that are given.
- reached: share of the releases that say they estimate least squares itself (onedraw alone says so or not).
- covers: share of the given intervals that hold the whole table's coefficient; covers reached: in releases that reach it. At
  whole tables nothing is sampled, so this is above 0.95 if the intervals are right.
- residual: median root mean squared residual over that of least squares.
"""


def read_results(path: Path) -> list[Slope]:
    """Return the summaries of a whole run."""
    from pyarrow import parquet

    rows = parquet.read_table(path)
    return list_slopes(Table({name: rows.column(name).to_numpy() for name in rows.column_names}))


def render(slopes: Sequence[Slope]) -> str:
    """Return the page."""
    repetitions = int(min(slope.get("repetitions") for slope in slopes))
    pieces = [
        HEAD.format(repetitions=repetitions),
        "## Where the default fit loses\n\n" + _losses(slopes),
        "## Beside the published figures\n\n" + _beside_published(slopes),
        "## By method\n\nMeans over the slopes of all regressions of shares, medians of the others.\n\n"
        + _by_method(slopes),
        "## Default fit, each coefficient\n\n" + _each(choose(slopes, method=OURS)),
        "## Other methods, each coefficient of whole tables\n\n"
        + _each([one for one in choose(slopes, size=WHOLE) if one.cell["method"] != OURS], method=True),
    ]
    return "\n\n".join(piece.strip() for piece in pieces) + "\n"


def _losses(slopes: Sequence[Slope]) -> str:
    """Return the sentences, and how many slopes lose in each way at each size and ε."""
    lines = [
        "A cell is the coefficient of a column, for one regression, size and ε.",
        "",
        *([f"- {words}" for words in state_losses(slopes)] or ["- Nowhere."]),
        "",
        f"Of {len(_slopes_at(slopes))} slopes, how many lose in each of these ways:",
        "",
        f"| size | ε | {' | '.join(KINDS)} |",
        f"| --- | ---: |{' ---: |' * len(KINDS)}",
    ]
    for size, epsilon in dict.fromkeys((slope.cell["size"], slope.cell["epsilon"]) for slope in slopes):
        chosen = choose(slopes, method=OURS, size=size, epsilon=epsilon)
        counts = " | ".join(str(sum(map(kind, chosen))) for _, kind in KINDS.values())
        lines.append(f"| {size} | {epsilon:g} | {counts} |")
    return "\n".join(lines)


def _slopes_at(slopes: Sequence[Slope]) -> list[Slope]:
    """Return the default fit's slopes at the first size and ε."""
    first = slopes[0].cell
    return choose(slopes, method=OURS, size=first["size"], epsilon=first["epsilon"])


def _beside_published(slopes: Sequence[Slope]) -> str:
    lines = [
        "Share of the releases with the same sign and significance, women, whole tables. Published: read from the paper's "
        "figures, for noisy sums (the analytic Gaussian mechanism) on the CPS of 1994 to 1996 with a race column. Found: here.",
        "",
        f"| method | ε | | {' | '.join(PAPER_COLUMNS)} |",
        f"| --- | ---: | --- |{' ---: |' * len(PAPER_COLUMNS)}",
    ]
    for method in ("noisy sums", "noisy sums, counted", OURS):
        for epsilon in sorted({slope.cell["epsilon"] for slope in slopes}):
            if (method, epsilon) in PUBLISHED:
                shares = " | ".join(f"{share:.2f}" for share in PUBLISHED[method, epsilon])
                lines.append(f"| {method} | {epsilon:g} | published | {shares} |")
            chosen = choose(slopes, method=method, epsilon=epsilon, size=WHOLE, regression="women cubic")
            by_term = {slope.cell["term"]: slope.get("same") for slope in chosen}
            shares = " | ".join(_number(by_term.get(term, math.nan), 2) for term in PAPER_COLUMNS)
            lines.append(f"| {method} | {epsilon:g} | found | {shares} |")
    return "\n".join(lines)


def _by_method(slopes: Sequence[Slope]) -> str:
    names = [name for name, _ in COLUMNS if name != "relative bias"]
    lines = [f"| size | ε | method | {' | '.join(names)} |", f"| --- | ---: | --- |{' ---: |' * len(names)}"]
    for size in dict.fromkeys(slope.cell["size"] for slope in slopes):
        for epsilon in sorted({slope.cell["epsilon"] for slope in slopes}):
            for method in dict.fromkeys(slope.cell["method"] for slope in slopes):
                chosen = choose(slopes, size=size, epsilon=epsilon, method=method)
                values = " | ".join(_number(_middle(chosen, name), dict(COLUMNS)[name]) for name in names)
                lines.append(f"| {size} | {epsilon:g} | {method} | {values} |")
    return "\n".join(lines)


def _middle(slopes: Sequence[Slope], name: str) -> float:
    values = sorted(slope.get(name) for slope in slopes if not math.isnan(slope.get(name)))
    if not values:
        return math.nan
    if name in ("distance", "overlap", "length", "residual"):
        return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2.0
    return sum(values) / len(values)


def _each(slopes: Sequence[Slope], *, method: bool = False) -> str:
    head = ["regression", "size", "ε", *(["method"] if method else []), "column", *(name for name, _ in COLUMNS)]
    lines = [f"| {' | '.join(head)} |", f"| --- | --- | ---: |{' --- |' * (2 if method else 1)}{' ---: |' * len(COLUMNS)}"]  # fmt: skip
    for slope in slopes:
        cell = slope.cell
        words = [cell["regression"], cell["size"], f"{cell['epsilon']:g}", *([cell["method"]] if method else []), cell["term"]]  # fmt: skip
        values = [_number(slope.get(name), digits) for name, digits in COLUMNS]
        lines.append(f"| {' | '.join([*words, *values])} |")
    return "\n".join(lines)


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def main() -> None:
    """Write the page, from the named file or from the clone's last whole run."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    PAGE.write_text(render(read_results(path)), encoding="utf-8")


if __name__ == "__main__":
    main()
