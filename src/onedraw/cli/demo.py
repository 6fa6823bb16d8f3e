"""`onedraw demo`: the commands themselves, on a real medical data set, each shown as it would be typed.

scikit-learn's bundled breast-cancer data play the private file. Of 569 records a mean has an interval at ε = 0.5, a regression at
ε = 1 has few or none yet, and both say so.
"""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import chdir, redirect_stdout
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson
from .show import show_json, show_lines

# What a pathologist knows of such slides before seeing any of these, in the units of the measuring program: radii of cell
# nuclei in pixels, texture as the spread of grey values, concave points as a share of the outline. Round numbers, not the
# extremes of the file: those belong to single persons.
SCHEMA = """\
dataset: breast-cancer-demo
columns:
  diagnosis: {kind: binary, levels: [benign, malignant], missing: benign}
  radius: {kind: number, lower: 5, upper: 25, missing: 15}
  texture: {kind: number, lower: 5, upper: 35, missing: 20}
  concave_points: {kind: number, lower: 0, upper: 0.2, missing: 0.05}
"""
NEW = "radius,texture,concave_points\n11,15,0.02\n20,26,0.12\n"
"""Two made-up patients to score."""

MEAN = "--schema schema.yaml --target radius --model mean --by diagnosis\n--epsilon 0.5"
MODEL = "--schema schema.yaml --target diagnosis --model logistic\n--epsilon 1"
STEPS = {
    "budget": ("Open a budget: all that is ever published of these records may cost ε = 3.",
               "ledger init ledger.db --dataset breast-cancer-demo --epsilon 3 --delta 1e-5"),
    "plan": ("Plan: how good would a mean by group be? For this no record is read.",
             f"plan {MEAN} --rows 569"),
    "means": ("Release it: the ledger is charged first. The intervals allow for the noise, too.",
              f"release patients.csv {MEAN} --ledger ledger.db --out means.json --report means.html"),
    "model": ("Release a regression: the log-odds of malignant by three measurements.",
              f"release patients.csv {MODEL} --ledger ledger.db --out model.json --report model.html"),
    "predictions": ("Predict two new patients: using what is published costs nothing more.",
                    "predict model.json new.csv"),
    "verified": ("Verify: the promise is derived again, without the data.",
                 "verify model.json --ledger ledger.db"),
    "audit": ("Audit: does the strongest attack we know show more than is promised?",
              "audit model.json --effort demo"),
    "left": ("What is left of the budget, and what was it spent on?",
             "ledger show ledger.db"),
}  # fmt: skip
NEXT = {
    "Would 5,000 patients give the regression intervals?": f"plan {MODEL} --rows 5000",
    "A median, for some of what is left:": "release patients.csv --schema schema.yaml --target texture --model median\n"
                                           "--epsilon 1 --ledger ledger.db --out median.json --report median.html",
}  # fmt: skip


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where to write; each run gets its own folder.")] = Path("onedraw-demo"),
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """A private mean by group and a regression of a real medical data set: plan, release, verify, audit, report."""
    place = prepare(folder)
    if not as_json:
        show_lines(f"$ cd {shlex.quote(str(place))}", style="cyan")
    with chdir(place):
        found = {name: run(*step, as_json=as_json) for name, step in STEPS.items()}
    if as_json:
        show_json({"folder": str(place)} | {name: json.loads(printed) for name, (_, printed) in found.items()})
    else:
        show_lines("", f"Reports: {place / 'means.html'}", f"         {place / 'model.html'}", "")
        show_lines(f"What ends in … was cut here; the commands print it whole. Try next, in {place}:")
        for why, command in NEXT.items():
            show_lines(f"# {why}", *typed(command))
    if code := max(code for code, _ in found.values()):
        raise typer.Exit(code)


def run(heading: str, command: str, *, as_json: bool) -> tuple[int, str]:
    """The exit code of a command and what it prints, which is shown in lines that are cut to the terminal's width."""
    from . import application

    if not as_json:
        show_lines("", heading, style="bold")
        show_lines(*typed(command), style="cyan")
    sys.argv[1:] = [*shlex.split(command), *(["--json"] if as_json else [])]  # where a release reads how it is resumed
    with redirect_stdout(StringIO()) as printed:
        code = application(standalone_mode=False) or 0
    if not as_json:
        show_lines(*printed.getvalue().splitlines(), cut=True)
    return code, printed.getvalue()


def typed(command: str) -> list[str]:
    return f"$ onedraw {command}".replace("\n", " \\\n    ").splitlines()


def prepare(folder: Path) -> Path:
    """A folder of its own, with the schema, the private file and two new records."""
    from onedraw.errors import CannotWrite

    place = folder / datetime.now().strftime("run-%Y%m%d-%H%M%S-%f")
    try:
        place.mkdir(parents=True)
        for name, text in {"schema.yaml": SCHEMA, "patients.csv": patients(), "new.csv": NEW}.items():
            (place / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotWrite(
            f"The folder {folder} cannot be written ({error.strerror}). Choose another one with --folder."
        ) from error
    return place


def patients() -> str:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    measured = data.data[:, [0, 1, 7]]  # means over a slide's nuclei of radius, texture and concave points
    rows = [f"{data.target_names[of]},{a:g},{b:g},{c:g}" for of, (a, b, c) in zip(data.target, measured, strict=True)]
    return "\n".join(["diagnosis,radius,texture,concave_points", *rows]) + "\n"
