"""Measure the coverage of averaged steps on tables, many samples at once, on a machine with a GPU or without.

    python benchmarks/regression_coverage_batched.py prepare FOLDER --populations POPULATIONS
    python benchmarks/regression_coverage_batched.py run FOLDER --samples 60
    python benchmarks/regression_coverage_batched.py summarize FOLDER --populations POPULATIONS --page page.md

The study is that of `regression_coverage.py`, with the batched copy of the program (`batched_steps`) in place of the
program. `prepare` writes what travels: the columns and responses of each population, and each cell's plan numbers, which
the real `calibrate` gives. `run` needs only this folder, NumPy and torch. It writes FOLDER/samples/CELL.npz as each cell
ends, and skips cells that have one. `summarize` writes cells in the format of `regression_coverage.py`, and its page.
Samples at each ε are the same; they are others than those of `regression_coverage.py`, and depend on the device.
Columns travel in single precision: they move by 1e-7 of their range. Not private: seeds are fixed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

ENTRIES = {"cuda": 400_000_000, "cpu": 8_000_000}
"""Entries of the rows of all samples that are computed at once."""


# Prepare, where onedraw is.


def prepare(options: argparse.Namespace) -> None:
    """Write the populations and the plan numbers of all cells that the options ask for."""
    from regression_coverage import list_cells, read_table

    tables = options.folder / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    cells = []
    for cell in list_cells(options.populations, options):
        table = read_table(str(options.populations), cell.population, cell.model)
        cells.append(cell._asdict() | describe_cell(table, cell.n, cell.epsilon))
        path = tables / f"{cell.population}.npz"
        if not path.is_file():
            np.savez_compressed(path, **describe_table(table))
        responses = tables / f"{cell.population}-{cell.model}.npy"
        if not responses.is_file():
            np.save(responses, (2 * table.y - 1 if cell.model == "logistic" else table.y).astype(np.float32))
    (options.folder / "cells.json").write_text(json.dumps(cells), encoding="utf-8")
    print(f"{len(cells)} cells, {sum('refused' in cell for cell in cells)} of them refused")


def describe_cell(table: Any, n: int, epsilon: float) -> dict[str, Any]:
    """Return the plan numbers and the constants of the score, or why the cell is refused."""
    from regression_coverage import calibrate

    from onedraw.errors import OnedrawError

    try:
        return describe_plan(calibrate(table, n, epsilon))
    except OnedrawError as error:
        return {"refused": str(error).splitlines()[0]}


def describe_plan(plan: Any) -> dict[str, Any]:
    """Return what the batched copy needs to know of a plan."""
    from onedraw.methods.fit.scores import score_of

    score = score_of(plan.model)
    return {
        "numbers": dict(plan.parameters), "kind": score.kind, "information": score.information, "scale": score.scale,
        "shift": score.shift, "largest": int(2.0 * score.scale) if score.kind == "count" else 0,
        "level": getattr(plan.model, "level", 0.5),
    }  # fmt: skip


def describe_table(table: Any) -> dict[str, Any]:
    """Return the columns of a population and what is public about them."""
    from onedraw.models.moments.measured import Layout

    layout = Layout(table.X.shape[1], table.categories)
    return {"v": np.asarray(layout.rows(table.X)).astype(np.float32), **describe_layout(layout)}


def describe_layout(layout: Any) -> dict[str, Any]:
    """Return the units of columns, and where means can be."""
    from onedraw.models.moments.measured import MomentColumns

    columns = MomentColumns(layout, True)
    lower = columns.centre(np.full(columns.count, -np.inf))
    return {
        "column_scale": layout.units[0], "column_shift": layout.units[1], "middle": columns.centre(None), "lower": lower
    }  # fmt: skip


# Run, where torch is.


def run(options: argparse.Namespace) -> None:
    """Run the cells that have no samples yet, until the time is over."""
    started, samples = time.perf_counter(), options.folder / "samples"
    samples.mkdir(exist_ok=True)
    cells = json.loads((options.folder / "cells.json").read_text(encoding="utf-8"))
    cells = [cell for cell in cells if "refused" not in cell and not (samples / f"{name_cell(cell)}.npz").is_file()]
    print(f"{len(cells)} cells to run", flush=True)
    for cell in cells:
        begun = time.perf_counter()
        if begun - started > options.seconds:
            print("The time is over. Run the same command again for the other cells.", flush=True)
            break
        arrays = run_cell(options.folder, cell, options.samples, options.seed, options.device)
        path = samples / f"{name_cell(cell)}.npz"
        unfinished = path.with_suffix(".unfinished.npz")
        np.savez_compressed(unfinished, **arrays)
        os.replace(unfinished, path)
        print(f"{name_cell(cell)} {time.perf_counter() - begun:.1f} s", flush=True)


def name_cell(cell: dict[str, Any]) -> str:
    """Return the name of a cell's file."""
    return f"{cell['population']}-{cell['model']}-{cell['n']}-{cell['epsilon']:g}"


def run_cell(folder: Path, cell: dict[str, Any], samples: int, seed: int, device: str) -> dict[str, np.ndarray]:
    """Return the results of all samples, one row each, in encoded units."""
    import torch
    from batched_steps import run_steps

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    with np.load(folder / "tables" / f"{cell['population']}.npz") as stored:
        table = {name: stored[name] for name in stored.files}
    problem = problem_of(cell, table)
    v = torch.as_tensor(table["v"]).to(device, torch.float64)
    y = np.load(folder / "tables" / f"{cell['population']}-{cell['model']}.npy")
    r = (torch.as_tensor(y).to(device, torch.float64) / cell["scale"] - cell["shift"]).clamp(-1.0, 1.0)
    tag = zlib.crc32(f"{cell['population']} {cell['model']} {cell['n']} {seed}".encode())
    rows, noise = (torch.Generator(device).manual_seed(2 * tag + number) for number in (0, 1))
    parts: dict[str, list[np.ndarray]] = {}
    most = max(1, ENTRIES[v.device.type] // (cell["n"] * (v.shape[1] + 1)))
    for first in range(0, samples, most):
        size = min(most, samples - first)
        index = torch.randint(0, len(v), (size, cell["n"]), generator=rows, device=device)

        def draw(count: int, size: int = size) -> torch.Tensor:
            return torch.randn(size, count, generator=noise, device=device, dtype=torch.float64)

        figures = run_steps(problem, v[index], r[index], draw).figures()
        figures |= fit_plain(problem, v[index], r[index])
        for name, value in figures.items():
            parts.setdefault(name, []).append(value.cpu().numpy())
    return {name: np.concatenate(values) for name, values in parts.items()}


def problem_of(cell: dict[str, Any], table: dict[str, np.ndarray]) -> Any:
    """Return the batched problem of a plan and the columns it is about."""
    from batched_coordinates import Problem

    columns = table["column_scale"], table["column_shift"], table["middle"], table["lower"]
    return Problem(cell["kind"], cell["numbers"], cell["information"], *columns, cell["largest"], cell["level"])


def fit_plain(problem: Any, v: Any, r: Any) -> dict[str, Any]:
    """Return each sample's fit without privacy with robust standard errors; NaN for quantiles and where there is none."""
    import torch

    x = (v - torch.as_tensor(problem.shift).to(v)) / torch.as_tensor(problem.scale).to(v)
    rows = torch.cat([x, torch.ones_like(r)[:, :, None]], dim=2)
    missing = torch.full_like(rows[:, 0], math.nan)
    if problem.kind == "quantile":
        return {"plain": missing, "plain_error": missing}
    y = {"number": r, "label": (r + 1.0) / 2.0, "count": (r + 1.0) * problem.largest / 2.0}[problem.kind]
    theta, good = torch.zeros_like(missing), torch.zeros_like(r[:, 0], dtype=torch.bool)
    level = y.mean(dim=1).clamp(min=1e-3)
    theta[:, -1] = {"number": 0.0 * level, "label": torch.logit(level.clamp(max=1.0 - 1e-3)), "count": level.log()}[problem.kind]  # fmt: skip
    for _ in range(1 if problem.kind == "number" else 30):
        mean, weight = mean_of(problem.kind, rows, theta)
        information = (rows * weight[:, :, None]).mT @ rows
        singular = ~(torch.linalg.cond(information) <= 1e12)
        information[singular] = torch.eye(rows.shape[2]).to(rows)
        step = torch.linalg.solve(information, (rows.mT @ (y - mean)[:, :, None])[:, :, 0])
        if problem.kind != "number":
            farthest = (rows @ step[:, :, None]).abs().amax(dim=(1, 2))
            step = step * (3.0 / farthest.clamp(min=1e-12)).clamp(max=1.0)[:, None]
        theta, good = theta + step, ~singular & ((step.abs().amax(dim=1) < 1e-7) | (problem.kind == "number"))
        if bool(good.all()):
            break
    mean, _ = mean_of(problem.kind, rows, theta)
    influence = torch.linalg.solve(information, (rows * (y - mean)[:, :, None]).mT)
    errors = torch.linalg.norm(influence, dim=2)
    return {
        name: torch.where(good[:, None], value, missing) for name, value in (("plain", theta), ("plain_error", errors))
    }


def mean_of(kind: str, rows: Any, theta: Any) -> tuple[Any, Any]:
    """Return expected responses and the information of each record."""
    predictor = (rows @ theta[:, :, None])[:, :, 0]
    if kind == "number":
        return predictor, predictor * 0.0 + 1.0
    predictor = predictor.clamp(-30.0, 30.0)
    if kind == "count":
        return predictor.exp(), predictor.exp()
    mean = predictor.sigmoid()
    return mean, mean * (1.0 - mean)


# Summarize, where onedraw is.


def summarize(options: argparse.Namespace) -> None:
    """Write the cells that were run in the format of `regression_coverage.py`, and its page."""
    import regression_coverage as study

    cells = json.loads((options.folder / "cells.json").read_text(encoding="utf-8"))
    ended = [
        cell for cell in cells if "refused" in cell or (options.folder / "samples" / f"{name_cell(cell)}.npz").is_file()
    ]
    records = [study._plain(summarize_cell(options, cell)) for cell in ended]
    lines = [json.dumps(record) + "\n" for record in records]
    (options.folder / "cells.jsonl").write_text("".join(lines), encoding="utf-8")
    page = study.summarize(records).replace("regression_coverage.py`", "regression_coverage_batched.py`", 1)
    if options.page:
        options.page.write_text(page, encoding="utf-8")
    else:
        print(page)


def summarize_cell(options: argparse.Namespace, cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell as `regression_coverage.measure_cell` stores it."""
    import regression_coverage as study

    table = study.read_table(str(options.populations), cell["population"], cell["model"])
    record: dict[str, Any] = {name: cell[name] for name in study.Cell._fields} | {
        "group": table.group, "rows": len(table.y), "d": table.X.shape[1], "names": table.names, "truth": table.truth
    }  # fmt: skip
    if "refused" in cell:
        return record | {"samples": 0, "refused": cell["refused"]}
    with np.load(options.folder / "samples" / f"{name_cell(cell)}.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    samples, factor = len(arrays["estimate"]), arrays.pop("factor")
    arrays.pop("early")
    if cell["model"] == "median":
        arrays["plain_error"] = np.tile(study.compute_median_errors(table, cell["n"]), (samples, 1))
    record |= {"samples": samples} | study.summarize_samples(table.truth, **arrays)
    if (cell["population"], cell["model"], cell["n"]) == study.CPS_EDUCATION:
        slope = table.names.index("educ_years")
        names = ("estimate", "error", "privacy", "plain", "plain_error")
        record["education"] = {name: arrays[name][:, slope] for name in names}
    beta = cell["numbers"]["step_bound"] / math.sqrt(len(table.truth))
    return record | {"beta": beta, "factor": float(np.median(factor)), "seconds": 0.0}


def main() -> None:
    """Prepare, run or summarize the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("prepare", "run", "summarize"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--populations", type=Path, default=os.environ.get("ONEDRAW_POPULATIONS"))
    parser.add_argument("--groups", nargs="+", default=["derive", "given", "simulated"])
    parser.add_argument("--only", nargs="*", default=[], help="Parts that names of populations must have.")
    parser.add_argument("--models", nargs="+", default=["linear", "median", "logistic", "poisson"])
    parser.add_argument("--n", nargs="+", type=int, default=[2_000, 10_000, 50_000])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.5, 1.0, 3.0, 10.0])
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="Begin no cell after this time.")
    parser.add_argument("--device", default="", help="cpu or cuda. [default: cuda if there is one]")
    parser.add_argument("--page", type=Path, help="File of the page. [default: print it]")
    options = parser.parse_args()
    {"prepare": prepare, "run": run, "summarize": summarize}[options.task](options)


if __name__ == "__main__":
    main()
