"""Build the wheel, install it with pip into an empty environment, and use it there as a newcomer would.

    python tools/wheel_test.py                     # `make wheel-test`: fails where a command fails
    python tools/wheel_test.py --against 4e64d58   # the same for an older commit, and the ratios to it
    python tools/wheel_test.py --extras figures    # with extras

Printed: what the install weighs, every package over 20 MB with the commands that load it (looked up in the running process,
not told), and how long the first steps take (best of several, wall clock and processor: a busy machine shows in the first only).
Versions are those of requirements.lock. Needs PyPI.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LARGE = 20.0  # MB
MOST = 1000.0  # MB of the base package
RUNS = 5
LIMITS = {"import onedraw": 0.1, "onedraw --help": 0.5, "the first estimator": 2.0}  # seconds
STEPS = {
    "import onedraw": "import onedraw",
    "onedraw --help": "import sys; sys.argv = ['onedraw', '--help']; from onedraw.cli import main; main()",
    "the first estimator": "from onedraw import DPLogisticRegression; DPLogisticRegression()",
}

RECORDS = """
import numpy as np
invented, n = np.random.default_rng(2026), 2000
age, smoker = invented.integers(18, 91, n), invented.random(n) < 0.3
stroke = invented.random(n) < 1 / (1 + np.exp(3 - 0.04 * age - 0.7 * smoker))
rows = np.column_stack([age, np.array(["no", "yes"])[smoker * 1], np.array(["no", "yes"])[stroke * 1]])
np.savetxt("patients.csv", rows, fmt="%s", delimiter=",", header="age,smoker,stroke", comments="")
"""
SCHEMA = """\
dataset: clinic-2026
columns:
  age:    {kind: number, lower: 18, upper: 90, missing: 55}
  smoker: {kind: binary, levels: [no, yes], missing: no}
  stroke: {kind: binary, levels: [no, yes], missing: no}
"""
FIT = """
import numpy as np
from onedraw import DPLogisticRegression
X = np.random.default_rng(1).uniform(size=(2000, 3))
model = DPLogisticRegression(epsilon=2.0, bounds=(0, 1), classes=[0, 1]).fit(X, X[:, 0] > 0.5)
assert model.coef_.shape == (1, 3) and model.certificate_.promise.epsilon <= 2.0
model.release_.report("fit.html")
"""
ASKED = "--schema schema.yaml --ledger ledger.db --epsilon 1"
COMMANDS = {
    "ledger init": "ledger init ledger.db --dataset clinic-2026 --epsilon 9 --delta 1e-5",
    "schema check": "schema check schema.yaml patients.csv",
    "plan --model logistic": "plan --schema schema.yaml --target stroke --model logistic --epsilon 1 --rows 2000",
    "release --model mean": f"release patients.csv --target age --model mean {ASKED} --out mean.json --report mean.html",
    "release --model median": f"release patients.csv --target age --model median {ASKED} --out median.json",
    "release --model logistic": f"release patients.csv --target stroke --model logistic {ASKED} --out fit.json --report page.html",
    "verify": "verify fit.json --ledger ledger.db",
    "predict": "predict fit.json patients.csv --out predicted.csv",
    "audit": "audit mean.json --effort demo",
}
WATCHED = """
import sys
try:
    {code}
except SystemExit as ended:
    if ended.code:
        raise
print("LOADED", *sorted({{name.partition(".")[0] for name in sys.modules}}), file=sys.stderr)
"""


def run(*command: str | Path, where: Path, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    result = subprocess.run([str(part) for part in command], cwd=where, env=environment, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command[:6]))} failed:\n{result.stdout[-2000:]}{result.stderr[-4000:]}")
    return result


def installed(place: Path, commit: str | None, extras: str) -> Path:
    """The interpreter of an empty environment with the wheel of this tree, or of an older commit, in it."""
    source = ROOT
    if commit is not None:
        source = place / "source"
        source.mkdir()
        run("sh", "-c", f"git archive {commit} | tar x -C {source}", where=ROOT)
    lines = (source / "requirements.lock").read_text().splitlines()
    versions = [line.removesuffix(" \\") for line in lines if not line.lstrip().startswith("--hash")]
    (place / "versions.txt").write_text("\n".join(versions) + "\n")
    run(sys.executable, "-m", "venv", place / "empty", where=place)
    python = place / "empty" / "bin" / "python"
    run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", place, source, where=place)
    (wheel,) = place.glob("onedraw-*.whl")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e3:,.0f} kB", flush=True)
    asked = f"{wheel}[{extras}]" if extras else str(wheel)
    run(python, "-m", "pip", "install", "-q", "-c", place / "versions.txt", asked, where=place)
    run(python, "-m", "pip", "check", where=place)
    return python


SIZES = """
from importlib.metadata import distributions, packages_distributions
modules = {}
for module, owners in packages_distributions().items():
    for owner in owners:
        modules.setdefault(owner, []).append(module)
for one in distributions():
    files = [file.locate() for file in one.files or ()]
    sizes = [(path.suffix == ".pyc", path.stat().st_size) for path in files if path.is_file()]
    print(one.name, sum(size for made, size in sizes if not made), sum(size for made, size in sizes if made), *modules.get(one.name, ()))
"""


def weights(python: Path, place: Path) -> dict[str, tuple[float, float, list[str]]]:
    """By package, without pip itself: MB of its files, MB of the bytecode that pip made of them, its modules."""
    found = {}
    for line in run(python, "-c", SIZES, where=place).stdout.splitlines():
        name, files, bytecode, *modules = line.split()
        if name not in ("pip", "setuptools"):
            found[name] = (int(files) / 1e6, int(bytecode) / 1e6, modules)
    return found


def used(python: Path, place: Path) -> dict[str, set[str]]:
    """The commands of a newcomer, run one after another; by command the modules it loaded."""
    (place / "schema.yaml").write_text(SCHEMA)
    run(python, "-c", RECORDS, where=place)
    loaded = {}
    for name, words in COMMANDS.items():
        code = f"sys.argv = {['onedraw', *words.split()]!r}; from onedraw.cli import main; main()"
        result = run(python, "-c", WATCHED.format(code=code), where=place)
        loaded[name] = named(result.stderr)
    result = run(python, "-c", FIT + WATCHED.format(code="pass"), where=place)
    loaded["DPLogisticRegression"] = named(result.stderr)
    run(python.parent / "onedraw", "--version", where=place)
    for page in ("mean.html", "page.html", "fit.html"):
        assert "</html>" in (place / page).read_text(), f"{page} is not a whole page"
    return loaded


def named(words: str) -> set[str]:
    """The modules in the line that `WATCHED` has written."""
    found = re.search("LOADED (.*)", words)
    assert found is not None, f"no line says what was loaded:\n{words}"
    return set(found[1].split())


def seconds(python: Path, code: str, place: Path) -> tuple[float, float]:
    """(wall clock, processor): the best of several fresh processes, less nothing."""
    best = [float("inf"), float("inf")]
    for _ in range(RUNS):
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        run(python, "-c", code, where=place)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best[0] = min(best[0], time.perf_counter() - begun)
        best[1] = min(best[1], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best[0], best[1]


def examined(commit: str | None, extras: str) -> tuple[float, dict[str, tuple[float, float]]]:
    """Everything about one wheel, printed; (MB, seconds by step)."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        print(f"\n## {commit or 'this tree'}{f' [{extras}]' if extras else ''}, Python {sys.version.split()[0]}\n")
        python = installed(place, commit, extras)
        loaded = used(python, place) if commit is None else {}
        sizes = weights(python, place)
        files, bytecode = sum(own for own, *_ in sizes.values()), sum(made for _, made, _ in sizes.values())
        print(
            f"{len(sizes)} packages, {files:,.0f} MB ({files / 1073.741824:.2f} GiB), and {bytecode:,.0f} MB of bytecode that pip makes\n"
        )
        print("| package | MB | with bytecode | loaded by |\n| --- | ---: | ---: | --- |")
        for name, (own, made, modules) in sorted(sizes.items(), key=lambda one: -one[1][0]):
            if own + made >= LARGE:
                who = [command for command, names in loaded.items() if names & set(modules)]
                print(
                    f"| {name} | {own:.0f} | {own + made:.0f} | {'every command that computes' if len(who) == len(COMMANDS) + 1 else ', '.join(who)} |"
                )
        return files, {step: seconds(python, code, place) for step, code in STEPS.items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--against", help="a commit to compare with")
    options.add_argument("--extras", default="", help="comma-separated")
    asked = options.parse_args()
    size, times = examined(None, asked.extras)
    before = examined(asked.against, "") if asked.against else None
    print("\n| step | seconds | of the processor | at most |" + (" before | ratio |" if before else ""))
    print("| --- | ---: | ---: | ---: |" + (" ---: | ---: |" if before else ""))
    for step, (wall, processor) in times.items():
        line = f"| {step} | {wall:.2f} | {processor:.2f} | {LIMITS[step]:g} |"
        if before:
            line += f" {before[1][step][1]:.2f} | {processor / before[1][step][1]:.2f} |"
        print(line)
    if not asked.extras and size > MOST:
        sys.exit(f"The base package weighs {size:,.0f} MB, more than {MOST:,.0f} MB. What does not everybody need?")
    if before:
        print(f"\nMB: {size:,.0f}, before {before[0]:,.0f}, ratio {size / before[0]:.2f}")


if __name__ == "__main__":
    main()
