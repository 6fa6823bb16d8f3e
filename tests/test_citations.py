"""A file that the code or a note cites is in the repository: proofs and notes ship with what rests on them.

A path is looked for beside the file that cites it, then under src/onedraw, in docs and in the repository; a bare name may also be that
of the one file in the repository that is called so. Modules in backticks are looked for under src/onedraw.
"""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "onedraw"
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
FILES = [ROOT / name for name in TRACKED if (ROOT / name).is_file()]
UNIQUE = {name for name, times in Counter(path.name for path in FILES).items() if times == 1}

CITING = [path for path in FILES if path.is_relative_to(PACKAGE) and path.suffix in (".py", ".md")]
PAGES = [path for path in FILES if path.suffix == ".md" and not path.is_relative_to(ROOT / "benchmarks" / "results")]
PROSE = [path for path in FILES if path.suffix in (".py", ".md", ".toml", ".yml") and path != Path(__file__).resolve()]

FILE = re.compile(r"(?<![\w*{}<>/.-])((?:\.{0,2}/)?[\w./-]*[\w-]\.(?:md|py))\b(?![.]\w|-)")
MODULE = re.compile(r"`((?:methods|mechanisms|models|samplers|privacy|planning|baselines|estimators|audit)(?:\.\w+)+)`")
NOTES = re.compile(r"\bmathematics(?:\.md|-\d)|\b(?:architecture|dp-mcmc|fits|errata|seeds|README-proposal)\.md\b")

ERRATA = re.compile(r"\berrata (\d+[a-c]?(?:(?:, | and )\d+\b)*)")

ELSEWHERE = {
    "dp_event.py",  # of dp-accounting
}
"""Files of other projects, named with the project's name beside them."""


def is_there(name: str, citing: Path) -> bool:
    return name in UNIQUE or any((folder / name).is_file() for folder in (citing.parent, PACKAGE, ROOT / "docs", ROOT))


def cited_nowhere(text: str, citing: Path) -> list[str]:
    """Files and modules that a text names and that do not exist."""
    files = [name for name in FILE.findall(text) if name not in ELSEWHERE and not is_there(name, citing)]
    return files + [name for name in MODULE.findall(text) if not is_module(name)]


def is_module(name: str) -> bool:
    """A package or module, or a name that its file speaks of."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        place = PACKAGE.joinpath(*parts[:end])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if file.is_file():
            return end == len(parts) or parts[end] in file.read_text(encoding="utf-8")
    return False


def texts(paths: list[Path]) -> list[tuple[Path, str]]:
    return [(path, path.read_text(encoding="utf-8")) for path in paths]


def test_whatever_the_package_cites_is_in_the_repository():
    found = {str(path.relative_to(ROOT)): wrong for path, text in texts(CITING) if (wrong := cited_nowhere(text, path))}
    assert found == {}


def test_whatever_page_a_page_cites_is_in_the_repository():
    found = {}
    for path, text in texts(PAGES):
        wrong = [name for name in FILE.findall(text) if name.endswith(".md") and not is_there(name, path)]
        if wrong:
            found[str(path.relative_to(ROOT))] = wrong
    assert found == {}


def test_nothing_cites_notes_that_do_not_ship():
    assert [str(path.relative_to(ROOT)) for path, text in texts(PROSE) if NOTES.search(text)] == []


def missing_errata(text: str) -> set[str]:
    """Numbers of errata that a text cites and that the page of errata has no row for."""
    rows = set(
        re.findall(
            r"^\| (\d+) \|", (ROOT / "docs" / "errata-of-the-literature.md").read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    cited = [number for numbers in ERRATA.findall(text) for number in re.findall(r"\d+", numbers)]
    return set(cited) - rows


def test_every_row_of_errata_that_is_cited_is_on_the_page():
    found = {str(path.relative_to(ROOT)): wrong for path, text in texts(PROSE) if (wrong := missing_errata(text))}
    assert found == {}
    assert missing_errata("as published (errata 16, 17 and 97), errata 6c; errata 98") == {"97", "98"}


def test_every_method_with_a_theorem_of_its_own_has_its_proof_in_its_folder():
    folders = {path.parent.name for path in FILES if path.match("src/onedraw/methods/*/mechanism.py")}
    proven = {path.parent.name for path in FILES if path.match("src/onedraw/methods/*/proof.md")}
    elsewhere = {"perturbed_mode": "privacy/perturbed_mode.md", "model_choice": "methods/quantiles/proof.md"}
    assert {name for name, proof in elsewhere.items() if (PACKAGE / proof).is_file()} == folders - proven


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ("Proofs: moments.md.", ["moments.md"]),
        ('theorem = "noise on sums (methods/moment/proof.md)"', ["methods/moment/proof.md"]),
        ("Code: [gibbs.py](gibbs.py)", ["gibbs.py", "gibbs.py"]),
        ("[away](../../privacy/perturbed_mode.md)", ["../../privacy/perturbed_mode.md"]),
        ("why these numbers: `mechanisms.stages`, `models.moments.constants`", ["mechanisms.stages", "models.moments.constants"]),
        ("Proof: methods/gibbs/proof.md, perturbed_mode.md, theorems/gibbs.md; `methods.stages`", ["theorems/gibbs.md"]),
    ],
)  # fmt: skip
def test_a_planted_citation_of_nothing_is_found(planted, found):
    assert cited_nowhere(planted, PACKAGE / "methods" / "stages.py") == found


@pytest.mark.parametrize(
    "planted", ["(mathematics.md §4)", "(mathematics-3 §1)", "architecture.md, joint 3", "dp-mcmc.md §8"]
)
def test_a_planted_citation_of_a_note_is_found(planted):
    assert NOTES.search(planted)
    assert not NOTES.search("the mathematics of likelihoods; benchmarks/results/scale.md; errata-of-the-literature.md")
