"""The layers of the package: who may see whom, and that `import onedraw` is cheap."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

METHODS = ROOT / "src" / "onedraw" / "methods"

SHARED_FOLDER = "onedraw.methods.draws"
"""The one folder of methods that is no method: what draws say of their own uncertainty."""

ALLOWED = {
    'if isinstance(mechanism, Mapping) and "proven" not in mechanism:',  # a stored dictionary of an earlier release
    "if not isinstance(self.mechanism, str):",  # an estimator's option, which may be a name
}


CONTRACTS = (sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache")


def run(*command: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | environment
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120)


def test_imports_go_downward_only():
    result = run(*CONTRACTS)
    assert result.returncode == 0, result.stdout + result.stderr


UPPER = ("release", "planning", "report", "estimators", "cli")


PLANTED = [
    ("report/page.py", "onedraw.methods.quantiles.intervals", "Upper packages ask a method"),
    ("planning/choice.py", "onedraw.methods.fit", "Upper packages ask a method"),
    ("methods/moments/mechanism.py", "onedraw.methods.gibbs.mechanism", "No method imports another method"),
    ("methods/measured/run.py", "onedraw.methods.perturbed_mode.run", "No method imports another method"),
    ("methods/draws/law.py", "onedraw.methods.candidates.layout", "What methods share imports no method"),
    ("methods/fit/audit.py", "onedraw.methods.fit.steps", "A method's audit shares no code"),
    ("methods/gibbs/audit.py", "onedraw.methods.convex_bounds", "A method's audit shares no code"),
    ("methods/clipped_gradients/replay.py", "onedraw.methods.clipped_gradients.sizes", "A replay runs the program"),
    (
        "baselines/audits/tilted.py",
        "onedraw.baselines.objective_perturbation",
        "The audits of the literature's methods",
    ),
    ("methods/gibbs/mechanism.py", "onedraw.audit.search", "Nothing that runs imports the auditor"),
    ("release/release.py", "onedraw.audit.attacks", "Nothing that runs imports the auditor"),
]
"""File, module whose import is planted there, and how the contract begins that must break."""


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """Check the contracts of a copy of the package with all these imports."""
    root = tmp_path_factory.mktemp("layers")
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    for file, module, _ in PLANTED:
        with (root / "src" / "onedraw" / file).open("a", encoding="utf-8") as source:
            source.write(f"\n\ndef planted_{module.replace('.', '_')}():\n    import {module}\n")
    found = run(*CONTRACTS, cwd=root, PYTHONPATH=str(root / "src"), COLUMNS="400")
    assert found.returncode == 1, found.stdout + found.stderr
    return found.stdout


@pytest.mark.parametrize(("file", "module", "contract"), PLANTED)
def test_an_import_of_a_methods_own_module_is_caught(broken, file, module, contract):
    importer = "onedraw." + file.removesuffix(".py").replace("/", ".")
    report = broken.partition("Broken contracts")[2]
    (part,) = [part for part in re.split(r"\n(?=[^\n]+\n-{4,}\n)", report) if part.lstrip().startswith(contract)]
    assert re.search(rf"{re.escape(importer)} -> {re.escape(module)}[ )]", part), part


def contracts_by_name() -> dict[str, dict]:
    """Return the contracts by their names up to the first comma."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return {contract["name"].partition(",")[0]: contract for contract in settings["contracts"]}


def test_contracts_name_every_method_and_all_that_methods_share():
    """A new folder must not be forgotten."""
    folders = {f"onedraw.methods.{path.parent.name}" for path in METHODS.glob("*/__init__.py")} - {SHARED_FOLDER}
    files = {f"onedraw.methods.{path.stem}" for path in METHODS.glob("*.py")} - {"onedraw.methods.__init__"}
    contracts = contracts_by_name()
    shared = contracts["What methods share imports no method"]
    assert set(contracts["Upper packages ask a method through its mechanism"]["forbidden_modules"]) == folders
    assert set(contracts["No method imports another method"]["modules"]) == folders
    assert set(shared["forbidden_modules"]) == folders
    assert set(shared["source_modules"]) == files | {SHARED_FOLDER}


AUDITS = {"audit", "replay"}


def test_contracts_of_audits_name_every_module_of_a_method():
    """A new file must not be forgotten, under whatever name it is."""
    contracts = contracts_by_name()
    files = {path.stem for path in (METHODS).glob("*/*.py")} - AUDITS - {"__init__"}
    own = {f"onedraw.methods.*.{name}" for name in files}
    shared = {f"onedraw.methods.{path.stem}" for path in METHODS.glob("*.py")} - {"onedraw.methods.__init__"}
    asked = {"onedraw.methods.base", "onedraw.methods.catalog"}  # to calibrate a plan, and for cases of those that can
    baselines = {f"onedraw.baselines.{path.stem}" for path in (METHODS.parent / "baselines").glob("*.py")}
    upper = {f"onedraw.{name}" for name in UPPER} - {"onedraw.cli"}
    assert (
        set(contracts["A method's audit shares no code with what it attacks"]["forbidden_modules"])
        == own | shared - asked
    )
    assert shared - asked <= set(
        contracts["A replay runs the program beside the audit's formulas"]["forbidden_modules"]
    )
    literature = contracts["The audits of the literature's methods share no code with what they attack"]
    assert set(literature["forbidden_modules"]) == baselines - {"onedraw.baselines.__init__"}
    sources = contracts[
        "Nothing that runs imports the auditor: a mechanism loads its own audit when it is asked for it"
    ]
    assert set(sources["source_modules"]) == own | upper | shared - {"onedraw.methods.catalog"}


def test_audits_are_loaded_by_an_audit_alone():
    code = "import onedraw.methods, onedraw.release, onedraw.planning, sys; print([m for m in sys.modules if '.audit' in m])"
    result = run(sys.executable, "-c", code)
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


def test_upper_packages_do_not_ask_what_class_a_mechanism_has_or_read_its_numbers():
    """They ask the mechanism, so that one of another package is served in the same way."""
    decides = re.compile(
        r"isinstance\([^()]*mechanism,|type\([^()]*mechanism\) (?:is|==|in) |(?<!certificate\.)(?<!self\.)mechanism\.name\b|\.requires\b|\.parameters(?:\[|\.get\()"
    )
    found = [
        f"{path.name}: {line.strip()}"
        for package in UPPER
        for path in sorted((ROOT / "src" / "onedraw" / package).glob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if decides.search(line) and line.strip() not in ALLOWED
    ]
    assert found == []


def test_only_tables_compare_the_name_of_a_statistic():
    """Others ask a table what its numbers are, so that a new statistic is defined in one file."""
    source = ROOT / "src" / "onedraw"
    decides = re.compile(r"(?<!self)\.show (?:==|!=|in|not in) ")
    found = [
        f"{path.relative_to(source)}: {line.strip()}"
        for path in sorted(source.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if decides.search(line)
    ]
    assert found == []


def imports_of(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports that a program runs: without those that are for type checkers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [
        part for part in tree.body if not (isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING")
    ]
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def test_top_of_the_package_runs_two_imports_of_its_own():
    """Its imports for type checkers are left out of the contracts, so none of them may run."""
    modules = {getattr(node, "module", None) for node in imports_of(ROOT / "src" / "onedraw" / "__init__.py")}
    assert modules == {"__future__", "typing", "onedraw.on_demand", "onedraw.estimators"}


def test_packages_import_each_other_and_not_the_top():
    """An import of a name at the top would hide which package it comes from."""
    source = ROOT / "src" / "onedraw"
    packages = {path.parent.name for path in source.glob("*/__init__.py")} | {path.stem for path in source.glob("*.py")}
    for path in source.rglob("*.py"):
        for node in imports_of(path):
            if isinstance(node, ast.ImportFrom) and node.module == "onedraw":
                assert {alias.name for alias in node.names} <= packages | {"__version__"}, path


def test_import_onedraw_loads_no_heavy_library():
    heavy = [
        "jax",
        "sklearn",
        "dp_accounting",
        "pyarrow",
        "sqlalchemy",
        "scipy.stats",
        "opendp",
        "numpyro",
        "pandas",
    ]
    code = f"import onedraw, sys; print([m for m in {heavy!r} if m in sys.modules])"
    result = run(sys.executable, "-c", code)
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


def test_every_public_name_of_the_top_level_resolves():
    result = run(
        sys.executable,
        "-c",
        "import onedraw as od; print(all(hasattr(od, n) for n in od.__all__), len(od.__all__))",
    )
    assert result.stdout.startswith("True"), result.stdout + result.stderr


def test_no_name_is_one_thing_or_another_by_what_was_imported_first():
    """A file that has the name of a public function next to it takes its place once it is imported; `release` is bound at once."""
    packages = [path.parent for path in (ROOT / "src" / "onedraw").glob("*/__init__.py")]
    twice = [
        (package.name, name)
        for package in packages
        for name in re.findall(r'^ {4}"([a-z_]+)": "([a-z_]+)",$', (package / "__init__.py").read_text(), re.M)
        if name[0] == name[1]
    ]
    assert twice == []


def test_only_the_cases_of_the_audit_see_the_mechanisms():
    """The rest of the package must not see the cases either, through which it would see everything."""
    readers = [path.name for path in (ROOT / "src/onedraw/audit").glob("*.py") if ".cases" in path.read_text()]
    assert readers == []


def test_there_is_no_package_without_a_question():
    names = {path.stem for path in (ROOT / "src" / "onedraw").iterdir() if not path.name.startswith(("_", "."))}
    assert names & {"utils", "core", "common", "helpers"} == set()


BARE = """
import sys
sys.meta_path.insert(0, type("Missing", (), {"find_spec": staticmethod(lambda name, path=None, target=None: refuse(name))}))
def refuse(name):
    if name.partition(".")[0] in ABSENT:
        raise ModuleNotFoundError(f"{name} is not installed here")
import numpy as np
import onedraw as od
from onedraw.models import Gaussian, Logistic
from onedraw.samplers import default_sampler, seeded_key
import onedraw.models.numpyro.program_model, onedraw.samplers.hamiltonian, onedraw.samplers.coupling
plan = od.calibrate(od.Gibbs("gdp"), Logistic(2, data_norm=1.0, prior=Gaussian(scale=1.0)), od.ApproxDP(1.0, 1e-6), n=40)
target = plan.target(plan.model.summarise((np.zeros((40, 2)), np.zeros(40, dtype=int))))
print(np.isfinite(default_sampler(plan)[0].run(target, seeded_key(1), size=1).draws).all())
"""


def test_models_and_samplers_run_with_jax_numpyro_numpy_and_scipy_alone():
    """On a machine with an accelerator nothing else may be installed."""
    absent = (
        "pydantic",
        "sklearn",
        "pyarrow",
        "sqlalchemy",
        "narwhals",
        "randomgen",
        "blackjax",
        "dp_accounting",
        "yaml",
    )
    result = run(sys.executable, "-c", f"ABSENT = {absent!r}\n{BARE}")
    assert result.stdout.strip() == "True", result.stdout + result.stderr


def test_the_picture_shows_who_imports_whom():
    figures = importlib.util.spec_from_file_location("packages", ROOT / "docs" / "figures" / "packages.py")
    drawing = importlib.util.module_from_spec(figures)
    figures.loader.exec_module(drawing)
    drawn = set(re.findall('data-pair="([a-z_ ]+)"', drawing.PICTURE.read_text(encoding="utf-8")))
    assert drawn == {" ".join(pair) for pair in drawing.imports(drawing.packages())}, "run docs/figures/packages.py"
