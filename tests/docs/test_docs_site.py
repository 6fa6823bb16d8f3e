"""The documentation site: it builds strictly, reads well in a real browser at two widths, and fetches nothing from outside."""

from __future__ import annotations

import functools
import importlib.util
import re
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = {"phone": 390, "desk": 1280}
OUTSIDE = re.compile(r"""<(?:script|link|img|iframe)[^>]*?\b(?:src|href)=["']?(?:https?:)?//""")

FAULTY = """<!doctype html><html lang="en"><head><title>Faulty</title></head><body><main><h1>Faulty</h1>
<p style="color: #bbb; background: #fff">hardly to be read</p><img alt="" src="http://127.0.0.1:9/picture.png">
<div style="width: 3000px">wide</div><script>console.error("a planted error")</script></main></body></html>"""


def load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build_site = load(ROOT / "tools" / "build_site.py")
browser = load(ROOT / "tests" / "report" / "test_page_browser.py").browser


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments) -> None:
        pass


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documentation")
    build_site.main(folder)
    return folder


@pytest.fixture(scope="module")
def address(built):
    """The site on a server of its own: a browser treats files otherwise than pages."""
    site = built / build_site.SITE
    (site / "faulty.html").write_text(FAULTY, encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def look(browser, address, page, *, width, scheme="light"):
    """What is wrong with a page: console messages, requests elsewhere, serious barriers, words beyond the edge."""
    from axe_playwright_python.sync_playwright import Axe

    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    messages, requests = [], []
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(f"{address}/{page}.html", wait_until="load")
    found = {
        "messages": messages,
        "elsewhere": [url for url in requests if not url.startswith((f"{address}/", "data:", "blob:"))],
        "barriers": [
            fault["id"] for fault in Axe().run(tab).response["violations"] if fault["impact"] in ("serious", "critical")
        ],
        "beyond the edge": max(
            0, tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        ),
    }
    heading = tab.locator("h1").first.inner_text()
    tab.close()
    return found, heading


NOTHING = {"messages": [], "elsewhere": [], "barriers": [], "beyond the edge": 0}


def test_every_page_of_docs_is_built_and_stands_in_the_navigation(built):
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    navigation = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert pages - navigation == set()
    site = built / build_site.SITE
    assert [page for page in navigation if not (site / page).with_suffix(".html").exists()] == []


def test_no_page_names_a_script_style_or_picture_elsewhere(built):
    site = built / build_site.SITE
    assert [page.name for page in site.rglob("*.html") if OUTSIDE.search(page.read_text(encoding="utf-8"))] == []
    assert OUTSIDE.search('<script async src="https://example.org/x.js">')


def test_a_link_to_nowhere_stops_the_build(built, tmp_path):
    build_site.gather(tmp_path / build_site.PAGES)
    with (tmp_path / build_site.PAGES / "concepts.md").open("a", encoding="utf-8") as page:
        page.write("\n[nowhere](nowhere.md)\n")
    with pytest.raises(subprocess.CalledProcessError):
        build_site.build(tmp_path)


def test_links_beyond_docs_follow_their_files(built):
    page = (built / build_site.PAGES / "private-logistic-regression.md").read_text(encoding="utf-8")
    assert "](theorems/noisy_gradient.md)" in page
    note = (built / build_site.PAGES / "theorems" / "candidates.md").read_text(encoding="utf-8")
    assert "](../results/candidates_table.md)" in note
    assert "](../source/src/onedraw/methods/candidates/mechanism.py.md)" in note


def ragged_rows(page: str) -> list[str]:
    """Rows of tables with more or fewer cells than their head; a bar inside a cell makes one."""
    rows, cells = [], 0
    for line in re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL).split("\n"):
        bars = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        rows += [line] if cells and bars and bars != cells else []
        cells = bars and (cells or bars)
    return rows


def test_every_row_of_a_table_has_as_many_cells_as_its_head(built):
    pages = [page for page in (built / build_site.PAGES).rglob("*.md") if "source" not in page.parts]
    assert {page.name: rows for page in pages if (rows := ragged_rows(page.read_text(encoding="utf-8")))} == {}
    assert ragged_rows("| a | b |\n| --- | --- |\n| |x| ≤ 1 | y |\n") == ["| |x| ≤ 1 | y |"]


@pytest.mark.parametrize(
    ("page", "width"),
    [
        *product(("index",), WIDTHS), ("quickstart", "phone"), ("from-pandas", "desk"),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in (("quickstart", "desk"), ("from-pandas", "phone"))),
    ],
)  # fmt: skip
def test_nothing_is_wrong_with_a_page(browser, address, page, width):
    found, heading = look(browser, address, page, width=WIDTHS[width])
    assert found == NOTHING
    assert heading


def test_nothing_is_wrong_with_it_in_the_dark(browser, address):
    found, _ = look(browser, address, "private-logistic-regression", width=WIDTHS["desk"], scheme="dark")
    assert found == NOTHING


def test_a_faulty_page_is_caught(browser, address):
    found, _ = look(browser, address, "faulty", width=WIDTHS["phone"])
    assert "a planted error" in found["messages"]
    assert found["elsewhere"] == ["http://127.0.0.1:9/picture.png"]
    assert "color-contrast" in found["barriers"]
    assert found["beyond the edge"] > 1000
