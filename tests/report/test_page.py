"""Writing a report: whole or not at all, never over another file unasked, and refused before anything else."""

import re

import pytest

import onedraw as od
from onedraw import errors
from onedraw.errors import CannotWrite
from onedraw.release import files
from onedraw.report import page, report_html, write_report
from tests.report.cases import Page, outside_loads


def test_a_report_is_one_file_with_what_report_html_says(releases, tmp_path):
    path = write_report(releases["mean"], tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == report_html(releases["mean"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_an_existing_file_is_replaced_only_when_asked(releases, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("older")
    with pytest.raises(errors.CannotWrite, match="overwrite=True"):
        write_report(releases["mean"], path)
    assert path.read_text() == "older"
    write_report(releases["mean"], str(path), overwrite=True)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("name", ["missing/report.html", "."])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_read(name, tmp_path):
    with pytest.raises(errors.CannotWrite):
        write_report("not even a release", tmp_path / name, overwrite=True)


def test_a_folder_without_permission_is_refused_before_anything_is_read(tmp_path, monkeypatch):
    """As root every folder can be written, so the refusal of the operating system is played."""

    def forbidden(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.tempfile, "TemporaryFile", forbidden)
    with pytest.raises(errors.CannotWrite, match="cannot be written"):
        write_report("not even a release", tmp_path / "report.html")


def test_a_failure_while_writing_leaves_nothing_behind(releases, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(page.os, "fsync", full)
    with pytest.raises(errors.CannotWrite, match="No space left"):
        write_report(releases["mean"], tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_plan_is_a_page_to_sign_that_loads_nothing(planned, tmp_path):
    text = planned.report(tmp_path / "plan.html").read_text()
    page = Page(text)
    assert outside_loads(text) == []
    assert "<a>" not in text
    assert "18 to 98" in page.text
    assert "chosen without looking at the private records" in page.text
    assert planned.fingerprint in page.text
    assert "age, ward=b, intercept" in page.text
    assert "are beyond the worst design: their coefficients hardly exist" in page.text
    with pytest.raises(CannotWrite, match="exists already"):
        planned.report(tmp_path / "plan.html")


def test_an_inferred_schema_must_be_answered_for(planned):
    schema = planned.asked.schema.to_dict() | {"inferred_from": "public.csv"}
    page = Page(od.report.plan_html(od.plan(schema, "cost", "linear", epsilon=2.0, n=3000)))
    assert "inferred from public.csv: must be public" in page.text


@pytest.mark.finding("newcomer S7", commit="8a7c0fb")
def test_report_of_a_huge_epsilon_warns_and_never_says_yes(tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", od.ApproxDP(200.0, 1e-2))
    share = od.DPProportion(epsilon=100.0, delta=1e-3, classes=[0, 1], ledger=ledger, dataset="patients").fit(
        [0, 1] * 50
    )
    html = write_report(share.release_, tmp_path / "report.html", ledger=ledger).read_text(encoding="utf-8")
    chips = re.findall(r'<li class="chip (\w+)">(.+?)</li>', html, re.DOTALL)
    warned = [words for tone, words in chips if tone in ("fair", "bad", "amber", "red")]
    assert any("100 of 100 guesses" in words for words in warned)
    assert "Yes" not in Page(html).text
    assert "is acceptable is for the data owner to decide" in html
    assert all(re.search(r'aria-hidden="true">.</span> \w', words) for _, words in chips)


@pytest.mark.finding("newcomer S9", commit="8a7c0fb")
def test_report_says_of_membership_what_the_pages_say(releases):
    """Replacing a record by another one is the change that is protected, so whose record it is, is too."""
    text = Page(report_html(releases["mean"])).text
    assert "The promise is about taking part" not in text
    assert "hard to tell whether the data hold a given record or another instead" in text
