"""Measure what naming an effect of interest gains for it, and what it costs the other coefficients.

    python benchmarks/effects.py --populations FOLDER --out cells.jsonl
    python benchmarks/effects.py --summary cells.jsonl     # writes benchmarks/results/effects.md

Tables of benchmarks/populations that constants may be derived on, those with at least eight columns; n = 10,000 rows drawn with
replacement, ε = 1, δ = 1e-6. The effects named are, by rule, the first number of a table, its first column of 0 and 1, and both with
the next two columns. Columns of 0 and 1 are declared as levels, as a schema would. Each sample is fitted twice, with the same rows:
without effects and with them. Intervals count where they were given and the fit says that it estimates least squares, maximum likelihood or the
median. A cell that the output file holds is skipped. Not private: seeds are fixed.
"""

from __future__ import annotations

import argparse
import json
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import regression_coverage as study  # sets the threads of NumPy and JAX
from cells import read_cells
from scipy import special

import onedraw as od
from onedraw.errors import OnedrawError
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit.expected_error import noise_factors

RESULT = Path(__file__).parent / "results" / "effects.md"
N, EPSILON, DELTA, SAMPLES, SEED = 10_000, 1.0, 1e-6, 30, 20261119
LEAST_COLUMNS = 8
READING = (
    "What to expect:",
    "",
    "- On wide tables whose columns the release knows well, the privacy error of a number or a common level halves (two-year colleges). "
    "Where noise hides how the columns go together, so that effects have no interval either, the direction of an effect is hardly known, "
    "and the gain is a third.",
    "- Rare levels and skewed columns gain little, by the rule for rare values (federal employees, health visits).",
    "- The true error falls less than the stated one where it is not noise: sampling error, and on tables with long tails what "
    "shortening leaves. The latter does not fall with the noise, so that a few cells cover less than without naming the effect.",
)
WIDE = 20
"""Columns of a table that is called wide."""


class Cell(NamedTuple):
    """Population, model and the columns that are named."""

    population: str
    model: str
    effects: tuple[int, ...]


def read_table(folder: str, population: str, model: str) -> Any:
    """Return a table whose columns of 0 and 1 are levels."""
    table = study.read_table(folder, population, model)
    coded = {column for start, stop in table.categories for column in range(start, stop)}
    binary = [column for column in range(table.X.shape[1]) if np.isin(table.X[:, column], (-1.0, 1.0)).all()]
    more = [(column, column + 1) for column in binary if column not in coded]
    return table._replace(categories=tuple(sorted([*table.categories, *more])))


def list_cells(folder: Path) -> list[Cell]:
    """Return the cells of all tables, the effects by the rule above; single effects and wide tables first."""
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    cells = []
    for name, entry in index.items():
        if entry["group"] not in ("derive", "given") or entry["d"] < LEAST_COLUMNS:
            continue
        for model in entry["models"]:
            table = read_table(str(folder), name, model)
            levels = [column for start, stop in table.categories for column in range(start, stop)]
            numbers = [column for column in range(table.X.shape[1]) if column not in levels]
            first = [group[0] for group in (numbers, levels) if group]
            rest = [column for column in range(table.X.shape[1]) if column not in first][: 4 - len(first)]
            cells += [Cell(name, model, (column,)) for column in first]
            cells.append(Cell(name, model, tuple(sorted([*first, *rest]))))
    return sorted(cells, key=lambda cell: (len(cell.effects), -index[cell.population]["d"]))


def measure_cell(folder: str, cell: Cell) -> dict[str, Any]:
    """Return what a cell stores."""
    table = read_table(folder, cell.population, cell.model)
    record = {**cell._asdict(), "group": table.group, "d": table.X.shape[1], "names": [table.names[column] for column in cell.effects]}  # fmt: skip
    for label, effects in (("plain", ()), ("named", cell.effects)):
        mechanism = AveragedSteps(categories=table.categories, effects=effects)
        try:
            plan = od.calibrate(mechanism, table.model, od.ApproxDP(EPSILON, DELTA), n=N)
        except OnedrawError as error:
            return record | {"refused": str(error).splitlines()[0]}
        record[label] = summarize(table, cell, plan)
    record["promised"] = float(np.sqrt(noise_factors(plan.mechanism.problem(plan))[0]))
    return record


def summarize(table: Any, cell: Cell, plan: Any) -> dict[str, Any]:
    """Return the figures of one plan, one for each coefficient."""
    tag = zlib.crc32(f"{cell.population} {cell.model}".encode())
    rows, noise = np.random.default_rng([SEED, tag]), np.random.default_rng([SEED, tag, 1])
    found: list[Any] = []
    for _ in range(SAMPLES):
        index = rows.integers(0, len(table.y), N)
        result = study.run_once(plan, table.natural[index], table.y[index], noise)
        plain = None if cell.model == "median" else study.fit_plain(table.X[index], table.y[index], cell.model)
        fitted = np.full(len(table.truth), np.nan) if plain is None else plain[0]
        error, privacy = np.sqrt(np.diag(result.covariance)), np.sqrt(np.diag(result.parts[1]))
        used = result.given & result.reached  # where the fit names another estimand, it says so
        found.append([result.estimate - table.truth, result.estimate - fitted, error, privacy, used])
    away, private, error, privacy, given = np.moveaxis(np.array(found, dtype=float), 1, 0)
    covered = (np.abs(away) <= special.ndtri(0.975) * error) & (given > 0)
    return {
        "rmse": np.sqrt((away**2).mean(axis=0)).tolist(), "private": np.sqrt((private**2).mean(axis=0)).tolist(),
        "error": np.median(error, axis=0).tolist(), "privacy": np.median(privacy, axis=0).tolist(),
        "given": given.sum(axis=0).tolist(), "covered": covered.sum(axis=0).tolist(),
    }  # fmt: skip


# The page.


def ratio(record: dict[str, Any], name: str, columns: list[int]) -> float:
    """Return the median over columns of a figure with effects over that without."""
    named, plain = (np.array(record[label][name], dtype=float)[columns] for label in ("named", "plain"))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = named / plain
    return float(np.median(found[np.isfinite(found)])) if np.isfinite(found).any() else float("nan")


def coverage(records: list[dict[str, Any]], label: str, *, effects: bool) -> str:
    """Return the share of given intervals that cover, of effects or of the other columns."""
    given = covered = 0.0
    for record in records:
        columns = columns_of(record, effects=effects)
        given += float(np.sum(np.array(record[label]["given"])[columns]))
        covered += float(np.sum(np.array(record[label]["covered"])[columns]))
    return f"{100 * covered / given:.1f} % of {given:,.0f}" if given else "none given"


def columns_of(record: dict[str, Any], *, effects: bool) -> list[int]:
    """Return the columns that were named, or all others."""
    named = list(record["effects"])
    return named if effects else [column for column in range(record["d"]) if column not in named]


def is_usual(record: dict[str, Any]) -> bool:
    """Return whether the effects have an interval in at least half of the samples without being named."""
    given = np.array(record["plain"]["given"])[columns_of(record, effects=True)]
    return bool(given.mean() >= SAMPLES / 2)


def row(record: dict[str, Any]) -> str:
    """Return a line of the table."""
    named, others = (columns_of(record, effects=effects) for effects in (True, False))
    figures = [ratio(record, name, named) for name in ("privacy", "private", "error", "rmse")]
    figures += [ratio(record, "privacy", others), ratio(record, "rmse", others)]
    samples = SAMPLES * len(named)
    given = " → ".join(f"{np.sum(np.array(record[label]['given'])[named]) / samples:.2f}" for label in ("plain", "named"))  # fmt: skip
    shown = " | ".join("–" if np.isnan(figure) else f"{figure:.2f}" for figure in figures)
    return f"| {record['population']} | {record['model']} | {record['d']} | {', '.join(record['names'])} | {record['promised']:.2f} | {shown} | {given} |"


def page(cells: list[dict[str, Any]]) -> str:
    """Return the page of results."""
    run = [cell for cell in cells if "refused" not in cell]
    one = [cell for cell in run if len(cell["effects"]) == 1]
    wide, narrow = ([cell for cell in one if (cell["d"] >= WIDE) == is_wide] for is_wide in (True, False))
    groups = {
        f"one effect, at least {WIDE} columns": wide,
        "of them, effect usually given an interval": [cell for cell in wide if is_usual(cell)],
        f"one effect, fewer than {WIDE} columns": narrow,
        "of those, effect usually given an interval": [cell for cell in narrow if is_usual(cell)],
        **{f"one effect, {model}": [cell for cell in one if cell["model"] == model] for model in study.MODELS},
        "four effects": [cell for cell in run if len(cell["effects"]) > 1],
    }
    lines = [
        "# Effects of interest", "", " ".join((__doc__ or "").split("\n\n")[2].split()), "",
        f"{SAMPLES} samples a cell. Each ratio is that with effects over that without: the error that the release states for privacy, the "
        "root mean square difference to the fit of the same rows without privacy, the standard error, and the root mean square error. "
        "Promised is the least that the plan states for the noise.", "", *READING, "",
        "| cells | number | stated privacy error | true privacy error | standard error | true error | others: stated | others: true |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for name, group in groups.items():
        figures = [
            np.nanmedian([ratio(cell, figure, columns_of(cell, effects=effects)) for cell in group])
            for figure, effects in [("privacy", True), ("private", True), ("error", True), ("rmse", True), ("privacy", False), ("rmse", False)]
        ] if group else []  # fmt: skip
        lines.append(
            f"| {name} | {len(group)} | {' | '.join('–' if np.isnan(figure) else f'{figure:.2f}' for figure in figures)} |"
        )
    lines += [
        "", "Medians over cells. Coverage of 95 % intervals that were given:", "",
        "| cells | effects, without naming | effects, named | others, without | others, with |", "| --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for name, group in groups.items():
        figures = [coverage(group, label, effects=effects) for effects in (True, False) for label in ("plain", "named")]
        lines.append(f"| {name} | {' | '.join(figures)} |")
    lines += [
        "", "| table | model | columns | effects | promised | stated privacy | true privacy | std. error | true error | others: stated | others: true | given |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *map(row, run), "", "Refused at this n and ε, with effects and without: " + "; ".join(sorted({f"{cell['population']} ({cell['model']})" for cell in cells if "refused" in cell})) + ".", "",
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Run the cells that the file does not hold, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--populations", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--summary", type=Path, nargs="*")
    options = parser.parse_args()
    if options.summary:
        RESULT.write_text(page([cell for path in options.summary for cell in read_cells(path)]), encoding="utf-8")
        return
    done = {(cell["population"], cell["model"], tuple(cell["effects"])) for cell in read_cells(options.out)}
    with options.out.open("a", encoding="utf-8") as file:
        for cell in list_cells(options.populations)[options.part :: options.parts]:
            if tuple(cell) not in done:
                file.write(json.dumps(measure_cell(str(options.populations), cell)) + "\n")
                file.flush()


if __name__ == "__main__":
    main()
