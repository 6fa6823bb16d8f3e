"""Write the two reference pages that the code itself knows best: the command line and the public Python names.

`make reference` writes docs/command-line.md and docs/reference.md; a test says when they are out of date.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"

COMMAND_LINE = """# The command line

Every command answers `--help`, and `--json` prints one JSON document instead of tables. `onedraw --install-completion`
adds completion to your shell. This page is written from the commands themselves by `make reference`.

| exit code | what happened | what is written and charged |
| --- | --- | --- |
| 0 | The command is done. | what it says |
| 1 | An error that onedraw does not expect. A release that was charged says so, with the command that finishes it. | as for 5 if it was charged, else nothing |
| 2 | A wrong call: an option, a file or a name. | nothing |
| 3 | A guarantee is refused, a certificate does not hold, or an audit found a broken promise. | nothing is charged; an audit writes its results |
| 4 | The budget does not cover the release. | nothing |
| 5 | The release was charged but is not finished. | the charge, `OUT.unfinished` (with the command that finishes it) and `OUT.draft`; keep both |

The variables `ONEDRAW_SCHEMA` and `ONEDRAW_LEDGER` in the environment stand for `--schema` and `--ledger` of the commands that
name them below.
"""

NAMES = """# Python

What `import onedraw as od` offers, by package. A package is public, with the names in its `__all__`; all of them are on this page, and
the modules inside a package are private. This page is written from the docstrings by `make reference`.
"""

# the public packages and modules in the order a user meets them, and the names worth an entry besides those of the top; the others
# in `__all__` are rows of a table
PACKAGES = {
    "estimators": ("Estimators", "scikit-learn's contract: `fit` is one release, charged and certified.", ()),
    "data": ("Records and schemas", "What is public about the columns, and reading files by it.", ("infer",)),
    "models": (
        "Models and priors",
        "What is fitted: `od.models.…`.",
        (
            "BetaBernoulli", "LogitNormalBernoulli", "DirichletCategorical", "GaussianMean", "GammaPoisson", "GammaExponential",
            "Logistic", "Softmax", "Hinge", "HuberisedHinge", "LeastSquares",
            "OrdinaryLeastSquares", "HuberRegression", "Quantile",
            "BoundedResidualGLM", "ConvexLoss", "BinaryRegression", "PoissonRegression", "NegativeBinomialRegression",
            "GaussianRegression", "StudentTRegression", "GammaRegression", "Network", "from_numpyro", "OwnDensity",
            "schema_features",
        ),
    ),
    "methods": (
        "Mechanisms", "Which theorem makes a draw private; `calibrate` takes no data.", ("Mechanism", "plan_from_dict"),
    ),
    "methods.fit": ("The fit", "The default fit of regressions.", ()),
    "methods.clipped_gradients": ("Methods for prediction", "Predictors without intervals, by name.", ()),
    "plans": ("Plans", "A theorem's bounds and a budget, turned into what will be drawn.", ()),
    "release": ("Releasing and verifying", "The one function that lets a draw out.", ("interval",)),
    "ledger": ("The ledger", "What has been spent on a data set.", ()),
    "privacy": ("Promises", "What is promised; how promises convert and compose.", ("Attacker",)),
    "samplers": (
        "Samplers",
        "How a draw is made, and how exact it is: `od.samplers.…`. The default is chosen from public numbers.",
        ("default_sampler", "Exact", "Perfect", "LastIterateLangevin", "Proximal", "Langevin", "NUTS", "HMC"),
    ),
    "planning": (
        "Planning",
        "What to expect, from public numbers only: `onedraw.planning.…`.",
        ("Regression", "Question", "expected_error", "smallest_n", "smallest_epsilon"),
    ),
    "report": ("The report", "One HTML page per release: `od.report.…`.", ("write_report",)),
    "audit": (
        "Auditing",
        "Attack a mechanism: `od.audit.…`.",
        ("assert_private", "exact_profile", "membership_attack", "epsilon_lower_bound", "rounds_needed"),
    ),
    "baselines": ("Methods of the literature", "To compare with: `od.baselines.…`; nothing here is chosen by `auto`.", ()),
    "defaults": ("Defaults", "What is taken where nothing is named: `onedraw.defaults`.", ()),
    "errors": ("Errors", "What is raised, by what went wrong: `od.errors.…`.", ()),
    "models.likelihood": ("Likelihoods", "For posteriors of the β-divergence: `od.models.likelihoods.…`.", ()),
    "models.convex": ("For a new loss", "What losses derive from (extending.md).", ()),
    "methods.private_chain": ("For a new private chain", "What chains are made of (extending.md).", ()),
    "audit.cases": ("For a new audit case", "What cases derive from, and how they are examined (extending.md).", ()),
}  # fmt: skip

METHODS_OF = {"estimators", "data", "release", "ledger", "privacy"}  # elsewhere they are for those who extend onedraw


def command_line() -> str:
    import typer

    from onedraw.cli import application

    return COMMAND_LINE + "".join(_commands("onedraw", typer.main.get_command(application)))


def _commands(name: str, command: Any) -> Iterator[str]:
    if hasattr(command, "commands"):
        for word, inner in command.commands.items():
            yield from _commands(f"{name} {word}", inner)
        return
    shown = [each for each in command.params if not each.hidden and each.name != "help"]
    arguments = [parameter for parameter in shown if parameter.param_type_name == "argument"]
    usage = " ".join([name, *(_argument(each) for each in arguments), "[options]"])
    yield f"\n## {name}\n\n{_prose(command.help)}\n\n```text\n{usage}\n```\n\n"
    yield "| option | default | what it does |\n| --- | --- | --- |\n"
    for parameter in shown:
        yield f"| {_spelled(parameter)} | {_default(parameter)} | {_cell(parameter.help or '')} |\n"


def _argument(parameter: Any) -> str:
    word = parameter.name.upper()
    return word if parameter.required else f"[{word}]"


def _spelled(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    return ", ".join(f"`{option}`" for option in [*parameter.opts, *parameter.secondary_opts])


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if parameter.default is None or parameter.default is False or parameter.default == ():
        return ""
    return f"`{parameter.default}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")


def _prose(text: str | None) -> str:
    return "\n\n".join(" ".join(piece.split()) for piece in inspect.cleandoc(text or "").split("\n\n"))


def names() -> str:
    import onedraw

    public = {package: onedraw._NAMES.get(package, ()) for package in PACKAGES}
    pieces = [NAMES]
    for package, (title, about, further) in PACKAGES.items():
        module = import_module(f"onedraw.{package}")
        pieces.append(f"\n## {title}\n\n{about}\n")
        home = f"od.{package}" if package in onedraw._PACKAGES else f"onedraw.{package}"
        paths = [*(f"od.{name}" for name in public[package]), *(f"{home}.{name}" for name in further)]
        shown = ((path, getattr(module, path.rpartition(".")[2])) for path in paths)
        pieces += [_entry(path, thing, methods=package in METHODS_OF) for path, thing in shown]
        listed = {path.rpartition(".")[2] for path in paths}
        others = [name for name in module.__all__ if name not in listed]
        rows = (f"| `{name}` | {_cell(_first_sentence(getattr(module, name)))} |\n" for name in others)
        about = f"Also in `onedraw.{package}`" if listed else f"In `onedraw.{package}`"
        pieces += [f"\n| {about} | what it is |\n| --- | --- |\n", *rows] if others else []
    return "".join(pieces)


def _first_sentence(thing: Any) -> str:
    """Return the first sentence of a docstring; of a constant, its value or kind."""
    if not (inspect.isclass(thing) or inspect.ismodule(thing) or callable(thing)):
        return f"`{thing!r}`" if isinstance(thing, str | float) else f"a constant ({type(thing).__name__})"
    text = " ".join(inspect.cleandoc(inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.;]) ", text)[0].rstrip(";") if text else ""


def _entry(path: str, thing: Any, *, methods: bool) -> str:
    heading = f"\n### {path.rpartition('.')[2]}\n\n```text\n{_call(path, thing)}\n```\n\n"
    about = heading + _rendered(inspect.getdoc(thing) or "")
    rows = "".join(_methods(thing)) if methods and inspect.isclass(thing) else ""
    return f"{about}\n| method | what it does |\n| --- | --- |\n{rows}" if rows else about


def _call(path: str, thing: Any) -> str:
    """The signature without annotations: names and defaults are what a caller needs."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return path
    parameters = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    text = str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    text = re.sub(r"<factory>|<[^<>]*>", "…", text)
    return "\n".join(textwrap.wrap(path + text, width=110, subsequent_indent="    ", break_long_words=False))


def _methods(thing: type) -> Iterator[str]:
    """A row for each public method that this library defines; those of other libraries are documented there."""
    own = {name for kind in thing.__mro__ if kind.__module__.startswith("onedraw.") for name in vars(kind)}
    for name in sorted(own):
        method = getattr(thing, name, None)
        if not name.startswith(("_", "set_")) and callable(method) and method.__doc__:
            first, _, _ = inspect.cleandoc(method.__doc__).partition("\n\n")
            yield f"| `{name}` | {_cell(first)} |\n"


def _rendered(documentation: str) -> str:
    """A docstring as Markdown; its Parameters and Attributes sections become tables."""
    pieces = re.split(r"^(\w[\w ]*)\n-{3,}\n", documentation, flags=re.MULTILINE)
    text = [pieces[0].strip().replace("``", "`") + "\n"]
    text += [f"**{title}**\n\n{_table(body)}" for title, body in zip(pieces[1::2], pieces[2::2], strict=True)]
    return "\n".join(text)


def _table(body: str) -> str:
    rows = []
    for entry in re.split(r"\n(?=\S)", body.strip()):
        head, _, about = entry.partition("\n")
        name, _, kind = head.partition(" : ")
        rows.append(f"| `{name.strip()}` | {_cell(kind)} | {_cell(about)} |\n")
    return "| name | kind | what it is |\n| --- | --- | --- |\n" + "".join(rows)


PAGES = {"command-line.md": command_line, "reference.md": names}

if __name__ == "__main__":
    for page, written in PAGES.items():
        (DOCS / page).write_text(written(), encoding="utf-8")
