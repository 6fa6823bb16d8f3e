"""The figures on the pages about the β-divergence are those the library computes."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def figure():
    path = ROOT / "docs" / "figures" / "choosing_beta.py"
    specification = importlib.util.spec_from_file_location("choosing_beta", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_script(figure):
    assert figure.rules_table() in page("choosing-beta.md")
    assert figure.floors_table() in page("choosing-beta.md")


def test_the_figures_in_the_text_are_computed(figure):
    words = " ".join(page("choosing-beta.md").split())
    noise = {sigma: figure.noise_declared(sigma) for sigma in (0.3, 0.12, 3.0)}
    effect = figure.effect_declared(3.0)
    quoted = [
        f"lies {figure.ratio(0.1):.1f} times above the best choice at epsilon 0.1 and {figure.ratio(0.2):.1f} times at 0.2",
        f"exists only from epsilon {figure.least_epsilon():.2f} on",
        f"2e·ln M = {figure.least_epsilon():.2f}",
        f"β = {noise[0.3][0]:.2f} instead of {noise[0.3][1]:.2f}, and {lost(noise[0.3])} % more variance",
        f"with noise 0.12, {lost(noise[0.12])} % more",
        f"with noise 3, {lost(noise[3.0])} % more",
        f"({effect[0]:.2f} instead of {effect[1]:.2f} at effect 3)",
    ]
    assert [text for text in quoted if text not in words] == []


def lost(declared):
    return round(100 * (declared[2] - 1))


def test_the_ratios_are_those_of_the_design_document(figure):
    expected = {0.1: 27.8, 0.2: 5.7, 0.5: 1.5, 1.0: 1.04, 5.0: 1.27, 10.0: 1.5}
    for epsilon, value in expected.items():
        assert figure.ratio(epsilon) == pytest.approx(value, rel=0.02)
    assert figure.ratio(0.1) != pytest.approx(figure.ratio(0.2), rel=0.5)


def test_the_figure_can_be_drawn(figure, tmp_path):
    figure.draw(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_the_accuracy_quoted_for_linear_regression_is_the_benchmark_s():
    results = (ROOT / "benchmarks" / "results" / "candidates_variance.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in results.splitlines() if re.match(r"\| \d", line)
    ]
    assert rows
    for row in rows:
        assert f"| {row[0]} | {row[2]} | {row[4]} | {row[7]} | {row[11]} |" in page("beta-linear.md")


def test_every_page_on_the_divergence_is_linked_from_the_index():
    index = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [path.name for path in (ROOT / "docs").glob("*.md") if re.match(r"beta-|choosing-beta", path.name)]
    assert len(pages) >= 3
    assert [name for name in pages if f"docs/{name}" not in index] == []
