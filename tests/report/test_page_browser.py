"""The report in a real browser, on a phone and on a desk: no error, nothing fetched, nothing hidden, no barrier.

Debian's chromium, driven by playwright; the accessibility rules are axe-core's, from the package that bundles them.
"""

from __future__ import annotations

import os
import shutil
from itertools import product

import pytest

from onedraw.report import write_report

WIDTHS = {"phone": 390, "desk": 1280}
OPTIONS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]

FAULTY = """<!doctype html><html lang="en"><head><title>Faulty</title></head><body><main><h1>Faulty</h1>
<p style="color: #bbb; background: #fff">hardly to be read</p><img src="http://127.0.0.1:9/picture.png">
<div style="width: 3000px">wide</div><script>console.error("a planted error")</script></main></body></html>"""


def cannot_have_a_browser(why: str) -> None:
    message = f"no browser for the report ({why}); `apt-get install chromium` and `make setup` provide it"
    if os.environ.get("CI"):
        pytest.fail(f"{message}. On CI this suite must run.")
    pytest.skip(message)


@pytest.fixture(scope="module")
def browser():
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        cannot_have_a_browser("none is installed")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        cannot_have_a_browser(str(error))
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=OPTIONS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def files(releases, ledger, table, planned, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return {
        "logistic": write_report(releases["logistic"], folder / "logistic.html", ledger=ledger, interval=table),
        "proportion": write_report(releases["proportion"], folder / "proportion.html", ledger=ledger),
        "histogram": write_report(releases["histogram"], folder / "histogram.html"),
        "network": write_report(releases["network"], folder / "network.html"),
        "plan": planned.report(folder / "plan.html"),
        "many": write_report(releases["many"], folder / "many.html"),
    }


@pytest.fixture(scope="module")
def fit_file(fits, tmp_path_factory):

    fit = fits["linear"]
    return write_report(fit, tmp_path_factory.mktemp("fit") / "fit.html", interval=fit.summary())


@pytest.fixture(scope="module")
def cross_file(tmp_path_factory):
    import onedraw as od

    schools = ["below high school", "high school", "some college", "associate", "bachelor", "above"]
    rows = [[schools[place % 6], ["Female", "Male"][place % 7 > 2]] for place in range(33_000)]
    counts = od.DPCount(1.0, levels=schools, by={"sex": ["Female", "Male"]}, random_state=1).fit(rows).release_
    return write_report(counts, tmp_path_factory.mktemp("cross") / "cross.html", interval=counts.summary())


def look(browser, file, *, width, scheme="light"):
    """What is wrong with a page: console messages, requests beyond the file, barriers, words beyond the edge."""
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    messages, requests = [], []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    picture = file.with_name(f"{file.stem}-{width}-{scheme}.png")
    page.screenshot(path=picture, full_page=True)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    found = {
        "messages": messages,
        "requests": [url for url in requests if url != file.as_uri() and not url.startswith("data:")],
        "barriers": [fault["id"] for fault in Axe().run(page).response["violations"]],
        "beyond the edge": page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"),
    }
    page.close()
    return found, picture


@pytest.mark.parametrize(
    ("kind", "width"),
    [
        *product(("logistic",), WIDTHS), ("proportion", "phone"), ("histogram", "desk"), ("network", "phone"), ("plan", "phone"),
        pytest.param("proportion", "desk", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_nothing_is_wrong_with_a_report(browser, files, kind, width):
    found, picture = look(browser, files[kind], width=WIDTHS[width])
    assert found == {"messages": [], "requests": [], "barriers": [], "beyond the edge": 0}
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(("width", "scheme"), [("phone", "light"), ("desk", "dark")])
def test_nothing_is_wrong_with_the_heat_map_and_tests_of_a_fit(browser, fit_file, width, scheme):
    found, _ = look(browser, fit_file, width=WIDTHS[width], scheme=scheme)
    assert found == {"messages": [], "requests": [], "barriers": [], "beyond the edge": 0}


@pytest.mark.parametrize(("width", "scheme"), [("phone", "dark"), ("desk", "light")])
def test_nothing_is_wrong_with_a_cross_table_and_it_fits_a_phone(browser, cross_file, width, scheme):
    found, _ = look(browser, cross_file, width=WIDTHS[width], scheme=scheme)
    assert found == {"messages": [], "requests": [], "barriers": [], "beyond the edge": 0}
    page = browser.new_page(viewport={"width": WIDTHS[width], "height": 900})
    page.goto(cross_file.as_uri())
    table = "document.querySelector('.cross').parentElement"
    assert page.evaluate(f"{table}.scrollWidth - {table}.clientWidth") == 0
    page.close()


def test_nothing_is_wrong_with_it_in_the_dark(browser, files):
    found, _ = look(browser, files["network"], width=WIDTHS["phone"], scheme="dark")
    assert found == {"messages": [], "requests": [], "barriers": [], "beyond the edge": 0}


def test_it_prints_light_and_without_the_certificate(browser, files):
    page = browser.new_page(color_scheme="dark")
    page.emulate_media(media="print")
    page.goto(files["logistic"].as_uri())
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".certificate").is_visible()
    assert page.locator("table").first.is_visible()
    page.close()


@pytest.mark.finding("S13")
def test_many_numbers_are_printed_folded_or_not(browser, files):
    page = browser.new_page()
    page.emulate_media(media="print")
    page.goto(files["many"].as_uri())
    number = page.locator("details", has_text="All 41 numbers").locator("td").last
    assert number.is_visible()
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = false)")
    assert number.is_visible()
    assert number.bounding_box()["height"] > 5
    page.close()


def test_a_faulty_page_is_caught(browser, tmp_path):
    file = tmp_path / "faulty.html"
    file.write_text(FAULTY, encoding="utf-8")
    found, _ = look(browser, file, width=390)
    assert "a planted error" in found["messages"]
    assert found["requests"] == ["http://127.0.0.1:9/picture.png"]
    assert {"color-contrast", "image-alt"} <= set(found["barriers"])
    assert found["beyond the edge"] > 1000
