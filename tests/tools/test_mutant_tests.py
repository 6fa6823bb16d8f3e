"""A fault is looked for by the tests of its own module: those of its name beside it, those that name or import it."""

import sys
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def finder():
    sys.path.insert(0, str(ROOT / "tools"))
    import mutant_tests

    yield mutant_tests
    sys.path.remove(str(ROOT / "tools"))


def test_modules_of_one_name_have_the_tests_of_their_own_method(finder):
    found = finder.own_tests(ROOT, "src/onedraw/methods/gibbs/mechanism.py")
    assert found[0] == "tests/methods/gibbs/test_mechanism.py"
    assert "tests/methods/moments/test_mechanism.py" not in found
    assert found[-1] == "tests/methods/test_every_mechanism.py"


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in (ROOT / "src/onedraw/methods").glob("*/run.py")))
def test_what_runs_has_tests_in_its_own_folder(finder, folder):
    found = finder.own_tests(ROOT, f"src/onedraw/methods/{folder}/run.py")
    assert any(file.startswith(f"tests/methods/{folder}/") for file in found)


def test_file_is_named_by_its_place_in_the_first_line_alone(finder, tmp_path):
    file = tmp_path / "fit" / "test_pair.py"
    file.parent.mkdir()
    file.write_text('"""A pair (steps.py, moments/run.py)."""\n# methods/fit/sums.py\n')

    def names(module):
        return finder.names_module(file, PurePosixPath("methods", module), tmp_path / PurePosixPath(module).parent)

    assert names("fit/steps.py")
    assert names("moments/run.py")
    assert not names("clipped_gradients/steps.py")
    assert not names("fit/run.py")
    assert not names("fit/sums.py")
