"""What type checkers and editors see of the package: names, signatures and types, without running it."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import jedi
import pytest

import onedraw as od

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PACKAGES = sorted(
    ".".join(path.parent.relative_to(SOURCE).parts)
    for path in SOURCE.rglob("__init__.py")
    if "names_on_demand(" in path.read_text(encoding="utf-8")
)

USER_FILE = """
import onedraw as od

reveal_type(od.calibrate)  # note: budget: onedraw.privacy.promise.Promise, *, n: int
reveal_type(od.Plan)  # note: -> onedraw.plans.Plan
reveal_type(od.release)  # note: -> onedraw.release.released.Release
reveal_type(od.Ledger.open)  # note: -> onedraw.ledger.ledger.Ledger
reveal_type(od.PureDP)  # note: def (epsilon: float) -> onedraw.privacy.promises.PureDP
reveal_type(od.PerturbedMode)  # note: -> onedraw.methods.perturbed_mode.mechanism.PerturbedMode
reveal_type(od.DPLogisticRegression)  # note: def (epsilon: float | None =, *, delta: float =

plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1, 1e-6), n=5000)
release = od.release(plan, [0, 1], ledger=od.Ledger.open("ledger.db"), dataset="patients-2026")
release.certificate.sentence.upper()
od.calibrate("no mechanism", 3)  # error: Argument 1 to "calibrate" has incompatible type "str"; expected "Mechanism"
od.nothing_here  # error: has no attribute "nothing_here"
od.samplers.nothing_here  # error: has no attribute "nothing_here"
od.ApproxDP("one", 1e-6)  # error: expected "float"
plan.nothing_here  # error: "Plan" has no attribute "nothing_here"

fit = od.DPLogisticRegression(1.0, bounds=([0, 1], [9, 9]), classes=["no", "yes"], n_draws=4, accept="assumed").fit([], [])
fit.certificate_.sentence, fit.guarantee_.promise, fit.release_.certificate, fit.choice_.why, fit.notes_[0].upper()
fit.coef_[0, 0], fit.intercept_, fit.bse_[0], fit.pvalues_[0], fit.draws_[0], fit.classes_[0], fit.n_features_in_ + 1
fit.get_params()["epsilon"], fit.set_params(epsilon=2.0).fit([], []).score([], [])
od.DPLogisticRegression(epsilon=1.0, classses=[0, 1])  # error: Unexpected keyword argument "classses"
od.DPLogisticRegression(epsilon="one")  # error: Argument "epsilon" to "DPLogisticRegression" has incompatible type "str"
od.DPLogisticRegression(epsilon=1.0, check="terminal")  # error: expected "Literal['curator'] | None"
od.DPLinearSVC(epsilon=1.0, bounds="0 to 1")  # error: Argument "bounds" to "DPLinearSVC"
od.DPLinearRegression(epsilon=1.0, response_bound="9")  # error: Argument "response_bound" to "DPLinearRegression"
od.DPPoissonRegressor(epsilon=1.0, largest=2.5)  # error: expected "int | None"
od.DPQuantileRegressor(epsilon=1.0, quantile="median")  # error: expected "float"
od.DPMLPClassifier(epsilon=1.0, hidden=[10])  # error: expected "int"
od.DPMLPRegressor(epsilon=1.0, robust=True)  # error: Unexpected keyword argument "robust"
fit.nothing_here  # error: "DPLogisticRegression" has no attribute "nothing_here"

mean = od.DPMean(epsilon=1.0, bounds=(0, 100), by={"sex": ["F", "M"]}, prior=(50, 1.0)).fit([[1, "F"]])
mean.mean_, mean.records_, mean.groups_[0].upper(), mean.interval_reason_.upper(), mean.feature_names_in_
od.DPSum(epsilon=1.0).sum_, od.DPVariance(epsilon=1.0).variance_, od.DPRate(epsilon=1.0).rate_
od.DPProportion(epsilon=1.0, between=(18, None)).proportion_, od.DPHistogram(epsilon=1.0).shares_
od.DPCount(epsilon=1.0, levels=["a", "b"], level="b").count_, od.DPCount(1.0).counts_, od.DPCount(1.0).levels_
od.DPQuantile(epsilon=1.0, quantiles=0.5).quantiles_, od.DPQuantile(1.0).iqr_, od.DPQuantile(1.0).rank_error_
od.DPCovariance(epsilon=1.0, columns=["a"]).correlation_, od.DPCovariance(1.0).correlation_errors_
od.DPMean(epsilon=1.0, bounds=(0, 1), nonsense=3)  # error: Unexpected keyword argument "nonsense" for "DPMean"
od.DPMean(epsilon=1.0, bounds="01")  # error: Argument "bounds" to "DPMean"
od.DPCount(epsilon=1.0, by=["sex"])  # error: Argument "by" to "DPCount"
od.DPHistogram(epsilon=1.0, prior=1)  # error: Argument "prior" to "DPHistogram"
od.DPQuantile(epsilon=1.0, step="1")  # error: Argument "step" to "DPQuantile"
od.DPCovariance(epsilon=1.0, schema=5)  # error: Argument "schema" to "DPCovariance"
od.evaluate(fit, [], [], epsilon=1.0, bounds=3)  # error: Argument "bounds" to "evaluate"
od.choose([fit], [], [], epsilon=1.0).name.upper()
mean.nothing_here  # error: "DPMean" has no attribute "nothing_here"
"""


def expected(kind: str) -> dict[int, str]:
    """Return the message that each line of the user's file asks for."""
    lines = enumerate(USER_FILE.split("\n"), start=1)
    return {number: line.partition(f"  # {kind}: ")[2] for number, line in lines if f"  # {kind}: " in line}


@pytest.mark.finding("house 1", commit="8a7c0fb")
@pytest.mark.finding("newcomer S12", commit="8a7c0fb")
def test_mypy_reports_each_mistake_of_a_user_and_nothing_else(tmp_path):
    """With the project's own settings, so that the check of types that runs before has left its cache."""
    (tmp_path / "user.py").write_text(USER_FILE)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(tmp_path / "user.py")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    found: dict[str, dict[int, str]] = {"error": {}, "note": {}}
    for line in result.stdout.splitlines():
        number, kind, message = re.match(r".*user\.py:(\d+): (error|note): (.*)", line).groups()
        found[kind][int(number)] = found[kind].get(int(number), "") + message + "\n"
    for kind in ("error", "note"):
        lacking = {n: found[kind].get(n) for n, words in expected(kind).items() if words not in found[kind].get(n, "")}
        assert lacking == {}, (kind, lacking)
    assert set(found["error"]) == set(expected("error")), result.stdout


def script(code: str) -> jedi.Script:
    project = jedi.Project(ROOT, added_sys_path=[str(SOURCE)], smart_sys_path=False)
    return jedi.Script(f"import onedraw as od\n{code}", project=project)


@pytest.fixture(autouse=True)
def _jedi_cache(monkeypatch):
    monkeypatch.setattr(jedi.settings, "cache_directory", str(ROOT / "build" / "cache" / "jedi"))


@pytest.mark.finding("newcomer S12", commit="8a7c0fb")
def test_an_editor_completes_every_public_name():
    names = {completion.name for completion in script("od.").complete()}
    assert names >= set(od.__all__)
    estimators = {name for name in od.__all__ if name.startswith("DP")}
    assert {completion.name for completion in script("od.DP").complete()} == estimators


@pytest.mark.finding("newcomer S12", commit="8a7c0fb")
def test_an_editor_shows_every_public_signature():
    calls = {name: getattr(od, name) for name in od.__all__ if not isinstance(getattr(od, name), ModuleType | str)}
    calls |= {"release": od.release.release, "Ledger.open": od.Ledger.open}
    editor = script("\n".join(f"od.{name}()" for name in calls))
    for line, (name, call) in enumerate(calls.items(), start=2):
        [signature] = editor.get_signatures(line, len(f"od.{name}("))
        assert {parameter.name for parameter in signature.params} >= set(inspect.signature(call).parameters), name


def names_for_checkers(package: ModuleType) -> dict[str, object]:
    """Return what the package imports for type checkers alone, by name."""
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    found = {}
    for node in block.body:
        home = import_module("." * node.level + (node.module or ""), package.__name__)
        for alias in node.names:
            value = getattr(home, alias.name, None)
            found[alias.name] = import_module(f"{home.__name__}.{alias.name}") if value is None else value
    return found


def names_at_once(package: ModuleType) -> set[str]:
    """Return what the package imports when it is imported."""
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in imports for alias in node.names}


@pytest.mark.finding("house 1", commit="8a7c0fb")
def test_names_for_type_checkers_are_the_names_on_demand():
    for package in map(import_module, PACKAGES):
        for_checkers, on_demand = names_for_checkers(package), set(package.__dir__()) - names_at_once(package)
        assert set(for_checkers) == on_demand, package
        assert on_demand <= set(package.__all__), package
        assert all(hasattr(package, public) for public in package.__all__), package
        for public, value in for_checkers.items():  # a package that has a function's name is called as the function
            found = inspect.unwrap(getattr(package, public))
            assert found in (inspect.unwrap(value), sys.modules.get(f"{package.__name__}.{public}"))


@pytest.mark.finding("house 1", commit="8a7c0fb")
def test_the_default_mechanism_is_public_at_the_top():
    default = od.plan({"columns": {"x": {"kind": "number", "lower": 0, "upper": 1, "missing": 0},
                                   "y": {"kind": "binary", "missing": 0}}}, "y", "logistic", epsilon=1.0, n=5000)  # fmt: skip
    assert type(default.plan.mechanism).__name__ in od.__all__
    assert type(default.plan.mechanism) is getattr(od, type(default.plan.mechanism).__name__)
