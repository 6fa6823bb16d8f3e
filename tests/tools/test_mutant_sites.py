"""The script that plants faults finds code alone, changes one place, and finds it again in a later version."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SOURCE = '''
"""2 * x stays."""
SCALE: float = 0.5

class Law:
    def __repr__(self) -> str:
        return f"{2 * self.x}"

    def mean(self, k: int = 1 + 1) -> float:
        """k + 1 > 2 stays."""
        if not k < 3:
            raise ValueError("k" * (k + 1))
        return max(2.0 * self.x, k**2)

def other(request, rows: "1 + 1"):
    return [request.records_per_person - row for row in range(7)]
'''


@pytest.fixture(scope="module")
def sites():
    sys.path.insert(0, str(ROOT / "tools"))
    import mutant_sites

    yield mutant_sites
    sys.path.remove(str(ROOT / "tools"))


def test_faults_are_planted_in_code_alone(sites):
    found = {(one.kind, text): one.mutants for one, text, _ in sites.numbered_candidates(SOURCE)}
    assert found == {
        ("halved", "0.5"): ("0.5 / 2",),
        ("comparison", "not k < 3"): ("k < 3",),
        ("comparison", "k < 3"): ("k <= 3", "k > 3"),
        ("one", "k < 3"): ("k < 4", "k < 2"),
        ("one", "1 + 1"): ("2 + 1", "0 + 1", "1 + 2", "1 + 0"),
        ("halved", "max(2.0 * self.x, k**2)"): ("(max(2.0 * self.x, k ** 2)) / 2",),
        ("extreme", "max(2.0 * self.x, k**2)"): ("min(2.0 * self.x, k ** 2)",),
        ("factor", "2.0 * self.x"): ("self.x",),
        ("factor", "k**2"): ("k",),
        ("records", "k"): ("1",),
        ("sign", "request.records_per_person - row"): ("request.records_per_person + row",),
        ("records", "request.records_per_person"): ("1",),
        ("one", "range(7)"): ("range(8)", "range(6)"),
    }


def test_draw_is_the_same_for_a_seed_and_even_over_the_packages(sites):
    sources = {f"src/onedraw/{package}/law.py": SOURCE for package in sites.PACKAGES}
    drawn = sites.draw(sources, 7, 12)
    assert drawn == sites.draw(sources, 7, 12) != sites.draw(sources, 8, 12)
    assert sorted(site.path for site in drawn.values()) == sorted(2 * list(sources))


def test_planted_fault_changes_its_place_and_nothing_else(sites):
    sources = {f"src/onedraw/{package}/law.py": SOURCE for package in sites.PACKAGES}
    later = "import math\n\n" + SOURCE.replace("class Law", "def new():\n    return 2.0 * math.pi\n\nclass Law")
    for site in sites.draw(sources, 1, 60).values():
        for source in (SOURCE, later):
            text = sites.planted(source, site)
            ast.parse(text)
            assert f"({site.mutant})" in text
            assert len(text) == len(source) - len(site.original) + len(site.mutant) + 2
    assert sites.planted("x = 1\n", site) is None
