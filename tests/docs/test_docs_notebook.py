"""The notebook of the documentation runs, prints what it shows, and stands on the site with its outputs."""

import copy
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "docs" / "first-analysis.ipynb"


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run_notebook = load("run_notebook")


@pytest.fixture(scope="module")
def notebook():
    return run_notebook.read(PATH)


def test_a_run_today_has_the_shape_of_the_outputs_that_are_shown(notebook):
    """Numbers differ from run to run; tables, words and figures do not."""
    assert run_notebook.shape(run_notebook.run(notebook)) == run_notebook.shape(notebook)


def test_another_column_or_a_missing_figure_is_another_shape(notebook):
    shown = run_notebook.shape(notebook)
    changed = copy.deepcopy(notebook)
    next(cell for cell in changed["cells"] if cell.get("outputs"))["outputs"].pop()
    assert run_notebook.shape(changed) != shown
    output = {"output_type": "stream", "text": ["age 0.04 0.001\n"]}
    assert run_notebook.words_of(output) == run_notebook.words_of(output | {"text": ["age -12.5 < 0.001\n"]})
    assert run_notebook.words_of(output) != run_notebook.words_of(output | {"text": ["age 0.04\n"]})


def test_it_goes_from_the_schema_to_the_evaluation(notebook):
    code = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    steps = ["Schema.from_dict", "od.plan(", ".fit(", ".report(", ".predict(", "od.evaluate("]
    places = [code.index(step) for step in steps]
    assert places == sorted(places)


def test_its_page_shows_tables_figures_and_links_that_lead_somewhere(notebook):
    page = run_notebook.page(notebook)
    assert page.count("```python") == sum(cell["cell_type"] == "code" for cell in notebook["cells"])
    assert "<table" in page
    assert 'src="data:image/png;base64,' in page
    assert "<style" not in page
    assert not [link for link in re.findall(r"\]\(([^)#]+)\)", page) if not (PATH.parent / link).exists()]
