"""`onedraw reproduce`: the papers' experiments, run and checked. They lie in a clone of the repository, not in the package."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

import onedraw
from onedraw.errors import OnedrawError, WrongCall

from .options import AsJson
from .show import show_error, show_json, show_lines, show_remark, show_table

FAILED = 3


def reproduce(
    name: Annotated[str, typer.Argument(help="A study, all, or list: which there are.")],
    quick: Annotated[bool, typer.Option("--quick", help="A few cells with few seeds; tolerances grow with fewer seeds.")] = False,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Repetitions; by default as many as the study asks for.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes that compute cells side by side.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", help="Where results go; build/experiments of the clone by default.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute every cell again, also those that earlier runs finished.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Run an experiment of a paper and compare it with what is expected: rows, figures and a summary.

    Needs a clone of the repository. A run that was interrupted goes on where it stopped. Exit code 3 if an expectation fails.
    """
    clone = find_clone(Path.cwd(), Path(onedraw.__file__))
    sys.path.insert(0, str(clone))
    study, runner = import_module("experiments.study"), import_module("experiments.runner")
    if name == "list":
        listed(study.studies(), as_json)
        return
    options = runner.Options(quick=quick, seeds=seeds, jobs=jobs, fresh=fresh)
    chosen = list(study.studies().values()) if name == "all" else [runner.find(name)]
    place = out or clone / "build" / "experiments"
    results, problems = run_all(runner, chosen, options, place, quiet=as_json)
    if as_json:
        show_json({"passed": not problems and all(one["passed"] for one in results), "studies": results})
    if problems:
        raise typer.Exit(problems[0].exit_code)
    if not all(one["passed"] for one in results):
        raise typer.Exit(FAILED)


def find_clone(here: Path, package: Path) -> Path:
    """The clone that the working directory lies in, or the one that this package is run from."""
    for folder in (here, *here.parents, *package.parents[2:3]):
        if (folder / "experiments" / "study.py").is_file() and (folder / "pyproject.toml").is_file():
            return folder
    raise WrongCall(
        "The experiments are in the repository of onedraw, not in the installed package, and there is no clone of it here. "
        "Clone it (git clone), go into its folder and give the command again."
    )


def run_all(
    runner: Any, chosen: list[Any], options: Any, out: Path, *, quiet: bool
) -> tuple[list[dict[str, Any]], list[OnedrawError]]:
    """The results of all that can be run; a study that is refused keeps none of the others from running."""
    results: list[dict[str, Any]] = []
    problems: list[OnedrawError] = []
    for study in chosen:
        try:
            results.append(runner.reproduce(study, options, out, say=show_remark))
        except OnedrawError as error:
            if len(chosen) == 1 or isinstance(error, runner.Interrupted):
                raise
            show_error(error)
            problems.append(error)
        else:
            if not quiet:
                told(results[-1])
    return results, problems


def listed(known: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json({name: {"claim": one.claim, "paper": one.paper} for name, one in known.items()})
        return
    show_table("studies", ["name", "claim", "paper"], [[name, one.claim, one.paper] for name, one in known.items()])


def told(result: dict[str, Any]) -> None:
    """What was checked as a table; then what was found, and where it is."""
    checked = [one for one in result["expectations"] if one["verdict"] != "not checked"]
    rows = [
        [one["quantity"], one["expected"], "" if one["found"] is None else f"{one['found']:.4g}", one["source"], one["verdict"]]
        for one in checked
    ]  # fmt: skip
    show_table(f"{result['study']}: {result['claim']}", ["quantity", "expected", "found", "source", ""], rows)
    left = len(result["expectations"]) - len(checked)
    more = [f"{left} more expectations are checked by the whole run, without --quick or fewer --seeds."] if left else []
    findings = (f"· {finding}" for finding in result["findings"])
    show_lines(*findings, *more, result["times"], f"Written to {result['folder']}.")
