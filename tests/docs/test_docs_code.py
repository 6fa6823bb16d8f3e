"""The documentation does what it says: its Python runs, its output is the output, its links lead somewhere.

Every ```python block of README.md and docs/*.md is run, page by page, in one fresh namespace and an empty folder (those of
the quickstart after its shell blocks, where these leave the reader: test_docs_shell.py). Where a ```text block follows at
once, it must be what was printed, line breaks aside.
"""

import contextlib
import importlib.util
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import onedraw as od

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)")


class Block(NamedTuple):
    """A fenced block: the language it names, its text, the line its text begins on, and where it stands."""

    language: str
    text: str
    line: int
    start: int
    end: int


def blocks_of(page: str) -> list[Block]:
    return [
        Block(found[1], found[2], page.count("\n", 0, found.start(2)) + 1, found.start(), found.end())
        for found in FENCED.finditer(page)
    ]


def run_page(path: Path) -> int:
    """Run a page's blocks in order; the number of blocks run."""
    page = path.read_text(encoding="utf-8")
    blocks, namespace, ran = blocks_of(page), {"__name__": "__main__"}, 0
    for number, block in enumerate(blocks):
        if block.language != "python":
            continue
        printed = io.StringIO()
        code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")  # tracebacks show the page's lines
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        ran += 1
        follower = blocks[number + 1] if number + 1 < len(blocks) else None
        if follower and follower.language == "text" and not page[block.end : follower.start].strip():
            assert printed.getvalue().split() == follower.text.split(), f"{path.name}, line {follower.line}"
    return ran


def missing_links(path: Path) -> list[str]:
    """Relative links of a page that point to no file, or to no heading of the file."""
    targets = [target for target in LINK.findall(prose_of(path)) if not re.match(r"[a-z]+:", target)]
    return [target for target in targets if not leads_somewhere(path, *target.partition("#")[::2])]


def leads_somewhere(page: Path, target: str, heading: str) -> bool:
    path = page.parent / target if target else page
    return path.exists() and (not heading or heading in anchors_of(path))


def anchors_of(path: Path) -> set[str]:
    """The names that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose_of(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def prose_of(path: Path) -> str:
    return FENCED.sub("", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [path for path in PAGES if path.name != "quickstart.md"], ids=lambda path: path.name)
def test_the_code_of_every_page_runs_and_prints_what_the_page_shows(path, tmp_path, monkeypatch, environment):
    monkeypatch.chdir(tmp_path)
    environment(path.name)
    expected = len(re.findall(r"^```python$", path.read_text(encoding="utf-8"), re.MULTILINE))
    assert run_page(path) == expected


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_relative_link_points_to_a_file(path):
    assert missing_links(path) == []


def test_the_steps_on_the_page_are_those_the_library_computes(tmp_path):
    figure = load(ROOT / "docs" / "figures" / "langevin_cost.py")
    page = (ROOT / "docs" / "what-langevin-costs.md").read_text(encoding="utf-8")
    assert figure.table() in page
    quoted = [
        f"asks for {figure.written(figure.by_proposition_13(1000), digits=7)} steps",
        f"{figure.written(figure.by_proposition_13(1000, scale=2.0))} with standard deviation 2",
        f"{figure.written(figure.by_proposition_13(1000, scale=1.0))} with 1.",
        f"{figure.by_proximal(1000, 1e-12):,} steps instead of {figure.by_proximal(1000):,}",
        f"takes {figure.written(figure.by_proposition_13(1000, 1e-12))}",
        f"n: {figure.by_proximal_on_a_ball(10**6):,}",
        f"n = 1,000,000 after {od.samplers.default_sampler(figure.plan_for(10**6))[0].steps:,} steps",
    ]
    words = " ".join(page.split())
    assert [figures for figures in quoted if figures not in words] == []
    assert od.samplers.default_sampler(figure.plan_for(1000))[0].steps == figure.by_last_iterate(1000)
    figure.draw(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.statistical
def test_the_errors_quoted_for_logistic_regression_come_again():
    """α ≈ 1e-6: 300 errors have a relative standard error of 4 to 5 %, those on the page (1,200) half of it."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    page = (ROOT / "docs" / "private-logistic-regression.md").read_text(encoding="utf-8")
    line = re.search(r"of a slope was ([\d., ]+) and ([\d.]+)", " ".join(page.split()))
    quoted = np.array([float(number) for number in f"{line[1]}, {line[2]}".split(", ")])
    found = errors_of_a_slope(np.random.default_rng(seed), repetitions=100)
    assert np.all(np.abs(found / quoted - 1) < 0.3)
    assert not np.any(np.abs(2.0 * found / quoted - 1) < 0.3)  # a draw of a quarter of the weight


def errors_of_a_slope(generator: np.random.Generator, *, repetitions: int) -> np.ndarray:
    """Root mean square errors, in the order of the page, on data sets like the page's."""
    truth, n = np.array([1.0, -0.5, 0.0, 0.2]), 2000
    choices = [
        (od.NoisyGradient(), "exp-linear", None), (od.NoisyGradient(), "logistic", None),
        (od.Gibbs("gdp"), "exp-linear", None), (od.Gibbs("gdp"), "logistic", None), (od.Gibbs("bounded"), "logistic", 1.5),
    ]  # fmt: skip
    plans = []
    for mechanism, loss, radius in choices:
        model = od.models.Logistic(3, bounds=(-1, 1), loss=loss, prior=od.Gaussian(scale=2.0, radius=radius))
        plans.append(od.calibrate(mechanism, model, od.ApproxDP(1.0, 1e-5), n=n))
    squares = np.zeros(len(plans))
    for _ in range(repetitions):
        X = generator.uniform(-1, 1, size=(n, 3))
        y = generator.uniform(size=n) < 1 / (1 + np.exp(-(X @ truth[:3] + truth[3])))
        squares += [np.mean((od.release(plan, (X, y)).draw - truth)[:3] ** 2) for plan in plans]
    return np.sqrt(squares / repetitions)


# ── these checks can fail ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def page(tmp_path):
    def write(text):
        path = tmp_path / "page.md"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_an_error_in_a_block_is_noticed_with_its_line(page):
    path = page("# A page\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as caught:
        run_page(path)
    assert caught.traceback[-1].lineno + 1 == 8


def test_a_warning_in_a_block_is_an_error(page):
    with pytest.raises(UserWarning):
        run_page(page("```python\nimport warnings\nwarnings.warn('look')\n```\n"))


def test_output_other_than_shown_is_noticed(page):
    shown = "```python\nprint('one', 2)\n```\n\n```text\none\n{}\n```\n"
    assert run_page(page(shown.format(2))) == 1
    with pytest.raises(AssertionError, match=r"page\.md, line 6"):
        run_page(page(shown.format(3)))


def test_a_link_to_nowhere_is_noticed_and_other_links_are_not(page):
    good = "# Who, and why?\n\n[a](page.md#who-and-why) [b](#who-and-why) [c](https://example.org)\n"
    assert missing_links(page(good + "\n```python\nx = [f](2)\n```\n")) == []
    assert missing_links(page(good + "![d](gone.png) [e](#where)\n")) == ["gone.png", "#where"]
