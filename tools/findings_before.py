"""Show that every test of a review's finding fails on the commit the reviewers read: a test that cannot fail shows nothing.

Lays a worktree of that commit aside, puts the current tests over it, runs those marked `finding` with that commit and prints
their names with the outcome. A test that fails because a name cannot be imported, or cannot be collected, does not count as
failing.

    python tools/findings_before.py [--commit 8a7c0fb] [--only "reliability N1"] [-- pytest arguments]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
IMPORT_FAULTS = ("ImportError", "ModuleNotFoundError", "cannot import name")


def main() -> int:
    wanted = arguments()
    with tempfile.TemporaryDirectory() as folder:
        tree, results = Path(folder) / "before", Path(folder) / "results.xml"
        git("worktree", "add", "--detach", "--quiet", str(tree), wanted.commit)
        try:
            lay_tests_over(tree)
            run_findings(tree, results, wanted)
            return report(outcomes(results))
        finally:
            git("worktree", "remove", "--force", str(tree))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", default="8a7c0fb", help="the commit that the review read")
    parser.add_argument("--only", help="one finding, as 'reliability N1'")
    parser.add_argument("pytest", nargs="*", help="further arguments of pytest")
    return parser.parse_args()


def lay_tests_over(tree: Path) -> None:
    """Today's tests and their settings (the marker is declared there); everything else stays as it was."""
    shutil.rmtree(tree / "tests")
    shutil.copytree(ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)


def run_findings(tree: Path, results: Path, wanted: argparse.Namespace) -> None:
    tests = {file: file.read_text("utf-8") for file in sorted((tree / "tests").rglob("test_*.py"))}
    files = [str(file) for file, text in tests.items() if "mark.finding" in text]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "finding",
        f"--junitxml={results}",
        "--continue-on-collection-errors",
    ]
    only = {"ONEDRAW_FINDINGS_OF": wanted.commit} | ({} if wanted.only is None else {"ONEDRAW_FINDING": wanted.only})
    environment = os.environ | {"PYTHONPATH": str(tree / "src")} | only
    subprocess.run(
        [*command, *wanted.pytest, *files], cwd=tree, env=environment, stdout=subprocess.DEVNULL, check=False
    )


def outcomes(results: Path) -> dict[str, str]:
    """Name of each test against "fails", "passes", "does not import" or "skipped"."""
    found = {}
    for case in ElementTree.parse(results).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        fault = case.find("failure")
        if case.find("error") is not None:
            found[name] = "does not import"
        elif fault is not None:
            words = (fault.get("message") or "") + (fault.text or "")[-2000:]
            found[name] = "does not import" if any(word in words for word in IMPORT_FAULTS) else "fails"
        else:
            found[name] = "skipped" if case.find("skipped") is not None else "passes"
    return found


def report(found: dict[str, str]) -> int:
    for name in sorted(found):
        print(f"{found[name]:16} {name}")
    counts = {word: list(found.values()).count(word) for word in ("fails", "passes", "does not import", "skipped")}
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 0 if found and counts["fails"] == len(found) else 1


def git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True)


if __name__ == "__main__":
    sys.exit(main())
